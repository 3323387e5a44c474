//! One line of a paste as the tool printed it: without escape codes, control characters and log prefixes.

use std::borrow::Cow;

/// Longer lines are clipped; no tool prints such.
const MAX_LINE: usize = 256 * 1024;

/// Characters that change how text is shown without being seen.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Only characters that a line of a log is made of; in blocks, so that the compiler can do many at once.
fn is_plain(text: &str) -> bool {
    text.as_bytes().chunks(64).all(|block| {
        block
            .iter()
            .fold(true, |plain, b| plain & matches!(b, b' '..=b'~' | b'\t'))
    })
}

/// Removes escape codes and control characters other than tab; a no-break space becomes a space.
pub(crate) fn visible(raw: &str) -> Cow<'_, str> {
    let raw = raw.trim_end_matches(['\n', '\r']);
    // Most lines are plain, and looking at bytes is many times faster than looking at characters.
    if raw.len() <= MAX_LINE && is_plain(raw) {
        return Cow::Borrowed(raw);
    }
    let raw = match raw.char_indices().nth(MAX_LINE) {
        Some((at, _)) => raw.get(..at).unwrap_or(raw),
        None => raw,
    };
    if !raw.chars().any(|c| {
        (c.is_control() && c != '\t') || is_invisible(c) || matches!(c, '\u{a0}' | '\u{fffd}')
    }) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                // Control sequence: up to a byte of 0x40..=0x7e.
                Some('[') => {
                    while let Some(&c) = chars.peek() {
                        if c == '\t' {
                            break;
                        }
                        chars.next();
                        if ('\u{40}'..='\u{7e}').contains(&c) {
                            break;
                        }
                    }
                }
                // Operating system command: up to BEL or ESC \.
                Some(']') => {
                    while let Some(c) = chars.next() {
                        if c == '\u{7}' {
                            break;
                        }
                        if c == '\u{1b}' {
                            chars.next();
                            break;
                        }
                    }
                }
                // Character set selection has one more.
                Some('(' | ')') => {
                    chars.next();
                }
                _ => {}
            },
            '\t' => out.push('\t'),
            '\u{a0}' => out.push(' '),
            c if c.is_control() || is_invisible(c) => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// Undoes what web pages do to `<` and `>`.
pub(crate) fn unescape_html(line: &str) -> Cow<'_, str> {
    if line.contains('&')
        && (line.contains("&lt;") || line.contains("&gt;") || line.contains("&amp;"))
    {
        Cow::Owned(
            line.replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&amp;", "&"),
        )
    } else {
        Cow::Borrowed(line)
    }
}

/// Keys under which collectors keep the line itself.
const LINE_KEYS: [&str; 6] = ["log", "message", "msg", "line", "MESSAGE", "textPayload"];
/// Keys that only a record of a log has.
const TIME_KEYS: [&str; 7] = [
    "stream",
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "date",
    "__REALTIME_TIMESTAMP",
];

/// The line within a JSON record, as container runtimes and collectors write them, one record to a line.
pub(crate) fn of_record(line: &str) -> Option<String> {
    let line = line.trim().trim_end_matches(',');
    if !(line.starts_with('{') && line.ends_with('}')) {
        return None;
    }
    let serde_json::Value::Object(record) = serde_json::from_str(line).ok()? else {
        return None;
    };
    if !TIME_KEYS.iter().any(|key| record.contains_key(*key)) {
        return None;
    }
    LINE_KEYS
        .iter()
        .find_map(|key| record.get(*key)?.as_str())
        .map(str::to_owned)
}

/// `2024-05-06T07:08:09.123456789Z`, also with an offset.
fn is_timestamp(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 19
        && bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
        && bytes.get(10) == Some(&b'T')
        && bytes.get(13) == Some(&b':')
        && bytes.iter().take(4).all(u8::is_ascii_digit)
        && word
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | 'T' | 'Z' | '.' | '+'))
}

/// Takes off what log collectors put before a line: `[pod/name/container]`, a timestamp, `name | `, `stdout F`,
/// `(Worker pid=12)`. Returns the rest and the pod that it names.
pub(crate) fn without_prefix(line: &str) -> (&str, Option<&str>) {
    let mut rest = line;
    let mut pod = None;
    for _ in 0..5 {
        let next = one_prefix(rest, &mut pod);
        match next {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    (rest, pod)
}

fn one_prefix<'a>(line: &'a str, pod: &mut Option<&'a str>) -> Option<&'a str> {
    if let Some(inside) = line.strip_prefix("[pod/") {
        let (name, rest) = inside.split_once(']')?;
        *pod = name.split('/').next();
        return Some(rest.strip_prefix(' ').unwrap_or(rest));
    }
    if let Some(inside) = line.strip_prefix('(') {
        let (name, rest) = inside.split_once(')')?;
        if name.contains("pid=") && name.len() < 80 {
            return Some(rest.strip_prefix(' ').unwrap_or(rest));
        }
        return None;
    }
    if let Some(rest) = line.strip_prefix("> ") {
        return Some(rest);
    }
    let (word, rest) = line.split_once([' ', '\t'])?;
    if is_timestamp(word) {
        let rest = ["stdout F ", "stderr F ", "stdout P ", "stderr P "]
            .iter()
            .find_map(|stream| rest.strip_prefix(stream))
            .unwrap_or(rest);
        return Some(rest);
    }
    // `decode-0  | text`, as docker compose prints it.
    let name_like = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if name_like && let Some(text) = rest.trim_start().strip_prefix("| ") {
        *pod = Some(word);
        return Some(text);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_codes_and_control_characters_go() {
        assert_eq!(
            visible("\t\u{1b}[4mGPU0\tNIC0\u{1b}[0m\r\n"),
            "\tGPU0\tNIC0"
        );
        assert_eq!(visible("a\u{7}b\u{202e}c\u{a0}d"), "abc d");
        assert_eq!(visible("\u{1b}]0;title\u{7}x"), "x");
        assert_eq!(visible("cut \u{1b}["), "cut ");
    }

    #[test]
    fn prefixes_of_collectors_go_and_name_the_pod() {
        assert_eq!(
            without_prefix("[pod/decode-0/main] 2026-01-02T03:04:05.6Z CA 'mlx5_0'"),
            ("CA 'mlx5_0'", Some("decode-0"))
        );
        assert_eq!(
            without_prefix("web-1  | Rate: 400"),
            ("Rate: 400", Some("web-1"))
        );
        assert_eq!(without_prefix("(Worker pid=7) hello"), ("hello", None));
        assert_eq!(
            without_prefix("| GPU UUID | x |"),
            ("| GPU UUID | x |", None)
        );
        assert_eq!(without_prefix("\tState: Active"), ("\tState: Active", None));
    }
}
