//! What `node` says of real kernel RDMA devices in every state that the virtual machine puts them into.
//!
//! `.ci/vm` boots it, saves what the collecting script printed there, and runs this over it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a broken test should stop, and a skipped one says so"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use checks::{NodeFacts, judge_node};
use model::exit::{FailOn, exit_of};
use model::{Report, Role, Status};
use probe::stream::Stream;

/// Where `.ci/vm` saved everything.
fn lab() -> Option<PathBuf> {
    let place = std::env::var_os("CHECK_INTERCONNECT_LAB").map(PathBuf::from);
    if place.is_none() {
        println!("skipped: CHECK_INTERCONNECT_LAB names no directory; .ci/vm makes one");
    }
    place
}

fn judged(lab: &Path, state: &str, role: Option<Role>) -> Report {
    let path = lab.join(state).join("stream.busybox");
    let stream = Stream::parse(&fs::read(&path).unwrap());
    let facts = NodeFacts {
        gap: stream.gap().map(|gap| gap.to_string()),
        observation: probe::observe::observation(&stream),
        role,
        ..NodeFacts::default()
    };
    judge_node("node", &facts, Vec::new())
}

fn causes(report: &Report) -> BTreeSet<&'static str> {
    report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Fail | Status::Warn))
        .filter_map(|r| r.cause)
        .collect()
}

/// Exit code and causes where nothing says what runs there, and where a decode worker does.
struct Expected {
    state: &'static str,
    anybody: (u8, &'static [&'static str]),
    decode: (u8, &'static [&'static str]),
}

const SOFTWARE: (u8, &[&str]) = (0, &["soft-roce"]);
const NOTHING: (u8, &[&str]) = (3, &[]);
const NO_DEVICE: (u8, &[&str]) = (1, &["rdma-no-device"]);

const fn both(state: &'static str, expected: (u8, &'static [&'static str])) -> Expected {
    Expected {
        state,
        anybody: expected,
        decode: expected,
    }
}

const fn none(state: &'static str) -> Expected {
    Expected {
        state,
        anybody: NOTHING,
        decode: NO_DEVICE,
    }
}

const EXPECTED: &[Expected] = &[
    none("bare-first"),
    none("bare-again"),
    none("core"),
    both("one", SOFTWARE),
    both("up", SOFTWARE),
    both("two", SOFTWARE),
    both("pair", SOFTWARE),
    both("pair-peer", SOFTWARE),
    both("pair-exclusive", SOFTWARE),
    both("pair-exclusive-peer", SOFTWARE),
    // Its list of transports has none for GPU memory.
    both(
        "engine",
        (0, &["soft-roce", "ucx-tls-no-gpu-memory-transport"]),
    ),
    both("down", (1, &["ib-port-disabled", "soft-roce"])),
    both(
        "uverbs-hidden",
        (1, &["dev-infiniband-missing", "soft-roce"]),
    ),
    both(
        "not-openable",
        (
            1,
            &["ipc-lock-nonroot-inert", "soft-roce", "uverbs-permission"],
        ),
    ),
    // The guest's limit is 8 MiB.
    both("user", (1, &["ipc-lock-nonroot-inert", "soft-roce"])),
    both(
        "memlock-user",
        (1, &["ipc-lock-nonroot-inert", "soft-roce"]),
    ),
    // Root has IPC_LOCK, and so no limit.
    both("memlock-root", SOFTWARE),
    both(
        "memlock-root-without-ipc-lock",
        (1, &["memlock-low", "soft-roce"]),
    ),
    // A tree of files, behind which no device can be opened.
    both("infiniband", (1, &["dev-infiniband-missing"])),
];

/// The program on the machine itself says what its script's output gives here.
#[test]
fn the_program_says_the_same() {
    let Some(lab) = lab() else { return };
    let one = lab.join("one");
    let text = fs::read_to_string(one.join("node.json")).unwrap();
    let there: model::report_v1::ReportV1 = serde_json::from_str(&text).unwrap();
    let here = judged(&lab, "one", None);
    assert_eq!(there.verdict, here.verdict);
    // Tools that ran in between have loaded modules, so that more is known by then.
    let told: BTreeSet<&str> = there
        .checks
        .iter()
        .filter(|c| matches!(c.status, Status::Fail | Status::Warn))
        .filter_map(|c| c.cause.as_deref())
        .collect();
    assert_eq!(told, causes(&here), "{text}");
    assert_eq!(fs::read_to_string(one.join("node.code")).unwrap(), "0\n");
    assert_eq!(fs::read_to_string(one.join("node.stderr")).unwrap(), "");
}

#[test]
fn every_state_is_judged_right() {
    let Some(lab) = lab() else { return };
    let mut wrong = Vec::new();
    let mut states: BTreeSet<String> = fs::read_dir(&lab)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    for expected in EXPECTED {
        assert!(states.remove(expected.state), "no state {}", expected.state);
        for (role, (code, named)) in [
            (None, expected.anybody),
            (Some(Role::Decode), expected.decode),
        ] {
            let report = judged(&lab, expected.state, role);
            let got = (exit_of(&report, FailOn::Fail).code(), causes(&report));
            if got != (code, named.iter().copied().collect()) {
                wrong.push(format!(
                    "{} {role:?}: {got:?}, expected {code} {named:?}",
                    expected.state
                ));
            }
        }
    }
    for state in &states {
        for role in [None, Some(Role::Decode)] {
            let report = judged(&lab, state, role);
            println!(
                "{state} {role:?}: {} {:?} {}",
                exit_of(&report, FailOn::Fail).code(),
                causes(&report),
                report.verdict
            );
        }
    }
    assert!(
        states.is_empty(),
        "states without an expectation: {states:?}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
