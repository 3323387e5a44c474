//! NCCL_IB_HCA: which RDMA devices a value keeps.
//!
//! nccl:src/transport/net_ib/init.cc:316-372, src/misc/utils.cc:189-242: `[^][=]name[:port[:rail[:plane]]],...`, in this
//! order. Without `=` names are prefixes. An empty list keeps everything, `^` alone nothing. Nothing is trimmed.

use crate::version::NcclVersion;

/// NCCL reads this many devices of a list (nccl:src/transport/net_ib/init.cc:316).
const MAX_DEVICES: usize = 32;

/// A list as NCCL reads it: for NCCL_IB_HCA, and without ports for interface names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameList<'a> {
    negate: bool,
    exact: bool,
    entries: Vec<Entry<'a>>,
}

/// A name and the port that goes with it; None is any port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<'a> {
    name: &'a str,
    port: Option<i64>,
}

impl<'a> NameList<'a> {
    /// Reads a value of NCCL_IB_HCA.
    pub fn parse(value: &'a str, version: NcclVersion) -> Self {
        Self::parse_at_most(value, version, MAX_DEVICES)
    }

    pub(crate) fn parse_at_most(value: &'a str, version: NcclVersion, limit: usize) -> Self {
        let (negate, rest) = strip(value, '^');
        let (exact, rest) = strip(rest, '=');
        Self {
            negate,
            exact,
            entries: rest
                .split(',')
                .filter_map(|item| Entry::parse(item, version))
                .take(limit)
                .collect(),
        }
    }

    /// Whether a device stays; without a port, any port of it.
    pub fn keeps(&self, name: &str, port: Option<u16>) -> bool {
        let named = |entry: &Entry<'_>| {
            if self.exact {
                name == entry.name
            } else {
                name.starts_with(entry.name)
            }
        };
        let on_port = |entry: &Entry<'_>| match (port, entry.port) {
            (Some(port), Some(wanted)) => i64::from(port) == wanted,
            _ => true,
        };
        let hit = self.entries.is_empty()
            || self
                .entries
                .iter()
                .any(|entry| named(entry) && on_port(entry));
        hit != self.negate
    }

    /// Whether the names exclude.
    pub fn is_deny_list(&self) -> bool {
        self.negate
    }

    /// Whether the names must be equal, not only begin a device's name.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The names as written.
    pub fn names(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.entries.iter().map(|entry| entry.name)
    }
}

impl<'a> Entry<'a> {
    fn parse(item: &'a str, version: NcclVersion) -> Option<Self> {
        let (name, rest) = match item.split_once(':') {
            None => (item, None),
            Some((name, rest)) => (name, Some(rest)),
        };
        // From 2.30.7 rail and plane may follow, and an empty port is any port; before, it is port 0, which does not exist.
        let fields = version >= NcclVersion::new(2, 30, 7);
        let port = match rest {
            None => -1,
            Some(rest) => {
                let first = rest.split(':').next().unwrap_or("");
                if fields && first.is_empty() {
                    -1
                } else {
                    atoi(if fields { first } else { rest })
                }
            }
        };
        (!name.is_empty()).then_some(Self {
            name,
            port: (port != -1).then_some(port),
        })
    }
}

fn strip(text: &str, sign: char) -> (bool, &str) {
    text.strip_prefix(sign)
        .map_or((false, text), |rest| (true, rest))
}

/// C's `atoi`: text without digits is 0. A number that does not fit is the largest, which is no port either.
pub(crate) fn atoi(text: &str) -> i64 {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (sign, digits) = if let Some(rest) = text.strip_prefix('-') {
        (-1, rest)
    } else {
        (1, text.strip_prefix('+').unwrap_or(text))
    };
    digits
        .bytes()
        .map_while(|byte| char::from(byte).to_digit(10))
        .fold(0_i64, |value, digit| {
            value
                .saturating_mul(10)
                .saturating_add(sign * i64::from(digit))
        })
}

/// Whether NCCL keeps a device; None is the unset variable, which keeps everything.
pub fn keeps(value: Option<&str>, name: &str, port: Option<u16>, version: NcclVersion) -> bool {
    value.is_none_or(|value| NameList::parse(value, version).keeps(name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: NcclVersion = NcclVersion::new(2, 27, 7);
    const NEW: NcclVersion = NcclVersion::new(2, 30, 7);

    fn kept(value: &str, version: NcclVersion) -> Vec<&'static str> {
        let list = NameList::parse(value, version);
        ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_10"]
            .into_iter()
            .filter(|name| list.keeps(name, Some(1)))
            .collect()
    }

    #[test]
    fn names_are_prefixes_unless_exact() {
        assert_eq!(kept("mlx5_1", NEW), ["mlx5_1", "mlx5_10"]);
        assert_eq!(kept("=mlx5_1", NEW), ["mlx5_1"]);
        assert_eq!(kept("^mlx5_1", NEW), ["mlx5_0", "mlx5_2"]);
        assert_eq!(kept("^=mlx5_1", NEW), ["mlx5_0", "mlx5_2", "mlx5_10"]);
        assert_eq!(kept("=^mlx5_1", NEW), [] as [&str; 0]);
    }

    #[test]
    fn empty_lists_and_ports() {
        assert_eq!(kept("=", NEW).len(), 4);
        assert_eq!(kept("^", NEW), [] as [&str; 0]);
        assert_eq!(kept(":1", NEW).len(), 4);
        assert_eq!(kept("mlx5_0:", NEW), ["mlx5_0"]);
        assert_eq!(kept("mlx5_0:", OLD), [] as [&str; 0]);
        assert_eq!(kept("mlx5_0:1:0", OLD), ["mlx5_0"]);
        assert_eq!(kept("mlx5_0:x", NEW), [] as [&str; 0]);
        assert_eq!(kept("mlx5_0:99999999999999999999", NEW), [] as [&str; 0]);
        assert!(keeps(None, "mlx5_0", Some(1), NEW));
    }
}
