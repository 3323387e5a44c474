//! Why a container cannot be looked into, from what the API server says of its pod.

use model::pod::{Container, ContainerKind, ContainerState, Ended};
use model::{Fault, FaultKind, PodObject};

/// Waiting reasons of an image that does not come (kubernetes pkg/kubelet/images/types.go).
const IMAGE: [&str; 8] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
    "ErrImagePullBackOff",
];

/// Whether the container of that name runs.
///
/// # Errors
///
/// Why it does not, with what the API server says of it.
pub fn state(pod: &PodObject, container: &str) -> Result<(), Fault> {
    let fault = |kind, detail: String| Err(Fault::new(kind, detail));
    let finished = matches!(pod.phase.as_str(), "Succeeded" | "Failed");
    let running = pod
        .container(container)
        .is_some_and(|c| matches!(c.state, ContainerState::Running(_)));
    // While it is being deleted it may still run, and what it shows is still true.
    if pod.deleting && !running {
        return fault(FaultKind::Deleted, "it is being deleted".to_owned());
    }
    if finished {
        return fault(FaultKind::Completed, completed(pod, container));
    }
    if pod.node.is_none() {
        let why = pod
            .unschedulable
            .clone()
            .unwrap_or_else(|| "it has no node yet, and the scheduler has not said why".to_owned());
        return fault(FaultKind::Unschedulable, why);
    }
    let Some(container) = pod.container(container) else {
        return fault(FaultKind::NoSuchContainer, names(pod, container));
    };
    match &container.state {
        ContainerState::Running(_) => Ok(()),
        ContainerState::Waiting(reason, last) => waiting(container, reason, last.as_ref(), pod),
        ContainerState::Ended(ended) => fault(
            FaultKind::Completed,
            format!("the container {} has ended: {}", container.name, how(ended)),
        ),
        ContainerState::Unknown => fault(
            FaultKind::NotStarted,
            format!(
                "nothing is said of the container {} yet (phase {})",
                container.name,
                phase(pod)
            ),
        ),
    }
}

fn waiting(
    container: &Container,
    reason: &str,
    last: Option<&Ended>,
    pod: &PodObject,
) -> Result<(), Fault> {
    let why = match &container.message {
        Some(message) => format!(": {message}"),
        None => String::new(),
    };
    if IMAGE.contains(&reason) {
        let image = container.image.as_deref().unwrap_or("its image");
        return Err(Fault::new(
            FaultKind::ImagePull,
            format!("{reason} for {image}{why}"),
        ));
    }
    if reason == "CrashLoopBackOff" || reason == "RunContainerError" && container.restarts > 0 {
        let ended = last.map_or_else(
            || "how it ended is not told".to_owned(),
            |last| format!("it ended last with {}", how(last)),
        );
        return Err(Fault::new(
            FaultKind::CrashLoop,
            format!(
                "{reason} of the container {} after {}; {ended}",
                container.name,
                restarts(container.restarts)
            ),
        ));
    }
    // A pod that waits for its init containers says so of every other one.
    let init = pod.containers.iter().find(|c| {
        matches!(c.kind, ContainerKind::Init | ContainerKind::Sidecar)
            && matches!(&c.state, ContainerState::Waiting(reason, _) if reason != "PodInitializing")
    });
    if let Some(init) = init.filter(|_| reason == "PodInitializing")
        && let ContainerState::Waiting(reason, last) = &init.state
    {
        return waiting(init, reason, last.as_ref(), pod);
    }
    let reason = if reason.is_empty() {
        "no reason is told"
    } else {
        reason
    };
    Err(Fault::new(
        FaultKind::NotStarted,
        format!("the container {} waits: {reason}{why}", container.name),
    ))
}

fn completed(pod: &PodObject, container: &str) -> String {
    let ended = pod.container(container).and_then(|c| match &c.state {
        ContainerState::Ended(ended) => Some(ended),
        _ => None,
    });
    let mut text = match &pod.reason {
        Some(reason) => format!("the pod has ended ({}, {reason})", phase(pod)),
        None => format!("the pod has ended ({})", phase(pod)),
    };
    if let Some(message) = &pod.message {
        text.push_str(": ");
        text.push_str(message);
    }
    if let Some(ended) = ended {
        text.push_str("; the container ended with ");
        text.push_str(&how(ended));
    }
    text
}

fn phase(pod: &PodObject) -> &str {
    match pod.phase.as_str() {
        "" => "not told",
        phase => phase,
    }
}

/// `exit code 137 (OOMKilled)`.
fn how(ended: &Ended) -> String {
    match ended.reason.as_deref() {
        // It says nothing beside the code.
        None | Some("Error" | "") => format!("exit code {}", ended.code),
        Some(reason) => format!("exit code {} ({reason})", ended.code),
    }
}

fn restarts(count: u32) -> String {
    match count {
        1 => "1 restart".to_owned(),
        n => format!("{n} restarts"),
    }
}

/// `there is no container x; there are: main, sidecar`.
pub(super) fn names(pod: &PodObject, asked: &str) -> String {
    let there: Vec<&str> = pod.containers.iter().map(|c| c.name.as_str()).collect();
    if there.is_empty() {
        format!("there is no container {asked}: nothing is said of any")
    } else {
        format!(
            "there is no container {asked}; there are: {}",
            there.join(", ")
        )
    }
}

/// What happened to a container between two looks at its pod; `None` for `after` where the pod was not read again.
/// What was read in between may then belong to another process.
#[must_use]
pub fn during(before: &PodObject, container: &str, after: &PodObject) -> Option<Fault> {
    if before.uid != after.uid {
        return Some(Fault::new(
            FaultKind::Deleted,
            "another pod of the same name stands in its place",
        ));
    }
    let (Some(was), Some(is)) = (before.container(container), after.container(container)) else {
        return None;
    };
    if is.restarts > was.restarts {
        let ended = match &is.state {
            ContainerState::Waiting(_, Some(ended)) | ContainerState::Ended(ended) => {
                format!("; it ended with {}", how(ended))
            }
            _ => String::new(),
        };
        return Some(Fault::new(
            FaultKind::Restarted,
            format!(
                "the container {container} was started again{ended} ({} in all)",
                restarts(is.restarts)
            ),
        ));
    }
    match (&was.state, &is.state) {
        (ContainerState::Running(began), ContainerState::Running(now)) if began != now => {
            Some(Fault::new(
                FaultKind::Restarted,
                format!("the container {container} was started again at {now}"),
            ))
        }
        (ContainerState::Running(_), ContainerState::Ended(ended)) => Some(Fault::new(
            FaultKind::Completed,
            format!("the container {container} has ended: {}", how(ended)),
        )),
        _ if after.deleting && !before.deleting => Some(Fault::new(
            FaultKind::Deleted,
            "its deletion began meanwhile",
        )),
        _ => None,
    }
}
