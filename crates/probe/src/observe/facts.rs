//! The records of a stream, by path.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use model::Reason;
use model::observation::{Fact, Missing, Origin, Provenance, Tool, Unanswered};

use crate::stream::{Gap, Kind, Record, Stream};

type Lines<'s> = Vec<&'s str>;

/// Look-ups into a stream.
pub(super) struct Facts<'s> {
    by_kind: BTreeMap<Kind, BTreeMap<&'s str, Lines<'s>>>,
    gap: Option<Gap>,
}

impl<'s> Facts<'s> {
    pub(super) fn new(stream: &'s Stream) -> Self {
        let mut by_kind: BTreeMap<Kind, BTreeMap<&'s str, Lines<'s>>> = BTreeMap::new();
        for Record { kind, key, text } in &stream.records {
            let lines = by_kind.entry(*kind).or_default();
            lines.entry(key).or_default().push(text);
        }
        Self {
            by_kind,
            gap: stream.gap(),
        }
    }

    fn all(&self, kind: Kind, key: &str) -> &[&'s str] {
        self.by_kind
            .get(&kind)
            .and_then(|keys| keys.get(key))
            .map_or(&[], Vec::as_slice)
    }

    fn first(&self, kind: Kind, key: &str) -> Option<&'s str> {
        self.all(kind, key).first().copied()
    }

    /// Lines of a file.
    pub(super) fn lines(&self, path: &str) -> &[&'s str] {
        self.all(Kind::File, path)
    }

    /// First line of a file, without blanks around it.
    pub(super) fn text(&self, path: &str) -> Option<&'s str> {
        self.first(Kind::File, path).map(str::trim)
    }

    /// Where a link leads.
    pub(super) fn link(&self, path: &str) -> Option<&'s str> {
        self.first(Kind::Link, path)
    }

    /// Paths that were listed.
    pub(super) fn listed(&self, key: &str) -> &[&'s str] {
        self.all(Kind::List, key)
    }

    /// Whether the rest of something was left out.
    pub(super) fn is_cut(&self, key: &str) -> bool {
        self.first(Kind::Cut, key).is_some()
    }

    /// What the script found out about a device node.
    pub(super) fn node(&self, path: &str) -> Option<&'s str> {
        self.first(Kind::Node, path)
    }

    /// Device nodes that were looked at.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &'s str> {
        self.by_kind
            .get(&Kind::Node)
            .into_iter()
            .flat_map(|keys| keys.keys().copied())
    }

    /// Whether a part of the script was reached: a later part can be named only then.
    pub(super) fn reached(&self, stage: &str) -> bool {
        self.first(Kind::Stage, stage).is_some()
    }

    /// Entries below a directory that have this file or link: names and paths.
    pub(super) fn children(&self, kind: Kind, directory: &str) -> Vec<(&'s str, &'s str)> {
        let Some(keys) = self.by_kind.get(&kind) else {
            return Vec::new();
        };
        keys.range::<str, _>((Bound::Included(directory), Bound::Unbounded))
            .map(|(key, _)| *key)
            .take_while(|key| key.starts_with(directory))
            .filter_map(|key| {
                let rest = key.strip_prefix(directory)?.strip_prefix('/')?;
                Some((rest.split('/').next()?, key))
            })
            .collect()
    }

    /// Names directly below a directory, each once, in order.
    pub(super) fn names(&self, kind: Kind, directory: &str) -> Vec<&'s str> {
        let mut names: Vec<_> = self
            .children(kind, directory)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        names.dedup();
        names
    }

    /// Properties `PREFIX/NAME` of a kind, with their texts.
    pub(super) fn entries(&self, kind: Kind, prefix: &str) -> Vec<(&'s str, &'s str)> {
        self.children(kind, prefix)
            .into_iter()
            .filter_map(|(name, key)| Some((name, self.first(kind, key)?)))
            .collect()
    }

    /// Where the links directly in a directory lead.
    pub(super) fn entries_of_links(&self, directory: &str) -> Vec<&'s str> {
        self.entries(Kind::Link, directory)
            .into_iter()
            .map(|(_, target)| target)
            .collect()
    }

    /// All texts of a key of a kind.
    pub(super) fn of(&self, kind: Kind, key: &str) -> &[&'s str] {
        self.all(kind, key)
    }

    /// All keys of a kind.
    pub(super) fn keys(&self, kind: Kind) -> impl Iterator<Item = &'s str> {
        self.by_kind
            .get(&kind)
            .into_iter()
            .flat_map(|keys| keys.keys().copied())
    }

    /// The first line of a file, understood by `read`, or why there is none.
    pub(super) fn fact<T>(&self, path: &str, read: impl FnOnce(&str) -> Option<T>) -> Fact<T> {
        match self.text(path) {
            Some(text) => match read(text) {
                Some(value) => Fact::seen(value, origin(path)),
                None => Fact::missing(Reason::Unreadable, format!("{path} holds something else")),
            },
            None => self.missing(path),
        }
    }

    /// The first line of a file as it is, without control characters.
    pub(super) fn string(&self, path: &str) -> Fact<String> {
        self.fact(path, |text| Some(printable(text)))
    }

    /// What a row `NAME: VALUE` of a file says.
    pub(super) fn row<T>(
        &self,
        path: &str,
        name: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Fact<T> {
        let found = self.lines(path).iter().zip(1_u32..).find_map(|(line, at)| {
            let rest = line.trim_start().strip_prefix(name)?.trim_start();
            Some((rest.strip_prefix(':').unwrap_or(rest).trim(), at))
        });
        match found {
            Some((text, at)) => match read(text) {
                Some(value) => Fact::seen(value, line_of(path, at)),
                None => Fact::missing(
                    Reason::Unreadable,
                    format!("the row {name} of {path} holds something else"),
                ),
            },
            None if self.lines(path).is_empty() => self.missing(path),
            None => Fact::missing(Reason::NotVisible, format!("{path} has no row {name}")),
        }
    }

    /// Why a file gave nothing.
    pub(super) fn missing<T>(&self, path: &str) -> Fact<T> {
        let Missing { reason, why } = self.why_missing(path);
        Fact::missing(reason, why)
    }

    /// Why a file gave nothing.
    pub(super) fn why_missing(&self, path: &str) -> Missing {
        let (reason, why) = match (self.first(Kind::None, path), &self.gap) {
            (Some("denied"), _) => (
                Reason::NoPermission,
                format!("reading {path} is not allowed"),
            ),
            (Some("unreadable"), _) => (Reason::Unreadable, format!("{path} cannot be read")),
            (Some("absent"), _) | (None, None) => {
                (Reason::NotVisible, format!("{path} is not there"))
            }
            (Some(other), _) => (
                Reason::NoTool,
                format!("{path} was not read: {}", printable(other)),
            ),
            // It may have been among what did not arrive.
            (None, Some(gap @ Gap::Stopped(_))) => (Reason::TimedOut, gap.to_string()),
            (None, Some(gap)) => (Reason::Unreadable, gap.to_string()),
        };
        Missing {
            reason,
            why: why.into(),
        }
    }

    /// Whether every record that was printed is here; the end may be missing.
    pub(super) fn nothing_lost(&self) -> bool {
        matches!(self.gap, None | Some(Gap::Stopped(_)))
    }

    /// Output of a tool that ran; empty where it printed nothing.
    pub(super) fn tool(&self, id: &str) -> Option<String> {
        self.first(Kind::Exit, id)?;
        let mut text = self.all(Kind::Tool, id).join("\n");
        text.push('\n');
        Some(text)
    }

    /// Whether a tool ended with exit code 0.
    pub(super) fn ended_well(&self, id: &str) -> bool {
        self.first(Kind::Exit, id) == Some("0")
    }

    /// Why a tool gave nothing, or not all.
    pub(super) fn tool_gap(&self, id: &str) -> Option<Unanswered> {
        if let Some(why) = self.first(Kind::None, id) {
            return Some(match why {
                "no time left" => Unanswered::NoTimeLeft,
                "no head" => Unanswered::Unbounded,
                "absent" => Unanswered::Absent,
                other => Unanswered::LeftOut(printable(other)),
            });
        }
        match self.first(Kind::Exit, id) {
            Some("timeout") => Some(Unanswered::Hangs),
            Some(_) if self.is_cut(id) => Some(Unanswered::TooMuch),
            Some(_) => None,
            None => self
                .gap
                .as_ref()
                .map(|gap| Unanswered::Lost(gap.to_string())),
        }
    }
}

/// Where a file of the machine was read.
pub(super) fn origin(path: &str) -> Origin {
    Origin::whole(&provenance(path))
}

/// A line of a file of the machine.
pub(super) fn line_of(path: &str, line: u32) -> Origin {
    Origin::line(&provenance(path), line)
}

fn provenance(path: &str) -> Arc<Provenance> {
    let tool = match path.split('/').nth(1) {
        Some("sys") => Tool::Sys,
        Some("proc") => Tool::Proc,
        Some("dev") => Tool::Dev,
        _ => Tool::File,
    };
    Arc::new(Provenance {
        file: printable(path),
        tool,
        section: 0,
        place: None,
        command: None,
    })
}

/// Without control characters; newlines become blanks.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
