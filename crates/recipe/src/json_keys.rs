//! Keys of vLLM's KV transfer configuration, found in JSON text wherever it is written.

use std::ops::Range;

use model::Place;

use crate::place::{Around, Text};

/// The keys that decide the KV path. Values of other keys are never kept.
pub(crate) const KEYS: [&str; 6] = [
    "mooncake_protocol",
    "kv_connector",
    "kv_role",
    "kv_buffer_device",
    "backends",
    "ucx_devices",
];

/// Stands for the place of a key that is one slip away from a known one.
pub(crate) const MISSPELT: &str = "(misspelt)";

/// Places of the known keys, each with its value, in the source between `span`.
pub(crate) fn places(text: &Text<'_>, span: &Range<u32>) -> Vec<(&'static str, Place)> {
    let source = text
        .source
        .get(span.start as usize..span.end as usize)
        .unwrap_or_default();
    if !["kv_", "ucx_devices", "mooncake_"]
        .iter()
        .any(|w| source.contains(w))
    {
        return Vec::new();
    }
    let mut found = Vec::new();
    for key in KEYS {
        for (at, _) in source.match_indices(key) {
            // The whole key: a quote, or an escaped one, on both sides.
            let before = source.get(..at).and_then(|s| s.chars().next_back());
            let after = source.get(at + key.len()..).unwrap_or_default();
            if before != Some('"') || !after.trim_start_matches('\\').starts_with('"') {
                continue;
            }
            let Some(colon) = after.find(':') else {
                continue;
            };
            let value = after.get(colon + 1..).unwrap_or_default();
            let skipped = value.len() - value.trim_start().len();
            let value = value.trim_start();
            let len = length(value);
            // One line is marked; a value on the next line is left out.
            let mut end = at + key.len() + colon + 1 + skipped + len;
            if let Some(newline) = source.get(at..end).and_then(|s| s.find('\n')) {
                end = at + newline;
            }
            let start = span.start + u32::try_from(at).unwrap_or(0);
            let end = span.start + u32::try_from(end).unwrap_or(0);
            let range = start.saturating_sub(1)..end;
            found.push((
                key,
                text.place(&range, std::slice::from_ref(&range), Around::Inside),
            ));
        }
    }
    for (at, _) in source.match_indices("\"kv") {
        let key = source.get(at + 1..).unwrap_or_default();
        let len = key
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(key.len());
        let name = key.get(..len).unwrap_or_default();
        let behind = key.get(len..).unwrap_or_default();
        let is_key = behind
            .trim_start_matches('\\')
            .strip_prefix('"')
            .is_some_and(|b| b.trim_start().starts_with(':'));
        if is_key && settings::known_names::did_you_mean(name).is_some() {
            let start = span.start + u32::try_from(at + 1).unwrap_or(0);
            let range = start..start + u32::try_from(len).unwrap_or(0);
            found.push((
                MISSPELT,
                text.place(&range, std::slice::from_ref(&range), Around::Inside),
            ));
        }
    }
    found
}

/// The place of a whole value. Of its text only the words that such a value is made of are shown, with what stands
/// around them: enough to see a brace or a quote that is missing, and nothing that could be a secret.
pub(crate) fn outline(text: &Text<'_>, span: &Range<u32>, around: Around) -> Place {
    let source = text
        .source
        .get(span.start as usize..span.end as usize)
        .unwrap_or_default();
    // A value on many lines is shown by its first.
    let source = source.split('\n').next().unwrap_or_default();
    let mut shown: Vec<Range<u32>> = Vec::new();
    let mut at = 0_usize;
    while let Some(first) = source.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = source.get(at..).unwrap_or_default();
        let is_word =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '=');
        let (len, known) = if is_word(first) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            (len, is_known(rest.get(..len).unwrap_or_default()))
        } else {
            (
                first.len_utf8(),
                matches!(
                    first,
                    '{' | '}' | '[' | ']' | '"' | '\'' | ':' | ',' | ' ' | '\\'
                ),
            )
        };
        let offset = |n: usize| span.start.saturating_add(u32::try_from(n).unwrap_or(0));
        if known {
            match shown.last_mut() {
                Some(last) if last.end == offset(at) => last.end = offset(at + len),
                _ => shown.push(offset(at)..offset(at + len)),
            }
        }
        at += len;
    }
    match shown.first().filter(|f| f.start == span.start) {
        Some(first) => text.place(&first.clone(), &shown, around),
        None => text.place(span, &[], around),
    }
}

fn is_known(word: &str) -> bool {
    KEYS.contains(&word)
        || matches!(
            word,
            "kv_both"
                | "kv_producer"
                | "kv_consumer"
                | "kv_connector_extra_config"
                | "connectors"
                | "true"
                | "false"
        )
        || settings::connectors::lookup(word).is_some()
}

/// Length of a string, of a list of strings, or of a word; nothing of an object, which can hold anything.
fn length(value: &str) -> usize {
    let stop = if value.starts_with('[') {
        "]\n{:"
    } else {
        ",}\n{[:"
    };
    let len = value.find(|c| stop.contains(c)).unwrap_or(value.len());
    match value.get(len..).and_then(|rest| rest.chars().next()) {
        Some('{' | '[' | ':') => 0,
        Some(']') => len + 1,
        _ => len,
    }
}
