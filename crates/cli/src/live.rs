//! Commands that look at something running. Until they are built they say so: skipped, never green.

use std::borrow::Cow;

use model::{CheckResult, Coverage, Grade, Readiness, Reason, Report, Status, Subject};

/// The honest report of a command that this version does not have.
pub(crate) fn not_built(command: &'static str) -> Report {
    let what = match command {
        "node" => "looking into pods",
        other => other,
    };
    let detail = format!("{what} is not part of this version: nothing was looked at");
    let result = CheckResult {
        name: Cow::Owned(format!("{command}/not-built")),
        status: Status::Skipped,
        detail: detail.clone(),
        cause: None,
        fix: Some(
            match command {
                "node" => {
                    "run check-interconnect node inside the worker's container, or judge the recipe with check-interconnect env PATH"
                }
                _ => "judge the recipe with check-interconnect env PATH; look into the worker by hand",
            }
            .to_owned(),
        ),
        reason: Some(Reason::NotBuilt),
        note: None,
        grade: Grade::Assumed,
        subject: Subject::default(),
        sources: Vec::new(),
        collective: false,
        required: true,
        deployment: None,
    };
    Report {
        command,
        scope: Vec::new(),
        deployments: Vec::new(),
        results: vec![result],
        transfers: Vec::new(),
        coverage: Coverage {
            facts_missing: 1,
            ..Coverage::default()
        },
        readiness: Readiness::Inconclusive,
        verdict: detail,
        next: Vec::new(),
        missing_path: false,
        broken_input: false,
        nothing_to_check: false,
        unreachable: false,
    }
}
