//! What the engine's own metrics say: whether anything was transferred, and whether transfers failed.
//!
//! vLLM counts transfers (`vllm:nixl_*`), NIXL's telemetry counts bytes and errors (`agent_*`). None has a word about the
//! transport: numbers here tell that disaggregation is used, and never over what. In vLLM's pull connector the decode
//! worker reads, so that a prefill worker counts nothing.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::nixl::Scrape;

use super::view::NixlView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "nixl/metrics";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the engine's metrics of KV transfers",
    source: include_str!("metrics.rs"),
    causes: &[FAILED, EXPIRED],
    notes: &[],
    run: Run::Nixl(run),
};

const FAILED: Cause = Cause {
    id: "nixl-transfers-failed",
    what: "the engine counts KV transfers that failed",
    why: "their requests are computed again, or answered wrongly where the engine goes on without the KV",
    fix: "look at the engine's log for the error, and at the other side's",
    quiet_if: "all counters of failures are 0; a peer was stopped since the engine started",
    source: "vLLM vllm:nixl_num_failed_transfers, _failed_notifications; NIXL telemetry agent_errors_total",
};

const EXPIRED: Cause = Cause {
    id: "nixl-kv-expired",
    what: "the engine counts requests whose KV nobody fetched in time",
    why: "the decode worker computes them again; it never came, came too late, or could not",
    fix: "look at the decode workers: whether they reach this side channel, and how long they queue",
    quiet_if: "the counter is 0; requests that clients have cancelled",
    source: "vLLM vllm:nixl_num_kv_expired_reqs",
};

/// A counter under its name, with or without the ending that exporters add.
fn value(values: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    values
        .get(name)
        .or_else(|| values.get(&format!("{name}_total")))
        .copied()
}

fn sum(values: &BTreeMap<String, f64>, names: &[&str]) -> Option<f64> {
    let found: Vec<f64> = names.iter().filter_map(|n| value(values, n)).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

fn run(view: &NixlView<'_>, findings: &mut Findings) {
    let Some(seen) = view.trial() else { return };
    let scrapes = &seen.trial.metrics;
    let told: Vec<&Scrape> = scrapes.iter().filter(|s| !s.values.is_empty()).collect();
    if told.is_empty() {
        if scrapes.is_empty() {
            return;
        }
        let ports: Vec<String> = scrapes
            .iter()
            .map(|s| match &s.error {
                Some(error) => format!("{} ({}): {error}", s.port, s.named_by),
                None => format!("{} ({}): none about KV transfers", s.port, s.named_by),
            })
            .collect();
        findings.push(Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("no metrics of KV transfers at port {}", ports.join(", ")),
        ));
        return;
    }
    for scrape in told {
        of(scrape, findings);
    }
}

fn of(scrape: &Scrape, findings: &mut Findings) {
    let values = &scrape.values;
    let observed = |finding: Finding| finding.grade(model::Grade::Observed);
    let failed = sum(
        values,
        &[
            "vllm:nixl_num_failed_transfers",
            "vllm:nixl_num_failed_notifications",
            "agent_errors",
            "sglang:num_transfer_failed_reqs",
        ],
    );
    if let Some(failed) = failed.filter(|n| *n > 0.0) {
        findings.push(observed(Finding::warn(
            NAME,
            &FAILED,
            format!(
                "port {}: {failed} KV transfers failed since the engine started",
                scrape.port
            ),
        )));
    }
    if let Some(expired) = value(values, "vllm:nixl_num_kv_expired_reqs").filter(|n| *n > 0.0) {
        findings.push(observed(Finding::warn(
            NAME,
            &EXPIRED,
            format!(
                "port {}: the KV of {expired} requests expired before anybody fetched it",
                scrape.port
            ),
        )));
    }
    let bytes = sum(
        values,
        &[
            "vllm:nixl_bytes_transferred_sum",
            "agent_tx_bytes",
            "agent_rx_bytes",
        ],
    );
    let count = sum(
        values,
        &[
            "vllm:nixl_xfer_time_seconds_count",
            "agent_tx_requests_num",
            "agent_rx_requests_num",
        ],
    );
    match (bytes, count) {
        (None, None) => {}
        (bytes, count) if bytes.unwrap_or(0.0) > 0.0 || count.unwrap_or(0.0) > 0.0 => {
            let mut words = Vec::new();
            if let Some(count) = count {
                words.push(format!("{count} transfers"));
            }
            if let Some(bytes) = bytes {
                words.push(format!("{:.1} MB", bytes / 1e6));
            }
            findings.push(observed(
                Finding::ok(
                    NAME,
                    format!(
                        "port {}: {} since the engine started",
                        scrape.port,
                        words.join(", ")
                    ),
                )
                .note("no metric tells the transport"),
            ));
        }
        _ => findings.push(observed(
            Finding::skipped(
                NAME,
                Reason::NotRunning,
                format!(
                    "port {}: this engine has started no KV transfer since it runs",
                    scrape.port
                ),
            )
            .note(
                "the side that does not start transfers counts none; else no request came this way",
            ),
        )),
    }
}
