//! What kubectl's complaints mean. Their wording is that of kubectl 1.20 and later
//! (kubernetes, staging/src/k8s.io/kubectl/pkg/cmd/util/helpers.go); programs that wrap it pass it on.

use model::pod::{Fault, FaultKind};

use crate::api_status::{self, Asked};
use crate::door::{Ended, Refusal};

/// A refusal by what was printed and the exit code.
pub(crate) fn refusal(errors: &str, code: i32, asked: Asked) -> Refusal {
    let told = telling(errors);
    if let Some((reason, message)) = from_server(told) {
        return api_status::of(code_of(reason, message), reason, message, None, asked);
    }
    let has = |words: &str| errors.contains(words);
    let kind = if has("You must be logged in to the server") || has("(Unauthorized)") {
        FaultKind::Unauthorized
    } else if has("x509:") || has("certificate signed by unknown authority") {
        FaultKind::UnknownCa
    } else if has("getting credentials:") || has("exec plugin") {
        FaultKind::CredentialPlugin
    } else if has("context") && (has("does not exist") || has("was not found")) {
        FaultKind::UnknownContext
    } else if has("error loading config file") || has("invalid configuration") {
        if has("no such file") || has("no configuration has been provided") {
            FaultKind::NoKubeconfig
        } else {
            FaultKind::BrokenKubeconfig
        }
    } else if has("stat ") && has("no such file or directory") && !has("OCI runtime") {
        FaultKind::NoKubeconfig
    } else if has("net/http: request canceled")
        || has("Client.Timeout exceeded")
        || has("context deadline exceeded")
        || has("TLS handshake timeout")
        || has("i/o timeout")
    {
        FaultKind::TimedOut
    } else if has("Unable to connect to the server")
        || has("The connection to the server")
        || has("connection refused")
        || has("no such host")
        || asked != Asked::Exec && (has("malformed HTTP response") || has("malformed MIME header"))
    {
        // Without any configuration kubectl asks port 8080 of this machine.
        if has("localhost:8080") {
            FaultKind::NoKubeconfig
        } else {
            FaultKind::Unreachable
        }
    } else if asked == Asked::Exec {
        of_exec(errors)
    } else {
        FaultKind::KubectlFailed
    };
    let detail = match kind {
        // What the plugin itself printed stands there too.
        FaultKind::CredentialPlugin => "the program that gives credentials failed".to_owned(),
        _ if told.is_empty() => format!("it ended with exit code {code} and said nothing"),
        _ => api_status::short(told),
    };
    Refusal::new(kind, detail)
}

/// How a command in a container ended, where kubectl ended with this code.
pub(crate) fn ended(errors: &str, code: i32) -> Ended {
    // kubectl exec ends with the command's own exit code, and says so.
    let own = errors
        .lines()
        .rev()
        .find_map(|line| {
            line.trim()
                .strip_prefix("command terminated with exit code ")
        })
        .and_then(|code| code.trim().parse().ok());
    match own {
        Some(code) => Ended::Code(code),
        None => Ended::Fault(refusal(errors, code, Asked::Exec).fault),
    }
}

fn of_exec(errors: &str) -> FaultKind {
    // What a refusal before the streams are there is turned into has lost its status.
    if errors.contains("Too many requests") || errors.contains("too many requests") {
        FaultKind::TooManyRequests
    } else if errors.contains("completed pod") {
        FaultKind::Completed
    } else if errors.contains("is not valid for pod") {
        FaultKind::NoSuchContainer
    } else {
        match api_status::of_failed_exec(errors) {
            FaultKind::ServerError if errors.contains("error dialing backend") => {
                FaultKind::ServerError
            }
            FaultKind::ServerError
                if errors.contains("unexpected EOF")
                    // Half of a head, and a stream without its last words.
                    || errors.contains("malformed HTTP response")
                    || errors.contains("malformed MIME header")
                    || errors.contains("error reading from error stream")
                    || errors.contains("connection reset")
                    || errors.contains("websocket: close")
                    || errors.contains("broken pipe") =>
            {
                FaultKind::Cut
            }
            FaultKind::ServerError if errors.trim().is_empty() => FaultKind::Cut,
            FaultKind::ServerError if errors.contains("Internal error") => FaultKind::ServerError,
            FaultKind::ServerError => FaultKind::KubectlFailed,
            known => known,
        }
    }
}

/// The line that says what is wrong.
fn telling(errors: &str) -> &str {
    errors
        .lines()
        .map(str::trim)
        .find(|line| {
            line.starts_with("Error from server")
                || line.starts_with("error:")
                || line.starts_with("Error in configuration")
                || line.starts_with("Unable to connect")
                || line.starts_with("The connection to the server")
        })
        .or_else(|| errors.lines().map(str::trim).rfind(|line| !line.is_empty()))
        .unwrap_or_default()
}

/// `Error from server (Forbidden): pods is forbidden: …` in its parts.
fn from_server(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("Error from server")?.trim_start();
    match rest.strip_prefix('(').and_then(|r| r.split_once("): ")) {
        Some((reason, message)) => Some((reason, message)),
        None => Some(("", rest.trim_start_matches(':').trim())),
    }
}

/// The HTTP status that a reason stands for (apimachinery, pkg/apis/meta/v1/types.go).
fn code_of(reason: &str, message: &str) -> u16 {
    match reason {
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "NotFound" => 404,
        "Conflict" | "AlreadyExists" => 409,
        "TooManyRequests" => 429,
        "MethodNotAllowed" => 405,
        "NotAcceptable" => 406,
        // The token of a list is too old.
        "Expired" | "Gone" => 410,
        "BadRequest" | "Invalid" => 400,
        "ServiceUnavailable" => 503,
        "Timeout" | "ServerTimeout" => 504,
        "" if message.contains("the server has received too many requests") => 429,
        _ => 500,
    }
}

/// An end without an object: what was printed tells.
pub(crate) fn explain(ended: Ended, errors: &str) -> Ended {
    match ended {
        Ended::SeeErrors(code) => self::ended(errors, code),
        // Some versions end without a word where the connection broke.
        other => other,
    }
}

/// A fault that a wrapped program told on the error output although it ended well.
pub(crate) fn complaint(errors: &str) -> Option<Fault> {
    let line = telling(errors);
    (line.starts_with("error:") || line.starts_with("Error from server"))
        .then(|| refusal(errors, 0, Asked::Exec).fault)
}
