//! What `nixl` looks at beside what the collecting script tells: the container's log, and an agent in the engine's
//! place.

use std::sync::Arc;

use checks::{Beside, LogSeen, ProbedPod};
use cluster::{Cluster, Stop};
use model::pod::Fault;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

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
}

/// Looks beside the pods that were looked into.
pub(crate) async fn look(
    cluster: &Arc<dyn Cluster>,
    pods: &mut [ProbedPod],
    _look: Look,
    args: &PodArgs,
    stop: &Stop,
) {
    let gate = Arc::new(Semaphore::new(usize::from(args.concurrency).max(1)));
    let mut tasks = JoinSet::new();
    for (index, pod) in pods.iter().enumerate() {
        if pod.probed.is_err() {
            continue;
        }
        let (cluster, gate, stop) = (Arc::clone(cluster), Arc::clone(&gate), stop.clone());
        let (namespace, name) = (pod.object.namespace.clone(), pod.object.name.clone());
        let container = pod.container.clone();
        tasks.spawn(async move {
            let _slot = gate.acquire_owned().await;
            let log = read_log(&*cluster, &namespace, &name, &container, &stop).await;
            let beside = Beside {
                log: Some(log),
                trial: None,
            };
            (index, beside)
        });
    }
    while let Some(done) = tasks.join_next().await {
        let Ok((index, beside)) = done else { continue };
        if let Some(Ok(facts)) = pods.get_mut(index).map(|pod| pod.probed.as_mut()) {
            facts.nixl = Some(Box::new(beside));
        }
    }
}

async fn read_log(
    cluster: &dyn Cluster,
    namespace: &str,
    pod: &str,
    container: &str,
    stop: &Stop,
) -> Result<LogSeen, Fault> {
    let log = cluster::log(cluster, namespace, pod, container, stop).await?;
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
