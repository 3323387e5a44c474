//! A measured transfer by NIXL's own benchmark, for workers whose image has it and no Python with NIXL.
//!
//! nixlbench makes an agent of its own, needs a way between its two processes (from NIXL 1.1.0 on a TCP connection of its
//! own, before that etcd), checks content by one pattern, and prints what was moved how fast, never over what
//! (NIXL benchmark/nixlbench, at 0.5.1 to 1.5). So that is told by UCX's protocol table, which it prints where it is
//! asked to, and by the counters of both ends. It was not run here: it is tested against a stand-in that prints its
//! documented output.

use crate::launch;
use crate::message::Snapshot;
use crate::plan::{Leg, Memory, Operation, Plan};
use crate::record::{EndRecord, LegRecord, Measurement, Stop};
use crate::side::{Both, Side};

/// Looks for it in a container; [`found`] reads what it prints.
pub const FIND_BENCH: &str = include_str!("launch/find_bench.sh");
/// Waits until it listens on the port that is the first argument, in hexadecimal digits.
pub const AWAIT_BENCH: &str = include_str!("launch/await_bench.sh");
/// The step of a measurement by it.
pub const STEP: &str = "nixlbench";

/// Blocks of more than 1 MiB are transferred less often, by a factor of which releases differ.
const BLOCK: u64 = 1 << 20;
const REPEATS: u32 = 64;
const WARM_UP: u32 = 16;
const BUFFER: u64 = 64 << 20;
/// What it says itself of how it ended; the script in the container does.
const ENDED: &str = "check-interconnect: nixlbench ended with ";

/// A nixlbench in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bench {
    /// Its file.
    pub path: String,
    /// It can find its peer without etcd.
    pub asio: bool,
    /// The container names an etcd.
    pub etcd: bool,
}

/// Reads what [`FIND_BENCH`] prints.
pub fn found(text: &str) -> Option<Bench> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("nixlbench "))?;
    let mut words = line.splitn(3, ' ');
    let (way, etcd, path) = (words.next()?, words.next()?, words.next()?);
    Some(Bench {
        path: path.to_owned(),
        asio: way == "asio",
        etcd: etcd == "named",
    })
}

/// What it is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// READ by decode or WRITE by prefill.
    pub operation: Operation,
    /// Memory at both ends.
    pub memory: Memory,
    /// Seconds after which both are ended.
    pub seconds: u32,
    /// Address of the worker that begins, for its own connection.
    pub address: String,
    /// Port of that.
    pub port: u16,
    /// Keeps two runs apart that use one etcd.
    pub group: String,
}

impl Task {
    /// The worker that begins; its process must be there first.
    pub fn initiator(&self) -> Side {
        match self.operation {
            Operation::Read => Side::Decode,
            Operation::Write => Side::Prefill,
        }
    }

    /// The same as a plan.
    pub fn plan(&self) -> Plan {
        Plan {
            legs: vec![Leg {
                operation: self.operation,
                initiator: self.initiator(),
                local: self.memory,
                remote: self.memory,
                bytes: BLOCK,
                repeats: REPEATS,
                warm_up: WARM_UP,
            }],
            seconds: self.seconds,
            start_seconds: self.seconds,
            step_seconds: self.seconds,
            bytes_per_second: None,
            gpu: 0,
        }
    }

    /// The command line in one container, for an exec there; both have the same words.
    pub fn command(&self, bench: &Bench, process: Option<u32>) -> Vec<String> {
        let segment = match self.memory {
            Memory::Host => "DRAM",
            Memory::Gpu => "VRAM",
        };
        let mut words = vec![bench.path.clone()];
        let mut flag = |name: &str, value: &str| words.push(format!("--{name}={value}"));
        flag("backend", "UCX");
        flag("op_type", self.operation.as_str());
        flag("initiator_seg_type", segment);
        flag("target_seg_type", segment);
        flag("check_consistency", "true");
        flag("total_buffer_size", &BUFFER.to_string());
        flag("start_block_size", &BLOCK.to_string());
        flag("max_block_size", &BLOCK.to_string());
        flag("start_batch_size", "1");
        flag("max_batch_size", "1");
        flag("num_iter", &REPEATS.to_string());
        flag("warmup_iter", &WARM_UP.to_string());
        if bench.asio {
            flag("runtime_type", "ASIO");
            flag("asio_address", &self.address);
            flag("asio_port", &self.port.to_string());
        } else {
            flag("runtime_type", "ETCD");
            flag("benchmark_group", &self.group);
            // Its value is put there by the shell in the container.
            words.push("--etcd_endpoints".to_owned());
        }
        launch::start_program(process, self.seconds, &words)
    }
}

/// What one process printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// All of it, what went to standard error first.
    pub text: String,
    /// There was more.
    pub cut: bool,
    /// The connection was lost, or time was over: in words.
    pub lost: Option<String>,
}

impl Printed {
    /// Its exit code; none where it was not told.
    fn code(&self) -> Option<i32> {
        self.text
            .lines()
            .rev()
            .find_map(|line| line.strip_prefix(ENDED))
            .and_then(|code| code.trim().parse().ok())
    }
}

/// A row of its table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Bytes of a block.
    pub block: u64,
    /// Blocks of a transfer.
    pub batch: u64,
    /// Units of 10^9 bytes a second.
    pub gigabytes: f64,
}

/// Columns of its table; releases differ in which there are and in which order.
const COLUMNS: [&str; 13] = [
    "Block Size (B)",
    "Batch Size",
    "B/W (MiB/Sec)",
    "B/W (GiB/Sec)",
    "B/W (GB/Sec)",
    "Aggregate",
    "Network Util (%)",
    "Avg Lat. (us)",
    "Avg Prep (us)",
    "P99 Prep (us)",
    "Avg Post (us)",
    "P99 Post (us)",
    "Avg Tx (us)",
];

/// Rows of the table that it prints.
pub fn rows(text: &str) -> Vec<Row> {
    let mut order: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines() {
        if line.contains("Block Size (B)") && line.contains("B/W (GB/Sec)") {
            let line = line.replace("Aggregate B/W (GB/Sec)", "Aggregate");
            let mut at: Vec<(usize, &str)> = COLUMNS
                .iter()
                .filter_map(|name| Some((line.find(name)?, *name)))
                .collect();
            at.sort_unstable();
            order = at.into_iter().map(|(_, name)| name).collect();
            continue;
        }
        let values: Option<Vec<f64>> = line.split_whitespace().map(|w| w.parse().ok()).collect();
        let Some(values) = values.filter(|all| !all.is_empty() && all.len() >= order.len()) else {
            continue;
        };
        let value = |name: &str| {
            let at = order.iter().position(|column| *column == name)?;
            values.get(at).copied()
        };
        let (Some(block), Some(batch), Some(gigabytes)) = (
            value("Block Size (B)").and_then(whole),
            value("Batch Size").and_then(whole),
            value("B/W (GB/Sec)"),
        ) else {
            continue;
        };
        found.push(Row {
            block,
            batch,
            gigabytes,
        });
    }
    found
}

fn whole(number: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is looked at first"
    )]
    (1.0..1e15).contains(&number).then_some(number as u64)
}

/// What it says where NIXL refused.
const OF_NIXL: [&str; 4] = [
    "createBackend failed",
    "NIXL_ERR",
    "NIXL: failed",
    "VRAM not supported",
];
/// Its own words where something went wrong.
const WRONG: [&str; 12] = [
    "createBackend failed",
    "NIXL_ERR",
    "NIXL: failed",
    "VRAM not supported",
    "Failed to synchronize",
    "Error in barrier",
    "ASIO Connection",
    "ASIO Receive timeout",
    "ASIO Read",
    "greater than or equal to global size",
    "terminate called",
    "what():",
];

/// What was printed and counted, as a measurement. Counters cover all that it did.
pub fn measurement(
    task: &Task,
    printed: &Both<Printed>,
    before: Both<Snapshot>,
    after: Option<Both<Snapshot>>,
) -> Measurement {
    let plan = task.plan();
    let end = |side: Side| {
        let own = printed.of(side);
        let told = own
            .text
            .lines()
            .find(|line| OF_NIXL.iter().any(|part| line.contains(part)));
        EndRecord {
            output: own.text.clone(),
            left_out: u64::from(own.cut),
            step: Some(STEP.to_owned()),
            error: told.map(|line| line.trim().to_owned()),
            finished: own.code() == Some(0),
            ..EndRecord::default()
        }
    };
    let ends = Both {
        prefill: end(Side::Prefill),
        decode: end(Side::Decode),
    };
    let leg = plan.legs.first().copied();
    let row = rows(&printed.of(task.initiator()).text)
        .into_iter()
        .find(|row| row.block == BLOCK && row.batch == 1);
    let inconsistent = Side::ALL
        .iter()
        .any(|side| printed.of(*side).text.contains("Consistency check failed"));
    let stop = match row {
        Some(_) if inconsistent => None,
        Some(_) => Side::ALL
            .into_iter()
            .find(|side| !ends.of(*side).finished)
            .map(|side| stop(side, printed.of(side))),
        None => {
            // The one that says what went wrong; the other one only waits for it.
            let says = |side: &Side| wrong(&printed.of(*side).text).is_some();
            let side = Side::ALL
                .into_iter()
                .find(says)
                .unwrap_or_else(|| task.initiator());
            Some(stop(side, printed.of(side)))
        }
    };
    let legs = match (leg, row) {
        (Some(leg), Some(row)) => {
            let verified = if inconsistent || stop.is_some() {
                0
            } else {
                leg.transfers()
            };
            #[expect(clippy::cast_precision_loss, reason = "a block is small")]
            let seconds = leg.bytes as f64 / (row.gigabytes * 1e9);
            vec![LegRecord {
                leg,
                transfers: leg.transfers(),
                seconds: if seconds.is_finite() && seconds > 0.0 {
                    vec![seconds]
                } else {
                    Vec::new()
                },
                verified,
                before,
                after,
            }]
        }
        _ => Vec::new(),
    };
    Measurement {
        plan,
        ends,
        legs,
        stop,
    }
}

fn wrong(text: &str) -> Option<&str> {
    text.lines()
        .rev()
        .find(|line| WRONG.iter().any(|part| line.contains(part)))
}

fn stop(side: Side, printed: &Printed) -> Stop {
    let why = wrong(&printed.text)
        .map(|line| line.trim().chars().take(400).collect::<String>())
        .or_else(|| printed.lost.clone())
        .or_else(|| match printed.code() {
            // `timeout`, and a signal of ours.
            Some(124 | 137 | 143) => Some("its time was over".to_owned()),
            Some(code) => Some(format!("nixlbench ended with code {code} and no result")),
            None => None,
        })
        .unwrap_or_else(|| {
            if printed.cut {
                "it printed more than is read".to_owned()
            } else {
                "the connection ended before it did".to_owned()
            }
        });
    Stop {
        side,
        step: Some(STEP.to_owned()),
        why,
    }
}
