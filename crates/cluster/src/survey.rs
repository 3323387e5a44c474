//! Looks into many containers at once, within bounds.

use std::sync::Arc;

use model::pod::{Fault, FaultKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::container::{self, Answer, Limits};
use crate::door::{Cluster, Exec};
use crate::objects;
use crate::stop::Stop;

/// A container to look into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
}

/// What came of one.
#[derive(Debug)]
pub struct Looked {
    /// Its place in the list that was asked for.
    pub index: usize,
    /// What came out of it.
    pub answer: Result<Answer, Fault>,
    /// The pod as it is afterwards, as JSON text, where something went wrong: it may be another one by then.
    pub later: Option<Result<String, Fault>>,
}

/// Looks into containers, so many at once; each result is told when it is there. The results are in the order of the
/// list.
pub async fn look_into(
    cluster: &Arc<dyn Cluster>,
    picks: Vec<Pick>,
    concurrency: usize,
    limits: Limits,
    stop: &Stop,
    mut done: impl FnMut(&Looked),
) -> Vec<Looked> {
    let concurrency = concurrency.max(1);
    let slots = Arc::new(Semaphore::new(concurrency));
    let mut tasks = JoinSet::new();
    let mut looked: Vec<Option<Looked>> = picks.iter().map(|_| None).collect();
    // In the order of the list, so that the first ones are there first when a run is ended.
    let mut waiting = picks.into_iter().enumerate().peekable();
    loop {
        // What has come back is read beside the next ones' answers; so much of it is held at once.
        let room = tasks.len() < concurrency.saturating_mul(2);
        tokio::select! {
            biased;
            Some(finished) = tasks.join_next() => {
                // A task that panicked is a bug of ours; its container counts as not looked at.
                if let Ok(result) = finished {
                    done(&result);
                    let index = result.index;
                    if let Some(place) = looked.get_mut(index) {
                        *place = Some(result);
                    }
                }
            }
            Ok(slot) = Arc::clone(&slots).acquire_owned(),
                if room && waiting.peek().is_some() && !stop.is_stopped() =>
            {
                if stop.is_stopped() {
                    continue;
                }
                let Some((index, pick)) = waiting.next() else {
                    continue;
                };
                let (cluster, stop) = (Arc::clone(cluster), stop.clone());
                tasks.spawn(async move { one(&*cluster, index, pick, limits, &stop, slot).await });
            }
            else => break,
        }
    }
    looked
        .into_iter()
        .enumerate()
        .map(|(index, result)| result.unwrap_or_else(|| not_reached(index)))
        .collect()
}

fn not_reached(index: usize) -> Looked {
    Looked {
        index,
        answer: Err(Fault::new(
            FaultKind::Interrupted,
            "the run was ended before it was looked at",
        )),
        later: None,
    }
}

async fn one(
    cluster: &dyn Cluster,
    index: usize,
    pick: Pick,
    limits: Limits,
    stop: &Stop,
    slot: OwnedSemaphorePermit,
) -> Looked {
    let exec = Exec {
        namespace: pick.namespace,
        pod: pick.pod,
        container: pick.container,
        command: container::command(&limits),
    };
    // What a server calls a pod becomes part of a path, and an argument of a program.
    if let Some(odd) = [&exec.pod, &exec.container, &exec.namespace]
        .into_iter()
        .find(|name| !objects::is_name(name))
    {
        return Looked {
            index,
            answer: Err(Fault::new(
                FaultKind::NotApi,
                format!("the API server names '{odd}', which is no name in Kubernetes"),
            )),
            later: None,
        };
    }
    let answer = container::look(cluster, &exec, &limits, stop, slot).await;
    let broke = match &answer {
        Ok(answer) => answer.fault.as_ref(),
        Err(fault) => Some(fault),
    };
    // Whether it is still the same pod tells why.
    let may_be_gone = broke.is_some_and(|fault| {
        matches!(
            fault.kind,
            FaultKind::Cut
                | FaultKind::Deleted
                | FaultKind::Restarted
                | FaultKind::Conflict
                | FaultKind::ServerError
                | FaultKind::ScriptFailed
                | FaultKind::KubectlFailed
                | FaultKind::TimedOut
        )
    });
    let later = if may_be_gone && !stop.is_stopped() {
        Some(objects::named_pod(cluster, &exec.namespace, &exec.pod, stop).await)
    } else {
        None
    };
    Looked {
        index,
        answer,
        later,
    }
}
