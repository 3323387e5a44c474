//! NIXL's LIBFABRIC backend uses EFA, with the same number of rails on both sides.
//!
//! The plugin tries Slingshot, EFA, then TCP, and never verbs: on InfiniBand and RoCE it is TCP, though its message
//! looks fine. Each network card is a rail; a peer that has fewer cannot be read.

use crate::check::{Cause, Check, Run};
use crate::env::kv_fabric::LIBFABRIC_ON_IB;
use crate::finding::{Finding, Findings};
use crate::node::words::count;
use crate::node_view::NodeView;

const NAME: &str = "nixl/libfabric";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "NIXL's LIBFABRIC backend uses EFA, alike on both sides",
    source: include_str!("libfabric.rs"),
    causes: &[RAILS],
    notes: &[],
    run: Run::Place(run),
};

const RAILS: Cause = Cause {
    id: "efa-rails-mismatch",
    what: "the peer's metadata lacks a rail that this side has",
    why: "the two sides have different numbers of network cards, or mixed backend settings: NIXL cannot connect them",
    fix: "request the same number of EFA devices on both roles, and choose one backend on both",
    quiet_if: "never",
    source: "NIXL libfabric_rail_manager.cpp",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let rails: Vec<_> = log
        .of("nixl-rail-tag")
        .filter(|e| e.field("key").is_some_and(|k| k.contains("_ep_")))
        .chain(log.of("nixl-rail-endpoints"))
        .collect();
    if let Some(first) = rails.first() {
        let key = rails.iter().find_map(|e| e.field("key"));
        let what = match key {
            Some(key) => format!("the peer has no rail endpoint {}", key.trim()),
            None => "the peer's rail endpoints cannot be read".to_owned(),
        };
        let origins: Vec<_> = rails.iter().map(|e| e.origin.clone()).collect();
        findings.push(
            Finding::fail(
                NAME,
                &RAILS,
                format!("{what}: the two sides have different numbers of rails"),
            )
            .read_at(
                if origins.is_empty() {
                    std::slice::from_ref(&first.origin)
                } else {
                    &origins
                },
                "log line",
            ),
        );
    }
    for event in log.of("nixl-libfabric-devices") {
        let provider = event.field("provider").unwrap_or_default().trim();
        let n: usize = event
            .field("count")
            .and_then(|n| n.trim().parse().ok())
            .unwrap_or(0);
        let at = std::slice::from_ref(&event.origin);
        let low = provider.to_ascii_lowercase();
        if low.starts_with("tcp") || low.starts_with("sockets") {
            findings.push(
                Finding::fail(
                    NAME,
                    &LIBFABRIC_ON_IB,
                    format!("LIBFABRIC found {provider} only: KV goes over sockets"),
                )
                .read_at(at, "log line"),
            );
        } else if n > 0 {
            findings.push(
                Finding::ok(
                    NAME,
                    format!(
                        "LIBFABRIC found {}",
                        count(n, &format!("{provider} device"))
                    ),
                )
                .note("hold the number against the other side's")
                .read_at(at, "log line"),
            );
        }
    }
    if log.of("nixl-libfabric-devices").next().is_none()
        && let Some(event) = log.of("nixl-libfabric-topology").next()
        && event
            .field("provider")
            .is_some_and(|p| p.trim().starts_with("tcp"))
    {
        findings.push(
            Finding::fail(
                NAME,
                &LIBFABRIC_ON_IB,
                "LIBFABRIC uses tcp: KV goes over sockets",
            )
            .read_at(std::slice::from_ref(&event.origin), "log line"),
        );
    }
}
