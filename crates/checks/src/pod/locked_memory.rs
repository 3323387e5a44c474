//! The capability IPC_LOCK that the pod's spec adds is in force.
//!
//! Kubernetes has no ambient capabilities: what a spec adds reaches a process that is root and no other. The engine then
//! keeps the limit of locked memory, and RDMA cannot register the KV cache. With an unlimited limit it needs nothing.

use model::Grade;
use model::observation::limits::{Capabilities, Limit, Limits};

use super::view::PodView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/locked-memory";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the capability IPC_LOCK that the spec adds is in force",
    source: include_str!("locked_memory.rs"),
    causes: &[NOT_EFFECTIVE],
    notes: &[NOT_NEEDED],
    run: Run::Pod(run),
};

const NOT_EFFECTIVE: Cause = Cause {
    id: "ipc-lock-asked-not-effective",
    what: "the pod's spec adds IPC_LOCK, the engine process does not have it, and its limit of locked memory is low",
    why: "the spec looks right, and RDMA memory cannot be locked all the same: UCX loses the device, and uses TCP where that is allowed",
    fix: "run the engine as root (runAsUser: 0) with IPC_LOCK, or have the container runtime set no limit (LimitMEMLOCK=infinity): then no capability is needed",
    quiet_if: "the capability is in force, or the limit is unlimited or larger than 1 GB; the spec does not add it (node/locked-memory judges the limit)",
    source: "capabilities(7), Transformation of capabilities during execve; NVIDIA/nvidia-container-toolkit#2037",
};

const NOT_NEEDED: Cause = Cause {
    id: "ipc-lock-not-needed",
    what: "the pod's spec adds IPC_LOCK, which is not in force, and the limit of locked memory is no obstacle",
    why: "IPC_LOCK, which the spec adds, is not in force here; the limit of locked memory is no obstacle, so it is not needed",
    fix: "none",
    quiet_if: "the capability is in force",
    source: "Linux drivers/infiniband/core/umem.c (can_do_mlock, RLIMIT_MEMLOCK)",
};

/// The same bound as `node/locked-memory`.
const LOW_BYTES: u64 = 1 << 30;

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let (Some(seen), Some(container)) = (view.seen(), view.container) else {
        return;
    };
    let asked = container
        .capabilities
        .iter()
        .any(|c| matches!(c.as_str(), "IPC_LOCK" | "ALL"));
    if !asked {
        return;
    }
    // The engine's, else those of the shell beside it, which runs as the same user.
    let engine = seen
        .process
        .processes
        .values()
        .map(|p| &p.limits)
        .find(|l| l.capabilities.is_seen() && l.memlock_soft.is_seen());
    // Where the look ended before it reached the processes, the engine may be there with limits of its own.
    if engine.is_none() && !seen.process.looked.is_seen() {
        return;
    }
    let limits: &Limits = engine.unwrap_or(&seen.limits);
    let Some(set) = limits.capabilities.value() else {
        return;
    };
    if set.has(Capabilities::IPC_LOCK) {
        findings.push(
            Finding::ok(NAME, "IPC_LOCK, which the spec adds, is in force")
                .seen(&limits.capabilities, "capabilities"),
        );
        return;
    }
    let low = match limits.memlock_soft.value() {
        Some(Limit::Value(bytes)) => *bytes < LOW_BYTES,
        Some(Limit::Unlimited) => false,
        None => return,
    };
    let user = match limits.uid.value() {
        Some(0) | None => String::new(),
        Some(uid) => format!(": it runs as user {uid}"),
    };
    let detail = format!("the spec adds IPC_LOCK, and the process does not have it{user}");
    findings.push(if low && view.moves_kv() {
        Finding::fail(NAME, &NOT_EFFECTIVE, detail)
            .seen(&limits.capabilities, "capabilities")
            .seen(&limits.memlock_soft, "limit")
    } else {
        Finding::ok(NAME, detail)
            .told(&NOT_NEEDED)
            .grade(Grade::Observed)
            .seen(&limits.capabilities, "capabilities")
    });
}
