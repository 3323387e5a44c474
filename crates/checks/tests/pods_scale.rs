//! Many pods: what is told of them, and what it costs.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    clippy::print_stdout,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use std::time::Instant;

use checks::{Around, ProbedPod, judge_pods};
use model::{Readiness, Report};
use report::Format;
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

/// The report as text.
fn text(report: &Report, format: Format) -> String {
    let mut out = Vec::new();
    report::render(format, report, &report::Options::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_pods("node", pods, &Around::default(), Vec::new())
}

#[test]
fn two_hundred_pods_fit_on_a_screen() {
    let mut pods = many(200);
    let odd = Inside::new(DECODE);
    odd.port(0, "1: DOWN", "2: Polling");
    let last = pods.last_mut().unwrap();
    last.probed = Ok(odd.facts());
    let name = last.object.name.clone();
    let report = judge(pods);
    assert_eq!(report.coverage.workers_probed, 200);
    assert_eq!(report.coverage.pairs_required, 80 * 120);
    assert_eq!(report.readiness, Readiness::Blocked);
    let screen = text(&report, Format::Text);
    assert!(screen.lines().count() < 60, "{screen}");
    assert!(screen.contains("decode ×120 pods"), "{screen}");
    let failed: Vec<&str> = screen.lines().filter(|l| l.starts_with("FAIL[")).collect();
    assert_eq!(failed.len(), 1);
    assert!(failed.iter().all(|l| l.contains(&name)), "{failed:?}");
    // Two kinds of workers, and no more, were judged as a deployment.
    let kinds: usize = report.deployments.iter().map(|d| d.workers.len()).sum();
    assert_eq!(kinds, 2);
    // Everything, one by one, where a program reads it; short of what a reader cuts in one document.
    assert!(text(&report, Format::Jsonl).lines().count() > 3000);
    let json = text(&report, Format::Json);
    assert!(json.len() < 60_000, "{}", json.len());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let pods: Vec<&str> = document["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|c| c["subject"]["pods"][0].as_str())
        .collect();
    assert!(!pods.is_empty());
    // Short: the one problem and the verdict.
    assert!(text(&report, Format::Short).lines().count() <= 3);
}

/// Pods as a device plugin makes them: each with another GPU, another card, another process.
fn uneven(count: usize) -> Vec<ProbedPod> {
    let kinds: Vec<_> = (0..8)
        .map(|n| {
            let inside = |mode: &[&str]| {
                let inside = Inside::bare();
                let card = format!("UCX_NET_DEVICES=mlx5_{n}:1");
                inside.engine(100 + u32::try_from(n).unwrap(), mode, &["PATH=/x", &card]);
                for m in 0..8 {
                    inside.gpu(m, m == n);
                    inside.rail(m, m == n);
                }
                inside.facts()
            };
            (inside(PREFILL), inside(DECODE))
        })
        .collect();
    (0..count)
        .map(|n| {
            let kind = kinds.get(n / 2 % 8).unwrap();
            let (role, facts) = if n % 2 == 0 {
                ("prefill", &kind.0)
            } else {
                ("decode", &kind.1)
            };
            let mut object = pod(&format!("qwen-{role}-{n}"), role);
            object["status"]["podIP"] = format!("10.0.{}.{}", n / 250, n % 250).into();
            probed(&object, Ok(facts.clone()))
        })
        .collect()
}

#[test]
fn pods_with_a_card_each_fit_as_well() {
    let mut pods = uneven(200);
    let odd = Inside::new(DECODE);
    odd.status(87, 1000, "0000000000000000");
    odd.tree.file("/proc/87/limits", support::limits("65536"));
    let name = pods.last().unwrap().object.name.clone();
    pods.last_mut().unwrap().probed = Ok(odd.facts());
    let report = judge(pods);
    let screen = text(&report, Format::Text);
    assert!(screen.lines().count() < 60, "{screen}");
    assert_eq!(screen.matches("FAIL[").count(), 1, "{screen}");
    assert!(screen.contains(&name), "{screen}");
    // In the lines for programs each keeps its own words.
    let lines = text(&report, Format::Jsonl);
    assert!(lines.contains("uverbs7") && !lines.contains("uverbs*"));
}

#[test]
fn the_same_fault_everywhere_is_one() {
    let facts = Inside::new(DECODE).without_nodes().facts();
    let pods = (0..100)
        .map(|n| {
            probed(
                &pod(&format!("qwen-decode-{n}"), "decode"),
                Ok(facts.clone()),
            )
        })
        .collect();
    let report = judge(pods);
    let screen = text(&report, Format::Text);
    assert_eq!(screen.matches("FAIL[").count(), 1, "{screen}");
    assert!(screen.contains("qwen-decode-[0-99]"), "{screen}");
    assert!(
        report.verdict.contains("in all 100 pods"),
        "{}",
        report.verdict
    );
}

#[test]
fn time_grows_with_the_number_of_pods_and_not_faster() {
    let time = |count: usize| {
        let pods = many(count);
        let begin = Instant::now();
        let report = judge(pods);
        let judged = begin.elapsed();
        assert_eq!(
            report.coverage.workers_probed,
            u32::try_from(count).unwrap()
        );
        let begin = Instant::now();
        let screen = text(&report, Format::Text);
        assert!(screen.lines().count() < 60);
        (judged, begin.elapsed())
    };
    time(50);
    let (few, few_told) = time(300);
    let (many, many_told) = time(3000);
    println!("300 pods: {few:?}, told in {few_told:?}; 3000 pods: {many:?}, told in {many_told:?}");
    // Ten times as many; other people's load makes it up to three times as much again.
    assert!(many < few * 30, "{few:?} {many:?}");
    assert!(many_told < few_told * 30, "{few_told:?} {many_told:?}");
}
