//! What moved between two workers while their engines ran, by counters alone.
//!
//! `nixl --observe` looks at the byte counters of interfaces and RDMA ports of both ends before and after some time in
//! which real requests run, and transfers nothing. Counters tell which interface or port carried bytes from the one to the
//! other. They never tell that it was KV: requests, metrics and other pods use the same interfaces, and RDMA ports belong
//! to the whole machine. Without traffic nothing is known.

use model::{CheckResult, Grade, Reason, Subject};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::registry::CHECKS;

pub(crate) const NAME: &str = "nixl/observed-traffic";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "while requests run, bytes go from the prefill to the decode worker over RDMA ports",
    source: include_str!("observed_traffic.rs"),
    causes: &[INTERFACE, NONE],
    notes: &[],
    run: Run::Observed(run),
};

const INTERFACE: Cause = Cause {
    id: "nixl-observed-over-interface",
    what: "bytes went from the prefill to the decode worker over an interface of the network stack, and hardly any over RDMA ports",
    why: "if it was KV, it went over TCP; counters do not tell whose bytes they were",
    fix: "measure what carries KV: check-interconnect nixl --pod POD --peer POD --transfer",
    quiet_if: "RDMA ports of both ends carried more; less than 8 MiB; it did not go from the one to the other",
    source: "/proc/net/dev of both network namespaces; /sys/class/infiniband/*/ports/*",
};

const NONE: Cause = Cause {
    id: "nixl-observed-no-traffic",
    what: "nothing that can be KV went from the prefill to the decode worker in that time",
    why: "without traffic nothing tells what carries KV",
    fix: "send requests meanwhile and observe again, or measure with --transfer",
    quiet_if: "something moved between them",
    source: "/proc/net/dev of both network namespaces; /sys/class/infiniband/*/ports/*",
};

/// What counters showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Traffic {
    /// As much left the one as reached the other.
    Between {
        /// Over RDMA ports, as against interfaces of the network stack.
        rdma: bool,
        /// The interfaces or ports.
        over: Vec<String>,
    },
    /// Hardly anything moved.
    Nothing,
    /// Something moved, and not from the one to the other.
    Other,
    /// One worker only was looked at.
    OneEnd,
    /// The counters cannot be compared, or could not be read.
    Unknown,
}

/// What `nixl --observe` judges beside the workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedFacts {
    /// What counters showed.
    pub traffic: Traffic,
    /// In words, with numbers.
    pub words: String,
    /// What the engines themselves held open, where it was seen: queue pairs, connections.
    pub engines: Vec<String>,
    /// The pods.
    pub pods: Vec<String>,
}

/// What was seen, about whom.
pub(crate) struct ObservedView<'o> {
    pub(crate) facts: &'o ObservedFacts,
    pub(crate) subject: &'o Subject,
}

fn run(view: &ObservedView<'_>, findings: &mut Findings) {
    let facts = view.facts;
    let words = facts.words.clone();
    let mut finding = match &facts.traffic {
        Traffic::Between { rdma: true, .. } => Finding::ok(NAME, words).grade(Grade::Observed),
        Traffic::Between { rdma: false, .. } => {
            Finding::warn(NAME, &INTERFACE, words).grade(Grade::Observed)
        }
        Traffic::Nothing | Traffic::Other => Finding::skipped(NAME, Reason::NotVisible, words)
            .because(&NONE)
            .required(),
        Traffic::OneEnd => Finding::skipped(NAME, Reason::NotVisible, words)
            .fix("name the other worker with --peer: only both ends together tell what went between them")
            .required(),
        Traffic::Unknown => Finding::skipped(NAME, Reason::Unreadable, words).required(),
    };
    for engine in &facts.engines {
        finding = finding.note(engine.clone());
    }
    finding = finding.about(view.subject);
    if let Traffic::Between { over, .. } = &facts.traffic {
        let mut over = over.clone();
        over.sort();
        over.dedup();
        finding = finding.device(over.join(", "));
    }
    findings.push(finding);
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
