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

#[test]
fn no_cause_is_without_a_case() {
    let mut shown = causes::shown();
    shown.extend(gpu_causes::shown());
    shown.extend(nixl_logs::SHOWN);
    shown.extend(nixl_live::SHOWN);
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
