//! Runs a program of a transfer as a child process: on this machine, or through a client such as `kubectl exec -i`.

use std::io;
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::link::Streams;

/// Starts a command line. The child is ended when it is dropped.
pub fn spawn(argv: &[String]) -> io::Result<(Child, Streams)> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
        (Some(stdin), Some(stdout), Some(stderr)) => Ok((
            child,
            Streams {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
            },
        )),
        _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
    }
}
