//! Pods that could not be looked into, and runs that reached none: what is told, and how it ends.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use std::collections::BTreeSet;

use checks::{Around, CHECKS, ProbedPod, judge_pods};
use model::exit::exit_of;
use model::pod::{FaultKind, FaultScope};
use model::{Exit, FailOn, Fault, Readiness, Report, Status};
use recipe::live;
use serde_json::json;
use support::{DECODE, Inside, PREFILL, causes, pod, probed, told};

fn around(kind: FaultKind) -> Around {
    Around {
        faults: vec![Fault::new(kind, "what was got")],
        asked: ["-n", "serving", "-l", "a in (b)"]
            .map(str::to_owned)
            .to_vec(),
        ..Around::default()
    }
}

fn fine(name: &str, role: &str) -> ProbedPod {
    let flags = if role == "decode" { DECODE } else { PREFILL };
    probed(&pod(name, role), Ok(Inside::new(flags).facts()))
}

fn lost(name: &str, kind: FaultKind) -> ProbedPod {
    probed(&pod(name, "decode"), Err(Fault::new(kind, "what was got")))
}

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_pods("node", pods, &Around::default(), Vec::new())
}

fn exit(report: &Report) -> Exit {
    exit_of(report, FailOn::Fail)
}

#[test]
fn every_fault_is_told_by_its_own_cause() {
    let mut sentences = BTreeSet::new();
    for kind in FaultKind::ALL {
        let report = match kind.scope() {
            FaultScope::Pod => judge(vec![lost("qwen-decode-0", *kind)]),
            _ => judge_pods("node", Vec::new(), &around(*kind), Vec::new()),
        };
        let found: Vec<_> = report
            .results
            .iter()
            .filter(|r| r.cause == Some(kind.id()))
            .collect();
        assert_eq!(found.len(), 1, "{kind:?}");
        let result = found.first().unwrap();
        assert_eq!(result.status, Status::Skipped, "{kind:?}");
        assert_eq!(result.reason, Some(kind.reason()), "{kind:?}");
        assert_eq!(
            result.required,
            kind.scope() != FaultScope::Beside,
            "{kind:?}"
        );
        assert!(matches!(&*result.name, "pod/access" | "pod/state"));
        assert!(result.fix.is_some());
        // `explain` finds it.
        let (check, cause) = checks::cause(kind.id()).unwrap();
        assert_eq!(check.name, &*result.name);
        assert!(sentences.insert(cause.what), "{kind:?}: {}", cause.what);
        assert!(sentences.insert(cause.fix), "{kind:?}: {}", cause.fix);
    }
    // And there is no cause of a fault that no run can meet.
    let known: BTreeSet<&str> = FaultKind::ALL.iter().map(|k| k.id()).collect();
    for check in CHECKS
        .iter()
        .filter(|c| matches!(c.name, "pod/access" | "pod/state"))
    {
        for cause in check.causes {
            assert!(known.contains(cause.id), "{}", cause.id);
        }
    }
}

#[test]
fn a_cluster_that_nobody_reached_ends_with_5() {
    for kind in FaultKind::ALL
        .iter()
        .filter(|k| k.scope() == FaultScope::Access)
    {
        let report = judge_pods("node", Vec::new(), &around(*kind), Vec::new());
        assert!(report.unreachable, "{kind:?}");
        assert_eq!(exit(&report), Exit::Cluster, "{kind:?}");
        assert_eq!(exit_of(&report, FailOn::Never), Exit::Cluster, "{kind:?}");
        assert_eq!(report.readiness, Readiness::Inconclusive);
        assert!(
            report.verdict.starts_with("nothing was looked at"),
            "{}",
            report.verdict
        );
        assert!(report.next.iter().all(|step| step.read_only));
        assert_eq!(
            report.next.last().map(|s| s.command.as_str()),
            Some("check-interconnect node -n serving -l 'a in (b)'")
        );
    }
    // The same at every pod.
    let report = judge(vec![
        lost("qwen-decode-0", FaultKind::Unauthorized),
        lost("qwen-decode-1", FaultKind::Unauthorized),
    ]);
    assert_eq!(exit(&report), Exit::Cluster);
    // One pod was judged: then it is a gap.
    let report = judge(vec![
        fine("qwen-decode-0", "decode"),
        lost("qwen-decode-1", FaultKind::Unauthorized),
    ]);
    assert!(!report.unreachable);
    assert_eq!(exit(&report), Exit::Inconclusive);
    // Nobody refuses who asks where exec alone is not allowed.
    let report = judge(vec![lost("qwen-decode-0", FaultKind::ForbiddenExec)]);
    assert_eq!(exit(&report), Exit::Inconclusive);
}

#[test]
fn no_pod_is_nothing_to_check() {
    for kind in [
        FaultKind::NoMatch,
        FaultKind::NoSuchPod,
        FaultKind::NotFound,
    ] {
        let report = judge_pods("node", Vec::new(), &around(kind), Vec::new());
        assert!(report.nothing_to_check && !report.unreachable);
        assert_eq!(exit(&report), Exit::Nothing, "{kind:?}");
        assert_eq!(report.readiness, Readiness::Inconclusive);
    }
    // Pods that move nothing.
    let passed = Around {
        passed_over: vec![
            (
                "front-0".into(),
                "label nvidia.com/dynamo-component-type=frontend".into(),
            ),
            (
                "agg-0".into(),
                "an engine that serves whole requests".into(),
            ),
        ],
        ..Around::default()
    };
    let report = judge_pods("node", Vec::new(), &passed, Vec::new());
    assert_eq!(exit(&report), Exit::Nothing);
    assert_eq!(report.readiness, Readiness::NotApplicable);
    assert!(
        report.verdict.starts_with("none of 2 pods moves KV cache"),
        "{}",
        report.verdict
    );
    assert_eq!(report.results.len(), 2);
}

#[test]
fn one_lost_pod_of_many_is_a_gap_and_the_others_are_judged() {
    let report = judge(vec![
        fine("qwen-prefill-0", "prefill"),
        lost("qwen-decode-0", FaultKind::CrashLoop),
        fine("qwen-decode-1", "decode"),
    ]);
    assert_eq!(told(&report), []);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    assert_eq!(exit(&report), Exit::Inconclusive);
    assert_eq!(report.coverage.workers_found, 3);
    assert_eq!(report.coverage.workers_probed, 2);
    assert_eq!(report.coverage.pairs_required, 2);
    assert!(
        report.verdict.contains("in 1 of 3 pods (qwen-decode-0)"),
        "{}",
        report.verdict
    );
    assert!(report.results.iter().any(
        |r| r.name == "node/rdma-devices" && r.subject.pod.as_deref() == Some("qwen-decode-1")
    ));
    let commands: Vec<&str> = report.next.iter().map(|s| s.command.as_str()).collect();
    assert_eq!(
        commands,
        [
            "check-interconnect explain container-crash-loop",
            "kubectl logs -n serving qwen-decode-0 -c main --previous --tail=100",
            "kubectl describe pod -n serving qwen-decode-0",
        ]
    );
    // Every pod that is missing counts, whatever keeps it away.
    let both = judge(vec![
        fine("qwen-prefill-0", "prefill"),
        lost("qwen-decode-0", FaultKind::CrashLoop),
        lost("qwen-decode-1", FaultKind::NoShell),
    ]);
    assert!(
        both.verdict
            .contains("in 2 of 3 pods (qwen-decode-0, qwen-decode-1)"),
        "{}",
        both.verdict
    );
    // What failed elsewhere is worse than what could not be seen.
    let bad = Inside::new(DECODE);
    bad.port(0, "1: DOWN", "2: Polling");
    let report = judge(vec![
        fine("qwen-prefill-0", "prefill"),
        lost("qwen-decode-0", FaultKind::CrashLoop),
        probed(&pod("qwen-decode-1", "decode"), Ok(bad.facts())),
    ]);
    assert_eq!(report.readiness, Readiness::Blocked);
    assert_eq!(exit(&report), Exit::Failed);
}

#[test]
fn a_choice_that_was_not_made_is_asked_for() {
    let mut value = pod("qwen-decode-0", "decode");
    let mut twin = value["spec"]["containers"][0].clone();
    twin["name"] = "twin".into();
    value["spec"]["containers"][0]["name"] = "vllm".into();
    value["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(twin);
    let parsed = live::pod(&value.to_string()).unwrap();
    let fault = live::container(&parsed, None).unwrap_err();
    let report = judge(vec![probed(&value, Err(fault))]);
    assert_eq!(causes(&report, "pod/access"), ["container-ambiguous"]);
    assert!(
        report
            .next
            .iter()
            .any(|s| s.command == "check-interconnect node -n serving --pod qwen-decode-0 -c vllm"),
        "{:?}",
        report.next
    );
}

#[test]
fn a_gap_in_what_came_back_is_a_gap() {
    let mut cut = fine("qwen-decode-0", "decode");
    if let Ok(facts) = &mut cut.probed {
        facts.gap = Some("collection stopped while nvidia-smi ran".into());
    }
    let report = judge(vec![cut]);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    let gap = report.results.iter().find(|r| r.name == "input").unwrap();
    assert_eq!(gap.subject.pod.as_deref(), Some("qwen-decode-0"));
}

#[test]
fn a_container_that_changed_meanwhile_is_not_trusted() {
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut found = fine("qwen-decode-0", "decode");
        let mut value = pod("qwen-decode-0", "decode");
        change(&mut value);
        found.later = Some(live::pod(&value.to_string()).unwrap());
        judge(vec![found])
    };
    let report = with(&|_| {});
    assert_eq!(report.readiness, Readiness::Unproven);
    let report = with(&|pod| pod["status"]["containerStatuses"][0]["restartCount"] = 1.into());
    assert_eq!(causes(&report, "pod/state"), ["container-restarted"]);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    let report = with(&|pod| pod["metadata"]["uid"] = "another".into());
    assert_eq!(causes(&report, "pod/state"), ["pod-deleted"]);
    assert_eq!(report.readiness, Readiness::Inconclusive);
}

#[test]
fn a_pod_by_name_is_judged_whatever_it_is() {
    let mut value = pod("agg-0", "worker");
    value["metadata"]["labels"] = json!({});
    value["spec"]["containers"][0]["args"] = json!([]);
    let inside = Inside::new(&[]);
    inside
        .tree
        .file("/proc/87/cmdline", "python3\0-m\0dynamo.vllm\0");
    let report = judge(vec![probed(&value, Ok(inside.facts()))]);
    assert_eq!(told(&report), []);
    assert_eq!(report.readiness, Readiness::NotApplicable);
    assert!(
        report.verdict.contains("no KV cache moves"),
        "{}",
        report.verdict
    );
}

#[test]
fn details_name_no_pod() {
    let mut reports = vec![judge(vec![
        fine("qwen-prefill-0", "prefill"),
        fine("qwen-decode-1", "decode"),
    ])];
    for kind in FaultKind::ALL {
        reports.push(judge(vec![lost("qwen-decode-1", *kind)]));
    }
    for report in &reports {
        for result in &report.results {
            let text = format!("{} {:?} {:?}", result.detail, result.note, result.fix);
            assert!(
                !text.contains("qwen-decode-1") && !text.contains("10.0.3.7"),
                "{}: {text}",
                result.name
            );
        }
    }
}
