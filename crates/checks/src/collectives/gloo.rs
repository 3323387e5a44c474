//! Gloo reaches the other ranks.
//!
//! Engines start their ranks over Gloo. It carries no KV, but an engine whose ranks do not meet never starts.

use crate::check::{Cause, Check, Run};
use crate::env::setting_notes::GLOO_CARET;
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "collectives/gloo";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "Gloo reaches the other ranks",
    source: include_str!("gloo.rs"),
    causes: &[LOOPBACK],
    notes: &[],
    run: Run::Place(run),
};

const LOOPBACK: Cause = Cause {
    id: "gloo-loopback-hostnetwork",
    what: "Gloo could not resolve the host's own name and uses the loopback address",
    why: "ranks on other nodes connect to themselves: an engine over several nodes does not start",
    fix: "set GLOO_SOCKET_IFNAME to the interface that reaches the other nodes",
    quiet_if: "all ranks are on one node (then it is a warning, as long as nobody fails to connect)",
    source: "pytorch torch/csrc/distributed/c10d (ProcessGroupGloo, createDefaultDevice); aws-samples/aws-do-eks#50",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    if let Some(event) = log.of("gloo-loopback").next() {
        let place = std::slice::from_ref(&event.origin);
        let to_itself = log.of("gloo-connect-failed").find(|e| {
            e.field("host")
                .is_some_and(|h| h.starts_with("127.") || h == "::1" || h == "localhost")
        });
        let detail = "Gloo uses the loopback address, because the host's name does not resolve; GLOO_SOCKET_IFNAME sets the interface";
        findings.push(match to_itself {
            Some(failed) => Finding::fail(
                NAME,
                &LOOPBACK,
                format!(
                    "{detail}; a rank then failed to connect to {}",
                    failed.field("host").unwrap_or("itself")
                ),
            )
            .read_at(place, "loopback"),
            None => Finding::warn(NAME, &LOOPBACK, detail)
                .read_at(place, "loopback")
                .collective(),
        });
    }
    if let Some(event) = log.of("gloo-no-address").next() {
        let name = event.field("interface").unwrap_or_default();
        let hint = if name.starts_with('^') {
            ": ^ is NCCL's syntax"
        } else {
            ""
        };
        findings.push(
            Finding::fail(
                NAME,
                &GLOO_CARET,
                format!("GLOO_SOCKET_IFNAME={name} is no interface here{hint}"),
            )
            .read_at(std::slice::from_ref(&event.origin), "no address"),
        );
    }
}
