//! What may be shown of the YAML text between marks: indentation, dashes, brackets, quotes and keys.
//!
//! The text of a line is all that is known here, and it can start inside a value of the line before. So whatever
//! does not read as one clear structure is blanked as a whole.

use crate::place::push_blank;

/// Appends what may be shown of `gap`. `line_start` says that it starts where its line starts.
pub(crate) fn yaml(gap: &str, line_start: bool, out: &mut String) {
    let before = out.len();
    if structure(gap, line_start, out).is_none() {
        out.truncate(before);
        let indentation = gap.len() - gap.trim_start().len();
        out.push_str(gap.get(..indentation).unwrap_or_default());
        push_blank(out);
    }
}

/// `None` where a quote stands inside a word: then nothing tells whether the text around it is a value.
fn structure(gap: &str, line_start: bool, out: &mut String) -> Option<()> {
    // A key may stand where the line or a flow mapping starts, and after `- `.
    let mut key_may_start = line_start;
    let mut rest = gap;
    while let Some(first) = rest.chars().next() {
        let mut width = first.len_utf8();
        match first {
            c if c.is_whitespace() => out.push(c),
            '{' | '[' | ',' | '}' | ']' => {
                out.push(first);
                key_may_start = matches!(first, '{' | '[' | ',');
            }
            '-' if key_may_start && ends_word(rest.get(1..).unwrap_or_default()) => out.push('-'),
            ':' => {
                out.push(':');
                key_may_start = false;
            }
            '#' => {
                push_blank(out);
                return Some(());
            }
            '"' | '\'' => {
                let inner = rest.get(1..).unwrap_or_default();
                out.push(first);
                let Some(len) = quoted(inner, first) else {
                    // The mark is inside these quotes, or the value goes on in the next line.
                    if !inner.is_empty() {
                        push_blank(out);
                    }
                    return Some(());
                };
                let text = inner.get(..len).unwrap_or_default();
                let after = inner.get(len + 1..).unwrap_or_default().trim_start();
                if key_may_start && after.starts_with(':') && is_name(text) {
                    out.push_str(text);
                } else if !text.is_empty() {
                    push_blank(out);
                }
                out.push(first);
                key_may_start = false;
                width = len + 2;
            }
            _ => {
                let end = rest.find(|c: char| !is_name_char(c)).unwrap_or(rest.len());
                let (word, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
                let is_key = tail.strip_prefix(':').is_some_and(ends_word);
                if key_may_start && is_key && !word.is_empty() {
                    out.push_str(word);
                    width = end;
                } else {
                    // The value ends where flow punctuation follows, else with the gap.
                    let stop = rest.find([',', '}', ']']).unwrap_or(rest.len()).max(width);
                    if rest
                        .get(..stop)
                        .is_none_or(|value| value.contains(['"', '\'']))
                    {
                        return None;
                    }
                    push_blank(out);
                    key_may_start = false;
                    width = stop;
                }
            }
        }
        rest = rest.get(width..).unwrap_or_default();
    }
    Some(())
}

/// Length of the text before the quote that closes it.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            if quote == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') {
                chars.next();
            } else {
                return Some(at);
            }
        }
    }
    None
}

fn ends_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with([' ', '\t', '\r'])
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '~')
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_name_char)
}

#[cfg(test)]
mod tests {
    use super::yaml;

    fn blanked(gap: &str) -> String {
        let mut out = String::new();
        yaml(gap, true, &mut out);
        out
    }

    #[test]
    fn structure_stays() {
        assert_eq!(blanked("  - name: "), "  - name: ");
        assert_eq!(blanked("{gpu: \"1\", custom: {"), "{gpu: \"…\", custom: {");
        assert_eq!(
            blanked("{\"name\":\"x\",\"value\":"),
            "{\"name\":\"…\",\"value\":"
        );
    }

    #[test]
    fn punctuation_in_quotes_is_no_structure() {
        assert_eq!(blanked("{A: \"pass, word: x\", B: "), "{A: \"…\", B: ");
        assert_eq!(blanked("{A: 'it''s}, {word: x', B: "), "{A: '…', B: ");
        assert_eq!(blanked("{A: \"a\\\", word: b\", B: "), "{A: \"…\", B: ");
    }

    #[test]
    fn what_may_be_inside_a_value_is_blanked() {
        assert_eq!(blanked("    word: x\", B: "), "    …");
        assert_eq!(blanked("  value: it's, word: x"), "  …");
        assert_eq!(blanked("x # it's, word: \"x"), "…");
    }
}
