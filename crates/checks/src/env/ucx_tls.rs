//! UCX_TLS allows a transport that can carry KV cache on the fabric that the workers ask for.
//!
//! Unset is best: UCX then picks by itself. A list is judged by its exact meaning (aliases, deny lists,
//! bootstrap transports), by role, by accelerator and by the fabric requested:
//!
//! * a list that leaves only TCP between nodes fails where a fabric is asked for, and is a warning where TCP is
//!   plainly declared;
//! * a list without the accelerator's own memory transport (`cuda_copy`) cannot register GPU memory;
//! * a list whose only network transport is RDMA is right with a fabric and cannot connect without one;
//! * names that UCX does not know are dropped with one warning in the log.
//!
//! A deny list (`^…`) and a missing TCP fallback are fine. The order in a list is no preference.
//! Where KV does not go over UCX (LIBFABRIC, Mooncake) the variable changes nothing for KV.

use model::{Accelerator, Place, Reason, Setting, Value};
use settings::ucx_tls::{self, Init, ItemFault, TlsEffect};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::{View, WorkerView};

const NAME: &str = "env/ucx-tls";
const VARIABLE: &str = "UCX_TLS";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX_TLS allows a transport that can carry KV",
    source: include_str!("ucx_tls.rs"),
    causes: &[
        TCP_ONLY,
        CUDA_IPC_TCP,
        TCP_OR_SRD,
        RC_ONLY,
        NO_GPU_MEMORY,
        EMPTY,
        ALL_NOT_ALONE,
        UNKNOWN_NAME,
        MID_CARET,
        SPELLING,
        ONE_NODE,
        NO_ACTIVE_MESSAGES,
        NO_BOOTSTRAP,
        UD_ONLY,
    ],
    notes: &[COPIED_FROM_JOB],
    run: Run::Recipe(run),
};

pub(crate) const TCP_ONLY: Cause = Cause {
    id: "ucx-tls-tcp-only",
    what: "UCX_TLS leaves TCP as the only transport between nodes",
    why: "no RDMA transport may be chosen: KV goes over sockets, and GPU data through host memory",
    fix: "remove UCX_TLS (UCX then uses every transport that works), or list rc with the accelerator's own transports: cuda_copy and cuda_ipc (AMD: rocm_copy and rocm_ipc, Intel XPU: ze_copy and ze_ipc)",
    quiet_if: "no KV worker; a backend other than UCX; both roles in one pod; XPU and CPU examples whose base path is TCP (a note); multi-node NVLink with a compute domain",
    source: "UCX ucp_context.c; reference model checked against UCX 1.13 to 1.23",
};

const COPIED_FROM_JOB: Cause = Cause {
    id: "ucx-tls-copied-from-nccl-job",
    what: "UCX_TLS=tcp beside NCCL_IB_* settings or mpirun",
    why: "tcp is right in an MPI job, where UCX only starts the ranks and NCCL moves the data; in a worker UCX moves the KV cache",
    fix: "remove UCX_TLS from the worker",
    quiet_if: "an MPIJob or an NCCL test",
    source: "NCCL test manifests of several clouds",
};

pub(crate) const CUDA_IPC_TCP: Cause = Cause {
    id: "cuda-ipc-tcp-without-imex",
    what: "UCX_TLS is cuda_ipc, cuda_copy and tcp, and no compute domain or RDMA resource is asked for",
    why: "this is the list for multi-node NVLink; without an IMEX channel KV between nodes goes over TCP, whatever UCX_CUDA_IPC_ENABLE_MNNVL says",
    fix: "claim the channel of one ComputeDomain on both roles (NVL72), or add rc to the list and request RDMA devices",
    quiet_if: "both roles claim the same compute domain; both roles share a pod",
    source: "UCX cuda_ipc_md.c: multi-node NVLink needs fabric handles, that is an IMEX channel",
};

const TCP_OR_SRD: Cause = Cause {
    id: "ucx-tls-srd-without-efa",
    what: "UCX_TLS lists srd and tcp, and no EFA device is asked for",
    why: "srd exists on EFA only, so TCP is what is left",
    fix: "request vpc.amazonaws.com/efa on both roles, or remove UCX_TLS",
    quiet_if: "EFA is requested",
    source: "UCX uct/ib/efa/srd/srd_iface.c",
};

const RC_ONLY: Cause = Cause {
    id: "ucx-tls-rdma-only-no-device",
    what: "every network transport in UCX_TLS needs an RDMA device, and neither role asks for one",
    why: "endpoints to other nodes cannot be created: 'no active messages transport'",
    fix: "request the cluster's RDMA resource on both roles",
    quiet_if: "a resource, claim or host device is there; privileged containers; a patch; both roles on one host",
    source: "UCX select.c:722",
};

pub(crate) const NO_GPU_MEMORY: Cause = Cause {
    id: "ucx-tls-no-gpu-memory-transport",
    what: "UCX_TLS is an allow list without the accelerator's memory transport (cuda_copy, rocm_copy, ze_copy)",
    why: "UCX takes GPU memory for host memory; NIXL refuses to register it",
    fix: "add cuda_copy (or the alias cuda), rocm_copy on AMD, ze_copy on Intel XPU, or remove UCX_TLS",
    quiet_if: "KV buffers are on the host (kv_buffer_device: cpu); a deny list that does not name it",
    source: "UCX cuda_copy_md.c:132; NIXL ucx_utils.cpp:659-664",
};

pub(crate) const EMPTY: Cause = Cause {
    id: "ucx-tls-empty-string",
    what: "UCX_TLS is set to nothing",
    why: "UCX does not start: 'The TLs list is empty'",
    fix: "remove the variable",
    quiet_if: "the variable is absent, or filled in at start",
    source: "UCX ucp_context.c:1593",
};

pub(crate) const ALL_NOT_ALONE: Cause = Cause {
    id: "ucx-tls-all-not-alone",
    what: "UCX_TLS combines `all` with other names",
    why: "UCX cannot parse the value and does not start",
    fix: "all alone, or a list without it; to leave one out: ^name",
    quiet_if: "all is the only item",
    source: "UCX parser.c:1111",
};

pub(crate) const UNKNOWN_NAME: Cause = Cause {
    id: "ucx-tls-unknown-name",
    what: "UCX_TLS has names that no UCX knows: misspelt, or another library's word (rdma, efa, ibverbs)",
    why: "UCX drops them with one warning in its log; what is left decides",
    fix: "use UCX's names: rc, dc, ud for InfiniBand and RoCE, srd for EFA, cuda_copy and cuda_ipc for GPU memory (AMD: rocm_copy and rocm_ipc, Intel XPU: ze_copy and ze_ipc)",
    quiet_if: "the name exists in another UCX release",
    source: "UCX ucp_context.c:764-790, 1508",
};

pub(crate) const MID_CARET: Cause = Cause {
    id: "ucx-tls-mid-list-caret",
    what: "a ^ stands inside UCX_TLS, not in front of it",
    why: "UCX takes ^ for a denial only in front of the whole list; inside it is part of a name that matches nothing, and the rest is a plain allow list",
    fix: "write ^name alone, or an allow list without ^",
    quiet_if: "never: it has no meaning in any UCX",
    source: "UCX parser.c:1111; vLLM's NixlConnector page shows such a list",
};

pub(crate) const SPELLING: Cause = Cause {
    id: "ucx-tls-spaces-quotes-case",
    what: "an item of UCX_TLS has a space, a quote or an upper-case letter",
    why: "UCX does not trim or fold case: the item matches nothing and silently drops out",
    fix: "no spaces, no quotes inside the value, lower case",
    quiet_if: "never",
    source: "UCX parser.c, ucp_context.c:1508",
};

pub(crate) const NO_ACTIVE_MESSAGES: Cause = Cause {
    id: "ucx-tls-cuda-only-no-am",
    what: "UCX_TLS leaves GPU transports only",
    why: "none of them carries active messages, which NIXL needs: 'no active messages transport'",
    fix: "add rc (with an RDMA device), or tcp for control messages beside multi-node NVLink",
    quiet_if: "never",
    source: "UCX select.c:722; NIXL's UCX backend needs an active-message lane",
};

const ONE_NODE: Cause = Cause {
    id: "ucx-tls-one-node-only",
    what: "UCX_TLS leaves nothing that reaches another node",
    why: "it starts, and fails at the first peer on another node: 'Destination is unreachable'",
    fix: "add rc (with an RDMA device) or, for control messages beside NVLink, tcp",
    quiet_if: "both roles are kept on one host",
    source: "UCX select.c:722",
};

const NO_BOOTSTRAP: Cause = Cause {
    id: "ucx-tls-rc-no-bootstrap",
    what: "UCX_TLS names rc_verbs or rc_mlx5 exactly and nothing that can set up its connections",
    why: "the alias rc brings ud for that; the exact names do not",
    fix: "use rc instead of the exact name, or add ud",
    quiet_if: "the list also has an alias, ud, dc, srd or tcp",
    source: "UCX ucp_context.c:764-790",
};

const UD_ONLY: Cause = Cause {
    id: "ucx-tls-ud-only",
    what: "UCX_TLS leaves ud as the only RDMA transport",
    why: "ud has no one-sided operations: UCX emulates put and get in software, and newer NIXL refuses that",
    fix: "add rc or dc",
    quiet_if: "rc, dc or srd is in the list",
    source: "UCX put/get offload; NIXL PR 1610, 1611",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        let Some(setting) = kv.worker.setting(VARIABLE) else {
            continue;
        };
        if kv.is_mock() {
            continue;
        }
        let role = kv.worker.role.as_str();
        let value = match &setting.value {
            Value::Literal(value) => value,
            Value::Dynamic(why) => {
                findings.push(
                    Finding::skipped(
                        NAME,
                        Reason::Dynamic,
                        format!("{VARIABLE} of {role} is decided at start: {why}"),
                    )
                    .worker(kv.worker)
                    .at(&setting.place, role),
                );
                continue;
            }
        };
        let Some(effect) = &kv.tls else { continue };
        if let Some(why) = kv.path.open() {
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    format!("{VARIABLE}={value} cannot be judged: {why}"),
                )
                .worker(kv.worker)
                .at(&setting.place, role),
            );
            continue;
        }
        if !kv.path.may_use_ucx() {
            let carrier = kv.path.summary().unwrap_or_default();
            findings.push(
                Finding::ok(
                    NAME,
                    format!("{VARIABLE}={value} has no effect on KV: {carrier} carries it"),
                )
                .worker(kv.worker)
                .at(&setting.place, role),
            );
            continue;
        }
        judge(view, kv, setting, value, effect, findings);
    }
}

fn judge(
    view: &View<'_>,
    kv: &WorkerView<'_>,
    setting: &Setting,
    value: &str,
    effect: &TlsEffect,
    findings: &mut Findings,
) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let at = |finding: Finding, label: String| finding.worker(worker).at(&setting.place, label);
    match effect.init {
        Init::FailEmpty => {
            return findings.push(at(
                Finding::fail(
                    NAME,
                    &EMPTY,
                    format!("{role}: {VARIABLE} is set to nothing, so UCX does not start"),
                ),
                format!("{role}: empty"),
            ));
        }
        Init::FailParse => {
            return findings.push(at(
                Finding::fail(
                    NAME,
                    &ALL_NOT_ALONE,
                    format!("{role}: UCX cannot parse {VARIABLE}={value}"),
                ),
                format!("{role}: all is allowed only alone"),
            ));
        }
        Init::Ok | Init::FailNoUsable => {}
    }
    let mut judged = false;
    let bad = ucx_tls::bad_items(value);
    if !bad.is_empty() && ucx_tls::is_allow_list(value) {
        judged = true;
        let names: Vec<String> = bad
            .iter()
            .map(|b| match b.suggestion {
                Some(right) => format!("'{}' (did you mean {right}?)", b.item),
                None => format!("'{}'", b.item),
            })
            .collect();
        let detail = format!(
            "{role}: {VARIABLE} has {} that UCX does not know; {}",
            names.join(", "),
            one_line(kv, effect)
        );
        // The dropped item was the one that mattered.
        let fatal = effect.init == Init::FailNoUsable
            || !effect.inter
            || (!effect.detect && gpu_memory(kv) == Some("cuda_copy"));
        let has = |wanted: fn(&ItemFault) -> bool| bad.iter().any(|b| wanted(&b.fault));
        let cause = if has(|f| matches!(f, ItemFault::CaretInside)) {
            &MID_CARET
        } else if has(|f| matches!(f, ItemFault::SpaceOrQuote | ItemFault::UpperCase)) {
            &SPELLING
        } else {
            &UNKNOWN_NAME
        };
        let finding = if fatal {
            Finding::fail(NAME, cause, detail)
        } else {
            Finding::warn(NAME, cause, detail)
        };
        findings.push(at(finding, format!("{role}: unknown names are dropped")));
        if fatal {
            return;
        }
    } else if effect.init == Init::FailNoUsable {
        return findings.push(at(
            Finding::fail(
                NAME,
                &ONE_NODE,
                format!(
                    "{role}: {VARIABLE}={value} leaves no usable transport, so UCX does not start"
                ),
            ),
            format!("{role}: no usable transport"),
        ));
    }
    if let Some(missing) = missing_memory_transport(kv, value, effect) {
        let on_host = worker
            .literal("kv_buffer_device")
            .is_some_and(|d| d == "cpu");
        if !on_host {
            let detail = format!(
                "{role}: {VARIABLE}={value} has no {missing}: UCX cannot register the accelerator's memory"
            );
            // Values and patches without an image do not tell what accelerator it is.
            let known = worker.accelerator.is_some() || worker.image.is_some();
            let finding = if missing == "cuda_copy" && known {
                Finding::fail(NAME, &NO_GPU_MEMORY, detail)
            } else {
                Finding::warn(NAME, &NO_GPU_MEMORY, detail)
            };
            let finding = finding.fix(format!("add {missing}, or remove UCX_TLS"));
            return findings.push(at(finding, format!("{role}: no {missing}")));
        }
    }
    if network(view, kv, setting, value, effect, findings) {
        return;
    }
    if !judged {
        let mut finding = Finding::ok(
            NAME,
            format!("{VARIABLE}={value}: {}", one_line(kv, effect)),
        );
        if effect.rdma && effect.tcp && ucx_tls::is_allow_list(value) {
            finding = finding.note("tcp in the list allows a silent fallback; without it a missing RDMA path is an error at once");
        }
        findings.push(at(finding, role.to_owned()));
    }
}

/// Judges what reaches other nodes. True where a finding says so.
fn network(
    view: &View<'_>,
    kv: &WorkerView<'_>,
    setting: &Setting,
    value: &str,
    effect: &TlsEffect,
    findings: &mut Findings,
) -> bool {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let finish = |finding: Finding, label: String| finding.worker(worker).at(&setting.place, label);
    let devices = view
        .kv
        .iter()
        .any(|w| w.fabric.rdma.is_some() || w.fabric.efa.is_some());
    if !effect.inter {
        if !effect.shm && !effect.boot_missing {
            findings.push(finish(
                Finding::fail(
                    NAME,
                    &NO_ACTIVE_MESSAGES,
                    format!("{role}: {VARIABLE}={value} leaves no transport for active messages: no peer can be reached"),
                ),
                format!("{role}: GPU transports only"),
            ));
            return true;
        }
        if view.is_single_host() {
            return false;
        }
        if effect.boot_missing {
            findings.push(finish(
                Finding::warn(NAME, &NO_BOOTSTRAP, format!("{role}: {VARIABLE}={value} has rc and nothing that can set up its connections")),
                format!("{role}: nothing to bootstrap rc with"),
            ));
        } else {
            findings.push(finish(
                Finding::fail(
                    NAME,
                    &ONE_NODE,
                    format!("{role}: {VARIABLE}={value} reaches no other node"),
                ),
                format!("{role}: shared memory and NVLink inside one node only"),
            ));
        }
        return true;
    }
    if effect.ud_only {
        findings.push(finish(
            Finding::warn(
                NAME,
                &UD_ONLY,
                format!("{role}: {VARIABLE}={value} leaves ud as the only RDMA transport"),
            ),
            format!("{role}: no one-sided RDMA"),
        ));
        return true;
    }
    let allow = ucx_tls::is_allow_list(value);
    let names = ucx_tls::names(value);
    let only_srd = allow
        && effect.rdma
        && effect
            .main
            .iter()
            .all(|t| !t.starts_with("rc_") && !t.starts_with("dc_"))
        && names.contains(&"srd");
    if only_srd && effect.tcp && !view.kv.iter().any(|w| w.fabric.efa.is_some()) {
        findings.push(finish(
            Finding::warn(NAME, &TCP_OR_SRD, format!("{role}: {VARIABLE}={value} has srd, which exists on EFA only, and no EFA device is asked for: KV goes over TCP")),
            format!("{role}: srd without EFA leaves tcp"),
        ));
        return true;
    }
    if effect.rdma {
        let visible = devices
            || view.kv.iter().any(|w| {
                w.fabric.privileged || w.worker.host_network || w.fabric.open_claim.is_some()
            });
        if allow && !effect.tcp && !visible && !view.is_part() && !view.is_single_host() {
            findings.push(finish(
                Finding::fail(NAME, &RC_ONLY, format!("{role}: {VARIABLE}={value} has RDMA as its only way to other nodes, and no role asks for an RDMA device")),
                format!("{role}: needs an RDMA device"),
            ));
            return true;
        }
        return false;
    }
    tcp_only(view, kv, setting, value, effect, findings)
}

/// TCP is all that is left between nodes.
fn tcp_only(
    view: &View<'_>,
    kv: &WorkerView<'_>,
    setting: &Setting,
    value: &str,
    effect: &TlsEffect,
    findings: &mut Findings,
) -> bool {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let finish = |finding: Finding, label: String| finding.worker(worker).at(&setting.place, label);
    if effect.mnnvl && kv.fabric.compute_domain.is_some() {
        // KV goes over multi-node NVLink, tcp carries control messages; env/mnnvl judges the rest.
        return false;
    }
    if view.is_one_pod() || (view.is_single_host() && effect.nvlink) {
        return false;
    }
    if matches!(
        worker.accelerator,
        Some(
            Accelerator::IntelXpu
                | Accelerator::Tpu
                | Accelerator::Gaudi
                | Accelerator::Ascend
                | Accelerator::Neuron
        )
    ) {
        findings.push(
            finish(
                Finding::ok(NAME, format!("{VARIABLE}={value}: KV goes over TCP")),
                role.to_owned(),
            )
            .note("TCP is the base path of this accelerator's examples; it is slow"),
        );
        return true;
    }
    if view.is_part() && !view.asks_for_fabric() {
        // What the patched objects ask for is not here.
        findings.push(
            finish(Finding::ok(NAME, format!("{VARIABLE}={value}: {}", one_line(kv, effect))), role.to_owned())
                .note("it leaves only TCP between nodes unless the patched object claims a compute domain"),
        );
        return true;
    }
    if let Some(claim) = kv.fabric.open_claim.filter(|_| effect.mnnvl) {
        findings.push(finish(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "{VARIABLE}={value} is right where {} is the channel of a compute domain, and leaves TCP between nodes otherwise; what it is, is not in the input",
                    crate::fabric::claim_name(claim)
                ),
            ),
            role.to_owned(),
        ));
        return true;
    }
    let asked = view.kv.iter().find(|w| w.fabric.any());
    // The other role's list, where it allows what this one forbids, belongs into the same picture.
    let other = view
        .kv
        .iter()
        .find(|w| w.worker.role != worker.role && w.tls.as_ref().is_some_and(|t| t.rdma))
        .and_then(|w| w.worker.setting(VARIABLE).map(|s| (w, s)));
    let label = if effect.nvlink {
        format!("{role}: no RDMA transport; NVLink inside a node only")
    } else {
        format!("{role}: no RDMA transport in this list")
    };
    let mut finding = if let Some(asked) = asked {
        let detail = format!(
            "{role}: {VARIABLE}={value} leaves only TCP between nodes, while {} asks for {}",
            if asked.worker.role == worker.role {
                "it"
            } else {
                asked.worker.role.as_str()
            },
            asked.fabric.summary()
        );
        finish(
            Finding::fail(NAME, &TCP_ONLY, detail).fix(without_tcp(kv)),
            label,
        )
    } else if effect.nvlink {
        finish(
            Finding::warn(
                NAME,
                &CUDA_IPC_TCP,
                format!(
                    "{role}: {VARIABLE}={value} without a compute domain or RDMA resource: KV goes over TCP between nodes"
                ),
            ),
            label,
        )
    } else {
        finish(
            Finding::warn(
                NAME,
                &TCP_ONLY,
                format!("{role}: {VARIABLE}={value}: KV goes over TCP"),
            )
            .fix(without_tcp(kv)),
            label,
        )
    };
    // MPI needs UCX only to start, so tcp is right in a job of NCCL tests.
    let of_a_job = ["NCCL_IB_HCA", "NCCL_IB_GID_INDEX"]
        .iter()
        .any(|n| worker.setting(n).is_some())
        || worker.starts_mpirun;
    if of_a_job && !effect.nvlink {
        finding = finding.told(&COPIED_FROM_JOB);
    }
    match other {
        Some((other, line)) => {
            finding = finding.at(
                &line.place,
                format!("{}: allows RDMA", other.worker.role.as_str()),
            );
        }
        None => {
            if let Some(place) = asked.and_then(fabric_place) {
                finding = finding.context(place, "the fabric that is asked for");
            }
        }
    }
    findings.push(finding);
    true
}

/// What to write instead of TCP only, for this worker's accelerator.
fn without_tcp(kv: &WorkerView<'_>) -> String {
    let own = match gpu_memory(kv) {
        Some("rocm_copy") => "rocm_copy and rocm_ipc",
        Some("ze_copy") => "ze_copy and ze_ipc",
        _ => "cuda_copy and cuda_ipc",
    };
    format!("remove UCX_TLS (UCX then uses every transport that works), or list rc with {own}")
}

fn fabric_place<'f>(kv: &'f WorkerView<'_>) -> Option<&'f Place> {
    kv.fabric
        .rdma
        .map(crate::fabric::Rdma::place)
        .or(kv.fabric.efa.map(|r| &r.place))
        .or(kv.fabric.compute_domain.map(|c| &c.place))
}

/// The effect in one sentence, in the words of this worker's accelerator.
fn one_line(kv: &WorkerView<'_>, effect: &TlsEffect) -> String {
    effect.one_line_with(gpu_memory(kv).unwrap_or("cuda_copy"))
}

/// The transport without which UCX does not know this worker's accelerator memory.
fn gpu_memory(kv: &WorkerView<'_>) -> Option<&'static str> {
    match kv.worker.accelerator {
        Some(Accelerator::Nvidia) => Some("cuda_copy"),
        Some(Accelerator::Amd) => Some("rocm_copy"),
        Some(Accelerator::IntelXpu) => Some("ze_copy"),
        Some(_) => None,
        // A claim or a patch hides the kind. An image or a list made for another one shows it.
        None => {
            let image = kv
                .worker
                .image
                .as_ref()
                .map(|i| i.value.to_ascii_lowercase())
                .unwrap_or_default();
            let value = kv.worker.literal(VARIABLE).unwrap_or_default();
            if image.contains("rocm") || value.contains("rocm") {
                Some("rocm_copy")
            } else if image.contains("xpu") || value.contains("ze_") {
                Some("ze_copy")
            } else if image.contains("cpu") || image.contains("tpu") || image.contains("hpu") {
                None
            } else {
                Some("cuda_copy")
            }
        }
    }
}

fn missing_memory_transport(
    kv: &WorkerView<'_>,
    value: &str,
    effect: &TlsEffect,
) -> Option<&'static str> {
    let wanted = gpu_memory(kv)?;
    let family = wanted.strip_suffix("_copy")?;
    // What a build with every transport keeps; ROCm and Level Zero are judged by their names.
    let present = effect.main.contains(&wanted)
        || (ucx_tls::is_allow_list(value)
            && ucx_tls::names(value)
                .iter()
                .any(|n| *n == wanted || *n == family))
        || (!ucx_tls::is_allow_list(value) && wanted != "cuda_copy");
    (!present).then_some(wanted)
}
