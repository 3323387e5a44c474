//! Both roles configure a KV connector, so that there is a transfer at all.
//!
//! Disaggregation needs one half of a connector in each role. Where one is missing nothing is transferred:
//! the worker refuses to start, or it starts and decode silently computes the prefill again.
//!
//! Read from: `--kv-transfer-config` (also through variables, ConfigMaps and wrappers such as MultiConnector
//! and PdConnector), `--disaggregation-transfer-backend`, `cache_transceiver_config.backend`.
//! Connectors that only offload (DynamoConnector, OffloadingConnector, LMCache) do not count.

use model::{Engine, Grade, GroupPart, Reason, Role};

use crate::check::{Cause, Check, Run};
use crate::env::start_command;
use crate::finding::{Finding, Findings};
use crate::kv_path::{self, Connector};
use crate::view::{View, WorkerView};

const NAME: &str = "env/kv-connector";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode both configure a KV connector",
    source: include_str!("kv_connector.rs"),
    causes: &[
        PREFILL_NO_CONNECTOR,
        DECODE_NO_CONNECTOR,
        TRANSCEIVER_UNSET,
        ROLE_SWAPPED,
        TRTLLM_MPI,
    ],
    notes: &[TRTLLM_DEFAULT],
    run: Run::Recipe(run),
};

const PREFILL_NO_CONNECTOR: Cause = Cause {
    id: "prefill-no-connector",
    what: "prefill has no KV connector: vLLM without `--kv-transfer-config`, SGLang without `--disaggregation-mode`",
    why: "dynamo.vllm from 1.0 on stops with a ValueError; plain vLLM and SGLang start, keep their KV cache to themselves, and decode has nothing to pull",
    fix: "give prefill the same connector as decode: --kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'; SGLang: --disaggregation-mode prefill",
    quiet_if: "the image is a Dynamo image before 1.0 (NIXL is its default); the command is inside the image or a sourced script; the engine is a mock; only a name says prefill and there is no decode worker beside it; a warning where neither role has a connector and only names say what they are",
    source: "ai-dynamo/dynamo components/src/dynamo/vllm/args.py; ai-dynamo/dynamo#11467",
};

const DECODE_NO_CONNECTOR: Cause = Cause {
    id: "decode-no-connector",
    what: "prefill has a KV connector and decode has none: vLLM without `--kv-transfer-config`, SGLang without `--disaggregation-mode`",
    why: "vLLM logs that it found no KVConnector and disables the transfer, SGLang serves whole requests: decode computes every prefill again",
    fix: "give decode the same connector as prefill: --kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'; SGLang: --disaggregation-mode decode",
    quiet_if: "the image is a Dynamo image before 1.0 (NIXL is its default); the command is inside the image or a sourced script; the engine is a mock; nothing but its name says decode, and no prefill worker stands beside it",
    source: "ai-dynamo/dynamo#11467 and #11468",
};

const TRANSCEIVER_UNSET: Cause = Cause {
    id: "trtllm-transceiver-unset",
    what: "a TensorRT-LLM engine configuration without `cache_transceiver_config.backend`",
    why: "KV cache transfer is off unless a backend is named",
    fix: "set cache_transceiver_config: {backend: DEFAULT} (or NIXL, UCX) in both engine configurations",
    quiet_if: "the configuration file is not in the input (it may be inside the image)",
    source: "ai-dynamo/dynamo docs, kv-cache-transfer; TensorRT-LLM",
};

const ROLE_SWAPPED: Cause = Cause {
    id: "vllm-kv-role",
    what: "`kv_role` is kv_consumer on prefill or kv_producer on decode",
    why: "the worker offers the direction that its role does not use, so nothing is transferred",
    fix: "kv_producer on prefill and kv_consumer on decode, or kv_both on both",
    quiet_if: "kv_both; the role comes from kv_role itself; NixlConnector beside a disaggregation mode; a warning with NixlConnector alone, which takes either direction whatever kv_role says, until releases that tell prefill from decode by it",
    source: "vLLM disaggregated prefill documentation; vLLM nixl_connector_usage (kv_role is a placeholder), vllm#43874 (kv_both deprecated for NIXL)",
};

const TRTLLM_MPI: Cause = Cause {
    id: "trtllm-mpi",
    what: "TensorRT-LLM transfers KV cache over MPI",
    why: "prefill and decode must then be ranks of one MPI world; it is a deprecated path that NIXL and UCX replace",
    fix: "set cache_transceiver_config.backend to DEFAULT, NIXL or UCX",
    quiet_if: "another backend is named",
    source: "TensorRT-LLM cache transceiver documentation",
};

const TRTLLM_DEFAULT: Cause = Cause {
    id: "trtllm-default-flip",
    what: "cache_transceiver_config.backend is DEFAULT",
    why: "DEFAULT meant UCX in some TensorRT-LLM releases and means NIXL now (an image whose tag tells no version counts as current); both roles have to run the same release, or name the backend",
    fix: "name the backend: NIXL or UCX",
    quiet_if: "the backend is named",
    source: "TensorRT-LLM cache transceiver; ai-dynamo/dynamo docs, kv-cache-transfer",
};

/// What to do where the connector cannot be seen.
const SHOW: &str = "give what holds it as well (the script, the ConfigMap, the other role's file), or look for --kv-transfer-config in the running pod's command";

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.is_part() {
        return;
    }
    for kv in &view.kv {
        judge(view, kv, findings);
    }
}

fn judge(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    if kv.is_mock() {
        findings.push(Finding::ok(NAME, "a mock engine: no KV cache moves").worker(worker));
        return;
    }
    let role = worker.role.as_str();
    let peer_has = view
        .kv
        .iter()
        .any(|o| o.worker.role != worker.role && o.path.moves_kv(o.worker.engine));
    if matches!(
        kv.path.connector,
        Connector::Unknown(_) | Connector::Nothing
    ) && let Some(leader) = leader_of(view, kv)
    {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotApplicable,
                format!(
                    "ranks of {}, whose leader configures the KV connector",
                    leader.worker.name
                ),
            )
            .worker(worker),
        );
        return;
    }
    match &kv.path.connector {
        // Its value was looked at with the start command.
        Connector::Unknown(_) if start_command::not_json(worker).is_some() => {}
        // So was its configuration.
        Connector::Unknown(_) if worker.setting(model::CONFIG_FAULT).is_some() => {}
        Connector::Unknown(why) => {
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    format!("the KV connector of {role} cannot be seen: {why}"),
                )
                .required()
                .fix(SHOW)
                .worker(worker)
                .at(kv.path.place.as_ref().unwrap_or(&worker.place), role),
            );
        }
        Connector::Nothing if worker.engine == Engine::Trtllm => {
            let mut finding = Finding::fail(NAME, &TRANSCEIVER_UNSET, format!("{role} has an engine configuration without cache_transceiver_config.backend: KV transfer is off"))
                .worker(worker);
            let file = worker
                .setting("--extra-engine-args")
                .or_else(|| worker.setting("--extra-llm-api-options"))
                .or_else(|| worker.setting("--override-engine-args"));
            finding = match (kv.path.place.as_ref(), file) {
                (Some(place), _) => finding.at(place, format!("{role}: backend is null")),
                (None, Some(setting)) => finding.at(
                    &setting.place,
                    format!("{role}: this configuration names no transceiver backend"),
                ),
                (None, None) => finding.at(&worker.place, role.to_owned()),
            };
            findings.push(finding);
        }
        Connector::Nothing => no_connector(view, kv, peer_has, findings),
        connector => configured(kv, connector, findings),
    }
}

/// The leader of a group whose other pods often only join (ray start): its engine starts their ranks.
fn leader_of<'v, 'f>(view: &'v View<'f>, kv: &WorkerView<'_>) -> Option<&'v WorkerView<'f>> {
    view.kv.iter().find(|o| {
        kv.worker.part == Some(GroupPart::Member)
            && o.worker.part == Some(GroupPart::Leader)
            && o.worker.name == kv.worker.name
            && o.path.moves_kv(o.worker.engine)
    })
}

fn no_connector(view: &View<'_>, kv: &WorkerView<'_>, peer_has: bool, findings: &mut Findings) {
    let worker = kv.worker;
    let told = worker
        .setting("--disaggregation-mode")
        .or_else(|| worker.setting("--is-prefill-worker"))
        .or_else(|| worker.setting(model::VLLM_MODE))
        .or_else(|| worker.setting("DYN_VLLM_IS_PREFILL_WORKER"));
    let cause = match worker.role {
        Role::Prefill => &PREFILL_NO_CONNECTOR,
        _ => &DECODE_NO_CONNECTOR,
    };
    // Decode without a connector is judged against a prefill that has one, or on its own where its engine was
    // told to decode. A prefill worker that Dynamo starts without one stops.
    let certain = peer_has || (worker.role == Role::Prefill && told.is_some());
    let named_only = !certain && nobody_has(view);
    if !certain && !(named_only && worker.role == Role::Prefill) {
        if worker.role == Role::Decode
            && view
                .role(Role::Prefill)
                .any(|p| p.path.connector == Connector::Nothing)
        {
            // The finding about prefill says it all.
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotApplicable,
                    "decode has no KV connector either; prefill is reported",
                )
                .worker(worker),
            );
            return;
        }
        findings.push(
            Finding::skipped(NAME, Reason::NotVisible, format!("no KV connector of {} is configured in the input; what moves KV cache, if anything, cannot be seen", worker.role.as_str()))
                .required()
                .fix(SHOW)
                .worker(worker),
        );
        return;
    }
    let flag = if worker.engine == Engine::Sglang {
        "--disaggregation-mode"
    } else {
        "--kv-transfer-config"
    };
    let detail = match worker.role {
        _ if named_only => format!(
            "the workers are named prefill and decode, and none has a {flag}: nothing is transferred"
        ),
        Role::Prefill if worker.engine == Engine::Sglang => {
            format!("prefill has no {flag}: it serves whole requests and hands nothing over")
        }
        Role::Prefill => {
            format!("prefill has no {flag}: it stops at start, or has nothing to hand over")
        }
        _ => format!(
            "decode has no {flag} while prefill has a KV connector: nothing is transferred, decode computes the prefill again"
        ),
    };
    let mut finding = if named_only {
        Finding::warn(NAME, cause, detail)
    } else {
        Finding::fail(NAME, cause, detail)
    }
    .worker(worker);
    let role = worker.role.as_str();
    finding = match told {
        Some(setting) => finding.at(&setting.place, format!("{role}: no {flag} on this command")),
        None => finding.at(&worker.place, format!("{role}: no {flag} on its command")),
    };
    if let Some(peer) = view
        .kv
        .iter()
        .find(|o| o.worker.role != worker.role && o.path.place.is_some())
        && let Some(place) = &peer.path.place
    {
        finding = finding.context(place, format!("{} has one", peer.worker.role.as_str()));
    }
    findings.push(finding);
}

/// Both roles are there, every command can be seen, and none configures a connector.
fn nobody_has(view: &View<'_>) -> bool {
    view.has_both_roles()
        && view
            .kv
            .iter()
            .all(|w| w.path.connector == Connector::Nothing && w.worker.engine != Engine::Trtllm)
}

fn configured(kv: &WorkerView<'_>, connector: &Connector, findings: &mut Findings) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let summary = kv.path.summary().unwrap_or_default();
    if *connector == Connector::Other("TensorRT-LLM/MPI".to_owned()) {
        let mut finding = Finding::warn(
            NAME,
            &TRTLLM_MPI,
            format!("{role} transfers KV cache over MPI"),
        )
        .worker(worker);
        if let Some(place) = &kv.path.place {
            finding = finding.at(place, format!("{role}: MPI"));
        }
        findings.push(finding);
        return;
    }
    let kv_role = worker.setting("kv_role");
    let swapped = match (worker.role, kv_role.and_then(|s| s.value.literal())) {
        (Role::Prefill, Some("kv_consumer")) | (Role::Decode, Some("kv_producer")) => kv_role,
        _ => None,
    };
    // NIXL moves in the direction of each request; beside a mode that the engine was told, kv_role says nothing.
    let mode = worker
        .setting("--disaggregation-mode")
        .or_else(|| worker.setting(model::VLLM_MODE));
    let told_a_mode = mode.is_some();
    if let Some(setting) = swapped.filter(|_| *connector != Connector::Nixl || !told_a_mode) {
        let value = setting.value.literal().unwrap_or_default();
        let detail = format!("{role} has kv_role {value}, the other role's direction");
        let finding = if *connector == Connector::Nixl {
            Finding::warn(
                NAME,
                &ROLE_SWAPPED,
                format!(
                    "{detail}: nothing else tells this engine its role, and NIXL does not look at kv_role, until a release that does"
                ),
            )
        } else {
            Finding::fail(NAME, &ROLE_SWAPPED, detail)
        };
        findings.push(
            finding
                .worker(worker)
                .at(&setting.place, format!("{role}: {value}")),
        );
        return;
    }
    let how = match kv_role.and_then(|s| s.value.literal()) {
        Some(kv_role) => format!("{summary}, {kv_role}"),
        None => summary,
    };
    if kv_path::keeps_kv(worker) {
        let name = kv.path.summary().unwrap_or_default();
        let mut finding = Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "{role} has {name}, which keeps KV cache: nothing visible moves it from prefill to decode, unless its own configuration does"
            ),
        )
        .required()
        .fix("give its configuration (LMCACHE_* variables, the ConfigMap of its file), or add a connector that moves KV cache, such as NixlConnector")
        .worker(worker);
        if let Some(place) = &kv.path.place {
            finding = finding.at(place, role);
        }
        findings.push(finding);
        return;
    }
    let mut finding = Finding::ok(NAME, how).worker(worker);
    if let (Some(setting), Some(mode)) = (swapped, mode) {
        finding = finding.note(format!(
            "kv_role {} is the other role's direction and decides nothing here: {} tells the engine its role, and NixlConnector takes either direction",
            setting.value.literal().unwrap_or_default(),
            mode.name
        ));
    }
    if worker
        .literal("cache_transceiver_config.backend")
        .is_some_and(|b| b.eq_ignore_ascii_case("default"))
    {
        finding = finding.told(&TRTLLM_DEFAULT);
    }
    match &kv.path.place {
        Some(place) => finding = finding.at(place, role.to_owned()),
        None => finding = finding.grade(Grade::Assumed),
    }
    if worker.engine == Engine::Sglang
        && worker
            .setting("--disaggregation-transfer-backend")
            .is_none()
    {
        finding = finding.note("--disaggregation-transfer-backend is not set: SGLang uses mooncake, not NIXL, so UCX settings have no effect on KV");
    }
    findings.push(finding);
}
