//! Reads pods and nodes, page by page, as the JSON text that the API server gives.

use model::pod::{Fault, FaultKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::door::{Cluster, Refusal};
use crate::patience::patiently;
use crate::stop::Stop;

/// Objects in one answer. More of them make a larger answer than an API server likes to give at once.
const PAGE: usize = 500;
/// The most objects that are read; a server that never comes to an end has not more.
const MAX_OBJECTS: usize = 100_000;

/// Characters that need no escape in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

#[derive(Deserialize)]
struct List<'t> {
    #[serde(borrow, default)]
    items: Vec<&'t RawValue>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// The pods of a namespace, each as JSON text.
///
/// # Errors
/// The API server refuses, or answers something else.
pub async fn pods(
    cluster: &dyn Cluster,
    namespace: &str,
    selector: Option<&str>,
    stop: &Stop,
) -> Result<Vec<String>, Fault> {
    let path = format!("/api/v1/namespaces/{}/pods", escaped(namespace));
    all(cluster, "Pod", &path, selector, stop).await
}

/// One pod by its name.
///
/// # Errors
/// It is not there, or the API server refuses.
pub async fn named_pod(
    cluster: &dyn Cluster,
    namespace: &str,
    name: &str,
    stop: &Stop,
) -> Result<String, Fault> {
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}",
        escaped(namespace),
        escaped(name)
    );
    match patiently(stop, || cluster.get(&path)).await {
        Ok(text) => Ok(text),
        Err(refusal) if refusal.fault.kind == FaultKind::NotFound => Err(Fault::new(
            FaultKind::NoSuchPod,
            format!("no pod '{name}' in namespace '{namespace}'"),
        )),
        Err(refusal) => Err(refusal.fault),
    }
}

/// The nodes of the cluster, each as JSON text.
///
/// # Errors
/// The API server refuses, as it often does.
pub async fn nodes(cluster: &dyn Cluster, stop: &Stop) -> Result<Vec<String>, Fault> {
    all(cluster, "Node", "/api/v1/nodes", None, stop).await
}

async fn all(
    cluster: &dyn Cluster,
    kind: &str,
    path: &str,
    selector: Option<&str>,
    stop: &Stop,
) -> Result<Vec<String>, Fault> {
    let mut found = Vec::new();
    let mut next: Option<String> = None;
    let mut restarted = false;
    loop {
        let mut page = format!("{path}?limit={PAGE}");
        if let Some(selector) = selector {
            page.push_str("&labelSelector=");
            page.push_str(&escaped(selector));
        }
        if let Some(token) = &next {
            page.push_str("&continue=");
            page.push_str(&escaped(token));
        }
        let text = match patiently(stop, || cluster.get(&page)).await {
            Ok(text) => text,
            // The list is too old to go on with: once more from its beginning (410 Gone).
            Err(Refusal { fault, .. }) if fault.detail.starts_with("HTTP 410") && !restarted => {
                restarted = true;
                next = None;
                found.clear();
                continue;
            }
            Err(refusal) => return Err(refusal.fault),
        };
        let list: List<'_> = serde_json::from_str(&text).map_err(|_| {
            Fault::new(
                FaultKind::NotOurs,
                format!("the answer for {path} is no list of objects; a proxy may stand between"),
            )
        })?;
        found.extend(list.items.iter().filter_map(|item| with_kind(item, kind)));
        next = list.metadata.next.filter(|token| !token.is_empty());
        if next.is_none() || list.items.is_empty() || found.len() >= MAX_OBJECTS {
            return Ok(found);
        }
    }
}

/// An object of a list, which leaves out what all of them have in common.
fn with_kind(item: &RawValue, kind: &str) -> Option<String> {
    let rest = item.get().trim_start().strip_prefix('{')?;
    Some(format!(r#"{{"apiVersion":"v1","kind":"{kind}",{rest}"#))
}

pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string()
}
