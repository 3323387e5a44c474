//! Both ends of the transfers fit each other, as their logs show it.
//!
//! What only the logs of both sides together tell: that one allows RDMA alone and the other TCP alone, that they run
//! different releases of UCX, and whether a refused connection means a firewall or a peer that has ended. With the log
//! of one side nothing is said.

use std::collections::{BTreeMap, BTreeSet};

use model::observation::Origin;
use model::observation::log::Event;
use settings::ucx_tls::{self, Build};
use settings::version::UcxVersion;

use crate::check::{Cause, Check, Run};
use crate::env::prefill_decode::VERSION_SKEW;
use crate::finding::{Finding, Findings};
use crate::nixl::sides::Side;
use crate::nixl::ucx_connections::{BLOCKED, REFUSED, WRONG_INTERFACE, of_bridge};
use crate::node::ucx_transports::{Family, family};

pub(crate) const NAME: &str = "nixl/two-sides";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "both ends of the transfers fit each other",
    source: include_str!("two_sides.rs"),
    causes: &[ASYMMETRIC],
    notes: &[],
    run: Run::Sides(run),
};

const ASYMMETRIC: Cause = Cause {
    id: "prefill-decode-asymmetric-fabric",
    what: "one side allows or has RDMA only, and the other TCP only",
    why: "UCX connects over what both sides have: nothing, or TCP",
    fix: "the same UCX_TLS, the same devices and the same image on prefill and decode",
    quiet_if: "both sides have the same kinds of transports; the log of one side only",
    source: "UCX select.c, checked with NIXL 1.5.1: tcp on one side and rc on the other",
};

fn run(sides: &[Side], findings: &mut Findings) {
    asymmetry(sides, findings);
    versions(sides, findings);
    refusals(sides, findings);
}

/// RDMA and TCP, as a side has them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Has {
    rdma: bool,
    tcp: bool,
}

/// What a side's `UCX_TLS` leaves.
fn allowed(side: &Side) -> Option<(Has, &str, &Origin)> {
    let fact = side.seen.process.environment.get("UCX_TLS")?;
    let value = fact.value()?;
    let effect = ucx_tls::evaluate(Some(value), &Build::everything(), None);
    let has = Has {
        rdma: effect.rdma,
        tcp: effect.tcp,
    };
    Some((has, value, fact.sources().first()?))
}

/// What a side's endpoints have; those to itself too, since they show what its process has.
fn lanes(side: &Side) -> Option<(Has, &Origin)> {
    let mut has = Has {
        rdma: false,
        tcp: false,
    };
    let lines = &side.seen.log.lanes;
    for lane in lines.iter().flat_map(|l| &l.uses).flat_map(|(_, l)| l) {
        match family(&lane.transport) {
            Family::Rdma => has.rdma = true,
            Family::Tcp => has.tcp = true,
            _ => {}
        }
    }
    Some((has, &lines.first()?.origin))
}

fn asymmetry(sides: &[Side], findings: &mut Findings) {
    for (n, one) in sides.iter().enumerate() {
        for other in sides.iter().skip(n.saturating_add(1)) {
            if let (Some((a, one_tls, at)), Some((b, other_tls, also))) =
                (allowed(one), allowed(other))
                && ((!a.rdma && b.rdma) || (a.rdma && !b.rdma))
            {
                let common = a.tcp && b.tcp;
                let what = format!(
                    "{} has UCX_TLS={one_tls} and {} UCX_TLS={other_tls}: {}",
                    one.name(),
                    other.name(),
                    if common {
                        "what both allow between nodes is tcp"
                    } else {
                        "no transport between nodes is allowed on both"
                    }
                );
                findings.push(
                    Finding::fail(NAME, &ASYMMETRIC, what)
                        .read_at(&[at.clone(), also.clone()], "UCX_TLS"),
                );
                return;
            }
            if let (Some((a, at)), Some((b, also))) = (lanes(one), lanes(other))
                && a.rdma != b.rdma
            {
                let (with, without) = if a.rdma { (one, other) } else { (other, one) };
                findings.push(
                    Finding::warn(
                        NAME,
                        &ASYMMETRIC,
                        format!(
                            "{} has lanes over RDMA and {} has none: both have only TCP in common",
                            with.name(),
                            without.name()
                        ),
                    )
                    .read_at(&[at.clone(), also.clone()], "lanes"),
                );
                return;
            }
        }
    }
}

fn versions(sides: &[Side], findings: &mut Findings) {
    let mut found: BTreeMap<String, (Vec<String>, Origin)> = BTreeMap::new();
    let mut releases: BTreeSet<(u32, u32)> = BTreeSet::new();
    for side in sides {
        let mut own: BTreeSet<&str> = BTreeSet::new();
        for build in &side.seen.software.ucx {
            let Some(version) = build.version.as_deref() else {
                continue;
            };
            if let Ok(number) = version.parse::<UcxVersion>()
                && own.insert(version)
            {
                releases.insert((number.major.into(), number.minor.into()));
                let entry = found
                    .entry(version.to_owned())
                    .or_insert_with(|| (Vec::new(), build.origin.clone()));
                entry.0.push(side.name());
            }
        }
    }
    if releases.len() < 2 {
        return;
    }
    let words: Vec<String> = found
        .iter()
        .map(|(version, (names, _))| format!("UCX {version} on {}", names.join(", ")))
        .collect();
    let origins: Vec<Origin> = found.values().map(|(_, at)| at.clone()).collect();
    findings.push(
        Finding::warn(
            NAME,
            &VERSION_SKEW,
            format!(
                "the sides run different releases: {}; UCX of neighbouring releases mostly connects, NIXL's metadata not always",
                words.join(", ")
            ),
        )
        .read_at(&origins, "version"),
    );
}

/// Address without port.
fn address(event: &Event) -> &str {
    let peer = event.field("peer").unwrap_or_default();
    peer.rsplit_once(':').map_or(peer, |(address, _)| address)
}

/// Connections of UCX that were refused.
pub(crate) fn refused(side: &Side) -> Vec<&Event> {
    side.seen
        .log
        .of("ucx-connect-failed")
        .filter(|e| e.field("error").is_some_and(|t| t.contains("refused")))
        .collect()
}

/// Both sides were up and were refused: something between them rejects, or the address is a bridge that both have.
fn refusals(sides: &[Side], findings: &mut Findings) {
    let all: Vec<(&Side, Vec<&Event>)> = sides
        .iter()
        .map(|side| (side, refused(side)))
        .filter(|(_, events)| !events.is_empty())
        .collect();
    let [(one, first), (other, second), ..] = all.as_slice() else {
        return;
    };
    let (Some(a), Some(b)) = (first.first(), second.first()) else {
        return;
    };
    // That the address is a bridge's each side tells for itself.
    if of_bridge(a.field("peer").unwrap_or_default()) {
        return;
    }
    let places = [a.origin.clone(), b.origin.clone()];
    let peer = |e: &Event| e.field("peer").unwrap_or_default().to_owned();
    findings.push(
        if address(a) == address(b) {
            Finding::fail(
                NAME,
                &WRONG_INTERFACE,
                format!(
                    "both sides connect to the same address and are refused (Connection refused, {} and {}): an interface with that address is on both",
                    peer(a),
                    peer(b)
                ),
            )
        } else {
            Finding::fail(
                NAME,
                &BLOCKED,
                format!(
                    "both sides were up and were refused: {} at {}, {} at {} (Connection refused); something between them rejects",
                    one.name(),
                    peer(a),
                    other.name(),
                    peer(b)
                ),
            )
        }
        .read_at(&places, "refused"),
    );
}

/// Whether a refusal on one side follows from what the other side's log shows: both were refused, which
/// [`refusals`] tells, or the other one failed and ended.
pub(crate) fn explains_refusal(sides: &[Side], at: usize, failed: &[bool]) -> Option<bool> {
    let others = || sides.iter().enumerate().filter(|(n, _)| *n != at);
    if others().any(|(_, side)| !refused(side).is_empty()) {
        return Some(true);
    }
    others()
        .any(|(n, _)| failed.get(n).copied().unwrap_or(false))
        .then_some(false)
}

/// Its cause, which a view of one side takes for the peer's end.
pub(crate) const OF_ONE_SIDE: &str = REFUSED.id;
