//! What a report over pods says.

use stand_in::Rights;

use crate::support::{about, names, run, serving, tree_of, ways, worker};

#[test]
fn both_ways_in_give_the_same_report() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let mut reports = Vec::new();
    for way in ways() {
        let api = serving()
            .pod(worker("prefill-0", &prefill.root()))
            .pod(worker("decode-0", &decode.root()))
            .pod(worker("decode-1", &decode.root()).node("node-b"))
            .pod(worker("decode-2", &decode.root()).no_shell())
            .start()
            .unwrap();
        for format in ["json", "jsonl", "short", "text"] {
            let mut words = vec!["node", "-n", "serving", "--all", "-o", format];
            words.extend(&way);
            let run = run(&api, &words);
            // The next command repeats how it was asked.
            let out = run.out.replace(" --via kubectl", "");
            reports.push((format, run.code, out));
        }
        assert_eq!(api.execs().len(), 4 * 4, "{way:?}");
    }
    let (first, others) = reports.split_at(4);
    for (at, other) in others.iter().enumerate() {
        let (format, code, out) = other;
        let (_, first_code, first_out) = &first[at % 4];
        assert_eq!(first_code, code, "{format}");
        for (one, two) in first_out.lines().zip(out.lines()) {
            assert_eq!(one, two, "{format}");
        }
        assert_eq!(first_out.len(), out.len(), "{format}");
    }
}

#[test]
fn two_roles_are_judged_together_and_the_odd_one_out_is_named() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let odd = tree_of("decode");
    odd.file(
        "/proc/42/environ",
        "UCX_TLS=tcp,cuda_copy\0HF_TOKEN=hunter2\0",
    );
    let api = serving()
        .pod(worker("prefill-0", &prefill.root()))
        .pod(worker("decode-0", &decode.root()))
        .pod(worker("decode-1", &odd.root()))
        .start()
        .unwrap();
    let run = run(&api, &["node", "-n", "serving", "--all", "-o", "json"]);
    let report = run.json();
    assert_eq!(run.code, 1, "{}", run.out);
    assert_eq!(report["readiness"], "blocked");
    assert_eq!(report["transfer_validated"], false);
    let odd = about(&report, "decode-1");
    assert!(names(&odd, "ucx-tls-tcp-only"), "{odd:#?}");
    let good = about(&report, "decode-0");
    assert!(!names(&good, "ucx-tls-tcp-only"));
    assert_eq!(report["coverage"]["workers_probed"], 3);
}

#[test]
fn values_of_other_variables_never_leave_a_pod() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .start()
        .unwrap();
    for way in ways() {
        for format in ["text", "json", "jsonl", "short"] {
            let mut words = vec![
                "node", "-n", "serving", "--pod", "decode-0", "-v", "-o", format,
            ];
            words.extend(&way);
            let run = run(&api, &words);
            if format != "short" {
                assert!(run.out.contains("UCX_TLS"), "{}", run.out);
            }
            assert!(!run.out.contains("hunter2") && !run.err.contains("hunter2"));
        }
    }
    let execs = api.execs();
    assert!(!execs.is_empty());
    for exec in execs {
        // The raw stream, not what is made of it.
        let stream = exec.stdout.text();
        assert!(stream.contains("rc,cuda_copy") && !stream.contains("hunter2"));
        assert!(!exec.stderr.text().contains("hunter2"));
    }
}

#[test]
fn nodes_that_may_not_be_read_cost_one_line() {
    let tree = tree_of("decode");
    let api = serving()
        .rights(Rights::all().deny("get,list", "nodes"))
        .pod(worker("decode-0", &tree.root()))
        .pod(worker("decode-1", &tree.root()))
        .start()
        .unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--all", "-o", "jsonl"];
        words.extend(&way);
        let run = run(&api, &words);
        let lines: Vec<&str> = run
            .out
            .lines()
            .filter(|line| line.contains("nodes-forbidden"))
            .collect();
        assert_eq!(lines.len(), 1, "{way:?} {}", run.out);
        assert!(lines[0].contains("\"skipped\""), "{}", lines[0]);
        assert_eq!(api.execs().len() % 2, 0);
    }
}

#[test]
fn what_a_node_offers_is_told_beside_a_pod_that_waits() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .pod(
            worker("decode-1", &tree.root())
                .resource("rdma/roce", "4")
                .state(stand_in::State::Unschedulable),
        )
        .start()
        .unwrap();
    let run = run(&api, &["node", "-n", "serving", "--all", "-o", "json"]);
    let report = run.json();
    let waiting = about(&report, "decode-1");
    assert!(names(&waiting, "pod-unschedulable"), "{waiting:#?}");
    assert!(
        waiting.iter().any(|c| c.to_string().contains("rdma/roce")),
        "{waiting:#?}"
    );
    assert_eq!(api.execs().len(), 1);
}

#[test]
fn a_worker_without_an_engine_is_no_worker_that_was_judged() {
    let (prefill, decode, idle) = (tree_of("prefill"), tree_of("decode"), tree_of("decode"));
    let limits = std::fs::read(idle.root().join("proc/42/limits")).unwrap();
    let status = std::fs::read(idle.root().join("proc/42/status")).unwrap();
    idle.file("/proc/self/limits", limits);
    idle.file("/proc/self/status", status);
    std::fs::remove_dir_all(idle.root().join("proc/42")).unwrap();
    let api = serving()
        .pod(worker("prefill-0", &prefill.root()))
        .pod(worker("decode-0", &decode.root()))
        .pod(worker("decode-1", &idle.root()))
        .start()
        .unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--all", "-o", "json"];
        words.extend(&way);
        let run = run(&api, &words);
        let report = run.json();
        assert_eq!(report["readiness"], "inconclusive", "{}", run.out);
        assert_eq!(run.code, 3);
        let verdict = report["verdict"].as_str().unwrap();
        assert!(
            verdict.contains("decode-1") && verdict.contains("no engine process"),
            "{verdict}"
        );
        assert!(!verdict.contains("decode-0"), "{verdict}");
    }
    // Who moves no KV cache needs none.
    let words = ["node", "-n", "serving", "--pod", "decode-1", "-o", "json"];
    let words: Vec<&str> = words.into_iter().chain(["--role", "aggregated"]).collect();
    let other = run(&api, &words);
    assert_ne!(other.json()["readiness"], "inconclusive", "{}", other.out);
    let both = ["--pod", "prefill-0", "--pod", "decode-0"];
    let words: Vec<&str> = ["node", "-n", "serving", "-o", "json"]
        .into_iter()
        .chain(both)
        .collect();
    let whole = run(&api, &words);
    assert_eq!(whole.json()["readiness"], "unproven", "{}", whole.out);
}
