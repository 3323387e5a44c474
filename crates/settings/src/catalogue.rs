//! The catalogue of transport variables: what each one means, takes and breaks.

use std::sync::LazyLock;

use crate::kind::Kind;
use crate::known_names;
use crate::sorted_table::{find_line, lines};

/// How much a variable matters to KV transfer between workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relevance {
    /// Logs and checks only.
    Debug,
    /// Speed, not the path.
    Tuning,
    /// Can change or break the path in some situations.
    Relevant,
    /// Decides the path.
    Critical,
}

impl Relevance {
    /// The word for it: `critical`, `relevant`, `tuning` or `debug`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Relevant => "relevant",
            Self::Tuning => "tuning",
            Self::Debug => "debug",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "critical" => Self::Critical,
            "relevant" => Self::Relevant,
            "tuning" => Self::Tuning,
            "debug" => Self::Debug,
            _ => return None,
        })
    }
}

/// A variable of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name. Three entries are parameters of NIXL's UCX backend, not variables, and have spaces in their names.
    pub name: &'static str,
    /// The library and part that reads it.
    pub subsystem: &'static str,
    /// What it is, in one line.
    pub meaning: &'static str,
    /// The values that it takes.
    pub values: &'static str,
    /// What holds if it is not set.
    pub default: &'static str,
    /// How much it matters.
    pub relevance: Relevance,
    /// Values that do harm, and why; may be empty.
    pub dangerous: &'static str,
    /// The first release that reads it, `-` if not known.
    pub first_version: &'static str,
    /// Where this is written: `repository:path:line@commit`.
    pub source: &'static str,
    /// How its value is read.
    pub kind: Kind,
    /// Its value can carry a credential, such as a URL with a password, and must not be shown.
    pub secret: bool,
}

impl Variable {
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        Some(Self {
            name: next()?,
            subsystem: next()?,
            meaning: next()?,
            values: next()?,
            default: next()?,
            relevance: Relevance::parse(next()?)?,
            dangerous: next()?,
            first_version: next()?,
            source: next()?,
            kind: Kind::parse(next()?)?,
            secret: next()? == "secret",
        })
    }

    /// Whether something reads it today, as opposed to a removed variable or a name that people invented.
    pub fn is_read(&self) -> bool {
        !matches!(self.kind, Kind::Removed | Kind::Unread)
    }
}

/// Whether nothing has ever read a variable that people set: no library in any release, and no launch script that is
/// known. What some releases read, or stop at, is not among them.
pub fn is_dead(name: &str) -> bool {
    lookup(name).is_some_and(|v| v.kind == Kind::Unread && v.meaning.ends_with("nothing reads it"))
}

/// The name that a dead variable is mistaken for, where there is one.
pub fn mistaken_for(name: &str) -> Option<&'static str> {
    let text = lookup(name).filter(|_| is_dead(name))?.dangerous;
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .find(|word| word.contains('_') && lookup(word).is_some_and(|v| v.is_read()))
        .or_else(|| known_names::did_you_mean(name))
}

const TABLE: &str = include_str!("../data/variables.tsv");

/// All variables, sorted by name.
pub fn all() -> &'static [Variable] {
    static VARIABLES: LazyLock<Vec<Variable>> =
        LazyLock::new(|| lines(TABLE).filter_map(Variable::parse).collect());
    &VARIABLES
}

/// The variable of this name. Reads one line of the table, not all of it, so that a short run pays for what it asks.
pub fn lookup(name: &str) -> Option<Variable> {
    find_line(TABLE, name).and_then(Variable::parse)
}

/// Whether the value of a variable may be shown: it is one that we know, and it cannot carry a credential.
///
/// A name that only looks like a transport variable is not enough: everything unknown is treated as a secret.
pub fn is_allowed(name: &str) -> bool {
    match lookup(name) {
        Some(variable) => !variable.secret,
        None => known_names::known(name).is_some(),
    }
}

/// Every name for which [`is_allowed`] holds, each once.
pub fn allowed_names() -> impl Iterator<Item = &'static str> {
    let harmless = all()
        .iter()
        .filter(|variable| !variable.secret)
        .map(|variable| variable.name);
    let only_known = known_names::all()
        .map(|known| known.name)
        .filter(|name| lookup(name).is_none());
    harmless.chain(only_known)
}

/// How the names of transport variables begin.
const PREFIXES: &[&str] = &[
    "UCX_",
    "NCCL_",
    "FI_",
    "NIXL_",
    "OFI_NCCL_",
    "NVSHMEM_",
    "MC_",
    "MOONCAKE_",
    "GLOO_",
    "TP_SOCKET_",
    "TORCH_NCCL_",
    "VLLM_NIXL_",
    "VLLM_MOONCAKE_",
    "VLLM_NIC_",
    "VLLM_GPU_NIC_",
    "VLLM_HOST_IP",
    "VLLM_KV_CACHE_LAYOUT",
    "SGLANG_DISAGGREGATION_",
    "SGLANG_MOONCAKE_",
    "SGLANG_HOST_IP",
    "SGLANG_LOCAL_IP_NIC",
    "DYN_KVBM_NIXL_",
    "TRTLLM_USE_",
    "TRTLLM_UCX_",
    "TRTLLM_NIXL_",
    "TRTLLM_KVCACHE_",
    "RDMAV_",
    "IBV_",
    "MLX5_",
    "GDRCOPY_",
    "UCCL_",
    "OMPI_MCA_btl",
    "OMPI_MCA_pml",
    "OMPI_MCA_osc_ucx",
    "NVIDIA_IMEX_",
    "NVIDIA_MOFED",
    "NVIDIA_GDRCOPY",
];

/// Whether a name belongs to a transport library by how it begins, known or not. The rest of the catalogue counts too.
pub fn is_transport_family(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || lookup(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_up_by_name() {
        let tls = lookup("UCX_TLS").unwrap();
        assert_eq!(
            (tls.relevance, tls.kind),
            (Relevance::Critical, Kind::UcxTls)
        );
        assert_eq!(tls.default, "all");
        assert_eq!(lookup("UCX_TSL"), None);
        assert_eq!(lookup(""), None);
        assert!(!lookup("FI_EFA_ENABLE_SHM").unwrap().is_read());
    }

    #[test]
    fn dead_names() {
        assert!(is_dead("NIXL_SKIP_TOPOLOGY_CHECK") && is_dead("FI_EFA_ENABLE_SHM"));
        // Launch scripts read one, old releases another, and one stops the process.
        for name in [
            "NIXL_BACKEND",
            "NCCL_EXCLUDE_IB_HCA",
            "NCCL_IB_CUDA_SUPPORT",
            "FI_EFA_MTU_SIZE",
            "UCX_TLS",
            "HF_TOKEN",
        ] {
            assert!(!is_dead(name), "{name}");
        }
        assert_eq!(
            mistaken_for("FI_EFA_ENABLE_SHM"),
            Some("FI_EFA_ENABLE_SHM_TRANSFER")
        );
        assert_eq!(
            mistaken_for("NIXL_SIDE_CHANNEL_PORT"),
            Some("VLLM_NIXL_SIDE_CHANNEL_PORT")
        );
        assert_eq!(mistaken_for("NIXL_SKIP_TOPOLOGY_CHECK"), None);
    }

    #[test]
    fn shows_only_what_is_known_and_harmless() {
        assert!(is_allowed("UCX_TLS") && is_allowed("UCX_RC_MLX5_TIMEOUT"));
        assert!(is_allowed("NCCL_IB_QPS_PER_CONNECTION"));
        // By prefix alone, nothing is shown.
        assert!(!is_allowed("UCX_MY_TOKEN") && !is_allowed("NIXL_PASSWORD"));
        assert!(!is_allowed("HF_TOKEN") && !is_allowed("PATH") && !is_allowed("# "));
        // These can hold a URL with a password, or keys of an object store.
        assert!(!is_allowed("NIXL_ETCD_ENDPOINTS"));
        assert!(!is_allowed("MOONCAKE_TE_META_DATA_SERVER"));
        assert!(!is_allowed("SGLANG_DISAGGREGATION_NIXL_BACKEND_PARAMS"));
    }

    #[test]
    fn lists_what_is_allowed() {
        let names: Vec<_> = allowed_names().collect();
        assert!(names.iter().all(|name| is_allowed(name)));
        assert!(names.contains(&"UCX_TLS") && names.contains(&"NCCL_IB_QPS_PER_CONNECTION"));
        assert!(!names.contains(&"NIXL_ETCD_ENDPOINTS"));
    }

    #[test]
    fn families_go_by_prefix() {
        for name in [
            "UCX_ANYTHING",
            "NCCL_X",
            "OMPI_MCA_pml",
            "CUDA_VISIBLE_DEVICES",
            "DYN_KVBM_NIXL_BACKEND_UCX",
        ] {
            assert!(is_transport_family(name), "{name}");
        }
        for name in ["PATH", "HF_TOKEN", "VLLM_API_KEY", "MODEL", "FIRST"] {
            assert!(!is_transport_family(name), "{name}");
        }
    }
}
