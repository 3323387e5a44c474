//! Environment variables of a container, in every form that YAML allows.

use model::Form;
use yaml::{Kind, Node, Style};

use crate::draft::{EnvDraft, EnvFromDraft, EnvValue};
use crate::json_keys;
use crate::place::{Around, Text};

/// Reads an `env` list, or a mapping of names to values, in the given form.
pub(crate) fn read(text: &Text<'_>, env: Node<'_>, graph: bool, out: &mut Vec<EnvDraft>) {
    match env.kind() {
        Kind::Sequence => {
            for item in env.items() {
                if item.is_mapping() {
                    entry(text, env, item, graph, out);
                }
            }
        }
        Kind::Mapping => {
            for (key, value) in env.entries() {
                let Some(name) = key.text() else { continue };
                let show = crate::allow::is_shown(name);
                let form = if graph { Form::Graph } else { Form::EnvMap };
                if !show && settings::known_names::did_you_mean(name).is_some() {
                    let value = EnvValue::Literal(value.raw().into_owned());
                    out.push(draft(text, name, value, form, key, true));
                } else if value.is_mapping() {
                    // `X: {value: Y}` and `X: {valueFrom: …}` occur in chart values.
                    let (value, at) = value_of(value);
                    out.push(draft(text, name, value, form, at.unwrap_or(key), show));
                } else {
                    out.push(draft(
                        text,
                        name,
                        EnvValue::Literal(value.raw().into_owned()),
                        form,
                        value,
                        show,
                    ));
                }
            }
        }
        Kind::Scalar | Kind::Null => {}
    }
}

/// Reads one entry of an `env` list.
pub(crate) fn one(text: &Text<'_>, item: Node<'_>, out: &mut Vec<EnvDraft>) {
    if item.is_mapping() {
        entry(text, item, item, false, out);
    }
}

fn entry(text: &Text<'_>, list: Node<'_>, item: Node<'_>, graph: bool, out: &mut Vec<EnvDraft>) {
    let Some((_, name_node)) = item.entry("name") else {
        return;
    };
    let Some(name) = name_node.text() else { return };
    let show = crate::allow::is_shown(name);
    let form = if graph {
        Form::Graph
    } else if list.alias_span().is_some() || item.alias_span().is_some() {
        Form::EnvAlias
    } else if item.style() == Style::Flow {
        Form::EnvFlow
    } else {
        Form::EnvEntry
    };
    let (value, at) = value_of(item);
    let form = if at.is_some_and(|n| n.alias_span().is_some()) && !graph {
        Form::EnvAlias
    } else {
        form
    };
    let mut made = draft(text, name, value, form, at.unwrap_or(name_node), show);
    // A flow entry on one line reads better with its name.
    if let (Some(at), true) = (at, show) {
        let (name_span, value_span) = (name_node.span(), at.span());
        let between = text
            .source
            .get(name_span.end as usize..value_span.start as usize);
        if item.style() == Style::Flow
            && at.is_scalar()
            && between.is_some_and(|b| !b.contains('\n'))
        {
            made.place = text.place(&value_span, &[name_span, value_span.clone()], Around::Yaml);
        }
    }
    if !show && settings::known_names::did_you_mean(name).is_some() {
        // The name is what is wrong, not its value.
        made.place = text.node(name_node, true);
    }
    out.push(made);
}

/// The value of an entry and the node that says it.
fn value_of(item: Node<'_>) -> (EnvValue, Option<Node<'_>>) {
    if let Some(value) = item.get("value") {
        return match value.kind() {
            // Kubernetes takes a missing value for an empty one.
            Kind::Null => (EnvValue::Literal(String::new()), Some(value)),
            Kind::Scalar => (EnvValue::Literal(value.raw().into_owned()), Some(value)),
            Kind::Mapping | Kind::Sequence => {
                (EnvValue::Dynamic("the value is not a string".into()), None)
            }
        };
    }
    let Some(from) = item.get("valueFrom") else {
        return (EnvValue::Literal(String::new()), None);
    };
    if let Some(reference) = from.get("configMapKeyRef")
        && let (Some(map), Some(key)) = (
            reference.get("name").and_then(Node::text),
            reference.get("key").and_then(Node::text),
        )
    {
        return (
            EnvValue::ConfigMapKey {
                map: map.to_owned(),
                key: key.to_owned(),
            },
            reference.get("key"),
        );
    }
    if let Some(reference) = from.get("fieldRef").and_then(|r| r.get("fieldPath")) {
        return (
            EnvValue::Dynamic(format!("field {}", reference.raw())),
            Some(reference),
        );
    }
    if from.get("secretKeyRef").is_some() {
        return (EnvValue::Dynamic("a Secret".into()), None);
    }
    (EnvValue::Dynamic("valueFrom".into()), None)
}

fn draft(
    text: &Text<'_>,
    name: &str,
    value: EnvValue,
    form: Form,
    at: Node<'_>,
    show: bool,
) -> EnvDraft {
    let json = match &value {
        EnvValue::Literal(literal) if literal.contains('{') => json_keys::places(text, &at.span()),
        _ => Vec::new(),
    };
    EnvDraft {
        name: name.to_owned(),
        value,
        form,
        place: text.node(at, show),
        json,
    }
}

/// Reads `envFrom`.
pub(crate) fn read_from(container: Node<'_>, out: &mut Vec<EnvFromDraft>) {
    let Some(list) = container.get("envFrom") else {
        return;
    };
    for item in list.items() {
        let name = |key: &str| {
            item.get(key)
                .and_then(|r| r.get("name"))
                .and_then(Node::text)
                .map(str::to_owned)
        };
        let (config_map, secret) = (name("configMapRef"), name("secretRef"));
        if config_map.is_some() || secret.is_some() {
            out.push(EnvFromDraft {
                config_map,
                secret,
                prefix: item
                    .get("prefix")
                    .and_then(Node::text)
                    .unwrap_or_default()
                    .to_owned(),
            });
        }
    }
}
