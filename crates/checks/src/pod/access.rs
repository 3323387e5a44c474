//! Every container that was asked for could be looked into.
//!
//! What keeps a run from the cluster, from a pod or from its container, each with its own cause. A container that
//! nobody could look into makes the verdict inconclusive unless something failed elsewhere; the others are judged.

use model::Fault;
use model::pod::FaultScope;

use super::faults;
use super::view::PodsView;
use crate::check::{Check, Run};
use crate::finding::{Finding, Findings};

pub(crate) const NAME: &str = "pod/access";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "every container that was asked for could be looked into",
    source: include_str!("access.rs"),
    causes: faults::ACCESS,
    notes: &[],
    run: Run::Pods(run),
};

/// What a fault is told as.
pub(crate) fn told(fault: &Fault) -> Finding {
    let name = if faults::is_state(fault.kind) {
        super::state::NAME
    } else {
        NAME
    };
    let finding = Finding::fault(
        name,
        faults::cause(fault.kind),
        fault.kind.reason(),
        fault.detail.clone(),
    );
    // A server's words, or a runtime's, do not always say what they mean.
    let words = ["HTTP ", "Internal error "];
    let finding = if words.iter().any(|w| fault.detail.starts_with(w)) {
        finding.note(faults::cause(fault.kind).what)
    } else {
        finding
    };
    if fault.kind.scope() == FaultScope::Beside {
        finding
    } else {
        finding.required()
    }
}

fn run(view: &PodsView<'_>, findings: &mut Findings) {
    for fault in &view.around.faults {
        findings.push(told(fault));
    }
    for pod in view.pods {
        if let Err(fault) = &pod.pod.probed
            && !faults::is_state(fault.kind)
        {
            findings.push(pod.about(told(fault)));
        }
    }
}
