//! Runs kubectl, kustomize or helm: bounded in time and output, with a scrubbed environment, nothing left behind.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt;

/// More output than this is no manifest. The same limit as for files.
const MAX_OUTPUT: u64 = 256 * 1024 * 1024;

/// How much of an error text is looked at.
const MAX_ERROR: u64 = 64 * 1024;

/// How long to wait for the end of an error text once the program itself has ended.
const GRACE: Duration = Duration::from_millis(500);

/// Why a program gave no text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It cannot be started at all.
    NotStarted,
    /// It ran for too long and was stopped.
    TimedOut,
    /// It printed too much and was stopped.
    TooLarge,
    /// The user wants the run to end.
    Interrupted,
    /// It ended with an error: the exit code, where there is one, and what is known about the reason.
    Exit(Option<i32>, Option<&'static str>),
}

/// Finds a program the way a shell does, but never in a relative directory: that could be the one under judgement.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
        .find(|file| is_executable(file))
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

/// Runs a program to its end and returns what it printed. Its error text can quote values of manifests, so it is
/// never passed on: `hint` may recognize it and say in fixed words what it is about.
pub(super) fn run(
    program: &Path,
    arguments: &[OsString],
    variables: &[(&str, &OsStr)],
    timeout: Duration,
    hint: fn(&str) -> Option<&'static str>,
) -> Result<Vec<u8>, Failure> {
    #[cfg(unix)]
    interrupt::watch();
    if interrupt::signal().is_some() {
        return Err(Failure::Interrupted);
    }
    let deadline = Instant::now() + timeout;
    let mut child = command(program, arguments, variables)
        .spawn()
        .map_err(|_| Failure::NotStarted)?;
    #[cfg(unix)]
    let _running = interrupt::Running::new(child.id(), rustix::process::Signal::KILL);
    let printed = printed(&mut child, deadline, timeout, hint);
    if interrupt::signal().is_some() {
        return Err(Failure::Interrupted);
    }
    printed
}

fn printed(
    child: &mut Child,
    deadline: Instant,
    timeout: Duration,
    hint: fn(&str) -> Option<&'static str>,
) -> Result<Vec<u8>, Failure> {
    let output = reader(child.stdout.take(), MAX_OUTPUT + 1, false);
    let errors = reader(child.stderr.take(), MAX_ERROR, true);
    let (Some(output), Some(errors)) = (output, errors) else {
        stop(child);
        return Err(Failure::NotStarted);
    };
    let printed = match output.recv_timeout(timeout) {
        Ok(printed) => printed,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            stop(child);
            return Err(Failure::TimedOut);
        }
    };
    if printed.len() as u64 > MAX_OUTPUT {
        stop(child);
        return Err(Failure::TooLarge);
    }
    let Some(status) = end(child, deadline) else {
        return Err(Failure::TimedOut);
    };
    if status.success() {
        return Ok(printed);
    }
    let text = errors.recv_timeout(GRACE).unwrap_or_default();
    Err(Failure::Exit(
        status.code(),
        hint(&String::from_utf8_lossy(&text)),
    ))
}

fn command(program: &Path, arguments: &[OsString], variables: &[(&str, &OsStr)]) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_clear();
    // What a program needs to find its own parts, and nothing that steers it.
    for name in ["PATH", "HOME", "SystemRoot", "TEMP", "USERPROFILE"] {
        if let Some(value) = env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .env("KUBECONFIG", NOWHERE)
        // What is remote is refused before anything is started. Should a program still find something to fetch,
        // these lead it to a port where nobody listens, and git to no protocol at all.
        .env("HTTP_PROXY", NO_PROXY_THERE)
        .env("HTTPS_PROXY", NO_PROXY_THERE)
        .env("ALL_PROXY", NO_PROXY_THERE)
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .envs(variables.iter().copied());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;
        // A group of its own, so that what it starts can be stopped with it; and away from the directory under
        // judgement, where wrappers of version managers would look for instructions.
        command.process_group(0).current_dir("/");
    }
    command
}

const NOWHERE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

const NO_PROXY_THERE: &str = "http://127.0.0.1:9";

/// Reads a pipe on a thread of its own: up to the limit, and past it only to let the writer go on.
fn reader<R: Read + Send + 'static>(
    pipe: Option<R>,
    limit: u64,
    drain: bool,
) -> Option<Receiver<Vec<u8>>> {
    let mut pipe = pipe?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || {
            let mut text = Vec::new();
            // What cannot be read is missing; the exit code tells whether that matters.
            let _short = (&mut pipe).take(limit).read_to_end(&mut text);
            if drain {
                let _short = io::copy(&mut pipe, &mut io::sink());
            }
            // Nobody listens any more once time is up.
            let _late = sender.send(text);
        })
        .ok()?;
    Some(receiver)
}

/// Waits for the end of a program whose output has ended, and stops whatever it leaves running.
fn end(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_micros(200);
    while !has_ended(child) {
        if Instant::now() >= deadline {
            stop(child);
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    kill_group(child);
    child.wait().ok()
}

fn stop(child: &mut Child) {
    kill_group(child);
    let _already_gone = child.kill();
    let _status = child.wait();
}

/// Whether it has ended. It is not reaped by this, so that its number still belongs to its group.
#[cfg(unix)]
fn has_ended(child: &mut Child) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    pid(child).is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
}

#[cfg(unix)]
fn kill_group(child: &Child) {
    use rustix::process::{Signal, kill_process_group};
    if let Some(pid) = pid(child) {
        let _nothing_left = kill_process_group(pid, Signal::KILL);
    }
}

#[cfg(unix)]
fn pid(child: &Child) -> Option<rustix::process::Pid> {
    i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
}

#[cfg(not(unix))]
fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

#[cfg(not(unix))]
fn kill_group(_child: &Child) {}
