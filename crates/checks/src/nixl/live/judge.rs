//! Judges NIXL in places that run: containers of pods, or this host.

use std::borrow::Cow;
use std::collections::BTreeSet;

use model::observation::log::Severity;
use model::verdict::readiness_of;
use model::{
    CheckResult, Grade, NextStep, PodObject, Readiness, Reason, Report, Role, Status, Subject,
    Worker,
};

use super::next;
use super::view::{Beside, NixlView};
use crate::check::Run;
use crate::finding::Findings;
use crate::judge_nixl::belongs;
use crate::judge_node::{coverage, folded, inputs, run_checks};
use crate::nixl::PAYLOAD;
use crate::nixl::messages::NO_EVIDENCE;
use crate::nixl::sides::Side;
use crate::node_view::NodeFacts;
use crate::pod::access;
use crate::registry::CHECKS;

/// Rules about settings of a live engine that `node` has as well.
const SETTINGS: &str = "nixl/ucx-settings";

/// Judges this host or container.
pub fn judge_nixl_here(facts: &NodeFacts, steps: Vec<NextStep>) -> Report {
    let results = {
        let mut results = of_place(facts, None, None, facts.role);
        results.extend(inputs(facts));
        results.sort_by_key(|r| CHECKS.iter().position(|c| *c.name == *r.name));
        results
    };
    let readiness = match readiness_of(&results, true, false) {
        // What one place shows never proves what moved between two.
        Readiness::Trusted => Readiness::Unproven,
        other => other,
    };
    let first = |status| {
        results
            .iter()
            .find(|r| r.status == status && !r.collective)
            .map(|r| r.detail.clone())
            .unwrap_or_default()
    };
    let verdict = match readiness {
        Readiness::Blocked => format!(
            "KV transfer cannot be trusted here; fix first: {}",
            first(Status::Fail)
        ),
        Readiness::Degraded => format!(
            "NIXL can run here, with gaps; look first at: {}",
            first(Status::Warn)
        ),
        Readiness::Inconclusive => {
            let lacking = results
                .iter()
                .find(|r| r.status == Status::Skipped && r.required)
                .map(|r| r.detail.clone())
                .unwrap_or_default();
            format!("this machine does not show enough for a verdict; {lacking}")
        }
        _ => "no gap seen in NIXL here; what carries KV has not been measured".to_owned(),
    };
    let mut all = next::explain(readiness, &results);
    all.extend(steps);
    all.extend(next::on_host(facts));
    Report {
        command: "nixl",
        scope: Vec::new(),
        transfers: Vec::new(),
        observed: None,
        deployments: Vec::new(),
        coverage: coverage(facts, &results),
        results,
        readiness,
        verdict,
        next: all,
        missing_path: false,
        broken_input: facts.gap.is_some(),
        nothing_to_check: false,
        unreachable: false,
    }
}

/// The results of one container or host.
pub(crate) fn of_place(
    facts: &NodeFacts,
    pod: Option<&PodObject>,
    worker: Option<&Worker>,
    role: Option<Role>,
) -> Vec<CheckResult> {
    let nothing = Beside::default();
    let beside = facts.nixl.as_deref().unwrap_or(&nothing);
    let view = NixlView::of(facts, beside, pod, worker, role);
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Nixl(run) = check.run {
            run(&view, &mut findings);
        }
    }
    let mut results = findings.into_results();
    results.extend(run_checks(facts).into_iter().filter(|r| r.name == SETTINGS));
    results.extend(of_log(beside, role));
    if let Some(seen) = view.trial() {
        results.extend(of_printed(&seen.printed, role, &results));
    }
    folded(results)
}

/// What the log tells: of NIXL, and faults of the machine that stand in it.
fn of_log(beside: &Beside, role: Option<Role>) -> Vec<CheckResult> {
    let mut results = Vec::new();
    let log = match &beside.log {
        None => return results,
        Some(Err(fault)) => {
            let mut findings = Findings::of_place();
            findings.push(access::told(fault));
            for mut result in findings.into_results() {
                // The rest is judged without it.
                result.required = false;
                results.push(result);
            }
            return results;
        }
        Some(Ok(log)) => log,
    };
    let facts = NodeFacts {
        observation: log.seen.clone(),
        role,
        saved: true,
        ..NodeFacts::default()
    };
    let known = |results: &[CheckResult]| {
        results
            .iter()
            .any(|r| r.name == PAYLOAD && r.status != Status::Skipped)
    };
    results.extend(run_checks(&facts).into_iter().filter(belongs));
    if !known(&results) && !results.iter().any(|r| r.name == PAYLOAD) {
        let mut told = skipped(
            PAYLOAD,
            "the engine's log has no protocol table of UCX: what carries its payload is not shown; UCX_PROTO_INFO=y prints it",
        );
        told.cause = Some(NO_EVIDENCE.id);
        told.fix = Some(NO_EVIDENCE.fix.to_owned());
        results.retain(|r| r.cause != Some(NO_EVIDENCE.id));
        results.push(told);
    }
    if log.gap {
        results.push(skipped(
            "input",
            "the log is longer than is read: lines between its first and its last megabytes were left out",
        ));
    }
    for result in &mut results {
        // A log need not tell what carried the payload: a measured transfer does.
        result.required = false;
    }
    results
}

/// Faults that NIXL and UCX told of in the engine's place, where nothing else tells of them.
fn of_printed(
    printed: &model::Observation,
    role: Option<Role>,
    told: &[CheckResult],
) -> Vec<CheckResult> {
    let mut observation = printed.clone();
    // What UCX tells only when it is asked to tell everything is no fault: modules for hardware that is not here.
    observation
        .log
        .events
        .retain(|event| event.severity != Some(Severity::Debug));
    let facts = NodeFacts {
        observation,
        role,
        saved: true,
        ..NodeFacts::default()
    };
    let causes: BTreeSet<&str> = told.iter().filter_map(|r| r.cause).collect();
    run_checks(&facts)
        .into_iter()
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail) && !r.collective)
        .filter(|r| r.name != PAYLOAD && r.cause.is_none_or(|cause| !causes.contains(cause)))
        .map(|mut result| {
            result.detail = format!("an agent in the engine's place: {}", result.detail);
            result
        })
        .collect()
}

fn skipped(name: &'static str, detail: &str) -> CheckResult {
    CheckResult {
        name: Cow::Borrowed(name),
        status: Status::Skipped,
        detail: detail.to_owned(),
        cause: None,
        fix: None,
        reason: Some(Reason::NotVisible),
        note: None,
        grade: Grade::Assumed,
        subject: Subject::default(),
        sources: Vec::new(),
        collective: false,
        required: false,
        deployment: None,
    }
}

/// A pod's log as one end of the transfers.
pub(crate) struct End<'p> {
    pub(crate) pod: &'p str,
    pub(crate) role: Option<Role>,
    pub(crate) facts: &'p NodeFacts,
}

/// More pods than these are not held against each other one by one.
const MAX_ENDS: usize = 64;

/// What only the logs of several pods together tell.
pub(crate) fn of_ends(ends: &[End<'_>]) -> Vec<CheckResult> {
    let sides: Vec<Side> = ends
        .iter()
        .filter_map(|end| {
            let log = end.facts.nixl.as_ref()?.log.as_ref()?.as_ref().ok()?;
            let role = match end.role {
                Some(Role::Prefill) => Some("prefill"),
                Some(Role::Decode) => Some("decode"),
                _ => None,
            };
            Some(Side {
                role,
                hosts: BTreeSet::from([end.pod.to_owned()]),
                seen: log.seen.clone(),
                ..Side::default()
            })
        })
        .take(MAX_ENDS)
        .collect();
    if sides.len() < 2 {
        return Vec::new();
    }
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Sides(run) = check.run {
            run(&sides, &mut findings);
        }
    }
    findings.into_results()
}
