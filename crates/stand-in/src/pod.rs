//! Pods that look like those of a cluster, and how each container behaves.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::behaviour::{AfterLoss, Behaviour, Recorded};
use crate::states::{self, State};

/// When everything was made.
pub(crate) const CREATED: &str = "2026-01-01T00:00:00Z";

/// A container of a pod.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) spec: Map<String, Value>,
    pub(crate) behaviour: Behaviour,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) after_loss: AfterLoss,
    pub(crate) log: Bytes,
    /// Commands with one of these words come back with what is recorded for it, whatever the behaviour.
    pub(crate) answers: Vec<(String, Recorded)>,
}

impl Container {
    fn new(name: &str) -> Self {
        let mut spec = Map::new();
        spec.insert("name".into(), name.into());
        spec.insert("image".into(), "registry.example/worker:1.0".into());
        Self {
            name: name.to_owned(),
            spec,
            behaviour: Behaviour::Process(Vec::new()),
            environment: Vec::new(),
            after_loss: AfterLoss::default(),
            log: Bytes::new(),
            answers: Vec::new(),
        }
    }
}

/// A pod. Methods about a container are about `main` until [`Pod::container`] has named another one.
#[derive(Clone, Debug)]
pub struct Pod {
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) containers: Vec<Container>,
    current: usize,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    node: String,
    state: State,
    changes: Vec<(String, Value)>,
}

impl Pod {
    /// A running pod with one container, `main`, and no labels.
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            namespace: None,
            containers: vec![Container::new("main")],
            current: 0,
            labels: Map::new(),
            annotations: Map::new(),
            node: "node-a".to_owned(),
            state: State::Running,
            changes: Vec::new(),
        }
    }

    /// A running worker of a Dynamo graph deployment called `graph`, with the labels that the operator writes. Its role is the
    /// name up to the last `-NUMBER`: `decode-0` is a decode worker.
    pub fn worker(name: &str) -> Self {
        let component = match name.rsplit_once('-') {
            Some((head, tail)) if tail.bytes().all(|b| b.is_ascii_digit()) => head,
            _ => name,
        };
        let role = match component {
            "prefill" | "decode" | "frontend" | "planner" | "epp" => component,
            c if c.contains("prefill") => "prefill",
            c if c.contains("decode") => "decode",
            _ => "worker",
        };
        Self::plain(name)
            .label("nvidia.com/dynamo-component", component)
            .label("nvidia.com/dynamo-component-type", role)
            .graph("graph")
    }

    /// The Dynamo graph deployment that the pod belongs to.
    #[must_use]
    pub fn graph(self, graph: &str) -> Self {
        let component = match self.labels.get("nvidia.com/dynamo-component") {
            Some(Value::String(component)) => component.to_lowercase(),
            _ => "worker".to_owned(),
        };
        let namespace = format!("{graph}-{component}");
        self.label("nvidia.com/dynamo-graph-deployment-name", graph)
            .label("nvidia.com/dynamo-namespace", &namespace)
            .label("nvidia.com/selector", &namespace)
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.into());
        self
    }

    /// Takes a label away.
    #[must_use]
    pub fn without_label(mut self, key: &str) -> Self {
        self.labels.remove(key);
        self
    }

    /// Sets an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.into());
        self
    }

    /// Another namespace than the cluster's last one.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// The node that it runs on; `node-a` otherwise.
    #[must_use]
    pub fn node(mut self, node: &str) -> Self {
        node.clone_into(&mut self.node);
        self
    }

    /// What state it is in; running otherwise.
    #[must_use]
    pub fn state(mut self, state: State) -> Self {
        self.state = state;
        self
    }

    /// Sets any field of the finished object, by JSON pointer; missing objects on the way are made.
    #[must_use]
    pub fn set(mut self, pointer: &str, value: Value) -> Self {
        self.changes.push((pointer.to_owned(), value));
        self
    }

    /// Turns to this container, and adds it where it is not there yet.
    #[must_use]
    pub fn container(mut self, name: &str) -> Self {
        let found = self.containers.iter().position(|c| c.name == name);
        self.current = found.unwrap_or_else(|| {
            self.containers.push(Container::new(name));
            self.containers.len() - 1
        });
        self
    }

    fn here(mut self, change: impl FnOnce(&mut Container)) -> Self {
        if let Some(container) = self.containers.get_mut(self.current) {
            change(container);
        }
        self
    }

    /// A variable of the container: in its spec, and for commands that run in it.
    #[must_use]
    pub fn env(self, name: &str, value: &str) -> Self {
        let entry = json!({ "name": name, "value": value });
        self.environment(name, value).here(|c| {
            let list = c.spec.entry("env").or_insert_with(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(entry);
            }
        })
    }

    /// A variable for commands that run in the container, which its spec does not show: from the image, for one.
    #[must_use]
    pub fn environment(self, name: &str, value: &str) -> Self {
        self.here(|c| c.environment.push((name.to_owned(), value.to_owned())))
    }

    /// A request and limit, e.g. `rdma/ib`, `1`.
    #[must_use]
    pub fn resource(self, name: &str, amount: &str) -> Self {
        self.here(|c| {
            let resources = c.spec.entry("resources").or_insert_with(|| json!({}));
            for kind in ["limits", "requests"] {
                if let Some(map) = resources.as_object_mut() {
                    let amounts = map.entry(kind).or_insert_with(|| json!({}));
                    if let Some(amounts) = amounts.as_object_mut() {
                        amounts.insert(name.to_owned(), amount.into());
                    }
                }
            }
        })
    }

    /// Any field of the container's spec: `command`, `args`, `image`, `securityContext`.
    #[must_use]
    pub fn spec(self, field: &str, value: Value) -> Self {
        self.here(|c| {
            c.spec.insert(field.to_owned(), value);
        })
    }

    /// How commands behave.
    #[must_use]
    pub fn behaviour(self, behaviour: Behaviour) -> Self {
        self.here(|c| c.behaviour = behaviour)
    }

    /// Commands run over a prepared file tree: [`Behaviour::Tree`].
    #[must_use]
    pub fn tree(self, root: impl AsRef<Path>) -> Self {
        self.behaviour(Behaviour::Tree(root.as_ref().to_owned()))
    }

    /// Commands print this after that time: [`Behaviour::Recorded`].
    #[must_use]
    pub fn recorded(self, stdout: impl Into<Bytes>, delay: Duration) -> Self {
        self.behaviour(Behaviour::Recorded(Recorded {
            stdout: stdout.into(),
            delay,
            ..Recorded::default()
        }))
    }

    /// A command one of whose words contains this text comes back with what is recorded, whatever else the container does.
    #[must_use]
    pub fn answers(self, word: &str, recorded: Recorded) -> Self {
        self.here(|c| c.answers.push((word.to_owned(), recorded)))
    }

    /// There is no shell, nor anything else: [`Behaviour::Missing`].
    #[must_use]
    pub fn no_shell(self) -> Self {
        self.behaviour(Behaviour::Missing)
    }

    /// What becomes of commands whose client has gone away.
    #[must_use]
    pub fn after_loss(self, after_loss: AfterLoss) -> Self {
        self.here(|c| c.after_loss = after_loss)
    }

    /// The container's log.
    #[must_use]
    pub fn log(self, text: impl Into<Bytes>) -> Self {
        self.here(|c| c.log = text.into())
    }

    /// The object, as the API server gives it.
    pub fn object(&self, namespace: &str) -> Value {
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        let containers: Vec<&Map<String, Value>> =
            self.containers.iter().map(|c| &c.spec).collect();
        let names: Vec<&str> = self.containers.iter().map(|c| c.name.as_str()).collect();
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "namespace": namespace,
                "uid": crate::ids::uid(&format!("{namespace}/{}", self.name)),
                "creationTimestamp": CREATED,
                "labels": self.labels,
            },
            "spec": {
                "containers": containers,
                "restartPolicy": "Always",
                "serviceAccountName": "default",
                "nodeName": self.node,
            },
        });
        if !self.annotations.is_empty() {
            put(
                &mut object,
                "/metadata/annotations",
                self.annotations.clone().into(),
            );
        }
        states::apply(self.state, &mut object, &names);
        for (pointer, value) in &self.changes {
            put(&mut object, pointer, value.clone());
        }
        object
    }
}

/// Sets a value by JSON pointer; makes objects on the way.
pub(crate) fn put(object: &mut Value, pointer: &str, value: Value) {
    let mut at = object;
    let unescaped = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let parts: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
    for part in &parts {
        if let Value::Array(list) = at {
            match part.parse::<usize>().ok().and_then(|n| list.get_mut(n)) {
                Some(next) => at = next,
                None => return,
            }
            continue;
        }
        if !at.is_object() {
            *at = json!({});
        }
        let Value::Object(map) = at else { return };
        at = map.entry(part.clone()).or_insert(Value::Null);
    }
    *at = value;
}
