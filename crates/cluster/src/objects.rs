//! Reads pods and nodes, page by page, as the JSON text that the API server gives.

use model::pod::{Fault, FaultKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::door::{Cluster, Refusal};
use crate::patience::patiently;
use crate::stop::Stop;

/// Objects in one answer. More of them make a larger answer than an API server likes to give at once.
const PAGE: usize = 500;
/// The most objects that are read.
const MAX_OBJECTS: usize = 100_000;
/// The most answers that are read: a server gives fewer objects at once than it was asked for where it likes to.
const MAX_PAGES: usize = 400;

/// Characters that need no escape in a query.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

#[derive(Deserialize)]
struct List<'t> {
    #[serde(borrow, deserialize_with = "or_null")]
    items: Vec<&'t RawValue>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

/// What is empty may be written as `null`, but it is written.
fn or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<&'de RawValue>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// A list of objects. An object without `items` is none: a login page may be JSON too.
fn list(text: &str) -> Option<List<'_>> {
    // Serde takes a sequence for the fields of a struct as well.
    let is_object = text.trim_start().starts_with('{');
    is_object.then(|| serde_json::from_str(text).ok()).flatten()
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
    all(cluster, "Pod", &path, selector, stop)
        .await
        .map_err(|fault| match selector {
            Some(selector) => match fault.detail.strip_prefix("HTTP 400") {
                Some(said) => Fault::new(FaultKind::BadSelector, format!("'{selector}'{said}")),
                None => fault,
            },
            None => fault,
        })
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

/// Where the API server keeps a kind of objects.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'k> {
    /// API group.
    pub group: &'k str,
    /// Versions of it; the first that the server knows is read.
    pub versions: &'k [&'k str],
    /// Plural name.
    pub resource: &'k str,
}

/// An object of a namespace; `None` where there is none of that name, or the server does not know the kind.
///
/// # Errors
/// The API server refuses.
pub async fn object(
    cluster: &dyn Cluster,
    kept: Kept<'_>,
    namespace: &str,
    name: &str,
    stop: &Stop,
) -> Result<Option<String>, Fault> {
    for version in kept.versions {
        let path = format!(
            "/apis/{}/{version}/namespaces/{}/{}/{}",
            kept.group,
            escaped(namespace),
            kept.resource,
            escaped(name)
        );
        match patiently(stop, || cluster.get(&path)).await {
            Ok(text) => return Ok(Some(text)),
            Err(refusal) if refusal.fault.kind == FaultKind::NotFound => {}
            Err(refusal) => return Err(refusal.fault),
        }
    }
    Ok(None)
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
    let foreign = |what: String| Fault::new(FaultKind::NotApi, what);
    for _page in 0..MAX_PAGES {
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
        let list = list(&text).ok_or_else(|| {
            foreign(format!(
                "the answer for {path} is no list of objects; a proxy may stand between"
            ))
        })?;
        found.extend(list.items.iter().filter_map(|item| with_kind(item, kind)));
        let token = list.metadata.and_then(|m| m.next).filter(|t| !t.is_empty());
        // A page may be empty and another one follow; only the token tells.
        let Some(token) = token else {
            return Ok(found);
        };
        if next.as_ref() == Some(&token) || found.len() > MAX_OBJECTS {
            break;
        }
        next = Some(token);
    }
    Err(foreign(format!(
        "the list of {path} has no end: after {} objects more are promised still",
        found.len()
    )))
}

/// An object of a list, which leaves out what all of them have in common.
fn with_kind(item: &RawValue, kind: &str) -> Option<String> {
    let rest = item.get().trim_start().strip_prefix('{')?;
    Some(format!(r#"{{"apiVersion":"v1","kind":"{kind}",{rest}"#))
}

/// Whether Kubernetes could have given a pod or a container this name (RFC 1123 subdomain; apimachinery
/// pkg/util/validation). It becomes part of a path, and an argument of programs, so that nothing else may.
pub(crate) fn is_name(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.len() <= 253
        && ends(name.chars().next())
        && ends(name.chars().next_back())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.'))
}

pub(crate) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, QUERY).to_string()
}
