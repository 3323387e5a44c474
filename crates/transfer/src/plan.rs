//! What is going to be transferred, said before anything is.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::link::after;
use crate::side::Side;

/// What an initiator does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It pulls from the other worker.
    Read,
    /// It pushes to the other worker.
    Write,
}

impl Operation {
    /// NIXL's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
        }
    }

    /// UCX's word in the protocol table.
    pub(crate) fn in_table(self) -> &'static str {
        match self {
            Self::Read => "get",
            Self::Write => "put",
        }
    }
}

/// Kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// Memory of the host (NIXL: DRAM).
    Host,
    /// Memory of a GPU (NIXL: VRAM).
    Gpu,
}

impl Memory {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gpu => "gpu",
        }
    }
}

/// Transfers of one operation, size and kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// What the initiator does.
    pub operation: Operation,
    /// Who acts.
    pub initiator: Side,
    /// Memory of the initiator.
    pub local: Memory,
    /// Memory of the other worker.
    pub remote: Memory,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers that are timed.
    pub repeats: u32,
    /// Transfers before them.
    pub warm_up: u32,
}

impl Leg {
    /// Where the content comes from.
    pub fn source(&self) -> Side {
        match self.operation {
            Operation::Read => self.initiator.other(),
            Operation::Write => self.initiator,
        }
    }

    /// Memory at one end.
    pub fn memory(&self, side: Side) -> Memory {
        if side == self.initiator {
            self.local
        } else {
            self.remote
        }
    }

    /// How often it is transferred.
    pub fn transfers(&self) -> u32 {
        self.repeats.saturating_add(self.warm_up)
    }

    /// All bytes.
    pub fn total(&self) -> u64 {
        self.bytes.saturating_mul(u64::from(self.transfers()))
    }
}

/// All that a measurement does, and its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Legs, in order.
    pub legs: Vec<Leg>,
    /// Both programs end after so many seconds, whatever happens.
    pub seconds: u32,
    /// Seconds that starting NIXL may take.
    pub start_seconds: u32,
    /// Seconds that connecting, or one transfer, may take.
    pub step_seconds: u32,
    /// Bytes a second, on average over the measurement; none is no limit.
    pub bytes_per_second: Option<u64>,
    /// Which GPU, as the worker counts them.
    pub gpu: u32,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

impl Plan {
    /// When it is over, if it begins now.
    pub fn end(&self) -> Instant {
        after(Duration::from_secs(u64::from(self.seconds)))
    }

    /// Prefill to decode, as engines do: decode reads (vLLM's NixlConnector) and prefill writes (SGLang, push
    /// connectors), 64 KiB to 64 MiB.
    pub fn both_ways_of_engines(memories: &[Memory]) -> Self {
        let mut legs = Vec::new();
        for memory in memories {
            for (operation, initiator) in [
                (Operation::Read, Side::Decode),
                (Operation::Write, Side::Prefill),
            ] {
                for (bytes, repeats) in [(64 * KIB, 8), (MIB, 8), (16 * MIB, 3), (64 * MIB, 2)] {
                    legs.push(Leg {
                        operation,
                        initiator,
                        local: *memory,
                        remote: *memory,
                        bytes,
                        repeats,
                        warm_up: 1,
                    });
                }
            }
        }
        Self {
            legs,
            seconds: 180,
            start_seconds: 60,
            step_seconds: 30,
            bytes_per_second: None,
            gpu: 0,
        }
    }

    /// Only what tells, with emulation switched off (`UCX_PROTO_EMULATION_ENABLE=n`), whether a READ needs it. A WRITE
    /// over TCP passes that and proves nothing.
    #[must_use]
    pub fn control(&self) -> Self {
        let mut control = self.clone();
        control.legs.retain(|leg| leg.operation == Operation::Read);
        // The largest of each: where paths differ by size, that one carries KV.
        control.legs.sort_by_key(|leg| {
            (
                leg.initiator,
                leg.local,
                leg.remote,
                std::cmp::Reverse(leg.bytes),
            )
        });
        control
            .legs
            .dedup_by_key(|leg| (leg.initiator, leg.local, leg.remote));
        for leg in &mut control.legs {
            leg.repeats = 1;
            leg.warm_up = 0;
        }
        control
    }

    /// Bytes that cross between the workers.
    pub fn total_bytes(&self) -> u64 {
        self.legs
            .iter()
            .map(Leg::total)
            .fold(0, u64::saturating_add)
    }

    /// Bytes that one worker allocates of a kind of memory.
    pub fn buffer(&self) -> u64 {
        self.legs.iter().map(|leg| leg.bytes).max().unwrap_or(0)
    }

    /// Kinds of memory that a worker needs.
    pub fn memories(&self, side: Side) -> Vec<Memory> {
        let mut all: Vec<Memory> = self.legs.iter().map(|leg| leg.memory(side)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whether a worker begins transfers; only then does it connect.
    pub fn initiates(&self, side: Side) -> bool {
        self.legs.iter().any(|leg| leg.initiator == side)
    }

    /// The plan in one sentence, to be shown before it is carried out.
    pub fn sentence(&self) -> String {
        let kinds: Vec<&str> = [Memory::Host, Memory::Gpu]
            .into_iter()
            .filter(|m| Side::ALL.iter().any(|s| self.memories(*s).contains(m)))
            .map(Memory::as_str)
            .collect();
        format!(
            "{} MiB in {} transfers between the two workers, {} memory, {} MiB of it allocated in each; ended after {} s at the latest",
            self.total_bytes().div_ceil(MIB),
            self.legs.iter().map(Leg::transfers).sum::<u32>(),
            kinds.join(" and "),
            self.buffer().div_ceil(MIB),
            self.seconds
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_all_bytes_before() {
        let plan = Plan::both_ways_of_engines(&[Memory::Host]);
        let one = 9 * 64 * KIB + 9 * MIB + 4 * 16 * MIB + 3 * 64 * MIB;
        assert_eq!(plan.total_bytes(), 2 * one);
        assert!(plan.sentence().starts_with("532 MiB in 50 transfers"));
        assert_eq!(plan.buffer(), 64 * MIB);
        assert_eq!(plan.memories(Side::Decode), [Memory::Host]);
        assert!(plan.initiates(Side::Decode) && plan.initiates(Side::Prefill));
        // The data goes from prefill to decode both ways.
        assert!(plan.legs.iter().all(|leg| leg.source() == Side::Prefill));
    }

    #[test]
    fn control_only_reads_once_per_memory() {
        let control = Plan::both_ways_of_engines(&[Memory::Host, Memory::Gpu]).control();
        assert_eq!(control.legs.len(), 2);
        assert!(
            control
                .legs
                .iter()
                .all(|leg| leg.operation == Operation::Read
                    && leg.bytes == 64 * MIB
                    && leg.transfers() == 1)
        );
        assert!(!control.initiates(Side::Prefill));
    }
}
