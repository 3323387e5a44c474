//! Why a transfer did not come about, or went the slow way.

use std::sync::Arc;

use checks::{NodeFacts, judge_node};
use model::observation::{Fact, Origin, Provenance, Tool};
use model::{CheckResult, Grade, Role, Status, Subject};

use crate::message::Connection;
use crate::record::Measurement;
use crate::side::Side;

/// What the checks of NIXL's and UCX's messages say about the output of both ends.
pub fn faults(measured: &Measurement) -> Vec<(Side, CheckResult)> {
    let mut all = Vec::new();
    let mut seen = Vec::new();
    for side in Side::ALL {
        let end = measured.ends.of(side);
        let mut observation = probe::recognise(side.as_str(), &end.output);
        let from = Arc::new(Provenance {
            file: side.as_str().to_owned(),
            tool: Tool::Proc,
            section: 0,
            place: None,
            command: None,
        });
        // What it got is known better than what UCX prints of it: a value ends there at its first blank.
        for (name, value) in &end.settings {
            let fact = Fact::seen(value.clone(), Origin::whole(&from));
            observation.process.environment.insert(name.clone(), fact);
        }
        seen.push(observation.clone());
        let facts = NodeFacts {
            observation,
            role: Some(match side {
                Side::Prefill => Role::Prefill,
                Side::Decode => Role::Decode,
            }),
            saved: true,
            ..NodeFacts::default()
        };
        let report = judge_node("nixl", &facts, Vec::new());
        all.extend(
            report
                .results
                .into_iter()
                .filter(|result| {
                    result.name.starts_with("nixl/")
                        || result.name == "node/selected-devices"
                        // Of an agent beside the engine only its errors tell.
                        || (result.name == "node/locked-memory" && result.status == Status::Fail)
                })
                .map(|result| (side, result)),
        );
        if let Some(result) = end.unanswered().and_then(blocked) {
            all.push((side, result));
        }
    }
    // Two ends that differ and transfer all the same are no fault.
    if measured.stop.is_some()
        && let [prefill, decode] = seen.as_slice()
    {
        let ends = checks::judge_ends(prefill, decode);
        all.extend(ends.into_iter().map(|result| (Side::Decode, result)));
    }
    all.extend(crate::silent::silent(measured));
    all
}

/// A connection that is not answered, seen before UCX gives up.
fn blocked(stuck: &Connection) -> Option<CheckResult> {
    let (check, cause) = checks::cause("networkpolicy-blocks")?;
    Some(CheckResult {
        name: check.name.into(),
        status: Status::Fail,
        detail: format!(
            "connection to {}:{} is not answered",
            stuck.remote.0, stuck.remote.1
        ),
        cause: Some(cause.id),
        fix: Some(cause.fix.to_owned()),
        reason: None,
        note: None,
        grade: Grade::Observed,
        subject: Subject::default(),
        sources: Vec::new(),
        collective: false,
        required: false,
        deployment: None,
    })
}
