//! What the kernels of both ends say about the carrier that UCX's table names.

use crate::attribution::{Carrier, Evidence, EvidenceKind, Finding};
use crate::counters::Said;
use crate::record::Measurement;
use crate::side::{Both, Side};
use crate::table::Row;

/// What the kernels say.
pub(crate) struct Moved {
    pub(crate) interfaces: Both<Said>,
    pub(crate) sockets: Both<Said>,
    pub(crate) ports: Both<Said>,
    pub(crate) payload: u64,
    pub(crate) initiator: Side,
}

pub(crate) fn words(said: &Both<Said>) -> String {
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

/// What byte counters, connections and namespaces say about a carrier.
pub(crate) fn evidence(
    carrier: &Carrier,
    row: &Row,
    moved: &Moved,
    measured: &Measurement,
) -> Vec<Evidence> {
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
            let ports = every(&moved.ports, carried)
                && moved
                    .ports
                    .of(moved.initiator)
                    .went_over(&row.devices(), moved.payload);
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
        one.namespaces.contains_key(kind) && one.namespaces.get(kind) == other.namespaces.get(kind)
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
