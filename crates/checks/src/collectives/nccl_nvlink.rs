//! NCCL's use of NVLink: multicast (NVLS) and the fabric over several nodes (MNNVL).
//!
//! None of it carries KV; a broken fabric shows here first.

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "collectives/nccl-nvlink";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "NCCL can use NVLink",
    source: include_str!("nccl_nvlink.rs"),
    causes: &[MULTICAST, HEALTH],
    notes: &[],
    run: Run::Place(run),
};

const MULTICAST: Cause = Cause {
    id: "nvls-multicast-error",
    what: "NCCL could not bind multicast memory of the NVLink switches (NVLS)",
    why: "the fabric manager was restarted or is broken: NCCL does not start; KV does not use multicast",
    fix: "restart the fabric manager and reset the GPUs, or start the machine anew; NCCL_NVLS_ENABLE=0 goes around it",
    quiet_if: "NCCL_NVLS_ENABLE=0 is in force",
    source: "nccl src/transport/nvls.cc; NVIDIA/nccl#976, #1672",
};

const HEALTH: Cause = Cause {
    id: "nvl-healthmask",
    what: "NCCL reports faults of the NVLink fabric over several nodes (healthMask)",
    why: "a part of the fabric is damaged: collectives, and KV over multi-node NVLink, may fail or be slow",
    fix: "look at the fabric's health (nvidia-smi -q, Fabric); repair it, or NCCL_MNNVL_ENABLE=0 meanwhile",
    quiet_if: "the mask is 0x0",
    source: "nccl src/mnnvl.cc; NVIDIA/nccl#2186",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let off = view
        .setting("NCCL_NVLS_ENABLE")
        .and_then(|fact| fact.value())
        .is_some_and(|value| value == "0");
    if let Some(event) = log.of("nccl-nvls").next()
        && !off
    {
        findings.push(
            Finding::warn(
                NAME,
                &MULTICAST,
                "NCCL could not bind NVLink multicast memory",
            )
            .collective()
            .read_at(std::slice::from_ref(&event.origin), "error"),
        );
    }
    let ill = log.of("nccl-mnnvl").find_map(|event| {
        let digits: String = event
            .field("mask")?
            .trim_start_matches("0x")
            .chars()
            .take_while(char::is_ascii_hexdigit)
            .collect();
        let mask = u64::from_str_radix(&digits, 16).ok().filter(|m| *m != 0)?;
        Some((event, mask))
    });
    if let Some((event, mask)) = ill {
        findings.push(
            Finding::warn(
                NAME,
                &HEALTH,
                format!("NCCL reports faults of the NVLink fabric (healthMask {mask:#x})"),
            )
            .collective()
            .read_at(std::slice::from_ref(&event.origin), "mask"),
        );
    }
}
