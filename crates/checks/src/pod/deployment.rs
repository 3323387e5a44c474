//! The rules of recipes over workers that run: what their engine processes have, in the words of pods.

use std::collections::{BTreeMap, BTreeSet};

use model::{CheckResult, Grade, Role, Status};

use super::prepare::Prepared;
use super::settled;
use super::workers::{Behind, Group};
use crate::judge::judge;
use crate::judge_pods::ProbedPod;

/// The results of a recipe's rules over the workers of a group; of a `whole` deployment both roles are expected.
pub(crate) fn of_deployment(
    number: usize,
    group: &Group,
    pods: &[ProbedPod],
    prepared: &[Prepared],
    whole: bool,
) -> Vec<CheckResult> {
    let roles: BTreeSet<Role> = group.deployment.kv_workers().map(|w| w.role).collect();
    let mut results = judge(&group.deployment);
    results.retain_mut(|result| {
        let inside = behind(result, group, prepared)
            .filter_map(|n| pods.get(n))
            .map(|pod| pod.probed.as_ref().ok());
        let settled = settled::is_settled(result, inside);
        result.deployment = Some(number);
        !settled && is_about_pods(result, &roles, whole)
    });
    // What an unusual pod has in common with the others is no news about it.
    let usual = |worker: &String| group.behind.get(worker).is_none_or(|b| b.usual);
    let common: BTreeSet<(String, String)> = results
        .iter()
        .filter(|r| r.subject.workers.iter().all(usual))
        .map(|r| (r.name.to_string(), r.detail.clone()))
        .collect();
    for result in &mut results {
        let finding = matches!(result.status, Status::Warn | Status::Fail);
        let shared = common.contains(&(result.name.to_string(), result.detail.clone()));
        if finding || !shared {
            of_pods(result, &group.behind, pods);
        }
    }
    results
}

/// Pods behind the workers that a result names, else behind its roles.
fn behind<'g>(
    result: &'g CheckResult,
    group: &'g Group,
    prepared: &'g [Prepared],
) -> impl Iterator<Item = usize> {
    let by_name = result
        .subject
        .workers
        .iter()
        .filter_map(|worker| group.behind.get(worker))
        .flat_map(|behind| behind.pods.iter().copied());
    let by_role = group.pods.iter().copied().filter(|n| {
        result.subject.workers.is_empty()
            && prepared
                .get(*n)
                .and_then(|p| p.role)
                .is_some_and(|role| result.subject.roles.contains(&role))
    });
    by_name.chain(by_role)
}

/// Whether a result of a recipe's rule holds for pods that were picked; its words become those of pods.
fn is_about_pods(result: &mut CheckResult, roles: &BTreeSet<Role>, whole: bool) -> bool {
    // The other half was not asked for.
    let half = !whole
        && roles.len() < 2
        && result.name == "env/roles"
        && (result.cause == Some("role-missing")
            || result.status == Status::Skipped && !result.required);
    if half {
        return false;
    }
    // Of a whole deployment it was.
    if whole && roles.len() < 2 && result.name == "env/roles" && result.status == Status::Skipped {
        result.required = true;
    }
    let words = |text: &mut String| {
        for (from, to) in [
            (
                "nothing in the file ",
                "nothing that can be seen from here ",
            ),
            ("is not in the file", "cannot be seen from here"),
            (
                "configured in the input",
                "configured, as far as can be seen from here",
            ),
            (
                "started in the input",
                "started, as far as can be seen from here",
            ),
            ("is not in the input", "cannot be seen from here"),
            ("are not in the input", "cannot be seen from here"),
            ("that is in the input", "that can be seen from here"),
        ] {
            if text.contains(from) {
                *text = text.replace(from, to);
            }
        }
    };
    words(&mut result.detail);
    if let Some(note) = &mut result.note {
        words(note);
    }
    let live = result
        .sources
        .iter()
        .any(|s| s.primary && s.place.file.contains(": /proc/"));
    if live && result.grade == Grade::Declared {
        result.grade = Grade::Observed;
    }
    true
}

/// Names the pods behind a result: where there is something to do, and where they are not like the others of their
/// workload.
fn of_pods(result: &mut CheckResult, behind: &BTreeMap<String, Behind>, pods: &[ProbedPod]) {
    let finding = matches!(result.status, Status::Warn | Status::Fail);
    let mut numbers: Vec<usize> = result
        .subject
        .workers
        .iter()
        .filter_map(|worker| behind.get(worker))
        .filter(|behind| finding || !behind.usual)
        .flat_map(|behind| behind.pods.iter().copied())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut names: Vec<String> = numbers
        .into_iter()
        .filter_map(|n| pods.get(n))
        .map(|pod| pod.object.name.clone())
        .collect();
    match (names.pop(), names.is_empty()) {
        (None, _) => {}
        (Some(one), true) => result.subject.pod = Some(one),
        (Some(last), false) => {
            names.push(last);
            result.subject.pods = names;
        }
    }
}
