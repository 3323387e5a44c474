//! The process may lock memory, which RDMA needs.
//!
//! The limit of the engine process counts, not that of a shell beside it. Either is enough: no limit, or the effective
//! capability `IPC_LOCK` (the kernel looks at the limit only without it). A process that is not root does not get
//! capabilities that a pod adds. Error lines of UCX and libibverbs count as well: they are the effect itself.

use model::observation::limits::{Capabilities, Limit, Limits};
use model::observation::{Fact, Origin};
use model::{Reason, Role};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/locked-memory";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "Memory can be locked for RDMA",
    source: include_str!("locked_memory.rs"),
    causes: &[LOW, INERT],
    notes: &[],
    run: Run::Place(run),
};

pub(crate) const LOW: Cause = Cause {
    id: "memlock-low",
    what: "the limit of locked memory is low, or a library could not lock memory",
    why: "RDMA memory must be locked: UCX loses the device, and uses TCP where that is allowed",
    fix: "LimitMEMLOCK=infinity for the container runtime, or run as root with the capability IPC_LOCK",
    quiet_if: "the limit is unlimited, or the process has IPC_LOCK in its effective capabilities; no engine, RDMA device or P/D role is there",
    source: "Linux drivers/infiniband/core/umem.c (can_do_mlock, RLIMIT_MEMLOCK); openucx/ucx#8229",
};

const INERT: Cause = Cause {
    id: "ipc-lock-nonroot-inert",
    what: "the limit of locked memory is low and the process is not root and lacks IPC_LOCK",
    why: "capabilities that a pod adds do not take effect in a process that is not root, so the limit holds",
    fix: "runAsUser: 0 with IPC_LOCK, or no limit from the container runtime",
    quiet_if: "the process is root with IPC_LOCK, or the limit is unlimited; no engine, RDMA device or P/D role is there",
    source: "capabilities(7), Transformation of capabilities during execve; NVIDIA/nvidia-container-toolkit#2037",
};

/// Below it not even one queue's buffers of a KV cache fit; above it, it depends on the size of the cache.
const LOW_BYTES: u64 = 1 << 30;

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let failed = errors(view, findings);
    let mut judged = false;
    // The engine's own limits, where they are known; the shell's say little beside them.
    for process in view.seen.process.processes.values() {
        if process.limits.memlock_soft.is_seen() {
            judged = true;
            let name = process.name.value().map_or("the engine", String::as_str);
            limits(name, &process.limits, failed, findings);
        }
    }
    if judged {
        return;
    }
    let here = &view.seen.limits;
    // A shell beside the worker may have other limits than the worker.
    let who = if view.facts.saved {
        "the process that printed its limits"
    } else {
        "this process (not the worker's)"
    };
    match here.memlock_soft.get() {
        // The look ended before it reached the processes: the engine may be there, with limits of its own.
        Ok(_) if !failed && !view.facts.saved && view.facts.gap.is_some() && !looked(view) => {
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    "what the engine may lock was not reached; a shell beside it may have another limit",
                )
                .seen(&here.memlock_soft, "limit"),
            );
        }
        Ok(_) if !failed && nothing_to_lock(view) => {
            let mut told = Findings::default();
            limits(who, here, failed, &mut told);
            for result in told.into_results() {
                findings.push(
                    Finding::skipped(
                        NAME,
                        Reason::NotApplicable,
                        format!("{}; nothing here needs it for KV", result.detail),
                    )
                    .seen(&here.memlock_soft, "limit"),
                );
            }
        }
        Ok(_) => limits(who, here, failed, findings),
        Err(missing) if !here.memlock_soft.is_untouched() && !failed => {
            findings.push(Finding::lacking(NAME, missing, "limit of locked memory"));
        }
        Err(_) => {}
    }
}

/// Whether the processes were looked at.
fn looked(view: &NodeView<'_>) -> bool {
    view.seen.process.looked.is_seen()
}

/// No KV moves over RDMA here: an aggregated engine transfers none, and a machine that was looked at and has neither
/// a device nor an engine has no use for it. A limit that was saved alone is judged: somebody wants to know.
fn nothing_to_lock(view: &NodeView<'_>) -> bool {
    if view.facts.role == Some(Role::Aggregated) {
        return true;
    }
    let rdma = &view.seen.rdma;
    let looked = !view.facts.saved || !rdma.listings.is_empty();
    looked
        && rdma.devices.is_empty()
        && view.seen.process.processes.is_empty()
        && !view.is_kv_worker()
}

/// `64 kB`, `8 MB`.
fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 30 => format!("{} GB", b >> 30),
        b if b >= 1 << 20 => format!("{} MB", b >> 20),
        b => format!("{} kB", b >> 10),
    }
}

fn limits(who: &str, limits: &Limits, failed: bool, findings: &mut Findings) {
    let fact: &Fact<Limit> = &limits.memlock_soft;
    let Some(limit) = fact.value() else { return };
    let capability = limits
        .capabilities
        .value()
        .map(|set| set.has(Capabilities::IPC_LOCK));
    let bytes = match limit {
        Limit::Unlimited => {
            findings.push(
                Finding::ok(
                    NAME,
                    format!("{who} may lock memory without limit (memlock unlimited)"),
                )
                .seen(fact, "limit"),
            );
            return;
        }
        Limit::Value(bytes) => *bytes,
    };
    let limit = format!("{who} may lock {} of memory (memlock)", size(bytes));
    if capability == Some(true) {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "{who} has IPC_LOCK, so its limit of {} does not hold",
                    size(bytes)
                ),
            )
            .seen(&limits.capabilities, "capabilities"),
        );
        return;
    }
    if bytes >= LOW_BYTES {
        findings.push(
            Finding::ok(NAME, limit)
                .note("it must be more than the KV cache and its buffers together")
                .seen(fact, "limit"),
        );
        return;
    }
    let raise = limits.memlock_hard.value() == Some(&Limit::Unlimited);
    let nonroot = limits.uid.value().is_some_and(|uid| *uid != 0);
    let finding = match capability {
        Some(false) if nonroot => Finding::fail(
            NAME,
            &INERT,
            format!(
                "{limit}, and as user {} it has no IPC_LOCK",
                limits.uid.value().copied().unwrap_or_default()
            ),
        )
        .seen(&limits.capabilities, "capabilities"),
        Some(false) => Finding::fail(NAME, &LOW, format!("{limit}, and it has no IPC_LOCK"))
            .seen(&limits.capabilities, "capabilities"),
        _ if failed => Finding::fail(NAME, &LOW, limit),
        _ => Finding::warn(
            NAME,
            &LOW,
            format!("{limit}; whether it has IPC_LOCK, which lifts the limit, is not shown"),
        ),
    };
    let finding = if raise {
        finding.fix(
            "the hard limit is unlimited: `ulimit -l unlimited` before the engine starts is enough",
        )
    } else {
        finding
    };
    findings.push(finding.seen(fact, "limit"));
}

/// Lines of libraries that could not lock memory; returns whether there are any.
fn errors(view: &NodeView<'_>, findings: &mut Findings) -> bool {
    let log = &view.seen.log;
    if let Some(event) = log.of("ucx-memlock").next() {
        let current = event.field("current").unwrap_or("not told");
        findings.push(
            Finding::fail(
                NAME,
                &LOW,
                format!("UCX could not lock memory (memlock, ulimit -l; current: {current})"),
            )
            .read_at(std::slice::from_ref(&event.origin), "error"),
        );
        return true;
    }
    for listing in &view.seen.software.ucx_resources {
        let failed = listing
            .errors
            .iter()
            .any(|e| e.contains("Cannot allocate memory") || e.contains("max locked memory"));
        if failed && listing.failed_to_open > 0 {
            let device = listing.transports.iter().find_map(|t| t.device.as_deref());
            tell(device, &listing.origin, findings);
            return true;
        }
    }
    // Without the hint in its text, no memory means locked memory where queues are created.
    let queue = log
        .of("ucx-queue-creation-failed")
        .chain(log.of("ucx-registration-failed"))
        .find(|e| {
            e.field("error")
                .is_some_and(|text| text.contains("Cannot allocate memory"))
        });
    if let Some(event) = queue {
        tell(None, &event.origin, findings);
        return true;
    }
    if let Some(event) = log.of("verbs-memlock").next() {
        findings.push(
            Finding::fail(
                NAME,
                &LOW,
                format!(
                    "libibverbs says that the limit of locked memory (memlock) is {} bytes",
                    event.field("bytes").unwrap_or("low")
                ),
            )
            .read_at(std::slice::from_ref(&event.origin), "warning"),
        );
        return true;
    }
    false
}

fn tell(device: Option<&str>, origin: &Origin, findings: &mut Findings) {
    let on = device.map(|d| format!(" on {d}")).unwrap_or_default();
    findings.push(
        Finding::fail(
            NAME,
            &LOW,
            format!(
                "queues could not be created{on}: Cannot allocate memory, which is the limit of locked memory (memlock)"
            ),
        )
        .read_at(std::slice::from_ref(origin), "error"),
    );
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_in_words() {
        assert_eq!(size(65536), "64 kB");
        assert_eq!(size(8 << 20), "8 MB");
        assert_eq!(size(3 << 30), "3 GB");
    }
}
