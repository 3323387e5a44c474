//! Deployments whose workers are held against each other.

use std::path::Path;

use stand_in::{Cluster, Pod, StandIn, Tree};

use crate::support::{about, names, run, serving, tree_of, ways, worker};

/// A worker of a Dynamo graph.
pub(crate) fn member(name: &str, tree: &Path) -> Pod {
    let role = name.split('-').next().unwrap();
    worker(name, tree)
        .label("nvidia.com/dynamo-graph-deployment-name", "llama")
        .label("nvidia.com/dynamo-component", role)
        .label("nvidia.com/dynamo-component-type", role)
}

/// Two prefill and four decode workers, all well; each with the tree that is given, in order.
pub(crate) fn deployment(trees: &[&Tree; 6]) -> Cluster {
    let names = [
        "prefill-0",
        "prefill-1",
        "decode-0",
        "decode-1",
        "decode-2",
        "decode-3",
    ];
    let mut cluster = serving();
    for (at, name) in names.iter().enumerate() {
        cluster = cluster.pod(member(name, &trees[at].root()).node(&format!("node-{at}")));
    }
    cluster
}

/// A deployment with nothing odd in it. Its trees are gone when they are dropped.
pub(crate) struct Well {
    pub(crate) api: StandIn,
    _trees: [Tree; 2],
}

pub(crate) fn well() -> Well {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let trees = [&prefill, &prefill, &decode, &decode, &decode, &decode];
    Well {
        api: deployment(&trees).start().unwrap(),
        _trees: [prefill, decode],
    }
}

#[test]
fn workers_that_are_alike_are_told_as_that() {
    let well = well();
    let run = run(
        &well.api,
        &["check", "llama", "-n", "serving", "-o", "json"],
    );
    let report = run.json();
    assert!(run.err.is_empty(), "{}", run.err);
    let bad: Vec<_> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| {
            c["name"].as_str().unwrap().starts_with("worker/")
                || c["name"].as_str().unwrap().starts_with("pair/")
        })
        .filter(|c| c["status"] != "ok")
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
    assert_eq!(report["coverage"]["workers_probed"], 6);
    assert_eq!(report["coverage"]["pairs_required"], 8);
}

#[test]
fn the_odd_one_is_named_with_what_it_has_and_what_the_others_have() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let odd = tree_of("decode");
    odd.file(
        "/proc/42/environ",
        "UCX_TLS=rc,cuda_copy\0UCX_RNDV_SCHEME=get_zcopy\0",
    );
    let trees = [&prefill, &prefill, &decode, &decode, &odd, &decode];
    let api = deployment(&trees).start().unwrap();
    let run = run(&api, &["check", "llama", "-n", "serving", "-o", "json"]);
    let report = run.json();
    let odd = about(&report, "decode-2");
    assert!(names(&odd, "worker-settings-differ"), "{odd:#?}");
    for other in ["decode-0", "decode-1", "decode-3", "prefill-0"] {
        assert!(!names(&about(&report, other), "worker-settings-differ"));
    }
}

#[test]
fn both_ways_in_give_the_same_report() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let odd = tree_of("decode");
    odd.file("/proc/42/environ", "UCX_TLS=tcp,cuda_copy\0");
    let mut reports: Vec<String> = Vec::new();
    for way in ways() {
        let trees = [&prefill, &prefill, &decode, &decode, &odd, &decode];
        let api = deployment(&trees).start().unwrap();
        for format in ["json", "jsonl", "short", "text"] {
            let mut words = vec!["check", "llama", "-n", "serving", "-o", format];
            words.extend(&way);
            let done = run(&api, &words);
            assert_eq!(done.code, 1, "{way:?}");
            // The next command repeats how it was asked.
            reports.push(done.out.replace(" --via kubectl", ""));
        }
    }
    let (first, others) = reports.split_at(4);
    for (at, other) in others.iter().enumerate() {
        assert_eq!(&first[at % 4], other);
    }
}

#[test]
fn a_run_that_takes_too_long_is_judged_as_far_as_it_came() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .pod(member("decode-1", &decode.root()))
        .fault(stand_in::Fault::exec().name("decode-1").hang())
        .start()
        .unwrap();
    let begin = std::time::Instant::now();
    let done = run(
        &api,
        &[
            "check",
            "llama",
            "-n",
            "serving",
            "--run-timeout",
            "8s",
            "-o",
            "json",
        ],
    );
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    let report = done.json();
    assert_eq!(done.code, 3, "{}", report["verdict"]);
    assert!(
        names(&about(&report, "decode-1"), "probe-interrupted"),
        "{report:#}"
    );
    assert!(about(&report, "decode-0").len() > 10);
    assert!(done.err.contains("--run-timeout"), "{}", done.err);
}
