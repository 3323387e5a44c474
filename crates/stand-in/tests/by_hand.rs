//! The binary with a scenario from a directory, and a tree with the collecting script.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a broken test should stop, and a skipped one says so"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use stand_in::{Cluster, Pod};

fn write(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn scenario(directory: &Path) {
    let file = json!({
        "namespace": "serving", "tls": true, "dynamo": true,
        "deny": [["list", "nodes"]],
        "pods": [
            { "name": "decode-0", "labels": { "tier": "a" }, "containers": [
                { "name": "main", "tree": "trees/decode", "env": { "WORD": "hello" }, "resources": { "rdma/ib": "1" } },
                { "name": "sidecar", "no_shell": true } ] },
            { "name": "prefill-0", "containers": [{ "recorded": "out.txt", "delay_ms": 5, "log": "log.txt" }] },
            { "name": "late", "state": "Unschedulable" } ],
        "faults": [{ "verb": "get", "resource": "pods/log", "first": 1, "status": 500 }],
    });
    write(directory, "scenario.json", &file.to_string());
    write(directory, "trees/decode/etc/name", "a tree\n");
    write(directory, "out.txt", "recorded\n");
    write(directory, "log.txt", "logged\n");
    let graph = json!({
        "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": { "name": "graph", "namespace": "serving" },
    });
    write(directory, "objects/graph.json", &graph.to_string());
}

fn stand_in(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stand-in"))
        .args(args)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_directory_is_served_for_a_command() {
    if Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .is_err()
    {
        println!("skipped: no kubectl here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    scenario(directory.path());
    let record = directory.path().join("record.jsonl");
    let script = "kubectl get pods -o name
        kubectl get dynamographdeployments -o name
        kubectl get nodes
        kubectl exec decode-0 -c main -- cat etc/name
        kubectl exec prefill-0 -- anything
        kubectl logs prefill-0
        kubectl logs prefill-0
        exit 6";
    let got = stand_in(&[
        root,
        "--record",
        record.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
    ]);
    let (out, err) = (text(&got.stdout), text(&got.stderr));
    assert_eq!(got.status.code(), Some(6));
    assert_eq!(
        out,
        "pod/decode-0\npod/late\npod/prefill-0\ndynamographdeployment.nvidia.com/graph\na tree\nrecorded\nlogged\n",
        "{err}"
    );
    assert!(
        err.contains("cannot list resource \"nodes\"")
            && err.contains("etcdserver: request timed out"),
        "{err}"
    );
    let lines = fs::read_to_string(record).unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let execs: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "exec").collect();
    assert_eq!(execs.len(), 2);
    assert_eq!(
        (&execs[0]["container"], &execs[0]["exit"]),
        (&json!("main"), &json!(0))
    );
}

#[test]
fn a_scenario_that_cannot_be_meant_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    assert_eq!(stand_in(&[]).status.code(), Some(2));
    for (file, says) in [
        (json!({ "pod": [] }), "unknown key `pod`"),
        (
            json!({ "pods": [{ "name": "a", "state": "Happy" }] }),
            "no such state: Happy",
        ),
        (
            json!({ "pods": [{ "name": "a", "containers": [{ "recorded": "none" }] }] }),
            "none: No such file",
        ),
        (
            json!({ "faults": [{ "verb": "list" }] }),
            "a fault that does nothing",
        ),
    ] {
        write(directory.path(), "scenario.json", &file.to_string());
        let got = stand_in(&[root, "--", "true"]);
        assert_eq!(got.status.code(), Some(2));
        assert!(text(&got.stderr).contains(says), "{}", text(&got.stderr));
    }
}

#[test]
fn the_collecting_script_sees_the_tree_and_not_this_machine() {
    if Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .is_err()
    {
        println!("skipped: no kubectl here");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    write(
        directory.path(),
        "proc/sys/kernel/osrelease",
        "6.6.0-of-the-tree\n",
    );
    write(
        directory.path(),
        "sys/class/infiniband/mlx5_7/node_type",
        "1: CA\n",
    );
    write(
        directory.path(),
        "sys/class/infiniband/mlx5_7/board_id",
        "MT_0000000838\n",
    );
    let api = Cluster::new()
        .pod(Pod::worker("decode-0").tree(directory.path()))
        .start()
        .unwrap();
    let script = directory.path().join("script");
    fs::write(&script, probe::script::text()).unwrap();
    let got = api
        .kubectl()
        .args(["exec", "-i", "decode-0", "--", "sh", "-s", "--", "tools=no"])
        .stdin(fs::File::open(&script).unwrap())
        .output()
        .unwrap();
    let out = text(&got.stdout);
    assert_eq!(got.status.code(), Some(0), "{}", text(&got.stderr));
    assert!(
        out.contains("mlx5_7") && out.contains("MT_0000000838"),
        "{out}"
    );
    let execs = api.execs();
    assert_eq!(execs.len(), 1);
    assert_eq!(text(&execs[0].stdin), probe::script::text());
    assert_eq!(execs[0].stdout.text(), out);
}
