//! nixlbench in the place of Python and NIXL, where both workers have it: found, started in order, and gone afterwards.

use std::sync::Arc;
use std::time::Duration;

use checks::ProbedPod;
use cluster::{Cluster, Ended, Exec, Session, Stop};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use transfer::nixlbench::{self, AWAIT_BENCH, Bench, FIND_BENCH, Printed, Task};
use transfer::{Both, COUNTERS, Measurement, Memory, Operation, Side, Snapshot, read_counters};

use super::pair::Pair;
use crate::deadline::Deadline;

/// Bytes of one stream that are read.
const MAX_BYTES: u64 = 4 << 20;
/// How long output can still be on its way when the end was told.
const LEFT_OVER: Duration = Duration::from_millis(500);
/// How long an etcd takes to know the first of the two.
const REGISTER: Duration = Duration::from_secs(3);

/// The two containers, and what ends the run.
pub(super) struct Place<'p> {
    pub(super) cluster: &'p Arc<dyn Cluster>,
    pub(super) pair: &'p Pair<'p>,
    pub(super) deadline: &'p Deadline,
    pub(super) stop: &'p Stop,
}

impl Place<'_> {
    /// What is to be done where both have it; nothing where neither has. The words say why not.
    pub(super) async fn task(&self) -> Result<Option<(Task, Both<Bench>)>, String> {
        let find = |side: Side| self.text(side, &[FIND_BENCH]);
        let (prefill, decode) = tokio::join!(find(Side::Prefill), find(Side::Decode));
        let found = [prefill, decode].map(|text| nixlbench::found(&text.unwrap_or_default()));
        let (prefill, decode) = match found {
            [Some(prefill), Some(decode)] => (prefill, decode),
            [None, None] => return Ok(None),
            [Some(_), None] => return Err("nixlbench is in the prefill worker only".to_owned()),
            [None, Some(_)] => return Err("nixlbench is in the decode worker only".to_owned()),
        };
        if prefill.asio != decode.asio {
            return Err(
                "the two nixlbench are of different releases: from 1.1.0 on it needs no etcd"
                    .to_owned(),
            );
        }
        if !prefill.asio && !(prefill.etcd && decode.etcd) {
            return Err(
                "nixlbench is older than 1.1.0 and finds its peer by etcd only, and the containers name none (NIXL_ETCD_ENDPOINTS)"
                    .to_owned(),
            );
        }
        let operation = match self.pair.operation {
            Some(model::Operation::Write) => Operation::Write,
            _ => Operation::Read,
        };
        let memory = match self.pair.memory {
            Some(model::MemoryKind::Host) => Memory::Host,
            _ if self.pair.gpus => Memory::Gpu,
            _ => Memory::Host,
        };
        // Not twice the same, where one was left waiting.
        let number = std::process::id();
        let mut task = Task {
            operation,
            memory,
            seconds: u32::try_from(self.deadline.left().as_secs()).unwrap_or(3600),
            address: String::new(),
            port: u16::try_from(20_000 + number % 10_000).unwrap_or(20_000),
            group: format!("check-interconnect-{number}"),
        };
        let first = self.pair.ends.of(task.initiator());
        if prefill.asio {
            let Some(address) = first.object.addresses.first() else {
                return Err(format!("{} has no address", first.object.name));
            };
            task.address.clone_from(address);
        }
        Ok(Some((task, Both { prefill, decode })))
    }

    /// Carries it out.
    pub(super) async fn measured(
        &self,
        task: &Task,
        benches: &Both<Bench>,
    ) -> Result<Measurement, String> {
        let before = self.counters().await?;
        let command = |side: Side| task.command(benches.of(side), *self.pair.processes.of(side));
        let initiator = task.initiator();
        let first = self.start(initiator, command(initiator)).await?;
        let second = async {
            if benches.of(initiator).asio {
                let port = format!("{:04X}", task.port);
                self.text(initiator, &[AWAIT_BENCH, "check-interconnect", &port])
                    .await?;
            } else {
                tokio::time::sleep(REGISTER).await;
            }
            let other = initiator.other();
            let session = self.start(other, command(other)).await?;
            Ok::<Printed, String>(self.printed(session).await)
        };
        let (first, second) = tokio::join!(self.printed(first), second);
        let second = second?;
        let printed = match initiator {
            Side::Prefill => Both {
                prefill: first,
                decode: second,
            },
            Side::Decode => Both {
                prefill: second,
                decode: first,
            },
        };
        let after = self.counters().await.ok();
        Ok(nixlbench::measurement(task, &printed, before, after))
    }

    async fn counters(&self) -> Result<Both<Snapshot>, String> {
        let of = async |side: Side| {
            let text = self.text(side, &[COUNTERS]).await?;
            let whole = read_counters(&text).ok_or("the counters could not be read")?;
            Ok::<Snapshot, String>(whole.snapshot)
        };
        let (prefill, decode) = tokio::join!(of(Side::Prefill), of(Side::Decode));
        Ok(Both {
            prefill: prefill?,
            decode: decode?,
        })
    }

    /// What a short script prints.
    async fn text(&self, side: Side, script: &[&str]) -> Result<String, String> {
        let mut command = ["sh", "-c"].map(str::to_owned).to_vec();
        command.extend(script.iter().map(|word| (*word).to_owned()));
        let session = self.start(side, command).await?;
        let printed = self.printed(session).await;
        match printed.lost {
            Some(why) => Err(why),
            None => Ok(printed.text),
        }
    }

    async fn start(&self, side: Side, command: Vec<String>) -> Result<Session, String> {
        let pod: &ProbedPod = self.pair.ends.of(side);
        let exec = Exec {
            namespace: pod.object.namespace.clone(),
            pod: pod.object.name.clone(),
            container: pod.container.clone(),
            command,
        };
        cluster::start(&**self.cluster, &exec, self.deadline.left(), self.stop)
            .await
            .map_err(|fault| format!("{}: {}", exec.pod, fault.detail))
    }

    /// Reads to the end, or as long as there is time. Without its standard input a command ends.
    async fn printed(&self, session: Session) -> Printed {
        let Session {
            stdin: _held,
            stdout,
            stderr,
            mut end,
        } = session;
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let lost = {
            let read = async {
                tokio::join!(whole(stdout, &mut out), whole(stderr, &mut err));
            };
            tokio::pin!(read);
            tokio::select! {
                () = &mut read => None,
                ended = &mut end => {
                    let _rest = tokio::time::timeout(LEFT_OVER, read).await;
                    match ended {
                        Ended::Fault(fault) => Some(fault.detail),
                        _ => None,
                    }
                }
                () = tokio::time::sleep_until(self.deadline.end()) => {
                    Some(format!("time was over ({})", self.deadline.words()))
                }
                () = self.stop.stopped() => Some("the run was ended first".to_owned()),
            }
        };
        let cut = [&out, &err]
            .iter()
            .any(|read| read.len() as u64 >= MAX_BYTES);
        err.push(b'\n');
        err.extend(out);
        Printed {
            text: String::from_utf8_lossy(&err).into_owned(),
            cut,
            lost,
        }
    }
}

async fn whole(stream: impl AsyncRead + Unpin, into: &mut Vec<u8>) {
    // What was read until it broke is there.
    let _broken = stream.take(MAX_BYTES).read_to_end(into).await;
}

/// What is done, in words, before it is.
pub(super) fn words(task: &Task, benches: &Both<Bench>, pair: &Pair<'_>) -> String {
    let name = |side: Side| &pair.ends.of(side).object.name;
    let by = if benches.prefill.asio {
        format!(
            "over a connection of its own to port {} of {}",
            task.port,
            name(task.initiator())
        )
    } else {
        "by the etcd that the containers name".to_owned()
    };
    format!(
        "--transfer: no Python with NIXL there; nixlbench in both instead: {} by {}, {}; the two find each other {by}; ended after {} s at the latest",
        task.operation.as_str(),
        task.initiator().as_str(),
        task.plan().sentence(),
        task.seconds
    )
}
