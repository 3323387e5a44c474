//! What moved between two workers while their engines ran, by counters alone.
//!
//! `nixl --observe` looks at the byte counters of interfaces and RDMA ports of both ends before and after some time in
//! which real requests run, and transfers nothing. Counters tell which interface or port carried bytes from the one to the
//! other, and never that it was KV: requests, metrics and other pods use the same interfaces, and RDMA ports belong to the
//! whole machine. Bytes are called KV only where the engines' own connections or queue pairs lead that way, and their
//! metrics count as much. Without traffic nothing is known.

use model::observation::rdma::has_software_name;
use model::{CheckResult, EngineSeen, Found, Grade, Medium, ObservedTraffic, Reason, Subject};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::registry::CHECKS;

pub(crate) const NAME: &str = "nixl/observed-traffic";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "while requests run, bytes go from the prefill to the decode worker over RDMA ports",
    source: include_str!("observed_traffic.rs"),
    causes: &[INTERFACE, WHOSE, NONE],
    notes: &[],
    run: Run::Observed(run),
};

const INTERFACE: Cause = Cause {
    id: "nixl-observed-over-interface",
    what: "KV went from the prefill to the decode worker over an interface of the network stack, and hardly anything over RDMA ports",
    why: "it went over TCP: the engines' own connections and metrics agree with the counters",
    fix: "look why UCX did not take RDMA: check-interconnect nixl --pod POD --peer POD --transfer names what explains it",
    quiet_if: "the engines' connections or metrics do not show that it was KV; RDMA ports of both ends carried more; less than 8 MiB; it did not go from the one to the other",
    source: "/proc/net/dev and /proc/net/tcp of both network namespaces; /sys/class/infiniband/*/ports/*; NIXL telemetry agent_rx_bytes, agent_tx_bytes; vLLM vllm:nixl_bytes_transferred",
};

const WHOSE: Cause = Cause {
    id: "nixl-observed-not-attributed",
    what: "bytes went from the prefill to the decode worker over an interface, and nothing shows that they were KV",
    why: "requests, metrics, model files and other programs use the same interface, so that it says nothing about KV",
    fix: "measure what carries KV (check-interconnect nixl --pod POD --peer POD --transfer), or let the engines count it (NIXL_TELEMETRY_ENABLE=y, NIXL_TELEMETRY_EXPORTER=prometheus) and observe again",
    quiet_if: "the engines' own connections and metrics show whose bytes they were; RDMA ports of both ends carried more",
    source: "/proc/net/dev of both network namespaces",
};

const NONE: Cause = Cause {
    id: "nixl-observed-no-traffic",
    what: "nothing that can be KV went from the prefill to the decode worker in that time",
    why: "without traffic nothing tells what carries KV",
    fix: "send requests meanwhile and observe again, or measure with --transfer",
    quiet_if: "something moved between them",
    source: "/proc/net/dev of both network namespaces; /sys/class/infiniband/*/ports/*",
};

/// What `nixl --observe` judges beside the workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedFacts {
    /// What counters and engines showed.
    pub traffic: ObservedTraffic,
    /// The pods.
    pub pods: Vec<String>,
}

/// What was seen, about whom.
pub(crate) struct ObservedView<'o> {
    pub(crate) facts: &'o ObservedFacts,
    pub(crate) subject: &'o Subject,
}

fn run(view: &ObservedView<'_>, findings: &mut Findings) {
    let traffic = &view.facts.traffic;
    let words = traffic.words.clone();
    let mut over: Vec<&str> = traffic
        .moved
        .iter()
        .filter(|one| Some(one.medium) == traffic.over)
        .map(|one| one.name.as_str())
        .collect();
    over.sort_unstable();
    over.dedup();
    let mut finding = match traffic.found {
        Found::Between if traffic.over == Some(Medium::RdmaPort) => {
            let mut finding = Finding::ok(NAME, words).grade(Grade::Observed);
            if over.iter().any(|port| has_software_name(port)) {
                finding = finding.note(
                    "software RDMA: the kernel makes it, CPUs copy, and it says nothing about a card; it is never trusted",
                );
            }
            finding
        }
        Found::Between if traffic.kv => {
            Finding::warn(NAME, &INTERFACE, words).grade(Grade::Observed)
        }
        Found::Between => Finding::skipped(NAME, Reason::NotVisible, words)
            .because(&WHOSE)
            .grade(Grade::Observed)
            .required(),
        Found::Nothing | Found::Other => Finding::skipped(NAME, Reason::NotVisible, words)
            .because(&NONE)
            .required(),
        Found::OneEnd => Finding::skipped(NAME, Reason::NotVisible, words)
            .fix("name the other worker with --peer: only both ends together tell what went between them")
            .required(),
        Found::Unknown => Finding::skipped(NAME, Reason::Unreadable, words).required(),
    };
    for engine in &traffic.engines {
        finding = finding.note(of_engine(engine));
    }
    finding = finding.about(view.subject);
    if !over.is_empty() {
        finding = finding.device(over.join(", "));
    }
    findings.push(finding);
}

/// What an engine had open, and counted.
fn of_engine(engine: &EngineSeen) -> String {
    let mut parts: Vec<String> = engine
        .queue_pairs
        .iter()
        .map(|(device, count)| format!("{count} queue pairs on {device}"))
        .collect();
    match engine.connections_to_peer {
        Some(1) => parts.push("1 TCP connection to the other engine".to_owned()),
        Some(n) => parts.push(format!("{n} TCP connections to the other engine")),
        None => {}
    }
    parts.push(if engine.rdma_devices.is_empty() {
        "no RDMA device open".to_owned()
    } else {
        format!("{} open", engine.rdma_devices.join(", "))
    });
    let counted = match (engine.kv_bytes, &engine.kv_metric) {
        (Some(bytes), Some(metric)) => {
            format!(
                ", and counted {} MiB of KV meanwhile ({metric})",
                bytes >> 20
            )
        }
        _ => String::new(),
    };
    format!(
        "the engine of {} (process {}) has {}{counted}",
        engine.pod,
        engine.process,
        parts.join(", ")
    )
}

/// The results over what was observed.
pub(crate) fn judged(facts: &ObservedFacts, subject: &Subject) -> Vec<CheckResult> {
    let mut findings = Findings::of_place();
    let view = ObservedView { facts, subject };
    for check in CHECKS {
        if let Run::Observed(run) = check.run {
            run(&view, &mut findings);
        }
    }
    findings.into_results()
}
