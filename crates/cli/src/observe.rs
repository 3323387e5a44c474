//! `nixl --observe`: what moves between two pods while real requests run, by counters of both ends before and after.
//!
//! One look into each pod, then two small execs in each: both only read, and nothing runs in a pod in between.

use std::sync::Arc;
use std::time::Duration;

use checks::{Around, ObservedFacts, ProbedPod, Traffic};
use cluster::{Cluster, Ended, Exec, Stop};
use model::Report;
use tokio::io::AsyncReadExt as _;
use transfer::{Both, Counted, Seen, Side};

use crate::args::NixlArgs;
use crate::pods;
use crate::transfer::pair::{Pair, process_of};
use crate::transfer::{again, look, peer_args};

/// Bytes of counters that are read; hundreds of interfaces have less.
const MAX_BYTES: u64 = 4 << 20;

pub(crate) fn run(args: &NixlArgs, time: Duration) -> Result<Report, String> {
    let [pod] = args.pods.pod.as_slice() else {
        return Err("--observe takes one --pod, and the other end as --peer".to_owned());
    };
    let theirs = match &args.transfer.peer {
        Some(peer) => Some(peer_args(args, pod, peer)?),
        None => None,
    };
    let mut around = Around {
        asked: pods::asked(&args.pods),
        ..Around::default()
    };
    let seconds = format!("{}s", time.as_secs().max(1));
    around.asked.extend(again(args, &["--observe", &seconds]));
    let access = pods::access(&args.pods)?;
    let (runtime, stop) = pods::runtime()?;
    let (looked, seen) = runtime.block_on(async {
        let cluster = match pods::open(&access, &stop).await {
            Ok(cluster) => cluster,
            Err(fault) => {
                around.faults.push(fault);
                return (Vec::new(), None);
            }
        };
        let looked = match &theirs {
            Some(theirs) => look(&args.pods, theirs, &cluster, &mut around, &stop).await,
            None => pods::gather_in(&args.pods, &cluster, &mut around, &stop).await,
        };
        let seen = observed(args, &cluster, &looked, time, &stop).await;
        (looked, seen)
    });
    // Nothing may wait for a credential plugin that hangs.
    runtime.shutdown_background();
    let facts = facts(&looked, seen);
    let mut scope = pods::scope(&args.pods);
    scope.extend(args.transfer.peer.iter().map(|peer| format!("peer {peer}")));
    let report = checks::judge_pods("nixl", looked, &around, scope);
    Ok(checks::judge_observed(report, &facts))
}

/// Two looks at the counters of each pod, in the order of the pods, or why there are none.
type Looks = Result<Vec<(Counted, Counted)>, String>;

async fn observed(
    args: &NixlArgs,
    cluster: &Arc<dyn Cluster>,
    pods: &[ProbedPod],
    time: Duration,
    stop: &Stop,
) -> Option<Looks> {
    let wanted = 1 + usize::from(args.transfer.peer.is_some());
    if pods.len() != wanted || pods.iter().any(|p| p.probed.is_err()) || stop.is_stopped() {
        return None;
    }
    crate::tell(&format!(
        "--observe: the counters of {} are read now and in {} s; send requests meanwhile",
        pods.iter()
            .map(|p| p.object.name.as_str())
            .collect::<Vec<_>>()
            .join(" and "),
        time.as_secs()
    ));
    let before = match all(args, cluster, pods, stop).await {
        Ok(before) => before,
        Err(why) => return Some(Err(why)),
    };
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = stop.stopped() => return Some(Err("the run was ended first".to_owned())),
    }
    let after = match all(args, cluster, pods, stop).await {
        Ok(after) => after,
        Err(why) => return Some(Err(why)),
    };
    Some(Ok(before.into_iter().zip(after).collect()))
}

/// The counters of all pods at about the same moment.
async fn all(
    args: &NixlArgs,
    cluster: &Arc<dyn Cluster>,
    pods: &[ProbedPod],
    stop: &Stop,
) -> Result<Vec<Counted>, String> {
    match pods {
        [one, other] => {
            let (one, other) = tokio::join!(
                counters(args, cluster, one, stop),
                counters(args, cluster, other, stop)
            );
            Ok(vec![one?, other?])
        }
        some => {
            let mut found = Vec::new();
            for pod in some {
                found.push(counters(args, cluster, pod, stop).await?);
            }
            Ok(found)
        }
    }
}

async fn counters(
    args: &NixlArgs,
    cluster: &Arc<dyn Cluster>,
    pod: &ProbedPod,
    stop: &Stop,
) -> Result<Counted, String> {
    let exec = Exec {
        namespace: pod.object.namespace.clone(),
        pod: pod.object.name.clone(),
        container: pod.container.clone(),
        command: ["sh", "-c", transfer::COUNTERS].map(str::to_owned).into(),
    };
    let of = |why: String| format!("the counters of {} could not be read: {why}", exec.pod);
    let time = args.pods.timeout;
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
        read = tokio::time::timeout(time, read) => read,
        () = stop.stopped() => return Err(of("the run was ended first".to_owned())),
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    transfer::read_counters(&text).ok_or_else(|| {
        of(match ended {
            Err(_) => format!("nothing came back in {} s", time.as_secs()),
            Ok(Ok(Some(Ended::Fault(fault)))) => fault.detail,
            _ => "what came back is not whole".to_owned(),
        })
    })
}

/// What the looks say.
fn facts(pods: &[ProbedPod], seen: Option<Looks>) -> ObservedFacts {
    let names = pods.iter().map(|p| p.object.name.clone()).collect();
    let looks = match seen {
        Some(Ok(looks)) => looks,
        Some(Err(words)) => return unknown(names, words),
        None => {
            let words = "nothing was observed: not all workers could be looked into";
            return unknown(names, words.to_owned());
        }
    };
    let engines = pods.iter().filter_map(of_engine).collect();
    match (pods, looks.as_slice()) {
        ([own, theirs], [(before, after), (their_before, their_after)]) => {
            let own_is_decode = std::ptr::eq(*Pair::of(own, theirs).ends.of(Side::Decode), own);
            let both = |one: &Counted, other: &Counted| {
                let (prefill, decode) = if own_is_decode {
                    (other, one)
                } else {
                    (one, other)
                };
                Both {
                    prefill: prefill.clone(),
                    decode: decode.clone(),
                }
            };
            let observed =
                transfer::observe(&both(before, their_before), &both(after, their_after));
            let traffic = match &observed.seen {
                Seen::NoTraffic => Traffic::Nothing,
                Seen::Over { movers } => Traffic::Between {
                    rdma: movers.iter().any(|m| m.rdma),
                    over: movers.iter().map(|m| m.name.clone()).collect(),
                },
                Seen::Other { .. } => Traffic::Other,
                Seen::Unknown => Traffic::Unknown,
            };
            ObservedFacts {
                traffic,
                words: observed.sentence,
                engines,
                pods: names,
            }
        }
        (_, [(before, after)]) => ObservedFacts {
            traffic: Traffic::OneEnd,
            words: one_end(before, after),
            engines,
            pods: names,
        },
        _ => unknown(names, "nothing was observed".to_owned()),
    }
}

fn unknown(pods: Vec<String>, words: String) -> ObservedFacts {
    ObservedFacts {
        traffic: Traffic::Unknown,
        words,
        engines: Vec::new(),
        pods,
    }
}

/// What one end alone counted.
fn one_end(before: &Counted, after: &Counted) -> String {
    let mut moved = Vec::new();
    let then = before.snapshot.interfaces.as_ref();
    for (name, now) in after.snapshot.interfaces.iter().flatten() {
        let Some(then) = then.and_then(|all| all.get(name)) else {
            continue;
        };
        let mib = |now: u64, then: u64| now.saturating_sub(then) >> 20;
        let (sent, received) = (mib(now.sent, then.sent), mib(now.received, then.received));
        if name != "lo" && (sent > 0 || received > 0) {
            moved.push(format!("{name} sent {sent} and received {received} MiB"));
        }
    }
    let moved = if moved.is_empty() {
        "no interface moved a MiB".to_owned()
    } else {
        moved.join(", ")
    };
    format!("{moved}; where to, and whether it was KV, one end alone does not tell")
}

/// What the engine itself held open when it was looked at.
fn of_engine(pod: &ProbedPod) -> Option<String> {
    let (pid, process) = process_of(pod)?;
    let mut parts: Vec<String> = process
        .queue_pairs
        .iter()
        .filter_map(|(device, count)| Some(format!("{} queue pairs on {device}", count.value()?)))
        .collect();
    let connections = process.tcp_connections.value();
    parts.extend(connections.map(|count| format!("{count} TCP connections to other machines")));
    if let Some(open) = process.open_devices.value() {
        let rdma: Vec<&str> = open
            .iter()
            .map(String::as_str)
            .filter(|path| path.starts_with("/dev/infiniband/uverbs"))
            .collect();
        parts.push(if rdma.is_empty() {
            "no RDMA device open".to_owned()
        } else {
            format!("{} open", rdma.join(", "))
        });
    }
    let whose = format!("the engine of {} (process {pid})", pod.object.name);
    (!parts.is_empty()).then(|| format!("{whose} has {}", parts.join(", ")))
}
