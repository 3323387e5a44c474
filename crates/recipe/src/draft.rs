//! What one document says of one container, before references into other documents are resolved.

use std::sync::Arc;

use model::{
    Accelerator, Claim, CommandFault, Engine, Form, GroupPart, Hidden, InputProblem, Located,
    NamedBy, Place, PodFacts, Resource, Role, Surroundings,
};

use crate::resolve::{self, Resolved};

/// The value of a variable as the document gives it.
#[derive(Debug, Clone)]
pub(crate) enum EnvValue {
    /// Written out. Kept for variables outside the catalogue too, since flags may refer to them; only what
    /// a flag of ours takes from it ever leaves this crate.
    Literal(String),
    /// `configMapKeyRef`.
    ConfigMapKey {
        /// ConfigMap name.
        map: String,
        /// Its key.
        key: String,
    },
    /// Text with shell expansions in it.
    Shell(String),
    /// Only the running pod knows; the text says why.
    Dynamic(String),
    /// Removed again by `unset`.
    Unset,
    /// One of these in a branch of the start script, which may not be taken.
    Conditional(Box<Self>),
}

/// One variable.
#[derive(Debug, Clone)]
pub(crate) struct EnvDraft {
    pub(crate) name: String,
    pub(crate) value: EnvValue,
    pub(crate) form: Form,
    pub(crate) place: Place,
    /// Places of known keys inside a JSON value.
    pub(crate) json: Vec<(&'static str, Place)>,
}

/// `envFrom`.
#[derive(Debug, Clone, Default)]
pub(crate) struct EnvFromDraft {
    pub(crate) config_map: Option<String>,
    /// A Secret. Its values are never read.
    pub(crate) secret: Option<String>,
    /// What every name begins with that is not in the keys.
    pub(crate) prefix: String,
}

/// A flag of an engine.
#[derive(Debug, Clone)]
pub(crate) struct FlagDraft {
    /// With `-` for `_`.
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    /// The value has shell or Kubernetes expansions in it.
    pub(crate) expands: bool,
    pub(crate) place: Place,
    pub(crate) json: Vec<(&'static str, Place)>,
    pub(crate) form: Form,
}

/// What a start command runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Run {
    /// A command or arguments are given at all.
    pub(crate) given: bool,
    /// The engine that it starts.
    pub(crate) engine: Option<Engine>,
    /// Dynamo starts the engine.
    /// It starts a router, a frontend or a planner.
    pub(crate) frontend: bool,
    /// It starts something else that is known not to be an engine (a benchmark, a download).
    pub(crate) tool: bool,
    /// The engine's flags.
    pub(crate) flags: Vec<FlagDraft>,
    /// Flags that no engine has, one slip away from one that matters.
    pub(crate) misspelt: Vec<Located<String>>,
    /// `export`, `X=Y cmd`, `mpirun -x`, in order.
    pub(crate) exports: Vec<EnvDraft>,
    /// Assignments without `export`: in force only where the pod already has the variable.
    pub(crate) assigned: Vec<EnvDraft>,
    /// What is hidden, and by what.
    pub(crate) hidden: Vec<(Hidden, String)>,
    /// Scripts that are sourced.
    pub(crate) sources: Vec<String>,
    /// Scripts and programs that are run and that no rule knows.
    pub(crate) runs: Vec<String>,
    /// Files of exports that it writes for others to source.
    pub(crate) writes: Vec<(String, Vec<EnvDraft>)>,
    /// The engine is started by `mpirun`.
    pub(crate) mpirun: bool,
    /// The engine is started through Dynamo's module for it.
    pub(crate) by_dynamo: bool,
    /// It does not start what it seems to start.
    pub(crate) fault: Option<Located<CommandFault>>,
}

/// A ConfigMap or Secret mounted into the container.
#[derive(Debug, Clone)]
pub(crate) struct Mount {
    pub(crate) path: String,
    pub(crate) config_map: String,
}

/// One container of one pod template.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// Component, role or object name.
    pub(crate) name: String,
    pub(crate) kind: Arc<str>,
    pub(crate) container: String,
    pub(crate) place: Place,
    /// Number of the object in its file.
    pub(crate) object_index: u32,
    /// A field made for it says the role.
    pub(crate) declared: Option<(Role, Place)>,
    /// Names, labels and surroundings suggest a role.
    pub(crate) hinted: Option<Role>,
    /// The role by words that count only beside a connector, and the label that has them.
    pub(crate) worded: Option<(Role, Option<Place>)>,
    /// The label that suggests it; `None` where it is a name.
    pub(crate) hint_label: Option<(NamedBy, Place)>,
    pub(crate) framework: Option<Engine>,
    pub(crate) image: Option<Located<String>>,
    pub(crate) env: Vec<EnvDraft>,
    pub(crate) env_from: Vec<EnvFromDraft>,
    pub(crate) run: Run,
    pub(crate) resources: Vec<Resource>,
    pub(crate) accelerators: Option<u64>,
    pub(crate) accelerator: Option<Accelerator>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) privileged: bool,
    pub(crate) capabilities: Vec<Located<String>>,
    pub(crate) run_as_user: Option<Located<i64>>,
    pub(crate) host_network: bool,
    pub(crate) host_ipc: bool,
    pub(crate) host_pid: bool,
    pub(crate) host_paths: Vec<Located<String>>,
    pub(crate) annotations: Vec<(String, Place)>,
    pub(crate) nodes: u64,
    pub(crate) replicas: Option<u64>,
    pub(crate) mounts: Vec<Mount>,
    /// Files of exports that the pod's init containers write.
    pub(crate) written: Vec<(String, Vec<EnvDraft>)>,
    pub(crate) pod: PodFacts,
    /// Which template of a group of pods it is.
    pub(crate) part: Option<GroupPart>,
    /// Kubernetes runs it to completion.
    pub(crate) job: bool,
    /// Neither image nor command: it changes a container that is elsewhere.
    pub(crate) patch: bool,
}

impl Draft {
    fn refers_to_config_maps(&self) -> bool {
        !self.mounts.is_empty()
            || self.env_from.iter().any(|e| e.config_map.is_some())
            || self
                .env
                .iter()
                .any(|e| matches!(e.value, EnvValue::ConfigMapKey { .. }))
    }
}

/// One entry of a ConfigMap.
#[derive(Debug, Clone)]
pub(crate) struct ConfigEntry {
    pub(crate) key: String,
    /// The text, where it is short enough to be a setting.
    pub(crate) value: String,
    /// Line and column of the value.
    pub(crate) position: (u32, u32),
    /// What only entries that can matter have: most ConfigMaps hold data of other programs.
    pub(crate) details: Option<Box<ConfigDetails>>,
}

/// What an entry that can decide something holds.
#[derive(Debug, Clone)]
pub(crate) struct ConfigDetails {
    pub(crate) place: Place,
    pub(crate) json: Vec<(&'static str, Place)>,
    /// Keys of an engine's configuration file, where it is one.
    pub(crate) config: Option<Vec<FlagDraft>>,
    /// What it runs, where it is a shell script.
    pub(crate) script: Option<Run>,
}

impl ConfigEntry {
    /// The place of the value, blanked where nothing vouches for it.
    pub(crate) fn place(&self, file: &Arc<str>) -> Place {
        if let Some(details) = &self.details {
            return details.place.clone();
        }
        let text = format!("{}: \u{2026}", self.key);
        let mark = u32::try_from(self.key.len()).unwrap_or(0) + 2;
        Place {
            file: Arc::clone(file),
            line: self.position.0,
            column: self.position.1,
            text: text.into(),
            mark: (mark, mark + 3),
        }
    }

    pub(crate) fn json(&self) -> Vec<(&'static str, Place)> {
        self.details
            .as_ref()
            .map(|d| d.json.clone())
            .unwrap_or_default()
    }
}

/// A ConfigMap.
#[derive(Debug, Clone)]
pub(crate) struct ConfigMapDraft {
    pub(crate) name: String,
    pub(crate) file: Arc<str>,
    pub(crate) entries: Vec<ConfigEntry>,
}

/// Everything that one file says.
#[derive(Debug)]
pub struct FileDraft {
    pub(crate) path: Arc<str>,
    pub(crate) documents: u32,
    pub(crate) objects: Vec<ObjectDraft>,
    pub(crate) containers: Vec<Draft>,
    /// Containers that need nothing of other documents; a draft is several times as large.
    pub(crate) resolved: Vec<Resolved>,
    pub(crate) config_maps: Vec<ConfigMapDraft>,
    pub(crate) around: Surroundings,
    pub(crate) problems: Vec<InputProblem>,
    /// What a kustomization names.
    pub(crate) references: Vec<crate::elsewhere::Reference>,
    /// Files of patches that a kustomization names, and the objects that each changes.
    pub(crate) targets: Vec<(String, String)>,
    /// Variables of a document that describes no worker.
    pub(crate) loose_env: Vec<EnvDraft>,
    /// Engine settings of a document that describes no worker.
    pub(crate) loose_flags: Vec<FlagDraft>,
    /// Bytes that may still be looked at in the document being read. Every part counts as often as aliases
    /// lead to it, so that aliases of aliases end early.
    pub(crate) budget: u64,
}

impl FileDraft {
    /// Resolves the containers of the document that began with container `from`, if none refers to a ConfigMap.
    pub(crate) fn settle(&mut self, from: usize) {
        let of_document = self.containers.get(from..).unwrap_or_default();
        if of_document.iter().all(|d| !d.refers_to_config_maps()) {
            let settled = self
                .containers
                .drain(from.min(self.containers.len())..)
                .map(|d| resolve::resolve(d, &[]));
            self.resolved.extend(settled);
        }
    }

    /// A kind, which objects beside each other often have in common.
    pub(crate) fn kind(&self, kind: &str) -> Arc<str> {
        match self.objects.last() {
            Some(last) if *last.kind == *kind => Arc::clone(&last.kind),
            _ => kind.into(),
        }
    }

    /// Takes the cost of a part from the budget; false once there is nothing left, or too little.
    pub(crate) fn spend(&mut self, cost: u32) -> bool {
        let left = self.budget.checked_sub(u64::from(cost).max(1));
        self.budget = left.unwrap_or(0);
        left.is_some()
    }
}

/// One Kubernetes object, or what stands for one.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectDraft {
    pub(crate) kind: Arc<str>,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) partial: Option<model::Partial>,
    /// Its kind never holds a worker.
    pub(crate) bare: bool,
}
