//! Objects of a running cluster: pods and nodes as the API server gives them, the workers in a pod's spec, what of them
//! an engine process runs with, and which pods and containers are looked into.
//!
//! Everything here takes text or values; who asks the cluster is elsewhere.

mod choice;
mod container;
mod declared;
mod host;
mod networks;
mod object;
mod overlay;
mod places;
mod spec;
mod state;

pub use choice::{Why, container, kv_worker, passed_over};
pub use declared::declared;
pub use host::of_host;
pub use networks::{networks_asked, networks_attached};
pub use object::{node, pod};
pub use overlay::{Differs, Live, overlay};
pub use spec::workers;
pub use state::{during, state};

/// The label by which Dynamo's operator names the graph of a pod (ai-dynamo/dynamo
/// deploy/operator/internal/consts/consts.go).
pub const GRAPH: &str = "nvidia.com/dynamo-graph-deployment-name";

#[cfg(test)]
mod tests;
