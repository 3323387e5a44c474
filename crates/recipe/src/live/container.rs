//! The containers of a pod: what they ask for, what is mounted into them, and how they are.

use std::collections::BTreeMap;

use model::pod::{Container, ContainerKind, ContainerState, Ended};
use serde_json::Value;

use super::object::{flag, line, list, message, quantities, text_of};

/// Mount points inside a container that matter here.
const MOUNTS: [&str; 6] = [
    "/dev",
    "/dev/infiniband",
    "/dev/shm",
    "/dev/hugepages",
    "/dev/gdrdrv",
    "/sys",
];

/// Containers that run, then those before them, then those that were added.
pub(super) fn all(spec: &Value, status: &Value) -> Vec<Container> {
    let mut states: BTreeMap<String, &Value> = BTreeMap::new();
    for key in [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ] {
        for entry in list(status, key) {
            if let Some(name) = text_of(entry, "name") {
                states.insert(name, entry);
            }
        }
    }
    let mut found = Vec::new();
    for (key, kind) in [
        ("containers", ContainerKind::Main),
        ("initContainers", ContainerKind::Init),
        ("ephemeralContainers", ContainerKind::Ephemeral),
    ] {
        for entry in list(spec, key) {
            let Some(name) = text_of(entry, "name") else {
                continue;
            };
            // Kubernetes 1.28 and later: an init container that is restarted for ever runs beside the others.
            let always = text_of(entry, "restartPolicy").as_deref() == Some("Always");
            let kind = if kind == ContainerKind::Init && always {
                ContainerKind::Sidecar
            } else {
                kind
            };
            let status = states.get(&name).copied().unwrap_or(&Value::Null);
            found.push(container(entry, name, kind, spec, status));
        }
    }
    found
}

fn container(
    entry: &Value,
    name: String,
    kind: ContainerKind,
    spec: &Value,
    status: &Value,
) -> Container {
    let nothing = Value::Null;
    let resources = entry.get("resources").unwrap_or(&nothing);
    let security = entry.get("securityContext").unwrap_or(&nothing);
    let mut granted = quantities(resources, "requests");
    // Limits and requests of extended resources are equal; where one is missing, the other counts.
    granted.extend(quantities(resources, "limits"));
    granted.retain(|_, quantity| quantity != "0");
    let capabilities = security
        .get("capabilities")
        .and_then(|c| c.get("add"))
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let user = |value: &Value| value.get("runAsUser").and_then(Value::as_i64);
    Container {
        name,
        kind,
        image: text_of(entry, "image"),
        // Without a registry's name it is the runtime's own number of the image.
        digest: text_of(status, "imageID")
            .as_deref()
            .and_then(|id| id.rsplit_once('@'))
            .map(|(_, digest)| digest.to_owned()),
        resources: granted,
        claims: list(resources, "claims")
            .filter_map(|c| text_of(c, "name"))
            .collect(),
        privileged: flag(security, "privileged"),
        capabilities: capabilities
            .iter()
            .filter_map(Value::as_str)
            .map(|c| line(c, 64).trim_start_matches("CAP_").to_ascii_uppercase())
            .take(64)
            .collect(),
        run_as_user: user(security).or_else(|| spec.get("securityContext").and_then(user)),
        mounts: mounts(entry, spec),
        state: state(status),
        restarts: status
            .get("restartCount")
            .and_then(Value::as_u64)
            .and_then(|n| u32::try_from(n).ok())
            .unwrap_or(0),
        ready: flag(status, "ready"),
        message: status
            .get("state")
            .and_then(|s| s.get("waiting"))
            .and_then(|w| message(w, "message")),
    }
}

/// Volumes at places that matter, in words.
fn mounts(container: &Value, spec: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for mount in list(container, "volumeMounts") {
        let Some(path) = text_of(mount, "mountPath") else {
            continue;
        };
        let place = path.trim_end_matches('/');
        if !MOUNTS.contains(&place) && !place.starts_with("/dev/infiniband/") {
            continue;
        }
        let name = text_of(mount, "name");
        let volume = list(spec, "volumes").find(|v| text_of(v, "name") == name);
        found.insert(place.to_owned(), volume.map_or_else(String::new, what));
    }
    found
}

/// `emptyDir Memory 8Gi`, `hostPath /dev/infiniband`.
fn what(volume: &Value) -> String {
    if let Some(path) = volume.get("hostPath") {
        return format!("hostPath {}", text_of(path, "path").unwrap_or_default());
    }
    if let Some(empty) = volume.get("emptyDir") {
        let words = [text_of(empty, "medium"), text_of(empty, "sizeLimit")];
        return words
            .into_iter()
            .flatten()
            .fold("emptyDir".to_owned(), |all, word| format!("{all} {word}"));
    }
    let kind = volume
        .as_object()
        .and_then(|v| v.keys().find(|k| *k != "name"));
    kind.map(|k| line(k, 64)).unwrap_or_default()
}

fn state(status: &Value) -> ContainerState {
    let nothing = Value::Null;
    let now = status.get("state").unwrap_or(&nothing);
    let last = status
        .get("lastState")
        .and_then(|s| s.get("terminated"))
        .map(ended);
    if let Some(running) = now.get("running") {
        return ContainerState::Running(text_of(running, "startedAt").unwrap_or_default());
    }
    if let Some(waiting) = now.get("waiting") {
        return ContainerState::Waiting(text_of(waiting, "reason").unwrap_or_default(), last);
    }
    match now.get("terminated") {
        Some(terminated) => ContainerState::Ended(ended(terminated)),
        None => ContainerState::Unknown,
    }
}

fn ended(terminated: &Value) -> Ended {
    Ended {
        code: terminated
            .get("exitCode")
            .and_then(Value::as_i64)
            .and_then(|n| i32::try_from(n).ok())
            .unwrap_or(0),
        reason: text_of(terminated, "reason"),
    }
}
