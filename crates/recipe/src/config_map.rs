//! ConfigMaps: values that variables refer to, and engine configuration files.

use std::sync::Arc;

use model::{Form, Place};
use yaml::{Kind, Limits, Node};

use crate::command;
use crate::draft::{ConfigDetails, ConfigEntry, ConfigMapDraft, FlagDraft};
use crate::engine;
use crate::json_keys;
use crate::place::{Around, InScalar, Text};
use crate::shapes;

/// A value longer than this is a script or a data file, not a variable.
const MAX_VALUE: usize = 16 * 1024;

/// Words without which a text is no engine configuration that decides a KV path.
const CONFIG_WORDS: [&str; 7] = [
    "cache_transceiver_config",
    "kv_cache_config",
    "disaggregation",
    "kv-transfer-config",
    "kv_transfer_config",
    "tensor_parallel_size",
    "tensor-parallel-size",
];

/// Reads a ConfigMap.
pub(crate) fn read(text: &Text<'_>, root: Node<'_>, name: &str) -> ConfigMapDraft {
    let mut entries = Vec::new();
    if let Some(data) = root.get("data") {
        for (key, value) in data.entries() {
            let (key_node, Some(key), Some(content)) = (key, key.text(), value.text()) else {
                continue;
            };
            let short = content.len() <= MAX_VALUE;
            entries.push(ConfigEntry {
                key: key.to_owned(),
                value: if short {
                    content.to_owned()
                } else {
                    String::new()
                },
                position: text.line_column(value.span().start),
                details: details(text, key_node, value, content, short).map(Box::new),
            });
        }
    }
    ConfigMapDraft {
        name: name.to_owned(),
        file: Arc::clone(&text.path),
        entries,
    }
}

fn details(
    text: &Text<'_>,
    key_node: Node<'_>,
    value: Node<'_>,
    content: &str,
    short: bool,
) -> Option<ConfigDetails> {
    let key = key_node.text().unwrap_or_default();
    let shown = crate::allow::is_shown(key);
    // A slip in the name of a variable is shown by its name.
    let misspelt = !shown && settings::known_names::did_you_mean(key).is_some();
    let config = config(text, value, content);
    let script = (config.is_none() && is_script(key, content))
        .then(|| command::read_script(text, value, content));
    let json = if short && content.contains('{') {
        json_keys::places(text, &value.span())
    } else {
        Vec::new()
    };
    if !shown && !misspelt && config.is_none() && script.is_none() && json.is_empty() {
        return None;
    }
    Some(ConfigDetails {
        place: if misspelt {
            text.node(key_node, true)
        } else {
            text.node(value, shown)
        },
        json,
        config,
        script,
    })
}

/// Whether an entry is a shell script that may start an engine or set variables.
fn is_script(key: &str, content: &str) -> bool {
    let named = command::is_script_name(key) || content.starts_with("#!");
    named
        && !content.starts_with("#!/usr/bin/env python")
        && !content.starts_with("#!/usr/bin/python")
}

/// What keeps an engine from reading an entry that it is given as its configuration. One whose keys are known was read.
pub(crate) fn unreadable(entry: &ConfigEntry, file: &Arc<str>) -> Option<FlagDraft> {
    let read = entry.details.as_ref().is_some_and(|d| d.config.is_some());
    // Braces are filled in by a template.
    if read || entry.value.contains("{{") {
        return None;
    }
    let stream = yaml::parse(&entry.value, &Limits::default());
    let why = match (stream.errors.first(), stream.documents.first()) {
        (Some(error), _) => format!("not valid YAML: {}", error.message),
        (None, Some(document)) if !document.root().is_mapping() && !document.root().is_null() => {
            format!("got {}, expected a mapping", shapes::got(document.root()))
        }
        _ => return None,
    };
    Some(fault(why, entry.place(file)))
}

/// Keys of an engine's configuration in a scalar's text; `None` where it is not one.
fn config(text: &Text<'_>, outer: Node<'_>, content: &str) -> Option<Vec<FlagDraft>> {
    if !CONFIG_WORDS.iter().any(|w| content.contains(w)) {
        return None;
    }
    let stream = yaml::parse(content, &Limits::default());
    let scalar = InScalar::new(text, outer);
    let inner = Text::inside(Arc::clone(&text.path), content, &scalar);
    if let Some(error) = stream.errors.first().filter(|_| !content.contains("{{")) {
        let place = inner.place(&(error.offset..error.offset), &[], Around::Yaml);
        let why = format!("not valid YAML: {}", error.message);
        return Some(vec![fault(why, place)]);
    }
    let document = stream.documents.first()?;
    let root = document.root();
    // A manifest in a ConfigMap is a template for another tool, not an engine's configuration.
    if root.kind() != Kind::Mapping || root.get("apiVersion").is_some() {
        return None;
    }
    let mut found = Vec::new();
    flags(&inner, root, Form::EngineConfig, &mut found);
    Some(found)
}

/// Known keys of a configuration mapping.
pub(crate) fn flags(text: &Text<'_>, root: Node<'_>, form: Form, out: &mut Vec<FlagDraft>) {
    let mut faults = Vec::new();
    let mut push = |name: String, node: Node<'_>, json: bool| {
        let mut value = String::new();
        if node.is_scalar() {
            value.push_str(&node.raw());
        } else {
            node_as_json(node, 0, &mut value);
        }
        out.push(FlagDraft {
            name,
            value: Some(value),
            expands: false,
            place: text.node(node, !json),
            json: if json {
                json_keys::places(text, &node.span())
            } else {
                Vec::new()
            },
            form,
        });
    };
    for (key, value) in root.entries() {
        let Some(name) = key.text() else { continue };
        // Null is what is not set.
        if SECTIONS.contains(&name) && !value.is_mapping() && !value.is_null() {
            if !value.raw_text().contains(['{', '$']) {
                let why = format!("{name}: got {}, expected a mapping", shapes::got(value));
                faults.push(fault(why, text.node(value, true)));
            }
            continue;
        }
        if name == "kv_cache_config" {
            for part in ["dtype", "tokens_per_block"] {
                if let Some(node) = value.get(part).filter(|d| d.is_scalar()) {
                    push(format!("kv_cache_config.{part}"), node, false);
                }
            }
            continue;
        }
        if name == "cache_transceiver_config" {
            for (key, value) in value.entries() {
                if let Some(key) = key.text().filter(|k| {
                    matches!(
                        *k,
                        "backend" | "max_tokens_in_buffer" | "kv_transfer_timeout_ms"
                    )
                }) {
                    push(format!("cache_transceiver_config.{key}"), value, false);
                }
            }
            continue;
        }
        if let Some((flag, _)) = engine::known_flag(&format!("--{name}")) {
            if engine::is_switch(flag) && engine::is_off(&value.raw()) {
                continue;
            }
            let json = flag == "--kv-transfer-config";
            let flag = if flag == "--model-path" {
                model::MODEL
            } else {
                flag
            };
            if value.is_scalar() || json {
                push(flag.to_owned(), value, json);
            }
        }
    }
    out.append(&mut faults);
}

/// Sections of TensorRT-LLM's configuration that are looked into.
const SECTIONS: [&str; 2] = ["cache_transceiver_config", "kv_cache_config"];

/// What makes a configuration one that the engine cannot read. The text is of our own making.
pub(crate) fn fault(why: String, place: Place) -> FlagDraft {
    FlagDraft {
        name: model::CONFIG_FAULT.to_owned(),
        value: Some(why),
        expands: false,
        place,
        json: Vec::new(),
        form: Form::EngineConfig,
    }
}

/// A small mapping as JSON, so that a structured value reads like the flag's.
fn node_as_json(node: Node<'_>, depth: u32, out: &mut String) {
    // Aliases of aliases multiply; what is longer than a setting is none.
    if depth > 8 || out.len() > MAX_VALUE {
        out.push_str("null");
        return;
    }
    match node.kind() {
        Kind::Mapping => {
            out.push('{');
            for (index, (key, value)) in node.entries().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::Value::from(key.raw().into_owned()).to_string());
                out.push(':');
                node_as_json(value, depth + 1, out);
            }
            out.push('}');
        }
        Kind::Sequence => {
            out.push('[');
            for (index, value) in node.items().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                node_as_json(value, depth + 1, out);
            }
            out.push(']');
        }
        Kind::Scalar => out.push_str(&serde_json::Value::from(node.raw().into_owned()).to_string()),
        Kind::Null => out.push_str("null"),
    }
}
