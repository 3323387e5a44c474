//! Judges what moved between workers while their engines ran, together with what was seen in them.

use model::verdict::readiness_of;
use model::{Readiness, Report, Role, Subject};

use crate::nixl::observed_traffic::{ObservedFacts, judged};
use crate::registry::CHECKS;

/// Adds what was observed to a report about the workers. It never makes one trusted: counters are one kind of evidence.
pub fn judge_observed(mut report: Report, facts: ObservedFacts) -> Report {
    let deployment = (report.deployments.len() == 1).then_some(0);
    let subject = Subject {
        deployment: deployment
            .and_then(|at| report.deployments.get(at))
            .map(|d| d.name.clone()),
        roles: if facts.pods.len() > 1 {
            vec![Role::Prefill, Role::Decode]
        } else {
            Vec::new()
        },
        pods: facts.pods.clone(),
        ..Subject::default()
    };
    let mut own = judged(&facts, &subject);
    for result in &mut own {
        result.deployment = deployment;
    }
    report.results.extend(own);
    report.results.sort_by_key(|r| {
        let order = CHECKS.iter().position(|c| *c.name == *r.name);
        (r.deployment.unwrap_or(usize::MAX), order.unwrap_or(0))
    });
    let words = facts.traffic.words.clone();
    report.observed = Some(facts.traffic);
    if report.unreachable || report.nothing_to_check {
        return report;
    }
    let before = report.readiness;
    report.readiness = match readiness_of(&report.results, true, false) {
        Readiness::Trusted => Readiness::Unproven,
        other => other,
    };
    report.verdict = match report.readiness {
        // What was wrong before is what to look at first.
        now if now == before => format!("{}; observed: {words}", report.verdict),
        Readiness::Inconclusive => format!("what carries KV is not known: {words}"),
        _ => format!("look first at: {words}"),
    };
    if let Some(summary) = deployment.and_then(|at| report.deployments.get_mut(at)) {
        summary.readiness = report.readiness;
        summary.verdict.clone_from(&report.verdict);
    }
    report
}
