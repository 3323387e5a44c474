//! What is said between the driver and the program in a worker: one JSON object a line.
//!
//! Answers come from a machine that may be broken: all of it is optional where it can be, and bounded where it is read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::{Memory, Operation};

/// What the program gets first.
#[derive(Debug, Serialize)]
pub(crate) struct Start<'a> {
    pub(crate) name: &'a str,
    pub(crate) memory: Vec<Memory>,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) gpu: u32,
    pub(crate) package: Option<&'a str>,
    pub(crate) backend: &'a BTreeMap<String, String>,
}

/// Orders. `do` comes first in each: the parent process of the program knows `look` by how the line begins. So many places
/// of the buffer, one behind the other, have so many bytes each.
#[derive(Debug, Serialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Order<'a> {
    Connect {
        metadata: &'a str,
        regions: &'a BTreeMap<Memory, (u64, u32)>,
    },
    Fill {
        memory: Memory,
        bytes: u64,
        places: u32,
    },
    Hash {
        memory: Memory,
        bytes: u64,
        places: u32,
    },
    Transfer {
        operation: Operation,
        local: Memory,
        remote: Memory,
        bytes: u64,
        places: u32,
    },
    Snapshot,
    Look,
    End,
}

/// Answers.
#[derive(Debug, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub(crate) enum Answer {
    Hello {
        facts: Box<HostFacts>,
    },
    Loaded {
        version: Option<String>,
        file: Option<String>,
    },
    Step {
        step: String,
    },
    Gpu {
        name: Option<String>,
        error: Option<String>,
    },
    Ready {
        metadata: String,
        regions: BTreeMap<Memory, (u64, u32)>,
        libraries: Vec<String>,
        open: Vec<String>,
    },
    Connected,
    Filled {
        hashes: Vec<String>,
    },
    Hashed {
        hashes: Vec<String>,
    },
    Moved {
        seconds: Vec<f64>,
    },
    Snapshot {
        snapshot: Box<Snapshot>,
        open: Vec<String>,
    },
    Look {
        step: Option<String>,
        connections: Vec<Connection>,
    },
    Done,
    Failed {
        error: String,
    },
    End {
        why: String,
        finished: bool,
        signal: Option<i32>,
        left_out: u64,
    },
}

/// The machine and container, as the program sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// Name; in a pod the pod's.
    pub hostname: String,
    /// Identity of the running kernel: equal on two ends of one machine.
    pub boot: String,
    /// Namespace by kind: `pid` to `pid:[4026531836]`. Comparable on one machine only.
    pub namespaces: BTreeMap<String, String>,
    /// Interface by address.
    pub addresses: BTreeMap<String, String>,
    /// Speed by interface, in Mb/s, where the kernel tells.
    pub speeds: BTreeMap<String, u64>,
    /// RDMA ports by `device:port`.
    pub ports: BTreeMap<String, PortFacts>,
    /// Version of Python.
    pub python: String,
    /// Limit of locked memory in bytes; none is unlimited.
    pub locked_memory: Option<i64>,
    /// Whether the limit does not bind (`CAP_IPC_LOCK`).
    pub may_lock: bool,
    /// Device files below `/dev/infiniband`.
    pub devices: Vec<String>,
    /// Those of them that may not be opened.
    pub closed: Vec<String>,
}

/// An RDMA port.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortFacts {
    /// `4: ACTIVE`.
    pub state: String,
    /// `400 Gb/sec (4X NDR)`.
    pub rate: String,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Interface of a RoCE port.
    pub netdev: String,
}

/// Counters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Bytes by interface of the network namespace; none where they cannot be read.
    pub interfaces: Option<BTreeMap<String, Traffic>>,
    /// Raw counters by RDMA port and name. They belong to the whole machine.
    pub ports: BTreeMap<String, BTreeMap<String, u64>>,
    /// TCP connections of the process itself; none where the kernel does not tell their bytes.
    pub sockets: Option<Vec<Socket>>,
}

/// Bytes of an interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

/// A TCP connection with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Socket {
    /// Own address and port.
    pub local: (String, u16),
    /// The peer's.
    pub remote: (String, u16),
    /// Bytes that the peer has acknowledged.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// A TCP connection with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Own address and port.
    pub local: (String, u16),
    /// The peer's.
    pub remote: (String, u16),
    /// `established`, `syn-sent`, `listen`.
    pub state: String,
}
