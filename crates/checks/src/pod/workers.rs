//! Pods into deployments: which are judged together, and which are so alike that one worker stands for all.
//!
//! A stack's own label names the deployment. Where there is none, workloads belong together whose names are the same
//! but for the word of a role; halves that find no other half so are judged together with the others of their namespace.
//! Pods of one workload with the same settings are one worker with so many replicas: a hundred alike cost as much as one,
//! and one that is not alike stands out by its name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use model::{Deployment, GroupPart, PodObject, Role, Value, Worker};
use recipe::live::GRAPH;

use crate::declaring::{LEADER_WORKER_SET, LLM_SERVICES};

/// Labels that name the deployment of a pod, with the kind of object that they name.
const DEPLOYMENTS: [(&str, &str); 7] = [
    (GRAPH, "DynamoGraphDeployment"),
    ("disaggregatedset.x-k8s.io/name", "DisaggregatedSet"),
    ("rolebasedgroup.workloads.x-k8s.io/name", "RoleBasedGroup"),
    ("rbg.workloads.x-k8s.io/group-name", "RoleBasedGroup"),
    ("storm-service-name", "StormService"),
    ("modelserving.volcano.sh/name", "ModelServing"),
    ("llm-d.ai/model", "Pod"),
];

/// Labels that name the part of a deployment that a pod is a replica of.
const WORKLOADS: [&str; 6] = [
    "nvidia.com/dynamo-component",
    LEADER_WORKER_SET,
    "rolebasedgroup.workloads.x-k8s.io/role",
    "rbg.workloads.x-k8s.io/role-name",
    "role-name",
    "modelserving.volcano.sh/role",
];

/// The rank of a pod in its LeaderWorkerSet.
pub(crate) const RANK: &str = "leaderworkerset.sigs.k8s.io/worker-index";

/// One pod on its way into a deployment.
pub(crate) struct Member<'p> {
    pub(crate) object: &'p PodObject,
    pub(crate) worker: Option<&'p Worker>,
    pub(crate) role: Option<Role>,
    /// The worker has what its engine process has, and not only what its spec says.
    pub(crate) live: bool,
}

/// Pods that are judged together.
pub(crate) struct Group {
    pub(crate) deployment: Deployment,
    /// Which pods, by their number.
    pub(crate) pods: Vec<usize>,
    /// Pods behind each worker of the deployment.
    pub(crate) behind: BTreeMap<String, Behind>,
}

/// Pods behind a worker.
pub(crate) struct Behind {
    pub(crate) pods: Vec<usize>,
    /// Most pods of the workload are like it.
    pub(crate) usual: bool,
}

/// The workload that a pod is a replica of, by its labels, else by its owner.
pub fn workload(pod: &PodObject) -> String {
    if let Some(name) = WORKLOADS.iter().find_map(|label| pod.labels.get(*label)) {
        return name.clone();
    }
    match &pod.owner {
        // Its name ends in a hash of its template.
        Some((kind, name)) if kind == "ReplicaSet" => match name.rsplit_once('-') {
            Some((name, hash)) if is_hash(hash) => name.to_owned(),
            _ => name.clone(),
        },
        Some((_, name)) => name.clone(),
        // Made by hand or by a script, which numbers them.
        None => match pod.name.rsplit_once('-') {
            Some((name, number)) if number.bytes().all(|b| b.is_ascii_digit()) => name.to_owned(),
            _ => pod.name.clone(),
        },
    }
}

/// Whether it looks like the hash of a template at the end of a ReplicaSet's name.
pub(crate) fn is_hash(text: &str) -> bool {
    (5..=10).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// A name without the words of a role: both halves of a deployment have the same.
fn stem(name: &str) -> String {
    let words: Vec<&str> = name
        .split(['-', '_', '.'])
        .filter(|word| {
            !matches!(
                word.to_ascii_lowercase().as_str(),
                "prefill" | "prefiller" | "prefillworker" | "decode" | "decoder" | "decodeworker"
            )
        })
        .collect();
    words.join("-")
}

/// What names a deployment: its kind and name; the last part tells that nothing but a name does.
type Key = (String, Arc<str>, String, bool);

fn key(pod: &PodObject) -> Key {
    let of_kserve = LLM_SERVICES
        .name_of(pod)
        .map(|name| (LLM_SERVICES.kind, name));
    let named = of_kserve.or_else(|| {
        DEPLOYMENTS
            .iter()
            .find_map(|(label, kind)| Some((*kind, pod.labels.get(*label)?)))
    });
    match named {
        Some((kind, name)) => (pod.namespace.clone(), kind.into(), name.clone(), false),
        None => {
            let name = pod
                .labels
                .get("app.kubernetes.io/instance")
                .cloned()
                .unwrap_or_else(|| stem(&workload(pod)));
            // Of a workload that is called after its role nothing is left.
            let name = if name.is_empty() {
                pod.namespace.clone()
            } else {
                name
            };
            (pod.namespace.clone(), "Pod".into(), name, true)
        }
    }
}

/// The deployment that a pod belongs to, as far as its labels and its owner tell.
pub fn deployment_of(pod: &PodObject) -> String {
    key(pod).2
}

/// Whether a pod is of the deployment or the workload of that name.
pub fn is_of(pod: &PodObject, name: &str) -> bool {
    deployment_of(pod) == name
        || workload(pod) == name
        || pod.owner.as_ref().is_some_and(|(_, owner)| owner == name)
        || DEPLOYMENTS
            .iter()
            .any(|(label, _)| pod.labels.get(*label).is_some_and(|value| value == name))
}

/// Whether a pod is of a deployment that a recipe declares. Where the pod's labels name an object of the recipe's kind, its name
/// tells; workers of two such objects are called alike. Elsewhere a worker's name does too.
pub fn is_declared(pod: &PodObject, declared: &Deployment) -> bool {
    let (_, kind, name, by_name) = key(pod);
    if !by_name && &*kind != "Pod" && kind == declared.kind {
        return name == declared.name;
    }
    let mut workers = declared.kv_workers();
    is_of(pod, &declared.name) || workers.any(|worker| is_of(pod, &worker.name))
}

/// Puts pods together.
pub(crate) fn groups(members: &[Member<'_>]) -> Vec<Group> {
    let mut by_key: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
    for (number, member) in members.iter().enumerate() {
        by_key.entry(key(member.object)).or_default().push(number);
    }
    let roles = |pods: &[usize]| -> BTreeSet<Role> {
        pods.iter()
            .filter_map(|n| members.get(*n)?.role)
            .filter(|r| matches!(r, Role::Prefill | Role::Decode))
            .collect()
    };
    // Halves that nothing joins, by namespace.
    let mut halves: BTreeMap<String, Vec<(Key, Vec<usize>)>> = BTreeMap::new();
    let mut whole: Vec<(Key, Vec<usize>)> = Vec::new();
    for (key, pods) in by_key {
        if key.3 && roles(&pods).len() < 2 {
            halves.entry(key.0.clone()).or_default().push((key, pods));
        } else {
            whole.push((key, pods));
        }
    }
    for (namespace, list) in halves {
        let all: Vec<usize> = list.iter().flat_map(|(_, pods)| pods.clone()).collect();
        if list.len() > 1 && roles(&all).len() == 2 {
            let kind: Arc<str> = "Pod".into();
            let mut all = all;
            all.sort_unstable();
            let name = namespace.clone();
            whole.push(((namespace, kind, name, true), all));
        } else {
            whole.extend(list);
        }
    }
    // In the order of the pods that were asked for.
    whole.sort_by_key(|(_, pods)| pods.first().copied());
    whole
        .into_iter()
        .map(|(key, pods)| group(key, pods, members))
        .collect()
}

fn group((namespace, kind, name, _): Key, pods: Vec<usize>, members: &[Member<'_>]) -> Group {
    let mut workers: Vec<(Worker, usize)> = pods
        .iter()
        .filter_map(|number| {
            let member = members.get(*number)?;
            let mut worker = member.worker?.clone();
            worker.name = workload(member.object);
            worker.role = member.role.unwrap_or(worker.role);
            worker.part = part(member, &pods, members);
            Some((worker, *number))
        })
        .collect();
    // A spec whose pod could not be looked into says nothing that a pod beside it does not show better.
    let shown: BTreeSet<(String, Role)> = workers
        .iter()
        .filter(|(_, n)| members.get(*n).is_some_and(|m| m.live))
        .map(|(w, _)| (w.name.clone(), w.role))
        .collect();
    workers.retain(|(worker, number)| {
        members.get(*number).is_some_and(|m| m.live)
            || !shown.contains(&(worker.name.clone(), worker.role))
    });
    own_values(&mut workers);
    let (workers, behind) = collapsed(workers, members);
    Group {
        deployment: Deployment {
            name,
            namespace: (!namespace.is_empty()).then_some(namespace),
            kind,
            files: Vec::new(),
            workers,
            partial: None,
            around: Vec::new(),
            loose: Vec::new(),
        },
        pods,
        behind,
    }
}

/// Leader or member of a LeaderWorkerSet, where the set has several pods to a group.
fn part(member: &Member<'_>, pods: &[usize], members: &[Member<'_>]) -> Option<GroupPart> {
    let rank = member.object.labels.get(RANK)?;
    if rank != "0" {
        return Some(GroupPart::Member);
    }
    let own = workload(member.object);
    let others = pods.iter().filter_map(|n| members.get(*n)).any(|other| {
        other
            .object
            .labels
            .get(RANK)
            .is_some_and(|rank| rank != "0")
            && workload(other.object) == own
    });
    others.then_some(GroupPart::Leader)
}

/// Values of one variable from which on they are each pod's own.
const OWN: usize = 4;

/// What differs between nearly all pods of a workload (a port, a rank) is told as that, not pod by pod. What decides
/// the transports themselves is never left out.
fn own_values(workers: &mut [(Worker, usize)]) {
    let mut values: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for (worker, _) in workers.iter() {
        for setting in &worker.settings {
            if let Value::Literal(text) = &setting.value {
                values
                    .entry((worker.name.clone(), setting.name.clone()))
                    .or_default()
                    .insert(text.clone());
            }
        }
    }
    values.retain(|(_, name), values| values.len() > OWN && name != "UCX_TLS");
    if values.is_empty() {
        return;
    }
    for (worker, _) in workers.iter_mut() {
        for setting in &mut worker.settings {
            if values.contains_key(&(worker.name.clone(), setting.name.clone())) {
                setting.value = Value::Dynamic("a value of each pod's own".to_owned());
            }
        }
    }
}

/// Workers that say the same become one.
fn collapsed(
    workers: Vec<(Worker, usize)>,
    members: &[Member<'_>],
) -> (Vec<Worker>, BTreeMap<String, Behind>) {
    struct Kind {
        worker: Worker,
        pods: Vec<usize>,
    }
    let mut kinds: Vec<Kind> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (worker, number) in workers {
        let next = kinds.len();
        let at = *known.entry(signature(&worker)).or_insert(next);
        match kinds.get_mut(at) {
            Some(kind) => kind.pods.push(number),
            None => kinds.push(Kind {
                worker,
                pods: vec![number],
            }),
        }
    }
    // The kind that most pods of a workload are keeps its name; the others are told by their pods. One that is told
    // another role than the rest is another kind.
    let mut largest: BTreeMap<String, usize> = BTreeMap::new();
    for kind in &kinds {
        let most = largest.entry(kind.worker.name.clone()).or_default();
        *most = (*most).max(kind.pods.len());
    }
    let mut behind = BTreeMap::new();
    let mut named: BTreeSet<String> = BTreeSet::new();
    let mut out = Vec::new();
    for mut kind in kinds {
        kind.worker.replicas = u64::try_from(kind.pods.len()).ok();
        let of = kind.worker.name.clone();
        let is_largest = largest.get(&of) == Some(&kind.pods.len());
        let usual = is_largest && named.insert(of);
        if !usual {
            let name = |n: &usize| members.get(*n).map(|m| m.object.name.clone());
            let mut names: Vec<String> = kind.pods.iter().filter_map(name).collect();
            let more = names.len().saturating_sub(3);
            names.truncate(3);
            let mut text = names.join(", ");
            if more > 0 {
                let _infallible = write!(text, " and {more} more");
            }
            // Ranks of one engine are known by their common name.
            if kind.worker.part.is_none() {
                kind.worker.name = text;
            }
        }
        let entry = behind
            .entry(kind.worker.name.clone())
            .or_insert_with(|| Behind {
                pods: Vec::new(),
                usual,
            });
        entry.pods.extend(kind.pods);
        out.push(kind.worker);
    }
    (out, behind)
}

/// Everything of a worker that a check can look at, but places and its pod.
fn signature(worker: &Worker) -> String {
    let mut text = format!(
        "{}|{}|{:?}|{:?}|{:?}|{:?}|{:?}|{}",
        worker.name,
        worker.container,
        worker.role,
        worker.engine,
        worker.image.as_ref().map(|i| &i.value),
        worker.part,
        worker.hidden,
        worker.has_command,
    );
    let pod = worker.pod();
    for setting in worker.settings.iter().chain(&worker.possible) {
        let _infallible = write!(
            text,
            "|{}={:?}{:?}",
            setting.name, setting.value, setting.form
        );
    }
    for resource in &worker.resources {
        let _infallible = write!(text, "|{}:{}", resource.name, resource.quantity);
    }
    for claim in worker.claims.iter().chain(&pod.unlisted_claims) {
        let _infallible = write!(
            text,
            "|{}:{:?}{}",
            claim.name, claim.template, claim.declared
        );
    }
    for named in worker
        .unknown_names
        .iter()
        .chain(&worker.capabilities)
        .chain(&worker.host_paths)
    {
        let _infallible = write!(text, "|{}", named.value);
    }
    for (name, _) in &worker.annotations {
        let _infallible = write!(text, "|{name}");
    }
    let value =
        |located: &Option<model::Located<String>>| located.as_ref().map(|l| l.value.clone());
    let _infallible = write!(
        text,
        "|{:?}{:?}{}{}{}{}{:?}{}{:?}{}{}|{:?}{:?}{:?}{:?}{:?}{:?}",
        worker.accelerators,
        worker.accelerator,
        worker.privileged,
        worker.host_network,
        worker.host_ipc,
        worker.host_pid,
        worker.run_as_user.as_ref().map(|u| u.value),
        worker.nodes,
        worker.command_fault.as_ref().map(|f| f.value),
        worker.by_dynamo,
        worker.uses_cluster_names.is_some(),
        value(&pod.same_host),
        value(&pod.anti_affinity),
        value(&pod.dns_policy),
        value(&pod.machine),
        value(&pod.mesh),
        pod.networks.as_ref().map(|n| n.value),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::{is_hash, stem};

    #[test]
    fn names_of_halves_are_the_same() {
        assert_eq!(stem("qwen-prefill"), stem("qwen-decode"));
        assert_eq!(stem("ms-vllm-decode-llm-d"), stem("ms-vllm-prefill-llm-d"));
        assert_ne!(stem("a-prefill"), stem("b-decode"));
    }

    #[test]
    fn hashes_of_templates() {
        assert!(is_hash("7d9f8c6b5"));
        assert!(!is_hash("prefillworker"));
        assert!(!is_hash("0"));
    }
}
