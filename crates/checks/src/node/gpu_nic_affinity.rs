//! Network cards stand near the GPUs.
//!
//! For each GPU the best level of `nvidia-smi topo` and the cards at it, by device name. PIX and PXB are within one
//! PCIe switch; PHB, NODE and SYS are what some machines offer at best, and no fault: UCX has no distance limit. A card
//! that is near no GPU is for storage or management, or belongs to a GPU that was not granted. On Grace the PCIe
//! distance means little. Levels are never held against a fixed layout, and a row that is missing is unknown.

use std::collections::{BTreeMap, BTreeSet};

use model::Reason;
use model::observation::topology::{Level, Matrix, NicColumn};

use super::words::{count, is_grace, listed};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/gpu-nic-affinity";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "network cards stand near the GPUs",
    source: include_str!("gpu_nic_affinity.rs"),
    causes: &[PASSTHROUGH],
    notes: &[FAR, GRACE, BROADCOM, NO_COLUMNS, COMMAND_FAILS, SHARED],
    run: Run::Place(run),
};

const PASSTHROUGH: Cause = Cause {
    id: "gdr-passthrough-pix",
    what: "a virtual machine with GPU and network card behind one PCIe switch (PIX), and UCX free to pick that card",
    why: "in a guest without ATS, traffic within the switch skips the IOMMU and reaches wrong addresses: failed transfers, or wrong tokens with status 200",
    fix: "enable ATS on the card and direct translated P2P on the switch, or name a card that is not PIX in UCX_NET_DEVICES",
    quiet_if: "bare metal, where PIX is best; a card is selected; EFA; clouds that set up ATS themselves; nobody tells whose machine it is",
    source: "NVIDIA: GPUDirect RDMA in virtual machines",
};

const FAR: Cause = Cause {
    id: "topo-best-level-not-pix",
    what: "the best path between a GPU and a network card crosses the host bridge (PHB, NODE, SYS)",
    why: "a longer path: UCX uses it all the same, NCCL by default uses GPUDirect up to PXB",
    fix: "none where the machine offers nothing nearer",
    quiet_if: "always a note: it is what the machine offers",
    source: "NCCL net GDR level; UCX has no distance limit",
};

const GRACE: Cause = Cause {
    id: "topo-sys-on-grace",
    what: "SYS or NODE to every card on a Grace system",
    why: "normal on Grace: GPU memory is a NUMA node of its own, and the PCIe distance says little",
    fix: "none",
    quiet_if: "always",
    source: "nvidia-smi topo -m on GB200 and GH200",
};

const BROADCOM: Cause = Cause {
    id: "gdr-broadcom-phb",
    what: "Broadcom RoCE cards at PHB or NODE",
    why: "with Broadcom cards the distance alone says neither that GPUDirect RDMA works nor that it does not: both were seen",
    fix: "compare a bandwidth test from GPU memory with one from host memory",
    quiet_if: "always a note",
    source: "Broadcom RoCE guides; bnxt_re over dma-buf and peer memory",
};

const NO_COLUMNS: Cause = Cause {
    id: "topo-no-nic-columns",
    what: "the matrix has no column of a network card",
    why: "the driver library sees no RDMA device here: there is none, or the container hides it",
    fix: "look at /sys/class/infiniband, or run it on the node",
    quiet_if: "always skipped, never a fault by itself",
    source: "nvidia-smi topo -m",
};

const COMMAND_FAILS: Cause = Cause {
    id: "topo-command-fails",
    what: "nvidia-smi topo prints an error in place of a matrix",
    why: "a software RDMA device (siw, rxe) can make it give up; nothing follows about GPUs and cards",
    fix: "compare the PCI paths in /sys instead",
    quiet_if: "always skipped",
    source: "Failed to run topology matrix",
};

const SHARED: Cause = Cause {
    id: "topo-nic-shared-by-gpus",
    what: "several GPUs have the same nearest card",
    why: "GPUs that share a card share its bandwidth",
    fix: "none: it is how the machine is built",
    quiet_if: "as many cards as GPUs",
    source: "nvidia-smi topo -m",
};

/// The nearest cards of one GPU.
pub(crate) struct Near<'m> {
    pub(crate) gpu: &'m str,
    pub(crate) level: Level,
    pub(crate) nics: Vec<&'m NicColumn>,
}

/// For each GPU with a whole row, in order.
pub(crate) fn nearest(matrix: &Matrix) -> Vec<Near<'_>> {
    matrix
        .gpu_rows
        .iter()
        .filter_map(|row| {
            let (level, nics) = matrix.nearest(&row.label)?;
            Some(Near {
                gpu: &row.label,
                level,
                nics,
            })
        })
        .collect()
}

/// Cards that are nearest to none of the GPUs.
pub(crate) fn near_none<'m>(matrix: &'m Matrix, near: &[Near<'_>]) -> Vec<&'m str> {
    matrix
        .nics
        .iter()
        .filter(|nic| {
            !near
                .iter()
                .any(|n| n.nics.iter().any(|m| m.label == nic.label))
        })
        .map(NicColumn::name)
        .collect()
}

/// GPU memory is a NUMA node: its number stands in the last column, or the name says so.
fn grace(matrix: &Matrix, view: &NodeView<'_>) -> bool {
    matrix.gpu_rows.iter().any(|r| {
        r.gpu_numa_id
            .as_deref()
            .is_some_and(|n| n.parse::<u32>().is_ok())
    }) || view
        .seen
        .gpu
        .gpus
        .iter()
        .any(|g| g.name.value().is_some_and(|n| is_grace(n)))
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    for error in &view.seen.gpu.errors {
        if error.text.to_ascii_lowercase().contains("topology") {
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::Unreadable,
                    format!("nvidia-smi topo fails: {}", error.text),
                )
                .told(&COMMAND_FAILS)
                .read_at(std::slice::from_ref(&error.origin), "error"),
            );
        }
    }
    for matrix in &view.seen.topology.matrices {
        if !matrix.gpus.is_empty() || !matrix.header {
            findings.push(
                of(matrix, view).read_at(std::slice::from_ref(&matrix.origin), "GPUs and cards"),
            );
        }
    }
}

fn of(matrix: &Matrix, view: &NodeView<'_>) -> Finding {
    if !matrix.header {
        return Finding::skipped(
            NAME,
            Reason::NotVisible,
            "the header with the column titles is missing, so which column is which card cannot be told",
        )
        .fix("save the whole output, with its first line and the NIC legend");
    }
    if matrix.nics.is_empty() {
        return Finding::skipped(
            NAME,
            Reason::NotVisible,
            "the matrix has no NIC column: no RDMA device is visible to the driver here",
        )
        .told(&NO_COLUMNS);
    }
    let near = nearest(matrix);
    let mut text = sentence(matrix, &near);
    let missing: Vec<&str> = matrix
        .gpus
        .iter()
        .map(String::as_str)
        .filter(|g| !near.iter().any(|n| n.gpu == *g))
        .collect();
    let none = near_none(matrix, &near);
    let mut finding = if missing.is_empty() && !near.is_empty() {
        if !none.is_empty() {
            text = format!("{text}; near none of these GPUs: {}", none.join(", "));
        }
        judged(text, matrix, &near, view)
    } else {
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "{}{}; unknown: {}, whose rows are missing or end early",
                if near.is_empty() {
                    "no row is whole"
                } else {
                    "as far as it goes: "
                },
                if near.is_empty() { "" } else { &text },
                listed(&missing)
            ),
        )
    };
    if matrix.nics.iter().any(|n| n.device.is_none()) {
        finding = finding.note("the NIC legend is missing, so device names are unknown");
    }
    finding
}

/// The GPUs with their cards, those with the same cards together.
fn sentence(matrix: &Matrix, near: &[Near<'_>]) -> String {
    let mut levels: BTreeMap<&Level, BTreeMap<Vec<&str>, Vec<&str>>> = BTreeMap::new();
    for n in near {
        let names: Vec<&str> = n.nics.iter().map(|nic| nic.name()).collect();
        levels
            .entry(&n.level)
            .or_default()
            .entry(names)
            .or_default()
            .push(n.gpu);
    }
    let mut parts = Vec::new();
    for (level, groups) in &levels {
        let word = level.word();
        // In the order of GPUs, not of card names.
        let mut groups: Vec<(&Vec<&str>, &Vec<&str>)> = groups.iter().collect();
        groups.sort_by_key(|(_, gpus)| near.iter().position(|n| gpus.first() == Some(&n.gpu)));
        let everywhere = groups
            .first()
            .is_some_and(|(nics, _)| nics.len() == matrix.nics.len());
        if levels.len() == 1 && groups.len() == 1 && everywhere {
            let names: Vec<&str> = matrix.nics.iter().map(NicColumn::name).collect();
            return format!("every GPU reaches every card at {word}: {}", listed(&names));
        }
        let list: Vec<String> = groups
            .iter()
            .map(|(nics, gpus)| {
                let with = if gpus.len() == 1 && nics.len() == 1 {
                    ""
                } else {
                    "with "
                };
                format!("{} {with}{}", listed(gpus), listed(nics))
            })
            .collect();
        let single = groups
            .iter()
            .all(|(nics, gpus)| nics.len() == 1 && gpus.len() == 1);
        let between = if single { ", " } else { "; " };
        let whom = if levels.len() == 1 {
            "each GPU has a NIC at "
        } else {
            "at "
        };
        parts.push(format!("{whom}{word}: {}", list.join(between)));
    }
    parts.join("; ")
}

fn judged(text: String, matrix: &Matrix, near: &[Near<'_>], view: &NodeView<'_>) -> Finding {
    let far = near.iter().any(|n| n.level > Level::Pxb);
    let virtual_machine = view.seen.host.virtual_machine.value() == Some(&true);
    let at_pix = near
        .iter()
        .any(|n| n.level == Level::Pix && n.nics.iter().any(|c| !c.name().starts_with("rdmap")));
    if virtual_machine
        && of_own_hypervisor(view)
        && at_pix
        && !view.seen.process.processes.is_empty()
        && view.setting("UCX_NET_DEVICES").is_none()
    {
        return Finding::warn(NAME, &PASSTHROUGH, format!("virtual machine, and {text}"));
    }
    let mut finding = Finding::ok(NAME, text);
    if far {
        finding = finding.told(if grace(matrix, view) { &GRACE } else { &FAR });
    }
    let broadcom = |n: &Near<'_>| n.nics.iter().any(|c| c.name().starts_with("bnxt_re"));
    if near.iter().any(|n| n.level > Level::Pxb && broadcom(n)) {
        finding = finding.told(&BROADCOM);
    }
    if let Some(shared) = shared(near) {
        finding = finding.note(shared).told(&SHARED);
    }
    finding
}

/// The machine's maker is known, and is none of the clouds that sell GPUs with RDMA and set up ATS for it.
fn of_own_hypervisor(view: &NodeView<'_>) -> bool {
    const CLOUDS: [&str; 7] = [
        "google",
        "microsoft",
        "amazon",
        "oracle",
        "alibaba",
        "tencent",
        "nebius",
    ];
    view.seen.host.system_vendor.value().is_some_and(|vendor| {
        let vendor = vendor.to_ascii_lowercase();
        !vendor.trim().is_empty() && !CLOUDS.iter().any(|cloud| vendor.contains(cloud))
    })
}

/// GPUs that have fewer cards than they are, `2 GPUs share 1 card`.
fn shared(near: &[Near<'_>]) -> Option<String> {
    let mut groups: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for n in near {
        let names: Vec<&str> = n.nics.iter().map(|nic| nic.name()).collect();
        let users = groups.entry(names).or_default();
        *users = users.saturating_add(1);
    }
    let shares: BTreeSet<(usize, usize)> = groups
        .iter()
        .filter(|(nics, gpus)| **gpus > nics.len())
        .map(|(nics, gpus)| (*gpus, nics.len()))
        .collect();
    if groups.len() < 2 {
        return None;
    }
    let (gpus, nics) = shares.into_iter().next_back()?;
    Some(format!(
        "{} with {} nearest",
        count(gpus, "GPU"),
        count(nics, "card")
    ))
}
