//! What a measurement gave, as it can be saved and judged later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::message::{Connection, HostFacts, Snapshot};
use crate::plan::{Leg, Plan};
use crate::side::{Both, Side};

/// A measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was to be done.
    pub plan: Plan,
    /// The two ends.
    pub ends: Both<EndRecord>,
    /// Legs that were begun, in order.
    pub legs: Vec<LegRecord>,
    /// Why it ended before its plan was done.
    pub stop: Option<Stop>,
}

/// One end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndRecord {
    /// The machine and container.
    pub facts: Option<HostFacts>,
    /// Version of the NIXL package.
    pub nixl_version: Option<String>,
    /// Its file.
    pub nixl_file: Option<String>,
    /// Settings of UCX and NIXL that it got; only those of the catalogue that are no secrets.
    pub settings: BTreeMap<String, String>,
    /// Name of the GPU whose memory was used.
    pub gpu: Option<String>,
    /// Why GPU memory was not used.
    pub gpu_error: Option<String>,
    /// Libraries of the KV path that the program mapped.
    pub libraries: Vec<String>,
    /// Devices that it had open.
    pub open: Vec<String>,
    /// What NIXL and UCX printed.
    pub output: String,
    /// Lines of it that were left out.
    pub left_out: u64,
    /// The step that it was in last.
    pub step: Option<String>,
    /// Its TCP connections when it was looked at because it did not answer.
    pub looked: Option<Vec<Connection>>,
    /// The error that it told.
    pub error: Option<String>,
    /// It told that it was done, or which error ended it.
    pub finished: bool,
    /// The signal that ended it before that.
    pub signal: Option<i32>,
    /// Its stream ended, or brought nothing any more, before it said how it ended: it was killed, or the connection to it
    /// broke.
    pub lost: bool,
    /// Its time was over before it was done.
    pub timed_out: bool,
}

impl EndRecord {
    /// The connection that it was waiting for when it did not answer. UCX itself tells after two minutes.
    pub fn unanswered(&self) -> Option<&Connection> {
        self.looked.as_ref()?.iter().find(|c| c.state == "syn-sent")
    }

    /// Why it was no peer any more at the end, in words, where that is nothing that NIXL did.
    pub fn gone(&self) -> Option<&'static str> {
        if self.finished {
            None
        } else if self.lost {
            Some("was gone by then: it was killed, or the connection to it broke")
        } else if self.timed_out {
            Some("had ended by then: its time was over")
        } else if self.signal == Some(KILL) {
            Some("was gone by then: it was killed")
        } else {
            None
        }
    }
}

/// Nothing sends it to itself: a memory limit, or somebody else.
const KILL: i32 = 9;

/// One leg.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LegRecord {
    /// What was to be done.
    pub leg: Leg,
    /// Transfers that were done.
    pub transfers: u32,
    /// Seconds of each one that is timed.
    pub seconds: Vec<f64>,
    /// Transfers whose content arrived, by hashes of both ends.
    pub verified: u32,
    /// Counters before the first.
    pub before: Both<Snapshot>,
    /// Counters after the last, where it came to that.
    pub after: Option<Both<Snapshot>>,
}

impl LegRecord {
    /// All bytes that were moved.
    pub fn payload(&self) -> u64 {
        self.leg.bytes.saturating_mul(u64::from(self.transfers))
    }

    /// All of it was done, and all of the content arrived.
    pub fn complete(&self) -> bool {
        self.after.is_some()
            && self.transfers == self.leg.transfers()
            && self.verified == self.transfers
    }
}

/// Why a measurement ended early.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Which end stopped it.
    pub side: Side,
    /// The step that it was in.
    pub step: Option<String>,
    /// What happened.
    pub why: String,
}

/// Parameters of the UCX backend, as an engine gives them (`device_list`, `engine_config`).
pub(crate) type BackendParameters = BTreeMap<String, String>;
