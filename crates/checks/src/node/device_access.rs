//! This container may use the RDMA devices that it sees.
//!
//! `/sys` is the host's: it lists every device of the machine in every container. What a container may use are the
//! nodes `/dev/infiniband/uverbsN` that it was given and may open. libibverbs drops a device without a node without
//! a word. Fewer nodes than devices is normal with a device plugin; a setting that names a device that was not given
//! is not. Nodes `issm`, `umad` and `ucm` are not needed for KV.

use model::Reason;
use model::observation::rdma::DevNode;
use model::observation::{Origin, Tool};

use super::ports::{is_efa, list};
use super::rdma_devices::is_software;
use super::selection::Selection;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/device-access";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA devices can be opened here",
    source: include_str!("device_access.rs"),
    causes: &[MISSING, PARTIAL, PERMISSION, BROKEN],
    notes: &[],
    run: Run::Place(run),
};

const MISSING: Cause = Cause {
    id: "dev-infiniband-missing",
    what: "RDMA devices are listed in /sys, and this container cannot open any: it has no uverbs node",
    why: "/sys shows the host's devices everywhere; without a device node UCX finds none and uses TCP without a word",
    fix: "request the RDMA resource of the cluster's device plugin, so that it adds the nodes",
    quiet_if: "no device is listed (then it is node/rdma-devices), or a uverbs node is here",
    source: "rdma-core libibverbs/init.c, ibdev_nl.c; NVIDIA/nccl#451",
};

const PARTIAL: Cause = Cause {
    id: "dev-infiniband-partial",
    what: "a setting selects an RDMA device that this container was not given",
    why: "UCX finds the device unavailable; with TCP allowed it goes on over TCP",
    fix: "do not name devices where a device plugin chooses them; or request the named one",
    quiet_if: "no setting names devices: fewer device nodes than devices is normal",
    source: "linux-rdma/rdma-core#1060; Mellanox/k8s-rdma-shared-dev-plugin#93",
};

const PERMISSION: Cause = Cause {
    id: "uverbs-permission",
    what: "the uverbs nodes are here and may not be opened",
    why: "libibverbs drops a device that it cannot open; UCX then uses TCP",
    fix: "give the nodes mode 0666 (udev rule of rdma-core), or let the device plugin grant them to the container",
    quiet_if: "a node can be opened, everybody may (crw-rw-rw-), or the process is root",
    source: "rdma-core libibverbs/init.c; kernel cgroup device rules (EPERM on open)",
};

const BROKEN: Cause = Cause {
    id: "uverbs-open-fails",
    what: "the uverbs nodes are here, and opening them fails for another reason than permission, mostly No such device",
    why: "nothing is behind the node: its driver is not loaded, or the device is gone; UCX then uses TCP",
    fix: "load the driver of the network card, or start the container anew so that it gets the nodes of today",
    quiet_if: "a node can be opened",
    source: "open(2), ENXIO and ENODEV; rdma-core libibverbs/init.c",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let before = findings.results().len();
    selected_without_node(view, findings);
    opened_by_libibverbs(view, findings);
    opened_by_nccl(view, findings);
    if findings.results().len() == before {
        nodes(view, findings);
    }
}

/// Somebody looked at the nodes. sysfs names them too, and says nothing about this container.
fn looked(view: &NodeView<'_>) -> bool {
    let rdma = &view.seen.rdma;
    rdma.nodes_present.is_seen() || rdma.nodes.values().any(seen)
}

fn seen(node: &DevNode) -> bool {
    node.exists.is_seen() || node.mode.is_seen() || node.opens.is_seen()
}

fn uverbs<'v>(view: &NodeView<'v>) -> Vec<(&'v str, &'v DevNode)> {
    view.seen
        .rdma
        .nodes
        .iter()
        .filter(|(name, node)| {
            name.starts_with("uverbs") && seen(node) && node.exists.value() != Some(&false)
        })
        .map(|(name, node)| (name.as_str(), node))
        .collect()
}

/// Devices that some source lists: hardware, and software only where there is no hardware.
fn listed(view: &NodeView<'_>) -> Vec<String> {
    let (software, hardware): (Vec<_>, Vec<_>) = view
        .seen
        .rdma
        .devices
        .iter()
        .partition(|(name, device)| is_software(name, device));
    let which = if hardware.is_empty() {
        software
    } else {
        hardware
    };
    which.into_iter().map(|(name, _)| name.clone()).collect()
}

fn node_origins(view: &NodeView<'_>) -> Vec<Origin> {
    view.seen
        .rdma
        .nodes
        .values()
        .flat_map(|node| node.exists.sources().iter().chain(node.mode.sources()))
        .take(1)
        .cloned()
        .collect()
}

/// What a listing of `/dev/infiniband` shows.
fn nodes(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    let nodes = uverbs(view);
    let devices = listed(view);
    if nodes.is_empty() {
        if !looked(view) {
            return;
        }
        let sources = if rdma.nodes_present.is_seen() {
            rdma.nodes_present.sources().to_vec()
        } else {
            node_origins(view)
        };
        findings.push(if devices.is_empty() {
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                "/dev/infiniband has no uverbs node here; which devices the host has is not shown",
            )
        } else {
            Finding::fail(
                NAME,
                &MISSING,
                format!(
                    "{} listed, and /dev/infiniband has no uverbs node here",
                    list(&devices)
                ),
            )
        }
        .read_at(&sources, "no uverbs node"));
        return;
    }
    let refused: Vec<String> = nodes
        .iter()
        .filter(|(_, node)| node.opens.value() == Some(&false))
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let uid = view.seen.limits.uid.value().copied();
    let root_only: Vec<String> = nodes
        .iter()
        .filter(|(_, node)| !node.opens.is_seen() && only_owner(node))
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let names: Vec<String> = nodes.iter().map(|(name, _)| (*name).to_owned()).collect();
    let origins = node_origins(view);
    if refused.len() == nodes.len() {
        findings.push(refusal(&nodes, &refused));
        return;
    }
    if root_only.len() == nodes.len() {
        findings.push(
            match uid {
                Some(0) => Finding::ok(
                    NAME,
                    format!(
                        "{}: only root may open them, and this is root",
                        list(&names)
                    ),
                ),
                Some(uid) => Finding::fail(
                    NAME,
                    &PERMISSION,
                    format!(
                        "only root may open {}, and this is user {uid}",
                        list(&root_only)
                    ),
                ),
                None => Finding::warn(
                    NAME,
                    &PERMISSION,
                    format!(
                        "only their owner may open {}; a worker that is not root cannot",
                        list(&root_only)
                    ),
                ),
            }
            .read_at(&origins, "mode"),
        );
        return;
    }
    if uid != Some(0)
        && let Some(group) = closed_group(&nodes)
    {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "only root and the group {group} may open {}; whether the worker is one of them is not shown",
                    list(&names)
                ),
            )
            .fix("`id` in the worker's container names its user and groups")
            .read_at(&origins, "mode"),
        );
        return;
    }
    let mut finding = Finding::ok(
        NAME,
        format!(
            "{} uverbs node{} here: {}",
            names.len(),
            if names.len() == 1 { " is" } else { "s are" },
            list(&names)
        ),
    )
    .read_at(&origins, "node");
    if devices.len() > nodes.len() {
        finding = finding.note(format!(
            "{} of {} devices of the host were given to this container, which is normal with a device plugin; a setting that names another one would be wrong",
            nodes.len(),
            devices.len()
        ));
    }
    if !refused.is_empty() {
        finding = finding.note(format!("{} cannot be opened", list(&refused)));
    }
    if !root_only.is_empty() {
        finding = finding.note(format!("only their owner may open {}", list(&root_only)));
    }
    findings.push(finding);
}

/// No node can be opened: why, and at which node one sees it.
fn refusal(nodes: &[(&str, &DevNode)], refused: &[String]) -> Finding {
    let first = nodes
        .iter()
        .find(|(_, node)| node.open_error.is_seen())
        .or_else(|| nodes.first());
    let error = first.and_then(|(_, node)| node.open_error.value());
    let what = match error {
        Some(error) => format!("{} cannot be opened here: {error}", list(refused)),
        None => format!("{} cannot be opened here", list(refused)),
    };
    let finding = match error.map(String::as_str) {
        // The mode allows it, and the control group of devices does not.
        Some("Operation not permitted") => Finding::fail(NAME, &PERMISSION, what).fix(
            "request the RDMA resource of the cluster's device plugin: a node that is only mounted stays closed",
        ),
        None | Some("Permission denied") => Finding::fail(NAME, &PERMISSION, what),
        Some(_) => Finding::fail(NAME, &BROKEN, what),
    };
    match first {
        Some((_, node)) => finding.seen(&node.opens, "not opened"),
        None => finding,
    }
}

/// The group that alone may open the nodes beside root, where nobody has tried to.
fn closed_group<'v>(nodes: &[(&'v str, &'v DevNode)]) -> Option<&'v str> {
    let mut found = None;
    for (_, node) in nodes {
        let mode = node.mode.value()?;
        let others = mode.get(7..9)?;
        let (_, group) = node.owner.value()?;
        if node.opens.is_seen() || others == "rw" {
            return None;
        }
        found = Some(group.as_str());
    }
    found
}

/// Neither group nor others may read and write; the group may be one that the process is in.
fn only_owner(node: &DevNode) -> bool {
    node.mode.value().is_some_and(|mode| {
        let rights = |from: usize| mode.get(from..from.saturating_add(2));
        rights(4).is_some_and(|r| r != "rw") && rights(7).is_some_and(|r| r != "rw")
    })
}

/// A selected device whose node is known not to be here, or that cannot be opened.
fn selected_without_node(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    let here = uverbs(view);
    for selector in Selection::of(view).selectors {
        for named in &selector.named {
            let Some(device) = rdma.devices.get(&named.device) else {
                continue;
            };
            let without = looked(view)
                && device
                    .uverbs
                    .value()
                    .is_some_and(|node| !here.iter().any(|(name, _)| name == node));
            if (without || device.opens.value() == Some(&false)) && !here.is_empty() {
                findings.push(
                    Finding::fail(
                        NAME,
                        &PARTIAL,
                        format!(
                            "{} names {}, which this container was not given",
                            selector.name, named.device
                        ),
                    )
                    .device(named.device.clone())
                    .seen(selector.fact, "setting"),
                );
            }
        }
    }
}

/// What `ibv_devinfo` and `ibv_devices` could open.
fn opened_by_libibverbs(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    let opened = rdma
        .devices
        .values()
        .any(|d| d.opens.value() == Some(&true));
    if let Some(origin) = rdma.open_failures.first() {
        if opened {
            let names: Vec<String> = rdma
                .devices
                .iter()
                .filter(|(_, d)| d.opens.value() == Some(&true))
                .map(|(name, _)| name.clone())
                .collect();
            findings.push(
                Finding::ok(NAME, format!("{} can be opened", list(&names)))
                    .note(format!(
                        "{} other devices of the host could not be opened: they were not given to this container, which is normal",
                        rdma.open_failures.len()
                    ))
                    .read_at(std::slice::from_ref(origin), "not opened"),
            );
        } else {
            findings.push(
                Finding::fail(
                    NAME,
                    &PERMISSION,
                    "libibverbs lists devices and can open none of them",
                )
                .read_at(std::slice::from_ref(origin), "not opened"),
            );
        }
        return;
    }
    let verbs = |tool| matches!(tool, Tool::IbvDevinfo | Tool::IbvDevices);
    let empty = rdma
        .listings
        .iter()
        .find(|l| verbs(l.origin.from.tool) && l.devices.is_empty() && !l.cut);
    let elsewhere: Vec<String> = listed(view)
        .into_iter()
        .filter(|name| {
            !rdma
                .listings
                .iter()
                .any(|l| verbs(l.origin.from.tool) && l.devices.contains(name))
        })
        .collect();
    let Some(empty) = empty else { return };
    let same_place = |l: &&model::observation::rdma::Listing| {
        !verbs(l.origin.from.tool)
            && !l.devices.is_empty()
            && l.origin.from.place == empty.origin.from.place
    };
    let Some(other) = rdma.listings.iter().find(same_place) else {
        return;
    };
    // A provider that cannot be loaded is told by node/rdma-devices.
    if elsewhere.is_empty()
        || !view.seen.software.verbs_problems.is_empty()
        || !uverbs(view).is_empty()
        || elsewhere
            .iter()
            .all(|name| rdma.devices.get(name).is_some_and(|d| is_efa(name, d)))
    {
        return;
    }
    findings.push(
        Finding::fail(
            NAME,
            &MISSING,
            format!(
                "the kernel has {}, and libibverbs finds no device here: no uverbs node, or no provider library for it",
                list(&elsewhere)
            ),
        )
        .read_at(&[empty.origin.clone(), other.origin.clone()], "listed"),
    );
}

/// NCCL opens the same nodes as UCX does.
fn opened_by_nccl(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let events: Vec<_> = log.of("nccl-device-not-opened").collect();
    let Some(first) = events.first() else { return };
    let mut names: Vec<String> = events
        .iter()
        .filter_map(|e| e.field("device").map(str::to_owned))
        .collect();
    names.dedup();
    let uses_others = log.of("nccl-ib").next().is_some();
    let place = [first.origin.clone()];
    findings.push(if uses_others {
        Finding::ok(NAME, "NCCL could open some RDMA devices here")
            .note(format!(
                "it could not open {}; a setting that names one of them would be wrong",
                list(&names)
            ))
            .read_at(&place, "not opened")
    } else {
        Finding::fail(
            NAME,
            &MISSING,
            format!(
                "{} is listed and could not be opened by NCCL, and UCX opens the same node: it is missing in this container, or not permitted",
                list(&names)
            ),
        )
        .read_at(&place, "not opened")
    });
}
