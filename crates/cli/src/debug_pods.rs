//! `nixl --debug-pods`: pods beside workers whose image has no NIXL, as YAML. Printed, never applied.
//!
//! Each has what decides the path of the KV cache as its worker has it: node, devices, claims, networks, limits. Its
//! image is another one, and it runs nothing.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

/// The worker's pod object as a pod that only waits.
pub(crate) fn of(pod: &str, container: &str, annotations: &[&str]) -> Option<String> {
    let object: Value = serde_json::from_str(pod).ok()?;
    let metadata = object.get("metadata")?;
    let spec = object.get("spec")?;
    let name = metadata.get("name")?.as_str()?;
    let containers = spec.get("containers")?.as_array()?;
    let worker = containers
        .iter()
        .find(|c| c.get("name").and_then(Value::as_str) == Some(container))?;
    let mut own = Map::new();
    own.insert("name".to_owned(), "main".into());
    own.insert("image".to_owned(), IMAGE.into());
    own.insert("command".to_owned(), json!(["sleep", "infinity"]));
    copy(worker, &["resources", "securityContext"], &mut own);
    let kept_volumes = volumes(spec);
    let names: Vec<&str> = kept_volumes
        .iter()
        .filter_map(|volume| volume.get("name")?.as_str())
        .collect();
    let mounts: Vec<Value> = worker
        .get("volumeMounts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(|mount| {
            let volume = mount.get("name").and_then(Value::as_str);
            volume.is_some_and(|volume| names.contains(&volume))
        })
        .cloned()
        .collect();
    let volumes: Vec<Value> = kept_volumes
        .iter()
        .filter(|volume| mounts.iter().any(|m| m.get("name") == volume.get("name")))
        .cloned()
        .collect();
    if !mounts.is_empty() {
        own.insert("volumeMounts".to_owned(), mounts.into());
    }
    let mut made = Map::new();
    copy(
        spec,
        &[
            "hostNetwork",
            "hostIPC",
            "hostPID",
            "runtimeClassName",
            "tolerations",
            "resourceClaims",
            "securityContext",
        ],
        &mut made,
    );
    if let Some(node) = spec.get("nodeName").and_then(Value::as_str) {
        // By the scheduler, so that devices are counted.
        made.insert(
            "affinity".to_owned(),
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
            ]}}}),
        );
    }
    made.insert("restartPolicy".to_owned(), "Never".into());
    made.insert("containers".to_owned(), json!([own]));
    if !volumes.is_empty() {
        made.insert("volumes".to_owned(), volumes.into());
    }
    let mut head = Map::new();
    head.insert("name".to_owned(), format!("{name}-nixl-check").into());
    if let Some(namespace) = metadata.get("namespace") {
        head.insert("namespace".to_owned(), namespace.clone());
    }
    let kept: Map<String, Value> = metadata
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| annotations.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if !kept.is_empty() {
        head.insert("annotations".to_owned(), kept.into());
    }
    let whole = json!({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": made});
    let mut out = format!(
        "# Beside {name}: the same node, resources, claims and networks; it needs devices that are free there.\n---\n"
    );
    yaml(&whole, 0, &mut out);
    Some(out)
}

/// What has to be put in.
const IMAGE: &str = "PUT-AN-IMAGE-WITH-PYTHON-AND-NIXL-HERE";

/// Device directories and memory; data and secrets of the worker stay its own.
fn volumes(spec: &Value) -> Vec<Value> {
    let is_kept = |volume: &&Value| {
        let path = volume.pointer("/hostPath/path").and_then(Value::as_str);
        path.is_some_and(|path| path == "/dev" || path.starts_with("/dev/"))
            || volume.pointer("/emptyDir/medium").and_then(Value::as_str) == Some("Memory")
    };
    spec.get("volumes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(is_kept)
        .cloned()
        .collect()
}

fn copy(from: &Value, keys: &[&str], to: &mut Map<String, Value>) {
    for key in keys {
        if let Some(value) = from.get(*key)
            && !value.is_null()
        {
            to.insert((*key).to_owned(), value.clone());
        }
    }
}

/// Block style; strings are quoted as JSON does, which YAML reads alike.
fn yaml(value: &Value, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = if key.bytes().all(|b| b.is_ascii_alphanumeric()) {
                    key.clone()
                } else {
                    Value::from(key.as_str()).to_string()
                };
                let _ = write!(out, "{pad}{key}:");
                nested(value, depth, out);
            }
        }
        Value::Array(list) => {
            for value in list {
                let _ = write!(out, "{pad}-");
                nested(value, depth, out);
            }
        }
        plain => {
            let _ = writeln!(out, "{pad}{plain}");
        }
    }
}

fn nested(value: &Value, depth: usize, out: &mut String) {
    let empty = match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if empty {
        let _ = writeln!(out, " {value}");
    } else {
        out.push('\n');
        yaml(value, depth.saturating_add(1), out);
    }
}

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
