//! Readiness: a NIXL agent beside the engine that makes backends and moves nothing.
//!
//! One program, as for a transfer: it comes on standard input, runs in the engine's interpreter with the engine's
//! libraries and settings, writes nothing to a disk, is bounded in time, memory and output, and ends with its standard
//! input. UCX's own list of available transports and devices is read from what it prints at `UCX_LOG_LEVEL=debug`.

mod offered;

use std::collections::BTreeMap;

use model::Observation;
use model::observation::nixl::{Scrape, Trial, TriedBackend};
use model::observation::process::{MappedLibrary, Process};
use serde::{Deserialize, Serialize};

use crate::command::Engine;
use crate::launch;
use crate::program::MARK;

/// Its whole text.
pub const READINESS: &str = concat!(
    include_str!("../program/wire.py"),
    include_str!("../program/evidence.py"),
    include_str!("../program/worker.py"),
    include_str!("ready.py"),
);

/// What makes NIXL and UCX tell what they have.
const TOLD: &[(&str, &str)] = &[
    ("UCX_LOG_LEVEL", "debug"),
    // Not through the buffers of stdout.
    ("UCX_LOG_FILE", "stderr"),
    // Nothing is transferred: tables of the process itself tell nothing.
    ("UCX_PROTO_INFO", "n"),
    ("NIXL_LOG_LEVEL", "INFO"),
    ("PYTHONUNBUFFERED", "1"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// Backends that are tried at most.
const MAX_BACKENDS: usize = 6;
/// Bytes of errors and values of a machine that may be broken.
const MAX_TEXT: usize = 400;

/// What is to be tried, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The engine's process whose place is taken.
    pub process: u32,
    /// All processes of the engine.
    pub processes: Vec<u32>,
    /// What is known of that process.
    pub engine: Engine,
    /// Backends to make, in order.
    pub backends: Vec<String>,
    /// How long the agent may take.
    pub seconds: u32,
}

#[derive(Serialize)]
struct Plan<'r> {
    name: &'static str,
    package: Option<String>,
    backends: &'r [String],
    processes: &'r [u32],
    seconds: u32,
}

impl Ready {
    /// The place to take among an engine's processes: the first that has NIXL loaded, with the Python bindings if any
    /// has them. `None` where none has.
    pub fn of(processes: &BTreeMap<u32, Box<Process>>, seconds: u32) -> Option<Self> {
        let paths = |process: &Process| -> Vec<String> {
            let all = process.libraries.value().into_iter().flatten();
            all.map(|library| library.path.clone()).collect()
        };
        let nixl = |process: &Process| {
            let all = process.libraries.value().into_iter().flatten();
            all.into_iter().any(|l| l.library == "libnixl")
        };
        let engine = |process: &Process| Engine {
            libraries: paths(process),
            executable: process.interpreter.value().cloned(),
            ..Engine::default()
        };
        let mut with = processes.iter().filter(|(_, process)| nixl(process));
        let bound = with
            .clone()
            .find(|(_, process)| engine(process).nixl_package().is_some());
        let (pid, process) = bound.or_else(|| with.next())?;
        Some(Self {
            process: *pid,
            processes: processes.keys().copied().collect(),
            engine: engine(process),
            backends: backends(processes),
            seconds,
        })
    }

    /// The command line; the program follows on its standard input.
    pub fn command(&self) -> Vec<String> {
        launch::start(&self.engine, Some(self.process), self.seconds, TOLD)
    }

    /// What goes to its standard input, which then stays open.
    pub fn input(&self) -> String {
        let plan = Plan {
            name: "check-interconnect",
            package: self.engine.nixl_package(),
            backends: &self.backends,
            processes: &self.processes,
            seconds: self.seconds,
        };
        let plan = serde_json::to_string(&plan).unwrap_or_default();
        format!("{}\n{READINESS}{plan}\n", READINESS.len())
    }
}

/// Backends that the engine's configuration names, and UCX.
fn backends(processes: &BTreeMap<u32, Box<Process>>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if plain && !name.is_empty() && !found.iter().any(|held| held == name) {
            found.push(name.to_owned());
        }
    };
    for process in processes.values() {
        for name in [
            "SGLANG_DISAGGREGATION_NIXL_BACKEND",
            "TRTLLM_NIXL_KVCACHE_BACKEND",
        ] {
            if let Some(value) = process.environment.get(name).and_then(|fact| fact.value()) {
                add(value.trim());
            }
        }
        let config = process.flags.get("--kv-transfer-config");
        let config = config
            .and_then(|fact| fact.value())
            .and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        let named = config.as_ref().and_then(|value| {
            value
                .pointer("/kv_connector_extra_config/backends")?
                .as_array()
        });
        for name in named.into_iter().flatten() {
            add(name.as_str().unwrap_or_default());
        }
    }
    add("UCX");
    found.truncate(MAX_BACKENDS);
    found
}

/// What the program says.
#[derive(Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
enum Answer {
    Step {},
    Loaded {
        package: Option<String>,
        version: Option<String>,
    },
    Listed {
        plugins: Vec<String>,
    },
    Backend {
        name: String,
        error: Option<String>,
    },
    Held {
        libraries: Vec<String>,
        open: Vec<String>,
    },
    Metrics {
        port: u16,
        named_by: String,
        values: BTreeMap<String, f64>,
        error: Option<String>,
    },
    Done {},
    Failed {
        error: String,
    },
    End {
        why: String,
        step: Option<String>,
        finished: bool,
        signal: Option<u32>,
        left_out: u64,
    },
}

/// Whether the last line of the program is here.
pub fn is_complete(out: &[u8]) -> bool {
    let tail = out
        .get(out.len().saturating_sub(1024)..)
        .unwrap_or_default();
    let tail = String::from_utf8_lossy(tail);
    let Some(tail) = tail.strip_suffix('\n') else {
        return false;
    };
    tail.rsplit('\n')
        .next()
        .and_then(|line| line.strip_prefix(MARK))
        .is_some_and(|line| line.starts_with(r#"{"say": "end""#))
}

/// What came back of the program: what it found out, and what NIXL and UCX printed.
///
/// # Errors
/// Nothing came that is the program's, with the first words that did.
pub fn read(ready: &Ready, out: &[u8], err: &[u8]) -> Result<(Trial, Observation), String> {
    let mut trial = Trial {
        process: ready.process,
        ..Trial::default()
    };
    let mut answered = false;
    let mut ended = false;
    let text = String::from_utf8_lossy(out);
    for line in text.lines() {
        let Some(answer) = line.strip_prefix(MARK) else {
            continue;
        };
        let Ok(answer) = serde_json::from_str::<Answer>(answer) else {
            continue;
        };
        answered = true;
        match answer {
            Answer::Step {} | Answer::Done {} => {}
            Answer::Loaded { package, version } => {
                trial.package = package.as_deref().map(short);
                trial.version = version.as_deref().map(short);
            }
            Answer::Listed { plugins } => {
                trial.listed = plugins.iter().take(64).map(|name| short(name)).collect();
            }
            Answer::Backend { name, error } => {
                trial.backends.push(TriedBackend {
                    name: short(&name),
                    error: error.as_deref().map(short),
                });
            }
            Answer::Held { libraries, open } => {
                trial.libraries = libraries.iter().map(|path| library(path)).collect();
                trial.open_devices = open.iter().map(|path| short(path)).collect();
            }
            Answer::Metrics {
                port,
                named_by,
                values,
                error,
            } => trial.metrics.push(Scrape {
                port,
                named_by: short(&named_by),
                error: error.as_deref().map(short),
                values,
            }),
            Answer::Failed { error } => trial.stopped = Some(short(&error)),
            Answer::End {
                why,
                step,
                finished,
                signal,
                left_out,
            } => {
                ended = true;
                if !finished && trial.stopped.is_none() {
                    trial.stopped = Some(stopped(&why, step.as_deref(), signal));
                }
                if left_out > 0 && trial.stopped.is_none() {
                    trial.stopped = Some(format!("{left_out} lines that it printed were left out"));
                }
            }
        }
    }
    let printed = String::from_utf8_lossy(err);
    if !answered {
        let last = printed.lines().rev().find(|line| !line.trim().is_empty());
        return Err(match last {
            Some(line) => short(line.trim()),
            None => "it printed nothing".to_owned(),
        });
    }
    if !ended && trial.stopped.is_none() {
        trial.stopped = Some("the connection ended before the program did".to_owned());
    }
    trial.offered = offered::read(&printed);
    let seen = probe::recognise("an agent in the engine's place", &printed);
    Ok((trial, seen))
}

fn stopped(why: &str, step: Option<&str>, signal: Option<u32>) -> String {
    let at = step.unwrap_or("its start");
    match (why, signal) {
        ("deadline", _) => format!("it was still at `{at}` when its time was over"),
        ("memory", _) => format!("at `{at}` it took more memory than it may"),
        (_, Some(signal)) => format!("at `{at}` it was ended by signal {signal}"),
        _ => format!("it ended at `{at}`"),
    }
}

/// Without control characters, and not longer than a line.
fn short(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_TEXT)
        .collect()
}

fn library(path: &str) -> MappedLibrary {
    let path = short(path);
    MappedLibrary {
        library: probe::observe::library_name(&path),
        path,
        deleted: false,
    }
}
