//! Whether what moved between two workers was KV: what the engines themselves show, beside the counters.
//!
//! An interface carries requests and metrics as well, and an RDMA port what the whole machine does. So bytes are called
//! KV only where two things of the engines agree with the counters: connections (or queue pairs) of their own on that
//! way, and as many bytes in their metrics. Metrics count what goes to all peers, so that less may have come this way.

use std::collections::{BTreeMap, BTreeSet};

use model::observation::process::Connection;

use crate::observe::{Counted, Mover, Observed, Seen, WORTH_TELLING};
use crate::side::{Both, Side};

/// What an engine had open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opened {
    /// TCP connections of all its processes; none where they could not be read.
    pub connections: Option<Vec<Connection>>,
    /// Connected queue pairs, by RDMA device.
    pub queue_pairs: BTreeMap<String, u32>,
    /// Interface by address, as text, where it is known.
    pub addresses: BTreeMap<std::net::IpAddr, String>,
}

/// Bytes of KV that an engine's metrics counted, and the metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Bytes.
    pub bytes: u64,
    /// Its name.
    pub name: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// It was KV: what agrees.
    Kv(String),
    /// Nobody can tell: what is missing.
    Unknown(String),
}

/// What an end's metrics say of KV that came to it, or went from it.
pub fn metric(side: Side, before: &Counted, after: &Counted) -> Option<Metric> {
    // Who reads counts what it received, and who writes what it sent.
    let names: &[&str] = match side {
        Side::Prefill => &[
            "agent_tx_bytes",
            "agent_tx_bytes_total",
            "vllm:nixl_bytes_transferred_sum",
        ],
        Side::Decode => &[
            "agent_rx_bytes",
            "agent_rx_bytes_total",
            "vllm:nixl_bytes_transferred_sum",
        ],
    };
    after
        .metrics
        .iter()
        .filter(|((_, name), _)| names.contains(&name.as_str()))
        .filter_map(|(key, now)| {
            let grown = now - before.metrics.get(key)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the range is looked at first"
            )]
            (0.0..1e18).contains(&grown).then_some(Metric {
                bytes: grown as u64,
                name: key.1.clone(),
            })
        })
        .max_by_key(|metric| metric.bytes)
}

/// Connections of one engine that lead to the other one: both have them.
pub fn shared<'c>(one: &'c Opened, other: &Opened) -> Option<Vec<&'c Connection>> {
    let theirs: BTreeSet<_> = other
        .connections
        .as_ref()?
        .iter()
        .map(|c| (c.remote, c.local))
        .collect();
    Some(
        one.connections
            .as_ref()?
            .iter()
            .filter(|c| theirs.contains(&(c.local, c.remote)))
            .collect(),
    )
}

/// Says whether what moved was KV.
pub fn whose(
    observed: &Observed,
    opened: &Both<Opened>,
    metrics: &Both<Option<Metric>>,
) -> Option<Whose> {
    let Seen::Over { movers } = &observed.seen else {
        return None;
    };
    let rdma = movers.iter().any(|m| m.grown.rdma);
    let own = if rdma {
        queue_pairs(movers, opened)
    } else {
        connections(movers, opened)
    };
    let own = match own {
        Ok(own) => own,
        Err(why) => return Some(Whose::Unknown(why)),
    };
    let best = Side::ALL
        .iter()
        .filter_map(|side| metrics.of(*side).as_ref())
        .max_by_key(|metric| metric.bytes);
    let Some(metric) = best else {
        return Some(Whose::Unknown(format!(
            "{own}, and the engines show no metrics of KV bytes"
        )));
    };
    if metric.bytes < WORTH_TELLING {
        return Some(Whose::Unknown(format!(
            "{own}, and the engines' metrics counted no KV meanwhile ({})",
            metric.name
        )));
    }
    let counted = format!("{} counted {} MiB", metric.name, metric.bytes >> 20);
    let least = metric.bytes - metric.bytes / 20;
    let of_kind = |rdma: bool| {
        Side::ALL
            .iter()
            .map(|side| {
                observed
                    .movers
                    .iter()
                    .filter(|m| m.side == *side && m.grown.rdma == rdma)
                    .fold(0_u64, |sum, m| sum.saturating_add(m.grown.bytes))
            })
            .min()
            .unwrap_or(0)
    };
    let (here, elsewhere) = (of_kind(rdma), of_kind(!rdma));
    // More than metrics count is other traffic, of which a part may be what they count; a port counts everybody's.
    let agrees = here >= least && (rdma || here <= metric.bytes.saturating_add(metric.bytes / 4));
    if agrees && elsewhere < metric.bytes / 10 {
        return Some(Whose::Kv(format!("{own}, and {counted}")));
    }
    Some(Whose::Unknown(format!(
        "{own}, and {counted}, which does not fit what moved there"
    )))
}

fn connections(movers: &[Mover], opened: &Both<Opened>) -> Result<String, String> {
    let Some(shared) = shared(&opened.prefill, &opened.decode) else {
        return Err("the engines' sockets could not be read".to_owned());
    };
    let on_way = shared.iter().filter(|c| {
        opened.prefill.addresses.get(&c.local.0).is_none_or(|name| {
            movers
                .iter()
                .any(|m| m.side == Side::Prefill && m.grown.name == *name)
        })
    });
    match on_way.count() {
        0 => Err("the engines had no connection to each other there".to_owned()),
        1 => Ok("the engines have a connection to each other there".to_owned()),
        n => Ok(format!(
            "the engines have {n} connections to each other there"
        )),
    }
}

fn queue_pairs(movers: &[Mover], opened: &Both<Opened>) -> Result<String, String> {
    let mut found: BTreeMap<&str, u32> = BTreeMap::new();
    for mover in movers {
        let device = mover.grown.name.split(':').next().unwrap_or_default();
        if let Some(count) = opened.of(mover.side).queue_pairs.get(device) {
            *found.entry(device).or_default() += count;
        }
    }
    if found.is_empty() {
        return Err(
            "no queue pair of an engine was seen there (rdma resource show qp tells)".to_owned(),
        );
    }
    let words: Vec<String> = found
        .iter()
        .map(|(device, count)| format!("{count} on {device}"))
        .collect();
    Ok(format!(
        "the engines have queue pairs there: {}",
        words.join(", ")
    ))
}
