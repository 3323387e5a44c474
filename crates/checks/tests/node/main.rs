//! Every cause of `node`: outputs or facts that show it, and such where it stays quiet.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

mod causes;
mod gpu_causes;
mod nixl_live;
mod nixl_logs;

use checks::CHECKS;

/// Causes of measured transfers and of observed traffic: their cases are in `tests/transfer.rs` and `tests/pairs.rs`, and
/// with real workers in the command line's own.
const OF_TRANSFERS: [&str; 10] = [
    "nixl-observed-no-traffic",
    "nixl-observed-not-attributed",
    "nixl-observed-over-interface",
    "nixl-transfer-bad-end",
    "nixl-transfer-content-differs",
    "nixl-transfer-not-a-kv-worker",
    "nixl-transfer-not-carried-out",
    "nixl-transfer-not-rdma",
    "nixl-transfer-refused",
    "nixl-transfer-slow",
];

#[test]
fn no_cause_is_without_a_case() {
    let mut shown = causes::shown();
    shown.extend(gpu_causes::shown());
    shown.extend(nixl_logs::SHOWN);
    shown.extend(nixl_live::SHOWN);
    shown.extend(OF_TRANSFERS);
    let missing: Vec<&str> = CHECKS
        .iter()
        .filter(|c| {
            ["node/", "nixl/", "collectives/"]
                .iter()
                .any(|of| c.name.starts_with(of))
        })
        .flat_map(|c| c.causes.iter().chain(c.notes))
        .map(|c| c.id)
        .filter(|id| !shown.contains(id))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}
