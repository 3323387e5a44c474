//! Rules about an agent in the engine's place: both sides of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use checks::{Beside, NoTrial, NodeFacts, TrialSeen, judge_nixl_here};
use model::observation::nixl::{OfferedTransport, Scrape, Trial, TriedBackend};
use model::observation::process::{MappedLibrary, Process};
use model::observation::{Fact, Origin, Provenance, Tool};
use model::{CheckResult, Observation, Readiness, Report, Role, Status};

const UCP: &str = "/s/nixl_cu13.libs/libucp-1a2b3c4d.so.0.0.0";

fn origin() -> Origin {
    Origin::whole(&Arc::new(Provenance {
        file: "/proc/7/maps".to_owned(),
        tool: Tool::Proc,
        section: 0,
        place: None,
        command: None,
    }))
}

fn library(library: &str, path: &str) -> MappedLibrary {
    MappedLibrary {
        library: library.to_owned(),
        path: path.to_owned(),
        deleted: false,
    }
}

/// Causes and notes that are shown here.
pub(crate) const SHOWN: [&str; 16] = [
    "nixl-no-engine-process",
    "nixl-not-loaded",
    "nixl-two-copies-loaded",
    "ucx-two-copies-loaded",
    "nixl-plugin-of-another-copy",
    "nixl-library-replaced",
    "nixl-backend-not-made",
    "nixl-backend-not-tried",
    "nixl-plugin-list-is-of-files",
    "nixl-ucx-offers-no-rdma",
    "nixl-ucx-rdma-switched-off",
    "nixl-ucx-offers-no-gpu-memory",
    "nixl-no-rdma-device-open",
    "nixl-software-queue-pairs",
    "nixl-transfers-failed",
    "nixl-kv-expired",
];

/// An engine with NIXL.
fn engine() -> NodeFacts {
    let libraries = vec![
        library("libnixl", "/s/.nixl_cu13.mesonpy.libs/libnixl.so"),
        library(
            "libplugin_UCX",
            "/s/.nixl_cu13.mesonpy.libs/plugins/libplugin_UCX.so",
        ),
        library("libucp", UCP),
    ];
    let mut observation = Observation::default();
    observation.process.processes.insert(
        7,
        Box::new(Process {
            libraries: Fact::seen(libraries, origin()),
            ..Process::default()
        }),
    );
    observation.process.looked = Fact::seen(true, origin());
    NodeFacts {
        observation,
        ..NodeFacts::default()
    }
}

fn transport(name: &str, enabled: bool, devices: &[(&str, bool)]) -> OfferedTransport {
    OfferedTransport {
        name: name.to_owned(),
        enabled,
        devices: devices
            .iter()
            .map(|(device, on)| ((*device).to_owned(), *on))
            .collect(),
        ..OfferedTransport::default()
    }
}

fn trial(offered: Vec<OfferedTransport>) -> Trial {
    Trial {
        process: 7,
        backends: vec![TriedBackend {
            name: "UCX".to_owned(),
            error: None,
        }],
        offered: Some(offered),
        libraries: vec![library("libucp", UCP)],
        ..Trial::default()
    }
}

fn judged(mut facts: NodeFacts, trial: Trial) -> Report {
    facts.nixl = Some(Box::new(Beside {
        log: None,
        trial: Some(Ok(TrialSeen {
            trial,
            printed: Observation::default(),
        })),
    }));
    judge_nixl_here(&facts, Vec::new())
}

fn of<'r>(report: &'r Report, name: &str) -> Vec<&'r CheckResult> {
    report.results.iter().filter(|r| r.name == name).collect()
}

fn with_device(name: &str, mut facts: NodeFacts) -> NodeFacts {
    let rdma = &mut facts.observation.rdma;
    rdma.devices.insert(name.to_owned(), Box::default());
    facts
}

#[test]
fn rdma_that_is_offered_is_told_and_proves_nothing() {
    let offered = vec![
        transport("rc_mlx5", true, &[("mlx5_0:1", true), ("mlx5_1:1", false)]),
        transport("tcp", true, &[("eth0", true)]),
    ];
    let report = judged(engine(), trial(offered));
    let found = of(&report, "nixl/transports");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].status, Status::Ok);
    assert!(found[0].detail.contains("rc_mlx5 on mlx5_0:1"));
    assert!(!found[0].detail.contains("mlx5_1"));
    assert_eq!(report.readiness, Readiness::Unproven);
    assert!(!report.transfer_validated());
}

#[test]
fn software_rdma_is_named_as_such() {
    let offered = vec![transport("rc_verbs", true, &[("rxe0:1", true)])];
    let report = judged(engine(), trial(offered));
    let found = of(&report, "nixl/transports");
    assert_eq!(found[0].status, Status::Warn);
    assert!(found[0].detail.contains("software RDMA"));
}

#[test]
fn only_tcp_is_a_fault_where_a_device_is_and_a_gap_where_kv_moves() {
    let tcp = || vec![transport("tcp", true, &[("eth0", true)])];
    let cause = Some("nixl-ucx-offers-no-rdma");
    let report = judged(with_device("mlx5_0", engine()), trial(tcp()));
    let found = of(&report, "nixl/transports");
    assert_eq!((found[0].status, found[0].cause), (Status::Fail, cause));
    // A device of software is no loss.
    let report = judged(with_device("rxe0", engine()), trial(tcp()));
    assert_eq!(of(&report, "nixl/transports")[0].status, Status::Warn);
    let worker = NodeFacts {
        role: Some(Role::Decode),
        ..engine()
    };
    let report = judged(worker, trial(tcp()));
    let found = of(&report, "nixl/transports");
    assert_eq!((found[0].status, found[0].cause), (Status::Warn, cause));
    // Nothing says that KV moves here.
    let report = judged(engine(), trial(tcp()));
    let found = of(&report, "nixl/transports");
    assert_eq!((found[0].status, found[0].cause), (Status::Skipped, None));
    // Another backend carries KV.
    let mut facts = with_device("mlx5_0", engine());
    let process = facts.observation.process.processes.get_mut(&7).unwrap();
    let mut libraries = process.libraries.value().unwrap().clone();
    libraries.push(library(
        "libplugin_LIBFABRIC",
        "/s/.nixl_cu13.mesonpy.libs/plugins/libplugin_LIBFABRIC.so",
    ));
    process.libraries = Fact::seen(libraries, origin());
    let report = judged(facts, trial(tcp()));
    assert_eq!(of(&report, "nixl/transports")[0].status, Status::Skipped);
}

#[test]
fn rdma_that_settings_switch_off_is_a_fault() {
    for offered in [
        transport("rc_mlx5", false, &[("mlx5_0:1", true)]),
        transport("rc_mlx5", true, &[("mlx5_0:1", false)]),
    ] {
        let tcp = transport("tcp", true, &[("eth0", true)]);
        let report = judged(engine(), trial(vec![offered, tcp]));
        let found = of(&report, "nixl/transports");
        assert_eq!(found[0].status, Status::Fail);
        assert_eq!(found[0].cause, Some("nixl-ucx-rdma-switched-off"));
    }
}

#[test]
fn another_ucx_than_the_engine_s_says_nothing_of_it() {
    let tcp = vec![transport("tcp", true, &[("eth0", true)])];
    let mut other = trial(tcp);
    other.libraries = vec![library("libucp", "/usr/lib/libucp.so.0")];
    let report = judged(with_device("mlx5_0", engine()), other);
    let found = of(&report, "nixl/transports");
    assert_eq!(found[0].status, Status::Skipped);
    assert!(found[0].detail.contains("/usr/lib/libucp.so.0"));
    // No list is not an empty one.
    let mut silent = trial(Vec::new());
    silent.offered = None;
    let report = judged(with_device("mlx5_0", engine()), silent);
    assert_eq!(of(&report, "nixl/transports")[0].status, Status::Skipped);
}

#[test]
fn a_backend_that_cannot_be_made_blocks_unless_the_engine_has_it() {
    let refused = |name: &str| {
        let mut trial = trial(vec![transport("rc_mlx5", true, &[("mlx5_0:1", true)])]);
        trial.backends.push(TriedBackend {
            name: name.to_owned(),
            error: Some("nixlNotFoundError: NIXL_ERR_NOT_FOUND".to_owned()),
        });
        trial
    };
    let report = judged(engine(), refused("LIBFABRIC"));
    let found = of(&report, "nixl/backends");
    assert_eq!(found[1].status, Status::Fail);
    assert_eq!(found[1].cause, Some("nixl-backend-not-made"));
    let report = judged(engine(), refused("UCX"));
    assert_eq!(of(&report, "nixl/backends")[1].status, Status::Warn);
    let report = judged(engine(), trial(Vec::new()));
    assert_eq!(of(&report, "nixl/backends")[0].status, Status::Ok);
}

#[test]
fn no_agent_is_said_and_is_no_fault() {
    for why in [
        NoTrial::NotAKvWorker("a frontend".to_owned()),
        NoTrial::NoEngine("none".to_owned()),
        NoTrial::CouldNotRun("python3: not found".to_owned()),
    ] {
        let mut facts = engine();
        facts.nixl = Some(Box::new(Beside {
            log: None,
            trial: Some(Err(why)),
        }));
        let report = judge_nixl_here(&facts, Vec::new());
        let found = of(&report, "nixl/backends");
        assert_eq!(found[0].status, Status::Skipped);
        assert_eq!(found[0].cause, Some("nixl-backend-not-tried"));
        assert_eq!(report.readiness, Readiness::Unproven);
    }
}

fn scraped(values: &[(&str, f64)]) -> Vec<CheckResult> {
    let mut trial = trial(Vec::new());
    trial.metrics.push(Scrape {
        port: 8000,
        named_by: "--port".to_owned(),
        error: None,
        values: values
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect::<BTreeMap<_, _>>(),
    });
    let report = judged(engine(), trial);
    of(&report, "nixl/metrics").into_iter().cloned().collect()
}

#[test]
fn metrics_tell_use_and_failures() {
    let used = scraped(&[
        ("vllm:nixl_bytes_transferred_sum", 5e9),
        ("vllm:nixl_xfer_time_seconds_count", 40.0),
        ("vllm:nixl_num_failed_transfers_total", 0.0),
        ("vllm:nixl_num_kv_expired_reqs_total", 0.0),
    ]);
    assert_eq!(used.len(), 1);
    assert_eq!(used[0].status, Status::Ok);
    assert!(used[0].detail.contains("40 transfers, 5000.0 MB"));
    let idle = scraped(&[("agent_tx_bytes_total", 0.0), ("agent_rx_bytes_total", 0.0)]);
    assert_eq!(idle.len(), 1);
    assert_eq!(idle[0].status, Status::Skipped);
    let failed = scraped(&[
        ("agent_rx_bytes_total", 5e6),
        ("agent_errors_total", 3.0),
        ("vllm:nixl_num_kv_expired_reqs_total", 2.0),
    ]);
    let causes: Vec<_> = failed.iter().filter_map(|r| r.cause).collect();
    assert_eq!(causes, ["nixl-transfers-failed", "nixl-kv-expired"]);
    let other = scraped(&[]);
    assert_eq!(other[0].status, Status::Skipped);
    assert!(other[0].detail.contains("none about KV transfers"));
}

/// The only process of the engine.
fn process(facts: &mut NodeFacts) -> &mut Process {
    facts.observation.process.processes.get_mut(&7).unwrap()
}

/// The same engine with other libraries.
fn with_libraries(change: impl FnOnce(&mut Vec<MappedLibrary>)) -> NodeFacts {
    let mut facts = engine();
    let process = process(&mut facts);
    let mut libraries = process.libraries.value().unwrap().clone();
    change(&mut libraries);
    process.libraries = Fact::seen(libraries, origin());
    facts
}

/// Causes of a check's findings, and its notes.
fn told(facts: NodeFacts, name: &str) -> (Vec<&'static str>, String) {
    let report = judged(facts, trial(Vec::new()));
    let found = of(&report, name);
    let notes: Vec<&str> = found.iter().filter_map(|r| r.note.as_deref()).collect();
    (
        found.iter().filter_map(|r| r.cause).collect(),
        notes.join("; "),
    )
}

#[test]
fn libraries_of_one_copy_are_well_and_mixed_ones_are_not() {
    let name = "nixl/libraries";
    assert_eq!(told(engine(), name), (Vec::new(), String::new()));
    let (causes, _) = told(
        with_libraries(|all| all.push(library("libnixl", "/opt/nvda_nixl/lib64/libnixl.so"))),
        name,
    );
    assert_eq!(causes, ["nixl-two-copies-loaded"]);
    let (causes, _) = told(
        with_libraries(|all| all.push(library("libucp", "/opt/hpcx/ucx/lib/libucp.so.0"))),
        name,
    );
    assert_eq!(causes, ["ucx-two-copies-loaded"]);
    // A second libibverbs is usual.
    let (causes, _) = told(
        with_libraries(|all| all.push(library("libibverbs", "/usr/lib/libibverbs.so.1"))),
        name,
    );
    assert!(causes.is_empty());
    let moved = |all: &mut Vec<MappedLibrary>| all[1].path = "/x/plugins/libplugin_UCX.so".into();
    let (causes, _) = told(with_libraries(moved), name);
    assert_eq!(causes, ["nixl-plugin-of-another-copy"]);
    let (causes, notes) = told(with_libraries(|all| all[0].deleted = true), name);
    assert!(
        causes.is_empty() && notes.contains("keeps the old one"),
        "{notes}"
    );
    let (causes, _) = told(with_libraries(Vec::clear), name);
    assert_eq!(causes, ["nixl-not-loaded"]);
    let mut nobody = engine();
    nobody.observation.process.processes.clear();
    let report = judged(nobody, trial(Vec::new()));
    assert_eq!(of(&report, name)[0].cause, Some("nixl-no-engine-process"));
    assert_eq!(report.readiness, Readiness::Inconclusive);
}

#[test]
fn a_list_of_plugins_is_told_as_one_of_files() {
    let mut listed = trial(Vec::new());
    listed.listed = vec!["GDS".to_owned(), "UCX".to_owned()];
    let report = judged(engine(), listed);
    let note = of(&report, "nixl/backends")[0].note.clone().unwrap();
    assert!(
        note.contains("GDS, UCX") && note.contains("of files"),
        "{note}"
    );
    let report = judged(engine(), trial(Vec::new()));
    assert_eq!(of(&report, "nixl/backends")[0].note, None);
}

#[test]
fn a_gpu_without_a_transport_for_its_memory_is_a_gap() {
    let offered = |name: &str| {
        trial(vec![
            transport("rc_mlx5", true, &[("mlx5_0:1", true)]),
            transport(name, true, &[("cuda", true)]),
        ])
    };
    let cause = "nixl-ucx-offers-no-gpu-memory";
    let has = |facts: NodeFacts, trial: Trial| {
        let report = judged(facts, trial);
        report.results.iter().any(|r| r.cause == Some(cause))
    };
    let with_gpu = || {
        let mut facts = engine();
        let gpu = model::observation::gpu::Gpu::default();
        facts.observation.gpu.gpus.add(gpu);
        facts
    };
    assert!(has(with_gpu(), offered("tcp")));
    assert!(!has(with_gpu(), offered("cuda_copy")));
    assert!(!has(with_gpu(), offered("rocm_copy")));
    assert!(!has(engine(), offered("tcp")));
}

#[test]
fn what_is_in_use_is_evidence_for_as_much_as_it_shows() {
    let name = "nixl/in-use";
    let with = |change: &dyn Fn(&mut Process)| {
        let mut facts = engine();
        let node = model::observation::rdma::DevNode {
            exists: Fact::seen(true, origin()),
            ..model::observation::rdma::DevNode::default()
        };
        facts
            .observation
            .rdma
            .nodes
            .insert("uverbs0".to_owned(), node);
        change(process(&mut facts));
        judged(facts, trial(Vec::new()))
    };
    let sockets = |p: &mut Process| p.tcp_connections = Fact::seen(2, origin());
    let report = with(&sockets);
    assert_eq!(of(&report, name)[0].cause, Some("nixl-no-rdma-device-open"));
    // Files that cannot be read say nothing.
    let report = with(&|_| ());
    assert_eq!(of(&report, name)[0].status, Status::Skipped);
    let report = with(&|p| {
        sockets(p);
        p.open_devices = Fact::seen(vec!["/dev/infiniband/uverbs0".to_owned()], origin());
    });
    assert_eq!(of(&report, name)[0].status, Status::Skipped);
    for (device, software) in [("mlx5_0", false), ("rxe0", true)] {
        let report = with(&|p| {
            sockets(p);
            p.queue_pairs
                .insert(device.to_owned(), Fact::seen(4, origin()));
        });
        let found = of(&report, name)[0];
        assert_eq!(found.status, Status::Ok);
        let note = found.note.clone().unwrap();
        assert_eq!(note.contains("no faster than TCP"), software, "{note}");
    }
}
