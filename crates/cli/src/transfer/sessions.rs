//! The programs in both containers: started by one exec each, driven, and gone afterwards.

use std::sync::Arc;
use std::time::Duration;

use cluster::{Cluster, Ended, Exec, Session, Stop};
use model::Fault;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use transfer::{Both, Measurement, Plan, Streams};

use super::pair::Pair;

/// Room for answers that nobody has read yet.
const PIPE: usize = 256 * 1024;
/// How long output can still be on its way when the end was told.
const LEFT_OVER: Duration = Duration::from_millis(500);
/// What a program gets to end in order when it has closed its output.
const GRACE: Duration = Duration::from_secs(2);
/// Carries the plan out. Whatever happens, nothing of it runs on when this returns.
pub(super) async fn measured(
    cluster: &Arc<dyn Cluster>,
    plan: &Plan,
    pair: &Pair<'_>,
    execs: &Both<Exec>,
    stop: &Stop,
) -> Result<Measurement, String> {
    let over = plan.end();
    let time = Duration::from_secs(u64::from(plan.start_seconds));
    let (first, second) = tokio::join!(
        cluster::start(&**cluster, &execs.prefill, time, stop),
        cluster::start(&**cluster, &execs.decode, time, stop)
    );
    let begun = |session: Result<Session, Fault>, exec: &Exec| {
        session.map_err(|fault| format!("{}: {}", exec.pod, fault.detail))
    };
    // Where one could not be started the other one ends with its stream.
    let (first, second) = (begun(first, &execs.prefill), begun(second, &execs.decode));
    let (prefill, first) = relayed(first?);
    let (decode, second) = relayed(second?);
    let run = transfer::measure(plan, &pair.engines, prefill, decode, over);
    tokio::pin!(run);
    let mut measured = tokio::select! {
        measured = &mut run => measured,
        () = stop.stopped() => {
            // Without their streams the programs end, and what was measured until then is told.
            first.abort();
            second.abort();
            run.await
        }
    };
    if stop.is_stopped()
        && let Some(at) = &mut measured.stop
    {
        "the run was ended first".clone_into(&mut at.why);
        return Ok(measured);
    }
    let until = over.min(Instant::now() + GRACE);
    let (prefill, decode) = tokio::join!(ended(first, until), ended(second, until));
    let ends = Both { prefill, decode };
    if let Some(at) = &mut measured.stop
        && let Some(Ended::Fault(fault)) = ends.of(at.side)
    {
        at.why = format!("{}: {}", at.why, fault.detail);
    }
    Ok(measured)
}

/// How it ended; what has not ended until then is cut off.
async fn ended(mut task: JoinHandle<Option<Ended>>, until: Instant) -> Option<Ended> {
    match timeout_at(until, &mut task).await {
        Ok(Ok(ended)) => ended,
        _ => {
            task.abort();
            None
        }
    }
}

/// The streams of a session, whose output ends when the command or the connection does: output that is read to its end
/// does not always follow a connection that breaks.
fn relayed(session: Session) -> (Streams, JoinHandle<Option<Ended>>) {
    let Session {
        stdin,
        mut stdout,
        stderr,
        mut end,
    } = session;
    let (ours, mut theirs) = tokio::io::duplex(PIPE);
    let task = tokio::spawn(async move {
        let copy = tokio::io::copy(&mut stdout, &mut theirs);
        tokio::pin!(copy);
        let told = tokio::select! {
            _ = &mut copy => None,
            ended = &mut end => Some(ended),
        };
        match told {
            Some(ended) => {
                let _nothing_more = tokio::time::timeout(LEFT_OVER, copy).await;
                Some(ended)
            }
            None => tokio::time::timeout(GRACE, end).await.ok(),
        }
    });
    let streams = Streams {
        stdin,
        stdout: Box::new(ours),
        stderr,
    };
    (streams, task)
}
