//! Values that decide the KV path are ones that the engine takes.
//!
//! Engines look these words up in a list of their own and stop at one that is not in it: `kv_role` and the need for one
//! (vLLM), `--disaggregation-mode` (argparse choices of SGLang and Dynamo), `kv_buffer_device` (vLLM's NixlConnector),
//! `cache_transceiver_config.backend` (TensorRT-LLM). A word that is far from all known ones may be one of a later
//! release where the list is not closed, and is a warning. A variable or a placeholder is left alone.

use model::{Engine, Role, Setting, Worker};
use settings::connectors;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::View;

const NAME: &str = "env/engine-values";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the engine takes the values that decide the KV path",
    source: include_str!("engine_values.rs"),
    causes: &[NOT_TAKEN, NO_KV_ROLE, CONFIG_BROKEN],
    notes: &[],
    run: Run::Recipe(run),
};

const NOT_TAKEN: Cause = Cause {
    id: "engine-value-unknown",
    what: "kv_role, --disaggregation-mode, kv_buffer_device or cache_transceiver_config.backend has a value that the engine does not know",
    why: "the engine refuses its arguments or its configuration and does not start",
    fix: "write one of the values that are named",
    quiet_if: "a variable, a placeholder; a backend of TensorRT-LLM in small letters; a warning where the word is far from every known one and a later release may know it",
    source: "vLLM config/kv_transfer.py (KVTransferConfig.__post_init__: Unsupported kv_role), nixl_connector.py (kv_buffer is not supported); SGLang server_args.py and ai-dynamo/dynamo components/src/dynamo (choices of --disaggregation-mode); TensorRT-LLM llm_args.py (CacheTransceiverConfig.backend)",
};

const NO_KV_ROLE: Cause = Cause {
    id: "vllm-kv-role-missing",
    what: "--kv-transfer-config names a kv_connector and no kv_role",
    why: "vLLM stops with a ValueError: kv_role has to be there where kv_connector is",
    fix: "add \"kv_role\":\"kv_both\", or kv_producer on prefill and kv_consumer on decode",
    quiet_if: "no kv_connector; a kv_role beside it, also as --kv-transfer-config.kv_role; a value that cannot be read",
    source: "vLLM config/kv_transfer.py (KVTransferConfig.__post_init__: Please specify kv_role when kv_connector is set)",
};

const CONFIG_BROKEN: Cause = Cause {
    id: "engine-config-broken",
    what: "the engine's configuration is no YAML or JSON, or a section of it is no mapping",
    why: "the engine refuses its configuration and does not start",
    fix: "correct the line that is named",
    quiet_if: "the configuration is not in the input; braces that a template fills in; a section that is null",
    source: "TensorRT-LLM llm_args.py, update_llm_args_with_extra_dict; ai-dynamo/dynamo --extra-engine-args, --override-engine-args",
};

/// What an engine takes for a setting.
struct Choices {
    known: &'static [&'static str],
    /// Words of other engines and releases, which are left alone and not recommended.
    tolerated: &'static [&'static str],
    /// Whether the list is closed: every other word stops the engine.
    closed: bool,
    any_case: bool,
}

const KV_ROLES: Choices = Choices {
    known: &["kv_producer", "kv_consumer", "kv_both"],
    tolerated: &[],
    closed: true,
    any_case: false,
};

const BUFFER_DEVICES: Choices = Choices {
    known: &["cuda", "cpu", "xpu"],
    tolerated: &["tpu", "npu", "hpu", "neuron", "musa", "mlu", "rocm", "hip"],
    closed: false,
    any_case: false,
};

/// Of all releases: some write Literal types, some take small letters.
const TRANSCEIVERS: Choices = Choices {
    known: &["DEFAULT", "UCX", "NIXL", "MOONCAKE", "MPI"],
    tolerated: &["NULL"],
    closed: true,
    any_case: true,
};

/// `--disaggregation-mode`, which every engine under Dynamo has, with words of its own.
fn modes(engine: Engine) -> Choices {
    let known: &[&str] = match engine {
        Engine::Sglang => &["prefill", "decode", "null"],
        Engine::Trtllm => &["prefill", "decode", "encode", "prefill_and_decode"],
        _ => &["agg", "prefill", "decode", "encode"],
    };
    Choices {
        known,
        tolerated: &[
            "agg",
            "aggregated",
            "pd",
            "encode",
            "null",
            "none",
            "prefill_and_decode",
            "prefill_first",
            "decode_first",
        ],
        closed: false,
        any_case: false,
    }
}

fn choices(worker: &Worker, setting: &Setting) -> Option<Choices> {
    match setting.name.as_str() {
        "kv_role" => Some(KV_ROLES),
        "kv_buffer_device" => Some(BUFFER_DEVICES),
        "cache_transceiver_config.backend" if worker.engine == Engine::Trtllm => Some(TRANSCEIVERS),
        "--disaggregation-mode" => Some(modes(worker.engine)),
        _ => None,
    }
}

/// Whether TensorRT-LLM knows a backend of this name.
pub(super) fn is_transceiver(name: &str) -> bool {
    TRANSCEIVERS.takes(name)
}

impl Choices {
    fn takes(&self, value: &str) -> bool {
        self.known
            .iter()
            .chain(self.tolerated)
            .any(|k| *k == value || self.any_case && k.eq_ignore_ascii_case(value))
    }

    /// The word that was meant: one slip away, or the same in capitals.
    fn meant(&self, value: &str) -> Option<&'static str> {
        let plain = value.trim();
        self.known
            .iter()
            .copied()
            .find(|k| k.eq_ignore_ascii_case(plain))
            .or_else(|| {
                let plain = if self.any_case {
                    plain.to_ascii_uppercase()
                } else {
                    plain.to_ascii_lowercase()
                };
                connectors::slip_of(&plain, self.known.iter().copied())
            })
    }
}

fn run(view: &View<'_>, findings: &mut Findings) {
    for worker in &view.deployment.workers {
        let runs_engine = matches!(
            worker.role,
            Role::Prefill | Role::Decode | Role::Aggregated | Role::Encode
        );
        if !runs_engine || worker.engine == Engine::Mocker {
            continue;
        }
        for setting in &worker.settings {
            if let Some(choices) = choices(worker, setting) {
                value(worker, setting, &choices, findings);
            }
        }
        kv_role(worker, findings);
        if let Some(fault) = worker.setting(model::CONFIG_FAULT) {
            let role = worker.role.as_str();
            let why = fault.value.literal().unwrap_or_default();
            findings.push(
                Finding::fail(
                    NAME,
                    &CONFIG_BROKEN,
                    format!("{role}: the engine configuration is broken: {why}"),
                )
                .worker(worker)
                .at(&fault.place, format!("{role}: broken here")),
            );
        }
    }
}

fn value(worker: &Worker, setting: &Setting, choices: &Choices, findings: &mut Findings) {
    let Some(value) = setting.value.literal() else {
        return;
    };
    // Placeholders are filled in before the engine sees them.
    let filled_in = value.contains(['{', '$', '<', '%']);
    // A mode without a word is a flag whose value stands elsewhere.
    let nothing = value.is_empty() && setting.name != "kv_role";
    if filled_in || nothing || choices.takes(value) {
        return;
    }
    let role = worker.role.as_str();
    let meant = choices.meant(value);
    let list = choices.known.join(", ");
    let detail = format!(
        "{role}: {} is {value}, expected one of {list}",
        setting.name
    );
    let finding = if choices.closed || meant.is_some() {
        Finding::fail(
            NAME,
            &NOT_TAKEN,
            format!("{detail}: the engine does not start"),
        )
    } else {
        Finding::warn(
            NAME,
            &NOT_TAKEN,
            format!("{detail}: the engine does not start unless its release knows the word"),
        )
    };
    let finding = match meant {
        Some(meant) => finding.fix(format!("write {meant}")),
        None => finding.fix(format!("write one of {list}")),
    };
    findings.push(
        finding
            .worker(worker)
            .at(&setting.place, format!("{role}: not known")),
    );
}

fn kv_role(worker: &Worker, findings: &mut Findings) {
    // What a chart's own keys or Dynamo's --connector make of it is theirs.
    let connector = worker.settings.iter().find(|s| {
        s.name == "kv_connector" && s.value.literal().is_some_and(|name| !name.is_empty())
    });
    let Some(connector) = connector.filter(|c| c.form != model::Form::EngineConfig) else {
        return;
    };
    if worker.setting("kv_role").is_some() || worker.setting("--kv-transfer-config").is_some() {
        return;
    }
    if !matches!(
        worker.engine,
        Engine::Vllm | Engine::TokenSpeed | Engine::Unknown
    ) {
        return;
    }
    let role = worker.role.as_str();
    findings.push(
        Finding::fail(
            NAME,
            &NO_KV_ROLE,
            format!("{role}: --kv-transfer-config has a kv_connector and no kv_role: vLLM does not start"),
        )
        .worker(worker)
        .at(&connector.place, format!("{role}: no kv_role beside it")),
    );
}
