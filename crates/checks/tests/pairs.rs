//! Transfers between several workers: which one is the bad end, where that can be told, and when a deployment is trusted.

#![allow(clippy::unwrap_used, reason = "a broken test should stop")]

#[path = "pods/support.rs"]
mod support;

use checks::{Gathered, NodeFacts, PairTried, Tried, judge_check};
use model::transfer::{Carrier, Transfer, TransferEnd, TransferLeg, TransferStop};
use model::{Grade, MemoryKind, Operation, Report};
use support::{pod, probed};

/// How a transfer went.
#[derive(Clone, Copy)]
enum Went {
    Over(Carrier),
    Refused,
}

fn transfer(went: Went) -> Transfer {
    let carrier = match went {
        Went::Over(carrier) => Some(carrier),
        Went::Refused => None,
    };
    let leg = |carrier| TransferLeg {
        operation: Operation::Read,
        initiator: "decode".to_owned(),
        memory: MemoryKind::Gpu,
        bytes: 16 << 20,
        transfers: 4,
        verified: true,
        carrier,
        over: Vec::new(),
        words: format!("{carrier:?}"),
        emulated: false,
        grade: Some(Grade::Proven),
        evidence: Vec::new(),
        bytes_per_second: Some(40_000_000_000),
        link_bytes_per_second: Some(50_000_000_000),
        plausible: Some(true),
        of_engine: true,
        notes: Vec::new(),
    };
    Transfer {
        prefill: TransferEnd::default(),
        decode: TransferEnd::default(),
        tool: None,
        plan: String::new(),
        planned_bytes: 0,
        legs: carrier.map(leg).into_iter().collect(),
        stop: carrier.is_none().then(|| TransferStop {
            side: "decode".to_owned(),
            step: Some("connect".to_owned()),
            why: "NIXL_ERR_BACKEND".to_owned(),
            by_nixl: true,
        }),
    }
}

/// Two prefill and two decode workers, and what came of transfers between them.
fn judged(pairs: &[(usize, usize, Went)]) -> Report {
    let pods = ["prefill", "decode"]
        .iter()
        .flat_map(|role| (0..2).map(move |n| pod(&format!("{role}-{n}"), role)))
        .map(|object| probed(&object, Ok(NodeFacts::default())))
        .collect();
    let transfers = pairs
        .iter()
        .map(|(prefill, decode, went)| PairTried {
            prefill: format!("prefill-{prefill}"),
            decode: format!("decode-{decode}"),
            tried: Tried::Measured(Box::new(transfer(*went))),
            messages: Vec::new(),
            memory: Some(MemoryKind::Gpu),
            apart: Some(true),
            again: false,
        })
        .collect();
    judge_check(Gathered {
        pods,
        transfers,
        ..Gathered::default()
    })
}

fn bad_ends(report: &Report) -> Vec<&str> {
    report
        .results
        .iter()
        .filter(|r| r.cause == Some("nixl-transfer-bad-end"))
        .map(|r| r.subject.pod.as_deref().unwrap())
        .collect()
}

const RDMA: Went = Went::Over(Carrier::Rdma);
const TCP: Went = Went::Over(Carrier::Tcp);

#[test]
fn a_worker_that_fails_with_peers_that_are_well_is_the_bad_end() {
    let refused = judged(&[
        (0, 0, RDMA),
        (1, 1, Went::Refused),
        (0, 1, Went::Refused),
        (1, 0, RDMA),
    ]);
    assert_eq!(bad_ends(&refused), ["decode-1"]);
    let slow = judged(&[(0, 0, RDMA), (1, 0, TCP), (0, 1, RDMA)]);
    assert_eq!(bad_ends(&slow), ["prefill-1"]);
}

#[test]
fn where_either_end_may_be_bad_nobody_is_named() {
    assert!(bad_ends(&judged(&[(0, 0, RDMA), (1, 1, RDMA)])).is_empty());
    // Not tried again: both ends of the second pair are suspect.
    assert!(bad_ends(&judged(&[(0, 0, RDMA), (1, 1, Went::Refused)])).is_empty());
    let all = judged(&[(0, 0, Went::Refused), (1, 1, Went::Refused)]);
    assert!(bad_ends(&all).is_empty());
    // TCP everywhere is no single worker's.
    assert!(bad_ends(&judged(&[(0, 0, TCP), (1, 1, TCP)])).is_empty());
}

#[test]
fn pairs_are_counted_as_tested_and_proven() {
    let report = judged(&[(0, 0, RDMA), (1, 1, TCP)]);
    assert_eq!(report.coverage.pairs_tested, 2);
    assert_eq!(report.coverage.pairs_proven, 1);
    assert!(!report.transfer_validated());
    assert_eq!(report.transfers.len(), 2);
}
