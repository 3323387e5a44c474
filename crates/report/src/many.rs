//! Deployments of pods that say the same: in a cluster there may be thousands of them, and a screen holds a few.

use std::collections::HashMap;

use model::verdict::DeploymentSummary;

use crate::alike;
use crate::group::Group;
use crate::text::says_something;

/// Kinds that are told in full.
const IN_FULL: usize = 4;

/// Whether it was found in a cluster, and not in files.
pub(crate) fn is_of_pods(deployment: &DeploymentSummary) -> bool {
    deployment.files.is_empty()
}

/// A deployment with its results.
type Told<'r, 'g> = (&'r DeploymentSummary, &'r Group<'g>);

/// Deployments of pods that have the same to say are told once, with the names of the others; and of too many kinds, the
/// rest by a line each. Each place in files is told.
pub(crate) fn without_alike<'r, 'g>(
    loud: Vec<Told<'r, 'g>>,
) -> (
    Vec<(Told<'r, 'g>, Vec<&'r DeploymentSummary>)>,
    Vec<&'r DeploymentSummary>,
) {
    let mut kinds: Vec<(Told<'r, 'g>, Vec<&'r DeploymentSummary>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (deployment, group) in loud {
        if is_of_pods(deployment) {
            let next = kinds.len();
            let at = *known.entry(says(deployment, group)).or_insert(next);
            if let Some((_, alike)) = kinds.get_mut(at) {
                alike.push(deployment);
                continue;
            }
        }
        kinds.push(((deployment, group), Vec::new()));
    }
    // So many fit on a screen.
    let mut of_pods = 0_usize;
    let mut rest = Vec::new();
    kinds.retain(|((deployment, _), alike)| {
        if !is_of_pods(deployment) {
            return true;
        }
        of_pods += 1;
        if of_pods > IN_FULL {
            rest.push(*deployment);
            rest.extend(alike.iter().copied());
        }
        of_pods <= IN_FULL
    });
    (kinds, rest)
}

/// What a deployment says, but for numbers and its own names.
fn says(deployment: &DeploymentSummary, group: &Group<'_>) -> String {
    let mut said: Vec<String> = group
        .results
        .iter()
        .filter(|result| says_something(result))
        .map(|result| {
            let subject = &result.subject;
            let pods = subject.pod.iter().chain(&subject.pods);
            let names: Vec<&str> = pods
                .chain(&subject.workers)
                .chain([&deployment.name])
                .map(String::as_str)
                .collect();
            format!(
                "{}|{:?}|{:?}|{:?}|{}",
                result.name,
                result.status,
                result.cause,
                result.reason,
                alike::shape_without(&result.detail, &names)
            )
        })
        .collect();
    said.sort();
    format!("{:?}\n{}", deployment.readiness, said.join("\n"))
}
