//! Judges saved logs of one or both sides of KV transfers: which transport carried the payload, and by what evidence.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::observation::{Merge as _, NotRead, Observation};
use model::verdict::readiness_of;
use model::{CheckResult, Grade, Readiness, Reason, Report, Role, Status, Subject};

use crate::check::Run;
use crate::finding::{Finding, Findings};
use crate::judge_node::{coverage, folded, inputs, run_checks};
use crate::nixl::PAYLOAD;
use crate::nixl::messages::NO_EVIDENCE;
use crate::nixl::payload_transport::{LANES, of_peers};
use crate::nixl::sides::{LogFile, Side, TARGET, sides, stem};
use crate::nixl::two_sides::{OF_ONE_SIDE, explains_refusal};
use crate::nixl::words::{UNKNOWN, next, verdict};
use crate::node_view::NodeFacts;
use crate::registry::CHECKS;

/// What `nixl --from` judges.
#[derive(Debug, Clone, Default)]
pub struct NixlFacts {
    /// What each file shows, in the order given.
    pub files: Vec<LogFile>,
    /// What the process is for, where somebody says so.
    pub role: Option<Role>,
}

/// Judges saved logs; `scope` is what was asked for, as given.
pub fn judge_nixl(facts: &NixlFacts, scope: Vec<String>) -> Report {
    let mut sides = sides(&facts.files);
    let mut results = of_both(&sides);
    results.extend(targets(&mut sides));
    results.extend(of_each(&sides, facts.role));
    let order = |r: &CheckResult| CHECKS.iter().position(|c| *c.name == *r.name);
    results.sort_by_key(order);
    let mut results = folded(results);
    let known = results
        .iter()
        .any(|r| r.name == PAYLOAD && r.status != Status::Skipped);
    evidence(&mut results, known);
    let whole = whole(facts);
    let mut coverage = coverage(&whole, &results);
    let of_inputs = of_inputs(&whole, &sides);
    let lost = of_inputs
        .iter()
        .filter(|r| r.reason == Some(Reason::Unreadable))
        .count();
    coverage.inputs_not_read = u32::try_from(lost).unwrap_or(u32::MAX);
    let broken_input = of_inputs.iter().any(|r| r.required);
    results.extend(of_inputs);
    let readiness = match readiness_of(&results, true, false) {
        // A log has one kind of evidence, never two.
        Readiness::Trusted => Readiness::Unproven,
        other => other,
    };
    let verdict = verdict(readiness, known, &results);
    let next = next(readiness, known, &whole.observation, &sides, &results);
    Report {
        command: "nixl",
        scope,
        deployments: Vec::new(),
        results,
        transfers: Vec::new(),
        observed: None,
        coverage,
        readiness,
        verdict,
        next,
        missing_path: false,
        broken_input,
        nothing_to_check: false,
        unreachable: false,
    }
}

/// What only both ends of a transfer together tell, of a prefill and a decode worker.
pub fn judge_ends(prefill: &Observation, decode: &Observation) -> Vec<CheckResult> {
    let side = |role: Role, seen: &Observation| Side {
        role: Some(role.as_str()),
        files: [role.as_str().to_owned()].into(),
        seen: seen.clone(),
        ..Side::default()
    };
    of_both(&[side(Role::Prefill, prefill), side(Role::Decode, decode)])
}

/// All files as one picture.
fn whole(facts: &NixlFacts) -> NodeFacts {
    let mut observation = Observation::default();
    for file in &facts.files {
        observation.merge(file.seen.clone());
    }
    NodeFacts {
        observation,
        role: facts.role,
        saved: true,
        ..NodeFacts::default()
    }
}

/// What only both sides together tell.
fn of_both(sides: &[Side]) -> Vec<CheckResult> {
    let mut findings = Findings::of_place();
    if sides.len() > 1 {
        for check in CHECKS {
            if let Run::Sides(run) = check.run {
                run(sides, &mut findings);
            }
        }
    }
    findings.into_results()
}

/// A side that starts no transfers has tables too, of how it would write. Where the other side's tables are here they
/// say nothing about the payload, and are left out.
fn targets(sides: &mut [Side]) -> Vec<CheckResult> {
    let starters = sides
        .iter()
        .filter(|side| side.starts_transfers() && of_peers(&side.seen.log).next().is_some())
        .count();
    let mut told = Vec::new();
    let only_targets = sides.iter().all(|side| side.starts == Some(TARGET));
    if starters == sides.len() || (starters == 0 && !only_targets) {
        return told;
    }
    for side in sides.iter_mut().filter(|side| !side.starts_transfers()) {
        let Some(first) = of_peers(&side.seen.log).next().map(|t| t.origin.clone()) else {
            continue;
        };
        let mut finding = Finding::skipped(
            PAYLOAD,
            Reason::NotApplicable,
            format!(
                "{}: its protocol table says how it would write; the other side starts the transfers, and its log tells",
                side.name()
            ),
        )
        .read_at(&[first], "protocol table");
        if starters == 0 {
            finding = finding.required();
        }
        let mut findings = Findings::of_place();
        findings.push(finding);
        told.extend(findings.into_results());
        side.seen.log.lanes.clear();
        side.seen.log.tables.clear();
    }
    told
}

/// The checks of one place, over each side. What all sides say is told once.
fn of_each(sides: &[Side], role: Option<Role>) -> Vec<CheckResult> {
    let mut each: Vec<Vec<CheckResult>> = sides
        .iter()
        .map(|side| {
            let facts = NodeFacts {
                observation: side.seen.clone(),
                role,
                saved: true,
                ..NodeFacts::default()
            };
            run_checks(&facts).into_iter().filter(belongs).collect()
        })
        .collect();
    let failed: Vec<bool> = each
        .iter()
        .map(|results| {
            results
                .iter()
                .any(|r| r.status == Status::Fail && r.cause != Some(OF_ONE_SIDE))
        })
        .collect();
    for (at, results) in each.iter_mut().enumerate() {
        let Some(told) = explains_refusal(sides, at, &failed) else {
            continue;
        };
        if told {
            results.retain(|r| r.cause != Some(OF_ONE_SIDE));
            continue;
        }
        for result in results.iter_mut().filter(|r| r.cause == Some(OF_ONE_SIDE)) {
            result.status = Status::Skipped;
            result.reason = Some(Reason::NotApplicable);
            result.cause = None;
            result.fix = None;
            "a connection was refused after the peer had failed: the peer's own log tells why"
                .clone_into(&mut result.detail);
        }
    }
    if sides.len() < 2 {
        return each.into_iter().flatten().collect();
    }
    together(sides, each)
}

/// Logs tell of NIXL. Of the machine they show faults, and no more than faults is told of it.
pub(crate) fn belongs(result: &CheckResult) -> bool {
    result.name.starts_with("nixl/")
        || result.collective
        || matches!(result.status, Status::Warn | Status::Fail)
}

/// Each result with the side that it is about; equal ones once.
fn together(sides: &[Side], each: Vec<Vec<CheckResult>>) -> Vec<CheckResult> {
    type Key = (Cow<'static, str>, Status, Option<&'static str>, String);
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept: Vec<(CheckResult, Vec<usize>)> = Vec::new();
    for (side, results) in each.into_iter().enumerate() {
        for result in results {
            let key: Key = (
                result.name.clone(),
                result.status,
                result.cause,
                result.detail.clone(),
            );
            let key = format!("{key:?}");
            match index.get(&key).and_then(|at| kept.get_mut(*at)) {
                Some((held, of)) => {
                    if !of.contains(&side) {
                        of.push(side);
                    }
                    held.sources.extend(result.sources.into_iter().take(1));
                }
                None => {
                    index.insert(key, kept.len());
                    kept.push((result, vec![side]));
                }
            }
        }
    }
    kept.into_iter()
        .map(|(mut result, of)| {
            let who = match of.as_slice() {
                all if all.len() == sides.len() && all.len() == 2 => "both sides".to_owned(),
                all if all.len() == sides.len() => "all sides".to_owned(),
                some => some
                    .iter()
                    .filter_map(|n| sides.get(*n))
                    .map(Side::name)
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            result.detail = format!("{who}: {}", result.detail);
            result
        })
        .collect()
}

/// The verdict needs to know what carried the payload. A fault that was seen stands for itself: what is missing then
/// is told and decides nothing.
fn evidence(results: &mut Vec<CheckResult>, known: bool) {
    if known {
        // What one side does not tell, the other one's table does.
        results.retain(|r| r.cause != Some(NO_EVIDENCE.id));
        for result in results.iter_mut().filter(|r| r.cause == Some(LANES.id)) {
            result.required = false;
        }
    }
    if results
        .iter()
        .any(|r| !r.collective && r.status == Status::Fail)
    {
        // It does not matter any more.
        results.retain(|r| r.cause != Some(NO_EVIDENCE.id));
    }
    let fault = results
        .iter()
        .any(|r| !r.collective && matches!(r.status, Status::Warn | Status::Fail));
    if fault {
        for result in results.iter_mut().filter(|r| r.name.starts_with("nixl/")) {
            result.required = false;
        }
        return;
    }
    if !known && !results.iter().any(|r| r.required) {
        results.push(result(
            PAYLOAD,
            Reason::NotVisible,
            format!("{UNKNOWN}; UCX_PROTO_INFO=y prints it"),
            Some(NO_EVIDENCE.fix.to_owned()),
            true,
        ));
    }
}

/// Files that gave nothing, and which file is which side.
fn of_inputs(whole: &NodeFacts, sides: &[Side]) -> Vec<CheckResult> {
    let mut results = inputs(whole);
    let seen = &whole.observation;
    let read: Vec<&str> = seen.sections.iter().map(|s| s.from.file.as_str()).collect();
    for input in &seen.unrecognised {
        // A process that prints nothing to one of its two outputs, or a traceback there, is normal.
        let harmless = match input.why {
            NotRead::Empty | NotRead::Blank => !read.is_empty(),
            NotRead::Unknown => read
                .iter()
                .any(|file| *file != input.file && stem(file) == stem(&input.file)),
            NotRead::Binary | NotRead::TooLarge => false,
        };
        if harmless {
            for result in results
                .iter_mut()
                .filter(|r| r.subject.file.as_deref() == Some(input.file.as_str()))
            {
                result.required = false;
                result.reason = Some(Reason::NotApplicable);
                result.fix = None;
            }
        }
    }
    if sides.len() > 1 {
        let words: Vec<String> = sides
            .iter()
            .map(|side| {
                let files: Vec<&str> = side.files.iter().map(String::as_str).collect();
                let (name, files) = (side.name(), files.join(", "));
                if name == files {
                    name
                } else {
                    format!("{name} ({files})")
                }
            })
            .collect();
        results.push(result(
            "input",
            Reason::NotApplicable,
            format!(
                "these logs are of {} sides: {}",
                sides.len(),
                words.join("; ")
            ),
            None,
            false,
        ));
    }
    results
}

fn result(
    name: &'static str,
    reason: Reason,
    detail: String,
    fix: Option<String>,
    required: bool,
) -> CheckResult {
    CheckResult {
        name: Cow::Borrowed(name),
        status: Status::Skipped,
        detail,
        cause: None,
        fix,
        reason: Some(reason),
        note: None,
        grade: Grade::Assumed,
        subject: Subject::default(),
        sources: Vec::new(),
        collective: false,
        required,
        deployment: None,
    }
}
