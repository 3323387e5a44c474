//! What was observed in one place, with what is expected of it.

use std::borrow::Cow;

use model::Role;
use model::observation::{Observation, Unanswered};

use serde::{Deserialize, Serialize};

use crate::nixl::live::view::{Beside, TrialSeen};
use crate::node::ucx_build::folder;

/// What `node` judges.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeFacts {
    /// Everything that was read.
    pub observation: Observation,
    /// What the place is for, where somebody says so.
    pub role: Option<Role>,
    /// Saved outputs, as against what was read here and now.
    pub saved: bool,
    /// Why not everything was read that could have been.
    pub gap: Option<String>,
    /// What `nixl` looks at beside it; `None` for `node`.
    pub nixl: Option<Box<Beside>>,
    /// Tools that were run here and gave nothing or not all, by command line.
    pub unanswered: Vec<(Cow<'static, str>, Unanswered)>,
}

impl NodeFacts {
    /// What an agent in the engine's place told.
    pub(crate) fn trial(&self) -> Option<&TrialSeen> {
        self.nixl.as_ref()?.trial()
    }
}

/// The same with what follows from it, worked out once for all checks.
pub(crate) struct NodeView<'f> {
    pub(crate) facts: &'f NodeFacts,
    pub(crate) seen: &'f Observation,
}

/// Parts of names of programs that take requests and pass them on.
const ROUTERS: [&str; 4] = ["frontend", "router", "planner", "mooncake_master"];

impl<'f> NodeView<'f> {
    pub(crate) fn of(facts: &'f NodeFacts) -> Self {
        Self {
            facts,
            seen: &facts.observation,
        }
    }

    /// The place is known to send or receive KV cache: somebody says so, or an engine runs there with a role.
    /// Only then is the lack of a fabric a failure and not a fact about some machine.
    pub(crate) fn is_kv_worker(&self) -> bool {
        self.facts.role.is_some_and(Role::moves_kv) || self.runs_kv_engine()
    }

    /// An engine process is there that a connector or a disaggregation mode was given to.
    fn runs_kv_engine(&self) -> bool {
        self.seen.process.processes.values().any(|process| {
            process.flags.keys().any(|flag| {
                matches!(
                    flag.as_str(),
                    "--kv-transfer-config"
                        | "--disaggregation-mode"
                        | "--is-prefill-worker"
                        | "--is-decode-worker"
                )
            })
        })
    }

    /// What `ucx_info` says is about the engine's UCX. On a machine it is another copy as often as not: engines and
    /// NIXL's wheel bring their own. Who saved an output has chosen it.
    pub(crate) fn ucx_info_is_the_engines(&self) -> bool {
        if self.facts.saved {
            return true;
        }
        let mapped = || {
            self.seen
                .process
                .processes
                .values()
                .flat_map(|process| process.libraries.value().into_iter().flatten())
                .filter(|library| library.library == "libucp" || library.library == "libucs")
                .map(|library| folder(&library.path))
        };
        self.seen
            .software
            .ucx
            .iter()
            .filter_map(|build| build.library.as_deref().map(folder))
            .any(|theirs| mapped().any(|own| own == theirs))
    }

    /// The same of every engine that runs here, each value once: two engines of one container need not be started alike.
    pub(crate) fn settings(&self, name: &str) -> Vec<&'f model::observation::Fact<String>> {
        let mut found: Vec<&'f model::observation::Fact<String>> = Vec::new();
        for process in self.seen.process.processes.values() {
            // Who only routes moves no KV cache, whatever its variables say.
            let routes = process
                .name
                .value()
                .is_some_and(|name| ROUTERS.iter().any(|word| name.contains(word)));
            if let Some(fact) = process.environment.get(name)
                && !routes
                && fact.is_seen()
                && !found.iter().any(|known| known.value() == fact.value())
            {
                found.push(fact);
            }
        }
        if found.is_empty() {
            found.extend(self.setting(name));
        }
        found
    }

    /// A setting in force: of the engine process, else one that a log prints.
    pub(crate) fn setting(&self, name: &str) -> Option<&'f model::observation::Fact<String>> {
        self.seen
            .process
            .processes
            .values()
            .find_map(|process| process.environment.get(name))
            .or_else(|| self.seen.process.environment.get(name))
            .filter(|fact| fact.is_seen())
    }
}
