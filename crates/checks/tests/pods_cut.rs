//! A look that ended early: whatever it ended before, nothing is made of what is not there.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use checks::{Around, NodeFacts, judge_pods};
use model::{Readiness, Status};
use probe::local;
use probe::stream::Stream;
use support::{DECODE, Inside, PREFILL, pod, probed};

fn facts(stream: &Stream) -> NodeFacts {
    NodeFacts {
        observation: probe::observe::observation(stream),
        gap: stream.gap().map(|gap| gap.to_string()),
        unanswered: probe::observe::tools_without_output(stream),
        ..NodeFacts::default()
    }
}

#[test]
fn a_look_that_ended_anywhere_accuses_nobody_and_clears_nobody() {
    let (prefill, decode) = (Inside::new(PREFILL), Inside::new(DECODE));
    // The shell beside the engine may lock less than the engine, and runs as somebody else.
    decode
        .tree
        .file("/proc/self/limits", support::limits("65536"));
    decode.tree.file(
        "/proc/self/status",
        "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n",
    );
    let whole = prefill.facts();
    // The tools of the tree are made there.
    let _facts = decode.facts();
    let bytes = local::collect(&decode.tree.options()).unwrap();
    let judge = |text: &[u8]| {
        judge_pods(
            "node",
            vec![
                probed(&pod("qwen-prefill-0", "prefill"), Ok(whole.clone())),
                probed(
                    &pod("qwen-decode-0", "decode"),
                    Ok(facts(&Stream::parse(text))),
                ),
            ],
            &Around::default(),
            Vec::new(),
        )
    };
    let ends: Vec<usize> = bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(at, _)| at + 1)
        .collect();
    assert!(ends.len() > 50, "{}", ends.len());
    for end in &ends[..ends.len() - 1] {
        for end in [*end, end + 9] {
            let text = &bytes[..end.min(bytes.len() - 1)];
            let report = judge(text);
            let failed: Vec<&str> = report
                .results
                .iter()
                .filter(|r| r.status == Status::Fail)
                .map(|r| r.detail.as_str())
                .collect();
            let last = String::from_utf8_lossy(text);
            let last = last.lines().last().unwrap_or_default();
            assert!(failed.is_empty(), "after {last}: {failed:?}");
            assert_eq!(report.readiness, Readiness::Inconclusive, "after {last}");
        }
    }
    assert_eq!(judge(&bytes).readiness, Readiness::Unproven);
}
