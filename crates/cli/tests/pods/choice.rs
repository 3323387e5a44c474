//! Which pods and containers are taken.

use crate::support::{about, run, serving, tree_of, ways, worker};

#[test]
fn a_sidecar_is_never_taken_silently() {
    let tree = tree_of("decode");
    let two = |pod: stand_in::Pod| {
        pod.container("proxy")
            .spec("image", serde_json::json!("registry.example/proxy:1"))
            .container("main")
    };
    let api = serving()
        .pod(two(worker("decode-0", &tree.root())))
        .start()
        .unwrap();
    let run = run(
        &api,
        &["node", "-n", "serving", "--pod", "decode-0", "-o", "json"],
    );
    assert_eq!(api.execs()[0].container, "main");
    assert!(run.out.contains("named main"), "{}", run.out);
}

#[test]
fn several_containers_that_could_be_meant_are_listed() {
    let pod = stand_in::Pod::plain("engines")
        .container("one")
        .resource("nvidia.com/gpu", "1")
        .container("two")
        .resource("nvidia.com/gpu", "1");
    // A container called main would be the one.
    let pod = pod.set("/spec/containers/0/name", serde_json::json!("zero"));
    let api = serving().pod(pod).start().unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--pod", "engines", "-o", "json"];
        words.extend(&way);
        let run = run(&api, &words);
        assert!(run.out.contains("container-ambiguous"), "{}", run.out);
        assert!(run.out.contains("one, two"), "{}", run.out);
        assert_eq!(run.code, 3);
        assert!(api.execs().is_empty());
    }
}

#[test]
fn the_container_that_is_asked_for_is_the_one() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(
            worker("decode-0", &tree.root())
                .container("other")
                .tree(tree.root()),
        )
        .start()
        .unwrap();
    run(
        &api,
        &["node", "-n", "serving", "--pod", "decode-0", "-c", "other"],
    );
    assert_eq!(api.execs()[0].container, "other");
    let wrong = run(
        &api,
        &[
            "node", "-n", "serving", "--pod", "decode-0", "-c", "nope", "-o", "json",
        ],
    );
    assert!(wrong.out.contains("container-missing"), "{}", wrong.out);
    assert!(wrong.out.contains("main"), "{}", wrong.out);
    assert_eq!(api.execs().len(), 1);
}

#[test]
fn all_takes_workers_and_says_why_and_what_it_passes_over() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(worker("prefill-0", &prefill.root()))
        .pod(worker("decode-0", &decode.root()))
        .pod(stand_in::Pod::worker("frontend-0"))
        .pod(stand_in::Pod::worker("planner-0"))
        .pod(stand_in::Pod::plain("database"))
        .start()
        .unwrap();
    let run = run(&api, &["node", "-n", "serving", "--all", "-o", "json"]);
    let report = run.json();
    let mut taken: Vec<String> = api.execs().iter().map(|e| e.pod.clone()).collect();
    taken.sort();
    assert_eq!(taken, ["decode-0", "prefill-0"]);
    assert!(about(&report, "decode-0").iter().any(|c| {
        c["detail"]
            .as_str()
            .unwrap()
            .contains("label nvidia.com/dynamo-component-type=decode")
    }));
    assert!(run.out.contains("passed over"), "{}", run.out);
}

#[test]
fn labels_select_as_kubectl_does() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()).label("tier", "gold"))
        .pod(worker("decode-1", &tree.root()).label("tier", "tin"))
        .start()
        .unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "-l", "tier in (gold)"];
        words.extend(&way);
        run(&api, &words);
    }
    let pods: Vec<String> = api.execs().iter().map(|e| e.pod.clone()).collect();
    assert!(!pods.is_empty() && pods.iter().all(|pod| pod == "decode-0"));
}

#[test]
fn options_of_a_cluster_without_a_pod_are_refused() {
    let api = serving().start().unwrap();
    let run = run(&api, &["node", "-n", "serving"]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("--pod") && run.err.contains("--all"),
        "{}",
        run.err
    );
}

#[test]
fn names_are_taken_as_kubectl_takes_them() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .start()
        .unwrap();
    let words = [
        "node",
        "-n",
        "",
        "--context",
        "",
        "--pod",
        "pod/decode-0",
        "--pod",
        "decode-0",
        "-o",
        "json",
    ];
    let found = run(&api, &words);
    assert_eq!(found.code, 0, "{}{}", found.out, found.err);
    // Named twice, looked into once.
    assert_eq!(api.execs().len(), 1);
    for odd in [
        vec!["--pod", "deployment/decode"],
        vec!["--pod", ""],
        vec!["--pod", "decode-0", "-n", "a/b"],
    ] {
        let words: Vec<&str> = ["node"].into_iter().chain(odd).collect();
        let refused = run(&api, &words);
        assert_eq!(refused.code, 2, "{words:?} {}", refused.out);
    }
    assert_eq!(api.execs().len(), 1);
}

#[test]
fn a_namespace_without_kv_workers_is_not_one_without_pods() {
    let api = serving()
        .pod(stand_in::Pod::worker("frontend-0"))
        .start()
        .unwrap();
    let found = run(&api, &["node", "-n", "serving", "--all", "-o", "json"]);
    assert_eq!(found.code, 4, "{}", found.out);
    assert_eq!(found.json()["readiness"], "not-applicable");
    let found = run(&api, &["node", "-n", "other", "--all", "-o", "json"]);
    assert_eq!(found.code, 4, "{}", found.out);
    assert_eq!(found.json()["readiness"], "inconclusive");
}

#[test]
fn a_selector_that_is_none_is_wrong_usage_and_says_why() {
    let api = serving()
        .pod(stand_in::Pod::worker("decode-0"))
        .start()
        .unwrap();
    for way in ways() {
        for (selector, said) in [("a b=c", "a b=c"), ("x in (", "x in (")] {
            let mut words = vec!["node", "-n", "serving", "-l", selector, "-o", "json"];
            words.extend(&way);
            let refused = run(&api, &words);
            assert_eq!(refused.code, 2, "{words:?} {}", refused.out);
            assert!(refused.out.is_empty(), "{}", refused.out);
            // What was typed, what the API server says of it, and how it is written.
            for word in [
                "--selector",
                said,
                "unable to parse",
                "role in (prefill,decode)",
            ] {
                assert!(refused.err.contains(word), "{word}: {}", refused.err);
            }
        }
    }
    // Nobody means all pods by an empty one.
    let asked = api.requests().len();
    for empty in ["", " "] {
        let refused = run(&api, &["node", "-n", "serving", "-l", empty]);
        assert_eq!(refused.code, 2, "{}", refused.out);
        assert!(refused.err.contains("--all"), "{}", refused.err);
    }
    assert_eq!(api.requests().len(), asked);
}

#[test]
fn lengths_of_time_are_those_of_kubectl() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .start()
        .unwrap();
    for way in ways() {
        for time in ["0", "0s", "30", "30s", "1m", "1m30s", "500ms"] {
            let mut words = vec!["node", "-n", "serving", "--pod", "decode-0"];
            words.extend(["--request-timeout", time, "-o", "json"]);
            words.extend(&way);
            let run = run(&api, &words);
            assert!(
                run.code == 0 || time == "500ms",
                "{time} {way:?} {}",
                run.out
            );
        }
    }
    for (option, time) in [
        ("--request-timeout", "soon"),
        ("--request-timeout", "48h"),
        ("--request-timeout", ""),
        ("--timeout", "0"),
    ] {
        let refused = run(&api, &["node", "--pod", "decode-0", option, time]);
        assert_eq!(refused.code, 2, "{option} {time} {}", refused.out);
        assert!(refused.err.contains(option), "{}", refused.err);
    }
}
