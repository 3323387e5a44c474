//! `# check-interconnect: ignore[NAME] reason` in a recipe.
//!
//! A suppression stands behind a line or on lines of its own directly above it. An environment entry that takes two
//! lines (`- name:` and `value:`) counts as one, since people write above the entry and findings point at the value.
//!
//! YAML knows no comments inside a block scalar, a shell does: there a `#` that starts a line or follows white
//! space counts as well. Since such a text may be anything, a suppression in it is looked at only where a finding
//! stands in its reach, and says nothing otherwise.

use std::sync::Arc;

use model::{CheckResult, Place};
use yaml::{Limits, LineIndex, Node, Parsed, Step, Style};

use crate::causes::{self, CAUSES};
use crate::result;

/// What every suppression starts with.
const MARKER: &str = "check-interconnect:";
/// The name of results about suppressions.
pub(crate) const NAME: &str = "policy/suppression";
/// Nodes of one document that are looked at for block scalars.
const BUDGET: u64 = 64_000_000;

/// One suppression.
#[derive(Debug, Clone)]
pub struct Suppression {
    /// Where it stands, with nothing else of its line.
    place: Place,
    /// Its lines and the ones that it is about.
    targets: Vec<u32>,
    body: Body,
    /// It stands in a block scalar.
    in_scalar: bool,
    /// A finding stands in its reach, whatever its name.
    in_reach: bool,
}

#[derive(Debug, Clone)]
enum Body {
    /// Names with whether they were needed, and the reason.
    Good(Vec<(String, bool)>, String),
    /// Not to be counted; why.
    Malformed(String),
}

/// Finds the suppressions of a text. Texts without the marker cost one search.
pub fn scan(path: &Arc<str>, text: &str) -> Vec<Suppression> {
    let mut found = Vec::new();
    if !text.contains(MARKER) {
        return found;
    }
    let lines = LineIndex::new(text);
    yaml::parse_each(text, &Limits::default(), &mut |parsed| {
        // What stands in a broken document has no findings to be about.
        let Parsed::Document(document) = parsed else {
            return;
        };
        let line_text = |line: u32| {
            let range = lines.line_range(line);
            text.get(range.start as usize..range.end as usize)
                .unwrap_or_default()
                .trim_end_matches(['\r', '\n'])
        };
        for comment in document.comments() {
            let (line, column) = lines.line_column(comment.span.start);
            add(
                path,
                comment.text,
                (line, column),
                comment.own_line,
                false,
                &line_text,
                &mut found,
            );
        }
        yaml::walk(document.root(), BUDGET, &mut |visit| {
            let node: Node<'_> = visit.node;
            if matches!(node.style(), Style::Literal | Style::Folded)
                && node.is_scalar()
                && node.raw_text().contains(MARKER)
            {
                let span = node.span();
                let first = lines.line_column(span.start).0;
                let last = lines.line_column(span.end).0;
                for line in first..=last {
                    let whole = line_text(line);
                    let Some((before, comment)) = shell_comment(whole) else {
                        continue;
                    };
                    let column = u32::try_from(before.chars().count())
                        .unwrap_or(u32::MAX)
                        .saturating_add(1);
                    let own = before.trim().is_empty();
                    add(
                        path,
                        comment,
                        (line, column),
                        own,
                        true,
                        &line_text,
                        &mut found,
                    );
                }
            }
            Step::Enter
        });
    });
    found.sort_by_key(|s| (s.place.line, s.place.column));
    // A scalar that an alias leads to is met twice.
    found.dedup_by_key(|s| (s.place.line, s.place.column));
    found
}

/// The comment of a line of a script, and what stands before it.
fn shell_comment(line: &str) -> Option<(&str, &str)> {
    let mut from = 0;
    while let Some(at) = line.get(from..)?.find('#').map(|at| at + from) {
        let before = line.get(..at)?;
        let comment = line.get(at + 1..)?;
        let starts = before.is_empty() || before.ends_with([' ', '\t']);
        if starts && comment.trim_start().starts_with(MARKER) {
            return Some((before, comment));
        }
        from = at + 1;
    }
    None
}

fn add<'t>(
    path: &Arc<str>,
    comment: &str,
    (line, column): (u32, u32),
    own_line: bool,
    in_scalar: bool,
    line_text: &dyn Fn(u32) -> &'t str,
    found: &mut Vec<Suppression>,
) {
    let Some(text) = comment.trim_start().strip_prefix(MARKER) else {
        return;
    };
    let Some(body) = body(text.trim()) else {
        return;
    };
    let mut targets = vec![line];
    let mut about = line;
    if own_line {
        // Further comments may stand between it and the line; nothing else may.
        while line_text(about).trim_start().starts_with('#') && about - line < 50 {
            about += 1;
            targets.push(about);
        }
    }
    if in_scalar && own_line {
        // No comment can stand inside a command that goes on over several lines.
        while line_text(about).ends_with('\\') && about - line < 200 {
            about += 1;
            targets.push(about);
        }
    }
    if is_entry_name(line_text(about)) && is_entry_value(line_text(about + 1)) {
        targets.push(about + 1);
    }
    let shown = format!("#{}", comment.trim_end());
    let lead = if own_line { "" } else { "… " };
    let mark = u32::try_from(lead.len()).unwrap_or(0);
    found.push(Suppression {
        place: Place {
            file: Arc::clone(path),
            line,
            column,
            mark: (
                mark,
                mark.saturating_add(u32::try_from(shown.len()).unwrap_or(u32::MAX)),
            ),
            text: format!("{lead}{shown}").into(),
        },
        targets,
        body,
        in_scalar,
        in_reach: false,
    });
}

/// `- name: X`, the first of two lines.
fn is_entry_name(line: &str) -> bool {
    line.trim_start()
        .strip_prefix('-')
        .is_some_and(|rest| rest.trim_start().starts_with("name:"))
}

fn is_entry_value(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("value:") || line.starts_with("valueFrom:")
}

/// Reads what follows the marker; `None` for a sentence that is none.
fn body(text: &str) -> Option<Body> {
    let word_end = text
        .find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
        .unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(word_end)?;
    let bracket = rest.trim_start().strip_prefix('[');
    if word != "ignore" && !rest.starts_with('[') {
        return None;
    }
    if word != "ignore" {
        return Some(Body::Malformed(format!(
            "'{word}' is no word of a suppression; expected ignore[NAME] reason"
        )));
    }
    let Some((names, reason)) = bracket.and_then(|b| b.split_once(']')) else {
        return Some(Body::Malformed(
            "expected the names of what is ignored in brackets: ignore[NAME] reason".to_owned(),
        ));
    };
    let names: Vec<(String, bool)> = names
        .split(',')
        .map(str::trim)
        .filter(|n| !n.is_empty())
        .map(|n| (n.to_owned(), false))
        .collect();
    if names.is_empty() {
        return Some(Body::Malformed(
            "no name in the brackets; expected a check (env/ucx-tls) or a cause (ucx-tls-tcp-only)"
                .to_owned(),
        ));
    }
    let reason = reason
        .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '-' | '–' | '—'))
        .trim_end()
        .to_owned();
    Some(Body::Good(names, reason))
}

/// All suppressions of a run.
#[derive(Debug, Default)]
pub(crate) struct Suppressions {
    list: Vec<Suppression>,
    /// Numbers of those that reach a line, by file and line.
    by_line: std::collections::HashMap<(Arc<str>, u32), Vec<usize>>,
}

impl Suppressions {
    pub(crate) fn new(list: Vec<Suppression>) -> Self {
        let mut by_line = std::collections::HashMap::<_, Vec<usize>>::new();
        for (index, suppression) in list.iter().enumerate() {
            for line in &suppression.targets {
                by_line
                    .entry((Arc::clone(&suppression.place.file), *line))
                    .or_default()
                    .push(index);
            }
        }
        Self { list, by_line }
    }

    /// The reason why a finding about these lines is suppressed, if it is.
    pub(crate) fn reason(&mut self, result: &CheckResult, lines: &[Place]) -> Option<String> {
        let mut found = None;
        for place in lines {
            let key = (Arc::clone(&place.file), place.line);
            for index in self.by_line.get(&key).into_iter().flatten() {
                let Some(suppression) = self.list.get_mut(*index) else {
                    continue;
                };
                suppression.in_reach = true;
                let Body::Good(names, reason) = &mut suppression.body else {
                    continue;
                };
                for (name, used) in names {
                    if *name == result.name || Some(name.as_str()) == result.cause {
                        *used = true;
                        if !reason.is_empty() && found.is_none() {
                            found = Some(reason.clone());
                        }
                    }
                }
            }
        }
        found
    }

    /// What is to be said about the suppressions themselves.
    pub(crate) fn problems(&self) -> Vec<CheckResult> {
        let mut results = Vec::new();
        for suppression in &self.list {
            if suppression.in_scalar && !suppression.in_reach {
                continue;
            }
            let place = &suppression.place;
            let mut say = |id: &str, detail: String, label: &str| {
                if let Some(cause) = CAUSES.iter().find(|c| c.id == id) {
                    results.push(result::wrong(NAME, cause, detail, place, label.to_owned()));
                }
            };
            match &suppression.body {
                Body::Malformed(why) => say(
                    "suppression-malformed",
                    format!("not a suppression: {why}"),
                    "not read",
                ),
                Body::Good(names, reason) => {
                    let listed: Vec<&str> = names.iter().map(|(n, _)| n.as_str()).collect();
                    if reason.is_empty() {
                        say(
                            "suppression-without-reason",
                            format!(
                                "ignore[{}] gives no reason, so it does not count",
                                listed.join(", ")
                            ),
                            "a reason is missing",
                        );
                    }
                    for (name, used) in names {
                        if !causes::suppressible().any(|known| known == name) {
                            say(
                                "suppression-unknown-name",
                                causes::unknown(name, causes::suppressible()),
                                "suppresses nothing",
                            );
                        } else if !used && !reason.is_empty() {
                            say(
                                "unused-suppression",
                                format!("no finding {name} on this line or the line below"),
                                "nothing to suppress here",
                            );
                        }
                    }
                }
            }
        }
        results
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Vec<(u32, Vec<u32>, bool)> {
        scan(&"f".into(), text)
            .into_iter()
            .map(|s| (s.place.line, s.targets, s.in_scalar))
            .collect()
    }

    #[test]
    fn reach() {
        assert!(scanned("a: 1 # plain\n").is_empty());
        assert_eq!(
            scanned("a: 1 # check-interconnect: ignore[x] y\nb: 2\n"),
            [(1, vec![1], false)]
        );
        assert_eq!(
            scanned("# check-interconnect: ignore[x] y\n# more\na: 1\nb: 2\n"),
            [(1, vec![1, 2, 3], false)]
        );
        assert_eq!(
            scanned("env:\n# check-interconnect: ignore[x] y\n- name: A\n  value: b\n"),
            [(2, vec![2, 3, 4], false)]
        );
        assert_eq!(
            scanned("# check-interconnect: ignore[x] y\n\na: 1\n"),
            [(1, vec![1, 2], false)]
        );
        assert_eq!(
            scanned(
                "run: |\n  # check-interconnect: ignore[x] y\n  export A=b\n  export C=d # check-interconnect: ignore[x] y\n"
            ),
            [(2, vec![2, 3], true), (4, vec![4], true)]
        );
        assert_eq!(
            scanned("run: |\n  # check-interconnect: ignore[x] y\n  a \\\n  b \\\n  c\n  d\n"),
            [(2, vec![2, 3, 4, 5], true)]
        );
        assert!(scanned("a: '# check-interconnect: ignore[x] y'\n").is_empty());
        assert_eq!(
            scanned("a: 1 # check-interconnect: ignore[x] y\r\nb: 2\r\n"),
            [(1, vec![1], false)]
        );
    }

    #[test]
    fn only_the_comment_is_kept() {
        let found = scan(
            &"f".into(),
            "token: s3cret # check-interconnect: ignore[x] y\n",
        );
        assert_eq!(&*found[0].place.text, "… # check-interconnect: ignore[x] y");
        assert_eq!(found[0].place.column, 15);
    }

    #[test]
    fn bodies() {
        let read = |text: &str| match body(text) {
            None => "none".to_owned(),
            Some(Body::Malformed(_)) => "malformed".to_owned(),
            Some(Body::Good(names, reason)) => format!(
                "{}|{reason}",
                names
                    .iter()
                    .map(|(n, _)| n.as_str())
                    .collect::<Vec<_>>()
                    .join("+")
            ),
        };
        for (text, wanted) in [
            ("ignore[a] why", "a|why"),
            ("ignore[a, b]: why not", "a+b|why not"),
            ("ignore [a] -- why", "a|why"),
            ("ignore[a]", "a|"),
            ("ignore[a] --", "a|"),
            ("ignore[]", "malformed"),
            ("ignore a why", "malformed"),
            ("ignore", "malformed"),
            ("disable[a] why", "malformed"),
            ("see https://example.com", "none"),
            ("", "none"),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }
}
