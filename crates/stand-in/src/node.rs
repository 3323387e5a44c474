//! Nodes.

use serde_json::{Value, json};

/// A node with GPUs and RDMA devices.
pub(crate) fn object(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64" },
        },
        "spec": {},
        "status": {
            "capacity": { "cpu": "96", "memory": "1024Gi", "nvidia.com/gpu": "8", "rdma/ib": "8" },
            "allocatable": { "cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": "8", "rdma/ib": "8" },
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }, { "type": "Hostname", "address": name }],
            "nodeInfo": { "kubeletVersion": "v1.32.4", "osImage": "Linux", "containerRuntimeVersion": "containerd://2.0.4" },
        },
    })
}
