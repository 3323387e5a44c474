//! Which result belongs to which deployment.

use std::collections::HashMap;

use model::verdict::Counts;
use model::{CheckResult, Report};

use crate::fold::{Entry, fold_grouped};

/// Folded results, by deployment.
pub(crate) struct Groups<'r> {
    /// One entry per deployment of the report, in its order.
    pub(crate) deployments: Vec<Group<'r>>,
    /// Results about inputs, or about the run as a whole.
    pub(crate) rest: Vec<Entry<'r>>,
}

/// What belongs to one deployment.
pub(crate) struct Group<'r> {
    /// Folded results.
    pub(crate) results: Vec<Entry<'r>>,
    /// Unfolded counts.
    pub(crate) counts: Counts,
}

/// Index of the deployment of each result.
///
/// Directories of recipes hold many deployments of the same name, so where a name is not unique the
/// files decide, and then the neighbourhood: results of one deployment follow each other.
pub(crate) fn assign(report: &Report) -> Vec<Option<usize>> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, deployment) in report.deployments.iter().enumerate() {
        by_name.entry(&deployment.name).or_default().push(index);
    }
    let mut last: Option<usize> = None;
    report
        .results
        .iter()
        .map(|result| {
            if result.deployment.is_some() {
                last = result.deployment;
                return last;
            }
            let candidates = by_name.get(result.subject.deployment.as_deref()?)?;
            let chosen = match candidates.as_slice() {
                [only] => Some(*only),
                several => several
                    .iter()
                    .copied()
                    .filter(|index| is_from(report, *index, result))
                    .min_by_key(|index| Some(*index) != last)
                    .or_else(|| last.filter(|index| several.contains(index)))
                    .or_else(|| several.first().copied()),
            };
            last = chosen;
            chosen
        })
        .collect()
}

fn is_from(report: &Report, index: usize, result: &CheckResult) -> bool {
    report.deployments.get(index).is_some_and(|deployment| {
        result
            .sources
            .iter()
            .any(|s| deployment.files.iter().any(|f| **f == *s.place.file))
    })
}

/// Results folded within each deployment.
pub(crate) fn groups(report: &Report) -> Groups<'_> {
    groups_of(report, |_| true)
}

/// The same of those results that are kept; all are counted.
pub(crate) fn groups_of(report: &Report, keep: impl Fn(&CheckResult) -> bool) -> Groups<'_> {
    let assigned = assign(report);
    let mut members: Vec<Vec<&CheckResult>> = vec![Vec::new(); report.deployments.len()];
    let mut rest = Vec::new();
    for (result, index) in report.results.iter().zip(assigned) {
        match index.and_then(|index| members.get_mut(index)) {
            Some(list) => list.push(result),
            None => rest.push(result),
        }
    }
    Groups {
        deployments: members
            .into_iter()
            .map(|list| Group {
                counts: Counts::of(list.iter().copied()),
                results: fold_grouped(list.into_iter().filter(|r| keep(r)).map(|r| (r, None))),
            })
            .collect(),
        rest: fold_grouped(rest.into_iter().filter(|r| keep(r)).map(|r| (r, None))),
    }
}

/// All results folded within their deployments, in the order of first occurrence.
pub(crate) fn folded(report: &Report) -> Vec<Entry<'_>> {
    fold_grouped(report.results.iter().zip(assign(report)))
}
