//! NIXL's LIBFABRIC backend uses EFA, with as many rails as its peer.
//!
//! The backend picks `cxi`, `efa`, `tcp` or `sockets`, never `verbs`, and its success message looks the same for TCP.

use crate::check::{Cause, Check, Run};
use crate::env::kv_fabric::LIBFABRIC_ON_IB;
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "nixl/libfabric";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "NIXL's LIBFABRIC backend uses EFA",
    source: include_str!("libfabric.rs"),
    causes: &[RAILS, PAGES, NOT_LOADED],
    notes: &[],
    run: Run::Place(run),
};

const RAILS: Cause = Cause {
    id: "efa-rails-mismatch",
    what: "the peer's metadata lacks a rail that this side has",
    why: "prefill and decode have different numbers of network cards, or different backends: they cannot connect",
    fix: "give both sides the same number of cards and the same backend settings",
    quiet_if: "no line says that a rail endpoint could not be read",
    source: "ai-dynamo/nixl src/plugins/libfabric (data rail endpoints); NVIDIA/TensorRT-LLM#10024",
};

const PAGES: Cause = Cause {
    id: "efa-64k-page",
    what: "libfabric could not register memory (fi_mr_reg: Bad address)",
    why: "libfabric before 2.5 fails on machines with pages of 64 kB (GB200); elsewhere the container lacks the right to pin GPU memory",
    fix: "use libfabric 2.5 or newer, or an EFA installer that has it; elsewhere run the container privileged",
    quiet_if: "no registration fails",
    source: "ofiwg/libfabric#12019; fi_mr(3)",
};

const NOT_LOADED: Cause = Cause {
    id: "libfabric-plugin-not-loaded",
    what: "NIXL could not load its LIBFABRIC plugin",
    why: "the line is only INFO: the engine goes on with another backend, or fails with NIXL_ERR_NOT_FOUND",
    fix: "put the library that the line names into the image",
    quiet_if: "LIBFABRIC is not the backend that was asked for: then it is a note",
    source: "ai-dynamo/nixl src/core/nixl_plugin_manager.cpp (Failed to load plugin from)",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    // A tag of something else is a matter of versions (nixl/messages).
    let tags = || {
        log.of("nixl-rail-tag")
            .filter(|e| e.field("key").is_some_and(|k| k.contains("_ep_")))
    };
    let rails = tags()
        .chain(log.of("nixl-rail-key"))
        .chain(log.of("nixl-rail-endpoints"))
        .next();
    if let Some(event) = rails {
        let key = tags()
            .chain(log.of("nixl-rail-key"))
            .find_map(|e| e.field("key"))
            .map(|key| format!(" ({key})"))
            .unwrap_or_default();
        findings.push(
            Finding::fail(
                NAME,
                &RAILS,
                format!("the peer's metadata lacks a rail endpoint{key}: the two sides have different numbers of rails or different backends"),
            )
            .read_at(std::slice::from_ref(&event.origin), "rail"),
        );
    }
    let registration = log.of("libfabric-registration-failed").find(|e| {
        e.field("error").is_some_and(|text| {
            text.contains("Bad address") || text.contains("EFAULT") || text.contains("-14")
        })
    });
    if let Some(event) = registration {
        findings.push(
            Finding::fail(
                NAME,
                &PAGES,
                "libfabric could not register memory: Bad address",
            )
            .read_at(std::slice::from_ref(&event.origin), "error"),
        );
    }
    if let Some(event) = log.of("libfabric-retrying").next() {
        findings.push(
            Finding::warn(
                NAME,
                &crate::env::efa::SAME_NODE,
                "libfabric repeats a read again and again (EAGAIN): EFA has no loopback for two pods of one node",
            )
            .read_at(std::slice::from_ref(&event.origin), "retry"),
        );
    }
    plugin(view, findings);
    devices(view, findings);
}

fn plugin(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let failed = log.of("nixl-plugin-not-loaded").find(|e| {
        e.field("path")
            .is_some_and(|p| p.to_ascii_uppercase().contains("LIBFABRIC"))
    });
    let Some(event) = failed else { return };
    let asked = log
        .of("nixl-backend-unsupported")
        .chain(log.of("nixl-backend-failed"))
        .any(|e| e.field("backend").is_some_and(|b| b == "LIBFABRIC"));
    let detail = format!(
        "NIXL could not load its LIBFABRIC plugin: {}",
        event.field("error").unwrap_or("no reason told")
    );
    let place = std::slice::from_ref(&event.origin);
    findings.push(if asked {
        Finding::fail(NAME, &NOT_LOADED, detail).read_at(place, "not loaded")
    } else {
        Finding::skipped(NAME, model::Reason::NotApplicable, "LIBFABRIC is not used")
            .note(detail)
            .read_at(place, "not loaded")
    });
}

/// What the backend says that it found.
fn devices(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    let found: Vec<_> = log
        .of("nixl-libfabric-devices")
        .chain(log.of("nixl-libfabric-topology"))
        .collect();
    let provider = |e: &&model::observation::log::Event, names: &[&str]| {
        e.field("provider")
            .is_some_and(|p| names.contains(&p.to_ascii_lowercase().as_str()))
    };
    if let Some(event) = found
        .iter()
        .copied()
        .find(|e| provider(e, &["tcp", "sockets"]))
    {
        findings.push(
            Finding::fail(NAME, &LIBFABRIC_ON_IB, "NIXL's LIBFABRIC backend uses TCP")
                .fix("use the UCX backend on InfiniBand and RoCE; on EFA give the container its devices")
                .read_at(std::slice::from_ref(&event.origin), "provider"),
        );
    } else if let Some(event) = found.iter().copied().find(|e| provider(e, &["efa", "cxi"])) {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "NIXL's LIBFABRIC backend found {} {} devices",
                    event.field("count").unwrap_or("some"),
                    event.field("provider").unwrap_or_default()
                ),
            )
            .read_at(std::slice::from_ref(&event.origin), "provider"),
        );
    }
}
