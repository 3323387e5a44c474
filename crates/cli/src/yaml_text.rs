//! Objects as YAML, to be printed.

use std::fmt::Write as _;

use serde_json::Value;

/// Block style; strings are quoted as JSON does, which YAML reads alike.
pub(crate) fn yaml(value: &Value, depth: usize, out: &mut String) {
    let pad = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = if key.bytes().all(|b| b.is_ascii_alphanumeric()) {
                    key.clone()
                } else {
                    Value::from(key.as_str()).to_string()
                };
                let _ = write!(out, "{pad}{key}:");
                nested(value, depth, out);
            }
        }
        Value::Array(list) => {
            for value in list {
                if value.as_object().is_some_and(|map| !map.is_empty()) {
                    // Its first key stands behind the dash, where the others stand below.
                    let mut inner = String::new();
                    yaml(value, depth.saturating_add(1), &mut inner);
                    let _ = write!(out, "{pad}- {}", inner.trim_start_matches(' '));
                } else {
                    let _ = write!(out, "{pad}-");
                    nested(value, depth, out);
                }
            }
        }
        plain => {
            let _ = writeln!(out, "{pad}{plain}");
        }
    }
}

fn nested(value: &Value, depth: usize, out: &mut String) {
    let empty = match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if let Some(text) = value.as_str().filter(|text| is_block(text)) {
        let body = text.strip_suffix('\n');
        out.push_str(if body.is_some() { " |\n" } else { " |-\n" });
        let pad = "  ".repeat(depth.saturating_add(1));
        for line in body.unwrap_or(text).split('\n') {
            if !line.is_empty() {
                out.push_str(&pad);
                out.push_str(line);
            }
            out.push('\n');
        }
    } else if empty {
        let _ = writeln!(out, " {value}");
    } else {
        out.push('\n');
        yaml(value, depth.saturating_add(1), out);
    }
}

/// Whether a text can stand line by line and is the same when it is read: a script is to be read by people.
fn is_block(text: &str) -> bool {
    let inside = text.strip_suffix('\n').unwrap_or(text);
    inside.contains('\n')
        && !inside.ends_with('\n')
        && !inside.starts_with([' ', '\t', '\n'])
        && text
            .chars()
            .all(|c| matches!(c, '\n' | '\t') || c.is_ascii() && !c.is_control())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a broken test should stop")]
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_the_same_when_they_are_read() {
        for text in [
            "one\ntwo\n",
            "one\n\n  two\n\tthree",
            " first\nsecond",
            "\none",
            "one\n\n",
            "a: b #c\n- d",
            "with\u{1}control\nline",
            "null",
            "",
        ] {
            let mut out = String::new();
            yaml(&json!({"list": [text], "own": text}), 0, &mut out);
            let stream = yaml::parse(&out, &yaml::Limits::default());
            let root = stream.documents.first().unwrap().root();
            let own = root.get("own").unwrap().as_str().unwrap();
            assert_eq!(own, text, "{out}");
            let first = root.get("list").unwrap().item(0).unwrap().as_str().unwrap();
            assert_eq!(first, text, "{out}");
        }
    }
}
