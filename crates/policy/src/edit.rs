//! From a fix in words to bytes of a text.
//!
//! A fix is only made where the place maps exactly: to a scalar whose whole decoded text is what the fix expects, to
//! the name of an environment entry, or to a word of a script that stands in the text as it is. Everything outside
//! the bytes of an edit stays as it was, comments and line ends included.

use std::collections::BTreeSet;
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
    /// The lines of an entry hold more than the entry.
    NotAlone,
    /// The name stands elsewhere in the file.
    Named,
    /// Nothing would be left of the list.
    Last,
}

impl Refusal {
    /// Why, as a clause.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotThere => "the text at its place is not written out as it is read",
            Self::StillUsed => "a script refers to the old name",
            Self::Quoting => "the new text needs other quotes",
            Self::NotAlone => "its lines hold more than the entry, such as a comment or an anchor",
            Self::Named => "the file names it elsewhere too",
            Self::Last => "it is the only entry of its list",
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
    if let Change::Remove { name } = &fix.change {
        return removal(text, offset, name).map(|edit| vec![edit]);
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
                Change::Remove { .. } => {}
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

/// Takes out the lines of the entry of an env list that a place leads to.
fn removal(text: &str, offset: usize, name: &str) -> Result<Edit, Refusal> {
    let at = u32::try_from(offset).unwrap_or(u32::MAX);
    let mut names = BTreeSet::new();
    let mut found = Err(Refusal::NotThere);
    yaml::parse_each(text, &Limits::default(), &mut |parsed| {
        let Parsed::Document(document) = parsed else {
            return;
        };
        yaml::walk(document.root(), BUDGET, &mut |visit| {
            let list = visit.node;
            if !list.is_sequence() {
                return Step::Enter;
            }
            for item in list.items() {
                let Some((_, named)) = item.entry("name") else {
                    continue;
                };
                if named.text() != Some(name) {
                    continue;
                }
                names.insert(named.span().start);
                let here = named.span().start == at
                    || item.get("value").is_some_and(|v| v.span().start == at);
                if here {
                    found = lines_of(text, list, item);
                }
            }
            Step::Enter
        });
    });
    let edit = found?;
    // A script, a program in a string, a comment: whatever names it may be about it.
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let written = text
        .match_indices(name)
        .filter(|(start, _)| {
            let before = text.get(..*start).unwrap_or_default();
            let after = text.get(start + name.len()..).unwrap_or_default();
            !before.ends_with(word) && !after.starts_with(word)
        })
        .count();
    if written > names.len() {
        return Err(Refusal::Named);
    }
    Ok(edit)
}

/// The whole lines of an entry, where they hold nothing else.
fn lines_of(text: &str, list: Node<'_>, item: Node<'_>) -> Result<Edit, Refusal> {
    if list.style() == Style::Flow || list.alias_span().is_some() || item.alias_span().is_some() {
        return Err(Refusal::NotThere);
    }
    if list.items().count() < 2 {
        return Err(Refusal::Last);
    }
    let mut parts: Vec<Range<usize>> = Vec::new();
    for (key, value) in item.pairs() {
        let known = matches!(key.text(), Some("name" | "value"));
        let plain = value.is_scalar()
            && !matches!(value.style(), Style::Literal | Style::Folded)
            && value.alias_span().is_none();
        if !known || !plain {
            return Err(Refusal::NotAlone);
        }
        for node in [key, value] {
            parts.push(node.span().start as usize..node.span().end as usize);
        }
    }
    let anchored = item.anchor().is_some() || item.pairs().any(|(_, v)| v.anchor().is_some());
    let (Some(first), Some(last)) = (
        parts.iter().map(|p| p.start).min(),
        parts.iter().map(|p| p.end).max(),
    ) else {
        return Err(Refusal::NotThere);
    };
    let start = text
        .get(..first)
        .and_then(|t| t.rfind('\n'))
        .map_or(0, |n| n + 1);
    let end = text
        .get(last..)
        .and_then(|t| t.find('\n'))
        .map_or(text.len(), |n| last + n + 1);
    parts.sort_by_key(|p| p.start);
    // What is left of the lines without keys and values.
    let mut rest = String::new();
    let mut cursor = start;
    for part in parts {
        rest.push_str(text.get(cursor..part.start).unwrap_or("?"));
        cursor = part.end;
    }
    rest.push_str(text.get(cursor..end).unwrap_or("?"));
    let structure = rest.trim_start().starts_with('-')
        && rest.matches('-').count() == 1
        && rest
            .chars()
            .all(|c| c.is_ascii_whitespace() || matches!(c, '-' | ':' | '{' | '}' | ','));
    if anchored || !structure {
        return Err(Refusal::NotAlone);
    }
    Ok(Edit {
        range: (start, end),
        replacement: String::new(),
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

#[cfg(test)]
#[expect(clippy::string_slice, reason = "tests cut where they know the text")]
mod tests {
    use super::*;

    /// A fix at the first place of `mark`.
    fn fix(text: &str, mark: &str, change: Change) -> Fix {
        let at = text.find(mark).unwrap();
        let line_start = text[..at].rfind('\n').map_or(0, |n| n + 1);
        Fix {
            check: "c".into(),
            causes: &["d"],
            deployment: String::new(),
            worker: String::new(),
            place: model::Place {
                file: "f".into(),
                line: u32::try_from(text[..at].matches('\n').count() + 1).unwrap(),
                column: u32::try_from(text[line_start..at].chars().count() + 1).unwrap(),
                text: "".into(),
                mark: (0, 0),
            },
            change,
        }
    }

    fn value(text: &str, mark: &str) -> Result<String, Refusal> {
        let change = Change::Value {
            name: "UCX_TLS",
            from: "rc, tcp".into(),
            to: "rc,tcp".into(),
        };
        edits(text, &fix(text, mark, change)).map(|e| apply(text, &e).unwrap())
    }

    fn renamed(text: &str, mark: &str) -> Result<String, Refusal> {
        let change = Change::Rename {
            from: "UCX_TRESH".into(),
            to: "UCX_RNDV_THRESH",
        };
        edits(text, &fix(text, mark, change)).map(|e| apply(text, &e).unwrap())
    }

    #[test]
    fn values() {
        for (text, mark) in [
            ("a: rc, tcp # x\n", "rc, tcp"),
            ("é: {ü: \"rc, tcp\"}\n", "\"rc, tcp\""),
            ("a: &x 'rc, tcp'\nb: *x\n", "'rc, tcp'"),
            ("a: \"rc,\\x20tcp\"\n", "\"rc"),
            ("a: |\n  export UCX_TLS='rc, tcp'\n", "UCX_TLS"),
            ("a: >-\n  export \"UCX_TLS=rc, tcp\"; b\n", "\"UCX_TLS"),
            ("{\"a\": \"rc, tcp\"}", "\"rc, tcp\""),
        ] {
            let new = value(text, mark).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(
                new,
                text.replace("rc, tcp", "rc,tcp")
                    .replace("rc,\\x20tcp", "rc,tcp")
            );
        }
        for (text, mark) in [
            // Another text, another place, a text over several lines, a part of a longer text.
            ("a: rc, tcp,sm\n", "rc, tcp"),
            ("a: 'rc, tcp'\n", "rc, tcp"),
            ("a: \"rc,\n  tcp\"\n", "\"rc"),
            ("a: |\n  export UCX_TLS='rc, tcp,sm'\n", "UCX_TLS"),
            ("a: |\n  export XUCX_TLS='rc, tcp'\n", "XUCX_TLS"),
            ("a: \"export UCX_TLS='rc, tcp'\"\n", "UCX_TLS"),
            ("a: [rc, tcp]\n", "rc"),
            ("a: rc, tcp\nb: [\n", "rc, tcp"),
        ] {
            assert_eq!(value(text, mark), Err(Refusal::NotThere), "{text}");
        }
    }

    #[test]
    fn names() {
        for (text, mark) in [
            ("- name: UCX_TRESH\n  value: inf\n", "inf"),
            ("- value: inf\n  name: 'UCX_TRESH'\n", "inf"),
            ("- {value: inf, name: UCX_TRESH}\n", "inf"),
            ("- name: UCX_TRESH\n", "UCX_TRESH"),
            (
                "- name: UCX_TRESH\n  valueFrom:\n    fieldRef: {fieldPath: x}\n",
                "x}",
            ),
            ("UCX_TRESH: inf\n", "inf"),
            ("UCX_TRESH: inf\n", "UCX_TRESH"),
            ("a: |\n  export UCX_TRESH=1\n", "UCX_TRESH"),
        ] {
            let new = renamed(text, mark).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            assert_eq!(new, text.replace("UCX_TRESH", "UCX_RNDV_THRESH"));
        }
        // Only the entry at the place, and the other one of the same name not.
        let text = "- name: UCX_TRESH\n  value: inf\n- name: UCX_TRESH\n  value: other\n";
        assert_eq!(
            renamed(text, "other").unwrap(),
            "- name: UCX_TRESH\n  value: inf\n- name: UCX_RNDV_THRESH\n  value: other\n"
        );
        for text in [
            "- name: UCX_TRESH\n  value: inf\na: $UCX_TRESH\n",
            "a: echo ${UCX_TRESH:-1}\nUCX_TRESH: inf\n",
            "a: $(UCX_TRESH)\nUCX_TRESH: inf\n",
        ] {
            assert!(renamed(text, "inf").is_err(), "{text}");
        }
        assert_eq!(
            renamed("a: |\n  export UCX_TRESHX=1\n", "UCX_TRESH"),
            Err(Refusal::NotThere)
        );
    }

    fn removed(text: &str, mark: &str) -> Result<String, Refusal> {
        let change = Change::Remove {
            name: "NIXL_SKIP_TOPOLOGY_CHECK".into(),
        };
        let text = text.replace('D', "NIXL_SKIP_TOPOLOGY_CHECK");
        edits(&text, &fix(&text, mark, change)).map(|e| apply(&text, &e).unwrap())
    }

    #[test]
    fn entries_are_removed_with_their_lines() {
        for (text, mark, left) in [
            (
                "e:\n- name: A\n  value: b\n# about\n- name: D\n  value: off\n- name: C\n",
                "off",
                "e:\n- name: A\n  value: b\n# about\n- name: C\n",
            ),
            (
                "e:\n  - value: 'off'\n    name: \"D\"\n  - name: C\n",
                "'off",
                "e:\n  - name: C\n",
            ),
            (
                "e:\r\n- name: C\r\n- name: D\r\n  value: off\r\n",
                "off",
                "e:\r\n- name: C\r\n",
            ),
            (
                "e:\n- name: C\n- {name: D, value: off}",
                "off",
                "e:\n- name: C\n",
            ),
            ("e:\n- name: C\n- name: D\n", "NIXL", "e:\n- name: C\n"),
        ] {
            assert_eq!(removed(text, mark).as_deref(), Ok(left), "{text}");
        }
        for (text, mark, why) in [
            (
                "e:\n- name: C\n- name: D # why\n  value: off\n",
                "off",
                Refusal::NotAlone,
            ),
            (
                "e:\n- name: C\n- name: D\n  # why\n  value: off\n",
                "off",
                Refusal::NotAlone,
            ),
            (
                "e:\n- name: C\n- &x\n  name: D\n  value: off\n",
                "off",
                Refusal::NotAlone,
            ),
            (
                "e:\n- name: C\n- name: D\n  value: &x off\n",
                "off",
                Refusal::NotAlone,
            ),
            (
                "e:\n- name: C\n- name: D\n  value: >-\n    off\n",
                "NIXL",
                Refusal::NotAlone,
            ),
            ("e:\n- name: D\n  value: off\n", "off", Refusal::Last),
            (
                "e: [{name: C}, {name: D, value: off}]\n",
                "off",
                Refusal::NotThere,
            ),
            ("e: {D: off}\n", "off", Refusal::NotThere),
            (
                "e:\n- name: C\n- name: D\n  value: off\nr: echo $D\n",
                "off",
                Refusal::Named,
            ),
            (
                "e:\n- name: C\n- name: D\n  value: off\n# D=0\n",
                "off",
                Refusal::Named,
            ),
        ] {
            assert_eq!(removed(text, mark), Err(why), "{text}");
        }
        // Both roles have it, and only one entry is asked for.
        let text =
            "p:\n- name: C\n- name: D\n  value: off\nd:\n- name: C\n- name: D\n  value: on\n";
        assert_eq!(removed(text, "on\n").unwrap().matches("NIXL").count(), 1);
    }

    #[test]
    fn edits_that_overlap_are_refused() {
        let edit = |a, b| Edit {
            range: (a, b),
            replacement: "x".into(),
        };
        assert_eq!(
            apply("abcdef", &[edit(3, 4), edit(0, 1)]).unwrap(),
            "xbcxef"
        );
        assert_eq!(apply("abcdef", &[edit(0, 2), edit(1, 3)]), None);
        assert_eq!(apply("é", &[edit(1, 2)]), None);
        assert_eq!(apply("a", &[edit(1, 9)]), None);
    }

    /// Whatever the text and the place: no crash, and an edit removes exactly the text that it is about.
    #[test]
    fn mutated_texts() {
        let seed = "é:\n- {name: UCX_TRESH, value: \"rc, tcp\"} # check-interconnect: ignore[x] y\n- name: UCX_TRESH\n  value: &a 'rc, tcp'\nb: *a\nc: |\n  # check-interconnect: ignore[x] y\n  export UCX_TLS=\"rc, tcp\" \\\n  UCX_TRESH=1\n---\n\"d\": >\n  UCX_TRESH=\n";
        let mut state = 7_u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        for _ in 0..3000 {
            let mut chars: Vec<char> = seed.chars().collect();
            for _ in 0..random(4) {
                let at = random(chars.len());
                match random(3) {
                    0 => {
                        chars.remove(at);
                    }
                    1 => chars.insert(
                        at,
                        ['\n', '"', '\'', '{', ':', '\r', ' ', '|', '#'][random(9)],
                    ),
                    _ => chars.truncate(at.max(1)),
                }
            }
            let text: String = chars.into_iter().collect();
            crate::suppress::scan(&"f".into(), &text);
            for change in [
                Change::Rename {
                    from: "UCX_TRESH".into(),
                    to: "UCX_RNDV_THRESH",
                },
                Change::Value {
                    name: "UCX_TLS",
                    from: "rc, tcp".into(),
                    to: "rc,tcp".into(),
                },
            ] {
                let mut fix = fix("x", "x", change.clone());
                fix.place.line = u32::try_from(random(14)).unwrap();
                fix.place.column = u32::try_from(random(40)).unwrap();
                let Ok(edits) = edits(&text, &fix) else {
                    continue;
                };
                let new = apply(&text, &edits);
                for edit in &edits {
                    let old = &text[edit.range.0..edit.range.1];
                    assert!(old == "UCX_TRESH" || old == "rc, tcp", "{old:?} in {text}");
                }
                assert!(new.is_some());
                crate::diff::diff("f", &text, &edits);
            }
        }
    }
}
