//! A measured transfer between two workers, and what was seen while engines transferred by themselves: facts, as reports
//! hand them on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::result::Grade;

/// What the worker that begins a transfer does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It pulls.
    Read,
    /// It pushes.
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
}

/// Kind of memory at both ends of a transfer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// Memory of the host (NIXL: DRAM).
    Host,
    /// Memory of a GPU (NIXL: VRAM).
    Gpu,
}

impl MemoryKind {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Gpu => "GPU",
        }
    }
}

/// What carried a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    /// RDMA hardware.
    Rdma,
    /// RDMA that the kernel makes (rxe, siw): CPUs copy.
    SoftwareRdma,
    /// From GPU to GPU (cuda_ipc).
    GpuIpc,
    /// Memory that both processes share.
    SharedMemory,
    /// TCP.
    Tcp,
    /// Several of them at once.
    Mixed,
    /// Not known, or the kinds of evidence contradict each other.
    Unknown,
}

impl Carrier {
    /// RDMA hardware, or GPU to GPU.
    pub fn is_fast(self) -> bool {
        matches!(self, Self::Rdma | Self::GpuIpc)
    }
}

/// One kind of evidence, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// `protocol-table`, `byte-counters`, `own-sockets`, `no-emulation`, `namespaces`; more may come.
    pub kind: String,
    /// `agrees`, `fits` (does not contradict, and names nothing), `contradicts` or `silent`.
    pub finding: String,
    /// In words, with numbers.
    pub text: String,
}

/// Transfers of one operation, memory and size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferLeg {
    /// What was done.
    pub operation: Operation,
    /// Which worker did it: `prefill` or `decode`.
    pub initiator: String,
    /// Memory at both ends.
    pub memory: MemoryKind,
    /// Bytes of one transfer.
    pub bytes: u64,
    /// Transfers that were done.
    pub transfers: u32,
    /// All of the content arrived, by hashes of both ends.
    pub verified: bool,
    /// What carried it.
    pub carrier: Carrier,
    /// Devices, ports or interfaces that it went over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<String>,
    /// `TCP on eth0`.
    pub words: String,
    /// The CPU of the other end copied, too.
    pub emulated: bool,
    /// How well the carrier is supported; absent where it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<Grade>,
    /// Everything that was looked at.
    pub evidence: Vec<Evidence>,
    /// Median over the timed transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<u64>,
    /// The slower end's link, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_bytes_per_second: Option<u64>,
    /// At least a quarter of the link; absent where that is not judged: below 16 MiB, unknown links, and everything but
    /// RDMA hardware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plausible: Option<bool>,
    /// The engines do it this way, with this memory, as far as is known.
    pub of_engine: bool,
    /// Why it is not proven, or what it does not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl TransferLeg {
    /// It may count for trust: proven, verified, RDMA hardware or GPU to GPU, no emulation, at a plausible rate.
    pub fn counts(&self) -> bool {
        self.verified
            && self.carrier.is_fast()
            && !self.emulated
            && self.grade == Some(Grade::Proven)
            && self.plausible != Some(false)
    }
}

/// One of the two workers of a transfer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferEnd {
    /// Namespace.
    pub namespace: String,
    /// Pod.
    pub pod: String,
    /// Container.
    pub container: String,
    /// Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Process of the engine whose environment the transfer had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// Version of NIXL that it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nixl: Option<String>,
    /// GPU whose memory was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// Why GPU memory was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_error: Option<String>,
}

/// Why a transfer ended before its plan was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TransferStop {
    /// Which worker: `prefill` or `decode`.
    pub side: String,
    /// The step that it was in: `import`, `backend`, `connect`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What happened.
    pub why: String,
    /// NIXL told an error, as against a program that did not start, a lost connection, or time that was over.
    pub by_nixl: bool,
}

/// A measured transfer between a prefill and a decode worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Transfer {
    /// The worker that has the KV cache first.
    pub prefill: TransferEnd,
    /// The worker that needs it.
    pub decode: TransferEnd,
    /// The program that moved it, where it is not the worker's own Python and NIXL: `nixlbench`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What was going to be done, in one sentence.
    pub plan: String,
    /// Bytes that were going to be moved.
    pub planned_bytes: u64,
    /// What was moved, in order.
    pub legs: Vec<TransferLeg>,
    /// Why it ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<TransferStop>,
}
