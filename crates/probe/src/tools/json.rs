//! JSON within a text: lines are collected until the brackets are closed.

use serde_json::Value;

/// More than this is not kept.
const MAX_JSON: usize = 8 * 1024 * 1024;

/// Collects the lines of one JSON value.
#[derive(Default)]
pub(crate) struct Collector {
    text: String,
    depth: i64,
    in_string: bool,
    escaped: bool,
    done: bool,
    too_large: bool,
}

impl Collector {
    /// Takes a line, until the value is complete.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        if self.done {
            return false;
        }
        if self.text.is_empty() && !line.trim_start().starts_with(['[', '{', '"']) {
            return false;
        }
        for c in line.chars() {
            if self.in_string {
                match c {
                    _ if self.escaped => self.escaped = false,
                    '\\' => self.escaped = true,
                    '"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match c {
                '"' => self.in_string = true,
                '[' | '{' => self.depth = self.depth.saturating_add(1),
                ']' | '}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        if self.text.len().saturating_add(line.len()) > MAX_JSON {
            self.too_large = true;
        } else {
            self.text.push_str(line);
            self.text.push('\n');
        }
        // A fragment without its outer braces goes on with a comma.
        if self.depth <= 0 && !self.in_string && !line.trim_end().ends_with(',') {
            self.done = true;
        }
        true
    }

    /// The value; `None` where there was no text. A fragment without its outer braces is put into braces.
    pub(crate) fn parse(&mut self) -> Result<Option<Value>, String> {
        let text = std::mem::take(&mut self.text);
        if text.trim().is_empty() {
            return Ok(None);
        }
        if self.too_large {
            return Err("the JSON is too large".to_owned());
        }
        serde_json::from_str(&text)
            .or_else(|error| {
                let inner = text.trim().trim_end_matches(',');
                serde_json::from_str(&format!("{{{inner}}}")).map_err(|_| error)
            })
            .map(Some)
            .map_err(|error| format!("the JSON is not complete: {error}"))
    }
}

/// The objects of an array, or the one object.
pub(crate) fn objects(value: &Value) -> impl Iterator<Item = &Value> {
    let (list, one) = match value {
        Value::Array(list) => (list.as_slice(), None),
        Value::Object(_) => (&[][..], Some(value)),
        _ => (&[][..], None),
    };
    list.iter().chain(one)
}

/// A text of an object.
pub(crate) fn string<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

/// A number of an object.
pub(crate) fn number(object: &Value, key: &str) -> Option<u32> {
    u32::try_from(object.get(key)?.as_u64()?).ok()
}
