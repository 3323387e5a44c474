//! `nixl --observe`: what moves between two pods while real requests run, by counters of both ends before and after.
//!
//! One look into each pod, then two small execs in each: they only read, and nothing runs in a pod in between. The look
//! includes the engines' sockets and queue pairs, and the execs the engines' own metrics: without them nobody can say
//! whose bytes the counters count.

mod engines;
mod facts;

use std::sync::Arc;
use std::time::Duration;

use checks::{Around, ProbedPod};
use cluster::{Cluster, Ended, Exec, Stop};
use model::Report;
use tokio::io::AsyncReadExt as _;
use transfer::Counted;

use crate::args::NixlArgs;
use crate::deadline::Deadline;
use crate::pods::{self, Asked};
use crate::transfer::{again, look, peer_args};

/// Bytes of counters that are read; hundreds of interfaces have less.
const MAX_BYTES: u64 = 4 << 20;
/// What the looks before and after take at least, beside the time in which is observed.
const LOOKS: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &NixlArgs, time: Duration) -> Result<Report, String> {
    let [pod] = args.pods.pod.as_slice() else {
        return Err("--observe takes one --pod, and the other end as --peer".to_owned());
    };
    let theirs = match &args.transfer.peer {
        Some(peer) => Some(peer_args(args, pod, peer)?),
        None => None,
    };
    if time + LOOKS > args.pods.timeout {
        return Err(format!(
            "--observe {}s does not fit into --timeout {}s, which bounds the whole command; give --timeout {}s or more",
            time.as_secs(),
            args.pods.timeout.as_secs(),
            (time + LOOKS).as_secs().saturating_add(25)
        ));
    }
    let mut around = Around {
        asked: pods::asked(&args.pods),
        ..Around::default()
    };
    let seconds = format!("{}s", time.as_secs().max(1));
    around.asked.extend(again(args, &["--observe", &seconds]));
    let access = pods::access(&args.pods)?;
    let (runtime, stop) = pods::runtime()?;
    let (looked, seen) = runtime.block_on(async {
        let deadline = Deadline::of(&args.pods);
        let into = async |cluster: &Arc<dyn Cluster>, around: &mut Around, until| {
            let asked = Asked {
                sockets: true,
                until: Some(until),
                ..Asked::default()
            };
            match &theirs {
                Some(theirs) => look(&args.pods, theirs, cluster, around, asked, &stop).await,
                None => pods::gather_for(&args.pods, cluster, around, asked, &stop).await,
            }
        };
        let (cluster, looked) = deadline.look(&access, &mut around, &stop, into).await;
        let seen = match &cluster {
            Some(cluster) => observed(args, cluster, &looked, time, &deadline, &stop).await,
            None => None,
        };
        (looked, seen)
    });
    // Nothing may wait for a credential plugin that hangs.
    runtime.shutdown_background();
    let facts = facts::of(&looked, seen);
    let mut scope = pods::scope(&args.pods);
    scope.extend(args.transfer.peer.iter().map(|peer| format!("peer {peer}")));
    let report = checks::judge_pods("nixl", looked, &around, scope);
    Ok(checks::judge_observed(report, facts))
}

/// Two looks at the counters of each pod, in the order of the pods, or why there are none.
type Looks = Result<Vec<(Counted, Counted)>, String>;

async fn observed(
    args: &NixlArgs,
    cluster: &Arc<dyn Cluster>,
    pods: &[ProbedPod],
    time: Duration,
    deadline: &Deadline,
    stop: &Stop,
) -> Option<Looks> {
    let wanted = 1 + usize::from(args.transfer.peer.is_some());
    if pods.len() != wanted || pods.iter().any(|p| p.probed.is_err()) || stop.is_stopped() {
        return None;
    }
    let before = match all(cluster, pods, deadline, stop).await {
        Ok(before) => before,
        Err(why) => return Some(Err(why)),
    };
    // The second look takes about as long as the first one did, and more where it is loaded.
    let time = time.min(deadline.left().saturating_sub(LOOKS / 2));
    crate::tell(&format!(
        "--observe: the counters of {} are read now and in {} s; send requests meanwhile",
        pods.iter()
            .map(|p| p.object.name.as_str())
            .collect::<Vec<_>>()
            .join(" and "),
        time.as_secs()
    ));
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = stop.stopped() => return Some(Err("the run was ended first".to_owned())),
    }
    let after = match all(cluster, pods, deadline, stop).await {
        Ok(after) => after,
        Err(why) => return Some(Err(why)),
    };
    Some(Ok(before.into_iter().zip(after).collect()))
}

/// The counters of all pods at about the same moment.
async fn all(
    cluster: &Arc<dyn Cluster>,
    pods: &[ProbedPod],
    deadline: &Deadline,
    stop: &Stop,
) -> Result<Vec<Counted>, String> {
    match pods {
        [one, other] => {
            let (one, other) = tokio::join!(
                counters(cluster, one, deadline, stop),
                counters(cluster, other, deadline, stop)
            );
            Ok(vec![one?, other?])
        }
        some => {
            let mut found = Vec::new();
            for pod in some {
                found.push(counters(cluster, pod, deadline, stop).await?);
            }
            Ok(found)
        }
    }
}

async fn counters(
    cluster: &Arc<dyn Cluster>,
    pod: &ProbedPod,
    deadline: &Deadline,
    stop: &Stop,
) -> Result<Counted, String> {
    let mut command = ["sh", "-c", transfer::COUNTERS, "counters"]
        .map(str::to_owned)
        .to_vec();
    command.extend(engines::metric_ports(pod).iter().map(u16::to_string));
    let exec = Exec {
        namespace: pod.object.namespace.clone(),
        pod: pod.object.name.clone(),
        container: pod.container.clone(),
        command,
    };
    let of = |why: String| format!("the counters of {} could not be read: {why}", exec.pod);
    let time = deadline.left();
    let session = cluster::start(&**cluster, &exec, time, stop)
        .await
        .map_err(|fault| of(fault.detail))?;
    let mut text = Vec::new();
    let cluster::Session {
        stdin: _stdin,
        stdout,
        stderr: _stderr,
        mut end,
    } = session;
    let mut stdout = stdout.take(MAX_BYTES);
    let read = async {
        tokio::select! {
            read = stdout.read_to_end(&mut text) => read.map(|_| None),
            // What is still on its way comes soon.
            ended = &mut end => {
                let rest = stdout.read_to_end(&mut text);
                let _rest = tokio::time::timeout(Duration::from_millis(500), rest).await;
                Ok(Some(ended))
            }
        }
    };
    let ended = tokio::select! {
        read = tokio::time::timeout_at(deadline.end(), read) => read,
        () = stop.stopped() => return Err(of("the run was ended first".to_owned())),
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    transfer::read_counters(&text).ok_or_else(|| {
        of(match ended {
            Err(_) => format!("nothing came back in time ({})", deadline.words()),
            Ok(Ok(Some(Ended::Fault(fault)))) => fault.detail,
            _ => "what came back is not whole".to_owned(),
        })
    })
}
