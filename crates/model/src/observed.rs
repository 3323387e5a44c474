//! What moved between workers while their engines ran, by counters: facts, as reports hand them on.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What counters of two moments say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// As much left the prefill worker as reached the decode worker.
    Between,
    /// Hardly anything moved.
    Nothing,
    /// Something moved, and not from the one to the other.
    Other,
    /// One worker only was looked at.
    OneEnd,
    /// The counters cannot be compared, or could not be read.
    Unknown,
}

/// What moved bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// An interface of the pod's network namespace.
    Interface,
    /// An RDMA port, which counts what the whole machine does.
    RdmaPort,
}

/// What an interface or a port counted at one end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The pod.
    pub pod: String,
    /// `eth0`, or `mlx5_0:1`.
    pub name: String,
    /// Which of the two it is.
    pub medium: Medium,
    /// Out of the pod, as against into it.
    pub sent: bool,
    /// Bytes; at most so many where only packets are counted.
    pub bytes: u64,
    /// Packets, where the kernel counts no bytes there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
}

/// What an engine itself had open, and counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EngineSeen {
    /// Its pod.
    pub pod: String,
    /// Its process that transfers.
    pub process: u32,
    /// Its TCP connections that lead to the engine at the other end; absent where sockets could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_to_peer: Option<u32>,
    /// Connected RDMA queue pairs, by device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub queue_pairs: BTreeMap<String, u32>,
    /// RDMA devices that it has open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rdma_devices: Vec<String>,
    /// KV bytes that its metrics counted meanwhile; absent where it shows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_bytes: Option<u64>,
    /// The metric that did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_metric: Option<String>,
}

/// What moved between two workers, or in and out of one, in some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObservedTraffic {
    /// What the counters say.
    pub found: Found,
    /// The kind that carried as much at both ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Medium>,
    /// It was KV: the engines' own connections or queue pairs on that way, and what their metrics counted, agree with it.
    pub kv: bool,
    /// In words.
    pub words: String,
    /// Time between the two looks at the counters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<u64>,
    /// What moved more than connections that live.
    pub moved: Vec<Moved>,
    /// The engines.
    pub engines: Vec<EngineSeen>,
}
