//! The columns that `kubectl get pods` prints.

use serde_json::{Value, json};

/// Whether a request's `Accept` prefers a table.
pub(crate) fn wanted(accept: &str) -> bool {
    accept
        .split(',')
        .next()
        .is_some_and(|first| first.contains("as=Table"))
}

/// A table of one pod, or of a list of them.
pub(crate) fn of_pods(value: &Value) -> Value {
    let one = std::slice::from_ref(value);
    let pods = value
        .get("items")
        .and_then(Value::as_array)
        .map_or(one, Vec::as_slice);
    let rows: Vec<Value> = pods.iter().map(row).collect();
    let column = |name: &str, kind: &str| json!({ "name": name, "type": kind, "format": if name == "Name" { "name" } else { "" }, "description": "", "priority": 0 });
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": value.get("items").and(value.get("metadata")).cloned().unwrap_or_else(|| json!({})),
        "columnDefinitions": [
            column("Name", "string"),
            column("Ready", "string"),
            column("Status", "string"),
            column("Restarts", "string"),
            column("Age", "string"),
        ],
        "rows": rows,
    })
}

fn row(pod: &Value) -> Value {
    let statuses: Vec<&Value> = pod
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .collect();
    let ready = statuses
        .iter()
        .filter(|s| s.get("ready") == Some(&Value::Bool(true)))
        .count();
    let total = pod
        .pointer("/spec/containers")
        .and_then(Value::as_array)
        .map_or(0, Vec::len);
    let restarts: u64 = statuses
        .iter()
        .filter_map(|s| s.get("restartCount").and_then(Value::as_u64))
        .sum();
    let reason = |pointer: &str| {
        statuses
            .iter()
            .find_map(|s| s.pointer(pointer).and_then(Value::as_str))
    };
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str);
    let status = if text("/metadata/deletionTimestamp").is_some() {
        Some("Terminating")
    } else {
        reason("/state/waiting/reason")
            .or_else(|| reason("/state/terminated/reason"))
            .or_else(|| text("/status/reason"))
            .or_else(|| text("/status/phase"))
    };
    json!({
        "cells": [
            text("/metadata/name"),
            format!("{ready}/{total}"),
            status,
            restarts.to_string(),
            "1h",
        ],
        "object": {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": pod.get("metadata"),
        },
    })
}
