//! Workers that share a node's network do not announce the same side channel.
//!
//! On the network of their node (`hostNetwork`) two engines have one address. With the same port the second one cannot
//! listen, or their peers reach the wrong one: metadata of another worker arrives, and KV goes to the wrong memory or
//! nowhere. A recipe shows that only where both are in one file and on one node; here it is seen.

use std::collections::BTreeMap;

use model::Grade;

use super::listed;
use super::view::{GroupView, about};
use crate::check::{Check, Run};
use crate::env::side_channel::PORT_CLASH;
use crate::finding::{Finding, Findings};
use crate::pod::view::PodView;

const NAME: &str = "pair/side-channel";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "workers on one node's network announce different side channels",
    source: include_str!("side_channel.rs"),
    // That of env/side-channel.
    causes: &[],
    notes: &[],
    run: Run::Group(run),
};

const PORT: &str = "VLLM_NIXL_SIDE_CHANNEL_PORT";

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let mut places: BTreeMap<(&str, String), Vec<&PodView<'_>>> = BTreeMap::new();
    for pod in view.kv().filter(|pod| pod.object.host_network) {
        let port = pod
            .live
            .filter(|live| live.environment.is_none())
            .and_then(|live| live.worker.literal(PORT));
        if let (Some(node), Some(port)) = (pod.object.node.as_deref(), port) {
            places
                .entry((node, port.trim().to_owned()))
                .or_default()
                .push(pod);
        }
    }
    for ((node, port), pods) in places {
        if pods.len() < 2 {
            continue;
        }
        let names: Vec<&str> = pods.iter().map(|pod| pod.object.name.as_str()).collect();
        let finding = Finding::fail(
            NAME,
            &PORT_CLASH,
            format!(
                "{} share the network of node {node}, and all announce port {port}",
                listed(&names)
            ),
        );
        findings.push(about(finding.grade(Grade::Observed), pods));
    }
}
