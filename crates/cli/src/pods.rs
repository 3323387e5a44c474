//! Pods of a cluster: which are meant, how to reach them, and what looking into them gave, ready to be judged.

use std::sync::Arc;
use std::time::Duration;

use checks::{Around, Gathered, NodeFacts, ProbedPod};
use cluster::{Access, Cluster, Limits, Looked, Pick, Stop, Via};
use model::pod::{Fault, FaultKind};
use model::{Report, Role};
use recipe::live;
use tokio::time::Instant;

use crate::args::{PodArgs, TransferArgs};
use crate::choice::{Wanted, meant};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::transfer::rounds::{self, Pairs};
use crate::{beside, declared, interrupt, rights};

/// Whether pods of a cluster are meant, and not this host.
pub(crate) fn are_meant(args: &PodArgs) -> Result<bool, String> {
    if !args.pod.is_empty() || args.selector.is_some() || args.all {
        return Ok(true);
    }
    let given = [
        ("--namespace", args.namespace.is_some()),
        ("--container", args.container.is_some()),
        ("--context", args.context.is_some()),
        ("--kubeconfig", args.kubeconfig.is_some()),
        ("--as", args.as_user.is_some()),
        ("--via", args.via.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(false),
        Some((option, _)) => Err(format!(
            "{option} without a pod; name the pods with --pod POD, --selector SELECTOR or --all"
        )),
    }
}

/// The arguments as kubectl takes them: an empty text is none, and a pod may be written as `pod/NAME`.
fn as_kubectl(args: &PodArgs) -> Result<PodArgs, String> {
    let mut args = args.clone();
    for text in [
        &mut args.container,
        &mut args.namespace,
        &mut args.context,
        &mut args.as_user,
        &mut args.via,
    ] {
        text.take_if(|text| text.is_empty());
    }
    args.kubeconfig.take_if(|path| path.as_os_str().is_empty());
    let mut names: Vec<String> = Vec::new();
    for name in &args.pod {
        let bare = ["pod/", "pods/", "po/"]
            .iter()
            .find_map(|kind| name.strip_prefix(kind))
            .unwrap_or(name);
        if bare.is_empty() || bare.contains('/') {
            return Err(format!(
                "'{name}' is no pod's name; for the pods of something else give its labels with --selector"
            ));
        }
        if !names.iter().any(|known| known == bare) {
            names.push(bare.to_owned());
        }
    }
    args.pod = names;
    // Kubectl takes an empty selector for all pods; a variable that is empty by mistake would have all of them looked into.
    if args.selector.as_ref().is_some_and(|s| s.trim().is_empty()) {
        return Err(
            "--selector is empty; --all takes every pod of the namespace that looks like a KV worker"
                .to_owned(),
        );
    }
    if let Some(odd) = args.namespace.as_ref().filter(|n| n.contains('/')) {
        return Err(format!("'{odd}' is no namespace's name"));
    }
    Ok(args)
}

/// What `check` gathers.
pub(crate) struct Check<'c> {
    pub(crate) args: &'c PodArgs,
    pub(crate) wanted: Wanted,
    pub(crate) look: beside::Look,
    /// How long all of it may take.
    pub(crate) limit: Option<Duration>,
    /// Transfers, where they are asked for.
    pub(crate) transfers: Option<(Pairs, TransferArgs)>,
}

/// Everything about the pods that are meant, for `check`.
pub(crate) fn gathered(check: Check<'_>) -> Result<Gathered, String> {
    let args = &as_kubectl(check.args)?;
    let access = access(args)?;
    let (runtime, stop) = runtime()?;
    let mut gathered = Gathered::default();
    gathered.around.asked = asked(args);
    let roles = matches!(check.wanted, Wanted::Roles(..));
    runtime.block_on(async {
        if let Some(limit) = check.limit {
            // As when somebody ends the run: what is there by then is judged.
            let over = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(limit).await;
                crate::tell(&format!("--run-timeout {limit:?} is over"));
                over.stop();
            });
        }
        let cluster = match open(&access, &stop).await {
            Ok(cluster) => cluster,
            Err(fault) => {
                gathered.around.faults.push(fault);
                return;
            }
        };
        let all = Asked {
            wanted: check.wanted,
            nixl: Some(check.look),
            sockets: true,
            until: None,
        };
        let rights = rights::ask(&cluster, args, &all.wanted, &stop);
        let around = &mut gathered.around;
        gathered.pods = gather_for(args, &cluster, around, all, &stop).await;
        gathered.around.rights = rights::answer(rights, &stop).await;
        let seen = |pods: &[ProbedPod], is: fn(&NodeFacts) -> bool| {
            let facts = pods.iter().filter_map(|pod| pod.probed.as_ref().ok());
            facts.filter(|facts| is(facts)).count()
        };
        let beside = seen(&gathered.pods, |facts| facts.nixl.is_some());
        gathered.around.sampled = (beside < seen(&gathered.pods, |_| true)).then_some(beside);
        let behind = declared::behind(&gathered.pods);
        let (declared, fault) = declared::objects(Arc::clone(&cluster), behind, stop.clone()).await;
        gathered.declared = declared;
        gathered.around.faults.extend(fault);
        if let Some((pairs, given)) = check.transfers {
            let task = rounds::Task {
                args,
                given: &given,
                pairs,
            };
            gathered.transfers = rounds::carry_out(&task, &cluster, &gathered.pods, &stop).await;
        }
    });
    // Nothing may wait for a credential plugin that hangs.
    runtime.shutdown_background();
    match bad_selector(&gathered.around.faults, roles) {
        Some(message) => Err(message),
        None => Ok(gathered),
    }
}

/// `node` over pods.
pub(crate) fn node(args: &PodArgs, role: Option<Role>) -> Result<Report, String> {
    let (mut pods, around) = looked(args, None)?;
    of_role(&mut pods, role);
    Ok(checks::judge_pods("node", pods, &around, scope(args)))
}

/// `nixl` over pods.
pub(crate) fn nixl(
    args: &PodArgs,
    role: Option<Role>,
    look: beside::Look,
) -> Result<Report, String> {
    let (mut pods, around) = looked(args, Some(look))?;
    of_role(&mut pods, role);
    Ok(checks::judge_nixl_pods(pods, &around, scope(args)))
}

/// The pods that are meant, without a look inside any.
pub(crate) fn chosen(args: &PodArgs) -> Result<(Vec<ProbedPod>, Around), String> {
    looked(args, Some(beside::Look::Nowhere))
}

/// The objects of the pods that are meant, as the API server gives them.
pub(crate) fn as_given(args: &PodArgs) -> Result<Vec<(String, ProbedPod)>, Failure> {
    let args = &as_kubectl(args)?;
    let access = access(args)?;
    let (runtime, stop) = runtime()?;
    let mut around = Around::default();
    let found = runtime.block_on(async {
        let cluster = open(&access, &stop).await?;
        let mut found = Vec::new();
        for pod in meant(args, &Wanted::AsAsked, &*cluster, &mut around, &stop).await {
            let (namespace, name) = (&pod.object.namespace, &pod.object.name);
            let text = cluster::named_pod(&*cluster, namespace, name, &stop).await?;
            found.push((text, pod));
        }
        Ok(found)
    });
    runtime.shutdown_background();
    match (found, around.faults.into_iter().next()) {
        (Ok(found), None) => Ok(found),
        (Ok(_), Some(first)) | (Err(first), _) => Err(first.into()),
    }
}

fn of_role(pods: &mut [ProbedPod], role: Option<Role>) {
    if role.is_some() {
        for facts in pods.iter_mut().filter_map(|pod| pod.probed.as_mut().ok()) {
            facts.role = role;
        }
    }
}

/// What was asked for, as given.
pub(crate) fn scope(args: &PodArgs) -> Vec<String> {
    let mut scope: Vec<String> = args.pod.iter().map(|pod| format!("pod {pod}")).collect();
    scope.extend(args.selector.iter().map(|s| format!("pods with {s}")));
    if args.all {
        scope.push("all KV workers".to_owned());
    }
    if let Some(namespace) = &args.namespace {
        scope.push(format!("namespace {namespace}"));
    }
    scope
}

/// The options that ask for the same again.
pub(crate) fn asked(args: &PodArgs) -> Vec<String> {
    let mut words = Vec::new();
    let mut put = |option: &str, value: Option<&str>| {
        if let Some(value) = value {
            words.extend([option.to_owned(), value.to_owned()]);
        }
    };
    put("-n", args.namespace.as_deref());
    for pod in &args.pod {
        put("--pod", Some(pod));
    }
    put("-l", args.selector.as_deref());
    put("-c", args.container.as_deref());
    put("--context", args.context.as_deref());
    let kubeconfig = args.kubeconfig.as_ref().map(|p| p.display().to_string());
    put("--kubeconfig", kubeconfig.as_deref());
    put("--as", args.as_user.as_deref());
    for group in &args.as_group {
        put("--as-group", Some(group));
    }
    put(
        "--via",
        args.via.as_deref().map(without_credentials).as_deref(),
    );
    if args.all {
        words.push("--all".to_owned());
    }
    words
}

/// A program and its options, to be told in a report: `kubectl --token …`.
fn without_credentials(via: &str) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut option: Option<&str> = None;
    for word in via.split_whitespace() {
        // As if it were written with `=`, which names the value.
        let joined = option.map(|option| format!("{option}={word}"));
        let is_secret = joined.is_some_and(|j| recipe::without_credentials(&j) != j);
        told.push(if is_secret {
            "…".to_owned()
        } else {
            recipe::without_credentials(word).into_owned()
        });
        option = Some(word).filter(|word| word.starts_with('-') && !word.contains('='));
    }
    told.join(" ")
}

pub(crate) fn access(args: &PodArgs) -> Result<Access, String> {
    let via = match args.via.as_deref() {
        None => Via::Api,
        Some(words) => {
            let program: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
            if program.is_empty() {
                return Err(
                    "--via names no program; expected one like kubectl, oc or \"tsh kubectl\""
                        .to_owned(),
                );
            }
            Via::Program(program)
        }
    };
    Ok(Access {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        namespace: args.namespace.clone(),
        as_user: args.as_user.clone(),
        as_groups: args.as_group.clone(),
        request_timeout: Some(args.request_timeout),
        via,
    })
}

/// Looks into the pods that are meant; for `nixl` at more than `node` does.
fn looked(args: &PodArgs, nixl: Option<beside::Look>) -> Result<(Vec<ProbedPod>, Around), String> {
    let args = &as_kubectl(args)?;
    let access = access(args)?;
    let (runtime, stop) = runtime()?;
    let looked = runtime.block_on(gather(args, &access, nixl, &stop));
    // Nothing may wait for a credential plugin that hangs.
    runtime.shutdown_background();
    match bad_selector(&looked.1.faults, false) {
        Some(message) => Err(message),
        None => Ok(looked),
    }
}

/// A selector that is none was typed wrong, as an option that there is not: only the API server can tell.
fn bad_selector(faults: &[Fault], roles: bool) -> Option<String> {
    let fault = faults.iter().find(|f| f.kind == FaultKind::BadSelector)?;
    Some(if roles {
        format!("invalid value for --prefill or --decode: {}", fault.detail)
    } else {
        format!(
            "invalid value for --selector: {}; write it as kubectl takes it: -l app=llama,tier!=test or -l 'role in (prefill,decode)'",
            fault.detail
        )
    })
}

/// What asks a cluster, and how it is told to stop.
pub(crate) fn runtime() -> Result<(tokio::runtime::Runtime, Stop), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|e| format!("no threads can be started: {e}"))?;
    let stop = Stop::default();
    interrupt::watch();
    let on_signal = stop.clone();
    interrupt::tell(move || on_signal.stop());
    Ok((runtime, stop))
}

/// Listing the nodes has limits of its own for each request; a day is none.
const NODES: Duration = Duration::from_hours(24);

async fn gather(
    args: &PodArgs,
    access: &Access,
    nixl: Option<beside::Look>,
    stop: &Stop,
) -> (Vec<ProbedPod>, Around) {
    let mut around = Around {
        asked: asked(args),
        ..Around::default()
    };
    let cluster = match open(access, stop).await {
        Ok(cluster) => cluster,
        Err(fault) => {
            around.faults.push(fault);
            return (Vec::new(), around);
        }
    };
    let asked = Asked {
        sockets: nixl.is_some(),
        nixl,
        ..Asked::default()
    };
    let chosen = gather_for(args, &cluster, &mut around, asked, stop).await;
    (chosen, around)
}

/// Opens the way into the cluster.
pub(crate) async fn open(access: &Access, stop: &Stop) -> Result<Arc<dyn Cluster>, Fault> {
    tokio::select! {
        opened = cluster::open(access) => opened.map(Arc::from),
        () = stop.stopped() => Err(interrupted()),
    }
}

/// What is looked at, and until when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// Which pods.
    pub(crate) wanted: Wanted,
    /// For `nixl` at more than `node` does.
    pub(crate) nixl: Option<beside::Look>,
    /// The engines' sockets and queue pairs.
    pub(crate) sockets: bool,
    /// When all of it is over, where it is a part of something that has an end.
    pub(crate) until: Option<Instant>,
}

/// Looks into the pods that are meant, of a cluster that is open.
pub(crate) async fn gather_for(
    args: &PodArgs,
    cluster: &Arc<dyn Cluster>,
    around: &mut Around,
    asked: Asked,
    stop: &Stop,
) -> Vec<ProbedPod> {
    let Asked {
        wanted,
        nixl,
        sockets,
        until,
    } = asked;
    let left = |most: Duration| {
        until.map_or(most, |until| {
            most.min(until.saturating_duration_since(Instant::now()))
        })
    };
    if matches!(nixl, Some(beside::Look::Nowhere)) {
        return meant(args, &wanted, &**cluster, around, stop).await;
    }
    let nodes = {
        let (cluster, stop) = (Arc::clone(cluster), stop.clone());
        tokio::spawn(async move { cluster::nodes(&*cluster, &stop).await })
    };
    let mut chosen = meant(args, &wanted, &**cluster, around, stop).await;
    let picks: Vec<Pick> = chosen
        .iter()
        .filter(|pod| pod.probed.is_ok())
        .map(|pod| Pick {
            namespace: pod.object.namespace.clone(),
            pod: pod.object.name.clone(),
            container: pod.container.clone(),
        })
        .collect();
    let limits = Limits {
        timeout: left(args.timeout),
        sockets,
        ..Limits::default()
    };
    let concurrency = usize::from(args.concurrency);
    let mut progress = Progress::of(picks.len());
    let looked = cluster::look_into(cluster, picks, concurrency, limits, stop, |_| {
        progress.step();
    })
    .await;
    let waiting = chosen.iter_mut().filter(|pod| pod.probed.is_ok());
    for (pod, looked) in waiting.zip(looked) {
        put(pod, looked);
    }
    if let Some(look) = nixl {
        beside::look(cluster, &mut chosen, look, args, stop).await;
    }
    around.nodes = tokio::select! {
        read = nodes => read.unwrap_or_else(|_| Err(interrupted())),
        () = stop.stopped() => Err(interrupted()),
        () = tokio::time::sleep(left(NODES)) => Err(Fault::new(
            FaultKind::TimedOut,
            "the nodes were not listed in time",
        )),
    }
    .map(|nodes| {
        nodes
            .iter()
            .filter_map(|node| live::node(node).ok())
            .collect()
    })
    .map_err(of_nodes);
    // What kept the run from the cluster as a whole is told once.
    let told = |fault: &Fault| around.faults.iter().any(|f| f.kind == fault.kind);
    if around.nodes.as_ref().is_err_and(told) {
        around.nodes = Ok(Vec::new());
    }
    chosen
}

fn interrupted() -> Fault {
    Fault::new(FaultKind::Interrupted, "the run was ended first")
}

/// A role in one namespace cannot grant it, so that this is usual.
fn of_nodes(fault: Fault) -> Fault {
    if fault.kind == FaultKind::ForbiddenPods {
        Fault::new(FaultKind::ForbiddenNodes, fault.detail)
    } else {
        fault
    }
}

/// What looking gave.
fn put(pod: &mut ProbedPod, looked: Looked) {
    let later = looked.later.map(|read| match read {
        Ok(text) => live::pod(&text).ok(),
        Err(fault) if fault.kind == FaultKind::NoSuchPod => None,
        // Whether it is still there is not known.
        Err(_) => Some(pod.object.clone()),
    });
    let gone = matches!(later, Some(None));
    pod.later = later.flatten();
    let deleted = || {
        Fault::new(
            FaultKind::Deleted,
            "the pod was deleted while it was looked at",
        )
    };
    pod.probed = match looked.answer {
        Ok(answer) => {
            let why = if gone {
                Some(deleted().detail)
            } else {
                answer.fault.map(|fault| fault.detail)
            };
            Ok(NodeFacts {
                observation: answer.observation,
                gap: match (answer.gap, why) {
                    (Some(gap), Some(why)) => Some(format!("{gap}: {why}")),
                    (gap, _) => gap,
                },
                unanswered: answer.unanswered,
                ..NodeFacts::default()
            })
        }
        Err(_) if gone => Err(deleted()),
        Err(fault) => {
            let during = pod
                .later
                .as_ref()
                .and_then(|later| live::during(&pod.object, &pod.container, later));
            Err(during.unwrap_or(fault))
        }
    };
}
