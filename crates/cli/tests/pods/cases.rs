//! Each thing that can be wrong with one of several pods.

use std::time::Duration;

use stand_in::{Cut, Fault, Pod, PodEvent, State};

/// One of them.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) pod: Pod,
    pub(crate) fault: Option<Fault>,
    /// Causes of which one has to be named for the pod.
    pub(crate) causes: &'static [&'static str],
    /// Words that the fix has to have.
    #[allow(dead_code, reason = "some of the tests that have this file look at it")]
    pub(crate) fix: &'static str,
}

/// All of them, each planted in this pod.
pub(crate) fn cases(pod: &Pod, name: &str) -> Vec<Case> {
    let bad = || pod.clone();
    let exec = || Fault::exec().name(name);
    let state = |name, state, causes, fix| Case {
        name,
        pod: bad().state(state),
        fault: None,
        causes,
        fix,
    };
    let wrong = |name, fault, causes, fix| Case {
        name,
        pod: bad(),
        fault: Some(fault),
        causes,
        fix,
    };
    vec![
        Case {
            name: "no shell",
            pod: bad().no_shell(),
            fault: None,
            causes: &["container-without-shell"],
            fix: "",
        },
        Case {
            name: "two engines to choose from",
            pod: two_engines(bad()),
            fault: None,
            causes: &["container-ambiguous"],
            fix: "-c",
        },
        state(
            "pending",
            State::Unschedulable,
            &["pod-unschedulable"],
            "kubectl describe",
        ),
        state(
            "creating",
            State::ContainerCreating,
            &["container-not-started"],
            "",
        ),
        state(
            "image",
            State::ImagePullBackOff,
            &["container-image-pull"],
            "",
        ),
        state(
            "crash loop",
            State::CrashLoopBackOff,
            &["container-crash-loop"],
            "--previous",
        ),
        state("completed", State::Completed, &["pod-completed"], ""),
        state("evicted", State::Evicted, &["pod-completed"], ""),
        wrong("401", exec().status(401), &["api-server-unauthorized"], ""),
        wrong("403", exec().status(403), &["exec-forbidden"], "pods/exec"),
        wrong("404", exec().status(404), &["pod-deleted"], ""),
        wrong("409", exec().status(409), &["api-conflict"], ""),
        wrong(
            "429",
            exec().status(429),
            &["api-too-many-requests"],
            "--concurrency",
        ),
        wrong(
            "429 with a time to wait",
            exec().status_retry_after(429, 1),
            &["api-too-many-requests"],
            "--concurrency",
        ),
        wrong("500", exec().status(500), &["api-server-error"], ""),
        wrong("flood", exec().flood(), &["probe-output-flood"], ""),
        wrong("cut", exec().cut_output(0, Cut::Reset), &["probe-cut"], ""),
        wrong(
            "half closed",
            exec().cut_output(0, Cut::HalfClose),
            &["probe-cut"],
            "",
        ),
        Case {
            name: "not UTF-8",
            pod: bad().recorded(&b"\xff\xfe\x00\x80 no script of ours\n"[..], Duration::ZERO),
            fault: None,
            causes: &["probe-output-foreign"],
            fix: "",
        },
        wrong("hanging", exec().hang(), &["probe-timed-out"], "--timeout"),
        wrong(
            "stalls",
            exec().cut_output(0, Cut::Stall),
            &["probe-timed-out"],
            "--timeout",
        ),
        wrong(
            "deleted",
            exec().during(Duration::ZERO, PodEvent::DeletedAndReset),
            &["pod-deleted"],
            "",
        ),
        wrong(
            "restarted",
            exec().during(Duration::ZERO, PodEvent::Restarted),
            &["container-restarted"],
            "",
        ),
    ]
}

/// The pod with its container twice, and neither is called main.
fn two_engines(pod: Pod) -> Pod {
    let mut object = pod.object("serving");
    let mut first = object["spec"]["containers"][0].take();
    let mut second = first.clone();
    first["name"] = "one".into();
    second["name"] = "two".into();
    pod.set("/spec/containers", vec![first, second].into())
}
