//! Objects and containers that no tidy cluster has: the others are judged all the same, within bounds, and nothing reaches a
//! terminal as it is.

use std::time::{Duration, Instant};

use serde_json::json;
use stand_in::{Fault, Pod, State};

use crate::support::{about, bare, run, serving, tree_of, ways, worker};

#[test]
fn an_odd_object_hides_no_other_one() {
    let tree = tree_of("decode");
    let root = tree.root();
    let odd = || worker("decode-1", &root);
    let giant = "x".repeat(2 * 1024 * 1024);
    let cases: Vec<(&str, Pod)> = vec![
        ("label", odd().label("llm-d.ai/role", "decode\u{1b}]0;owned\u{7}\u{202e}")),
        ("annotation", odd().annotation("k8s.v1.cni.cncf.io/networks", "\u{1b}[31m a,b\r\n")),
        ("giant annotation", odd().annotation("k8s.v1.cni.cncf.io/networks", &giant)),
        ("giant list", odd().annotation("k8s.v1.cni.cncf.io/networks", &"a,".repeat(500_000))),
        ("giant variable", odd().env("UCX_NET_DEVICES", &"mlx5_0:1,".repeat(500_000))),
        ("giant secret", odd().env("MY_SETTING", &giant)),
        ("node", odd().set("/spec/nodeName", json!("node\u{1b}[2J-a"))),
        ("labels", odd().set("/metadata/labels", json!([1, 2]))),
        ("spec", odd().set("/spec", json!("none"))),
        ("containers", odd().set("/spec/containers", json!({"main": {}}))),
        ("container", odd().set("/spec/containers/0", json!(7))),
        ("env", odd().set("/spec/containers/0/env", json!({"UCX_TLS": "rc"}))),
        ("args", odd().set("/spec/containers/0/args", json!([1, null, {"a": []}]))),
        ("resources", odd().set("/spec/containers/0/resources", json!({"limits": [], "requests": {"rdma/ib": {}}}))),
        ("status", odd().set("/status", json!(null))),
        ("states", odd().set("/status/containerStatuses", json!([{"name": "main", "state": "running", "restartCount": -1}]))),
        ("owner", odd().set("/metadata/ownerReferences", json!([{"kind": 1}, null]))),
        ("uid", odd().set("/metadata/uid", json!(12))),
        ("many", odd().set("/spec/containers", (0..3000).map(|n| json!({"name": format!("c{n}"), "resources": {"limits": {"nvidia.com/gpu": "1"}}})).collect())),
    ];
    for (name, pod) in cases {
        let api = serving()
            .pod(worker("decode-0", &root))
            .pod(pod)
            .start()
            .unwrap();
        for way in ways() {
            // What the formats make of it does not depend on the way.
            let formats: &[&str] = if way.is_empty() {
                &["json", "text"]
            } else {
                &["json"]
            };
            for format in formats.iter().copied() {
                let begin = Instant::now();
                let mut words = vec!["node", "-n", "serving", "-l", "!nothing", "-o", format];
                words.extend(&way);
                let run = run(&api, &words);
                let told = format!("{name} {way:?} {format}: {} {}", run.code, run.err);
                assert!(matches!(run.code, 0 | 1 | 3), "{told}\n{}", run.out);
                assert!(begin.elapsed() < Duration::from_secs(20), "{told}");
                assert!(run.out.len() < 100_000, "{told}: {} bytes", run.out.len());
                let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
                assert!(
                    !run.out.contains(raw) && !run.err.contains(raw),
                    "{told}\n{}",
                    run.out
                );
                if format == "json" {
                    assert!(
                        about(&run.json(), "decode-0").len() > 10,
                        "{told}\n{}",
                        run.out
                    );
                }
            }
        }
    }
}

#[test]
fn a_name_that_is_none_is_told_and_never_used() {
    let tree = tree_of("decode");
    for name in [
        "decode-\u{1b}[31m1",
        "decode-1/../decode-2",
        "--server=http://x",
    ] {
        let api = serving()
            .pod(worker("decode-0", &tree.root()))
            .pod(worker("decode-1", &tree.root()).set("/metadata/name", json!(name)))
            .start()
            .unwrap();
        for way in ways() {
            let before = api.execs().len();
            let mut words = vec!["node", "-n", "serving", "--all", "-o", "text"];
            words.extend(&way);
            let run = run(&api, &words);
            assert_eq!(run.code, 3, "{name} {way:?} {}", run.out);
            assert!(run.out.contains("no name in Kubernetes"), "{}", run.out);
            assert!(!run.out.contains('\u{1b}'), "{}", run.out);
            assert_eq!(api.execs().len(), before + 1, "{name} {way:?}");
        }
    }
}

#[test]
fn containers_beside_the_engine_are_never_taken_for_it() {
    let tree = tree_of("decode");
    let gpu = json!({"limits": {"nvidia.com/gpu": "1"}});
    let beside = |pod: Pod| {
        pod.set(
            "/spec/initContainers",
            json!([
                {"name": "init", "image": "registry.example/init:1", "resources": gpu},
                {"name": "agent", "image": "registry.example/agent:1", "restartPolicy": "Always", "resources": gpu},
            ]),
        )
        .set(
            "/spec/ephemeralContainers",
            json!([{"name": "debugger", "image": "registry.example/debug:1", "resources": gpu}]),
        )
    };
    // Not called main.
    let engine = beside(bare("decode-0", "decode", &tree.root()).container("engine"))
        .set("/spec/containers/0/name", json!("proxy"));
    let engine = engine
        .set("/spec/containers/0/resources", json!({}))
        .set("/spec/containers/1/resources", gpu.clone());
    let only = beside(worker("decode-1", &tree.root()).set("/spec/hostNetwork", json!(true)));
    let api = serving()
        .pod(engine.tree(tree.root()))
        .pod(only)
        .start()
        .unwrap();
    for way in ways() {
        let before = api.execs().len();
        let mut words = vec![
            "node", "-n", "serving", "--pod", "decode-0", "--pod", "decode-1",
        ];
        words.extend(["-o", "json"]);
        words.extend(&way);
        run(&api, &words);
        let taken: Vec<(String, String)> = api.execs()[before..]
            .iter()
            .map(|e| (e.pod.clone(), e.container.clone()))
            .collect();
        for pair in [("decode-0", "engine"), ("decode-1", "main")] {
            assert!(taken.contains(&(pair.0.into(), pair.1.into())), "{taken:?}");
        }
        assert_eq!(taken.len(), 2);
    }
}

#[test]
fn what_was_evicted_and_replaced_is_passed_over_and_what_was_not_is_missed() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let owned = |pod: Pod, owner: &str| {
        pod.set(
            "/metadata/ownerReferences",
            json!([{"kind": "ReplicaSet", "name": owner, "controller": true}]),
        )
    };
    let evicted = |pod: Pod, owner: &str| {
        owned(pod.state(State::Completed), owner)
            .set("/status/phase", json!("Failed"))
            .set("/status/reason", json!("Evicted"))
    };
    let scenario = || {
        serving()
            .pod(owned(
                worker("prefill-0", &prefill.root()),
                "graph-prefill-7d9f8c6b5",
            ))
            .pod(evicted(
                worker("decode-1", &decode.root()),
                "graph-decode-7d9f8c6b5",
            ))
            .pod(evicted(
                worker("decode-2", &decode.root()),
                "graph-decode-5c7d9f8c6",
            ))
    };
    let whole = scenario()
        .pod(owned(
            worker("decode-0", &decode.root()),
            "graph-decode-7d9f8c6b5",
        ))
        .start()
        .unwrap();
    let lost = scenario().start().unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--all", "-o", "json"];
        words.extend(&way);
        let run_whole = run(&whole, &words);
        assert_eq!(run_whole.code, 0, "{}", run_whole.out);
        assert_eq!(run_whole.json()["readiness"], "unproven");
        assert!(
            run_whole
                .out
                .contains("passed over 2 pods: it has ended (Evicted)"),
            "{}",
            run_whole.out
        );
        // Who names one gets it.
        words.splice(3..4, ["--pod", "decode-1"]);
        let named = run(&whole, &words);
        assert_eq!(named.code, 3, "{}", named.out);
        assert!(named.out.contains("pod-completed"), "{}", named.out);
        let mut words = vec!["node", "-n", "serving", "--all", "-o", "json"];
        words.extend(&way);
        let run_lost = run(&lost, &words);
        assert_eq!(run_lost.code, 3, "{}", run_lost.out);
        assert!(run_lost.out.contains("pod-completed"), "{}", run_lost.out);
    }
}

#[test]
fn of_two_engines_in_one_container_each_is_judged() {
    let tree = tree_of("decode");
    let line = std::fs::read(tree.root().join("proc/42/cmdline")).unwrap();
    for name in ["comm", "status", "limits"] {
        if let Ok(text) = std::fs::read(tree.root().join("proc/42").join(name)) {
            tree.file(&format!("/proc/77/{name}"), text);
        }
    }
    tree.file("/proc/77/comm", "python3\n");
    tree.file("/proc/77/cmdline", line);
    tree.file("/proc/77/environ", "UCX_TLS=tcp,cuda_copy\0");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .start()
        .unwrap();
    let ask = || {
        run(
            &api,
            &["node", "-n", "serving", "--pod", "decode-0", "-o", "json"],
        )
    };
    let both = ask();
    assert_eq!(both.code, 1, "{}", both.out);
    assert!(both.out.contains("ucx-tls-tcp-only"), "{}", both.out);
    // A router beside it moves no KV cache.
    tree.file(
        "/proc/77/cmdline",
        "python3\0-m\0dynamo.frontend\0--http-port\08000\0",
    );
    let router = ask();
    assert_eq!(router.code, 0, "{}", router.out);
}

#[test]
fn output_that_comes_byte_by_byte_is_whole() {
    let tree = tree_of("decode");
    let root = tree.root().display().to_string();
    // Behind the words of the shell that is asked for come those of the tree.
    let slow = format!("\"$@\" root={root} path={root}/bin:/usr/bin:/bin | dd bs=1 status=none");
    let by_bytes =
        stand_in::Behaviour::Process(["sh", "-c", &slow, "by-bytes"].map(str::to_owned).to_vec());
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .pod(worker("decode-1", &tree.root()).behaviour(by_bytes))
        .start()
        .unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--all", "-o", "jsonl"];
        words.extend(&way);
        let run = run(&api, &words);
        assert_eq!(run.code, 0, "{way:?} {}", run.out);
        let of = |pod: &str| run.out.matches(&format!("\"pod\":\"{pod}\"")).count();
        assert_eq!(of("decode-0"), of("decode-1"), "{way:?} {}", run.out);
    }
}

#[test]
fn a_stream_that_ends_anywhere_is_no_whole_one() {
    let tree = tree_of("decode");
    // In the head of the answer, after it, and in the first frames.
    for bytes in [1, 150, 400, 5000] {
        for fault in [
            Fault::exec().reset_after(bytes),
            Fault::exec().half_close_after(bytes),
        ] {
            let api = serving()
                .pod(worker("decode-0", &tree.root()))
                .pod(worker("decode-1", &tree.root()))
                .fault(fault.name("decode-1"))
                .start()
                .unwrap();
            for way in ways() {
                let begin = Instant::now();
                let mut words = vec!["node", "-n", "serving", "--all", "-o", "json"];
                words.extend(["--timeout", "8s", "--request-timeout", "4s"]);
                words.extend(&way);
                let run = run(&api, &words);
                assert_eq!(run.code, 3, "{bytes} {way:?} {}", run.out);
                assert!(begin.elapsed() < Duration::from_secs(25), "{bytes} {way:?}");
                let bad = about(&run.json(), "decode-1")
                    .iter()
                    .filter(|c| c["status"] == "skipped")
                    .map(|c| c["cause"].to_string())
                    .collect::<Vec<_>>()
                    .join(" ");
                assert!(
                    [
                        "probe-cut",
                        "probe-timed-out",
                        "api-server-unreachable",
                        "gap"
                    ]
                    .iter()
                    .any(|cause| bad.contains(cause))
                        || run.out.contains("stopped while"),
                    "{bytes} {way:?} {bad} {}",
                    run.out
                );
                assert!(about(&run.json(), "decode-0").len() > 10);
            }
        }
    }
}
