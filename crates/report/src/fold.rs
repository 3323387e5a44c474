//! Identical results of several workers become one that names them all.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Deref;

use model::{CheckResult, Grade, Reason, Source, Status};

use crate::alike::{self, Told};

/// Sources that a folded result keeps. Enough for both roles and some variety, whatever the number of workers.
const SOURCES_KEPT: usize = 8;

/// Everything that makes two results say the same.
#[derive(PartialEq, Eq, Hash)]
struct Key<'r> {
    group: Option<usize>,
    name: &'r str,
    status: Status,
    told: Told<'r>,
    cause: Option<&'r str>,
    fix: Option<&'r str>,
    reason: Option<Reason>,
    grade: Grade,
    collective: bool,
    required: bool,
    deployment: Option<&'r str>,
    device: Option<&'r str>,
    file: Option<&'r str>,
}

/// One result, or several that say the same: a copy that names them all. Most are alone, and a copy of each would
/// need the room of the report once more.
pub(crate) enum Entry<'r> {
    Alone(&'r CheckResult),
    Joined(Box<CheckResult>),
}

impl Deref for Entry<'_> {
    type Target = CheckResult;

    fn deref(&self) -> &CheckResult {
        match self {
            Self::Alone(result) => result,
            Self::Joined(result) => result,
        }
    }
}

/// A result that grows.
struct Folded<'r> {
    result: Entry<'r>,
    /// Filled once others join.
    workers: HashSet<&'r str>,
    pods: HashSet<&'r str>,
}

/// Folds identical results of one deployment into the first of them, in the order of first occurrence.
///
/// Its subject then names every role and worker. Its sources are those of all, cut at eight where the
/// first result did not bring more by itself; the first line of each role always stays. Pods are all named; a
/// container or node that is not common to all is left out.
pub fn fold(results: &[CheckResult]) -> Vec<CheckResult> {
    fold_grouped(results.iter().map(|result| (result, None)))
        .into_iter()
        .map(|entry| match entry {
            Entry::Alone(result) => result.clone(),
            Entry::Joined(result) => *result,
        })
        .collect()
}

/// The same, with results of different groups kept apart even where their deployments share a name.
pub(crate) fn fold_grouped<'r>(
    results: impl IntoIterator<Item = (&'r CheckResult, Option<usize>)>,
) -> Vec<Entry<'r>> {
    let results: Vec<(&'r CheckResult, Option<usize>)> = results.into_iter().collect();
    let told = alike::told(&results);
    let mut order: Vec<Folded<'r>> = Vec::new();
    let mut known: HashMap<Key<'r>, usize> = HashMap::new();
    for ((result, group), told) in results.into_iter().zip(told) {
        let merged = told.merged.then(|| told.clone());
        let key = Key {
            group,
            name: &result.name,
            status: result.status,
            cause: result.cause,
            fix: result.fix.as_deref(),
            reason: result.reason,
            grade: result.grade,
            collective: result.collective,
            required: result.required,
            deployment: result.subject.deployment.as_deref(),
            // Words of it stand for several.
            device: result.subject.device.as_deref().filter(|_| !told.merged),
            file: result.subject.file.as_deref(),
            told,
        };
        let next = order.len();
        let at = *known.entry(key).or_insert(next);
        match order.get_mut(at) {
            Some(folded) => folded.add(result),
            None => order.push(Folded {
                result: match merged {
                    None => Entry::Alone(result),
                    Some(told) => Entry::Joined(Box::new(retold(result, told))),
                },
                workers: result.subject.workers.iter().map(String::as_str).collect(),
                pods: pods_of(result).collect(),
            }),
        }
    }
    order.into_iter().map(|folded| folded.result).collect()
}

/// A result in other words, which are of no device more than of another.
fn retold(result: &CheckResult, told: Told<'_>) -> CheckResult {
    let mut retold = result.clone();
    retold.detail = told.detail.into_owned();
    retold.note = told.note.map(Cow::into_owned);
    retold.subject.device = None;
    retold
}

/// The pods that a result is about.
fn pods_of(result: &CheckResult) -> impl Iterator<Item = &str> {
    let subject = &result.subject;
    subject.pod.iter().chain(&subject.pods).map(String::as_str)
}

impl<'r> Folded<'r> {
    fn add(&mut self, other: &'r CheckResult) {
        if let Entry::Alone(first) = self.result {
            self.result = Entry::Joined(Box::new(first.clone()));
        }
        let Entry::Joined(result) = &mut self.result else {
            return;
        };
        let subject = &mut result.subject;
        let mut new_role = false;
        for role in &other.subject.roles {
            if !subject.roles.contains(role) {
                subject.roles.push(*role);
                new_role = true;
            }
        }
        subject.roles.sort_unstable();
        for worker in &other.subject.workers {
            if self.workers.insert(worker) {
                subject.workers.push(worker.clone());
            }
        }
        for pod in pods_of(other) {
            if self.pods.insert(pod) {
                if let Some(own) = subject.pod.take() {
                    subject.pods.push(own);
                }
                subject.pods.push(pod.to_owned());
            }
        }
        for (mine, theirs) in [
            (&mut subject.container, &other.subject.container),
            (&mut subject.node, &other.subject.node),
        ] {
            if *mine != *theirs {
                *mine = None;
            }
        }
        let sources = &mut result.sources;
        let mut must_keep = new_role;
        for source in &other.sources {
            if sources.iter().any(|kept| same_source(kept, source)) {
                continue;
            }
            if sources.len() < SOURCES_KEPT {
                sources.push(source.clone());
                must_keep = false;
            } else if must_keep && source.primary {
                // A role whose line nobody sees would look as if it had no part in the finding.
                if sources.len() > 1 {
                    sources.pop();
                }
                sources.push(source.clone());
                must_keep = false;
            }
        }
    }
}

fn same_source(a: &Source, b: &Source) -> bool {
    a.place.line == b.place.line
        && a.place.column == b.place.column
        && a.primary == b.primary
        && a.label == b.label
        && a.place.file == b.place.file
}
