//! What happened, for assertions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;

/// A lock that outlives a panic elsewhere: a failed assertion must not hide what was recorded.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One HTTP request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// When it came, since the server started.
    pub at: Duration,
    /// The connection that it came on, counted from 1.
    pub connection: u64,
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query, decoded, in its order.
    pub query: Vec<(String, String)>,
    /// Whom the API server took the client for; empty before that is known.
    pub user: String,
    /// The `Impersonate-User` header.
    pub impersonated: Option<String>,
    /// The `User-Agent` header.
    pub agent: String,
    /// The body, as far as it was read.
    pub body: Vec<u8>,
    /// What was answered; none while it hangs or when the connection was spoilt.
    pub status: Option<u16>,
}

impl Request {
    /// The first value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// One exec that got as far as the upgrade.
#[derive(Clone, Debug, Default)]
pub struct Exec {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// What was to be run.
    pub argv: Vec<String>,
    /// Whom the API server took the client for.
    pub user: String,
    /// The subprotocol that was agreed on.
    pub protocol: String,
    /// The connection, counted from 1.
    pub connection: u64,
    /// When the upgrade was answered, since the server started.
    pub started: Duration,
    /// When the session was over.
    pub ended: Option<Duration>,
    /// The child's process ID, where there was one. It leads a process group of its own.
    pub pid: Option<u32>,
    /// How the child ended, and when: its exit code, or 128 and the signal.
    pub exit: Option<(i32, Duration)>,
    /// All of standard input.
    pub stdin: Vec<u8>,
    /// When standard input ended, and whether the client said so.
    pub stdin_ended: Option<Duration>,
    /// What was sent on channel 1.
    pub stdout: Chunks,
    /// What was sent on channel 2.
    pub stderr: Chunks,
    /// What was sent on the error channel.
    pub status: Option<Value>,
    /// The client went away before the session was over.
    pub lost: bool,
    /// How many sessions were open when this one began, itself included.
    pub concurrent: usize,
}

/// Bytes in the pieces in which they were sent; pieces are shared, so that thousands of equal outputs cost one.
#[derive(Clone, Debug, Default)]
pub struct Chunks(pub(crate) Vec<Bytes>);

impl Chunks {
    /// All of them in one piece.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.concat()
    }

    /// As text, with what is not UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What went to a client on one connection, before encryption.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// The connection, counted from 1.
    pub connection: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many more there were than were kept.
    pub dropped: u64,
}

impl Sent {
    /// Whether these bytes are among them. In a WebSocket stream a text can be split by the head of a frame.
    pub fn contains(&self, needle: &[u8]) -> bool {
        !needle.is_empty()
            && self
                .bytes
                .windows(needle.len())
                .any(|window| window == needle)
    }
}

/// Everything that is recorded.
#[derive(Debug)]
pub(crate) struct Journal {
    began: Instant,
    pub(crate) requests: Mutex<Vec<Request>>,
    pub(crate) execs: Mutex<Vec<Exec>>,
    pub(crate) sent: Mutex<Vec<Arc<Mutex<Sent>>>>,
    open: Mutex<(usize, usize)>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            requests: Mutex::default(),
            execs: Mutex::default(),
            sent: Mutex::default(),
            open: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn request(&self, request: Request) -> usize {
        let mut requests = lock(&self.requests);
        requests.push(request);
        requests.len() - 1
    }

    pub(crate) fn amend_request(&self, at: usize, change: impl FnOnce(&mut Request)) {
        if let Some(request) = lock(&self.requests).get_mut(at) {
            change(request);
        }
    }

    /// Opens a session; `amend_exec` with the number that comes back.
    pub(crate) fn exec(&self, mut exec: Exec) -> usize {
        let mut open = lock(&self.open);
        open.0 += 1;
        open.1 = open.1.max(open.0);
        exec.concurrent = open.0;
        exec.started = self.now();
        let mut execs = lock(&self.execs);
        execs.push(exec);
        execs.len() - 1
    }

    pub(crate) fn amend_exec(&self, at: usize, change: impl FnOnce(&mut Exec)) {
        if let Some(exec) = lock(&self.execs).get_mut(at) {
            change(exec);
        }
    }

    pub(crate) fn exec_over(&self, at: usize) {
        let now = self.now();
        self.amend_exec(at, |exec| exec.ended = Some(now));
        let mut open = lock(&self.open);
        open.0 = open.0.saturating_sub(1);
    }

    pub(crate) fn most_at_once(&self) -> usize {
        lock(&self.open).1
    }
}
