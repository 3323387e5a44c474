//! Kustomizations: the patches that they carry inline, strategic (a manifest in a string) and JSON6902 (a list
//! of operations).
//!
//! A patch changes objects that are elsewhere, so what comes out is judged as a part: for what it sets, never for
//! what it leaves out. An operation that addresses a list entry by its index (`/env/0/value`) names no variable;
//! without the patched object that is said and not guessed.

use std::sync::Arc;

use model::{Hidden, Located, Partial};
use yaml::{Limits, Node};

use crate::command;
use crate::document;
use crate::draft::{Draft, FileDraft};
use crate::engine;
use crate::env;
use crate::json_keys;
use crate::place::{InScalar, Outer as _, Text};
use crate::pods::{self, Scope};
use crate::resources;

/// Reads the inline patches of a kustomization.
pub(crate) fn kustomization(
    text: &Text<'_>,
    root: Node<'_>,
    scope: &Scope<'_>,
    file: &mut FileDraft,
) {
    let before = file.containers.len();
    let objects = file.objects.len();
    let mut selections: Vec<Selection> = Vec::new();
    for key in ["patches", "patchesJson6902", "patchesStrategicMerge"] {
        let Some(list) = root.get(key).filter(|l| l.is_sequence()) else {
            continue;
        };
        for item in list.items() {
            let patch = if item.is_scalar() {
                Some(item)
            } else {
                item.get("patch")
            };
            let path = item.get("path").and_then(Node::text);
            let name = item.get_path(&["target", "name"]).and_then(Node::text);
            if let (Some(path), Some(name)) = (path, name) {
                file.targets.push((path.to_owned(), name.to_owned()));
            }
            // A one-line scalar is the path of a file, which is read on its own.
            let Some(patch) = patch.filter(|p| {
                p.text()
                    .is_some_and(|t| t.contains('\n') || t.contains('{'))
            }) else {
                continue;
            };
            let target = item.get("target");
            inline(text, patch, target, scope, file);
            let general = Selection::of(target);
            selections.resize_with(file.containers.len().saturating_sub(before), || {
                general.clone()
            });
        }
    }
    // All patches of one kustomization are one change.
    file.objects.truncate(objects);
    let added = file.containers.split_off(before);
    let mut general: Vec<(Draft, Selection)> = Vec::new();
    let mut kinds: Vec<Option<String>> = Vec::new();
    for (mut draft, selection) in added.into_iter().zip(selections) {
        draft.object_index = scope.object_index;
        draft.patch = true;
        if selection.every_name {
            general.push((draft.clone(), selection.clone()));
        }
        match file.containers.iter_mut().skip(before).find(|d| {
            d.name == draft.name
                && (d.container == draft.container
                    || d.container.is_empty()
                    || draft.container.is_empty())
        }) {
            Some(same) => merge(same, draft),
            None => {
                file.containers.push(draft);
                kinds.push(selection.kind);
            }
        }
    }
    // A patch of every object of a kind is one of each that another patch names.
    let merged = file.containers.iter_mut().skip(before).zip(&kinds);
    for (draft, kind) in merged.filter(|(d, _)| !d.name.is_empty()) {
        for (all, selection) in &general {
            let alike = all.container.is_empty()
                || draft.container.is_empty()
                || all.container == draft.container;
            if all.name != draft.name && alike && selection.takes(kind.as_deref()) {
                let mut all = all.clone();
                // The patch that names the object is the one that is meant.
                all.env
                    .retain(|e| draft.env.iter().all(|own| own.name != e.name));
                all.resources
                    .retain(|r| draft.resources.iter().all(|own| own.name != r.name));
                merge(draft, all);
            }
        }
    }
}

/// What the target of a patch selects.
#[derive(Debug, Clone, Default)]
struct Selection {
    kind: Option<String>,
    /// It names no object, so that it selects every one of its kind.
    every_name: bool,
}

impl Selection {
    fn of(target: Option<Node<'_>>) -> Self {
        let Some(target) = target else {
            return Self::default();
        };
        let text = |key: &str| target.get(key).and_then(Node::text);
        let narrowed = ["labelSelector", "annotationSelector"]
            .iter()
            .any(|key| target.get(key).is_some());
        Self {
            kind: text("kind").map(str::to_owned),
            every_name: !narrowed && text("name").is_none_or(|name| name == ".*"),
        }
    }

    fn takes(&self, kind: Option<&str>) -> bool {
        match (self.kind.as_deref(), kind) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => true,
        }
    }
}

/// One patch that is written as a string.
fn inline(
    text: &Text<'_>,
    patch: Node<'_>,
    target: Option<Node<'_>>,
    scope: &Scope<'_>,
    file: &mut FileDraft,
) {
    let Some(source) = patch.text() else { return };
    let outer = InScalar::new(text, patch);
    let inner = Text::inside(Arc::clone(&text.path), source, &outer);
    let stream = yaml::parse(source, &Limits::default());
    for error in stream.errors {
        let (line, _) = outer.line_column_inner(error.offset);
        file.problems.push(model::InputProblem {
            cause: "input-broken-yaml".into(),
            detail: format!(
                "the patch at line {line} cannot be parsed: {}",
                error.message
            ),
            fix: "correct the patch; everything else is still judged".into(),
            position: Some((line, 1)),
            outcome: model::Outcome::Broken,
        });
    }
    let target_name = target.and_then(|t| t.get("name")).and_then(Node::text);
    for document in &stream.documents {
        let root = document.root();
        if root.is_sequence() {
            operations(&inner, root, target_name, scope, file);
        } else if root.is_mapping() {
            let first = file.containers.len();
            document::manifest(&inner, root, file, 0, Some(Partial::Patch));
            if let Some(role) = target_name.and_then(engine::role_of_name) {
                for draft in file.containers.iter_mut().skip(first) {
                    draft.hinted = draft.hinted.or(Some(role));
                }
            }
        }
    }
}

/// JSON6902 operations. Those on one container make one draft.
pub(crate) fn operations(
    text: &Text<'_>,
    list: Node<'_>,
    target: Option<&str>,
    scope: &Scope<'_>,
    file: &mut FileDraft,
) {
    let mut drafts: Vec<(String, Draft)> = Vec::new();
    for item in list.items() {
        let (Some(path), Some(value)) = (item.get("path"), item.get("value")) else {
            continue;
        };
        if item.get("op").and_then(Node::text) == Some("remove") {
            continue;
        }
        let Some(pointer) = path.text() else { continue };
        let segments: Vec<String> = pointer
            .split('/')
            .skip(1)
            .map(|s| s.replace("~1", "/").replace("~0", "~"))
            .collect();
        let (owner, rest) = split_owner(&segments);
        let name = component(owner)
            .or_else(|| target.map(str::to_owned))
            .unwrap_or_default();
        let key = format!("{name}/{}", owner.join("/"));
        let index = match drafts.iter().position(|(k, _)| *k == key) {
            Some(index) => index,
            None => {
                let mut draft =
                    pods::empty(scope, name.clone(), String::new(), text.node(path, true));
                draft.hinted = owner
                    .iter()
                    .rev()
                    .find_map(|s| engine::role_of_name(s))
                    .or_else(|| target.and_then(engine::role_of_name));
                drafts.push((key, draft));
                drafts.len() - 1
            }
        };
        if let Some((_, draft)) = drafts.get_mut(index) {
            let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
            operation(text, &rest, path, value, draft);
        }
    }
    for (_, mut draft) in drafts {
        draft.patch = true;
        file.containers.push(draft);
    }
}

/// Splits a pointer into what leads to a container (or its pod) and what is inside.
fn split_owner(segments: &[String]) -> (&[String], &[String]) {
    let inside = segments
        .iter()
        .position(|s| s == "mainContainer" || s == "runner")
        .map(|at| at + 1)
        .or_else(|| {
            segments
                .iter()
                .position(|s| s == "containers")
                .map(|at| at + 2)
        })
        .or_else(|| {
            segments.iter().rposition(|s| {
                matches!(
                    s.as_str(),
                    "resources"
                        | "volumes"
                        | "annotations"
                        | "env"
                        | "envs"
                        | "hostNetwork"
                        | "hostIPC"
                        | "resourceClaims"
                )
            })
        });
    let at = inside.unwrap_or(segments.len()).min(segments.len());
    segments.split_at(at)
}

/// The component or role that a pointer leads through.
fn component(owner: &[String]) -> Option<String> {
    let at = owner
        .iter()
        .position(|s| matches!(s.as_str(), "services" | "components" | "roles" | "cliques"))?;
    owner.get(at + 1).cloned()
}

fn operation(text: &Text<'_>, rest: &[&str], path: Node<'_>, value: Node<'_>, draft: &mut Draft) {
    match rest {
        [] => pods::container(text, value, draft),
        ["env" | "envs"] => env::read(text, value, false, &mut draft.env),
        ["env" | "envs", _] => env::one(text, value, &mut draft.env),
        ["env" | "envs", _, "value"] => draft.run.hidden.push((
            Hidden::Environment,
            "a patch sets a variable by its index; which one depends on the patched object"
                .to_owned(),
        )),
        ["resources"] => resources::read(text, value, draft),
        ["resources", "limits" | "requests"] => resources::section(text, value, draft),
        ["resources", "limits" | "requests", "custom", name]
        | ["resources", "limits" | "requests", name] => {
            resources::single(text, name, path, value, draft);
        }
        ["securityContext"] => pods::security_context(text, value, draft),
        ["securityContext", "privileged"] => draft.privileged |= value.as_bool().unwrap_or(false),
        ["securityContext", "capabilities", "add", ..] => {
            let mut add = |node: Node<'_>| {
                if let Some(name) = node.text() {
                    let value = name
                        .strip_prefix("CAP_")
                        .unwrap_or(name)
                        .to_ascii_uppercase();
                    draft.capabilities.push(Located {
                        value,
                        place: text.node(node, true),
                    });
                }
            };
            if value.is_sequence() {
                value.items().for_each(add);
            } else {
                add(value);
            }
        }
        ["args" | "command"] if value.is_sequence() => {
            let run = command::read_items(text, &value.items().collect::<Vec<_>>());
            draft.run.flags.extend(run.flags);
            draft.run.exports.extend(run.exports);
        }
        ["args" | "command", _] => argument(text, value, draft),
        ["volumes", _] => {
            if let Some(host) = value.get_path(&["hostPath", "path"]) {
                pods::host_path(text, host, draft);
            }
        }
        ["annotations"] => pods::annotations(text, value, draft),
        ["hostNetwork"] => draft.host_network |= value.as_bool().unwrap_or(false),
        ["hostIPC"] => draft.host_ipc |= value.as_bool().unwrap_or(false),
        _ => {}
    }
}

/// One argument of a list: only a KV transfer configuration is recognized by itself.
fn argument(text: &Text<'_>, value: Node<'_>, draft: &mut Draft) {
    let Some(content) = value.text() else { return };
    if content.contains("\"kv_connector\"") {
        draft.run.flags.push(crate::draft::FlagDraft {
            name: "--kv-transfer-config".to_owned(),
            value: Some(content.to_owned()),
            expands: false,
            place: text.node(value, false),
            json: json_keys::places(text, &value.span()),
            form: model::Form::Embedded,
        });
    }
}

/// Two patches of the same container are one.
fn merge(into: &mut Draft, from: Draft) {
    into.env.extend(from.env);
    for resource in from.resources {
        into.resources.retain(|r| r.name != resource.name);
        into.resources.push(resource);
    }
    into.claims.extend(from.claims);
    into.capabilities.extend(from.capabilities);
    into.host_paths.extend(from.host_paths);
    into.annotations.extend(from.annotations);
    into.run.flags.extend(from.run.flags);
    into.run.exports.extend(from.run.exports);
    into.run.hidden.extend(from.run.hidden);
    into.privileged |= from.privileged;
    into.host_network |= from.host_network;
    into.host_ipc |= from.host_ipc;
    into.image = from.image.or(into.image.take());
    into.hinted = into.hinted.or(from.hinted);
    into.declared = into.declared.take().or(from.declared);
    into.accelerators = from.accelerators.or(into.accelerators);
    into.accelerator = from.accelerator.or(into.accelerator);
}
