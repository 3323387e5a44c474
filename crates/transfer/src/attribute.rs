//! Which transport carried a leg, and how well that is supported.
//!
//! UCX's protocol table says what UCX chose; the kernels say what moved. A transport is *proven* where two independent
//! kinds agree for the same peer, operation and memory, *observed* where one says it and nothing contradicts it, and
//! *unknown* where there is no table or the kinds disagree: never a pass.

use model::Grade;
use model::observation::Observation;
use model::observation::rdma::has_software_name;
use serde::Serialize;

use checks::Family;

use crate::counters::{self, Said};
use crate::plan::{Leg, Operation};
use crate::record::{LegRecord, Measurement};
use crate::side::{Both, Side};
use crate::table::{self, Row};

/// What carried a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Carrier {
    /// RDMA, by devices and ports.
    Rdma {
        /// `mlx5_0:1`.
        devices: Vec<String>,
        /// Made by software (rxe, siw): the CPU copies, and it is never trusted.
        software: bool,
    },
    /// From GPU to GPU of one machine or NVLink domain (cuda_ipc).
    GpuIpc,
    /// Memory that both processes share (cma, sysv, posix, xpmem): they share a PID or IPC namespace.
    SharedMemory {
        /// `cma`.
        transports: Vec<String>,
    },
    /// TCP, by interfaces.
    Tcp {
        /// `eth0`.
        interfaces: Vec<String>,
    },
    /// Several of them at once.
    Mixed {
        /// As the table names them.
        lanes: String,
    },
    /// Not known.
    Unknown,
}

impl Carrier {
    /// RDMA hardware, or NVLink.
    pub fn is_fast(&self) -> bool {
        matches!(
            self,
            Self::Rdma {
                software: false,
                ..
            } | Self::GpuIpc
        )
    }

    /// `TCP on eth0`.
    pub fn words(&self) -> String {
        match self {
            Self::Rdma {
                devices,
                software: false,
            } => format!("RDMA on {}", devices.join(", ")),
            Self::Rdma { devices, .. } => format!("software RDMA on {}", devices.join(", ")),
            Self::GpuIpc => "GPU to GPU (cuda_ipc)".to_owned(),
            Self::SharedMemory { transports } => {
                format!("shared memory ({})", transports.join(", "))
            }
            Self::Tcp { interfaces } => format!("TCP on {}", interfaces.join(", ")),
            Self::Mixed { lanes } => format!("a mixture: {lanes}"),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// A kind of evidence. Kinds are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// The row of UCX's protocol table.
    ProtocolTable,
    /// Bytes of interfaces and RDMA ports at both ends against the payload.
    ByteCounters,
    /// Bytes of the processes' own TCP connections at both ends.
    OwnSockets,
    /// A READ that works with emulation switched off.
    NoEmulation,
    /// The namespaces of both processes.
    Namespaces,
}

/// What a kind of evidence says about the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// It names it, or shows it.
    Agrees,
    /// It fits, and does not name it.
    Fits,
    /// It contradicts it.
    Contradicts,
    /// It says nothing here.
    Silent,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Which kind.
    pub kind: EvidenceKind,
    /// What it says about the carrier.
    pub finding: Finding,
    /// In words, with numbers.
    pub text: String,
}

/// The answer for a leg.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attribution {
    /// The leg.
    pub leg: Leg,
    /// All of the content arrived.
    pub verified: bool,
    /// What carried it.
    pub carrier: Carrier,
    /// The remote CPU copied, too.
    pub emulated: bool,
    /// How well that is supported; none where the carrier is unknown.
    pub grade: Option<Grade>,
    /// Everything that was looked at.
    pub evidence: Vec<Evidence>,
    /// Why it is not proven, or what it does not say.
    pub notes: Vec<String>,
}

impl Attribution {
    /// It may count for trust: proven, verified, RDMA hardware or NVLink, no emulation.
    pub fn counts(&self) -> bool {
        self.verified
            && self.carrier.is_fast()
            && !self.emulated
            && self.grade == Some(Grade::Proven)
    }

    /// `READ of 16 MiB, host to host: TCP on eth0 (proven)`.
    pub fn sentence(&self) -> String {
        let leg = &self.leg;
        let grade = self.grade.map_or("not known", Grade::as_str);
        format!(
            "{} by {} of {} bytes from {} to {} memory: {}{} ({grade}){}",
            leg.operation.as_str(),
            leg.initiator.as_str(),
            leg.bytes,
            leg.memory(leg.source()).as_str(),
            leg.memory(leg.source().other()).as_str(),
            self.carrier.words(),
            if self.emulated {
                ", emulated: the CPU of the other end copies"
            } else {
                ""
            },
            if self.verified {
                ""
            } else {
                "; the content did NOT arrive"
            },
        )
    }
}

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
    if let Some(found) = control.and_then(|c| without_emulation(&record.leg, &answer.carrier, c)) {
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

/// What the kernels say.
struct Moved {
    interfaces: Both<Said>,
    sockets: Both<Said>,
    ports: Both<Said>,
    payload: u64,
    initiator: Side,
}

fn words(said: &Both<Said>) -> String {
    format!(
        "prefill {}, decode {}",
        said.prefill.words(),
        said.decode.words()
    )
}

fn every(said: &Both<Said>, holds: impl Fn(&Said) -> bool) -> bool {
    Side::ALL.iter().all(|side| holds(said.of(*side)))
}

fn some(said: &Both<Said>, holds: impl Fn(&Said) -> bool) -> bool {
    Side::ALL.iter().any(|side| holds(said.of(*side)))
}

fn evidence(carrier: &Carrier, row: &Row, moved: &Moved, measured: &Measurement) -> Vec<Evidence> {
    let mut all = Vec::new();
    let sockets = format!(
        "own TCP connections moved {} of {} bytes",
        words(&moved.sockets),
        moved.payload
    );
    let interfaces = format!(
        "interfaces moved {} of {} bytes",
        words(&moved.interfaces),
        moved.payload
    );
    let carried = |s: &Said| matches!(s, Said::Carried(_));
    match carrier {
        Carrier::Tcp { .. } => {
            // The device of the table is the initiator's; the other end has names of its own.
            let here = |said: &Both<Said>| {
                said.of(moved.initiator)
                    .went_over(&row.devices(), moved.payload)
            };
            for (kind, said, text) in [
                (EvidenceKind::OwnSockets, &moved.sockets, sockets),
                (EvidenceKind::ByteCounters, &moved.interfaces, interfaces),
            ] {
                let finding = if every(said, carried) && here(said) {
                    Finding::Agrees
                } else if some(said, Said::is_nothing) {
                    Finding::Contradicts
                } else {
                    Finding::Silent
                };
                all.push(Evidence {
                    kind,
                    finding,
                    text,
                });
            }
        }
        Carrier::Rdma { software, .. } => {
            let text = format!("{interfaces}; RDMA ports moved {}", words(&moved.ports));
            let quiet = every(&moved.interfaces, Said::is_nothing)
                // The frames of software RDMA go through an interface.
                || (*software && every(&moved.sockets, Said::is_nothing));
            let ports = every(&moved.ports, carried);
            all.push(Evidence {
                kind: EvidenceKind::OwnSockets,
                finding: no_sockets(&moved.sockets),
                text: sockets,
            });
            all.push(Evidence {
                kind: EvidenceKind::ByteCounters,
                // Ports belong to the whole machine: they count only where the payload shows nowhere else.
                finding: if quiet && ports {
                    Finding::Agrees
                } else if quiet {
                    Finding::Fits
                } else {
                    Finding::Silent
                },
                text,
            });
        }
        Carrier::GpuIpc | Carrier::SharedMemory { .. } => {
            let text = format!("{interfaces}; RDMA ports moved {}", words(&moved.ports));
            let quiet = every(&moved.interfaces, Said::is_nothing);
            let no_ports = every(&moved.ports, Said::is_nothing);
            all.push(Evidence {
                kind: EvidenceKind::OwnSockets,
                finding: no_sockets(&moved.sockets),
                text: sockets,
            });
            all.push(Evidence {
                kind: EvidenceKind::ByteCounters,
                finding: if quiet && no_ports {
                    Finding::Agrees
                } else {
                    Finding::Silent
                },
                text,
            });
            if matches!(carrier, Carrier::SharedMemory { .. }) {
                all.push(shared_namespaces(measured));
            }
        }
        Carrier::Mixed { .. } | Carrier::Unknown => {
            for (kind, text) in [
                (EvidenceKind::OwnSockets, sockets),
                (EvidenceKind::ByteCounters, interfaces),
            ] {
                all.push(Evidence {
                    kind,
                    finding: Finding::Silent,
                    text,
                });
            }
        }
    }
    all
}

/// Own connections that moved nothing fit everything but TCP; they name nothing.
fn no_sockets(sockets: &Both<Said>) -> Finding {
    if every(sockets, Said::is_nothing) {
        Finding::Fits
    } else if some(sockets, |s| matches!(s, Said::Carried(_))) {
        Finding::Contradicts
    } else {
        Finding::Silent
    }
}

/// Shared memory needs one kernel, and one PID or IPC namespace.
fn shared_namespaces(measured: &Measurement) -> Evidence {
    let (Some(one), Some(other)) = (&measured.ends.prefill.facts, &measured.ends.decode.facts)
    else {
        return Evidence {
            kind: EvidenceKind::Namespaces,
            finding: Finding::Silent,
            text: "the namespaces are not known".to_owned(),
        };
    };
    let same = |kind: &str| {
        one.namespaces.get(kind).is_some() && one.namespaces.get(kind) == other.namespaces.get(kind)
    };
    let one_kernel = !one.boot.is_empty() && one.boot == other.boot;
    let shared: Vec<&str> = ["pid", "ipc"]
        .into_iter()
        .filter(|kind| same(kind))
        .collect();
    let (finding, text) = if !one_kernel {
        (
            Finding::Contradicts,
            "the two ends run under different kernels".to_owned(),
        )
    } else if shared.is_empty() {
        (
            Finding::Contradicts,
            "the two ends share neither PID nor IPC namespace".to_owned(),
        )
    } else {
        (
            Finding::Fits,
            format!(
                "the two ends share the {} namespace of one machine",
                shared.join(" and ")
            ),
        )
    };
    Evidence {
        kind: EvidenceKind::Namespaces,
        finding,
        text,
    }
}

/// A READ that works without emulation has a one-sided path. TCP has none for READ.
fn without_emulation(leg: &Leg, carrier: &Carrier, control: &Measurement) -> Option<Evidence> {
    if leg.operation != Operation::Read {
        return None;
    }
    let same = |other: &Leg| {
        other.operation == leg.operation
            && other.initiator == leg.initiator
            && other.local == leg.local
            && other.remote == leg.remote
    };
    let ran = control.legs.iter().find(|record| same(&record.leg))?;
    let refused = control
        .ends
        .of(leg.initiator)
        .output
        .contains("No zero-copy protocol found for get");
    let (finding, text) = match (ran.complete(), refused, carrier) {
        (true, _, Carrier::Tcp { .. }) => (
            Finding::Silent,
            "a READ worked with emulation switched off, which this UCX may not know",
        ),
        (true, _, Carrier::Rdma { .. } | Carrier::GpuIpc) => (
            Finding::Agrees,
            "a READ works with emulation switched off: there is a one-sided path",
        ),
        (false, true, Carrier::Rdma { .. } | Carrier::GpuIpc) => (
            Finding::Contradicts,
            "with emulation switched off UCX refuses the READ: there is no one-sided path",
        ),
        (false, true, _) => (
            Finding::Fits,
            "with emulation switched off UCX refuses the READ: there is no one-sided path",
        ),
        _ => return None,
    };
    Some(Evidence {
        kind: EvidenceKind::NoEmulation,
        finding,
        text: text.to_owned(),
    })
}
