//! What goes wrong, for whom, and how often.

use std::time::Duration;

use bytes::Bytes;

use crate::status::{Refusal, Wanted};
use crate::tap::Cut;

/// Something that goes wrong for some requests.
///
/// ```
/// use std::time::Duration;
/// use stand_in::Fault;
///
/// // The first two lists of pods are refused for load; then all is well.
/// let _ = Fault::on("list", "pods").first(2).status(429);
/// // Every exec into this container is cut in the middle.
/// let _ = Fault::on("*", "pods/exec").name("decode-0").container("main").reset_after(4096);
/// // The API server is slow.
/// let _ = Fault::everywhere().slow(Duration::from_secs(2));
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    verb: Option<String>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    container: Option<String>,
    skip: u64,
    times: Option<u64>,
    seen: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Nothing,
    Status(u16, Option<u64>),
    Refuse(Refusal),
    Slow(Duration),
    Hang,
    Cut(u64, Cut),
    Garbage(Bytes),
    Exec(ExecFault),
}

/// What goes wrong in a session that got as far as the upgrade.
#[derive(Clone, Debug)]
pub(crate) enum ExecFault {
    /// This subprotocol is answered, or none.
    Subprotocol(Option<String>),
    /// The error channel says this at once.
    Internal(String),
    /// Standard output never ends.
    Flood,
    /// The process runs, the stream is cut after so many bytes of output.
    CutOutput(u64, Cut),
    /// The connection is closed without anything on the error channel.
    NoStatus,
    /// A close frame with this code and reason comes in place of a status.
    CloseFrame(u16, String),
    /// Something happens to the pod while the command runs.
    During(Duration, PodEvent),
}

/// What can happen to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodEvent {
    /// It is gone; commands in it are killed, which a client sees as exit code 137.
    Deleted,
    /// It is gone with its node: the stream is reset.
    DeletedAndReset,
    /// The container is started anew; commands in it are killed.
    Restarted,
    /// Another pod has taken its name, as a StatefulSet does: a new UID.
    Replaced,
}

impl Fault {
    /// On requests with this verb (`get`, `list`, `create`, …, `*`) on this resource (`pods`, `pods/exec`, `pods/log`, `*`).
    /// An exec is matched by either of its verbs, `get` for WebSockets and `create`.
    pub fn on(verb: &str, resource: &str) -> Self {
        let any = |text: &str| (text != "*").then(|| text.to_owned());
        Self {
            verb: any(verb),
            resource: any(resource),
            ..Self::everywhere()
        }
    }

    /// On every exec.
    pub fn exec() -> Self {
        Self::on("*", "pods/exec")
    }

    /// On every request, discovery too.
    pub fn everywhere() -> Self {
        Self {
            verb: None,
            resource: None,
            namespace: None,
            name: None,
            container: None,
            skip: 0,
            times: None,
            seen: 0,
            what: What::Nothing,
        }
    }

    /// Only in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only for the object of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Only for this container.
    #[must_use]
    pub fn container(mut self, container: &str) -> Self {
        self.container = Some(container.to_owned());
        self
    }

    /// Only the first so many of them.
    #[must_use]
    pub fn first(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Lets so many pass before it begins.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Answers with this status and the words that a real server has for it; 429 says to come back after a second.
    #[must_use]
    pub fn status(self, code: u16) -> Self {
        self.with(What::Status(code, None))
    }

    /// The same with a `Retry-After` header.
    #[must_use]
    pub fn status_retry_after(self, code: u16, seconds: u64) -> Self {
        self.with(What::Status(code, Some(seconds)))
    }

    /// Answers with this refusal.
    #[must_use]
    pub fn refuse(self, refusal: Refusal) -> Self {
        self.with(What::Refuse(refusal))
    }

    /// Takes so long before all goes on as it would have.
    #[must_use]
    pub fn slow(self, time: Duration) -> Self {
        self.with(What::Slow(time))
    }

    /// Never answers.
    #[must_use]
    pub fn hang(self) -> Self {
        self.with(What::Hang)
    }

    /// Resets the connection when so many bytes of the answer, head included, have been sent.
    #[must_use]
    pub fn reset_after(self, bytes: u64) -> Self {
        self.with(What::Cut(bytes, Cut::Reset))
    }

    /// Closes the server's half when so many bytes of the answer have been sent; no close frame, no end of the body.
    #[must_use]
    pub fn half_close_after(self, bytes: u64) -> Self {
        self.with(What::Cut(bytes, Cut::HalfClose))
    }

    /// Falls silent when so many bytes of the answer have been sent.
    #[must_use]
    pub fn stall_after(self, bytes: u64) -> Self {
        self.with(What::Cut(bytes, Cut::Stall))
    }

    /// Answers with these bytes and ends the connection.
    #[must_use]
    pub fn garbage(self, bytes: impl Into<Bytes>) -> Self {
        self.with(What::Garbage(bytes.into()))
    }

    /// Exec: agrees on this subprotocol, or none, whatever the client proposed.
    #[must_use]
    pub fn subprotocol(self, protocol: Option<&str>) -> Self {
        self.with(What::Exec(ExecFault::Subprotocol(
            protocol.map(str::to_owned),
        )))
    }

    /// Exec: the runtime could not run the command, for this reason.
    #[must_use]
    pub fn exec_error(self, message: &str) -> Self {
        self.with(What::Exec(ExecFault::Internal(message.to_owned())))
    }

    /// Exec: standard output never ends.
    #[must_use]
    pub fn flood(self) -> Self {
        self.with(What::Exec(ExecFault::Flood))
    }

    /// Exec: the command runs; the connection is cut when so many bytes of output have been sent.
    #[must_use]
    pub fn cut_output(self, bytes: u64, cut: Cut) -> Self {
        self.with(What::Exec(ExecFault::CutOutput(bytes, cut)))
    }

    /// Exec: the connection is closed at the end without a word on the error channel.
    #[must_use]
    pub fn no_status(self) -> Self {
        self.with(What::Exec(ExecFault::NoStatus))
    }

    /// Exec: a close frame comes at the end in place of the status.
    #[must_use]
    pub fn close_frame(self, code: u16, reason: &str) -> Self {
        self.with(What::Exec(ExecFault::CloseFrame(code, reason.to_owned())))
    }

    /// Exec: this happens to the pod when the command has run for so long.
    #[must_use]
    pub fn during(self, time: Duration, event: PodEvent) -> Self {
        self.with(What::Exec(ExecFault::During(time, event)))
    }

    fn with(mut self, what: What) -> Self {
        self.what = what;
        self
    }

    /// Whether it strikes now; counts the requests that it is for.
    pub(crate) fn strikes(&mut self, verb: &str, what: &Wanted<'_>, container: &str) -> bool {
        let is = |want: &Option<String>, have: &str| want.as_deref().is_none_or(|w| w == have);
        let resource = match what.subresource {
            "" => what.plural.to_owned(),
            sub => format!("{}/{sub}", what.plural),
        };
        let exec = resource == "pods/exec";
        let verb = is(&self.verb, verb)
            || (exec && matches!(self.verb.as_deref(), Some("create" | "get")));
        let meant = verb
            && is(&self.resource, &resource)
            && is(&self.namespace, what.namespace)
            && is(&self.name, what.name)
            && is(&self.container, container);
        if !meant {
            return false;
        }
        self.seen += 1;
        self.seen > self.skip
            && self
                .times
                .is_none_or(|times| self.seen - self.skip <= times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_counts_only_what_it_is_for() {
        let list = Wanted {
            group: "",
            plural: "pods",
            subresource: "",
            namespace: "a",
            name: "",
        };
        let exec = Wanted {
            subresource: "exec",
            name: "p",
            ..list
        };
        let mut fault = Fault::on("list", "pods").after(1).first(2).status(500);
        let struck: Vec<bool> = (0..5)
            .map(|_| {
                assert!(!fault.strikes("get", &exec, "main"));
                fault.strikes("list", &list, "")
            })
            .collect();
        assert_eq!(struck, [false, true, true, false, false]);
        let mut fault = Fault::exec().name("p").container("main").hang();
        assert!(fault.strikes("get", &exec, "main") && fault.strikes("create", &exec, "main"));
        assert!(!fault.strikes("get", &exec, "sidecar"));
        assert!(!fault.strikes("get", &Wanted { name: "q", ..exec }, "main"));
    }
}
