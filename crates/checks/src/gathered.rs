//! Everything that a run gathered of a deployment: what is judged, and what a bundle holds.

use serde::{Deserialize, Serialize};

use crate::judge_pods::{Around, ProbedPod};

/// Everything that was gathered of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gathered {
    /// Its workers.
    pub pods: Vec<ProbedPod>,
    /// What surrounds them.
    pub around: Around,
    /// What was asked for, as given.
    pub scope: Vec<String>,
}
