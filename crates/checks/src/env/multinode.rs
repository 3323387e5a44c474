//! Every rank of a worker that spans nodes has what its first one has.
//!
//! A LeaderWorkerSet and its kin have a template for the leader and one for the others; each rank moves its own part
//! of the KV cache, so a fabric or a transport setting in one template only leaves the others on TCP. Dynamo starts
//! TensorRT-LLM over several nodes with mpirun, which hands on the variables of the container's `env` list; what
//! comes from `envFrom` or from an export in the start script stays with the first rank.

use model::{Engine, Form, GroupPart, Worker};

use crate::check::{Cause, Check, Run};
use crate::fabric::{self, Fabric};
use crate::finding::{Finding, Findings};
use crate::kv_path::{self, Connector};
use crate::view::{View, WorkerView};

const NAME: &str = "env/multinode";

/// Variables that have to be the same in every rank's template.
const SHARED: [&str; 4] = [
    "UCX_TLS",
    "UCX_NET_DEVICES",
    "UCX_IB_GPU_DIRECT_RDMA",
    "SGLANG_MOONCAKE_CUSTOM_MEM_POOL",
];

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "every rank of a worker has the fabric and settings of its first",
    source: include_str!("multinode.rs"),
    causes: &[PARTIAL, RANKS],
    notes: &[],
    run: Run::Recipe(run),
};

const PARTIAL: Cause = Cause {
    id: "lws-grove-partial-patch",
    what: "the leader's template asks for a fabric or sets a transport variable and the workers' template does not, or the reverse",
    why: "ranks on the other pods have no RDMA device or another transport list: their part of the KV cache goes over TCP, or not at all",
    fix: "give both templates the same resources, claims and transport variables (a YAML anchor keeps them together)",
    quiet_if: "both templates agree, or share a block by an anchor; only one template exists; the pods without it hold no accelerator; for variables: ranks that Ray starts get the leader's",
    source: "LeaderWorkerSet API: leaderTemplate and workerTemplate are separate pod templates",
};

const RANKS: Cause = Cause {
    id: "trtllm-ranks-miss-settings",
    what: "a TensorRT-LLM worker over several nodes sets transport variables by envFrom or in its start script",
    why: "the operator's mpirun hands on only variables of the container's env list: the other ranks run without them",
    fix: "put the variables into the container's env list",
    quiet_if: "one node; the command runs mpirun itself; the variables stand in env; another engine",
    source: "ai-dynamo/dynamo operator, TensorRT-LLM multinode backend (mpirun -x for container.env)",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in view.kv.iter().filter(|w| !w.is_mock()) {
        if kv.worker.part == Some(GroupPart::Leader) && !view.is_part() {
            templates(view, kv, findings);
        }
        ranks(kv, findings);
    }
}

fn templates(view: &View<'_>, leader: &WorkerView<'_>, findings: &mut Findings) {
    let of_group = |w: &&Worker| {
        w.part == Some(GroupPart::Member)
            && w.name == leader.worker.name
            && w.kind == leader.worker.kind
            && w.container == leader.worker.container
            && w.accelerators.is_some()
    };
    let container_differs = |w: &&Worker| {
        w.part == Some(GroupPart::Member)
            && w.name == leader.worker.name
            && w.kind == leader.worker.kind
            && w.accelerators.is_some()
    };
    let workers = &view.deployment.workers;
    let Some(member) = workers
        .iter()
        .find(of_group)
        .or_else(|| workers.iter().find(container_differs))
    else {
        return;
    };
    if leader.worker.accelerators.is_none() {
        return;
    }
    let role = leader.worker.role.as_str();
    let of_member = fabric::of(member, view.deployment);
    let kinds = |f: &Fabric<'_>| {
        (
            f.rdma.is_some(),
            f.efa.is_some(),
            f.compute_domain.is_some(),
        )
    };
    if kinds(&leader.fabric) != kinds(&of_member) && !leader.worker.privileged && !member.privileged
    {
        findings.push(
            Finding::fail(
                NAME,
                &PARTIAL,
                format!(
                    "{role}: the leader's template has {}, the workers' template {}",
                    leader.fabric.summary(),
                    of_member.summary()
                ),
            )
            .workers([leader.worker, member])
            .at(
                &leader.worker.place,
                format!("{role} leader: {}", leader.fabric.summary()),
            )
            .at(
                &member.place,
                format!("{role} workers: {}", of_member.summary()),
            ),
        );
        return;
    }
    // Ray hands the leader's UCX variables to its workers, and a sourced file may set them; only a template
    // that starts its ranks itself and shows all it sets can lack one.
    let shows_all = |w: &Worker| {
        !w.is_open()
            && matches!(
                kv_path::of(w).connector,
                Connector::Nixl | Connector::Mooncake | Connector::Other(_)
            )
    };
    if !shows_all(leader.worker) || !shows_all(member) {
        return;
    }
    for name in SHARED {
        let (one, other) = (leader.worker.setting(name), member.setting(name));
        let (set, lacks, whose) = match (one, other) {
            (Some(set), None) => (set, member, "the workers' template does not"),
            (None, Some(set)) => (set, leader.worker, "the leader's template does not"),
            _ => continue,
        };
        findings.push(
            Finding::warn(
                NAME,
                &PARTIAL,
                format!("{role}: one template of the group sets {name}, {whose}"),
            )
            .workers([leader.worker, member])
            .at(&set.place, format!("{role}: set here"))
            .at(&lacks.place, format!("{role}: not set here")),
        );
    }
}

fn ranks(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    if worker.engine != Engine::Trtllm
        || worker.nodes < 2
        || worker.starts_mpirun
        || !kv.is_dynamo()
    {
        return;
    }
    let role = worker.role.as_str();
    let lost: Vec<_> = worker
        .settings
        .iter()
        .filter(|s| {
            matches!(
                s.form,
                Form::ShellExport | Form::ShellPrefix | Form::EnvFrom
            ) && ["UCX_", "NIXL_", "FI_", "TRTLLM_"]
                .iter()
                .any(|p| s.name.starts_with(p))
        })
        .collect();
    let Some(first) = lost.first() else { return };
    let names: Vec<&str> = lost.iter().map(|s| s.name.as_str()).collect();
    findings.push(
        Finding::warn(
            NAME,
            &RANKS,
            format!(
                "{role} spans {} nodes, and its other ranks do not get {}",
                worker.nodes,
                names.join(", ")
            ),
        )
        .worker(worker)
        .at(&first.place, format!("{role}: {}", first.form.as_str())),
    );
}
