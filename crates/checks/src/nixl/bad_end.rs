//! Which worker is the bad end, where transfers between several were measured.
//!
//! A pair that fails has two ends, and both look guilty. A worker whose transfers all fail, while each of its peers has
//! transferred well with somebody else, is the bad one; so is one whose transfers go another way (TCP) than those of all
//! others. Where nobody's transfers go well it is no single worker, and this says nothing.

use std::collections::BTreeMap;

use model::{Grade, Role, Subject};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::nixl::transfer::Tried;
use crate::pairs::{PairTried, usual_way, went_well};

pub(crate) const NAME: &str = "nixl/transfer-bad-end";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "no single worker is the reason why transfers fail, or go another way",
    source: include_str!("bad_end.rs"),
    causes: &[BAD_END],
    notes: &[],
    run: Run::Pairs(run),
};

const BAD_END: Cause = Cause {
    id: "nixl-transfer-bad-end",
    what: "all measured transfers with one worker fail, or go another way than those of the others, while its peers transfer well with others",
    why: "requests that are routed to this worker wait for KV, or get it slowly; the others are not to blame",
    fix: "look at the other results about this worker first; restart it on another node to tell the node's fault from its own",
    quiet_if: "no pair went well; a peer of it transfers well with nobody: then either may be the bad one",
    source: "transfers in rounds, suspects tried again with peers that had worked",
};

fn run(tried: &[PairTried], findings: &mut Findings) {
    let usual = usual_way(tried);
    let counted = |pair: &&PairTried| matches!(pair.tried, Tried::Measured(_) | Tried::NotBegun(_));
    let mut of_worker: BTreeMap<(&str, &str), Vec<(&str, bool)>> = BTreeMap::new();
    for pair in tried.iter().filter(counted) {
        let well = went_well(pair, usual.as_deref());
        of_worker
            .entry(("prefill", &pair.prefill))
            .or_default()
            .push((&pair.decode, well));
        of_worker
            .entry(("decode", &pair.decode))
            .or_default()
            .push((&pair.prefill, well));
    }
    for ((role, name), pairs) in &of_worker {
        if pairs.iter().any(|(_, well)| *well) {
            continue;
        }
        let other = if *role == "prefill" {
            "decode"
        } else {
            "prefill"
        };
        let cleared = pairs.iter().all(|(peer, _)| {
            of_worker
                .get(&(other, *peer))
                .is_some_and(|theirs| theirs.iter().any(|(_, well)| *well))
        });
        if !cleared {
            continue;
        }
        let mut peers: Vec<&str> = pairs.iter().map(|(peer, _)| *peer).collect();
        peers.sort_unstable();
        peers.dedup();
        let transfers = match peers.len() {
            1 => "its transfer with".to_owned(),
            n => format!("its transfers with all {n}:"),
        };
        let subject = Subject {
            roles: vec![if *role == "prefill" {
                Role::Prefill
            } else {
                Role::Decode
            }],
            pod: Some((*name).to_owned()),
            ..Subject::default()
        };
        findings.push(
            Finding::fail(
                NAME,
                &BAD_END,
                format!(
                    "{name} is the bad end: {transfers} {} did not go as the others did, and they transfer well with others",
                    crate::compare::listed(&peers)
                ),
            )
            .grade(Grade::Observed)
            .about(&subject),
        );
    }
}
