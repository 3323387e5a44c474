//! Devices that settings select are here, and are the right ones.
//!
//! `UCX_NET_DEVICES` and flags such as `--disaggregation-ib-device` are looked up among the devices that are listed, by
//! the rules of UCX. A selected device should be on the fabric of the compute ports, and near a GPU where the matrix
//! tells. What is selected by nobody is chosen by UCX itself, which is fine. NCCL's own settings are not looked at:
//! they do not move KV. Whether selected ports are active is told by `node/rdma-ports`.

use std::collections::BTreeSet;

use settings::ucx_net_devices::{ItemKind, classify};

use super::ports::{Fabric, PortRef, is_azure_front_end, list, near_a_gpu, ports, rate, rate_of};
use super::selection::{Selection, Selector};
use crate::check::{Cause, Check, Run};
use crate::env::ucx_net_devices::{
    AZURE_FRONT_END, EMPTY, LOOPBACK, MANY_GPUS, NETDEV_ONLY, SINGLE_NIC, SPACE, SYNTAX,
};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/selected-devices";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "Selected RDMA devices are here and fit",
    source: include_str!("selected_devices.rs"),
    causes: &[MISSING, STORAGE, MIXED, NVLINK_CONTROLLER, FAR],
    notes: &[],
    run: Run::Place(run),
};

const MISSING: Cause = Cause {
    id: "selected-device-missing",
    what: "a setting selects an RDMA device or port that is not here",
    why: "nothing matches the name: UCX warns and uses what else the list allows, or nothing",
    fix: "name a device that is here, with its port (mlx5_0:1); or remove the setting, so that UCX takes the nearest",
    quiet_if: "the list of devices is cut off, the value is put together at start, or the setting only excludes",
    source: "ucx src/ucp/core/ucp_context.c (network device not available); sglang disaggregation arguments",
};

const STORAGE: Cause = Cause {
    id: "ucx-netdev-storage-or-mgmt-nic",
    what: "a selected device is not one of the compute ports: another fabric, or far slower",
    why: "KV goes through a front-end or storage card, which is slower and often not connected to the peer's fabric",
    fix: "select the compute ports, or remove the setting",
    quiet_if: "no other fabric and no faster port is active here",
    source: "NVIDIA/nccl#1453; NVIDIA/NVSentinel#1221",
};

const MIXED: Cause = Cause {
    id: "ucx-netdev-ib-roce-mixed",
    what: "one setting selects active ports of InfiniBand and of Ethernet",
    why: "a lane needs one fabric at both ends: UCX may pair ports that cannot reach each other, or send KV through the front end",
    fix: "name the ports of one fabric only: that of the compute ports",
    quiet_if: "the setting is unset or only excludes, or the ports of one of the two are down",
    source: "UCX uct_ib_iface_is_reachable; NVIDIA/nccl#1453",
};

const NVLINK_CONTROLLER: Cause = Cause {
    id: "b200-nvswitch-lpf-as-nic",
    what: "a selected device manages NVLink switches and is no network card",
    why: "on B200 and newer boards it looks like an active InfiniBand card and has a subnet manager of its own; it reaches no other machine",
    fix: "select the compute ports: by rate, subnet manager and PCI parent, not by number",
    quiet_if: "it is not selected; boards before B200 have none",
    source: "NVIDIA fabric manager and NVLSM logs; siderolabs/extensions#893",
};

const FAR: Cause = Cause {
    id: "topo-far-numa-selected",
    what: "a selected device is near no GPU of this container, and another device is",
    why: "every byte crosses host bridges or sockets: often half the rate, and no GPUDirect with NCCL's defaults",
    fix: "select the device that nvidia-smi topo -m shows as PIX or PXB, or remove the setting",
    quiet_if: "no device is nearer, as on Grace, or no matrix is shown",
    source: "nvidia-smi topo; NVIDIA/nccl#1435",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let selection = Selection::of(view);
    if selection.selectors.is_empty() {
        return;
    }
    let ports = ports(view);
    for selector in &selection.selectors {
        let before = findings.results().len();
        if selector.name == "UCX_NET_DEVICES" {
            value(view, selector, findings);
        }
        missing(view, selector, findings);
        fitting(view, selector, &ports, findings);
        if findings.results().len() == before {
            fine(view, selector, &ports, findings);
        }
    }
}

/// The value itself, by the rules that hold for recipes too.
fn value(view: &NodeView<'_>, selector: &Selector<'_>, findings: &mut Findings) {
    let items = classify(selector.value);
    let shown = format!("UCX_NET_DEVICES={}", selector.value);
    let mut push = |finding: Finding| findings.push(finding.seen(selector.fact, "setting"));
    if selector.value.is_empty() {
        push(Finding::fail(
            NAME,
            &EMPTY,
            "UCX_NET_DEVICES is set to nothing: no network device is kept",
        ));
    }
    if items.iter().any(|i| i.kind == ItemKind::SpaceOrQuote) {
        push(Finding::warn(
            NAME,
            &SPACE,
            format!("{shown}: UCX does not trim spaces and quotes, so an item matches nothing"),
        ));
    }
    if items.iter().any(|i| i.kind == ItemKind::Pattern) {
        push(Finding::fail(
            NAME,
            &SYNTAX,
            format!("{shown}: UCX takes exact names, so a pattern matches nothing"),
        ));
    }
    let interfaces_only = !selector.value.starts_with('^')
        && !items.is_empty()
        && items
            .iter()
            .all(|i| i.kind == ItemKind::Netdev && !view.seen.rdma.devices.contains_key(i.text));
    if !interfaces_only {
        return;
    }
    if items.iter().all(|i| i.text == "lo") {
        push(Finding::fail(
            NAME,
            &LOOPBACK,
            format!("{shown}: nothing outside this network namespace can be reached"),
        ));
        return;
    }
    let detail = format!("{shown} names interfaces only: that allows TCP and no RDMA");
    let rdma_here = view
        .seen
        .rdma
        .devices
        .iter()
        .any(|(name, device)| !super::rdma_devices::is_software(name, device));
    push(if rdma_here || view.is_kv_worker() {
        Finding::fail(NAME, &NETDEV_ONLY, detail)
    } else {
        Finding::warn(NAME, &NETDEV_ONLY, detail)
    });
}

/// The whole list of devices is here.
fn list_is_whole(view: &NodeView<'_>) -> bool {
    view.seen
        .rdma
        .listings
        .iter()
        .any(|l| !l.cut && l.error.is_none())
}

fn missing(view: &NodeView<'_>, selector: &Selector<'_>, findings: &mut Findings) {
    if !list_is_whole(view) {
        return;
    }
    let devices = &view.seen.rdma.devices;
    let interfaces = &view.seen.interfaces.interfaces;
    let absent: Vec<String> = selector
        .named
        .iter()
        .filter(|named| match devices.get(&named.device) {
            // A name without a port may be an interface: UCX takes these for TCP.
            None => !(named.port.is_none() && interfaces.contains_key(&named.device)),
            Some(device) => named.port.is_some_and(|port| {
                !device.ports.contains_key(&port)
                    && device.port_count.value().is_some_and(|count| port > *count)
            }),
        })
        .map(|named| match named.port {
            Some(port) => format!("{}:{port}", named.device),
            None => named.device.clone(),
        })
        .collect();
    if absent.is_empty() {
        return;
    }
    let here: Vec<String> = devices.keys().cloned().collect();
    let detail = format!(
        "{} selects {}, which is not here; here: {}",
        selector.name,
        list(&absent),
        if here.is_empty() {
            "none".to_owned()
        } else {
            list(&here)
        }
    );
    let finding = if absent.len() == selector.named.len() {
        Finding::fail(NAME, &MISSING, detail)
    } else {
        Finding::warn(NAME, &MISSING, detail)
    };
    findings.push(finding.seen(selector.fact, "setting"));
}

/// Selected ports against those that are not.
fn fitting(
    view: &NodeView<'_>,
    selector: &Selector<'_>,
    ports: &[PortRef<'_>],
    findings: &mut Findings,
) {
    let others: Vec<&PortRef<'_>> = ports
        .iter()
        .filter(|p| !p.selected && p.is_active() && p.is_hardware() && !p.nvlink_controller)
        .collect();
    let infiniband_elsewhere = others.iter().any(|p| p.fabric == Fabric::InfiniBand);
    let fastest = others.iter().filter_map(|p| rate_of(p.port)).max();
    let mut done = BTreeSet::new();
    for port in ports.iter().filter(|p| chosen(selector, p)) {
        let mbps = rate_of(port.port).filter(|_| port.is_active());
        let much_slower = mbps
            .zip(fastest)
            .is_some_and(|(mine, best)| mine.saturating_mul(2) < best);
        if port.nvlink_controller {
            findings.push(
                Finding::warn(
                    NAME,
                    &NVLINK_CONTROLLER,
                    format!(
                        "{} selects {}, which manages NVLink switches and is no network card",
                        selector.name,
                        port.label()
                    ),
                )
                .device(port.label())
                .seen(selector.fact, "setting"),
            );
        } else if is_azure_front_end(port.name) {
            findings.push(
                Finding::warn(
                    NAME,
                    &AZURE_FRONT_END,
                    format!(
                        "{} selects {}, Azure's front-end network",
                        selector.name,
                        port.label()
                    ),
                )
                .device(port.label())
                .seen(selector.fact, "setting"),
            );
        } else if (port.fabric == Fabric::Roce && infiniband_elsewhere) || much_slower {
            let why = match (port.fabric == Fabric::Roce && infiniband_elsewhere, mbps) {
                (true, _) => "it speaks Ethernet, and InfiniBand ports are active here".to_owned(),
                (false, Some(mbps)) => format!(
                    "it runs at {}, and others at {}",
                    rate(mbps),
                    rate(fastest.unwrap_or(mbps))
                ),
                (false, None) => "others are faster".to_owned(),
            };
            let detail = format!("{} selects {}: {why}", selector.name, port.label());
            let finding = if mbps
                .zip(fastest)
                .is_some_and(|(mine, best)| mine.saturating_mul(8) <= best)
            {
                Finding::fail(NAME, &STORAGE, detail)
            } else {
                Finding::warn(NAME, &STORAGE, detail)
            };
            findings.push(
                finding
                    .device(port.label())
                    .seen(selector.fact, "setting")
                    .seen(&port.port.state, "port"),
            );
        }
    }
    mixed(selector, ports, findings);
    let gpus = view.seen.gpu.usable();
    let alike = others.iter().any(|p| {
        ports
            .iter()
            .any(|mine| chosen(selector, mine) && mine.class() == p.class())
    });
    if let [one] = selector.named.as_slice()
        && alike
        && u64::try_from(gpus).unwrap_or(u64::MAX) >= MANY_GPUS
    {
        findings.push(
            Finding::warn(
                NAME,
                &SINGLE_NIC,
                format!(
                    "{} selects {} alone for {gpus} GPUs, and other ports of its kind are active",
                    selector.name, one.device
                ),
            )
            .device(one.device.clone())
            .seen(selector.fact, "setting"),
        );
    }
    for named in &selector.named {
        if near_a_gpu(view, &named.device) == Some(false) && done.insert(&named.device) {
            findings.push(
                Finding::warn(
                    NAME,
                    &FAR,
                    format!(
                        "{} selects {}, which is near no GPU here, and others are",
                        selector.name, named.device
                    ),
                )
                .device(named.device.clone())
                .seen(selector.fact, "setting"),
            );
        }
    }
}

/// Ports of both fabrics in one list of names.
fn mixed(selector: &Selector<'_>, ports: &[PortRef<'_>], findings: &mut Findings) {
    let of = |fabric: Fabric| -> Vec<&PortRef<'_>> {
        ports
            .iter()
            .filter(|p| p.fabric == fabric && p.is_active() && !p.nvlink_controller)
            .filter(|p| !is_azure_front_end(p.name) && chosen(selector, p))
            .collect()
    };
    let (infiniband, ethernet) = (of(Fabric::InfiniBand), of(Fabric::Roce));
    let (Some(_), Some(first)) = (infiniband.first(), ethernet.first()) else {
        return;
    };
    let names =
        |ports: &[&PortRef<'_>]| list(&ports.iter().map(|p| p.label()).collect::<Vec<String>>());
    findings.push(
        Finding::warn(
            NAME,
            &MIXED,
            format!(
                "{} selects InfiniBand ({}) and Ethernet ({}) together",
                selector.name,
                names(&infiniband),
                names(&ethernet)
            ),
        )
        .device(first.label())
        .seen(selector.fact, "setting")
        .seen(&first.port.link_layer, "Ethernet"),
    );
}

fn chosen(selector: &Selector<'_>, port: &PortRef<'_>) -> bool {
    selector
        .named
        .iter()
        .any(|n| n.device == port.name && n.port.is_none_or(|p| p == port.number))
        || (selector.named.is_empty() && port.selected)
}

fn fine(
    view: &NodeView<'_>,
    selector: &Selector<'_>,
    ports: &[PortRef<'_>],
    findings: &mut Findings,
) {
    let names: Vec<String> = ports
        .iter()
        .filter(|p| chosen(selector, p))
        .map(PortRef::label)
        .collect();
    if !names.is_empty() {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "{} selects {}, and they are here",
                    selector.name,
                    list(&names)
                ),
            )
            .seen(selector.fact, "setting"),
        );
        return;
    }
    let rdma = classify(selector.value)
        .iter()
        .any(|i| matches!(i.kind, ItemKind::Port { .. } | ItemKind::BareHca));
    if rdma && !view.seen.rdma.devices.is_empty() && list_is_whole(view) {
        return;
    }
    findings.push(Finding::skipped(
        NAME,
        model::Reason::NotVisible,
        format!(
            "{}={}: which devices are here is not shown",
            selector.name, selector.value
        ),
    ));
}
