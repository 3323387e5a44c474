//! Active ports are as fast as their peers, and fast enough for KV.
//!
//! What is right depends on the card, so a port is compared with ports of the same kind of card, not with a number:
//! `200 Gb/sec (2X NDR)` is a whole 200G port. Only where nothing faster is there is a low rate told as such. Ports
//! that are down print a placeholder, and are not looked at.

use std::collections::BTreeMap;

use super::ports::{Class, Fabric, PortRef, list, ports, rate, rate_of};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/rdma-rates";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA ports run at full rate",
    source: include_str!("rdma_rates.rs"),
    causes: &[DEGRADED, LOW],
    notes: &[MTU],
    run: Run::Place(run),
};

const DEGRADED: Cause = Cause {
    id: "ib-rate-degraded",
    what: "a port runs slower than the other ports of the same kind of card, or over fewer lanes",
    why: "KV that this rail carries waits for it",
    fix: "reseat or change the cable or transceiver; compare with the switch port",
    quiet_if: "the port is down (then its rate is a placeholder), is a bond or of another kind of card, or is near no GPU",
    source: "leptonai/gpud (infiniband expected rates); NCCL documentation, troubleshooting",
};

const LOW: Cause = Cause {
    id: "ib-rate-low-absolute",
    what: "the fastest active port has 25 Gb/s or less",
    why: "RDMA works, at about 3 GB/s at best: little better than TCP",
    fix: "use nodes with a faster network card, or select the faster one",
    quiet_if: "a faster port is active, or it is EFA or software RDMA, whose printed rate means nothing",
    source: "NVIDIA/nccl#451; Linux drivers/infiniband/core/sysfs.c (rate_show)",
};

const MTU: Cause = Cause {
    id: "roce-mtu-1500",
    what: "a RoCE port sends packets of 1024 bytes, as it does on an interface with MTU 1500",
    why: "RoCE packets of 1024 bytes: an interface MTU of 4200 or more gives 4096, which is a little faster",
    fix: "raise the MTU of the interfaces, the switches and the peers together",
    quiet_if: "both ends are equal: it works",
    source: "rdma-core ibv_devinfo (active_mtu); Linux include/rdma/ib_addr.h (iboe_get_mtu)",
};

/// What is called slow for KV, Mb/s.
const LOW_MBPS: u64 = 40_000;
/// Placeholder of kernels that do not know the speed: `10 Gb/sec (4X)`.
const UNKNOWN_MBPS: u64 = 10_000;

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let ports = ports(view);
    let active: Vec<(&PortRef<'_>, u64)> = ports
        .iter()
        .filter(|p| {
            p.is_active()
                && matches!(
                    p.fabric,
                    Fabric::InfiniBand | Fabric::Roce | Fabric::Unknown
                )
        })
        .filter_map(|p| Some((p, rate_of(p.port)?)))
        .filter(|(_, rate)| *rate > 0)
        .collect();
    let Some(fastest) = active.iter().map(|(_, rate)| *rate).max() else {
        return;
    };
    let matrix = active.iter().any(|(port, _)| port.near);
    let before = findings.results().len();
    let kinds = kinds(&active);
    for (port, mbps) in &active {
        if !speed_is_known(port, *mbps) {
            continue;
        }
        if let Some(words) = narrow(port, &active) {
            findings.push(at(
                port,
                Finding::warn(
                    NAME,
                    &DEGRADED,
                    format!("{} runs at {} {words}", port.label(), rate(*mbps)),
                ),
            ));
            continue;
        }
        let slow_among_peers = degraded(port, *mbps, matrix, &kinds);
        if let Some(peers) = slow_among_peers {
            findings.push(at(
                port,
                Finding::warn(
                    NAME,
                    &DEGRADED,
                    format!(
                        "{} runs at {}, the other ports of its kind at {}",
                        port.label(),
                        rate(*mbps),
                        rate(peers)
                    ),
                ),
            ));
        } else if *mbps < LOW_MBPS && (port.selected || *mbps == fastest) {
            findings.push(at(
                port,
                Finding::warn(
                    NAME,
                    &LOW,
                    format!(
                        "{} is active at {} only: about {} GB/s",
                        port.label(),
                        rate(*mbps),
                        (mbps / 8000).max(1)
                    ),
                ),
            ));
        }
    }
    if findings.results().len() == before {
        findings.push(fine(&active, fastest));
    }
}

fn fine(active: &[(&PortRef<'_>, u64)], fastest: u64) -> Finding {
    let at_full: Vec<&PortRef<'_>> = active
        .iter()
        .filter(|(_, rate)| *rate == fastest)
        .map(|(port, _)| *port)
        .collect();
    let names: Vec<String> = at_full.iter().map(|p| p.label()).collect();
    let mut finding = Finding::ok(
        NAME,
        format!(
            "{} run{} at {}",
            list(&names),
            if names.len() == 1 { "s" } else { "" },
            rate(fastest)
        ),
    );
    if let Some(first) = at_full.first() {
        finding = at(first, finding);
    }
    if at_full.iter().any(|p| !speed_is_known(p, fastest)) {
        finding = finding.note(
            "an old kernel prints 10 Gb/s for InfiniBand speeds that it does not know: the rate may be higher",
        );
    } else if fastest < 100_000 {
        finding = finding.note("slow for KV of large models");
    }
    let small: Vec<String> = active
        .iter()
        .map(|(port, _)| port)
        .filter(|p| p.fabric == Fabric::Roce && p.port.active_mtu.value() == Some(&1024))
        .map(|p| p.label())
        .collect();
    if small.is_empty() {
        finding
    } else {
        finding.told(&MTU)
    }
}

/// Old kernels have no name for speeds that they do not know, and print SDR.
fn speed_is_known(port: &PortRef<'_>, mbps: u64) -> bool {
    !(port.fabric == Fabric::InfiniBand
        && mbps == UNKNOWN_MBPS
        && !port.port.lane_speed.is_seen()
        && !port.port.lane_mbps.is_seen())
}

/// The rates of the ports that are compared, by kind of card; storage ports of the same card may be slower on purpose,
/// and a matrix tells them apart.
fn kinds<'f>(active: &[(&PortRef<'f>, u64)]) -> BTreeMap<Class<'f>, Vec<u64>> {
    let matrix = active.iter().any(|(p, _)| p.near);
    let mut kinds: BTreeMap<Class<'f>, Vec<u64>> = BTreeMap::new();
    for (port, mbps) in active {
        if !port.name.contains("bond") && (!matrix || port.near || port.selected) {
            kinds.entry(port.class()).or_default().push(*mbps);
        }
    }
    kinds
}

/// The rate of the peers, where this port is one of few that are slower.
fn degraded(
    port: &PortRef<'_>,
    mbps: u64,
    matrix: bool,
    kinds: &BTreeMap<Class<'_>, Vec<u64>>,
) -> Option<u64> {
    let known_card = port.device.hca_type.is_seen() || port.device.vendor_part_id.is_seen();
    // Without the kind of card, Ethernet ports may be anything; InfiniBand ports rarely differ.
    if port.name.contains("bond") || (!known_card && port.fabric != Fabric::InfiniBand) {
        return None;
    }
    if matrix && !port.near && !port.selected {
        return None;
    }
    let peers = kinds.get(&port.class())?;
    let most = peers.iter().max().copied()?;
    if mbps >= most {
        return None;
    }
    let slow = peers.iter().filter(|rate| **rate < most).count();
    (slow * 4 <= peers.len()).then_some(most)
}

/// An InfiniBand port that trained on fewer lanes than it has. One lane is never a whole port; two are one of 200G,
/// unless its peers have four of the same speed. Ethernet counts lanes otherwise.
fn narrow(port: &PortRef<'_>, active: &[(&PortRef<'_>, u64)]) -> Option<String> {
    let lanes = *port.port.lanes.value()?;
    if port.fabric != Fabric::InfiniBand {
        return None;
    }
    if lanes == 1 {
        return Some("over one lane (1X): the others did not come up".to_owned());
    }
    let peers: Vec<u32> = active
        .iter()
        .filter(|(p, _)| p.class() == port.class() && p.compute == port.compute)
        .filter(|(p, _)| {
            let speed = |p: &PortRef<'_>| p.port.lane_speed.value().cloned();
            speed(p).is_some() && speed(p) == speed(port)
        })
        .filter_map(|(p, _)| p.port.lanes.value().copied())
        .collect();
    let most = peers.iter().copied().max()?;
    let whole = peers.iter().filter(|n| **n == most).count();
    (lanes < most && whole * 2 >= peers.len())
        .then(|| format!("over {lanes} lanes, its peers over {most}"))
}

fn at(port: &PortRef<'_>, finding: Finding) -> Finding {
    let fact = &port.port.rate_mbps;
    let finding = finding.device(port.label());
    if fact.is_seen() {
        finding.seen(fact, "rate")
    } else {
        finding.seen(&port.port.lane_mbps, "lane speed")
    }
}
