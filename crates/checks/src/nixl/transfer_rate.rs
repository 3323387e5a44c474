//! How fast a measured transfer was, for each operation, kind of memory and size.
//!
//! Rates are judged only where they say something: from 16 MiB on, over RDMA hardware, against the slower end's link.
//! Below a quarter of it something is wrong with the path although it is RDMA: the wrong PCIe slot or NUMA node, host
//! memory in between, a link that came up slower. A rate never proves a transport: TCP can be faster than RDMA.

use std::fmt::Write as _;

use model::transfer::{Transfer, TransferLeg};
use model::{Grade, Reason};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::nixl::transfer::{TransferView, Tried, size};

const NAME: &str = "nixl/transfer-rate";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "a measured transfer over RDMA is not far slower than its link",
    source: include_str!("transfer_rate.rs"),
    causes: &[SLOW],
    notes: &[],
    run: Run::Transfer(run),
};

const SLOW: Cause = Cause {
    id: "nixl-transfer-slow",
    what: "a measured transfer of 16 MiB or more over RDMA had less than a quarter of the slower end's link",
    why: "RDMA carries it, and something on its way does not: PCIe, NUMA, copies through host memory, other traffic",
    fix: "compare GPU and network card (node/gpu-nic-affinity), the card's PCIe link (node/pcie-link) and GPUDirect (node/gpudirect) at both ends; measure again without load",
    quiet_if: "smaller transfers, which are made of latency; TCP, shared memory and cuda_ipc; links whose rate is unknown",
    source: "a quarter is a floor below every healthy link that was measured, and above TCP on the same card",
};

fn run(view: &TransferView<'_>, findings: &mut Findings) {
    let Tried::Measured(transfer) = view.tried else {
        return;
    };
    for group in groups(transfer) {
        if let Some(finding) = of_group(&group) {
            findings.push(view.about(finding));
        }
    }
}

/// Legs of one operation and memory.
fn groups(transfer: &Transfer) -> Vec<Vec<&TransferLeg>> {
    let mut all: Vec<Vec<&TransferLeg>> = Vec::new();
    for leg in transfer
        .legs
        .iter()
        .filter(|l| l.bytes_per_second.is_some())
    {
        let key = |l: &TransferLeg| (l.operation, l.memory);
        match all
            .iter_mut()
            .find(|g| g.first().is_some_and(|l| key(l) == key(leg)))
        {
            Some(group) => group.push(leg),
            None => all.push(vec![leg]),
        }
    }
    all
}

/// `1.25 GB/s`, in units of 10^9 bytes.
pub(crate) fn rate(bytes_per_second: u64) -> String {
    let hundredths = bytes_per_second / 10_000_000;
    format!("{}.{:02} GB/s", hundredths / 100, hundredths % 100)
}

fn of_group(group: &[&TransferLeg]) -> Option<Finding> {
    let first = group.first()?;
    let mut what = format!(
        "{} by {}, {} memory:",
        first.operation.as_str(),
        first.initiator,
        first.memory.as_str()
    );
    for (at, leg) in group.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _infallible = write!(
            what,
            "{comma} {} {}",
            size(leg.bytes),
            rate(leg.bytes_per_second.unwrap_or(0))
        );
    }
    let link = group.iter().rev().find_map(|leg| leg.link_bytes_per_second);
    if let Some(link) = link {
        let _infallible = write!(what, "; the slower end's link has {}", rate(link));
    }
    Some(
        if group
            .iter()
            .any(|l| l.plausible == Some(false) && l.of_engine)
        {
            Finding::warn(NAME, &SLOW, format!("{what}: less than a quarter of it"))
                .grade(Grade::Observed)
        } else if group.iter().any(|l| l.plausible == Some(true)) {
            Finding::ok(NAME, what).grade(Grade::Observed)
        } else {
            Finding::skipped(
                NAME,
                Reason::NotApplicable,
                format!("{what}; not judged: only RDMA hardware of known rate is, from 16 MiB on"),
            )
        },
    )
}
