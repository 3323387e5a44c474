//! One YAML document: which object it is, and who reads it.

use std::sync::Arc;

use model::{ClaimTemplate, ComputeDomain, InputProblem, Outcome, Partial};
use yaml::{ErrorKind, Limits, Node, Parsed, SyntaxError};

use crate::config_map;
use crate::draft::{FileDraft, ObjectDraft};
use crate::dynamo;
use crate::elsewhere;
use crate::generic;
use crate::patches;
use crate::place::Text;
use crate::pod_facts;
use crate::pods::Scope;
use crate::ray;
use crate::shapes;
use crate::values;

/// Lists inside lists deeper than this are hostile.
const MAX_LIST_DEPTH: u32 = 8;

/// What aliases may add to a document before they are a bomb.
const ALIASED_BYTES: u64 = 1024 * 1024;

/// What an object costs at least.
const OBJECT_BYTES: u32 = 64;

/// Kinds that never hold a worker, whatever is inside.
const NO_WORKERS: [&str; 12] = [
    "Secret",
    "Service",
    "ServiceAccount",
    "Namespace",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "NetworkPolicy",
];

/// Reads one input text. Never fails as a whole: problems are part of the result.
pub fn read(path: &str, source: &str) -> FileDraft {
    let path: Arc<str> = path.into();
    let text = Text::new(Arc::clone(&path), source);
    let mut file = FileDraft {
        path,
        documents: 0,
        objects: Vec::new(),
        containers: Vec::new(),
        resolved: Vec::new(),
        config_maps: Vec::new(),
        around: model::Surroundings::default(),
        problems: Vec::new(),
        references: Vec::new(),
        targets: Vec::new(),
        loose_env: Vec::new(),
        loose_flags: Vec::new(),
        budget: 0,
    };
    let mut errors = Vec::new();
    yaml::parse_each(source, &Limits::default(), &mut |parsed| match parsed {
        Parsed::Document(document) => {
            file.documents += 1;
            for duplicate in document.duplicate_keys().iter().take(3) {
                file.problems.push(duplicate_key(&text, &duplicate.key));
            }
            for alias in document.unresolved_aliases().iter().take(3) {
                file.problems.push(alias_problem(
                    &text,
                    &alias.span,
                    "an alias to an anchor that is not defined before it",
                ));
            }
            for alias in document.recursive_aliases().iter().take(3) {
                file.problems.push(alias_problem(
                    &text,
                    &alias.span,
                    "an alias inside the very node that it refers to",
                ));
            }
            // Without aliases a document never costs more than a few times its nodes and its text.
            let size = u64::try_from(document.node_count())
                .unwrap_or(u64::MAX)
                .saturating_add(document.range().len() as u64);
            file.budget = size.saturating_mul(16).saturating_add(ALIASED_BYTES);
            let before = file.containers.len();
            manifest(&text, document.root(), &mut file, 0, None);
            if let Some(at) = braces(&document) {
                file.problems.push(template_problem(
                    text.line_column(at),
                    "a template, and what its braces stand for is not known",
                ));
            }
            file.settle(before);
            if file.budget == 0 {
                file.problems.push(too_many_aliases(&text, document.root()));
            }
        }
        // What comes before the error would be judged as if the rest did not exist.
        Parsed::Broken { error, .. } => errors.push(error),
    });
    // Once a template language is in sight, its braces explain every later error.
    let template = errors.iter().any(|e| is_template(source, e));
    for error in errors {
        file.problems.push(syntax_problem(&error, template));
        if template {
            break;
        }
    }
    file.objects.shrink_to_fit();
    file.resolved.shrink_to_fit();
    if file.objects.is_empty() && file.problems.is_empty() {
        let got = if file.documents == 0 {
            "document"
        } else {
            "manifest"
        };
        file.problems.push(InputProblem {
            cause: "input-empty".into(),
            detail: format!("no {got} in it; a Kubernetes manifest was expected"),
            fix: "give a manifest".into(),
            position: None,
            outcome: Outcome::Empty,
        });
    }
    file
}

/// Reads one object, or a list of them. `partial` says that it stands inside something that makes it a part.
pub(crate) fn manifest(
    text: &Text<'_>,
    root: Node<'_>,
    file: &mut FileDraft,
    depth: u32,
    partial: Option<Partial>,
) {
    if root.is_null() || !file.spend(OBJECT_BYTES) {
        return;
    }
    if !root.is_mapping() {
        if root.is_sequence()
            && root
                .items()
                .all(|i| i.get("op").is_some() && i.get("path").is_some())
            && root.items().next().is_some()
        {
            // A JSON6902 patch: what it patches is in the kustomization that names it.
            file.objects.push(ObjectDraft {
                kind: "JSON patch".into(),
                name: String::new(),
                namespace: None,
                partial: Some(Partial::Patch),
                bare: false,
            });
            let scope = Scope {
                kind: "JSON patch".into(),
                object_index: last_index(file),
                ..Scope::default()
            };
            patches::operations(text, root, None, &scope, file);
            return;
        }
        let (line, column) = text.line_column(root.span().start);
        let got = if root.is_sequence() {
            "a list"
        } else {
            "a single value"
        };
        file.problems.push(InputProblem {
            cause: "input-not-a-manifest".into(),
            detail: format!(
                "the document is {got}; a manifest is a mapping with kind, metadata and spec"
            ),
            fix: "give a Kubernetes manifest, or leave this file out".into(),
            position: Some((line, column)),
            outcome: Outcome::Empty,
        });
        return;
    }
    let kind = match root.get("kind").and_then(Node::text) {
        Some(kind) => kind.to_owned(),
        None if elsewhere::is_kustomization(text, root) => "Kustomization".to_owned(),
        None => String::new(),
    };
    // What this program writes lies beside the recipes that it is about.
    if kind.is_empty()
        && let Some(schema) = root.get("schema").and_then(Node::text)
        && schema.starts_with("check-interconnect/")
    {
        file.problems.push(InputProblem {
            cause: "input-not-a-manifest".into(),
            detail: "a report or a baseline of check-interconnect, no manifest".into(),
            fix: "leave this file out".into(),
            position: None,
            outcome: Outcome::Empty,
        });
        return;
    }
    if let Some(kind) = root
        .get("kind")
        .filter(|k| !k.is_null() && (!k.is_scalar() || k.is_plain_non_string()))
    {
        file.problems.push(shapes::problem(
            format!("kind: got {}, expected text", shapes::got(kind)),
            text.line_column(kind.span().start),
        ));
    }
    if let Some(items) = root
        .get("items")
        .filter(|i| i.is_sequence() && (kind.is_empty() || kind.ends_with("List")))
    {
        if depth < MAX_LIST_DEPTH {
            let mut told = 0;
            for item in items.items() {
                if item.is_mapping() {
                    manifest(text, item, file, depth + 1, partial);
                } else if told < shapes::MAX_PROBLEMS {
                    told += 1;
                    file.problems.push(shapes::problem(
                        format!(
                            "an item of items: got {}, expected a mapping",
                            shapes::got(item)
                        ),
                        text.line_column(item.span().start),
                    ));
                }
            }
        }
        return;
    }
    let name = root
        .get_path(&["metadata", "name"])
        .or_else(|| root.get_path(&["metadata", "generateName"]))
        .and_then(Node::text)
        .unwrap_or_default();
    let namespace = root
        .get_path(&["metadata", "namespace"])
        .and_then(Node::text)
        .map(str::to_owned);
    let partial = partial.or(match kind.as_str() {
        "" => Some(Partial::Data),
        // The last is merged under services that are elsewhere.
        "Kustomization" | "Component" | "LLMInferenceServiceConfig" => Some(Partial::Patch),
        _ => None,
    });
    let shared = file.kind(&kind);
    // One object without workers stands for all of them: a file can hold a million.
    let bare = matches!(kind.as_str(), "ConfigMap" | "ComputeDomain")
        || kind.starts_with("ResourceClaim")
        || NO_WORKERS.contains(&kind.as_str());
    if !bare || file.objects.is_empty() {
        file.objects.push(ObjectDraft {
            kind: Arc::clone(&shared),
            name: name.to_owned(),
            namespace,
            partial,
            bare,
        });
    }
    let scope = Scope {
        object: name.to_owned(),
        kind: shared,
        object_index: last_index(file),
        ..Scope::default()
    };
    shapes::check(text, root, &kind, file);
    match kind.as_str() {
        "DynamoGraphDeployment" => dynamo::graph(text, root, &scope, file),
        "DynamoComponentDeployment" => dynamo::component_deployment(text, root, &scope, file),
        "DynamoGraphDeploymentRequest" => dynamo::request(text, root, file, depth),
        "ConfigMap" => file.config_maps.push(config_map::read(text, root, name)),
        "ComputeDomain" => file
            .around
            .compute_domains
            .push(compute_domain(text, root, name)),
        "ResourceClaimTemplate" | "ResourceClaim" => {
            file.around.claim_templates.push(claim_template(root, name));
        }
        "Service" => file
            .around
            .headless_services
            .extend(pod_facts::headless(text, root, name)),
        "Kustomization" | "Component" => {
            patches::kustomization(text, root, &scope, file);
            if root
                .get("apiVersion")
                .and_then(Node::text)
                .is_none_or(|v| v.starts_with("kustomize.config.k8s.io/"))
            {
                elsewhere::references(text, root, file);
            }
        }
        "ModelBooster" => values::read(text, root, &scope, file),
        "RayService" | "RayCluster" | "RayJob" => ray::read(text, root, &scope, file),
        "RoleBasedGroup" => generic::role_based_group(text, root, &scope, file),
        "" => {
            let before = file.containers.len();
            values::read(text, root, &scope, file);
            if file.containers.len() > before {
                if let Some(object) = file.objects.last_mut() {
                    object.partial = Some(Partial::Values);
                }
            } else {
                values::loose(text, root, file);
                values::alone(text, root, file);
            }
        }
        kind if NO_WORKERS.contains(&kind) => {}
        _ => generic::read(text, root, &scope, file),
    }
}

fn last_index(file: &FileDraft) -> u32 {
    u32::try_from(file.objects.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

fn compute_domain(text: &Text<'_>, root: Node<'_>, name: &str) -> ComputeDomain {
    ComputeDomain {
        name: name.to_owned(),
        template: root
            .get_path(&["spec", "channel", "resourceClaimTemplate", "name"])
            .and_then(Node::text)
            .map(str::to_owned),
        nodes: root
            .get_path(&["spec", "numNodes"])
            .and_then(Node::as_i64)
            .and_then(|n| u64::try_from(n).ok()),
        place: text.node(root.get_path(&["metadata", "name"]).unwrap_or(root), true),
    }
}

fn claim_template(root: Node<'_>, name: &str) -> ClaimTemplate {
    let mut devices = Vec::new();
    for path in [
        &["spec", "spec", "devices", "requests"][..],
        &["spec", "devices", "requests"][..],
    ] {
        let Some(requests) = root.get_path(path) else {
            continue;
        };
        for request in requests.items() {
            let class = request
                .get("deviceClassName")
                .or_else(|| request.get_path(&["exactly", "deviceClassName"]));
            devices.extend(class.and_then(Node::text).map(str::to_owned));
        }
    }
    ClaimTemplate {
        name: name.to_owned(),
        devices,
    }
}

fn duplicate_key(text: &Text<'_>, key: &std::ops::Range<u32>) -> InputProblem {
    let position = text.line_column(key.start);
    InputProblem {
        cause: "input-duplicate-key".into(),
        detail: format!(
            "line {} repeats a key of its mapping; Kubernetes keeps the last one",
            position.0
        ),
        fix: "remove one of the two".into(),
        position: Some(position),
        outcome: Outcome::Noted,
    }
}

fn alias_problem(text: &Text<'_>, span: &std::ops::Range<u32>, what: &str) -> InputProblem {
    let position = text.line_column(span.start);
    InputProblem {
        cause: "input-broken-alias".into(),
        detail: what.to_owned(),
        fix: "define the anchor first (&name), or write the value out".into(),
        position: Some(position),
        outcome: Outcome::Broken,
    }
}

fn too_many_aliases(text: &Text<'_>, root: Node<'_>) -> InputProblem {
    let position = text.line_column(root.span().start);
    InputProblem {
        cause: "input-broken-alias".into(),
        detail: "the aliases of this document multiply to more than a manifest can hold; what lies beyond was not looked at".to_owned(),
        fix: "write out what is needed; aliases to lists of aliases are no way to write a manifest"
            .into(),
        position: Some(position),
        outcome: Outcome::Broken,
    }
}

/// Whether an error stands where a template language was left in.
fn is_template(source: &str, error: &SyntaxError) -> bool {
    // Braces without end are too much for the parser, not another language.
    if matches!(error.kind, ErrorKind::TooDeep | ErrorKind::TooManyNodes)
        || !(source.contains("{{") || source.contains("{%"))
    {
        return false;
    }
    // The braces must stand outside quotes on some line up to the error: JSON in a string has them too.
    source.lines().take(error.line as usize).any(|line| {
        let line = line.trim_start();
        ["{{", "{%"].iter().any(|open| {
            line.find(open).is_some_and(|at| {
                let before = line.get(..at).unwrap_or_default();
                let rest = line.get(at..).unwrap_or_default();
                // No template language opens with more than three.
                !rest.starts_with("{{{{")
                    && !before.starts_with('#')
                    && before.matches('"').count() % 2 == 0
                    && before.matches('\'').count() % 2 == 0
            })
        })
    })
}

/// Where `{{ x }}` stands as a value. To YAML it is a mapping with a mapping for a key, which no manifest has.
fn braces(document: &yaml::Document<'_>) -> Option<u32> {
    let range = document.range();
    document
        .source()
        .get(range.start as usize..range.end as usize)
        .filter(|text| text.contains("{{"))?;
    let mut todo = vec![document.root()];
    while let Some(node) = todo.pop() {
        // What an alias stands for is looked at where it is written.
        if node.alias_span().is_some() {
            continue;
        }
        if node.is_mapping() {
            let key = node.pairs().map(|(key, _)| key).find(|k| k.is_mapping());
            if key.is_some() {
                return Some(node.span().start);
            }
        }
        todo.extend(node.children());
    }
    None
}

fn template_problem(position: (u32, u32), detail: &str) -> InputProblem {
    InputProblem {
        cause: "input-template".into(),
        detail: detail.into(),
        fix: "render it first (helm template, or the tool that owns it) and give the result".into(),
        position: Some(position),
        outcome: Outcome::Skipped,
    }
}

fn syntax_problem(error: &SyntaxError, template: bool) -> InputProblem {
    let position = Some((error.line, error.column));
    if template {
        return template_problem(
            (error.line, error.column),
            "a template, not YAML until it is rendered",
        );
    }
    let fix = match error.kind {
        ErrorKind::Tab => "indent with spaces",
        ErrorKind::UnclosedQuote => "close the quote",
        ErrorKind::TooDeep | ErrorKind::TooManyNodes => {
            "check that this is a manifest and not generated data"
        }
        _ => "correct the line; other documents of the file are still judged",
    };
    InputProblem {
        cause: "input-broken-yaml".into(),
        detail: error.message.clone(),
        fix: fix.into(),
        position,
        outcome: Outcome::Broken,
    }
}
