//! What moved between two workers while their engines ran, by counters alone: nothing is transferred for it.
//!
//! It shows which interface or port carried bytes. It never shows that they were KV: requests, metrics and other pods
//! use them too, and RDMA ports belong to the whole machine. That takes what the engines themselves show ([`crate::whose`]).

use std::collections::BTreeMap;

use model::Grade;
use serde::Serialize;

use crate::counters::port_growth;
use crate::message::{Snapshot, Traffic};
use crate::side::{Both, Side};

/// The POSIX shell script that prints the counters, for an exec in each container before and after. Its arguments are
/// ports at which the engine has metrics.
pub const COUNTERS: &str = include_str!("counters.sh");

/// Less is no transfer of KV: connections live, requests come and go.
pub(crate) const WORTH_TELLING: u64 = 8 << 20;

/// Counters at one moment, and when, in seconds since the machine started.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The counters; own connections are not among them.
    pub snapshot: Snapshot,
    /// KV bytes of the engine's metrics, by port and name.
    pub metrics: BTreeMap<(u16, String), f64>,
    /// When.
    pub seconds: f64,
}

/// Reads what [`COUNTERS`] prints. None where it is not whole.
pub fn read_counters(text: &str) -> Option<Counted> {
    let mut snapshot = Snapshot::default();
    let mut interfaces = BTreeMap::new();
    let mut metrics: BTreeMap<(u16, String), f64> = BTreeMap::new();
    let mut seconds = None;
    let mut whole = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["time", value] => seconds = value.parse().ok(),
            ["net", name, received, sent] => {
                let traffic = Traffic {
                    received: received.parse().ok()?,
                    sent: sent.parse().ok()?,
                };
                interfaces.insert((*name).to_owned(), traffic);
            }
            ["port", port, counter, value] => {
                if let Ok(value) = value.parse() {
                    snapshot
                        .ports
                        .entry((*port).to_owned())
                        .or_default()
                        .insert((*counter).to_owned(), value);
                }
            }
            ["metric", port, name, value] => {
                if let (Ok(port), Ok(value)) = (port.parse(), value.parse::<f64>())
                    && value.is_finite()
                {
                    *metrics.entry((port, (*name).to_owned())).or_default() += value;
                }
            }
            ["end"] => whole = true,
            _ => {}
        }
    }
    snapshot.interfaces = Some(interfaces).filter(|all| !all.is_empty());
    whole.then_some(Counted {
        snapshot,
        metrics,
        seconds: seconds?,
    })
}

/// What moved bytes at one end, in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grown {
    /// `eth0`, or `mlx5_0:1`.
    pub name: String,
    /// An RDMA port.
    pub rdma: bool,
    /// Bytes; at most so many where only packets are counted.
    pub bytes: u64,
    /// Packets, where the kernel counts no bytes there.
    pub packets: Option<u64>,
}

/// Something that moved bytes at one of two ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mover {
    /// Which end.
    pub side: Side,
    /// What, and how much, of the direction from prefill to decode.
    #[serde(flatten)]
    pub grown: Grown,
}

/// What counters say about the time between.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Seen {
    /// Hardly anything moved: nothing is known.
    NoTraffic,
    /// About as much left the prefill worker as reached the decode worker, over these.
    Over {
        /// At both ends.
        movers: Vec<Mover>,
    },
    /// Something moved, and not from the one to the other.
    Other {
        /// At either end.
        movers: Vec<Mover>,
    },
    /// The counters of an end cannot be compared.
    Unknown,
}

/// The answer of an observation; never better than observed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observed {
    /// What was seen.
    pub seen: Seen,
    /// All that moved anything, whether it fits or not.
    pub movers: Vec<Mover>,
    /// None where nothing is known.
    pub grade: Option<Grade>,
    /// Seconds between the two looks.
    pub seconds: f64,
    /// In words.
    pub sentence: String,
}

/// Compares two looks at both ends.
pub fn observe(before: &Both<Counted>, after: &Both<Counted>) -> Observed {
    let seconds = Side::ALL
        .iter()
        .map(|side| after.of(*side).seconds - before.of(*side).seconds)
        .fold(f64::INFINITY, f64::min);
    let movers: Option<Vec<Vec<Mover>>> = Side::ALL
        .iter()
        .map(|side| {
            let all = grown(before.of(*side), after.of(*side), *side == Side::Prefill)?;
            Some(
                all.into_iter()
                    .map(|grown| Mover { side: *side, grown })
                    .collect(),
            )
        })
        .collect();
    let movers = movers.map(|all| all.concat());
    let seen = match &movers {
        Some(all) if seconds > 0.0 => between(all),
        _ => Seen::Unknown,
    };
    let sentence = words(&seen, seconds);
    Observed {
        grade: matches!(seen, Seen::Over { .. }).then_some(Grade::Observed),
        seen,
        movers: movers.unwrap_or_default(),
        seconds,
        sentence,
    }
}

/// What one end sent, or received, in the time between. None where the counters cannot be compared.
pub fn grown(before: &Counted, after: &Counted, sent: bool) -> Option<Vec<Grown>> {
    let mut all = Vec::new();
    let then = before.snapshot.interfaces.as_ref()?;
    for (name, now) in after.snapshot.interfaces.as_ref()? {
        // It came in between: what it counted before is not known.
        let Some(then) = then.get(name) else { continue };
        let bytes = if sent {
            now.sent.checked_sub(then.sent)?
        } else {
            now.received.checked_sub(then.received)?
        };
        all.push(Grown {
            name: name.clone(),
            rdma: false,
            bytes,
            packets: None,
        });
    }
    for (name, now) in &after.snapshot.ports {
        let then = before.snapshot.ports.get(name);
        if let Some(growth) = then.and_then(|then| port_growth(sent, then, now)) {
            all.push(Grown {
                name: name.clone(),
                rdma: true,
                bytes: growth.bytes,
                packets: growth.packets,
            });
        }
    }
    // What loops back stays in the pod.
    all.retain(|one| one.name != "lo" && one.bytes >= WORTH_TELLING);
    Some(all)
}

/// The greatest sum of one kind at both ends, where they agree within a quarter.
fn between(movers: &[Mover]) -> Seen {
    if movers.is_empty() {
        return Seen::NoTraffic;
    }
    let sum = |side: Side, rdma: bool| {
        movers
            .iter()
            .filter(|m| m.side == side && m.grown.rdma == rdma)
            .fold(0_u64, |sum, m| sum.saturating_add(m.grown.bytes))
    };
    let fitting: Vec<(bool, u64)> = [true, false]
        .into_iter()
        .filter_map(|rdma| {
            let (one, other) = (sum(Side::Prefill, rdma), sum(Side::Decode, rdma));
            let (less, more) = (one.min(other), one.max(other));
            (less > 0 && less >= more.saturating_sub(more / 4)).then_some((rdma, less))
        })
        .collect();
    match fitting.iter().max_by_key(|(_, bytes)| *bytes) {
        Some((rdma, _)) => Seen::Over {
            movers: movers
                .iter()
                .filter(|m| m.grown.rdma == *rdma)
                .cloned()
                .collect(),
        },
        None => Seen::Other {
            movers: movers.to_vec(),
        },
    }
}

/// `519 MiB on eth0`, `27000 packets on rxe0:1 (at most 105 MiB; this kernel counts no bytes there)`.
pub fn amount(grown: &Grown) -> String {
    let mib = grown.bytes >> 20;
    match grown.packets {
        None => format!("{mib} MiB on {}", grown.name),
        Some(packets) => format!(
            "{packets} packets on {} (at most {mib} MiB; this kernel counts no bytes there)",
            grown.name
        ),
    }
}

fn words(seen: &Seen, seconds: f64) -> String {
    let list = |movers: &[Mover]| {
        let all: Vec<String> = movers
            .iter()
            .map(|m| {
                let verb = match m.side {
                    Side::Prefill => "sent",
                    Side::Decode => "received",
                };
                format!("{} {verb} {}", m.side.as_str(), amount(&m.grown))
            })
            .collect();
        all.join(", ")
    };
    match seen {
        Seen::NoTraffic => format!(
            "no traffic in {seconds:.0} s: what carries KV is not known; send requests meanwhile, or measure with --transfer"
        ),
        Seen::Over { movers } => {
            let whose = if movers.iter().any(|m| m.grown.rdma) {
                "ports count what the whole machine does"
            } else {
                "over TCP or another protocol of the network stack"
            };
            format!("{}; {whose}", list(movers))
        }
        Seen::Other { movers } => format!(
            "{}; that did not go from the one to the other: other traffic, and what carries KV is not known",
            list(movers)
        ),
        Seen::Unknown => "the counters of an end cannot be compared".to_owned(),
    }
}
