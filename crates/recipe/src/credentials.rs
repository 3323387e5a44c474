//! Values that may hold a credential although their variable or flag is one of ours.

use std::borrow::Cow;

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

/// How the tokens begin that services give out, so that one that was put into the wrong variable is not told.
const TOKEN_STARTS: [&str; 15] = [
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "nvapi-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "eyJ",
];

/// A shorter word is a name, not a token.
const TOKEN_LENGTH: usize = 16;

/// Whether a text holds something that may not be told.
pub(crate) fn in_text(text: &str) -> bool {
    masked(text) != text
}

/// The text without what may be a credential: the user of an address, the value of `token=` and its like, and
/// words in the shape of a token.
pub fn masked(text: &str) -> Cow<'_, str> {
    // Most values have none of the characters.
    if !text.contains(['@', '=']) && text.len() < TOKEN_LENGTH {
        return Cow::Borrowed(text);
    }
    let text = without_user(text);
    let mut out = String::with_capacity(text.len());
    let mut secret = false;
    let mut rest = &*text;
    while !rest.is_empty() {
        // A word, or a single character between words.
        let end = match rest.char_indices().find(|(_, c)| !is_word(*c)) {
            Some((0, c)) => c.len_utf8(),
            Some((at, _)) => at,
            None => rest.len(),
        };
        let (this, after) = rest.split_at(end);
        let word = this.starts_with(is_word);
        if word && (secret || is_token(this)) {
            out.push('…');
        } else {
            out.push_str(this);
        }
        // `name=` makes a secret of the next word if the name says so.
        secret = if word {
            after.starts_with('=') && is_credential(this)
        } else {
            secret && this == "="
        };
        rest = after;
    }
    if out == text {
        return text;
    }
    Cow::Owned(out)
}

/// The same of what a program or a server says: its sentences have more ways to name a value (`password: x`, `"token":"x"`,
/// `Bearer x`) than settings, where a colon stands for other things.
pub fn masked_message(text: &str) -> String {
    let text = masked(text);
    let mut out = String::with_capacity(text.len());
    // The last word, and what stands between it and the next one.
    let (mut last, mut between) = ("", String::new());
    let mut rest = &*text;
    while !rest.is_empty() {
        let end = match rest.char_indices().find(|(_, c)| !is_word(*c)) {
            Some((0, c)) => c.len_utf8(),
            Some((at, _)) => at,
            None => rest.len(),
        };
        let (this, after) = rest.split_at(end);
        rest = after;
        if !this.starts_with(is_word) {
            between.push_str(this);
            out.push_str(this);
            continue;
        }
        let gap = between.trim_matches(['"', '\'', ' ', '\\']);
        let is_scheme =
            |word: &str| word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic");
        // `volume "certs" : timed out` names no value.
        let named = matches!(gap, ":" | "=" | ":=")
            && !between.contains(" :")
            && is_credential(last)
            && !is_scheme(this);
        // `a bearer token` is a sentence.
        let given = gap.is_empty()
            && is_scheme(last)
            && !matches!(
                this.to_ascii_lowercase().as_str(),
                "token" | "tokens" | "auth" | "authentication" | "credentials"
            );
        out.push_str(if named || given { "…" } else { this });
        last = this;
        between.clear();
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '…')
}

fn is_token(word: &str) -> bool {
    word.len() >= TOKEN_LENGTH
        && TOKEN_STARTS.iter().any(|start| {
            word.strip_prefix(start).is_some_and(|rest| {
                // A word of a sentence or a path has no digits and no capitals after such a start.
                rest.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
            })
        })
}

/// The text without the user, and perhaps a password, of an address: what stands between `://` and `@`, or, where
/// there is no scheme, before the `@` of a word with a `:` before it.
fn without_user(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    for part in text.split_inclusive([' ', '\n', '\t', '"', '\'']) {
        // The last one counts: a password can have an `@` itself.
        let mut rest = part;
        while let Some((before, after)) = rest.split_once("://") {
            out.push_str(before);
            out.push_str("://");
            let next = after.find("://").unwrap_or(after.len());
            rest = match after.get(..next).and_then(|host| host.rfind('@')) {
                Some(at) => {
                    out.push('…');
                    after.get(at..).unwrap_or_default()
                }
                None => after,
            };
        }
        let bare = rest.rsplit_once('@').filter(|(user, _)| user.contains(':'));
        match bare {
            Some((_, host)) if !part.contains("://") => {
                out.push('…');
                out.push('@');
                out.push_str(host);
            }
            _ => out.push_str(rest),
        }
    }
    if out == text {
        return Cow::Borrowed(text);
    }
    Cow::Owned(out)
}

/// The value of a flag or a key as it may be told. A value in braces is structured text, which can hold anything.
pub(crate) fn of_flag(text: &str) -> Value {
    if text.contains('{') {
        Value::Dynamic("structured text".into())
    } else {
        Value::Literal(masked(text).into_owned())
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
    use super::{in_text, is_credential, masked, masked_message, path};

    #[test]
    fn messages() {
        for (text, told) in [
            ("password: hunter2", "password: …"),
            (
                r#"{"token":"hunter2","user":"a"}"#,
                r#"{"token":"…","user":"a"}"#,
            ),
            ("Authorization: Bearer hunter2", "Authorization: Bearer …"),
            ("authorization: basic aHVudGVyMg", "authorization: basic …"),
            ("api_key = 'hunter2'", "api_key = '…'"),
            (
                r#"\"client-secret\": \"hunter2\""#,
                r#"\"client-secret\": \"…\""#,
            ),
            ("https://u:hunter2@h/v2 failed", "https://…@h/v2 failed"),
        ] {
            assert_eq!(masked_message(text), told);
        }
        for text in [
            r#"secret "hf-token" not found"#,
            "couldn't find key TOKEN in Secret serving/hf-token",
            "invalid bearer token",
            "Basic authentication is off",
            r#"pods "a" is forbidden: User "b" cannot create resource "pods/exec""#,
            r#"MountVolume.SetUp failed for volume "certs" : timed out"#,
            "0/4 nodes are available: 3 Insufficient rdma/ib.",
        ] {
            assert_eq!(masked_message(text), text);
        }
    }

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
    fn addresses() {
        for (text, told) in [
            ("http://u:p@h:1/x", "http://…@h:1/x"),
            ("a://u:p@q@h b://k@h", "a://…@h b://…@h"),
            ("redis://:p@r", "redis://…@r"),
            ("u:p@h:1", "…@h:1"),
            ("u:p@q@h", "…@h"),
            ("/x?token=abc&y=1", "/x?token=…&y=1"),
            ("API_KEY=abc tcp", "API_KEY=… tcp"),
        ] {
            assert_eq!(masked(text), told);
            assert!(in_text(text), "{text}");
        }
    }

    #[test]
    fn tokens() {
        for token in [
            "sk-Abc0123456789def",
            "ghp_abcdefghij0123456789",
            "AKIAABCDEFGH01234567",
            "hf_abcdefghijklm012345",
        ] {
            assert_eq!(masked(token), "…");
            assert_eq!(masked(&format!("tcp,{token}")), "tcp,…");
        }
    }

    #[test]
    fn settings_stay() {
        for text in [
            "http://h/x",
            "user@host",
            "rc,cuda_copy,cuda_ipc",
            "mlx5_0:1,mlx5_1:1",
            "=mlx5_0:1,mlx5_1:1,^mlx5_2",
            "dc_mlx5,sm,self:^tcp",
            "/opt/sk-scripts/run-all-the-things.sh",
            "UCX_TLS=rc,cuda_copy",
            "put=64K,get=inf",
            "hf_transfer_is_enabled",
            "",
            "@",
        ] {
            assert_eq!(masked(text), text);
            assert!(!in_text(text), "{text}");
        }
    }

    #[test]
    fn paths() {
        assert_eq!(path("/opt/run-1.sh", "a program"), "/opt/run-1.sh");
        for text in ["$(fetch x)", "http://u:p@h/x", "a b", ""] {
            assert_eq!(path(text, "a program"), "a program");
        }
    }
}
