//! Runs the collecting script on this machine, within bounds of time and output.

use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::script;
use crate::stream::Stream;

/// How and where the script runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The shell and its arguments before the script.
    pub shell: Vec<String>,
    /// Directory that stands for `/`: a tree of files of another machine.
    pub root: Option<PathBuf>,
    /// Directory that is searched for tools first.
    pub tools: Option<PathBuf>,
    /// Whether tools are run at all.
    pub run_tools: bool,
    /// Whether the engine's sockets and queue pairs are looked at.
    pub sockets: bool,
    /// Seconds after which no further tool is started.
    pub limit: u64,
    /// Seconds that one tool may take.
    pub tool_limit: u64,
    /// Bytes that are read.
    pub max_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shell: vec!["sh".to_owned()],
            root: None,
            tools: None,
            run_tools: true,
            sockets: false,
            limit: 25,
            tool_limit: 10,
            max_bytes: 16 * 1024 * 1024,
        }
    }
}

/// What a tool that was told to end gets, and the last read of the script beside it.
const GRACE: Duration = Duration::from_secs(3);

impl Options {
    /// Arguments of the script.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("limit={}", self.limit),
            format!("tool_limit={}", self.tool_limit),
        ];
        if !self.run_tools {
            arguments.push("tools=no".to_owned());
        }
        if self.sockets {
            arguments.push("sockets=yes".to_owned());
        }
        if let Some(root) = &self.root {
            arguments.push(format!("root={}", root.display()));
        }
        if let Some(tools) = &self.tools {
            arguments.push(format!("path={}", tools.display()));
        }
        arguments
    }
}

/// Runs the script here. A stream that is cut, because it took too long or printed too much, says so itself.
///
/// # Errors
/// The shell cannot be started.
pub fn run(options: &Options) -> io::Result<Stream> {
    Ok(Stream::parse(&collect(options)?))
}

/// The same; `started` is told the process group, and what it returns is kept until the script has ended. SIGTERM to
/// the group ends the script and its tools early, and what it printed until then is kept.
///
/// # Errors
/// The shell cannot be started.
pub fn run_watched<G>(options: &Options, started: impl FnOnce(u32) -> G) -> io::Result<Stream> {
    Ok(Stream::parse(&collect_watched(options, started)?))
}

/// Shells that can run the script, the usual one first: small images have but one of them.
pub const SHELLS: [&[&str]; 5] = [
    &["sh"],
    &["/bin/sh"],
    &["bash"],
    &["dash"],
    &["busybox", "sh"],
];

/// The same in the first shell that is there.
///
/// # Errors
/// None of them can be started.
pub fn run_anywhere<G>(options: &Options, started: impl Fn(u32) -> G) -> io::Result<Stream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no shell");
    for shell in SHELLS {
        let options = Options {
            shell: shell.iter().map(|word| (*word).to_owned()).collect(),
            ..options.clone()
        };
        match run_watched(&options, &started) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
            done => return done,
        }
    }
    Err(last)
}

/// What the script prints here, as it is.
///
/// # Errors
/// The shell cannot be started.
pub fn collect(options: &Options) -> io::Result<Vec<u8>> {
    collect_watched(options, |_| ())
}

fn collect_watched<G>(options: &Options, started: impl FnOnce(u32) -> G) -> io::Result<Vec<u8>> {
    let (program, first) = options
        .shell
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no shell named"))?;
    let mut child = Command::new(program)
        .args(first)
        // As an argument and not on standard input, from which bash reads one byte at a time.
        .args(["-c", script::text(), "probe"])
        .args(options.arguments())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let _watched = started(child.id());
    let patience = Duration::from_secs(options.limit.saturating_add(options.tool_limit)) + GRACE;
    let deadline = Instant::now() + patience;
    let bytes = match child.stdout.take() {
        Some(out) => read(out, options.max_bytes, deadline),
        None => Vec::new(),
    };
    end(&mut child);
    Ok(bytes)
}

/// Everything that arrives before the deadline, at most so much. The reader is left behind where the script holds its
/// output open for ever: a read of a broken device cannot be ended.
fn read(mut out: impl Read + Send + 'static, max: usize, deadline: Instant) -> Vec<u8> {
    let (sender, receiver) = mpsc::sync_channel::<Vec<u8>>(16);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match out.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => {
                    let part = buffer.get(..count).unwrap_or_default().to_vec();
                    if sender.send(part).is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    });
    let mut bytes = Vec::new();
    while bytes.len() < max {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left) {
            Ok(part) => bytes.extend_from_slice(&part),
            Err(_) => break,
        }
    }
    bytes.truncate(max);
    bytes
}

/// Ends the script and what it started. One that cannot be ended is left to the kernel.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for (signal, wait) in [
        (None, Duration::from_millis(200)),
        // It ends its tools, which have process groups of their own.
        (Some(Signal::TERM), Duration::from_millis(500)),
        (Some(Signal::KILL), Duration::from_millis(500)),
    ] {
        if let (Some(signal), Some(group)) = (signal, group) {
            let _ = kill_process_group(group, signal);
        }
        let until = Instant::now() + wait;
        loop {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            if Instant::now() >= until {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}
