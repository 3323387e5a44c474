//! `collect`: saves what `check` would judge.

use std::process::ExitCode;

use checks::{Around, Beside, Gathered, NodeFacts, ProbedPod, SeenBy, live_of};
use model::{Exit, PodObject, Role};
use recipe::live;

use crate::args::{ChoiceArgs, CollectArgs, Depth};
use crate::node::{collected, role};
use crate::overwrite::{self, Target};
use crate::{beside, bundles, check, interrupt};

pub(crate) fn run(args: &CollectArgs) -> Result<ExitCode, String> {
    let target = Target {
        option: "-o".to_owned(),
        path: &args.output,
    };
    overwrite::refuse(&[target], &args.choice.filename, &[])?;
    let gathered = if of_cluster(&args.choice) {
        check::gather(&args.choice, None)?
    } else {
        of_cluster_alone(&args.choice)?;
        here(args.role.map(role))
    };
    // Where one was looked into, the cluster was reached; else there is next to nothing to judge.
    let reached = gathered.pods.iter().any(|pod| pod.probed.is_ok());
    let report = (!reached).then(|| checks::judge_check(gathered.clone()));
    let unreachable = report.as_ref().is_some_and(|report| report.unreachable);
    if let (true, Some(report)) = (gathered.pods.is_empty(), &report) {
        crate::complain(&format!("nothing was saved: {}", report.verdict));
        return Ok(exit(if unreachable {
            Exit::Cluster
        } else {
            Exit::Nothing
        }));
    }
    bundles::save(&args.output, &gathered)?;
    let lost = gathered
        .pods
        .iter()
        .filter(|pod| {
            pod.probed
                .as_ref()
                .map_or(true, |facts| facts.gap.is_some())
        })
        .count();
    let shown = report::visible(&args.output.display().to_string());
    crate::print(&format!(
        "saved {}{} in {shown}; judge it with check-interconnect replay {}\n",
        workers(&gathered.pods),
        match lost {
            0 => String::new(),
            n => format!(", {n} of them not looked at, or not to the end,"),
        },
        report::visible(&checks::shell_word(&args.output.display().to_string())),
    ))?;
    Ok(exit(if unreachable {
        Exit::Cluster
    } else if lost > 0 || !gathered.around.faults.is_empty() {
        Exit::Inconclusive
    } else {
        Exit::Ok
    }))
}

fn exit(exit: Exit) -> ExitCode {
    match interrupt::signal() {
        Some(signal) => ExitCode::from(128_u8.saturating_add(signal)),
        None => ExitCode::from(exit.code()),
    }
}

/// `6 workers (2 prefill, 4 decode)`.
fn workers(pods: &[ProbedPod]) -> String {
    let roles: Vec<Option<Role>> = pods.iter().map(|pod| live_of(pod).1).collect();
    let of = |role| roles.iter().filter(|r| **r == Some(role)).count();
    let (prefill, decode) = (of(Role::Prefill), of(Role::Decode));
    let all = match pods.len() {
        1 => "1 worker".to_owned(),
        n => format!("{n} workers"),
    };
    format!("{all} ({prefill} prefill, {decode} decode)")
}

/// Whether workers of a cluster are meant, and not this host.
fn of_cluster(args: &ChoiceArgs) -> bool {
    let pods = &args.pods;
    args.name.is_some()
        || !args.filename.is_empty()
        || args.prefill.is_some()
        || !pods.pod.is_empty()
        || pods.selector.is_some()
        || pods.all
        || pods.namespace.is_some()
        || pods.container.is_some()
        || pods.context.is_some()
        || pods.kubeconfig.is_some()
        || pods.as_user.is_some()
        || pods.via.is_some()
}

/// Options that say how workers of a cluster are looked into are a mistake where none are named.
fn of_cluster_alone(args: &ChoiceArgs) -> Result<(), String> {
    let given = [
        ("--depth", args.depth != Depth::default()),
        ("--run-timeout", args.run_timeout.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(format!(
            "{option} is for workers of a cluster, and none are named: collect -o FILE NAME -n NAMESPACE; without it this \
             host is saved"
        )),
        None => Ok(()),
    }
}

/// This host as a worker.
fn here(role: Option<Role>) -> Gathered {
    let mut facts = collected(true);
    facts.nixl = Some(Box::new(Beside {
        log: None,
        trial: Some(beside::here(&facts)),
    }));
    let name = host_name();
    let mut pod = host(&name, facts, role);
    // Hosts of one role are held against each other.
    if let Some(role) = live_of(&pod).1 {
        pod.object.owner = Some(("Host".to_owned(), role.as_str().to_owned()));
    }
    Gathered {
        pods: vec![pod],
        around: Around::default(),
        scope: vec![format!("host {name}")],
        ..Gathered::default()
    }
}

fn host(name: &str, facts: NodeFacts, role: Option<Role>) -> ProbedPod {
    let mut object = PodObject {
        name: name.to_owned(),
        node: Some(name.to_owned()),
        host_network: true,
        ..PodObject::default()
    };
    object
        .labels
        .insert("app.kubernetes.io/instance".to_owned(), "hosts".to_owned());
    ProbedPod {
        worker: Some(live::of_host(name)),
        object,
        container: String::new(),
        taken: SeenBy::Host.words().to_owned(),
        chosen: String::new(),
        probed: Ok(facts),
        later: None,
        role,
        by: SeenBy::Host,
    }
}

fn host_name() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String = text
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'))
        .take(253)
        .collect();
    if name.is_empty() {
        "host".to_owned()
    } else {
        name
    }
}
