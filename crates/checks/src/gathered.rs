//! Everything that a run gathered of a deployment: what is judged, and what a bundle holds.

use model::{Deployment, Input};
use serde::{Deserialize, Serialize};

use crate::judge_pods::{Around, ProbedPod};
use crate::pairs::PairTried;

/// Everything that was gathered of a deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gathered {
    /// Its workers.
    pub pods: Vec<ProbedPod>,
    /// What surrounds them.
    pub around: Around,
    /// What was asked for, as given.
    pub scope: Vec<String>,
    /// What declares the workers, in the order in which one is made from the other.
    pub declared: Vec<Declared>,
    /// Transfers that were measured between them.
    pub transfers: Vec<PairTried>,
    /// Files that were read, and what became of them.
    pub inputs: Vec<Input>,
}

/// What declares workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeclaredBy {
    /// A recipe, as a file.
    Recipe,
    /// The object of the whole deployment in the cluster.
    Graph,
    /// The template that pods are made from.
    Template,
}

/// Workers as something declares them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// What it is.
    pub by: DeclaredBy,
    /// Its name: a path, or the object's kind and name.
    pub name: String,
    /// The object's own name; empty for a recipe.
    pub object: String,
    /// What it declares.
    pub deployments: Vec<Deployment>,
}
