//! What a command in a container does.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

/// What happens when a command is run in a container.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// The command runs on this machine, behind these words (`nsenter --target 12 --all --`), or as it is.
    Process(Vec<String>),
    /// The command runs on this machine in a directory that stands for the container's root. A shell that is given a
    /// script (`sh -s`, `sh -c`) gets the arguments `root=DIR path=DIR/bin` after its own, which the collecting script
    /// understands.
    Tree(PathBuf),
    /// No process: this comes back.
    Recorded(Recorded),
    /// There is no such program, as in an image without a shell.
    Missing,
}

/// What came back once, to come back again.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Standard output.
    pub stdout: Bytes,
    /// Standard error.
    pub stderr: Bytes,
    /// The exit code.
    pub exit: i32,
    /// How long the command takes once its input has arrived.
    pub delay: Duration,
}

/// What becomes of a command whose client has gone away. Its standard input always ends; no runtime kills it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterLoss {
    /// What it prints is read and thrown away (conmon).
    #[default]
    Drain,
    /// What it prints is not read any more, so that it blocks when the pipe is full (containerd's shim keeps the pipe open).
    Block,
    /// The pipes are closed: the next write gets SIGPIPE.
    Close,
}
