//! Runs the collecting script in one container, by one exec.
//!
//! The script goes over standard input, which stays open: its end tells the script that nobody listens any more, after
//! a lost connection as well, and it ends itself and what it has started.

use std::borrow::Cow;
use std::time::Duration;

use model::observation::{Observation, Unanswered};
use model::pod::{Fault, FaultKind};
use probe::stream::Stream;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::door::{Cluster, Ended, Exec, Session};
use crate::patience::patiently_told;
use crate::stop::Stop;
use crate::{api_status, kubectl_errors};

/// Bounds for one container.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long all of it may take.
    pub timeout: Duration,
    /// Bytes that are read.
    pub max_bytes: usize,
    /// Whether the engine's sockets and queue pairs are looked at.
    pub sockets: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            max_bytes: 8 * 1024 * 1024,
            sockets: false,
        }
    }
}

/// What came out of a container.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// What was read there.
    pub observation: Observation,
    /// Why not everything was read.
    pub gap: Option<String>,
    /// Tools that gave nothing or not all.
    pub unanswered: Vec<(Cow<'static, str>, Unanswered)>,
    /// What went wrong, where something did although there is an answer.
    pub fault: Option<Fault>,
}

/// What a shell is told to do; the script follows on its standard input.
pub fn command(limits: &Limits) -> Vec<String> {
    // What is left after it is for the way there and back.
    let whole = limits.timeout.as_secs();
    let limit = whole.saturating_sub(20).clamp(1, 25);
    let tool_limit = 10.min(limit);
    let mut words = vec![
        "sh".to_owned(),
        "-s".to_owned(),
        "--".to_owned(),
        format!("limit={limit}"),
        format!("tool_limit={tool_limit}"),
    ];
    if limits.sockets {
        words.push("sockets=yes".to_owned());
    }
    words.push("watch=yes".to_owned());
    words
}

/// Looks into one container. `slot` stands for one of the execs that may go on at once, and is given back when all has arrived:
/// reading it takes none.
pub(crate) async fn look(
    cluster: &dyn Cluster,
    exec: &Exec,
    limits: &Limits,
    stop: &Stop,
    slot: OwnedSemaphorePermit,
) -> Result<Answer, Fault> {
    let mut slot = Some(slot);
    let deadline = Instant::now() + limits.timeout;
    let mut wait = Duration::from_secs(1);
    // What it said last: where time is over in the middle of another attempt, that is why.
    let mut refused: Option<Fault> = None;
    loop {
        let opening = patiently_told(stop, &mut refused, || cluster.exec(exec));
        let session = tokio::select! {
            opened = opening => opened.map_err(|refusal| refusal.fault)?,
            () = tokio::time::sleep_until(deadline) => {
                return Err(refused.unwrap_or_else(|| late(limits)));
            }
            () = stop.stopped() => return Err(interrupted()),
        };
        let ask = Ask {
            input: probe::script::text(),
            max_bytes: limits.max_bytes,
            max_errors: MAX_ERRORS,
            errors_grace: ERRORS_GRACE,
            is_last: has_last_line,
        };
        let heard = listen(session, &ask, deadline, stop).await;
        if matches!(heard.end, End::Complete) {
            slot.take();
        }
        let answer = judge(heard, limits);
        // A program that works like kubectl tells only afterwards that the server was too busy to start anything.
        match &answer {
            Err(fault) if fault.kind == FaultKind::TooManyRequests => {
                refused = Some(fault.clone());
            }
            Err(fault) if fault.kind == FaultKind::TimedOut => {
                return Err(refused.unwrap_or_else(|| late(limits)));
            }
            _ => return answer,
        }
        if Instant::now() + wait > deadline || wait > MAX_WAIT {
            return answer;
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.stopped() => return answer,
        }
        wait = wait.saturating_mul(2);
    }
}

/// The longest wait for a busy server.
const MAX_WAIT: Duration = Duration::from_secs(4);

fn late(limits: &Limits) -> Fault {
    Fault::new(
        FaultKind::TimedOut,
        format!("nothing came back in {} s", limits.timeout.as_secs()),
    )
}

fn interrupted() -> Fault {
    Fault::new(FaultKind::Interrupted, "the run was ended first")
}

/// Everything that arrived, and why no more did.
pub(crate) struct Heard {
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    pub(crate) end: End,
}

pub(crate) enum End {
    /// The command, or what stands between, told it.
    Told(Ended),
    /// The last line was here; what comes after it does not matter.
    Complete,
    Late,
    Flood,
    Stopped,
}

/// What is kept of the error output.
const MAX_ERRORS: usize = 64 * 1024;
/// What a command that has printed its last line gets to end in order.
const GRACE: Duration = Duration::from_secs(2);

/// How long output can still be on its way when the end was told.
const LEFT_OVER: Duration = Duration::from_millis(500);
/// What is waited for of the error output once everything else is there.
const ERRORS_GRACE: Duration = Duration::from_millis(200);

/// What a program gets, and when enough of it came back.
pub(crate) struct Ask<'a> {
    pub(crate) input: &'a str,
    pub(crate) max_bytes: usize,
    pub(crate) max_errors: usize,
    pub(crate) errors_grace: Duration,
    pub(crate) is_last: fn(&[u8]) -> bool,
}

pub(crate) async fn listen(
    session: Session,
    ask: &Ask<'_>,
    deadline: Instant,
    stop: &Stop,
) -> Heard {
    let Session {
        mut stdin,
        mut stdout,
        stderr,
        end,
    } = session;
    // Both outputs are read to their ends: one that nobody reads stops the other.
    let mut errors = tokio::spawn(beginning_of(stderr, ask.max_errors));
    let mut out = Vec::new();
    let send = async {
        let _it_may_be_gone = stdin.write_all(ask.input.as_bytes()).await;
        let _it_may_be_gone = stdin.flush().await;
        // It stays open.
        std::future::pending::<End>().await
    };
    let hear = async {
        let mut end = end;
        let mut told = None;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match told {
                // Output that is read to its end does not always follow a connection that breaks.
                None => tokio::select! {
                    read = stdout.read(&mut buffer) => read,
                    ended = &mut end => {
                        told = Some(ended);
                        continue;
                    }
                },
                Some(_) => tokio::time::timeout(LEFT_OVER, stdout.read(&mut buffer))
                    .await
                    .unwrap_or(Ok(0)),
            };
            match read {
                Ok(0) | Err(_) => {
                    return End::Told(match told {
                        Some(told) => told,
                        None => end.await,
                    });
                }
                Ok(count) => out.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
            if out.len() > ask.max_bytes {
                return End::Flood;
            }
            if (ask.is_last)(&out) {
                if told.is_none() {
                    let _in_order = tokio::time::timeout(GRACE, end).await;
                }
                return End::Complete;
            }
        }
    };
    let end = tokio::select! {
        end = hear => end,
        end = send => end,
        () = tokio::time::sleep_until(deadline) => End::Late,
        () = stop.stopped() => End::Stopped,
    };
    let err = match tokio::time::timeout(ask.errors_grace, &mut errors).await {
        Ok(Ok(err)) => err,
        _ => {
            errors.abort();
            Vec::new()
        }
    };
    Heard { out, err, end }
}

/// Whether the record that the script prints last is there.
fn has_last_line(out: &[u8]) -> bool {
    let tail = out.get(out.len().saturating_sub(64)..).unwrap_or_default();
    let Ok(tail) = std::str::from_utf8(tail) else {
        return false;
    };
    let tail = tail.trim_end();
    let last = tail.rsplit('\n').next().unwrap_or_default();
    last.starts_with('%') && last.contains("\tend\t") && last.ends_with("\t%")
}

/// Reads to the end, and keeps the beginning.
async fn beginning_of(mut from: impl AsyncRead + Unpin, most: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 * 1024];
    while let Ok(count) = from.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        let room = most.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(buffer.get(..room).unwrap_or_default());
    }
    kept
}

fn judge(heard: Heard, limits: &Limits) -> Result<Answer, Fault> {
    let Heard { out, err, end } = heard;
    let errors = String::from_utf8_lossy(&err);
    let stream = Stream::parse(&out);
    if stream.is_complete() {
        return Ok(answer(&stream, None));
    }
    let fault = match end {
        End::Late => late(limits),
        End::Stopped => interrupted(),
        End::Flood => Fault::new(
            FaultKind::Flood,
            format!("more than {} MiB came back", limits.max_bytes / 1024 / 1024),
        ),
        End::Complete => Fault::new(
            FaultKind::NotOurs,
            "the last line is there and others are missing",
        ),
        End::Told(ended) => of_end(kubectl_errors::explain(ended, &errors), &errors, &out),
    };
    if stream.records.is_empty() {
        return Err(fault);
    }
    // What was gathered until then is worth something.
    Ok(answer(&stream, Some(fault)))
}

fn of_end(ended: Ended, errors: &str, out: &[u8]) -> Fault {
    let said = api_status::short(errors.lines().next().unwrap_or_default());
    match ended {
        Ended::Fault(fault) => fault,
        Ended::Code(code @ (126 | 127)) => Fault::new(
            FaultKind::NoShell,
            if said.is_empty() {
                format!("sh ended with exit code {code}")
            } else {
                said
            },
        ),
        Ended::Code(0) | Ended::SeeErrors(_) if out.iter().all(u8::is_ascii_whitespace) => {
            kubectl_errors::complaint(errors).unwrap_or_else(|| {
                Fault::new(FaultKind::Cut, "the shell ended and printed nothing")
            })
        }
        Ended::Code(0) | Ended::SeeErrors(_) => Fault::new(
            FaultKind::NotOurs,
            "the shell ended well, and what it printed is not the script's",
        ),
        // 128 and more: a signal.
        Ended::Code(code) => Fault::new(
            FaultKind::ScriptFailed,
            if said.is_empty() {
                format!("the shell ended with exit code {code}")
            } else {
                format!("the shell ended with exit code {code}: {said}")
            },
        ),
    }
}

fn answer(stream: &Stream, fault: Option<Fault>) -> Answer {
    Answer {
        observation: probe::observe::observation(stream),
        gap: stream.gap().map(|gap| gap.to_string()),
        unanswered: probe::observe::tools_without_output(stream),
        fault,
    }
}
