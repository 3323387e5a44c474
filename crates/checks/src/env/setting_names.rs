//! Transport variables are spelt as the libraries read them.
//!
//! UCX warns of a variable that nothing used; NCCL and libfabric say nothing. A misspelt name leaves the default
//! in force while the recipe seems to set something. Names are compared with everything that UCX (1.10 to 1.23)
//! and NCCL (2.18 to 2.30) read and with the catalogue; what is close to one of them is taken for a slip.

use crate::check::{Cause, Check};
use crate::finding::{Finding, Findings};
use crate::view::View;

const NAME: &str = "env/setting-names";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "transport variables are spelt as the libraries read them",
    source: include_str!("setting_names.rs"),
    causes: &[TYPO],
    notes: &[],
    run,
};

const TYPO: Cause = Cause {
    id: "setting-name-typo",
    what: "a variable that nothing reads, one slip away from one that matters",
    why: "it has no effect: the default stays in force",
    fix: "correct the name",
    quiet_if: "the name is read by a known UCX or NCCL release, or is far from any of them",
    source: "UCX parser.c:2493-2578 (unused environment variable); name lists by version",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        for name in &kv.worker.unknown_names {
            let Some(right) = settings::known_names::did_you_mean(&name.value) else {
                continue;
            };
            findings.push(
                Finding::warn(
                    NAME,
                    &TYPO,
                    format!("nothing reads {}: did you mean {right}?", name.value),
                )
                .fix(format!("rename it to {right}"))
                .worker(kv.worker)
                .at(
                    &name.place,
                    format!("{}: {} has no effect", kv.worker.role.as_str(), name.value),
                ),
            );
        }
    }
}
