//! The streams of a command that kube has started, and how it ended.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::AttachedProcess;
use model::pod::{Fault, FaultKind};

use crate::door::{Ended, Session};
use crate::{api_status, native_errors};

/// The streams; `None` where one of them is not there.
pub(crate) fn session(mut process: AttachedProcess) -> Option<Session> {
    let stdin = process.stdin()?;
    let stdout = process.stdout()?;
    let stderr = process.stderr()?;
    let status = process.take_status()?;
    Some(Session {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        end: Box::pin(async move {
            match status.await {
                Some(status) => ended(&status),
                None => Ended::Fault(match process.join().await {
                    Ok(()) => Fault::new(
                        FaultKind::Cut,
                        "the connection was closed before the command's end was told",
                    ),
                    Err(error) => native_errors::of_stream(&error),
                }),
            }
        }),
    })
}

/// How a command ended (kubernetes, client-go tools/remotecommand/v4.go).
fn ended(status: &Status) -> Ended {
    if status.status.as_deref() == Some("Success") {
        return Ended::Code(0);
    }
    let code = status
        .details
        .as_ref()
        .and_then(|details| details.causes.as_ref())
        .into_iter()
        .flatten()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .and_then(|cause| cause.message.as_deref())
        .and_then(|code| code.parse().ok());
    match code {
        Some(code) => Ended::Code(code),
        None => {
            let message = status.message.as_deref().unwrap_or_default();
            Ended::Fault(Fault::new(
                api_status::of_failed_exec(message),
                api_status::short(message),
            ))
        }
    }
}
