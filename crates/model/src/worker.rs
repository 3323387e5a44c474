//! One kind of pod of a deployment: its role, engine, settings and what it asks the cluster for.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::place::Place;
use crate::setting::{Setting, Value};

/// What a worker does in a disaggregated deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Computes the KV cache.
    Prefill,
    /// Fetches the KV cache and generates tokens.
    Decode,
    /// Does both; nothing is transferred.
    Aggregated,
    /// One of prefill and decode, for it has a connector between them; nothing tells which.
    Unknown,
    /// Encodes images or audio for another worker.
    Encode,
    /// Routes requests; holds no KV cache.
    Frontend,
    /// Anything else: planners, stores, jobs.
    Other,
}

impl Role {
    /// The field's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::Aggregated => "aggregated",
            Self::Unknown => "unknown-role",
            Self::Encode => "encode",
            Self::Frontend => "frontend",
            Self::Other => "other",
        }
    }

    /// Whether this role sends or receives KV cache.
    pub fn moves_kv(self) -> bool {
        matches!(self, Self::Prefill | Self::Decode | Self::Unknown)
    }
}

/// The inference engine inside a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Engine {
    /// vLLM, plain or under Dynamo.
    Vllm,
    /// SGLang.
    Sglang,
    /// TensorRT-LLM.
    Trtllm,
    /// TokenSpeed.
    TokenSpeed,
    /// Dynamo's mock engine: it moves no KV cache.
    Mocker,
    /// Nothing in the input tells.
    Unknown,
}

impl Engine {
    /// The name that its users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
            Self::Trtllm => "TensorRT-LLM",
            Self::TokenSpeed => "TokenSpeed",
            Self::Mocker => "mocker",
            Self::Unknown => "unknown engine",
        }
    }
}

/// The kind of accelerator that a worker asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Accelerator {
    /// NVIDIA GPUs.
    Nvidia,
    /// AMD GPUs (ROCm).
    Amd,
    /// Intel GPUs (XPU).
    IntelXpu,
    /// Intel Gaudi.
    Gaudi,
    /// Huawei Ascend NPUs.
    Ascend,
    /// Google TPUs.
    Tpu,
    /// AWS Neuron.
    Neuron,
}

impl Accelerator {
    /// Its vendor's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nvidia => "NVIDIA GPU",
            Self::Amd => "AMD GPU",
            Self::IntelXpu => "Intel XPU",
            Self::Gaudi => "Intel Gaudi",
            Self::Ascend => "Ascend NPU",
            Self::Tpu => "TPU",
            Self::Neuron => "AWS Neuron",
        }
    }
}

/// The role that somebody gave a worker beside its engine: the engine may have been told another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// The role.
    pub role: Role,
    /// What says it.
    pub by: NamedBy,
    /// Where it is written.
    pub place: Place,
}

/// What names a worker's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NamedBy {
    /// A label that a stack defines and its router selects by.
    Selector,
    /// A field of its kind: `type: prefill`.
    Field,
    /// Another label.
    Label,
    /// Its name.
    Name,
}

impl NamedBy {
    /// What it is called in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Selector => "the label that routers select by",
            Self::Field => "the type of its component",
            Self::Label => "its label",
            Self::Name => "its name",
        }
    }
}

/// A value together with where it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Where it stands.
    pub place: Place,
}

/// An extended resource in limits or requests, such as `rdma/ib: 4`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// The quantity as written.
    pub quantity: String,
    /// Where it stands.
    pub place: Place,
}

impl Resource {
    /// The quantity as a count; `None` where it is not a plain number.
    pub fn count(&self) -> Option<u64> {
        self.quantity.trim().parse().ok()
    }

    /// A quantity of zero asks for nothing (frontends and GKE's Warden use it on purpose).
    pub fn is_requested(&self) -> bool {
        self.count() != Some(0)
    }
}

/// A claim on a device by dynamic resource allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The name that containers refer to.
    pub name: String,
    /// The ResourceClaimTemplate or ResourceClaim behind it.
    pub template: Option<String>,
    /// The pod declares a claim of this name.
    pub declared: bool,
    /// Where it stands.
    pub place: Place,
}

/// What hides a part of a worker from a reader of its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Hidden {
    /// The engine is started inside something that is not in the input (a script, an image's entry point).
    Command,
    /// The engine reads a configuration file that is not in the input.
    EngineConfig,
    /// A sourced file, a ConfigMap or a base configuration may set more variables.
    Environment,
    /// A Secret, whose values are never read, may set more variables.
    Secret,
}

/// The place of a pod in a group of pods that are one engine (LeaderWorkerSet and its kin).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum GroupPart {
    /// The pod that the group is reached by.
    Leader,
    /// One of the others, with ranks of the same engine.
    Member,
}

/// What a pod spec says of the pod's place in the cluster. Most say nothing of it, and a file can hold
/// a hundred thousand pods, so a worker keeps it apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodFacts {
    /// The pod spec asks the scheduler to keep both roles on one host, or says single node.
    pub same_host: Option<Located<String>>,
    /// What a pod anti-affinity by hostname says: `required` or `preferred`.
    pub anti_affinity: Option<Located<String>>,
    /// `dnsPolicy`.
    pub dns_policy: Option<Located<String>>,
    /// The machine type that a node selector or affinity names.
    pub machine: Option<Located<String>>,
    /// A service mesh puts its proxy into the pod; the label or annotation that asks for it.
    pub mesh: Option<Located<String>>,
    /// Networks that the Multus annotation attaches, where their number can be seen.
    pub networks: Option<Located<u64>>,
    /// Claims of the pod that none of its containers lists.
    pub unlisted_claims: Vec<Claim>,
}

/// Says nothing.
static NO_POD_FACTS: PodFacts = PodFacts {
    same_host: None,
    anti_affinity: None,
    dns_policy: None,
    machine: None,
    mesh: None,
    networks: None,
    unlisted_claims: Vec::new(),
};

impl PodFacts {
    /// Nothing where nothing is said.
    pub fn boxed(self) -> Option<Box<Self>> {
        (self != NO_POD_FACTS).then(|| Box::new(self))
    }
}

/// Everything known of one container that runs, or may run, an engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Component, service or workload name.
    pub name: String,
    /// Container name.
    pub container: String,
    /// Kind of the object that it comes from.
    pub kind: Arc<str>,
    /// Its role.
    pub role: Role,
    /// What shows the role; `None` where it is only a convention.
    pub role_place: Option<Box<Place>>,
    /// The role by field, label or name, whatever the engine was told.
    pub named: Option<Box<Named>>,
    /// Where the worker is declared.
    pub place: Place,
    /// Its engine.
    pub engine: Engine,
    /// Nothing in the input names the engine: it is the default of the worker's kind.
    pub engine_is_assumed: bool,
    /// Container image.
    pub image: Option<Box<Located<String>>>,
    /// Every transport setting that is in force, engine flags included.
    pub settings: Vec<Setting>,
    /// What settings can become that are decided at start: the values that branches of the start script give them. The
    /// setting itself stands in `settings` too, without a value.
    pub possible: Vec<Setting>,
    /// Settings that a later or more specific one replaces.
    pub overridden: Vec<Setting>,
    /// Names that look like transport variables and that nothing reads; their values are not kept.
    pub unknown_names: Vec<Located<String>>,
    /// Extended resources asked for.
    pub resources: Vec<Resource>,
    /// Accelerators per pod; `None` where the number is not written.
    pub accelerators: Option<u64>,
    /// Their kind.
    pub accelerator: Option<Accelerator>,
    /// DRA claims of this container.
    pub claims: Vec<Claim>,
    /// `securityContext.privileged`.
    pub privileged: bool,
    /// Added capabilities, without the `CAP_` prefix.
    pub capabilities: Vec<Located<String>>,
    /// `securityContext.runAsUser` of the container, else of the pod.
    pub run_as_user: Option<Box<Located<i64>>>,
    /// `hostNetwork`.
    pub host_network: bool,
    /// `hostIPC`.
    pub host_ipc: bool,
    /// `hostPID`.
    pub host_pid: bool,
    /// Host paths mounted into the pod that matter here, such as `/dev/infiniband`.
    pub host_paths: Vec<Located<String>>,
    /// Pod annotations that attach networks.
    pub annotations: Vec<(String, Place)>,
    /// Nodes per replica (multinode workers), at least 1.
    pub nodes: u64,
    /// Replicas, where written.
    pub replicas: Option<u64>,
    /// The start command was found and read.
    pub has_command: bool,
    /// What is hidden, and by what: why settings that are not here may still exist.
    pub hidden: Vec<(Hidden, String)>,
    /// What the pod spec says beside its containers, where it says any of it; [`Worker::pod`] reads it.
    pub pod: Option<Box<PodFacts>>,
    /// Which template of a group of pods this is.
    pub part: Option<GroupPart>,
    /// The ranks are started by `mpirun` in the command itself.
    pub starts_mpirun: bool,
    /// Its engine is started through Dynamo's module (`python3 -m dynamo.vllm`), whatever the kind of the object.
    pub by_dynamo: bool,
    /// Why the start command, as it is written, does not start what it seems to start.
    pub command_fault: Option<Box<Located<CommandFault>>>,
    /// Names of cluster services that its variables and flags use.
    pub uses_cluster_names: Option<Box<Place>>,
}

/// A start command that does not do what it seems to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CommandFault {
    /// The program is an argument of the shell command before it (`ulimit -l unlimited python3 …`).
    Swallowed,
    /// `sh -c` takes one script; the words after it are lost.
    LostArguments,
}

impl Worker {
    /// What the pod spec says beside its containers.
    pub fn pod(&self) -> &PodFacts {
        self.pod.as_deref().unwrap_or(&NO_POD_FACTS)
    }

    /// The setting of that name which is in force.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|s| s.name == name)
    }

    /// The literal value of a setting.
    pub fn literal(&self, name: &str) -> Option<&str> {
        self.setting(name).and_then(|s| s.value.literal())
    }

    /// What hides the given part, where something does.
    pub fn hidden(&self, what: Hidden) -> Option<&str> {
        self.hidden
            .iter()
            .find(|(h, _)| *h == what)
            .map(|(_, why)| why.as_str())
    }

    /// Whether something that can be told apart from a Secret may set more than the input shows.
    pub fn is_open(&self) -> bool {
        self.hidden.iter().any(|(h, _)| *h != Hidden::Secret)
    }

    /// Whether a setting exists, but only the running pod knows its value.
    pub fn is_dynamic(&self, name: &str) -> bool {
        self.setting(name)
            .is_some_and(|s| matches!(s.value, Value::Dynamic(_)))
    }
}
