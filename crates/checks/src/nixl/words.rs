//! The verdict of `nixl` in one sentence, and what to do next.

use model::observation::Observation;
use model::{CheckResult, NextStep, Readiness, Status};

use crate::nixl::PAYLOAD;
use crate::nixl::payload_transport::{LANES, of_peers};
use crate::nixl::sides::{Side, TARGET};

/// How a verdict begins where no line tells anything about the payload.
pub(crate) const UNKNOWN: &str = "nothing in these logs tells what carried the payload";

pub(crate) fn verdict(readiness: Readiness, known: bool, results: &[CheckResult]) -> String {
    let first = |status| {
        results
            .iter()
            .find(|r| r.status == status && !r.collective)
            .map(|r| r.detail.clone())
            .unwrap_or_default()
    };
    let unknown = if known {
        ""
    } else {
        "; what carried the payload is not shown"
    };
    match readiness {
        Readiness::Blocked => format!(
            "KV transfer cannot be trusted here; fix first: {}{unknown}",
            first(Status::Fail)
        ),
        Readiness::Degraded => format!(
            "it can run, with gaps; look first at: {}{unknown}",
            first(Status::Warn)
        ),
        Readiness::Inconclusive => {
            let lacking = results
                .iter()
                .find(|r| r.status == Status::Skipped && r.required)
                .map(|r| r.detail.clone())
                .unwrap_or_default();
            let of_lanes = results
                .iter()
                .any(|r| r.name == PAYLOAD && r.cause == Some(LANES.id));
            if known {
                format!("the payload is shown in part; {lacking}")
            } else if of_lanes {
                format!("lanes only, which prove nothing about the payload; {lacking}")
            } else if lacking.starts_with(UNKNOWN) {
                lacking
            } else {
                format!("{UNKNOWN}; {lacking}")
            }
        }
        _ => {
            let payload = results
                .iter()
                .find(|r| {
                    r.name == PAYLOAD && r.status == Status::Ok && r.detail.contains("READ (get)")
                })
                .or_else(|| {
                    results
                        .iter()
                        .find(|r| r.name == PAYLOAD && r.status == Status::Ok)
                })
                .map(|r| r.detail.clone())
                .unwrap_or_default();
            format!(
                "by UCX's own protocol table {payload}; that is one kind of evidence, and no second one is in these logs"
            )
        }
    }
}

pub(crate) fn next(
    readiness: Readiness,
    known: bool,
    seen: &Observation,
    sides: &[Side],
    results: &[CheckResult],
) -> Vec<NextStep> {
    let worst = match readiness {
        Readiness::Blocked => Status::Fail,
        Readiness::Degraded => Status::Warn,
        _ => Status::Skipped,
    };
    let mut next = Vec::new();
    if let Some(cause) = results
        .iter()
        .find(|r| r.status == worst && !r.collective && r.cause.is_some())
        .and_then(|r| r.cause)
    {
        next.push(step(
            format!("check-interconnect explain {cause}"),
            "what it means, when it is no problem, and how to fix it",
            true,
        ));
    }
    if readiness == Readiness::Blocked {
        return next;
    }
    let asked = seen
        .process
        .environment
        .get("UCX_PROTO_INFO")
        .and_then(|f| f.value())
        .is_some_and(|v| matches!(v.as_str(), "y" | "yes" | "on" | "1" | "used"));
    let reads = sides
        .iter()
        .any(|side| of_peers(&side.seen.log).any(|t| t.operation == "get"));
    if !sides.is_empty() && sides.iter().all(|side| side.starts == Some(TARGET)) {
        next.push(step(
            "check-interconnect nixl --from INITIATOR.log TARGET.log".to_owned(),
            "only the side that starts the transfers (for vLLM's pull connector the decode worker) prints the table that counts",
            true,
        ));
    }
    if !known || !reads {
        next.push(if asked {
            step(
                "export PYTHONUNBUFFERED=1 UCX_PROTO_INFO=y UCX_LOG_FILE=stderr".to_owned(),
                "UCX_PROTO_INFO=y was set, and no table of a read came: send a request, and save the log of the side that starts the transfers to its end; lines of a process that is killed are lost otherwise",
                false,
            )
        } else {
            step(
                "export UCX_PROTO_INFO=y UCX_LOG_LEVEL=info".to_owned(),
                "start both workers with it, send a request, and read the logs of both again: UCX then prints what carries the payload, for each operation and memory kind",
                false,
            )
        });
    } else if readiness == Readiness::Unproven {
        next.push(step(
            "rdma resource show qp".to_owned(),
            "run on the worker's node while KV moves: queue pairs of the engine's process whose numbers advance are a second kind of evidence for RDMA",
            true,
        ));
    }
    next
}

fn step(command: String, why: &str, read_only: bool) -> NextStep {
    NextStep {
        command,
        why: why.to_owned(),
        read_only,
    }
}
