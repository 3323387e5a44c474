//! Why a transfer did not come about, or went the slow way.

use checks::{NodeFacts, judge_node};
use model::{CheckResult, Role};

use crate::record::Measurement;
use crate::side::Side;

/// What the checks of NIXL's and UCX's messages say about the output of both ends. The end is in the subject.
pub fn faults(measured: &Measurement) -> Vec<(Side, CheckResult)> {
    let mut all = Vec::new();
    for side in Side::ALL {
        let facts = NodeFacts {
            observation: probe::recognise(side.as_str(), &measured.ends.of(side).output),
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
                .filter(|result| result.name.starts_with("nixl/"))
                .map(|result| (side, result)),
        );
    }
    all
}
