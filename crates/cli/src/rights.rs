//! What whoever asks may do, asked while pods are listed.

use std::sync::Arc;
use std::time::Duration;

use checks::{By, Needed, RIGHTS, RightsSeen};
use cluster::{Cluster, Right, Stop};
use tokio::task::JoinHandle;

use crate::args::PodArgs;
use crate::choice::Wanted;

/// How long the answers are waited for when everything else is there: they come at once, or the server does not give them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Begins to ask.
pub(crate) fn ask(
    cluster: &Arc<dyn Cluster>,
    args: &PodArgs,
    wanted: &Wanted,
    stop: &Stop,
) -> JoinHandle<RightsSeen> {
    let named = !args.pod.is_empty() && matches!(wanted, Wanted::AsAsked);
    let needed: Vec<&'static Needed> = RIGHTS
        .iter()
        .filter(|right| right.by != By::Search || !named)
        .collect();
    let namespace = args.namespace_of(&**cluster);
    let rights: Vec<Right> = needed
        .iter()
        .map(|right| Right {
            verb: right.verb,
            group: right.group,
            resource: right.resource,
            subresource: right.subresource,
            namespace: (!right.of_cluster).then(|| namespace.clone()),
        })
        .collect();
    let (cluster, stop) = (Arc::clone(cluster), stop.clone());
    tokio::spawn(async move {
        let answers = cluster::granted(&cluster, &rights, &stop).await;
        let with = |wanted: bool| {
            needed
                .iter()
                .zip(&answers)
                .filter(|(_, answer)| **answer == Some(wanted))
                .map(|(right, _)| right.words())
                .collect()
        };
        RightsSeen {
            namespace,
            granted: with(true),
            missing: with(false),
        }
    })
}

/// What was answered.
pub(crate) async fn answer(asked: JoinHandle<RightsSeen>, stop: &Stop) -> Option<RightsSeen> {
    tokio::select! {
        answered = asked => answered.ok(),
        () = tokio::time::sleep(PATIENCE) => None,
        () = stop.stopped() => None,
    }
}
