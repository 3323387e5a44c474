//! Logs of containers: both ends, no rights, both roles.

use std::fmt::Write as _;

use stand_in::{Cluster, Rights, Tree};

use crate::lab::{causes, has, run, ways, worker};

fn ucx(host: &str, text: &str) -> String {
    format!("[1790000000.000001] [{host}:7    :0] {text}\n")
}

/// An error of UCX that names a device.
fn fault(device: &str) -> String {
    ucx(
        "decode-0",
        &format!(
            " ucp_context.c:1 UCX  WARN  network device '{device}' is not available, please use one or more of: 'eth0'(tcp)"
        ),
    )
}

/// Lines of requests, so many bytes of them.
fn requests(from: u32, bytes: usize) -> String {
    let mut text = String::new();
    let mut number = from;
    while text.len() < bytes {
        number += 1;
        let _ = writeln!(
            text,
            "INFO [loggers.py:123] Engine 000: request {number}, Avg prompt throughput: 12.0 tokens/s"
        );
    }
    text
}

#[test]
fn the_beginning_and_the_end_of_a_log_are_read_and_not_what_is_between() {
    let tree = Tree::worker();
    let mib = 1024 * 1024;
    let log = [
        fault("first"),
        requests(0, 7 * mib),
        fault("between"),
        requests(1_000_000, 7 * mib),
        fault("last"),
    ]
    .concat();
    let small = [
        fault("first"),
        requests(0, mib),
        fault("between"),
        fault("last"),
    ]
    .concat();
    let overlapping = [fault("first"), requests(0, 6 * mib), fault("last")].concat();
    for (log, between, gap) in [
        (log, false, true),
        (small, true, false),
        (overlapping, false, false),
    ] {
        let has_between = log.contains("'between'");
        let api = Cluster::new()
            .namespace("serving")
            .pod(worker("decode-0").tree(tree.root()).log(log))
            .start()
            .unwrap();
        for way in ways() {
            let mut words = vec![
                "nixl", "-n", "serving", "--pod", "decode-0", "-o", "jsonl", "-v",
            ];
            words.extend(&way);
            let out = run(&api, &words).out;
            assert!(out.contains("'first'"), "{way:?} {out}");
            assert!(out.contains("'last'"), "{way:?} {out}");
            assert_eq!(
                out.contains("'between'"),
                between && has_between,
                "{way:?} {out}"
            );
            assert_eq!(out.contains("were left out"), gap, "{way:?}");
        }
        let requests = api.requests();
        let first = requests.iter().find(|r| r.path.ends_with("/log")).unwrap();
        let limit = ("limitBytes".to_owned(), "4194304".to_owned());
        assert!(first.query.contains(&limit), "{:?}", first.query);
    }
}

#[test]
fn a_log_that_may_not_be_read_costs_one_line_with_a_name() {
    let tree = Tree::worker();
    let pod = || worker("decode-0").tree(tree.root()).log(fault("first"));
    let allowed = Cluster::new()
        .namespace("serving")
        .pod(pod())
        .start()
        .unwrap();
    let denied = Cluster::new()
        .namespace("serving")
        .rights(Rights::all().deny("get", "pods/log"))
        .pod(pod())
        .start()
        .unwrap();
    for way in ways() {
        let mut words = vec!["nixl", "-n", "serving", "--pod", "decode-0", "-o", "json"];
        words.extend(&way);
        let report = run(&allowed, &words).json();
        assert!(!causes(&report).contains(&"pod-log-forbidden"));
        let run = run(&denied, &words);
        assert_ne!(run.code, 5, "{way:?}");
        let report = run.json();
        assert!(
            has(&report, "pod/access", "skipped", "pod-log-forbidden", ""),
            "{way:?} {}",
            run.out
        );
        let told = causes(&report);
        let count = told.iter().filter(|c| **c == "pod-log-forbidden").count();
        assert_eq!(count, 1, "{way:?}");
    }
}

#[test]
fn logs_of_both_roles_are_held_against_each_other() {
    let tree = Tree::worker();
    let tls = |host: &str, value: &str| {
        ucx(
            host,
            &format!(
                "parser.c:1 UCX  INFO  UCX_* env variables: UCX_TLS={value} UCX_LOG_LEVEL=info"
            ),
        )
    };
    let api = |prefill: &str, decode: &str| {
        Cluster::new()
            .namespace("serving")
            .pod(
                worker("prefill-0")
                    .tree(tree.root())
                    .log(tls("prefill-0", prefill)),
            )
            .pod(
                worker("decode-0")
                    .tree(tree.root())
                    .log(tls("decode-0", decode)),
            )
            .start()
            .unwrap()
    };
    let words = ["nixl", "-n", "serving", "--all", "-o", "json"];
    let cause = "prefill-decode-asymmetric-fabric";
    let report = run(&api("rc,cuda_copy", "tcp,cuda_copy"), &words).json();
    assert!(causes(&report).contains(&cause), "{:#?}", causes(&report));
    let report = run(&api("rc,cuda_copy", "rc,cuda_copy"), &words).json();
    assert!(!causes(&report).contains(&cause));
}
