//! Adds what measured transfers show to a report about a deployment.

use std::collections::BTreeSet;

use model::verdict::readiness_of;
use model::{CheckResult, Readiness, Report, Role, Status, Subject};

use crate::check::Run;
use crate::finding::Findings;
use crate::judge_transfer::{of_messages, proof, software_was_measured, summary};
use crate::nixl::transfer::{TransferView, Tried};
use crate::pairs::PairTried;
use crate::registry::CHECKS;

/// Judges each pair, and which worker is a bad end.
pub(crate) fn judge_pairs(mut report: Report, tried: Vec<PairTried>) -> Report {
    if tried.is_empty() || report.unreachable || report.nothing_to_check {
        return report;
    }
    let mut own: Vec<CheckResult> = Vec::new();
    for pair in &tried {
        own.extend(of_pair(pair, &report));
    }
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Pairs(run) = check.run {
            run(&tried, &mut findings);
        }
    }
    let mut of_workers = findings.into_results();
    for result in &mut of_workers {
        let known = report
            .results
            .iter()
            .find(|r| r.subject.pod.is_some() && r.subject.pod == result.subject.pod);
        if let Some(known) = known {
            result.deployment = known.deployment;
            result
                .subject
                .deployment
                .clone_from(&known.subject.deployment);
            result.subject.workers.clone_from(&known.subject.workers);
            result.subject.node.clone_from(&known.subject.node);
        }
    }
    own.extend(of_workers);
    report.results.extend(own);
    let order = |r: &CheckResult| {
        let at = CHECKS.iter().position(|c| *c.name == *r.name);
        (r.deployment.unwrap_or(usize::MAX), at.unwrap_or(0))
    };
    report.results.sort_by_key(order);
    let mut proven: BTreeSet<&str> = BTreeSet::new();
    let mut lacking = None;
    for pair in &tried {
        if let Tried::Measured(transfer) = &pair.tried {
            software_was_measured(transfer, &mut report.results);
            report.coverage.pairs_tested = report
                .coverage
                .pairs_tested
                .saturating_add(u32::from(!transfer.legs.is_empty()));
            match proof(transfer, pair.memory, pair.apart) {
                Ok(()) => {
                    report.coverage.pairs_proven = report.coverage.pairs_proven.saturating_add(1);
                    proven.extend([pair.prefill.as_str(), pair.decode.as_str()]);
                }
                Err(why) => {
                    lacking.get_or_insert(format!("{} and {}: {why}", pair.prefill, pair.decode));
                }
            }
        }
    }
    let workers: BTreeSet<String> = report
        .results
        .iter()
        .filter(|r| r.subject.roles.iter().any(|role| role.moves_kv()))
        .flat_map(|r| r.subject.pod.iter().chain(&r.subject.pods))
        .cloned()
        .collect();
    let all = !workers.is_empty() && workers.iter().all(|name| proven.contains(name.as_str()));
    let before = report.readiness;
    report.readiness = readiness_of(&report.results, before != Readiness::NotApplicable, all);
    verdict(&mut report, &tried, proven.len(), workers.len(), lacking);
    for pair in tried {
        if let Tried::Measured(transfer) = pair.tried {
            report.transfers.push(*transfer);
        }
    }
    report
}

/// The results of one pair.
fn of_pair(pair: &PairTried, report: &Report) -> Vec<CheckResult> {
    let names = [pair.prefill.clone(), pair.decode.clone()];
    let about = |r: &&CheckResult| {
        let of =
            |name: &String| r.subject.pod.as_ref() == Some(name) || r.subject.pods.contains(name);
        names.iter().any(of)
    };
    let known = report
        .results
        .iter()
        .find(|r| r.deployment.is_some() && about(r));
    let subject = Subject {
        deployment: known.and_then(|r| r.subject.deployment.clone()),
        roles: vec![Role::Prefill, Role::Decode],
        pods: names.to_vec(),
        ..Subject::default()
    };
    let messages = pair
        .messages
        .iter()
        .map(super::pairs::Said::result)
        .collect();
    let of_messages = of_messages(messages, &names, &subject, &report.results);
    let mut explains = of_messages.clone();
    explains.extend(
        report
            .results
            .iter()
            .filter(about)
            .filter(|r| !r.collective && matches!(r.status, Status::Fail | Status::Warn))
            .cloned(),
    );
    let view = TransferView {
        tried: &pair.tried,
        explains: &explains,
        subject: &subject,
    };
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Transfer(run) = check.run {
            run(&view, &mut findings);
        }
    }
    let mut own = findings.into_results();
    own.extend(of_messages);
    for result in &mut own {
        result.deployment = known.and_then(|r| r.deployment);
    }
    own
}

fn verdict(
    report: &mut Report,
    tried: &[PairTried],
    proven: usize,
    workers: usize,
    lacking: Option<String>,
) {
    let measured: Vec<&PairTried> = tried
        .iter()
        .filter(|pair| matches!(&pair.tried, Tried::Measured(t) if !t.legs.is_empty()))
        .collect();
    if measured.is_empty() {
        return;
    }
    let ways: BTreeSet<String> = measured
        .iter()
        .filter_map(|pair| match &pair.tried {
            Tried::Measured(transfer) => Some(summary(transfer)),
            _ => None,
        })
        .collect();
    let ways: Vec<String> = ways.into_iter().take(2).collect();
    let said = format!("measured in {} pairs: {}", measured.len(), ways.join("; "));
    let bad = report
        .results
        .iter()
        .find(|r| r.name == crate::nixl::bad_end::NAME && r.status == Status::Fail);
    report.verdict = match report.readiness {
        Readiness::Trusted => {
            format!("KV transfer is proven: all {workers} workers took part; {said}")
        }
        Readiness::Blocked => match bad {
            Some(bad) => format!("KV transfer cannot be trusted; fix first: {}", bad.detail),
            None => format!("{}; {said}", report.verdict),
        },
        Readiness::Unproven => format!(
            "no gap seen; {said}; proven for {proven} of {workers} workers{}",
            lacking.map_or_else(String::new, |why| format!(": {why}"))
        ),
        _ => format!("{}; {said}", report.verdict),
    };
    if report.deployments.len() == 1
        && let Some(summary) = report.deployments.first_mut()
    {
        summary.readiness = report.readiness;
        summary.verdict.clone_from(&report.verdict);
    }
    if report.readiness == Readiness::Trusted {
        report.next.clear();
    }
}
