//! Two reports about the same deployment: what changed between them.

use std::collections::{BTreeMap, BTreeSet};

use model::{CheckResult, Report, Status};
use serde::Serialize;

/// What one report says and the other does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// The check.
    pub name: String,
    /// Whom it is about: the deployment, the worker, the device, as far as it is told.
    pub about: String,
    /// What the earlier report says; none where it says nothing.
    pub before: Option<Told>,
    /// What the later one says; none where it says nothing.
    pub after: Option<Told>,
}

/// What a report says of one thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Told {
    /// Its status.
    pub status: Status,
    /// One line.
    pub detail: String,
    /// The failure mode.
    pub cause: Option<&'static str>,
}

/// What makes two results results about one thing.
type Key = (usize, String, String);

/// Whom a result is about, one by one: which of them stand together in one result is no matter of what changed.
fn about(result: &CheckResult) -> Vec<String> {
    let subject = &result.subject;
    let mut all: Vec<&str> = match (&subject.pod, subject.pods.as_slice()) {
        (Some(pod), _) => vec![pod],
        (None, []) => subject.workers.iter().map(String::as_str).collect(),
        (None, pods) => pods.iter().map(String::as_str).collect(),
    };
    let device = subject.device.as_deref();
    if all.is_empty() {
        let other = subject.file.as_deref().or(subject.deployment.as_deref());
        all.push(device.or(other).unwrap_or_default());
        return all.into_iter().map(str::to_owned).collect();
    }
    all.sort_unstable();
    all.dedup();
    all.into_iter()
        .map(|one| match device {
            Some(device) => format!("{one}, {device}"),
            None => one.to_owned(),
        })
        .collect()
}

/// A line without what is another number after every start: `process 42`, `/proc/42/`.
fn lasting(detail: &str) -> String {
    let mut out = String::with_capacity(detail.len());
    let mut rest = detail;
    while let Some(at) = ["process ", "/proc/"]
        .iter()
        .filter_map(|word| rest.find(word).map(|at| at + word.len()))
        .min()
    {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out.push_str(rest);
    out
}

fn by_key(report: &Report) -> BTreeMap<Key, Vec<Told>> {
    let mut all: BTreeMap<Key, Vec<Told>> = BTreeMap::new();
    for result in &report.results {
        let at = crate::CHECKS
            .iter()
            .position(|check| *check.name == *result.name)
            .unwrap_or(usize::MAX);
        for one in about(result) {
            all.entry((at, result.name.to_string(), one))
                .or_default()
                .push(Told {
                    status: result.status,
                    detail: result.detail.clone(),
                    cause: result.cause,
                });
        }
    }
    for told in all.values_mut() {
        told.sort();
    }
    all
}

fn is_same(one: &Told, other: &Told) -> bool {
    (one.status, one.cause) == (other.status, other.cause)
        && (one.detail == other.detail || lasting(&one.detail) == lasting(&other.detail))
}

/// The worker of a key.
fn worker(key: &Key) -> &str {
    key.2.split(", ").next().unwrap_or_default()
}

/// Of workers that are in one report only it is told how they were chosen, and what was wrong with them; that everything
/// else of them is new, or gone, says nothing more.
fn known_in_both(all: &mut BTreeMap<Key, Vec<Told>>, there: &BTreeSet<String>) {
    let chosen: BTreeSet<String> = all
        .keys()
        .filter(|key| key.1 == CHOICE)
        .map(|key| worker(key).to_owned())
        .collect();
    all.retain(|key, told| {
        let alone = !there.contains(worker(key)) && chosen.contains(worker(key));
        if alone && key.1 != CHOICE {
            told.retain(|told| matches!(told.status, Status::Warn | Status::Fail));
        }
        !told.is_empty()
    });
}

/// The check that tells how each worker was chosen.
const CHOICE: &str = "pod/choice";

/// What changed from one report to the other, by check and by whom it is about.
pub fn changes(before: &Report, after: &Report) -> Vec<Changed> {
    let mut then = by_key(before);
    let mut later = by_key(after);
    let workers = |all: &BTreeMap<Key, Vec<Told>>| -> BTreeSet<String> {
        all.keys().map(|key| worker(key).to_owned()).collect()
    };
    let (of_then, of_later) = (workers(&then), workers(&later));
    known_in_both(&mut later, &of_then);
    known_in_both(&mut then, &of_later);
    // Those who have changed alike are told together.
    type Change = (usize, String, Option<Told>, Option<Told>);
    let mut changes: BTreeMap<Change, Vec<String>> = BTreeMap::new();
    let mut add = |key: Key, before: Option<Told>, after: Option<Told>| {
        changes
            .entry((key.0, key.1, before, after))
            .or_default()
            .push(key.2);
    };
    for (key, mut now) in later {
        let mut held = then.remove(&key).unwrap_or_default();
        // What both say is no change.
        now.retain(|told| match held.iter().position(|h| is_same(h, told)) {
            Some(at) => {
                held.remove(at);
                false
            }
            None => true,
        });
        let mut held = held.into_iter();
        for told in now {
            add(key.clone(), held.next(), Some(told));
        }
        for gone in held {
            add(key.clone(), Some(gone), None);
        }
    }
    for (key, gone) in then {
        for told in gone {
            add(key.clone(), Some(told), None);
        }
    }
    let mut told: Vec<(usize, Changed)> = changes
        .into_iter()
        .map(|((at, name, before, after), about)| {
            let change = Changed {
                name,
                about: about.join("; "),
                before,
                after,
            };
            (at, change)
        })
        .collect();
    // What is worst comes first.
    let worst = |change: &Changed| {
        let of = |told: &Option<Told>| match told.as_ref().map(|told| told.status) {
            Some(Status::Fail) => 4,
            Some(Status::Warn) => 3,
            Some(Status::Skipped) => 2,
            Some(Status::Ok) => 1,
            None => 0,
        };
        of(&change.after).max(of(&change.before))
    };
    told.sort_by(|(one, a), (other, b)| {
        (worst(b), one, &a.name, &a.about).cmp(&(worst(a), other, &b.name, &b.about))
    });
    told.into_iter().map(|(_, change)| change).collect()
}

#[cfg(test)]
mod tests {
    use super::{changes, lasting};
    use crate::{Around, judge_pods};

    #[test]
    fn a_report_has_no_changes_against_itself() {
        let report = judge_pods("check", Vec::new(), &Around::default(), Vec::new());
        assert!(changes(&report, &report).is_empty());
    }

    #[test]
    fn numbers_of_processes_are_no_change() {
        for (one, other) in [
            ("VLLM (process 42) has a", "VLLM (process 77) has a"),
            (
                "tcp (pod a: /proc/42/environ)",
                "tcp (pod a: /proc/7/environ)",
            ),
        ] {
            assert_eq!(lasting(one), lasting(other));
        }
        assert_ne!(lasting("42 ports"), lasting("43 ports"));
        assert_ne!(lasting("process 4 has 5"), lasting("process 4 has 6"));
    }
}
