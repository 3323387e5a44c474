//! What carried a measured transfer, for each operation, kind of memory and size.
//!
//! Two independent kinds of evidence must agree: the row of UCX's protocol table for that peer, and what the kernels of
//! both ends counted (interfaces, RDMA ports, the processes' own sockets). Where they contradict each other, or there is
//! no table, the carrier is unknown, and that is never a pass. TCP where the engines transfer the same way is a failure,
//! also where nothing warned: the results about the two workers that explain it are named. RDMA that the kernel makes is
//! named as such; it says nothing about a card. Shared memory is what two processes of one pod use, never two pods.

use model::transfer::{Carrier, Transfer, TransferLeg};
use model::{CheckResult, Grade, Reason, Status};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::nixl::payload_transport::{EMULATION, SHARED_MEMORY, TABLE};
use crate::nixl::transfer::{TransferView, Tried, size};

pub(crate) const NAME: &str = "nixl/transfer-path";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "a measured transfer goes over RDMA or NVLink",
    source: include_str!("transfer_path.rs"),
    causes: &[NOT_RDMA],
    notes: &[],
    run: Run::Transfer(run),
};

pub(crate) const NOT_RDMA: Cause = Cause {
    id: "nixl-transfer-not-rdma",
    what: "a measured transfer between the two workers went over TCP",
    why: "KV goes through the kernel's network stack: UCX takes TCP in silence where it finds no RDMA that it can use",
    fix: "look why UCX did not take RDMA: devices (node/rdma-devices), UCX_TLS, UCX_NET_DEVICES, the build (ucx_info -d)",
    quiet_if: "the engines do not transfer this way, or with this memory; small sizes only",
    source: "UCX_PROTO_INFO=y, byte counters of interfaces and sockets at both ends; checked with NIXL 0.4.1 to 1.5.1",
};

/// Larger blocks of KV are what matters.
const SMALL: u64 = 64 * 1024;

/// Checks whose faults explain that UCX takes no RDMA.
const EXPLAIN: [&str; 16] = [
    "env/ucx-tls",
    "env/ucx-net-devices",
    "nixl/ucx-settings",
    "nixl/ucx-messages",
    "nixl/rdma-errors",
    "pod/rdma-devices",
    "node/rdma-devices",
    "node/device-access",
    "node/rdma-namespace",
    "node/rdma-ports",
    "node/rdma-gids",
    "node/selected-devices",
    "node/locked-memory",
    "node/ucx-build",
    "node/ucx-transports",
    "node/efa",
];

/// Faults that are told as explanations; more help nobody.
const TOLD: usize = 3;

fn run(view: &TransferView<'_>, findings: &mut Findings) {
    let Tried::Measured(transfer) = view.tried else {
        return;
    };
    for group in groups(transfer) {
        let finding = of_group(&group, transfer, view.explains);
        findings.push(view.about(finding));
    }
}

/// Legs of one operation and memory that went the same way, in the order of their sizes.
pub(crate) fn groups(transfer: &Transfer) -> Vec<Vec<&TransferLeg>> {
    let mut all: Vec<Vec<&TransferLeg>> = Vec::new();
    for leg in &transfer.legs {
        let same = |held: &TransferLeg| {
            held.operation == leg.operation
                && held.initiator == leg.initiator
                && held.memory == leg.memory
                && held.words == leg.words
                && held.emulated == leg.emulated
                && held.grade == leg.grade
        };
        match all
            .iter_mut()
            .find(|group| group.last().is_some_and(|l| same(l)))
        {
            Some(group) => group.push(leg),
            None => all.push(vec![leg]),
        }
    }
    all
}

/// `READ by decode, host memory, 64 KiB to 64 MiB: TCP on eth0`.
pub(crate) fn words(group: &[&TransferLeg]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else {
        return String::new();
    };
    let sizes = if first.bytes == last.bytes {
        size(first.bytes)
    } else {
        format!("{} to {}", size(first.bytes), size(last.bytes))
    };
    let emulated = if first.emulated {
        ", emulated: the CPU of the other end copies, too"
    } else {
        ""
    };
    format!(
        "{} by {}, {} memory, {sizes}: {}{emulated}",
        first.operation.as_str(),
        first.initiator,
        first.memory.as_str(),
        first.words
    )
}

/// `proven by protocol table, byte counters, own sockets`.
fn supported(group: &[&TransferLeg]) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let kinds: Vec<String> = first
        .evidence
        .iter()
        .filter(|e| e.finding == "agrees" && group.iter().all(|leg| agrees(leg, &e.kind)))
        .map(|e| e.kind.replace('-', " "))
        .collect();
    match first.grade {
        Some(grade) => format!("{} by {}", grade.as_str(), kinds.join(", ")),
        None => "not known".to_owned(),
    }
}

fn agrees(leg: &TransferLeg, kind: &str) -> bool {
    leg.evidence
        .iter()
        .any(|e| e.kind == kind && e.finding == "agrees")
}

fn of_group(group: &[&TransferLeg], transfer: &Transfer, explains: &[CheckResult]) -> Finding {
    let Some(first) = group.first() else {
        return Finding::skipped(NAME, Reason::NotVisible, "nothing was moved");
    };
    let what = format!("{} ({})", words(group), supported(group));
    let grade = first.grade.unwrap_or(Grade::Assumed);
    if !group.iter().all(|leg| leg.verified) && first.carrier == Carrier::Unknown {
        return Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("{what}: it was not finished"),
        );
    }
    // Memory that the engines use and that could not be measured is not as fast as other memory by that.
    let engine_measured = transfer.legs.iter().any(|leg| leg.of_engine);
    let small = group.iter().all(|leg| leg.bytes <= SMALL)
        && transfer.legs.iter().any(|leg| {
            leg.operation == first.operation
                && leg.memory == first.memory
                && leg.bytes > SMALL
                && leg.carrier.is_fast()
        });
    let mut finding = match first.carrier {
        Carrier::Unknown => {
            let why = first.notes.first().cloned().unwrap_or_default();
            return Finding::skipped(NAME, Reason::NotVisible, format!("{what}: {why}")).required();
        }
        Carrier::Tcp | Carrier::Rdma | Carrier::SoftwareRdma
            if (first.carrier == Carrier::Tcp || first.emulated)
                && (small || (engine_measured && !first.of_engine)) =>
        {
            Finding::ok(NAME, what).note(if small {
                "small blocks only: larger ones go another way"
            } else {
                "the engines do not transfer this way, or with this memory: it is told only"
            })
        }
        Carrier::Tcp => {
            let (why, fix) = explained(explains);
            let detail = format!("{what}: not RDMA{why}");
            let mut finding = if first.of_engine {
                Finding::fail(NAME, &NOT_RDMA, detail)
            } else {
                Finding::warn(NAME, &NOT_RDMA, detail)
                    .note("the memory that the engines use was not measured")
            };
            if let Some(fix) = fix {
                finding = finding.fix(fix);
            }
            finding
        }
        _ if first.emulated => {
            Finding::fail(NAME, &EMULATION, format!("{what}: both CPUs copy it"))
        }
        Carrier::Mixed => Finding::warn(
            NAME,
            &TABLE,
            format!("{what}: a part of it does not go over RDMA"),
        ),
        Carrier::SharedMemory => Finding::warn(NAME, &SHARED_MEMORY, what),
        Carrier::SoftwareRdma => Finding::ok(NAME, what).note(
            "software RDMA: the kernel makes it, CPUs copy, and it says nothing about a card; it is never trusted",
        ),
        Carrier::Rdma | Carrier::GpuIpc => Finding::ok(NAME, what),
    };
    for note in first
        .notes
        .iter()
        .filter(|_| first.carrier != Carrier::SoftwareRdma)
    {
        finding = finding.note(note.clone());
    }
    finding.grade(grade)
}

/// What explains that no RDMA was taken, and the fix of the first.
fn explained(explains: &[CheckResult]) -> (String, Option<String>) {
    let mut found: Vec<&CheckResult> = explains
        .iter()
        .filter(|r| {
            r.cause.is_some()
                && matches!(r.status, Status::Fail | Status::Warn)
                && EXPLAIN.contains(&&*r.name)
        })
        .collect();
    found.sort_by_key(|r| std::cmp::Reverse(r.status));
    // What holds for both ends is told once.
    let mut told: Vec<(&CheckResult, Vec<&str>)> = Vec::new();
    for result in &found {
        let pods = result.subject.pod.iter().chain(&result.subject.pods);
        let at = told.iter().position(|(held, _)| held.cause == result.cause);
        let who = match at.and_then(|at| told.get_mut(at)) {
            Some((_, who)) => who,
            None => {
                told.push((result, Vec::new()));
                let Some((_, who)) = told.last_mut() else {
                    continue;
                };
                who
            }
        };
        for pod in pods {
            if !who.contains(&pod.as_str()) {
                who.push(pod);
            }
        }
    }
    let mut told: Vec<String> = told
        .into_iter()
        .map(|(result, who)| {
            let cause = result.cause.unwrap_or_default();
            match who.as_slice() {
                [] => format!("{} ({cause})", result.detail),
                who => format!("{}: {} ({cause})", who.join(", "), result.detail),
            }
        })
        .collect();
    if told.is_empty() {
        return (
            ", and nothing that was seen in either worker explains it".to_owned(),
            None,
        );
    }
    told.truncate(TOLD);
    (
        format!("; explained by {}", told.join("; ")),
        found.first().and_then(|r| r.fix.clone()),
    )
}
