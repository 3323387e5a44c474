//! One exec over a WebSocket, in the channel protocols v4 and v5.
//!
//! Every binary message begins with the number of its channel. Sources: apimachinery `pkg/util/remotecommand/constants.go`,
//! apiserver `pkg/util/proxy/websocket.go` and `streamtranslator.go`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::child;
use super::outlet::Outlet;
use crate::behaviour::{Behaviour, Recorded};
use crate::fault::{ExecFault, PodEvent};
use crate::hub::Hub;
use crate::pod::Container;
use crate::status::{cannot_start, exec_exit, exec_internal, exec_success};
use crate::tap::{Cut, Line};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
const ERROR: u8 = 3;
/// Version 5 only: the channel that the next byte names is closed.
const CLOSE: u8 = 255;

/// As large as the pieces that the runtimes' copying makes.
pub(super) const PIECE: usize = 32 * 1024;

/// How long a client may take to close when all has been said.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which streams the client asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
}

pub(super) struct Session {
    pub(super) hub: Arc<Hub>,
    pub(super) line: Arc<Line>,
    pub(super) number: usize,
    pub(super) place: (String, String, String),
    pub(super) v5: bool,
    pub(super) streams: Streams,
    pub(super) argv: Vec<String>,
    pub(super) container: Option<Arc<Container>>,
    pub(super) runs: bool,
    pub(super) faults: Vec<ExecFault>,
}

/// How the command came out.
enum Outcome {
    Status(Value),
    Lost,
    Reset,
}

impl Session {
    pub(super) async fn run(self, socket: Socket, mut events: watch::Receiver<Option<PodEvent>>) {
        let (sink, stream) = socket.split();
        let (out, queue) = mpsc::channel(4);
        let (stdin, input) = mpsc::unbounded_channel();
        let (tell_lost, lost) = watch::channel(false);
        let tell_lost = Arc::new(tell_lost);
        let reader = tokio::spawn(read(
            stream,
            Arc::clone(&self.hub),
            self.number,
            self.v5,
            stdin,
            Arc::clone(&tell_lost),
        ));
        let unsent = Arc::new(AtomicUsize::new(0));
        let writer = tokio::spawn(write(sink, queue, Arc::clone(&unsent), tell_lost));
        let cut = self.faults.iter().find_map(|fault| match fault {
            ExecFault::CutOutput(bytes, cut) => Some((*bytes, *cut)),
            _ => None,
        });
        let mut outlet = Outlet {
            hub: Arc::clone(&self.hub),
            line: Arc::clone(&self.line),
            number: self.number,
            streams: self.streams,
            out,
            cut,
            unsent,
            lost: lost.clone(),
        };
        if self.v5 {
            // An empty message says that the connection is established (createWebSocketStreams).
            let channel = if self.streams.stdout {
                STDOUT
            } else if self.streams.stderr {
                STDERR
            } else {
                ERROR
            };
            outlet.send(channel, Bytes::new()).await;
        }
        self.begin_events();
        let mut gone = lost.clone();
        let outcome = tokio::select! {
            biased;
            outcome = self.command(&mut outlet, input, &mut events) => outcome,
            _ = gone.wait_for(|lost| *lost) => Outcome::Lost,
        };
        match outcome {
            Outcome::Status(status) if !*lost.borrow() => {
                self.finish(&mut outlet, status).await;
                drop(outlet);
                // The writer ends when it has sent all, the reader when the client has closed.
                let _ = timeout(PATIENCE, writer).await;
                let _ = timeout(PATIENCE, reader).await;
            }
            Outcome::Reset => {
                self.line.cut_after(0, Cut::Reset);
                let _ = outlet.out.send(Message::Ping(Bytes::new())).await;
                drop(outlet);
                let _ = timeout(PATIENCE, writer).await;
                reader.abort();
            }
            _ => {
                self.hub
                    .journal
                    .amend_exec(self.number, |exec| exec.lost = true);
                drop(outlet);
                writer.abort();
                reader.abort();
            }
        }
    }

    fn begin_events(&self) {
        for fault in &self.faults {
            if let ExecFault::During(time, event) = fault {
                let (hub, place, time, event) =
                    (Arc::clone(&self.hub), self.place.clone(), *time, *event);
                tokio::spawn(async move {
                    sleep(time).await;
                    hub.happen(&place.0, &place.1, &place.2, event);
                });
            }
        }
    }

    async fn command(
        &self,
        outlet: &mut Outlet,
        input: mpsc::UnboundedReceiver<Bytes>,
        events: &mut watch::Receiver<Option<PodEvent>>,
    ) -> Outcome {
        if !self.runs {
            let text = format!(
                "unable to upgrade connection: container not found (\"{}\")",
                self.place.2
            );
            return Outcome::Status(exec_internal(&text));
        }
        for fault in &self.faults {
            match fault {
                ExecFault::Internal(message) => return Outcome::Status(self.internal(message)),
                ExecFault::Flood => {
                    let piece =
                        Bytes::from(b"flood flood flood flood flood 1\n".repeat(PIECE / 32));
                    while outlet.emit(STDOUT, piece.clone()).await {}
                    return Outcome::Lost;
                }
                _ => {}
            }
        }
        let program = self.argv.first().map_or("", String::as_str);
        let own = self.container.as_ref().map(|c| &c.behaviour);
        let answer = self.answer().map(Behaviour::Recorded);
        match answer.as_ref().or(own) {
            Some(Behaviour::Missing) => {
                let why = "executable file not found in $PATH";
                Outcome::Status(self.internal(&cannot_start(program, why)))
            }
            Some(Behaviour::Recorded(recorded)) => {
                tokio::select! {
                    biased;
                    code = self.replay(outlet, recorded, input) => Outcome::Status(exit_status(code)),
                    event = happened(events) => killed(event),
                }
            }
            _ => {
                let plan = child::Plan::new(
                    &self.hub,
                    self.container.as_deref(),
                    &self.argv,
                    self.streams.stdin,
                );
                let running =
                    match child::start(&self.hub, self.number, plan, outlet.clone(), input) {
                        Ok(running) => running,
                        Err(why) => {
                            return Outcome::Status(self.internal(&cannot_start(program, &why)));
                        }
                    };
                let pid = running.pid;
                let mut over = running.over;
                tokio::select! {
                    biased;
                    code = &mut over => Outcome::Status(exit_status(code.unwrap_or(1))),
                    event = happened(events) => {
                        crate::hub::kill(pid);
                        let _ = timeout(PATIENCE, over).await;
                        killed(event)
                    }
                }
            }
        }
    }

    /// What is recorded for this command, where the container has something for it. One without a shell has nothing.
    fn answer(&self) -> Option<Recorded> {
        let container = self.container.as_ref()?;
        if matches!(container.behaviour, Behaviour::Missing) {
            return None;
        }
        let asked = |word: &str| self.argv.iter().any(|own| own.contains(word));
        let found = container.answers.iter().find(|(word, _)| asked(word));
        found.map(|(_, recorded)| recorded.clone())
    }

    /// Version 5 ends at the API server, which wraps what it was told once more.
    fn internal(&self, message: &str) -> Value {
        if self.v5 {
            exec_internal(&format!("Internal error occurred: {message}"))
        } else {
            exec_internal(message)
        }
    }

    async fn replay(
        &self,
        outlet: &mut Outlet,
        recorded: &Recorded,
        mut input: mpsc::UnboundedReceiver<Bytes>,
    ) -> i32 {
        let answer = Instant::now() + recorded.delay;
        if self.streams.stdin {
            // A shell ends when it has had all of its script: at the end of input, or when no more of it comes.
            let mut some = false;
            loop {
                let quiet = if some {
                    Duration::from_millis(30)
                } else {
                    Duration::from_hours(1)
                };
                match timeout(quiet, input.recv()).await {
                    Ok(Some(_)) => some = true,
                    Ok(None) | Err(_) => break,
                }
            }
        }
        sleep_until(answer).await;
        for (channel, mut rest) in [
            (STDERR, recorded.stderr.clone()),
            (STDOUT, recorded.stdout.clone()),
        ] {
            while !rest.is_empty() {
                let piece = rest.split_to(PIECE.min(rest.len()));
                if !outlet.emit(channel, piece).await {
                    break;
                }
            }
        }
        recorded.exit
    }

    async fn finish(&self, outlet: &mut Outlet, status: Value) {
        let mut close = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        let mut say = true;
        for fault in &self.faults {
            match fault {
                ExecFault::NoStatus => say = false,
                ExecFault::CloseFrame(code, reason) => {
                    say = false;
                    close = CloseFrame {
                        code: CloseCode::from(*code),
                        reason: reason.as_str().into(),
                    };
                }
                _ => {}
            }
        }
        if say {
            outlet.send(ERROR, Bytes::from(status.to_string())).await;
            self.hub
                .journal
                .amend_exec(self.number, |exec| exec.status = Some(status));
        }
        let _ = outlet.out.send(Message::Close(Some(close))).await;
    }
}

fn exit_status(code: i32) -> Value {
    match code {
        0 => exec_success(),
        code => exec_exit(code),
    }
}

fn killed(event: PodEvent) -> Outcome {
    match event {
        PodEvent::DeletedAndReset => Outcome::Reset,
        _ => Outcome::Status(exec_exit(137)),
    }
}

async fn happened(events: &mut watch::Receiver<Option<PodEvent>>) -> PodEvent {
    match events.wait_for(Option::is_some).await.map(|event| *event) {
        Ok(Some(event)) => event,
        _ => std::future::pending().await,
    }
}

/// Takes what the client sends apart; ends when the client is gone.
async fn read(
    mut stream: SplitStream<Socket>,
    hub: Arc<Hub>,
    number: usize,
    v5: bool,
    stdin: mpsc::UnboundedSender<Bytes>,
    lost: Arc<watch::Sender<bool>>,
) {
    let mut stdin = Some(stdin);
    let end_of_input = || {
        let now = hub.journal.now();
        hub.journal
            .amend_exec(number, |exec| exec.stdin_ended = Some(now));
    };
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Binary(bytes) => match (bytes.first(), bytes.get(1)) {
                (Some(&STDIN), _) => {
                    let piece = bytes.slice(1..);
                    if let (Some(stdin), false) = (&stdin, piece.is_empty()) {
                        hub.journal
                            .amend_exec(number, |exec| exec.stdin.extend_from_slice(&piece));
                        let _ = stdin.send(piece);
                    }
                }
                (Some(&CLOSE), Some(&STDIN)) if v5 && stdin.take().is_some() => end_of_input(),
                _ => {}
            },
            Message::Close(_) => break,
            _ => {}
        }
    }
    if stdin.take().is_some() {
        end_of_input();
    }
    let _ = lost.send(true);
    // The answer to a close frame goes out with the next read.
    let _ = timeout(Duration::from_secs(1), stream.next()).await;
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut queue: mpsc::Receiver<Message>,
    unsent: Arc<AtomicUsize>,
    lost: Arc<watch::Sender<bool>>,
) {
    while let Some(message) = queue.recv().await {
        let output = matches!(message, Message::Binary(_));
        if sink.send(message).await.is_err() {
            let _ = lost.send(true);
            return;
        }
        if output {
            let _ = unsent.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| n.checked_sub(1));
        }
    }
}
