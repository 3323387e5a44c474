//! Which transport carried a leg, and how well that is supported.
//!
//! UCX's protocol table says what UCX chose; the kernels say what moved. A transport is *proven* where two independent
//! kinds agree for the same peer, operation and memory, *observed* where one says it and nothing contradicts it, and
//! *unknown* where there is no table or the kinds disagree: never a pass.

use checks::Family;
use model::Grade;
use model::observation::Observation;
use model::observation::rdma::has_software_name;

use crate::attribution::{Attribution, Carrier, Evidence, EvidenceKind, Finding};
use crate::control::without_emulation;
use crate::counters;
use crate::record::{LegRecord, Measurement};
use crate::side::Both;
use crate::table::{self, Row};
use crate::weigh::{Moved, evidence, words};

/// Says what carried each leg that was begun. `control` is a measurement of [`crate::Plan::control`] whose programs
/// ran with emulation switched off.
pub fn attribute(measured: &Measurement, control: Option<&Measurement>) -> Vec<Attribution> {
    let observed = Both {
        prefill: probe::recognise("prefill", &measured.ends.prefill.output),
        decode: probe::recognise("decode", &measured.ends.decode.output),
    };
    measured
        .legs
        .iter()
        .map(|record| {
            let seen = observed.of(record.leg.initiator);
            one(measured, control, record, seen)
        })
        .collect()
}

fn one(
    measured: &Measurement,
    control: Option<&Measurement>,
    record: &LegRecord,
    seen: &Observation,
) -> Attribution {
    let mut answer = Attribution {
        leg: record.leg,
        verified: record.complete(),
        carrier: Carrier::Unknown,
        emulated: false,
        grade: None,
        evidence: Vec::new(),
        notes: Vec::new(),
    };
    if !record.complete() {
        answer.notes.push(if record.after.is_none() {
            "the leg was not finished".to_owned()
        } else {
            let lost = record.transfers.saturating_sub(record.verified);
            format!(
                "the content of {lost} of {} transfers did not arrive as it was sent",
                record.transfers
            )
        });
    }
    let moved = Moved {
        interfaces: counters::both(|side| counters::interfaces(record, side)),
        sockets: counters::both(|side| {
            counters::sockets(record, side, measured.ends.of(side).facts.as_ref())
        }),
        ports: counters::both(|side| counters::ports(record, side)),
        payload: record.payload(),
        initiator: record.leg.initiator,
    };
    let row = match table::row(seen, &record.leg) {
        Ok(row) => row,
        Err(why) => {
            answer.notes.push(why.words().to_owned());
            for (kind, of) in [
                (EvidenceKind::ByteCounters, &moved.interfaces),
                (EvidenceKind::OwnSockets, &moved.sockets),
            ] {
                answer.evidence.push(Evidence {
                    kind,
                    finding: Finding::Silent,
                    text: words(of),
                });
            }
            return answer;
        }
    };
    answer.emulated = row.emulated();
    answer.carrier = carrier(&row);
    answer.evidence.push(Evidence {
        kind: EvidenceKind::ProtocolTable,
        finding: Finding::Agrees,
        text: format!(
            "{}..{}: {}, {}",
            row.range.0,
            row.range.1,
            row.how,
            row.words()
        ),
    });
    answer
        .evidence
        .extend(evidence(&answer.carrier, &row, &moved, measured));
    if let Some(found) =
        control.and_then(|c| without_emulation(&record.leg, &answer.carrier, &row, c))
    {
        answer.evidence.push(found);
    }
    grade(&mut answer);
    answer
}

fn grade(answer: &mut Attribution) {
    let of = |finding| answer.evidence.iter().filter(move |e| e.finding == finding);
    if let Some(against) = of(Finding::Contradicts).next() {
        answer.notes.push(format!(
            "UCX's table says {}, and that is contradicted: {}",
            answer.carrier.words(),
            against.text
        ));
        answer.carrier = Carrier::Unknown;
        answer.grade = None;
        return;
    }
    if answer.carrier == Carrier::Unknown || !answer.verified {
        answer.grade = None;
        return;
    }
    let agree = of(Finding::Agrees).count();
    answer.grade = Some(
        if agree >= 2 && !matches!(answer.carrier, Carrier::Mixed { .. }) {
            Grade::Proven
        } else {
            Grade::Observed
        },
    );
    if answer.grade == Some(Grade::Observed) {
        let lacking: Vec<String> = answer
            .evidence
            .iter()
            .filter(|e| matches!(e.finding, Finding::Silent | Finding::Fits))
            .map(|e| e.text.clone())
            .collect();
        answer.notes.push(format!(
            "only UCX's table names it; no second kind of evidence does: {}",
            lacking.join("; ")
        ));
    }
    match &answer.carrier {
        Carrier::SharedMemory { .. } => answer.notes.push(
            "both processes share their PID and IPC namespaces, as in one pod or with hostPID and hostIPC; two pods do not, so between pods the payload goes another way"
                .to_owned(),
        ),
        Carrier::GpuIpc => answer
            .notes
            .push("cuda_ipc goes over NVLink, or over PCIe where there is none: the topology of the GPUs tells".to_owned()),
        Carrier::Rdma { software: true, .. } => answer
            .notes
            .push("this RDMA is made by the kernel's software: CPUs copy, and it says nothing about a card".to_owned()),
        _ => {}
    }
}

fn carrier(row: &Row) -> Carrier {
    let devices = || {
        row.devices()
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Copies to GPU memory are a part of another way, not one of their own.
    let families: Vec<Family> = row
        .families()
        .into_iter()
        .filter(|family| *family != Family::GpuCopy)
        .collect();
    match families.as_slice() {
        [Family::Rdma] => Carrier::Rdma {
            software: row.devices().iter().any(|device| has_software_name(device)),
            devices: devices(),
        },
        [Family::GpuIpc] => Carrier::GpuIpc,
        [Family::Shared] => Carrier::SharedMemory {
            transports: row
                .lanes
                .iter()
                .map(|lane| lane.transport.clone())
                .collect(),
        },
        [Family::Tcp] => Carrier::Tcp {
            interfaces: devices(),
        },
        [] | [Family::Other | Family::Own | Family::GpuCopy] => Carrier::Unknown,
        _ => Carrier::Mixed { lanes: row.words() },
    }
}
