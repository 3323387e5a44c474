//! Dumps of `/sys` and `/proc`: `path:value` as `grep -r` prints it, `path: value`, `path=value`, `path -> target`,
//! `==> path <==` as `head` prints it, and `cat` of one file.

use std::collections::BTreeMap;

use model::Observation;
use model::observation::{Completeness, Tool};

use super::{Kind, Names};
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::sysfs;
use crate::text::is_name;

pub(crate) const KIND: Kind = Kind {
    tool: Tool::SysfsDump,
    programs: &["cat", "grep", "head"],
    command: |command| single(command).is_some() || folder(command),
    starts: |line, _| entry(line).is_some() || caption(line).is_some() || comment(line),
    open: |command| {
        Box::new(Dump {
            file: command.and_then(single),
            whole: command.is_none_or(folder),
            names: Names::default(),
            commented: false,
            collected: BTreeMap::new(),
        })
    },
};

struct Dump {
    /// The file whose lines follow.
    file: Option<String>,
    whole: bool,
    names: Names,
    commented: bool,
    /// Files of several lines, which only make sense together.
    collected: BTreeMap<String, (u32, String)>,
}

/// Bytes of one file, and files, that are collected.
const MAX_COLLECTED: usize = 64 * 1024;
const MAX_FILES: usize = 1024;

/// The one file that a command prints.
fn single(command: &Command) -> Option<String> {
    let mut paths = command
        .arguments
        .iter()
        .filter(|a| a.starts_with("/sys/") || a.starts_with("/proc/"));
    let path = paths.next()?;
    let more = paths.next().is_some();
    let other = path == "/proc/modules" || path.ends_with("/limits") || path.contains('*');
    let recursive = command
        .arguments
        .iter()
        .any(|a| a.starts_with('-') && a.contains(['r', 'R']));
    (!more && !other && !recursive && command.program != "find").then(|| path.clone())
}

/// Whether a command prints all of `/sys/class/infiniband`.
fn folder(command: &Command) -> bool {
    command
        .arguments
        .iter()
        .any(|a| a.starts_with("/sys/class/infiniband"))
}

enum Entry<'a> {
    Value(&'a str, &'a str),
    Link(&'a str, &'a str),
}

/// Whether a colon belongs to a PCI address within the path.
fn in_address(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or_default();
    let folder = parts.next().unwrap_or_default();
    if matches!(folder, "gids" | "types" | "ndevs" | "pkeys" | "ports") {
        return false;
    }
    let digits = last.strip_prefix("pci").unwrap_or(last);
    let mut groups = digits.split(':');
    let domain = groups.next().unwrap_or_default();
    (4..=8).contains(&domain.len())
        && domain.chars().all(|c| c.is_ascii_hexdigit())
        && groups.all(|g| g.len() == 2 && g.chars().all(|c| c.is_ascii_hexdigit()))
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let text = line.trim();
    let text = text.strip_prefix("# ").unwrap_or(text);
    if !(text.starts_with("/sys/") || text.starts_with("/proc/")) {
        return None;
    }
    if let Some((path, target)) = text.split_once(" -> ")
        && !path.contains(' ')
    {
        return Some(Entry::Link(path, target.trim()));
    }
    let at = text
        .char_indices()
        .find(|(at, c)| match c {
            ':' => !text.get(..*at).is_some_and(in_address),
            '=' | ' ' | '\t' => true,
            _ => false,
        })
        .map(|(at, _)| at)?;
    let (path, rest) = text.split_at_checked(at)?;
    let value = rest.trim_start_matches([':', '=']).trim();
    // `path = value` and `path : value`.
    let value = if rest.starts_with([' ', '\t']) {
        value.trim_start_matches([':', '=']).trim()
    } else {
        value
    };
    Some(Entry::Value(path, value))
}

/// `==> /sys/… <==`
fn caption(line: &str) -> Option<&str> {
    let path = line.trim().strip_prefix("==>")?.strip_suffix("<==")?.trim();
    (path.starts_with("/sys/") || path.starts_with("/proc/")).then_some(path)
}

/// What a dump says about entries that it leaves out.
fn comment(line: &str) -> bool {
    line.trim().starts_with("# left out:")
}

/// A value that is the words of an error.
fn is_error(value: &str) -> bool {
    [
        "Invalid argument",
        "Permission denied",
        "No such file",
        "Operation not permitted",
        "No such device",
        "Input/output error",
        "Is a directory",
        "Operation not supported",
    ]
    .iter()
    .any(|words| value.contains(words))
}

/// Files whose lines only make sense together.
fn needs_all(path: &str) -> bool {
    path.ends_with("/information")
}

impl Dump {
    fn value(&mut self, path: &str, value: &str, at: At<'_>, out: &mut Observation) {
        if is_error(value) {
            return;
        }
        if let Some(rest) = path.strip_prefix("/sys/class/infiniband/")
            && let Some(name) = rest.split('/').next()
            && is_name(name)
        {
            self.names.add(name);
        }
        if needs_all(path) {
            if self.collected.len() < MAX_FILES || self.collected.contains_key(path) {
                let (_, text) = self
                    .collected
                    .entry(path.to_owned())
                    .or_insert_with(|| (at.line, String::new()));
                if text.len() < MAX_COLLECTED {
                    text.push_str(value);
                    text.push('\n');
                }
            }
            return;
        }
        sysfs::read_into(path, value, &at.origin(), out);
    }
}

impl Parser for Dump {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if comment(line) {
            self.commented = true;
            return true;
        }
        if let Some(path) = caption(line) {
            self.file = Some(path.to_owned());
            return true;
        }
        match entry(line) {
            Some(Entry::Value(path, value)) => {
                self.value(path, value, at, out);
                true
            }
            Some(Entry::Link(path, target)) => {
                if let Some(name) = path.strip_prefix("/sys/class/infiniband/")
                    && is_name(name)
                {
                    self.names.add(name);
                }
                sysfs::link_into(path, target, &at.origin(), out);
                true
            }
            None => match self.file.clone() {
                Some(path) => {
                    if path.starts_with("/sys/") && !path.ends_with("/uevent") {
                        // These files have one line.
                        self.file = None;
                    }
                    self.value(&path, line.trim(), at, out);
                    true
                }
                None => {
                    line.starts_with("grep: /sys/")
                        || line.starts_with("cat: ")
                        || line.starts_with("grep: /proc/")
                }
            },
        }
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        for (path, (line, text)) in std::mem::take(&mut self.collected) {
            let mut origin = at.origin();
            origin.line = Some(line);
            sysfs::read_into(&path, &text, &origin, out);
        }
        if !self.names.is_empty() || self.commented {
            self.names.list(at, !self.whole, None, out);
        }
        Completeness::Whole
    }
}
