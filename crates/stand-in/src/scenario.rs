//! A scenario in a directory, for use by hand and by shell scripts.
//!
//! `scenario.json` says what there is; paths in it are relative to the directory. Every key is optional except names:
//!
//! ```json
//! {
//!   "namespace": "serving", "tls": true, "dynamo": true, "minor": 32, "only_v4": false,
//!   "deny": [["create", "pods/exec"]],
//!   "pods": [
//!     { "name": "decode-0", "node": "node-a", "state": "Running", "labels": { "tier": "a" }, "plain": false,
//!       "set": { "/spec/hostNetwork": true },
//!       "containers": [
//!         { "name": "main", "tree": "trees/decode", "env": { "UCX_TLS": "rc" }, "resources": { "rdma/ib": "1" },
//!           "log": "logs/decode.txt", "after_loss": "Block" },
//!         { "name": "sidecar", "recorded": "out.txt", "delay_ms": 100, "exit": 0 },
//!         { "name": "bare", "no_shell": true },
//!         { "name": "real", "process": ["nsenter", "--target", "12", "--all", "--"] } ] } ],
//!   "faults": [
//!     { "verb": "list", "resource": "pods", "first": 1, "status": 429, "retry_after": 1 },
//!     { "resource": "pods/exec", "name": "decode-0", "container": "main", "after": 1, "reset_after": 4096 } ]
//! }
//! ```
//!
//! What a fault does is one of `status`, `slow_ms`, `hang`, `reset_after`, `half_close_after`, `stall_after`, `flood`,
//! `no_status`, `exec_error`. All files `objects/*.json` are objects, or lists of them.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::behaviour::{AfterLoss, Behaviour, Recorded};
use crate::certs::{Certificate, wrong};
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::pod::Pod;
use crate::rights::Rights;
use crate::states::State;

/// An object of the file, whose keys must all be known.
struct Part<'a>(&'a Map<String, Value>);

impl<'a> Part<'a> {
    fn new(value: &'a Value, keys: &[&str]) -> io::Result<Self> {
        let map = value
            .as_object()
            .ok_or_else(|| wrong(format!("not an object: {value}")))?;
        match map.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(unknown) => Err(wrong(format!(
                "unknown key `{unknown}`; known are {}",
                keys.join(", ")
            ))),
            None => Ok(Self(map)),
        }
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key).and_then(Value::as_u64)
    }

    fn flag(&self, key: &str) -> bool {
        self.0.get(key) == Some(&Value::Bool(true))
    }

    fn list(&self, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.0
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    }

    fn pairs(&self, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> + use<'a> {
        let map = self.0.get(key).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value))
    }
}

/// Reads the directory.
pub(crate) fn read(directory: &Path) -> io::Result<Cluster> {
    let file: Value = json_file(&directory.join("scenario.json"))?;
    let keys = [
        "namespace",
        "tls",
        "dynamo",
        "minor",
        "only_v4",
        "deny",
        "pods",
        "faults",
    ];
    let part = Part::new(&file, &keys)?;
    let mut cluster = Cluster::new();
    if let Some(namespace) = part.text("namespace") {
        cluster = cluster.namespace(namespace);
    }
    if part.flag("tls") {
        cluster = cluster.tls(Certificate::Good);
    }
    if part.flag("dynamo") {
        cluster = cluster.serves_dynamo();
    }
    if part.flag("only_v4") {
        cluster = cluster.only_v4();
    }
    if let Some(minor) = part.number("minor") {
        cluster = cluster.minor(u32::try_from(minor).map_err(wrong)?);
    }
    let mut rights = Rights::all();
    for pair in part.list("deny") {
        let word = |at: usize| pair.get(at).and_then(Value::as_str);
        let (Some(verbs), Some(resources)) = (word(0), word(1)) else {
            return Err(wrong(format!(
                "deny: not a pair of verbs and resources: {pair}"
            )));
        };
        rights = rights.deny(verbs, resources);
    }
    cluster = cluster.rights(rights);
    for value in part.list("pods") {
        cluster = cluster.pod(pod(directory, value)?);
    }
    for value in part.list("faults") {
        cluster = cluster.fault(fault(value)?);
    }
    if let Ok(entries) = fs::read_dir(directory.join("objects")) {
        let mut paths: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths
            .iter()
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
        {
            let value = json_file(path)?;
            cluster = match value.get("items").and_then(Value::as_array) {
                Some(items) => items.iter().cloned().fold(cluster, Cluster::object),
                None => cluster.object(value),
            };
        }
    }
    Ok(cluster)
}

fn json_file(path: &Path) -> io::Result<Value> {
    let text = bytes_of(path)?;
    serde_json::from_slice(&text).map_err(|error| wrong(format!("{}: {error}", path.display())))
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| wrong(format!("{}: {error}", path.display())))
}

fn pod(directory: &Path, value: &Value) -> io::Result<Pod> {
    let keys = [
        "name",
        "plain",
        "namespace",
        "node",
        "graph",
        "state",
        "labels",
        "annotations",
        "set",
        "containers",
    ];
    let part = Part::new(value, &keys)?;
    let name = part
        .text("name")
        .ok_or_else(|| wrong("a pod without a name"))?;
    let mut pod = if part.flag("plain") {
        Pod::plain(name)
    } else {
        Pod::worker(name)
    };
    if let Some(namespace) = part.text("namespace") {
        pod = pod.namespace(namespace);
    }
    if let Some(node) = part.text("node") {
        pod = pod.node(node);
    }
    if let Some(graph) = part.text("graph") {
        pod = pod.graph(graph);
    }
    if let Some(state) = part.text("state") {
        pod =
            pod.state(State::named(state).ok_or_else(|| wrong(format!("no such state: {state}")))?);
    }
    for (key, value) in part.pairs("labels") {
        pod = pod.label(key, value.as_str().unwrap_or_default());
    }
    for (key, value) in part.pairs("annotations") {
        pod = pod.annotation(key, value.as_str().unwrap_or_default());
    }
    for (pointer, value) in part.pairs("set") {
        pod = pod.set(pointer, value.clone());
    }
    for value in part.list("containers") {
        pod = container(directory, pod, value)?;
    }
    Ok(pod)
}

fn container(directory: &Path, pod: Pod, value: &Value) -> io::Result<Pod> {
    let keys = [
        "name",
        "tree",
        "recorded",
        "delay_ms",
        "exit",
        "no_shell",
        "process",
        "env",
        "environment",
        "resources",
        "log",
        "after_loss",
    ];
    let part = Part::new(value, &keys)?;
    let mut pod = pod.container(part.text("name").unwrap_or("main"));
    if let Some(tree) = part.text("tree") {
        pod = pod.tree(fs::canonicalize(directory.join(tree))?);
    }
    if let Some(file) = part.text("recorded") {
        pod = pod.behaviour(Behaviour::Recorded(Recorded {
            stdout: bytes_of(&directory.join(file))?.into(),
            exit: i32::try_from(part.number("exit").unwrap_or(0)).map_err(wrong)?,
            delay: Duration::from_millis(part.number("delay_ms").unwrap_or(0)),
            ..Recorded::default()
        }));
    }
    if part.flag("no_shell") {
        pod = pod.no_shell();
    }
    let words: Vec<String> = part
        .list("process")
        .filter_map(|w| w.as_str().map(str::to_owned))
        .collect();
    if !words.is_empty() {
        pod = pod.behaviour(Behaviour::Process(words));
    }
    for (name, value) in part.pairs("env") {
        pod = pod.env(name, value.as_str().unwrap_or_default());
    }
    for (name, value) in part.pairs("environment") {
        pod = pod.environment(name, value.as_str().unwrap_or_default());
    }
    for (name, value) in part.pairs("resources") {
        pod = pod.resource(name, value.as_str().unwrap_or_default());
    }
    if let Some(file) = part.text("log") {
        pod = pod.log(bytes_of(&directory.join(file))?);
    }
    match part.text("after_loss") {
        None => Ok(pod),
        Some("Drain") => Ok(pod.after_loss(AfterLoss::Drain)),
        Some("Block") => Ok(pod.after_loss(AfterLoss::Block)),
        Some("Close") => Ok(pod.after_loss(AfterLoss::Close)),
        Some(other) => Err(wrong(format!(
            "after_loss: {other} is none of Drain, Block, Close"
        ))),
    }
}

fn fault(value: &Value) -> io::Result<Fault> {
    let keys = [
        "verb",
        "resource",
        "namespace",
        "name",
        "container",
        "first",
        "after",
        "status",
        "retry_after",
        "slow_ms",
        "hang",
        "reset_after",
        "half_close_after",
        "stall_after",
        "flood",
        "no_status",
        "exec_error",
    ];
    let part = Part::new(value, &keys)?;
    let mut fault = Fault::on(
        part.text("verb").unwrap_or("*"),
        part.text("resource").unwrap_or("*"),
    );
    if let Some(namespace) = part.text("namespace") {
        fault = fault.namespace(namespace);
    }
    if let Some(name) = part.text("name") {
        fault = fault.name(name);
    }
    if let Some(container) = part.text("container") {
        fault = fault.container(container);
    }
    if let Some(times) = part.number("first") {
        fault = fault.first(times);
    }
    if let Some(skip) = part.number("after") {
        fault = fault.after(skip);
    }
    let number = |key| part.number(key);
    let done = if let Some(code) = number("status") {
        let code = u16::try_from(code).map_err(wrong)?;
        match number("retry_after") {
            Some(seconds) => fault.status_retry_after(code, seconds),
            None => fault.status(code),
        }
    } else if let Some(time) = number("slow_ms") {
        fault.slow(Duration::from_millis(time))
    } else if let Some(bytes) = number("reset_after") {
        fault.reset_after(bytes)
    } else if let Some(bytes) = number("half_close_after") {
        fault.half_close_after(bytes)
    } else if let Some(bytes) = number("stall_after") {
        fault.stall_after(bytes)
    } else if let Some(message) = part.text("exec_error") {
        fault.exec_error(message)
    } else if part.flag("hang") {
        fault.hang()
    } else if part.flag("flood") {
        fault.flood()
    } else if part.flag("no_status") {
        fault.no_status()
    } else {
        return Err(wrong(format!("a fault that does nothing: {value}")));
    };
    Ok(done)
}
