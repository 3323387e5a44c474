//! What the engine process has, where it is not what the pod's spec says.
//!
//! A start script, the image, a Secret or the container runtime can set what the spec does not, or replace it. What the
//! process has is what is judged; the difference is told with both values, since who reads the spec believes the other
//! one. Where the process cannot be read, the spec is judged, and this says so. A worker whose container runs no engine
//! is not judged by its spec alone: what would be judged is not there, and the verdict is inconclusive.

use settings::catalogue::{self, Relevance};

use super::view::PodView;
use crate::check::{Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/live-settings";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "what the engine process has, where the pod's spec says otherwise",
    source: include_str!("live_settings.rs"),
    causes: &[],
    notes: &[],
    run: Run::Pod(run),
};

/// Whether a name can change or break the path. Flags and keys of an engine's configuration are kept only where they can.
fn matters(name: &str) -> bool {
    !model::is_variable(name)
        || catalogue::lookup(name)
            .is_some_and(|v| matches!(v.relevance, Relevance::Critical | Relevance::Relevant))
}

/// Names that a line lists.
const NAMES: usize = 8;

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let Some(live) = view.live.filter(|_| view.facts.is_some()) else {
        return;
    };
    let mut judged = Vec::new();
    if let Some(missing) = &live.environment {
        judged.push(("environment", missing));
    }
    if let Some(missing) = &live.flags {
        judged.push(("command line", missing));
    }
    if let Some((_, first)) = judged.first() {
        let what: Vec<&str> = judged.iter().map(|(what, _)| *what).collect();
        // Where the look ended before it reached the processes, nothing is known of them; node/collection tells that.
        let looked = view.seen().is_some_and(|s| s.process.looked.is_seen());
        let no_engine = live.process.is_none() && looked;
        // The reason names a file of one process.
        let why = if no_engine {
            "no engine process was seen".to_owned()
        } else if live.process.is_none() {
            "the processes were not looked at".to_owned()
        } else {
            format!(
                "that of the engine could not be read ({})",
                first.reason.as_str()
            )
        };
        let finding = Finding::skipped(
            NAME,
            first.reason,
            format!(
                "the pod's spec is judged in place of the {}: {why}",
                what.join(" and the ")
            ),
        )
        .note("a start script, the image or a Secret may set something else");
        // What could not be read of a process that is there, node/collection requires.
        findings.push(if no_engine && view.moves_kv() {
            finding
                .fix("look again when the engine serves; where another container runs it, name that one with -c")
                .required()
        } else {
            finding
        });
    }
    let mut added = Vec::new();
    for differs in live.differs.iter().filter(|d| matters(&d.name)) {
        let name = &differs.name;
        let at = |finding: Finding| finding.at(&differs.place, "live process");
        match (&differs.spec, &differs.live) {
            (Some(spec), Some(live)) => findings.push(at(Finding::ok(
                NAME,
                format!("{name} is {live} in the engine process"),
            )
            .note(format!(
                "the pod's spec says {spec}; a start script, the image or the runtime replaced it"
            ))
            .grade(model::Grade::Observed))),
            (Some(spec), None) => findings.push(at(Finding::ok(
                NAME,
                format!("{name} is not set in the engine process"),
            )
            .note(format!(
                "the pod's spec says {spec}; a start script removed it, or the engine began before it"
            ))
            .grade(model::Grade::Observed))),
            (None, Some(live)) => added.push((name.as_str(), live.as_str(), &differs.place)),
            (None, None) => {}
        }
    }
    if let Some((_, _, place)) = added.first() {
        let mut list: Vec<String> = added
            .iter()
            .take(NAMES)
            .map(|(name, live, _)| format!("{name}={live}"))
            .collect();
        if added.len() > NAMES {
            list.push(format!("{} more", added.len().saturating_sub(NAMES)));
        }
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "set in the engine process and not in the pod's spec: {}",
                    list.join(", ")
                ),
            )
            .note("a start script, the image, a ConfigMap, a Secret or the runtime set it")
            .grade(model::Grade::Observed)
            .at(place, "live process"),
        );
    }
}
