//! Multi-node NVLink: both roles claim one compute domain, and KV memory can be shared over it.
//!
//! On NVL72 racks `cuda_ipc` moves KV between nodes over NVLink, with tcp or rc for control messages. It needs an
//! IMEX channel (the claim on a ComputeDomain) on both sides and KV memory that is allocated with fabric handles.
//! vLLM does that with `--enable-cumem-allocator` or `--enable-sleep-mode`, SGLang with
//! `SGLANG_MOONCAKE_CUSTOM_MEM_POOL`, TensorRT-LLM with its own pools. Memory from plain cudaMalloc cannot be
//! exported; UCX then takes the next transport in the list, which is often tcp.

use model::{Engine, Role};

use crate::check::{Cause, Check, Run};
use crate::fabric::Fabric;
use crate::finding::{Finding, Findings};
use crate::kv_path::Backend;
use crate::view::{View, WorkerView};

const NAME: &str = "env/mnnvl";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "multi-node NVLink: one compute domain, exportable KV memory",
    source: include_str!("mnnvl.rs"),
    causes: &[
        NO_FABRIC_ALLOCATOR,
        DIFFERENT_DOMAINS,
        OPTION_OFF,
        NVLINK_DENIED,
    ],
    notes: &[NODE_COUNT],
    run: Run::Recipe(run),
};

pub(crate) const NO_FABRIC_ALLOCATOR: Cause = Cause {
    id: "mnnvl-kv-memory-no-fabric-handle",
    what: "the transport list relies on multi-node NVLink and nothing visible allocates KV memory with fabric handles",
    why: "memory from plain cudaMalloc cannot be exported to another node; UCX silently takes tcp, or finds no way if the list has none",
    fix: "vLLM: --enable-cumem-allocator or --enable-sleep-mode; SGLang: SGLANG_MOONCAKE_CUSTOM_MEM_POOL=NVLINK; or RDMA (rc in the list, and RDMA devices) as a second way",
    quiet_if: "an allocator flag is set; TensorRT-LLM; RDMA devices carry KV as well; no compute domain is claimed",
    source: "UCX cuda_ipc: 'does not have fabric property'; vLLM cumem allocator",
};

const DIFFERENT_DOMAINS: Cause = Cause {
    id: "compute-domain-differs",
    what: "prefill and decode claim channels of different compute domains",
    why: "an IMEX channel reaches only its own domain, so NVLink between the roles is not possible",
    fix: "claim from the same ComputeDomain on both roles",
    quiet_if: "the templates are the same; RDMA or EFA carries KV",
    source: "NVIDIA DRA driver: one ComputeDomain is one IMEX domain",
};

const OPTION_OFF: Cause = Cause {
    id: "ucx-mnnvl-option",
    what: "UCX_CUDA_IPC_ENABLE_MNNVL=n while a compute domain is claimed and no RDMA device is asked for",
    why: "UCX does not try NVLink between nodes, so KV takes tcp",
    fix: "remove UCX_CUDA_IPC_ENABLE_MNNVL (UCX tries by default)",
    quiet_if: "RDMA devices are asked for; no compute domain",
    source: "UCX cuda_ipc_md.c:56",
};

const NVLINK_DENIED: Cause = Cause {
    id: "ucx-tls-negated-cuda-ipc",
    what: "UCX_TLS denies cuda_ipc while a compute domain is claimed and no RDMA device is asked for",
    why: "cuda_ipc is the transport over NVLink: without it the compute domain carries no KV",
    fix: "remove UCX_TLS",
    quiet_if: "RDMA devices or EFA carry KV (then it is a common and right setting); no compute domain",
    source: "UCX: 'failed to select lane for local device GPU0' on GB200",
};

const NODE_COUNT: Cause = Cause {
    id: "imex-node-count",
    what: "numNodes of a ComputeDomain is not the number of pods that claim from it",
    why: "numNodes of the ComputeDomain is not the number of pods that claim from it; the driver does not hold pods back for it by default, but channels may be ready late",
    fix: "set numNodes to the number of pods, or to 0",
    quiet_if: "numNodes is 0 (elastic) or fits; replicas are not written",
    source: "NVIDIA DRA driver: ComputeDomain.spec.numNodes",
};

/// A ComputeDomain whose number of nodes does not fit the pods that claim from it.
fn wrong_node_count<'f>(view: &View<'f>) -> Option<&'f model::ComputeDomain> {
    view.deployment.compute_domains().find(|domain| {
        let Some(nodes) = domain.nodes.filter(|n| *n > 0) else {
            return false;
        };
        let pods: Option<u64> = view
            .deployment
            .workers
            .iter()
            .filter(|w| {
                w.claims
                    .iter()
                    .any(|c| c.template.is_some() && c.template == domain.template)
            })
            .map(|w| w.replicas.map(|r| r.saturating_mul(w.nodes)))
            .sum();
        pods.is_some_and(|p| p > 0 && p != nodes)
    })
}

fn run(view: &View<'_>, findings: &mut Findings) {
    let claimed: Vec<&WorkerView<'_>> = view
        .kv
        .iter()
        .filter(|w| w.fabric.compute_domain.is_some() && !w.is_mock())
        .collect();
    let Some(first) = claimed.first() else { return };
    let nics = |f: &Fabric<'_>| f.rdma.is_some() || f.efa.is_some();
    if view.kv.iter().all(|w| nics(&w.fabric)) {
        // NICs carry KV; the domain is for collectives or a second way.
        return;
    }
    different_domains(view, findings);
    if first.path.backend == Some(Backend::Libfabric) {
        return;
    }
    for kv in claimed {
        judge(view, kv, findings);
    }
}

fn judge(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let Some(claim) = kv.fabric.compute_domain else {
        return;
    };
    if let Some(setting) = worker.setting("UCX_CUDA_IPC_ENABLE_MNNVL") {
        let off = setting.value.literal().is_some_and(|v| {
            matches!(
                settings::ucx_value::parse_ternary(v),
                Ok(settings::ucx_value::Ternary::No)
            )
        });
        if off && kv.path.may_use_ucx() {
            let detail = format!(
                "{role}: UCX_CUDA_IPC_ENABLE_MNNVL is off, so UCX does not use NVLink between nodes"
            );
            // A list without RDMA leaves nothing but tcp.
            let nothing_else = kv.tls.as_ref().is_some_and(|t| !t.rdma);
            let finding = if nothing_else {
                Finding::fail(NAME, &OPTION_OFF, detail)
            } else {
                Finding::warn(NAME, &OPTION_OFF, detail)
            };
            findings.push(
                finding
                    .worker(worker)
                    .at(&setting.place, format!("{role}: off")),
            );
            return;
        }
    }
    let excluded = kv.tls.as_ref().is_some_and(|t| !t.mnnvl);
    if excluded {
        if let Some(list) = worker.setting("UCX_TLS")
            && kv.path.may_use_ucx()
            && list.value.literal().is_some_and(|v| v.starts_with('^'))
        {
            findings.push(
                Finding::warn(
                    NAME,
                    &NVLINK_DENIED,
                    format!("{role}: UCX_TLS denies NVLink, and the compute domain is the only fabric that is asked for"),
                )
                .worker(worker)
                .at(&list.place, format!("{role}: no cuda_ipc"))
                .context(&claim.place, "the compute domain"),
            );
        }
        // What an allow list leaves is judged with the list.
        return;
    }
    let allocator = match worker.engine {
        Engine::Vllm | Engine::TokenSpeed | Engine::Unknown => [
            "--enable-cumem-allocator",
            "--enable-sleep-mode",
            "VLLM_KV_CACHE_FABRIC",
        ]
        .iter()
        .find(|n| worker.setting(n).is_some())
        .copied(),
        Engine::Sglang => ["SGLANG_MOONCAKE_CUSTOM_MEM_POOL"]
            .iter()
            .find(|n| worker.setting(n).is_some())
            .copied(),
        Engine::Trtllm => Some("TensorRT-LLM's own pools"),
        Engine::Mocker => None,
    };
    match allocator {
        Some(how) => {
            let mut finding = Finding::ok(
                NAME,
                format!("a compute domain is claimed and KV memory can be exported ({how})"),
            )
            .worker(worker)
            .at(&claim.place, role);
            if let Some(domain) = wrong_node_count(view) {
                finding = finding
                    .told(&NODE_COUNT)
                    .context(&domain.place, "the domain");
            }
            findings.push(finding);
        }
        None => {
            let list = worker.setting("UCX_TLS");
            let tcp = kv.tls.as_ref().is_none_or(|t| t.tcp);
            let (outcome, label) = if tcp {
                ("KV may go over tcp", "tcp is the silent fallback")
            } else {
                (
                    "NVLink between nodes may not be usable",
                    "no tcp to fall back to",
                )
            };
            let mut finding = Finding::warn(
                NAME,
                &NO_FABRIC_ALLOCATOR,
                format!("{role} claims a compute domain, but nothing in the file allocates its KV memory with fabric handles: {outcome}"),
            )
            .worker(worker);
            finding = match list {
                Some(list) => finding
                    .at(&list.place, format!("{role}: {label}"))
                    .context(&claim.place, "the compute domain"),
                None => finding.at(&claim.place, format!("{role}: the compute domain")),
            };
            if wrong_node_count(view).is_some() {
                finding = finding.told(&NODE_COUNT);
            }
            findings.push(finding);
        }
    }
}

fn different_domains(view: &View<'_>, findings: &mut Findings) {
    let first = |role: Role| {
        view.role(role)
            .find_map(|w| w.fabric.compute_domain.map(|c| (w, c)))
    };
    let (Some((prefill, p)), Some((decode, d))) = (first(Role::Prefill), first(Role::Decode))
    else {
        return;
    };
    if p.template.is_some() && d.template.is_some() && p.template != d.template {
        findings.push(
            Finding::warn(
                NAME,
                &DIFFERENT_DOMAINS,
                "prefill and decode claim channels of different compute domains",
            )
            .workers([prefill.worker, decode.worker])
            .at(&p.place, "prefill")
            .at(&d.place, "decode"),
        );
    }
}
