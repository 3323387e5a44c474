//! Objects of the API server: what of a pod and of a node matters here, whatever shape they have.
//!
//! A field of another type than Kubernetes gives it counts as absent: one odd object must not hide the others. Texts are
//! kept short and without credentials; values of labels and annotations are kept only where their key is on a list.
//! Field names are those of the core/v1 API (kubernetes/api core/v1/types.go).

use std::collections::BTreeMap;

use model::{ClusterNode, PodObject};
use serde_json::Value;

use super::container;
use crate::credentials;

/// Characters of a message that are kept.
const MESSAGE: usize = 400;

/// Characters of a label or an annotation that are kept: a list of networks is the longest that is wanted.
const TEXT: usize = 8 * 1024;

/// Entries of a list or a mapping that are looked at. The API server's own limits are lower, or near.
const ENTRIES: usize = 512;

/// Labels of pods that name a role or a deployment.
pub(super) const LABELS: [&str; 34] = [
    super::GRAPH,
    "nvidia.com/dynamo-component",
    "nvidia.com/dynamo-component-type",
    "nvidia.com/dynamo-sub-component-type",
    "nvidia.com/dynamo-namespace",
    "llm-d.ai/role",
    "llm-d.ai/model",
    "llm-d.ai/inferenceServing",
    "llm-d.ai/inference-serving",
    "disaggregatedset.x-k8s.io/role",
    "disaggregatedset.x-k8s.io/name",
    "leaderworkerset.sigs.k8s.io/name",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "rolebasedgroup.workloads.x-k8s.io/name",
    "rolebasedgroup.workloads.x-k8s.io/role",
    "rbg.workloads.x-k8s.io/group-name",
    "rbg.workloads.x-k8s.io/role-name",
    "kserve.io/role",
    "kserve.io/component",
    "role-name",
    "pd-role",
    "modelserving.volcano.sh/name",
    "modelserving.volcano.sh/role",
    "inference-role",
    "model.aibrix.ai/role",
    "storm-service-name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "grove.io/podclique",
    // Which template it was made from.
    "pod-template-hash",
    "controller-revision-hash",
    "leaderworkerset.sigs.k8s.io/template-revision-hash",
    "grove.io/pod-template-hash",
];

/// Annotations of pods that attach networks or devices.
const ANNOTATIONS: [&str; 5] = [
    "k8s.v1.cni.cncf.io/networks",
    "k8s.v1.cni.cncf.io/network-status",
    "networking.gke.io/interfaces",
    "networking.gke.io/default-interface",
    "k8s.volcengine.com/pod-networks",
];

/// Labels of nodes that tell their GPUs, NICs and place.
const NODE_LABELS: [&str; 23] = [
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.clique",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig.config",
    "nvidia.com/cuda.driver.major",
    "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/instance-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "agentpool",
    "feature.node.kubernetes.io/pci-15b3.present",
    "feature.node.kubernetes.io/rdma.available",
    "feature.node.kubernetes.io/rdma.capable",
    "feature.node.kubernetes.io/network-sriov.capable",
    "cloud.google.com/gce-topology-block",
];

/// Reads a pod.
///
/// # Errors
///
/// What stands there instead of a pod, in words.
pub fn pod(json: &str) -> Result<PodObject, String> {
    let root = object(json, "Pod")?;
    let metadata = root.get("metadata").unwrap_or(&Value::Null);
    let name = text_of(metadata, "name").ok_or("a pod without a name")?;
    let spec = root.get("spec").unwrap_or(&Value::Null);
    let status = root.get("status").unwrap_or(&Value::Null);
    let mut addresses: Vec<String> = text_of(status, "podIP").into_iter().collect();
    for entry in list(status, "podIPs") {
        if let Some(ip) = text_of(entry, "ip")
            && !addresses.contains(&ip)
        {
            addresses.push(ip);
        }
    }
    Ok(PodObject {
        namespace: text_of(metadata, "namespace").unwrap_or_default(),
        name,
        uid: text_of(metadata, "uid").unwrap_or_default(),
        node: text_of(spec, "nodeName").filter(|n| !n.is_empty()),
        phase: text_of(status, "phase").unwrap_or_default(),
        deleting: metadata
            .get("deletionTimestamp")
            .is_some_and(Value::is_string),
        reason: text_of(status, "reason"),
        unschedulable: unschedulable(status),
        owner: owner(metadata),
        labels: kept(metadata, "labels", |key| LABELS.contains(&key)),
        annotations: kept(metadata, "annotations", |key| {
            ANNOTATIONS.contains(&key) || key.starts_with("rdma.ome.io/")
        }),
        containers: container::all(spec, status),
        message: message(status, "message"),
        host_network: flag(spec, "hostNetwork"),
        claims: claims(spec),
        addresses,
        host_address: text_of(status, "hostIP"),
        node_selector: kept(spec, "nodeSelector", |_| true),
        tolerates: tolerations(spec),
    })
}

/// Reads a node.
///
/// # Errors
///
/// What stands there instead of a node, in words.
pub fn node(json: &str) -> Result<ClusterNode, String> {
    let root = object(json, "Node")?;
    let metadata = root.get("metadata").unwrap_or(&Value::Null);
    let spec = root.get("spec").unwrap_or(&Value::Null);
    let status = root.get("status").unwrap_or(&Value::Null);
    Ok(ClusterNode {
        name: text_of(metadata, "name").ok_or("a node without a name")?,
        allocatable: quantities(status, "allocatable"),
        labels: kept(metadata, "labels", |key| NODE_LABELS.contains(&key)),
        ready: list(status, "conditions").any(|c| {
            text_of(c, "type").as_deref() == Some("Ready")
                && text_of(c, "status").as_deref() == Some("True")
        }),
        cordoned: flag(spec, "unschedulable"),
        taints: list(spec, "taints").filter_map(taint).collect(),
    })
}

/// The object of a text, of the kind that is wanted where it names one: items of a list do not.
pub(super) fn object(json: &str, kind: &str) -> Result<Value, String> {
    let root: Value = serde_json::from_str(json)
        .map_err(|error| format!("not JSON from line {} on", error.line().max(1)))?;
    if !root.is_object() {
        return Err("JSON, but no object".to_owned());
    }
    match root.get("kind") {
        None | Some(Value::Null) => Ok(root),
        Some(Value::String(found)) if found == kind => Ok(root),
        Some(Value::String(found)) => Err(format!(
            "an object of the kind {}, where a {kind} was expected",
            line(found, 64)
        )),
        Some(_) => Err(format!(
            "an object without a kind, where a {kind} was expected"
        )),
    }
}

/// One line of text, clipped, without credentials and control characters.
pub(super) fn line(text: &str, most: usize) -> String {
    let clipped: String = text.chars().take(most).collect();
    let cut = clipped.len() < text.len();
    let clean: String = clipped
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let mut clean = credentials::masked(clean.trim()).into_owned();
    if cut {
        clean.push('…');
    }
    clean
}

pub(super) fn text_of(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(|text| line(text, TEXT))
}

pub(super) fn message(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key)?.as_str()?;
    (!text.trim().is_empty()).then(|| credentials::masked_message(&line(text, MESSAGE)))
}

pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// The items of a list.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter(|item| item.is_object())
        .take(ENTRIES)
}

/// Entries of a mapping of texts whose keys are wanted.
fn kept(value: &Value, key: &str, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, String> {
    let Some(map) = value.get(key).and_then(Value::as_object) else {
        return BTreeMap::new();
    };
    map.iter()
        .filter(|(key, _)| wanted(key))
        .filter_map(|(key, value)| Some((line(key, 256), line(value.as_str()?, TEXT))))
        .take(ENTRIES)
        .collect()
}

fn owner(metadata: &Value) -> Option<(String, String)> {
    let controls = |o: &&Value| flag(o, "controller");
    let owner = list(metadata, "ownerReferences")
        .find(controls)
        .or_else(|| list(metadata, "ownerReferences").next())?;
    Some((text_of(owner, "kind")?, text_of(owner, "name")?))
}

fn unschedulable(status: &Value) -> Option<String> {
    let condition = list(status, "conditions").find(|c| {
        text_of(c, "type").as_deref() == Some("PodScheduled")
            && text_of(c, "status").as_deref() == Some("False")
    })?;
    // `Unschedulable`, or `SchedulingGated`.
    message(condition, "message").or_else(|| text_of(condition, "reason"))
}

fn claims(spec: &Value) -> BTreeMap<String, String> {
    list(spec, "resourceClaims")
        .filter_map(|claim| {
            let behind = text_of(claim, "resourceClaimTemplateName")
                .or_else(|| text_of(claim, "resourceClaimName"))
                .or_else(|| {
                    // The form before Kubernetes 1.31.
                    let source = claim.get("source")?;
                    text_of(source, "resourceClaimTemplateName")
                        .or_else(|| text_of(source, "resourceClaimName"))
                });
            Some((text_of(claim, "name")?, behind.unwrap_or_default()))
        })
        .collect()
}

fn tolerations(spec: &Value) -> Vec<String> {
    let mut keys: Vec<String> = list(spec, "tolerations")
        .map(|t| text_of(t, "key").filter(|k| !k.is_empty()))
        .map(|key| key.unwrap_or_else(|| "*".to_owned()))
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

fn taint(taint: &Value) -> Option<String> {
    let key = text_of(taint, "key")?;
    let effect = text_of(taint, "effect")?;
    // The third effect, PreferNoSchedule, keeps no pod away.
    if !matches!(effect.as_str(), "NoSchedule" | "NoExecute") {
        return None;
    }
    Some(match text_of(taint, "value").filter(|v| !v.is_empty()) {
        Some(value) => format!("{key}={value}:{effect}"),
        None => format!("{key}:{effect}"),
    })
}

/// Extended resources and nothing else: they have a domain.
pub(super) fn quantities(value: &Value, key: &str) -> BTreeMap<String, String> {
    let Some(map) = value.get(key).and_then(Value::as_object) else {
        return BTreeMap::new();
    };
    map.iter()
        .filter(|(name, _)| name.contains('/'))
        .filter_map(|(name, value)| {
            let quantity = match value {
                Value::String(text) => line(text, 32),
                Value::Number(number) => number.to_string(),
                _ => return None,
            };
            Some((line(name, 256), quantity))
        })
        .take(ENTRIES)
        .collect()
}
