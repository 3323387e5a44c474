//! Any kind with a pod template inside: Deployment, StatefulSet, Job, Pod, LeaderWorkerSet, and the many
//! serving kinds that nest templates under roles. The template is found by its shape (`containers`), the
//! role by the names and labels on the way to it.

use yaml::{Kind, Node};

use crate::draft::{Draft, FileDraft};
use crate::place::Text;
use crate::pods::{self, Scope};

/// Templates nest far less deep than this.
const MAX_DEPTH: u32 = 40;

/// What a pod template costs at least, however short it is.
pub(crate) const TEMPLATE_BYTES: u32 = 1024;

/// Mapping keys that lead away from the pods that run.
const NOT_PODS: [&str; 4] = [
    "status",
    "initContainers",
    "jobTemplateStatus",
    "managedFields",
];

/// Kinds whose pods are collective jobs: their ranks hold no KV cache of a serving deployment.
const JOB_KINDS: [&str; 9] = [
    "Job",
    "CronJob",
    "MPIJob",
    "JobSet",
    "PyTorchJob",
    "TrainJob",
    "Workflow",
    "Queue",
    "TFJob",
];

/// KServe: beside a `worker`, the `template` is that of the leader. In the words of a LeaderWorkerSet.
fn group_part(scope: &Scope<'_>, parent: Option<Node<'_>>, key: Option<&str>) -> Option<String> {
    let parent = parent.filter(|p| {
        scope.kind.starts_with("LLMInferenceService")
            && p.get("worker").is_some_and(Node::is_mapping)
            && p.get("template").is_some_and(Node::is_mapping)
    });
    match (parent, key) {
        (Some(_), Some("template")) => Some("leaderTemplate".to_owned()),
        (Some(_), Some("worker")) => Some("workerTemplate".to_owned()),
        _ => None,
    }
}

/// Finds pod templates under an object.
pub(crate) fn read<'d>(text: &Text<'_>, root: Node<'d>, scope: &Scope<'d>, file: &mut FileDraft) {
    let mut scope = scope.clone();
    scope.job |= JOB_KINDS.contains(&&*scope.kind);
    if let Some(labels) = root.get_path(&["metadata", "labels"]) {
        scope.labels.push(labels);
    }
    if *scope.kind == *"Pod"
        && let Some(annotations) = root.get_path(&["metadata", "annotations"])
    {
        scope.annotations.push(annotations);
    }
    // KServe: `spec.template` decodes where `spec.prefill` exists. OME: the engine prefills where a decoder exists.
    let spec = root.get("spec");
    let kserve_pair =
        spec.is_some_and(|s| s.get("prefill").is_some() && s.get("template").is_some());
    let ome_pair =
        spec.is_some_and(|s| s.get("engineConfig").is_some() && s.get("decoderConfig").is_some());
    for (key, value) in root.entries() {
        let Some(name) = key.text() else { continue };
        if name == "spec" && (kserve_pair || ome_pair) {
            for (key, value) in value.entries() {
                let mut scope = scope.clone();
                scope.names.extend(group_part(&scope, spec, key.text()));
                let hint = match key.text() {
                    Some("template" | "worker") if kserve_pair => Some("decode"),
                    Some("engineConfig") if ome_pair => Some("prefill"),
                    Some("decoderConfig") if ome_pair => Some("decode"),
                    other => other,
                };
                if let Some(hint) = hint {
                    scope.names.push(hint.to_owned());
                    if matches!(hint, "prefill" | "decode") {
                        scope.component = Some(format!("{} ({hint})", scope.object));
                    }
                }
                walk(text, value, &scope, file, 0);
            }
        } else if name != "metadata" && !NOT_PODS.contains(&name) {
            walk(text, value, &scope, file, 0);
        }
    }
}

/// Reads a RoleBasedGroup: roles refer to templates by name and patch them.
pub(crate) fn role_based_group<'d>(
    text: &Text<'_>,
    root: Node<'d>,
    scope: &Scope<'d>,
    file: &mut FileDraft,
) {
    let Some(spec) = root.get("spec") else { return };
    let templates = spec.get("roleTemplates");
    let Some(roles) = spec.get("roles").filter(|r| r.is_sequence()) else {
        return read(text, root, scope, file);
    };
    for role in roles.items().filter(|r| r.is_mapping()) {
        let name = role.get("name").and_then(Node::text).unwrap_or_default();
        let mut scope = scope.clone();
        scope.component = Some(name.to_owned());
        scope.names.push(name.to_owned());
        scope.replicas = role
            .get("replicas")
            .and_then(Node::as_i64)
            .and_then(|n| u64::try_from(n).ok());
        let before = file.containers.len();
        let referred = role_template(role).and_then(|(name, patch)| {
            let template = templates?
                .items()
                .find(|t| t.get("name").and_then(Node::text) == Some(name))?;
            Some((template, patch))
        });
        match referred {
            Some((template, patch)) => {
                walk(text, template, &scope, file, 1);
                for draft in file.containers.iter_mut().skip(before) {
                    name.clone_into(&mut draft.name);
                    overlay(text, patch, draft);
                    pods::surroundings(text, &scope, draft);
                }
            }
            None => walk(text, role, &scope, file, 1),
        }
    }
}

/// The template that a role names and its patch, wherever the pattern keeps them.
fn role_template(role: Node<'_>) -> Option<(&str, Option<Node<'_>>)> {
    let reference = role
        .get_path(&["standalonePattern", "templateRef"])
        .or_else(|| role.get_path(&["leaderWorkerPattern", "templateRef"]))
        .or_else(|| role.get("templateRef"))?;
    Some((
        reference.get("name").and_then(Node::text)?,
        reference.get("patch"),
    ))
}

/// A strategic patch over a template's container of the same name.
fn overlay(text: &Text<'_>, patch: Option<Node<'_>>, draft: &mut Draft) {
    let Some(spec) =
        patch.and_then(|p| p.get("spec").or_else(|| p.get_path(&["template", "spec"])))
    else {
        return;
    };
    let Some(containers) = spec.get("containers") else {
        return;
    };
    let container = containers
        .items()
        .find(|c| c.get("name").and_then(Node::text) == Some(draft.container.as_str()));
    if let Some(container) = container {
        pods::container(text, container, draft);
        pods::pod_spec(text, spec, Some(container), draft);
        draft.place = text.node(container.get("name").unwrap_or(container), true);
    }
}

fn walk<'d>(text: &Text<'_>, node: Node<'d>, scope: &Scope<'d>, file: &mut FileDraft, depth: u32) {
    if depth > MAX_DEPTH || !file.spend(1) {
        return;
    }
    match node.kind() {
        Kind::Mapping => mapping(text, node, scope, file, depth),
        Kind::Sequence => {
            for item in node.items() {
                walk(text, item, scope, file, depth + 1);
            }
        }
        Kind::Scalar | Kind::Null => {}
    }
}

fn mapping<'d>(
    text: &Text<'_>,
    node: Node<'d>,
    scope: &Scope<'d>,
    file: &mut FileDraft,
    depth: u32,
) {
    let mut scope = scope.clone();
    // KubeRay calls its groups of workers by `groupName`.
    let name = node
        .get("name")
        .or_else(|| node.get("groupName"))
        .filter(|n| n.is_scalar())
        .and_then(Node::text);
    let holds_templates = node.entries().any(|(_, v)| v.is_mapping());
    if let (Some(name), true) = (name, holds_templates && node.get("containers").is_none()) {
        scope.names.push(name.to_owned());
        scope.component = Some(name.to_owned());
    }
    if let Some(replicas) = node
        .get("replicas")
        .and_then(Node::as_i64)
        .and_then(|n| u64::try_from(n).ok())
    {
        scope.replicas = Some(replicas);
    }
    // LeaderWorkerSet and its descendants: `size` pods per replica, one per node.
    if let Some(size) = node
        .get("size")
        .and_then(Node::as_i64)
        .and_then(|n| u64::try_from(n).ok())
        && node
            .entries()
            .any(|(k, _)| matches!(k.text(), Some("workerTemplate" | "leaderTemplate")))
    {
        scope.nodes = Some(size);
    }
    if let Some(metadata) = node
        .get("metadata")
        .filter(|_| depth > 0 || node.get("containers").is_some())
    {
        scope.labels.extend(metadata.get("labels"));
        scope.annotations.extend(metadata.get("annotations"));
    }
    if let Some(containers) = node.get("containers").filter(|c| c.is_sequence()) {
        if !file.spend(cost(node).max(TEMPLATE_BYTES)) || !file.spend(cost(containers)) {
            return;
        }
        pods::read(text, node, &scope, &mut file.containers);
        // OME and others keep the main container beside the list.
        if let Some(runner) = node.get("runner").filter(|r| r.is_mapping()) {
            one_container(text, node, runner, "runner", &scope, file);
        }
        return;
    }
    if let Some(runner) = node
        .get("runner")
        .filter(|r| r.get("image").is_some() || r.get("env").is_some())
    {
        one_container(text, node, runner, "runner", &scope, file);
        return;
    }
    for (key, value) in node.entries() {
        let Some(name) = key.text() else { continue };
        if NOT_PODS.contains(&name) {
            continue;
        }
        if value.is_mapping() {
            let mut inner = scope.clone();
            inner.names.push(name.to_owned());
            inner
                .names
                .extend(group_part(&scope, Some(node), Some(name)));
            walk(text, value, &inner, file, depth + 1);
        } else {
            walk(text, value, &scope, file, depth + 1);
        }
    }
}

/// What reading a pod template costs: its text, and the text that aliases bring into its containers.
pub(crate) fn cost(node: Node<'_>) -> u32 {
    let of = |n: Node<'_>| n.span().len().try_into().unwrap_or(u32::MAX);
    let aliased = |n: Node<'_>| {
        n.children()
            .filter(|c| c.alias_span().is_some())
            .map(of)
            .fold(0_u32, u32::saturating_add)
    };
    node.items()
        .map(aliased)
        .fold(of(node).saturating_add(aliased(node)), u32::saturating_add)
}

fn one_container<'d>(
    text: &Text<'_>,
    spec: Node<'d>,
    container: Node<'d>,
    name: &str,
    scope: &Scope<'d>,
    file: &mut FileDraft,
) {
    let label = scope
        .component
        .clone()
        .unwrap_or_else(|| scope.object.clone());
    let mut draft = pods::empty(
        scope,
        label,
        name.to_owned(),
        text.node(
            container.get("name").unwrap_or(container),
            container.get("name").is_some(),
        ),
    );
    pods::container(text, container, &mut draft);
    pods::pod_spec(text, spec, Some(container), &mut draft);
    pods::surroundings(text, scope, &mut draft);
    file.containers.push(draft);
}
