//! RDMA devices are there, and they are hardware.
//!
//! sysfs and the tools list what the kernel has; whether this container may use it is another question
//! (`node/device-access`). A tool that prints nothing, or an empty table with exit code 0, has found no
//! device: that is never ok. Software RDMA (rxe, siw) works like RDMA and moves bytes through the kernel's
//! network stack, so it is named as such.

use std::collections::{BTreeMap, BTreeSet};

use model::Reason;
use model::observation::modules::Presence;
use model::observation::rdma::{Device, Function, Listing, has_software_name};
use model::observation::{Origin, Tool};

use super::ports::{is_efa, list};
use super::selection::Selection;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::ucx_transports::{Family, family};
use crate::node_view::NodeView;

const NAME: &str = "node/rdma-devices";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA devices are there",
    source: include_str!("rdma_devices.rs"),
    causes: &[NONE, SILENT, PARTIAL, SOFTWARE, ABI, NOT_LOADABLE],
    notes: &[SAME_CARD],
    run: Run::Place(run),
};

pub(crate) const NONE: Cause = Cause {
    id: "rdma-no-device",
    what: "no RDMA device is visible where a KV worker runs",
    why: "UCX then has TCP only, and says so nowhere",
    fix: "request the RDMA resource of the cluster's device plugin; on the node itself load the driver of the network card",
    quiet_if: "nothing says that a KV worker runs there (then it is skipped), or KV goes over NVLink: on one node, or between nodes where an IMEX channel is there; Ascend's accelerators, whose ports verbs do not show",
    source: "infiniband-diags ibstat, rdma-core ibv_devinfo: an empty list ends with exit code 0 or 255 by tool",
};

const SILENT: Cause = Cause {
    id: "ibstat-silent-empty",
    what: "ibstat printed nothing where a KV worker runs",
    why: "it has found no device and says so nowhere, not even by its exit code",
    fix: "request the RDMA resource of the cluster's device plugin; on the node itself load the driver of the network card",
    quiet_if: "another tool lists a device, or nothing says that a KV worker runs there (then it is skipped)",
    source: "infiniband-diags ibstat.c: an empty list of devices prints nothing and ends with 0",
};

const PARTIAL: Cause = Cause {
    id: "ibstat-partial-ibpanic",
    what: "a tool stopped in the middle of its list of devices",
    why: "a device vanished, or belongs to another namespace: what follows in the list is unknown",
    fix: "run it again; compare with /sys/class/infiniband",
    quiet_if: "the list is whole, or another source gives it whole",
    source: "infiniband-diags ibstat.c (ibpanic: stat of IB device failed); leptonai/gpud#752",
};

const ABI: Cause = Cause {
    id: "image-provider-abi",
    what: "the provider library of this image does not speak the interface of the host's driver",
    why: "libibverbs then leaves the device out, and UCX uses TCP without a word",
    fix: "put the provider that matches the host's driver into the image (the vendor's library, or a newer rdma-core)",
    quiet_if: "other devices can be used, and nobody selects this one",
    source: "rdma-core libibverbs/init.c (does not support the kernel ABI)",
};

const NOT_LOADABLE: Cause = Cause {
    id: "verbs-provider-not-loadable",
    what: "libibverbs could not load the provider library of a device that is here, or may be",
    why: "it leaves the device out; a Python package may bring a libibverbs of its own that looks elsewhere than the distribution's",
    fix: "let the process load the system's libibverbs, or use an image whose UCX is built against it",
    quiet_if: "the provider is for hardware that is not here; UCX uses RDMA all the same",
    source: "rdma-core libibverbs/init.c, dynamic_driver.c (couldn't load driver)",
};

const SAME_CARD: Cause = Cause {
    id: "dual-port-same-asic",
    what: "two RDMA devices are ports of one card",
    why: "ports of one card share its PCIe slot: together they are no faster than the slot, and a fault of the card takes both",
    fix: "none; count the card once where bandwidth is added up",
    quiet_if: "always a note; virtual functions are not counted",
    source: "nccl src/transport/net_ib (ports of one card are merged); PCI addresses that differ in their function only",
};

pub(crate) const SOFTWARE: Cause = Cause {
    id: "soft-roce",
    what: "the RDMA device is software (rxe or siw)",
    why: "verbs work, but every byte goes through the kernel's network stack: no faster than TCP",
    fix: "use the hardware's device; remove the software device (rdma link delete NAME)",
    quiet_if: "a hardware device is there and is the one that is selected",
    source: "Linux drivers/infiniband/sw/rxe",
};

/// By what is known of it, else by the name that the kernel's own tools give.
pub(crate) fn is_software(name: &str, device: &Device) -> bool {
    match device.function.value() {
        Some(function) => *function == Function::Software,
        None => match device.driver.value() {
            Some(driver) => matches!(driver.as_str(), "rxe" | "siw" | "rdma_rxe"),
            None => has_software_name(name),
        },
    }
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    software(view, findings);
    let left_out = providers(view, findings);
    unanswered(view, findings);
    let hardware: Vec<String> = rdma
        .devices
        .iter()
        .filter(|(name, device)| !is_software(name, device))
        .map(|(name, _)| name.clone())
        .collect();
    if let Some(first) = hardware.first() {
        let efa = hardware
            .iter()
            .filter(|name| rdma.devices.get(*name).is_some_and(|d| is_efa(name, d)))
            .count();
        let finding = Finding::ok(NAME, format!("RDMA devices: {}", list(&hardware)))
            .read_at(&origins(first, view), "listed");
        let finding = if efa > 0 {
            finding.note(format!(
                "{efa} of them EFA, whose zero GUID and unspecified transport are normal"
            ))
        } else {
            finding
        };
        let pairs = of_one_card(view);
        findings.push(if pairs.is_empty() {
            finding
        } else {
            finding
                .note(format!("of one card: {}", pairs.join("; ")))
                .told(&SAME_CARD)
        });
        return;
    }
    if left_out || !rdma.devices.is_empty() {
        return;
    }
    let empty: Vec<&Listing> = rdma
        .listings
        .iter()
        .filter(|l| !l.cut && answers(l))
        .collect();
    let Some(first) = empty.first() else { return };
    let origins: Vec<Origin> = empty.iter().map(|l| l.origin.clone()).collect();
    let finding = if let Some(other) = other_way(view) {
        Finding::skipped(NAME, Reason::NotApplicable, other)
    } else if view.is_kv_worker() {
        let cause = if empty.iter().all(|l| l.origin.from.tool == Tool::Ibstat) {
            &SILENT
        } else {
            &NONE
        };
        Finding::fail(NAME, cause, "no RDMA device is visible here")
    } else {
        let modules = matches!(view.seen.modules.presence("mlx5_ib"), Presence::Loaded);
        let finding = Finding::skipped(
            NAME,
            Reason::NotVisible,
            "no RDMA device is visible here; whether a KV worker needs one cannot be seen (--role tells)",
        )
        .required();
        if modules && first.error.is_none() {
            finding.note("the host has mlx5_ib loaded")
        } else {
            finding
        }
    };
    findings.push(finding.read_at(&origins, "no device"));
}

/// What may carry KV here besides RDMA devices that verbs know.
fn other_way(view: &NodeView<'_>) -> Option<&'static str> {
    let others = super::gpu::others(view);
    if others
        .iter()
        .any(|name| name.to_ascii_lowercase().contains("ascend"))
    {
        return Some(
            "no RDMA device is visible here; Ascend's accelerators have network ports of their own, which verbs do not show",
        );
    }
    // Whether it reaches the peer, and whether KV memory can be exported, is judged where NVLink between nodes is.
    let imex = &view.seen.gpu.imex;
    let open = imex.channels.value().is_some_and(|channels| {
        channels.iter().any(|n| {
            imex.nodes
                .get(n)
                .is_none_or(|node| node.opens.value() != Some(&false))
        })
    });
    open.then_some(
        "no RDMA device is visible here, and an IMEX channel is: KV can go over NVLink between nodes of one domain, and over nothing but TCP beyond it",
    )
}

/// Devices whose PCI addresses differ in their function only, `mlx5_0 and mlx5_1`.
fn of_one_card(view: &NodeView<'_>) -> Vec<String> {
    let mut cards: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, device) in &view.seen.rdma.devices {
        if is_software(name, device)
            || device
                .function
                .value()
                .is_some_and(|f| *f != Function::Physical)
        {
            continue;
        }
        if let Some((slot, _)) = device.pci.value().and_then(|pci| pci.rsplit_once('.')) {
            cards.entry(slot).or_default().push(name.clone());
        }
    }
    cards
        .into_values()
        .filter(|names| names.len() > 1)
        .take(16)
        .map(|names| list(&names))
        .collect()
}

/// The tool looked: a message in place of a list may also be the answer that there is none.
fn answers(listing: &Listing) -> bool {
    listing.error.as_deref().is_none_or(|text| {
        let text = text.to_ascii_lowercase();
        // ibstatus looks for the pattern itself where nothing matches it.
        text.contains("device '*'")
            || text.contains("no ib devices found")
            || text.contains("no devices")
            || text.contains("no rdma device")
    })
}

/// Tools that stopped, or could not look at all.
fn unanswered(view: &NodeView<'_>, findings: &mut Findings) {
    let listings = &view.seen.rdma.listings;
    for listing in listings.iter().filter(|l| !answers(l)) {
        let error = listing.error.as_deref().unwrap_or_default();
        let origin = std::slice::from_ref(&listing.origin);
        let whole_elsewhere = listings
            .iter()
            .any(|l| l.error.is_none() && !l.cut && !l.devices.is_empty());
        if listing.devices.is_empty() {
            let finding = Finding::skipped(
                NAME,
                Reason::NoTool,
                format!("RDMA devices could not be listed: {error}"),
            )
            .read_at(origin, "error");
            // One tool that cannot look hides nothing that another one tells.
            findings.push(if listings.iter().any(|l| !l.cut && answers(l)) {
                finding
            } else {
                finding.required()
            });
        } else if !whole_elsewhere {
            findings.push(
                Finding::warn(
                    NAME,
                    &PARTIAL,
                    format!("the list of RDMA devices is not whole: {error}"),
                )
                .read_at(origin, "error"),
            );
        }
    }
}

fn software(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    let selection = Selection::of(view);
    let hardware_is_selected = rdma.devices.iter().any(|(name, device)| {
        !is_software(name, device) && device.ports.keys().any(|port| selection.names(name, *port))
    });
    for (name, device) in rdma.devices.iter().filter(|(n, d)| is_software(n, d)) {
        let selected = device.ports.keys().any(|port| selection.names(name, *port));
        if hardware_is_selected && !selected {
            continue;
        }
        findings.push(
            Finding::warn(
                NAME,
                &SOFTWARE,
                format!("{name} is software RDMA, not hardware: KV over it is no faster than TCP"),
            )
            .device(name.clone())
            .read_at(&origins(name, view), "software"),
        );
    }
}

/// Providers that libibverbs could not use; returns whether that leaves it without any device.
fn providers(view: &NodeView<'_>, findings: &mut Findings) -> bool {
    let rdma = &view.seen.rdma;
    let usable = rdma
        .devices
        .values()
        .any(|d| d.opens.value() == Some(&true) || d.ports.values().any(|p| p.state.is_seen()));
    let selection = Selection::of(view);
    let mut told = BTreeSet::new();
    let mut failed = false;
    for problem in &view.seen.software.verbs_problems {
        let device = problem
            .device
            .as_deref()
            .map(|path| path.rsplit('/').next().unwrap_or(path));
        if !told.insert((problem.driver.as_str(), device)) {
            continue;
        }
        let selected = device.is_some_and(|d| {
            selection
                .selectors
                .iter()
                .any(|s| s.named.iter().any(|n| n.device == d))
        });
        let place = std::slice::from_ref(&problem.origin);
        if let (Some(kernel), Some((first, last))) = (problem.kernel_abi, problem.supported_abi) {
            let name = device.unwrap_or("a device");
            let detail = format!(
                "the provider {} speaks ABI {first} to {last} and the kernel ABI {kernel}: libibverbs leaves {name} out",
                problem.driver
            );
            if selected || !usable {
                failed = true;
                findings.push(Finding::fail(NAME, &ABI, detail).read_at(place, "warning"));
            }
        } else if let Some(needed) = needs(view, &problem.driver) {
            failed = true;
            findings.push(
                Finding::fail(
                    NAME,
                    &NOT_LOADABLE,
                    format!(
                        "libibverbs could not load {}, which {needed} needs",
                        problem.driver
                    ),
                )
                .read_at(place, "warning"),
            );
        }
    }
    if rdma.devices.is_empty() {
        unknown_hardware(view, findings);
    }
    failed && !usable
}

/// Providers of the hardware that carries KV; others (`libcxgb4`, `librxe`) are missed by nobody.
const KV_PROVIDERS: [&str; 8] = [
    "mlx5", "efa", "bnxt_re", "irdma", "ionic", "mana", "hns", "erdma",
];

/// `mlx5` of `libmlx5-rdmav57.so`.
fn provider(library: &str) -> Option<&str> {
    let file = library.rsplit('/').next().unwrap_or(library);
    file.strip_prefix("lib")
        .unwrap_or(file)
        .split(['-', '.'])
        .next()
        .filter(|d| !d.is_empty())
}

/// Providers do not load, and no output lists the devices of this place.
fn unknown_hardware(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let works = log
        .lanes
        .iter()
        .flat_map(|line| &line.uses)
        .flat_map(|(_, lanes)| lanes)
        .chain(
            log.tables
                .iter()
                .flat_map(|t| &t.rows)
                .flat_map(|r| &r.lanes),
        )
        .any(|lane| family(&lane.transport) == Family::Rdma);
    // A list without a device says that none is here to need one.
    if works || view.seen.rdma.listings.iter().any(answers) {
        return;
    }
    let problems = &view.seen.software.verbs_problems;
    let mut names: Vec<&str> = problems
        .iter()
        .filter(|p| p.kernel_abi.is_none())
        .filter_map(|p| provider(&p.driver))
        .filter(|name| KV_PROVIDERS.contains(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    let first = problems
        .iter()
        .find(|p| provider(&p.driver).is_some_and(|name| names.contains(&name)));
    if let Some(first) = first {
        findings.push(
            Finding::warn(
                NAME,
                &NOT_LOADABLE,
                format!(
                    "libibverbs could not load its providers for {}: devices of that kind, if they are here, are left out",
                    names.join(", ")
                ),
            )
            .read_at(std::slice::from_ref(&first.origin), "warning"),
        );
    }
}

/// The device here that needs a provider library: `libmlx5-rdmav57.so` is for `mlx5_0`.
fn needs(view: &NodeView<'_>, library: &str) -> Option<String> {
    let driver = provider(library)?;
    view.seen
        .rdma
        .devices
        .iter()
        .filter(|(name, device)| !is_software(name, device))
        .find(|(name, device)| match device.driver.value() {
            // Kernel drivers end otherwise than their providers: mlx5_core and mlx5.
            Some(kernel) => kernel == driver || kernel.starts_with(&format!("{driver}_")),
            None => {
                name.starts_with(&format!("{driver}_"))
                    || name.trim_end_matches(|c: char| c.is_ascii_digit()) == driver
                    || (driver == "efa" && is_efa(name, device))
            }
        })
        .map(|(name, _)| name.clone())
}

/// Who lists a device.
fn origins(name: &str, view: &NodeView<'_>) -> Vec<Origin> {
    view.seen
        .rdma
        .listings
        .iter()
        .filter(|l| l.devices.iter().any(|d| d == name))
        .map(|l| l.origin.clone())
        .collect()
}
