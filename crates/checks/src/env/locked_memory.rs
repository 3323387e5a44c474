//! RDMA workers may lock memory.
//!
//! Registering memory with an RDMA device pins it. The kernel checks the locked-memory limit unless the process
//! has CAP_IPC_LOCK. Container runtimes often start with 64 KiB or 8 MiB, some nodes lift the limit; a manifest
//! shows only the capability. Capabilities in `add` reach a process that does not run as root only where the
//! image's binary carries them.

use crate::check::{Cause, Check, Run};
use crate::fabric::Rdma;
use crate::finding::{Finding, Findings};
use crate::image::{self, Version};
use crate::view::View;

const NAME: &str = "env/locked-memory";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA workers may lock memory",
    source: include_str!("locked_memory.rs"),
    causes: &[IPC_LOCK_MISSING],
    notes: &[NON_ROOT_IMAGE],
    run: Run::Recipe(run),
};

const IPC_LOCK_MISSING: Cause = Cause {
    id: "ipc-lock-missing",
    what: "a worker asks for RDMA devices and has neither IPC_LOCK nor privileged",
    why: "memory registration fails with ENOMEM wherever the node does not lift the locked-memory limit, and UCX drops the device",
    fix: "add IPC_LOCK to securityContext.capabilities of both roles, or make sure that the nodes start containers with an unlimited memlock",
    quiet_if: "privileged; no RDMA resource; a patch; only a compute domain (NVLink pins nothing with a NIC)",
    source: "UCX ib_log.c:249 names the limit; the kernel checks it only without CAP_IPC_LOCK",
};

const NON_ROOT_IMAGE: Cause = Cause {
    id: "image-runs-nonroot",
    what: "a Dynamo runtime image from 0.7 on, without runAsUser",
    why: "Dynamo images from 0.7 on do not run as root (an image whose tag tells no version counts as current), and an added capability is not effective for another user: locked memory then depends on the node's limit",
    fix: "set runAsUser: 0, or make sure that the nodes lift the locked-memory limit",
    quiet_if: "runAsUser is set; another image; an older version",
    source: "ai-dynamo/dynamo container images; capabilities(7), ambient sets",
};

/// Dynamo's runtime images run as user 1000 from 0.7 on.
fn is_non_root_image(worker: &model::Worker) -> bool {
    worker.image.as_ref().is_some_and(|i| {
        let (name, _) = image::split(&i.value);
        [
            "vllm-runtime",
            "sglang-runtime",
            "tensorrtllm-runtime",
            "trtllm-runtime",
        ]
        .iter()
        .any(|n| name.ends_with(n))
            && image::version(&i.value).is_none_or(|v| v >= Version(0, 7, 0))
    })
}

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.is_part() {
        return;
    }
    for kv in &view.kv {
        let worker = kv.worker;
        let pins = match kv.fabric.rdma {
            Some(rdma @ (Rdma::Resource(_) | Rdma::Claim { .. })) => Some(rdma.place()),
            _ => None,
        };
        let Some(place) = pins else { continue };
        let role = worker.role.as_str();
        if worker.privileged {
            findings.push(
                Finding::ok(NAME, "privileged: the locked-memory limit does not apply")
                    .worker(worker),
            );
            continue;
        }
        if let Some(capability) = worker
            .capabilities
            .iter()
            .find(|c| matches!(c.value.as_str(), "IPC_LOCK" | "ALL"))
        {
            let mut finding = Finding::ok(NAME, format!("{} is added", capability.value))
                .worker(worker)
                .at(&capability.place, role);
            if let Some(user) = worker.run_as_user.as_ref().filter(|u| u.value != 0) {
                finding = finding.note(format!(
                    "runAsUser {}: an added capability is not effective for a user other than root; locked memory then depends on the node's limit",
                    user.value
                ));
            }
            if worker.run_as_user.is_none() && is_non_root_image(worker) {
                finding = finding.told(&NON_ROOT_IMAGE);
            }
            findings.push(finding);
            continue;
        }
        findings.push(
            Finding::warn(NAME, &IPC_LOCK_MISSING, format!("{role} asks for RDMA devices but has neither IPC_LOCK nor privileged: it works only where the node lifts the locked-memory limit"))
                .worker(worker)
                .at(place, format!("{role}: RDMA devices, no IPC_LOCK")),
        );
    }
}
