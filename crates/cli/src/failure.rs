//! Why a command has nothing to print, with the exit code that says so.

use model::Exit;
use model::pod::{Fault, FaultKind, FaultScope};

/// A command that ends without a result.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

/// Without any other word it was asked for in a wrong way.
impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self {
            message,
            exit: Exit::Usage,
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let exit = match (fault.kind.scope(), fault.kind) {
            (FaultScope::Access, _) => Exit::Cluster,
            (_, FaultKind::NoMatch | FaultKind::NoSuchPod) => Exit::Nothing,
            _ => Exit::Usage,
        };
        Self {
            message: fault.detail,
            exit,
        }
    }
}
