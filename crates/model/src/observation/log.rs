//! What the logs of UCX, NIXL, NCCL, Gloo, libfabric, libibverbs and the kernel say, as data.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{Merge, Origin};

/// Log lines that mean something.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Log {
    /// Events in order, equal ones folded.
    pub events: Vec<Event>,
    /// UCX: which lanes an endpoint got.
    pub lanes: Vec<LaneLine>,
    /// UCX: which protocol it uses for which size.
    pub tables: Vec<ProtocolTable>,
    /// UCX: the first line of a protocol table that is there and could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread_table: Option<Origin>,
    /// Events that were left out because there were too many.
    pub dropped: u64,
}

/// Lists that are kept.
const MAX_KEPT: usize = 4096;

impl Merge for Log {
    fn merge(&mut self, later: Self) {
        for event in later.events {
            self.add(event);
        }
        for lanes in later.lanes {
            self.add_lanes(lanes);
        }
        for table in later.tables {
            self.add_table(table);
        }
        if self.unread_table.is_none() {
            self.unread_table = later.unread_table;
        }
        self.dropped = self.dropped.saturating_add(later.dropped);
    }
}

impl Log {
    /// Adds an event; one that repeats the last of its pattern with equal fields is counted there.
    pub fn add(&mut self, event: Event) {
        let room = self.events.len() < MAX_KEPT;
        let same = self.events.iter_mut().rev().take(32).find(|held| {
            held.pattern == event.pattern
                // Mostly the last field tells, and a log can have millions of lines that differ.
                && held.fields.last_key_value() == event.fields.last_key_value()
                && held.fields == event.fields
                && held.process == event.process
                && held.origin.from == event.origin.from
        });
        match same {
            Some(held) => {
                held.count = held.count.saturating_add(event.count);
                held.last_line = event.last_line;
            }
            None if room => self.events.push(event),
            None => self.dropped = self.dropped.saturating_add(1),
        }
    }

    /// Adds lanes.
    pub fn add_lanes(&mut self, lanes: LaneLine) {
        if self.lanes.len() < MAX_KEPT {
            self.lanes.push(lanes);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Adds a table.
    pub fn add_table(&mut self, table: ProtocolTable) {
        if self.tables.len() < MAX_KEPT {
            self.tables.push(table);
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
    }

    /// Events of one pattern.
    pub fn of<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = &'a Event> {
        self.events.iter().filter(move |e| e.pattern == pattern)
    }
}

/// Who writes a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Component {
    /// UCX.
    Ucx,
    /// NIXL, or an engine about NIXL.
    Nixl,
    /// NCCL.
    Nccl,
    /// Gloo.
    Gloo,
    /// libfabric, or the OFI plugin of NCCL.
    Libfabric,
    /// libibverbs.
    Verbs,
    /// The kernel.
    Kernel,
    /// NVIDIA's fabric manager or its subnet manager NVLSM.
    FabricManager,
    /// The engine itself.
    Engine,
}

/// How grave the writer calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Trace or debug.
    Debug,
    /// Information.
    Info,
    /// Warning.
    Warn,
    /// Error.
    Error,
    /// The process ends.
    Fatal,
}

/// One line that means something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Where it is, the first time.
    pub origin: Origin,
    /// Where it is, the last time (1-based).
    pub last_line: u32,
    /// How often.
    pub count: u32,
    /// Who writes.
    pub component: Component,
    /// How grave the writer calls it, where it says so.
    pub severity: Option<Severity>,
    /// Which kind of line, in kebab case: `ucx-transport-not-available`. The parser of logs lists them.
    pub pattern: Cow<'static, str>,
    /// What the line names: `device`, `errno`, `length`.
    pub fields: BTreeMap<Cow<'static, str>, String>,
    /// The process that writes, as the line names it.
    pub process: Process,
}

impl Event {
    /// A field.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// The process that writes a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Host name; in a pod its name.
    pub host: Option<String>,
    /// Process number.
    pub pid: Option<u32>,
    /// Rank of a collective, or worker of an engine.
    pub rank: Option<u32>,
}

/// How far the peer of an endpoint is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The process itself.
    SelfEndpoint,
    /// Another process of the same node.
    IntraNode,
    /// Another node.
    InterNode,
    /// Not told.
    Unknown,
}

/// A lane: transport and device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Lane {
    /// `rc_mlx5`, `tcp`, `cuda_ipc`.
    pub transport: String,
    /// `mlx5_0:1`, `eth0`, `cuda`.
    pub device: String,
}

/// `ucp_context_0 inter-node cfg#1 tag(rc_mlx5/mlx5_0:1)`. A hint: emulation does not show in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneLine {
    /// Where.
    pub origin: Origin,
    /// `ucp_context_0`, or the name that NIXL gives.
    pub context: String,
    /// How far the peer is.
    pub scope: Scope,
    /// Number of the configuration.
    pub config: Option<u32>,
    /// Use and its lanes, in order: `rma`, `rma_am`, `am`, `amo_am`, `tag`, `stream`, `ka`, `cm`.
    pub uses: Vec<(String, Vec<Lane>)>,
    /// The process that writes.
    pub process: Process,
}

/// Which layout a protocol table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableLayout {
    /// One title row (up to UCX 1.21).
    Old,
    /// Two title rows and column titles.
    New,
}

/// What UCX does for one operation, memory kind and peer (`UCX_PROTO_INFO=y`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolTable {
    /// Where.
    pub origin: Origin,
    /// Which layout.
    pub layout: TableLayout,
    /// Title as printed, such as `ucp_context_0 intra-node cfg#1`.
    pub title: String,
    /// `ucp_context_0`, `self#0`.
    pub context: Option<String>,
    /// How far the peer is.
    pub scope: Scope,
    /// Number of the configuration.
    pub config: Option<u32>,
    /// `put`, `get`, `tagged send`, `active message`, with modifiers left out.
    pub operation: String,
    /// The operation as printed, with its modifiers: `remote memory write by ucp_put* from host memory to cuda/dev[0]`.
    pub description: String,
    /// Memory that it reads from: `host`, `cuda`, `cuda/dev[0]`.
    pub from_memory: Option<String>,
    /// Memory that it writes to.
    pub to_memory: Option<String>,
    /// Rows in order of size.
    pub rows: Vec<ProtocolRow>,
    /// It ends early.
    pub cut: bool,
    /// The process that writes.
    pub process: Process,
}

/// One range of sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolRow {
    /// First and last byte count as printed: `0`, `2K`, `inf`.
    pub range: (String, String),
    /// First byte count.
    pub from_bytes: Option<u64>,
    /// Last byte count; `None` for `inf`.
    pub to_bytes: Option<u64>,
    /// `zero-copy`, `short`, `copy-in`, `(?) software emulation`. A word, no proof: read the lanes.
    pub how: String,
    /// The configuration column as printed.
    pub config: String,
    /// Transports and devices of that column.
    pub lanes: Vec<Lane>,
}
