//! What all checks of a pod stand on, worked out once: the worker as its engine process has it, its role, whom results
//! are about.

use model::{Fault, PodObject, Role, Subject, Worker};
use recipe::live::{self, Live};

use super::workers;
use crate::judge_pods::ProbedPod;

/// What is worked out for a pod before it is judged.
pub(crate) struct Prepared {
    pub(crate) live: Option<Live>,
    pub(crate) role: Option<Role>,
    pub(crate) during: Option<Fault>,
    pub(crate) subject: Subject,
    /// Number of its deployment.
    pub(crate) group: usize,
}

/// Works out what all checks of a pod stand on.
pub(crate) fn prepare(pod: &mut ProbedPod) -> Prepared {
    let live = match (&pod.worker, &pod.probed) {
        (Some(worker), Ok(facts)) => Some(live::overlay(
            worker,
            &pod.object,
            &facts.observation.process,
        )),
        _ => None,
    };
    let worker = live.as_ref().map(|l| &l.worker).or(pod.worker.as_ref());
    let own = pod.role.or(match &pod.probed {
        Ok(facts) => facts.role,
        Err(_) => None,
    });
    let role = own.or_else(|| role_of(&pod.object, worker));
    if let Ok(facts) = &mut pod.probed
        && facts.role.is_none()
    {
        facts.role = role.filter(|r| r.moves_kv() || *r == Role::Aggregated);
    }
    let during = match (&pod.probed, &pod.later) {
        (Ok(_), Some(later)) => live::during(&pod.object, &pod.container, later),
        _ => None,
    };
    Prepared {
        role,
        during,
        subject: Subject {
            roles: role.into_iter().collect(),
            workers: vec![workers::workload(&pod.object)],
            container: (!pod.container.is_empty()).then(|| pod.container.clone()),
            pod: Some(pod.object.name.clone()),
            node: pod.object.node.clone(),
            ..Subject::default()
        },
        live,
        group: 0,
    }
}

/// The role of a pod: what its engine was told, else what its stack calls it.
fn role_of(object: &PodObject, worker: Option<&Worker>) -> Option<Role> {
    let told = worker.map(|w| w.role);
    if matches!(told, Some(Role::Prefill | Role::Decode)) {
        return told;
    }
    let by_label =
        live::kv_worker(object, worker.map_or(&[], std::slice::from_ref)).and_then(|why| why.role);
    by_label.or(match told {
        // Without its command, that no role is told means nothing.
        Some(Role::Aggregated)
            if worker.is_some_and(|w| !w.has_command || w.is_open() || w.image.is_none()) =>
        {
            None
        }
        Some(Role::Other) => None,
        told => told,
    })
}

/// The worker of a pod as its engine process has it, else as its spec says, and its role, where anything shows one.
pub fn live_of(pod: &ProbedPod) -> (Option<Worker>, Option<Role>) {
    let mut pod = pod.clone();
    let prepared = prepare(&mut pod);
    let worker = prepared.live.map(|live| live.worker).or(pod.worker);
    (worker, prepared.role)
}
