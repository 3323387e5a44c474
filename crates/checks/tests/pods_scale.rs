//! Many pods: what is told of them, and what it costs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

#[allow(
    dead_code,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "the collector's own tests use the rest of it"
)]
#[path = "../../probe/tests/collect/tree.rs"]
mod tree;

#[path = "pods/support.rs"]
mod support;

use checks::{Around, ProbedPod, judge_pods};
use support::{DECODE, Inside, PREFILL, pod, probed};

fn many(count: usize) -> Vec<ProbedPod> {
    let prefill = Inside::new(PREFILL).facts();
    let decode = Inside::new(DECODE).facts();
    (0..count)
        .map(|n| {
            let (role, facts) = if n % 5 < 2 {
                ("prefill", &prefill)
            } else {
                ("decode", &decode)
            };
            let mut object = pod(&format!("qwen-{role}-{n}"), role);
            object["spec"]["nodeName"] = format!("node-{n}").into();
            object["status"]["podIP"] = format!("10.0.{}.{}", n / 250, n % 250).into();
            probed(&object, Ok(facts.clone()))
        })
        .collect()
}

#[test]
fn two_hundred_pods_fit_on_a_screen() {
    let mut pods = many(200);
    let odd = Inside::new(DECODE);
    odd.port(0, "1: DOWN", "2: Polling");
    let last = pods.last_mut().unwrap();
    last.probed = Ok(odd.facts());
    let name = last.object.name.clone();
    let report = judge_pods("node", pods, &Around::default(), Vec::new());
    let mut out = Vec::new();
    report::render(
        report::Format::Text,
        &report,
        &report::Options::default(),
        &mut out,
    )
    .unwrap();
    let text = String::from_utf8(out).unwrap();
    println!("{text}");
    assert!(text.lines().count() < 60, "{}", text.lines().count());
    assert!(text.contains(&name));
}
