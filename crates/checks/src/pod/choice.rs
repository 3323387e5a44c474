//! Which pods and containers were looked into, and why.
//!
//! Names are not guessed at in silence: each pod is told with what shows that it moves KV cache, each container with why
//! it is the engine's, and those that were passed over with what they are.
//!
//! Of a namespace or a selector those pods are taken whose label names the role (Dynamo, llm-d, DisaggregatedSet,
//! RoleBasedGroup, StormService, ModelServing and others), whose engine is told a role or a connector between workers, or
//! that ask for accelerators while nothing shows what their engine is told: the process then tells. Frontends, planners,
//! mock engines, and engines that serve whole requests (all of the command is visible, and it names neither role nor
//! connector) are passed over. A pod that is asked for by its name is judged whatever it is. The container is the one
//! that is asked for, else `main`, else the one that asks for accelerators, else the only one; never a sidecar.

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
    if let Some(some) = view.around.sampled {
        findings.push(Finding::skipped(
            NAME,
            Reason::Disabled,
            format!(
                "logs were read and NIXL agents made in {some} of {} workers, one of each workload and role; --depth all does it in all",
                view.pods.len()
            ),
        ));
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
