//! The RDMA devices that the pod was granted are inside its container.
//!
//! The scheduler grants a resource or a device claim; a device plugin or a driver then puts device nodes into the
//! container. What was granted and did not arrive leaves UCX with TCP, and the pod's spec looks right all the same.
//! Fewer nodes than slots are normal with shared device plugins, which count slots; EFA's plugin counts devices.

use model::Grade;

use super::view::PodView;
use crate::check::{Cause, Check, Run};
use crate::fabric::{EFA, is_rdma_resource};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/rdma-devices";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA devices that the pod was granted are inside",
    source: include_str!("rdma_devices.rs"),
    causes: &[GRANTED_NONE, EFA_FEWER],
    notes: &[NOT_GRANTED],
    run: Run::Pod(run),
};

const GRANTED_NONE: Cause = Cause {
    id: "rdma-granted-no-device",
    what: "the pod was granted RDMA devices, and there is no device node in the container",
    why: "UCX and libfabric open device nodes: without one they use TCP without a word, and nothing in the pod's spec shows it",
    fix: "look at the device plugin, or the claim's driver, on the pod's node: its log says whether it allocated a device (a wrong selector, a port in Ethernet mode, a plugin that was restarted since); then delete the pod, so that it is granted anew",
    quiet_if: "a uverbs node is there; /dev could not be listed; the grant is a compute domain or GPUs; a claim whose kind only its name tells is a warning",
    source: "Kubernetes device plugin API (Allocate); Mellanox/k8s-rdma-shared-dev-plugin#94, #109",
};

const EFA_FEWER: Cause = Cause {
    id: "efa-fewer-than-granted",
    what: "fewer EFA devices are in the container than the pod was granted",
    why: "KV moves over fewer rails than the deployment was sized for",
    fix: "look at the EFA device plugin on the pod's node, then delete the pod, so that it is granted anew",
    quiet_if: "as many or more; another resource, whose plugin may count slots",
    source: "EFA device plugin for Kubernetes: one device for each unit of vpc.amazonaws.com/efa",
};

const NOT_GRANTED: Cause = Cause {
    id: "rdma-device-not-granted",
    what: "RDMA devices are in the container, and the pod was granted none",
    why: "they came another way (the container runtime, an image variable, a device injector): they work, and the scheduler does not count them, so the pod may land on a node without them",
    fix: "none; request the cluster's RDMA resource where the nodes are not all alike",
    quiet_if: "the pod was granted a resource or a claim, is privileged, or mounts the host's devices",
    source: "Kubernetes device plugin API; NRI and CDI device injection",
};

/// What a pod was granted, in words.
struct Granted {
    words: String,
    /// Devices of EFA; its plugin counts devices.
    efa: Option<usize>,
    /// Only the name of a claim tells that it is a NIC.
    by_name: bool,
}

fn granted(view: &PodView<'_>) -> Option<Granted> {
    let container = view.container?;
    let mut words = Vec::new();
    let mut efa = None;
    for (name, quantity) in &container.resources {
        if name == EFA {
            efa = quantity.parse().ok();
            words.push(format!("{name}: {quantity}"));
        } else if is_rdma_resource(name) {
            words.push(format!("{name}: {quantity}"));
        }
    }
    let by_name = words.is_empty();
    for claim in &container.claims {
        let behind = view.object.claims.get(claim).map_or("", String::as_str);
        if is_nic(claim) || is_nic(behind) {
            words.push(format!("the device claim {claim}"));
        }
    }
    (!words.is_empty()).then(|| Granted {
        words: words.join(", "),
        efa,
        by_name,
    })
}

/// By the words of its name; the classes of a claim are not part of a pod.
fn is_nic(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words = || name.split(|c: char| !c.is_ascii_alphanumeric());
    let nvlink = name.contains("compute-domain") || name.contains("imex");
    !nvlink
        && (["rdma", "roce", "infiniband"]
            .iter()
            .any(|w| name.contains(w))
            || words().any(|w| matches!(w, "nic" | "nics" | "ib" | "hca" | "efa")))
}

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let (Some(seen), Some(container)) = (view.seen(), view.container) else {
        return;
    };
    let rdma = &seen.rdma;
    // Nothing is known where nobody could list the nodes.
    if !rdma.nodes_present.is_seen() {
        return;
    }
    let inside: Vec<&str> = rdma
        .nodes
        .iter()
        .filter(|(name, node)| name.starts_with("uverbs") && node.exists.value() != Some(&false))
        .map(|(name, _)| name.as_str())
        .collect();
    let count = match inside.len() {
        1 => "1 device node is".to_owned(),
        n => format!("{n} device nodes are"),
    };
    let Some(granted) = granted(view) else {
        let mounts = container
            .mounts
            .keys()
            .any(|path| path == "/dev" || path.starts_with("/dev/infiniband"));
        if !inside.is_empty() && !container.privileged && !mounts {
            findings.push(
                Finding::ok(
                    NAME,
                    format!("{count} in the container, and the pod was granted none"),
                )
                .told(&NOT_GRANTED)
                .grade(Grade::Observed),
            );
        }
        return;
    };
    if inside.is_empty() {
        let detail = format!(
            "{} was granted, and no device node is in the container",
            granted.words
        );
        let finding = if granted.by_name {
            Finding::warn(NAME, &GRANTED_NONE, detail)
        } else {
            Finding::fail(NAME, &GRANTED_NONE, detail)
        };
        findings.push(finding.seen(&rdma.nodes_present, "no device node"));
        return;
    }
    let detail = format!(
        "{} was granted, and {count} in the container",
        granted.words
    );
    findings.push(
        match granted.efa {
            Some(number) if inside.len() < number => Finding::warn(NAME, &EFA_FEWER, detail),
            _ => Finding::ok(NAME, detail),
        }
        .seen(&rdma.nodes_present, "listed"),
    );
}

#[cfg(test)]
mod tests {
    use super::is_nic;

    #[test]
    fn claims_on_network_cards_by_name() {
        for yes in ["rdma-nics", "roce0", "ib", "gpu-and-nic"] {
            assert!(is_nic(yes), "{yes}");
        }
        for no in [
            "gpus",
            "compute-domain-channel",
            "imex-nic-domain",
            "unique",
            "",
        ] {
            assert!(!is_nic(no), "{no}");
        }
    }
}
