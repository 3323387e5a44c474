//! What a measured transfer proves, and what it never proves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use checks::{ObservedFacts, TransferFacts, Tried, judge_observed, judge_transfer};
use model::transfer::{Carrier, Evidence, Transfer, TransferEnd, TransferLeg, TransferStop};
use model::{
    CheckResult, Coverage, EngineSeen, Found, Grade, Medium, MemoryKind, Moved, ObservedTraffic,
    Operation, Readiness, Report, Role, Status, Subject,
};

const MIB: u64 = 1 << 20;

/// What was seen in both workers: nothing wrong.
fn looked(results: Vec<CheckResult>) -> Report {
    Report {
        command: "nixl",
        scope: Vec::new(),
        deployments: Vec::new(),
        results,
        transfers: Vec::new(),
        observed: None,
        coverage: Coverage {
            pairs_required: 1,
            ..Coverage::default()
        },
        readiness: Readiness::Unproven,
        verdict: "no gap seen".to_owned(),
        next: Vec::new(),
        missing_path: false,
        broken_input: false,
        nothing_to_check: false,
        unreachable: false,
    }
}

fn leg(operation: Operation, memory: MemoryKind, bytes: u64) -> TransferLeg {
    TransferLeg {
        operation,
        initiator: match operation {
            Operation::Read => "decode",
            Operation::Write => "prefill",
        }
        .to_owned(),
        memory,
        bytes,
        transfers: 4,
        verified: true,
        carrier: Carrier::Rdma,
        over: vec!["mlx5_0:1".to_owned()],
        words: "RDMA on mlx5_0:1".to_owned(),
        emulated: false,
        grade: Some(Grade::Proven),
        evidence: ["protocol-table", "byte-counters"]
            .map(|kind| Evidence {
                kind: kind.to_owned(),
                finding: "agrees".to_owned(),
                text: String::new(),
            })
            .into(),
        bytes_per_second: Some(40_000_000_000),
        link_bytes_per_second: Some(50_000_000_000),
        plausible: (bytes >= 16 * MIB).then_some(true),
        of_engine: true,
        notes: Vec::new(),
    }
}

/// READs of GPU memory over RDMA, at the link's rate.
fn good() -> Transfer {
    Transfer {
        prefill: TransferEnd::default(),
        decode: TransferEnd::default(),
        tool: None,
        plan: String::new(),
        planned_bytes: 0,
        legs: [MIB, 16 * MIB, 64 * MIB]
            .map(|bytes| leg(Operation::Read, MemoryKind::Gpu, bytes))
            .into(),
        stop: None,
    }
}

fn with(change: impl Fn(&mut TransferLeg)) -> Transfer {
    let mut transfer = good();
    transfer.legs.iter_mut().for_each(change);
    transfer
}

fn facts(transfer: Transfer) -> TransferFacts {
    TransferFacts {
        tried: Tried::Measured(Box::new(transfer)),
        messages: Vec::new(),
        pods: ["prefill-0".to_owned(), "decode-0".to_owned()],
        memory: Some(MemoryKind::Gpu),
        apart: Some(true),
    }
}

fn judged(transfer: Transfer) -> Report {
    judge_transfer(looked(Vec::new()), facts(transfer))
}

fn over(carrier: Carrier, words: &str) -> Transfer {
    with(|leg| {
        leg.carrier = carrier;
        words.clone_into(&mut leg.words);
        leg.plausible = None;
    })
}

fn causes(report: &Report) -> Vec<&str> {
    report.results.iter().filter_map(|r| r.cause).collect()
}

fn fault(name: &'static str, cause: &'static str, pod: &str) -> CheckResult {
    CheckResult {
        name: name.into(),
        status: Status::Fail,
        detail: format!("what {cause} is"),
        cause: Some(cause),
        fix: Some(format!("how to fix {cause}")),
        reason: None,
        note: None,
        grade: Grade::Observed,
        subject: Subject {
            pod: Some(pod.to_owned()),
            ..Subject::default()
        },
        sources: Vec::new(),
        collective: false,
        required: false,
        deployment: None,
    }
}

#[test]
fn proven_rdma_of_gpu_memory_between_nodes_is_trusted() {
    let report = judged(good());
    assert_eq!(
        report.readiness,
        Readiness::Trusted,
        "{:#?}",
        report.results
    );
    assert!(report.transfer_validated());
    assert_eq!(
        (report.coverage.pairs_tested, report.coverage.pairs_proven),
        (1, 1)
    );
    assert!(
        report
            .verdict
            .contains("READ of GPU memory over RDMA on mlx5_0:1 (proven)")
    );
    assert_eq!(report.transfers.len(), 1);
    assert!(report.next.is_empty());
}

#[test]
fn what_is_not_a_proof_stays_unproven() {
    let unproven = |facts: TransferFacts, says: &str| {
        let report = judge_transfer(looked(Vec::new()), facts);
        assert_eq!(
            report.readiness,
            Readiness::Unproven,
            "{says}: {:#?}",
            report.results
        );
        assert!(report.verdict.contains(says), "{says}: {}", report.verdict);
        assert_eq!(report.coverage.pairs_proven, 0);
    };
    // Host memory, where the engines use GPU memory, or where nobody knows what they use.
    let mut host = with(|leg| {
        leg.memory = MemoryKind::Host;
        leg.of_engine = false;
    });
    host.decode.gpu_error = Some("no CUDA driver".to_owned());
    unproven(
        facts(host.clone()),
        "GPU memory, which the engines use, was not measured",
    );
    host.legs.iter_mut().for_each(|leg| leg.of_engine = true);
    let nobody = TransferFacts {
        memory: None,
        ..facts(host.clone())
    };
    unproven(
        nobody,
        "GPU memory, which the engines use, was not measured",
    );
    // One node, or unknown nodes.
    for (apart, says) in [(Some(false), "one node"), (None, "is not known")] {
        let same = TransferFacts {
            apart,
            ..facts(good())
        };
        unproven(same, says);
    }
    // One kind of evidence, a link of unknown rate, software RDMA.
    unproven(facts(with(|l| l.grade = Some(Grade::Observed))), "observed");
    unproven(
        facts(with(|l| l.plausible = None)),
        "the rate of the link is not known",
    );
    unproven(
        facts(over(Carrier::SoftwareRdma, "software RDMA on rxe0:1")),
        "software RDMA on rxe0:1",
    );
    // Host memory proves where the engines' buffers are there.
    let engines = TransferFacts {
        memory: Some(MemoryKind::Host),
        ..facts(host)
    };
    let report = judge_transfer(looked(Vec::new()), engines);
    assert_eq!(
        report.readiness,
        Readiness::Trusted,
        "{:#?}",
        report.results
    );
}

#[test]
fn tcp_fails_where_the_engines_go_that_way() {
    let tcp = || over(Carrier::Tcp, "TCP on eth0");
    let report = judged(tcp());
    assert_eq!(report.readiness, Readiness::Blocked);
    assert_eq!(causes(&report), ["nixl-transfer-not-rdma"]);
    assert!(
        report
            .verdict
            .contains("nothing that was seen in either worker explains it")
    );
    // What explains it is named, with both ends where it holds for both.
    let base = looked(vec![
        fault("node/device-access", "uverbs-missing", "prefill-0"),
        fault("node/device-access", "uverbs-missing", "decode-0"),
        fault("node/gdrcopy", "gdrcopy-missing", "decode-0"),
    ]);
    let report = judge_transfer(base, facts(tcp()));
    let path = report
        .results
        .iter()
        .find(|r| r.name == "nixl/transfer-path")
        .unwrap();
    assert!(
        path.detail
            .contains("prefill-0, decode-0: what uverbs-missing is (uverbs-missing)")
    );
    assert!(!path.detail.contains("gdrcopy"));
    assert_eq!(path.fix.as_deref(), Some("how to fix uverbs-missing"));
    assert_eq!(
        report.next[0].command,
        "check-interconnect explain nixl-transfer-not-rdma"
    );
    // Another operation or memory than the engines' is told only.
    let mut both = good();
    both.legs
        .extend(tcp().legs.into_iter().map(|leg| TransferLeg {
            operation: Operation::Write,
            of_engine: false,
            ..leg
        }));
    let report = judged(both);
    assert_eq!(
        report.readiness,
        Readiness::Trusted,
        "{:#?}",
        report.results
    );
    // Small blocks only.
    let mut small = good();
    small.legs.insert(
        0,
        TransferLeg {
            bytes: 64 << 10,
            plausible: None,
            ..tcp().legs.remove(0)
        },
    );
    assert!(!causes(&judged(small)).contains(&"nixl-transfer-not-rdma"));
    // Host memory went over TCP, and nobody knows of GPU memory.
    let mut host = tcp();
    for leg in &mut host.legs {
        leg.memory = MemoryKind::Host;
        leg.of_engine = false;
    }
    assert_eq!(judged(host).readiness, Readiness::Degraded);
}

#[test]
fn emulation_and_unknown_carriers_never_pass() {
    let report = judged(with(|leg| leg.emulated = true));
    assert_eq!(report.readiness, Readiness::Blocked);
    assert_eq!(causes(&report), ["nixl-software-emulation"]);
    let mut unknown = over(Carrier::Unknown, "unknown");
    for leg in &mut unknown.legs {
        leg.grade = None;
        leg.notes = vec!["the kinds of evidence contradict each other".to_owned()];
    }
    let report = judged(unknown);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    assert!(
        report.verdict.contains("contradict each other"),
        "{}",
        report.verdict
    );
    assert_eq!(
        judged(over(Carrier::Mixed, "a mixture")).readiness,
        Readiness::Degraded
    );
    let report = judged(over(Carrier::SharedMemory, "shared memory (cma)"));
    assert_eq!(causes(&report), ["nixl-shm-not-representative"]);
}

#[test]
fn rates_are_judged_from_16_mib_on_only() {
    let slow = with(|leg| {
        leg.bytes_per_second = Some(10_000_000_000);
        leg.plausible = (leg.bytes >= 16 * MIB).then_some(false);
    });
    let report = judged(slow);
    assert_eq!(report.readiness, Readiness::Degraded);
    assert_eq!(causes(&report), ["nixl-transfer-slow"]);
    // Of an operation that the engines do not use it is told only.
    let mut other = good();
    other.legs.push(TransferLeg {
        plausible: Some(false),
        of_engine: false,
        ..leg(Operation::Write, MemoryKind::Gpu, 16 * MIB)
    });
    assert_eq!(judged(other).readiness, Readiness::Trusted);
    // GPU to GPU has no link to compare with.
    let report = judged(over(Carrier::GpuIpc, "GPU to GPU (cuda_ipc)"));
    assert_eq!(report.readiness, Readiness::Trusted);
}

#[test]
fn content_that_did_not_arrive_is_a_failure() {
    let report = judged(with(|leg| leg.verified = false));
    assert_eq!(report.readiness, Readiness::Blocked);
    assert!(causes(&report).contains(&"nixl-transfer-content-differs"));
}

#[test]
fn only_what_nixl_refused_is_a_failure() {
    let stopped = |by_nixl, step: &str, why: &str| {
        let mut transfer = good();
        transfer.legs.clear();
        transfer.stop = Some(TransferStop {
            side: "decode".to_owned(),
            step: Some(step.to_owned()),
            why: why.to_owned(),
            by_nixl,
        });
        facts(transfer)
    };
    let mut refused = stopped(true, "connect", "NIXL_ERR_BACKEND");
    refused.messages = vec![(
        Role::Decode,
        fault("nixl/ucx-connections", "networkpolicy-blocks", ""),
    )];
    let report = judge_transfer(looked(Vec::new()), refused);
    assert_eq!(report.readiness, Readiness::Blocked);
    let came = report
        .results
        .iter()
        .find(|r| r.name == "nixl/transfer")
        .unwrap();
    assert_eq!(came.cause, Some("nixl-transfer-refused"));
    assert_eq!(came.fix.as_deref(), Some("how to fix networkpolicy-blocks"));
    let told = report
        .results
        .iter()
        .find(|r| r.cause == Some("networkpolicy-blocks"))
        .unwrap();
    assert_eq!(told.subject.pod.as_deref(), Some("decode-0"));
    for (step, why, reason) in [
        ("import", "No module named 'nixl'", model::Reason::NoTool),
        (
            "READ host host 65536",
            "its time was over",
            model::Reason::TimedOut,
        ),
        ("backend", "its stream has ended", model::Reason::NotVisible),
    ] {
        let report = judge_transfer(looked(Vec::new()), stopped(false, step, why));
        assert_eq!(report.readiness, Readiness::Inconclusive, "{why}");
        let came = report
            .results
            .iter()
            .find(|r| r.name == "nixl/transfer")
            .unwrap();
        assert_eq!(came.reason, Some(reason), "{why}");
    }
    // Nothing was tried, and a plan is no fault.
    let planned = TransferFacts {
        tried: Tried::Planned("532 MiB".to_owned()),
        ..facts(good())
    };
    let report = judge_transfer(looked(Vec::new()), planned);
    assert_eq!(report.readiness, Readiness::Unproven);
    assert_eq!(report.coverage.pairs_tested, 0);
    let refused = TransferFacts {
        tried: Tried::NotAWorker("no".to_owned()),
        ..facts(good())
    };
    let report = judge_transfer(looked(Vec::new()), refused);
    assert_eq!(report.readiness, Readiness::Inconclusive);
}

#[test]
fn a_fault_that_was_seen_beats_a_good_transfer() {
    let base = looked(vec![fault("node/locked-memory", "memlock-low", "decode-0")]);
    let report = judge_transfer(base, facts(good()));
    assert_eq!(report.readiness, Readiness::Blocked);
    assert!(!report.transfer_validated());
}

fn moved(pod: &str, name: &str, medium: Medium) -> Moved {
    Moved {
        pod: pod.to_owned(),
        name: name.to_owned(),
        medium,
        sent: pod == "prefill-0",
        bytes: 100 * MIB,
        packets: None,
    }
}

fn traffic(found: Found, over: Option<Medium>, port: &str, kv: bool) -> ObservedTraffic {
    ObservedTraffic {
        found,
        over,
        kv,
        words: "what the counters say".to_owned(),
        milliseconds: Some(10_000),
        moved: vec![
            moved("prefill-0", port, Medium::RdmaPort),
            moved("prefill-0", "eth0", Medium::Interface),
            moved("decode-0", port, Medium::RdmaPort),
            moved("decode-0", "eth0", Medium::Interface),
        ],
        engines: vec![EngineSeen {
            pod: "decode-0".to_owned(),
            process: 7,
            queue_pairs: [("mlx5_0".to_owned(), 4)].into(),
            ..EngineSeen::default()
        }],
    }
}

fn observed(traffic: ObservedTraffic, results: Vec<CheckResult>) -> Report {
    let facts = ObservedFacts {
        traffic,
        pods: vec!["prefill-0".to_owned(), "decode-0".to_owned()],
    };
    judge_observed(looked(results), facts)
}

#[test]
fn counters_alone_never_prove() {
    let between = |over, kv| traffic(Found::Between, Some(over), "mlx5_0:1", kv);
    for kv in [false, true] {
        let report = observed(between(Medium::RdmaPort, kv), Vec::new());
        assert_eq!(report.readiness, Readiness::Unproven);
        let told = &report.results[0];
        assert_eq!((told.status, told.grade), (Status::Ok, Grade::Observed));
        assert_eq!(told.subject.device.as_deref(), Some("mlx5_0:1"));
        let note = told.note.as_deref().unwrap();
        assert!(note.contains("4 queue pairs") && !note.contains("software RDMA"));
        assert!(report.verdict.contains("observed: what the counters say"));
        assert_eq!(report.observed.unwrap().kv, kv);
    }
    // Software RDMA is called so.
    let soft = traffic(Found::Between, Some(Medium::RdmaPort), "rxe0:1", true);
    let report = observed(soft, Vec::new());
    assert_eq!(report.readiness, Readiness::Unproven);
    let note = report.results[0].note.as_deref().unwrap();
    assert!(note.contains("software RDMA"), "{note}");
    // Bytes on an interface are a gap where they were KV, and tell nothing where nobody knows.
    let report = observed(between(Medium::Interface, true), Vec::new());
    assert_eq!(report.readiness, Readiness::Degraded);
    assert_eq!(causes(&report), ["nixl-observed-over-interface"]);
    let report = observed(between(Medium::Interface, false), Vec::new());
    assert_eq!(report.readiness, Readiness::Inconclusive);
    assert_eq!(causes(&report), ["nixl-observed-not-attributed"]);
    assert_eq!(report.results[0].subject.device.as_deref(), Some("eth0"));
    for found in [Found::Nothing, Found::Other] {
        let report = observed(traffic(found, None, "mlx5_0:1", false), Vec::new());
        assert_eq!(report.readiness, Readiness::Inconclusive);
        assert_eq!(causes(&report), ["nixl-observed-no-traffic"]);
    }
    for found in [Found::OneEnd, Found::Unknown] {
        let report = observed(traffic(found, None, "mlx5_0:1", false), Vec::new());
        assert_eq!(report.readiness, Readiness::Inconclusive);
        assert_eq!(causes(&report), Vec::<&str>::new());
    }
    // A fault that was seen stays what to fix first.
    let report = observed(
        between(Medium::RdmaPort, true),
        vec![fault("node/rdma-ports", "rdma-port-down", "decode-0")],
    );
    assert_eq!(report.readiness, Readiness::Blocked);
    assert_eq!(report.coverage.pairs_proven, 0);
}

/// The warning of a look about a device of software RDMA.
fn soft(name: &'static str, device: Option<&str>) -> CheckResult {
    let mut warning = fault(name, "soft-roce", "decode-0");
    warning.status = Status::Warn;
    warning.subject.device = device.map(str::to_owned);
    warning
}

#[test]
fn a_measured_transfer_over_software_rdma_is_unproven() {
    let over_rxe = |change: fn(&mut TransferLeg)| {
        let mut transfer = over(Carrier::SoftwareRdma, "software RDMA on rxe0:1");
        for leg in &mut transfer.legs {
            leg.over = vec!["rxe0:1".to_owned()];
            change(leg);
        }
        facts(transfer)
    };
    let warned = || {
        looked(vec![
            soft("node/rdma-devices", Some("rxe0")),
            soft("node/ucx-transports", None),
        ])
    };
    let report = judge_transfer(warned(), over_rxe(|_| ()));
    assert_eq!(
        report.readiness,
        Readiness::Unproven,
        "{:#?}",
        report.results
    );
    assert_eq!(causes(&report), Vec::<&str>::new());
    assert!(!report.transfer_validated());
    assert_eq!(report.coverage.pairs_proven, 0);
    assert!(
        report.verdict.contains("software RDMA on rxe0:1"),
        "{}",
        report.verdict
    );
    let told = &report.results;
    assert!(
        told.iter()
            .filter(|r| r.name.starts_with("node/"))
            .all(|r| r.note.as_deref().unwrap().contains("never trusted"))
    );
    // Another device, a weaker grade, another way of the engines: the warning stays.
    let other = looked(vec![soft("node/rdma-devices", Some("siw0"))]);
    let report = judge_transfer(other, over_rxe(|_| ()));
    assert_eq!(report.readiness, Readiness::Degraded);
    assert_eq!(causes(&report), ["soft-roce"]);
    let report = judge_transfer(warned(), over_rxe(|l| l.grade = Some(Grade::Observed)));
    assert_eq!(report.readiness, Readiness::Degraded);
    let report = judge_transfer(warned(), over_rxe(|l| l.of_engine = false));
    assert_eq!(report.readiness, Readiness::Degraded);
    let report = judge_transfer(warned(), facts(over(Carrier::Tcp, "TCP on eth0")));
    assert_eq!(report.readiness, Readiness::Blocked);
    assert!(causes(&report).contains(&"soft-roce"));
}
