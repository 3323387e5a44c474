//! Judges a transfer that was measured between two workers, together with what was seen in them.

use model::transfer::{Carrier, MemoryKind, Operation, Transfer, TransferLeg};
use model::verdict::readiness_of;
use model::{CheckResult, Grade, NextStep, Readiness, Report, Role, Status, Subject, Worker};

use crate::check::Run;
use crate::finding::Findings;
use crate::nixl::PAYLOAD;
use crate::nixl::transfer::{self, TransferView, Tried};
use crate::nixl::transfer_path;
use crate::nixl::two_sides;
use crate::node::rdma_devices::SOFTWARE;
use crate::registry::CHECKS;

/// What `nixl --transfer` judges beside the two workers.
#[derive(Debug, Clone)]
pub struct TransferFacts {
    /// What came of it.
    pub tried: Tried,
    /// What the checks of messages say about what NIXL and UCX printed at each end.
    pub messages: Vec<(Role, CheckResult)>,
    /// The pods of the prefill and the decode worker.
    pub pods: [String; 2],
    /// The memory that the engines transfer, where it is known.
    pub memory: Option<MemoryKind>,
    /// Whether the two run on different nodes, where it is known.
    pub apart: Option<bool>,
}

/// How a worker's engine transfers, by its connector: decode READs (vLLM's NixlConnector) or prefill WRITEs (SGLang, and
/// vLLM's NixlPushConnector). None where nothing tells.
pub fn operation_of(worker: &Worker) -> Option<Operation> {
    let connector = worker
        .literal("kv_connector")
        .or_else(|| worker.literal("--kv-transfer-config"))
        .unwrap_or_default();
    if connector.contains("NixlPushConnector") {
        Some(Operation::Write)
    } else if connector.contains("NixlConnector") || connector.contains("NixlPullConnector") {
        Some(Operation::Read)
    } else if worker.engine == model::Engine::Sglang {
        Some(Operation::Write)
    } else {
        None
    }
}

/// The memory that a worker's KV cache is transferred from: of the host where it is told so, else of its GPU.
pub fn memory_of(worker: &Worker) -> Option<MemoryKind> {
    let told = ["kv_buffer_device", "--kv-transfer-config"]
        .iter()
        .filter_map(|name| worker.literal(name))
        .find(|text| text.contains("kv_buffer_device") || !text.contains('{'));
    let cpu = told.is_some_and(|text| {
        let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        plain == "cpu" || plain.contains(r#""kv_buffer_device":"cpu""#)
    });
    if cpu {
        Some(MemoryKind::Host)
    } else if worker.accelerators.is_some_and(|n| n > 0) {
        Some(MemoryKind::Gpu)
    } else {
        None
    }
}

/// Adds what a transfer shows to a report about its two workers.
pub fn judge_transfer(mut report: Report, facts: TransferFacts) -> Report {
    let TransferFacts {
        tried,
        messages,
        pods,
        memory,
        apart,
    } = facts;
    let deployment = (report.deployments.len() == 1).then_some(0);
    let subject = Subject {
        deployment: deployment
            .and_then(|at| report.deployments.get(at))
            .map(|d| d.name.clone()),
        roles: vec![Role::Prefill, Role::Decode],
        pods: pods.to_vec(),
        ..Subject::default()
    };
    let of_messages = of_messages(messages, &pods, &subject, &report.results);
    let mut explains: Vec<CheckResult> = of_messages.clone();
    explains.extend(
        report
            .results
            .iter()
            .filter(|r| !r.collective && matches!(r.status, Status::Fail | Status::Warn))
            .cloned(),
    );
    let mut findings = Findings::of_place();
    let view = TransferView {
        tried: &tried,
        explains: &explains,
        subject: &subject,
    };
    for check in CHECKS {
        if let Run::Transfer(run) = check.run {
            run(&view, &mut findings);
        }
    }
    let mut own = findings.into_results();
    own.extend(of_messages);
    for result in &mut own {
        result.deployment = deployment;
    }
    let at = |r: &CheckResult| {
        let order = CHECKS.iter().position(|c| *c.name == *r.name);
        (r.deployment.unwrap_or(usize::MAX), order.unwrap_or(0))
    };
    report.results.extend(own);
    report.results.sort_by_key(at);
    if let Tried::Measured(transfer) = &tried {
        software_was_measured(transfer, &mut report.results);
    }
    let proof = match &tried {
        Tried::Measured(transfer) => {
            report.coverage.pairs_tested = u32::from(!transfer.legs.is_empty());
            report.coverage.pairs_required = report.coverage.pairs_required.max(1);
            proof(transfer, memory, apart)
        }
        _ => Err("nothing was measured".to_owned()),
    };
    report.coverage.pairs_proven = u32::from(proof.is_ok());
    if report.unreachable || report.nothing_to_check {
        return report;
    }
    report.readiness = readiness_of(&report.results, true, proof.is_ok());
    report.verdict = verdict(&report, &tried, proof.err().as_deref());
    if let Some(summary) = deployment.and_then(|at| report.deployments.get_mut(at)) {
        summary.readiness = report.readiness;
        summary.verdict.clone_from(&report.verdict);
    }
    next(&mut report);
    if let Tried::Measured(transfer) = tried {
        report.transfers.push(*transfer);
    }
    report
}

/// A device of software RDMA is a gap as long as nobody knows what goes over it. Where the transfer of the engines was
/// proven to go over it, the measurement says so itself, and it is no proof: the device is told, and warns no more.
pub(crate) fn software_was_measured(transfer: &Transfer, results: &mut [CheckResult]) {
    let legs: Vec<&TransferLeg> = transfer.legs.iter().filter(|leg| leg.of_engine).collect();
    let proven = |leg: &TransferLeg| {
        leg.verified
            && leg.carrier == Carrier::SoftwareRdma
            && !leg.emulated
            && leg.grade == Some(Grade::Proven)
    };
    if transfer.stop.is_some() || legs.is_empty() || !legs.iter().all(|leg| proven(leg)) {
        return;
    }
    let device = |port: &str| port.split(':').next().unwrap_or(port).to_owned();
    let over: Vec<String> = legs
        .iter()
        .flat_map(|leg| &leg.over)
        .map(|p| device(p))
        .collect();
    for result in results
        .iter_mut()
        .filter(|r| r.cause == Some(SOFTWARE.id) && r.status == Status::Warn)
    {
        let own = result.subject.device.as_deref();
        if own.is_none_or(|name| over.contains(&device(name))) {
            result.status = Status::Ok;
            result.cause = None;
            result.fix = None;
            result.note = Some(
                "the measured transfer went over it: software RDMA, which is never trusted"
                    .to_owned(),
            );
        }
    }
}

/// What NIXL and UCX printed, as results about the pods. What carried the payload is judged from the measurement, and
/// what a look into the pod has told is told once.
pub(crate) fn of_messages(
    messages: Vec<(Role, CheckResult)>,
    pods: &[String; 2],
    subject: &Subject,
    told: &[CheckResult],
) -> Vec<CheckResult> {
    messages
        .into_iter()
        .filter(|(_, r)| {
            r.name != PAYLOAD && matches!(r.status, Status::Fail | Status::Warn) && !r.collective
        })
        .map(|(role, mut result)| {
            let [prefill, decode] = pods;
            let pod = if role == Role::Prefill {
                prefill
            } else {
                decode
            };
            if result.name == two_sides::NAME {
                result.subject.clone_from(subject);
                result.required = false;
                result.sources.clear();
                return result;
            }
            result.subject = Subject {
                deployment: subject.deployment.clone(),
                roles: vec![role],
                pod: Some(pod.clone()),
                device: result.subject.device.take(),
                ..Subject::default()
            };
            result.required = false;
            // They are of a stream, and no file has them.
            result.sources.clear();
            result
        })
        .filter(|r| {
            !told
                .iter()
                .any(|held| held.cause == r.cause && held.subject.pod == r.subject.pod)
        })
        .collect()
}

/// Whether the pair is proven in the way that its engines transfer, or why not.
pub(crate) fn proof(
    transfer: &Transfer,
    memory: Option<MemoryKind>,
    apart: Option<bool>,
) -> Result<(), String> {
    // Where nothing tells, KV is in GPU memory.
    let memory = memory.unwrap_or(MemoryKind::Gpu);
    let legs: Vec<&TransferLeg> = transfer
        .legs
        .iter()
        .filter(|leg| leg.of_engine && leg.memory == memory)
        .collect();
    if transfer.stop.is_some() {
        return Err("it was not carried out to its end".to_owned());
    }
    if legs.is_empty() {
        return Err(format!(
            "{} memory, which the engines use, was not measured",
            memory.as_str()
        ));
    }
    if let Some(leg) = legs.iter().find(|leg| !leg.counts()) {
        return Err(format!(
            "{} went over {}, {}",
            leg.operation.as_str(),
            leg.words,
            match leg.grade {
                Some(grade) => grade.as_str(),
                None => "not known for sure",
            }
        ));
    }
    let over_rdma = legs.iter().any(|leg| leg.carrier == Carrier::Rdma);
    if over_rdma && !legs.iter().any(|leg| leg.plausible == Some(true)) {
        return Err("the rate of the link is not known, so no rate could be judged".to_owned());
    }
    match apart {
        Some(true) => Ok(()),
        Some(false) => Err(
            "both workers run on one node, which says nothing about workers on other nodes"
                .to_owned(),
        ),
        None => Err("whether the two run on different nodes is not known".to_owned()),
    }
}

/// What was measured, in a few words; the worst first.
pub(crate) fn summary(transfer: &Transfer) -> String {
    let mut groups = transfer_path::groups(transfer);
    groups.sort_by_key(|group| {
        group
            .first()
            .is_none_or(|leg| leg.counts() || !leg.of_engine)
    });
    let mut words: Vec<String> = Vec::new();
    for group in groups {
        let Some(leg) = group.first() else { continue };
        let grade = leg.grade.map_or("not known for sure", Grade::as_str);
        let one = format!(
            "{} of {} memory over {} ({grade})",
            leg.operation.as_str(),
            leg.memory.as_str(),
            leg.words
        );
        if !words.contains(&one) {
            words.push(one);
        }
    }
    words.join(", ")
}

fn is_own(result: &CheckResult) -> bool {
    [transfer::NAME, transfer_path::NAME].contains(&&*result.name)
}

fn verdict(report: &Report, tried: &Tried, missing: Option<&str>) -> String {
    let measured = match tried {
        Tried::Measured(transfer) if !transfer.legs.is_empty() => summary(transfer),
        _ => String::new(),
    };
    let own = |status: Status| {
        report
            .results
            .iter()
            .find(|r| is_own(r) && r.status == status && (status != Status::Skipped || r.required))
    };
    match report.readiness {
        Readiness::Trusted => {
            format!("KV transfer is proven between these two workers: {measured}")
        }
        Readiness::Blocked => match own(Status::Fail) {
            Some(first) => format!("KV transfer cannot be trusted: {}", first.detail),
            None if measured.is_empty() => report.verdict.clone(),
            None => format!("{}; measured: {measured}", report.verdict),
        },
        Readiness::Inconclusive => match own(Status::Skipped) {
            Some(first) => format!("what carries KV is not known: {}", first.detail),
            None => report.verdict.clone(),
        },
        _ if measured.is_empty() => report.verdict.clone(),
        Readiness::Degraded => match own(Status::Warn) {
            Some(first) => format!("it can run, with gaps; look first at: {}", first.detail),
            None => format!("{}; measured: {measured}", report.verdict),
        },
        _ => format!(
            "no gap seen; measured: {measured}; no proof: {}",
            missing.unwrap_or("not all was measured")
        ),
    }
}

/// The own fault comes first.
fn next(report: &mut Report) {
    let cause = report
        .results
        .iter()
        .find(|r| is_own(r) && matches!(r.status, Status::Fail | Status::Warn))
        .and_then(|r| r.cause);
    if let Some(cause) = cause {
        let command = format!("check-interconnect explain {cause}");
        report.next.retain(|step| step.command != command);
        report.next.insert(
            0,
            NextStep {
                command,
                why: "what it means, when it is no problem, and how to fix it".to_owned(),
                read_only: true,
            },
        );
    }
    if report.readiness == Readiness::Trusted {
        report.next.clear();
    }
}
