//! What a worker's pod has that decides the path of the KV cache, for pods that are put beside it: node, devices, claims,
//! networks, limits. Data, secrets and variables of the worker stay its own.

use serde_json::{Map, Value, json};

/// What is taken over from a worker's pod.
pub(crate) struct Twin {
    /// The worker's pod.
    pub(crate) name: String,
    /// Its namespace.
    pub(crate) namespace: Option<Value>,
    /// Annotations that attach networks or devices.
    pub(crate) annotations: Map<String, Value>,
    /// The pod's own: networks, claims, tolerations, its node.
    pub(crate) spec: Map<String, Value>,
    /// The container's: resources, rights, mounts of devices.
    pub(crate) container: Map<String, Value>,
    /// The volumes behind the mounts.
    pub(crate) volumes: Vec<Value>,
    /// The container's image.
    pub(crate) image: Option<String>,
    /// Names of secrets that pull it.
    pub(crate) pull: Option<Value>,
}

/// What is taken over of a container of a pod object; `annotations` are the keys that are wanted.
pub(crate) fn of(object: &Value, container: &str, annotations: &[&str]) -> Option<Twin> {
    let metadata = object.get("metadata")?;
    let spec = object.get("spec")?;
    let name = metadata.get("name")?.as_str()?;
    let worker = spec
        .get("containers")?
        .as_array()?
        .iter()
        .find(|c| c.get("name").and_then(Value::as_str) == Some(container))?;
    let mut own = Map::new();
    copy(worker, &["resources", "securityContext"], &mut own);
    let kept_volumes = volumes(spec);
    let is_kept = |mount: &&Value| {
        let volume = mount.get("name").and_then(Value::as_str);
        volume.is_some_and(|name| {
            kept_volumes
                .iter()
                .any(|kept| kept.get("name").and_then(Value::as_str) == Some(name))
        })
    };
    let mounts: Vec<Value> = worker
        .get("volumeMounts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter(is_kept)
        .cloned()
        .collect();
    let volumes: Vec<Value> = kept_volumes
        .into_iter()
        .filter(|volume| mounts.iter().any(|m| m.get("name") == volume.get("name")))
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
    match spec.get("nodeName").and_then(Value::as_str) {
        Some(node) => {
            // By the scheduler, so that devices are counted.
            made.insert(
                "affinity".to_owned(),
                json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
                ]}}}),
            );
        }
        // A template has no node yet.
        None => copy(spec, &["nodeSelector"], &mut made),
    }
    let annotations = metadata
        .get("annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter(|(key, _)| annotations.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Some(Twin {
        name: name.to_owned(),
        namespace: metadata.get("namespace").cloned(),
        annotations,
        spec: made,
        container: own,
        volumes,
        image: worker
            .get("image")
            .and_then(Value::as_str)
            .map(str::to_owned),
        pull: spec.get("imagePullSecrets").cloned(),
    })
}

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
