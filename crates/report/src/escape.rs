//! Makes text from an input safe to show.
//!
//! One table of characters serves every format: people see `\u{1b}`, programs read `\u001b`.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character would move the cursor, reorder or hide text, or show nothing at all.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            // Zero-width space and joiners, directional marks.
            | '\u{200b}'..='\u{200f}'
            // Line and paragraph separators, directional embeddings and overrides.
            | '\u{2028}'..='\u{202e}'
            // Invisible operators, directional isolates.
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            // Tags and further variation selectors: text can be smuggled in them.
            | '\u{e0000}'..='\u{e0fff}')
}

/// What stands for a character that our own texts use, where only ASCII can be shown.
fn in_ascii(c: char) -> Option<&'static str> {
    Some(match c {
        '…' => "...",
        '·' => ",",
        '×' => "x",
        '–' | '—' | '−' => "-",
        '→' => "->",
        '←' => "<-",
        '↔' => "<->",
        '≥' => ">=",
        '≤' => "<=",
        '‘' | '’' => "'",
        '“' | '”' => "\"",
        '\u{a0}' => " ",
        _ => return None,
    })
}

/// Appends one character so that it is visible and harmless.
pub(crate) fn push(out: &mut String, c: char, ascii: bool) {
    if ascii
        && !c.is_ascii()
        && let Some(text) = in_ascii(c)
    {
        out.push_str(text);
    } else if is_hidden(c) || (ascii && !c.is_ascii()) {
        // Writing to a string cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Running text on one line: line breaks and tabs become spaces.
pub(crate) fn line(text: &str, ascii: bool) -> Cow<'_, str> {
    escaped(text, ascii, |c| match c {
        '\n' | '\r' | '\t' => Some(" "),
        _ => None,
    })
}

/// A name or a path: line breaks stay visible, for a name that holds one is not the name without it.
pub(crate) fn name(text: &str, ascii: bool) -> Cow<'_, str> {
    escaped(text, ascii, |c| match c {
        '\n' => Some("\\n"),
        '\r' => Some("\\r"),
        '\t' => Some("\\t"),
        _ => None,
    })
}

fn escaped(text: &str, ascii: bool, special: fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    if !text
        .chars()
        .any(|c| is_hidden(c) || (ascii && !c.is_ascii()))
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match special(c) {
            Some(replacement) => out.push_str(replacement),
            None => push(&mut out, c, ascii),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_borrowed() {
        assert!(matches!(
            line("UCX_TLS=rc · 東京 é 🚀", false),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn controls_become_visible() {
        assert_eq!(
            line("a\u{1b}[2Jb\u{7f}\u{9b}", false),
            "a\\u{1b}[2Jb\\u{7f}\\u{9b}"
        );
        assert_eq!(name("\u{202e}gpj.\n", false), "\\u{202e}gpj.\\n");
        assert_eq!(line("a\nb\tc", false), "a b c");
        assert_eq!(line("z\u{200b}\u{feff}", false), "z\\u{200b}\\u{feff}");
    }

    #[test]
    fn ascii_means_ascii() {
        assert_eq!(line("≥ 20 GB/s — é", true), ">= 20 GB/s - \\u{e9}");
    }
}
