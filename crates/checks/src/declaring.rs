//! Objects in the cluster that declare workers: which ones a pod's labels and its owner name, and where the API server
//! keeps them. One table for what is read, for the rights that it needs, and for what is held against a pod.

use model::PodObject;
use recipe::live::GRAPH;

/// A kind of object that pods are made from.
#[derive(Debug, PartialEq, Eq)]
pub struct DeclaringKind {
    /// Its name.
    pub kind: &'static str,
    /// API group.
    pub group: &'static str,
    /// Versions of it, in the order in which they are tried.
    pub versions: &'static [&'static str],
    /// Plural name.
    pub resource: &'static str,
    named_by: NamedBy,
}

/// What of a pod names its object.
#[derive(Debug, PartialEq, Eq)]
enum NamedBy {
    /// One of these labels.
    Labels(&'static [&'static str]),
    /// A label that others use as well, where another one has this value.
    LabelWhere(&'static str, (&'static str, &'static str)),
    /// The owner: it is the template that the pod is made from.
    Owner,
}

/// The label of a replica's `LeaderWorkerSet` (lws api/leaderworkerset/v1 leaderworkerset_types.go).
pub(crate) const LEADER_WORKER_SET: &str = "leaderworkerset.sigs.k8s.io/name";

/// Every kind, the widest first: a set of sets before its sets, and templates last.
pub(crate) const GRAPHS: DeclaringKind = DeclaringKind {
    kind: "DynamoGraphDeployment",
    group: "nvidia.com",
    versions: &["v1alpha1", "v1beta1"],
    resource: "dynamographdeployments",
    named_by: NamedBy::Labels(&[GRAPH]),
};
pub(crate) const DISAGGREGATED_SETS: DeclaringKind = DeclaringKind {
    kind: "DisaggregatedSet",
    group: "disaggregatedset.x-k8s.io",
    versions: &["v1"],
    resource: "disaggregatedsets",
    named_by: NamedBy::Labels(&["disaggregatedset.x-k8s.io/name"]),
};
pub(crate) const ROLE_BASED_GROUPS: DeclaringKind = DeclaringKind {
    kind: "RoleBasedGroup",
    group: "workloads.x-k8s.io",
    versions: &["v1alpha2", "v1alpha1"],
    resource: "rolebasedgroups",
    named_by: NamedBy::Labels(&[
        "rolebasedgroup.workloads.x-k8s.io/name",
        "rbg.workloads.x-k8s.io/group-name",
    ]),
};
pub(crate) const LLM_SERVICES: DeclaringKind = DeclaringKind {
    kind: "LLMInferenceService",
    group: "serving.kserve.io",
    versions: &["v1alpha2", "v1alpha1"],
    resource: "llminferenceservices",
    // kserve pkg/constants: KubernetesAppNameLabelKey, LLMInferenceServicePartOfValue.
    named_by: NamedBy::LabelWhere(
        "app.kubernetes.io/name",
        ("app.kubernetes.io/part-of", "llminferenceservice"),
    ),
};
pub(crate) const LEADER_WORKER_SETS: DeclaringKind = DeclaringKind {
    kind: "LeaderWorkerSet",
    group: "leaderworkerset.x-k8s.io",
    versions: &["v1"],
    resource: "leaderworkersets",
    named_by: NamedBy::Labels(&[LEADER_WORKER_SET]),
};
pub(crate) const REPLICA_SETS: DeclaringKind = DeclaringKind {
    kind: "ReplicaSet",
    group: "apps",
    versions: &["v1"],
    resource: "replicasets",
    named_by: NamedBy::Owner,
};
pub(crate) const STATEFUL_SETS: DeclaringKind = DeclaringKind {
    kind: "StatefulSet",
    group: "apps",
    versions: &["v1"],
    resource: "statefulsets",
    named_by: NamedBy::Owner,
};

/// All of them, in this order.
pub(crate) static KINDS: [DeclaringKind; 7] = [
    GRAPHS,
    DISAGGREGATED_SETS,
    ROLE_BASED_GROUPS,
    LLM_SERVICES,
    LEADER_WORKER_SETS,
    REPLICA_SETS,
    STATEFUL_SETS,
];

impl DeclaringKind {
    /// The name of a pod's object of this kind.
    pub(crate) fn name_of<'p>(&self, pod: &'p PodObject) -> Option<&'p String> {
        match &self.named_by {
            NamedBy::Labels(labels) => labels.iter().find_map(|label| pod.labels.get(*label)),
            NamedBy::LabelWhere(label, (other, value)) => pod
                .labels
                .get(*label)
                .filter(|_| pod.labels.get(*other).is_some_and(|held| held == value)),
            NamedBy::Owner => pod
                .owner
                .as_ref()
                .filter(|(kind, _)| kind == self.kind)
                .map(|(_, name)| name),
        }
    }

    /// Whether it is the template that pods are made from, and not what that is made from.
    pub fn is_template(&self) -> bool {
        self.named_by == NamedBy::Owner
    }
}

/// The objects that declare a pod, as far as it names them, in the order in which one is made from the other; each with its
/// place in that order.
pub fn declaring(
    pod: &PodObject,
) -> impl Iterator<Item = (usize, &'static DeclaringKind, &String)> {
    KINDS
        .iter()
        .enumerate()
        .filter_map(|(at, kind)| Some((at, kind, kind.name_of(pod)?)))
}
