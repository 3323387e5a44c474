//! Every pod that was asked for runs, and its container stays the same while it is looked at.
//!
//! A worker that does not run transfers nothing; whether its fabric would work cannot be seen, so this is no failure of
//! the fabric: the verdict is inconclusive. Where nodes may be read, `pod/nodes` tells whether one could take the pod.

use super::access;
use super::faults;
use super::view::PodsView;
use crate::check::{Check, Run};
use crate::finding::{Finding, Findings};

pub(crate) const NAME: &str = "pod/state";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "every pod that was asked for runs",
    source: include_str!("state.rs"),
    causes: faults::STATE,
    notes: &[],
    run: Run::Pods(run),
};

fn run(view: &PodsView<'_>, findings: &mut Findings) {
    for pod in view.pods {
        match (&pod.pod.probed, pod.during) {
            (Err(fault), _) if faults::is_state(fault.kind) => {
                findings.push(pod.about(access::told(fault)));
            }
            (Ok(_), Some(fault)) => findings.push(pod.about(access::told(fault))),
            // It still serves until its grace is over, so what is seen of it holds.
            (Ok(_), None) if pod.object.deleting => findings.push(
                pod.about(
                    Finding::ok(NAME, "it runs, and it is being deleted")
                        .note("another pod takes its place: look at that one too"),
                ),
            ),
            _ => {}
        }
    }
}
