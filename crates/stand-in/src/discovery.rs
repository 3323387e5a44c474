//! Which groups, versions and resources there are: the old form, document by document, and the aggregated one.

use serde_json::{Value, json};

use crate::objects::{Kind, World};

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// The content type of aggregated discovery.
pub(crate) const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a request's `Accept` asks for the aggregated form.
pub(crate) fn wants_aggregated(accept: &str) -> bool {
    accept
        .split(',')
        .any(|part| part.contains("g=apidiscovery.k8s.io") && part.contains("v=v2;"))
}

pub(crate) fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

/// The versions of each named group, in the order in which they became known; the first is preferred.
fn groups(world: &World) -> Vec<(&str, Vec<&str>)> {
    let mut out: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in world.kinds().iter().filter(|k| !k.group.is_empty()) {
        match out.iter_mut().find(|(group, _)| *group == kind.group) {
            Some((_, versions)) if versions.contains(&kind.version.as_str()) => {}
            Some((_, versions)) => versions.push(&kind.version),
            None => out.push((&kind.group, vec![&kind.version])),
        }
    }
    out
}

fn group_value(group: &str, versions: &[&str]) -> Value {
    let version = |v: &&str| json!({ "groupVersion": format!("{group}/{v}"), "version": v });
    let all: Vec<Value> = versions.iter().map(version).collect();
    json!({ "name": group, "versions": all, "preferredVersion": versions.first().map(version) })
}

pub(crate) fn group_list(world: &World) -> Value {
    let groups: Vec<Value> = groups(world)
        .iter()
        .map(|(group, versions)| group_value(group, versions))
        .collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

pub(crate) fn group(world: &World, name: &str) -> Option<Value> {
    let groups = groups(world);
    let (group, versions) = groups.iter().find(|(group, _)| *group == name)?;
    let mut value = group_value(group, versions);
    if let Some(map) = value.as_object_mut() {
        map.insert("kind".into(), "APIGroup".into());
        map.insert("apiVersion".into(), "v1".into());
    }
    Some(value)
}

pub(crate) fn resources(world: &World, group: &str, version: &str) -> Option<Value> {
    let kinds: Vec<&Kind> = world
        .kinds()
        .iter()
        .filter(|k| k.group_version() == (group, version))
        .collect();
    let first = kinds.first()?;
    let mut out = Vec::new();
    for kind in &kinds {
        out.push(json!({
            "name": kind.plural,
            "singularName": kind.name.to_lowercase(),
            "namespaced": kind.namespaced,
            "kind": kind.name,
            "verbs": VERBS,
            "shortNames": kind.short,
        }));
        for (name, sub) in &kind.subresources {
            out.push(json!({
                "name": format!("{}/{name}", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": sub,
                "verbs": ["create", "get"],
            }));
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": first.api_version(),
        "resources": out,
    }))
}

/// `core` for `/api`, the others for `/apis`.
pub(crate) fn aggregated(world: &World, core: bool) -> Value {
    let groups = if core {
        vec![("", vec!["v1"])]
    } else {
        groups(world)
    };
    let items: Vec<Value> = groups
        .iter()
        .map(|(group, versions)| {
            let versions: Vec<Value> = versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> = world
                        .kinds()
                        .iter()
                        .filter(|k| k.group_version() == (group, version))
                        .map(aggregated_resource)
                        .collect();
                    json!({ "version": version, "resources": resources, "freshness": "Current" })
                })
                .collect();
            let metadata = match *group {
                "" => json!({ "creationTimestamp": null }),
                name => json!({ "name": name, "creationTimestamp": null }),
            };
            json!({ "metadata": metadata, "versions": versions })
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_resource(kind: &Kind) -> Value {
    let response =
        |name: &str| json!({ "group": kind.group, "version": kind.version, "kind": name });
    let subresources: Vec<Value> = kind
        .subresources
        .iter()
        .map(|(name, sub)| {
            json!({
                "subresource": name,
                "responseKind": response(sub),
                "verbs": ["create", "get"],
            })
        })
        .collect();
    json!({
        "resource": kind.plural,
        "responseKind": response(&kind.name),
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.name.to_lowercase(),
        "verbs": VERBS,
        "shortNames": kind.short,
        "subresources": subresources,
    })
}
