//! Prefill and decode workers that are to use multi-node NVLink are in one clique of it.
//!
//! GPUs reach each other over NVLink across machines only inside of one clique of one cluster, which the driver tells
//! (`nvidia-smi -q`, Fabric). Scheduled into two, both look healthy, and KV goes over the network.

use std::collections::{BTreeMap, BTreeSet};

use model::{Grade, Role};

use super::listed;
use super::view::{GroupView, about};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::pod::view::PodView;

const NAME: &str = "pair/nvlink-clique";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode workers are in one NVLink clique, where that is meant",
    source: include_str!("nvlink.rs"),
    causes: &[DIFFERENT],
    notes: &[],
    run: Run::Group(run),
};

const DIFFERENT: Cause = Cause {
    id: "fabric-different-clique",
    what: "GPUs of prefill and of decode workers are in different cliques of the NVLink fabric",
    why: "no NVLink leads from one to the other: KV goes over RDMA or TCP although an IMEX channel was given",
    fix: "schedule both roles into one clique: one ComputeDomain for both, or topology constraints by nvidia.com/gpu.clique",
    quiet_if: "one clique; no IMEX channel in the containers; the driver tells no clique; a note only where both have RDMA ports that are active",
    source: "nvidia-smi -q (Fabric); NVIDIA IMEX; NVIDIA/TensorRT-LLM#6085",
};

/// The clique of a worker's GPUs; none where it tells of none or of several.
fn clique(pod: &PodView<'_>) -> Option<String> {
    let mut cliques: BTreeSet<String> = BTreeSet::new();
    for gpu in &pod.seen()?.gpu.gpus {
        let cluster = gpu.fabric.cluster_uuid.value()?;
        let clique = gpu.fabric.clique.value()?;
        if cluster.chars().all(|c| c == '0' || c == '-') {
            return None;
        }
        cliques.insert(format!("{cluster}.{clique}"));
    }
    let mut cliques = cliques.into_iter();
    match (cliques.next(), cliques.next()) {
        (Some(one), None) => Some(one),
        _ => None,
    }
}

fn has_channel(pod: &PodView<'_>) -> bool {
    pod.seen()
        .and_then(|seen| seen.gpu.imex.channels.value())
        .is_some_and(|channels| !channels.is_empty())
}

fn has_rdma(pod: &PodView<'_>) -> bool {
    super::rails::Rails::of(pod).is_some_and(|rails| rails.active_count() > 0)
}

fn run(view: &GroupView<'_>, findings: &mut Findings) {
    let meant: Vec<&PodView<'_>> = view.kv().filter(|pod| has_channel(pod)).collect();
    let mut cliques: BTreeMap<String, Vec<&PodView<'_>>> = BTreeMap::new();
    for pod in meant {
        if let Some(clique) = clique(pod) {
            cliques.entry(clique).or_default().push(pod);
        }
    }
    let roles = |pods: &[&PodView<'_>]| -> BTreeSet<Role> {
        pods.iter().filter_map(|pod| pod.role).collect()
    };
    let all: Vec<&PodView<'_>> = cliques.values().flatten().copied().collect();
    let both = [Role::Prefill, Role::Decode];
    if !both.iter().all(|role| roles(&all).contains(role)) {
        return;
    }
    if let [(clique, pods)] = cliques.iter().collect::<Vec<_>>().as_slice() {
        findings.push(about(
            Finding::ok(
                NAME,
                format!(
                    "all {} workers with an IMEX channel are in clique {clique}",
                    pods.len()
                ),
            )
            .grade(Grade::Observed),
            pods.iter().copied(),
        ));
        return;
    }
    let most = cliques
        .iter()
        .max_by_key(|(_, pods)| pods.len())
        .map(|(clique, _)| clique.clone())
        .unwrap_or_default();
    for (clique, pods) in &cliques {
        if *clique == most {
            continue;
        }
        let names: Vec<&str> = pods.iter().map(|pod| pod.object.name.as_str()).collect();
        let detail = format!(
            "{} in clique {clique}, the others in {most}",
            listed(&names)
        );
        let finding = if all.iter().all(|pod| has_rdma(pod)) {
            Finding::ok(NAME, detail).note("KV between them goes over RDMA, not over NVLink")
        } else {
            Finding::fail(NAME, &DIFFERENT, detail)
        };
        findings.push(about(finding.grade(Grade::Observed), pods.iter().copied()));
    }
}
