//! Runs the program against a scenario.

use std::path::Path;

use serde_json::Value;
use stand_in::{Cluster, Pod, Tree};

#[path = "../common/program.rs"]
#[allow(dead_code)]
mod common;
#[allow(unused_imports)]
pub(crate) use common::{Run, has_kubectl, program, run, run_with, ways};

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
            "python3\0-m\0dynamo.vllm\0--model\0/models/private-model\0--disaggregation-mode\0{role}\0--kv-transfer-config\0{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{{\"password\":\"hunter2\"}}}}\0--api-key=hunter2\0"
        ),
    );
    tree.file("/run/nvidia-fabricmanager/socket", "");
    tree.file("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n");
    tree
}
