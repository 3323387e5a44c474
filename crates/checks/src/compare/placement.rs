//! Prefill and decode workers that move KV over EFA are on different nodes.
//!
//! EFA has no way back into the same host for this path: two workers of one node that are to transfer over it stall. A
//! recipe shows only whether they may meet (no anti-affinity); here it is seen that they do.

use std::collections::BTreeMap;

use model::{Grade, Role};

use super::listed;
use super::rails::Rails;
use super::view::{GroupView, about};
use crate::check::{Check, Run};
use crate::env::efa::SAME_NODE;
use crate::finding::{Finding, Findings};
use crate::node::ports::Fabric;
use crate::pod::view::PodView;

const NAME: &str = "pair/placement";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode workers that use EFA are on different nodes",
    source: include_str!("placement.rs"),
    // That of env/efa.
    causes: &[],
    notes: &[],
    run: Run::Group(run),
};

/// Nothing but EFA carries what leaves this worker.
fn over_efa(pod: &PodView<'_>) -> bool {
    Rails::of(pod).is_some_and(|rails| {
        let fabrics = rails.fabrics();
        fabrics.len() == 1 && fabrics.contains(&Fabric::Efa)
    })
}

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let mut nodes: BTreeMap<&str, [Vec<&PodView<'_>>; 2]> = BTreeMap::new();
    for pod in view.kv().filter(|pod| over_efa(pod)) {
        let Some(node) = pod.object.node.as_deref() else {
            continue;
        };
        let [prefill, decode] = nodes.entry(node).or_default();
        match pod.role {
            Some(Role::Prefill) => prefill.push(pod),
            Some(Role::Decode) => decode.push(pod),
            _ => {}
        }
    }
    for (node, [prefill, decode]) in nodes {
        if prefill.is_empty() || decode.is_empty() {
            continue;
        }
        let names = |pods: &[&PodView<'_>]| {
            let names: Vec<String> = pods.iter().map(|pod| pod.object.name.clone()).collect();
            listed(&names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let detail = format!(
            "prefill ({}) and decode ({}) share node {node}, and transfer over EFA",
            names(&prefill),
            names(&decode)
        );
        let pods: Vec<&PodView<'_>> = prefill.into_iter().chain(decode).collect();
        findings.push(about(
            Finding::warn(NAME, &SAME_NODE, detail).grade(Grade::Observed),
            pods,
        ));
    }
}
