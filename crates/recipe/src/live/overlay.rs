//! What the engine process runs with, in place of what the pod spec says.
//!
//! The process is right: a start script, the image and the runtime change what a spec sets, and a reference is resolved.
//! A value that is the pod's own address or name is told as such, so that workers that differ in nothing else stay
//! alike.

use std::sync::Arc;

use model::observation::process::{Process, Processes};
use model::observation::{Fact, Missing};
use model::{
    Engine, Form, Hidden, NamedBy, Place, PodObject, Role, Setting, Value, Worker, is_variable,
};

use crate::draft::FlagDraft;
use crate::expand::Variables;
use crate::resolve;

/// A setting that the process has otherwise than the pod spec says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differs {
    /// Its name.
    pub name: String,
    /// What the spec says; `None` where it says nothing.
    pub spec: Option<String>,
    /// What the process has; `None` where it has none.
    pub live: Option<String>,
    /// Where it was read.
    pub place: Place,
}

/// A worker with what its engine process has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// The worker.
    pub worker: Worker,
    /// The process; `None` where no engine was seen.
    pub process: Option<u32>,
    /// Why its environment is that of the pod spec; `None` where it was read.
    pub environment: Option<Missing>,
    /// The same of its flags.
    pub flags: Option<Missing>,
    /// What differs.
    pub differs: Vec<Differs>,
}

/// The process that serves: the one with the most to tell of. Engines start helpers, whose titles hide their flags.
fn engine_process(processes: &Processes) -> Option<(u32, &Process)> {
    let rank = |process: &Process| {
        let tells = process.flags.keys().any(|flag| {
            matches!(
                flag.as_str(),
                "--kv-transfer-config"
                    | "--disaggregation-mode"
                    | "--is-prefill-worker"
                    | "--is-decode-worker"
                    | "--server-role"
            )
        });
        (
            tells,
            process.flags.len(),
            process.environment_read.is_seen(),
        )
    };
    let mut best: Option<(u32, &Process)> = None;
    for (pid, process) in &processes.processes {
        // The first of equals is the parent of the others.
        if best.is_none_or(|(_, held)| rank(process) > rank(held)) {
            best = Some((*pid, process));
        }
    }
    best
}

/// Puts what the engine process has over what the pod spec says.
#[must_use]
pub fn overlay(worker: &Worker, pod: &PodObject, processes: &Processes) -> Live {
    let mut live = Live {
        worker: worker.clone(),
        process: None,
        environment: None,
        flags: None,
        differs: Vec::new(),
    };
    let Some((pid, process)) = engine_process(processes) else {
        let missing = Missing {
            reason: model::Reason::NotRunning,
            why: "no engine process was seen".into(),
        };
        live.environment = Some(missing.clone());
        live.flags = Some(missing);
        return live;
    };
    live.process = Some(pid);
    live.environment = why_not(&process.environment_read);
    live.flags = why_not(&process.flags_read);
    let place = |file: &str| Place {
        file: format!("pod {}: /proc/{pid}/{file}", pod.name).into(),
        line: 0,
        column: 0,
        text: Arc::from(""),
        mark: (0, 0),
    };
    if live.environment.is_none() {
        environment(&mut live, pod, process, &place("environ"));
    }
    if live.flags.is_none() {
        flags(&mut live, pod, process, &place("cmdline"));
        role(&mut live.worker);
    }
    live
}

fn why_not(read: &Fact<bool>) -> Option<Missing> {
    read.get().err().cloned()
}

/// What a value of a process is in words that hold for every pod.
fn common(value: &str, pod: &PodObject) -> Value {
    let field = |name: &str| Value::Dynamic(format!("field {name}"));
    let value = value.trim();
    let bare = value.trim_start_matches('[').trim_end_matches(']');
    if pod.addresses.iter().any(|a| a == bare) {
        return field("status.podIP");
    }
    if pod.host_address.as_deref() == Some(bare) {
        return field("status.hostIP");
    }
    if !value.is_empty() && value == pod.name {
        return field("metadata.name");
    }
    if !value.is_empty() && pod.node.as_deref() == Some(value) {
        return field("spec.nodeName");
    }
    // As a whole: 10.0.3.7 is no part of 10.0.3.71.
    let holds = |part: &str| {
        let joins = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-');
        part.len() >= 7
            && value.match_indices(part).any(|(at, found)| {
                let before = value.get(..at).and_then(|t| t.chars().next_back());
                let after = value.get(at + found.len()..).and_then(|t| t.chars().next());
                // A pod's name goes on as that of its host: `pod-0.service`.
                !before.is_some_and(joins)
                    && after.is_none_or(|c| !joins(c) || c == '.' && !found.contains('.'))
            })
    };
    if pod.addresses.iter().any(|a| holds(a)) || holds(&pod.name) || holds(&pod.uid) {
        return Value::Dynamic("text with the pod's own address or name".to_owned());
    }
    Value::Literal(value.to_owned())
}

fn environment(live: &mut Live, pod: &PodObject, process: &Process, place: &Place) {
    let worker = &mut live.worker;
    let (spec, others): (Vec<Setting>, Vec<Setting>) = std::mem::take(&mut worker.settings)
        .into_iter()
        .partition(|s| is_variable(&s.name));
    worker.settings = process
        .environment
        .iter()
        .filter_map(|(name, fact)| {
            Some(Setting {
                name: name.clone(),
                value: common(fact.value()?, pod),
                form: Form::LiveProcess,
                place: place.clone(),
            })
        })
        .collect();
    for setting in &worker.settings {
        let said = spec.iter().find(|s| s.name == setting.name);
        let spec = said.map(|s| &s.value);
        // What the spec leaves open is resolved here, not changed.
        let differs = match spec {
            None => true,
            Some(Value::Dynamic(_)) => false,
            Some(Value::Literal(text)) => {
                process
                    .environment
                    .get(&setting.name)
                    .and_then(Fact::value)
                    .is_none_or(|live| live != text)
                    && setting.value.literal() != Some(text)
            }
        };
        if differs {
            live.differs.push(Differs {
                name: setting.name.clone(),
                spec: spec.map(shown),
                live: Some(shown(&setting.value)),
                place: place.clone(),
            });
        }
    }
    for setting in &spec {
        let is_there = process.environment.contains_key(&setting.name);
        if let (false, Value::Literal(text)) = (is_there, &setting.value) {
            live.differs.push(Differs {
                name: setting.name.clone(),
                spec: Some(text.clone()),
                live: None,
                place: setting.place.clone(),
            });
        }
    }
    worker.settings.extend(others);
    worker.possible.retain(|s| !is_variable(&s.name));
    worker.overridden.retain(|s| !is_variable(&s.name));
    worker
        .hidden
        .retain(|(what, _)| !matches!(what, Hidden::Environment | Hidden::Secret));
}

fn shown(value: &Value) -> String {
    match value {
        Value::Literal(text) | Value::Dynamic(text) => text.clone(),
    }
}

fn flags(live: &mut Live, pod: &PodObject, process: &Process, place: &Place) {
    let variables = Variables {
        list: &[],
        locals: &[],
        open: false,
    };
    let mut settings = Vec::new();
    let mut unknown = Vec::new();
    for (name, fact) in &process.flags {
        let Some(text) = fact.value() else { continue };
        let flag = FlagDraft {
            name: name.clone(),
            value: (!text.is_empty()).then(|| text.clone()),
            expands: false,
            place: place.clone(),
            json: Vec::new(),
            form: Form::LiveProcess,
        };
        let inline = text.trim_start().starts_with('{')
            && (resolve::CONFIG_FLAGS.contains(&name.as_str()) || name == "--override-engine-args");
        if inline {
            for part in resolve::inline_config(text, &flag) {
                resolve::flag_settings(&part, &variables, &mut settings, &mut unknown);
            }
        }
        resolve::flag_settings(&flag, &variables, &mut settings, &mut unknown);
    }
    for setting in &mut settings {
        setting.form = Form::LiveProcess;
        if let Value::Literal(text) = &setting.value {
            setting.value = common(text, pod);
        }
    }
    let worker = &mut live.worker;
    let (mut kept, spec): (Vec<Setting>, Vec<Setting>) = std::mem::take(&mut worker.settings)
        .into_iter()
        .partition(|s| is_variable(&s.name));
    for said in spec {
        let here = settings.iter().find(|s| s.name == said.name);
        // The word behind `serve` is no flag, and a file's keys are not on the command line.
        let elsewhere = said.name == model::MODEL || said.form == Form::EngineConfig;
        match (here, &said.value) {
            (None, _) if elsewhere => kept.push(said),
            (None, Value::Literal(text)) => live.differs.push(Differs {
                name: said.name.clone(),
                spec: Some(text.clone()),
                live: None,
                place: said.place.clone(),
            }),
            (Some(here), Value::Literal(text))
                if here.value.literal().is_some_and(|live| live != text) =>
            {
                live.differs.push(Differs {
                    name: said.name.clone(),
                    spec: Some(text.clone()),
                    live: Some(shown(&here.value)),
                    place: place.clone(),
                });
            }
            _ => {}
        }
    }
    kept.extend(settings);
    worker.settings = kept;
    worker.possible.retain(|s| is_variable(&s.name));
    worker.overridden.retain(|s| is_variable(&s.name));
    worker.hidden.retain(|(what, _)| *what != Hidden::Command);
    worker.has_command = true;
    // It runs, whatever the spec looks like.
    worker.command_fault = None;
    worker.by_dynamo |= process
        .name
        .value()
        .is_some_and(|name| name.starts_with("dynamo."));
    if let Some(engine) = process.engine.value().and_then(|name| engine_of(name)) {
        worker.engine = engine;
        worker.engine_is_assumed = false;
    }
}

fn engine_of(name: &str) -> Option<Engine> {
    Some(match name {
        "vllm" => Engine::Vllm,
        "sglang" => Engine::Sglang,
        "trtllm" => Engine::Trtllm,
        "tokenspeed" => Engine::TokenSpeed,
        _ => return None,
    })
}

/// The role by what the process was told, else by what the pod is called.
fn role(worker: &mut Worker) {
    if matches!(worker.role, Role::Frontend | Role::Encode) || worker.engine == Engine::Mocker {
        return;
    }
    let named = worker.named.as_deref();
    if let Some((role, place)) = resolve::strong_role(&worker.settings, worker.engine, named) {
        worker.role = role;
        worker.role_place = Some(Box::new(place));
        return;
    }
    let idle = resolve::is_idle_sglang(&worker.settings, Some(worker.engine));
    let moves = resolve::moves_kv(&worker.settings) && !idle;
    let by_label = named.is_some_and(|n| matches!(n.by, NamedBy::Selector | NamedBy::Field));
    worker.role = match named {
        Some(named) if moves || by_label => named.role,
        _ if moves => Role::Unknown,
        _ if worker.hidden(Hidden::EngineConfig).is_some() => worker.role,
        _ if worker.engine == Engine::Unknown => worker.role,
        _ => Role::Aggregated,
    };
    worker.role_place = None;
}
