//! Which pods and which of their containers are looked into, and why.
//!
//! A pod is taken where something shows that it sends or receives KV cache: the label that its stack's router selects
//! by, what its engine is told, or, where its start command cannot be seen, a name of a role or accelerators. An engine
//! that does whole requests (nothing tells it a role, no connector between workers, and all of its command is visible)
//! moves no KV cache and is passed over; who names such a pod gets it all the same, since names are not chosen here.
//! Frontends, planners and mock engines are passed over.

use model::pod::{Container, ContainerKind};
use model::{Engine, Fault, FaultKind, Hidden, NamedBy, PodObject, Role, Worker};

use super::state;
use crate::engine;
use crate::pods::ROLE_LABELS;

/// Why a pod or a container was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The role that it shows, where it shows one.
    pub role: Option<Role>,
    /// In words: `label llm-d.ai/role=prefill`.
    pub words: String,
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.words)
    }
}

fn why(role: Option<Role>, words: impl Into<String>) -> Why {
    Why {
        role,
        words: words.into(),
    }
}

/// What a label says of a pod.
enum Said<'l> {
    /// It prefills or decodes.
    Moves(Role, &'l str, &'l str),
    /// It is something else.
    Other(&'l str, &'l str),
}

/// What the labels of stacks say of a pod's role.
fn said(pod: &PodObject) -> Option<Said<'_>> {
    let mut other = None;
    for (key, value) in &pod.labels {
        let key = key.as_str();
        if !ROLE_LABELS.contains(&key) {
            continue;
        }
        let low = value.to_ascii_lowercase();
        match engine::role_of_name(value) {
            Some(role) if role.moves_kv() => return Some(Said::Moves(role, key, value)),
            _ => {}
        }
        // Dynamo calls a worker without a sub-type so, and llm-d one that does both: neither says no.
        if !matches!(
            low.as_str(),
            "worker" | "both" | "prefill-decode" | "leader" | ""
        ) {
            other = Some(Said::Other(key, value));
        }
    }
    other
}

/// A setting that shows a role, or a connector between workers.
const TELLING: [&str; 14] = [
    "--disaggregation-mode",
    "--server-role",
    "--is-prefill-worker",
    "--is-decode-worker",
    "--kv-transfer-config",
    "kv_role",
    "kv_connector",
    "--disaggregation-transfer-backend",
    "cache_transceiver_config.backend",
    model::VLLM_MODE,
    model::TRTLLM_MODE,
    "DYN_VLLM_IS_PREFILL_WORKER",
    "DYN_VLLM_IS_DECODE_WORKER",
    "LMCACHE_PD_ROLE",
];

/// Why this pod is one that sends or receives KV cache; `None` where it is not.
#[must_use]
pub fn kv_worker(pod: &PodObject, workers: &[Worker]) -> Option<Why> {
    let label = said(pod);
    if let Some(Said::Moves(role, key, value)) = &label
        && !workers.iter().any(|w| w.engine == Engine::Mocker)
    {
        return Some(why(Some(*role), format!("label {key}={value}")));
    }
    let engines = || {
        workers
            .iter()
            .filter(|w| w.engine != Engine::Mocker && !matches!(w.role, Role::Frontend))
    };
    if let Some(worker) = engines().find(|w| w.role.moves_kv()) {
        let role = Some(worker.role).filter(|r| *r != Role::Unknown);
        if let Some(setting) = TELLING.iter().find_map(|name| worker.setting(name)) {
            // Keys inside the JSON of a flag are told by the flag.
            let name = match setting.name.as_str() {
                "kv_role" | "kv_connector" => "--kv-transfer-config",
                name => name,
            };
            let what = if name.starts_with('-') {
                "flag"
            } else if model::is_variable(name) {
                "variable"
            } else {
                "setting"
            };
            return Some(why(
                role,
                format!("{what} {name} in container {}", worker.container),
            ));
        }
        return Some(why(
            role,
            format!("what container {} is told", worker.container),
        ));
    }
    if let Some(Said::Other(..)) = label {
        return None;
    }
    let closed = |w: &&Worker| {
        w.accelerators.is_some()
            && (!w.has_command
                || w.hidden(Hidden::Command).is_some()
                || w.hidden(Hidden::EngineConfig).is_some())
    };
    let worker = engines().find(closed)?;
    let named = worker
        .named
        .as_deref()
        .filter(|n| n.role.moves_kv() && matches!(n.by, NamedBy::Label | NamedBy::Name));
    Some(match named {
        Some(named) => why(
            Some(named.role),
            format!(
                "{} says {}, and container {} asks for accelerators",
                named.by.as_str(),
                named.role.as_str(),
                worker.container
            ),
        ),
        None => why(
            None,
            format!(
                "container {} asks for accelerators, and the pod spec does not show what its engine is told",
                worker.container
            ),
        ),
    })
}

/// Why a pod is passed over, in words.
#[must_use]
pub fn passed_over(pod: &PodObject, workers: &[Worker]) -> String {
    if workers.iter().any(|w| w.engine == Engine::Mocker) {
        return "a mock engine, which moves no KV cache".to_owned();
    }
    if let Some(Said::Other(key, value)) = said(pod) {
        return format!("label {key}={value}");
    }
    if workers.iter().any(|w| w.role == Role::Frontend) {
        return "a frontend, which holds no KV cache".to_owned();
    }
    if workers
        .iter()
        .any(|w| w.role == Role::Aggregated && w.engine != Engine::Unknown)
    {
        return "an engine that serves whole requests: it is told no role and no connector between workers"
            .to_owned();
    }
    "nothing in it shows an engine".to_owned()
}

/// Resources that are accelerators.
fn accelerates(container: &Container) -> bool {
    container
        .resources
        .keys()
        .any(|name| crate::resources::is_accelerator(name))
}

/// The container of a pod to look into, and why: the one that is asked for, else `main` (so Dynamo calls it), else the
/// one that asks for accelerators, else the only one.
///
/// # Errors
///
/// It is not there, or several could be meant.
pub fn container(pod: &PodObject, asked: Option<&str>) -> Result<(String, Why), Fault> {
    let taken = |c: &Container, words: &str| Ok((c.name.clone(), why(None, words)));
    if let Some(asked) = asked {
        return match pod.container(asked) {
            Some(found) => taken(found, "asked for"),
            None => Err(Fault::new(
                FaultKind::NoSuchContainer,
                state::names(pod, asked),
            )),
        };
    }
    let mains: Vec<&Container> = pod
        .containers
        .iter()
        .filter(|c| c.kind == ContainerKind::Main)
        .collect();
    if let Some(main) = mains.iter().find(|c| c.name == "main") {
        return taken(main, "named main");
    }
    let with: Vec<&Container> = mains.iter().copied().filter(|c| accelerates(c)).collect();
    match (with.as_slice(), mains.as_slice()) {
        ([one], _) => taken(one, "the one that asks for accelerators"),
        ([], [one]) => taken(one, "the only one"),
        ([], []) => Err(Fault::new(
            FaultKind::NoSuchContainer,
            "the pod has no container that stays",
        )),
        ([], several) => Err(ambiguous(several, "none of them asks for accelerators")),
        (several, _) => Err(ambiguous(several, "each asks for accelerators")),
    }
}

fn ambiguous(several: &[&Container], why: &str) -> Fault {
    let names: Vec<&str> = several.iter().map(|c| c.name.as_str()).collect();
    Fault::new(
        FaultKind::AmbiguousContainer,
        format!("{} containers: {} ({why})", names.len(), names.join(", ")),
    )
}
