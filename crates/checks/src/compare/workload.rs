//! What makes workers replicas of each other.

use model::{GroupPart, PodObject, Role};

use crate::pod::view::PodView;
use crate::pod::workers::{RANK, is_hash};

/// Labels that tell which template a pod was made from.
const TEMPLATES: [&str; 4] = [
    "pod-template-hash",
    "controller-revision-hash",
    "leaderworkerset.sigs.k8s.io/template-revision-hash",
    "grove.io/pod-template-hash",
];

/// The clique of a pod of Grove, whose name ends in the part of a worker over several nodes.
const CLIQUE: &str = "grove.io/podclique";

/// Workers with the same are held against each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Workload {
    name: String,
    role: Option<&'static str>,
    part: Option<&'static str>,
    template: Option<String>,
}

impl Workload {
    pub(super) fn of(pod: &PodView<'_>) -> Self {
        Self {
            name: pod.subject.workers.first().cloned().unwrap_or_default(),
            role: pod.role.map(Role::as_str),
            part: part(pod.object).map(|part| match part {
                GroupPart::Leader => "leader",
                GroupPart::Member => "member",
            }),
            template: template(pod.object),
        }
    }

    /// The same, whatever template its workers were made from.
    pub(super) fn without_template(&self) -> Self {
        Self {
            template: None,
            ..self.clone()
        }
    }
}

/// Leader or member of a worker over several nodes.
pub(super) fn part(pod: &PodObject) -> Option<GroupPart> {
    let of = |leads: bool| {
        if leads {
            GroupPart::Leader
        } else {
            GroupPart::Member
        }
    };
    if let Some(rank) = pod.labels.get(RANK) {
        return Some(of(rank == "0"));
    }
    // Dynamo names the cliques of a service over several nodes so.
    let clique = pod.labels.get(CLIQUE)?;
    if clique.ends_with("-ldr") {
        Some(GroupPart::Leader)
    } else if clique.ends_with("-wkr") {
        Some(GroupPart::Member)
    } else {
        None
    }
}

/// What tells the template: a label of the controller, else the name of the ReplicaSet.
fn template(pod: &PodObject) -> Option<String> {
    let label = TEMPLATES.iter().find_map(|label| pod.labels.get(*label));
    label.cloned().or_else(|| {
        let (kind, name) = pod.owner.as_ref()?;
        let (_, hash) = name.rsplit_once('-')?;
        (kind == "ReplicaSet" && is_hash(hash)).then(|| hash.to_owned())
    })
}
