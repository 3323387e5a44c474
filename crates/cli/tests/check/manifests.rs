//! What collects from inside without exec: the printed manifest's own script is run, and what it prints is judged.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use stand_in::{StandIn, Tree};

use crate::deployment::member;
use crate::support::{Run, has_kubectl, program, run, run_with, serving, tree_of};

/// What Kubernetes makes of a command: `$$` is one dollar sign, and a name that is not set stays.
fn expanded(word: &str) -> String {
    assert!(
        !word.replace("$$", "").contains('$'),
        "a dollar sign that Kubernetes may read"
    );
    word.replace("$$", "$")
}

/// A container of a printed manifest, as the kubelet would start it in a pod of this name on this node, over a tree.
fn started(container: yaml::Node<'_>, pod: &str, node: &str, root: &Path) -> Vec<u8> {
    let words: Vec<String> = container
        .get("command")
        .unwrap()
        .items()
        .map(|word| expanded(&word.as_str().unwrap()))
        .map(|word| {
            let over = format!(
                "tool_limit=10 root={} path={}",
                root.display(),
                root.join("bin").display()
            );
            word.replace("tool_limit=10", &over)
        })
        .collect();
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env_clear()
        .env("PATH", "/usr/bin:/bin");
    for entry in container.get("env").unwrap().items() {
        let name = entry.get("name").unwrap().as_str().unwrap();
        let value = match entry.get("value") {
            Some(value) => value.raw().into_owned(),
            None => {
                let path = ["valueFrom", "fieldRef", "fieldPath"];
                match &*entry.get_path(&path).unwrap().as_str().unwrap() {
                    "metadata.namespace" => "serving".to_owned(),
                    "metadata.name" => pod.to_owned(),
                    "spec.nodeName" => node.to_owned(),
                    other => panic!("{other}"),
                }
            }
        };
        command.env(&*name, value);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    output.stdout
}

/// The log of what is printed with these words.
fn log_of(printed: &str, pod: &str, root: &Path) -> String {
    let stream = yaml::parse(printed, &yaml::Limits::default());
    assert!(stream.errors.is_empty(), "{:?}", stream.errors);
    let root_node = stream.documents[0].root();
    let container = [
        &["spec", "template", "spec", "initContainers", "0"][..],
        &["spec", "template", "spec", "containers", "0"][..],
    ]
    .iter()
    .find_map(|path| root_node.get_path(path))
    .unwrap();
    String::from_utf8(started(container, pod, "node-7", root)).unwrap()
}

fn printed(api: &StandIn, words: &[&str]) -> String {
    let run = run(api, &[&["manifest"], words].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(api.execs().is_empty(), "it only reads");
    run.out
}

/// Judges logs, each in a file of its own.
fn judged(logs: &[&str], more: &[&str]) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let mut words = vec!["check".to_owned(), "--from-logs".to_owned()];
    for (at, log) in logs.iter().enumerate() {
        let path = dir.path().join(format!("{at}.log"));
        std::fs::write(&path, log).unwrap();
        words.push(path.to_str().unwrap().to_owned());
    }
    words.extend(more.iter().map(|w| (*w).to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run_with(Path::new("/nonexistent"), &words)
}

fn of_places(report: &Value) -> BTreeSet<String> {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["name"].as_str().unwrap().starts_with("node/"))
        .map(|check| {
            format!(
                "{} {} {} {}",
                check["name"], check["status"], check["cause"], check["detail"]
            )
        })
        .collect()
}

fn named<'r>(report: &'r Value, cause: &str) -> Vec<&'r Value> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks.filter(|check| check["cause"] == cause).collect()
}

/// A tree of a worker before its engine begins.
fn idle(role: &str) -> Tree {
    let tree = tree_of(role);
    let unlimited = "Limit                     Soft Limit           Hard Limit           Units     \nMax locked memory         unlimited            unlimited            bytes     \n";
    tree.file("/proc/self/limits", unlimited);
    std::fs::remove_dir_all(tree.root().join("proc/42")).unwrap();
    tree
}

#[test]
fn the_printed_script_shows_of_a_place_what_exec_shows() {
    let tree = idle("decode");
    // Something to find.
    tree.file("/sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
    let api = serving()
        .pod(member("decode-0", &tree.root()))
        .start()
        .unwrap();
    let wanted = ["-n", "serving", "--pod", "decode-0"];
    let logs: Vec<String> = ["init-container", "job"]
        .iter()
        .map(|kind| {
            let words = [&wanted[..], &["--kind", kind]].concat();
            log_of(&printed(&api, &words), "decode-0", &tree.root())
        })
        .collect();
    let by_exec = run(&api, &[&["check", "-o", "json"], &wanted[..]].concat()).json();
    let expected = of_places(&by_exec);
    assert!(expected.len() > 10, "{expected:#?}");
    for log in &logs {
        assert!(!log.contains("hunter2"));
        let run = judged(&[log], &["-o", "json"]);
        let report = run.json();
        assert_eq!(of_places(&report), expected);
        assert_eq!(named(&report, "engine-not-in-sight").len(), 1);
        assert_eq!(named(&report, "pod-object-not-read").len(), 1);
        // What only the pod's object or its engine shows is not told as well.
        for check in report["checks"].as_array().unwrap() {
            let name = check["name"].as_str().unwrap();
            let of_engine = name.starts_with("nixl/") || name.starts_with("env/");
            assert!(!of_engine, "{check:#}");
        }
        assert!(run.out.contains("node-7"), "{}", run.out);
    }
}

#[test]
fn a_whole_deployment_from_one_log() {
    let (prefill, decode) = (idle("prefill"), idle("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .start()
        .unwrap();
    let log = |pod: &str, tree: &Tree| {
        let text = printed(&api, &["-n", "serving", "--pod", pod]);
        log_of(&text, pod, &tree.root())
    };
    let (left, right) = (log("prefill-0", &prefill), log("decode-0", &decode));
    // As kubectl logs --prefix --timestamps gives them, mixed, between lines of others.
    let mut mixed = String::from("[pod/other/main] hello\n");
    let mut lines = [left.lines(), right.lines()];
    let mut at = 0;
    let mut empty = 0;
    while empty < 2 {
        at += 1;
        let side = at % 2;
        empty = match lines[side].next() {
            None => empty + 1,
            Some(line) => {
                let pod = ["prefill-0", "decode-0"][side];
                writeln!(
                    mixed,
                    "[pod/{pod}/check-interconnect] 2026-01-02T03:04:05.{at:09}Z {line}"
                )
                .unwrap();
                0
            }
        };
    }
    let one_after_another = format!("{left}bye\n{right}");
    for logs in [
        vec![mixed.as_str()],
        vec![one_after_another.as_str()],
        vec![left.as_str(), right.as_str()],
    ] {
        let run = judged(&logs, &["-o", "json"]);
        let report = run.json();
        assert_eq!(report["coverage"]["workers_probed"], 2, "{}", run.out);
        assert_eq!(report["coverage"]["pairs_required"], 1, "{}", run.out);
        assert_eq!(
            run.code, 3,
            "nothing failed, and no engine was seen: {}",
            run.out
        );
        assert_eq!(report["readiness"], "inconclusive");
        // What needs an engine is skipped, never well.
        for check in report["checks"].as_array().unwrap() {
            let name = check["name"].as_str().unwrap();
            assert!(
                !name.starts_with("nixl/") && !name.starts_with("env/"),
                "{check:#}"
            );
        }
    }
    // Without what tells them apart nothing is believed of the one that may hold the other's lines.
    let mut without = String::new();
    for (_, line) in mixed.lines().filter_map(|line| line.split_once("Z ")) {
        without.push_str(line);
        without.push('\n');
    }
    let run = judged(&[&without], &[]);
    assert_eq!(run.code, 2, "{}{}", run.out, run.err);
    assert!(run.err.contains("--prefix"), "{}", run.err);
}

/// A Job on its node's process namespace sees engines, and none of them is its worker's.
#[test]
fn engines_that_a_job_sees_are_not_its_workers() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(member("decode-0", &tree.root()))
        .start()
        .unwrap();
    let text = printed(
        &api,
        &["-n", "serving", "--pod", "decode-0", "--kind", "job"],
    );
    let log = log_of(&text, "decode-0-collect-x", &tree.root());
    assert!(log.contains("42/UCX_TLS"), "the script saw it");
    let run = judged(&[&log], &["-o", "json"]);
    assert!(!run.out.contains("/proc/42"), "{}", run.out);
    assert_eq!(named(&run.json(), "engine-not-in-sight").len(), 1);
}

#[test]
fn a_log_can_be_saved_and_judged_again() {
    let tree = idle("decode");
    let api = serving()
        .pod(member("decode-0", &tree.root()))
        .start()
        .unwrap();
    let text = printed(
        &api,
        &["-n", "serving", "--pod", "decode-0", "--kind", "job"],
    );
    let log = log_of(&text, "decode-0-collect-x", &tree.root());
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let bundle = bundle.to_str().unwrap();
    let first = judged(&[&log], &["-o", "json", "--bundle", bundle]);
    let again = run_with(Path::new("/nonexistent"), &["replay", bundle, "-o", "json"]);
    assert_eq!(first.out, again.out, "{}", again.err);
}

#[test]
fn logs_that_are_cut_or_none_are_told_as_that() {
    let tree = idle("decode");
    let api = serving()
        .pod(member("decode-0", &tree.root()))
        .start()
        .unwrap();
    let text = printed(&api, &["-n", "serving", "--pod", "decode-0"]);
    let log = log_of(&text, "decode-0", &tree.root());
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    // The end is missing: a gap.
    for kept in [1, 2, lines.len() / 2, lines.len() - 1] {
        let run = judged(&[&lines[..kept].concat()], &["-o", "json"]);
        assert!(matches!(run.code, 1 | 3), "{kept} {} {}", run.code, run.err);
        assert_ne!(run.json()["readiness"], "unproven", "{kept}");
    }
    for (odd, words) in [
        (String::new(), "no facts are in it"),
        ("hello\nworld\n".to_owned(), "no facts are in it"),
        (lines[1..].concat(), "--tail=-1"),
        (lines[lines.len() - 10..].concat(), "--tail=-1"),
        (log.replace("%from\t1", "%from\t9"), "another version"),
        (
            log.replace("\tserving\t", "\tser\u{1b}[0mving\t"),
            "damaged",
        ),
        ("\u{0}\u{ff}".repeat(10_000), "no facts are in it"),
    ] {
        let run = judged(&[&odd], &[]);
        assert_eq!(run.code, 2, "{}", run.out);
        assert!(run.err.contains(words), "{words}: {}", run.err);
        assert!(!run.err.contains('\u{1b}'));
    }
    // A log that says it is another's.
    let run = judged(&[&log, "nothing"], &[]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("1.log"), "{}", run.err);
}

#[test]
fn of_an_image_alone_a_missing_device_is_no_failure() {
    let tree = Tree::new();
    let nowhere = Path::new("/nonexistent");
    let words = [
        "manifest", "--image", "engine:1", "--role", "decode", "--kind", "job",
    ];
    let bare = run_with(nowhere, &words).out;
    let granted = run_with(
        nowhere,
        &[&words[..], &["--resource", "rdma/ib=1"]].concat(),
    )
    .out;
    assert!(granted.contains("\"rdma/ib\": \"1\""), "{granted}");
    let log = log_of(&bare, "decode-collect-x", &tree.root());
    let run = judged(&[&log], &["-o", "json"]);
    assert_eq!(run.code, 3, "{}", run.out);
    assert_eq!(named(&run.json(), "worker-resources-unknown").len(), 1);
    let log = log_of(&granted, "decode-collect-x", &tree.root());
    let run = judged(&[&log], &["-o", "json"]);
    assert_eq!(run.code, 1, "{}", run.out);
}

#[test]
fn what_is_printed_holds_no_secret_and_kubectl_takes_it() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(member("decode-0", &tree.root()))
        .start()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "decode-0", "namespace": "serving"}, "spec": {"nodeName": "a", "imagePullSecrets": [{"name": "pull"}],
        "volumes": [{"name": "t", "secret": {"secretName": "hf"}}],
        "containers": [{"name": "main", "image": "vllm:1", "env": [{"name": "HF_TOKEN", "value": "hunter2"}],
        "command": ["vllm", "serve", "--api-key", "hunter2"], "resources": {"limits": {"nvidia.com/gpu": "8"}}, "volumeMounts": [{"name": "t", "mountPath": "/t"}]}]}}"#;
    let file = dir.path().join("pod.json");
    std::fs::write(&file, pod).unwrap();
    let file = file.to_str().unwrap();
    for kind in [
        vec!["--kind", "job"],
        vec!["--kind", "init-container"],
        vec![
            "--kind",
            "cronjob",
            "--image",
            "tools:1",
            "--textfile-dir",
            "/var/lib/x",
        ],
    ] {
        for of in [vec!["-f", file], vec!["-n", "serving", "--pod", "decode-0"]] {
            let text = printed(&api, &[&of[..], &kind[..]].concat());
            for secret in ["hunter2", "HF_TOKEN", "secretName", "api-key"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
            assert!(text.contains("nvidia.com/gpu"), "{text}");
            if !has_kubectl() || kind[1] == "init-container" {
                continue;
            }
            let mut child = Command::new("kubectl")
                .env("KUBECONFIG", api.kubeconfig())
                .env("HOME", api.directory())
                .args([
                    "create",
                    "--dry-run=client",
                    "--validate=false",
                    "-o",
                    "json",
                    "-f",
                    "-",
                ])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            let output = child.wait_with_output().unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            if errors.contains("no matches for kind") {
                eprintln!("skipped: {errors}");
                continue;
            }
            assert!(output.status.success(), "{errors}\n{text}");
        }
    }
}

#[test]
fn the_command_of_a_cronjob_is_one_that_this_program_takes() {
    let nowhere = Path::new("/nonexistent");
    let words = [
        "manifest",
        "--image",
        "tools:1",
        "--role",
        "decode",
        "--kind",
        "cronjob",
        "--textfile-dir",
        "/x",
    ];
    let text = run_with(nowhere, &words).out;
    let stream = yaml::parse(&text, &yaml::Limits::default());
    let path = "spec jobTemplate spec template spec containers 0 command";
    let path: Vec<&str> = path.split(' ').collect();
    let dir = tempfile::tempdir().unwrap();
    let words: Vec<String> = stream.documents[0]
        .root()
        .get_path(&path)
        .unwrap()
        .items()
        .map(|word| {
            word.as_str()
                .unwrap()
                .replace("/textfile", dir.path().to_str().unwrap())
        })
        .collect();
    assert_eq!(words[0], "check-interconnect");
    let output = program(nowhere).args(&words[1..]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = std::fs::read_to_string(dir.path().join("check_interconnect.prom")).unwrap();
    assert!(
        text.contains("check_interconnect_readiness{command=\"node\""),
        "{text}"
    );
}

#[test]
fn wrong_usage_is_told() {
    let nowhere = Path::new("/nonexistent");
    for (words, told) in [
        (vec!["manifest"], "name a worker"),
        (
            vec!["manifest", "-f", "/nonexistent.yaml"],
            "/nonexistent.yaml",
        ),
        (
            vec!["manifest", "--image", "a", "--kind", "cronjob"],
            "--textfile-dir",
        ),
        (
            vec![
                "manifest",
                "--image",
                "a",
                "--kind",
                "cronjob",
                "--textfile-dir",
                "x",
            ],
            "absolute",
        ),
        (
            vec!["manifest", "--image", "a", "--resource", "rdma/ib"],
            "rdma/ib=1",
        ),
        (
            vec!["check", "--from-logs", "/nonexistent.log"],
            "/nonexistent.log",
        ),
        (vec!["check", "name", "--from-logs", "x"], "cannot be used"),
    ] {
        let run = run_with(nowhere, &words);
        assert_eq!(run.code, 2, "{words:?} {}", run.out);
        assert!(run.err.contains(told), "{words:?}: {}", run.err);
    }
}
