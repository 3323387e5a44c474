//! A transport setting of one worker, with its origin.

use serde::{Deserialize, Serialize};

use crate::place::Place;

/// The value that a setting will have when the worker starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Value {
    /// Written out in the input.
    Literal(String),
    /// Decided when the pod starts: a field reference, a shell expression, a ConfigMap that is not here.
    /// The text says by what, never a guess at the result.
    Dynamic(String),
}

impl Value {
    /// The value where it is written out.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Dynamic(_) => None,
        }
    }
}

/// How the reason begins why a JSON flag has no literal value: what is written there is no JSON object. What is wrong
/// with it follows.
pub const NOT_JSON: &str = "text that is not a JSON object";

/// The name of a setting that says what is wrong with an engine's configuration file as a whole.
pub const CONFIG_FAULT: &str = "engine configuration";

/// The name of the setting that holds the model, however the engine is told it: `--model`, `--model-path`, or the word
/// behind `serve`.
pub const MODEL: &str = "--model";

/// The variable that tells a vLLM worker of Dynamo its role where no flag does.
pub const VLLM_MODE: &str = "DYN_VLLM_DISAGGREGATION_MODE";

/// The same for TensorRT-LLM. (SGLang has no such variable.)
pub const TRTLLM_MODE: &str = "DYN_TRTLLM_DISAGGREGATION_MODE";

/// How a setting is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Form {
    /// `- name: X` / `value: Y` on lines of their own.
    EnvEntry,
    /// `{name: X, value: Y}`.
    EnvFlow,
    /// `X: Y` in a mapping of variables.
    EnvMap,
    /// Reached through a YAML alias or merge key.
    EnvAlias,
    /// `valueFrom`, found in a ConfigMap of the same input.
    ConfigMap,
    /// A key of a ConfigMap of the same input that `envFrom` takes as a whole.
    EnvFrom,
    /// `valueFrom` or `envFrom` that only the cluster can answer.
    Reference,
    /// Set for every component of a graph.
    Graph,
    /// `export X=Y`, or `X=Y` followed by `export X`, in a start script.
    ShellExport,
    /// `env X=Y command` or `X=Y command`.
    ShellPrefix,
    /// `mpirun -x X=Y`.
    MpirunForward,
    /// A command line flag of the engine.
    Flag,
    /// A key of the engine's configuration file or of JSON inside a flag.
    EngineConfig,
    /// Inside a patch or another manifest that is kept as a string.
    Embedded,
    /// Read from a running engine: its environment or its command line.
    LiveProcess,
}

impl Form {
    /// A short name for reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EnvEntry => "env entry",
            Self::EnvFlow => "env entry in flow style",
            Self::EnvMap => "env map",
            Self::EnvAlias => "env through a YAML alias",
            Self::ConfigMap => "ConfigMap",
            Self::EnvFrom => "envFrom a ConfigMap",
            Self::Reference => "reference resolved by the cluster",
            Self::Graph => "graph-wide env",
            Self::ShellExport => "export in the start script",
            Self::ShellPrefix => "assignment before the command",
            Self::MpirunForward => "mpirun -x",
            Self::Flag => "engine flag",
            Self::EngineConfig => "engine configuration",
            Self::Embedded => "patch inside a string",
            Self::LiveProcess => "live process",
        }
    }
}

/// Whether a setting of this name is an environment variable, not an engine's flag or a key of its configuration: those begin
/// with `-` or a small letter.
#[must_use]
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
}

/// One setting: a variable of the catalogue, an engine flag, or a key of the engine's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// `UCX_TLS`, `--disaggregation-mode`, `cache_transceiver_config.backend`.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// How it is made.
    pub form: Form,
    /// Where it is written.
    pub place: Place,
}
