//! Judges containers of pods: each as a place, its spec beside what is seen inside, and all of a deployment together.

use model::{ClusterNode, Fault, PodObject, Readiness, Report, Worker};

use crate::node_view::NodeFacts;

/// A container of a pod, and what looking into it gave.
#[derive(Debug, Clone)]
pub struct ProbedPod {
    /// What the API server says of the pod.
    pub object: PodObject,
    /// The container that was looked into, or should have been; empty where none could be chosen.
    pub container: String,
    /// Why this pod: `label llm-d.ai/role=prefill`.
    pub taken: String,
    /// Why this container: `named main`.
    pub chosen: String,
    /// What the pod spec says of the container.
    pub worker: Option<Worker>,
    /// What was seen inside, or why nothing was.
    pub probed: Result<NodeFacts, Fault>,
    /// The pod after it was looked into, where it was read again.
    pub later: Option<PodObject>,
}

/// What surrounds the pods.
#[derive(Debug, Clone)]
pub struct Around {
    /// Nodes of the cluster, or why they could not be read.
    pub nodes: Result<Vec<ClusterNode>, Fault>,
    /// What kept the run from pods as a whole: no access, nothing that matches.
    pub faults: Vec<Fault>,
    /// Pods that were asked for and passed over, with the reason: frontends, engines that serve whole requests.
    pub passed_over: Vec<(String, String)>,
    /// The options that ask for the same again, such as `-n NS -l SELECTOR`, each word one entry.
    pub asked: Vec<String>,
}

impl Default for Around {
    fn default() -> Self {
        Self {
            nodes: Ok(Vec::new()),
            faults: Vec::new(),
            passed_over: Vec::new(),
            asked: Vec::new(),
        }
    }
}

/// Judges containers of pods; `scope` is what was asked for, as given.
pub fn judge_pods(
    command: &'static str,
    pods: Vec<ProbedPod>,
    around: &Around,
    scope: Vec<String>,
) -> Report {
    let _todo = (pods, around);
    Report {
        command,
        scope,
        deployments: Vec::new(),
        results: Vec::new(),
        coverage: model::Coverage::default(),
        readiness: Readiness::Inconclusive,
        verdict: String::new(),
        next: Vec::new(),
        missing_path: false,
        broken_input: false,
        nothing_to_check: true,
        unreachable: false,
    }
}
