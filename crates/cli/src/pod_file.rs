//! Pods in files, as objects: pods themselves, lists of them, and the templates of workloads.

use serde_json::{Map, Number, Value, json};
use yaml::{Kind, Node};

/// Depth of an object; those of Kubernetes have a few dozen levels.
const MAX_DEPTH: usize = 64;
/// Values of all objects together.
const MAX_VALUES: usize = 1_000_000;

/// The pods of a text, a workload's template as the pod that it makes.
pub(crate) fn pods(text: &str) -> Result<Vec<Value>, String> {
    let stream = yaml::parse(text, &yaml::Limits::default());
    if let Some(error) = stream.errors.first() {
        return Err(format!("it is no YAML: {error}"));
    }
    let mut left = MAX_VALUES;
    let mut found = Vec::new();
    for document in &stream.documents {
        let object =
            value(document.root(), 0, &mut left).ok_or("it is nested too deeply, or too large")?;
        match object.get("items").and_then(Value::as_array) {
            Some(items) => found.extend(items.iter().filter_map(pod)),
            None => found.extend(pod(&object)),
        }
    }
    if found.is_empty() {
        return Err(
            "there is no pod in it, and no workload with a pod template (spec.template)".to_owned(),
        );
    }
    Ok(found)
}

fn pod(object: &Value) -> Option<Value> {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
    if object.pointer("/spec/containers").is_some() {
        return Some(as_pod(metadata, object.get("spec")?));
    }
    // Of a LeaderWorkerSet the group's pods; of a CronJob that of its jobs.
    let template = [
        "/spec/template",
        "/spec/leaderWorkerTemplate/workerTemplate",
        "/spec/jobTemplate/spec/template",
    ]
    .iter()
    .filter_map(|path| object.pointer(path))
    .find(|template| template.pointer("/spec/containers").is_some())?;
    let mut head = template
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    for key in ["name", "namespace"] {
        if let Some(own) = metadata.get(key) {
            head.insert(key.to_owned(), own.clone());
        }
    }
    Some(as_pod(head.into(), template.get("spec")?))
}

fn as_pod(mut metadata: Value, spec: &Value) -> Value {
    // What is made from a template gets its name from it.
    let name = metadata
        .get("generateName")
        .and_then(Value::as_str)
        .map_or("worker", |name| name.trim_end_matches('-'))
        .to_owned();
    if let Some(map) = metadata.as_object_mut() {
        map.entry("name").or_insert(name.into());
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn value(node: Node<'_>, depth: usize, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    if depth > MAX_DEPTH {
        return None;
    }
    let next = depth.saturating_add(1);
    Some(match node.kind() {
        Kind::Mapping => {
            let mut map = Map::new();
            for (key, held) in node.entries() {
                map.insert(key.raw().into_owned(), value(held, next, left)?);
            }
            map.into()
        }
        Kind::Sequence => {
            let mut list = Vec::new();
            for item in node.items() {
                list.push(value(item, next, left)?);
            }
            list.into()
        }
        _ => scalar(node),
    })
}

fn scalar(node: Node<'_>) -> Value {
    if node.is_null() {
        return Value::Null;
    }
    if !node.is_plain_non_string() {
        return node.raw().into_owned().into();
    }
    if let Some(truth) = node.as_bool() {
        return truth.into();
    }
    if let Some(number) = node.as_i64() {
        return number.into();
    }
    let raw = node.raw();
    match raw.parse::<f64>().ok().and_then(Number::from_f64) {
        Some(number) => number.into(),
        None => raw.into_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a broken test should stop")]
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn pods_lists_and_templates() {
        let spec = "containers: [{name: main, image: a, resources: {limits: {rdma/ib: 1}}}]";
        for text in [
            format!("kind: Pod\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"),
            format!(
                "kind: List\nitems:\n- kind: Pod\n  metadata: {{name: a}}\n  spec: {{{spec}}}\n"
            ),
            format!(
                "kind: StatefulSet\nmetadata: {{name: a}}\nspec: {{template: {{metadata: {{labels: {{x: y}}}}, spec: {{{spec}}}}}}}\n"
            ),
            format!("kind: Service\n---\nkind: Pod\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"),
        ] {
            let found = pods(&text).unwrap();
            assert_eq!(found.len(), 1, "{text}");
            let pod = found.first().unwrap();
            assert_eq!(pod.pointer("/metadata/name").unwrap(), "a");
            assert_eq!(
                pod.pointer("/spec/containers/0/resources/limits/rdma~1ib")
                    .unwrap(),
                &json!(1)
            );
        }
        let unnamed = pods(&format!("kind: Pod\nspec: {{{spec}}}\n")).unwrap();
        assert_eq!(
            unnamed.first().unwrap().pointer("/metadata/name").unwrap(),
            "worker"
        );
        for none in ["", "kind: Service", "a: [b", "[]", "spec: {containers: }"] {
            let _no_panic = pods(none);
        }
        assert!(pods("kind: Service\n").unwrap_err().contains("no pod"));
    }

    #[test]
    fn aliases_without_end_are_bounded() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..12 {
            let before = format!("*a{}", n - 1);
            let list = [before.as_str(); 9].join(", ");
            let _infallible = writeln!(text, "a{n}: &a{n} [{list}]");
        }
        assert!(pods(&text).is_err());
    }
}
