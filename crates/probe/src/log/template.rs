//! Words with gaps: `network device {names} is not available`.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// What the gaps hold, by name.
pub(super) type Fields = BTreeMap<Cow<'static, str>, String>;

/// Characters of one gap that are kept.
const MAX_FIELD: usize = 1024;

/// Matches a template anywhere in a text. `{name}` takes the text up to the next words, the last gap all of the
/// rest; `{#name}` takes digits only; `{}` takes and drops.
pub(super) fn matches(template: &'static str, text: &str) -> Option<Fields> {
    let mut fields = Fields::new();
    let mut rest = text;
    let mut pattern = template;
    let mut gap: Option<&'static str> = None;
    let mut first = true;
    loop {
        let end = pattern.find('{').unwrap_or(pattern.len());
        let (words, after) = pattern.split_at_checked(end)?;
        if !words.is_empty() {
            let at = rest.find(words)?;
            // Only the first words may stand anywhere; later ones follow a gap.
            if !first && gap.is_none() && at != 0 {
                return None;
            }
            if let Some(name) = gap.take() {
                put(&mut fields, name, rest.get(..at)?)?;
            }
            rest = rest.get(at.checked_add(words.len())?..)?;
        }
        first = false;
        if after.is_empty() {
            break;
        }
        let (name, next) = after.strip_prefix('{')?.split_once('}')?;
        gap = Some(name);
        pattern = next;
        if pattern.is_empty() {
            break;
        }
    }
    if let Some(name) = gap {
        if let Some(digits) = name.strip_prefix('#') {
            let end = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            put(&mut fields, name, rest.get(..end)?)?;
            if digits.is_empty() {
                return None;
            }
        } else {
            put(&mut fields, name, rest.trim_end())?;
        }
    }
    Some(fields)
}

fn put(fields: &mut Fields, name: &'static str, value: &str) -> Option<()> {
    let name = match name.strip_prefix('#') {
        Some(name) => {
            // Digits at the end: what stands before a number is part of no gap.
            if value.is_empty() || !value.chars().all(|c| c.is_ascii_digit()) {
                return None;
            }
            name
        }
        None => name,
    };
    if !name.is_empty() {
        // Bytes are never fewer than characters.
        let value = if value.len() <= MAX_FIELD {
            value.to_owned()
        } else {
            value.chars().take(MAX_FIELD).collect()
        };
        fields.insert(Cow::Borrowed(name), value);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(template: &'static str, text: &str) -> Option<Vec<(String, String)>> {
        matches(template, text).map(|fields| {
            fields
                .into_iter()
                .map(|(k, v)| (k.into_owned(), v))
                .collect()
        })
    }

    #[test]
    fn gaps_take_up_to_the_next_words() {
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(
            read("device {name} is {state}", "x device a b is down "),
            Some(vec![pair("name", "a b"), pair("state", "down")])
        );
        assert_eq!(
            read("({#n} to {#m})", "(1 to 6)"),
            Some(vec![pair("m", "6"), pair("n", "1")])
        );
        assert_eq!(read("({#n} to {#m})", "(x to 6)"), None);
        assert_eq!(
            read("Found {#n}", "Found 8 HCAs"),
            Some(vec![pair("n", "8")])
        );
        assert_eq!(read("plain words", "some plain words here"), Some(vec![]));
        assert_eq!(read("plain words", "some plain word"), None);
        assert_eq!(
            read("{#count} GPU(s) were", "2 GPU(s) were"),
            Some(vec![pair("count", "2")])
        );
        assert_eq!(read("é{x}", "é"), Some(vec![pair("x", "")]));
    }
}
