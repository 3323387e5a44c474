//! Transfers that were measured between the workers of a deployment, as facts.

use std::collections::BTreeMap;

use model::{CheckResult, Grade, MemoryKind, Role, Status, Subject};
use serde::{Deserialize, Serialize};

use crate::nixl::transfer::Tried;
use crate::registry;

/// A transfer between two workers that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairTried {
    /// Pod of the prefill worker.
    pub prefill: String,
    /// Pod of the decode worker.
    pub decode: String,
    /// What came of it.
    pub tried: Tried,
    /// What NIXL and UCX printed at each end, as the checks of messages read it.
    pub messages: Vec<Said>,
    /// The memory that the engines transfer, where it is known.
    pub memory: Option<MemoryKind>,
    /// Whether the two run on different nodes, where it is known.
    pub apart: Option<bool>,
    /// It was tried to find the bad end of another pair.
    pub again: bool,
}

/// What a message of NIXL or UCX means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Whose end.
    pub role: Role,
    /// Name of the check.
    pub name: String,
    /// What it says.
    pub status: Status,
    /// One line.
    pub detail: String,
    /// Name of the cause.
    pub cause: Option<String>,
    /// What to do.
    pub fix: Option<String>,
    /// Something worth knowing.
    pub note: Option<String>,
    /// How well it is supported.
    pub grade: Grade,
    /// A device, where it is about one.
    pub device: Option<String>,
}

impl Said {
    /// A result as a fact.
    pub fn of(role: Role, result: &CheckResult) -> Self {
        Self {
            role,
            name: result.name.to_string(),
            status: result.status,
            detail: result.detail.clone(),
            cause: result.cause.map(str::to_owned),
            fix: result.fix.clone(),
            note: result.note.clone(),
            grade: result.grade,
            device: result.subject.device.clone(),
        }
    }

    /// The result again. A cause that is not known any more is left out.
    pub(crate) fn result(&self) -> (Role, CheckResult) {
        let cause = self
            .cause
            .as_deref()
            .and_then(registry::cause)
            .map(|(_, cause)| cause.id);
        let result = CheckResult {
            name: self.name.clone().into(),
            status: self.status,
            detail: self.detail.clone(),
            cause,
            fix: self.fix.clone(),
            reason: None,
            note: self.note.clone(),
            grade: self.grade,
            subject: Subject {
                device: self.device.clone(),
                ..Subject::default()
            },
            sources: Vec::new(),
            collective: false,
            required: false,
            deployment: None,
        };
        (self.role, result)
    }
}

/// The way that a pair's transfers of the engines' kind went, in words; none where they did not come to their end.
fn way(pair: &PairTried) -> Option<String> {
    let Tried::Measured(transfer) = &pair.tried else {
        return None;
    };
    if transfer.stop.is_some() || transfer.legs.is_empty() {
        return None;
    }
    if transfer.legs.iter().any(|leg| !leg.verified) {
        return None;
    }
    let mut kinds: Vec<String> = transfer
        .legs
        .iter()
        .map(|leg| format!("{:?}{:?}", leg.carrier, leg.memory))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    Some(kinds.join(" "))
}

/// The way that most pairs went.
pub fn usual_way(tried: &[PairTried]) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for way in tried.iter().filter_map(way) {
        let count = counts.entry(way).or_default();
        *count = count.saturating_add(1);
    }
    counts
        .into_iter()
        .max_by_key(|(_, count)| *count)
        .map(|(way, _)| way)
}

/// Whether a pair came to its end, with content that arrived, the way that most pairs went.
pub fn went_well(pair: &PairTried, usual: Option<&str>) -> bool {
    way(pair).is_some_and(|way| Some(way.as_str()) == usual)
}
