//! The program in one worker: its streams, and what it says.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::message::{Answer, Order};
use crate::program::{MARK, PROGRAM};
use crate::record::EndRecord;

/// Bytes of one line that are kept; longer ones are no answer.
const MAX_LINE: usize = 4 << 20;
/// Bytes of the output that are kept.
const MAX_OUTPUT: usize = 4 << 20;

/// The three streams of a program in a worker.
pub struct Streams {
    /// It reads here.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// It answers here.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// NIXL and UCX print here.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Silence {
    /// Not in time.
    Late,
    /// The program told an error, or ended.
    Over(String),
}

/// One program.
pub(crate) struct Link {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    answers: mpsc::Receiver<Answer>,
    output: mpsc::Receiver<Vec<u8>>,
    /// Ends the readers with the link.
    _readers: JoinSet<()>,
    printed: Vec<u8>,
    /// It said how it ended.
    told_end: bool,
    /// Nothing is waited for beyond it.
    over: Instant,
    pub(crate) end: EndRecord,
}

impl Link {
    pub(crate) fn new(streams: Streams, over: Instant) -> Self {
        let (to_answers, answers) = mpsc::channel(64);
        let (to_output, output) = mpsc::channel(1024);
        let mut readers = JoinSet::new();
        let to_printed = to_output.clone();
        readers.spawn(read_answers(streams.stdout, to_answers, to_printed));
        readers.spawn(read_output(streams.stderr, to_output));
        Self {
            stdin: Some(streams.stdin),
            answers,
            output,
            _readers: readers,
            printed: Vec::new(),
            told_end: false,
            over,
            end: EndRecord::default(),
        }
    }

    /// Gives the program and its first order.
    pub(crate) async fn begin(&mut self, start: &str) {
        let mut text = format!("{}\n{PROGRAM}", PROGRAM.len());
        text.push_str(start);
        text.push('\n');
        self.write(text.as_bytes()).await;
    }

    pub(crate) async fn tell(&mut self, order: &Order<'_>) {
        if let Ok(mut line) = serde_json::to_vec(order) {
            line.push(b'\n');
            self.write(&line).await;
        }
    }

    /// A stream that is closed shows in the answers that do not come.
    async fn write(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let until = after(Duration::from_secs(10)).min(self.over);
            let written = timeout_at(until, async {
                stdin.write_all(bytes).await?;
                stdin.flush().await
            });
            if !matches!(written.await, Ok(Ok(()))) {
                self.stdin = None;
            }
        }
    }

    /// The next answer that is more than news; news is kept.
    pub(crate) async fn answer(&mut self, until: Instant) -> Result<Answer, Silence> {
        loop {
            let answer = tokio::select! {
                Some(part) = self.output.recv() => {
                    self.keep(&part);
                    continue;
                }
                answer = timeout_at(until.min(self.over), self.answers.recv()) => match answer {
                    Err(_) => return Err(Silence::Late),
                    Ok(None) => {
                        self.end.lost |= !self.told_end;
                        // What cannot answer any more ends with its orders.
                        self.stdin = None;
                        self.drain(Duration::from_secs(1)).await;
                        return Err(Silence::Over(self.last_words()));
                    }
                    Ok(Some(answer)) => answer,
                },
            };
            match answer {
                Answer::Hello { facts } => self.end.facts = Some(*facts),
                Answer::Loaded { version, file } => {
                    self.end.nixl_version = version;
                    self.end.nixl_file = file;
                }
                Answer::Step { step } => self.end.step = Some(step),
                Answer::Gpu { name, error } => {
                    self.end.gpu = name;
                    self.end.gpu_error = error;
                }
                Answer::Look { step, connections } => {
                    self.end.step = step;
                    self.end.looked = Some(connections);
                }
                Answer::Done => self.end.finished = true,
                Answer::Failed { error } => {
                    self.end.finished = true;
                    self.end.error = Some(error.clone());
                    return Err(Silence::Over(error));
                }
                Answer::End {
                    why,
                    finished,
                    signal,
                    left_out,
                } => {
                    self.told_end = true;
                    self.end.finished |= finished;
                    self.end.timed_out |= !finished && why == "deadline";
                    self.end.left_out = left_out;
                    // After it has said all, a crash at exit is none: destructors of two copies of libnl do that.
                    self.end.signal = signal.filter(|_| !finished && why != "deadline");
                    return Err(Silence::Over(match (self.end.signal, why.as_str()) {
                        (Some(signal), _) => format!("it was ended by signal {signal}"),
                        (None, "deadline") => "its time was over".to_owned(),
                        _ => "it has ended".to_owned(),
                    }));
                }
                other => return Ok(other),
            }
        }
    }

    /// Asks the part of the program that does not load NIXL what the other is waiting for.
    pub(crate) async fn look(&mut self) {
        self.tell(&Order::Look).await;
        let until = after(Duration::from_secs(2));
        while self.end.looked.is_none() {
            if self.answer(until).await.is_err() {
                break;
            }
        }
    }

    /// Whether anybody is still at the other end, or only the stream is: a child that hangs in NIXL has a parent that answers.
    async fn is_there(&mut self) {
        if self.told_end || self.end.lost {
            return;
        }
        let before = self.end.looked.take();
        self.look().await;
        if self.end.looked.is_none() {
            self.end.lost = true;
            self.end.looked = before;
        }
    }

    /// Lets it end, closes its stdin, and gives what is known of it.
    pub(crate) async fn finish(mut self, patience: Duration) -> EndRecord {
        self.tell(&Order::End).await;
        let left = self.over.saturating_duration_since(Instant::now());
        let until = after(patience.min(left / 2));
        loop {
            match self.answer(until).await {
                // The parent process still tells how the child ended.
                Err(Silence::Over(_)) if self.answers.is_closed() => break,
                Err(Silence::Late) => {
                    self.is_there().await;
                    break;
                }
                _ => {}
            }
        }
        self.stdin = None;
        self.drain(Duration::from_secs(2)).await;
        self.end.output = String::from_utf8_lossy(&self.printed).into_owned();
        self.end
    }

    /// What is still to come of the output.
    async fn drain(&mut self, patience: Duration) {
        let until = after(patience).min(self.over);
        while let Ok(Some(part)) = timeout_at(until, self.output.recv()).await {
            self.keep(&part);
        }
    }

    fn keep(&mut self, part: &[u8]) {
        let room = MAX_OUTPUT.saturating_sub(self.printed.len());
        self.printed
            .extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
    }

    /// What was printed last, where the program never spoke.
    fn last_words(&self) -> String {
        let text = String::from_utf8_lossy(&self.printed);
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) if self.end.facts.is_none() => {
                format!("it did not start: {}", line.trim())
            }
            _ => "its stream has ended".to_owned(),
        }
    }
}

/// Now and so much later; far away where clocks end.
pub(crate) fn after(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}

/// Lines with the mark are answers, others were printed.
async fn read_answers(
    mut from: Box<dyn AsyncRead + Send + Unpin>,
    answers: mpsc::Sender<Answer>,
    output: mpsc::Sender<Vec<u8>>,
) {
    let mut held = Vec::new();
    let mut buffer = vec![0; 65536];
    loop {
        let count = match from.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        held.extend_from_slice(buffer.get(..count).unwrap_or_default());
        while let Some(at) = held.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = held.drain(..=at).collect();
            if take_line(&line, &answers, &output).await.is_none() {
                return;
            }
        }
        if held.len() > MAX_LINE {
            held.clear();
        }
    }
}

async fn take_line(
    line: &[u8],
    answers: &mpsc::Sender<Answer>,
    output: &mpsc::Sender<Vec<u8>>,
) -> Option<()> {
    let text = String::from_utf8_lossy(line);
    let answer = text
        .split_once(MARK)
        .and_then(|(_, json)| serde_json::from_str(json).ok());
    match answer {
        Some(answer) => answers.send(answer).await.ok(),
        None => output.send(line.to_vec()).await.ok(),
    }
}

async fn read_output(mut from: Box<dyn AsyncRead + Send + Unpin>, output: mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; 65536];
    while let Ok(count) = from.read(&mut buffer).await {
        let part = buffer.get(..count).unwrap_or_default().to_vec();
        if count == 0 || output.send(part).await.is_err() {
            break;
        }
    }
}
