//! GPUs are visible and their driver answers.
//!
//! Accelerators of other vendors are named as such: they are never "no GPU", and the checks that are about
//! NVIDIA's say nothing about them. MIG instances have neither NVLink nor CUDA IPC between each other; RDMA from one
//! instance works.

use std::collections::BTreeMap;

use model::Reason;

use super::words::{count, label, listed};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/gpu";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "GPUs are visible and the driver answers",
    source: include_str!("gpu.rs"),
    causes: &[DRIVER, NONE, XID, XID_NVLINK],
    notes: &[MIG],
    run: Run::Place(run),
};

const DRIVER: Cause = Cause {
    id: "gpu-driver-not-answering",
    what: "nvidia-smi prints an error in place of its answer",
    why: "no process can use the GPUs before the driver is repaired",
    fix: "on the node: reload or reinstall the driver; in a container: restart it after the node's driver was updated",
    quiet_if: "the message is about one feature, such as NVLink or the topology matrix",
    source: "nvidia-smi: NVIDIA-SMI has failed, Failed to initialize NVML, Unable to determine the device handle",
};

const NONE: Cause = Cause {
    id: "gpu-none-visible",
    what: "the NVIDIA driver answers and lists no GPU where a KV worker runs",
    why: "the container was granted none, or every GPU has fallen off the bus",
    fix: "request nvidia.com/gpu for the container; on the node look for Xid 79 in the kernel log",
    quiet_if: "nothing says that a KV worker runs there (then it is skipped); accelerators of another vendor are there",
    source: "nvidia-smi: No devices were found",
};

const XID: Cause = Cause {
    id: "gpu-xid-fault",
    what: "the kernel log reports a fault of a GPU (Xid 79: it has fallen off the bus; 48, 95: memory; 119, 120: its own processor)",
    why: "processes on it fail or hang until it is reset, and its KV with them",
    fix: "drain the node and reset the GPU or the node; where it comes again, have the GPU repaired",
    quiet_if: "the Xid is one that programs cause (13, 31, 43, 45); the GPU was reset since",
    source: "NVIDIA GPU debug guidelines: Xid errors",
};

const XID_NVLINK: Cause = Cause {
    id: "gpu-xid-nvlink",
    what: "the kernel log reports an NVLink error (Xid 74, 144 to 150)",
    why: "transfers over NVLink of that GPU fail or fall back",
    fix: "look at nvidia-smi nvlink -s and the fabric manager; reset the GPU or the node; a link that stays down is hardware",
    quiet_if: "the GPU was reset since, and its links are active",
    source: "NVIDIA GPU debug guidelines: Xid errors",
};

const MIG: Cause = Cause {
    id: "gpu-mig",
    what: "MIG instances are in use",
    why: "MIG: no NVLink and no CUDA IPC between instances; RDMA from one instance works",
    fix: "none",
    quiet_if: "MIG is off",
    source: "NVIDIA MIG user guide",
};

/// Class codes of accelerators in a PCI inventory: 3D controllers, display controllers, processing accelerators.
const ACCELERATOR_CLASSES: [u32; 3] = [0x0302, 0x0380, 0x1200];

/// Vendors of accelerators other than NVIDIA.
fn other_vendor(vendor: u32) -> Option<&'static str> {
    Some(match vendor {
        0x1002 => "AMD",
        0x8086 => "Intel",
        0x1da3 => "Intel Gaudi",
        0x19e5 => "Huawei Ascend",
        0x1e52 => "Tenstorrent",
        0x1eec => "VeriSilicon",
        _ => return None,
    })
}

/// Accelerators of other vendors, as they are named.
pub(crate) fn others(view: &NodeView<'_>) -> Vec<String> {
    let mut named: Vec<String> = view
        .seen
        .gpu
        .other_accelerators
        .value()
        .cloned()
        .unwrap_or_default();
    for function in view.seen.host.pci.values() {
        let accelerator = function
            .class
            .value()
            .is_some_and(|c| ACCELERATOR_CLASSES.contains(c));
        if let Some(vendor) = function.vendor.value().copied().and_then(other_vendor)
            && accelerator
            && !named.iter().any(|n| n == vendor)
        {
            named.push(vendor.to_owned());
        }
    }
    for (module, vendor) in [("amdgpu", "amdgpu"), ("habanalabs", "habanalabs")] {
        let compute = view.seen.gpu.gpus.is_empty()
            && view.seen.modules.modules.contains_key(module)
            && view.seen.modules.presence("nvidia")
                != model::observation::modules::Presence::Loaded;
        if compute && named.is_empty() {
            named.push(vendor.to_owned());
        }
    }
    named
}

/// GPUs whose errors are told.
const MAX_TOLD: usize = 64;

/// Errors of GPUs in the kernel log, one line for each GPU and number.
fn xids(view: &NodeView<'_>, findings: &mut Findings) {
    let mut told: Vec<(&str, &str)> = Vec::new();
    for event in view.seen.log.of("kernel-xid") {
        let (Some(pci), Some(xid)) = (event.field("pci"), event.field("xid")) else {
            continue;
        };
        if told.contains(&(pci, xid)) || told.len() >= MAX_TOLD {
            continue;
        }
        told.push((pci, xid));
        let finding = match xid {
            "79" => Finding::fail(
                NAME,
                &XID,
                format!("the GPU at {pci} has fallen off the bus (Xid 79)"),
            ),
            "48" | "62" | "95" | "119" | "120" => Finding::warn(
                NAME,
                &XID,
                format!("the kernel log reports a fault of the GPU at {pci} (Xid {xid})"),
            ),
            "74" | "144" | "145" | "146" | "147" | "148" | "149" | "150" => Finding::warn(
                NAME,
                &XID_NVLINK,
                format!("the kernel log reports an NVLink error of the GPU at {pci} (Xid {xid})"),
            ),
            _ => Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "the kernel log has Xid {xid} of the GPU at {pci}; whether the GPU or a program is at fault cannot be seen"
                ),
            ),
        };
        findings.push(finding.read_at(std::slice::from_ref(&event.origin), "kernel log"));
    }
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    xids(view, findings);
    let seen = &view.seen.gpu;
    let others = others(view);
    let mut told = false;
    for error in &seen.errors {
        let low = error.text.to_ascii_lowercase();
        if low.contains("nvlink") || low.contains("topology") || low.contains("fabric") {
            continue;
        }
        told = true;
        let at = [error.origin.clone()];
        if low.starts_with("no devices were found") {
            let finding = if !others.is_empty() {
                Finding::skipped(
                    NAME,
                    Reason::NotApplicable,
                    "nvidia-smi lists no NVIDIA GPU",
                )
            } else if view.is_kv_worker() {
                Finding::fail(NAME, &NONE, "nvidia-smi lists no GPU")
            } else {
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    "nvidia-smi lists no GPU; whether one is needed here cannot be seen (--role tells)",
                )
                .required()
            };
            findings.push(finding.read_at(&at, "no device"));
        } else {
            findings.push(
                Finding::fail(NAME, &DRIVER, format!("nvidia-smi fails: {}", error.text))
                    .read_at(&at, "error"),
            );
        }
    }
    if !others.is_empty() {
        told = true;
        let finding = Finding::ok(
            NAME,
            format!(
                "accelerators of another vendor: {}; what is said about NVIDIA's does not apply to them",
                others.join(", ")
            ),
        );
        findings.push(finding.seen(&seen.other_accelerators, "listed"));
    }
    let named: Vec<_> = seen.gpus.iter().filter(|g| g.name.is_seen()).collect();
    if named.is_empty() {
        if !told && !view.facts.saved {
            let missing = model::observation::Missing {
                reason: Reason::NotVisible,
                why: "neither the driver nor a tool names one".into(),
            };
            findings.push(Finding::lacking(NAME, &missing, "GPUs"));
        }
        return;
    }
    let mut models: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for gpu in &named {
        if let Some(name) = gpu.name.value() {
            models.entry(name).or_default().push(label(gpu));
        }
    }
    let what: Vec<String> = models
        .iter()
        .map(|(name, labels)| format!("{name} ({})", listed(labels)))
        .collect();
    let driver = match seen.driver_version.value() {
        Some(version) => format!(", driver {version}"),
        None => String::new(),
    };
    let mut finding = Finding::ok(
        NAME,
        format!("{}: {}{driver}", count(named.len(), "GPU"), what.join(", ")),
    );
    if seen
        .gpus
        .iter()
        .any(|g| g.mig.value().is_some_and(|m| !m.is_empty()))
    {
        finding = finding.told(&MIG);
    }
    if let Some(first) = named.first() {
        finding = finding.seen(&first.name, "named");
    }
    findings.push(finding);
}
