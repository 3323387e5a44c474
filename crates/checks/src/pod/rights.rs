//! Whoever asks may do what looking into a deployment needs.
//!
//! The API server is asked about all rights at once, while pods are listed, so that everything that is missing is told
//! together and not one refusal after another. Rights that a verdict needs make it inconclusive where they are missing,
//! unless the run did without them; of the others each says what is not judged without it. A server that gives no answer
//! about a right is not taken for one that refuses it.

use model::pod::FaultKind;
use model::{Grade, Reason};

use super::view::PodsView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::judge::shell_word;
use crate::rights::{By, Needed, RightsSeen, of_words};

const NAME: &str = "pod/rights";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "whoever asks may list pods and run a command in them",
    source: include_str!("rights.rs"),
    causes: &[MISSING, OPTIONAL],
    notes: &[],
    run: Run::Pods(run),
};

const MISSING: Cause = Cause {
    id: "right-missing",
    what: "the API server says that a right which a verdict needs is not granted to whoever asks",
    why: "workers cannot be found, or nothing can be looked into, and nobody can say how KV moves there",
    fix: "check-interconnect rbac -n NAMESPACE | kubectl apply -f - by somebody who may grant rights; where exec is granted to nobody, check-interconnect manifest prints what collects the same from inside",
    quiet_if: "it is granted; the API server does not answer the question; the command looks for no worker and the right is the one to list them; not required where the run did without it",
    source: "Kubernetes RBAC; kubernetes/kubernetes#134577: exec over WebSocket needs create on pods/exec from 1.35 on, and get before",
};

const OPTIONAL: Cause = Cause {
    id: "optional-right-missing",
    what: "the API server says that a right which adds to a verdict is not granted to whoever asks",
    why: "everything else is judged; what needs this right is left out",
    fix: "none is needed; check-interconnect rbac -n NAMESPACE | kubectl apply -f - grants it too",
    quiet_if: "it is granted; the API server does not answer the question; it is to read a kind of object that no worker here is made from",
    source: "Kubernetes RBAC",
};

/// Whether a cause says of one pod, or of the nodes, what a missing right says of all.
pub(crate) fn is_told_here(cause: &str, rights: &RightsSeen) -> bool {
    match cause {
        "nodes-forbidden" => rights.lacks("list nodes"),
        "pod-log-forbidden" => rights.lacks("get pods/log"),
        "workload-forbidden" => rights
            .missing
            .iter()
            .any(|words| of_words(words).is_some_and(|right| right.declaring().is_some())),
        _ => false,
    }
}

/// Whether a right is of use here: nobody misses one to read objects of a kind that no worker is made from.
fn is_of_use(view: &PodsView<'_>, words: &str) -> bool {
    let Some(kind) = of_words(words).and_then(Needed::declaring) else {
        return true;
    };
    view.pods.is_empty()
        || view
            .pods
            .iter()
            .any(|pod| kind.name_of(pod.object).is_some())
}

fn run(view: &PodsView<'_>, findings: &mut Findings) {
    let Some(seen) = &view.around.rights else {
        return;
    };
    let missing: Vec<&String> = seen
        .missing
        .iter()
        .filter(|words| is_of_use(view, words))
        .collect();
    let words = |by_need: bool| -> Vec<&str> {
        missing
            .iter()
            .filter(|words| of_words(words).is_some_and(|right| right.by != By::Nobody) == by_need)
            .map(|words| words.as_str())
            .collect()
    };
    let required = words(true);
    if !required.is_empty() {
        let finding = Finding::fault(
            NAME,
            &MISSING,
            Reason::NoPermission,
            format!(
                "not granted in namespace {}: {}",
                seen.namespace,
                required.join(", ")
            ),
        )
        .fix(grant(seen, false))
        .grade(Grade::Observed);
        let finding = required
            .iter()
            .fold(finding, |finding, words| match of_words(words) {
                Some(right) => finding.note(format!("without {words} {}", right.without)),
                None => finding,
            });
        findings.push(if did_without(view, &required) {
            finding.note("this run did without")
        } else {
            finding.required()
        });
    }
    for words in words(false) {
        let (without, of_cluster) = match of_words(words) {
            Some(right) => (right.without, right.of_cluster),
            None => ("what needs it is not judged", false),
        };
        let whose = if of_cluster {
            "in the cluster".to_owned()
        } else {
            format!("in namespace {}", seen.namespace)
        };
        findings.push(
            Finding::fault(
                NAME,
                &OPTIONAL,
                Reason::NoPermission,
                format!("{words} is not granted {whose}: {without}"),
            )
            .fix(format!("none is needed; {}", grant(seen, of_cluster)))
            .grade(Grade::Observed),
        );
    }
    if missing.is_empty() && !seen.granted.is_empty() {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "everything that looking into namespace {} needs is granted",
                    seen.namespace
                ),
            )
            .grade(Grade::Observed),
        );
    }
}

/// Whether the run saw everything that a right is for, whatever the server says of it: a server of another version asks
/// for another one.
fn did_without(view: &PodsView<'_>, missing: &[&str]) -> bool {
    let faults = || {
        view.around.faults.iter().chain(
            view.pods
                .iter()
                .filter_map(|pod| pod.pod.probed.as_ref().err()),
        )
    };
    let refused = faults().any(|fault| {
        matches!(
            fault.kind,
            FaultKind::ForbiddenPods | FaultKind::ForbiddenExec
        )
    });
    let seen = view.pods.iter().any(|pod| pod.facts.is_some());
    // A pod that was lost could not be read again.
    let read_again = missing.contains(&"get pods")
        && (faults().next().is_some() || view.pods.iter().any(|pod| pod.during.is_some()));
    seen && !refused && !read_again
}

/// The command that grants what is missing.
fn grant(seen: &RightsSeen, of_cluster: bool) -> String {
    format!(
        "check-interconnect rbac -n {}{} | kubectl apply -f - by somebody who may grant rights (--user, --group or \
         --service-account say to whom)",
        shell_word(&seen.namespace),
        if of_cluster { " --nodes" } else { "" }
    )
}
