//! The row of UCX's protocol table that a leg used.

use std::collections::BTreeSet;

use checks::{Family, family};
use model::observation::Observation;
use model::observation::log::{Lane, ProtocolTable, Scope};

use crate::plan::{Leg, Memory};

/// What the table says about a leg.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Transports and devices.
    pub(crate) lanes: BTreeSet<Lane>,
    /// Words of the table.
    pub(crate) how: String,
    /// Size range as printed.
    pub(crate) range: (String, String),
}

impl Row {
    /// Remote CPUs copy.
    pub(crate) fn emulated(&self) -> bool {
        self.how.contains("emulation")
    }

    pub(crate) fn families(&self) -> Vec<Family> {
        let mut all: Vec<Family> = Vec::new();
        for lane in &self.lanes {
            let family = family(&lane.transport);
            if !all.contains(&family) {
                all.push(family);
            }
        }
        all
    }

    pub(crate) fn devices(&self) -> BTreeSet<&str> {
        self.lanes.iter().map(|lane| lane.device.as_str()).collect()
    }

    /// `rc_mlx5/mlx5_0:1 and rc_mlx5/mlx5_1:1`.
    pub(crate) fn words(&self) -> String {
        let words: Vec<String> = self
            .lanes
            .iter()
            .map(|lane| format!("{}/{}", lane.transport, lane.device))
            .collect();
        words.join(" and ")
    }
}

/// Why there is no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRow {
    /// No table of the peer for this operation and memory.
    NoTable,
    /// A table is there that cannot be read.
    Unreadable,
    /// No row of it has this size.
    NoSize,
    /// Tables of it differ.
    Differ,
    /// The row names no transport.
    NoLane,
}

impl NoRow {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::NoTable => {
                "UCX printed no protocol table of the peer for this operation and memory"
            }
            Self::Unreadable => "UCX printed a protocol table that cannot be read",
            Self::NoSize => "no row of UCX's protocol table has this size",
            Self::Differ => {
                "UCX printed several protocol tables of the peer that differ for this size"
            }
            Self::NoLane => "the row of UCX's protocol table names no transport",
        }
    }
}

/// The row of the initiator's table for the peer, the operation, the kinds of memory and the size.
///
/// Only the initiator's counts for one-sided operations; tables of `self` are about the process itself.
pub(crate) fn row(seen: &Observation, leg: &Leg) -> Result<Row, NoRow> {
    let mut found: Option<Row> = None;
    let mut of_peer = false;
    for table in &seen.log.tables {
        if !is_about(table, leg) {
            continue;
        }
        of_peer = true;
        let Some(row) = table.rows.iter().find(|row| {
            row.from_bytes.is_some_and(|first| first <= leg.bytes)
                && (row.range.1 == "inf" || row.to_bytes.is_some_and(|last| leg.bytes <= last))
        }) else {
            continue;
        };
        let row = Row {
            lanes: row.lanes.iter().cloned().collect(),
            how: row.how.clone(),
            range: row.range.clone(),
        };
        match &found {
            Some(held) if held.lanes != row.lanes || held.emulated() != row.emulated() => {
                return Err(NoRow::Differ);
            }
            _ => found = Some(row),
        }
    }
    match found {
        Some(row) if row.lanes.is_empty() => Err(NoRow::NoLane),
        Some(row) => Ok(row),
        None if of_peer => Err(NoRow::NoSize),
        None if seen.log.unread_table.is_some() => Err(NoRow::Unreadable),
        None => Err(NoRow::NoTable),
    }
}

fn is_about(table: &ProtocolTable, leg: &Leg) -> bool {
    // `read by ucp_get into LOCAL from REMOTE`, `write by ucp_put from LOCAL to REMOTE`.
    let (local, remote) = match leg.operation {
        crate::plan::Operation::Read => (&table.to_memory, &table.from_memory),
        crate::plan::Operation::Write => (&table.from_memory, &table.to_memory),
    };
    table.operation == leg.operation.in_table()
        && matches!(table.scope, Scope::IntraNode | Scope::InterNode)
        && is_kind(local.as_deref(), leg.local)
        && is_kind(remote.as_deref(), leg.remote)
}

fn is_kind(printed: Option<&str>, memory: Memory) -> bool {
    let kind = printed.and_then(|text| text.split('/').next());
    match memory {
        Memory::Host => kind == Some("host"),
        Memory::Gpu => kind.is_some_and(|kind| {
            ["cuda", "rocm", "ze"]
                .iter()
                .any(|name| kind == *name || kind.starts_with(&format!("{name}-")))
        }),
    }
}
