//! Which pods are meant, out of those that a cluster lists, and which container of each.

use std::collections::{BTreeMap, BTreeSet};

use checks::{Around, NodeFacts, ProbedPod, SeenBy, parallel};
use cluster::{Cluster, Stop};
use model::pod::{Fault, FaultKind};
use model::{Deployment, PodObject, Role, Worker};
use recipe::live;

use crate::args::PodArgs;

/// Which pods are meant, where arguments about pods do not say it.
#[derive(Debug, Clone, Default)]
pub(crate) enum Wanted {
    /// What the arguments about pods say.
    #[default]
    AsAsked,
    /// KV workers of a deployment of one of these names.
    Of(Vec<String>),
    /// KV workers of these deployments, which recipes declare.
    Declared(Vec<Deployment>),
    /// Pods with the first labels prefill, those with the second ones decode.
    Roles(String, String),
}

/// The pods that are meant; those that can be looked into have empty facts.
pub(crate) async fn meant(
    args: &PodArgs,
    wanted: &Wanted,
    cluster: &dyn Cluster,
    around: &mut Around,
    stop: &Stop,
) -> Vec<ProbedPod> {
    match wanted {
        Wanted::AsAsked => {}
        Wanted::Of(_) | Wanted::Declared(_) => {
            let all = PodArgs {
                selector: None,
                all: true,
                ..args.clone()
            };
            let mut pods = listed_pods(&all, cluster, around, stop).await;
            of_deployments(&mut pods, wanted, around);
            return pods;
        }
        Wanted::Roles(prefill, decode) => {
            let mut pods: Vec<ProbedPod> = Vec::new();
            let mut both: Vec<String> = Vec::new();
            for (selector, role) in [(prefill, Role::Prefill), (decode, Role::Decode)] {
                let of_role = PodArgs {
                    selector: Some(selector.clone()),
                    ..args.clone()
                };
                for mut pod in listed_pods(&of_role, cluster, around, stop).await {
                    let known = pods.iter().any(|p| p.object.name == pod.object.name);
                    if known {
                        both.push(pod.object.name);
                        continue;
                    }
                    pod.role = Some(role);
                    pods.push(pod);
                }
            }
            if !both.is_empty() {
                around.faults.push(Fault::new(
                    FaultKind::BadSelector,
                    format!(
                        "both take {}, and a worker can be one of them",
                        pods_named(&both)
                    ),
                ));
            }
            // Whatever was judged of them would be a guess.
            if around
                .faults
                .iter()
                .any(|f| f.kind == FaultKind::BadSelector)
            {
                pods.clear();
            }
            return pods;
        }
    }
    if args.selector.is_some() || args.all {
        return listed_pods(args, cluster, around, stop).await;
    }
    let namespace = args.namespace_of(cluster);
    let mut chosen = Vec::new();
    for name in &args.pod {
        match cluster::named_pod(cluster, &namespace, name, stop).await {
            Ok(text) => match Read::of(&text) {
                Ok(read) => chosen.push(prepared(args, read, "named".to_owned())),
                Err(what) => around.faults.push(odd(&what)),
            },
            Err(fault) => around.faults.push(fault),
        }
    }
    chosen
}

/// `pod a`, `pods a, b and 3 more`.
fn pods_named(names: &[String]) -> String {
    let (shown, more) = names.split_at(names.len().min(4));
    let word = if names.len() == 1 { "pod" } else { "pods" };
    match more.len() {
        0 => format!("{word} {}", shown.join(", ")),
        n => format!("{word} {} and {n} more", shown.join(", ")),
    }
}

/// Those of the deployments that are meant; the others are told as passed over.
fn of_deployments(pods: &mut Vec<ProbedPod>, wanted: &Wanted, around: &mut Around) {
    let meant = |pod: &ProbedPod| match wanted {
        Wanted::Of(names) => names.iter().any(|name| checks::is_of(&pod.object, name)),
        Wanted::Declared(all) => all.iter().any(|one| checks::is_declared(&pod.object, one)),
        Wanted::AsAsked | Wanted::Roles(..) => true,
    };
    let mut others: BTreeSet<String> = BTreeSet::new();
    for pod in pods.iter().filter(|pod| !meant(pod)) {
        let of = checks::deployment_of(&pod.object);
        around
            .passed_over
            .push((pod.object.name.clone(), format!("a KV worker of {of}")));
        others.insert(of);
    }
    let any = !pods.is_empty() || around.faults.is_empty();
    pods.retain(meant);
    if pods.is_empty() && any {
        let names: Vec<&str> = match wanted {
            Wanted::Of(names) => names.iter().map(String::as_str).collect(),
            Wanted::Declared(all) => all.iter().map(|one| one.name.as_str()).collect(),
            Wanted::AsAsked | Wanted::Roles(..) => Vec::new(),
        };
        let there: Vec<String> = others.into_iter().take(8).collect();
        let there = if there.is_empty() {
            "no KV worker is there at all".to_owned()
        } else {
            format!("the KV workers there are of {}", there.join(", "))
        };
        around.faults.push(Fault::new(
            FaultKind::NoMatch,
            format!("no KV worker of '{}': {there}", names.join("', '")),
        ));
    }
}

/// Pods of a namespace: those with the labels that are asked for, or all that look like KV workers.
async fn listed_pods(
    args: &PodArgs,
    cluster: &dyn Cluster,
    around: &mut Around,
    stop: &Stop,
) -> Vec<ProbedPod> {
    let namespace = args.namespace_of(cluster);
    let mut chosen = Vec::new();
    let listed = match cluster::pods(cluster, &namespace, args.selector.as_deref(), stop).await {
        Ok(listed) => listed,
        Err(fault) => {
            around.faults.push(fault);
            return chosen;
        }
    };
    if listed.is_empty() {
        around.faults.push(Fault::new(
            FaultKind::NoMatch,
            match &args.selector {
                Some(selector) => {
                    format!("no pod in namespace '{namespace}' has the labels {selector}")
                }
                // The API server says the same of a namespace that there is not.
                None => {
                    format!("no pod is in namespace '{namespace}', if there is one of that name")
                }
            },
        ));
    }
    let mut others = BTreeMap::new();
    let mut known = BTreeSet::new();
    // Nothing can be looked into before, and there may be thousands.
    for read in parallel::map(&listed, |text| Read::of(text)) {
        let Read { object, workers } = match read {
            Ok(read) => read,
            Err(what) => {
                around.faults.push(odd(&what));
                continue;
            }
        };
        if !known.insert(object.name.clone()) {
            continue;
        }
        match live::kv_worker(&object, &workers) {
            Some(why) => chosen.push(prepared(args, Read { object, workers }, why.words)),
            None => {
                let why = live::passed_over(&object, &workers);
                others.insert(object.name.clone(), (Read { object, workers }, why));
            }
        }
    }
    around.passed_over.extend(without_replaced(&mut chosen));
    // Labels that match no KV worker at all were chosen on purpose.
    if let (true, Some(selector)) = (chosen.is_empty(), &args.selector) {
        for (read, _) in others.into_values() {
            let why = format!("has the labels {selector}");
            chosen.push(prepared(args, read, why));
        }
    } else {
        let others = others.into_iter().map(|(name, (_, why))| (name, why));
        around.passed_over.extend(others);
    }
    chosen
}

/// A pod, and what its spec says of each container.
struct Read {
    object: PodObject,
    workers: Vec<Worker>,
}

impl Read {
    fn of(text: &str) -> Result<Self, String> {
        Ok(Self {
            object: live::pod(text)?,
            workers: live::workers(text),
        })
    }
}

/// Takes out the pods that have ended while others of their workload go on, and tells why. An evicted pod stays on the list
/// for weeks and is never started again: its owner has made another one.
fn without_replaced(chosen: &mut Vec<ProbedPod>) -> Vec<(String, String)> {
    let has_ended = |pod: &PodObject| matches!(pod.phase.as_str(), "Failed" | "Succeeded");
    let go_on: BTreeSet<String> = chosen
        .iter()
        .filter(|pod| pod.object.owner.is_some() && !has_ended(&pod.object) && !pod.object.deleting)
        .map(|pod| checks::workload(&pod.object))
        .collect();
    let mut replaced = Vec::new();
    chosen.retain(|pod| {
        let object = &pod.object;
        let is_replaced = has_ended(object)
            && object.owner.is_some()
            && go_on.contains(&checks::workload(object));
        if is_replaced {
            let how = object.reason.as_deref().unwrap_or(&object.phase);
            replaced.push((
                object.name.clone(),
                format!("it has ended ({how}) for good, and others of its workload go on"),
            ));
        }
        !is_replaced
    });
    replaced
}

fn odd(what: &str) -> Fault {
    Fault::new(
        FaultKind::NotApi,
        format!("the API server gave {what} where a pod was asked for"),
    )
}

fn prepared(args: &PodArgs, read: Read, taken: String) -> ProbedPod {
    let Read { object, workers } = read;
    let picked = live::container(&object, args.container.as_deref());
    let (container, chosen, probed) = match picked {
        Ok((container, why)) => {
            let probed = live::state(&object, &container).map(|()| NodeFacts::default());
            (container, why.words, probed)
        }
        Err(fault) => {
            // Why a pod does not run matters more than which of its containers was meant.
            let probed = live::state(&object, "")
                .err()
                .filter(|f| matches!(f.kind, FaultKind::Unschedulable | FaultKind::Completed));
            (String::new(), String::new(), Err(probed.unwrap_or(fault)))
        }
    };
    let worker = workers
        .into_iter()
        .find(|worker| worker.container == container);
    ProbedPod {
        object,
        container,
        taken,
        chosen,
        worker,
        probed,
        later: None,
        role: None,
        by: SeenBy::Exec,
    }
}
