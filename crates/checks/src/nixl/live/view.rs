//! One container or host with everything that is known of NIXL there, worked out once for all checks.

use model::observation::nixl::Trial;
use model::observation::process::{MappedLibrary, Process};
use model::observation::{Fact, Observation};
use model::{Fault, PodObject, Role, Worker};

use serde::{Deserialize, Serialize};

use crate::node_view::NodeFacts;

/// What `nixl` looks at beside what the collecting script tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beside {
    /// The container's log; `None` where nobody asked for it.
    pub log: Option<Result<LogSeen, Fault>>,
    /// An agent in the engine's place; `None` where nobody asked for one.
    pub trial: Option<Result<TrialSeen, NoTrial>>,
}

impl Beside {
    /// What an agent in the engine's place told.
    pub(crate) fn trial(&self) -> Option<&TrialSeen> {
        self.trial.as_ref()?.as_ref().ok()
    }
}

/// What a log shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogSeen {
    /// What was read in it.
    pub seen: Observation,
    /// Lines between its beginning and its end were not read.
    pub gap: bool,
}

/// What an agent in the engine's place told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialSeen {
    /// What it found out.
    pub trial: Trial,
    /// What NIXL and UCX printed.
    pub printed: Observation,
}

/// Why there was no agent in the engine's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum NoTrial {
    /// The pod does not look like a KV worker, and nobody insisted.
    NotAKvWorker(String),
    /// There is no engine, or it has no NIXL of Python.
    NoEngine(String),
    /// The way to the container.
    Fault(Fault),
    /// The program could not run there.
    CouldNotRun(String),
}

/// The same with what follows from it.
pub(crate) struct NixlView<'f> {
    pub(crate) seen: &'f Observation,
    pub(crate) beside: &'f Beside,
    /// The pod, where it is one of a cluster.
    pub(crate) pod: Option<&'f PodObject>,
    /// The worker as its engine process has it.
    pub(crate) worker: Option<&'f Worker>,
    pub(crate) role: Option<Role>,
}

impl<'f> NixlView<'f> {
    pub(crate) fn of(
        facts: &'f NodeFacts,
        beside: &'f Beside,
        pod: Option<&'f PodObject>,
        worker: Option<&'f Worker>,
        role: Option<Role>,
    ) -> Self {
        Self {
            seen: &facts.observation,
            beside,
            pod,
            worker,
            role,
        }
    }

    /// Processes of an engine, or with NIXL.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, &'f Process)> {
        self.seen
            .process
            .processes
            .iter()
            .map(|(pid, process)| (*pid, &**process))
    }

    /// Those that have NIXL loaded.
    pub(crate) fn with_nixl(&self) -> impl Iterator<Item = (u32, &'f Process)> {
        self.processes().filter(|(_, process)| has_nixl(process))
    }

    /// What an agent in the engine's place told.
    pub(crate) fn trial(&self) -> Option<&'f TrialSeen> {
        self.beside.trial()
    }

    /// Dynamo started the engine: it sets the side channel by itself, inside of the process.
    pub(crate) fn by_dynamo(&self) -> bool {
        self.worker.is_some_and(|worker| worker.by_dynamo)
            || self.processes().any(|(_, process)| {
                process
                    .name
                    .value()
                    .is_some_and(|name| name.starts_with("dynamo"))
            })
    }

    /// A setting of the engine: of the process that has one.
    pub(crate) fn setting(&self, name: &str) -> Option<&'f Fact<String>> {
        self.processes()
            .find_map(|(_, process)| process.environment.get(name))
            .filter(|fact| fact.is_seen())
    }
}

/// Mapped libraries; none where they could not be read.
pub(crate) fn libraries(process: &Process) -> &[MappedLibrary] {
    process.libraries.value().map_or(&[], Vec::as_slice)
}

/// NIXL itself, and not only a plugin's file with its name in the path.
pub(crate) fn has_nixl(process: &Process) -> bool {
    libraries(process)
        .iter()
        .any(|library| library.library == "libnixl")
}

/// `VLLM::EngineCore (process 42)`.
pub(crate) fn who(pid: u32, process: &Process) -> String {
    match process.name.value() {
        Some(name) => format!("{name} (process {pid})"),
        None => format!("process {pid}"),
    }
}
