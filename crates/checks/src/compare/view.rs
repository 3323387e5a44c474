//! The workers of one deployment, for checks that need more than one of them.

use model::{Role, Subject};

use crate::finding::Finding;
use crate::gathered::Declared;
use crate::pod::view::PodView;

/// The workers of one deployment.
pub(crate) struct GroupView<'p> {
    /// All of them, in the order in which they were asked for.
    pub(crate) pods: Vec<&'p PodView<'p>>,
    /// What declares them.
    pub(crate) declared: &'p [Declared],
}

impl<'p> GroupView<'p> {
    /// Workers of one role.
    pub(crate) fn role(&self, role: Role) -> impl Iterator<Item = &'p PodView<'p>> {
        self.pods
            .iter()
            .copied()
            .filter(move |pod| pod.role == Some(role))
    }

    /// Workers between which KV moves.
    pub(crate) fn kv(&self) -> impl Iterator<Item = &'p PodView<'p>> {
        self.pods
            .iter()
            .copied()
            .filter(|pod| pod.role.is_some_and(Role::moves_kv))
    }
}

/// The same finding about several workers.
pub(crate) fn about<'p>(
    finding: Finding,
    pods: impl IntoIterator<Item = &'p PodView<'p>>,
) -> Finding {
    let mut subject = Subject::default();
    let mut names: Vec<String> = Vec::new();
    for pod in pods {
        subject.deployment.clone_from(&pod.subject.deployment);
        for role in &pod.subject.roles {
            if !subject.roles.contains(role) {
                subject.roles.push(*role);
            }
        }
        for worker in &pod.subject.workers {
            if !subject.workers.contains(worker) {
                subject.workers.push(worker.clone());
            }
        }
        names.push(pod.object.name.clone());
    }
    if names.len() == 1 {
        subject.pod = names.pop();
    } else {
        subject.pods = names;
    }
    finding.about(&subject)
}
