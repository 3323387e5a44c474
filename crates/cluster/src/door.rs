//! What a way into a cluster can do.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use model::pod::{Fault, FaultKind};
use tokio::io::{AsyncRead, AsyncWrite};

/// An answer that is waited for.
pub type Waiting<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The largest answer that is read: 500 pods of 256 KiB each.
pub(crate) const MAX_ANSWER: usize = 128 * 1024 * 1024;

/// What an answer without end is.
pub(crate) fn too_long() -> Refusal {
    Refusal::new(
        FaultKind::NotApi,
        format!(
            "an answer of more than {} MiB was not read to its end",
            MAX_ANSWER / 1024 / 1024
        ),
    )
}

/// A way into a cluster. Everything that is done with one goes through these few, so that another way (a program, a
/// recording) gives the same report.
pub trait Cluster: Send + Sync {
    /// The namespace where nothing names another.
    fn namespace(&self) -> &str;

    /// Reads one path of the API, such as `/api/v1/namespaces/NS/pods?limit=500`: its JSON text.
    fn get<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<String, Refusal>>;

    /// Asks the API a question that is put as an object; it changes nothing (`SelfSubjectAccessReview`).
    fn ask<'a>(&'a self, path: &'a str, body: String) -> Waiting<'a, Result<String, Refusal>>;

    /// Reads a path that gives text of any length, such as a container's log, and keeps one end of it.
    fn text<'a>(&'a self, path: &'a str, keep: Keep) -> Waiting<'a, Result<Vec<u8>, Refusal>>;

    /// Starts a command in a container.
    fn exec<'a>(&'a self, exec: &'a Exec) -> Waiting<'a, Result<Session, Refusal>>;
}

/// Which end of a long text is kept, and how many bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The beginning; the rest is not read.
    First(usize),
    /// The end.
    Last(usize),
}

/// Takes a text piece by piece and keeps one end of it.
pub(crate) struct Kept {
    keep: Keep,
    bytes: Vec<u8>,
}

impl Kept {
    pub(crate) fn new(keep: Keep) -> Self {
        Self {
            keep,
            bytes: Vec::new(),
        }
    }

    /// Takes the next piece; false where no more is needed.
    pub(crate) fn take(&mut self, piece: &[u8]) -> bool {
        match self.keep {
            Keep::First(most) => {
                let room = most.saturating_sub(self.bytes.len());
                self.bytes
                    .extend_from_slice(piece.get(..room).unwrap_or(piece));
                self.bytes.len() < most
            }
            Keep::Last(most) => {
                self.bytes.extend_from_slice(piece);
                // Not at each piece: what is behind would be moved each time.
                if self.bytes.len() > most.saturating_mul(2) {
                    self.shorten(most);
                }
                true
            }
        }
    }

    fn shorten(&mut self, most: usize) {
        let over = self.bytes.len().saturating_sub(most);
        self.bytes.drain(..over);
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        if let Keep::Last(most) = self.keep {
            self.shorten(most);
        }
        self.bytes
    }
}

/// Why a request got no answer, and how long to wait before asking again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub fault: Fault,
    /// The server names a time after which to ask again.
    pub retry_after: Option<Duration>,
    /// To ask again may help: nothing was started.
    pub may_pass: bool,
}

impl Refusal {
    /// One that stays.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self {
            fault: Fault::new(kind, detail),
            retry_after: None,
            may_pass: false,
        }
    }
}

/// A command in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Program and arguments.
    pub command: Vec<String>,
}

/// A command that runs in a container. When it is dropped the connection closes, and the command finds the end of its
/// standard input.
pub struct Session {
    /// Its standard input. To close it before the end can cost output that is still on its way (protocol version 4 has
    /// no half-close), so it is kept open.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its error output, and what a program that stands between says.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// How it ended. To be waited for together with the outputs.
    pub end: Waiting<'static, Ended>,
}

/// How a command in a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Code(i32),
    /// It could not be started, or the connection broke.
    Fault(Fault),
    /// Whoever stands between reports failure and says why on the error output only.
    SeeErrors(i32),
}
