//! The engine process.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, merge_fields};
use super::limits::Limits;

/// Processes of inference engines, and settings that are seen without a process.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Processes {
    /// By process number.
    pub processes: BTreeMap<u32, Box<Process>>,
    /// Settings in force that a log or a tool prints, by name. Only names of the catalogue are kept.
    pub environment: BTreeMap<String, Fact<String>>,
    /// Whether processes could be looked at.
    pub looked: Fact<bool>,
    /// TCP sockets that listen in the network namespaces of engines.
    pub listening: Fact<Vec<Listener>>,
    /// Whether the RDMA queue pairs of processes were listed; without it, that a process has none means nothing.
    pub queue_pairs_listed: Fact<bool>,
}

merge_fields!(Processes {
    processes,
    environment,
    looked,
    listening,
    queue_pairs_listed
});

/// A TCP socket that listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Listener {
    /// Where: `0.0.0.0`, `::`, `127.0.0.1`, or one address.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// The engine's process that has it, where it is one that was looked at.
    pub process: Option<u32>,
}

/// A TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Connection {
    /// Own address and port.
    pub local: (IpAddr, u16),
    /// The peer's.
    pub remote: (IpAddr, u16),
}

/// One process of an engine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Name of the program, without its arguments.
    pub name: Fact<String>,
    /// `vllm`, `sglang`, `trtllm`, `dynamo`.
    pub engine: Fact<String>,
    /// Variables of the catalogue and their values; others are never kept.
    pub environment: BTreeMap<String, Fact<String>>,
    /// The interpreter that it runs, where it is one of Python (`/proc/PID/exe`).
    pub interpreter: Fact<String>,
    /// Whether its environment could be read; without it, that a variable is not there means nothing.
    pub environment_read: Fact<bool>,
    /// Flags of the catalogue and their values; others are never kept.
    pub flags: BTreeMap<String, Fact<String>>,
    /// Whether its command line could be read; without it, that a flag is not there means nothing.
    pub flags_read: Fact<bool>,
    /// Files of transport libraries that it has mapped.
    pub libraries: Fact<Vec<MappedLibrary>>,
    /// Its limits and rights, which need not be those of a shell beside it.
    pub limits: Limits,
    /// Namespaces by name (`ipc`, `pid`, `net`), as numbers.
    pub namespaces: BTreeMap<String, Fact<u64>>,
    /// Device nodes that it has open: `/dev/infiniband/uverbs0`.
    pub open_devices: Fact<Vec<String>>,
    /// Established TCP connections to other machines.
    pub tcp_connections: Fact<u32>,
    /// The first of them.
    pub connections: Fact<Vec<Connection>>,
    /// Connected RDMA queue pairs that it owns, by device; those that lead to itself apart.
    pub queue_pairs: BTreeMap<String, Fact<u32>>,
    /// Files that its settings name, or that a library reads unasked, by path: whether they are there.
    pub files: BTreeMap<String, Fact<bool>>,
}

merge_fields!(Process {
    name,
    engine,
    interpreter,
    environment,
    environment_read,
    flags,
    flags_read,
    libraries,
    limits,
    namespaces,
    open_devices,
    tcp_connections,
    connections,
    queue_pairs,
    files
});

/// A library file that a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MappedLibrary {
    /// `libucp`, `libuct_ib`, `libuct_cuda`, `libnixl`, `libibverbs`, `libfabric`, `libnccl`, `libgdrapi`.
    pub library: String,
    /// Full path.
    pub path: String,
    /// The file was deleted or replaced after the process started.
    pub deleted: bool,
}
