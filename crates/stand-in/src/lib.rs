//! A stand-in for a Kubernetes API server, for tests.
//!
//! It speaks the protocol: HTTP/1.1, TLS, discovery, lists with selectors and pages, reviews of one's own rights, logs, and exec
//! over WebSocket (`v5.channel.k8s.io`, `v4.channel.k8s.io`), so that kubectl and kube work with it. Commands of an exec are real
//! processes of this machine, or recorded outputs. Everything that goes wrong in a cluster can be made to go wrong, and
//! everything that a client did is recorded.
//!
//! ```no_run
//! use stand_in::{Cluster, Fault, Pod};
//!
//! # fn main() -> std::io::Result<()> {
//! let api = Cluster::new()
//!     .namespace("serving")
//!     .pod(Pod::worker("prefill-0").resource("rdma/ib", "1").tree("some/tree"))
//!     .pod(Pod::worker("decode-0").env("UCX_TLS", "rc,cuda_copy").no_shell())
//!     .fault(Fault::on("list", "pods").first(1).status(429))
//!     .start()?;
//! let output = api.kubectl().args(["get", "pods"]).output()?;
//! assert!(output.status.success());
//! assert!(api.execs().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! Not here: SPDY, watches, `follow`, terminals, writing of objects.

mod api;
mod behaviour;
mod certs;
mod cluster;
mod discovery;
mod exec;
mod fault;
mod hub;
mod ids;
mod kubeconfig;
mod logs;
mod node;
mod objects;
mod pod;
mod protobuf;
mod proxy;
mod record;
mod review;
mod rights;
mod scenario;
mod selectors;
mod server;
mod stand_in;
mod states;
mod status;
mod table;
mod tap;
mod target;

pub use behaviour::{AfterLoss, Behaviour, Recorded};
pub use certs::Certificate;
pub use cluster::Cluster;
pub use fault::{Fault, PodEvent};
pub use kubeconfig::Login;
pub use pod::Pod;
pub use record::{Chunks, Exec, Request, Sent};
pub use rights::{Rights, User};
pub use stand_in::StandIn;
pub use states::State;
pub use status::{Refusal, RefusalBody};
pub use tap::Cut;
