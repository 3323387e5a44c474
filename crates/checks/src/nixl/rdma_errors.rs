//! RDMA worked while it was used: no retries ran out, no link was lost.
//!
//! Lines of UCX, libibverbs and the kernel. `Transport retry count exceeded` means that UCX chose RDMA and the peer did
//! not answer: it is a matter of addresses, loss or a dead peer, not of the list of transports.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use model::observation::log::Event;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::rdma_ports::PKEY;
use crate::node_view::NodeView;

const NAME: &str = "nixl/rdma-errors";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA transfers do not fail",
    source: include_str!("rdma_errors.rs"),
    causes: &[
        ROCE_RETRY,
        IB_RETRY,
        COMPLETION,
        ROUTE,
        LINK,
        HEALTH,
        CABLE,
        MLX5_SYMBOL,
    ],
    notes: &[],
    run: Run::Place(run),
};

const ROCE_RETRY: Cause = Cause {
    id: "roce-retry-exceeded",
    what: "UCX sent over RoCE and the peer did not answer (retry count exceeded)",
    why: "RDMA was chosen and does not reach the peer: the address, the MTU, loss in the network, or the peer is gone",
    fix: "first addresses (a routable RoCE v2 GID on both sides), then MTU, flow control (PFC, ECN) and cables",
    quiet_if: "the peer was stopped at that moment, as in a scale-down",
    source: "ucx src/uct/ib/mlx5/ib_mlx5_log.c; openucx/ucx#6000, #5199",
};

const IB_RETRY: Cause = Cause {
    id: "ib-retry-exceeded",
    what: "UCX sent over InfiniBand and the peer did not answer (retry count exceeded)",
    why: "RDMA was chosen and does not reach the peer: its port, a partition, or the peer is gone",
    fix: "look at the ports of both sides and at the subnet manager; compare partitions (pkeys)",
    quiet_if: "the peer was stopped at that moment, as in a scale-down",
    source: "ucx src/uct/ib/mlx5/ib_mlx5_log.c; InfiniBand Architecture Specification 1, 9.9",
};

const COMPLETION: Cause = Cause {
    id: "rdma-completion-error",
    what: "an RDMA operation ended with an error other than an exceeded retry",
    why: "the transfer failed; an access or protection error often means that the card cannot reach GPU memory",
    fix: "look at GPUDirect (node) and at the first error line of the other side",
    quiet_if: "it is a flush after the first error, or the peer was stopped at that moment",
    source: "ucx src/uct/ib/mlx5/ib_mlx5_log.c",
};

const ROUTE: Cause = Cause {
    id: "roce-no-ip-route-between-rails",
    what: "a connection from one RDMA device to another rail's address timed out",
    why: "each card is in a network of its own, and this one has no route to the peer's",
    fix: "pair rails: the same device list on both sides, UCX_IB_ROCE_LOCAL_SUBNET=y, or route between the networks",
    quiet_if: "the networks are routed, or the peer was stopped at that moment",
    source: "openucx/ucx#9971; ucx src/uct/ib/base/ib_iface.c (ROCE_LOCAL_SUBNET)",
};

const LINK: Cause = Cause {
    id: "kernel-link-lost",
    what: "the kernel log shows that a network card lost its link",
    why: "queue pairs on it broke at that moment",
    fix: "check cable and transceiver of that port",
    quiet_if: "it happened once and at the start of the machine, with a link afterwards",
    source: "Linux drivers/net/ethernet/mellanox/mlx5/core/en_main.c (Link up, Link down)",
};

const HEALTH: Cause = Cause {
    id: "kernel-nic-health",
    what: "the kernel log reports a fault of a network card: its firmware, or too little power from the slot",
    why: "the card resets or limits itself",
    fix: "update the firmware; reseat the card; look at the lines around it",
    quiet_if: "no such line",
    source: "Linux drivers/net/ethernet/mellanox/mlx5/core (health.c, events.c)",
};

const CABLE: Cause = Cause {
    id: "kernel-nic-cable",
    what: "the kernel log reports an error of a network card's cable or transceiver",
    why: "the port loses its link or stays down",
    fix: "reseat or replace the cable or transceiver of that port; look at its temperature",
    quiet_if: "the event says plugged, unplugged, enabled or disabled, without an error",
    source: "Linux drivers/net/ethernet/mellanox/mlx5/core/events.c (Port module event)",
};

const MLX5_SYMBOL: Cause = Cause {
    id: "image-libmlx5-symbol",
    what: "libmlx5 lacks a symbol that NCCL or UCX looks for",
    why: "the image's rdma-core is old: the data-direct path is off, or the library does not load",
    fix: "use rdma-core 54 or newer in the image",
    quiet_if: "the machine has no data-direct interface and the line is only information",
    source: "rdma-core providers/mlx5 (mlx5dv_get_data_direct_sysfs_path); NVIDIA/nccl#1866",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    retries(view, findings);
    completions(view, findings);
    let log = &view.seen.log;
    let one = |pattern: &str| log.of(pattern).next().cloned();
    if let Some(event) = one("ucx-pkey") {
        let on = event
            .field("port")
            .map(|p| format!(" on {p}"))
            .or_else(|| event.field("pkey").map(|p| format!(": {p}")))
            .unwrap_or_default();
        push(
            Finding::warn(NAME, &PKEY, format!("UCX finds no valid pkey{on}")),
            &event,
            findings,
        );
    }
    if let Some(event) = log.of("ucx-verbs-connect-timed-out").find(|e| {
        e.field("error").is_some_and(|t| t.contains("timed out"))
            && e.field("device").is_some_and(|d| !d.contains(' '))
    }) {
        let device = event.field("device").unwrap_or_default().to_owned();
        push(
            Finding::warn(
                NAME,
                &ROUTE,
                format!("a connection on {device} timed out: its network may have no route to the peer's"),
            )
            .device(device.clone()),
            event,
            findings,
        );
    }
    kernel(view, findings);
    if let Some(event) = one("verbs-symbol") {
        let symbol = event.field("symbol").unwrap_or_default();
        push(
            Finding::warn(
                NAME,
                &MLX5_SYMBOL,
                format!("libmlx5 lacks the symbol {symbol}"),
            ),
            &event,
            findings,
        );
    }
}

fn push(finding: Finding, event: &Event, findings: &mut Findings) {
    findings.push(finding.read_at(std::slice::from_ref(&event.origin), "line"));
}

fn retries(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let mut ports: BTreeMap<&str, (&Event, u32)> = BTreeMap::new();
    for event in log.of("ucx-retry-exceeded") {
        let port = event.field("port").unwrap_or("an RDMA port");
        let entry = ports.entry(port).or_insert((event, 0));
        entry.1 = entry.1.saturating_add(event.count);
    }
    // The queue pair's line follows the error's.
    let pair = log.of("ucx-queue-pair").next();
    for (port, (event, count)) in ports {
        let infiniband = event
            .field("link")
            .is_some_and(|l| l.to_ascii_uppercase().starts_with("IB"))
            || event.field("link") == Some("InfiniBand");
        let mut detail = format!(
            "transport retry count exceeded on {port}{}: UCX used RDMA and the peer did not answer",
            if count > 1 {
                format!(" ({count} times)")
            } else {
                String::new()
            }
        );
        let local = pair
            .and_then(|p| p.field("dgid"))
            .and_then(|gid| gid.parse::<Ipv6Addr>().ok())
            .is_some_and(|gid| gid.is_unicast_link_local());
        if let (false, Some(pair)) = (infiniband, pair) {
            if local {
                detail.push_str("; it sent to a link-local GID");
            }
            if let Some(index) = pair.field("sgid_index") {
                detail.push_str(" from GID index ");
                detail.push_str(index);
            }
            if pair.field("traffic_class") == Some("0") {
                detail.push_str(", traffic class 0 (the default)");
            }
        }
        let cause = if infiniband { &IB_RETRY } else { &ROCE_RETRY };
        let finding = Finding::fail(NAME, cause, detail).device(port.to_owned());
        let finding = if local && !infiniband {
            finding.fix("give both RoCE interfaces an IP address, so that UCX finds a routable RoCE v2 GID; then look at flow control (PFC, ECN)")
        } else {
            finding
        };
        push(finding, event, findings);
    }
}

fn completions(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let first = log.of("ucx-completion-error").find(|e| {
        e.field("what").is_some_and(|what| {
            let what = what.to_ascii_lowercase();
            !what.contains("flush") && !what.contains("retry count exceeded")
        })
    });
    let Some(event) = first else { return };
    let words: String = event
        .field("what")
        .unwrap_or_default()
        .split_whitespace()
        .rev()
        .take(6)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
        .join(" ");
    let port = event.field("port").unwrap_or("an RDMA port").to_owned();
    push(
        Finding::fail(NAME, &COMPLETION, format!("{words} on {port}")).device(port),
        event,
        findings,
    );
}

/// Links that were lost, and faults of cards. Devices are PCI addresses.
fn kernel(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let mut down: BTreeMap<&str, (&Event, u32)> = BTreeMap::new();
    for event in log.of("kernel-mlx5-link-down") {
        let device = event.field("device").unwrap_or_default();
        let entry = down.entry(device).or_insert((event, 0));
        entry.1 = entry.1.saturating_add(event.count);
    }
    for (device, (event, count)) in down {
        let up = log
            .of("kernel-mlx5-link-up")
            .any(|e| e.field("device") == Some(device) && e.last_line > event.last_line);
        if count < 2 && up {
            continue;
        }
        let detail = if up {
            format!("the kernel log shows {count} losses of the link of {device}")
        } else {
            format!("the kernel log shows that {device} lost its link, and no link after that")
        };
        push(
            Finding::warn(NAME, &LINK, detail).device(device.to_owned()),
            event,
            findings,
        );
    }
    let mut cables: Vec<&str> = Vec::new();
    for event in log.of("kernel-mlx5-cable") {
        let text = event.field("text").unwrap_or_default();
        let device = event.field("device").unwrap_or_default();
        if !(text.contains("[error]") || text.to_ascii_lowercase().contains("error"))
            || cables.contains(&device)
        {
            continue;
        }
        cables.push(device);
        let words = text.split_once(": ").map_or(text, |(_, words)| words);
        push(
            Finding::warn(
                NAME,
                &CABLE,
                format!("the network card {device} reports: {words}"),
            )
            .device(device.to_owned()),
            event,
            findings,
        );
    }
    let fault = log
        .of("kernel-mlx5-health")
        .map(|e| (e, "reports a fault of its firmware (health)"))
        .chain(
            log.of("kernel-mlx5-pcie-power")
                .map(|e| (e, "gets too little power from its slot")),
        )
        .next();
    if let Some((event, what)) = fault {
        let device = event.field("device").unwrap_or_default().to_owned();
        push(
            Finding::warn(NAME, &HEALTH, format!("the network card {device} {what}"))
                .device(device.clone()),
            event,
            findings,
        );
    }
}
