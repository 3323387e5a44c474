//! A measurement as reports tell it.

use model::transfer::{
    Carrier as Told, Evidence as ToldEvidence, MemoryKind, Operation as ToldOperation, Transfer,
    TransferEnd, TransferLeg, TransferStop,
};

use crate::attribution::{Attribution, Carrier, EvidenceKind, Finding};
use crate::pace::pace;
use crate::plan::{Memory, Operation};
use crate::record::{EndRecord, LegRecord, Measurement, Stop};
use crate::side::{Both, Side};

/// How engines transfer, where it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfEngine {
    /// READ by decode or WRITE by prefill.
    pub operation: Option<ToldOperation>,
    /// The memory that their KV cache is in.
    pub memory: Option<MemoryKind>,
}

/// Puts what a measurement gave into the words of reports. `ends` say which workers they are.
pub fn told(
    measured: &Measurement,
    answers: &[Attribution],
    ends: Both<TransferEnd>,
    engine: OfEngine,
) -> Transfer {
    Transfer {
        prefill: end(ends.prefill, &measured.ends.prefill),
        decode: end(ends.decode, &measured.ends.decode),
        tool: None,
        plan: measured.plan.sentence(),
        planned_bytes: measured.plan.total_bytes(),
        legs: measured
            .legs
            .iter()
            .zip(answers)
            .map(|(record, answer)| leg(measured, record, answer, engine))
            .collect(),
        stop: measured.stop.as_ref().map(|at| stop(measured, at)),
    }
}

fn end(end: TransferEnd, record: &EndRecord) -> TransferEnd {
    TransferEnd {
        nixl: record.nixl_version.clone(),
        gpu: record.gpu.clone(),
        gpu_error: record.gpu_error.clone(),
        ..end
    }
}

fn stop(measured: &Measurement, at: &Stop) -> TransferStop {
    let end = measured.ends.of(at.side);
    let peer = measured.ends.of(at.side.other());
    // What NIXL says of a peer that is gone is no fault of NIXL's.
    let gone = peer.gone();
    TransferStop {
        side: at.side.as_str().to_owned(),
        step: at.step.clone(),
        why: match gone {
            Some(gone) if end.gone().is_none() => format!(
                "{}; the program in the {} worker {gone}",
                at.why,
                at.side.other().as_str()
            ),
            _ => at.why.clone(),
        },
        // A connection that nobody answers is waited for inside of NIXL.
        by_nixl: gone.is_none()
            && ((end.error.is_some() && at.step.as_deref() != Some("import"))
                || end.unanswered().is_some()),
    }
}

fn leg(
    measured: &Measurement,
    record: &LegRecord,
    answer: &Attribution,
    engine: OfEngine,
) -> TransferLeg {
    let leg = &record.leg;
    let pace = pace(measured, record, &answer.carrier);
    let operation = match leg.operation {
        Operation::Read => ToldOperation::Read,
        Operation::Write => ToldOperation::Write,
    };
    // GPU memory at one end makes it a transfer of GPU memory.
    let memory = if Side::ALL.iter().any(|s| leg.memory(*s) == Memory::Gpu) {
        MemoryKind::Gpu
    } else {
        MemoryKind::Host
    };
    let (carrier, over) = match &answer.carrier {
        Carrier::Rdma { devices, software } => (
            if *software {
                Told::SoftwareRdma
            } else {
                Told::Rdma
            },
            devices.clone(),
        ),
        Carrier::GpuIpc => (Told::GpuIpc, Vec::new()),
        Carrier::SharedMemory { transports } => (Told::SharedMemory, transports.clone()),
        Carrier::Tcp { interfaces } => (Told::Tcp, interfaces.clone()),
        Carrier::Mixed { .. } => (Told::Mixed, Vec::new()),
        Carrier::Unknown => (Told::Unknown, Vec::new()),
    };
    TransferLeg {
        operation,
        initiator: leg.initiator.as_str().to_owned(),
        memory,
        bytes: leg.bytes,
        transfers: record.transfers,
        verified: answer.verified,
        carrier,
        over,
        words: answer.carrier.words(),
        emulated: answer.emulated,
        grade: answer.grade,
        evidence: answer
            .evidence
            .iter()
            .map(|evidence| ToldEvidence {
                kind: match evidence.kind {
                    EvidenceKind::ProtocolTable => "protocol-table",
                    EvidenceKind::ByteCounters => "byte-counters",
                    EvidenceKind::OwnSockets => "own-sockets",
                    EvidenceKind::NoEmulation => "no-emulation",
                    EvidenceKind::Namespaces => "namespaces",
                }
                .to_owned(),
                finding: match evidence.finding {
                    Finding::Agrees => "agrees",
                    Finding::Fits => "fits",
                    Finding::Contradicts => "contradicts",
                    Finding::Silent => "silent",
                }
                .to_owned(),
                text: evidence.text.clone(),
            })
            .collect(),
        bytes_per_second: pace.and_then(|p| whole(p.bytes_per_second)),
        link_bytes_per_second: pace.and_then(|p| whole(p.link_bytes_per_second?)),
        plausible: pace.and_then(|p| p.plausible),
        of_engine: engine.operation.is_none_or(|o| o == operation)
            && engine.memory.is_none_or(|m| m == memory),
        notes: answer.notes.clone(),
    }
}

/// A rate as a whole number.
fn whole(rate: f64) -> Option<u64> {
    // More than any link has is a broken clock.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is looked at first"
    )]
    (0.0..1e15).contains(&rate).then_some(rate as u64)
}
