//! Places in an input, with the line around them blanked down to what may be shown.
//!
//! A recipe's line can hold anything beside the setting that a finding is about: an API key on the same
//! command line, a token in the same flow mapping. So a place keeps its line only in a form where
//! everything is blanked except structure (indentation, dashes, keys) and the text that the caller vouches for.

use std::cell::{Cell, OnceCell};
use std::ops::Range;
use std::sync::Arc;

use model::Place;
use yaml::{LineIndex, Node};

use crate::scalar_map::ScalarMap;

/// What stands in for text that is not shown.
pub(crate) const BLANK: char = '…';

/// Lines longer than this are cut around the mark: a minified manifest is one line of megabytes.
const WINDOW: usize = 240;

/// Words of shell scripts that carry no value.
const SHELL_WORDS: [&str; 9] = ["export", "env", "exec", "-x", "&&", "||", ";", "\\", "|"];

/// An input text and where its lines start.
pub(crate) struct Text<'s> {
    /// Path as given.
    pub(crate) path: Arc<str>,
    /// The text.
    pub(crate) source: &'s str,
    lines: OnceCell<LineIndex<'s>>,
    /// Start of the line of the last lookup and its number: documents are read from top to bottom, so the next
    /// place is rarely far behind it.
    last: Cell<(usize, u32)>,
    /// Set where the text is a scalar of another one.
    outer: Option<&'s dyn Outer>,
    /// The line of values that may not be shown.
    blank: Arc<str>,
}

/// How far ahead a lookup counts line breaks itself before it asks the index.
const NEAR: usize = 16 * 1024;

/// Where an inner text is written: a scalar of another text.
pub(crate) trait Outer {
    /// The place of a range of the inner text.
    fn place_inner(&self, mark: &Range<u32>, shown: &[Range<u32>], around: Around) -> Place;
    /// Line and column of an offset of the inner text, in the outermost text.
    fn line_column_inner(&self, offset: u32) -> (u32, u32);
}

/// A scalar whose text is read as a text of its own: a patch, a configuration file, a script.
pub(crate) struct InScalar<'t, 's, 'd> {
    text: &'t Text<'s>,
    map: ScalarMap<'d>,
}

impl<'t, 's, 'd> InScalar<'t, 's, 'd> {
    pub(crate) fn new(text: &'t Text<'s>, node: Node<'d>) -> Self {
        Self {
            text,
            map: ScalarMap::new(node),
        }
    }

    fn outer_range(&self, range: &Range<u32>) -> Range<u32> {
        self.map.locate(range.start as usize..range.end as usize)
    }
}

impl Outer for InScalar<'_, '_, '_> {
    fn place_inner(&self, mark: &Range<u32>, shown: &[Range<u32>], around: Around) -> Place {
        let shown: Vec<Range<u32>> = shown.iter().map(|r| self.outer_range(r)).collect();
        // Lines of a literal block are lines of the file; of other scalars only the marked text is known.
        let around = if self.map.node().style() == yaml::Style::Literal {
            around
        } else {
            Around::Inside
        };
        self.text.place(&self.outer_range(mark), &shown, around)
    }

    fn line_column_inner(&self, offset: u32) -> (u32, u32) {
        self.text
            .line_column(self.outer_range(&(offset..offset)).start)
    }
}

/// How much of the line around a mark is structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    /// Keys of YAML mappings.
    Yaml,
    /// Text inside a scalar: nothing is structure but a few shell words.
    Inside,
}

impl<'s> Text<'s> {
    pub(crate) fn new(path: Arc<str>, text: &'s str) -> Self {
        Self {
            path,
            source: text,
            lines: OnceCell::new(),
            last: Cell::new((0, 1)),
            outer: None,
            blank: "\u{2026}".into(),
        }
    }

    /// A text inside a scalar; places in it are places of the file.
    pub(crate) fn inside(path: Arc<str>, source: &'s str, outer: &'s dyn Outer) -> Self {
        Self {
            outer: Some(outer),
            ..Self::new(path, source)
        }
    }

    fn lines(&self) -> &LineIndex<'s> {
        self.lines.get_or_init(|| LineIndex::new(self.source))
    }

    /// Line and column of an offset, both from 1.
    pub(crate) fn line_column(&self, offset: u32) -> (u32, u32) {
        if let Some(outer) = self.outer {
            return outer.line_column_inner(offset);
        }
        let (line, start) = self.line_of(offset as usize);
        let column = self
            .source
            .get(start..offset as usize)
            .map_or(0, |t| t.chars().count());
        (
            line,
            u32::try_from(column).unwrap_or(u32::MAX).saturating_add(1),
        )
    }

    /// Number of the line of an offset and where it starts.
    fn line_of(&self, offset: usize) -> (u32, usize) {
        let bytes = self.source.as_bytes();
        let offset = offset.min(bytes.len());
        let start = bytes
            .get(..offset)
            .and_then(|b| b.iter().rposition(|c| *c == b'\n'))
            .map_or(0, |at| at + 1);
        let (known, number) = self.last.get();
        let line = if start >= known && start - known <= NEAR {
            let breaks = bytes
                .get(known..start)
                .map_or(0, |b| b.split(|c| *c == b'\n').count() - 1);
            number.saturating_add(u32::try_from(breaks).unwrap_or(u32::MAX))
        } else if start < known && known - start <= NEAR {
            let breaks = bytes
                .get(start..known)
                .map_or(0, |b| b.split(|c| *c == b'\n').count() - 1);
            number.saturating_sub(u32::try_from(breaks).unwrap_or(0))
        } else {
            self.lines()
                .line_column(u32::try_from(start).unwrap_or(u32::MAX))
                .0
        };
        self.last.set((start, line));
        (line, start)
    }

    /// The place of `mark`. `shown` are the byte ranges whose text may be shown.
    pub(crate) fn place(&self, mark: &Range<u32>, shown: &[Range<u32>], around: Around) -> Place {
        if let Some(outer) = self.outer {
            return outer.place_inner(mark, shown, around);
        }
        let (line, column) = self.line_column(mark.start);
        let line_start = self.line_of(mark.start as usize).1;
        let mut start = line_start;
        let rest = self.source.as_bytes().get(line_start..).unwrap_or_default();
        let mut end = line_start + rest.iter().position(|c| *c == b'\n').unwrap_or(rest.len());
        if end > start && self.source.as_bytes().get(end - 1) == Some(&b'\r') {
            end -= 1;
        }
        let at = (mark.start as usize).min(end);
        let cut = end - start > WINDOW * 2;
        if cut {
            start = floor_char(self.source, at.saturating_sub(WINDOW)).max(start);
            end = floor_char(self.source, (at + WINDOW).min(end));
        }
        let mark_end = (mark.end as usize).clamp(at, end);
        let mut out = String::with_capacity(end - start);
        let mut cursor = start;
        let mut out_mark = (0_u32, 0_u32);
        let mut parts: Vec<Range<usize>> = shown
            .iter()
            .map(|r| (r.start as usize).max(start)..(r.end as usize).min(end))
            .filter(|r| {
                r.start < r.end
                    && !self
                        .source
                        .get(r.clone())
                        .is_some_and(crate::credentials::in_text)
            })
            .collect();
        parts.sort_by_key(|r| r.start);
        // The mark itself, where its text may not be shown, becomes one blank.
        let hidden = !parts.iter().any(|r| r.start <= at && mark_end <= r.end) && at < end;
        if hidden {
            parts.push(at..at);
            parts.sort_by_key(|r| r.start);
        }
        for part in parts {
            if part.start < cursor {
                continue;
            }
            let gap = self.source.get(cursor..part.start).unwrap_or_default();
            if cut && cursor == start && !gap.trim().is_empty() {
                // A cut can fall into a quoted value; nothing tells what is structure behind it.
                push_blank(&mut out);
                out.push(' ');
            } else {
                blank(gap, around, cursor == line_start, &mut out);
            }
            if part.start == part.end {
                let from = byte_len(&out);
                out.push(BLANK);
                out_mark = (from, byte_len(&out));
                cursor = mark_end.max(part.end);
                continue;
            }
            if part.start <= at && at <= part.end && out_mark == (0, 0) {
                let from = byte_len(&out);
                let lead = u32::try_from(at - part.start).unwrap_or(0);
                let len = u32::try_from(mark_end.min(part.end) - at).unwrap_or(0);
                out_mark = (from + lead, from + lead + len);
            }
            out.push_str(self.source.get(part.clone()).unwrap_or_default());
            cursor = part.end;
        }
        blank(
            self.source.get(cursor..end).unwrap_or_default(),
            around,
            cursor == line_start,
            &mut out,
        );
        let trimmed = out.trim_end();
        let keep = trimmed.len();
        out.truncate(keep.max(out_mark.1 as usize));
        Place {
            file: Arc::clone(&self.path),
            line,
            column,
            text: out.into(),
            mark: out_mark,
        }
    }

    /// The place of a value that may not be shown: its line and column, and nothing of its text.
    pub(crate) fn hidden(&self, node: Node<'_>) -> Place {
        let (line, column) = self.line_column(node.span().start);
        Place {
            file: Arc::clone(&self.path),
            line,
            column,
            text: Arc::clone(&self.blank),
            mark: (0, byte_len(&self.blank)),
        }
    }

    /// The place of a whole node. `show` says that its text may be shown.
    pub(crate) fn node(&self, node: Node<'_>, show: bool) -> Place {
        if !show {
            return self.hidden(node);
        }
        let span = node.span();
        self.place(&span, std::slice::from_ref(&span), Around::Yaml)
    }
}

fn byte_len(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Appends what may be shown of `gap`.
fn blank(gap: &str, around: Around, line_start: bool, out: &mut String) {
    match around {
        Around::Yaml => crate::blank::yaml(gap, line_start, out),
        Around::Inside => blank_shell(gap, out),
    }
}

pub(crate) fn push_blank(out: &mut String) {
    // One blank stands for any number of words beside each other.
    let end = out.trim_end().len();
    if out.get(..end).is_some_and(|t| t.ends_with(BLANK)) {
        out.truncate(end);
    } else {
        out.push(BLANK);
    }
}

fn blank_shell(gap: &str, out: &mut String) {
    let mut rest = gap;
    while let Some(first) = rest.chars().next() {
        let space = first.is_whitespace();
        let end = rest
            .find(|c: char| c.is_whitespace() != space)
            .unwrap_or(rest.len());
        let (token, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if space || SHELL_WORDS.contains(&token) {
            out.push_str(token);
        } else {
            push_blank(out);
        }
        rest = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(place: &Place) -> &str {
        place
            .text
            .get(place.mark.0 as usize..place.mark.1 as usize)
            .unwrap()
    }

    fn show(line: &str, shown: &str, around: Around) -> String {
        let text = Text::new("f".into(), line);
        let at = line.find(shown).unwrap();
        let range = u32::try_from(at).unwrap()..u32::try_from(at + shown.len()).unwrap();
        let place = text.place(&range, std::slice::from_ref(&range), around);
        assert_eq!(marked(&place), shown);
        place.text.to_string()
    }

    #[test]
    fn keys_stay_and_other_values_go() {
        assert_eq!(
            show("  - name: UCX_TLS", "UCX_TLS", Around::Yaml),
            "  - name: UCX_TLS"
        );
        assert_eq!(
            show("{UCX_TLS: tcp, TOKEN: abc}", "tcp", Around::Yaml),
            "{UCX_TLS: tcp, TOKEN: …}"
        );
        assert_eq!(
            show("{TOKEN: abc, UCX_TLS: tcp} # s3cret", "tcp", Around::Yaml),
            "{TOKEN: …, UCX_TLS: tcp} …"
        );
        assert!(!show("{TOKEN: \"a:b, c: d\", UCX_TLS: tcp}", "tcp", Around::Yaml).contains("d\""));
    }

    #[test]
    fn script_words_go() {
        assert_eq!(
            show(
                "  exec srv --api-key s3cret --mode decode http://u:p@h",
                "decode",
                Around::Inside
            ),
            "  exec … decode …"
        );
        assert_eq!(
            show("export A=s3cret UCX_TLS=tcp", "UCX_TLS=tcp", Around::Inside),
            "export … UCX_TLS=tcp"
        );
    }

    #[test]
    fn a_hidden_mark_is_one_blank() {
        let line = "value: s3cret";
        let place = Text::new("f".into(), line).place(&(7..13), &[], Around::Yaml);
        assert_eq!(&*place.text, "value: …");
        assert_eq!(marked(&place), "…");
    }

    #[test]
    fn long_lines_are_cut() {
        let line = format!("{}UCX_TLS=tcp{}", "a ".repeat(5000), " b".repeat(5000));
        let at = 10_000_u32;
        let place = Text::new("f".into(), &line).place(
            &(at..at + 11),
            std::slice::from_ref(&(at..at + 11)),
            Around::Inside,
        );
        assert!(place.text.len() < 1000);
        assert!(place.text.contains("UCX_TLS=tcp"));
        assert_eq!(place.column, 10_001);
    }
}
