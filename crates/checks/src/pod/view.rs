//! One container of a pod with everything that is known of it, worked out once for all checks.

use model::observation::Observation;
use model::{ClusterNode, Container, Fault, PodObject, Role, Subject};
use recipe::live::Live;

use crate::finding::Finding;
use crate::judge_pods::{Around, ProbedPod};
use crate::node_view::NodeFacts;

/// One container of a pod.
pub(crate) struct PodView<'p> {
    pub(crate) pod: &'p ProbedPod,
    pub(crate) object: &'p PodObject,
    /// What the API server says of the container.
    pub(crate) container: Option<&'p Container>,
    /// What was seen inside; `None` where nothing was.
    pub(crate) facts: Option<&'p NodeFacts>,
    /// The worker with what its engine process has.
    pub(crate) live: Option<&'p Live>,
    /// Its role, where anything shows it.
    pub(crate) role: Option<Role>,
    /// The node that it runs on, where nodes could be read.
    pub(crate) node: Option<&'p ClusterNode>,
    /// What happened to the container while it was looked at.
    pub(crate) during: Option<&'p Fault>,
    /// Whom results are about.
    pub(crate) subject: &'p Subject,
}

impl<'p> PodView<'p> {
    /// What was seen inside.
    pub(crate) fn seen(&self) -> Option<&'p Observation> {
        self.facts.map(|facts| &facts.observation)
    }

    /// The same finding, about this container.
    pub(crate) fn about(&self, finding: Finding) -> Finding {
        finding.about(self.subject)
    }

    /// Whether KV cache moves through it, as far as anything shows.
    pub(crate) fn moves_kv(&self) -> bool {
        self.role.is_none_or(Role::moves_kv)
    }
}

/// All pods of a run.
pub(crate) struct PodsView<'p> {
    pub(crate) pods: &'p [PodView<'p>],
    pub(crate) around: &'p Around,
}
