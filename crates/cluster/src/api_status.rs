//! What the API server's refusals mean.
//!
//! They are `Status` objects: code, reason and a message (kubernetes, apimachinery pkg/apis/meta/v1/types.go). The code
//! decides; the message tells what was asked for.

use std::time::Duration;

use model::pod::FaultKind;
use serde::Deserialize;

use crate::door::Refusal;

/// The longest part of a server's message that is told.
const MAX_MESSAGE: usize = 400;

/// A `Status` object, as far as it is needed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
    reason: String,
    details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    retry_after_seconds: Option<u64>,
}

/// How errors begin that are not the client's.
const INTERNAL: &str = "Internal error occurred: ";

/// Which request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// A read or a question.
    Read,
    /// The start of a command in a container.
    Exec,
    /// The log of a container.
    Log,
}

/// A refusal by its HTTP status and body.
pub(crate) fn refusal(
    code: u16,
    body: &str,
    retry_after: Option<Duration>,
    asked: Asked,
) -> Refusal {
    let status: Status = serde_json::from_str(body).unwrap_or_default();
    let message = if status.message.is_empty() {
        // A proxy's page: its first words may tell which one.
        body.lines().next().unwrap_or_default()
    } else {
        &status.message
    };
    let named = status
        .details
        .and_then(|d| d.retry_after_seconds)
        .map(Duration::from_secs);
    of(code, &status.reason, message, retry_after.or(named), asked)
}

/// The same where the parts are known already.
pub(crate) fn of(
    code: u16,
    reason: &str,
    message: &str,
    retry_after: Option<Duration>,
    asked: Asked,
) -> Refusal {
    let message = short(message);
    let kind = match (code, asked) {
        // It is never followed: credentials stay with who they are for.
        (300..=399, _) => FaultKind::NotApi,
        (401, _) => FaultKind::Unauthorized,
        (403, Asked::Exec) => FaultKind::ForbiddenExec,
        (403, Asked::Read) => FaultKind::ForbiddenPods,
        (403, Asked::Log) => FaultKind::ForbiddenLog,
        (404, Asked::Exec | Asked::Log) => FaultKind::Deleted,
        // The kubelet has none yet, or none any more (kubernetes, pkg/kubelet/kubelet_pods.go).
        (400, Asked::Log) => FaultKind::NotStarted,
        (404, Asked::Read) => FaultKind::NotFound,
        (409, _) => FaultKind::Conflict,
        (429, _) => FaultKind::TooManyRequests,
        (400, Asked::Exec) => of_bad_exec(&message),
        (500.., Asked::Exec) => of_failed_exec(&message),
        _ => FaultKind::ServerError,
    };
    let told = if message.is_empty() {
        reason.to_owned()
    } else {
        message
    };
    let detail = if told.is_empty() {
        format!("HTTP {code}")
    } else {
        format!("HTTP {code}: {told}")
    };
    let mut refusal = Refusal::new(kind, detail);
    refusal.retry_after = retry_after;
    refusal.may_pass = matches!(kind, FaultKind::TooManyRequests | FaultKind::ServerError)
        && (code == 429 || code >= 500);
    refusal
}

/// The API server looks at the pod before it passes an exec on (kubernetes, pkg/registry/core/pod/strategy.go
/// `streamLocation`, and the kubelet's server.go).
fn of_bad_exec(message: &str) -> FaultKind {
    if message.contains("is not valid for pod") {
        FaultKind::NoSuchContainer
    } else if message.contains("completed pod") || message.contains("current phase is") {
        FaultKind::Completed
    } else if message.contains("a container name must be specified") {
        FaultKind::AmbiguousContainer
    } else if message.contains("does not have a host assigned") {
        FaultKind::Unschedulable
    } else {
        FaultKind::Conflict
    }
}

/// What the kubelet and the container runtime say where they cannot start a command.
pub(crate) fn of_failed_exec(message: &str) -> FaultKind {
    let has = |words: &str| message.contains(words);
    // runc, crun and containerd in turn.
    if has("executable file") && has("not found")
        || has("no such file or directory") && (has("exec") || has("stat "))
        || has("command not found")
    {
        FaultKind::NoShell
    } else if has("container not found")
        || has("container is in CONTAINER_EXITED state")
        || has("cannot exec in a stopped")
        || has("is not running")
        || has("not created")
    {
        FaultKind::Restarted
    } else if has("not found") && has("pod") {
        FaultKind::Deleted
    } else {
        FaultKind::ServerError
    }
}

/// A message in bounds, on one line. It is data of the cluster: renderers escape it.
pub(crate) fn short(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    // kubectl puts its own word before what the server says, and servers wrap their errors in the same words again.
    let mut line = line.strip_prefix("error: ").unwrap_or(&line);
    while let Some(rest) = line.strip_prefix(INTERNAL)
        && rest.starts_with(INTERNAL)
    {
        line = rest;
    }
    let line = recipe::message_without_credentials(line);
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
