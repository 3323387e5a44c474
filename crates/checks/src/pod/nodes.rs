//! What the cluster's nodes offer, and why a worker that waits for a node finds none.
//!
//! The scheduler counts what it did not find on how many nodes; the nodes say more: a resource that no node offers at all
//! is a device plugin that has registered nothing, and one that is there on closed nodes needs no plugin. Nodes can be
//! read only with rights on the whole cluster; without them this is left out.

use std::collections::BTreeMap;

use model::pod::ContainerKind;
use model::{ClusterNode, Container, FaultKind, Grade, PodObject, Reason};

use super::access;
use super::faults;
use super::view::{PodView, PodsView};
use crate::check::{Cause, Check, Run};
use crate::fabric::{EFA, is_rdma_resource};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/nodes";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the nodes offer what the workers ask for",
    source: include_str!("nodes.rs"),
    causes: &[NOWHERE, CLOSED],
    notes: &[],
    run: Run::Pods(run),
};

const NOWHERE: Cause = Cause {
    id: "rdma-resource-zero-allocatable",
    what: "a worker waits for a node, and no node of the cluster offers a resource that it asks for",
    why: "the worker never starts: the device plugin has registered nothing, has another name for its resource, or finds no device by its selectors",
    fix: "kubectl get nodes -o json shows allocatable; where the resource is 0 or absent, look at the log of the device plugin on those nodes (selectors, link type, kubelet registration) and restart it; where it has another name, ask for that one",
    quiet_if: "a node offers it (then its devices are in use); the pod has a node; nodes cannot be read; a warning where no node has the accelerators either, since an autoscaler may bring such nodes",
    source: "Mellanox/k8s-rdma-shared-dev-plugin#109, #121, #44",
};

const CLOSED: Cause = Cause {
    id: "nodes-closed-to-worker",
    what: "every node that offers what a waiting worker asks for is cordoned, not ready, tainted, or excluded by its node selector",
    why: "the worker waits although the devices are there",
    fix: "kubectl get nodes shows which are cordoned (uncordon them when the maintenance is over) and not ready; for taints add tolerations to the worker",
    quiet_if: "one of these nodes is open to it; no node offers what it asks for (rdma-resource-zero-allocatable)",
    source: "kubernetes pkg/scheduler: taints and tolerations, node selectors",
};

/// Kinds of nodes that are told one by one.
const KINDS: usize = 6;

fn run(view: &PodsView<'_>, findings: &mut Findings) {
    let nodes = match &view.around.nodes {
        Ok(nodes) => nodes.as_slice(),
        Err(fault) => {
            let detail = if fault.kind == FaultKind::ForbiddenNodes {
                fault.detail.clone()
            } else {
                format!("nodes could not be read: {}", fault.detail)
            };
            findings.push(Finding::fault(
                access::NAME,
                faults::cause(fault.kind),
                fault.kind.reason(),
                detail,
            ));
            return;
        }
    };
    if nodes.is_empty() {
        return;
    }
    offers(view, nodes, findings);
    for pod in view.pods.iter().filter(|p| waits(p)) {
        pending(pod, nodes, findings);
    }
}

fn waits(pod: &PodView<'_>) -> bool {
    pod.pod
        .probed
        .as_ref()
        .is_err_and(|fault| fault.kind == FaultKind::Unschedulable)
}

fn is_accelerator(name: &str) -> bool {
    name.split_once('/').is_some_and(|(_, kind)| {
        kind.starts_with("gpu") || kind.starts_with("mig-") || kind.starts_with("neuron")
    })
}

/// What is told of a node's resources.
fn is_told(name: &str) -> bool {
    name == EFA || is_rdma_resource(name) || is_accelerator(name)
}

/// A whole number of devices as Kubernetes writes it: a plugin that shares one card a thousand times offers `1k`
/// (kubernetes/apimachinery pkg/api/resource, Quantity.String).
fn devices(quantity: &str) -> Option<u64> {
    let end = quantity
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at_checked(end)?;
    let scale: u64 = match unit {
        "" => 1,
        "k" | "e3" | "E3" => 1_000,
        "M" | "e6" | "E6" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// What a pod asks for: what its containers ask for together, or what an init container asks for before them, with the
/// sidecars that run by then, where that is more (kubernetes pkg/api/v1/resource, PodRequests).
fn asked(pod: &PodObject) -> BTreeMap<&str, u64> {
    fn add<'p>(sum: &mut BTreeMap<&'p str, u64>, container: &'p Container) {
        for (name, quantity) in &container.resources {
            let all = sum.entry(name).or_default();
            *all = all.saturating_add(devices(quantity).unwrap_or(1));
        }
    }
    let mut all: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sidecars: BTreeMap<&str, u64> = BTreeMap::new();
    let mut most: BTreeMap<&str, u64> = BTreeMap::new();
    for container in &pod.containers {
        match container.kind {
            ContainerKind::Main => add(&mut all, container),
            ContainerKind::Sidecar => {
                add(&mut all, container);
                add(&mut sidecars, container);
            }
            ContainerKind::Init => {
                let mut then = sidecars.clone();
                add(&mut then, container);
                for (name, count) in then {
                    let held = most.entry(name).or_default();
                    *held = (*held).max(count);
                }
            }
            ContainerKind::Ephemeral => {}
        }
    }
    for (name, count) in most {
        let held = all.entry(name).or_default();
        *held = (*held).max(count);
    }
    all
}

fn has(node: &ClusterNode, name: &str, count: u64) -> bool {
    node.allocatable
        .get(name)
        .and_then(|quantity| devices(quantity))
        .is_some_and(|offered| offered >= count)
}

/// `a, b and 3 more`.
fn names<'n>(nodes: &[&'n ClusterNode]) -> String {
    const MOST: usize = 3;
    let shown: Vec<&'n str> = nodes.iter().take(MOST).map(|n| n.name.as_str()).collect();
    match nodes.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Nodes that offer the same, in one line.
fn offers(view: &PodsView<'_>, nodes: &[ClusterNode], findings: &mut Findings) {
    let wanted: Vec<BTreeMap<&str, u64>> = view.pods.iter().map(|p| asked(p.object)).collect();
    let is_wanted = |name: &str| is_told(name) || wanted.iter().any(|w| w.contains_key(name));
    let mut kinds: BTreeMap<String, Vec<&ClusterNode>> = BTreeMap::new();
    for node in nodes {
        let list: Vec<String> = node
            .allocatable
            .iter()
            .filter(|(name, _)| is_wanted(name))
            .map(|(name, quantity)| format!("{name}: {quantity}"))
            .collect();
        if !list.is_empty() {
            kinds.entry(list.join(", ")).or_default().push(node);
        }
    }
    if kinds.is_empty() {
        findings.push(Finding::skipped(
            NAME,
            Reason::NotVisible,
            "no node offers accelerators, RDMA or EFA devices as resources; device claims are not counted here",
        ));
        return;
    }
    let mut kinds: Vec<(String, Vec<&ClusterNode>)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    let more = kinds.len().saturating_sub(KINDS);
    for (list, nodes) in kinds.into_iter().take(KINDS) {
        let count = match nodes.len() {
            1 => format!("1 node ({})", names(&nodes)),
            n => format!("{n} nodes ({})", names(&nodes)),
        };
        let mut finding =
            Finding::ok(NAME, format!("{list} allocatable on {count}")).grade(Grade::Observed);
        let cordoned = nodes.iter().filter(|n| n.cordoned).count();
        let down = nodes.iter().filter(|n| !n.ready).count();
        for (count, what) in [(cordoned, "cordoned"), (down, "not ready")] {
            if count > 0 {
                finding = finding.note(format!("{count} of them {what}"));
            }
        }
        findings.push(finding);
    }
    if more > 0 {
        findings.push(Finding::ok(
            NAME,
            format!("{more} more kinds of nodes are not listed"),
        ));
    }
}

/// Why a pod that waits finds no node.
fn pending(pod: &PodView<'_>, nodes: &[ClusterNode], findings: &mut Findings) {
    let asked = asked(pod.object);
    let nowhere: Vec<(&str, u64)> = asked
        .iter()
        .filter(|(name, count)| !nodes.iter().any(|n| has(n, name, **count)))
        .map(|(name, count)| (*name, *count))
        .collect();
    if !nowhere.is_empty() {
        let list: Vec<String> = nowhere
            .iter()
            .map(|(name, count)| format!("{name}: {count}"))
            .collect();
        let most = |name: &str| {
            nodes
                .iter()
                .filter_map(|n| devices(n.allocatable.get(name)?))
                .max()
        };
        let offered: Vec<String> = nowhere
            .iter()
            .map(|(name, _)| match most(name) {
                Some(n) => format!("{name} at most {n}"),
                None => format!("{name} on none"),
            })
            .collect();
        let detail = format!(
            "the worker asks for {}, which none of {} nodes offers ({})",
            list.join(", "),
            nodes.len(),
            offered.join(", ")
        );
        // An autoscaler may bring nodes; a node with the accelerators and without the fabric stays as it is.
        let fabric_only = nowhere.iter().all(|(name, _)| !is_accelerator(name));
        let finding = if fabric_only && asked.keys().any(|name| is_accelerator(name)) {
            Finding::fail(NAME, &NOWHERE, detail)
        } else {
            Finding::warn(NAME, &NOWHERE, detail)
        };
        findings.push(pod.about(finding.grade(Grade::Observed)));
        return;
    }
    let able: Vec<&ClusterNode> = nodes
        .iter()
        .filter(|n| asked.iter().all(|(name, count)| has(n, name, *count)))
        .collect();
    if able.is_empty() {
        findings.push(pod.about(Finding::skipped(
            NAME,
            Reason::NotVisible,
            "nodes offer each resource that the worker asks for, and none offers all of them",
        )));
        return;
    }
    let mut closed: BTreeMap<String, usize> = BTreeMap::new();
    let mut open = 0_usize;
    for node in &able {
        match closed_by(node, pod.object) {
            Some(why) => *closed.entry(why).or_default() += 1,
            None => open = open.saturating_add(1),
        }
    }
    let nodes = match able.len() {
        1 => "1 node offers".to_owned(),
        n => format!("{n} nodes offer"),
    };
    if open > 0 {
        findings.push(pod.about(Finding::skipped(
            NAME,
            Reason::NotRunning,
            format!(
                "{nodes} what the worker asks for, {open} of them open to it: what they have is in use, or something else than resources keeps it away"
            ),
        )));
        return;
    }
    let why: Vec<String> = closed
        .iter()
        .map(|(why, count)| format!("{count} {why}"))
        .collect();
    findings.push(
        pod.about(
            Finding::warn(
                NAME,
                &CLOSED,
                format!(
                    "{nodes} what the worker asks for, and none is open to it: {}",
                    why.join(", ")
                ),
            )
            .grade(Grade::Observed),
        ),
    );
}

/// What keeps a pod from a node, where something that can be seen does.
fn closed_by(node: &ClusterNode, pod: &PodObject) -> Option<String> {
    if node.cordoned {
        return Some("cordoned".to_owned());
    }
    if !node.ready {
        return Some("not ready".to_owned());
    }
    let tolerated = |taint: &str| {
        let key = taint.split(['=', ':']).next().unwrap_or(taint);
        pod.tolerates.iter().any(|t| t == "*" || t == key)
    };
    if let Some(taint) = node.taints.iter().find(|t| !tolerated(t)) {
        return Some(format!("tainted {taint}"));
    }
    // Only labels that are kept of nodes can be held against the selector.
    let unlike = pod
        .node_selector
        .iter()
        .find(|(key, value)| node.labels.get(*key).is_some_and(|has| has != *value));
    unlike.map(|(key, value)| format!("without the label {key}={value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(kind: ContainerKind, resource: &str, quantity: &str) -> Container {
        Container {
            kind,
            resources: [(resource.to_owned(), quantity.to_owned())].into(),
            ..Container::default()
        }
    }

    #[test]
    fn what_a_pod_asks_for_is_what_it_needs_at_once() {
        use ContainerKind::{Ephemeral, Init, Main, Sidecar};
        let gpu = "nvidia.com/gpu";
        let of = |list: &[(ContainerKind, &str)]| {
            let containers = list.iter().map(|(k, q)| container(*k, gpu, q)).collect();
            let pod = PodObject {
                containers,
                ..PodObject::default()
            };
            asked(&pod).get(gpu).copied()
        };
        // An init container has ended when the others begin.
        assert_eq!(of(&[(Main, "8"), (Init, "8")]), Some(8));
        assert_eq!(of(&[(Main, "4"), (Init, "8")]), Some(8));
        assert_eq!(of(&[(Main, "4"), (Main, "4")]), Some(8));
        assert_eq!(of(&[(Main, "4"), (Sidecar, "1")]), Some(5));
        assert_eq!(of(&[(Main, "4"), (Sidecar, "1"), (Init, "8")]), Some(9));
        assert_eq!(of(&[(Main, "4"), (Ephemeral, "4")]), Some(4));
    }

    #[test]
    fn devices_are_counted_as_kubernetes_writes_them() {
        let node = |quantity: &str| ClusterNode {
            allocatable: [("rdma/hca".to_owned(), quantity.to_owned())].into(),
            ..ClusterNode::default()
        };
        for (offered, count, is_enough) in [
            ("8", 8, true),
            ("7", 8, false),
            ("1k", 1, true),
            ("1k", 1_001, false),
            ("0", 1, false),
            ("many", 1, false),
        ] {
            assert_eq!(
                has(&node(offered), "rdma/hca", count),
                is_enough,
                "{offered}"
            );
        }
    }
}
