//! A worker itself was looked at, and not only its place.
//!
//! Where nobody may run a command in a pod, an init container or a Job prints what its place shows, and `check --from-logs`
//! reads it. The devices, the network and the limits are those of the worker; the pod's object and the engine's process
//! are not seen by it. What stands on them is left out here and told once, and is never taken for well.

use model::Reason;
use serde::{Deserialize, Serialize};

use super::view::PodView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/evidence";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "a worker's pod and its engine were looked at, and not only its place",
    source: include_str!("evidence.rs"),
    causes: &[ENGINE, OBJECT, RESOURCES],
    notes: &[],
    run: Run::Pod(run),
};

/// How a worker was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeenBy {
    /// In its own container, with its pod's object.
    #[default]
    Exec,
    /// By an init container of its pod, through a log.
    InitContainer,
    /// By a Job with the same image, node and resources, through a log.
    Job,
    /// By a Job of which only the image is known, through a log.
    Image,
    /// On a host, without any pod.
    Host,
}

impl SeenBy {
    /// Whether only what the place shows is there.
    pub(crate) fn place_only(self) -> bool {
        matches!(self, Self::InitContainer | Self::Job | Self::Image)
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Exec => "a look into its container",
            Self::InitContainer => "the log of an init container of its pod",
            Self::Job => "the log of a Job beside it",
            Self::Image => "the log of a Job with its image",
            Self::Host => "a look at its host",
        }
    }
}

/// Rules about what a pod's spec says, which nothing says of a host.
const OF_SPECS: [&str; 9] = [
    "env/start-command",
    "env/kv-fabric",
    "env/mnnvl",
    "env/efa",
    "env/device-access",
    "env/locked-memory",
    "env/pod-network",
    "env/multinode",
    "env/missing-settings",
];

/// Whether a rule of recipes holds for an engine on a host too.
pub(crate) fn is_of_host(name: &str) -> bool {
    !OF_SPECS.contains(&name)
}

const ENGINE: Cause = Cause {
    id: "engine-not-in-sight",
    what: "the worker was looked at by an init container or a Job, which see no process of its engine",
    why: "what the engine was told, which libraries it has loaded and what NIXL makes of them is not known",
    fix: "where a command may be run in the worker (check-interconnect rbac prints the rights), check-interconnect check -n NAMESPACE sees all of it; else give the engine's own log to check-interconnect nixl --from",
    quiet_if: "the worker was looked at in its own container, or on its host",
    source: "Kubernetes: init containers end before the others begin; pods have process namespaces of their own",
};

const OBJECT: Cause = Cause {
    id: "pod-object-not-read",
    what: "nothing but a log is known of the pod",
    why: "what it asked for and was granted, and whether it runs, is not compared with what is inside",
    fix: "none is needed; check-interconnect check -n NAMESPACE reads it",
    quiet_if: "the pod was read, or there is none",
    source: "check --from-logs has no access to a cluster",
};

const RESOURCES: Cause = Cause {
    id: "worker-resources-unknown",
    what: "a Job of which only the image is known was looked at, and nothing says what the workers ask for",
    why: "a device that is missing in it may be there in the workers, so that it is not taken for a failure",
    fix: "print the Job for a worker (check-interconnect manifest -n NAMESPACE --pod POD --kind job, or -f FILE), or with --resource",
    quiet_if: "the Job was printed for a worker, or with resources",
    source: "Kubernetes device plugin API: a pod gets the devices that it asks for",
};

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let by = view.pod.by;
    if !by.place_only() || view.facts.is_none() {
        return;
    }
    let why = match by {
        SeenBy::InitContainer => "an init container ends before the engine begins",
        _ => "a Job is another pod",
    };
    findings.push(view.about(
        Finding::fault(
            NAME,
            &ENGINE,
            Reason::NotVisible,
            format!("its engine is not in sight, since {why}: its settings, its libraries and NIXL in it are not judged"),
        )
        .required(),
    ));
    findings.push(view.about(Finding::fault(
        NAME,
        &OBJECT,
        Reason::NotVisible,
        "the pod's object was not read: what it asks for and was granted is not judged",
    )));
    if by == SeenBy::Image {
        findings.push(view.about(
            Finding::fault(
                NAME,
                &RESOURCES,
                Reason::NotVisible,
                "what the workers ask for is not known, so that a device that is missing here says nothing of them",
            )
            .required(),
        ));
    }
}
