//! Which outputs and files an observation comes from, and which of them could not be used.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The tool, log or place of the machine that a text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// `ibstat`.
    Ibstat,
    /// `ibstatus`.
    Ibstatus,
    /// `ibv_devinfo`, also `-v` and `-l`.
    IbvDevinfo,
    /// `ibv_devices`.
    IbvDevices,
    /// `ibdev2netdev`.
    Ibdev2netdev,
    /// `rdma link`, text or JSON.
    RdmaLink,
    /// `rdma dev`, text or JSON.
    RdmaDev,
    /// `rdma system`.
    RdmaSystem,
    /// `show_gids`.
    ShowGids,
    /// `lsmod`, or `/proc/modules`.
    Lsmod,
    /// `nvidia-smi topo -m` or `-mp`.
    NvidiaSmiTopo,
    /// `nvidia-smi topo -p2p`.
    NvidiaSmiTopoP2p,
    /// `nvidia-smi nvlink -s`.
    NvidiaSmiNvlink,
    /// `nvidia-smi -q`, or its `Fabric` part.
    NvidiaSmiQuery,
    /// `nvidia-smi` or `nvidia-smi -L`.
    NvidiaSmi,
    /// `dcgmi nvlink`.
    DcgmiNvlink,
    /// JSON of gpud.
    GpudJson,
    /// Tables of gpud.
    GpudTable,
    /// `ucx_info -d`, `-v` or `-b`.
    UcxInfo,
    /// `fi_info`.
    FiInfo,
    /// `lspci`.
    Lspci,
    /// A listing of `/dev`, or of `/sys/class/infiniband`.
    Ls,
    /// A dump of sysfs or proc files.
    SysfsDump,
    /// `ulimit`, or `/proc/PID/limits`.
    Ulimit,
    /// `ip addr` or `ip link`.
    Ip,
    /// `uname`.
    Uname,
    /// Lines of a UCX log.
    UcxLog,
    /// Lines of a NIXL log, or of an engine about NIXL.
    NixlLog,
    /// Lines of an NCCL log.
    NcclLog,
    /// Lines of Gloo.
    GlooLog,
    /// Lines of libfabric or libibverbs.
    FabricLog,
    /// Lines of the kernel log.
    KernelLog,
    /// A file of `/sys`, read here.
    Sys,
    /// A file of `/proc`, read here.
    Proc,
    /// A node of `/dev`, looked at here.
    Dev,
    /// Another file, read here.
    File,
    /// A system call, made here.
    SystemCall,
}

/// One output or file that facts come from. Shared by all facts of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The path as given, `-`, or the path that was read.
    pub file: String,
    /// What it is.
    pub tool: Tool,
    /// Number of this output within its file, from 0. The same tool twice in one file has two numbers.
    pub section: u32,
    /// The pod or host that the text names as its place, by a shell prompt or a caption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The command that the text shows before its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// How an output ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Completeness {
    /// Nothing shows that a part is missing.
    Whole,
    /// A part is missing; the sentence says how that shows.
    Cut(String),
    /// The tool printed an error in place of its answer, or beside it.
    ToolError(String),
}

/// One output that was recognised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Where it is.
    pub from: Arc<Provenance>,
    /// 1-based first and last line.
    pub lines: (u32, u32),
    /// Whether all of it is here.
    pub completeness: Completeness,
}

/// Why an input gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotRead {
    /// Nothing in it.
    Empty,
    /// Only white space or escape codes.
    Blank,
    /// Text that no parser knows.
    Unknown,
    /// Not text.
    Binary,
    /// More than the limit; the rest was left out.
    TooLarge,
}

/// An input, or the rest of one, that gave no facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unrecognised {
    /// The path as given.
    pub file: String,
    /// Why.
    pub why: NotRead,
    /// Its first line, clipped and without control characters.
    pub first_line: String,
}
