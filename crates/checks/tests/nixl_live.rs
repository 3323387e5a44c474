//! Rules about an agent in the engine's place: both sides of each.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::sync::Arc;

use checks::{Beside, NoTrial, NodeFacts, TrialSeen, judge_nixl_here};
use model::observation::nixl::{OfferedTransport, Scrape, Trial, TriedBackend};
use model::observation::process::{MappedLibrary, Process};
use model::observation::rdma::Device;
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
        Process {
            libraries: Fact::seen(libraries, origin()),
            ..Process::default()
        },
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
    rdma.devices.insert(name.to_owned(), Device::default());
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
