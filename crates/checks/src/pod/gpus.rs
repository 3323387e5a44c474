//! The GPUs that the pod was granted are inside its container, and no others.
//!
//! Fewer than granted is a GPU that fell off the bus, or a plugin that failed. More than granted comes from a variable of
//! the image (NVIDIA_VISIBLE_DEVICES) or from a privileged container. Shared GPUs (time slicing, MPS) and MIG are counted
//! in shares, and claims in whatever their class says: those are left alone.

use model::Grade;

use super::view::PodView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/gpus";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "GPUs that the pod was granted are inside",
    source: include_str!("gpus.rs"),
    causes: &[FEWER],
    notes: &[MORE],
    run: Run::Pod(run),
};

const FEWER: Cause = Cause {
    id: "gpu-fewer-than-granted",
    what: "fewer GPUs are in the container than the pod was granted",
    why: "ranks without a GPU fail or hang, and KV with them; a GPU that fell off the bus is seen like this",
    fix: "compare nvidia-smi -L in the container and on the node, look for Xid 79 in the node's kernel log, and delete the pod so that it is granted anew",
    quiet_if: "as many or more; MIG, shared GPUs (a name that ends in .shared, or a node that says time-slicing or mps); GPUs by a device claim; accelerators of another vendor",
    source: "NVIDIA k8s-device-plugin: one GPU for each unit of nvidia.com/gpu unless it shares them",
};

const MORE: Cause = Cause {
    id: "gpu-more-than-granted",
    what: "more GPUs are in the container than the pod was granted",
    why: "more GPUs are visible than were granted (NVIDIA_VISIBLE_DEVICES of the image, or a privileged container): other pods may use them too",
    fix: "none; leave NVIDIA_VISIBLE_DEVICES to the device plugin where GPUs are not to be shared",
    quiet_if: "as many as granted",
    source: "NVIDIA container toolkit: NVIDIA_VISIBLE_DEVICES",
};

/// What NVIDIA's device plugin calls whole GPUs.
const GPU: &str = "nvidia.com/gpu";

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let (Some(seen), Some(container)) = (view.seen(), view.container) else {
        return;
    };
    let granted = container
        .resources
        .get(GPU)
        .and_then(|quantity| quantity.parse::<usize>().ok());
    let Some(granted) = granted.filter(|n| *n > 0) else {
        return;
    };
    let shared = view.node.is_some_and(|node| {
        node.labels
            .get("nvidia.com/gpu.sharing-strategy")
            .is_some_and(|s| !matches!(s.as_str(), "" | "none"))
            || node
                .labels
                .get("nvidia.com/gpu.product")
                .is_some_and(|p| p.ends_with("-SHARED"))
    });
    let gpus = &seen.gpu.gpus;
    if shared
        || gpus
            .iter()
            .any(|g| g.mig.value().is_some_and(|m| !m.is_empty()))
    {
        return;
    }
    // sysfs lists the GPUs of the node; those of the container have a device node that it may use.
    let inside: Vec<_> = gpus
        .iter()
        .filter(|g| g.node.exists.value() == Some(&true))
        .collect();
    let Some(first) = gpus.iter().find(|g| g.node.exists.is_seen()) else {
        return;
    };
    let detail = format!(
        "{GPU}: {granted} was granted, and {} visible",
        are(inside.len())
    );
    let finding = if inside.len() < granted {
        Finding::warn(NAME, &FEWER, detail)
    } else if inside.len() > granted {
        Finding::ok(NAME, detail).told(&MORE)
    } else {
        Finding::ok(NAME, detail)
    };
    findings.push(
        finding
            .grade(Grade::Observed)
            .seen(&first.node.exists, "device node"),
    );
}

fn are(count: usize) -> String {
    match count {
        0 => "none is".to_owned(),
        1 => "1 is".to_owned(),
        n => format!("{n} are"),
    }
}
