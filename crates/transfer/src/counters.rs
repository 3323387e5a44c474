//! What the kernels' counters at both ends say about a leg.

use std::collections::{BTreeMap, BTreeSet};

use crate::message::{HostFacts, Snapshot};
use crate::plan::Operation;
use crate::record::LegRecord;
use crate::side::{Both, Side};

/// What one kind of counters says about where a payload went at one end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// It went here: interfaces or ports, and bytes of the right direction.
    Carried(BTreeMap<String, u64>),
    /// Hardly anything moved.
    Nothing(u64),
    /// More than nothing and less than the payload, or there is other traffic.
    Unclear(u64),
    /// They cannot be read.
    Unknown,
}

/// At least so much of the payload has to show: headers add to it, nothing takes from it.
fn is_all(bytes: u64, payload: u64) -> bool {
    bytes >= payload.saturating_sub(payload / 20)
}

/// Connecting and keep-alive take some thousand bytes.
fn is_nothing(bytes: u64, payload: u64) -> bool {
    bytes < payload / 10
}

/// The end's bytes in the direction of the payload.
fn directed(record: &LegRecord, side: Side, sent: u64, received: u64) -> u64 {
    if record.leg.source() == side {
        sent
    } else {
        received
    }
}

fn snapshots(record: &LegRecord, side: Side) -> Option<(&Snapshot, &Snapshot)> {
    let after = record.after.as_ref()?;
    Some((record.before.of(side), after.of(side)))
}

/// Interfaces of the network namespace.
pub(crate) fn interfaces(record: &LegRecord, side: Side) -> Said {
    let Some((before, after)) = snapshots(record, side) else {
        return Said::Unknown;
    };
    let (Some(before), Some(after)) = (&before.interfaces, &after.interfaces) else {
        return Said::Unknown;
    };
    let moved = after.iter().map(|(name, now)| {
        let then = before.get(name).copied().unwrap_or_default();
        let bytes = directed(
            record,
            side,
            now.sent.saturating_sub(then.sent),
            now.received.saturating_sub(then.received),
        );
        (name.clone(), bytes)
    });
    said(&moved.collect(), record.payload())
}

/// The process's own TCP connections, by interface.
pub(crate) fn sockets(record: &LegRecord, side: Side, facts: Option<&HostFacts>) -> Said {
    let Some((before, after)) = snapshots(record, side) else {
        return Said::Unknown;
    };
    let (Some(before), Some(after)) = (&before.sockets, &after.sockets) else {
        return Said::Unknown;
    };
    let mut moved: BTreeMap<String, u64> = BTreeMap::new();
    for socket in after {
        let then = before
            .iter()
            .find(|s| s.local == socket.local && s.remote == socket.remote);
        let bytes = directed(
            record,
            side,
            socket.sent.saturating_sub(then.map_or(0, |s| s.sent)),
            socket
                .received
                .saturating_sub(then.map_or(0, |s| s.received)),
        );
        let name = facts
            .and_then(|facts| facts.addresses.get(&socket.local.0))
            .unwrap_or(&socket.local.0);
        let sum = moved.entry(name.clone()).or_default();
        *sum = sum.saturating_add(bytes);
    }
    // A connection that was closed took its count with it.
    let closed = before.iter().any(|s| {
        !after
            .iter()
            .any(|now| now.local == s.local && now.remote == s.remote)
    });
    match said(&moved, record.payload()) {
        Said::Nothing(bytes) if closed => Said::Unclear(bytes),
        other => other,
    }
}

/// Ports of RDMA devices. They count what the whole machine does.
pub(crate) fn ports(record: &LegRecord, side: Side) -> Said {
    let Some((before, after)) = snapshots(record, side) else {
        return Said::Unknown;
    };
    let mut moved = BTreeMap::new();
    for (port, now) in &after.ports {
        let then = before.ports.get(port);
        let grown = |name: &str| {
            let now = now.get(name).copied()?;
            let then = then?.get(name).copied()?;
            // A counter of 32 bits that stands at its end, or was reset, tells nothing.
            now.checked_sub(then)
        };
        if let Some(bytes) = port_bytes(record, side, grown) {
            moved.insert(port.clone(), bytes);
        }
    }
    if moved.is_empty() && !after.ports.is_empty() {
        return Said::Unknown;
    }
    said(&moved, record.payload())
}

/// Largest payload of a packet of RDMA; smaller ones need more packets.
const LARGEST_PACKET: u64 = 4096;

fn port_bytes(record: &LegRecord, side: Side, grown: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    // EFA counts reads and writes of RDMA apart from messages, by who asked for them.
    let one_sided = match (record.leg.operation, record.leg.initiator == side) {
        (Operation::Read, true) => grown("rdma_read_bytes"),
        (Operation::Read, false) => grown("rdma_read_resp_bytes"),
        (Operation::Write, true) => grown("rdma_write_bytes"),
        (Operation::Write, false) => grown("rdma_write_recv_bytes"),
    };
    most([one_sided, two_sided(record.leg.source() == side, &grown)])
        .or_else(|| packets(record.leg.source() == side, &grown))
}

/// What grew at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Growth {
    /// Bytes; at most so many where only packets are counted.
    pub(crate) bytes: u64,
    /// Packets, where only they are counted.
    pub(crate) packets: Option<u64>,
}

/// What grew at a port in one direction, whoever asked for it.
pub(crate) fn port_growth(
    sends: bool,
    then: &BTreeMap<String, u64>,
    now: &BTreeMap<String, u64>,
) -> Option<Growth> {
    let grown = |name: &str| now.get(name)?.checked_sub(*then.get(name)?);
    let one_sided = if sends {
        [grown("rdma_write_bytes"), grown("rdma_read_resp_bytes")]
    } else {
        [grown("rdma_read_bytes"), grown("rdma_write_recv_bytes")]
    };
    if let Some(bytes) = most([most(one_sided), two_sided(sends, grown)]) {
        return Some(Growth {
            bytes,
            packets: None,
        });
    }
    let bytes = packets(sends, grown)?;
    let only_packets = grown(if sends { "sent_pkts" } else { "rcvd_pkts" });
    Some(Growth {
        bytes,
        packets: only_packets,
    })
}

/// The greatest that is more than nothing.
fn most<const N: usize>(all: [Option<u64>; N]) -> Option<u64> {
    all.into_iter().flatten().filter(|bytes| *bytes > 0).max()
}

fn two_sided(sends: bool, grown: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let (words, bytes) = if sends {
        ("port_xmit_data", "tx_bytes")
    } else {
        ("port_rcv_data", "rx_bytes")
    };
    most([
        grown(words).map(|words| words.saturating_mul(4)),
        grown(bytes),
    ])
}

/// Packets say only how many bytes there were at most; soft-RoCE counts nothing else of its payload. Also what is told
/// where all the others stand still.
fn packets(sends: bool, grown: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let (packets, others) = if sends {
        ("sent_pkts", ["port_xmit_data", "tx_bytes"])
    } else {
        ("rcvd_pkts", ["port_rcv_data", "rx_bytes"])
    };
    match grown(packets) {
        Some(count) => Some(count.saturating_mul(LARGEST_PACKET)),
        None => others.into_iter().find_map(grown),
    }
}

fn said(moved: &BTreeMap<String, u64>, payload: u64) -> Said {
    let most = moved.values().copied().max().unwrap_or(0);
    if payload == 0 {
        return Said::Unknown;
    }
    let sum = moved.values().copied().fold(0, u64::saturating_add);
    let carried: BTreeMap<String, u64> = moved
        .iter()
        .filter(|(_, bytes)| !is_nothing(**bytes, payload))
        .map(|(name, bytes)| (name.clone(), *bytes))
        .collect();
    if carried.is_empty() && is_nothing(sum, payload) {
        Said::Nothing(sum)
    } else if is_all(most, payload) || is_all(sum, payload) {
        Said::Carried(carried)
    } else {
        Said::Unclear(sum)
    }
}

impl Said {
    /// It went over these, all of it.
    pub(crate) fn went_over(&self, names: &BTreeSet<&str>, payload: u64) -> bool {
        match self {
            Self::Carried(moved) => {
                let sum = moved
                    .iter()
                    .filter(|(name, _)| names.contains(name.as_str()))
                    .fold(0_u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
                is_all(sum, payload)
            }
            _ => false,
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing(_))
    }

    /// `12345 bytes on eth0`.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Carried(moved) => {
                let all: Vec<String> = moved
                    .iter()
                    .map(|(name, bytes)| format!("{bytes} bytes on {name}"))
                    .collect();
                all.join(", ")
            }
            Self::Nothing(bytes) | Self::Unclear(bytes) => format!("{bytes} bytes"),
            Self::Unknown => "not readable".to_owned(),
        }
    }
}

/// The same of both ends.
pub(crate) fn both(of: impl Fn(Side) -> Said) -> Both<Said> {
    Both {
        prefill: of(Side::Prefill),
        decode: of(Side::Decode),
    }
}
