//! What is said of many pods with other numbers in it becomes one sentence.
//!
//! `uverbs3 is here` of one pod and `uverbs5 is here` of the next are the same news: a device plugin hands out another
//! card to each. Words with digits that differ are told by what they have in common (`uverbs*`). Only for people and
//! where results are folded: `jsonl` has each one as it is.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use model::{CheckResult, Reason, Status};

/// Different sentences of one shape that are told as they are, where there is something to do.
const FINDINGS: usize = 6;
/// The same where there is nothing to do.
const OTHERS: usize = 2;

/// The text of a result, as it is told: sentence, note and fix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Told<'r> {
    pub(crate) detail: Cow<'r, str>,
    pub(crate) note: Option<Cow<'r, str>>,
    /// Words in it stand for others.
    pub(crate) merged: bool,
}

impl<'r> Told<'r> {
    fn as_is(result: &'r CheckResult) -> Self {
        Self {
            detail: Cow::Borrowed(&result.detail),
            note: result.note.as_deref().map(Cow::Borrowed),
            merged: false,
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Shape<'r> {
    group: Option<usize>,
    name: &'r str,
    status: Status,
    cause: Option<&'r str>,
    reason: Option<Reason>,
    detail: String,
    note: String,
}

/// How each result is told.
pub(crate) fn told<'r>(results: &[(&'r CheckResult, Option<usize>)]) -> Vec<Told<'r>> {
    let mut shapes: HashMap<Shape<'r>, Vec<usize>> = HashMap::new();
    for (at, (result, group)) in results.iter().enumerate() {
        if result.subject.pod.is_none() {
            continue;
        }
        let shape = Shape {
            group: *group,
            name: &result.name,
            status: result.status,
            cause: result.cause,
            reason: result.reason,
            detail: shape(&result.detail),
            note: result.note.as_deref().map(shape).unwrap_or_default(),
        };
        shapes.entry(shape).or_default().push(at);
    }
    let mut told: Vec<Told<'r>> = results.iter().map(|(r, _)| Told::as_is(r)).collect();
    for (shape, members) in shapes {
        let most = match shape.status {
            Status::Fail | Status::Warn => FINDINGS,
            Status::Ok | Status::Skipped => OTHERS,
        };
        let of = |at: &usize| results.get(*at).map(|(result, _)| *result);
        let details: BTreeSet<&str> = members.iter().filter_map(of).map(|r| &*r.detail).collect();
        let notes: BTreeSet<&str> = members
            .iter()
            .filter_map(of)
            .filter_map(|r| r.note.as_deref())
            .collect();
        if details.len() <= most && notes.len() <= most {
            continue;
        }
        let detail = merged(&details);
        let note = (!notes.is_empty()).then(|| merged(&notes));
        for at in members {
            if let Some(entry) = told.get_mut(at) {
                entry.detail = Cow::Owned(detail.clone());
                entry.note = note.clone().map(Cow::Owned);
                entry.merged = true;
            }
        }
    }
    told
}

/// Words and what stands between them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'))
        .flat_map(|part| {
            let end = part
                .trim_end_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')'))
                .len();
            let (word, rest) = part.split_at_checked(end).unwrap_or((part, ""));
            [word, rest]
        })
        .filter(|word| !word.is_empty())
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit())
}

/// The text with a sign for each word that has a digit.
fn shape(text: &str) -> String {
    shape_without(text, &[])
}

/// The same, with the sign for these names as well.
pub(crate) fn shape_without(text: &str, names: &[&str]) -> String {
    let stands_for_another = |word: &str| {
        let bare = word.trim_matches(['\'', '"', '`', ':', '.']);
        has_digit(word) || names.contains(&bare)
    };
    words(text)
        .map(|word| {
            if stands_for_another(word) {
                "\u{0}"
            } else {
                word
            }
        })
        .collect()
}

/// Texts of one shape in one.
fn merged(texts: &BTreeSet<&str>) -> String {
    let mut all: Vec<_> = texts.iter().map(|text| words(text)).collect();
    let mut out = String::new();
    loop {
        let here: BTreeSet<&str> = all.iter_mut().filter_map(Iterator::next).collect();
        let Some(first) = here.first() else {
            return out;
        };
        if here.len() == 1 {
            out.push_str(first);
            continue;
        }
        let common = here.iter().fold(first.len(), |len, word| {
            first
                .bytes()
                .zip(word.bytes())
                .take(len)
                .take_while(|(a, b)| a == b)
                .count()
        });
        // A number is not told by its first digits.
        let common = first.get(..common).unwrap_or_default();
        out.push_str(common.trim_end_matches(|c: char| c.is_ascii_digit()));
        out.push('*');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_differ_keep_what_they_have_in_common() {
        let texts: BTreeSet<&str> = [
            "1 node is here: uverbs3 (a)",
            "1 node is here: uverbs31 (a)",
        ]
        .into();
        assert_eq!(merged(&texts), "1 node is here: uverbs* (a)");
        let cards: BTreeSet<&str> = ["mlx5_0:1 is up", "mlx5_1:1 is up"].into();
        assert_eq!(merged(&cards), "mlx5_* is up");
        let shapes: BTreeSet<String> = texts.iter().map(|t| shape(t)).collect();
        assert_eq!(shapes.len(), 1);
        assert_ne!(shape("one"), shape("two"));
        // Names as whole words: a short one is a part of many others.
        assert_eq!(
            shape_without("'a' has a name (b-decode)", &["b-decode", "b"]),
            "'a' has a name (\u{0})"
        );
    }
}
