//! How much of what a verdict needs was seen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts of what was looked at, so that nobody takes a thin report for a thorough one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Input files or streams that were read.
    pub inputs_read: u32,
    /// Inputs, or documents of them, that were left out or could not be read.
    pub inputs_not_read: u32,
    /// Prefill, decode and aggregated workers found.
    pub workers_found: u32,
    /// Of these, how many were looked at while running.
    pub workers_probed: u32,
    /// Prefill-decode pairs that a `trusted` verdict would need.
    pub pairs_required: u32,
    /// Pairs in which a transfer was tried.
    pub pairs_tested: u32,
    /// Pairs in which the transport was proven.
    pub pairs_proven: u32,
    /// Facts that checks asked for and got.
    pub facts_seen: u32,
    /// Facts that checks asked for and did not get.
    pub facts_missing: u32,
}
