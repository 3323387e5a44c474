//! Every place of a worker, to be given another file or no line.

use model::{Claim, Located, Place, Worker};

/// Changes all places of a worker.
pub(super) fn each(worker: &mut Worker, change: &dyn Fn(&mut Place)) {
    fn located<T>(value: Option<&mut Located<T>>, change: &dyn Fn(&mut Place)) {
        if let Some(value) = value {
            change(&mut value.place);
        }
    }
    fn claims(list: &mut [Claim], change: &dyn Fn(&mut Place)) {
        for claim in list {
            change(&mut claim.place);
        }
    }
    change(&mut worker.place);
    if let Some(place) = worker.role_place.as_deref_mut() {
        change(place);
    }
    if let Some(named) = worker.named.as_deref_mut() {
        change(&mut named.place);
    }
    for setting in worker
        .settings
        .iter_mut()
        .chain(&mut worker.possible)
        .chain(&mut worker.overridden)
    {
        change(&mut setting.place);
    }
    for resource in &mut worker.resources {
        change(&mut resource.place);
    }
    claims(&mut worker.claims, change);
    located(worker.image.as_deref_mut(), change);
    located(worker.run_as_user.as_deref_mut(), change);
    located(worker.command_fault.as_deref_mut(), change);
    for name in worker
        .unknown_names
        .iter_mut()
        .chain(&mut worker.capabilities)
        .chain(&mut worker.host_paths)
    {
        change(&mut name.place);
    }
    for (_, place) in &mut worker.annotations {
        change(place);
    }
    if let Some(place) = worker.uses_cluster_names.as_deref_mut() {
        change(place);
    }
    if let Some(pod) = worker.pod.as_deref_mut() {
        located(pod.same_host.as_mut(), change);
        located(pod.anti_affinity.as_mut(), change);
        located(pod.dns_policy.as_mut(), change);
        located(pod.machine.as_mut(), change);
        located(pod.mesh.as_mut(), change);
        located(pod.networks.as_mut(), change);
        claims(&mut pod.unlisted_claims, change);
    }
}
