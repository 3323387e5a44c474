//! Commands that fixes tell name the namespace, where it is known.

use std::collections::BTreeSet;

use model::CheckResult;

use crate::judge::shell_word;
use crate::judge_pods::{Around, ProbedPod};

/// What stands for it in the text of a cause.
const OPEN: &str = "-n NAMESPACE";

/// Puts it into every fix.
pub(crate) fn put(results: &mut [CheckResult], pods: &[ProbedPod], around: &Around) {
    let Some(namespace) = known(pods, around) else {
        return;
    };
    let named = format!("-n {}", shell_word(namespace));
    for fix in results.iter_mut().filter_map(|result| result.fix.as_mut()) {
        if fix.contains(OPEN) {
            *fix = fix.replace(OPEN, &named);
        }
    }
}

/// The one of all pods; without pods, the one that was asked about.
fn known<'a>(pods: &'a [ProbedPod], around: &'a Around) -> Option<&'a str> {
    let all: BTreeSet<&str> = pods.iter().map(|p| p.object.namespace.as_str()).collect();
    let mut all = all.into_iter().filter(|namespace| !namespace.is_empty());
    match (all.next(), all.next()) {
        (Some(one), None) => Some(one),
        (None, _) => around
            .rights
            .as_ref()
            .map(|rights| rights.namespace.as_str())
            .filter(|namespace| !namespace.is_empty()),
        _ => None,
    }
}
