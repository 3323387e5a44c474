//! What lines of lanes suggest, for `nixl/payload-transport`.

use std::collections::BTreeSet;

use model::Reason;
use model::observation::log::{Lane, LaneLine, Log, Scope};

use super::PAYLOAD;
use super::payload_transport::{
    LANES, LANES_DIFFER, counts, families, is_software, large, named, of_peers, whose,
};
use crate::finding::{Finding, Findings};
use crate::node::ucx_transports::{Family, family};

/// Says which of two contradicting lines counts.
pub(super) fn differ(log: &Log, findings: &mut Findings) {
    let payload: Vec<&Lane> = of_peers(log)
        .filter(|table| counts(table, log))
        .filter_map(large)
        .flat_map(|row| &row.lanes)
        .collect();
    let kinds = families(payload.iter().copied());
    let other = log
        .lanes
        .iter()
        .filter(|line| line.scope != Scope::SelfEndpoint)
        .find_map(|line| {
            let mut one_sided = line
                .uses
                .iter()
                .filter(|(name, _)| matches!(name.as_str(), "rma" | "rma_am"))
                .flat_map(|(_, lanes)| lanes);
            let lanes = one_sided.clone();
            one_sided
                .any(|lane| !kinds.contains(&family(&lane.transport)))
                .then(|| (line, named(lanes)))
        });
    if let Some((line, words)) = other {
        findings.push(
            Finding::skipped(
                PAYLOAD,
                Reason::NotApplicable,
                format!(
                    "the line of lanes names {words}, the table {}: the table is what counts",
                    named(payload.iter().copied())
                ),
            )
            .because(&LANES_DIFFER)
            .read_at(std::slice::from_ref(&line.origin), "lanes"),
        );
    }
}

/// Hints, where no table tells.
pub(super) fn lanes(lines: &[LaneLine], unread: bool, findings: &mut Findings) {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for line in lines.iter().filter(|l| l.scope != Scope::SelfEndpoint) {
        let Some(words) = hint(line) else { continue };
        let mut finding = Finding::skipped(
            PAYLOAD,
            Reason::NotVisible,
            format!(
                "lanes {}: {words}; lanes are a hint and no proof, the protocol table (UCX_PROTO_INFO=y) tells",
                whose(&line.scope)
            ),
        )
        .because(&LANES);
        // Where a table is there and cannot be read, that is what is missing.
        if !unread {
            finding = finding.required();
        }
        // Every endpoint prints its line.
        let key = format!("{:?}{:?}", line.scope, line.uses);
        if told.insert(key) {
            findings.push(finding.read_at(std::slice::from_ref(&line.origin), "lanes"));
        }
    }
}

/// What a line of lanes suggests.
fn hint(line: &LaneLine) -> Option<String> {
    let of = |name: &str| -> Vec<&Lane> {
        line.uses
            .iter()
            .filter(|(n, _)| n == name)
            .flat_map(|(_, l)| l)
            .collect()
    };
    let (direct, emulated) = (of("rma"), of("rma_am"));
    let other: Vec<&Lane> = ["rma_bw", "tag", "am"].into_iter().flat_map(of).collect();
    if !direct.is_empty() {
        let words = named(direct.iter().copied());
        let all = families(direct.iter().copied());
        return Some(if direct.iter().copied().any(is_software) {
            format!(
                "one-sided transfers over {words}, which is software RDMA and no faster than TCP"
            )
        } else if all.contains(&Family::Tcp) && all.len() > 1 {
            format!("one-sided transfers over {words}: a part of it may go over tcp")
        } else {
            format!("one-sided transfers over {words}")
        });
    }
    if !emulated.is_empty() {
        let beside = other
            .iter()
            .filter(|l| !matches!(family(&l.transport), Family::Tcp));
        let beside = named(beside.copied());
        let words = named(emulated.iter().copied());
        return Some(if beside.is_empty() {
            format!("put and get are emulated over {words}")
        } else {
            format!(
                "put and get are emulated over {words}; {beside} is there, but not for put and get"
            )
        });
    }
    let words = named(other.iter().copied());
    (!words.is_empty()).then(|| format!("messages over {words}; none is for one-sided transfers"))
}
