//! Shapes without a kind: chart values, provider data, engine configuration files, and kinds that describe workers
//! by fields of their own instead of pod templates.
//!
//! Whatever has `containers` is read as pods. A mapping with variables and an image, arguments, resources or a
//! replica count is read as one container; its key or `type` names the role. Variables beside a list of workers
//! apply to all of them.

use model::{Form, InputProblem, Located, Outcome, Role};
use yaml::{Kind, Node};

use crate::config_map;
use crate::draft::{Draft, FileDraft, FlagDraft};
use crate::engine;
use crate::env;
use crate::generic;
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
    if depth > MAX_DEPTH || !file.spend(1) {
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
        if file.spend(generic::cost(node).max(generic::TEMPLATE_BYTES)) {
            pods::read(text, node, &scope, &mut file.containers);
        }
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
    // `prefillWorker: {env: …}`: its name says what runs there.
    let named = own.is_some()
        && scope
            .names
            .last()
            .and_then(|n| engine::role_of_name(n))
            .is_some_and(Role::moves_kv);
    // The document as a whole is data about workers, not one of them.
    if depth > 0
        && (named || runs && (own.is_some() || typed || node.get("lmcacheConfig").is_some()))
    {
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
    if !file.spend(generic::cost(node).max(generic::TEMPLATE_BYTES)) {
        return;
    }
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
    image(text, node, &mut draft);
    pods::surroundings(text, scope, &mut draft);
    // Where the chart brings image and command, the role's name is what tells a worker.
    let role = draft
        .declared
        .as_ref()
        .map(|(role, _)| *role)
        .or(draft.hinted);
    draft.patch = role.is_some_and(Role::moves_kv)
        && draft.image.is_none()
        && !draft.run.given
        && draft.accelerators.is_none();
    file.containers.push(draft);
}

/// Charts split an image into repository and tag, under `image` or beside the rest.
fn image(text: &Text<'_>, node: Node<'_>, draft: &mut Draft) {
    if draft.image.is_some() {
        return;
    }
    let parts = node.get("image").filter(|i| i.is_mapping()).unwrap_or(node);
    let Some(repository) = parts.get("repository") else {
        return;
    };
    let Some(name) = repository.text().filter(|n| !n.is_empty()) else {
        return;
    };
    let tag = parts.get("tag").filter(|t| t.is_scalar()).map(Node::raw);
    draft.image = Some(Located {
        value: match tag.as_deref() {
            Some(tag) if !tag.is_empty() => format!("{name}:{tag}"),
            _ => name.to_owned(),
        },
        place: text.node(repository, true),
    });
}

/// vLLM production-stack configures LMCache by keys of its own; its chart turns them into LMCache's variables.
fn lmcache(text: &Text<'_>, node: Node<'_>, draft: &mut Draft) {
    let Some(config) = node.get("lmcacheConfig") else {
        return;
    };
    let mut push = |name: &str, value: String, at: Node<'_>| {
        draft.run.flags.push(FlagDraft {
            name: name.to_owned(),
            value: Some(value),
            expands: false,
            place: text.node(at, true),
            json: Vec::new(),
            form: Form::EngineConfig,
        });
    };
    for (key, name) in [
        ("enableNixl", "LMCACHE_ENABLE_NIXL"),
        ("enablePD", "LMCACHE_ENABLE_PD"),
        ("nixlRole", "LMCACHE_NIXL_ROLE"),
        ("kvRole", "kv_role"),
    ] {
        if let Some(value) = config.get(key).filter(|v| v.is_scalar()) {
            push(name, value.raw().into_owned(), value);
        }
    }
    if let Some(enabled) = config.get("enabled").filter(|e| e.as_bool() == Some(true)) {
        push("kv_connector", "LMCacheConnectorV1".to_owned(), enabled);
    }
}

/// Keys that say that prefill and decode are apart, wherever a chart has them.
const SPLIT_KEYS: [&str; 10] = [
    "enablepd",
    "enabledisagg",
    "enabledisaggregation",
    "disaggregated",
    "disaggregation",
    "pddisaggregation",
    "kvrole",
    "kvconnector",
    "kvtransferconfig",
    "nixlrole",
];

/// Variables that only a worker that moves KV cache is given.
const KV_VARIABLES: [&str; 5] = [
    "VLLM_NIXL_",
    "NIXL_",
    "SGLANG_DISAGGREGATION_",
    "TRTLLM_USE_",
    "LMCACHE_ENABLE_",
];

/// Says of values that are about KV transfer, and of which no worker could be made, what is missing.
pub(crate) fn alone(text: &Text<'_>, root: Node<'_>, file: &mut FileDraft) {
    // Data for another tool is given to its workers as a whole.
    let data = root.get("provider").is_some_and(Node::is_scalar);
    // MPI jobs are started through UCX too.
    let mut job = false;
    let mut found: Option<(Node<'_>, String)> = None;
    let mut todo: Vec<(Node<'_>, u32)> = vec![(root, 0)];
    while let Some((node, depth)) = todo.pop() {
        if depth > MAX_DEPTH || node.alias_span().is_some() || !file.spend(1) {
            continue;
        }
        for (key, value) in node.entries() {
            let Some(name) = key.text() else { continue };
            job |= name.eq_ignore_ascii_case("mpi") || name.to_ascii_lowercase().contains("nccl");
            if splits(name, value) {
                return not_alone(
                    text,
                    key,
                    &format!("{name} is about prefill and decode"),
                    file,
                );
            }
            if found.is_none() && !data && ENV_KEYS.contains(&name) {
                found = kv_variable(value).map(|(at, name)| (at, format!("{name} is set")));
            }
        }
        let below = node.entries().map(|(_, value)| value).chain(node.items());
        let mut below: Vec<_> = below
            .filter(|n| n.is_mapping() || n.is_sequence())
            .map(|n| (n, depth + 1))
            .collect();
        below.reverse();
        todo.append(&mut below);
    }
    if let Some((at, what)) = found.filter(|_| !job) {
        not_alone(text, at, &what, file);
    }
}

fn not_alone(text: &Text<'_>, at: Node<'_>, what: &str, file: &mut FileDraft) {
    file.problems.push(InputProblem {
        cause: "input-values-alone".into(),
        detail: format!(
            "{what}, and the workers are made by a chart or a tool that is not in the input"
        ),
        fix: "give the chart's directory with --values FILE, or the result of rendering it".into(),
        position: Some(text.line_column(at.span().start)),
        outcome: Outcome::Skipped,
    });
}

/// The first variable of an `env` list or mapping that is about KV transfer.
fn kv_variable(list: Node<'_>) -> Option<(Node<'_>, &str)> {
    let named = list.items().filter_map(|item| item.get("name"));
    list.entries()
        .map(|(key, _)| key)
        .chain(named)
        .filter_map(|n| Some((n, n.text()?)))
        .find(|(_, name)| {
            matches!(*name, "UCX_TLS" | "UCX_NET_DEVICES")
                || KV_VARIABLES.iter().any(|p| name.starts_with(p))
                    && settings::catalogue::is_allowed(name)
        })
}

/// Whether a key with this value splits prefill and decode.
fn splits(name: &str, value: Node<'_>) -> bool {
    let off = value.is_null() || value.as_bool() == Some(false) || value.text() == Some("");
    if off {
        return false;
    }
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    if SPLIT_KEYS.contains(&plain.as_str()) {
        // `disaggregation: {enabled: false}`
        return value.get("enabled").and_then(Node::as_bool) != Some(false);
    }
    (value.is_mapping() || value.is_sequence())
        && engine::role_of_name(name).is_some_and(Role::moves_kv)
}

/// Settings of a document that describes no worker: provider data and engine configuration files.
pub(crate) fn loose(text: &Text<'_>, root: Node<'_>, file: &mut FileDraft) {
    if let Some(list) = env_of(root) {
        env::read(text, list, false, &mut file.loose_env);
    }
    config_map::flags(text, root, Form::EngineConfig, &mut file.loose_flags);
}
