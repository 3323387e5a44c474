//! The answers of an API server that refuses: bodies as the real one writes them.
//!
//! Texts and fields follow apimachinery's `pkg/api/errors/errors.go`, apiserver's
//! `pkg/endpoints/handlers/responsewriters/errors.go` and, where named, the kubelet and the container runtime.

use serde_json::{Value, json};

/// What an API server says instead of an answer.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The body: a `Status` object, or plain text as a kubelet, a proxy or the overload filter writes it.
    pub body: RefusalBody,
    /// Seconds for the `Retry-After` header.
    pub retry_after: Option<u64>,
}

/// The body of a refusal.
#[derive(Clone, Debug)]
pub enum RefusalBody {
    /// A `Status` object.
    Status(Value),
    /// Plain text.
    Text(String),
}

impl Refusal {
    fn status(code: u16, reason: &str, message: &str, details: Option<Value>) -> Self {
        let mut body = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
        });
        if let Some(map) = body.as_object_mut() {
            if !reason.is_empty() {
                map.insert("reason".into(), reason.into());
            }
            if let Some(details) = details {
                map.insert("details".into(), details);
            }
            map.insert("code".into(), code.into());
        }
        Self {
            code,
            body: RefusalBody::Status(body),
            retry_after: None,
        }
    }

    /// A refusal in plain text, as a kubelet or a proxy in between writes it.
    pub fn text(code: u16, text: impl Into<String>) -> Self {
        Self {
            code,
            body: RefusalBody::Text(text.into()),
            retry_after: None,
        }
    }

    /// The path is not one that this server knows: a group whose CRD is not installed, for one.
    pub(crate) fn no_such_path() -> Self {
        Self::text(404, "404 page not found\n")
    }

    pub(crate) fn not_found(plural: &str, group: &str, name: &str) -> Self {
        let qualified = qualified(plural, group);
        let mut details = json!({ "name": name, "kind": plural });
        if let (Some(map), false) = (details.as_object_mut(), group.is_empty()) {
            map.insert("group".into(), group.into());
        }
        let message = format!("{qualified} \"{name}\" not found");
        Self::status(404, "NotFound", &message, Some(details))
    }

    pub(crate) fn bad_request(message: &str) -> Self {
        Self::status(400, "BadRequest", message, None)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::status(401, "Unauthorized", "Unauthorized", None)
    }

    /// `authorizer/rbac` says no. `what` is e.g. `pods/exec`.
    pub(crate) fn forbidden(user: &str, verb: &str, what: &Wanted<'_>) -> Self {
        let resource = match what.subresource {
            "" => what.plural.to_owned(),
            sub => format!("{}/{sub}", what.plural),
        };
        let place = match what.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let subject = qualified(what.plural, what.group);
        let subject = match what.name {
            "" => subject,
            name => format!("{subject} \"{name}\""),
        };
        let message = format!(
            "{subject} is forbidden: User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {place}",
            what.group
        );
        let mut details = json!({ "kind": what.plural });
        if let Some(map) = details.as_object_mut() {
            if !what.name.is_empty() {
                map.insert("name".into(), what.name.into());
            }
            if !what.group.is_empty() {
                map.insert("group".into(), what.group.into());
            }
        }
        Self::status(403, "Forbidden", &message, Some(details))
    }

    pub(crate) fn forbidden_path(user: &str, path: &str) -> Self {
        let message = format!("forbidden: User \"{user}\" cannot get path \"{path}\"");
        Self::status(403, "Forbidden", &message, Some(json!({})))
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::status(405, "MethodNotAllowed", message, Some(json!({})))
    }

    /// What a server says with this status when nobody chose the words.
    pub(crate) fn of_code(code: u16, verb: &str, what: &Wanted<'_>, user: &str) -> Self {
        let named = |text: &str| match what.name {
            "" => text.to_owned(),
            name => format!("{text} \"{name}\""),
        };
        match code {
            401 => Self::unauthorized(),
            403 => Self::forbidden(user, verb, what),
            404 if what.name.is_empty() => {
                let message = "the server could not find the requested resource";
                Self::status(404, "NotFound", message, Some(json!({})))
            }
            404 => Self::not_found(what.plural, what.group, what.name),
            409 => {
                let message = format!(
                    "Operation cannot be fulfilled on {}: the object has been modified; please apply your changes to \
                     the latest version and try again",
                    named(&qualified(what.plural, what.group))
                );
                let details = json!({ "name": what.name, "kind": what.plural });
                Self::status(409, "Conflict", &message, Some(details))
            }
            410 => {
                let message = "The provided continue parameter is too old to display a consistent list result. You can \
                               start a new list without the continue parameter, or use the continue token in this \
                               response to retrieve the remainder of the results. Continuing with the provided token \
                               results in an inconsistent list - objects that were created, modified, or deleted \
                               between the time the first chunk was returned and now may show up in the list.";
                Self::status(410, "Expired", message, None)
            }
            // The filter for priority and fairness writes plain text.
            429 => Self {
                retry_after: Some(1),
                ..Self::text(429, "Too many requests, please try again later.\n")
            },
            500 => Self::status(500, "", "etcdserver: request timed out", None),
            503 => Self::status(
                503,
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
                None,
            ),
            504 => Self::status(
                504,
                "Timeout",
                "Timeout: request did not complete within requested timeout - context deadline exceeded",
                Some(json!({})),
            ),
            other => Self::status(other, "", &format!("stand-in: status {other}"), None),
        }
    }
}

/// What a request is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

fn qualified(plural: &str, group: &str) -> String {
    match group {
        "" => plural.to_owned(),
        group => format!("{plural}.{group}"),
    }
}

/// What the error channel of an exec carries at its end.
pub(crate) fn exec_success() -> Value {
    json!({ "metadata": {}, "status": "Success" })
}

/// The command ended with this exit code (apiserver's `streamtranslator.go`, `codeExitToStatusError`).
pub(crate) fn exec_exit(code: i32) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("command terminated with non-zero exit code: command terminated with exit code {code}"),
        "reason": "NonZeroExitCode",
        "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
    })
}

/// The command could not be run (`NewInternalError`).
pub(crate) fn exec_internal(message: &str) -> Value {
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("Internal error occurred: {message}"),
        "reason": "InternalError",
        "details": { "causes": [{ "message": message }] },
        "code": 500,
    })
}

/// What containerd's CRI plugin and runc say of a program that cannot be started.
pub(crate) fn cannot_start(program: &str, why: &str) -> String {
    let id = crate::ids::hex(program, 64);
    format!(
        "error executing command in container: failed to exec in container: failed to start exec \"{id}\": OCI runtime \
         exec failed: exec failed: unable to start container process: exec: \"{program}\": {why}: unknown"
    )
}
