//! On AWS EFA, the engine's NIXL backend is LIBFABRIC, the container can open the device, and GPUDirect is on.
//!
//! An EFA device is neither InfiniBand nor RoCE: UCX reaches it only through its `srd` transport, in builds that
//! have it, and otherwise falls to TCP. NIXL's LIBFABRIC backend is chosen by a different switch in each engine:
//! vLLM `kv_connector_extra_config.backends`, SGLang `SGLANG_DISAGGREGATION_NIXL_BACKEND`, TensorRT-LLM
//! `TRTLLM_NIXL_KVCACHE_BACKEND`. `NIXL_BACKEND` is read by nobody, `DYN_KVBM_NIXL_BACKEND_*` only by KVBM.
//! UCX variables may be absent. Upstream's pages disagree on whether privileged is needed.

use model::Setting;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::kv_path::{Backend, Connector};
use crate::view::{View, WorkerView};

const NAME: &str = "env/efa";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "EFA is used through LIBFABRIC, with GPUDirect",
    source: include_str!("efa.rs"),
    causes: &[BACKEND, IMAGE, GPUDIRECT_OFF, PROVIDER],
    notes: &[SAME_NODE],
    run: Run::Recipe(run),
};

const BACKEND: Cause = Cause {
    id: "efa-backend-not-libfabric",
    what: "EFA devices are asked for and the switch that the engine reads does not select LIBFABRIC",
    why: "NIXL then uses UCX, which reaches EFA only through srd in an image that has it; otherwise KV goes over TCP, and FI_* variables do nothing",
    fix: "vLLM: \"kv_connector_extra_config\":{\"backends\":[\"LIBFABRIC\"]}; SGLang: SGLANG_DISAGGREGATION_NIXL_BACKEND=LIBFABRIC; TensorRT-LLM: TRTLLM_NIXL_KVCACHE_BACKEND=LIBFABRIC",
    quiet_if: "the backend is LIBFABRIC; the connector is not NIXL; an -efa image uses UCX with srd on purpose (UCX_TLS names it)",
    source: "ai-dynamo/dynamo docs, efa-on-aws",
};

const IMAGE: Cause = Cause {
    id: "efa-image-unverified",
    what: "LIBFABRIC over EFA in a container that is neither privileged nor built for EFA (-efa image)",
    why: "the standard image lacks the EFA libraries, and opening the device without privileged needs capabilities that the file does not show",
    fix: "use the -efa variant of the image, and privileged: true as upstream's EFA page asks",
    quiet_if: "privileged, or an image with efa in its name",
    source: "ai-dynamo/dynamo docs, efa-on-aws",
};

const GPUDIRECT_OFF: Cause = Cause {
    id: "efa-gpudirect-off",
    what: "the environment turns GPUDirect off on EFA: FI_EFA_USE_DEVICE_RDMA=0 or FI_HMEM_DISABLE_P2P=1",
    why: "transfers work, but through host memory or software emulation",
    fix: "remove FI_EFA_USE_DEVICE_RDMA and FI_HMEM_DISABLE_P2P: libfabric uses what the device can do",
    quiet_if: "the backend is not LIBFABRIC",
    source: "libfabric prov/efa/src/efa_env.c, src/hmem.c",
};

const PROVIDER: Cause = Cause {
    id: "efa-fi-provider-env",
    what: "FI_PROVIDER names tcp or sockets, or leaves efa out, in a worker that moves KV over EFA",
    why: "libfabric then offers no EFA: NIXL's LIBFABRIC backend takes TCP",
    fix: "remove FI_PROVIDER, or set it to efa",
    quiet_if: "unset, or efa is in the list; the backend is not LIBFABRIC",
    source: "libfabric src/fabric.c (provider filter); ai-dynamo/nixl libfabric_common.cpp:36-125",
};

pub(crate) const SAME_NODE: Cause = Cause {
    id: "efa-same-node-loopback",
    what: "prefill and decode over EFA may share a node: no required pod anti-affinity by hostname",
    why: "EFA has no way back into the same host for this path; without a required pod anti-affinity prefill and decode may land on one node, where the transfer stalls",
    fix: "add a required podAntiAffinity with topologyKey kubernetes.io/hostname between the roles",
    quiet_if: "a required pod anti-affinity; a worker that fills its nodes",
    source: "ai-dynamo/dynamo disagg-communication guide",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        if kv.is_mock() {
            continue;
        }
        let Some(efa) = kv.fabric.efa else { continue };
        let worker = kv.worker;
        let role = worker.role.as_str();
        if !kv.path.uses_libfabric() {
            if !view.is_part() {
                not_libfabric(kv, findings);
            }
            continue;
        }
        if let Some(setting) = other_provider(kv) {
            let value = setting.value.literal().unwrap_or_default();
            findings.push(
                Finding::fail(
                    NAME,
                    &PROVIDER,
                    format!("{role}: FI_PROVIDER={value} leaves EFA out: KV goes over TCP"),
                )
                .worker(worker)
                .at(&setting.place, format!("{role}: no efa")),
            );
            continue;
        }
        if let Some(setting) = gpudirect_off(kv) {
            let value = setting.value.literal().unwrap_or_default();
            findings.push(
                Finding::warn(
                    NAME,
                    &GPUDIRECT_OFF,
                    format!(
                        "{role}: {}={value} turns GPUDirect off: KV is copied through host memory",
                        setting.name
                    ),
                )
                .worker(worker)
                .at(&setting.place, format!("{role}: GPUDirect off")),
            );
            continue;
        }
        let image = worker.image.as_ref();
        let efa_image = image.is_some_and(|i| {
            i.value.to_ascii_lowercase().contains("efa") || i.value.contains("llm-d-aws")
        });
        let label = format!("{role}: {}: {}", efa.name, efa.quantity);
        if worker.privileged || efa_image || view.is_part() {
            let mut finding = Finding::ok(
                NAME,
                format!("LIBFABRIC over EFA ({}: {})", efa.name, efa.quantity),
            )
            .worker(worker)
            .at(&efa.place, label);
            if !worker.privileged && !view.is_part() {
                finding = finding.note(
                    "not privileged: upstream's EFA page asks for it, its EKS examples do without",
                );
            }
            let apart = worker
                .pod()
                .anti_affinity
                .as_ref()
                .is_some_and(|a| a.value == "required");
            if !apart && !view.is_part() && worker.nodes <= 1 {
                finding = finding.told(&SAME_NODE);
            }
            findings.push(finding);
        } else {
            let mut finding = Finding::warn(
                NAME,
                &IMAGE,
                format!("{role}: LIBFABRIC over EFA, but neither privileged nor an -efa image"),
            )
            .worker(worker);
            finding = match image {
                Some(image) => finding
                    .at(&image.place, format!("{role}: not the -efa variant"))
                    .context(&efa.place, "EFA is asked for"),
                None => finding.at(&efa.place, label),
            };
            findings.push(finding);
        }
    }
}

fn not_libfabric(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let Some(efa) = kv.fabric.efa else { return };
    if matches!(
        kv.path.connector,
        Connector::Unknown(_) | Connector::Nothing | Connector::Mooncake
    ) || matches!(kv.path.backend, Some(Backend::Other(_)))
    {
        findings.push(
            Finding::ok(NAME, format!("{}: {} is asked for", efa.name, efa.quantity))
                .worker(worker)
                .at(&efa.place, role)
                .note("whether KV uses it cannot be seen: the NIXL backend is not in the file"),
        );
        return;
    }
    // UCX over SRD is documented for TensorRT-LLM with an -efa image; a list that names srd says so.
    let srd = kv
        .worker
        .literal("UCX_TLS")
        .is_some_and(|v| v.split(',').any(|t| t == "srd" || t == "ib"))
        && kv.tls.as_ref().is_some_and(|t| t.rdma);
    if srd {
        findings.push(
            Finding::ok(NAME, "UCX over EFA through srd")
                .worker(worker)
                .at(&efa.place, role)
                .note("needs a UCX built with EFA support (1.19 or later)"),
        );
        return;
    }
    let mut finding = Finding::warn(
        NAME,
        &BACKEND,
        format!(
            "{role} asks for {} but its NIXL backend is UCX{}",
            efa.name,
            if kv.path.backend_is_named {
                ""
            } else {
                " by default"
            }
        ),
    )
    .worker(worker);
    let named = [
        "TRTLLM_NIXL_KVCACHE_BACKEND",
        "SGLANG_DISAGGREGATION_NIXL_BACKEND",
        "kv_connector_extra_config.backends",
    ]
    .iter()
    .find_map(|n| worker.setting(n));
    finding = match named.map(|s| &s.place).or(kv.path.place.as_ref()) {
        Some(place) => finding
            .at(place, format!("{role}: no LIBFABRIC here"))
            .context(&efa.place, "EFA is asked for"),
        None => finding.at(&efa.place, format!("{role}: EFA is asked for")),
    };
    let lookalike = ["NIXL_BACKEND", "DYN_KVBM_NIXL_BACKEND_LIBFABRIC"]
        .iter()
        .find_map(|n| worker.setting(n));
    if let Some(setting) = lookalike {
        let reader = if setting.name == "NIXL_BACKEND" {
            "nothing reads it"
        } else {
            "only KVBM reads it"
        };
        finding = finding.context(&setting.place, format!("{}: {reader}", setting.name));
    }
    findings.push(finding);
}

/// A provider list without EFA. A leading `^` denies what follows.
fn other_provider<'f>(kv: &WorkerView<'f>) -> Option<&'f Setting> {
    kv.worker.setting("FI_PROVIDER").filter(|s| {
        s.value.literal().is_some_and(|value| {
            let (deny, list) = match value.strip_prefix('^') {
                Some(list) => (true, list),
                None => (false, value),
            };
            let named = list
                .split([',', ';'])
                .any(|p| p.trim().to_ascii_lowercase().starts_with("efa"));
            !list.trim().is_empty() && named == deny
        })
    })
}

fn gpudirect_off<'f>(kv: &WorkerView<'f>) -> Option<&'f Setting> {
    let off = |name: &str, wanted: bool| {
        kv.worker.setting(name).filter(|s| {
            s.value
                .literal()
                .and_then(|v| settings::ucx_value::libfabric_bool(v).ok())
                == Some(wanted)
        })
    };
    off("FI_EFA_USE_DEVICE_RDMA", false).or_else(|| off("FI_HMEM_DISABLE_P2P", true))
}
