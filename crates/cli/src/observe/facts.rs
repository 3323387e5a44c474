//! What the looks at counters, and the engines, say together.

use checks::{ObservedFacts, ProbedPod};
use model::{EngineSeen, Found, Medium, Moved, ObservedTraffic};
use transfer::{Both, Counted, Grown, Seen, Side, Whose};

use super::{Looks, engines};
use crate::transfer::pair::Pair;

/// What the looks say.
pub(super) fn of(pods: &[ProbedPod], seen: Option<Looks>) -> ObservedFacts {
    let names: Vec<String> = pods.iter().map(|p| p.object.name.clone()).collect();
    let traffic = match seen {
        Some(Ok(looks)) => of_looks(pods, &looks),
        Some(Err(words)) => unknown(words),
        None => unknown("nothing was observed: not all workers could be looked into".to_owned()),
    };
    ObservedFacts {
        traffic,
        pods: names,
    }
}

fn unknown(words: String) -> ObservedTraffic {
    ObservedTraffic {
        found: Found::Unknown,
        over: None,
        kv: false,
        words,
        milliseconds: None,
        moved: Vec::new(),
        engines: Vec::new(),
    }
}

fn of_looks(pods: &[ProbedPod], looks: &[(Counted, Counted)]) -> ObservedTraffic {
    match (pods, looks) {
        ([own, theirs], [own_looks, their_looks]) => {
            let pair = Pair::of(own, theirs);
            let own_is_decode = std::ptr::eq(*pair.ends.of(Side::Decode), own);
            let both = if own_is_decode {
                Both {
                    prefill: their_looks,
                    decode: own_looks,
                }
            } else {
                Both {
                    prefill: own_looks,
                    decode: their_looks,
                }
            };
            between(&pair, &both)
        }
        ([pod], [looks]) => one_end(pod, looks),
        _ => unknown("nothing was observed".to_owned()),
    }
}

fn between(pair: &Pair<'_>, looks: &Both<&(Counted, Counted)>) -> ObservedTraffic {
    let at = |of: fn(&(Counted, Counted)) -> &Counted| Both {
        prefill: of(looks.prefill).clone(),
        decode: of(looks.decode).clone(),
    };
    let observed = transfer::observe(&at(|two| &two.0), &at(|two| &two.1));
    let opened = Both {
        prefill: engines::opened(pair.ends.prefill),
        decode: engines::opened(pair.ends.decode),
    };
    let metric = |side: Side| {
        let (before, after) = looks.of(side);
        transfer::metric(side, before, after)
    };
    let metrics = Both {
        prefill: metric(Side::Prefill),
        decode: metric(Side::Decode),
    };
    let mut engines: Vec<EngineSeen> = Vec::new();
    for side in Side::ALL {
        let Some(mut engine) = engines::of(pair.ends.of(side)) else {
            continue;
        };
        let shared = transfer::shared(opened.of(side), opened.of(side.other()));
        engine.connections_to_peer = shared.map(|all| u32::try_from(all.len()).unwrap_or(u32::MAX));
        if let Some(metric) = metrics.of(side) {
            engine.kv_bytes = Some(metric.bytes);
            engine.kv_metric = Some(metric.name.clone());
        }
        engines.push(engine);
    }
    let (kv, whose) = match transfer::whose(&observed, &opened, &metrics) {
        Some(Whose::Kv(why)) => (true, format!("; it was KV: {why}")),
        Some(Whose::Unknown(why)) => (false, format!("; whether it was KV is not known: {why}")),
        None => (false, String::new()),
    };
    ObservedTraffic {
        found: match &observed.seen {
            Seen::NoTraffic => Found::Nothing,
            Seen::Over { .. } => Found::Between,
            Seen::Other { .. } => Found::Other,
            Seen::Unknown => Found::Unknown,
        },
        over: match &observed.seen {
            Seen::Over { movers } if movers.iter().any(|m| m.grown.rdma) => Some(Medium::RdmaPort),
            Seen::Over { .. } => Some(Medium::Interface),
            _ => None,
        },
        kv,
        words: format!("{}{whose}", observed.sentence),
        milliseconds: milliseconds(observed.seconds),
        moved: observed
            .movers
            .iter()
            .map(|mover| {
                let pod = &pair.ends.of(mover.side).object.name;
                moved(pod, mover.side == Side::Prefill, &mover.grown)
            })
            .collect(),
        engines,
    }
}

fn moved(pod: &str, sent: bool, grown: &Grown) -> Moved {
    Moved {
        pod: pod.to_owned(),
        name: grown.name.clone(),
        medium: if grown.rdma {
            Medium::RdmaPort
        } else {
            Medium::Interface
        },
        sent,
        bytes: grown.bytes,
        packets: grown.packets,
    }
}

fn milliseconds(seconds: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is looked at first"
    )]
    (0.0..1e9)
        .contains(&seconds)
        .then_some((seconds * 1000.0) as u64)
}

/// What one end alone counted.
fn one_end(pod: &ProbedPod, (before, after): &(Counted, Counted)) -> ObservedTraffic {
    let name = &pod.object.name;
    let mut all = Vec::new();
    let mut words = Vec::new();
    for sent in [true, false] {
        let Some(grown) = transfer::grown(before, after, sent) else {
            return unknown(format!("the counters of {name} cannot be compared"));
        };
        let verb = if sent { "sent" } else { "received" };
        words.extend(
            grown
                .iter()
                .map(|one| format!("it {verb} {}", transfer::amount(one))),
        );
        all.extend(grown.iter().map(|one| moved(name, sent, one)));
    }
    if words.is_empty() {
        words.push("nothing moved more than a few MiB".to_owned());
    }
    ObservedTraffic {
        found: Found::OneEnd,
        over: None,
        kv: false,
        words: format!(
            "{}; where to, and whether it was KV, one end alone does not tell",
            words.join(", ")
        ),
        milliseconds: milliseconds(after.seconds - before.seconds),
        moved: all,
        engines: engines::of(pod).into_iter().collect(),
    }
}
