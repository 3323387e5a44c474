//! Error counters of RDMA ports do not grow.
//!
//! A counter alone says nothing: it counts since the machine started, and eight-bit ones stop at 255. Only growth
//! between two readings of the same port is told.

use model::Reason;
use model::observation::Fact;

use super::ports::{PortRef, ports};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/port-counters";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "Error counters of RDMA ports stand still",
    source: include_str!("port_counters.rs"),
    causes: &[ERRORS, CONGESTION],
    notes: &[],
    run: Run::Place(run),
};

const ERRORS: Cause = Cause {
    id: "ib-error-counters",
    what: "a counter of link errors or retransmissions grew between two readings",
    why: "packets are lost and sent again; transfers stall",
    fix: "clean or change cable and transceiver; compare with the switch port's counters",
    quiet_if: "the counter has one reading, or all are equal: an old value says nothing",
    source: "Linux drivers/infiniband/core/sysfs.c and mlx5 hw_counters; NCCL documentation, troubleshooting",
};

const CONGESTION: Cause = Cause {
    id: "roce-pfc-ecn",
    what: "a RoCE port drops packets or receives them out of order, more of them at the second reading",
    why: "the network loses RoCE packets: flow control (PFC) or congestion marking (ECN) is missing for this traffic class",
    fix: "set the same traffic class on hosts and switches, with PFC or ECN for it (UCX_IB_TRAFFIC_CLASS)",
    quiet_if: "the counters stand still, or the port speaks InfiniBand, which needs no PFC",
    source: "openucx/ucx#6000; mlx5 hw_counters (out_of_sequence, rx_discards_phy, roce_slow_restart)",
};

/// Counters whose growth is an error on the link.
const LINK: &[&str] = &[
    "symbol_error",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_errors",
    "local_ack_timeout_err",
    "rnr_nak_retry_err",
    "packet_seq_err",
    "req_transport_retries_exceeded",
];

/// Counters whose growth on Ethernet is loss in the network.
const LOSS: &[&str] = &[
    "out_of_sequence",
    "rx_discards_phy",
    "roce_slow_restart",
    "rx_icrc_encapsulated",
    "implied_nak_seq_err",
];

/// Growth from the first to the last reading; a counter that went back was reset or is another machine's.
fn growth(fact: &Fact<u64>) -> Option<u64> {
    let mut readings = fact.readings().map(|r| r.value);
    let first = readings.next()?;
    let last = readings.last()?;
    last.checked_sub(first).filter(|by| *by > 0)
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let ports = ports(view);
    let (mut read, mut twice) = (0_usize, false);
    let before = findings.results().len();
    for port in &ports {
        // Readings of two machines are no growth.
        let host = &view.seen.host;
        if !port.device.node_guid.agreed() || !host.hostname.agreed() || !host.boot_id.agreed() {
            continue;
        }
        let counters = port
            .port
            .counters
            .iter()
            .map(|(name, fact)| (name.rsplit('/').next().unwrap_or(name), fact))
            .filter(|(name, _)| LINK.contains(name) || LOSS.contains(name));
        let mut grown = Vec::new();
        for (name, fact) in counters {
            read += 1;
            twice |= fact.readings().count() > 1 || fact.sources().len() > 1;
            if let Some(by) = growth(fact) {
                grown.push((name, by, fact));
            }
        }
        tell(port, &grown, LINK, &ERRORS, findings);
        tell(port, &grown, LOSS, &CONGESTION, findings);
    }
    if findings.results().len() > before || read == 0 {
        return;
    }
    findings.push(if twice {
        Finding::ok(
            NAME,
            format!("{read} error counters were read twice and stand still"),
        )
        .grade(model::Grade::Observed)
    } else {
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            "error counters were read once; only growth between two readings says something",
        )
    });
}

fn tell(
    port: &PortRef<'_>,
    grown: &[(&str, u64, &Fact<u64>)],
    which: &[&str],
    cause: &'static Cause,
    findings: &mut Findings,
) {
    let mine: Vec<_> = grown.iter().filter(|g| which.contains(&g.0)).collect();
    let Some(first) = mine.first() else {
        return;
    };
    let words: Vec<String> = mine
        .iter()
        .map(|(name, by, _)| format!("{name} by {by}"))
        .collect();
    findings.push(
        Finding::warn(
            NAME,
            cause,
            format!(
                "{}: between two readings grew {}",
                port.label(),
                words.join(", ")
            ),
        )
        .device(port.label())
        .seen(first.2, "last reading"),
    );
}
