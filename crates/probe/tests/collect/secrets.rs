//! Values of other variables and flags never leave.

use std::process::{Command, Stdio};

use probe::local::{self, Options};
use probe::stream::{Kind, Stream};

use crate::tree::{Tree, has, shells};

const SECRET: &str = "hunter2";

fn assert_no_secret(raw: &[u8], place: &str) {
    let text = String::from_utf8_lossy(raw);
    for line in text.lines() {
        assert!(!line.contains(SECRET), "{place}: {line:?}");
    }
    assert!(!text.contains("private-model"), "{place}");
}

#[test]
fn a_prepared_process() {
    let tree = Tree::worker();
    tree.file("/proc/cmdline", "root=/dev/sda password=hunter2 iommu=pt\n");
    tree.file(
        "/proc/self/environ",
        "UCX_TLS=all\0AWS_SECRET_ACCESS_KEY=hunter2\0X=a\nUCX_TLS=hunter2\0",
    );
    for shell in shells() {
        let name = shell.join(" ");
        let raw = local::collect(&Options {
            shell,
            run_tools: false,
            ..tree.options()
        })
        .unwrap();
        assert_no_secret(&raw, &name);
        let stream = Stream::parse(&raw);
        let value = |key: &str| {
            let found: Vec<_> = stream
                .records
                .iter()
                .filter(|r| r.kind == Kind::Env && r.key == key)
                .map(|r| r.text.as_str())
                .collect();
            found
        };
        // A line of a secret that looks like a variable is none.
        assert_eq!(value("42/UCX_NET_DEVICES"), ["mlx5_0:1"], "{name}");
        assert_eq!(value("self/UCX_TLS"), ["all"], "{name}");
    }
}

/// Connectors take keys of their own in the JSON of a flag, passwords among them.
#[test]
fn json_in_a_flag_keeps_only_what_decides_the_path() {
    let full = r#"{"kv_connector" : "NixlConnector", "kv_role":"kv_both","password":"hunter2","pin":48151623,"on":true,"none":null,
  "kv_connector_extra_config":{"backends":["UCX","LIBFABRIC"],"hosts":["hunter2"],"quoted":"a\"hunter2\\","nested":"{\"kv_role\":\"hunter2\"}","last":-1.5e3}}"#;
    let kept = r#"{"kv_connector" : "NixlConnector", "kv_role":"kv_both","password":"...","pin":0,"on":true,"none":null,
  "kv_connector_extra_config":{"backends":["UCX","LIBFABRIC"],"hosts":["..."],"quoted":"...","nested":"...","last":-0}}"#;
    for (text, told) in [
        (full, kept),
        (
            r#"{"kv_cache_config":{"tokens_per_block":32,"dtype":"fp8"},"port":48151623}"#,
            r#"{"kv_cache_config":{"tokens_per_block":32,"dtype":"fp8"},"port":0}"#,
        ),
        // What is no JSON.
        (
            r#"{"kv_role":"kv_producer","password":"hunter2"#,
            r#"{"kv_role":"kv_producer","password":"#,
        ),
        ("{kv_role:kv_consumer,password:hunter2}", "{kv_consumer}"),
        ("{password:hunter2}", "{unquoted}"),
        (
            r#"{"a":hunter2,"kv_role":"kv_both"}"#,
            r#"{"a" "kv_role":"kv_both"}"#,
        ),
        ("{ }", "{ }"),
        ("nixl", "nixl"),
    ] {
        let tree = Tree::worker();
        tree.file(
            "/proc/42/cmdline",
            format!(
                "vllm\0serve\0m\0--kv-transfer-config\0{text}\0--override_engine_args={text}\0--disaggregation-ib-device\0{{\"0\":\"mlx5_0\"}}\0"
            ),
        );
        for shell in shells() {
            let name = shell.join(" ");
            let raw = local::collect(&Options {
                shell,
                run_tools: false,
                ..tree.options()
            })
            .unwrap();
            assert_no_secret(&raw, &name);
            assert!(
                !String::from_utf8_lossy(&raw).contains("48151623"),
                "{name}"
            );
            let stream = Stream::parse(&raw);
            let flags: Vec<_> = stream
                .records
                .iter()
                .filter(|r| r.kind == Kind::Arg)
                .map(|r| r.text.replace('\u{1}', "\n"))
                .collect();
            assert_eq!(flags, [told, told, r#"{"0":"mlx5_0"}"#], "{name}");
        }
    }
}

#[test]
fn words_in_every_place_of_a_command_line() {
    let tree = Tree::worker();
    tree.file(
        "/proc/42/cmdline",
        "python3\0-c\0hunter2\nvllm\0hunter2\0serve\0hunter2\0--enable-sleep-mode\0hunter2\0--host\0--api-key\0hunter2\0--hf-token=hunter2\0--config\0/c.yaml\0hunter2\0",
    );
    for shell in shells() {
        let name = shell.join(" ");
        let raw = local::collect(&Options {
            shell,
            run_tools: false,
            ..tree.options()
        })
        .unwrap();
        assert_no_secret(&raw, &name);
        let stream = Stream::parse(&raw);
        let flags: Vec<_> = stream
            .records
            .iter()
            .filter(|r| r.kind == Kind::Arg)
            .map(|r| (r.key.as_str(), r.text.as_str()))
            .collect();
        assert_eq!(
            flags,
            [
                ("42/--enable-sleep-mode", ""),
                ("42/--host", ""),
                ("42/--config", "/c.yaml")
            ],
            "{name}"
        );
    }
}

#[test]
fn a_running_process() {
    if !has("dash") {
        eprintln!("skipped: no dash here to stand for an engine");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let python = dir.path().join("python3.99");
    std::fs::copy("/bin/dash", &python).unwrap();
    let mut engine = Command::new(&python)
        // Waits for its input without a child.
        .args([
            "-c",
            "read line",
            "-m",
            "vllm.entrypoints.openai.api_server",
            "--tokenizer",
            "/models/private-model",
        ])
        .args([
            "--api-key",
            SECRET,
            "--kv-transfer-config",
            "{\"kv_connector\":\"NixlConnector\"}",
        ])
        .env_clear()
        .envs([
            ("UCX_TLS", "rc,cuda_copy"),
            ("UCX_MY_TOKEN", SECRET),
            ("PLAIN", "a\nUCX_NET_DEVICES=hunter2:1\nNCCL_IB_HCA=hunter2"),
            ("UCX_NET_DEVICES", "mlx5_0:1"),
            ("NIXL_ETCD_ENDPOINTS", "http://user:hunter2@etcd:2379"),
        ])
        .env("HF_TOKEN", SECRET)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = engine.id();
    for shell in shells() {
        let name = shell.join(" ");
        let raw = local::collect(&Options {
            shell,
            run_tools: false,
            ..Options::default()
        })
        .unwrap();
        assert_no_secret(&raw, &name);
        let stream = Stream::parse(&raw);
        let of = |kind: Kind| {
            let mut found: Vec<_> = stream
                .records
                .iter()
                .filter(|r| r.kind == kind && r.key.starts_with(&format!("{pid}/")))
                .map(|r| format!("{}={}", r.key.split_once('/').unwrap().1, r.text))
                .collect();
            found.sort();
            found
        };
        assert_eq!(
            of(Kind::Env),
            ["UCX_NET_DEVICES=mlx5_0:1", "UCX_TLS=rc,cuda_copy"],
            "{name}"
        );
        assert_eq!(
            of(Kind::Arg),
            ["--kv-transfer-config={\"kv_connector\":\"NixlConnector\"}"],
            "{name}"
        );
        assert!(
            of(Kind::Proc).contains(&"program=vllm.entrypoints.openai.api_server".to_owned()),
            "{name}"
        );
    }
    engine.kill().unwrap();
    engine.wait().unwrap();
}

#[test]
fn names_of_other_processes_in_a_tools_output() {
    let tree = Tree::worker();
    tree.tool(
        "nvidia-smi",
        "[ \"$1\" = -q ] || exit 1; printf '%s\\n' 'Driver Version : 580.65.06' 'GPU 00000000:18:00.0' '    Product Name : NVIDIA H100' '    Fabric' '        State : Completed' '    Processes' '        Process ID : 7' '            Name : python3 --api-key hunter2'",
    );
    let raw = local::collect(&tree.options()).unwrap();
    assert_no_secret(&raw, "nvidia-smi -q");
    let stream = Stream::parse(&raw);
    let told: Vec<_> = stream
        .records
        .iter()
        .filter(|r| r.kind == Kind::Tool && r.key == "tool:nvidia-smi-q")
        .map(|r| r.text.as_str())
        .collect();
    assert_eq!(told.len(), 5, "{told:?}");
    assert!(told.contains(&"        State : Completed"));
}
