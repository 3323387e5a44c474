//! Libraries of the KV path: UCX, NIXL, libibverbs, libfabric.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Origin, merge_fields};

/// Libraries and what they say of themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Software {
    /// UCX builds: one per `ucx_info -v`, log line or file.
    pub ucx: Vec<UcxBuild>,
    /// What `ucx_info -d` lists, once per run.
    pub ucx_resources: Vec<UcxResources>,
    /// What `fi_info` lists, once per run.
    pub libfabric: Vec<FabricListing>,
    /// User-space RDMA providers: names of `/etc/libibverbs.d/*.driver`.
    pub verbs_providers: Fact<Vec<String>>,
    /// Provider libraries: `libmlx5-rdmav57.so`.
    pub verbs_provider_libraries: Fact<Vec<String>>,
    /// Providers that libibverbs could not use, with its words.
    pub verbs_problems: Vec<ProviderProblem>,
    /// Version of the NIXL package.
    pub nixl_version: Fact<String>,
    /// Plugin files of NIXL by name: `UCX`, `LIBFABRIC`.
    pub nixl_plugins: Fact<Vec<String>>,
    /// Versions of other libraries by name: `libibverbs`, `libfabric`, `nccl`, `gdrcopy`.
    pub versions: BTreeMap<String, Fact<String>>,
}

merge_fields!(Software {
    ucx,
    ucx_resources,
    libfabric,
    verbs_providers,
    verbs_provider_libraries,
    verbs_problems,
    nixl_version,
    nixl_plugins,
    versions
});

/// One UCX library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UcxBuild {
    /// Where it is told.
    pub origin: Origin,
    /// `1.22.0`.
    pub version: Option<String>,
    /// `1.22.0`.
    pub api_version: Option<String>,
    /// `8a6b06f`.
    pub revision: Option<String>,
    /// Path of the library.
    pub library: Option<String>,
    /// Words of `./configure`; empty where not told.
    pub configure: Vec<String>,
    /// Definitions of `ucx_info -b` by name.
    pub definitions: BTreeMap<String, String>,
}

impl UcxBuild {
    /// An empty one.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            version: None,
            api_version: None,
            revision: None,
            library: None,
            configure: Vec::new(),
            definitions: BTreeMap::new(),
        }
    }

    /// What `./configure` was told about a feature: `Some(false)` for `--without-verbs` or `--with-verbs=no`,
    /// `None` where it was not told, so that the build decided by what it found.
    pub fn with(&self, feature: &str) -> Option<bool> {
        self.configure.iter().rev().find_map(|word| {
            let word = word.strip_prefix("--")?;
            let (word, value) = word.split_once('=').unwrap_or((word, "yes"));
            let (verb, name) = word.split_once('-')?;
            if name != feature {
                return None;
            }
            match verb {
                "with" | "enable" => Some(value != "no"),
                "without" | "disable" => Some(false),
                _ => None,
            }
        })
    }
}

/// What `ucx_info -d` lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UcxResources {
    /// Where.
    pub origin: Origin,
    /// Memory domains.
    pub domains: Vec<MemoryDomain>,
    /// Transports, in order.
    pub transports: Vec<UcxTransport>,
    /// How many entries say that they failed to open; the first may belong to an entry that is cut off.
    pub failed_to_open: u32,
    /// Error lines between them.
    pub errors: Vec<String>,
    /// It begins or ends within an entry, or a filter left out the details: an error that is not in it may have
    /// been there.
    pub cut: bool,
}

/// One memory domain of UCX.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryDomain {
    /// `mlx5_0`, `cuda_cpy`.
    pub name: String,
    /// `ib`, `cuda_cpy`, `tcp`.
    pub component: Option<String>,
    /// The `register:` row.
    pub register: Option<String>,
    /// The `dmabuf:` row: memory types that it exports as dma-buf.
    pub exports_dmabuf: Option<String>,
    /// Memory types that it can reach or allocate, as printed: `host (access,reg,cache)`.
    pub memory_types: Option<String>,
    /// It has no transports (`< no supported devices found >`).
    pub no_devices: bool,
    /// It failed to open.
    pub failed_to_open: bool,
}

impl MemoryDomain {
    /// Whether it registers dma-buf memory; `None` where its `register:` row is not shown.
    pub fn registers_dmabuf(&self) -> Option<bool> {
        let row = self.register.as_deref()?;
        Some(row.split([',', ' ']).any(|word| word == "dmabuf"))
    }
}

/// One transport and device of UCX.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UcxTransport {
    /// Memory domain that it belongs to.
    pub domain: Option<String>,
    /// `rc_mlx5`, `tcp`, `cuda_ipc`.
    pub name: String,
    /// `mlx5_0:1`, `eth0`.
    pub device: Option<String>,
    /// `network`, `intra-node`, `accelerator`, `loopback`.
    pub device_type: Option<String>,
    /// `0000:18:00.0 (0)`, `<unknown>`.
    pub system_device: Option<String>,
    /// `11.27/ppn + 0.00 MB/sec`: an estimate, not a measurement.
    pub bandwidth: Option<String>,
    /// `failed to open interface`.
    pub failed_to_open: bool,
}

/// What `fi_info` lists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FabricListing {
    /// Where.
    pub origin: Origin,
    /// It names the providers that are built in (`-l`), which need no device to be named.
    pub providers_only: bool,
    /// One per entry.
    pub entries: Vec<FabricEntry>,
    /// `-61` where it found none: no data.
    pub errno: Option<i32>,
    /// Its words for that.
    pub error: Option<String>,
}

/// One entry of `fi_info`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FabricEntry {
    /// `efa`, `verbs;ofi_rxm`, `tcp`.
    pub provider: String,
    /// `efa`, `efa-direct`, `EFA-fe80::…`, `172.16.0.0/16`.
    pub fabric: Option<String>,
    /// `rdmap16s27-rdm`.
    pub domain: Option<String>,
    /// `111.20`: of the provider.
    pub version: Option<String>,
    /// `FI_EP_RDM`.
    pub endpoint_type: Option<String>,
    /// `FI_PROTO_EFA`.
    pub protocol: Option<String>,
}

impl FabricEntry {
    /// The device: the domain without the endings that libfabric adds for endpoint types.
    pub fn device(&self) -> Option<&str> {
        let domain = self.domain.as_deref()?;
        Some(
            ["-rdm", "-dgrm", "-msg", "-xrc"]
                .iter()
                .find_map(|end| domain.strip_suffix(end))
                .unwrap_or(domain),
        )
    }
}

/// A provider that libibverbs could not use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderProblem {
    /// Where.
    pub origin: Origin,
    /// `bnxt_re`, or a file name.
    pub driver: String,
    /// RDMA device, where named.
    pub device: Option<String>,
    /// ABI version of the kernel.
    pub kernel_abi: Option<u32>,
    /// ABI versions of the provider, first and last.
    pub supported_abi: Option<(u32, u32)>,
    /// Its words.
    pub text: String,
}
