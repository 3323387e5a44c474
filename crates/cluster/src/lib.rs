//! Ways into a cluster: the Kubernetes API natively, and programs that work like kubectl.
//!
//! Both are a [`Cluster`]: it reads objects, asks what is allowed, and runs one command in a container. Everything else
//! is written once on top of that, so that the way in cannot change what is found. Nothing here judges, and nothing
//! here changes a cluster: the only request that is not a read is the question what is allowed.

mod access;
mod api_status;
mod command;
mod configuration;
mod container;
mod credentials;
mod door;
mod kubectl;
mod kubectl_errors;
mod logs;
mod native;
mod native_errors;
mod native_session;
mod objects;
mod patience;
mod program;
mod programs;
mod proxy;
mod rights;
mod stop;
mod survey;

pub use access::{Access, Via};
pub use command::start;
pub use container::{Answer, Limits, command};
pub use door::{Cluster, Ended, Exec, Keep, Refusal, Session, Waiting};
pub use logs::{Log, log};
pub use objects::{Kept, named_pod, nodes, object, pods};
pub use program::{Printed, Program, converse};
pub use programs::end_programs;
pub use rights::{Right, granted};
pub use stop::Stop;
pub use survey::{Looked, Pick, look_into};

use kubectl::Kubectl;
use native::Native;

/// Opens the way into the cluster that was asked for.
///
/// # Errors
/// There is no configuration, or it cannot be used.
pub async fn open(access: &Access) -> Result<Box<dyn Cluster>, model::pod::Fault> {
    Ok(match &access.via {
        Via::Api => Box::new(Native::open(access).await?),
        Via::Program(program) => Box::new(Kubectl::open(program, access).await?),
    })
}
