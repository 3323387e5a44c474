//! Which pods and containers were looked into, and why.
//!
//! Names are not guessed at in silence: each pod is told with what shows that it moves KV cache, each container with why
//! it is the engine's, and those that were passed over with what they are.

use std::collections::BTreeMap;

use model::Reason;

use super::view::PodsView;
use crate::check::{Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/choice";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "which pods and containers were looked into, and why",
    source: include_str!("choice.rs"),
    causes: &[],
    notes: &[],
    run: Run::Pods(run),
};

fn run(view: &PodsView<'_>, findings: &mut Findings) {
    for pod in view.pods {
        // A container that could not be chosen is told by pod/access.
        if pod.pod.container.is_empty() {
            continue;
        }
        let mut words = Vec::new();
        if !pod.pod.taken.is_empty() {
            words.push(format!("taken by {}", pod.pod.taken));
        }
        words.push(match pod.pod.chosen.as_str() {
            "" => format!("container {}", pod.pod.container),
            chosen => format!("container {}: {chosen}", pod.pod.container),
        });
        findings.push(pod.about(Finding::ok(NAME, words.join("; "))));
    }
    // Frontends are alike: one line for each reason.
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, why) in &view.around.passed_over {
        reasons.entry(why).or_default().push(name);
    }
    for (why, names) in reasons {
        let pods = match names.len() {
            1 => "a pod".to_owned(),
            n => format!("{n} pods"),
        };
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotApplicable,
                format!("passed over {pods}: {why}"),
            )
            .pods(names.iter().map(|n| (*n).to_owned())),
        );
    }
}
