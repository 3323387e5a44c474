//! The machine-readable report, frozen as `report-v1`.
//!
//! A type of its own: whatever changes inside, these names and meanings stay. Fields may be added.
//! It is a superset of the JSON that the published skill prints (`checks`, `counts`, `verdict`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coverage::Coverage;
use crate::observed::ObservedTraffic;
use crate::result::{CheckResult, Grade, Reason, Source, Status};
use crate::transfer::Transfer;
use crate::verdict::{Counts, DeploymentSummary, NextStep, Readiness, Report, WorkerSummary};

/// The value of `schema`.
pub const SCHEMA_NAME: &str = "check-interconnect/report-v1";

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "check-interconnect report, version 1")]
pub struct ReportV1 {
    /// Always `check-interconnect/report-v1`.
    pub schema: String,
    /// The program that wrote it.
    pub tool: ToolV1,
    /// The command that was run: `env`, `node`, …
    pub command: String,
    /// What it was asked to look at, as given.
    pub scope: Vec<String>,
    /// Results that count for KV readiness. In `json`, identical results are folded; `members` names them.
    pub checks: Vec<CheckV1>,
    /// Results about collective communication (NCCL). They never count for KV readiness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collectives: Vec<CheckV1>,
    /// Results in `checks` per status, each subject counted, before any folding.
    pub counts: Counts,
    /// The verdict in one sentence.
    pub verdict: String,
    /// The verdict in one word.
    pub readiness: Readiness,
    /// True only when `readiness` is `trusted`.
    pub transfer_validated: bool,
    /// How much was looked at.
    pub coverage: Coverage,
    /// Measured transfers between workers, each with everything that was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    /// What moved between workers while their engines ran by themselves, with `nixl --observe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedTraffic>,
    /// The verdict per deployment.
    pub deployments: Vec<DeploymentV1>,
    /// Commands to run next.
    pub next: Vec<NextStep>,
}

/// The program that wrote a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolV1 {
    /// `check-interconnect`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One check, or several identical ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckV1 {
    /// The property, such as `env/ucx-tls`.
    pub name: String,
    /// What is said.
    pub status: Status,
    /// One line.
    pub detail: String,
    /// The failure mode, where the status is warn or fail; `check-interconnect explain CAUSE` tells more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Something worth knowing that changes no verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// How well it is supported.
    pub grade: Grade,
    /// What it is about.
    pub subject: SubjectV1,
    /// Where it was read. In a `json` document that would be longer than 30 KB, results that are ok keep one of
    /// their sources, or none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceV1>,
}

/// What a result is about. Lists have more than one entry where results were folded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SubjectV1 {
    /// Name of the deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    /// Workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<String>,
    /// Container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Pods, where it is about several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Device or interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Input file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A place in an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceV1 {
    /// Path as given, or `-`.
    pub file: String,
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in characters.
    pub column: u32,
    /// What stands there or what it means.
    pub label: String,
    /// Whether the finding is about this line, or this line only explains it.
    pub primary: bool,
}

/// The verdict over one deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeploymentV1 {
    /// Its name.
    pub name: String,
    /// Namespace, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Kind of its main object.
    pub kind: String,
    /// Files it was read from.
    pub files: Vec<String>,
    /// `patch`, `chart values`, … where the text is only a part of a deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
    /// Its readiness.
    pub readiness: Readiness,
    /// One sentence.
    pub verdict: String,
    /// Its workers.
    pub workers: Vec<WorkerV1>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerV1 {
    /// Component, service or workload name.
    pub name: String,
    /// `prefill`, `decode`, `unknown-role` (one of the two), `aggregated`, `encode`, `frontend` or `other`.
    pub role: String,
    /// Inference engine.
    pub engine: String,
    /// Nothing in the input names the engine: it is the default of the worker's kind. Absent where something does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub engine_assumed: bool,
    /// KV connector and backend, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
    /// What it asks the cluster for.
    pub fabric: String,
    /// Replicas, where written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// Nodes per replica.
    pub nodes: u64,
    /// Accelerators per pod, where written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accelerators: Option<u64>,
}

/// One line of `jsonl`: a result, or the summary that ends the stream and proves that it is complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[schemars(title = "check-interconnect report line, version 1")]
pub enum LineV1 {
    /// One result, unfolded.
    Check(CheckV1),
    /// One result about collective communication.
    Collective(CheckV1),
    /// Everything else of the report; always the last line.
    Summary(Box<SummaryV1>),
}

/// The last line of `jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryV1 {
    /// Always `check-interconnect/report-v1`.
    pub schema: String,
    /// The program that wrote it.
    pub tool: ToolV1,
    /// The command that was run.
    pub command: String,
    /// What it was asked to look at, as given.
    pub scope: Vec<String>,
    /// Results per status.
    pub counts: Counts,
    /// The verdict in one sentence.
    pub verdict: String,
    /// The verdict in one word.
    pub readiness: Readiness,
    /// True only when `readiness` is `trusted`.
    pub transfer_validated: bool,
    /// How much was looked at.
    pub coverage: Coverage,
    /// Measured transfers between workers, each with everything that was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    /// What moved between workers while their engines ran by themselves, with `nixl --observe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedTraffic>,
    /// The verdict per deployment.
    pub deployments: Vec<DeploymentV1>,
    /// Commands to run next.
    pub next: Vec<NextStep>,
}

impl From<&CheckResult> for CheckV1 {
    fn from(result: &CheckResult) -> Self {
        let subject = &result.subject;
        Self {
            name: result.name.to_string(),
            status: result.status,
            detail: result.detail.clone(),
            cause: result.cause.map(str::to_owned),
            fix: result.fix.clone(),
            reason: result.reason,
            note: result.note.clone(),
            grade: result.grade,
            subject: SubjectV1 {
                deployment: subject.deployment.clone(),
                roles: subject
                    .roles
                    .iter()
                    .map(|r| r.as_str().to_owned())
                    .collect(),
                workers: subject.workers.clone(),
                container: subject.container.clone(),
                pod: subject.pod.clone(),
                pods: subject.pods.clone(),
                node: subject.node.clone(),
                device: subject.device.clone(),
                file: subject.file.clone(),
            },
            sources: result.sources.iter().map(SourceV1::from).collect(),
        }
    }
}

impl From<&Source> for SourceV1 {
    fn from(source: &Source) -> Self {
        Self {
            file: source.place.file.to_string(),
            line: source.place.line,
            column: source.place.column,
            label: source.label.clone(),
            primary: source.primary,
        }
    }
}

impl From<&WorkerSummary> for WorkerV1 {
    fn from(worker: &WorkerSummary) -> Self {
        Self {
            name: worker.name.clone(),
            role: worker.role.as_str().to_owned(),
            engine: worker.engine.as_str().to_owned(),
            engine_assumed: worker.engine_is_assumed,
            connector: worker.connector.clone(),
            fabric: worker.fabric.clone(),
            replicas: worker.replicas,
            nodes: worker.nodes,
            accelerators: worker.accelerators,
        }
    }
}

impl From<&DeploymentSummary> for DeploymentV1 {
    fn from(deployment: &DeploymentSummary) -> Self {
        Self {
            name: deployment.name.clone(),
            namespace: deployment.namespace.clone(),
            kind: deployment.kind.to_string(),
            files: deployment.files.clone(),
            partial: deployment.partial.map(str::to_owned),
            readiness: deployment.readiness,
            verdict: deployment.verdict.clone(),
            workers: deployment.workers.iter().map(WorkerV1::from).collect(),
        }
    }
}

impl SummaryV1 {
    /// Everything of a report but its results.
    pub fn of(report: &Report, version: &str) -> Self {
        Self {
            deployments: report.deployments.iter().map(DeploymentV1::from).collect(),
            ..Self::without_deployments(report, version)
        }
    }

    /// The same without the verdicts per deployment, for who writes them one by one.
    pub fn without_deployments(report: &Report, version: &str) -> Self {
        Self {
            schema: SCHEMA_NAME.to_owned(),
            tool: ToolV1 {
                name: "check-interconnect".to_owned(),
                version: version.to_owned(),
            },
            command: report.command.to_owned(),
            scope: report.scope.clone(),
            counts: report.counts(),
            verdict: report.verdict.clone(),
            readiness: report.readiness,
            transfer_validated: report.transfer_validated(),
            coverage: report.coverage.clone(),
            transfers: report.transfers.clone(),
            observed: report.observed.clone(),
            deployments: Vec::new(),
            next: report.next.clone(),
        }
    }
}
