//! Judges containers of pods: each as a place, its spec beside what is seen inside, and all of a deployment together.
//!
//! What several places show of themselves never proves what moved between them, so nothing here is ever `trusted`.

use std::collections::{BTreeSet, HashMap};

use model::pod::FaultScope;
use model::verdict::{DeploymentSummary, readiness_of};
use model::{
    Accepted, CheckResult, ClusterNode, Coverage, Fault, Grade, NextStep, Outcome, PodObject,
    Readiness, Reason, Report, Role, Status, Subject, Worker,
};

use serde::{Deserialize, Serialize};

use crate::check::Run;
use crate::compare::view::GroupView;
use crate::finding::Findings;
use crate::gathered::{Declared, Gathered};
use crate::inputs::results as of_files;
use crate::judge::{count, shell_word, summary};
use crate::judge_node::{inputs, run_checks};
use crate::judge_pairs::judge_pairs;
use crate::nixl::live::judge::{End, of_ends, of_place as live_place};
use crate::nixl::live::next::of_pods as next_of_pods;
use crate::node_view::NodeFacts;
use crate::parallel;
use crate::pod::deployment::of_deployment;
use crate::pod::evidence::{self, SeenBy};
use crate::pod::explains;
use crate::pod::namespace;
use crate::pod::prepare::{Prepared, prepare};
use crate::pod::rights as pod_rights;
use crate::pod::view::{PodView, PodsView};
use crate::pod::workers::{self, Member};
use crate::pods_verdict;
use crate::registry::CHECKS;
use crate::rights::RightsSeen;

/// A container of a pod, and what looking into it gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Its role, where whoever asks says it.
    #[serde(default)]
    pub role: Option<Role>,
    /// How it was looked at.
    #[serde(default)]
    pub by: SeenBy,
}

/// What surrounds the pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// Nodes of the cluster, or why they could not be read; empty where nobody asked for them.
    pub nodes: Result<Vec<ClusterNode>, Fault>,
    /// What kept the run from pods as a whole: no access, nothing that matches.
    pub faults: Vec<Fault>,
    /// Pods that were asked for and passed over, with the reason: frontends, engines that serve whole requests.
    pub passed_over: Vec<(String, String)>,
    /// In how many workers logs were read and NIXL agents were made, where it was not in all of them.
    #[serde(default)]
    pub sampled: Option<usize>,
    /// The options that ask for the same again, such as `-n NS -l SELECTOR`, each word one entry.
    pub asked: Vec<String>,
    /// What whoever asked may do, where the API server was asked.
    #[serde(default)]
    pub rights: Option<RightsSeen>,
}

impl Default for Around {
    fn default() -> Self {
        Self {
            nodes: Ok(Vec::new()),
            faults: Vec::new(),
            passed_over: Vec::new(),
            sampled: None,
            asked: Vec::new(),
            rights: None,
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
    judged(command, What::Node, pods, around, scope)
}

/// Judges NIXL in containers of pods, and nothing else of them.
pub fn judge_nixl_pods(pods: Vec<ProbedPod>, around: &Around, scope: Vec<String>) -> Report {
    judged("nixl", What::Nixl, pods, around, scope)
}

/// What is judged of pods.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What<'g> {
    /// Each as a place, its spec, and the settings of its engine.
    Node,
    /// NIXL in each.
    Nixl,
    /// All of that, and the workers of a deployment held against each other and against what declares them.
    All(&'g [Declared]),
}

/// Judges all that was gathered of a deployment.
pub fn judge_check(gathered: Gathered) -> Report {
    let Gathered {
        pods,
        around,
        scope,
        declared,
        transfers,
        inputs,
    } = gathered;
    let mut report = judged("check", What::All(&declared), pods, &around, scope);
    let of_inputs = of_files(&inputs);
    // What is lost of a recipe may be what differs.
    report.broken_input |= of_inputs.iter().any(|r| r.required);
    report.missing_path |= inputs
        .iter()
        .any(|i| i.problems.iter().any(|p| p.outcome == Outcome::Missing));
    report.results.extend(of_inputs);
    judge_pairs(report, transfers)
}

fn judged(
    command: &'static str,
    what: What<'_>,
    pods: Vec<ProbedPod>,
    around: &Around,
    scope: Vec<String>,
) -> Report {
    let mut pods = pods;
    let mut prepared: Vec<Prepared> = pods.iter_mut().map(prepare).collect();
    let members: Vec<Member<'_>> = pods
        .iter()
        .zip(&prepared)
        .map(|(pod, prepared)| Member {
            object: &pod.object,
            worker: prepared
                .live
                .as_ref()
                .map(|live| &live.worker)
                .or(pod.worker.as_ref()),
            role: prepared.role,
            live: prepared
                .live
                .as_ref()
                .is_some_and(|live| live.environment.is_none()),
        })
        .collect();
    let groups = workers::groups(&members);
    drop(members);
    for (number, group) in groups.iter().enumerate() {
        for pod in &group.pods {
            if let Some(prepared) = prepared.get_mut(*pod) {
                prepared.group = number;
                prepared.subject.deployment = Some(group.deployment.name.clone());
            }
        }
    }
    let mut results: Vec<CheckResult> = Vec::new();
    let (node, nixl) = (what != What::Nixl, what != What::Node);
    if node {
        for (number, group) in groups.iter().enumerate() {
            let by = |n: &usize| pods.get(*n).map(|pod| pod.by);
            let whole = matches!(what, What::All(_));
            let mut of_group = of_deployment(number, group, &pods, &prepared, whole);
            if group.pods.iter().all(|n| by(n) == Some(SeenBy::Host)) {
                of_group.retain(|r| evidence::is_of_host(&r.name));
            }
            // Rules about settings have nothing to judge where no engine is in sight.
            if group
                .pods
                .iter()
                .all(|n| by(n).is_some_and(SeenBy::place_only))
            {
                of_group.clear();
            }
            results.extend(of_group);
        }
    }
    let nodes: HashMap<&str, &ClusterNode> = around
        .nodes
        .as_deref()
        .unwrap_or_default()
        .iter()
        .map(|node| (node.name.as_str(), node))
        .collect();
    let views: Vec<PodView<'_>> = pods
        .iter()
        .zip(&prepared)
        .map(|(pod, prepared)| PodView {
            pod,
            object: &pod.object,
            container: pod.object.container(&pod.container),
            facts: pod.probed.as_ref().ok(),
            live: prepared.live.as_ref(),
            role: prepared.role,
            node: pod
                .object
                .node
                .as_deref()
                .and_then(|name| nodes.get(name).copied()),
            during: prepared.during.as_ref(),
            subject: &prepared.subject,
        })
        .collect();
    let told: BTreeSet<(usize, &'static str)> = results
        .iter()
        .filter(|r| r.grade >= Grade::Observed)
        .filter_map(|r| Some((r.deployment?, r.cause?)))
        .collect();
    let places: Vec<(&PodView<'_>, usize)> = views
        .iter()
        .zip(&prepared)
        .map(|(view, prepared)| (view, prepared.group))
        .collect();
    let of_places = parallel::map(&places, |(view, group)| {
        let mut results = Vec::new();
        // Where no engine is in sight that is told once.
        if nixl && !view.pod.by.place_only() {
            let mut of_nixl = nixl_of_place(view, *group);
            // A place tells the rest.
            of_nixl
                .retain(|r| !node || r.name.starts_with("nixl/") && r.name != ALSO_OF_DEPLOYMENT);
            results.extend(of_nixl);
        }
        if !node {
            return results;
        }
        let mut of_place = of_place(view, *group);
        let by_deployment = view.live.is_some_and(|live| live.environment.is_none());
        of_place.retain(|r| {
            r.name != ALSO_OF_DEPLOYMENT
                || match r.cause {
                    Some(cause) => !told.contains(&(*group, cause)),
                    None => !by_deployment || r.status != Status::Ok,
                }
        });
        results.extend(of_place);
        results
    });
    results.extend(of_places.into_iter().flatten());
    results.extend(of_all(
        &PodsView {
            pods: &views,
            around,
        },
        &prepared,
    ));
    if let What::All(declared) = what {
        for (number, group) in groups.iter().enumerate() {
            results.extend(of_group(number, group, &views, declared));
        }
    }
    if nixl {
        results.retain(|r| node || !r.name.starts_with("pod/") || OF_PODS.contains(&&*r.name));
        let ends: Vec<End<'_>> = views
            .iter()
            .filter_map(|view| {
                Some(End {
                    pod: &view.object.name,
                    role: view.role,
                    facts: view.facts?,
                })
            })
            .collect();
        results.extend(of_ends(&ends));
    }
    drop(views);
    if let Some(rights) = &around.rights {
        // A right that is missing is told once, for all.
        results.retain(|r| {
            !r.cause
                .is_some_and(|cause| pod_rights::is_told_here(cause, rights))
        });
    }
    namespace::put(&mut results, &pods, around);
    in_order(&mut results);
    let mut report = report(command, scope, &pods, &prepared, &groups, results, around);
    if nixl && !report.unreachable && !report.nothing_to_check {
        let all: Vec<&CheckResult> = report.results.iter().collect();
        let mut steps = pods_verdict::of_faults(command, report.readiness, &all, &pods, around);
        // What is broken is mended before anything is measured; what is not reached by a cluster cannot be looked at
        // again through one.
        let mend = what != What::Nixl && report.readiness == Readiness::Blocked;
        if !mend && pods.iter().all(|pod| pod.by == SeenBy::Exec) {
            match what {
                What::All(_) => steps.extend(measure_all(around)),
                _ => steps.extend(next_of_pods(&pods, &prepared)),
            }
        }
        report.next = steps;
    }
    report
}

/// The command that measures a whole deployment, where it was not that one.
fn measure_all(around: &Around) -> Option<NextStep> {
    let measured = around.asked.iter().any(|word| word == "--transfer");
    if around.asked.is_empty() || measured {
        return None;
    }
    let words: Vec<String> = around.asked.iter().map(|word| shell_word(word)).collect();
    Some(NextStep {
        command: format!("check-interconnect check {} --transfer", words.join(" ")),
        why: "measure real transfers between prefill and decode workers, with their own NIXL, in rounds, and tell what carried them".to_owned(),
        read_only: false,
    })
}

/// The workers of one deployment, held against each other.
fn of_group(
    number: usize,
    group: &workers::Group,
    views: &[PodView<'_>],
    declared: &[Declared],
) -> Vec<CheckResult> {
    let view = GroupView {
        pods: group.pods.iter().filter_map(|n| views.get(*n)).collect(),
        declared,
    };
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Group(run) = check.run {
            run(&view, &mut findings);
        }
    }
    let mut results = findings.into_results();
    for result in &mut results {
        result.deployment = Some(number);
    }
    results
}

/// A rule of settings that an engine's process and a deployment have in common: told once.
const ALSO_OF_DEPLOYMENT: &str = "nixl/ucx-settings";

/// What `nixl` tells of pods: whether they could be looked into. Their specs are `node`'s.
const OF_PODS: [&str; 3] = ["pod/access", "pod/state", "pod/choice"];

/// What is known of NIXL in one container.
fn nixl_of_place(view: &PodView<'_>, group: usize) -> Vec<CheckResult> {
    let mut of_pod = Findings::of_place();
    for check in CHECKS {
        if let Run::Pod(run) = check.run
            && OF_PODS.contains(&check.name)
        {
            run(view, &mut of_pod);
        }
    }
    let mut results = of_pod.into_results();
    if let Some(facts) = view.facts {
        let worker = view.live.map(|live| &live.worker);
        results.extend(live_place(facts, Some(view.object), worker, view.role));
        results.extend(inputs(facts));
    }
    for result in &mut results {
        result.subject = Subject {
            device: result.subject.device.take(),
            ..view.subject.clone()
        };
        result.deployment = Some(group);
    }
    results
}

/// The results of one container as a place, and of its pod's spec beside it.
fn of_place(view: &PodView<'_>, group: usize) -> Vec<CheckResult> {
    let mut of_pod = Findings::of_place();
    for check in CHECKS {
        if let Run::Pod(run) = check.run
            && view.pod.by != SeenBy::Host
        {
            run(view, &mut of_pod);
        }
    }
    let mut of_pod = of_pod.into_results();
    let mut results = Vec::new();
    if let Some(facts) = view.facts {
        results = run_checks(facts);
        explains::apply(&mut of_pod, &mut results);
        results.extend(inputs(facts));
    }
    results.extend(of_pod);
    for result in &mut results {
        let device = result.subject.device.take();
        result.subject = Subject {
            device,
            ..view.subject.clone()
        };
        result.deployment = Some(group);
    }
    results
}

/// The results of all pods together.
fn of_all(view: &PodsView<'_>, prepared: &[Prepared]) -> Vec<CheckResult> {
    let mut findings = Findings::of_place();
    for check in CHECKS {
        if let Run::Pods(run) = check.run {
            run(view, &mut findings);
        }
    }
    let groups: HashMap<&str, usize> = prepared
        .iter()
        .filter_map(|p| Some((p.subject.pod.as_deref()?, p.group)))
        .collect();
    let mut results = findings.into_results();
    for result in &mut results {
        if result.subject.deployment.is_some() {
            result.deployment = result
                .subject
                .pod
                .as_deref()
                .and_then(|pod| groups.get(pod).copied());
        }
    }
    results
}

/// By deployment, then by check, pods in the order in which they were asked for.
fn in_order(results: &mut [CheckResult]) {
    let order: HashMap<&str, usize> = CHECKS
        .iter()
        .enumerate()
        .map(|(at, check)| (check.name, at))
        .collect();
    // Each setting has a check name of its own.
    let settings = order.get("env/settings").copied().unwrap_or(0);
    results.sort_by_key(|r| {
        (
            r.deployment.unwrap_or(usize::MAX),
            order.get(&*r.name).copied().unwrap_or(settings),
        )
    });
}

fn report(
    command: &'static str,
    scope: Vec<String>,
    pods: &[ProbedPod],
    prepared: &[Prepared],
    groups: &[workers::Group],
    results: Vec<CheckResult>,
    around: &Around,
) -> Report {
    let faults = || {
        around
            .faults
            .iter()
            .chain(pods.iter().filter_map(|p| p.probed.as_ref().err()))
    };
    let judged = pods.iter().filter(|p| p.probed.is_ok()).count();
    // What keeps pods from being listed is about the cluster, whatever it is called for one pod.
    let unlisted = around
        .faults
        .iter()
        .any(|f| !matches!(f.kind.scope(), FaultScope::Request | FaultScope::Beside));
    let access = unlisted || faults().any(|f| f.kind.scope() == FaultScope::Access);
    let unreachable = judged == 0 && access;
    let nothing_to_check = pods.is_empty() && !access;
    let mut coverage = coverage(pods, &results);
    let mut deployments: Vec<DeploymentSummary> = Vec::new();
    let mut by_group: Vec<Vec<&CheckResult>> = vec![Vec::new(); groups.len()];
    for result in &results {
        if let Some(list) = result.deployment.and_then(|n| by_group.get_mut(n)) {
            list.push(result);
        }
    }
    for (group, of_group) in groups.iter().zip(&by_group) {
        let roles: Vec<Option<Role>> = group
            .pods
            .iter()
            .filter_map(|n| prepared.get(*n))
            .map(|p| p.role)
            .collect();
        let of = |role| roles.iter().filter(|r| **r == Some(role)).count();
        let pairs = of(Role::Prefill).saturating_mul(of(Role::Decode));
        coverage.pairs_required = coverage.pairs_required.saturating_add(count(pairs));
        let readiness = readiness(of_group.iter().copied(), &roles);
        let mut told = summary(&group.deployment, &[], Accepted::default());
        told.readiness = readiness;
        told.verdict = pods_verdict::sentence(readiness, of_group, &roles);
        deployments.push(told);
    }
    let roles: Vec<Option<Role>> = prepared.iter().map(|p| p.role).collect();
    let readiness = if nothing_to_check {
        if around.faults.is_empty() && !around.passed_over.is_empty() {
            Readiness::NotApplicable
        } else {
            Readiness::Inconclusive
        }
    } else {
        readiness(&results, &roles)
    };
    let all: Vec<&CheckResult> = results.iter().collect();
    let verdict = if nothing_to_check || unreachable {
        pods_verdict::nothing(around, pods)
    } else {
        pods_verdict::sentence(readiness, &all, &roles)
    };
    let next = pods_verdict::next(command, readiness, &all, pods, around);
    Report {
        command,
        scope,
        deployments,
        results,
        transfers: Vec::new(),
        observed: None,
        coverage,
        readiness,
        verdict,
        next,
        missing_path: false,
        broken_input: false,
        nothing_to_check,
        unreachable,
    }
}

fn readiness<'r>(
    results: impl IntoIterator<Item = &'r CheckResult>,
    roles: &[Option<Role>],
) -> Readiness {
    let moves = roles.is_empty() || roles.iter().any(|r| r.is_none_or(Role::moves_kv));
    match readiness_of(results, moves, false) {
        Readiness::Trusted => Readiness::Unproven,
        other => other,
    }
}

fn coverage(pods: &[ProbedPod], results: &[CheckResult]) -> Coverage {
    let probed = pods.iter().filter(|p| p.probed.is_ok()).count();
    let mut seen = 0_usize;
    let mut missing = 0_usize;
    for result in results {
        match (result.status, result.reason) {
            (Status::Skipped, Some(Reason::NotApplicable)) => {}
            (Status::Skipped, _) => missing = missing.saturating_add(1),
            _ => seen = seen.saturating_add(1),
        }
    }
    Coverage {
        workers_found: count(pods.len()),
        workers_probed: count(probed),
        facts_seen: count(seen),
        facts_missing: count(missing),
        ..Coverage::default()
    }
}
