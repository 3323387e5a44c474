//! Transport variables that commonly matter and that the recipe does not set, with what then happens.
//!
//! Unset is usually right: UCX picks by itself, and the image or the operator may set more. So this is told as
//! one result for each deployment, and it is a warning only where nothing else shows that a fabric was thought
//! of. It is never told of aggregated recipes, jobs, patches, or workers whose KV does not go over UCX.

use model::{Grade, Hidden, Role, Worker};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::View;

const NAME: &str = "env/missing-settings";

/// Variables that people look for first.
const COMMON: [&str; 3] = ["UCX_TLS", "UCX_NET_DEVICES", "UCX_IB_GPU_DIRECT_RDMA"];

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "what commonly matters and is not set",
    source: include_str!("missing_settings.rs"),
    causes: &[NOTHING_SET],
    notes: &[],
    run: Run::Recipe(run),
};

const NOTHING_SET: Cause = Cause {
    id: "no-fabric-and-no-transport-setting",
    what: "no fabric is asked for and no transport variable is set",
    why: "UCX picks by itself among what the container sees; without RDMA devices that is TCP",
    fix: "request the cluster's RDMA resource on both roles; transport variables can stay unset",
    quiet_if: "any fabric is asked for; both roles on one host; another library carries KV; a patch",
    source: "UCX defaults (ucp_context.c:659-675)",
};

/// What may set variables that the input does not show.
fn set_elsewhere(workers: &[&Worker]) -> Option<String> {
    let mut from: Vec<&str> = Vec::new();
    for (what, why) in workers.iter().flat_map(|w| &w.hidden) {
        if matches!(what, Hidden::Environment | Hidden::Secret) && !from.contains(&why.as_str()) {
            from.push(why);
        }
    }
    (!from.is_empty()).then(|| from.join("; "))
}

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.is_part()
        || view.kv.is_empty()
        || !view.kv.iter().all(|w| w.path.may_use_ucx() && !w.is_mock())
    {
        return;
    }
    let workers: Vec<&Worker> = view.kv.iter().map(|w| w.worker).collect();
    let unset: Vec<&str> = COMMON
        .iter()
        .copied()
        .filter(|n| workers.iter().all(|w| w.setting(n).is_none()))
        .collect();
    if unset.is_empty() {
        return;
    }
    let list: Vec<String> = unset
        .iter()
        .map(|n| format!("{n} ({})", settings::effect::describe_unset(n)))
        .collect();
    let detail = format!("not set: {}", list.join("; "));
    // A chart may add both.
    let deliberate = view.deployment.partial == Some(model::Partial::Values)
        || view.asks_for_fabric()
        || view.kv.iter().any(|w| w.fabric.open_claim.is_some())
        || view.is_single_host()
        || unset.len() < COMMON.len()
        || workers
            .iter()
            .any(|w| w.privileged || w.host_network || w.is_open())
        || findings
            .results()
            .iter()
            .any(|r| r.name == "env/kv-fabric" && r.status == model::Status::Ok);
    let mut finding = if deliberate {
        Finding::ok(NAME, detail)
    } else {
        Finding::warn(NAME, &NOTHING_SET, detail)
    };
    finding = match set_elsewhere(&workers) {
        Some(from) => finding.note(format!("may come from elsewhere: {from}")),
        None => finding.note("the image or the operator may set more"),
    }
    .grade(Grade::Assumed);
    for role in [Role::Prefill, Role::Decode] {
        if view.role(role).next().is_some() {
            finding = finding.role(role);
        }
    }
    findings.push(finding);
}
