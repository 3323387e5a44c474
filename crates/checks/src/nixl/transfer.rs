//! A measured transfer between two workers came about, and its content arrived.
//!
//! `nixl --transfer` moves bytes with the worker's own Python and NIXL, with the engine's settings, READ by the decode
//! worker and WRITE by the prefill worker. Each transfer carries fresh random content, whose hash both ends take. Where
//! NIXL refuses, the engines cannot transfer either; where the program did not come so far (no Python, a connection that
//! was lost, time that was over) nothing is known of the engines, and the verdict says so.

use model::transfer::Transfer;
use model::{CheckResult, Grade, MemoryKind, Reason, Role, Subject};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

pub(crate) const NAME: &str = "nixl/transfer";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "a measured transfer between the two workers comes about, and its content arrives",
    source: include_str!("transfer.rs"),
    causes: &[REFUSED, CONTENT, NOT_CARRIED_OUT, NOT_A_WORKER],
    notes: &[],
    run: Run::Transfer(run),
};

const REFUSED: Cause = Cause {
    id: "nixl-transfer-refused",
    what: "NIXL could not transfer between the two workers",
    why: "with the same libraries and settings the engines cannot either",
    fix: "fix what NIXL and UCX told; the other results name it where it is known",
    quiet_if: "the program did not come as far as NIXL: then nothing is known",
    source: "NIXL src/core/nixl_agent.cpp; checked with NIXL 0.4.1 to 1.5.1",
};

const CONTENT: Cause = Cause {
    id: "nixl-transfer-content-differs",
    what: "NIXL said that a transfer was done, and the content at the other end is another one",
    why: "KV that is not what was sent gives wrong answers, and no error",
    fix: "look at the errors of the ports and at the kernel's log of both nodes; report it to the maker of the transport",
    quiet_if: "never",
    source: "hashes (SHA-256) of both ends",
};

const NOT_CARRIED_OUT: Cause = Cause {
    id: "nixl-transfer-not-carried-out",
    what: "the transfer was not carried out to its end, for a reason that is not NIXL's",
    why: "what was not measured is not known",
    fix: "the message says what is missing: Python or NIXL in the container, more time (--timeout), a connection that stays",
    quiet_if: "never",
    source: "the program that runs in both workers, and its connection",
};

const NOT_A_WORKER: Cause = Cause {
    id: "nixl-transfer-not-a-kv-worker",
    what: "a pod does not look like a prefill or decode worker, so nothing was transferred",
    why: "a transfer takes memory and processor time of whatever runs there",
    fix: "name the pods of a prefill and a decode worker; --force transfers all the same",
    quiet_if: "--force",
    source: "labels of the pod, what its engine is told, and the engine's processes",
};

/// A transfer, and what explains how it went.
pub(crate) struct TransferView<'t> {
    /// What was measured, or why nothing was.
    pub(crate) tried: &'t Tried,
    /// Results about the two workers that tell of faults.
    pub(crate) explains: &'t [CheckResult],
    /// The two workers.
    pub(crate) subject: &'t Subject,
}

impl TransferView<'_> {
    /// The same finding, about both workers.
    pub(crate) fn about(&self, finding: Finding) -> Finding {
        finding.about(self.subject)
    }
}

/// What came of a transfer that was asked for.
#[derive(Debug, Clone)]
pub enum Tried {
    /// It was tried.
    Measured(Box<Transfer>),
    /// It was not, because a pod does not look like a KV worker: in words.
    NotAWorker(String),
    /// It was only planned: in words.
    Planned(String),
    /// It could not be begun: in words.
    NotBegun(String),
}

/// `64 KiB`, `16 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} bytes")
    }
}

fn run(view: &TransferView<'_>, findings: &mut Findings) {
    let finding = match view.tried {
        Tried::NotAWorker(why) => Finding::skipped(NAME, Reason::Disabled, why.clone())
            .because(&NOT_A_WORKER)
            .required(),
        Tried::Planned(plan) => Finding::skipped(
            NAME,
            Reason::Disabled,
            format!("only planned (--dry-run): {plan}"),
        ),
        Tried::NotBegun(why) => {
            let reason = if is_late(why) {
                Reason::TimedOut
            } else {
                Reason::NotVisible
            };
            Finding::skipped(NAME, reason, why.clone())
                .because(&NOT_CARRIED_OUT)
                .required()
        }
        Tried::Measured(transfer) => {
            if let Some(finding) = of_gpu(transfer) {
                findings.push(view.about(finding));
            }
            let finding = measured(transfer, view.explains);
            match &transfer.tool {
                Some(tool) if tool == "nixlbench" => finding.note(BY_NIXLBENCH),
                _ => finding,
            }
        }
    };
    findings.push(view.about(finding));
}

/// What nixlbench is, and what its result does not say.
const BY_NIXLBENCH: &str = "moved by nixlbench, with an agent of its own and its own buffers; it does not print the transport: UCX's protocol table and the counters of both ends do; its content is one pattern, so that a hash would not tell more";

fn is_late(why: &str) -> bool {
    why.contains("time was over") || why.contains("in time")
}

fn measured(transfer: &Transfer, explains: &[CheckResult]) -> Finding {
    let done: u32 = transfer.legs.iter().map(|leg| leg.transfers).sum();
    let bytes: u64 = transfer
        .legs
        .iter()
        .map(|leg| leg.bytes.saturating_mul(u64::from(leg.transfers)))
        .sum();
    let moved = format!("{done} transfers, {} MiB", bytes.div_ceil(1 << 20));
    // The last leg of one that was ended early is not whole.
    let whole = transfer
        .legs
        .len()
        .saturating_sub(usize::from(transfer.stop.is_some()));
    if let Some(leg) = transfer.legs.iter().take(whole).find(|leg| !leg.verified) {
        return Finding::fail(
            NAME,
            &CONTENT,
            format!(
                "{} by {}, {} memory, {}: the content did not arrive as it was sent",
                leg.operation.as_str(),
                leg.initiator,
                leg.memory.as_str(),
                size(leg.bytes)
            ),
        )
        .grade(Grade::Observed);
    }
    let Some(stop) = &transfer.stop else {
        return Finding::ok(
            NAME,
            format!("{moved}: all of it arrived, by hashes of both ends"),
        )
        .grade(Grade::Observed);
    };
    let step = stop
        .step
        .as_deref()
        .map(|step| format!(" at the step {step}"))
        .unwrap_or_default();
    let what = format!("{}{step}: {}", stop.side, stop.why);
    if stop.by_nixl {
        let mut finding = Finding::fail(NAME, &REFUSED, format!("NIXL does not transfer: {what}"))
            .grade(Grade::Observed);
        if let Some(first) = explains
            .iter()
            .find(|r| r.status == model::Status::Fail && r.name.starts_with("nixl/"))
        {
            finding = finding.note(format!(
                "explained by {}",
                first.cause.unwrap_or(&first.name)
            ));
            if let Some(fix) = &first.fix {
                finding = finding.fix(fix.clone());
            }
        }
        return finding;
    }
    let reason = if is_late(&stop.why) {
        Reason::TimedOut
    } else if stop.step.is_none() || stop.step.as_deref() == Some("import") {
        Reason::NoTool
    } else {
        Reason::NotVisible
    };
    let mut finding = Finding::skipped(NAME, reason, format!("not carried out to its end: {what}"))
        .because(&NOT_CARRIED_OUT)
        .required();
    if done > 0 {
        finding = finding.note(format!("until then: {moved}"));
    }
    finding
}

/// Why GPU memory is not among what was measured, where it was planned.
fn of_gpu(transfer: &Transfer) -> Option<Finding> {
    if transfer
        .legs
        .iter()
        .any(|leg| leg.memory == MemoryKind::Gpu)
    {
        return None;
    }
    let why: Vec<String> = [
        (Role::Prefill, &transfer.prefill),
        (Role::Decode, &transfer.decode),
    ]
    .into_iter()
    .filter_map(|(role, end)| Some(format!("{}: {}", role.as_str(), end.gpu_error.as_ref()?)))
    .collect();
    (!why.is_empty()).then(|| {
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("GPU memory was not measured: {}", why.join("; ")),
        )
        .note("what host memory shows says nothing about KV in GPU memory")
    })
}
