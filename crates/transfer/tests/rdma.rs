//! Real transfers over a kernel RDMA device, measured in a virtual machine by `.ci/rdma-transfer`.

#![allow(clippy::expect_used, clippy::print_stderr)]

use std::path::PathBuf;

use model::Grade;
use transfer::{Carrier, EvidenceKind, Finding, Measurement, Operation, Side, attribute, faults};

fn measurement(name: &str) -> Option<Measurement> {
    let Some(folder) = std::env::var_os("CHECK_INTERCONNECT_TRANSFERS") else {
        eprintln!("skipped: .ci/rdma-transfer makes the measurements");
        return None;
    };
    let path = PathBuf::from(folder).join(format!("{name}.json"));
    if !path.exists() {
        eprintln!("skipped: {name} was not asked for");
        return None;
    }
    let text = std::fs::read_to_string(&path).expect("a measurement");
    Some(serde_json::from_str(&text).expect("a measurement"))
}

#[test]
fn software_rdma_is_recognised_by_several_kinds_of_evidence() {
    let (Some(measured), Some(control)) = (measurement("rdma-library"), measurement("control"))
    else {
        return;
    };
    assert_eq!(measured.stop, None);
    assert_eq!(control.stop, None, "a READ over RDMA needs no emulation");
    for answer in attribute(&measured, Some(&control)) {
        let text = format!("{}\n{:#?}", answer.sentence(), answer.evidence);
        assert!(answer.verified, "{text}");
        assert_eq!(
            answer.carrier,
            Carrier::Rdma {
                devices: vec!["rxe0:1".to_owned()],
                software: true
            },
            "{text}"
        );
        assert_eq!(answer.grade, Some(Grade::Proven), "{text}");
        assert!(!answer.emulated && !answer.counts(), "{text}");
        let found = |kind| {
            answer
                .evidence
                .iter()
                .find(|e| e.kind == kind)
                .map(|e| e.finding)
        };
        assert_eq!(
            found(EvidenceKind::ByteCounters),
            Some(Finding::Agrees),
            "{text}"
        );
        assert_eq!(
            found(EvidenceKind::OwnSockets),
            Some(Finding::Fits),
            "{text}"
        );
        assert_eq!(
            found(EvidenceKind::NoEmulation),
            (answer.leg.operation == Operation::Read).then_some(Finding::Agrees),
            "{text}"
        );
    }
    assert!(
        measured
            .ends
            .decode
            .open
            .iter()
            .any(|f| f == "/dev/infiniband/uverbs0")
    );
    assert!(
        faults(&measured)
            .iter()
            .any(|(_, r)| r.cause == Some("soft-roce"))
    );
}

#[test]
fn a_limit_of_locked_memory_is_named_and_bounded() {
    let Some(measured) = measurement("memlock") else {
        return;
    };
    // UCX tells it for ever, and NIXL never comes back: the programs were ended, and their output was bounded.
    let stop = measured.stop.as_ref().expect("it cannot register memory");
    assert!(stop.why.contains("in time"), "{stop:?}");
    assert!(measured.legs.is_empty());
    for side in Side::ALL {
        let end = measured.ends.of(side);
        let facts = end.facts.as_ref().expect("facts");
        assert_eq!(facts.locked_memory, Some(65_536));
        assert!(!facts.may_lock && end.output.len() < 2 << 20);
    }
    let causes: Vec<_> = faults(&measured)
        .iter()
        .filter_map(|(_, r)| r.cause)
        .collect();
    assert!(causes.contains(&"memlock-low"), "{causes:?}");
}

#[test]
fn rdma_alone_on_one_side_and_tcp_alone_on_the_other_is_named() {
    let Some(measured) = measurement("mixed") else {
        return;
    };
    let stop = measured.stop.as_ref().expect("nothing connects them");
    assert_eq!(stop.step.as_deref(), Some("connect"), "{stop:?}");
    let causes: Vec<_> = faults(&measured)
        .iter()
        .filter_map(|(_, r)| r.cause)
        .collect();
    assert!(
        causes.contains(&"prefill-decode-asymmetric-fabric"),
        "{causes:?}"
    );
}
