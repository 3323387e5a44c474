//! `nixl --transfer`: a measured transfer between two pods, with their own NIXL and their engines' settings.
//!
//! One look into each pod, then one program in each, whose streams are driven from here: no port is opened, and nothing is
//! written to a disk. The programs end with their standard input, so also after Ctrl-C and a lost connection.

mod bench;
pub(crate) mod pair;
mod plan;
pub(crate) mod rounds;
mod sessions;

use std::sync::Arc;

use checks::{Around, ProbedPod, TransferFacts, Tried};
use cluster::{Cluster, Stop};
use model::{Report, Role};
use transfer::{Both, Measurement, OfEngine, Plan, Side, nixlbench};

use crate::args::{NixlArgs, PodArgs, TransferArgs};
use crate::deadline::Deadline;
use crate::pods::{self, Asked};
use pair::Pair;

pub(crate) fn run(args: &NixlArgs) -> Result<Report, String> {
    let given = &args.transfer;
    let (pod, peer) = match (args.pods.pod.as_slice(), &given.peer) {
        ([pod], Some(peer)) => (pod, peer),
        ([], _) | (_, None) => {
            return Err("--transfer takes two pods: --pod POD --peer POD".to_owned());
        }
        (several, _) => {
            return Err(format!(
                "--transfer takes one --pod and one --peer; {} pods were given",
                several.len()
            ));
        }
    };
    let theirs = peer_args(args, pod, peer)?;
    let mut around = Around {
        asked: pods::asked(&args.pods),
        ..Around::default()
    };
    around.asked.extend(again(args, &["--transfer"]));
    let access = pods::access(&args.pods)?;
    let (runtime, stop) = pods::runtime()?;
    let (looked, done) = runtime.block_on(async {
        let deadline = Deadline::of(&args.pods);
        let into = async |cluster: &Arc<dyn Cluster>, around: &mut Around, until| {
            look(
                &args.pods,
                &theirs,
                cluster,
                around,
                Asked {
                    until: Some(until),
                    ..Asked::default()
                },
                &stop,
            )
            .await
        };
        let (cluster, looked) = deadline.look(&access, &mut around, &stop, into).await;
        let done = match &cluster {
            Some(cluster) => carry_out(args, cluster, &looked, &deadline, &stop).await,
            None => None,
        };
        (looked, done)
    });
    // Nothing may wait for a credential plugin that hangs.
    runtime.shutdown_background();
    let mut scope = pods::scope(&args.pods);
    scope.push(format!("peer {peer}"));
    let names = [pod.clone(), peer.clone()];
    let report = checks::judge_pods("nixl", looked, &around, scope);
    Ok(match done {
        Some(facts) => checks::judge_transfer(report, facts),
        None => checks::judge_transfer(
            report,
            TransferFacts {
                tried: Tried::NotBegun(
                    "nothing was transferred: not both workers could be looked into".to_owned(),
                ),
                messages: Vec::new(),
                pods: names,
                memory: None,
                apart: None,
            },
        ),
    })
}

/// How the pod at the other end is looked into.
pub(crate) fn peer_args(args: &NixlArgs, pod: &str, peer: &str) -> Result<PodArgs, String> {
    let given = &args.transfer;
    let own = &args.pods;
    let namespace = given.peer_namespace.as_ref().or(own.namespace.as_ref());
    let container = given.peer_container.as_ref().or(own.container.as_ref());
    if pod == peer && namespace == own.namespace.as_ref() && container == own.container.as_ref() {
        return Err(format!(
            "{pod} is both --pod and --peer; KV moves between two workers"
        ));
    }
    Ok(PodArgs {
        pod: vec![peer.to_owned()],
        namespace: namespace.cloned(),
        container: container.cloned(),
        ..own.clone()
    })
}

/// The options about two pods that ask for the same again.
pub(crate) fn again(args: &NixlArgs, last: &[&str]) -> Vec<String> {
    let given = &args.transfer;
    let mut words = Vec::new();
    for (option, value) in [
        ("--peer", &given.peer),
        ("--peer-container", &given.peer_container),
        ("--peer-namespace", &given.peer_namespace),
    ] {
        if let Some(value) = value {
            words.extend([option.to_owned(), value.clone()]);
        }
    }
    words.extend(last.iter().map(|word| (*word).to_owned()));
    words
}

/// Looks into both pods, one exec in each.
pub(crate) async fn look(
    own: &PodArgs,
    theirs: &PodArgs,
    cluster: &Arc<dyn Cluster>,
    around: &mut Around,
    asked: Asked,
    stop: &Stop,
) -> Vec<ProbedPod> {
    if own.namespace == theirs.namespace && own.container == theirs.container {
        let both = PodArgs {
            pod: own.pod.iter().chain(&theirs.pod).cloned().collect(),
            ..own.clone()
        };
        return pods::gather_for(&both, cluster, around, asked, stop).await;
    }
    let mut looked = pods::gather_for(own, cluster, around, asked.clone(), stop).await;
    looked.extend(pods::gather_for(theirs, cluster, around, asked, stop).await);
    looked
}

/// Plans the transfer, tells of it, and carries it out. None where a pod could not be looked into.
async fn carry_out(
    args: &NixlArgs,
    cluster: &Arc<dyn Cluster>,
    looked: &[ProbedPod],
    deadline: &Deadline,
    stop: &Stop,
) -> Option<TransferFacts> {
    let [own, theirs] = looked else { return None };
    if own.probed.is_err() || theirs.probed.is_err() || stop.is_stopped() {
        return None;
    }
    let pair = Pair::of(own, theirs);
    let (tried, messages) = of_pair(&pair, &args.transfer, cluster, deadline, stop).await;
    Some(TransferFacts {
        tried,
        messages,
        pods: [
            pair.ends.prefill.object.name.clone(),
            pair.ends.decode.object.name.clone(),
        ],
        memory: pair.memory,
        apart: pair.apart(),
    })
}

/// What NIXL and UCX printed, as results about the role whose end it was.
pub(crate) type Messages = Vec<(Role, model::CheckResult)>;

/// Plans the transfer of a pair, tells of it, and carries it out.
pub(crate) async fn of_pair(
    pair: &Pair<'_>,
    given: &TransferArgs,
    cluster: &Arc<dyn Cluster>,
    deadline: &Deadline,
    stop: &Stop,
) -> (Tried, Messages) {
    if let Some(why) = pair.odd()
        && !given.force
    {
        return (Tried::NotAWorker(why), Vec::new());
    }
    let seconds = deadline.left().as_secs();
    if seconds < LEAST_SECONDS {
        let why = format!(
            "time was over before a transfer could begin ({}): the look alone took it",
            deadline.words()
        );
        return (Tried::NotBegun(why), Vec::new());
    }
    let plan = plan::of(pair, seconds, given);
    let execs = plan::execs(pair, &plan);
    crate::tell(&plan::words(pair, &plan, given.rate));
    if given.dry_run {
        crate::tell(&plan::commands(&execs));
        return (Tried::Planned(plan.sentence()), Vec::new());
    }
    let mut measured = match sessions::measured(cluster, &plan, pair, &execs, stop).await {
        Ok(measured) => measured,
        Err(why) => return (Tried::NotBegun(why), Vec::new()),
    };
    let mut tool = None;
    if lacks_nixl(&measured) && !stop.is_stopped() {
        let place = bench::Place {
            cluster,
            pair,
            deadline,
            stop,
        };
        let done = match place.task().await {
            Ok(Some((task, benches))) => {
                crate::tell(&bench::words(&task, &benches, pair));
                tool = Some(nixlbench::STEP.to_owned());
                place.measured(&task, &benches).await.map(Some)
            }
            Ok(None) => Ok(None),
            Err(why) => Err(why),
        };
        match done {
            Ok(Some(by_bench)) => measured = by_bench,
            Ok(None) => {}
            Err(why) => {
                if let Some(at) = &mut measured.stop {
                    at.why = format!("{}; {why}", at.why);
                }
            }
        }
    }
    let messages = transfer::faults(&measured)
        .into_iter()
        .map(|(side, result)| {
            let role = match side {
                Side::Prefill => Role::Prefill,
                Side::Decode => Role::Decode,
            };
            (role, result)
        })
        .collect();
    let mut told = told(&measured, pair);
    told.tool = tool;
    (Tried::Measured(Box::new(told)), messages)
}

/// The program did not come as far as NIXL, at one end at least.
fn lacks_nixl(measured: &Measurement) -> bool {
    let late = |why: &str| why.contains("time was over") || why.contains("in time");
    measured.legs.is_empty()
        && measured
            .stop
            .as_ref()
            .is_some_and(|at| matches!(at.step.as_deref(), None | Some("import")) && !late(&at.why))
}

fn told(measured: &Measurement, pair: &Pair<'_>) -> model::Transfer {
    let answers = transfer::attribute(measured, None);
    let ends = Both {
        prefill: pair.end(Side::Prefill),
        decode: pair.end(Side::Decode),
    };
    let engine = OfEngine {
        operation: pair.operation,
        memory: pair.memory,
    };
    transfer::told(measured, &answers, ends, engine)
}

/// With less a measurement does not begin.
const LEAST_SECONDS: u64 = 4;

/// Bounds of a plan by the time that there is.
fn bounded(mut plan: Plan, seconds: u64) -> Plan {
    let seconds = u32::try_from(seconds.min(3600)).unwrap_or(3600);
    plan.seconds = seconds;
    plan.start_seconds = seconds.min(60).max(seconds / 2);
    plan.step_seconds = (seconds / 2).clamp(3, 30).max(seconds / 5);
    plan
}
