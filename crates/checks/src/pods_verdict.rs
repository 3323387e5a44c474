//! The verdict over pods in one sentence, and what to do next.

use std::collections::BTreeSet;

use model::pod::ContainerKind;
use model::{CheckResult, FaultKind, NextStep, Readiness, Reason, Role, Status};

use crate::judge::shell_word;
use crate::judge_pods::{Around, ProbedPod};
use crate::may_stop::may_stop;

/// Pods that a sentence names.
const NAMES: usize = 3;
/// Steps that are told; more are no plan.
const STEPS: usize = 5;

/// `200 pods (80 prefill, 120 decode)`.
fn all(roles: &[Option<Role>]) -> String {
    let mut parts = Vec::new();
    for role in [
        Role::Prefill,
        Role::Decode,
        Role::Unknown,
        Role::Aggregated,
        Role::Encode,
    ] {
        let n = roles.iter().filter(|r| **r == Some(role)).count();
        if n > 0 {
            parts.push(format!("{n} {}", role.as_str()));
        }
    }
    let pods = pods(roles.len());
    if parts.is_empty() {
        pods
    } else {
        format!("{pods} ({})", parts.join(", "))
    }
}

fn pods(count: usize) -> String {
    match count {
        1 => "1 pod".to_owned(),
        n => format!("{n} pods"),
    }
}

/// Pods of the results that a verdict stands on: the result to name first, and how many pods have one like it.
fn worst<'r>(
    results: &[&'r CheckResult],
    is: impl Fn(&CheckResult) -> bool,
) -> Option<(&'r CheckResult, String)> {
    let found: Vec<&'r CheckResult> = results
        .iter()
        .copied()
        .filter(|r| !r.collective && is(r))
        .collect();
    // That a container could not be looked into is why the rest is not known of it.
    let is_fault = |r: &&&CheckResult| {
        r.status == Status::Skipped && matches!(&*r.name, "pod/access" | "pod/state")
    };
    let first = found
        .iter()
        .find(|r| may_stop(r))
        .or_else(|| found.iter().find(is_fault))
        .or_else(|| found.first())?;
    // Pods that lack something lack it for many reasons; a fault is one.
    let gap = first.status == Status::Skipped;
    let lost = is_fault(&first);
    let names: BTreeSet<&str> = found
        .iter()
        .filter(|r| match (lost, gap) {
            // Those that were looked into lack something else.
            (true, _) => is_fault(r),
            (false, gap) => gap || r.name == first.name && r.cause == first.cause,
        })
        .flat_map(|r| r.subject.pod.iter().chain(&r.subject.pods))
        .map(String::as_str)
        .collect();
    let total: BTreeSet<&str> = results
        .iter()
        .flat_map(|r| r.subject.pod.iter())
        .map(String::as_str)
        .collect();
    let who = match (names.len(), total.len()) {
        (0, _) => String::new(),
        (n, total) if n == total && n > 1 => format!("in all {n} pods: "),
        (1, 1) => String::new(),
        (n, total) => {
            let shown: Vec<&str> = names.iter().take(NAMES).copied().collect();
            let more = if n > NAMES { ", …" } else { "" };
            format!("in {n} of {total} pods ({}{more}): ", shown.join(", "))
        }
    };
    Some((first, who))
}

/// The verdict over pods that were looked at, or should have been.
pub(crate) fn sentence(
    readiness: Readiness,
    results: &[&CheckResult],
    roles: &[Option<Role>],
) -> String {
    let told = |found: Option<(&CheckResult, String)>| {
        found.map_or_else(String::new, |(result, who)| {
            // A message of the cluster does not always say what it means.
            let meaning = result
                .cause
                .filter(|_| matches!(&*result.name, "pod/access" | "pod/state"))
                .and_then(crate::registry::cause)
                .map_or_else(String::new, |(_, cause)| format!("{}: ", cause.what));
            format!("{who}{meaning}{}", result.detail)
        })
    };
    match readiness {
        Readiness::Blocked => format!(
            "KV transfer cannot be trusted; fix first, {}",
            with_lead(told(worst(results, |r| r.status == Status::Fail)))
        ),
        Readiness::Inconclusive => format!(
            "not all that a verdict needs could be seen, {}",
            with_lead(told(worst(results, |r| {
                r.status == Status::Skipped && r.required
            })))
        ),
        Readiness::Degraded => format!(
            "it can run, with gaps; look first, {}",
            with_lead(told(worst(results, |r| r.status == Status::Warn)))
        ),
        Readiness::NotApplicable => format!(
            "nothing disaggregated in {}: no KV cache moves between them",
            all(roles)
        ),
        Readiness::Unproven | Readiness::Trusted => format!(
            "no gap seen in {}; what carries KV has not been measured",
            all(roles)
        ),
    }
}

/// `at: detail` where nothing says in which pods.
fn with_lead(text: String) -> String {
    if text.starts_with("in ") {
        text
    } else {
        format!("at: {text}")
    }
}

/// The verdict where nothing was looked at.
pub(crate) fn nothing(around: &Around, pods: &[ProbedPod]) -> String {
    let fault = around
        .faults
        .first()
        .or_else(|| pods.iter().find_map(|p| p.probed.as_ref().err()));
    if let Some(fault) = fault {
        return format!(
            "nothing was looked at: {}: {}",
            crate::pod::faults::cause(fault.kind).what,
            fault.detail
        );
    }
    match around.passed_over.as_slice() {
        [] => "nothing was looked at: no pod was found".to_owned(),
        list => {
            let reasons: BTreeSet<&str> = list.iter().map(|(_, why)| why.as_str()).collect();
            let reasons: Vec<&str> = reasons.into_iter().take(NAMES).collect();
            let none = match list.len() {
                1 => "the only pod moves no KV cache".to_owned(),
                n => format!("none of {n} pods moves KV cache"),
            };
            format!("{none}: {}", reasons.join("; "))
        }
    }
}

fn step(command: String, why: &str) -> NextStep {
    NextStep {
        command,
        why: why.to_owned(),
        read_only: true,
    }
}

/// The most useful next commands; all of them only read.
pub(crate) fn next(
    command: &str,
    readiness: Readiness,
    results: &[&CheckResult],
    pods: &[ProbedPod],
    around: &Around,
) -> Vec<NextStep> {
    let mut steps = of_faults(command, readiness, results, pods, around);
    of_logs(readiness, pods, &mut steps);
    steps
}

/// Those about what went wrong.
pub(crate) fn of_faults(
    command: &str,
    readiness: Readiness,
    results: &[&CheckResult],
    pods: &[ProbedPod],
    around: &Around,
) -> Vec<NextStep> {
    let mut steps: Vec<NextStep> = Vec::new();
    let mut add = |new: NextStep| {
        if steps.len() < STEPS && !steps.iter().any(|s| s.command == new.command) {
            steps.push(new);
        }
    };
    let is_worst = |r: &CheckResult| match readiness {
        Readiness::Blocked => r.status == Status::Fail,
        Readiness::Degraded => r.status == Status::Warn,
        Readiness::Inconclusive => r.status == Status::Skipped && r.required,
        _ => false,
    };
    if let Some((worst, _)) = worst(results, is_worst)
        && let Some(cause) = worst.cause
    {
        add(step(
            format!("check-interconnect explain {cause}"),
            "what it means, when it is no problem, and how to fix it",
        ));
    }
    let namespace = pods
        .first()
        .map(|p| p.object.namespace.clone())
        .or_else(|| namespace(&around.asked))
        .unwrap_or_default();
    let mut told: BTreeSet<FaultKind> = BTreeSet::new();
    for fault in &around.faults {
        if told.insert(fault.kind) {
            for new in of_fault(fault.kind, &namespace, None) {
                add(new);
            }
        }
    }
    for pod in pods {
        if let Err(fault) = &pod.probed
            && told.insert(fault.kind)
        {
            for new in of_fault(fault.kind, &namespace, Some(pod)) {
                add(new);
            }
        }
    }
    let open = readiness <= Readiness::Degraded || !told.is_empty();
    if open && !around.asked.is_empty() {
        let words: Vec<String> = around.asked.iter().map(|w| shell_word(w)).collect();
        add(step(
            format!("check-interconnect {command} {}", words.join(" ")),
            "look again after the fix",
        ));
    }
    steps
}

/// Where nothing is known to be wrong, the engine's own log may tell more.
fn of_logs(readiness: Readiness, pods: &[ProbedPod], steps: &mut Vec<NextStep>) {
    let mut add = |new: NextStep| {
        if steps.len() < STEPS && !steps.iter().any(|s| s.command == new.command) {
            steps.push(new);
        }
    };
    if matches!(readiness, Readiness::Unproven | Readiness::Degraded) {
        let mut roles = BTreeSet::new();
        for pod in pods {
            let role = pod.worker.as_ref().map(|w| w.role);
            if pod.probed.is_ok() && roles.insert(role) && roles.len() <= 2 {
                add(step(
                    format!(
                        "kubectl logs -n {} {} -c {} --tail=-1 | grep -E 'ucp_context|rma\\('",
                        shell_word(&pod.object.namespace),
                        shell_word(&pod.object.name),
                        shell_word(&pod.container)
                    ),
                    "the payload lane in the worker's own log (rma(...)) is evidence; start the workers with UCX_LOG_LEVEL=info",
                ));
            }
        }
    }
}

fn namespace(asked: &[String]) -> Option<String> {
    let at = asked.iter().position(|w| w == "-n" || w == "--namespace")?;
    asked.get(at.saturating_add(1)).cloned()
}

/// What shows more of a fault.
fn of_fault(kind: FaultKind, namespace: &str, pod: Option<&ProbedPod>) -> Vec<NextStep> {
    let namespace = if namespace.is_empty() {
        String::new()
    } else {
        format!(" -n {}", shell_word(namespace))
    };
    let name = pod.map_or_else(|| "POD".to_owned(), |p| shell_word(&p.object.name));
    let container = pod
        .map(|p| p.container.as_str())
        .filter(|c| !c.is_empty())
        .map(|c| format!(" -c {}", shell_word(c)))
        .unwrap_or_default();
    let describe = || {
        step(
            format!("kubectl describe pod{namespace} {name}"),
            "its events say what it waits for, or why it ended",
        )
    };
    match kind {
        FaultKind::CrashLoop | FaultKind::Restarted => vec![
            step(
                format!("kubectl logs{namespace} {name}{container} --previous --tail=100"),
                "the last words of the process that ended",
            ),
            describe(),
        ],
        FaultKind::Unschedulable
        | FaultKind::NotStarted
        | FaultKind::ImagePull
        | FaultKind::Completed
        | FaultKind::Conflict => vec![describe()],
        FaultKind::NoMatch | FaultKind::NoSuchPod | FaultKind::Deleted => vec![step(
            format!("kubectl get pods{namespace} --show-labels"),
            "the pods that there are",
        )],
        FaultKind::NotFound => vec![step(
            "kubectl get namespaces".to_owned(),
            "the namespaces that there are",
        )],
        FaultKind::ForbiddenPods => vec![step(
            format!("kubectl auth can-i list pods{namespace}"),
            "whether reading pods is granted",
        )],
        FaultKind::ForbiddenExec => vec![step(
            format!("kubectl auth can-i create pods --subresource=exec{namespace}"),
            "whether running a command in a pod is granted",
        )],
        FaultKind::NoKubeconfig
        | FaultKind::BrokenKubeconfig
        | FaultKind::UnknownContext
        | FaultKind::UnknownCa => vec![step(
            "kubectl config get-contexts".to_owned(),
            "the clusters that the kubeconfig names",
        )],
        FaultKind::Unauthorized | FaultKind::CredentialPlugin => vec![step(
            "kubectl auth whoami".to_owned(),
            "who the API server takes you for",
        )],
        FaultKind::Unreachable => vec![step(
            "kubectl version".to_owned(),
            "whether anybody reaches the API server from here",
        )],
        FaultKind::AmbiguousContainer | FaultKind::NoSuchContainer => {
            let mains = || {
                pod.iter()
                    .flat_map(|p| &p.object.containers)
                    .filter(|c| c.kind == ContainerKind::Main)
            };
            let likely = mains()
                .find(|c| !c.resources.is_empty())
                .or_else(|| mains().next());
            likely
                .map(|c| {
                    step(
                        format!(
                            "check-interconnect node{namespace} --pod {name} -c {}",
                            shell_word(&c.name)
                        ),
                        "look into this one; the message names the others",
                    )
                })
                .into_iter()
                .collect()
        }
        _ if kind.reason() == Reason::TimedOut => vec![describe()],
        _ => Vec::new(),
    }
}
