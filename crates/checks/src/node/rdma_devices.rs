//! RDMA devices are there, and they are hardware.
//!
//! sysfs and the tools list what the kernel has; whether this container may use it is another question
//! (`node/device-access`). A tool that prints nothing, or an empty table with exit code 0, has found no
//! device: that is never ok. Software RDMA (rxe, siw) works like RDMA and moves bytes through the kernel's
//! network stack, so it is named as such.

use model::observation::rdma::{Device, Function};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/rdma-devices";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA devices are there",
    source: include_str!("rdma_devices.rs"),
    causes: &[NONE, SOFTWARE],
    notes: &[],
    run: Run::Place(run),
};

pub(crate) const NONE: Cause = Cause {
    id: "rdma-no-device",
    what: "no RDMA device is visible where a KV worker runs",
    why: "UCX then has TCP only, and says so nowhere",
    fix: "request the RDMA resource of the cluster's device plugin; on the node itself load the driver of the network card",
    quiet_if: "nothing says that a KV worker runs there (then it is skipped), or KV goes over NVLink on one node",
    source: "infiniband-diags ibstat, rdma-core ibv_devinfo: an empty list ends with exit code 0 or 255 by tool",
};

pub(crate) const SOFTWARE: Cause = Cause {
    id: "soft-roce",
    what: "the RDMA device is software (rxe or siw)",
    why: "verbs work, but every byte goes through the kernel's network stack: no faster than TCP",
    fix: "use the hardware's device; remove the software device (rdma link delete NAME)",
    quiet_if: "a hardware device is there and is the one that is selected",
    source: "Linux drivers/infiniband/sw/rxe",
};

/// By what is known of it, else by the name that the kernel's own tools give.
pub(crate) fn is_software(name: &str, device: &Device) -> bool {
    match device.function.value() {
        Some(function) => *function == Function::Software,
        None => match device.driver.value() {
            Some(driver) => matches!(driver.as_str(), "rxe" | "siw" | "rdma_rxe"),
            None => name.starts_with("rxe") || name.starts_with("siw"),
        },
    }
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    for (name, device) in &rdma.devices {
        if is_software(name, device) {
            let finding = Finding::warn(
                NAME,
                &SOFTWARE,
                format!("{name} is software RDMA, not hardware: KV over it is no faster than TCP"),
            );
            findings.push(
                finding
                    .device(name.clone())
                    .read_at(&origins(name, view), "software"),
            );
        }
    }
    let hardware: Vec<&str> = rdma
        .devices
        .iter()
        .filter(|(name, device)| !is_software(name, device))
        .map(|(name, _)| name.as_str())
        .collect();
    if !hardware.is_empty() {
        let origins = hardware
            .first()
            .map(|name| origins(name, view))
            .unwrap_or_default();
        findings.push(
            Finding::ok(NAME, format!("RDMA devices: {}", hardware.join(", ")))
                .read_at(&origins, "listed"),
        );
        return;
    }
    if !rdma.devices.is_empty() || rdma.listings.is_empty() {
        return;
    }
    let origins: Vec<_> = rdma.listings.iter().map(|l| l.origin.clone()).collect();
    let finding = if view.is_kv_worker() {
        Finding::fail(NAME, &NONE, "no RDMA device is visible here")
    } else {
        Finding::skipped(
            NAME,
            model::Reason::NotVisible,
            "no RDMA device is visible here; whether a KV worker needs one cannot be seen (--role tells)",
        )
        .required()
    };
    findings.push(finding.read_at(&origins, "no device"));
}

/// Who lists a device.
fn origins(name: &str, view: &NodeView<'_>) -> Vec<model::observation::Origin> {
    view.seen
        .rdma
        .listings
        .iter()
        .filter(|l| l.devices.iter().any(|d| d == name))
        .map(|l| l.origin.clone())
        .collect()
}
