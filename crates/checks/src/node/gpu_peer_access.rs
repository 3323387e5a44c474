//! GPUs of the node reach each other's memory.
//!
//! `nvidia-smi topo -p2p` says what the driver offers. That is a capability, not a measurement: ACS can still break it.
//! Without it CUDA IPC and NCCL's peer-to-peer cannot work between these GPUs; KV between nodes is not touched.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::topology::P2pMatrix;

use super::words::count;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/gpu-peer-access";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "GPUs of the node reach each other's memory",
    source: include_str!("gpu_peer_access.rs"),
    causes: &[NO_ACCESS],
    notes: &[],
    run: Run::Place(run),
};

const NO_ACCESS: Cause = Cause {
    id: "gpu-no-peer-access",
    what: "the driver offers no peer access (P2P) between GPUs of the node",
    why: "CUDA IPC cannot work between them: KV between two engines of one node goes through host memory or the network card",
    fix: "GNS: the GPU does not offer it (consumer cards); CNS, TNS: chipset or slots; DR: switched off in the driver",
    quiet_if: "only atomics or NVLink were asked for (topo -p2p a, n); prefill and decode stand on different nodes",
    source: "nvidia-smi topo -p2p",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    for matrix in &view.seen.topology.p2p {
        of(matrix, findings);
    }
}

/// Words in place of a status.
fn words(status: &str) -> &'static str {
    match status {
        "CNS" => "chipset not supported",
        "GNS" => "GPU not supported",
        "TNS" => "topology not supported",
        "NS" => "not supported",
        "DR" => "disabled in the driver",
        _ => "unknown",
    }
}

fn of(matrix: &P2pMatrix, findings: &mut Findings) {
    let at = std::slice::from_ref(&matrix.origin);
    let (mut good, mut bad): (usize, BTreeMap<&str, Vec<String>>) = (0, BTreeMap::new());
    for (row, (name, cells)) in matrix.rows.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            let other = matrix.gpus.get(column);
            // Each pair stands twice; the upper half counts, and a lower cell whose row above is missing.
            let twice = other.is_some_and(|o| matrix.rows.iter().take(row).any(|(n, _)| n == o));
            if cell == "X" || other == Some(name) || twice {
                continue;
            }
            if cell == "OK" {
                good = good.saturating_add(1);
            } else {
                let pair = format!("{name}-{}", other.map_or("?", String::as_str));
                bad.entry(cell).or_default().push(pair);
            }
        }
    }
    let asked = match matrix.asked.as_deref() {
        Some("r") => " for reading",
        Some("w") => " for writing",
        Some("n") => " over NVLink",
        Some("a") => " for atomics",
        Some("p") => " over PCIe",
        _ => "",
    };
    if bad.is_empty() && matrix.cut {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("peer access (P2P){asked} is OK for the {} that are shown; the others are cut off", count(good, "GPU pair")),
            )
            .read_at(at, "peer access"),
        );
        return;
    }
    if bad.is_empty() {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "peer access (P2P){asked} is OK for all {}",
                    count(good, "GPU pair")
                ),
            )
            .note("what the driver offers, not a measurement")
            .read_at(at, "peer access"),
        );
        return;
    }
    for (status, pairs) in bad {
        let shown: Vec<&str> = pairs.iter().take(4).map(String::as_str).collect();
        let more = if pairs.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        let what = format!(
            "no peer access (P2P){asked} for {} of {} ({}{more}): {status}, {}",
            pairs.len(),
            count(good.saturating_add(pairs.len()), "GPU pair"),
            shown.join(", "),
            words(status)
        );
        let finding = if matches!(matrix.asked.as_deref(), Some("n" | "a")) {
            Finding::skipped(
                NAME,
                Reason::NotApplicable,
                format!("{what}; copies do not need it"),
            )
        } else {
            Finding::warn(NAME, &NO_ACCESS, what)
        };
        findings.push(finding.read_at(at, "peer access"));
    }
}
