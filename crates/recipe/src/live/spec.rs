//! Workers out of a pod's spec, by the reader of recipes.
//!
//! A live pod carries more than a recipe: its status, who manages which field, and the text that was applied last, which
//! repeats every value. Only the parts that lead to a setting are handed to the reader; it keeps what its lists allow. A
//! pod has no lines, so places name the pod and nothing else.

use std::fmt::Write as _;

use model::{Form, NamedBy, Role, Worker};
use serde_json::Value;

use super::{object, places};
use crate::{document, group};

/// Keys of a pod spec that lead to a setting, a resource or a place in the cluster.
const SPEC: [&str; 12] = [
    "containers",
    "initContainers",
    "volumes",
    "securityContext",
    "resourceClaims",
    "affinity",
    "nodeSelector",
    "dnsPolicy",
    "hostNetwork",
    "hostIPC",
    "hostPID",
    "nodeName",
];

/// The same of a container.
const CONTAINER: [&str; 9] = [
    "name",
    "image",
    "command",
    "args",
    "env",
    "envFrom",
    "resources",
    "securityContext",
    "volumeMounts",
];

/// Annotations that the reader knows.
const ANNOTATIONS: [&str; 9] = [
    "networking.gke.io/interfaces",
    "k8s.v1.cni.cncf.io/networks",
    "k8s.volcengine.com/pod-networks",
    "sidecar.istio.io/inject",
    "linkerd.io/inject",
    "traffic.sidecar.istio.io/excludeInboundPorts",
    "traffic.sidecar.istio.io/excludeOutboundPorts",
    "config.linkerd.io/skip-inbound-ports",
    "config.linkerd.io/skip-outbound-ports",
];

/// Labels are at most so long (kubernetes/apimachinery validation.LabelValueMaxLength).
const LABEL: usize = 63;

/// The containers of a pod that run, or may run, an engine, and all others. A text that is no pod has none.
#[must_use]
pub fn workers(json: &str) -> Vec<Worker> {
    let Ok(pod) = object::object(json, "Pod") else {
        return Vec::new();
    };
    let name = pod
        .get("metadata")
        .and_then(|m| m.get("name"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let file = format!("pod {name}");
    let mut text = String::new();
    write(&mut text, &reduced(&pod));
    let facts = group::assemble(vec![document::read(&file, &text)]);
    let mut found: Vec<Worker> = facts
        .deployments
        .into_iter()
        .flat_map(|d| d.workers)
        .collect();
    for worker in &mut found {
        places::each(worker, &|place| {
            place.line = 0;
            place.column = 0;
        });
        for setting in worker
            .settings
            .iter_mut()
            .chain(&mut worker.possible)
            .chain(&mut worker.overridden)
        {
            // The style is that of this module, not the pod's.
            if setting.form == Form::EnvFlow {
                setting.form = Form::EnvEntry;
            }
        }
        // Routers go by the label; that an engine was told nothing is for the checks to say.
        if matches!(worker.role, Role::Aggregated | Role::Unknown)
            && let Some(named) = worker.named.as_deref()
            && matches!(named.by, NamedBy::Selector | NamedBy::Field)
        {
            worker.role = named.role;
        }
    }
    found
}

/// The parts of a pod that the reader needs.
fn reduced(pod: &Value) -> Value {
    let nothing = Value::Null;
    let metadata = pod.get("metadata").unwrap_or(&nothing);
    let spec = pod.get("spec").unwrap_or(&nothing);
    let mut spec = only(spec, |key, _| SPEC.contains(&key));
    for list in ["containers", "initContainers"] {
        if let Some(Value::Array(containers)) = spec.get_mut(list) {
            for container in containers {
                *container = only(container, |key, _| CONTAINER.contains(&key));
            }
        }
    }
    let short = |value: &Value| value.as_str().is_some_and(|v| v.len() <= LABEL);
    let part = |key: &str, wanted: &dyn Fn(&str, &Value) -> bool| {
        only(metadata.get(key).unwrap_or(&nothing), wanted)
    };
    let mut out = serde_json::Map::new();
    let mut about = only(metadata, |key, _| matches!(key, "name" | "namespace"));
    if let Value::Object(about) = &mut about {
        about.insert("labels".into(), part("labels", &|_, value| short(value)));
        about.insert(
            "annotations".into(),
            part("annotations", &|key, _| {
                ANNOTATIONS.contains(&key) || key.starts_with("rdma.ome.io/")
            }),
        );
    }
    out.insert("kind".into(), "Pod".into());
    out.insert("metadata".into(), about);
    out.insert("spec".into(), spec);
    Value::Object(out)
}

/// Some entries of an object; anything else counts as an empty one.
fn only(value: &Value, wanted: impl Fn(&str, &Value) -> bool) -> Value {
    let map = value.as_object();
    Value::Object(
        map.into_iter()
            .flatten()
            .filter(|(key, value)| wanted(key, value))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    )
}

/// JSON that is YAML too: what the two treat differently is escaped, and every entry has a line of its own, since YAML
/// bounds how far a key may be from its colon.
pub(super) fn write(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => {
            let _infallible = write!(out, "{number}");
        }
        Value::String(text) => quoted(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ",\n" } else { "" });
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            // `{"name": "UCX_TLS", "value": "rc"}` reads best on one line.
            let flat = map.values().all(|v| !v.is_object() && !v.is_array());
            out.push('{');
            for (at, (key, value)) in map.iter().enumerate() {
                match (at > 0, flat) {
                    (false, _) => {}
                    (true, true) => out.push_str(", "),
                    (true, false) => out.push_str(",\n"),
                }
                quoted(out, key);
                out.push_str(": ");
                write(out, value);
            }
            out.push('}');
        }
    }
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            ' '..='~' => out.push(c),
            c if c.is_alphanumeric() => out.push(c),
            c => {
                let _infallible = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
}
