//! Network cards can reach GPU memory (GPUDirect RDMA).
//!
//! There are two ways, and either is enough: a peer memory module (`nvidia_peermem`, whose use count of 0 is normal, or
//! the old `nv_peer_mem`), or dma-buf, which needs the open kernel modules of the driver, Linux 5.12 and a UCX that
//! registers it. So a missing module alone is no fault. What is possible is not yet used: only the protocol table and
//! counters show that. `memory types: host` of an RDMA device in `ucx_info -d` is no proof against dma-buf.

use model::observation::modules::Presence;
use model::observation::software::{MemoryDomain, UcxResources};
use model::{Reason, Status};

use super::words::{is_geforce, is_spark, label};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/gpudirect";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "network cards can reach GPU memory",
    source: include_str!("gpudirect.rs"),
    causes: &[NOTHING, PEERMEM, STALE, GEFORCE, SPARK, ACS],
    notes: &[HOST_ONLY, LEGACY, USE_COUNT, VIRTUAL, EFA],
    run: Run::Place(run),
};

pub(crate) const NOTHING: Cause = Cause {
    id: "gdr-nothing",
    what: "neither peer memory nor dma-buf works between an RDMA device and the GPU",
    why: "every GPU transfer is copied through host memory",
    fix: "load nvidia_peermem, or use the open kernel modules of the driver with Linux 5.12 or newer (dma-buf)",
    quiet_if: "one of the two works; KV buffers are in host memory; no GPU",
    source: "UCX ib_md.c; ucx_info -d",
};

const PEERMEM: Cause = Cause {
    id: "gdr-peermem-missing",
    what: "no peer memory module is loaded, and dma-buf cannot take its place",
    why: "the network card cannot map GPU memory, so KV is copied through host memory",
    fix: "modprobe nvidia-peermem (GPU operator: driver.rdma.enabled), or the open kernel modules with Linux 5.12 or newer",
    quiet_if: "dma-buf works or may work; no GPU; EFA, which uses dma-buf",
    source: "NVIDIA GPU operator; UCX ib_md.c:1417-1455",
};

const STALE: Cause = Cause {
    id: "gdr-peermem-stale-abi",
    what: "the kernel refuses to load nvidia_peermem (Invalid argument)",
    why: "the module was built against other RDMA modules, or these have no peer memory interface: that way to GPUDirect is shut",
    fix: "rebuild the GPU driver after the RDMA drivers (OFED, DOCA) were installed, or use dma-buf",
    quiet_if: "dma-buf works; the module is loaded now",
    source: "nvidia-peermem.c; NVIDIA GPU operator",
};

const GEFORCE: Cause = Cause {
    id: "gdr-geforce-unsupported",
    what: "a consumer GPU",
    why: "GPUDirect RDMA is not offered on it: copies through host memory are the best possible",
    fix: "another GPU, or KV buffers in host memory",
    quiet_if: "RTX PRO and data center GPUs",
    source: "NVIDIA GPUDirect RDMA",
};

const SPARK: Cause = Cause {
    id: "gdr-dgx-spark",
    what: "a DGX Spark (GB10), or a system like it",
    why: "one memory for CPU and GPU, without classic GPUDirect RDMA; its link can be slow with every link check green",
    fix: "measure the bandwidth (ib_write_bw): nothing else tells",
    quiet_if: "other systems",
    source: "NVIDIA: DGX Spark porting guide",
};

const ACS: Cause = Cause {
    id: "gdr-acs-bare-metal",
    what: "PCIe access control (ACS) redirects traffic between devices on bare metal",
    why: "GPU and network card then talk through the root complex: half the bandwidth, or a hang",
    fix: "switch ACS off on the bridges above GPUs and cards, and boot with iommu=pt",
    quiet_if: "virtual machines, where ACS must stay on; what is known does not show bare metal; bridges without GPUs and cards",
    source: "NVIDIA NCCL: PCI access control services",
};

const HOST_ONLY: Cause = Cause {
    id: "gdr-host-only-list-is-not-proof",
    what: "an RDMA device of ucx_info -d lists host memory only, and registers dma-buf",
    why: "`memory types: host` beside dma-buf is no sign of copies: UCX registers GPU memory through dma-buf",
    fix: "none",
    quiet_if: "always",
    source: "UCX ucp_context.c",
};

const LEGACY: Cause = Cause {
    id: "gdr-legacy-nv-peer-mem",
    what: "the old module nv_peer_mem is loaded",
    why: "nv_peer_mem is superseded by nvidia_peermem; UCX still accepts it",
    fix: "nvidia_peermem or dma-buf",
    quiet_if: "always",
    source: "UCX ib_md.c",
};

const USE_COUNT: Cause = Cause {
    id: "gdr-use-count-zero",
    what: "nvidia_peermem has a use count of 0",
    why: "its use count of 0 is normal",
    fix: "none",
    quiet_if: "always",
    source: "lsmod",
};

const VIRTUAL: Cause = Cause {
    id: "gdr-vm-no-ats",
    what: "a virtual machine",
    why: "in a virtual machine peer-to-peer needs ATS on the card, which cannot be seen from inside",
    fix: "enable ATS in the card's firmware",
    quiet_if: "always a note",
    source: "NVIDIA NCCL troubleshooting",
};

const EFA: Cause = Cause {
    id: "gdr-efa-peermem",
    what: "efa_nv_peermem is not loaded",
    why: "EFA needs no module of its own with Linux 5.12 or newer: it uses dma-buf",
    fix: "none",
    quiet_if: "always",
    source: "AWS EFA driver",
};

/// Transports of RDMA hardware stand in such a domain.
fn is_rdma(domain: &MemoryDomain) -> bool {
    domain.component.as_deref() == Some("ib")
        || (domain.component.is_none()
            && ["mlx", "bnxt_re", "irdma", "rocep", "ibp", "rdmap", "efa"]
                .iter()
                .any(|p| domain.name.starts_with(p)))
}

fn is_cuda(domain: &MemoryDomain) -> bool {
    domain.name.starts_with("cuda")
        || domain
            .component
            .as_deref()
            .is_some_and(|c| c.starts_with("cuda"))
}

/// What one `ucx_info -d` says.
struct Ucx<'v> {
    from: &'v UcxResources,
    registers: Vec<&'v str>,
    peer_memory: Vec<&'v str>,
    host_only: Vec<&'v str>,
    cuda: bool,
    exports: bool,
}

fn ucx(from: &UcxResources) -> Ucx<'_> {
    let open = || from.domains.iter().filter(|d| !d.failed_to_open);
    let rdma = || open().filter(|d| is_rdma(d));
    let reaches_gpu = |d: &&MemoryDomain| {
        d.memory_types
            .as_deref()
            .is_some_and(|m| m.contains("cuda"))
    };
    let exports = |d: &MemoryDomain| {
        is_cuda(d)
            && (d
                .exports_dmabuf
                .as_deref()
                .is_some_and(|m| m.contains("cuda"))
                || d.memory_types.as_deref().is_some_and(|m| {
                    m.split("),")
                        .any(|t| t.trim_start().starts_with("cuda") && t.contains("dmabuf"))
                }))
    };
    Ucx {
        from,
        registers: rdma()
            .filter(|d| d.registers_dmabuf() == Some(true))
            .map(|d| d.name.as_str())
            .collect(),
        peer_memory: rdma()
            .filter(reaches_gpu)
            .map(|d| d.name.as_str())
            .collect(),
        host_only: rdma()
            .filter(|d| {
                d.registers_dmabuf() == Some(false) && !reaches_gpu(d) && d.memory_types.is_some()
            })
            .map(|d| d.name.as_str())
            .collect(),
        cuda: open().any(is_cuda),
        exports: open().any(exports),
    }
}

/// `5.15.0-1066` is at least 5.12. `None` where it cannot be read.
fn dmabuf_kernel(release: &str) -> Option<bool> {
    let mut parts = release.split(['.', '-']);
    let major: u32 = parts.next()?.parse().ok()?;
    let minor: u32 = parts.next()?.parse().ok()?;
    // Red Hat 8 and 9 have it in older numbers.
    if release.contains(".el") {
        return None;
    }
    Some((major, minor) >= (5, 12))
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    board(view, findings);
    let before = findings.results().len();
    let modules = &view.seen.modules;
    let clients = modules.peer_memory_clients.value();
    let loaded = ["nvidia_peermem", "nv_peer_mem"]
        .into_iter()
        .find(|m| modules.presence(m) == Presence::Loaded);
    if let Some(module) = loaded {
        let entry = modules.modules.get(module);
        let mut finding = Finding::ok(
            NAME,
            format!("{module} is loaded: GPUDirect RDMA through peer memory is possible"),
        );
        if module == "nv_peer_mem" {
            finding = finding.told(&LEGACY);
        }
        if entry.is_some_and(|m| m.use_count.value() == Some(&0)) {
            finding = finding.told(&USE_COUNT);
        }
        if let Some(entry) = entry {
            finding = finding.seen(&entry.loaded, "loaded");
        }
        findings.push(virtual_note(finding, view));
    } else if clients.is_some_and(|c| c.iter().any(|c| c.starts_with("nv_mem"))) {
        findings.push(
            Finding::ok(
                NAME,
                "a peer memory client is registered (nv_mem): GPUDirect RDMA is possible",
            )
            .seen(&modules.peer_memory_clients, "registered"),
        );
    }
    let peer_memory = findings.results().len() > before;
    for resources in &view.seen.software.ucx_resources {
        by_ucx(&ucx(resources), peer_memory, view, findings);
    }
    if findings.results().len() == before {
        by_system(view, findings);
    }
    let works = findings
        .results()
        .iter()
        .skip(before)
        .any(|r| r.status == Status::Ok);
    if !works {
        refused(view, findings);
    }
}

fn virtual_note(finding: Finding, view: &NodeView<'_>) -> Finding {
    if view.seen.host.virtual_machine.value() == Some(&true) {
        finding.told(&VIRTUAL)
    } else {
        finding
    }
}

fn by_ucx(ucx: &Ucx<'_>, peer_memory: bool, view: &NodeView<'_>, findings: &mut Findings) {
    let at = std::slice::from_ref(&ucx.from.origin);
    if !ucx.peer_memory.is_empty() {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "UCX reaches GPU memory from {} by peer memory",
                    ucx.peer_memory.join(", ")
                ),
            )
            .read_at(at, "memory types"),
        );
    } else if !ucx.registers.is_empty() && ucx.exports {
        let mut finding = Finding::ok(
            NAME,
            format!(
                "GPUDirect RDMA through dma-buf is possible: {} takes dma-buf and cuda_copy gives it",
                ucx.registers.join(", ")
            ),
        )
        .note("what is possible, not what KV uses");
        let host_only = ucx.from.domains.iter().any(|d| {
            is_rdma(d)
                && d.memory_types
                    .as_deref()
                    .is_some_and(|m| !m.contains("cuda"))
        });
        if host_only {
            finding = finding.told(&HOST_ONLY);
        }
        findings.push(virtual_note(finding, view).read_at(at, "dma-buf"));
    } else if !ucx.registers.is_empty() && !peer_memory {
        let why = if ucx.cuda {
            "cuda_copy of this UCX does not give it (closed kernel modules, or no GPU in sight)"
        } else {
            "this listing has no CUDA part"
        };
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "{} takes dma-buf, but {why}: GPUDirect RDMA is undecided",
                    ucx.registers.join(", ")
                ),
            )
            .read_at(at, "dma-buf"),
        );
    } else if !ucx.host_only.is_empty() && !peer_memory && !ucx.from.cut {
        let gpu = ucx.cuda || !view.seen.gpu.gpus.is_empty();
        let what = format!(
            "UCX reaches host memory only from {}: neither peer memory nor dma-buf",
            ucx.host_only.join(", ")
        );
        let finding = if gpu {
            Finding::fail(NAME, &NOTHING, what)
        } else {
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("{what}; whether a GPU is here is not shown"),
            )
        };
        findings.push(finding.read_at(at, "memory types"));
    }
}

/// The kernel's own words about the module.
fn refused(view: &NodeView<'_>, findings: &mut Findings) {
    let refused = view.seen.log.of("kernel-peermem-not-loaded").find(|e| {
        e.field("module")
            .is_some_and(|m| matches!(m, "nvidia_peermem" | "nvidia-peermem" | "nv_peer_mem"))
    });
    if let Some(event) = refused {
        let error = event.field("error").unwrap_or_default();
        findings.push(
            Finding::warn(
                NAME,
                &STALE,
                format!("the kernel refuses to load nvidia_peermem: {error}"),
            )
            .read_at(std::slice::from_ref(&event.origin), "refused"),
        );
    }
}

/// Without a word of UCX: modules, kernel and driver.
fn by_system(view: &NodeView<'_>, findings: &mut Findings) {
    let modules = &view.seen.modules;
    let gpu = &view.seen.gpu;
    let absent = modules.presence("nvidia_peermem") == Presence::Absent
        && modules.presence("nv_peer_mem") == Presence::Absent;
    let origins: Vec<_> = modules.listings.iter().map(|l| l.origin.clone()).collect();
    let efa =
        view.seen.rdma.devices.iter().any(|(name, d)| {
            name.starts_with("rdmap") || d.driver.value().is_some_and(|d| d == "efa")
        });
    let nvidia = modules.presence("nvidia") == Presence::Loaded || !gpu.gpus.is_empty();
    let kernel = view.seen.host.kernel.value().and_then(|k| dmabuf_kernel(k));
    let open = gpu.open_kernel_modules.value().copied();
    let cuda = gpu_dmabuf(view);
    if open == Some(true) && kernel != Some(false) || cuda == Some(true) {
        let mut finding = Finding::ok(
            NAME,
            if kernel == Some(true) || cuda == Some(true) {
                "the driver can give dma-buf: GPUDirect RDMA without a peer memory module is possible"
            } else {
                "the open kernel modules of the driver can give dma-buf (Linux 5.12 or newer): GPUDirect RDMA is possible"
            },
        );
        if efa {
            finding = finding.told(&EFA);
        }
        findings.push(virtual_note(finding, view).seen(&gpu.open_kernel_modules, "open modules"));
    } else if absent
        && nvidia
        && !efa
        && (open == Some(false) || kernel == Some(false) || cuda == Some(false))
    {
        let why = if kernel == Some(false) {
            "this kernel is older than 5.12"
        } else {
            "the driver's kernel modules are not the open ones"
        };
        findings.push(
            Finding::warn(
                NAME,
                &PEERMEM,
                format!("no nvidia_peermem, and no dma-buf: {why}"),
            )
            .read_at(&origins, "modules"),
        );
    } else if absent && !origins.is_empty() {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                "nvidia_peermem is not loaded, which is no fault where dma-buf works; the driver and its kind are not shown",
            )
            .read_at(&origins, "modules"),
        );
    } else if nvidia && !view.facts.saved {
        findings.push(Finding::skipped(
            NAME,
            Reason::NotVisible,
            "neither the modules nor UCX could be read, so GPUDirect RDMA is unknown",
        ));
    }
}

fn gpu_dmabuf(view: &NodeView<'_>) -> Option<bool> {
    view.seen.gpudirect.cuda_dmabuf.value().copied()
}

/// What follows from the GPU and the machine, whatever is loaded.
fn board(view: &NodeView<'_>, findings: &mut Findings) {
    for gpu in &view.seen.gpu.gpus {
        let Some(name) = gpu.name.value() else {
            continue;
        };
        let (cause, what) = if is_geforce(name) {
            (
                &GEFORCE,
                "offers no GPUDirect RDMA: KV is copied through host memory",
            )
        } else if is_spark(name) {
            (
                &SPARK,
                "has no classic GPUDirect RDMA; only a measurement tells its speed",
            )
        } else {
            continue;
        };
        findings.push(
            Finding::warn(NAME, cause, format!("{} ({name}) {what}", label(gpu)))
                .device(label(gpu))
                .seen(&gpu.name, "named"),
        );
    }
    let bridges: Vec<(&String, _)> = view
        .seen
        .host
        .pci
        .iter()
        .filter(|(_, f)| f.acs_redirect.value() == Some(&true))
        .collect();
    if let Some((_, first)) = bridges.first() {
        let names: Vec<&str> = bridges.iter().take(4).map(|(a, _)| a.as_str()).collect();
        let what = format!(
            "access control (ACS) redirects traffic at {} PCIe bridges ({})",
            bridges.len(),
            names.join(", ")
        );
        let finding = match view.seen.host.virtual_machine.value() {
            Some(true) => return,
            Some(false) => Finding::warn(NAME, &ACS, what),
            None => Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "{what}: bad on bare metal, needed in a virtual machine; which one this is is not shown"
                ),
            ),
        };
        findings.push(finding.seen(&first.acs_redirect, "ACSCtl"));
    }
}
