//! Everything of a report but its results, as `json` and `jsonl` write it: what was asked, and what came out. The
//! verdicts per deployment are many in a large run, so each format makes them one by one in its own way.

use model::report_v1::{SummaryV1, ToolV1};
use model::verdict::Counts;
use model::{Coverage, NextStep, ObservedTraffic, Readiness, Report, Transfer};
use serde::Serialize;

/// What stands before the results.
#[derive(Serialize)]
pub(crate) struct Asked {
    schema: String,
    tool: ToolV1,
    command: String,
    scope: Vec<String>,
}

/// What stands behind them.
#[derive(Serialize)]
pub(crate) struct Outcome<D> {
    counts: Counts,
    verdict: String,
    readiness: Readiness,
    transfer_validated: bool,
    coverage: Coverage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transfers: Vec<Transfer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<ObservedTraffic>,
    deployments: D,
    next: Vec<NextStep>,
}

pub(crate) fn of<D>(report: &Report, version: &str, deployments: D) -> (Asked, Outcome<D>) {
    // Named one by one, so that a field that is added there cannot be forgotten here.
    let SummaryV1 {
        schema,
        tool,
        command,
        scope,
        counts,
        verdict,
        readiness,
        transfer_validated,
        coverage,
        transfers,
        observed,
        deployments: _,
        next,
    } = SummaryV1::without_deployments(report, version);
    let asked = Asked {
        schema,
        tool,
        command,
        scope,
    };
    let outcome = Outcome {
        counts,
        verdict,
        readiness,
        transfer_validated,
        coverage,
        transfers,
        observed,
        deployments,
        next,
    };
    (asked, outcome)
}
