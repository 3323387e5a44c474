//! Pod templates: from a pod spec and one of its containers to a draft.

use std::sync::Arc;

use model::{Form, Located, NamedBy, Place, PodFacts};
use yaml::Node;

use crate::command;
use crate::draft::{Draft, Mount, Run};
use crate::engine;
use crate::env;
use crate::place::Text;
use crate::pod_facts;
use crate::resources;

/// Where a pod template was found.
#[derive(Clone, Default)]
pub(crate) struct Scope<'d> {
    pub(crate) object: String,
    pub(crate) kind: Arc<str>,
    pub(crate) object_index: u32,
    /// Component or role name, where the kind has one.
    pub(crate) component: Option<String>,
    /// Further names around the template that may hint at a role, nearest last.
    pub(crate) names: Vec<String>,
    pub(crate) labels: Vec<Node<'d>>,
    pub(crate) annotations: Vec<Node<'d>>,
    pub(crate) replicas: Option<u64>,
    pub(crate) nodes: Option<u64>,
    pub(crate) job: bool,
}

/// Pod labels that stacks define for the role.
pub(crate) const ROLE_LABELS: [&str; 12] = [
    "llm-d.ai/role",
    "nvidia.com/dynamo-component-type",
    "nvidia.com/dynamo-sub-component-type",
    "disaggregatedset.x-k8s.io/role",
    "kserve.io/role",
    "rolebasedgroup.workloads.x-k8s.io/role",
    "rbg.workloads.x-k8s.io/role-name",
    "role-name",
    "pd-role",
    "modelserving.volcano.sh/role",
    "inference-role",
    "model.aibrix.ai/role",
];

/// Annotations that attach networks or change the pod's network.
const NETWORK_ANNOTATIONS: [&str; 4] = [
    "networking.gke.io/interfaces",
    "k8s.v1.cni.cncf.io/networks",
    "k8s.volcengine.com/pod-networks",
    "sidecar.istio.io/inject",
];

/// A draft with nothing but its identity.
pub(crate) fn empty(scope: &Scope<'_>, name: String, container: String, place: Place) -> Draft {
    Draft {
        name,
        kind: scope.kind.clone(),
        container,
        place,
        object_index: scope.object_index,
        declared: None,
        hinted: None,
        worded: None,
        hint_label: None,
        framework: None,
        image: None,
        env: Vec::new(),
        env_from: Vec::new(),
        run: Run::default(),
        resources: Vec::new(),
        accelerators: None,
        accelerator: None,
        claims: Vec::new(),
        privileged: false,
        capabilities: Vec::new(),
        run_as_user: None,
        host_network: false,
        host_ipc: false,
        host_pid: false,
        host_paths: Vec::new(),
        annotations: Vec::new(),
        nodes: scope.nodes.unwrap_or(1).max(1),
        replicas: scope.replicas,
        mounts: Vec::new(),
        written: Vec::new(),
        pod: PodFacts::default(),
        part: pod_facts::part(&scope.names),
        job: scope.job,
        patch: false,
    }
}

/// Fills in what a container says.
pub(crate) fn container(text: &Text<'_>, node: Node<'_>, draft: &mut Draft) {
    if let Some(image) = node.get("image")
        && let Some(value) = image.text()
    {
        // A registry host or path can carry credentials only in a broken manifest, but a place shows
        // whole lines; the reference itself is a name.
        draft.image = Some(Located {
            value: value.to_owned(),
            place: text.node(image, true),
        });
    }
    if let Some(list) = node.get("env").or_else(|| node.get("envs")) {
        env::read(text, list, false, &mut draft.env);
    }
    env::read_from(node, &mut draft.env_from);
    if let Some(list) = node.get("resources") {
        resources::read(text, list, draft);
    }
    let mut run = command::read(text, node);
    if let Some(flags) = additional_flags(text, node) {
        run.flags.extend(flags.flags);
    }
    if run.given || !draft.run.given {
        draft.run = run;
    }
    if let Some(security) = node.get("securityContext") {
        security_context(text, security, draft);
    }
    draft.patch = draft.image.is_none() && !draft.run.given && draft.accelerators.is_none();
}

/// Engine flags that an entry point takes from a variable (KServe's VLLM_ADDITIONAL_ARGS).
fn additional_flags(text: &Text<'_>, node: Node<'_>) -> Option<Run> {
    let list = node.get("env").filter(|e| e.is_sequence())?;
    let entry = list
        .items()
        .find(|i| i.get("name").and_then(Node::text) == Some("VLLM_ADDITIONAL_ARGS"))?;
    let value = entry.get("value")?;
    Some(command::read_flags(text, value, value.text()?))
}

/// Reads a container's security context.
pub(crate) fn security_context(text: &Text<'_>, security: Node<'_>, draft: &mut Draft) {
    draft.privileged |= security
        .get("privileged")
        .and_then(Node::as_bool)
        .unwrap_or(false);
    if let Some(list) = security.get_path(&["capabilities", "add"]) {
        for item in list.items() {
            let Some(name) = item.text() else { continue };
            // The runtime takes both spellings.
            let name = name.strip_prefix("CAP_").unwrap_or(name);
            draft.capabilities.push(Located {
                value: name.to_ascii_uppercase(),
                place: text.node(item, true),
            });
        }
    }
    if let Some(user) = security.get("runAsUser")
        && let Some(value) = user.as_i64()
    {
        draft.run_as_user = Some(Located {
            value,
            place: text.node(user, true),
        });
    }
}

/// Fills in what the pod spec says.
pub(crate) fn pod_spec(
    text: &Text<'_>,
    spec: Node<'_>,
    container_node: Option<Node<'_>>,
    draft: &mut Draft,
) {
    let flag = |name: &str| spec.get(name).and_then(Node::as_bool).unwrap_or(false);
    draft.host_network |= flag("hostNetwork");
    draft.host_ipc |= flag("hostIPC");
    draft.host_pid |= flag("hostPID");
    if draft.run_as_user.is_none()
        && let Some(user) = spec.get_path(&["securityContext", "runAsUser"])
        && let Some(value) = user.as_i64()
    {
        draft.run_as_user = Some(Located {
            value,
            place: text.node(user, true),
        });
    }
    let mounts = container_node.and_then(|c| c.get("volumeMounts"));
    if let Some(volumes) = spec.get("volumes") {
        for volume in volumes.items() {
            let Some(name) = volume.get("name").and_then(Node::text) else {
                continue;
            };
            if let Some(path) = volume.get_path(&["hostPath", "path"]) {
                host_path(text, path, draft);
            }
            let config_map = volume
                .get_path(&["configMap", "name"])
                .or_else(|| {
                    volume
                        .get_path(&["projected", "sources"])
                        .and_then(|s| s.items().find_map(|s| s.get_path(&["configMap", "name"])))
                })
                .and_then(Node::text);
            if let (Some(config_map), Some(mounts)) = (config_map, mounts) {
                for mount in mounts
                    .items()
                    .filter(|m| m.get("name").and_then(Node::text) == Some(name))
                {
                    if let Some(path) = mount.get("mountPath").and_then(Node::text) {
                        draft.mounts.push(Mount {
                            path: path.to_owned(),
                            config_map: config_map.to_owned(),
                        });
                    }
                }
            }
        }
    }
    resources::claims(
        text,
        container_node.and_then(|c| c.get("resources")),
        Some(spec),
        draft,
    );
    if draft.pod.same_host.is_none() {
        draft.pod.same_host = same_host(text, spec);
    }
    pod_facts::spec(text, spec, container_node, draft);
    if !draft.run.sources.is_empty() {
        written_by_init(text, spec, draft);
    }
}

/// A host path that matters here.
pub(crate) fn host_path(text: &Text<'_>, path: Node<'_>, draft: &mut Draft) {
    if let Some(value) = path
        .text()
        .filter(|p| matches!(p.trim_end_matches('/'), "/dev" | "/dev/infiniband"))
    {
        draft.host_paths.push(Located {
            value: value.to_owned(),
            place: text.node(path, true),
        });
    }
}

/// Annotations that attach networks.
pub(crate) fn annotations(text: &Text<'_>, list: Node<'_>, draft: &mut Draft) {
    for (key, _) in list.entries() {
        let Some(name) = key.text() else { continue };
        let wanted = NETWORK_ANNOTATIONS.contains(&name) || name.starts_with("rdma.ome.io/");
        if wanted && !draft.annotations.iter().any(|(n, _)| n == name) {
            draft
                .annotations
                .push((name.to_owned(), text.node(key, true)));
        }
    }
}

/// Files of exports that init containers write.
fn written_by_init(text: &Text<'_>, spec: Node<'_>, draft: &mut Draft) {
    let Some(list) = spec.get("initContainers") else {
        return;
    };
    for node in list.items().filter(|n| n.is_mapping()) {
        draft.written.extend(command::read(text, node).writes);
    }
}

/// A pod affinity that keeps pods together on one host.
fn same_host(text: &Text<'_>, spec: Node<'_>) -> Option<Located<String>> {
    let affinity = spec.get_path(&["affinity", "podAffinity"])?;
    for (rule, term_key) in [
        ("requiredDuringSchedulingIgnoredDuringExecution", None),
        (
            "preferredDuringSchedulingIgnoredDuringExecution",
            Some("podAffinityTerm"),
        ),
    ] {
        let Some(list) = affinity.get(rule) else {
            continue;
        };
        for item in list.items() {
            let term = term_key.map_or(Some(item), |key| item.get(key));
            if let Some(key) = term.and_then(|t| t.get("topologyKey"))
                && key.text() == Some("kubernetes.io/hostname")
            {
                let how = if term_key.is_some() {
                    "preferred"
                } else {
                    "required"
                };
                return Some(Located {
                    value: format!("{how} pod affinity by hostname"),
                    place: text.node(key, true),
                });
            }
        }
    }
    None
}

/// The role that labels suggest. One that a stack defines for it wins over the others, the nearest over those around
/// it.
fn role_of_labels(text: &Text<'_>, labels: &[Node<'_>], draft: &mut Draft) {
    let mut other = None;
    for (key, value) in labels.iter().flat_map(|l| l.entries()) {
        let (Some(name), Some(content)) = (key.text(), value.text()) else {
            continue;
        };
        if ROLE_LABELS.contains(&name) {
            let role = match content {
                // llm-d's router knows pods that do both.
                "both" | "prefill-decode" => Some(model::Role::Aggregated),
                content => engine::role_of_name(content),
            };
            if role.is_some() {
                draft.hinted = role;
                draft.hint_label = Some((NamedBy::Selector, text.node(value, true)));
            }
        } else if is_about_role(name)
            && let Some(role) = engine::role_of_name(content)
        {
            other = Some((role, text.node(value, true)));
        }
    }
    // The name of a container is nearer than a label of its pod.
    if let (None, None, Some((role, place))) =
        (draft.hinted, engine::role_of_name(&draft.container), other)
    {
        draft.hinted = Some(role);
        draft.hint_label = Some((NamedBy::Label, place));
    }
}

/// Whether a label's key is of the kind that people name a role by: `role`, `app.kubernetes.io/component`,
/// `example.com/disaggregation-role`, and names of the whole (`app`).
fn is_about_role(key: &str) -> bool {
    let name = key.rsplit('/').next().unwrap_or(key);
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .map(str::to_ascii_lowercase)
        .any(|word| {
            matches!(
                word.as_str(),
                "app"
                    | "component"
                    | "disagg"
                    | "disaggregation"
                    | "function"
                    | "instance"
                    | "mode"
                    | "name"
                    | "part"
                    | "pd"
                    | "phase"
                    | "role"
                    | "stage"
                    | "tier"
                    | "type"
                    | "worker"
                    | "workload"
            )
        })
}

/// Labels, annotations and names: role hints and attached networks.
pub(crate) fn surroundings(text: &Text<'_>, scope: &Scope<'_>, draft: &mut Draft) {
    pod_facts::metadata(
        text,
        scope.labels.iter().copied(),
        scope.annotations.iter().copied(),
        draft,
    );
    role_of_labels(text, &scope.labels, draft);
    for list in &scope.annotations {
        annotations(text, *list, draft);
    }
    if draft.hinted.is_none() {
        draft.hinted = engine::role_of_name(&draft.container)
            .or_else(|| scope.component.as_deref().and_then(engine::role_of_name))
            .or_else(|| {
                scope
                    .names
                    .iter()
                    .rev()
                    .find_map(|n| engine::role_of_name(n))
            })
            .or_else(|| engine::role_of_name(&scope.object));
    }
    if draft.hinted.is_none() {
        draft.worded = worded(text, scope, &draft.container);
    }
}

/// The role by words that count only beside a connector: of labels, else of names, the nearest first.
fn worded(
    text: &Text<'_>,
    scope: &Scope<'_>,
    container: &str,
) -> Option<(model::Role, Option<Place>)> {
    let of_labels = scope
        .labels
        .iter()
        .rev()
        .flat_map(|l| l.entries())
        .find_map(|(key, value)| {
            let name = key.text()?;
            if !ROLE_LABELS.contains(&name) && !is_about_role(name) {
                return None;
            }
            let role = engine::role_of_other_words(value.text()?)?;
            Some((role, Some(text.node(value, true))))
        });
    of_labels.or_else(|| {
        std::iter::once(container)
            .chain(scope.component.as_deref())
            .chain(scope.names.iter().rev().map(String::as_str))
            .chain(std::iter::once(scope.object.as_str()))
            .find_map(engine::role_of_other_words)
            .map(|role| (role, None))
    })
}

/// Drafts for every container of a pod spec that may run an engine.
pub(crate) fn read<'d>(text: &Text<'_>, spec: Node<'d>, scope: &Scope<'d>, out: &mut Vec<Draft>) {
    let Some(containers) = spec.get("containers") else {
        return;
    };
    for node in containers.items().filter(|n| n.is_mapping()) {
        let name = node.get("name").and_then(Node::text).unwrap_or_default();
        let label = scope
            .component
            .clone()
            .unwrap_or_else(|| scope.object.clone());
        let mut draft = empty(
            scope,
            if label.is_empty() {
                name.to_owned()
            } else {
                label
            },
            name.to_owned(),
            text.node(node.get("name").unwrap_or(node), node.get("name").is_some()),
        );
        container(text, node, &mut draft);
        pod_spec(text, spec, Some(node), &mut draft);
        surroundings(text, scope, &mut draft);
        out.push(draft);
    }
}

/// Adds graph-wide or service-wide variables in front of the container's own, which win over them.
pub(crate) fn prepend_env(text: &Text<'_>, list: Option<Node<'_>>, graph: bool, draft: &mut Draft) {
    if let Some(list) = list {
        let mut outer = Vec::new();
        env::read(text, list, graph, &mut outer);
        for env in &mut outer {
            if graph {
                env.form = Form::Graph;
            }
        }
        outer.append(&mut draft.env);
        draft.env = outer;
    }
}
