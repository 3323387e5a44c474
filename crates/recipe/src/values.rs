//! Shapes without a kind: chart values, provider data, engine configuration files, and kinds that describe workers
//! by fields of their own instead of pod templates.
//!
//! Whatever has `containers` is read as pods. A mapping with variables and an image, arguments, resources or a
//! replica count is read as one container; its key or `type` names the role. Variables beside a list of workers
//! apply to all of them.

use model::{Form, Role};
use yaml::{Kind, Node};

use crate::config_map;
use crate::draft::{Draft, FileDraft};
use crate::engine;
use crate::env;
use crate::place::Text;
use crate::pods::{self, Scope};
use crate::resources;

/// Values nest less deep than this.
const MAX_DEPTH: u32 = 24;

/// Keys under which variables stand.
const ENV_KEYS: [&str; 4] = ["env", "envs", "extraEnvVars", "extraEnv"];

/// Keys that show that a mapping describes something that runs.
const RUNS: [&str; 12] = [
    "image",
    "args",
    "command",
    "resources",
    "replicas",
    "replicaCount",
    "nodeCount",
    "config",
    "modelCommand",
    "lmcacheConfig",
    "vllmConfig",
    "containers",
];

/// Reads a document without a kind, or a kind of this shape.
pub(crate) fn read<'d>(text: &Text<'_>, root: Node<'d>, scope: &Scope<'d>, file: &mut FileDraft) {
    walk(text, root, scope, &[], file, 0);
}

fn env_of(node: Node<'_>) -> Option<Node<'_>> {
    ENV_KEYS
        .iter()
        .find_map(|key| node.get(key))
        .filter(|list| match list.kind() {
            Kind::Sequence => true,
            Kind::Mapping => list.entries().any(|(k, _)| {
                k.text().is_some_and(|k| {
                    !k.is_empty()
                        && k.bytes()
                            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
                })
            }),
            Kind::Scalar | Kind::Null => false,
        })
}

fn walk<'d>(
    text: &Text<'_>,
    node: Node<'d>,
    scope: &Scope<'d>,
    outer: &[Node<'d>],
    file: &mut FileDraft,
    depth: u32,
) {
    if depth > MAX_DEPTH {
        return;
    }
    if node.is_sequence() {
        for item in node.items() {
            walk(text, item, scope, outer, file, depth + 1);
        }
        return;
    }
    if !node.is_mapping() {
        return;
    }
    if node.get("containers").is_some_and(Node::is_sequence) {
        let mut scope = scope.clone();
        scope.replicas = count(node, "replicas").or(scope.replicas);
        pods::read(text, node, &scope, &mut file.containers);
        return;
    }
    let own = env_of(node);
    // `workers: [{type: prefill, …}, …]`: the variables beside it apply to each.
    let workers = node
        .get("workers")
        .filter(|w| w.is_sequence() && w.items().any(|i| i.get("type").is_some()));
    if let Some(workers) = workers {
        let outer: Vec<Node<'_>> = outer.iter().copied().chain(own).collect();
        for item in workers.items().filter(|i| i.is_mapping()) {
            container(text, item, scope, &outer, file);
        }
        return;
    }
    let runs = RUNS.iter().any(|key| node.get(key).is_some());
    let typed = node
        .get("type")
        .and_then(Node::text)
        .and_then(engine::role_of_mode)
        .is_some();
    // The document as a whole is data about workers, not one of them.
    if depth > 0 && runs && (own.is_some() || typed || node.get("lmcacheConfig").is_some()) {
        container(text, node, scope, outer, file);
        return;
    }
    for (key, value) in node.entries() {
        let Some(name) = key.text() else { continue };
        if matches!(name, "metadata" | "status" | "initContainers")
            || !(value.is_mapping() || value.is_sequence())
        {
            continue;
        }
        let mut inner = scope.clone();
        inner.names.push(name.to_owned());
        if value.is_mapping() {
            inner.component = Some(name.to_owned());
        }
        walk(text, value, &inner, outer, file, depth + 1);
    }
}

fn count(node: Node<'_>, key: &str) -> Option<u64> {
    node.get(key)
        .and_then(Node::as_i64)
        .and_then(|n| u64::try_from(n).ok())
}

fn container<'d>(
    text: &Text<'_>,
    node: Node<'d>,
    scope: &Scope<'d>,
    outer: &[Node<'d>],
    file: &mut FileDraft,
) {
    let typed = node.get("type");
    let named = node.get("name").filter(|n| n.is_scalar()).or(typed);
    let name = named
        .and_then(Node::text)
        .map(str::to_owned)
        .or_else(|| scope.component.clone())
        .unwrap_or_else(|| scope.object.clone());
    let mut draft = pods::empty(
        scope,
        name,
        String::new(),
        text.node(named.unwrap_or(node), named.is_some()),
    );
    pods::container(text, node, &mut draft);
    draft.replicas = count(node, "replicas")
        .or_else(|| count(node, "replicaCount"))
        .or(draft.replicas);
    draft.nodes = count(node, "nodeCount").unwrap_or(draft.nodes).max(1);
    for list in outer.iter().rev() {
        pods::prepend_env(text, Some(*list), false, &mut draft);
    }
    for key in ENV_KEYS.iter().skip(2) {
        if let Some(list) = node.get(key) {
            env::read(text, list, false, &mut draft.env);
        }
    }
    if let Some(gpus) = node.get("requestGPU") {
        resources::accelerator_count(gpus, &mut draft);
    }
    if let Some(config) = node.get("config").filter(|c| c.is_mapping()) {
        config_map::flags(text, config, Form::EngineConfig, &mut draft.run.flags);
        draft.run.given |= !draft.run.flags.is_empty();
    }
    if let Some((role, at)) =
        typed.and_then(|t| Some((t.text().and_then(engine::role_of_mode)?, t)))
    {
        draft.declared = Some((role, text.node(at, true)));
    }
    lmcache(text, node, &mut draft);
    pods::surroundings(text, scope, &mut draft);
    draft.patch = false;
    file.containers.push(draft);
}

/// vLLM production-stack names roles through LMCache's own words.
fn lmcache(text: &Text<'_>, node: Node<'_>, draft: &mut Draft) {
    let Some(config) = node.get("lmcacheConfig") else {
        return;
    };
    for key in ["nixlRole", "kvRole"] {
        let Some(value) = config.get(key) else {
            continue;
        };
        let role = match value.text() {
            Some("sender" | "kv_producer") => Role::Prefill,
            Some("receiver" | "kv_consumer") => Role::Decode,
            _ => continue,
        };
        draft.declared = Some((role, text.node(value, true)));
        return;
    }
}

/// Settings of a document that describes no worker: provider data and engine configuration files.
pub(crate) fn loose(text: &Text<'_>, root: Node<'_>, file: &mut FileDraft) {
    if let Some(list) = env_of(root) {
        env::read(text, list, false, &mut file.loose_env);
    }
    config_map::flags(text, root, Form::EngineConfig, &mut file.loose_flags);
}
