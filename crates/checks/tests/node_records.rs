//! What `node` says of a machine that it reads itself: records of the collecting script, written for these tests.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

use std::fmt::Write as _;

use checks::{NodeFacts, judge_node};
use model::{CheckResult, Readiness, Reason, Report, Role, Status};
use probe::stream::Stream;

/// A whole stream of these records, in order, with the stages that every run passes.
fn stream(records: &[(&str, &str, &str)]) -> Stream {
    let mut all = vec![("begin", "1", "")];
    all.extend_from_slice(records);
    let mut text = String::new();
    for (n, (kind, key, value)) in (1..).zip(&all) {
        writeln!(text, "%{n}\t{kind}\t{key}\t{value}\t%").unwrap();
    }
    let n = all.len();
    writeln!(text, "%{}\tend\t{n}\t\t%", n + 1).unwrap();
    let stream = Stream::parse(text.as_bytes());
    assert!(stream.is_complete(), "{text}");
    stream
}

fn judge(records: &[(&str, &str, &str)], role: Option<Role>) -> Report {
    let stream = stream(records);
    let facts = NodeFacts {
        observation: probe::observe::observation(&stream),
        unanswered: probe::observe::tools_without_output(&stream),
        role,
        ..NodeFacts::default()
    };
    judge_node("node", &facts, Vec::new())
}

fn of<'r>(report: &'r Report, check: &str) -> Vec<&'r CheckResult> {
    report.results.iter().filter(|r| r.name == check).collect()
}

const PORT: &[(&str, &str, &str)] = &[
    ("list", "rdma", "/sys/class/infiniband"),
    ("stage", "rdma:mlx5_0", ""),
    ("list", "rdma", "/sys/class/infiniband/mlx5_0"),
    (
        "file",
        "/sys/class/infiniband/mlx5_0/ports/1/link_layer",
        "InfiniBand",
    ),
    (
        "file",
        "/sys/class/infiniband/mlx5_0/ports/1/state",
        "4: ACTIVE",
    ),
    (
        "file",
        "/sys/class/infiniband/mlx5_0/ports/1/phys_state",
        "5: LinkUp",
    ),
    (
        "file",
        "/sys/class/infiniband/mlx5_0/ports/1/rate",
        "400 Gb/sec (4X NDR)",
    ),
];

const ENGINE: &[(&str, &str, &str)] = &[
    ("stage", "engine", ""),
    ("proc", "7/comm", "python3"),
    ("list", "maps", "/proc/7/maps"),
    ("list", "engine", "/proc/7"),
    ("list", "arguments", "/proc/7/cmdline"),
    ("proc", "7/program", "vllm"),
    ("arg", "7/--kv-transfer-config", "{}"),
];

const AFTER: &[(&str, &str, &str)] =
    &[("stage", "own-environment", ""), ("stage", "providers", "")];

fn with(
    parts: &[&[(&'static str, &'static str, &'static str)]],
) -> Vec<(&'static str, &'static str, &'static str)> {
    parts.concat()
}

#[test]
fn an_engine_whose_environment_is_closed_has_no_verdict() {
    for (word, reason) in [
        ("denied", Reason::NoPermission),
        ("no tr", Reason::NoTool),
        ("it holds no variables", Reason::NoTool),
    ] {
        let report = judge(
            &with(&[ENGINE, &[("none", "/proc/7/environ", word)], AFTER, PORT]),
            None,
        );
        assert_eq!(report.readiness, Readiness::Inconclusive, "{word}");
        let told = of(&report, "node/collection");
        let [one] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert!(one.required && one.status == Status::Skipped, "{one:?}");
        assert_eq!(one.reason, Some(reason));
        assert!(
            one.detail
                .contains("the environment of vllm (process 7) cannot be read"),
            "{one:?}"
        );
    }
    // Readable: nothing is said.
    let open = [
        ("list", "environment", "/proc/7/environ"),
        ("env", "7/UCX_TLS", "rc,cuda_copy"),
    ];
    let report = judge(&with(&[ENGINE, &open, AFTER, PORT]), None);
    assert!(of(&report, "node/collection").is_empty());
    assert_ne!(report.readiness, Readiness::Inconclusive, "{report:?}");
    // Workers that are closed in the same way are told once.
    let second = [
        ("list", "engine", "/proc/8"),
        ("list", "arguments", "/proc/8/cmdline"),
        ("list", "maps", "/proc/8/maps"),
        ("none", "/proc/8/environ", "denied"),
    ];
    let first = [("none", "/proc/7/environ", "denied")];
    let report = judge(&with(&[ENGINE, &first, &second, AFTER, PORT]), None);
    assert_eq!(of(&report, "node/collection").len(), 1);
}

#[test]
fn tools_that_did_not_answer_are_named() {
    let tools = [
        ("stage", "tool:nvidia-smi-q", "10"),
        ("exit", "tool:nvidia-smi-q", "timeout"),
        ("none", "tool:nvidia-smi-topo", "no time left"),
        ("none", "tool:ibv_devinfo", "absent"),
        ("none", "tool:fi_info", "would load rdma_ucm"),
        ("stage", "tool:ucx_info-d", "5"),
        ("tool", "tool:ucx_info-d", "#"),
        ("cut", "tool:ucx_info-d", "output"),
        ("exit", "tool:ucx_info-d", "cut"),
    ];
    let report = judge(&with(&[PORT, &tools]), None);
    let told: Vec<_> = of(&report, "node/collection")
        .iter()
        .map(|r| {
            (
                r.status,
                r.reason,
                r.detail.split(':').next().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (
                Status::Skipped,
                Some(Reason::TimedOut),
                "nvidia-smi -q".to_owned()
            ),
            (
                Status::Skipped,
                Some(Reason::TimedOut),
                "nvidia-smi topo -m".to_owned()
            ),
            (
                Status::Skipped,
                Some(Reason::Unreadable),
                "ucx_info -d".to_owned()
            ),
            (
                Status::Warn,
                None,
                "nvidia-smi -q gave no answer".to_owned()
            ),
        ]
    );
    assert_eq!(report.readiness, Readiness::Degraded);
    // One that had no time is no fault of the driver's.
    let report = judge(&with(&[PORT, &tools[2..3]]), None);
    assert!(
        report.results.iter().all(|r| r.cause.is_none()),
        "{report:?}"
    );
}

#[test]
fn why_a_node_cannot_be_opened_decides() {
    for (error, cause, fix) in [
        ("Permission denied", "uverbs-permission", "0666"),
        (
            "Operation not permitted",
            "uverbs-permission",
            "device plugin",
        ),
        ("No such device or address", "uverbs-open-fails", "driver"),
    ] {
        let failed = format!("failed: {error}");
        let nodes = [
            ("stage", "device-nodes", ""),
            ("node", "/dev/infiniband/rdma_cm", "opened"),
            ("node", "/dev/infiniband/uverbs0", failed.as_str()),
        ];
        let report = judge(&[&nodes, PORT].concat(), None);
        let told = of(&report, "node/device-access");
        let [one] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!((one.status, one.cause), (Status::Fail, Some(cause)));
        assert!(one.detail.contains(error), "{one:?}");
        assert!(one.fix.as_deref().unwrap().contains(fix), "{one:?}");
        let place = &one.sources[0].place;
        assert_eq!(&*place.file, "/dev/infiniband/uverbs0");
    }
    let opened = [
        ("stage", "device-nodes", ""),
        ("node", "/dev/infiniband/uverbs0", "opened"),
        ("node", "/dev/infiniband/uverbs1", "failed: No such device"),
    ];
    let report = judge(&[&opened, PORT].concat(), None);
    assert_eq!(of(&report, "node/device-access")[0].status, Status::Ok);
}

/// 64 kB for a user without capabilities, as in a shell on any machine.
const SHELL: &[(&str, &str, &str)] = &[
    (
        "file",
        "/proc/self/limits",
        "Max locked memory         65536                65536                bytes",
    ),
    ("file", "/proc/self/status", "Uid: 1000 1000 1000 1000"),
    ("file", "/proc/self/status", "CapEff: 0000000000000000"),
    ("stage", "engine", ""),
];
const NO_RDMA: &[(&str, &str, &str)] = &[
    ("stage", "own-environment", ""),
    ("stage", "rdma", ""),
    ("none", "/sys/class/infiniband", "absent"),
];

#[test]
fn a_limit_counts_only_where_memory_is_locked() {
    let memory = |parts: &[&[(&'static str, &'static str, &'static str)]], role| {
        let report = judge(&parts.concat(), role);
        let told = of(&report, "node/locked-memory");
        let [one] = told.as_slice() else {
            panic!("{told:?}")
        };
        (one.status, one.detail.clone())
    };
    let (status, words) = memory(&[SHELL, NO_RDMA], None);
    assert_eq!(status, Status::Skipped, "{words}");
    assert!(words.contains("not the worker's"), "{words}");
    let (status, _) = memory(&[SHELL, NO_RDMA], Some(Role::Prefill));
    assert_eq!(status, Status::Fail);
    let (status, words) = memory(&[SHELL, PORT], None);
    assert_eq!(status, Status::Fail);
    assert!(words.contains("not the worker's"), "{words}");
    let (status, _) = memory(&[SHELL, PORT], Some(Role::Aggregated));
    assert_eq!(status, Status::Skipped);
    // The engine's own limit counts, and says so.
    let own = [(
        "file",
        "/proc/7/limits",
        "Max locked memory         65536                65536                bytes",
    )];
    let (_, words) = memory(&[SHELL, ENGINE, &own, NO_RDMA], None);
    assert!(words.starts_with("vllm may lock 64 kB"), "{words}");
}
