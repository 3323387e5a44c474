//! vLLM's KV transfer configuration: the keys that decide the path, out of JSON that is written anywhere.

use model::{Form, Located, Place, Setting, Value};

use crate::json_keys;

/// Wrappers hold the connectors that really move KV cache in `connectors`.
const MAX_NESTING: u32 = 4;

/// What the JSON of `--kv-transfer-config` says.
pub(crate) fn settings(
    json: &str,
    places: &[(&'static str, Place)],
    fallback: &Place,
    form: Form,
) -> Option<Vec<Setting>> {
    let value: serde_json::Value = serde_json::from_str(json.trim()).ok()?;
    let object = value.as_object()?;
    let mut out = Vec::new();
    read(object, places, fallback, form, &mut out, 0);
    Some(out)
}

/// What is wrong with text that should be a JSON object. Nothing of the text is repeated.
pub(crate) fn not_json(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text.trim()) {
        Ok(value) => match value {
            serde_json::Value::Array(_) => "a list",
            serde_json::Value::String(_) => "a string",
            _ => "a single value",
        }
        .to_owned(),
        Err(_) if text.trim().is_empty() => "nothing is there".to_owned(),
        Err(_) if !text.contains('{') => "it has no braces".to_owned(),
        Err(error) if error.is_eof() => "it ends before its last brace or quote".to_owned(),
        Err(_) if !text.contains('"') => {
            "its names and values have no double quotes, as after a shell has taken them".to_owned()
        }
        Err(error) => format!(
            "not JSON from line {}, column {} of the value on",
            error.line(),
            error.column()
        ),
    }
}

/// The side that a broken text still tells.
pub(crate) fn role_in_text(text: &str) -> Option<&'static str> {
    match (text.contains("kv_producer"), text.contains("kv_consumer")) {
        (true, false) => Some("kv_producer"),
        (false, true) => Some("kv_consumer"),
        _ => None,
    }
}

/// Keys that are one slip away from one that decides the path.
pub(crate) fn misspelt(
    json: &str,
    places: &[(&'static str, Place)],
    fallback: &Place,
) -> Vec<Located<String>> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json.trim()) else {
        return Vec::new();
    };
    let mut names = Vec::new();
    keys(&value, &mut names, 0);
    let mut places = places.iter().filter(|(k, _)| *k == json_keys::MISSPELT);
    names
        .into_iter()
        .map(|value| Located {
            value,
            place: places.next().map_or(fallback, |(_, p)| p).clone(),
        })
        .collect()
}

fn keys(value: &serde_json::Value, out: &mut Vec<String>, depth: u32) {
    if depth > 2 * MAX_NESTING {
        return;
    }
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                if key.starts_with("kv") && settings::known_names::did_you_mean(key).is_some() {
                    out.push(key.clone());
                }
                keys(value, out, depth + 1);
            }
        }
        serde_json::Value::Array(list) => {
            for value in list {
                keys(value, out, depth + 1);
            }
        }
        _ => {}
    }
}

fn read(
    object: &serde_json::Map<String, serde_json::Value>,
    places: &[(&'static str, Place)],
    fallback: &Place,
    form: Form,
    out: &mut Vec<Setting>,
    depth: u32,
) {
    let mut push = |name: &str, key: &str, value: String| {
        // The outermost key of a name is the one that counts first.
        let nth = out.iter().filter(|s: &&Setting| s.name == name).count();
        let place = places
            .iter()
            .filter(|(k, _)| *k == key)
            .nth(nth)
            .map_or(fallback, |(_, p)| p);
        out.push(Setting {
            name: name.to_owned(),
            value: Value::Literal(crate::credentials::masked(&value).into_owned()),
            form,
            place: place.clone(),
        });
    };
    for key in ["kv_connector", "kv_role", "kv_buffer_device"] {
        if let Some(text) = object.get(key).and_then(|v| v.as_str()) {
            push(key, key, text.to_owned());
        }
    }
    let module = object.contains_key("kv_connector_module_path");
    let extra = object
        .get("kv_connector_extra_config")
        .and_then(|v| v.as_object());
    if let Some(backends) = extra.and_then(|e| e.get("backends")) {
        let names: Vec<&str> = match backends {
            serde_json::Value::Array(list) => list.iter().filter_map(|v| v.as_str()).collect(),
            serde_json::Value::String(one) => vec![one.as_str()],
            _ => Vec::new(),
        };
        push(
            "kv_connector_extra_config.backends",
            "backends",
            names.join(","),
        );
    }
    if let Some(protocol) = extra
        .and_then(|e| e.get("mooncake_protocol"))
        .and_then(|v| v.as_str())
    {
        push(
            "kv_connector_extra_config.mooncake_protocol",
            "mooncake_protocol",
            protocol.to_owned(),
        );
    }
    if module {
        out.push(Setting {
            name: "kv_connector_module_path".to_owned(),
            value: Value::Dynamic("a module of its own".to_owned()),
            form,
            place: fallback.clone(),
        });
    }
    if depth >= MAX_NESTING {
        return;
    }
    if let Some(inner) = extra
        .and_then(|e| e.get("connectors"))
        .and_then(|v| v.as_array())
    {
        for connector in inner.iter().filter_map(|v| v.as_object()) {
            read(connector, places, fallback, form, out, depth + 1);
        }
    }
}
