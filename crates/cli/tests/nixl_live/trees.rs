//! Prepared trees: libraries, the side channel, what is in use; who is left alone; what would run.

use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use serde_json::{Value, json};
use stand_in::{Cluster, Pod, StandIn, Tree};

use crate::lab::{causes, has, of, run, ways, worker};

const SITE: &str = "/opt/venv/lib/python3.12/site-packages";

fn mapped(paths: &[String]) -> String {
    let mut text = String::new();
    for (path, n) in paths.iter().zip(1..) {
        let _ = writeln!(
            text,
            "7f00000{n:02x}000-7f00000{n:02x}800 r-xp 00000000 08:01 {n} {path}"
        );
    }
    text
}

/// Libraries of a wheel, as an engine with NIXL has them.
fn wheel() -> Vec<String> {
    [
        ".nixl_cu12.mesonpy.libs/libnixl.so",
        ".nixl_cu12.mesonpy.libs/plugins/libplugin_UCX.so",
        "nixl_cu12.libs/libucp-1a2b3c4d.so.0.0.0",
    ]
    .map(|path| format!("{SITE}/{path}"))
    .into()
}

/// A tree with an engine of plain vLLM with NIXL.
fn vllm(settings: &str) -> Tree {
    let tree = Tree::worker();
    tree.file(
        "/proc/42/cmdline",
        "python3\0-m\0vllm.entrypoints.openai.api_server\0--kv-transfer-config\0{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}\0--api-key=hunter2\0",
    );
    tree.file(
        "/proc/42/environ",
        format!("PATH=/usr/bin\0HF_TOKEN=hunter2\0{settings}"),
    );
    tree.file("/proc/42/maps", mapped(&wheel()));
    tree.file(&format!("{SITE}/nixl_cu12-1.5.1.dist-info/METADATA"), "");
    tree
}

/// A socket of the engine that listens at this address, in the kernel's words.
fn listens(tree: &Tree, address: &str) {
    tree.file(
        "/proc/42/net/tcp",
        format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: {address} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0\n   1: 0200010A:A000 0300010A:A001 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1\n"
        ),
    );
    tree.file("/proc/self/ns/.keep", "");
    opens(tree, 7, "socket:[4711]");
    opens(tree, 8, "socket:[4712]");
}

fn opens(tree: &Tree, fd: u32, target: &str) {
    let folder = tree.root().join("proc/42/fd");
    std::fs::create_dir_all(&folder).unwrap();
    symlink(target, folder.join(fd.to_string())).unwrap();
}

/// A tool that the collecting script finds in the tree.
fn tool(tree: &Tree, name: &str, script: &str) {
    let folder = tree.root().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn plain(name: &str, root: &Path) -> Pod {
    worker(name)
        .spec("command", json!(["vllm", "serve"]))
        .tree(root)
}

fn serving(pod: Pod) -> StandIn {
    Cluster::new()
        .namespace("serving")
        .pod(pod)
        .start()
        .unwrap()
}

/// `nixl` over the pod, by each way in; the reports are the same.
fn looked(pod: &Pod) -> Value {
    let mut reports = Vec::new();
    for way in ways() {
        let api = serving(pod.clone());
        let mut words = vec!["nixl", "-n", "serving", "--all", "-o", "json"];
        words.extend(&way);
        let run = run(&api, &words);
        let out = run.out.replace(" --via kubectl", "");
        assert!(!out.contains("hunter2") && !run.err.contains("hunter2"));
        reports.push((run.code, out));
    }
    let (_, first) = reports.first().unwrap();
    for (_, other) in &reports {
        assert_eq!(first, other);
    }
    serde_json::from_str(first).unwrap()
}

/// The address that the stand-in gives a pod.
fn address(pod: &Pod) -> String {
    let object = pod.object("serving");
    object["status"]["podIP"].as_str().unwrap().to_owned()
}

#[test]
fn what_the_engine_has_loaded_is_named_and_two_copies_are_told() {
    let tree = vllm("");
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(
        has(&report, "nixl/libraries", "ok", "", "NIXL 1.5.1"),
        "{:#?}",
        of(&report, "nixl/libraries")
    );
    assert_eq!(of(&report, "nixl/libraries").len(), 1);

    let mut libraries = wheel();
    libraries.push("/opt/hpcx/ucx/lib/libucp.so.0.0.0".to_owned());
    tree.file("/proc/42/maps", mapped(&libraries));
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(has(
        &report,
        "nixl/libraries",
        "warn",
        "ucx-two-copies-loaded",
        "/opt/hpcx/ucx/lib"
    ));

    let mut libraries = wheel();
    libraries.push("/opt/nvidia/nvda_nixl/lib64/libnixl.so".to_owned());
    tree.file("/proc/42/maps", mapped(&libraries));
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(has(
        &report,
        "nixl/libraries",
        "warn",
        "nixl-two-copies-loaded",
        "nvda_nixl"
    ));

    let mut libraries = wheel();
    libraries[1] = "/opt/dynamo/nixl/plugins/libplugin_UCX.so".to_owned();
    tree.file("/proc/42/maps", mapped(&libraries));
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(has(
        &report,
        "nixl/libraries",
        "warn",
        "nixl-plugin-of-another-copy",
        "/opt/dynamo/nixl"
    ));
}

#[test]
fn without_an_engine_or_nixl_nothing_is_validated() {
    let tree = Tree::new();
    let pod = plain("decode-0", &tree.root());
    let api = serving(pod);
    for format in ["json", "text", "short", "jsonl"] {
        let run = run(
            &api,
            &["nixl", "-n", "serving", "--pod", "decode-0", "-o", format],
        );
        assert_eq!(run.code, 3, "{} {}", run.out, run.err);
    }
    let run_ = run(
        &api,
        &["nixl", "-n", "serving", "--pod", "decode-0", "-o", "json"],
    );
    let report = run_.json();
    assert_eq!(report["transfer_validated"], false);
    assert_eq!(report["readiness"], "inconclusive");
    assert!(causes(&report).contains(&"nixl-no-engine-process"));
    let next = report["next"].to_string();
    assert!(next.contains("--debug-pods"), "{next}");

    let tree = vllm("");
    tree.file(
        "/proc/42/maps",
        mapped(&["/usr/lib/libmooncake_store.so".to_owned()]),
    );
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(causes(&report).contains(&"nixl-not-loaded"));
    assert_eq!(report["readiness"], "inconclusive");
}

#[test]
fn a_side_channel_that_no_peer_reaches_is_a_fault() {
    let of_host = |host: &str| {
        let tree = vllm(&format!("VLLM_NIXL_SIDE_CHANNEL_HOST={host}\0"));
        listens(&tree, "0200010A:15E0");
        looked(&plain("decode-0", &tree.root()))
    };
    for (host, cause) in [
        ("localhost", "side-channel-host-loopback"),
        ("127.0.0.1", "side-channel-host-loopback"),
        ("0.0.0.0", "side-channel-host-any"),
        ("192.0.2.77", "side-channel-host-wrong-ip"),
    ] {
        let report = of_host(host);
        assert!(
            has(&report, "nixl/side-channel", "fail", cause, host),
            "{host}"
        );
        assert_eq!(report["readiness"], "blocked");
    }
    let tree = vllm("");
    let own = address(&plain("decode-0", &tree.root()));
    let report = of_host(&own);
    assert!(has(&report, "nixl/side-channel", "ok", "", &own));
    assert!(has(
        &report,
        "nixl/side-channel",
        "ok",
        "",
        "listens at 10.1.0.2:5600"
    ));
    assert_ne!(report["readiness"], "blocked", "{:#?}", causes(&report));
}

#[test]
fn an_unset_side_channel_is_judged_by_who_listens() {
    // Nobody listens yet: a launcher may still set it inside.
    let tree = vllm("");
    let report = looked(&plain("decode-0", &tree.root()));
    let cause = "side-channel-host-loopback";
    assert!(has(&report, "nixl/side-channel", "warn", cause, "not set"));
    // It listens on the loopback interface.
    listens(&tree, "0100007F:15E0");
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(has(
        &report,
        "nixl/side-channel",
        "fail",
        cause,
        "listens there"
    ));
    // It was set inside, and listens at an address that a peer reaches.
    listens_at(&tree, "0200010A:15E0");
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(!causes(&report).contains(&cause));
    // Dynamo sets it inside.
    let tree = vllm("");
    tree.file(
        "/proc/42/cmdline",
        "python3\0-m\0dynamo.vllm\0--kv-transfer-config\0{\"kv_connector\":\"NixlConnector\"}\0",
    );
    let report = looked(&worker("decode-0").tree(tree.root()));
    assert!(!causes(&report).contains(&cause));
}

/// The same socket at another address.
fn listens_at(tree: &Tree, address: &str) {
    let text = std::fs::read_to_string(tree.root().join("proc/42/net/tcp")).unwrap();
    tree.file("/proc/42/net/tcp", text.replace("0100007F:15E0", address));
}

const PAIRS: &str = "echo 'link mlx5_0/1 lqpn 25 rqpn 25 type RC state RTS rq-psn 0 sq-psn 0 pdn 2 pid 42 comm python'
echo 'link mlx5_0/1 lqpn 27 rqpn 1034 type RC state RTS rq-psn 1 sq-psn 77629 pdn 2 pid 42 comm python'
echo 'link mlx5_0/1 lqpn 31 rqpn 1035 type RC state RTS rq-psn 1 sq-psn 77629 pdn 2 pid 99 comm other'";

#[test]
fn queue_pairs_of_the_engine_are_evidence_and_nothing_open_is_a_gap() {
    let tree = vllm("");
    listens(&tree, "0200010A:15E0");
    tree.file("/sys/module/ib_core/refcnt", "1\n");
    // Devices are here, and UCX opened none of them.
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(
        has(
            &report,
            "nixl/in-use",
            "warn",
            "nixl-no-rdma-device-open",
            "although devices are here"
        ),
        "{:#?}",
        of(&report, "nixl/in-use")
    );
    // One is open: that says nothing of a peer.
    opens(&tree, 9, "/dev/infiniband/uverbs0");
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(has(&report, "nixl/in-use", "skipped", "", "uverbs0 open"));
    assert!(!causes(&report).contains(&"nixl-no-rdma-device-open"));
    // A pair that leads to itself, one of another process, and one that leads to a peer.
    tool(&tree, "rdma", PAIRS);
    let report = looked(&plain("decode-0", &tree.root()));
    assert!(
        has(
            &report,
            "nixl/in-use",
            "ok",
            "",
            "lead to a peer: 1 on mlx5_0; 1 TCP connection"
        ),
        "{:#?}",
        of(&report, "nixl/in-use")
    );
}

#[test]
fn no_agent_is_made_in_a_pod_that_is_no_kv_worker() {
    let tree = vllm("");
    let pod = Pod::plain("frontend-0")
        .label("nvidia.com/dynamo-component-type", "frontend")
        .spec("command", json!(["python3", "-m", "dynamo.frontend"]))
        .tree(tree.root());
    for way in ways() {
        let api = serving(pod.clone());
        let mut words = vec!["nixl", "-n", "serving", "--pod", "frontend-0", "-o", "json"];
        words.extend(&way);
        let report = run(&api, &words).json();
        assert!(has(
            &report,
            "nixl/backends",
            "skipped",
            "nixl-backend-not-tried",
            "does not look like a KV worker"
        ));
        assert_eq!(api.execs().len(), 1, "a look, and no agent");
        words.push("--force");
        run(&api, &words);
        assert_eq!(api.execs().len(), 3, "a look, and an agent");
    }
}

#[test]
fn a_dry_run_says_what_would_run_and_runs_nothing() {
    let tree = vllm("");
    let api = serving(plain("decode-0", &tree.root()));
    let words = ["nixl", "-n", "serving", "--pod", "decode-0", "--dry-run"];
    let dry = run(&api, &words);
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(api.execs().is_empty());
    assert!(api.requests().iter().all(|r| !r.path.contains("/log")));
    // What it says is what is run.
    run(&api, &["nixl", "-n", "serving", "--pod", "decode-0"]);
    let execs = api.execs();
    assert_eq!(execs.len(), 2);
    assert!(dry.out.contains(&execs[0].argv.join(" ")), "{}", dry.out);
    for line in execs[1].argv[2].lines() {
        let line = line.replace('\'', r"'\''");
        assert!(dry.out.contains(&line), "{line} in {}", dry.out);
    }
    let gone = run(
        &api,
        &["nixl", "-n", "serving", "--pod", "gone", "--dry-run"],
    );
    assert_eq!(gone.code, 4, "{}", gone.out);
}

#[test]
fn pods_beside_the_workers_are_printed_and_not_made() {
    let tree = vllm("");
    let pod = plain("decode-0", &tree.root())
        .resource("rdma/ib", "1")
        .annotation("k8s.v1.cni.cncf.io/networks", "rail0")
        .env("HF_TOKEN", "hunter2");
    let api = serving(pod);
    let run = run(
        &api,
        &["nixl", "-n", "serving", "--pod", "decode-0", "--debug-pods"],
    );
    assert_eq!(run.code, 0, "{}", run.err);
    for part in ["decode-0-nixl-check", "rdma/ib", "rail0", "node-a"] {
        assert!(run.out.contains(part), "{part} in {}", run.out);
    }
    assert!(!run.out.contains("hunter2"));
    assert!(api.execs().is_empty());
    assert!(api.requests().iter().all(|r| r.method == "GET"));
}

#[test]
fn the_next_command_names_both_pods() {
    let tree = vllm("");
    let api = Cluster::new()
        .namespace("serving")
        .pod(plain("decode-0", &tree.root()))
        .pod(plain("prefill-0", &tree.root()))
        .start()
        .unwrap();
    let report = run(&api, &["nixl", "-n", "serving", "--all", "-o", "json"]).json();
    let commands: Vec<&str> = report["next"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["command"].as_str())
        .collect();
    let told = |part: &str| commands.iter().any(|c| c.contains(part));
    assert!(
        told("nixl -n serving --pod decode-0 -c main --peer prefill-0 --transfer"),
        "{commands:#?}"
    );
    assert!(told("--runtime_type ASIO"), "{commands:#?}");
    let tree = vllm("");
    let package = format!("{SITE}/nixl_cu12-1.5.1.dist-info");
    let package = tree.root().join(package.trim_start_matches('/'));
    std::fs::remove_dir_all(package).unwrap();
    tree.file(&format!("{SITE}/nixl_cu12-0.10.1.dist-info/METADATA"), "");
    let api = Cluster::new()
        .namespace("serving")
        .pod(plain("decode-0", &tree.root()))
        .pod(plain("prefill-0", &tree.root()))
        .start()
        .unwrap();
    let report = run(&api, &["nixl", "-n", "serving", "--all", "-o", "json"]).json();
    assert!(report["next"].to_string().contains("--etcd_endpoints"));
}
