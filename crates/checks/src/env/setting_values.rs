//! Values of transport variables are ones that the library can read, and do not slow KV down.
//!
//! Each library has its own idea of a boolean: UCX takes `y`, `yes`, `on`, `1` and refuses `true`; NCCL reads an
//! integer, so `true` is 0. A value that UCX cannot read stops the process, or silently removes the whole
//! transport family, depending on the variable. UCX variables are judged where UCX carries KV, libfabric's where
//! libfabric does. NCCL's never count for KV and are told apart.

use settings::effect::{self, ProblemKind};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::{View, WorkerView};

const NAME: &str = "env/setting-values";

/// Variables with a check of their own.
const ELSEWHERE: [&str; 7] = [
    "MC_FORCE_TCP",
    "UCX_TLS",
    "UCX_NET_DEVICES",
    "VLLM_NIXL_SIDE_CHANNEL_HOST",
    "FI_EFA_USE_DEVICE_RDMA",
    "FI_HMEM_DISABLE_P2P",
    "UCX_CUDA_IPC_ENABLE_MNNVL",
];

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "values of transport variables can be read and do no harm",
    source: include_str!("setting_values.rs"),
    causes: &[INVALID, GPUDIRECT_OFF, RNDV_ON_EFA],
    notes: &[],
    run: Run::Recipe(run),
};

pub(crate) const INVALID: Cause = Cause {
    id: "setting-value-invalid",
    what: "a value that the library cannot read",
    why: "depending on the variable UCX does not start, or drops a whole transport family (RDMA with UCX_IB_…) and goes on without it; Mooncake takes a word for 0",
    fix: "use a value of the variable's kind: check-interconnect vars NAME lists them",
    quiet_if: "another library carries KV; the value is filled in at start",
    source: "UCX parser.c:250-319, uct_md.c:275; Mooncake config.cpp",
};

pub(crate) const GPUDIRECT_OFF: Cause = Cause {
    id: "ucx-gdr-forced-off",
    what: "UCX_IB_GPU_DIRECT_RDMA is off",
    why: "GPU memory is never registered with the NIC: every transfer is staged through host memory",
    fix: "remove UCX_IB_GPU_DIRECT_RDMA (the default tries)",
    quiet_if: "KV buffers are on the host (kv_buffer_device: cpu); no RDMA device carries KV",
    source: "UCX ib_md.c:119, 1449",
};

const RNDV_ON_EFA: Cause = Cause {
    id: "rndv-thresh-loses-zero-copy",
    what: "UCX_RNDV_THRESH is finite on a NIC that cannot invalidate memory (EFA)",
    why: "with peer error handling, which NIXL uses, UCX then leaves these NICs out of zero copy",
    fix: "remove UCX_RNDV_THRESH (NIXL sets inf)",
    quiet_if: "mlx5 NICs; the value is inf; KV does not go over UCX",
    source: "UCX select.c:2283, ucp_context.h:788",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        if kv.is_mock() {
            continue;
        }
        for setting in &kv.worker.settings {
            let name = setting.name.as_str();
            if ELSEWHERE.contains(&name) || !carries(kv, name) {
                continue;
            }
            let Some(value) = setting.value.literal() else {
                continue;
            };
            let role = kv.worker.role.as_str();
            let finish = |finding: Finding, label: &str| {
                finding
                    .worker(kv.worker)
                    .at(&setting.place, format!("{role}: {label}"))
            };
            if name == "UCX_IB_GPU_DIRECT_RDMA"
                && settings::ucx_value::parse_ternary(value) == Ok(settings::ucx_value::Ternary::No)
            {
                if kv.worker.literal("kv_buffer_device") != Some("cpu") {
                    let detail = format!(
                        "{role}: UCX_IB_GPU_DIRECT_RDMA={value} stages every transfer through host memory"
                    );
                    let finding = if view.asks_for_fabric() {
                        Finding::fail(NAME, &GPUDIRECT_OFF, detail)
                    } else {
                        Finding::warn(NAME, &GPUDIRECT_OFF, detail)
                    };
                    findings.push(finish(finding, "GPUDirect off"));
                }
                continue;
            }
            if name == "UCX_RNDV_THRESH"
                && kv.fabric.efa.is_some()
                && kv.fabric.rdma.is_none()
                && value != "inf"
            {
                findings.push(finish(
                    Finding::warn(
                        NAME,
                        &RNDV_ON_EFA,
                        format!("{role}: UCX_RNDV_THRESH={value} takes zero copy away from EFA"),
                    ),
                    "not inf",
                ));
                continue;
            }
            let Some(problem) = effect::effect(name, value).problem else {
                continue;
            };
            let detail = format!("{role}: {name}={value}: {}", problem.text);
            let invalid = "not a value of this variable";
            // Without the RDMA family nothing but TCP is left of the fabric that is asked for.
            let drops_rdma = problem.invalid
                && problem.kind == ProblemKind::Slow
                && name.starts_with("UCX_IB_")
                && kv.fabric.rdma.is_some();
            let (finding, label) = match problem.kind {
                // It does nothing: told with the setting itself.
                ProblemKind::Noop => continue,
                ProblemKind::Fatal => (Finding::fail(NAME, &INVALID, detail), invalid),
                _ if drops_rdma => (Finding::fail(NAME, &INVALID, detail), invalid),
                ProblemKind::Late => (Finding::warn(NAME, &INVALID, detail), invalid),
                ProblemKind::Slow if problem.invalid => {
                    (Finding::warn(NAME, &INVALID, detail), invalid)
                }
                // Those that force a slow path have checks of their own.
                ProblemKind::Slow => continue,
            };
            findings.push(finish(finding, label));
        }
    }
}

/// Whether the library that reads the variable carries KV in this worker.
fn carries(kv: &WorkerView<'_>, name: &str) -> bool {
    if name.starts_with("UCX_") {
        kv.path.may_use_ucx()
    } else if name.starts_with("FI_") {
        kv.path.uses_libfabric()
    } else if name.starts_with("MC_") {
        // MOONCAKE_… configures the store, which is not the way between prefill and decode.
        kv.path.backend == Some(crate::kv_path::Backend::Mooncake)
    } else {
        false
    }
}
