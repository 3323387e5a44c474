//! Two reports about the same deployment: what changed between them.

use std::collections::BTreeMap;

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

fn about(result: &CheckResult) -> String {
    let subject = &result.subject;
    let mut words: Vec<&str> = Vec::new();
    match (&subject.pod, subject.pods.as_slice()) {
        (Some(pod), _) => words.push(pod),
        (None, []) => words.extend(subject.workers.iter().map(String::as_str)),
        (None, pods) => words.extend(pods.iter().map(String::as_str)),
    }
    words.extend(subject.device.as_deref());
    if words.is_empty() {
        words.extend(subject.file.as_deref().or(subject.deployment.as_deref()));
    }
    words.join(", ")
}

fn by_key(report: &Report) -> BTreeMap<Key, Vec<Told>> {
    let mut all: BTreeMap<Key, Vec<Told>> = BTreeMap::new();
    for result in &report.results {
        let at = crate::CHECKS
            .iter()
            .position(|check| *check.name == *result.name)
            .unwrap_or(usize::MAX);
        all.entry((at, result.name.to_string(), about(result)))
            .or_default()
            .push(Told {
                status: result.status,
                detail: result.detail.clone(),
                cause: result.cause,
            });
    }
    for told in all.values_mut() {
        told.sort();
    }
    all
}

/// What changed from one report to the other, by check and by whom it is about.
pub fn changes(before: &Report, after: &Report) -> Vec<Changed> {
    let mut then = by_key(before);
    let mut changes = Vec::new();
    let mut add = |key: Key, before: Option<Told>, after: Option<Told>| {
        changes.push((
            key.0,
            Changed {
                name: key.1,
                about: key.2,
                before,
                after,
            },
        ));
    };
    for (key, mut now) in by_key(after) {
        let mut held = then.remove(&key).unwrap_or_default();
        // What both say is no change.
        now.retain(|told| match held.iter().position(|h| h == told) {
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
    changes
        .sort_by(|(one, a), (other, b)| (one, &a.name, &a.about).cmp(&(other, &b.name, &b.about)));
    changes.into_iter().map(|(_, change)| change).collect()
}

#[cfg(test)]
mod tests {
    use super::changes;
    use crate::{Around, judge_pods};

    #[test]
    fn a_report_has_no_changes_against_itself() {
        let report = judge_pods("check", Vec::new(), &Around::default(), Vec::new());
        assert!(changes(&report, &report).is_empty());
    }
}
