//! Reports made by hand for the tests.

use std::sync::Arc;

use model::verdict::{DeploymentSummary, WorkerSummary, readiness_of};
use model::{
    CheckResult, Coverage, Engine, Grade, NextStep, Place, Readiness, Reason, Report, Role, Source,
    Status, Subject,
};

/// A line of a file with the marked part between `«` and `»`.
pub(crate) fn place(file: &str, line: u32, marked: &str) -> Place {
    let from = marked.find('«').unwrap();
    let to = marked.find('»').unwrap() - '«'.len_utf8();
    Place {
        file: Arc::from(file),
        line,
        column: u32::try_from(marked.chars().position(|c| c == '«').unwrap()).unwrap() + 1,
        text: Arc::from(marked.replace(['«', '»'], "")),
        mark: (u32::try_from(from).unwrap(), u32::try_from(to).unwrap()),
    }
}

pub(crate) fn subject(deployment: &str, workers: &[(Role, &str)]) -> Subject {
    Subject {
        deployment: Some(deployment.to_owned()),
        roles: workers.iter().map(|w| w.0).collect(),
        workers: workers.iter().map(|w| w.1.to_owned()).collect(),
        ..Subject::default()
    }
}

pub(crate) fn result(
    name: &'static str,
    status: Status,
    detail: &str,
    subject: Subject,
    sources: Vec<Source>,
) -> CheckResult {
    CheckResult {
        name: name.into(),
        status,
        detail: detail.to_owned(),
        cause: None,
        fix: None,
        reason: None,
        note: None,
        grade: Grade::Declared,
        subject,
        sources,
        collective: false,
        required: false,
        deployment: None,
    }
}

pub(crate) fn worker(name: &str, role: Role) -> WorkerSummary {
    WorkerSummary {
        name: name.to_owned(),
        role,
        engine: Engine::Vllm,
        engine_is_assumed: false,
        connector: Some("NIXL/UCX".to_owned()),
        fabric: "rdma/ib: 4".to_owned(),
        replicas: Some(2),
        nodes: 1,
        accelerators: Some(8),
    }
}

pub(crate) fn deployment(name: &str, workers: Vec<WorkerSummary>) -> DeploymentSummary {
    DeploymentSummary {
        name: name.to_owned(),
        namespace: None,
        kind: "DynamoGraphDeployment".into(),
        files: vec!["deploy.yaml".to_owned()],
        partial: None,
        readiness: Readiness::Unproven,
        verdict: "KV transport is declared and not measured.".to_owned(),
        workers,
    }
}

/// A report over deployments whose readiness follows from the results.
pub(crate) fn report(mut deployments: Vec<DeploymentSummary>, results: Vec<CheckResult>) -> Report {
    for deployment in &mut deployments {
        let own = results
            .iter()
            .filter(|r| r.subject.deployment.as_ref() == Some(&deployment.name));
        let disaggregated = deployment.workers.iter().any(|w| w.role.moves_kv());
        deployment.readiness = readiness_of(own, disaggregated, false);
        deployment.verdict = match deployment.readiness {
            Readiness::Blocked => "KV transfer is not to be trusted: fix this first.",
            Readiness::Degraded => "KV transfer works with gaps.",
            Readiness::Inconclusive => "Required evidence is missing.",
            Readiness::NotApplicable => "Nothing is disaggregated: KV transport is not exercised.",
            _ => "RDMA is declared for both roles and not measured: run check --transfer.",
        }
        .to_owned();
    }
    let readiness = deployments
        .iter()
        .map(|d| d.readiness)
        .min()
        .unwrap_or(Readiness::Inconclusive);
    let verdict = deployments
        .iter()
        .find(|d| d.readiness == readiness)
        .map_or("No recipe could be read.".to_owned(), |d| d.verdict.clone());
    Report {
        command: "env",
        scope: vec!["deploy.yaml".to_owned()],
        deployments,
        results,
        transfers: Vec::new(),
        observed: None,
        coverage: Coverage::default(),
        readiness,
        verdict,
        next: Vec::new(),
        missing_path: false,
        broken_input: false,
        nothing_to_check: false,
        unreachable: false,
    }
}

const PREFILL: (Role, &str) = (Role::Prefill, "VllmPrefillWorker");
const DECODE: (Role, &str) = (Role::Decode, "VllmDecodeWorker");

fn both() -> Vec<WorkerSummary> {
    vec![
        worker(PREFILL.1, PREFILL.0),
        worker(DECODE.1, DECODE.0),
        WorkerSummary {
            connector: None,
            engine: Engine::Unknown,
            engine_is_assumed: false,
            fabric: String::new(),
            replicas: Some(1),
            accelerators: None,
            ..worker("Frontend", Role::Frontend)
        },
    ]
}

/// Prefill on RDMA, decode pinned to TCP.
pub(crate) fn mismatch() -> Report {
    let name = "qwen-disagg";
    let prefill = place(
        "deploy.yaml",
        52,
        "          value: «rc,cuda_copy,cuda_ipc»",
    );
    let decode = place("deploy.yaml", 239, "          value: «tcp»");
    let fail = CheckResult {
        cause: Some("ucx-tls-role-mismatch"),
        fix: Some(
            "Give decode the same list as prefill: UCX_TLS=rc,cuda_copy,cuda_ipc. Both ends must \
             have a transport in common, and the slower list decides."
                .to_owned(),
        ),
        note: Some("cuda_ipc serves workers of one host only.".to_owned()),
        ..result(
            "env/role-agreement",
            Status::Fail,
            "decode workers are pinned to TCP while prefill workers use RDMA",
            subject(name, &[PREFILL, DECODE]),
            vec![
                Source::context(&prefill, "prefill: rc and cuda_ipc"),
                Source::primary(&decode, "decode: no RDMA transport in this list"),
            ],
        )
    };
    let warn = CheckResult {
        cause: Some("memlock-capability-missing"),
        fix: Some("Add IPC_LOCK to securityContext.capabilities.add.".to_owned()),
        grade: Grade::Assumed,
        ..result(
            "env/memlock",
            Status::Warn,
            "without IPC_LOCK the node's memlock limit decides whether RDMA memory can be registered",
            subject(name, &[DECODE]),
            vec![],
        )
    };
    let mut results = vec![warn, fail];
    for who in [PREFILL, DECODE] {
        let at = if who.0 == Role::Prefill { 12 } else { 201 };
        results.push(result(
            "env/fabric-request",
            Status::Ok,
            "asks for rdma/ib: 4",
            subject(name, &[who]),
            vec![Source::primary(
                &place("deploy.yaml", at, "            «rdma/ib: \"4\"»"),
                "fabric",
            )],
        ));
    }
    results.push(result(
        "env/ucx-tls",
        Status::Ok,
        "UCX_TLS=rc,cuda_copy,cuda_ipc: RDMA and NVLink; no TCP fallback",
        subject(name, &[PREFILL]),
        vec![Source::primary(&prefill, "prefill")],
    ));
    results.push(CheckResult {
        reason: Some(Reason::Dynamic),
        fix: Some("Run check-interconnect nixl against the running pod.".to_owned()),
        ..result(
            "env/ucx-net-devices",
            Status::Skipped,
            "UCX_NET_DEVICES comes from a ConfigMap that is not among the inputs",
            subject(name, &[DECODE]),
            vec![],
        )
    });
    results.push(CheckResult {
        note: Some("With 8 GPUs and 4 devices two GPUs share a device.".to_owned()),
        ..result(
            "env/rails",
            Status::Ok,
            "4 RDMA devices for 8 GPUs",
            subject(name, &[PREFILL, DECODE]),
            vec![],
        )
    });
    results.push(CheckResult {
        collective: true,
        ..result(
            "env/nccl-ib",
            Status::Ok,
            "NCCL_IB_DISABLE is not set: NCCL may use RDMA",
            subject(name, &[PREFILL, DECODE]),
            vec![],
        )
    });
    let mut summary = deployment(name, both());
    summary.namespace = Some("dynamo-demo".to_owned());
    let mut report = report(vec![summary], results);
    report.next = vec![NextStep {
        command: "check-interconnect check -n dynamo-demo --transfer".to_owned(),
        why: "measures a transfer between every pair and names the transport".to_owned(),
        read_only: false,
    }];
    report
}

/// Nothing to complain of.
pub(crate) fn clean() -> Report {
    let name = "llama-disagg";
    let mut results = Vec::new();
    for (who, at) in [(PREFILL, 40), (DECODE, 90)] {
        results.push(result(
            "env/ucx-tls",
            Status::Ok,
            "UCX_TLS=rc,cuda_copy,cuda_ipc: RDMA and NVLink; no TCP fallback",
            subject(name, &[who]),
            vec![Source::primary(
                &place("deploy.yaml", at, "    value: «rc,cuda_copy,cuda_ipc»"),
                "",
            )],
        ));
        results.push(result(
            "env/ipc-lock",
            Status::Ok,
            "IPC_LOCK is added, so RDMA memory can be registered",
            subject(name, &[who]),
            vec![Source::primary(
                &place("deploy.yaml", at + 9, "    add: [«IPC_LOCK»]"),
                "",
            )],
        ));
    }
    let mut report = report(vec![deployment(name, both())], results);
    report.next = vec![NextStep {
        command: "check-interconnect nixl -n NAMESPACE -l ROLE=decode".to_owned(),
        why: "says which transport the running worker chose".to_owned(),
        read_only: true,
    }];
    report
}

/// One worker that does both.
pub(crate) fn aggregated() -> Report {
    let name = "agg";
    let workers = vec![WorkerSummary {
        connector: None,
        fabric: String::new(),
        nodes: 2,
        ..worker("VllmWorker", Role::Aggregated)
    }];
    let note = CheckResult {
        collective: true,
        note: Some("NCCL between the two nodes would use TCP.".to_owned()),
        ..result(
            "env/nccl-ib",
            Status::Ok,
            "NCCL_IB_DISABLE=1",
            subject(name, &[(Role::Aggregated, "VllmWorker")]),
            vec![Source::primary(
                &place("deploy.yaml", 7, "  value: \"«1»\""),
                "",
            )],
        )
    };
    report(vec![deployment(name, workers)], vec![note])
}

/// A file that is not YAML, and templates.
pub(crate) fn broken() -> Report {
    let about = |file: &str| Subject {
        file: Some(file.to_owned()),
        ..Subject::default()
    };
    let mut results = vec![CheckResult {
        cause: Some("input-not-yaml"),
        fix: Some("Close the bracket; then run again.".to_owned()),
        required: true,
        deployment: None,
        ..result(
            "env/input",
            Status::Warn,
            "expected ']' and got the end of the file",
            about("bad.yaml"),
            vec![Source::primary(
                &place("bad.yaml", 3, "  args: «[»--model"),
                "opened here",
            )],
        )
    }];
    for n in 0..5 {
        results.push(CheckResult {
            reason: Some(Reason::Unreadable),
            ..result(
                "env/input",
                Status::Skipped,
                "is a Helm template and not YAML until it is rendered",
                about(&format!("templates/{n}.yaml")),
                vec![],
            )
        });
    }
    let mut report = report(Vec::new(), results);
    report.scope = vec!["bad.yaml".to_owned(), "templates".to_owned()];
    report.broken_input = true;
    report.nothing_to_check = true;
    report.coverage.inputs_not_read = 6;
    report
}

/// 250 prefill and 250 decode workers that all have the same gap.
pub(crate) fn many_workers() -> Report {
    let name = "big";
    let mut workers = Vec::new();
    let mut results = Vec::new();
    for n in 0..250 {
        for role in [Role::Prefill, Role::Decode] {
            let own = format!("{}-{n}", role.as_str());
            workers.push(worker(&own, role));
            let at = |line: u32, text: &str| place("big.yaml", n * 20 + line, text);
            for check in [
                "env/a", "env/b", "env/c", "env/d", "env/e", "env/f", "env/g", "env/h", "env/i",
            ] {
                results.push(result(
                    check,
                    Status::Ok,
                    &format!("{check} holds"),
                    subject(name, &[(role, own.as_str())]),
                    vec![Source::primary(&at(2, "  - «name»"), "")],
                ));
            }
            results.push(CheckResult {
                cause: Some("ucx-tls-tcp-only"),
                fix: Some("Remove UCX_TLS or list rc first.".to_owned()),
                ..result(
                    "env/ucx-tls",
                    Status::Fail,
                    "UCX_TLS=tcp: no RDMA transport",
                    subject(name, &[(role, own.as_str())]),
                    vec![Source::primary(
                        &at(u32::from(role == Role::Decode) + 3, "    value: «tcp»"),
                        role.as_str(),
                    )],
                )
            });
        }
    }
    report(vec![deployment(name, workers)], results)
}

/// Every string of the input tries to break out.
pub(crate) fn hostile() -> Report {
    let evil = "x\u{1b}[2J\u{1b}]8;;http://e\u{7}\u{9b}31m\u{202e}gpj\u{2066}\u{200b}\u{2028}\r\n\
                verdict  trusted  all is well\u{7f}\u{e0041}";
    let mut workers = vec![worker(evil, Role::Prefill), worker(evil, Role::Decode)];
    for worker in &mut workers {
        worker.connector = Some(evil.to_owned());
        worker.fabric = evil.to_owned();
    }
    let mut summary = deployment(evil, workers);
    summary.namespace = Some(evil.to_owned());
    summary.files = vec![evil.to_owned()];
    let line = place(evil, 7, &format!("\tvalue: {evil} «{evil}»"));
    let everything = |status, collective| CheckResult {
        cause: Some("cause"),
        fix: Some(evil.to_owned()),
        note: Some(format!("note {evil}")),
        reason: (status == Status::Skipped).then_some(Reason::Dynamic),
        collective,
        required: true,
        deployment: None,
        ..result(
            "env/evil",
            status,
            evil,
            Subject {
                deployment: Some(evil.to_owned()),
                roles: vec![Role::Prefill],
                workers: vec![evil.to_owned(), "other".to_owned()],
                container: Some(evil.to_owned()),
                pod: Some(evil.to_owned()),
                pods: Vec::new(),
                node: Some(evil.to_owned()),
                device: Some(evil.to_owned()),
                file: None,
            },
            vec![Source::primary(&line, evil)],
        )
    };
    let mut results = Vec::new();
    for status in [Status::Ok, Status::Warn, Status::Fail, Status::Skipped] {
        for collective in [false, true] {
            results.push(everything(status, collective));
        }
        let mut about_file = everything(status, false);
        about_file.subject = Subject {
            file: Some(evil.to_owned()),
            ..Subject::default()
        };
        about_file.name = evil.into();
        about_file.cause = None;
        results.push(about_file);
    }
    let mut report = report(vec![summary], results);
    report.scope = vec![evil.to_owned()];
    report.verdict = evil.to_owned();
    report.next = vec![NextStep {
        command: evil.to_owned(),
        why: evil.to_owned(),
        read_only: true,
    }];
    report
}

/// A directory: a failing deployment, two with the same name, quiet ones and aggregated ones.
pub(crate) fn directory() -> Report {
    let mut report = mismatch();
    for n in 0..2 {
        let mut twin = deployment("twin", both());
        twin.files = vec![format!("twins/{n}.yaml")];
        twin.readiness = if n == 0 {
            Readiness::Unproven
        } else {
            Readiness::Degraded
        };
        report.deployments.push(twin);
        report.results.push(result(
            "env/ucx-tls",
            if n == 0 { Status::Ok } else { Status::Warn },
            "UCX_TLS=all: UCX chooses",
            subject("twin", &[PREFILL, DECODE]),
            vec![Source::primary(
                &place(&format!("twins/{n}.yaml"), 5, "value: «all»"),
                "",
            )],
        ));
    }
    for n in 0..40 {
        let mut agg = aggregated().deployments.remove(0);
        agg.name = format!("agg-{n}");
        agg.files = vec![format!("agg/{n}.yaml")];
        report.deployments.push(agg);
    }
    report.scope = vec!["recipes".to_owned()];
    report
}
