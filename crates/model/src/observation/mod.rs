//! What was observed on a machine or in a container, from its own files or from saved outputs of tools.
//!
//! One type serves both: each parser of a tool's output and the live collector fill in what they know, and
//! [`Observation::merge`] joins the parts into one picture that still knows who said what. A fact that
//! nobody could read says why ([`Fact`]).

mod fact;
pub mod gpu;
pub mod gpudirect;
pub mod host;
pub mod interfaces;
pub mod limits;
pub mod log;
pub mod modules;
pub mod nixl;
pub mod pci;
pub mod process;
pub mod rdma;
mod section;
pub mod software;
pub mod topology;
mod unanswered;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use fact::merge_fields;
pub use fact::{Fact, Merge, Missing, Origin, Reading, Seen};
pub use section::{Completeness, NotRead, Provenance, Section, Tool, Unrecognised};
pub use unanswered::Unanswered;

/// Everything that was observed at one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// Outputs that were recognised, in order.
    pub sections: Vec<Section>,
    /// Inputs that gave nothing.
    pub unrecognised: Vec<Unrecognised>,
    /// The machine and the container.
    pub host: host::Host,
    /// RDMA devices.
    pub rdma: rdma::Rdma,
    /// GPUs.
    pub gpu: gpu::Gpus,
    /// How near GPUs and network cards are.
    pub topology: topology::Topology,
    /// Whether network cards can reach GPU memory.
    pub gpudirect: gpudirect::GpuDirect,
    /// Limits and rights.
    pub limits: limits::Limits,
    /// Kernel modules.
    pub modules: modules::Modules,
    /// Network interfaces.
    pub interfaces: interfaces::Interfaces,
    /// Libraries.
    pub software: software::Software,
    /// The engine.
    pub process: process::Processes,
    /// Logs.
    pub log: log::Log,
    /// The same by the pod or host that the text names, so that machines can be told apart; what stands under no name
    /// has the empty one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, Self>,
}

merge_fields!(Observation {
    sections,
    unrecognised,
    host,
    rdma,
    gpu,
    topology,
    gpudirect,
    limits,
    modules,
    interfaces,
    software,
    process,
    log,
    places
});
