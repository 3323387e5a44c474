//! UCX offers transports for RDMA and for GPU memory here.
//!
//! `ucx_info -d` lists what this copy of UCX can open on this machine. It does not obey UCX_TLS, and another copy of
//! UCX may see other devices. Transports that are listed and then `failed to open interface` are not there; a memory
//! domain that fails to open alone is no fault. The bandwidth of tcp is an estimate from the interface's speed.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::rdma::has_software_name;
use model::observation::software::{UcxResources, UcxTransport};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::rdma_devices::SOFTWARE;
use crate::node_view::NodeView;

const NAME: &str = "node/ucx-transports";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX offers transports for RDMA and GPU memory",
    source: include_str!("ucx_transports.rs"),
    causes: &[NO_RDMA, NO_GPU, NOT_OPENED],
    notes: &[TCP_ESTIMATE],
    run: Run::Place(run),
};

const NO_RDMA: Cause = Cause {
    id: "ucx-offers-no-rdma",
    what: "ucx_info -d lists no RDMA transport",
    why: "between nodes UCX then has TCP only, and says so nowhere",
    fix: "look whether the device is in the container (node/rdma-devices) and UCX is built with verbs (ucx_info -v)",
    quiet_if: "the listing is filtered or cut; NVLink between nodes carries KV; another copy of UCX is the engine's",
    source: "ucx_info -d",
};

const NO_GPU: Cause = Cause {
    id: "ucx-offers-no-cuda",
    what: "ucx_info -d lists no transport for GPU memory (cuda_copy)",
    why: "UCX does not recognise GPU memory: NIXL refuses to register it, or the process crashes",
    fix: "use a UCX with CUDA, and run it where libcuda and the GPU are (nvidia container runtime)",
    quiet_if: "rocm_copy or ze_copy is there; KV buffers in host memory; the listing is filtered or cut",
    source: "ucx_info -d; UCX cuda_copy_md.c",
};

const NOT_OPENED: Cause = Cause {
    id: "ucx-transport-not-opened",
    what: "RDMA transports are listed, and none of them opens",
    why: "a list of their names looks healthy, and none can carry KV",
    fix: "the error lines beside them tell why; often the limit of locked memory, or rights on /dev/infiniband",
    quiet_if: "another RDMA transport opens; only a memory domain fails to open",
    source: "ucx_info -d: failed to open interface",
};

const TCP_ESTIMATE: Cause = Cause {
    id: "ucx-tcp-bandwidth-guess",
    what: "a bandwidth beside tcp",
    why: "the bandwidth that is printed for tcp is an estimate, not a measurement",
    fix: "none",
    quiet_if: "always",
    source: "UCX tcp_iface.c",
};

/// What a transport of UCX is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// One-sided over a network card.
    Rdma,
    /// The kernel's network stack.
    Tcp,
    /// NVLink or PCIe between GPUs.
    GpuIpc,
    /// Copies to and from GPU memory.
    GpuCopy,
    /// Memory of the same node.
    Shared,
    /// The process itself.
    Own,
    /// Not known.
    Other,
}

/// The family by UCX's name of the transport.
pub fn family(transport: &str) -> Family {
    match transport {
        "tcp" | "sockcm" => Family::Tcp,
        "cuda_ipc" | "rocm_ipc" | "ze_ipc" => Family::GpuIpc,
        "cuda_copy" | "gdr_copy" | "rocm_copy" | "ze_copy" | "gaudi_gdr" => Family::GpuCopy,
        "cma" | "knem" | "xpmem" | "sysv" | "posix" | "mm" | "shm" => Family::Shared,
        "self" => Family::Own,
        name if ["rc", "dc", "ud", "srd", "gga", "ib"].iter().any(|p| {
            name == *p
                || name
                    .strip_prefix(p)
                    .is_some_and(|rest| rest.starts_with('_'))
        }) =>
        {
            Family::Rdma
        }
        _ => Family::Other,
    }
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    if let (Some(first), false) = (
        view.seen.software.ucx_resources.first(),
        view.ucx_info_is_the_engines(),
    ) {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                "the ucx_info here is not shown to use the engine's UCX: what that one offers is not known",
            )
            .read_at(std::slice::from_ref(&first.origin), "listed"),
        );
        return;
    }
    for resources in &view.seen.software.ucx_resources {
        of(resources, view, findings);
    }
}

/// `rc_mlx5, dc_mlx5 on mlx5_0:1`.
fn on_devices<'r>(transports: impl Iterator<Item = &'r UcxTransport>) -> String {
    let mut devices: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for transport in transports {
        let names = devices
            .entry(transport.device.as_deref().unwrap_or("?"))
            .or_default();
        if !names.contains(&transport.name.as_str()) {
            names.push(&transport.name);
        }
    }
    let mut alike: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for (device, names) in devices {
        alike.entry(names).or_default().push(device);
    }
    let parts: Vec<String> = alike
        .iter()
        .map(|(names, devices)| format!("{} on {}", names.join(", "), devices.join(", ")))
        .collect();
    parts.join("; ")
}

/// The kernel refuses memory: the limit of locked memory.
fn of_memlock(error: &str) -> bool {
    error.contains("max locked memory")
        || (error.contains("Cannot allocate memory")
            && (error.contains("create_cq") || error.contains("reg_mr")))
}

fn is_software(transport: &UcxTransport) -> bool {
    transport.device.as_deref().is_some_and(has_software_name)
}

fn of(resources: &UcxResources, view: &NodeView<'_>, findings: &mut Findings) {
    let at = std::slice::from_ref(&resources.origin);
    let usable = |t: &&UcxTransport| !t.failed_to_open;
    let of_family = |wanted: Family| {
        resources
            .transports
            .iter()
            .filter(move |t| family(&t.name) == wanted)
    };
    let rdma: Vec<&UcxTransport> = of_family(Family::Rdma).collect();
    let opened: Vec<&UcxTransport> = rdma.iter().copied().filter(usable).collect();
    let memlock = resources.errors.iter().any(|e| of_memlock(e));
    let mut devices: Vec<&str> = rdma.iter().filter_map(|t| t.device.as_deref()).collect();
    devices.sort_unstable();
    devices.dedup();
    let mut bad = false;
    if memlock {
        bad = true;
        // The limit itself is judged by node/locked-memory.
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "RDMA transports fail to open for want of locked memory (memlock): {}",
                    if devices.is_empty() {
                        "device not named".to_owned()
                    } else {
                        devices.join(", ")
                    }
                ),
            )
            .read_at(at, "failed to open interface"),
        );
    } else if !rdma.is_empty() && opened.is_empty() {
        bad = true;
        let why = resources
            .errors
            .first()
            .map_or(String::new(), |e| format!(": {e}"));
        findings.push(
            Finding::fail(
                NAME,
                &NOT_OPENED,
                format!(
                    "none of the RDMA transports opens ({}){why}",
                    on_devices(rdma.iter().copied())
                ),
            )
            .read_at(at, "failed to open interface"),
        );
    }
    // What is cut off may hold what is missing.
    if resources.cut && (bad || opened.is_empty()) {
        if !bad {
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    "the listing is cut or filtered, so what it lacks is unknown",
                )
                .read_at(at, "cut"),
            );
        }
        return;
    }
    let gpu: Vec<&UcxTransport> = of_family(Family::GpuCopy)
        .chain(of_family(Family::GpuIpc))
        .filter(usable)
        .collect();
    let tcp = on_devices(of_family(Family::Tcp));
    let kv = view.is_kv_worker();
    if rdma.is_empty() && !bad {
        bad = true;
        let what = format!(
            "UCX offers no RDMA transport here: between nodes {}",
            if tcp.is_empty() {
                "nothing".to_owned()
            } else {
                tcp
            }
        );
        let finding = if kv {
            Finding::fail(NAME, &NO_RDMA, what)
        } else {
            Finding::warn(NAME, &NO_RDMA, what)
        };
        findings.push(
            finding
                .note("ucx_info -d does not obey UCX_TLS: the device is not here, or this UCX is built without verbs")
                .told(&TCP_ESTIMATE)
                .read_at(at, "no RDMA"),
        );
    }
    let knows_gpu = gpu.iter().any(|t| t.name.ends_with("_copy"));
    if !knows_gpu && super::gpu::others(view).is_empty() && !resources.cut {
        bad = true;
        let what = "UCX offers no transport for GPU memory here (no cuda_copy)";
        let finding = if kv || !view.seen.gpu.gpus.is_empty() {
            Finding::fail(NAME, &NO_GPU, what)
        } else {
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("{what}; whether a GPU is here is not shown (--role tells)"),
            )
        };
        findings.push(finding.read_at(at, "no CUDA"));
    }
    if bad && opened.is_empty() {
        return;
    }
    let names: Vec<&str> = gpu.iter().map(|t| t.name.as_str()).collect();
    let with_gpu = if names.is_empty() {
        String::new()
    } else {
        format!("; for GPU memory {}", names.join(", "))
    };
    if opened.iter().all(|t| is_software(t)) {
        let what = format!(
            "UCX offers software RDMA only: {}",
            on_devices(opened.iter().copied())
        );
        findings.push(Finding::warn(NAME, &SOFTWARE, what).read_at(at, "software"));
        return;
    }
    findings.push(
        Finding::ok(
            NAME,
            format!(
                "UCX offers RDMA: {}{with_gpu}",
                on_devices(opened.iter().copied())
            ),
        )
        .note("what it could use, not what carries KV; ucx_info -d does not obey UCX_TLS")
        .read_at(at, "listed"),
    );
}
