//! What whoever asks may do, and workers that were looked at without a look into their containers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use checks::{Around, Gathered, ProbedPod, RIGHTS, RightsSeen, SeenBy, judge_check};
use model::pod::FaultKind;
use model::{Fault, Readiness, Report, Status};
use support::{DECODE, Inside, PREFILL, causes, pod, probed};

fn worker(name: &str, role: &str) -> ProbedPod {
    let flags = if role == "decode" { DECODE } else { PREFILL };
    probed(&pod(name, role), Ok(Inside::new(flags).facts()))
}

fn both() -> Vec<ProbedPod> {
    vec![
        worker("qwen-prefill-0", "prefill"),
        worker("qwen-decode-0", "decode"),
    ]
}

/// A run that was told that these rights are missing.
fn lacking(pods: Vec<ProbedPod>, missing: &[&str]) -> Report {
    let (missing, granted) = RIGHTS
        .iter()
        .map(checks::Needed::words)
        .partition(|words| missing.contains(&words.as_str()));
    judge_check(Gathered {
        pods,
        around: Around {
            rights: Some(RightsSeen {
                namespace: "serving".to_owned(),
                granted,
                missing,
            }),
            ..Around::default()
        },
        scope: Vec::new(),
        ..Gathered::default()
    })
}

#[test]
fn a_right_that_is_missing_is_told_by_what_it_is_for() {
    let report = lacking(both(), &[]);
    assert!(causes(&report, "pod/rights").is_empty());
    assert!(report.results.iter().any(|r| r.name == "pod/rights"));
    for (words, cause) in [
        ("create pods/exec", "right-missing"),
        ("get pods/exec", "right-missing"),
        ("list pods", "right-missing"),
        ("get pods", "right-missing"),
        ("get pods/log", "optional-right-missing"),
        ("list nodes", "optional-right-missing"),
    ] {
        let without = lacking(both(), &[words]);
        assert_eq!(causes(&without, "pod/rights"), [cause], "{words}");
        // The run did without it.
        assert_eq!(without.readiness, report.readiness, "{words}");
    }
}

#[test]
fn a_right_that_kept_the_run_from_something_is_required() {
    let refused = Fault::new(FaultKind::ForbiddenExec, "HTTP 403: no");
    for words in ["create pods/exec", "get pods/exec"] {
        let mut pods = both();
        pods[1].probed = Err(refused.clone());
        let report = lacking(pods, &[words]);
        let told = report.results.iter().find(|r| r.name == "pod/rights");
        assert!(told.unwrap().required, "{words}");
    }
    // A pod that was lost could not be read again.
    let mut pods = both();
    pods[1].probed = Err(Fault::new(FaultKind::Cut, "it broke"));
    let report = lacking(pods, &["get pods"]);
    let told = report.results.iter().find(|r| r.name == "pod/rights");
    assert!(told.unwrap().required);
}

#[test]
fn nobody_asked_so_nothing_is_said() {
    let report = judge_check(Gathered {
        pods: both(),
        ..Gathered::default()
    });
    assert!(report.results.iter().all(|r| r.name != "pod/rights"));
}

#[test]
fn what_only_a_place_shows_is_never_enough() {
    for (by, expected) in [
        (SeenBy::Exec, &[][..]),
        (SeenBy::Host, &[][..]),
        (
            SeenBy::InitContainer,
            &["engine-not-in-sight", "pod-object-not-read"][..],
        ),
        (
            SeenBy::Job,
            &["engine-not-in-sight", "pod-object-not-read"][..],
        ),
        (
            SeenBy::Image,
            &[
                "engine-not-in-sight",
                "pod-object-not-read",
                "worker-resources-unknown",
            ][..],
        ),
    ] {
        let mut pods = vec![worker("qwen-decode-0", "decode")];
        pods[0].by = by;
        let report = judge_check(Gathered {
            pods,
            ..Gathered::default()
        });
        assert_eq!(causes(&report, "pod/evidence"), expected, "{by:?}");
        if !expected.is_empty() {
            assert_eq!(report.readiness, Readiness::Inconclusive, "{by:?}");
            let of_engine = |r: &&model::CheckResult| {
                r.status == Status::Ok
                    && (r.name.starts_with("nixl/") || r.name.starts_with("env/"))
            };
            assert!(report.results.iter().find(of_engine).is_none(), "{by:?}");
        }
    }
}
