//! What is stored: kinds, objects, and lists of them with selectors and pages.

use std::collections::BTreeMap;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use crate::ids;
use crate::selectors::{Fields, Labels};
use crate::status::Refusal;

/// A kind that the server knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) name: String,
    pub(crate) short: Vec<String>,
    pub(crate) namespaced: bool,
    /// With their kinds, as discovery names them.
    pub(crate) subresources: Vec<(&'static str, &'static str)>,
}

impl Kind {
    pub(crate) fn new(api_version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            name: kind.to_owned(),
            short: Vec::new(),
            namespaced,
            subresources: Vec::new(),
        }
    }

    fn short(mut self, short: &str) -> Self {
        self.short.push(short.to_owned());
        self
    }

    fn subresources(mut self, subresources: &[(&'static str, &'static str)]) -> Self {
        self.subresources = subresources.to_vec();
        self
    }

    pub(crate) fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    pub(crate) fn group_version(&self) -> (&str, &str) {
        (&self.group, &self.version)
    }

    /// Custom resources repeat `kind` and `apiVersion` in each item of a list; built-in ones leave them out.
    fn is_custom(&self) -> bool {
        self.group.contains('.') && !self.group.ends_with(".k8s.io")
    }
}

/// The kinds of every cluster, as far as anybody asks for them here.
fn built_in() -> Vec<Kind> {
    vec![
        Kind::new("v1", "namespaces", "Namespace", false).short("ns"),
        Kind::new("v1", "nodes", "Node", false).short("no"),
        Kind::new("v1", "pods", "Pod", true)
            .short("po")
            .subresources(&[("exec", "PodExecOptions"), ("log", "Pod")]),
        Kind::new("v1", "services", "Service", true).short("svc"),
        Kind::new("v1", "configmaps", "ConfigMap", true).short("cm"),
        Kind::new("v1", "secrets", "Secret", true),
        Kind::new("v1", "events", "Event", true).short("ev"),
        Kind::new("v1", "serviceaccounts", "ServiceAccount", true).short("sa"),
        Kind::new("apps/v1", "deployments", "Deployment", true).short("deploy"),
        Kind::new("apps/v1", "replicasets", "ReplicaSet", true).short("rs"),
        Kind::new("apps/v1", "statefulsets", "StatefulSet", true).short("sts"),
        Kind::new("apps/v1", "daemonsets", "DaemonSet", true).short("ds"),
        Kind::new("batch/v1", "jobs", "Job", true),
        Kind::new(
            "authorization.k8s.io/v1",
            "selfsubjectaccessreviews",
            "SelfSubjectAccessReview",
            false,
        ),
        Kind::new(
            "authorization.k8s.io/v1",
            "selfsubjectrulesreviews",
            "SelfSubjectRulesReview",
            false,
        ),
    ]
}

type Objects = BTreeMap<(String, String), Value>;

/// Everything that is stored.
#[derive(Debug)]
pub(crate) struct World {
    kinds: Vec<Kind>,
    objects: BTreeMap<(String, String, String), Objects>,
    revision: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            kinds: built_in(),
            objects: BTreeMap::new(),
            revision: 1000,
        }
    }

    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    pub(crate) fn kind(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        self.kinds
            .iter()
            .find(|k| k.group == group && k.version == version && k.plural == plural)
    }

    /// Makes a kind known, as installing its CRD does.
    pub(crate) fn serve(&mut self, kind: Kind) {
        if self
            .kind(&kind.group, &kind.version, &kind.plural)
            .is_none()
        {
            self.kinds.push(kind);
        }
    }

    /// Stores an object, whatever it is; a kind that is not known yet becomes known.
    pub(crate) fn put(&mut self, mut object: Value) {
        let text = |object: &Value, pointer: &str| {
            object
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let api_version = text(&object, "/apiVersion");
        let kind_name = text(&object, "/kind");
        let name = text(&object, "/metadata/name");
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let known = self
            .kinds
            .iter()
            .find(|k| k.group == group && k.version == version && k.name == kind_name)
            .cloned();
        let kind = known.unwrap_or_else(|| {
            let plural = format!("{}s", kind_name.to_lowercase());
            let namespaced = object.pointer("/metadata/namespace").is_some();
            Kind::new(&api_version, &plural, &kind_name, namespaced)
        });
        self.serve(kind.clone());
        let namespace = if kind.namespaced {
            match text(&object, "/metadata/namespace") {
                none if none.is_empty() => "default".to_owned(),
                namespace => namespace,
            }
        } else {
            String::new()
        };
        self.revision += 1;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            if kind.namespaced {
                metadata.insert("namespace".into(), namespace.clone().into());
            }
            metadata.insert("resourceVersion".into(), self.revision.to_string().into());
            metadata
                .entry("uid")
                .or_insert_with(|| ids::uid(&format!("{kind_name}/{namespace}/{name}")).into());
            metadata
                .entry("creationTimestamp")
                .or_insert_with(|| crate::pod::CREATED.into());
        }
        self.objects
            .entry((kind.group, kind.version, kind.plural))
            .or_default()
            .insert((namespace, name), object);
    }

    fn of(&self, kind: &Kind) -> Option<&Objects> {
        self.objects.get(&(
            kind.group.clone(),
            kind.version.clone(),
            kind.plural.clone(),
        ))
    }

    pub(crate) fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.of(kind)?.get(&(namespace.to_owned(), name.to_owned()))
    }

    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Option<&Value> {
        self.get(self.kind("", "v1", "pods")?, namespace, name)
    }

    fn pods(&mut self) -> &mut Objects {
        self.objects
            .entry((String::new(), "v1".to_owned(), "pods".to_owned()))
            .or_default()
    }

    pub(crate) fn remove_pod(&mut self, namespace: &str, name: &str) -> Option<Value> {
        self.revision += 1;
        self.pods().remove(&(namespace.to_owned(), name.to_owned()))
    }

    pub(crate) fn change_pod(
        &mut self,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> bool {
        self.revision += 1;
        let revision = self.revision.to_string();
        let Some(pod) = self
            .pods()
            .get_mut(&(namespace.to_owned(), name.to_owned()))
        else {
            return false;
        };
        change(pod);
        if let Some(metadata) = pod.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".into(), revision.into());
        }
        true
    }

    /// One page of a list.
    pub(crate) fn list(&self, kind: &Kind, namespace: &str, ask: &Ask) -> Result<Value, Refusal> {
        let labels = Labels::parse(&ask.labels).map_err(|e| Refusal::bad_request(&e))?;
        let fields = Fields::parse(&ask.fields).map_err(|e| Refusal::bad_request(&e))?;
        let after = match ask.from.as_deref() {
            Some(token) => Some(read_token(token)?),
            None => None,
        };
        let mut found = self
            .of(kind)
            .into_iter()
            .flatten()
            .filter(|((ns, _), _)| namespace.is_empty() || ns == namespace)
            .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
            .filter(|(_, object)| labels.matches(object) && fields.matches(object));
        let mut items = Vec::new();
        let mut last = None;
        for (key, object) in found.by_ref() {
            let mut object = object.clone();
            if let (Some(map), false) = (object.as_object_mut(), kind.is_custom()) {
                map.remove("kind");
                map.remove("apiVersion");
            }
            items.push(object);
            last = Some(key);
            if ask.limit.is_some_and(|limit| items.len() >= limit) {
                break;
            }
        }
        let mut metadata = json!({ "resourceVersion": self.revision.to_string() });
        let left = found.count();
        if let (Some(map), Some(last), true) = (metadata.as_object_mut(), last, left > 0) {
            map.insert("continue".into(), self.write_token(last).into());
            // The real one says nothing where a selector makes counting dear.
            if ask.labels.is_empty() && ask.fields.is_empty() {
                map.insert("remainingItemCount".into(), left.into());
            }
        }
        Ok(json!({
            "kind": format!("{}List", kind.name),
            "apiVersion": kind.api_version(),
            "metadata": metadata,
            "items": items,
        }))
    }

    fn write_token(&self, (namespace, name): &(String, String)) -> String {
        let start = json!({ "v": "meta.k8s.io/v1", "rv": self.revision, "start": format!("{namespace}/{name}") });
        BASE64URL_NOPAD.encode(start.to_string().as_bytes())
    }
}

fn read_token(token: &str) -> Result<(String, String), Refusal> {
    let read = || {
        let bytes = BASE64URL_NOPAD.decode(token.as_bytes()).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let (namespace, name) = value.get("start")?.as_str()?.split_once('/')?;
        Some((namespace.to_owned(), name.to_owned()))
    };
    read().ok_or_else(|| Refusal::bad_request("continue key is not valid"))
}

/// What a list request asks for.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) labels: String,
    pub(crate) fields: String,
    pub(crate) limit: Option<usize>,
    pub(crate) from: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> World {
        let mut world = World::new();
        for name in ["a", "b", "c", "d", "e"] {
            world.put(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "name": name, "namespace": "ns", "labels": { "odd": if "ace".contains(name) { "1" } else { "0" } } },
            }));
        }
        world.put(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "z", "namespace": "other" } }));
        world
    }

    fn names(list: &Value) -> Vec<&str> {
        list["items"]
            .as_array()
            .map(|items| {
                items
                    .iter()
                    .filter_map(|i| i["metadata"]["name"].as_str())
                    .collect()
            })
            .unwrap_or_default()
    }

    #[test]
    fn pages_follow_each_other_and_end() {
        let world = world();
        let pods = world.kind("", "v1", "pods").cloned().unwrap();
        let mut seen = Vec::new();
        let mut from = None;
        loop {
            let ask = Ask {
                limit: Some(2),
                from,
                ..Ask::default()
            };
            let page = world.list(&pods, "ns", &ask).unwrap();
            seen.extend(names(&page).into_iter().map(str::to_owned));
            match page["metadata"]["continue"].as_str() {
                Some(token) => from = Some(token.to_owned()),
                None => break,
            }
        }
        assert_eq!(seen, ["a", "b", "c", "d", "e"]);
        let bad = Ask {
            from: Some("nonsense".into()),
            ..Ask::default()
        };
        assert_eq!(world.list(&pods, "ns", &bad).unwrap_err().code, 400);
    }

    #[test]
    fn selectors_narrow_a_list_and_its_pages() {
        let world = world();
        let pods = world.kind("", "v1", "pods").cloned().unwrap();
        let ask = Ask {
            labels: "odd=1".into(),
            limit: Some(2),
            ..Ask::default()
        };
        let page = world.list(&pods, "ns", &ask).unwrap();
        assert_eq!(names(&page), ["a", "c"]);
        let ask = Ask {
            from: page["metadata"]["continue"].as_str().map(str::to_owned),
            ..ask
        };
        assert_eq!(names(&world.list(&pods, "ns", &ask).unwrap()), ["e"]);
        assert_eq!(
            names(&world.list(&pods, "", &Ask::default()).unwrap()).len(),
            6
        );
    }

    #[test]
    fn an_unknown_kind_becomes_known_and_its_items_keep_their_kind() {
        let mut world = world();
        world.put(json!({
            "apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment",
            "metadata": { "name": "g", "namespace": "ns" },
        }));
        let kind = world
            .kind("nvidia.com", "v1alpha1", "dynamographdeployments")
            .cloned()
            .unwrap();
        let list = world.list(&kind, "ns", &Ask::default()).unwrap();
        assert_eq!(list["kind"], "DynamoGraphDeploymentList");
        assert_eq!(list["items"][0]["kind"], "DynamoGraphDeployment");
    }
}
