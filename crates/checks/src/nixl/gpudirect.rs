//! What UCX says about GPUDirect RDMA while it opens devices and registers memory.
//!
//! At debug level UCX tells for each device whether peer memory is there (`cuda GPUDirect RDMA is disabled`) and
//! whether dma-buf works. Either one is enough, so only both together mean copies through host memory. Registration
//! that fails with error 524 is a network card that is not beside the GPU while data direct is on (GB200, GB300).

use std::collections::{BTreeMap, BTreeSet};

use model::Reason;
use model::observation::Origin;
use model::observation::log::Event;
use model::observation::modules::Presence;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::gpudirect::NOTHING;
use crate::node_view::NodeView;

const NAME: &str = "nixl/gpudirect";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX reaches GPU memory from the network card",
    source: include_str!("gpudirect.rs"),
    causes: &[DIRECT_NIC, NO_CUDA_DMABUF, REGISTRATION],
    notes: &[],
    run: Run::Place(run),
};

const DIRECT_NIC: Cause = Cause {
    id: "ucx-direct-nic-524",
    what: "registration of GPU memory as dma-buf fails with error 524 on a network card",
    why: "UCX exported the memory for the card beside the GPU and registers it on another one, which the driver refuses: the transfer fails",
    fix: "bring up the cards beside the GPUs (their ports may be down); as a way around UCX_IB_DIRECT_NIC=n",
    quiet_if: "never",
    source: "UCX ib_md.c; NIXL on GB200",
};

const NO_CUDA_DMABUF: Cause = Cause {
    id: "gdr-dmabuf-no-cuda-support",
    what: "the CUDA driver does not export dma-buf",
    why: "closed kernel modules or an old GPU: only peer memory (nvidia_peermem) is left for GPUDirect RDMA",
    fix: "load nvidia_peermem, or use the open kernel modules of the driver",
    quiet_if: "nvidia_peermem is loaded, or UCX says that GPUDirect RDMA is enabled",
    source: "UCX cuda_copy_md.c",
};

const REGISTRATION: Cause = Cause {
    id: "gpu-memory-registration-failed",
    what: "UCX cannot register GPU memory on an RDMA device",
    why: "the transfer fails, or goes another way",
    fix: "look at the error: rights, locked memory, the state of nvidia_peermem or dma-buf",
    quiet_if: "the error is 524, which has a cause of its own; want of locked memory",
    source: "UCX ucp_mm.c: failed to register address",
};

/// What was said about one device.
#[derive(Default)]
struct Device {
    peer: Option<bool>,
    dmabuf: Option<bool>,
    origins: Vec<Origin>,
}

/// Peer memory and dma-buf, where the log tells.
type Ways = (Option<bool>, Option<bool>);

fn devices(view: &NodeView<'_>) -> BTreeMap<String, Device> {
    let log = &view.seen.log;
    let mut all: BTreeMap<String, Device> = BTreeMap::new();
    for (pattern, peer, works) in [
        ("ucx-gpudirect-disabled", true, false),
        ("ucx-gpudirect-enabled", true, true),
        ("ucx-dmabuf-not-supported", false, false),
        ("ucx-dmabuf-supported", false, true),
    ] {
        for event in log.of(pattern) {
            if peer && event.field("memory").is_some_and(|m| m.trim() != "cuda") {
                continue;
            }
            let name = event.field("device").unwrap_or("a device").trim();
            let device = all.entry(name.to_owned()).or_default();
            device.origins.push(event.origin.clone());
            let known = if peer {
                &mut device.peer
            } else {
                &mut device.dmabuf
            };
            *known = Some(known.unwrap_or(false) || works);
        }
    }
    all
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let devices = devices(view);
    let mut groups: BTreeMap<Ways, (Vec<&str>, Vec<Origin>)> = BTreeMap::new();
    for (name, device) in &devices {
        let group = groups.entry((device.peer, device.dmabuf)).or_default();
        group.0.push(name);
        group.1.extend(device.origins.iter().cloned());
    }
    for ((peer, dmabuf), (names, origins)) in groups {
        let who = names.join(", ");
        let finding = match (peer, dmabuf) {
            (Some(true), _) => Finding::ok(
                NAME,
                format!("{who}: GPUDirect RDMA is enabled (peer memory)"),
            ),
            (_, Some(true)) => Finding::ok(
                NAME,
                format!("{who}: GPUDirect RDMA is possible, dma-buf is supported by the card"),
            ),
            (Some(false), Some(false)) => Finding::fail(
                NAME,
                &NOTHING,
                format!(
                    "{who}: no GPUDirect RDMA, neither peer memory nor dma-buf: GPU memory is copied through the host"
                ),
            ),
            _ => Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "{who}: one of the two ways to GPUDirect RDMA is off; the log does not tell the other, and either is enough"
                ),
            ),
        };
        findings.push(finding.read_at(&origins, "GPUDirect"));
    }
    cuda(view, &devices, findings);
    registration(view, findings);
}

fn cuda(view: &NodeView<'_>, devices: &BTreeMap<String, Device>, findings: &mut Findings) {
    let events: Vec<&Event> = view.seen.log.of("ucx-cuda-dmabuf-not-supported").collect();
    let Some(first) = events.first() else { return };
    let modules = &view.seen.modules;
    let peermem = |state| {
        modules.presence("nvidia_peermem") == state || modules.presence("nv_peer_mem") == state
    };
    if peermem(Presence::Loaded) || devices.values().any(|d| d.peer == Some(true)) {
        return;
    }
    let numbers: BTreeSet<&str> = events.iter().filter_map(|e| e.field("device")).collect();
    let numbers: Vec<&str> = numbers.into_iter().collect();
    let what = format!("CUDA device {}: no dma-buf", numbers.join(", "));
    let none = (modules.presence("nvidia_peermem") == Presence::Absent
        && modules.presence("nv_peer_mem") == Presence::Absent)
        || (!devices.is_empty() && devices.values().all(|d| d.peer == Some(false)));
    let finding = if none {
        Finding::fail(
            NAME,
            &NO_CUDA_DMABUF,
            format!("{what}, and no peer memory either"),
        )
    } else {
        Finding::warn(
            NAME,
            &NO_CUDA_DMABUF,
            format!("{what}; whether nvidia_peermem is loaded is not shown"),
        )
    };
    findings.push(finding.read_at(std::slice::from_ref(&first.origin), "dma-buf"));
}

fn registration(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let is_524 = |e: &&Event| e.field("errno") == Some("524");
    let dmabuf: Vec<&Event> = log.of("ucx-dmabuf-registration-failed").collect();
    let failed: Vec<&Event> = log.of("ucx-registration-failed").collect();
    let mut cards: Vec<&str> = failed
        .iter()
        .filter_map(|e| e.field("md"))
        .map(str::trim)
        .collect();
    cards.sort_unstable();
    cards.dedup();
    let who = if cards.is_empty() {
        "a card that the log does not name".to_owned()
    } else {
        cards.join(", ")
    };
    let origins: Vec<Origin> = dmabuf
        .iter()
        .chain(&failed)
        .map(|e| e.origin.clone())
        .collect();
    if dmabuf.iter().any(is_524) {
        findings.push(
            Finding::fail(
                NAME,
                &DIRECT_NIC,
                format!("registration of GPU memory fails with error 524 on {who}"),
            )
            .read_at(&origins, "registration failed"),
        );
        return;
    }
    let gpu = |e: &&&Event| {
        let memory = e.field("memory").is_some_and(|m| m.contains("cuda"));
        let want_of_memory = e
            .field("error")
            .is_some_and(|t| t.contains("Cannot allocate memory") || t.contains("max locked"));
        memory && !want_of_memory
    };
    if let Some(event) = failed.iter().find(gpu) {
        let error = event.field("error").unwrap_or_default().trim();
        findings.push(
            Finding::fail(
                NAME,
                &REGISTRATION,
                format!("GPU memory cannot be registered on {who}: {error}"),
            )
            .read_at(std::slice::from_ref(&event.origin), "registration failed"),
        );
    }
}
