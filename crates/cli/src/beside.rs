//! What `nixl` looks at beside what the collecting script tells: the container's log, and an agent in the engine's
//! place.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use checks::{Beside, LogSeen, NoTrial, NodeFacts, ProbedPod, TrialSeen};
use cluster::{Cluster, Exec, Printed, Program, Session, Stop};
use model::pod::{Fault, FaultKind};
use recipe::live;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use transfer::readiness::{self, Ready};

use crate::args::PodArgs;

/// How much is looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Look {
    /// The pods' objects only.
    Nowhere,
    /// Everything; an agent is made where the pod looks like a KV worker, or all the same.
    Inside {
        /// All the same.
        force: bool,
    },
    /// Everything in all of them where they are so many at most, else in one of each workload and role.
    Sample {
        /// So many.
        most: usize,
    },
}

/// Which of the pods are looked at.
fn chosen(pods: &[ProbedPod], look: Look) -> Vec<usize> {
    let seen: Vec<usize> = pods
        .iter()
        .enumerate()
        .filter(|(_, pod)| pod.probed.is_ok())
        .map(|(index, _)| index)
        .collect();
    match look {
        Look::Nowhere => Vec::new(),
        Look::Inside { .. } => seen,
        Look::Sample { most } if seen.len() <= most => seen,
        Look::Sample { .. } => {
            let mut kinds = BTreeSet::new();
            seen.into_iter()
                .filter(|index| {
                    pods.get(*index).is_some_and(|pod| {
                        let role = pod.role.or(pod.worker.as_ref().map(|worker| worker.role));
                        kinds.insert((checks::workload(&pod.object), role))
                    })
                })
                .collect()
        }
    }
}

/// How long an agent may take, of the time that a container has.
pub(crate) fn seconds(args: &PodArgs) -> u32 {
    let whole = u32::try_from(args.timeout.as_secs()).unwrap_or(u32::MAX);
    whole.saturating_sub(20).clamp(5, 40)
}

/// What is tried in one container.
struct Task {
    index: usize,
    exec: Exec,
    trial: Result<Ready, NoTrial>,
}

/// Looks beside the pods that were looked into.
pub(crate) async fn look(
    cluster: &Arc<dyn Cluster>,
    pods: &mut [ProbedPod],
    look: Look,
    args: &PodArgs,
    stop: &Stop,
) {
    let force = matches!(look, Look::Inside { force: true });
    let gate = Arc::new(Semaphore::new(usize::from(args.concurrency).max(1)));
    let mut tasks = JoinSet::new();
    for index in chosen(pods, look) {
        let Some(pod) = pods.get(index) else { continue };
        let Ok(facts) = &pod.probed else { continue };
        let (cluster, gate, stop) = (Arc::clone(cluster), Arc::clone(&gate), stop.clone());
        let task = Task {
            index,
            exec: Exec {
                namespace: pod.object.namespace.clone(),
                pod: pod.object.name.clone(),
                container: pod.container.clone(),
                command: Vec::new(),
            },
            trial: may_try(pod, force).and_then(|()| place(facts, seconds(args))),
        };
        let timeout = args.timeout;
        tasks.spawn(async move {
            let _slot = gate.acquire_owned().await;
            let log = read_log(&*cluster, &task.exec, &stop).await;
            let trial = match task.trial {
                Ok(ready) => in_pod(&*cluster, task.exec, &ready, timeout, &stop).await,
                Err(why) => Err(why),
            };
            let beside = Beside {
                log: Some(log),
                trial: Some(trial),
            };
            (task.index, beside)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let Ok((index, beside)) = done else { continue };
        if let Some(Ok(facts)) = pods.get_mut(index).map(|pod| pod.probed.as_mut()) {
            facts.nixl = Some(Box::new(beside));
        }
    }
}

/// Nothing is started in a pod that is not for it.
pub(crate) fn may_try(pod: &ProbedPod, force: bool) -> Result<(), NoTrial> {
    let worker = pod.worker.as_slice();
    if force || live::kv_worker(&pod.object, worker).is_some() {
        return Ok(());
    }
    Err(NoTrial::NotAKvWorker(format!(
        "the pod does not look like a KV worker: {}",
        live::passed_over(&pod.object, worker)
    )))
}

/// The process whose place an agent takes.
fn place(facts: &NodeFacts, seconds: u32) -> Result<Ready, NoTrial> {
    let processes = &facts.observation.process.processes;
    if processes.is_empty() {
        return Err(NoTrial::NoEngine(
            "no engine process was seen here".to_owned(),
        ));
    }
    Ready::of(processes, seconds)
        .ok_or_else(|| NoTrial::NoEngine("no process of the engine has libnixl loaded".to_owned()))
}

async fn in_pod(
    cluster: &dyn Cluster,
    exec: Exec,
    ready: &Ready,
    timeout: Duration,
    stop: &Stop,
) -> Result<TrialSeen, NoTrial> {
    let exec = Exec {
        command: ready.command(),
        ..exec
    };
    let session = cluster::start(cluster, &exec, timeout, stop)
        .await
        .map_err(NoTrial::Fault)?;
    tried(session, ready, timeout, stop).await
}

/// Bytes of what NIXL and UCX print; a thousand lines are usual.
const MAX_PRINTED: usize = 6 * 1024 * 1024;
/// Bytes of what the program itself says.
const MAX_SAID: usize = 1024 * 1024;

async fn tried(
    session: Session,
    ready: &Ready,
    timeout: Duration,
    stop: &Stop,
) -> Result<TrialSeen, NoTrial> {
    let input = ready.input();
    let program = Program {
        input: &input,
        max_bytes: MAX_SAID,
        max_errors: MAX_PRINTED,
        timeout,
        is_last: readiness::is_complete,
    };
    let Printed { out, err, fault } = cluster::converse(session, &program, stop).await;
    match readiness::read(ready, &out, &err) {
        Ok((mut trial, printed)) => {
            if let (Some(fault), Some(stopped)) = (fault, trial.stopped.as_mut()) {
                *stopped = format!("{stopped}: {}", fault.detail);
            }
            Ok(TrialSeen { trial, printed })
        }
        Err(words) => Err(match fault {
            Some(fault) if fault.kind != FaultKind::ScriptFailed => NoTrial::Fault(fault),
            Some(fault) => NoTrial::CouldNotRun(format!("{}: {words}", fault.detail)),
            None => NoTrial::CouldNotRun(words),
        }),
    }
}

/// An agent in the place of an engine of this host.
pub(crate) fn here(facts: &NodeFacts) -> Result<TrialSeen, NoTrial> {
    const TIMEOUT: Duration = Duration::from_mins(1);
    let ready = place(facts, 40)?;
    if !same_files(ready.process) {
        return Err(NoTrial::CouldNotRun(format!(
            "process {} is in another container; run check-interconnect nixl inside of it, or nixl --pod",
            ready.process
        )));
    }
    let broken = |error: std::io::Error| NoTrial::CouldNotRun(error.to_string());
    let (runtime, stop) = crate::pods::runtime().map_err(NoTrial::CouldNotRun)?;
    runtime.block_on(async {
        let (mut child, streams) = transfer::local::spawn(&ready.command()).map_err(broken)?;
        let session = Session {
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            end: Box::pin(async move {
                match child.wait().await {
                    Ok(status) => cluster::Ended::Code(status.code().unwrap_or(-1)),
                    Err(error) => cluster::Ended::Fault(Fault::new(
                        FaultKind::ScriptFailed,
                        error.to_string(),
                    )),
                }
            }),
        };
        tried(session, &ready, TIMEOUT, &stop).await
    })
}

/// Whether a process sees the same files as this one: the interpreter and the libraries of its agent are found by path.
fn same_files(process: u32) -> bool {
    let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/mnt")).ok();
    match (of("self"), of(&process.to_string())) {
        (Some(own), Some(theirs)) => own == theirs,
        // Nobody may look: the attempt tells.
        _ => true,
    }
}

async fn read_log(cluster: &dyn Cluster, exec: &Exec, stop: &Stop) -> Result<LogSeen, Fault> {
    let (namespace, pod) = (&exec.namespace, &exec.pod);
    let log = cluster::log(cluster, namespace, pod, &exec.container, stop).await?;
    let mut recogniser = probe::Recogniser::new(&format!("log of {pod}"));
    for part in [&log.first, &log.last] {
        for line in part.split_inclusive(|byte| *byte == b'\n') {
            recogniser.line(&String::from_utf8_lossy(line));
        }
    }
    Ok(LogSeen {
        seen: recogniser.finish(),
        gap: log.gap,
    })
}
