//! The answer: what carried a leg, and by which evidence.

use model::Grade;
use serde::Serialize;

use crate::plan::Leg;

/// What carried a payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Carrier {
    /// RDMA, by devices and ports.
    Rdma {
        /// `mlx5_0:1`.
        devices: Vec<String>,
        /// Made by software (rxe, siw): the CPU copies, and it is never trusted.
        software: bool,
    },
    /// From GPU to GPU of one machine or NVLink domain (cuda_ipc).
    GpuIpc,
    /// Memory that both processes share (cma, sysv, posix, xpmem): they share a PID or IPC namespace.
    SharedMemory {
        /// `cma`.
        transports: Vec<String>,
    },
    /// TCP, by interfaces.
    Tcp {
        /// `eth0`.
        interfaces: Vec<String>,
    },
    /// Several of them at once.
    Mixed {
        /// As the table names them.
        lanes: String,
    },
    /// Not known.
    Unknown,
}

impl Carrier {
    /// RDMA hardware, or NVLink.
    pub fn is_fast(&self) -> bool {
        matches!(
            self,
            Self::Rdma {
                software: false,
                ..
            } | Self::GpuIpc
        )
    }

    /// `TCP on eth0`.
    pub fn words(&self) -> String {
        match self {
            Self::Rdma {
                devices,
                software: false,
            } => format!("RDMA on {}", devices.join(", ")),
            Self::Rdma { devices, .. } => format!("software RDMA on {}", devices.join(", ")),
            Self::GpuIpc => "GPU to GPU (cuda_ipc)".to_owned(),
            Self::SharedMemory { transports } => {
                format!("shared memory ({})", transports.join(", "))
            }
            Self::Tcp { interfaces } => format!("TCP on {}", interfaces.join(", ")),
            Self::Mixed { lanes } => format!("a mixture: {lanes}"),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// A kind of evidence. Kinds are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// The row of UCX's protocol table.
    ProtocolTable,
    /// Bytes of interfaces and RDMA ports at both ends against the payload.
    ByteCounters,
    /// Bytes of the processes' own TCP connections at both ends.
    OwnSockets,
    /// A READ that works with emulation switched off.
    NoEmulation,
    /// The namespaces of both processes.
    Namespaces,
}

/// What a kind of evidence says about the carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// It names it, or shows it.
    Agrees,
    /// It fits, and does not name it.
    Fits,
    /// It contradicts it.
    Contradicts,
    /// It says nothing here.
    Silent,
}

/// One piece of evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Which kind.
    pub kind: EvidenceKind,
    /// What it says about the carrier.
    pub finding: Finding,
    /// In words, with numbers.
    pub text: String,
}

/// The answer for a leg.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attribution {
    /// The leg.
    pub leg: Leg,
    /// All of the content arrived.
    pub verified: bool,
    /// What carried it.
    pub carrier: Carrier,
    /// The remote CPU copied, too.
    pub emulated: bool,
    /// How well that is supported; none where the carrier is unknown.
    pub grade: Option<Grade>,
    /// Everything that was looked at.
    pub evidence: Vec<Evidence>,
    /// Why it is not proven, or what it does not say.
    pub notes: Vec<String>,
}

impl Attribution {
    /// It may count for trust: proven, verified, RDMA hardware or NVLink, no emulation.
    pub fn counts(&self) -> bool {
        self.verified
            && self.carrier.is_fast()
            && !self.emulated
            && self.grade == Some(Grade::Proven)
    }

    /// `READ of 16 MiB, host to host: TCP on eth0 (proven)`.
    pub fn sentence(&self) -> String {
        let leg = &self.leg;
        let grade = self.grade.map_or("not known", Grade::as_str);
        format!(
            "{} by {} of {} bytes from {} to {} memory: {}{} ({grade}){}",
            leg.operation.as_str(),
            leg.initiator.as_str(),
            leg.bytes,
            leg.memory(leg.source()).as_str(),
            leg.memory(leg.source().other()).as_str(),
            self.carrier.words(),
            if self.emulated {
                ", emulated: the CPU of the other end copies"
            } else {
                ""
            },
            if self.verified {
                ""
            } else {
                "; the content did NOT arrive"
            },
        )
    }
}
