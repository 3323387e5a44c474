//! From a fix in words to bytes of a text.
//!
//! A fix is only made where the place maps exactly: to a scalar whose whole decoded text is what the fix expects, to
//! the name of an environment entry, or to a word of a script that stands in the text as it is. Everything outside
//! the bytes of an edit stays as it was, comments and line ends included.

use std::ops::Range;

use checks::{Change, Fix};
use yaml::{Limits, LineIndex, Node, Parsed, Step, Style};

/// Nodes of one document that are looked at.
const BUDGET: u64 = 64_000_000;

/// Replaces bytes of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edit {
    /// First byte and the one after the last.
    pub range: (usize, usize),
    /// What is to stand there.
    pub replacement: String,
}

/// Why a fix is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The place does not lead to a text that says exactly what the fix is about.
    NotThere,
    /// The old name is used elsewhere as well.
    StillUsed,
    /// The new text would need another way of quoting.
    Quoting,
}

impl Refusal {
    /// Why, as a clause.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotThere => "the text at its place is not written out as it is read",
            Self::StillUsed => "a script refers to the old name",
            Self::Quoting => "the new text needs other quotes",
        }
    }
}

/// The edits of one fix.
pub fn edits(text: &str, fix: &Fix) -> Result<Vec<Edit>, Refusal> {
    let offset = offset(text, fix.place.line, fix.place.column).ok_or(Refusal::NotThere)?;
    if let Change::Rename { from, .. } = &fix.change
        && ["$", "${", "$("]
            .iter()
            .any(|p| refers(text, &format!("{p}{from}")))
    {
        return Err(Refusal::StillUsed);
    }
    let mut found = Vec::new();
    yaml::parse_each(text, &Limits::default(), &mut |parsed| {
        let Parsed::Document(document) = parsed else {
            return;
        };
        let range = document.range();
        let at = u32::try_from(offset).unwrap_or(u32::MAX);
        if !(range.start <= at && at < range.end) {
            return;
        }
        yaml::walk(document.root(), BUDGET, &mut |visit| {
            match &fix.change {
                Change::Rename { from, to } => rename(text, visit.node, at, from, to, &mut found),
                Change::Value { name, from, to } => {
                    value(text, visit.node, at, name, from, to, &mut found);
                }
            }
            Step::Enter
        });
    });
    // An anchored node is met by every way that leads to it.
    found.sort();
    found.dedup();
    let one_line = |e: &Edit| {
        text.get(e.range.0..e.range.1)
            .is_some_and(|old| !old.contains(['\n', '\r']))
    };
    if found.is_empty() || !found.iter().all(one_line) {
        return Err(Refusal::NotThere);
    }
    if found.iter().any(|e| !is_plain(&e.replacement)) {
        return Err(Refusal::Quoting);
    }
    Ok(found)
}

/// Characters that need no quotes in any style of YAML and in no shell. A comma would end a plain scalar in flow
/// style, but no plain scalar of flow style can have held a list.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| {
            // A colon makes a key only before white space or at the end.
            c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | '.' | '/' | ':')
        })
        && !text.ends_with(':')
}

/// Applies edits; overlapping ones are refused as a whole.
pub fn apply(text: &str, edits: &[Edit]) -> Option<String> {
    let mut edits = edits.to_vec();
    edits.sort();
    edits.dedup();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in &edits {
        if edit.range.0 < at {
            return None;
        }
        out.push_str(text.get(at..edit.range.0)?);
        out.push_str(&edit.replacement);
        at = edit.range.1;
    }
    out.push_str(text.get(at..)?);
    Some(out)
}

/// Byte offset of a line and column, the reverse of how a place is made.
fn offset(text: &str, line: u32, column: u32) -> Option<usize> {
    let range = LineIndex::new(text).line_range(line);
    let start = range.start as usize;
    let whole = text.get(start..range.end as usize)?;
    let skip = usize::try_from(column).ok()?.checked_sub(1)?;
    let inside = whole
        .char_indices()
        .map(|(at, _)| at)
        .chain([whole.len()])
        .nth(skip)?;
    Some(start + inside)
}

/// Whether a name is used, not only the start of a longer one.
fn refers(text: &str, reference: &str) -> bool {
    text.match_indices(reference).any(|(at, _)| {
        !text
            .get(at + reference.len()..)
            .unwrap_or_default()
            .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn rename(text: &str, node: Node<'_>, at: u32, from: &str, to: &str, found: &mut Vec<Edit>) {
    let starts = |n: Node<'_>| n.span().start == at;
    if node.is_mapping() {
        for (key, value) in node.pairs() {
            // `X: value`
            if key.text() == Some(from) && (starts(key) || starts(value)) {
                whole(key, from, to, found);
            }
        }
        // `name: X` / `value: …`
        if let Some((_, name)) = node.entry("name")
            && name.text() == Some(from)
            && (starts(name)
                || node
                    .get("value")
                    .or_else(|| node.get("valueFrom"))
                    .is_some_and(|v| starts(v) || v.span().contains(&at)))
        {
            whole(name, from, to, found);
        }
    } else if let Some(word) = script_word(text, node, at) {
        let after = word.get(from.len()..).unwrap_or_default();
        if word.starts_with(from) && after.starts_with('=') {
            push(at as usize..at as usize + from.len(), to, found);
        }
    }
}

fn value(
    text: &str,
    node: Node<'_>,
    at: u32,
    name: &str,
    from: &str,
    to: &str,
    found: &mut Vec<Edit>,
) {
    if node.is_scalar() && node.span().start == at && node.text() == Some(from) {
        whole(node, from, to, found);
    } else if let Some(word) = script_word(text, node, at) {
        // `NAME=value`, `NAME="value"` and `"NAME=value"`; a quote may hold spaces.
        for (before, quote) in [
            (format!("{name}="), ""),
            (format!("{name}=\""), "\""),
            (format!("{name}='"), "'"),
            (format!("\"{name}="), "\""),
            (format!("'{name}="), "'"),
        ] {
            let Some(rest) = word
                .strip_prefix(before.as_str())
                .and_then(|r| r.strip_prefix(from))
            else {
                continue;
            };
            let closed = if quote.is_empty() {
                !from.contains(char::is_whitespace) && ends_word(rest)
            } else {
                rest.strip_prefix(quote).is_some_and(ends_word)
            };
            if closed {
                let start = at as usize + before.len();
                push(start..start + from.len(), to, found);
            }
        }
    }
}

fn ends_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|'))
}

/// The text from a place on, where it lies in a block scalar: there the text is written as it reads.
fn script_word<'t>(text: &'t str, node: Node<'_>, at: u32) -> Option<&'t str> {
    let inside = node.is_scalar()
        && matches!(node.style(), Style::Literal | Style::Folded)
        && node.span().contains(&at);
    if !inside {
        return None;
    }
    let end = (node.span().end as usize).min(text.len());
    text.get(at as usize..end)?.lines().next()
}

/// Replaces the whole text of a scalar and leaves its quotes.
fn whole(node: Node<'_>, from: &str, to: &str, found: &mut Vec<Edit>) {
    if matches!(node.style(), Style::Literal | Style::Folded) {
        return;
    }
    let range = node.locate(0..from.len());
    push(range.start as usize..range.end as usize, to, found);
}

fn push(range: Range<usize>, to: &str, found: &mut Vec<Edit>) {
    found.push(Edit {
        range: (range.start, range.end),
        replacement: to.to_owned(),
    });
}
