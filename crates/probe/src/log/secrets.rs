//! What log lines hold beside facts: values of variables that are no transport's, keys and passwords. None of it is
//! kept.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// What stands for a value.
const BLANK: &str = "…";

/// Parts of names whose value nobody should see.
const NAMES: [&str; 9] = [
    "token",
    "secret",
    "passw",
    "api-key",
    "api_key",
    "apikey",
    "credential",
    "bearer",
    "authoriz",
];
/// How keys begin that need no name to be known.
const BEGINNINGS: [&str; 7] = ["hf_", "sk-", "ghp_", "gho_", "nvapi-", "AKIA", "eyJ"];

/// The text without values that are not of the catalogue of transports' variables, and without keys.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    static SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
        AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(NAMES.iter().chain(&BEGINNINGS).chain(&["=", "://"]))
            .ok()
    });
    if SIGNS.as_ref().is_some_and(|signs| !signs.is_match(text)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut hide = false;
    for part in text.split_inclusive(char::is_whitespace) {
        let word = part.trim_end();
        let space = part.get(word.len()..).unwrap_or_default();
        if word.is_empty() {
            out.push_str(part);
            continue;
        }
        let named = is_secret(word);
        if hide {
            out.push_str(BLANK);
            // `Authorization: Bearer KEY`
            hide = named && !word.contains('=');
        } else {
            hide = push(word, &mut out);
        }
        out.push_str(space);
    }
    Cow::Owned(out)
}

/// Adds a word; whether what follows it is the value of a secret.
fn push(word: &str, out: &mut String) -> bool {
    let bare = word.trim_start_matches(['"', '\'', '(', '[', '{', ',', '-']);
    if BEGINNINGS.iter().any(|b| bare.starts_with(b)) && bare.len() > 12 {
        out.push_str(BLANK);
        return false;
    }
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((_, host)) = rest.split_once('@')
    {
        out.push_str(scheme);
        out.push_str("://");
        out.push_str(BLANK);
        out.push('@');
        out.push_str(host);
        return false;
    }
    if let Some((name, value)) = word.split_once('=') {
        let bare = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
        out.push_str(name);
        out.push('=');
        if is_secret(name) || (is_variable(bare) && !settings::catalogue::is_allowed(bare)) {
            out.push_str(BLANK);
            // A value in quotes goes on.
            return value.starts_with(['"', '\''])
                && !value.get(1..).unwrap_or_default().ends_with(['"', '\'']);
        }
        out.push_str(value);
        return false;
    }
    if let Some((name, value)) = word.split_once(':')
        && !value.is_empty()
        && is_secret(name)
    {
        out.push_str(name);
        out.push(':');
        out.push_str(BLANK);
        return false;
    }
    out.push_str(word);
    // `--api-key VALUE`, `token: VALUE`, `Bearer VALUE`
    is_secret(word)
        && (word.starts_with('-') || word.ends_with(':') || word.eq_ignore_ascii_case("bearer"))
}

/// A name of something secret; `tokens` are counted and no secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| {
        name.match_indices(part).any(|(at, part)| {
            let end = at.saturating_add(part.len());
            !(*part == *"token" && name.get(end..).is_some_and(|r| r.starts_with('s')))
        })
    })
}

/// `HF_TOKEN`, as variables of the environment are named.
fn is_variable(name: &str) -> bool {
    name.len() >= 3
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn secrets_go_and_facts_stay() {
        for (text, kept) in [
            ("Connection refused", "Connection refused"),
            (
                "failed HF_TOKEN=hunter2 UCX_TLS=rc",
                "failed HF_TOKEN=… UCX_TLS=rc",
            ),
            ("x --api-key hunter2 y", "x --api-key … y"),
            ("x --api-key=hunter2 y", "x --api-key=… y"),
            ("Authorization: Bearer hunter2", "Authorization: … …"),
            ("token: hunter2", "token: …"),
            ("password='hunter2 hunter3' x", "password=… … x"),
            ("at https://user:hunter2@host/x", "at https://…@host/x"),
            ("key hf_hunter2hunter2", "key …"),
            ("length=151552, fd=25", "length=151552, fd=25"),
            ("Avg tokens=5", "Avg tokens=5"),
            ("https://host/x", "https://host/x"),
        ] {
            assert_eq!(without(text), kept);
        }
    }
}
