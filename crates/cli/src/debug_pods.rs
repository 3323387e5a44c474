//! `nixl --debug-pods`: pods beside workers whose image has no NIXL, as YAML. Printed, never applied.
//!
//! Each has what decides the path of the KV cache as its worker has it: node, devices, claims, networks, limits. Its
//! image is another one, and it runs nothing.

use serde_json::{Map, Value, json};

use crate::twin;
use crate::yaml_text::yaml;

/// The worker's pod object as a pod that only waits.
pub(crate) fn of(pod: &str, container: &str, annotations: &[&str]) -> Option<String> {
    let object: Value = serde_json::from_str(pod).ok()?;
    let twin = twin::of(&object, container, annotations)?;
    let name = &twin.name;
    let mut own = twin.container;
    own.insert("name".to_owned(), "main".into());
    own.insert("image".to_owned(), IMAGE.into());
    own.insert("command".to_owned(), json!(["sleep", "infinity"]));
    let mut spec = twin.spec;
    spec.insert("restartPolicy".to_owned(), "Never".into());
    spec.insert("containers".to_owned(), json!([own]));
    if !twin.volumes.is_empty() {
        spec.insert("volumes".to_owned(), twin.volumes.into());
    }
    let mut head = Map::new();
    head.insert("name".to_owned(), format!("{name}-nixl-check").into());
    if let Some(namespace) = twin.namespace {
        head.insert("namespace".to_owned(), namespace);
    }
    if !twin.annotations.is_empty() {
        head.insert("annotations".to_owned(), twin.annotations.into());
    }
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec});
    let mut out = format!(
        "# Beside {name}: the same node, resources, claims and networks; it needs devices that are free there.\n---\n"
    );
    yaml(&whole, 0, &mut out);
    Some(out)
}

/// What has to be put in.
const IMAGE: &str = "PUT-AN-IMAGE-WITH-PYTHON-AND-NIXL-HERE";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_decides_the_path_and_nothing_else() {
        let pod = json!({
            "metadata": {
                "name": "decode-0", "namespace": "serving", "labels": {"app": "decode"},
                "annotations": {"k8s.v1.cni.cncf.io/networks": "rail0", "other": "secret"},
            },
            "spec": {
                "nodeName": "node-a",
                "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
                "serviceAccountName": "engine",
                "volumes": [
                    {"name": "ib", "hostPath": {"path": "/dev/infiniband"}},
                    {"name": "token", "secret": {"secretName": "hf"}},
                    {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                ],
                "containers": [
                    {"name": "sidecar", "image": "x"},
                    {
                        "name": "main", "image": "engine:1", "env": [{"name": "HF_TOKEN", "value": "hunter2"}],
                        "resources": {"limits": {"rdma/ib": "1", "nvidia.com/gpu": 8}},
                        "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                        "volumeMounts": [{"name": "ib", "mountPath": "/dev/infiniband"}, {"name": "token", "mountPath": "/t"}],
                    },
                ],
            },
        });
        let text = of(&pod.to_string(), "main", &["k8s.v1.cni.cncf.io/networks"]).unwrap();
        for part in [
            "name: \"decode-0-nixl-check\"",
            "namespace: \"serving\"",
            "\"k8s.v1.cni.cncf.io/networks\": \"rail0\"",
            "\"rdma/ib\": \"1\"",
            "\"nvidia.com/gpu\": 8",
            "\"IPC_LOCK\"",
            "resourceClaimTemplateName: \"one-gpu\"",
            "\"node-a\"",
            "path: \"/dev/infiniband\"",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        for part in ["hunter2", "secret", "engine", "app:", "8Gi", "sidecar"] {
            assert!(!text.contains(part), "{part} in\n{text}");
        }
        assert!(of(&pod.to_string(), "gone", &[]).is_none());
    }
}
