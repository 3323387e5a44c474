//! Runs the checks over what was observed in one place and says what follows.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use model::observation::{Completeness, Fact, NotRead, Observation};
use model::verdict::readiness_of;
use model::{CheckResult, Coverage, Grade, NextStep, Readiness, Reason, Report, Status, Subject};

use crate::check::Run;
use crate::finding::Findings;
use crate::node_view::NodeView;
use crate::registry::CHECKS;

pub use crate::node_view::NodeFacts;

/// Judges what was observed; `scope` is what was asked for, as given.
pub fn judge_node(command: &'static str, facts: &NodeFacts, scope: Vec<String>) -> Report {
    let machines = machines(&facts.observation);
    let mut results = Vec::new();
    if machines.is_empty() {
        results = run_checks(facts);
    }
    for (name, observation) in &machines {
        let one = NodeFacts {
            observation: (*observation).clone(),
            role: facts.role,
            saved: facts.saved,
            ..NodeFacts::default()
        };
        for mut result in run_checks(&one) {
            if !name.is_empty() {
                result.detail = format!("{name}: {}", result.detail);
            }
            results.push(result);
        }
    }
    results.sort_by_key(|r| CHECKS.iter().position(|c| *c.name == *r.name));
    let nothing_judged = !results
        .iter()
        .any(|r| !r.collective && matches!(r.status, Status::Ok | Status::Warn | Status::Fail));
    let mut of_inputs = inputs(facts);
    if !machines.is_empty() {
        let names: Vec<&str> = machines
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| !name.is_empty())
            .collect();
        let mut several = result(
            Status::Skipped,
            Some(Reason::NotApplicable),
            "",
            format!(
                "these are outputs of several machines ({}); each is judged on its own",
                listed(&names)
            ),
            None,
            false,
        );
        several.subject.file = None;
        of_inputs.push(several);
    }
    let coverage = coverage(facts, &results);
    let broken_input = of_inputs.iter().any(|r| r.required);
    results.extend(of_inputs);
    let readiness = if nothing_judged {
        Readiness::Inconclusive
    } else {
        match readiness_of(&results, true, false) {
            // What one place shows never proves what moved between two.
            Readiness::Trusted => Readiness::Unproven,
            other => other,
        }
    };
    let verdict = verdict(readiness, facts, &results);
    let next = next(readiness, facts, &results);
    Report {
        command,
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

/// The results of every check of a place.
pub(crate) fn run_checks(facts: &NodeFacts) -> Vec<CheckResult> {
    let view = NodeView::of(facts);
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Place(run) = check.run {
            run(&view, &mut findings);
        }
    }
    folded(findings.into_results())
}

/// Findings of one kind that are told one by one; a log can have thousands.
const MAX_ALIKE: usize = 64;

/// The first findings of each kind, with the number of those left out.
pub(crate) fn folded(results: Vec<CheckResult>) -> Vec<CheckResult> {
    let mut kinds = BTreeMap::new();
    let mut kept: Vec<CheckResult> = Vec::new();
    for result in results {
        let key = (
            result.name.clone(),
            result.cause,
            result.status == Status::Fail,
        );
        let (count, last) = kinds.entry(key).or_insert((0_usize, 0_usize));
        *count = count.saturating_add(1);
        if *count <= MAX_ALIKE {
            *last = kept.len();
            kept.push(result);
        }
    }
    for (count, last) in kinds.into_values() {
        let more = count.saturating_sub(MAX_ALIKE);
        if more > 0
            && let Some(result) = kept.get_mut(last)
        {
            let words = format!("{more} more like this are left out");
            result.note = Some(match result.note.take() {
                Some(before) => format!("{before}; {words}"),
                None => words,
            });
        }
    }
    kept
}

/// `a, b, c and 5 more`.
fn listed(names: &[&str]) -> String {
    const MOST: usize = 8;
    let shown: Vec<&str> = names.iter().take(MOST).copied().collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The places apart, where they cannot be one machine: a device of one name has another address or another state.
/// A container and its node show the same devices, and are judged together.
fn machines(seen: &Observation) -> Vec<(&str, &Observation)> {
    let named: Vec<&Observation> = seen
        .places
        .iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(_, observation)| observation)
        .collect();
    let apart = named.iter().enumerate().any(|(n, one)| {
        named
            .iter()
            .skip(n.saturating_add(1))
            .any(|other| contradict(one, other))
    });
    if !apart {
        return Vec::new();
    }
    seen.places
        .iter()
        .map(|(name, observation)| (name.as_str(), observation))
        .collect()
}

fn contradict(one: &Observation, other: &Observation) -> bool {
    one.rdma.devices.iter().any(|(name, device)| {
        other.rdma.devices.get(name).is_some_and(|twin| {
            differ(&device.node_guid, &twin.node_guid)
                || device.ports.iter().any(|(number, port)| {
                    twin.ports.get(number).is_some_and(|twin| {
                        differ(&port.state, &twin.state)
                            || differ(&port.port_guid, &twin.port_guid)
                            || differ(&port.lid, &twin.lid)
                    })
                })
        })
    })
}

fn differ<T: PartialEq>(one: &Fact<T>, other: &Fact<T>) -> bool {
    matches!((one.value(), other.value()), (Some(a), Some(b)) if a != b)
}

pub(crate) fn coverage(facts: &NodeFacts, results: &[CheckResult]) -> Coverage {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let seen = &facts.observation;
    let files: BTreeSet<&str> = seen.sections.iter().map(|s| s.from.file.as_str()).collect();
    Coverage {
        inputs_read: count(if facts.saved { files.len() } else { 0 }),
        inputs_not_read: count(seen.unrecognised.len()),
        workers_probed: u32::from(!facts.saved),
        facts_seen: count(
            results
                .iter()
                .filter(|r| r.status != Status::Skipped)
                .count(),
        ),
        facts_missing: count(
            results
                .iter()
                .filter(|r| r.status == Status::Skipped && r.reason != Some(Reason::NotApplicable))
                .count(),
        ),
        ..Coverage::default()
    }
}

/// Inputs that gave nothing, and outputs that are not whole.
pub(crate) fn inputs(facts: &NodeFacts) -> Vec<CheckResult> {
    let mut results = Vec::new();
    if let Some(gap) = &facts.gap {
        let mut lost = result(
            Status::Skipped,
            Some(Reason::Unreadable),
            "",
            gap.clone(),
            None,
            true,
        );
        lost.subject.file = None;
        results.push(lost);
    }
    for input in &facts.observation.unrecognised {
        let (detail, fix) = match input.why {
            NotRead::Empty => (
                "it is empty".to_owned(),
                "some tools print nothing where there is nothing to list: say which tool it was, or save its error output too",
            ),
            NotRead::Blank => (
                "it holds only white space".to_owned(),
                "save the output again",
            ),
            NotRead::Unknown => (
                if input.first_line.is_empty() {
                    "no tool or log that this program knows printed it".to_owned()
                } else {
                    format!(
                        "no tool or log that this program knows printed it (it begins with `{}`)",
                        input.first_line
                    )
                },
                "give the tool's whole output, with the line of the command if there is one",
            ),
            NotRead::Binary => (
                "it is not text".to_owned(),
                "give the text that the tool printed",
            ),
            NotRead::TooLarge => (
                "it is larger than the limit; the rest was left out".to_owned(),
                "give the first and the last part of the log",
            ),
        };
        results.push(result(
            Status::Skipped,
            Some(Reason::Unreadable),
            &input.file,
            format!("{}: {detail}", input.file),
            Some(fix.to_owned()),
            true,
        ));
    }
    for section in &facts.observation.sections {
        if let Completeness::ToolError(text) = &section.completeness
            // Errors of tools that ran are told by the checks that read them.
            && text.contains("not found")
        {
            let file = &section.from.file;
            results.push(result(
                Status::Skipped,
                Some(Reason::NoTool),
                file,
                format!("{file}:{}: {text}", section.lines.0),
                Some("run the tool on the node, or in an image that has it".to_owned()),
                false,
            ));
        }
        if let Completeness::Cut(how) = &section.completeness {
            let file = &section.from.file;
            let mut cut = result(
                Status::Skipped,
                Some(Reason::NotVisible),
                file,
                format!(
                    "{file}:{}: a part of the output is missing: {how}",
                    section.lines.0
                ),
                Some("what is cut off is unknown, not ok; save the whole output".to_owned()),
                false,
            );
            cut.subject.file = Some(file.clone());
            results.push(cut);
        }
    }
    results
}

fn result(
    status: Status,
    reason: Option<Reason>,
    file: &str,
    detail: String,
    fix: Option<String>,
    required: bool,
) -> CheckResult {
    CheckResult {
        name: Cow::Borrowed("input"),
        status,
        detail,
        cause: None,
        fix,
        reason,
        note: None,
        grade: Grade::Assumed,
        subject: Subject {
            file: Some(file.to_owned()),
            ..Subject::default()
        },
        sources: Vec::new(),
        collective: false,
        required,
        deployment: None,
    }
}

fn verdict(readiness: Readiness, facts: &NodeFacts, results: &[CheckResult]) -> String {
    let first = |status| {
        results
            .iter()
            .find(|r| r.status == status && !r.collective)
            .map(|r| r.detail.clone())
            .unwrap_or_default()
    };
    let place = if facts.saved {
        "these outputs"
    } else {
        "this machine"
    };
    match readiness {
        Readiness::Blocked => format!(
            "KV transfer cannot be trusted here; fix first: {}",
            first(Status::Fail)
        ),
        Readiness::Degraded => format!(
            "it can run, with gaps; look first at: {}",
            first(Status::Warn)
        ),
        Readiness::Inconclusive => {
            let lacking = results
                .iter()
                .find(|r| r.status == Status::Skipped && r.required)
                .or_else(|| results.iter().find(|r| r.status == Status::Skipped));
            match lacking {
                Some(result) => {
                    format!("{place} do not say enough for a verdict; {}", result.detail)
                        .replace("this machine do not say", "this machine does not show")
                }
                None if results.iter().any(|r| r.collective) => {
                    format!("{place} show collective communication only, which carries no KV")
                        .replace("this machine show", "this machine shows")
                }
                None => match facts.observation.sections.first() {
                    Some(section) => format!(
                        "{} is recognised, and nothing in it tells whether RDMA or NVLink works",
                        section.from.file
                    ),
                    None => "nothing was given to judge".to_owned(),
                },
            }
        }
        _ => format!("no gap seen in {place}; what carries KV has not been measured"),
    }
}

fn next(readiness: Readiness, facts: &NodeFacts, results: &[CheckResult]) -> Vec<NextStep> {
    let worst = match readiness {
        Readiness::Blocked => Status::Fail,
        Readiness::Degraded => Status::Warn,
        _ => Status::Skipped,
    };
    let mut next = Vec::new();
    if let Some(cause) = results
        .iter()
        .find(|r| r.status == worst && !r.collective)
        .and_then(|r| r.cause)
    {
        next.push(NextStep {
            command: format!("check-interconnect explain {cause}"),
            why: "what it means, when it is no problem, and how to fix it".to_owned(),
            read_only: true,
        });
    }
    if facts.saved && readiness == Readiness::Inconclusive {
        next.push(NextStep {
            command: "check-interconnect node".to_owned(),
            why: "run inside the worker's container it reads what these outputs lack".to_owned(),
            read_only: true,
        });
    }
    next
}
