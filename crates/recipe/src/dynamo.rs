//! Dynamo's own kinds: DynamoGraphDeployment and DynamoComponentDeployment, `v1alpha1` (a map of services)
//! and `v1beta1` (a list of components). Real files mix the idioms, so both are read wherever they stand.
//!
//! Source: deploy/operator/api/{v1alpha1,v1beta1} of ai-dynamo/dynamo. Variables merge by name, lowest first:
//! graph-wide, service, main container.

use model::{Engine, Partial, Role};
use yaml::{Kind, Node};

use crate::document;
use crate::draft::{Draft, FileDraft};
use crate::engine;
use crate::place::Text;
use crate::pod_facts;
use crate::pods::{self, Scope};
use crate::resources;

/// Reads a DynamoGraphDeployment.
pub(crate) fn graph<'d>(text: &Text<'_>, root: Node<'d>, scope: &Scope<'d>, file: &mut FileDraft) {
    let Some(spec) = root.get("spec") else { return };
    let framework = spec
        .get("backendFramework")
        .and_then(Node::text)
        .and_then(engine::engine_of_framework);
    let outer: Vec<Node<'_>> = ["envs", "env"]
        .iter()
        .filter_map(|key| spec.get(key))
        .collect();
    if let Some(services) = spec.get("services").filter(|s| s.kind() == Kind::Mapping) {
        for (key, service) in services.entries() {
            if let (Some(name), true) = (key.text(), service.is_mapping()) {
                component(
                    text,
                    name,
                    Some(key),
                    service,
                    framework,
                    &outer,
                    scope,
                    file,
                );
            }
        }
    }
    for list in ["components", "services"] {
        let Some(components) = spec.get(list).filter(|c| c.is_sequence()) else {
            continue;
        };
        for item in components.items().filter(|i| i.is_mapping()) {
            let name = item.get("name");
            component(
                text,
                name.and_then(Node::text).unwrap_or_default(),
                name,
                item,
                framework,
                &outer,
                scope,
                file,
            );
        }
    }
}

/// Reads a DynamoGraphDeploymentRequest: the planner makes the graph, so only its overrides can be judged, as parts.
pub(crate) fn request(text: &Text<'_>, root: Node<'_>, file: &mut FileDraft, depth: u32) {
    if let Some(graph) = root
        .get_path(&["spec", "overrides", "dgd"])
        .filter(|g| g.is_mapping())
    {
        let before = file.containers.len();
        document::manifest(text, graph, file, depth + 1, Some(Partial::Patch));
        for draft in file.containers.iter_mut().skip(before) {
            draft.patch = true;
        }
    }
}

/// Reads a DynamoComponentDeployment: one component that is its own object.
pub(crate) fn component_deployment<'d>(
    text: &Text<'_>,
    root: Node<'d>,
    scope: &Scope<'d>,
    file: &mut FileDraft,
) {
    let Some(spec) = root.get("spec") else { return };
    let framework = spec
        .get("backendFramework")
        .and_then(Node::text)
        .and_then(engine::engine_of_framework);
    let name = spec
        .get("serviceName")
        .or_else(|| spec.get("name"))
        .and_then(Node::text)
        .unwrap_or(&scope.object)
        .to_owned();
    component(text, &name, None, spec, framework, &[], scope, file);
}

#[expect(
    clippy::too_many_arguments,
    reason = "one call site per idiom; a struct would only rename the arguments"
)]
fn component<'d>(
    text: &Text<'_>,
    name: &str,
    name_node: Option<Node<'d>>,
    service: Node<'d>,
    framework: Option<Engine>,
    outer_env: &[Node<'d>],
    graph_scope: &Scope<'d>,
    file: &mut FileDraft,
) {
    let mut scope = graph_scope.clone();
    scope.component = Some(name.to_owned());
    scope.replicas = service
        .get("replicas")
        .and_then(Node::as_i64)
        .and_then(|n| u64::try_from(n).ok());
    scope.nodes = service
        .get_path(&["multinode", "nodeCount"])
        .and_then(Node::as_i64)
        .and_then(|n| u64::try_from(n).ok());
    scope.annotations.extend(
        [
            service.get_path(&["extraPodMetadata", "annotations"]),
            service.get_path(&["podTemplate", "metadata", "annotations"]),
            service.get("annotations"),
        ]
        .into_iter()
        .flatten(),
    );

    let pod_spec = service
        .get_path(&["podTemplate", "spec"])
        .or_else(|| service.get("extraPodSpec"));
    let main = service
        .get_path(&["extraPodSpec", "mainContainer"])
        .or_else(|| {
            let containers = service.get_path(&["podTemplate", "spec", "containers"])?;
            containers
                .items()
                .find(|c| c.get("name").and_then(Node::text) == Some("main"))
                .or_else(|| containers.item(0))
        });
    let place = text.node(name_node.unwrap_or(service), name_node.is_some());
    let mut draft = pods::empty(&scope, name.to_owned(), "main".to_owned(), place);
    if let Some(main) = main {
        pods::container(text, main, &mut draft);
    }
    if let Some(spec) = pod_spec {
        pods::pod_spec(text, spec, main, &mut draft);
    }
    if let Some(list) = service.get("resources") {
        resources::read(text, list, &mut draft);
    }
    resources::claims(text, service.get("resources"), pod_spec, &mut draft);
    // A service lists claims beside its pod spec.
    let listed: Vec<String> = draft.claims.iter().map(|c| c.name.clone()).collect();
    draft
        .pod
        .unlisted_claims
        .retain(|c| !listed.contains(&c.name));
    for key in ["env", "envs"] {
        // The container's own `env` was read with the container; these are the service's.
        pods::prepend_env(text, service.get(key), false, &mut draft);
    }
    for list in outer_env.iter().rev() {
        pods::prepend_env(text, Some(*list), true, &mut draft);
    }
    if let Some(secret) = service.get("envFromSecret") {
        draft.env_from.push(crate::draft::EnvFromDraft {
            secret: secret.text().map(str::to_owned),
            ..crate::draft::EnvFromDraft::default()
        });
    }
    draft.framework = framework;
    draft.patch = draft.image.is_none() && !draft.run.given && draft.accelerators.is_none();
    declared_role(text, service, &mut draft);
    if draft.declared.is_none() {
        draft.hinted = engine::role_of_name(name);
    }
    pods::surroundings(text, &scope, &mut draft);
    let labels = [
        service.get_path(&["extraPodMetadata", "labels"]),
        service.get_path(&["podTemplate", "metadata", "labels"]),
        service.get("labels"),
    ];
    pod_facts::metadata(
        text,
        labels.into_iter().flatten(),
        scope.annotations.iter().copied(),
        &mut draft,
    );
    file.containers.push(draft);
}

/// `subComponentType` (v1alpha1) and `type` (v1beta1).
fn declared_role(text: &Text<'_>, service: Node<'_>, draft: &mut Draft) {
    for key in ["subComponentType", "type", "componentType"] {
        let Some(node) = service.get(key) else {
            continue;
        };
        let role = match node.text() {
            Some("prefill") => Role::Prefill,
            Some("decode") => Role::Decode,
            Some("encode") => Role::Encode,
            Some("frontend") => Role::Frontend,
            Some("planner" | "epp" | "router") => Role::Other,
            _ => continue,
        };
        draft.declared = Some((role, text.node(node, true)));
        return;
    }
}
