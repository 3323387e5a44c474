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
    /// Findings that count as ok because somebody decided so.
    #[serde(default, skip_serializing_if = "Accepted::is_none")]
    pub accepted: Accepted,
}

/// Findings that count as ok because somebody decided so, by how they did. Each result tells why in its note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// By a comment in the input.
    pub suppressed: u32,
    /// Known: in the baseline.
    pub known: u32,
    /// By the configuration file.
    pub allowed: u32,
}

impl Accepted {
    /// All of them.
    pub fn total(self) -> u32 {
        self.suppressed
            .saturating_add(self.known)
            .saturating_add(self.allowed)
    }

    /// Nothing was accepted.
    pub fn is_none(&self) -> bool {
        self.total() == 0
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.suppressed = self.suppressed.saturating_add(other.suppressed);
        self.known = self.known.saturating_add(other.known);
        self.allowed = self.allowed.saturating_add(other.allowed);
    }

    /// `2 suppressed, 1 known`; nothing where nothing was accepted.
    pub fn words(self) -> String {
        [
            (self.suppressed, "suppressed"),
            (self.known, "known"),
            (self.allowed, "allowed"),
        ]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect::<Vec<_>>()
        .join(", ")
    }
}
