//! From results to readiness and one sentence.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::coverage::Coverage;
use crate::observed::ObservedTraffic;
use crate::result::{CheckResult, Status};
use crate::transfer::Transfer;
use crate::worker::{Engine, Role};

/// Whether disaggregated KV transfer can be relied on. The order is the precedence, worst first;
/// `not-applicable` stands apart.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Readiness {
    /// Something failed.
    Blocked,
    /// Required evidence could not be gathered.
    Inconclusive,
    /// Usable, with gaps.
    Degraded,
    /// No gap seen, and no proof either.
    Unproven,
    /// Every worker took part in a proven pair.
    Trusted,
    /// Nothing disaggregated here.
    NotApplicable,
}

impl Readiness {
    /// The word that every format prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Inconclusive => "inconclusive",
            Self::Degraded => "degraded",
            Self::Unproven => "unproven",
            Self::Trusted => "trusted",
            Self::NotApplicable => "not-applicable",
        }
    }
}

/// A command to run next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    /// The exact command.
    pub command: String,
    /// What it tells or changes.
    pub why: String,
    /// Whether it leaves the cluster as it is.
    pub read_only: bool,
}

/// One line about a worker, for the head of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerSummary {
    /// Component, service or workload name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its engine.
    pub engine: Engine,
    /// Nothing in the input names the engine: it is the default of the worker's kind.
    pub engine_is_assumed: bool,
    /// `NIXL/UCX`, `Mooncake`, … where known.
    pub connector: Option<String>,
    /// What it asks the cluster for: `rdma/ib: 4`, a compute domain, nothing.
    pub fabric: String,
    /// Replicas, where written.
    pub replicas: Option<u64>,
    /// Nodes per replica.
    pub nodes: u64,
    /// Accelerators per pod, where written.
    pub accelerators: Option<u64>,
}

/// The verdict over one deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploymentSummary {
    /// Its name.
    pub name: String,
    /// Namespace, where known.
    pub namespace: Option<String>,
    /// Kind of its main object.
    pub kind: Arc<str>,
    /// Files it was read from.
    pub files: Vec<String>,
    /// Set where the text is only a part of a deployment.
    pub partial: Option<&'static str>,
    /// Its readiness.
    pub readiness: Readiness,
    /// One sentence.
    pub verdict: String,
    /// Its workers.
    pub workers: Vec<WorkerSummary>,
}

/// A finished run: results in the order in which they are told, and what follows from them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The command, such as `env`.
    pub command: &'static str,
    /// What it was asked to look at, as given.
    pub scope: Vec<String>,
    /// Per deployment.
    pub deployments: Vec<DeploymentSummary>,
    /// All results, unfolded.
    pub results: Vec<CheckResult>,
    /// Measured transfers.
    pub transfers: Vec<Transfer>,
    /// What moved while engines ran by themselves.
    pub observed: Option<ObservedTraffic>,
    /// How much was seen.
    pub coverage: Coverage,
    /// Over everything.
    pub readiness: Readiness,
    /// One sentence.
    pub verdict: String,
    /// What to do next.
    pub next: Vec<NextStep>,
    /// A path that was given does not exist.
    pub missing_path: bool,
    /// A part of the input was broken or unreadable.
    pub broken_input: bool,
    /// No manifest, no pod: there was nothing to judge.
    pub nothing_to_check: bool,
    /// The cluster cannot be reached, or refuses who asks, and nothing was judged for that.
    pub unreachable: bool,
}

/// Results per status, before any folding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Checks that hold.
    pub ok: u32,
    /// Warnings.
    pub warn: u32,
    /// Failures.
    pub fail: u32,
    /// Not judged.
    pub skipped: u32,
}

impl Counts {
    /// Counts what belongs to KV readiness; collectives are told apart.
    pub fn of<'r>(results: impl IntoIterator<Item = &'r CheckResult>) -> Self {
        let mut counts = Self::default();
        for result in results {
            if result.collective {
                continue;
            }
            match result.status {
                Status::Ok => counts.ok += 1,
                Status::Warn => counts.warn += 1,
                Status::Fail => counts.fail += 1,
                Status::Skipped => counts.skipped += 1,
            }
        }
        counts
    }
}

impl Report {
    /// Results per status.
    pub fn counts(&self) -> Counts {
        Counts::of(&self.results)
    }

    /// Whether a result that counts for KV readiness has this status.
    pub fn has_status(&self, status: Status) -> bool {
        self.results
            .iter()
            .any(|r| r.status == status && !r.collective)
    }

    /// True only where every pair was proven.
    pub fn transfer_validated(&self) -> bool {
        self.readiness == Readiness::Trusted
    }
}

/// The readiness that results allow. `proven` says that every required pair was proven; nothing
/// that reads files alone can set it.
pub fn readiness_of<'r>(
    results: impl IntoIterator<Item = &'r CheckResult>,
    disaggregated: bool,
    proven: bool,
) -> Readiness {
    let mut warn = false;
    let mut missing = false;
    for result in results {
        if result.collective {
            continue;
        }
        match result.status {
            Status::Fail => return Readiness::Blocked,
            Status::Warn => warn = true,
            Status::Skipped => missing |= result.required,
            Status::Ok => {}
        }
    }
    if missing {
        Readiness::Inconclusive
    } else if warn {
        Readiness::Degraded
    } else if !disaggregated {
        Readiness::NotApplicable
    } else if proven {
        Readiness::Trusted
    } else {
        Readiness::Unproven
    }
}
