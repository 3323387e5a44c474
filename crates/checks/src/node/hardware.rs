//! What the PCI inventory lists.
//!
//! Class 0207 is InfiniBand; the same card on Ethernet has class 0200. NVSwitch bridges are no network cards. An
//! inventory shows hardware: neither the state of a port nor what a container may use.

use std::collections::BTreeMap;

use model::observation::Fact;
use model::observation::pci::PciDevice;

use crate::check::{Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/hardware";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the PCI inventory, as far as it matters",
    source: include_str!("hardware.rs"),
    causes: &[],
    notes: &[],
    run: Run::Place(run),
};

const NVIDIA: u32 = 0x10de;

/// What a function is, in the order in which it is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Gpu,
    NvSwitch,
    InfiniBand,
    Ethernet,
    Efa,
}

impl Kind {
    fn words(self, n: usize) -> String {
        let many = if n == 1 { "" } else { "s" };
        match self {
            Self::Gpu => format!("{n} GPU{many}"),
            Self::NvSwitch => format!("{n} NVSwitch bridge{many} (no network cards)"),
            Self::InfiniBand => format!("{n} InfiniBand controller{many}"),
            Self::Ethernet => format!("{n} Ethernet controller{many}"),
            Self::Efa => format!("{n} EFA device{many}"),
        }
    }
}

fn kind(function: &PciDevice) -> Option<Kind> {
    let class = function.class.value().copied();
    let name = function
        .class_name
        .value()
        .map_or("", String::as_str)
        .to_ascii_lowercase();
    let vendor = function.vendor.value().copied();
    let nvidia =
        vendor == Some(NVIDIA) || function.name.value().is_some_and(|n| n.contains("NVIDIA"));
    if vendor == Some(0x1d0f)
        && function
            .device
            .value()
            .is_some_and(|d| d & 0xfff0 == 0xefa0)
    {
        return Some(Kind::Efa);
    }
    match class {
        Some(0x0302 | 0x0300) if nvidia => Some(Kind::Gpu),
        Some(0x0680) if nvidia => Some(Kind::NvSwitch),
        Some(0x0207) => Some(Kind::InfiniBand),
        Some(0x0200) => Some(Kind::Ethernet),
        None if nvidia && (name.contains("3d controller") || name.contains("vga")) => {
            Some(Kind::Gpu)
        }
        None if nvidia && name == "bridge" => Some(Kind::NvSwitch),
        None if name.contains("infiniband") => Some(Kind::InfiniBand),
        None if name.contains("ethernet") => Some(Kind::Ethernet),
        _ => None,
    }
}

/// `[ConnectX-6 Virtual Function]` of a name: the model without vendor and codes.
fn model(function: &PciDevice) -> Option<&str> {
    let name = function.name.value()?;
    let inside = name
        .split('[')
        .skip(1)
        .filter_map(|part| part.split(']').next())
        .find(|part| !part.contains(':'));
    inside.filter(|m| !m.is_empty())
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let mut kinds: BTreeMap<Kind, Vec<&PciDevice>> = BTreeMap::new();
    for function in view.seen.host.pci.values() {
        if let Some(kind) = kind(function) {
            kinds.entry(kind).or_default().push(function);
        }
    }
    if kinds.is_empty() {
        return;
    }
    let parts: Vec<String> = kinds
        .iter()
        .map(|(kind, functions)| {
            let mut models: Vec<&str> = functions.iter().filter_map(|f| model(f)).collect();
            models.sort_unstable();
            models.dedup();
            let words = kind.words(functions.len());
            if models.is_empty() {
                words
            } else {
                format!("{words}: {}", models.join(", "))
            }
        })
        .collect();
    let mut finding = Finding::ok(NAME, format!("PCI lists {}", parts.join("; ")))
        .note("an inventory: it shows neither port states nor what a container may use");
    let functions = || kinds.values().flatten();
    if functions().any(|f| f.virtual_function.value() == Some(&true)) {
        finding =
            finding.note("virtual functions: a virtual machine, or a host that shares its cards");
    }
    let first = functions().next();
    findings.push(match first {
        Some(f) if f.name.is_seen() => finding.seen(&f.name, "listed"),
        Some(f) => finding.read_at(fact_sources(&f.class), "listed"),
        None => finding,
    });
}

fn fact_sources<T>(fact: &Fact<T>) -> &[model::observation::Origin] {
    fact.sources()
}
