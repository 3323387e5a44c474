//! Values that may hold a credential although their variable or flag is one of ours.

use model::Value;

/// Words in the names of variables that hold credentials.
const WORDS: [&str; 9] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "CREDENTIAL",
    "APIKEY",
    "PRIVATE",
    "AUTH",
    "CERT",
];

/// Whether a variable's name says that its value is a credential.
pub(crate) fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    WORDS.iter().any(|word| name.contains(word))
        || name == "KEY"
        || name.ends_with("_KEY")
        || name.ends_with("_PASS")
        || name.ends_with("_PWD")
}

/// Whether a text has a URL with a user, and perhaps a password, in it.
pub(crate) fn in_url(text: &str) -> bool {
    text.split_once("://")
        .is_some_and(|(_, rest)| rest.contains('@'))
}

/// The text without what stands between `://` and `@`.
pub(crate) fn without_user(text: String) -> String {
    if !in_url(&text) {
        return text;
    }
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("://") {
        out.push_str(before);
        out.push_str("://");
        let next = after.find("://").unwrap_or(after.len());
        // The last one counts: a password can have an `@` itself.
        rest = match after.get(..next).and_then(|host| host.rfind('@')) {
            Some(at) => {
                out.push('…');
                after.get(at..).unwrap_or_default()
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}

/// The value of a flag or a key as it may be told. A value in braces is structured text, which can hold anything.
pub(crate) fn of_flag(text: String) -> Value {
    if text.contains('{') {
        Value::Dynamic("structured text".into())
    } else {
        Value::Literal(without_user(text))
    }
}

/// A path as it may be told; anything that is more than a path is only called `what`.
pub(crate) fn path<'p>(path: &'p str, what: &'p str) -> &'p str {
    let plain = !path.is_empty()
        && path
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '+'));
    if plain { path } else { what }
}

#[cfg(test)]
mod tests {
    use super::{in_url, is_credential, path, without_user};

    #[test]
    fn names() {
        for name in [
            "HF_TOKEN",
            "API_KEY",
            "KEY",
            "MY_PASSWORD",
            "DB_PASS",
            "aws_secret_access_key",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["DEVICES", "KV_CONFIG", "MODEL", "KEYBOARD", "ROLE"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn urls() {
        assert_eq!(without_user("http://u:p@h:1/x".into()), "http://…@h:1/x");
        assert_eq!(
            without_user("a://u:p@q@h b://k@h".into()),
            "a://…@h b://…@h"
        );
        assert_eq!(without_user("http://h/x".into()), "http://h/x");
        assert!(!in_url("user@host") && !in_url("http://h"));
    }

    #[test]
    fn paths() {
        assert_eq!(path("/opt/run-1.sh", "a program"), "/opt/run-1.sh");
        for text in ["$(fetch x)", "http://u:p@h/x", "a b", ""] {
            assert_eq!(path(text, "a program"), "a program");
        }
    }
}
