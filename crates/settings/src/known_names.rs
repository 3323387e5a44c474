//! Every variable name that UCX and NCCL read, and what a name that nothing reads was meant to be.
//!
//! NCCL never reports an unknown name. UCX does, but only when a worker starts
//! (ucx:src/ucp/core/ucp_worker.c:2804).

use std::cell::RefCell;
use std::collections::HashMap;

use crate::catalogue;
use crate::distance::{edit_distance, nearest};
use crate::kind::Kind;
use crate::sorted_table::{find_line, first_column, lines};
use crate::ucx_value::Owner;

const UCX: &str = include_str!("../data/ucx_names.tsv");
const NCCL: &str = include_str!("../data/nccl_names.tsv");

/// A name that UCX, NCCL or one of NCCL's plugins reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The name.
    pub name: &'static str,
    /// The first release in which it was seen; `<=` before the oldest that was looked at, `-` if not dated.
    pub first: &'static str,
    /// The last release in which it was seen; None if it is still read.
    pub last: Option<&'static str>,
    /// How its value is read; None for NCCL.
    pub kind: Option<Kind>,
    /// The part of UCX that owns it, where that is clear.
    pub owner: Option<Owner>,
    /// UCX calls it deprecated.
    pub deprecated: bool,
}

impl Known {
    fn parse(line: &'static str) -> Self {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or("");
        Self {
            name: next(),
            first: next(),
            last: Some(next()).filter(|last| !matches!(*last, "" | "-")),
            kind: Kind::parse(next()),
            owner: match next() {
                "context" => Some(Owner::Context),
                "md" => Some(Owner::MemoryDomain),
                "iface" => Some(Owner::Interface),
                "global" => Some(Owner::Global),
                _ => None,
            },
            deprecated: next() == "deprecated",
        }
    }
}

/// The entry of a name that UCX or NCCL reads or once read.
pub fn known(name: &str) -> Option<Known> {
    let table = table_of(name)?;
    find_line(table, name).map(Known::parse)
}

fn table_of(name: &str) -> Option<&'static str> {
    if name.starts_with("UCX_") {
        Some(UCX)
    } else if name.starts_with("NCCL_") {
        Some(NCCL)
    } else {
        None
    }
}

/// All names that UCX and NCCL read or once read.
pub fn all() -> impl Iterator<Item = Known> {
    lines(UCX).chain(lines(NCCL)).map(Known::parse)
}

/// Names that people set and nothing reads, and the variable that they mean.
const INVENTED: &[(&str, &str)] = &[
    ("FI_EFA_DEV_LIST", "FI_EFA_IFACE"),
    ("FI_EFA_ENABLE_SHM", "FI_EFA_ENABLE_SHM_TRANSFER"),
    ("FI_HMEM_P2P_DISABLED", "FI_HMEM_DISABLE_P2P"),
    ("NCCL_EXCLUDE_IB_HCA", "NCCL_IB_HCA"),
    ("NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_HOST"),
    ("NIXL_SIDE_CHANNEL_PORT", "VLLM_NIXL_SIDE_CHANNEL_PORT"),
    ("UCX_MEMTYPE_REG_WHOLE", "UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES"),
];

/// The variable that was probably meant by a name of a transport family that nothing reads.
pub fn did_you_mean(name: &str) -> Option<&'static str> {
    GUESSES.with_borrow_mut(|guesses| {
        if let Some(guess) = guesses.get(name) {
            return *guess;
        }
        let guess = guess(name);
        if guesses.len() < REMEMBERED {
            guesses.insert(name.to_owned(), guess);
        }
        guess
    })
}

thread_local! {
    /// Recipes repeat the same few names, and a guess compares one with every name that is known.
    static GUESSES: RefCell<HashMap<String, Option<&'static str>>> = RefCell::new(HashMap::new());
}

/// Names remembered at most: a hostile file could bring millions.
const REMEMBERED: usize = 4096;

fn guess(name: &str) -> Option<&'static str> {
    if let Some(&(_, right)) = INVENTED.iter().find(|(wrong, _)| *wrong == name) {
        return Some(right);
    }
    if known(name).is_some() || catalogue::lookup(name).is_some() {
        return None;
    }
    if name.starts_with("--") {
        return slip_of(&name.replace('_', "-"), &FLAGS);
    }
    if name.starts_with("kv") && !name.contains(char::is_uppercase) {
        return slip_of(name, &KV_KEYS);
    }
    let upper = name.trim().to_ascii_uppercase();
    if !catalogue::is_transport_family(&upper) {
        return outside_families(&upper);
    }
    let limit = limit(&upper)?;
    let prefix = family(&upper);
    let of_catalogue = catalogue::all()
        .iter()
        .filter(|variable| variable.is_read())
        .map(|variable| variable.name);
    let of_library = table_of(&upper)
        .into_iter()
        .flat_map(lines)
        .map(first_column);
    let candidates = of_catalogue
        .chain(of_library)
        .filter(|candidate| family(candidate) == prefix)
        .filter(|candidate| candidate.len().abs_diff(upper.len()) <= limit);
    nearest(&upper, candidates, limit)
}

/// Flags of engines that decide how KV cache moves. Engines refuse most unknown flags, at start.
const FLAGS: [&str; 11] = [
    "--disaggregation-ib-device",
    "--disaggregation-mode",
    "--disaggregation-strategy",
    "--disaggregation-transfer-backend",
    "--extra-engine-args",
    "--extra-llm-api-options",
    "--is-decode-worker",
    "--is-prefill-worker",
    "--kv-transfer-config",
    "--override-engine-args",
    "--server-role",
];

/// Keys of vLLM's KV transfer configuration. Most versions ignore a key that they do not know.
const KV_KEYS: [&str; 4] = [
    "kv_buffer_device",
    "kv_connector",
    "kv_connector_extra_config",
    "kv_role",
];

/// The one of `right` that the name is at most two letters away from, unless it is one of them.
fn slip_of(name: &str, right: &[&'static str]) -> Option<&'static str> {
    if right.contains(&name) {
        return None;
    }
    nearest(name, right.iter().copied(), 2)
}

/// A slip in the very part that tells the family: `UXC_TLS`, `UCXTLS`. One letter, and only names that decide the path.
fn outside_families(upper: &str) -> Option<&'static str> {
    if upper.len() < 6 {
        return None;
    }
    catalogue::all()
        .iter()
        .filter(|v| v.is_read() && v.relevance == catalogue::Relevance::Critical)
        .map(|v| v.name)
        .filter(|n| n.len() >= 7 && n.contains('_'))
        .find(|candidate| {
            edit_distance(upper, candidate, 1).is_some()
                && catalogue::is_transport_family(candidate)
        })
}

/// How many letters may be wrong. Only of UCX and NCCL are all names known, so that elsewhere a name that is two letters
/// off may well be another real variable.
fn limit(name: &str) -> Option<usize> {
    let rest = name.len().saturating_sub(family(name).len());
    if table_of(name).is_none() {
        return (rest >= 4).then_some(1);
    }
    match rest {
        0..=1 => None,
        2..=7 => Some(1),
        8..=13 => Some(2),
        _ => Some(3),
    }
}

/// The part up to the first underscore.
fn family(name: &str) -> &str {
    name.split('_').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_names_with_their_releases() {
        let tls = known("UCX_TLS").unwrap();
        assert_eq!((tls.first, tls.last), ("<=1.12.1", None));
        assert_eq!(tls.owner, Some(Owner::Context));
        let methods = known("UCX_IB_REG_METHODS").unwrap();
        assert_eq!(methods.last, Some("1.15.0"));
        let timeout = known("UCX_RC_MLX5_TIMEOUT").unwrap();
        assert_eq!(timeout.kind, Some(Kind::Time));
        assert_eq!(timeout.owner, Some(Owner::Interface));
        assert!(known("UCX_DC_MAX_BCOPY").unwrap().deprecated);
        assert_eq!(known("NCCL_IB_SL").unwrap().first, "<=2.4.8");
        assert_eq!(known("NCCL_FASTRAK_IFNAME").unwrap().first, "-");
        assert_eq!(known("UCX_TSL"), None);
        assert_eq!(known("PATH"), None);
    }

    #[test]
    fn guesses_what_was_meant() {
        for (name, wanted) in [
            ("UCX_NET_DEVICE", Some("UCX_NET_DEVICES")),
            ("UCX_TSL", Some("UCX_TLS")),
            ("UCX_RNDV_TRESH", Some("UCX_RNDV_THRESH")),
            (
                "UCX_MEMTYPE_REG_WHOLE",
                Some("UCX_MEMTYPE_REG_WHOLE_ALLOC_TYPES"),
            ),
            ("NCCL_IB_HCAS", Some("NCCL_IB_HCA")),
            ("NCCL_SOCKET_IFNAMES", Some("NCCL_SOCKET_IFNAME")),
            ("NCCL_IB_DISABLED", Some("NCCL_IB_DISABLE")),
            ("ucx_tls", Some("UCX_TLS")),
            ("FI_PROVIDERS", Some("FI_PROVIDER")),
            ("UXC_TLS", Some("UCX_TLS")),
            ("UCXTLS", Some("UCX_TLS")),
            ("UCX-TLS", Some("UCX_TLS")),
            ("--kv_transfer_confg", Some("--kv-transfer-config")),
            ("--disaggregation-mod", Some("--disaggregation-mode")),
            ("kv_conector", Some("kv_connector")),
            ("--disaggregation_mode", None),
            ("--kv-events-config", None),
            ("--api-key", None),
            ("kv_port", None),
            ("kv_rank", None),
            ("FI_EFA_DEV_LIST", Some("FI_EFA_IFACE")),
            (
                "NIXL_SIDE_CHANNEL_HOST",
                Some("VLLM_NIXL_SIDE_CHANNEL_HOST"),
            ),
            // Read by something, or of no family, or like nothing.
            ("UCX_TLS", None),
            ("UCX_RC_MLX5_TIMEOUT", None),
            ("FI_UDP_IFACE", None),
            ("NCCL_VERSION", None),
            ("NCCL_HOME", None),
            ("UCX_HOME", None),
            ("UCX_VERSION", None),
            ("HF_TOKEN", None),
            ("UCX_", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(name), wanted, "{name}");
        }
    }

    #[test]
    fn no_known_name_gets_a_suggestion() {
        for entry in all() {
            assert_eq!(did_you_mean(entry.name), None, "{}", entry.name);
        }
    }

    #[test]
    fn tables_are_sorted_ascii() {
        for table in [UCX, NCCL] {
            assert!(table.is_ascii());
            let names: Vec<&str> = lines(table).map(first_column).collect();
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(names.iter().all(|name| known(name).is_some()));
        }
        assert!(all().count() > 1800);
    }
}
