//! A command of one's own in a container, whose streams the caller drives.

use std::time::Duration;

use model::pod::{Fault, FaultKind};
use tokio::time::Instant;

use crate::door::{Cluster, Exec, Session};
use crate::patience::patiently;
use crate::stop::Stop;

/// Starts a command in a container; a busy API server is asked again, as long as nothing was started.
///
/// # Errors
/// It could not be started in time, or the run was ended first.
pub async fn start(
    cluster: &dyn Cluster,
    exec: &Exec,
    timeout: Duration,
    stop: &Stop,
) -> Result<Session, Fault> {
    let deadline = Instant::now() + timeout;
    tokio::select! {
        opened = patiently(stop, || cluster.exec(exec)) => opened.map_err(|refusal| refusal.fault),
        () = tokio::time::sleep_until(deadline) => Err(Fault::new(
            FaultKind::TimedOut,
            format!("nothing was started in {} s", timeout.as_secs()),
        )),
        () = stop.stopped() => Err(Fault::new(FaultKind::Interrupted, "the run was ended first")),
    }
}
