//! UCX_NET_DEVICES: which network devices a value keeps.
//!
//! ucx:src/ucp/core/ucp_context.c:659 (the variable), ucx:src/ucs/config/parser.c:829-935 (ranges). The variable filters
//! every network transport: RDMA devices are named `<ibdev>:<port>` (ucx:src/uct/ib/base/ib_device.c:1340), TCP ones by
//! interface name. The grammar changed in 1.21 (deny lists, device without port) and 1.22 (ranges).

use std::collections::BTreeSet;

use crate::ucx_allow_list::{
    AllNotAlone, AllowList, MAX_ITEMS, Mode, is_dynamic, items, split_negation,
};
use crate::version::UcxVersion;

/// A UCX_NET_DEVICES value read as one UCX release reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceList<'a> {
    mode: Mode,
    names: Vec<Name<'a>>,
    /// `mlx5_0` means all ports of mlx5_0 (from 1.21).
    bare_hca: bool,
}

/// One item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    Exact(&'a str),
    Range(Range<'a>),
}

/// `prefix[first-last]suffix`: one decimal range per item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range<'a> {
    prefix: &'a str,
    first: u64,
    last: u64,
    suffix: &'a str,
}

impl<'a> Range<'a> {
    fn parse(item: &'a str) -> Option<Self> {
        let (prefix, rest) = item.split_once('[')?;
        let (range, suffix) = rest.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        let brackets = |text: &str| text.contains(['[', ']']);
        if brackets(prefix) || brackets(suffix) {
            return None;
        }
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(Self {
            prefix,
            first,
            last,
            suffix,
        })
    }

    fn contains(&self, name: &str) -> bool {
        let digits = name
            .strip_prefix(self.prefix)
            .and_then(|rest| rest.strip_suffix(self.suffix));
        // UCX prints the numbers without leading zeros.
        digits
            .filter(|digits| *digits == "0" || !digits.starts_with('0'))
            .and_then(number)
            .is_some_and(|value| (self.first..=self.last).contains(&value))
    }

    fn count(&self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

/// A decimal number as `strtoul` reads it: too large a number is the largest.
fn number(digits: &str) -> Option<u64> {
    let decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    decimal.then(|| digits.parse().unwrap_or(u64::MAX))
}

impl Name<'_> {
    fn matches(&self, device: &str) -> bool {
        match self {
            Self::Exact(name) => *name == device,
            Self::Range(range) => range.contains(device),
        }
    }
}

impl<'a> DeviceList<'a> {
    /// Reads a value in the grammar of one release.
    pub fn parse(value: &'a str, version: UcxVersion) -> Result<Self, AllNotAlone> {
        if version <= UcxVersion::new(1, 20) {
            let names: Vec<&str> = items(value).take(MAX_ITEMS).collect();
            let all = names.contains(&"all");
            return Ok(Self {
                mode: if all { Mode::All } else { Mode::Allow },
                names: names.into_iter().map(Name::Exact).collect(),
                bare_hca: false,
            });
        }
        let list = AllowList::parse(value)?;
        let ranges = version >= UcxVersion::new(1, 22);
        Ok(Self {
            mode: list.mode,
            names: if ranges {
                expand(&list.names)
            } else {
                list.names.into_iter().map(Name::Exact).collect()
            },
            bare_hca: true,
        })
    }

    /// Whether the device stays: `mlx5_0:1` for an RDMA port, `eth0` for an interface.
    pub fn keeps(&self, device: &str) -> bool {
        let named = |device: &str| self.names.iter().any(|name| name.matches(device));
        let hit = || {
            named(device)
                || (self.bare_hca && device.split_once(':').is_some_and(|(hca, _)| named(hca)))
        };
        match self.mode {
            Mode::All => true,
            Mode::Allow => hit(),
            Mode::Negate => !hit(),
        }
    }
}

/// Reads ranges; they count as the items that they stand for, and the items after the last that fits are dropped.
fn expand<'a>(names: &[&'a str]) -> Vec<Name<'a>> {
    let mut left = MAX_ITEMS as u64;
    let mut expanded = Vec::with_capacity(names.len());
    for item in names {
        if left == 0 {
            break;
        }
        match Range::parse(item) {
            None => {
                expanded.push(Name::Exact(item));
                left -= 1;
            }
            Some(range) => {
                let count = range.count().min(left);
                let last = range.first.saturating_add(count - 1);
                expanded.push(Name::Range(Range { last, ..range }));
                left -= count;
            }
        }
    }
    expanded
}

/// Whether UCX keeps a device; None is the unset variable, which is `all`.
pub fn keeps(value: Option<&str>, device: &str, version: UcxVersion) -> Result<bool, AllNotAlone> {
    value.map_or(Ok(true), |value| {
        DeviceList::parse(value, version).map(|list| list.keeps(device))
    })
}

/// What an item of a value looks like, judged by its text alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// An RDMA device with a port: `mlx5_0:1`.
    Port {
        /// The device.
        hca: String,
        /// The port.
        port: String,
    },
    /// An RDMA device without a port: needs UCX 1.21.
    BareHca,
    /// A network interface: TCP only.
    Netdev,
    /// A range: needs UCX 1.22.
    Range,
    /// `all`.
    All,
    /// A glob, or the `=` or `^` inside a list that NCCL and others have: matches nothing.
    Pattern,
    /// Spaces or quotes around a name, which UCX keeps: matches nothing.
    SpaceOrQuote,
    /// Filled in at run time.
    Dynamic,
    /// A name of neither shape.
    Other,
}

/// An item and what it looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The item as written.
    pub text: &'a str,
    /// What it looks like.
    pub kind: ItemKind,
}

/// The items of a value, without a leading `^`, by their shape.
pub fn classify(value: &str) -> Vec<Item<'_>> {
    items(split_negation(value).1)
        .map(|text| Item {
            text,
            kind: kind(text),
        })
        .collect()
}

fn kind(item: &str) -> ItemKind {
    if is_dynamic(item) {
        return ItemKind::Dynamic;
    }
    if item.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'')) {
        return ItemKind::SpaceOrQuote;
    }
    if item == "all" {
        return ItemKind::All;
    }
    if Range::parse(item).is_some() {
        return ItemKind::Range;
    }
    if item.contains(['*', '?', '[', ']', '=', '^', ';']) {
        return ItemKind::Pattern;
    }
    match item.split_once(':') {
        Some((hca, port)) if !hca.is_empty() && number(port).is_some() => ItemKind::Port {
            hca: hca.to_owned(),
            port: port.to_owned(),
        },
        None if looks_like_hca(item) => ItemKind::BareHca,
        None if looks_like_netdev(item) => ItemKind::Netdev,
        _ => ItemKind::Other,
    }
}

/// How many different RDMA devices a value names; None where that depends on the host (`all`, deny lists, unset parts).
pub fn distinct_hcas(value: &str) -> Option<usize> {
    if split_negation(value).0 || is_dynamic(value) {
        return None;
    }
    let mut names: BTreeSet<String> = BTreeSet::new();
    for item in items(value) {
        match kind(item) {
            ItemKind::All | ItemKind::Dynamic => return None,
            ItemKind::Port { hca, .. } => {
                names.insert(hca);
            }
            ItemKind::BareHca => {
                names.insert(item.to_owned());
            }
            ItemKind::Range => names.extend(range_hcas(item)),
            _ => {}
        }
    }
    Some(names.len())
}

fn range_hcas(item: &str) -> Vec<String> {
    let Some(range) = Range::parse(item) else {
        return Vec::new();
    };
    // Of `mlx5_0:[1-2]` every element is the same device; an interface range (`eth[0-1]`) names none.
    let hca = |number: u64| {
        let name = format!("{}{number}{}", range.prefix, range.suffix);
        name.split_once(':')
            .map_or(name.as_str(), |(hca, _)| hca)
            .to_owned()
    };
    let limit = range.first.saturating_add(MAX_ITEMS as u64 - 1);
    (range.first..=range.last.min(limit))
        .map(hca)
        .filter(|name| looks_like_hca(name) || item.contains(':'))
        .collect()
}

/// Names that RDMA drivers and udev's rdma rules give.
const HCA_PREFIXES: &[&str] = &[
    "mlx5_", "mlx4_", "bnxt_re", "rdmap", "efa_", "irdma", "rocep", "roceo", "roces", "hfi1_",
    "qedr", "cxgb4_", "i40iw", "erdma_", "mana_", "rxe", "siw", "hns_", "ionic_", "xscale_",
];

const NETDEV_PREFIXES: &[&str] = &[
    "eth", "eno", "enp", "ens", "enx", "enP", "bond", "net", "docker", "cni", "veth", "br", "hsn",
    "wl", "team", "vlan", "ib",
];

/// Whether a name, with or without port, looks like an RDMA device.
pub fn looks_like_hca(name: &str) -> bool {
    HCA_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a name looks like a network interface. `ibp...` can be either, so it is not claimed.
pub fn looks_like_netdev(name: &str) -> bool {
    name == "lo"
        || (!name.starts_with("ibp")
            && NETDEV_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: [&str; 5] = ["mlx5_0:1", "mlx5_1:1", "mlx5_10:1", "eth0", "lo"];

    fn kept(value: &str, minor: u16) -> Vec<&'static str> {
        let list = DeviceList::parse(value, UcxVersion::new(1, minor)).unwrap();
        HOST.into_iter().filter(|name| list.keeps(name)).collect()
    }

    #[test]
    fn grammar_by_release() {
        assert_eq!(kept("mlx5_0", 20), [] as [&str; 0]);
        assert_eq!(kept("mlx5_0", 21), ["mlx5_0:1"]);
        assert_eq!(kept("^mlx5_0", 21), ["mlx5_1:1", "mlx5_10:1", "eth0", "lo"]);
        assert_eq!(kept("^eth0,lo", 20), ["lo"]);
        assert_eq!(kept("eth0,all", 20), HOST);
        assert_eq!(kept("eth0,all", 21), ["eth0"]);
        assert_eq!(kept("mlx5_[0-1]:1", 21), [] as [&str; 0]);
        assert_eq!(kept("mlx5_[0-1]:1", 22), ["mlx5_0:1", "mlx5_1:1"]);
        assert_eq!(kept("mlx5_[9-11]", 22), ["mlx5_10:1"]);
        assert_eq!(kept("mlx5_1[0-3],eth[0-1]", 22), ["mlx5_10:1", "eth0"]);
        assert_eq!(kept("mlx5_[1-0]", 22), [] as [&str; 0]);
        assert_eq!(kept("", 22), [] as [&str; 0]);
        assert_eq!(
            DeviceList::parse("all,eth0", UcxVersion::new(1, 21)),
            Err(AllNotAlone)
        );
    }

    #[test]
    fn huge_ranges_cost_nothing_and_count_as_items() {
        assert_eq!(kept("mlx5_[0-99999999999999999999]", 22), HOST[..3]);
        assert_eq!(kept("x[0-500],eth0", 22), [] as [&str; 0]);
        assert_eq!(kept("x[0-126],eth0", 22), ["eth0"]);
        assert_eq!(distinct_hcas("mlx5_[0-99999999999]:1"), Some(MAX_ITEMS));
    }

    #[test]
    fn items_by_shape() {
        let kinds: Vec<ItemKind> = classify(
            "^mlx5_0:1,mlx5_1,eth0,mlx5_[0-3]:1,mlx5_*,=mlx5_0, mlx5_2,${HCA},all,ibp59s0",
        )
        .into_iter()
        .map(|item| item.kind)
        .collect();
        let port = ItemKind::Port {
            hca: "mlx5_0".to_owned(),
            port: "1".to_owned(),
        };
        assert_eq!(
            kinds,
            [
                port,
                ItemKind::BareHca,
                ItemKind::Netdev,
                ItemKind::Range,
                ItemKind::Pattern,
                ItemKind::Pattern,
                ItemKind::SpaceOrQuote,
                ItemKind::Dynamic,
                ItemKind::All,
                ItemKind::Other,
            ]
        );
    }

    #[test]
    fn counts_different_devices() {
        assert_eq!(distinct_hcas("mlx5_0:1,mlx5_0:2,mlx5_1:1,eth0"), Some(2));
        assert_eq!(distinct_hcas("mlx5_[0-7]:1"), Some(8));
        assert_eq!(distinct_hcas("mlx5_0:[1-2]"), Some(1));
        assert_eq!(distinct_hcas("eth[0-1]"), Some(0));
        assert_eq!(distinct_hcas("^mlx5_0"), None);
        assert_eq!(distinct_hcas("all"), None);
        assert_eq!(distinct_hcas("$HCAS"), None);
    }
}
