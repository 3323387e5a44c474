//! Runs the program against a scenario.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use stand_in::{Cluster, Pod, StandIn, Tree};

/// What the program did.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

/// Ways in, as options. kubectl may not be here.
pub(crate) fn ways() -> Vec<Vec<&'static str>> {
    let mut ways = vec![Vec::new()];
    if has_kubectl() {
        ways.push(vec!["--via", "kubectl"]);
    }
    ways
}

pub(crate) fn has_kubectl() -> bool {
    let there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: no kubectl here, so only the API is tried");
    }
    there
}

/// The program with a kubeconfig and nothing else of this machine's.
pub(crate) fn program(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_check-interconnect"));
    command
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap())
        .env("NO_COLOR", "1")
        .env_remove("HTTPS_PROXY")
        .env_remove("HTTP_PROXY")
        .env_remove("https_proxy")
        .env_remove("http_proxy")
        .stdin(Stdio::null());
    command
}

pub(crate) fn run_with(kubeconfig: &Path, words: &[&str]) -> Run {
    let output = program(kubeconfig).args(words).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn run(api: &StandIn, words: &[&str]) -> Run {
    run_with(api.kubeconfig(), words)
}

/// A worker with a GPU and an RDMA device, whose engine runs in this tree.
pub(crate) fn worker(name: &str, tree: &Path) -> Pod {
    let role = name.split('-').next().unwrap();
    engine(Pod::worker(name), role, tree)
}

/// The same of a pod that nothing but its name and its engine's flags tells of.
pub(crate) fn bare(name: &str, role: &str, tree: &Path) -> Pod {
    engine(Pod::plain(name), role, tree)
}

fn engine(pod: Pod, role: &str, tree: &Path) -> Pod {
    pod.tree(tree)
        .spec(
            "image",
            serde_json::json!("registry.example/vllm-runtime:1.0.0"),
        )
        .spec(
            "command",
            serde_json::json!(["python3", "-m", "dynamo.vllm"]),
        )
        .spec(
            "args",
            serde_json::json!([
                "--disaggregation-mode",
                role,
                "--kv-transfer-config",
                r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#
            ]),
        )
        .spec(
            "securityContext",
            serde_json::json!({"capabilities": {"add": ["IPC_LOCK"]}}),
        )
        .env("UCX_TLS", "rc,cuda_copy")
        .env("HF_TOKEN", "hunter2")
        .resource("nvidia.com/gpu", "1")
        .resource("rdma/ib", "1")
}

pub(crate) fn serving() -> Cluster {
    Cluster::new().namespace("serving")
}

/// The results of a report, unfolded, about one pod.
pub(crate) fn about<'r>(report: &'r Value, pod: &str) -> Vec<&'r Value> {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| {
            let text = check.to_string();
            text.contains(&format!("\"{pod}\""))
        })
        .collect()
}

/// Whether one of them names this cause.
pub(crate) fn names(checks: &[&Value], cause: &str) -> bool {
    checks.iter().any(|check| check["cause"] == cause)
}

/// A tree whose engine has this role, with nothing wrong in it.
pub(crate) fn tree_of(role: &str) -> Tree {
    let tree = Tree::worker();
    tree.file(
        "/proc/42/cmdline",
        format!(
            "python3\0-m\0dynamo.vllm\0--model\0/models/private-model\0--disaggregation-mode\0{role}\0--kv-transfer-config\0{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}}\0--api-key=hunter2\0"
        ),
    );
    tree.file("/run/nvidia-fabricmanager/socket", "");
    tree.file("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n");
    tree
}
