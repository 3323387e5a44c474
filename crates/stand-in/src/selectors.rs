//! Label and field selectors, as the API server reads them.

use serde_json::Value;

/// One requirement on a label.
#[derive(Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Requirements that all have to hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(Vec<Requirement>);

impl Labels {
    /// `a=b,c!=d,e in (f,g),h,!i`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("unable to parse requirement: found '{text}'");
        let mut out = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            out.push(requirement(part).ok_or_else(wrong)?);
        }
        Ok(Self(out))
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| {
            object
                .pointer("/metadata/labels")
                .and_then(|labels| labels.get(key))
                .and_then(Value::as_str)
        };
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|v| v == value))
            }
            // An object without the label passes: labels.Requirement.Matches.
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|v| v != value))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        })
    }
}

fn requirement(part: &str) -> Option<Requirement> {
    if let Some(key) = part.strip_prefix('!') {
        return Some(Requirement::Absent(name(key)?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(Requirement::NotIn(
            name(key)?,
            vec![value.trim().to_owned()],
        ));
    }
    if let Some((key, value)) = part.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Some(Requirement::In(name(key)?, vec![value.trim().to_owned()]));
    }
    if let Some((head, rest)) = part.split_once('(') {
        let values = rest
            .trim_end()
            .strip_suffix(')')?
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        return match operator {
            "in" => Some(Requirement::In(name(key)?, values)),
            "notin" => Some(Requirement::NotIn(name(key)?, values)),
            _ => None,
        };
    }
    Some(Requirement::Exists(name(part)?))
}

fn name(text: &str) -> Option<String> {
    let text = text.trim();
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    (!text.is_empty() && text.chars().all(good)).then(|| text.to_owned())
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
    .collect()
}

/// Requirements on the few fields that can be selected by.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(Vec<(&'static str, String, bool)>);

impl Fields {
    /// `metadata.name=a,spec.nodeName!=b`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut out = Vec::new();
        for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value, same) = match part.split_once("!=") {
                Some((key, value)) => (key, value, false),
                None => match part.split_once('=') {
                    Some((key, value)) => (key, value.strip_prefix('=').unwrap_or(value), true),
                    None => return Err(format!("invalid field selector: '{part}'")),
                },
            };
            let pointer = match key {
                "metadata.name" => "/metadata/name",
                "metadata.namespace" => "/metadata/namespace",
                "spec.nodeName" => "/spec/nodeName",
                "status.phase" => "/status/phase",
                "involvedObject.name" => "/involvedObject/name",
                "involvedObject.uid" => "/involvedObject/uid",
                other => return Err(format!("field label not supported: {other}")),
            };
            out.push((pointer, value.to_owned(), same));
        }
        Ok(Self(out))
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(pointer, value, same)| {
            let is = object.pointer(pointer).and_then(Value::as_str);
            (is.unwrap_or_default() == value) == *same
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod() -> Value {
        json!({
            "metadata": { "name": "decode-0", "labels": { "app": "x", "role": "decode", "a.b/c": "1" } },
            "spec": { "nodeName": "n1" },
            "status": { "phase": "Running" },
        })
    }

    #[test]
    fn every_kind_of_label_requirement_holds_and_fails() {
        for (text, want) in [
            ("", true),
            ("app=x", true),
            ("app==x", true),
            ("app=y", false),
            ("app!=y", true),
            ("app!=x", false),
            ("other!=x", true),
            ("role in (prefill,decode)", true),
            ("role in (prefill, other)", false),
            ("role notin (prefill)", true),
            ("role notin (decode,prefill)", false),
            ("app", true),
            ("other", false),
            ("!other", true),
            ("!app", false),
            ("a.b/c=1,role in (decode),!other,app!=y", true),
            ("a.b/c=1,role in (prefill),!other", false),
        ] {
            assert_eq!(
                Labels::parse(text).map(|l| l.matches(&pod())),
                Ok(want),
                "{text}"
            );
        }
        for text in ["=x", "a b", "role on (x)", "role in (x", "!"] {
            assert!(Labels::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_that_can_be_selected_by() {
        for (text, want) in [
            ("metadata.name=decode-0", true),
            ("metadata.name!=decode-0", false),
            ("spec.nodeName=n1,status.phase=Running", true),
            ("spec.nodeName=n2", false),
            ("status.phase!=Pending", true),
        ] {
            assert_eq!(
                Fields::parse(text).map(|f| f.matches(&pod())),
                Ok(want),
                "{text}"
            );
        }
        assert!(Fields::parse("spec.hostNetwork=true").is_err());
        assert!(Fields::parse("nonsense").is_err());
    }
}
