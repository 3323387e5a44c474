//! The list grammar that UCX_TLS and the UCX_*_DEVICES variables share.
//!
//! ucx:src/ucs/config/parser.c:1111: `strtok` on `,`, so empty items vanish and nothing is trimmed; one leading `^`
//! turns the whole list into a deny list; `all` is special only as the first item, and then it must be the only one.

use std::fmt;

/// UCX keeps this many items and drops the rest (ucx:src/ucs/config/parser.c).
pub const MAX_ITEMS: usize = 128;

/// What a list does with the names in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything is allowed; there are no names.
    All,
    /// Only the names are allowed.
    Allow,
    /// Everything but the names is allowed.
    Negate,
}

/// A parsed list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList<'a> {
    /// What the names mean.
    pub mode: Mode,
    /// The items as written, without the leading `^`.
    pub names: Vec<&'a str>,
}

/// `all` is the first item of a longer list: UCX refuses to read its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllNotAlone;

impl fmt::Display for AllNotAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`all` must be the only item")
    }
}

impl std::error::Error for AllNotAlone {}

impl<'a> AllowList<'a> {
    /// Reads a list in the grammar of UCX 1.11 and later.
    pub fn parse(value: &'a str) -> Result<Self, AllNotAlone> {
        let (negate, rest) = split_negation(value);
        let names: Vec<&str> = items(rest).take(MAX_ITEMS).collect();
        if names.first() == Some(&"all") {
            if names.len() > 1 {
                return Err(AllNotAlone);
            }
            return Ok(Self {
                mode: Mode::All,
                names: Vec::new(),
            });
        }
        let mode = if negate { Mode::Negate } else { Mode::Allow };
        Ok(Self { mode, names })
    }
}

/// The items of a comma list, as `strtok` gives them.
pub fn items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').filter(|item| !item.is_empty())
}

/// Whether the list starts with `^`, and what follows.
pub fn split_negation(value: &str) -> (bool, &str) {
    value
        .strip_prefix('^')
        .map_or((false, value), |rest| (true, rest))
}

/// Whether a value is filled in only at run time, so that nothing can be said about it: `$VAR`, `$(cmd)`, `{{ ... }}`.
pub fn is_dynamic(value: &str) -> bool {
    value.contains('$') || value.contains("{{") || value.contains('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(value: &str) -> (Mode, Vec<&str>) {
        let list = AllowList::parse(value).unwrap();
        (list.mode, list.names)
    }

    #[test]
    fn reads_allow_and_deny_lists() {
        assert_eq!(parsed("a,,b,"), (Mode::Allow, vec!["a", "b"]));
        assert_eq!(parsed("^a,^b"), (Mode::Negate, vec!["a", "^b"]));
        assert_eq!(parsed("a, b"), (Mode::Allow, vec!["a", " b"]));
        assert_eq!(parsed(""), (Mode::Allow, vec![]));
        assert_eq!(parsed("^"), (Mode::Negate, vec![]));
    }

    #[test]
    fn all_is_special_only_in_front() {
        assert_eq!(parsed("all"), (Mode::All, vec![]));
        assert_eq!(parsed("^all"), (Mode::All, vec![]));
        assert_eq!(parsed("tcp,all"), (Mode::Allow, vec!["tcp", "all"]));
        assert_eq!(AllowList::parse("all,tcp"), Err(AllNotAlone));
    }

    #[test]
    fn knows_values_that_are_filled_in_later() {
        assert!(is_dynamic("${HCAS}") && is_dynamic("{{ .Values.tls }}") && is_dynamic("$(pick)"));
        assert!(!is_dynamic("^mlx5_0:1"));
    }
}
