//! Transfers that come about: what carried them, by which evidence.

use model::{Grade, Status};
use transfer::{
    Attribution, Both, Carrier, Command, Engine, EvidenceKind, Finding, Measurement, Operation,
    Plan, Side, attribute, faults, pace,
};

use crate::lab::{Lab, engine, small};

/// 64 KiB to 64 MiB, both ways of engines.
fn whole() -> Plan {
    let mut plan = Plan::both_ways_of_engines(&[transfer::Memory::Host]);
    for leg in &mut plan.legs {
        leg.repeats = leg.repeats.min(2);
    }
    plan
}

fn pair(version: &str) -> Option<Both<Engine>> {
    Some(Both {
        prefill: engine(version, &[])?,
        decode: engine(version, &[])?,
    })
}

fn assert_tcp(measured: &Measurement, answers: &[Attribution]) {
    assert_eq!(measured.stop, None);
    assert_eq!(answers.len(), measured.plan.legs.len());
    for answer in answers {
        let text = format!("{}\n{:#?}", answer.sentence(), answer.evidence);
        assert!(answer.verified, "{text}");
        assert_eq!(
            answer.carrier,
            Carrier::Tcp {
                interfaces: vec!["eth0".to_owned()]
            },
            "{text}"
        );
        assert_eq!(answer.grade, Some(Grade::Proven), "{text}");
        let agree: Vec<EvidenceKind> = answer
            .evidence
            .iter()
            .filter(|e| e.finding == Finding::Agrees)
            .map(|e| e.kind)
            .collect();
        assert!(agree.contains(&EvidenceKind::ProtocolTable), "{text}");
        assert!(agree.contains(&EvidenceKind::OwnSockets), "{text}");
        assert!(agree.contains(&EvidenceKind::ByteCounters), "{text}");
        // It is proven, and proven not to be RDMA.
        assert!(!answer.counts(), "{text}");
    }
}

/// Causes that the messages of both ends give.
fn causes(measured: &Measurement) -> Vec<&'static str> {
    faults(measured)
        .into_iter()
        .filter(|(_, result)| matches!(result.status, Status::Warn | Status::Fail))
        .filter_map(|(_, result)| result.cause)
        .collect()
}

#[test]
fn isolated_workers_move_everything_over_tcp() {
    let Some(lab) = Lab::up(&[]) else { return };
    let Some(engines) = pair("1.5.1") else { return };
    let plan = whole();
    let measured = lab.measure(&plan, &engines);
    let answers = attribute(&measured, None);
    assert_tcp(&measured, &answers);
    for (answer, record) in answers.iter().zip(&measured.legs) {
        // UCX has no one-sided READ over TCP.
        assert_eq!(
            answer.emulated,
            record.leg.operation == Operation::Read,
            "{}",
            answer.sentence()
        );
        let pace = pace(&measured, record, &answer.carrier).expect("it was timed");
        assert!(pace.bytes_per_second > 0.0);
        assert_eq!(pace.plausible, None, "TCP is not judged by its rate");
        eprintln!(
            "{} {:.3} GB/s",
            answer.sentence(),
            pace.bytes_per_second / 1e9
        );
    }
    // The quiet side of all faults: nothing but what the transport is.
    assert!(
        causes(&measured)
            .iter()
            .all(|c| ["nixl-proto-table", "nixl-software-emulation"].contains(c)),
        "{:?}",
        causes(&measured)
    );
    for side in Side::ALL {
        let end = measured.ends.of(side);
        let facts = end.facts.as_ref().expect("facts");
        assert_eq!(facts.hostname, format!("{}-0", side.as_str()));
        assert_eq!(end.nixl_version.as_deref(), Some("1.5.1"));
        assert!(end.libraries.iter().any(|path| path.contains("/libucp-")));
        assert!(end.finished && end.signal.is_none() && end.left_out == 0);
    }
    let of = |side| measured.ends.of(side).facts.clone().expect("facts");
    let (one, other) = (of(Side::Prefill), of(Side::Decode));
    assert_eq!(one.boot, other.boot);
    for kind in ["pid", "net", "ipc", "uts"] {
        assert_ne!(
            one.namespaces.get(kind),
            other.namespaces.get(kind),
            "{kind}"
        );
    }
    // A saved measurement gives the same answer.
    let saved = serde_json::to_string(&measured).expect("JSON");
    let read: Measurement = serde_json::from_str(&saved).expect("JSON");
    assert_eq!(attribute(&read, None), answers);
    // Nothing of ours is left in the workers.
    for side in Side::ALL {
        let left = lab.exec(side, &["ps", "-e", "-o", "args="]);
        assert!(!left.contains("check-interconnect"), "{left}");
        assert!(!left.contains("python"), "{left}");
    }
}

#[test]
fn without_emulation_a_read_over_tcp_is_refused() {
    let Some(lab) = Lab::up(&[]) else { return };
    let Some(engines) = pair("1.5.1") else { return };
    let plan = small();
    let measured = lab.measure(&plan, &engines);
    let control = lab.measure_as(&plan.control(), &engines, Command::control);
    assert!(control.stop.is_some());
    let answers = attribute(&measured, Some(&control));
    assert_tcp(&measured, &answers);
    for answer in answers {
        let found = answer
            .evidence
            .iter()
            .find(|e| e.kind == EvidenceKind::NoEmulation);
        match answer.leg.operation {
            Operation::Read => assert_eq!(found.expect("it ran").finding, Finding::Fits),
            Operation::Write => assert_eq!(found, None),
        }
    }
    assert!(causes(&control).contains(&"nixl-software-emulation"));
}

#[test]
fn a_shared_pid_namespace_is_recognised() {
    let Some(lab) = Lab::up(&["--share-pid"]) else {
        return;
    };
    let Some(engines) = pair("1.5.1") else { return };
    let measured = lab.measure(&small(), &engines);
    assert_eq!(measured.stop, None);
    for answer in attribute(&measured, None) {
        assert!(answer.verified);
        assert_eq!(
            answer.carrier,
            Carrier::SharedMemory {
                transports: vec!["cma".to_owned()]
            }
        );
        assert_eq!(answer.grade, Some(Grade::Proven));
        assert!(!answer.counts());
        let namespaces = answer
            .evidence
            .iter()
            .find(|e| e.kind == EvidenceKind::Namespaces)
            .expect("they were looked at");
        assert_eq!(namespaces.finding, Finding::Fits);
        assert!(namespaces.text.contains("share the pid and ipc namespace"));
        assert!(answer.notes.iter().any(|n| n.contains("two pods do not")));
    }
}

#[test]
fn versions_of_nixl() {
    let Some(lab) = Lab::up(&[]) else { return };
    let Some(newest) = engine("1.5.1", &[]) else {
        return;
    };
    for version in ["1.0.1", "0.10.1"] {
        let Some(older) = engine(version, &[]) else {
            continue;
        };
        for engines in [
            Both {
                prefill: older.clone(),
                decode: newest.clone(),
            },
            Both {
                prefill: newest.clone(),
                decode: older.clone(),
            },
        ] {
            let measured = lab.measure(&small(), &engines);
            assert_tcp(&measured, &attribute(&measured, None));
        }
    }
    let Some(oldest) = engine("0.4.1", &[]) else {
        return;
    };
    // Both of that version work.
    let measured = lab.measure(
        &small(),
        &Both {
            prefill: oldest.clone(),
            decode: oldest.clone(),
        },
    );
    assert_tcp(&measured, &attribute(&measured, None));
    for engines in [
        Both {
            prefill: oldest.clone(),
            decode: newest.clone(),
        },
        Both {
            prefill: newest.clone(),
            decode: oldest.clone(),
        },
    ] {
        let measured = lab.measure(&small(), &engines);
        let stop = measured
            .stop
            .as_ref()
            .expect("they do not understand each other");
        assert_eq!(stop.step.as_deref(), Some("connect"), "{stop:?}");
        assert!(measured.legs.is_empty());
        assert!(
            causes(&measured).contains(&"ucx-pd-version-skew"),
            "{:?} {}",
            causes(&measured),
            measured.ends.decode.output
        );
    }
}

#[test]
fn an_engine_that_runs_is_what_its_proc_says() {
    let Some(live) = engine("1.5.1", &[]) else {
        return;
    };
    let path = format!("PYTHONPATH={}", live.environment["PYTHONPATH"]);
    let Some(lab) = Lab::up(&["--engine", "--env", &path, "--env", "UCX_TLS=tcp,cuda_copy"]) else {
        return;
    };
    let of = |side| {
        let text = lab.exec(side, &["sh", "-c", "tr '\\0' '\\n' </proc/1/environ"]);
        let maps = lab.exec(side, &["cat", "/proc/1/maps"]);
        Engine {
            environment: text
                .lines()
                .filter_map(|line| line.split_once('='))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            executable: Some(
                lab.exec(side, &["readlink", "/proc/1/exe"])
                    .trim()
                    .to_owned(),
            ),
            libraries: maps
                .lines()
                .filter_map(|line| {
                    line.find('/')
                        .and_then(|at| line.get(at..))
                        .map(str::to_owned)
                })
                .collect(),
            backend: std::collections::BTreeMap::new(),
        }
    };
    let engines = Both {
        prefill: of(Side::Prefill),
        decode: of(Side::Decode),
    };
    let measured = lab.measure(&small(), &engines);
    assert_tcp(&measured, &attribute(&measured, None));
    assert!(causes(&measured).contains(&"ucx-tls-tcp-only"));
    for side in Side::ALL {
        // The same libraries as the engine has.
        let engine = engines.of(side);
        let ucp = |all: &[String]| all.iter().find(|p| p.contains("/libucp-")).cloned();
        assert!(ucp(&engine.libraries).is_some());
        assert_eq!(
            ucp(&measured.ends.of(side).libraries),
            ucp(&engine.libraries)
        );
    }
}

#[test]
fn counters_around_a_transfer_name_the_interface() {
    let Some(lab) = Lab::up(&[]) else { return };
    let Some(engines) = pair("1.5.1") else { return };
    let look = || {
        let of = |side| {
            let text = lab.exec(side, &["sh", "-c", transfer::COUNTERS]);
            transfer::read_counters(&text).expect("it is whole")
        };
        Both {
            prefill: of(Side::Prefill),
            decode: of(Side::Decode),
        }
    };
    let before = look();
    let mut plan = small();
    for leg in &mut plan.legs {
        leg.bytes = 16 << 20;
    }
    let measured = lab.measure(&plan, &engines);
    assert_eq!(measured.stop, None);
    let after = look();
    let seen = transfer::observe(&before, &after);
    assert!(
        matches!(&seen.seen, transfer::Seen::Over { movers } if movers.iter().all(|m| m.grown.name == "eth0")),
        "{seen:?}"
    );
    std::thread::sleep(std::time::Duration::from_millis(20));
    let quiet = transfer::observe(&after, &look());
    assert_eq!(quiet.seen, transfer::Seen::NoTraffic, "{quiet:?}");
}
