//! What to do after `nixl` has looked at an engine.

use model::{CheckResult, NextStep, Readiness, Status};

use crate::node_view::NodeFacts;

fn step(command: String, why: &str, read_only: bool) -> NextStep {
    NextStep {
        command,
        why: why.to_owned(),
        read_only,
    }
}

/// What explains the worst finding.
pub(super) fn explain(readiness: Readiness, results: &[CheckResult]) -> Vec<NextStep> {
    let is_worst = |r: &&CheckResult| match readiness {
        Readiness::Blocked => r.status == Status::Fail,
        Readiness::Degraded => r.status == Status::Warn,
        _ => r.status == Status::Skipped && r.required,
    };
    results
        .iter()
        .filter(|r| !r.collective)
        .find(is_worst)
        .and_then(|r| r.cause)
        .map(|cause| {
            step(
                format!("check-interconnect explain {cause}"),
                "what it means, when it is no problem, and how to fix it",
                true,
            )
        })
        .into_iter()
        .collect()
}

/// On a host: how to look at pods.
pub(super) fn on_host(facts: &NodeFacts) -> Vec<NextStep> {
    if facts.observation.process.processes.is_empty() {
        vec![step(
            "check-interconnect nixl --all".to_owned(),
            "look into the KV workers of the kubeconfig's namespace",
            true,
        )]
    } else {
        Vec::new()
    }
}
