//! Runs the checks over all deployments and says what follows.

use model::verdict::{DeploymentSummary, WorkerSummary, readiness_of};
use model::{
    Accepted, CheckResult, Coverage, Deployment, Facts, Input, NextStep, Outcome, Readiness,
    Report, Role, Status,
};

use crate::check::Run;
use crate::finding::Findings;
use crate::inputs;
use crate::may_stop::{first, may_stop};
use crate::policy::{Policy, Unchanged};
use crate::registry::CHECKS;
use crate::view::View;
use crate::{branches, fabric, kv_path};

/// Judges recipes.
pub fn judge_env(facts: &Facts, scope: Vec<String>) -> Report {
    judge_env_with(facts, scope, &mut Unchanged)
}

/// Judges recipes, and lets a policy decide what findings count as before anything follows from them.
pub fn judge_env_with(facts: &Facts, scope: Vec<String>, policy: &mut dyn Policy) -> Report {
    judge_windows(
        &facts.inputs,
        facts.deployments.chunks(WINDOW),
        scope,
        policy,
    )
}

/// The same for who needs the facts no longer: each is given up once it is judged, so that facts and results of a
/// large run are never there together.
pub fn judge_env_once(facts: Facts, scope: Vec<String>, policy: &mut dyn Policy) -> Report {
    // Taken from the end, so that the room of those that are judged can be given back on the way.
    let mut deployments = facts.deployments;
    deployments.reverse();
    let windows = std::iter::from_fn(|| {
        let mut window = deployments.split_off(deployments.len().saturating_sub(WINDOW));
        window.reverse();
        if deployments.capacity() > deployments.len().saturating_mul(2) {
            deployments.shrink_to_fit();
        }
        (!window.is_empty()).then_some(window)
    });
    judge_windows(&facts.inputs, windows, scope, policy)
}

fn judge_windows<W: AsRef<[Deployment]>>(
    inputs: &[Input],
    windows: impl Iterator<Item = W>,
    scope: Vec<String>,
    policy: &mut dyn Policy,
) -> Report {
    let mut results = Vec::new();
    let mut deployments = Vec::new();
    let mut coverage = Coverage::default();
    for input in inputs {
        let lost = input
            .problems
            .iter()
            .filter(|p| p.outcome != Outcome::Noted)
            .count();
        coverage.inputs_not_read += u32::try_from(lost).unwrap_or(u32::MAX);
        coverage.inputs_read += u32::from(input.documents > 0);
    }
    let mut disaggregated = false;
    let mut evidence = None;
    for window in windows {
        let window = window.as_ref();
        // Room that judged facts leave is found again by their own thread only (most allocators keep it apart
        // for each), so a second thread would make a large run larger.
        let judged = if deployments.is_empty() {
            judge_all(window)
        } else {
            window.iter().map(judge).collect()
        };
        for (deployment, mut found) in window.iter().zip(judged) {
            let index = deployments.len();
            disaggregated |= deployment.is_disaggregated();
            evidence = evidence.or_else(|| evidence_in_logs(deployment));
            for result in &mut found {
                result.deployment = Some(index);
            }
            let accepted = policy.deployment(deployment, &mut found);
            coverage.accepted.add(accepted);
            coverage.workers_found += count(
                deployment
                    .whole_workers()
                    .filter(|w| {
                        matches!(
                            w.role,
                            Role::Prefill | Role::Decode | Role::Unknown | Role::Aggregated
                        )
                    })
                    .count(),
            );
            let of_role = |role| {
                deployment
                    .whole_workers()
                    .filter(|w| w.role == role)
                    .count()
            };
            coverage.pairs_required += count(of_role(Role::Prefill) * of_role(Role::Decode));
            coverage.facts_seen +=
                count(found.iter().filter(|r| r.status != Status::Skipped).count());
            coverage.facts_missing += count(
                found
                    .iter()
                    .filter(|r| {
                        r.status == Status::Skipped
                            && r.reason != Some(model::Reason::NotApplicable)
                    })
                    .count(),
            );
            deployments.push(summary(deployment, &found, accepted));
            results.extend(found);
        }
    }
    let of_inputs = inputs::results(inputs);
    // The workers may be in what nobody could look into.
    let hidden = !disaggregated
        && of_inputs
            .iter()
            .any(|r| r.reason == Some(model::Reason::NotVisible));
    let broken_input = hidden || of_inputs.iter().any(|r| r.required);
    results.extend(of_inputs);
    let of_policy = policy.finish(inputs);
    coverage.accepted.add(of_policy.accepted);
    results.extend(of_policy.results);
    let nothing_to_check = deployments.is_empty();
    let readiness = match readiness_of(&results, disaggregated, false) {
        _ if nothing_to_check => Readiness::Inconclusive,
        Readiness::NotApplicable if hidden => Readiness::Inconclusive,
        other => other,
    };
    let missing_path = inputs
        .iter()
        .any(|i| i.problems.iter().any(|p| p.outcome == Outcome::Missing));
    let verdict = overall(readiness, &deployments, &results, nothing_to_check);
    let again: Vec<&String> = scope.iter().chain(policy.options()).collect();
    let next = next_steps(readiness, evidence, &results, &again);
    Report {
        command: "env",
        scope,
        deployments,
        results,
        transfers: Vec::new(),
        observed: None,
        coverage,
        readiness,
        verdict,
        next,
        missing_path,
        broken_input,
        nothing_to_check,
        unreachable: false,
    }
}

pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// From how many deployments on a second core is worth starting.
const MANY: usize = 16;

/// Deployments that are judged before their results are taken over. All at once would need twice the room.
const WINDOW: usize = 512;

/// The results of each deployment, on all cores where there are many.
fn judge_all(deployments: &[Deployment]) -> Vec<Vec<CheckResult>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    if deployments.len() < MANY || threads < 2 {
        return deployments.iter().map(judge).collect();
    }
    let part = deployments.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let parts: Vec<_> = deployments
            .chunks(part)
            .map(|chunk| {
                let run = move || chunk.iter().map(judge).collect::<Vec<_>>();
                (chunk, scope.spawn(run))
            })
            .collect();
        parts
            .into_iter()
            .flat_map(|(chunk, part)| {
                // A panic of a check is a bug of ours; it shows again where it can be seen.
                part.join()
                    .unwrap_or_else(|_| chunk.iter().map(judge).collect())
            })
            .collect()
    })
}

/// The results of one deployment.
pub(crate) fn judge(deployment: &Deployment) -> Vec<CheckResult> {
    let mut results = judge_as_is(deployment);
    branches::judge(deployment, judge_as_is, &mut results);
    results
}

fn judge_as_is(deployment: &Deployment) -> Vec<CheckResult> {
    let view = View::of(deployment);
    let mut findings = Findings::of(&deployment.name);
    for check in CHECKS {
        if let Run::Recipe(run) = check.run {
            run(&view, &mut findings);
        }
    }
    findings.into_results()
}

/// What is told of a deployment in short.
pub(crate) fn summary(
    deployment: &Deployment,
    results: &[CheckResult],
    accepted: Accepted,
) -> DeploymentSummary {
    let readiness = readiness_of(results, deployment.is_disaggregated(), false);
    let workers = deployment
        .whole_workers()
        .map(|worker| WorkerSummary {
            name: worker.name.clone(),
            role: worker.role,
            engine: worker.engine,
            engine_is_assumed: worker.engine_is_assumed,
            connector: worker
                .role
                .moves_kv()
                .then(|| kv_path::of(worker).summary())
                .flatten(),
            fabric: fabric::of(worker, deployment).summary(),
            replicas: worker.replicas,
            nodes: worker.nodes,
            accelerators: worker.accelerators,
        })
        .collect();
    DeploymentSummary {
        name: deployment.name.clone(),
        namespace: deployment.namespace.clone(),
        kind: deployment.kind.clone(),
        files: deployment.files.iter().map(ToString::to_string).collect(),
        partial: deployment.partial.map(model::Partial::as_str),
        readiness,
        verdict: sentence(readiness, deployment, results, accepted),
        workers,
    }
}

/// A skipped result that the verdict needs.
fn is_needed(result: &CheckResult) -> bool {
    result.required && result.status == Status::Skipped
}

/// The verdict over one deployment.
fn sentence(
    readiness: Readiness,
    deployment: &Deployment,
    results: &[CheckResult],
    accepted: Accepted,
) -> String {
    let part = deployment
        .partial
        .map(|p| format!(" (a {}: judged for what it sets only)", p.as_str()))
        .unwrap_or_default();
    let about = |status| {
        first(results, status)
            .map(|r| r.detail.clone())
            .unwrap_or_default()
    };
    match readiness {
        Readiness::Blocked => format!(
            "KV transfer cannot be trusted; fix first: {}{part}",
            about(Status::Fail)
        ),
        Readiness::Inconclusive => {
            let mut needed = results.iter().filter(|r| is_needed(r));
            match needed.next() {
                Some(first) => {
                    let more = match needed.count() {
                        0 => String::new(),
                        n => format!("; {n} more"),
                    };
                    format!(
                        "not all that a verdict needs could be seen: {}{more}{part}",
                        first.detail
                    )
                }
                None => format!("not all that a verdict needs could be read{part}"),
            }
        }
        Readiness::Degraded => {
            let how = if first(results, Status::Warn).is_some_and(may_stop) {
                "it may not start, or move no KV at all"
            } else {
                "it can run, with gaps"
            };
            format!("{how}; look first at: {}{part}", about(Status::Warn))
        }
        // What was accepted is still there: this must not read like a recipe without a gap.
        Readiness::Unproven if !accepted.is_none() => format!(
            "no gap beside what was accepted ({}){}: {}; nothing has been measured{}{part}",
            accepted.words(),
            missing_role(deployment),
            carrier(deployment),
            undecided(results)
        ),
        Readiness::Unproven if deployment.partial.is_some() => {
            format!("nothing wrong in what it sets{part}")
        }
        Readiness::Unproven => format!(
            "no gap seen{}: {}; nothing has been measured{}",
            missing_role(deployment),
            carrier(deployment),
            undecided(results)
        ),
        Readiness::Trusted => "KV transfer is proven".to_owned(),
        Readiness::NotApplicable => {
            let aggregated = deployment.role(Role::Aggregated).next().is_some();
            if aggregated {
                "aggregated: no KV cache moves between workers"
            } else {
                "no prefill or decode worker here"
            }
            .to_owned()
        }
    }
}

/// What carries KV, in the words of the recipe.
fn carrier(deployment: &Deployment) -> String {
    let Some(worker) = deployment.kv_workers().next() else {
        return "nothing moves KV".to_owned();
    };
    let path = kv_path::of(worker)
        .summary()
        .unwrap_or_else(|| "a connector that is not in the files".to_owned());
    let fabric = fabric::of(worker, deployment);
    let how = if fabric.any() {
        fabric.summary()
    } else if worker.pod().same_host.is_some() {
        "one host".to_owned()
    } else {
        fabric.summary()
    };
    if kv_path::keeps_kv(worker) {
        return format!(
            "nothing visible moves KV from prefill to decode ({path} keeps it, and moves it only where its own configuration says so)"
        );
    }
    format!("KV is meant to go over {path} ({how})")
}

/// That the other half of the deployment is not there, where it is not.
fn missing_role(deployment: &Deployment) -> &'static str {
    let has = |role| deployment.role(role).next().is_some();
    match (has(Role::Prefill), has(Role::Decode)) {
        (true, false) => " in prefill, and decode is not in the input",
        (false, true) => " in decode, and prefill is not in the input",
        _ => "",
    }
}

/// What only the running pod knows.
fn undecided(results: &[CheckResult]) -> String {
    let mut open: Vec<&str> = Vec::new();
    for result in results.iter().filter(|r| {
        r.status == Status::Skipped && r.reason == Some(model::Reason::Dynamic) && !r.collective
    }) {
        if !open.contains(&result.detail.as_str()) {
            open.push(&result.detail);
        }
    }
    match open.as_slice() {
        [] => String::new(),
        [one] => format!("; not judged: {one}"),
        [one, more @ ..] => format!("; not judged: {one}; {} more", more.len()),
    }
}

fn overall(
    readiness: Readiness,
    deployments: &[DeploymentSummary],
    results: &[CheckResult],
    nothing: bool,
) -> String {
    if nothing {
        return match results.iter().find(|r| r.status == Status::Skipped) {
            Some(result) => format!("nothing could be judged; {}", result.detail),
            None => "nothing to judge: no manifest with a pod was found".to_owned(),
        };
    }
    let unread = results
        .iter()
        .filter(|r| is_needed(r) && r.subject.deployment.is_none())
        .count();
    let mut text = match deployments {
        [one] => one.verdict.clone(),
        several => {
            let n = |r: Readiness| several.iter().filter(|d| d.readiness == r).count();
            let mut parts = Vec::new();
            for r in [
                Readiness::Blocked,
                Readiness::Inconclusive,
                Readiness::Degraded,
                Readiness::Unproven,
                Readiness::NotApplicable,
            ] {
                if n(r) > 0 {
                    parts.push(format!("{} {}", n(r), r.as_str()));
                }
            }
            let worst = several.iter().min_by_key(|d| d.readiness);
            let lead = worst
                .filter(|d| d.readiness <= Readiness::Degraded)
                .map(|d| format!("; {}: {}", d.name, d.verdict))
                .unwrap_or_default();
            format!("{} deployments: {}{lead}", several.len(), parts.join(", "))
        }
    };
    // A warning about the run itself, such as a suppression that nothing needs.
    let own = deployments.iter().map(|d| d.readiness).min();
    if readiness <= Readiness::Degraded
        && own.is_none_or(|own| own > Readiness::Degraded)
        && let Some(result) = results.iter().find(|r| {
            r.subject.deployment.is_none() && matches!(r.status, Status::Fail | Status::Warn)
        })
    {
        text = format!("{text}; look first at: {}", result.detail);
    }
    if readiness == Readiness::Inconclusive && own == Some(Readiness::NotApplicable) {
        text = format!("{text} that can be seen; a part is a template or was not rendered");
    }
    if unread > 0 && readiness != Readiness::NotApplicable {
        let parts = if unread == 1 { "part" } else { "parts" };
        text = format!("{text}; {unread} {parts} of the input could not be read");
    }
    if let Some(not_rendered) = not_rendered(results) {
        text = format!("{text}; {not_rendered}");
    }
    text
}

/// What was judged by its parts only, since nothing rendered it.
fn not_rendered(results: &[CheckResult]) -> Option<String> {
    let count = |cause| results.iter().filter(|r| r.cause == Some(cause)).count();
    let kinds = [
        (count("input-kustomization-not-rendered"), "kustomization"),
        (count("input-chart-not-rendered"), "Helm chart"),
    ];
    let parts: Vec<String> = kinds
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}{}", if *n == 1 { "" } else { "s" }))
        .collect();
    let verb = if kinds.iter().map(|(n, _)| n).sum::<usize>() == 1 {
        "was"
    } else {
        "were"
    };
    (!parts.is_empty()).then(|| format!("{} {verb} not rendered", parts.join(" and ")))
}

/// The most useful next commands.
fn next_steps(
    readiness: Readiness,
    evidence: Option<String>,
    results: &[CheckResult],
    again: &[&String],
) -> Vec<NextStep> {
    let step = |command: String, why: &str| NextStep {
        command,
        why: why.to_owned(),
        read_only: true,
    };
    let worst = match readiness {
        Readiness::Blocked => Some(Status::Fail),
        Readiness::Degraded => Some(Status::Warn),
        _ => None,
    };
    let mut next = Vec::new();
    if let Some(cause) = worst.and_then(|s| first(results, s)).and_then(|r| r.cause) {
        next.push(step(
            format!("check-interconnect explain {cause}"),
            "what it means, when it is no problem, and how to fix it",
        ));
        next.push(step(
            format!("check-interconnect env {}", quoted(again)),
            "judge again after the fix",
        ));
    }
    if matches!(readiness, Readiness::Unproven | Readiness::Degraded) {
        next.extend(evidence.map(|command| {
            step(command, "the payload lane in the worker's own log (rma(...)) is evidence; start the workers with UCX_LOG_LEVEL=info")
        }));
    }
    next
}

/// The command that shows which lanes the workers use, where their log tells.
fn evidence_in_logs(deployment: &Deployment) -> Option<String> {
    let whole = deployment.is_disaggregated() && deployment.partial.is_none();
    // The lanes are lines of UCX; what goes another way writes none.
    let tells = whole
        && deployment
            .kv_workers()
            .any(|w| kv_path::of(w).may_use_ucx());
    tells.then(|| proof_command(deployment))
}

/// What can be looked at in a running deployment without another tool.
fn proof_command(deployment: &Deployment) -> String {
    let namespace = deployment.namespace.as_deref().unwrap_or("NAMESPACE");
    if deployment.kind.starts_with("Dynamo") {
        format!(
            "kubectl logs -n {} -c main -l {} --tail=-1 | grep -E 'ucp_context|rma\\('",
            shell_word(namespace),
            shell_word(&format!(
                "nvidia.com/dynamo-graph-deployment-name={}",
                deployment.name
            ))
        )
    } else {
        format!(
            "kubectl logs -n {} POD --tail=-1 | grep -E 'ucp_context|rma\\('",
            shell_word(namespace)
        )
    }
}

fn quoted(words: &[&String]) -> String {
    words
        .iter()
        .map(|s| shell_word(s))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word that a shell takes as it is.
pub fn shell_word(word: &str) -> String {
    let plain = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c));
    if plain {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
