//! Keys of vLLM's KV transfer configuration, found in JSON text wherever it is written.

use std::ops::Range;

use model::Place;

use crate::place::{Around, Text};

/// The keys that decide the KV path. Values of other keys are never kept.
pub(crate) const KEYS: [&str; 5] = [
    "kv_connector",
    "kv_role",
    "kv_buffer_device",
    "backends",
    "ucx_devices",
];

/// Places of the known keys, each with its value, in the source between `span`.
pub(crate) fn places(text: &Text<'_>, span: &Range<u32>) -> Vec<(&'static str, Place)> {
    let source = text
        .source
        .get(span.start as usize..span.end as usize)
        .unwrap_or_default();
    if !source.contains("kv_") && !source.contains("ucx_devices") {
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
    found
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
