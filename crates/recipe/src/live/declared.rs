//! Objects that pods are made from, by the reader of recipes: a DynamoGraphDeployment, a ReplicaSet, a StatefulSet.
//!
//! What the API server keeps beside the spec (status, who manages which field, the text that was applied last, which
//! repeats every value) is left out before anything is read.

use model::{Deployment, Place};
use serde_json::{Map, Value};

use super::{object, places, spec};
use crate::{document, group};

/// The deployments that an object of the API server declares. A text that is no such object declares none.
#[must_use]
pub fn declared(kind: &str, json: &str) -> Vec<Deployment> {
    let Ok(found) = object::object(json, kind) else {
        return Vec::new();
    };
    let nothing = Value::Null;
    let metadata = found.get("metadata").unwrap_or(&nothing);
    let name = metadata
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut about = Map::new();
    for key in ["name", "namespace", "labels"] {
        if let Some(value) = metadata.get(key) {
            about.insert(key.to_owned(), value.clone());
        }
    }
    let mut reduced = Map::new();
    if let Some(version) = found.get("apiVersion") {
        reduced.insert("apiVersion".to_owned(), version.clone());
    }
    // A ReplicaSet has the shape of the Deployment that makes it.
    let read_as = if kind == "ReplicaSet" {
        "Deployment"
    } else {
        kind
    };
    reduced.insert("kind".to_owned(), read_as.into());
    reduced.insert("metadata".to_owned(), Value::Object(about));
    if let Some(spec) = found.get("spec") {
        reduced.insert("spec".to_owned(), spec.clone());
    }
    let mut text = String::new();
    spec::write(&mut text, &Value::Object(reduced));
    let facts = group::assemble(vec![document::read(&format!("{kind} {name}"), &text)]);
    let mut deployments = facts.deployments;
    for worker in deployments.iter_mut().flat_map(|d| &mut d.workers) {
        places::each(worker, &|place: &mut Place| {
            // An object has no lines.
            place.line = 0;
            place.column = 0;
        });
    }
    deployments
}
