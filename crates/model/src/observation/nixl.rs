//! What a NIXL agent can do beside an engine: which plugins load, and what its UCX offers. No transfer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::process::MappedLibrary;

/// An agent that was made in the engine's place: with its interpreter, its libraries and its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trial {
    /// The engine's process whose place was taken.
    pub process: u32,
    /// `nixl_cu13`.
    pub package: Option<String>,
    /// `1.5.1`.
    pub version: Option<String>,
    /// Plugins that NIXL lists. It lists files: whether one loads is another question.
    pub listed: Vec<String>,
    /// Backends that were tried.
    pub backends: Vec<TriedBackend>,
    /// Transports that its UCX offers; `None` where UCX did not say.
    pub offered: Option<Vec<OfferedTransport>>,
    /// Libraries of the KV path that it had mapped at its end.
    pub libraries: Vec<MappedLibrary>,
    /// Devices that it had open at its end: `/dev/infiniband/uverbs0`.
    pub open_devices: Vec<String>,
    /// Metrics of the engine.
    pub metrics: Vec<Scrape>,
    /// Why it did not come to its end: the step, and the words of who refused it.
    pub stopped: Option<String>,
}

/// A backend that an agent tried to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriedBackend {
    /// `UCX`, `LIBFABRIC`.
    pub name: String,
    /// What NIXL's call said; `None` where it worked.
    pub error: Option<String>,
}

/// A transport in UCX's list of available transports and devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OfferedTransport {
    /// `network`, `intra-node`, `accelerator`, `loopback`.
    pub kind: String,
    /// `ib`, `tcp`, `cuda_cpy`.
    pub component: String,
    /// `rc_mlx5`, `tcp`.
    pub name: String,
    /// Settings leave it on.
    pub enabled: bool,
    /// Devices, and whether settings leave each on.
    pub devices: Vec<(String, bool)>,
}

/// One page of metrics of the engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scrape {
    /// Port on the loopback interface.
    pub port: u16,
    /// What named the port: `--port`, `NIXL_TELEMETRY_PROMETHEUS_PORT`.
    pub named_by: String,
    /// Why there is none.
    pub error: Option<String>,
    /// Values by name, over all labels together.
    pub values: BTreeMap<String, f64>,
}
