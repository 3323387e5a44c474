//! KubeRay: groups of workers, and Ray Serve's applications in a text of their own.
//!
//! Ray LLM builds a disaggregated application from `prefill_config` and `decode_config` (ray.serve.llm,
//! `build_pd_openai_app`): each is a configuration of vLLM whose `engine_kwargs` are its flags and whose `runtime_env` sets
//! variables. The pods are those of the worker groups, where Ray places the replicas of either role.

use std::sync::Arc;

use model::{Engine, Form, Hidden, Place, Role};
use yaml::{Limits, Node};

use crate::config_map;
use crate::draft::{Draft, EnvDraft, FileDraft, FlagDraft};
use crate::env;
use crate::generic;
use crate::place::{InScalar, Text};
use crate::pods::Scope;

/// The keys of a disaggregated application.
const HALVES: [(&str, Role); 2] = [
    ("prefill_config", Role::Prefill),
    ("decode_config", Role::Decode),
];

/// One role of an application.
struct Half {
    role: Role,
    place: Place,
    flags: Vec<FlagDraft>,
    env: Vec<EnvDraft>,
}

/// Reads a RayService, RayCluster or RayJob.
pub(crate) fn read<'d>(text: &Text<'_>, root: Node<'d>, scope: &Scope<'d>, file: &mut FileDraft) {
    let before = file.containers.len();
    generic::read(text, root, scope, file);
    let halves = halves(text, root);
    if halves.is_empty() {
        return;
    }
    let read: Vec<Draft> = file
        .containers
        .drain(before.min(file.containers.len())..)
        .collect();
    // Groups that no name gives a role are for both.
    let (pools, mut drafts): (Vec<Draft>, Vec<Draft>) = read
        .into_iter()
        .partition(|d| d.hinted.is_none() && (d.accelerators.is_some() || !d.claims.is_empty()));
    for half in &halves {
        let mut of_group = false;
        for draft in drafts.iter_mut().filter(|d| d.hinted == Some(half.role)) {
            serve(half, draft);
            of_group = true;
        }
        if let (Some(pool), false) = (pools.first(), of_group) {
            let mut draft = pool.clone();
            draft.name = format!("{} ({})", draft.name, half.role.as_str());
            if pools.len() > 1 {
                draft.run.hidden.push((
                    Hidden::Environment,
                    "Ray decides which of several groups of workers runs it".to_owned(),
                ));
            }
            serve(half, &mut draft);
            drafts.push(draft);
        }
    }
    file.containers.extend(drafts);
}

/// Makes a pod run one half.
fn serve(half: &Half, draft: &mut Draft) {
    draft.declared = Some((half.role, half.place.clone()));
    // A start command of its own says more than the application.
    if draft.run.engine.is_some() {
        return;
    }
    draft.place = half.place.clone();
    draft.framework = Some(Engine::Vllm);
    draft.run.given = true;
    draft
        .run
        .hidden
        .retain(|(what, _)| *what != Hidden::Command);
    draft.run.flags.extend(half.flags.iter().cloned());
    draft.env.extend(half.env.iter().cloned());
}

fn halves(text: &Text<'_>, root: Node<'_>) -> Vec<Half> {
    let mut found = Vec::new();
    let Some(outer) = root.get_path(&["spec", "serveConfigV2"]) else {
        return found;
    };
    let Some(content) = outer.text() else {
        return found;
    };
    let stream = yaml::parse(content, &Limits::default());
    let Some(document) = stream.documents.first() else {
        return found;
    };
    let scalar = InScalar::new(text, outer);
    let inner = Text::inside(Arc::clone(&text.path), content, &scalar);
    let Some(applications) = document.root().get("applications") else {
        return found;
    };
    for application in applications.items() {
        for (key, role) in HALVES {
            let entry = application.get("args").and_then(|a| a.entry(key));
            if let Some((key, config)) = entry.filter(|(_, c)| c.is_mapping()) {
                found.push(half(&inner, key, config, role));
            }
        }
    }
    found
}

fn half(text: &Text<'_>, key: Node<'_>, config: Node<'_>, role: Role) -> Half {
    let mut flags = Vec::new();
    if let Some(arguments) = config.get("engine_kwargs") {
        config_map::flags(text, arguments, Form::EngineConfig, &mut flags);
    }
    let source = ["model_source", "model_id"]
        .iter()
        .find_map(|key| config.get_path(&["model_loading_config", key]))
        .filter(|node| node.is_scalar());
    if let Some(node) = source {
        flags.push(FlagDraft {
            name: model::MODEL.to_owned(),
            value: Some(node.raw().into_owned()),
            expands: false,
            place: text.node(node, true),
            json: Vec::new(),
            form: Form::EngineConfig,
        });
    }
    let mut variables = Vec::new();
    if let Some(list) = config.get_path(&["runtime_env", "env_vars"]) {
        env::read(text, list, false, &mut variables);
    }
    Half {
        role,
        place: text.node(key, true),
        flags,
        env: variables,
    }
}
