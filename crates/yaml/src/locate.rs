//! From the bytes of a decoded value back to the bytes in the source.
//!
//! A value that differs from its text is decoded once more in pieces, each with its place: runs
//! that are written as they read, escapes, and folded line breaks.

use std::ops::Range;

use crate::node::Style;
use crate::tree::{Document, Meta, inner};

/// A part of the value.
struct Piece<'a> {
    /// Where it is written, relative to the text that is decoded.
    source: Range<usize>,
    /// What it reads.
    value: &'a str,
}

pub(crate) fn locate(document: &Document<'_>, id: u32, range: Range<usize>) -> Range<u32> {
    let slot = document.slot(id);
    let inside = inner(slot);
    let wide = inside.start as usize..inside.end as usize;
    if !slot.meta.has(Meta::DECODED) {
        let start = (wide.start.saturating_add(range.start)).min(wide.end);
        let end = (wide.start.saturating_add(range.end)).clamp(start, wide.end);
        return narrow(start)..narrow(end);
    }
    let mut finder = Finder::new(range);
    let base = pieces(document, id, &mut |piece| finder.take(&piece));
    let found = finder.found(wide.end.saturating_sub(base));
    narrow(base + found.start)..narrow(base + found.end)
}

/// Decodes a scalar in pieces; gives the offset to which they are relative.
fn pieces(document: &Document<'_>, id: u32, take: &mut dyn FnMut(Piece<'_>)) -> usize {
    let slot = document.slot(id);
    let inside = inner(slot);
    match slot.meta.style() {
        style @ (Style::Literal | Style::Folded) => {
            let source = document.source();
            let (first, indent) = block_start(source, slot.start as usize);
            let text = source.get(first..slot.data as usize).unwrap_or("");
            block(text, indent, style, document.scalar(id), take);
            first
        }
        style => {
            flow(document.slice(inside.clone()), style, take);
            inside.start as usize
        }
    }
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Follows the pieces until both ends of a range have been seen.
struct Finder {
    wanted: Range<usize>,
    position: usize,
    start: Option<usize>,
    end: Option<usize>,
}

impl Finder {
    fn new(wanted: Range<usize>) -> Self {
        Self {
            wanted,
            position: 0,
            start: None,
            end: None,
        }
    }

    fn take(&mut self, piece: &Piece<'_>) {
        let length = piece.value.len();
        let next = self.position + length;
        let verbatim = piece.source.len() == length;
        if self.start.is_none() && self.wanted.start < next {
            let into = self.wanted.start.saturating_sub(self.position);
            self.start = Some(piece.source.start + if verbatim { into } else { 0 });
        }
        // The end is that of the last byte, so that a folded break after it does not count.
        if self.end.is_none() && self.wanted.end > self.position && self.wanted.end <= next {
            let into = self.wanted.end - self.position;
            self.end = Some(if verbatim {
                piece.source.start + into
            } else {
                piece.source.end
            });
        }
        self.position = next;
    }

    /// What was found, with the end of the text for what was not.
    fn found(self, text_end: usize) -> Range<usize> {
        let start = self.start.unwrap_or(text_end);
        let end = if self.wanted.end <= self.wanted.start {
            start
        } else {
            self.end.unwrap_or(text_end)
        };
        start..end.max(start)
    }
}

/// Pieces of a plain or quoted scalar, given without its quotes.
fn flow(text: &str, style: Style, take: &mut dyn FnMut(Piece<'_>)) {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let special = rest.find(|c| match c {
            '\n' | '\r' | ' ' | '\t' => true,
            '\'' => style == Style::SingleQuoted,
            '\\' => style == Style::DoubleQuoted,
            _ => false,
        });
        let run = special.unwrap_or(rest.len());
        if run > 0 {
            verbatim(text, at..at + run, take);
            at += run;
            continue;
        }
        at += match rest.chars().next() {
            Some('\'') => {
                // A doubled quote stands for one.
                take(Piece {
                    source: at..at + 2,
                    value: "'",
                });
                2
            }
            Some('\\') => escape(rest, at, take),
            _ => white(text, at, take),
        }
        .max(1);
    }
}

fn verbatim(text: &str, source: Range<usize>, take: &mut dyn FnMut(Piece<'_>)) {
    let value = text.get(source.clone()).unwrap_or("");
    take(Piece { source, value });
}

/// White space: kept inside a line, folded around line breaks. Gives its length.
fn white(text: &str, at: usize, take: &mut dyn FnMut(Piece<'_>)) -> usize {
    let rest = text.get(at..).unwrap_or("");
    let blanks = blank_length(rest);
    let tail = rest.get(blanks..).unwrap_or("");
    if break_length(tail) == 0 {
        verbatim(text, at..at + blanks, take);
        return blanks;
    }
    fold(rest, blanks, at, 1, take)
}

/// Folds the line breaks from `from` on; the first `swallowed` of them are no line feeds. Gives
/// the length with the indentation of the next line.
fn fold(
    rest: &str,
    from: usize,
    at: usize,
    swallowed: usize,
    take: &mut dyn FnMut(Piece<'_>),
) -> usize {
    let mut length = from;
    let mut breaks = 0;
    let mut first = None;
    loop {
        let tail = rest.get(length..).unwrap_or("");
        let breaking = break_length(tail);
        if breaking == 0 {
            break;
        }
        let source = at + length..at + length + breaking;
        if breaks < swallowed {
            first = Some(source);
        } else {
            take(Piece {
                source,
                value: "\n",
            });
        }
        breaks += 1;
        length += breaking;
        length += blank_length(rest.get(length..).unwrap_or(""));
    }
    if let (1, Some(source)) = (breaks, first) {
        take(Piece { source, value: " " });
    }
    length
}

/// An escape in a double-quoted scalar. Gives its length.
fn escape(rest: &str, at: usize, take: &mut dyn FnMut(Piece<'_>)) -> usize {
    let mut chars = rest.chars().skip(1);
    let Some(letter) = chars.next() else {
        return 1;
    };
    let digits = match letter {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        '\n' | '\r' => {
            // An escaped line break joins the lines; empty lines after it still count.
            let length = 1 + break_length(rest.get(1..).unwrap_or(""));
            let blanks = blank_length(rest.get(length..).unwrap_or(""));
            return fold(rest, length + blanks, at, 0, take);
        }
        _ => 0,
    };
    let mut length = 1 + letter.len_utf8();
    let decoded = if digits > 0 {
        let code = hex(rest, length, digits);
        length += digits;
        // JSON writes characters beyond U+FFFF as two.
        let pair = (letter == 'u' && (0xD800..0xDC00).contains(&code))
            .then(|| rest.get(length..)?.strip_prefix("\\u"))
            .flatten();
        if pair.is_some() {
            let low = hex(rest, length + 2, 4);
            length += 6;
            char::from_u32(0x10000 + ((code & 0x3FF) << 10) + (low & 0x3FF))
        } else {
            char::from_u32(code)
        }
    } else {
        Some(match letter {
            '0' => '\0',
            'a' => '\u{7}',
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'v' => '\u{b}',
            'f' => '\u{c}',
            'r' => '\r',
            'e' => '\u{1b}',
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            other => other,
        })
    };
    let mut buffer = [0; 4];
    let value = decoded.map_or("", |c| &*c.encode_utf8(&mut buffer));
    take(Piece {
        source: at..at + length,
        value,
    });
    length
}

fn hex(text: &str, from: usize, digits: usize) -> u32 {
    text.get(from..from + digits)
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .unwrap_or(0)
}

fn blank_length(text: &str) -> usize {
    text.len() - text.trim_start_matches([' ', '\t']).len()
}

fn break_length(text: &str) -> usize {
    if text.starts_with("\r\n") {
        2
    } else {
        usize::from(text.starts_with(['\n', '\r']))
    }
}

/// Where the first line of a block scalar starts, and its indentation. The span starts after the
/// indentation of the first line with content, so empty lines before it have to be found.
fn block_start(source: &str, start: usize) -> (usize, usize) {
    let line_start = |before: usize| {
        let text = source.get(..before).unwrap_or("");
        text.rfind(['\n', '\r']).map_or(0, |at| at + 1)
    };
    let mut first = line_start(start);
    let indent = start - first;
    while first > 0 {
        let above = source.get(..first).unwrap_or("");
        let breaking = if above.ends_with("\r\n") { 2 } else { 1 };
        let previous = line_start(first - breaking);
        let line = source.get(previous..first).unwrap_or("x");
        if !line.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
            break;
        }
        first = previous;
    }
    (first, indent)
}

/// Pieces of a block scalar: its lines without the indentation, and what the line breaks became.
fn block(text: &str, indent: usize, style: Style, value: &str, take: &mut dyn FnMut(Piece<'_>)) {
    let mut at = 0;
    let mut left = value;
    // Line breaks that are not accounted for yet.
    let mut breaks: Vec<Range<usize>> = Vec::new();
    while at < text.len() {
        let rest = text.get(at..).unwrap_or("");
        let line_length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let (line, after) = rest.split_at_checked(line_length).unwrap_or((rest, ""));
        let end = at + line_length;
        let spaces = line.len() - line.trim_start_matches(' ').len();
        let start = (at + spaces.min(indent)).min(end);
        let content = text.get(start..end).unwrap_or("");
        let next = end + break_length(after);
        if !content.is_empty() {
            left = separate(&mut breaks, left, style, take);
            let Some(tail) = left.strip_prefix(content) else {
                // The indentation of the next line may end the span of the scalar.
                return;
            };
            verbatim(text, start..end, take);
            left = tail;
        }
        if end < next {
            breaks.push(end..next);
        }
        at = next;
    }
    separate(&mut breaks, left, style, take);
}

/// Deals the line breaks out to the spaces and line feeds that they became. Gives what is left of
/// the value.
fn separate<'v>(
    breaks: &mut Vec<Range<usize>>,
    value: &'v str,
    style: Style,
    take: &mut dyn FnMut(Piece<'_>),
) -> &'v str {
    let feeds = value.len() - value.trim_start_matches('\n').len();
    let feeds = feeds.min(breaks.len());
    let mut left = value.get(feeds..).unwrap_or("");
    if feeds == 0
        && style == Style::Folded
        && let (Some(source), Some(tail)) = (breaks.first(), left.strip_prefix(' '))
    {
        take(Piece {
            source: source.clone(),
            value: " ",
        });
        left = tail;
    }
    // Folding swallows the first break before an empty line, chomping the last ones.
    let skipped = if left.is_empty() {
        0
    } else {
        breaks.len() - feeds
    };
    for source in breaks.iter().skip(skipped).take(feeds) {
        take(Piece {
            source: source.clone(),
            value: "\n",
        });
    }
    breaks.clear();
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Parsed, parse_each};

    /// The pieces of every decoded scalar make up its value, and lie in order.
    fn check(source: &str) {
        parse_each(source, &Limits::default(), &mut |parsed| {
            let Parsed::Document(document) = parsed else {
                panic!("{source:?}: {parsed:?}");
            };
            for entry in &document.decoded {
                let mut value = String::new();
                let mut last = 0;
                pieces(&document, entry.node, &mut |piece| {
                    assert!(piece.source.start >= last, "{source:?}");
                    last = piece.source.end;
                    value.push_str(piece.value);
                });
                assert_eq!(value, document.scalar(entry.node), "{source:?}");
            }
        });
    }

    #[test]
    fn pieces_make_up_the_value() {
        for source in [
            "a: x\n  y\n\n\n  z  \n \n  w\n",
            "a: 'it''s\n  two \t\n\n  lines'\n",
            "a: \"\\n\\t\\x41\\u00e4\\U0001F600\\uD83D\\uDE00 b\\\n   c\\\n\n  d \\\n  e\"\n",
            "a: \"  lead\n\n  mid  \n  end  \"\n",
            "a: \"\n\n  b\n  \"\n",
            "a: |\n  x\n    y\n\n  z\n\n\nb: 1\n",
            "a: |+\n\n\n  x\n\n\nb: 1\n",
            "a: |-\n  x\n   \n  y\n",
            "a: |2\n    x\n  y\n",
            "a: |\r\n  x\r\n\r\n  y\r\nb: 1\r\n",
            "a: >\n  x\n  y\n\n  z\n    more\n    less\n  w\n\n\n  v\n",
            "a: >+\n\n  x\n\n\nb: 1\n",
            "a: >-\r\n  x\r\n  y\r\n",
            "a: |\r\n\r\n  x\r  y\r\n\r\n  z\r\n",
            "a: >\n\n \n  x\n  y",
            "a: |\n  x",
            "a: |+\n\n\nb: 1\n",
            "- |\n x\n-\t'a\tb'\n",
            "a: |\n  x\n # comment\nb: 1\n",
            "a: |\n\n    \n    x\n     \n      y\n",
            "a: |2\n     \n  y\n",
            "a: >\n  x\n   \n  y\n",
        ] {
            check(source);
        }
    }

    fn at(source: &str, part: &str) -> String {
        let stream = crate::parse(source, &Limits::default());
        let document = &stream.documents[0];
        let node = document.root().get("a").unwrap();
        let value = node.text().unwrap();
        let start = value.find(part).unwrap();
        let span = node.locate(start..start + part.len());
        document.slice(span).to_owned()
    }

    #[test]
    fn parts_of_values() {
        assert_eq!(at("a: one two\n", "two"), "two");
        assert_eq!(at("a: 'one two'\n", "two"), "two");
        assert_eq!(at("a: 'it''s two'\n", "two"), "two");
        assert_eq!(at("a: 'it''s two'\n", "'s"), "''s");
        assert_eq!(at("a: \"\\tone \\u0074wo\"\n", "two"), "\\u0074wo");
        assert_eq!(at("a: |\n    one\n    two\n", "two"), "two");
        assert_eq!(at("a: |\r\n\r\n    one\r\n    two\r\n", "two"), "two");
        assert_eq!(at("a: |\n  one\n  two\n", "one\ntwo"), "one\n  two");
        assert_eq!(at("a: >\n  one\n  two\n", "two"), "two");
        assert_eq!(at("a: >\n  one\n\n  two\n", "e\ntw"), "e\n\n  tw");
        assert_eq!(at("a: one\n  two\n", "e two"), "e\n  two");
        assert_eq!(at("a: \u{e4}\n  \u{f6}\u{fc}x\n", "\u{fc}x"), "\u{fc}x");
    }

    #[test]
    fn ranges_beyond_the_value() {
        let source = "a: |\n  x\n  y\nb: z\n";
        let stream = crate::parse(source, &Limits::default());
        let root = stream.documents[0].root();
        let a = root.get("a").unwrap();
        assert_eq!(a.locate(0..0), 7..7);
        assert_eq!(a.locate(1..1), 8..8);
        assert_eq!(a.locate(9..12), 13..13);
        assert_eq!(a.locate(2..99), 11..13);
        let b = root.get("b").unwrap();
        assert_eq!(b.locate(0..99), 16..17);
        assert_eq!(b.locate(7..9), 17..17);
        assert_eq!(root.locate(0..1), root.span());
    }
}
