//! Engine settings that decide how KV cache is moved do what they seem to do.
//!
//! SGLang's `--disaggregation-ib-device` belongs to Mooncake; older versions ignore it with NIXL. Mooncake moves KV
//! over TCP where its protocol says so. vLLM stages KV in host memory with `kv_buffer_device: cpu`, which is the
//! right way on accelerators without GPUDirect and a slow one on NVIDIA GPUs.

use model::{Accelerator, Engine, Setting, Worker};
use settings::nccl_int::NcclInt;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::image::{self, Version};
use crate::kv_path::{Backend, Connector};
use crate::view::{View, WorkerView};

const NAME: &str = "env/engine-transfer";

/// The SGLang that hands the device list to NIXL.
const SGLANG_HANDS_ON: Version = Version(0, 5, 23);

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "engine settings for KV transfer do what they seem to do",
    source: include_str!("engine_transfer.rs"),
    causes: &[IB_DEVICE_IGNORED, MOONCAKE_TCP, BUFFER_CPU, NCCL_TCP],
    notes: &[TRTLLM_STAGES, MOONCAKE_FILE],
    run: Run::Recipe(run),
};

const IB_DEVICE_IGNORED: Cause = Cause {
    id: "sglang-nixl-ignores-ib-device",
    what: "--disaggregation-ib-device with the NIXL backend, in an SGLang that does not hand it to NIXL",
    why: "the flag is Mooncake's: NIXL uses every device, or those of UCX_NET_DEVICES",
    fix: "set UCX_NET_DEVICES instead, or use SGLang 0.5.23 or later without UCX_NET_DEVICES",
    quiet_if: "Mooncake; SGLang 0.5.23 or later without UCX_NET_DEVICES (an image whose tag tells no version counts as current)",
    source: "SGLang 0.5.23 disaggregation/nixl/conn.py (device_list)",
};

const MOONCAKE_TCP: Cause = Cause {
    id: "mooncake-protocol-tcp",
    what: "Mooncake is told to use TCP: mooncake_protocol tcp in the connector's configuration, or MC_FORCE_TCP",
    why: "KV goes over sockets and through host memory; MC_FORCE_TCP does so whatever its value, even 0",
    fix: "set the protocol to rdma and remove MC_FORCE_TCP",
    quiet_if: "another library carries KV; MOONCAKE_PROTOCOL and the file of a Mooncake store, which is not the way between prefill and decode (a note)",
    source: "kvcache-ai/Mooncake transfer_engine_impl.cpp:209; vLLM MooncakeConnector",
};

const MOONCAKE_FILE: Cause = Cause {
    id: "mooncake-file-protocol-tcp",
    what: "the file that MOONCAKE_CONFIG_PATH names says protocol tcp",
    why: "the Mooncake store and connectors of old vLLM releases read this file; current connectors between prefill and decode take rdma unless mooncake_protocol says otherwise",
    fix: "set the protocol to rdma",
    quiet_if: "rdma; another library carries KV",
    source: "vLLM MooncakeConnector (mooncake_protocol); Mooncake store configuration",
};

const BUFFER_CPU: Cause = Cause {
    id: "vllm-kv-buffer-cpu",
    what: "kv_buffer_device is cpu on GPUs that a NIC can reach",
    why: "every KV block is copied to host memory first and sent from there",
    fix: "set kv_buffer_device to cuda, or leave it out",
    quiet_if: "XPU, TPU and other accelerators whose base path it is; a transport list that is judged for leaving only TCP",
    source: "vLLM NixlConnector, kv_buffer_device",
};

const NCCL_TCP: Cause = Cause {
    id: "kv-over-nccl-sockets",
    what: "a connector that moves KV with NCCL, and NCCL is told not to use RDMA: NCCL_IB_DISABLE, or NCCL_NET=Socket",
    why: "for this connector NCCL is the KV path: between nodes it then goes over sockets and through host memory",
    fix: "remove NCCL_IB_DISABLE and NCCL_NET",
    quiet_if: "another connector (NCCL is collective communication there); both roles on one host; NCCL_IB_DISABLE=0",
    source: "vLLM P2pNcclConnector (p2p_nccl_engine.py); NCCL transport/net_ib (NCCL_IB_DISABLE), NCCL_NET",
};

const TRTLLM_STAGES: Cause = Cause {
    id: "gdr-trtllm-off-by-default",
    what: "TensorRT-LLM's UCX transceiver without buffer settings",
    why: "this transceiver stages KV through its own buffer; several releases do not use GPUDirect for it unless TRTLLM_KVCACHE_TRANSFER_BUFFER_SIZE or UCX_RNDV_FRAG_MEM_TYPE=cuda is set",
    fix: "see the release's KV cache transfer page, or use the NIXL backend",
    quiet_if: "the NIXL backend; the settings are there",
    source: "TensorRT-LLM documentation, disaggregated serving",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in view.kv.iter().filter(|w| !w.is_mock()) {
        ib_device(kv, findings);
        mooncake(view, kv, findings);
        buffer(kv, findings);
        nccl(kv, findings);
        trtllm(kv, findings);
    }
}

fn nccl(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let by_nccl = matches!(
        &kv.path.connector,
        Connector::Other(name) if matches!(name.as_str(), "P2pNcclConnector" | "PyNcclConnector")
    );
    if !by_nccl || worker.pod().same_host.is_some() {
        return;
    }
    let role = worker.role.as_str();
    for name in ["NCCL_IB_DISABLE", "NCCL_NET"] {
        let Some(setting) = worker.setting(name) else {
            continue;
        };
        let off = setting.value.literal().is_some_and(|value| {
            if name == "NCCL_NET" {
                value.eq_ignore_ascii_case("socket")
            } else {
                NcclInt::parse(value).or_default(0) != 0
            }
        });
        if off {
            findings.push(
                Finding::warn(
                    NAME,
                    &NCCL_TCP,
                    format!("{role}: {name} keeps NCCL off RDMA, and NCCL carries KV here"),
                )
                .worker(worker)
                .at(&setting.place, format!("{role}: KV over sockets")),
            );
        }
    }
}

fn ib_device(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let Some(flag) = worker.setting("--disaggregation-ib-device") else {
        return;
    };
    if worker.engine != Engine::Sglang || kv.path.connector != Connector::Nixl {
        return;
    }
    let role = worker.role.as_str();
    let version = worker.image.as_ref().and_then(|i| image::sglang(&i.value));
    let old = version.is_some_and(|v| v < SGLANG_HANDS_ON);
    let pinned = worker.setting("UCX_NET_DEVICES");
    let devices = |text: &str| {
        let mut items: Vec<String> = text
            .split(',')
            .map(|d| d.trim().split(':').next().unwrap_or_default().to_owned())
            .filter(|d| !d.is_empty())
            .collect();
        items.sort();
        items
    };
    if let Some(pin) = pinned {
        let agrees = match (flag.value.literal(), pin.value.literal()) {
            (Some(a), Some(b)) => devices(a) == devices(b),
            _ => true,
        };
        if agrees {
            return;
        }
        findings.push(
            Finding::warn(
                NAME,
                &IB_DEVICE_IGNORED,
                format!("{role}: UCX_NET_DEVICES decides; --disaggregation-ib-device names other devices and is ignored"),
            )
            .fix("name the devices in UCX_NET_DEVICES only")
            .worker(worker)
            .at(&flag.place, format!("{role}: ignored"))
            .context(&pin.place, "this one decides"),
        );
        return;
    }
    if let Some(version) = version.filter(|_| old) {
        findings.push(
            Finding::warn(
                NAME,
                &IB_DEVICE_IGNORED,
                format!(
                    "{role}: SGLang {version} does not hand --disaggregation-ib-device to NIXL"
                ),
            )
            .worker(worker)
            .at(&flag.place, format!("{role}: ignored with NIXL")),
        );
    } else {
        let mut finding = Finding::ok(
            NAME,
            format!("{role}: SGLang hands --disaggregation-ib-device to NIXL"),
        )
        .worker(worker)
        .at(&flag.place, role);
        if version.is_none() {
            finding = finding.note("the image's tag tells no SGLang version, so it counts as current; before 0.5.23 the flag is ignored with NIXL");
        }
        findings.push(finding);
    }
}

fn mooncake(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    if kv.path.backend != Some(Backend::Mooncake) {
        return;
    }
    let role = worker.role.as_str();
    let tcp = |name: &str| {
        worker.setting(name).filter(|s| {
            s.value
                .literal()
                .is_some_and(|v| v.eq_ignore_ascii_case("tcp"))
        })
    };
    let Some(setting) = worker
        .setting("MC_FORCE_TCP")
        .or_else(|| tcp("kv_connector_extra_config.mooncake_protocol"))
    else {
        if let Some(setting) = tcp("mooncake.protocol") {
            findings.push(
                Finding::ok(NAME, format!("{role}: Mooncake's file says protocol tcp"))
                    .worker(worker)
                    .at(&setting.place, role)
                    .told(&MOONCAKE_FILE),
            );
        }
        return;
    };
    let detail = format!("{role}: Mooncake is told to use TCP");
    let finding = if view.asks_for_fabric() {
        Finding::fail(NAME, &MOONCAKE_TCP, detail)
    } else {
        Finding::warn(NAME, &MOONCAKE_TCP, detail)
    };
    findings.push(
        finding
            .worker(worker)
            .at(&setting.place, format!("{role}: TCP")),
    );
}

fn buffer(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let Some(setting) = host_buffer(worker) else {
        return;
    };
    let tcp_is_judged = kv.path.may_use_ucx() && kv.tls.as_ref().is_some_and(|t| !t.rdma);
    // Connectors that offload to memory have the same key.
    if kv.path.connector != Connector::Nixl || tcp_is_judged {
        return;
    }
    let role = worker.role.as_str();
    findings.push(
        Finding::warn(
            NAME,
            &BUFFER_CPU,
            format!("{role}: kv_buffer_device cpu copies every KV block to host memory first"),
        )
        .worker(worker)
        .at(&setting.place, format!("{role}: host buffers")),
    );
}

/// `kv_buffer_device: cpu` on a worker with GPUs that a NIC can reach.
fn host_buffer(worker: &Worker) -> Option<&Setting> {
    let image = worker
        .image
        .as_ref()
        .map(|i| i.value.to_ascii_lowercase())
        .unwrap_or_default();
    let on_gpu = match worker.accelerator {
        Some(Accelerator::Nvidia | Accelerator::Amd) => true,
        Some(_) => false,
        // A claim hides the kind; the image may show it.
        None => !["xpu", "tpu", "hpu", "gaudi", "cpu", "neuron", "ascend"]
            .iter()
            .any(|w| image.contains(w)),
    };
    worker
        .setting("kv_buffer_device")
        .filter(|s| on_gpu && s.value.literal() == Some("cpu"))
}

fn trtllm(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let is_ucx = kv.path.connector == Connector::Other("TensorRT-LLM/UCX".to_owned());
    let tuned = [
        "TRTLLM_KVCACHE_TRANSFER_BUFFER_SIZE",
        "UCX_RNDV_FRAG_MEM_TYPE",
        "UCX_RNDV_FRAG_MEM_TYPES",
    ]
    .iter()
    .any(|n| worker.setting(n).is_some());
    if worker.engine != Engine::Trtllm || !is_ucx || tuned {
        return;
    }
    findings.push(
        Finding::ok(
            NAME,
            format!("{}: TensorRT-LLM's UCX transceiver", worker.role.as_str()),
        )
        .worker(worker)
        .told(&TRTLLM_STAGES),
    );
}
