//! Limits and rights of a process or container.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, merge_fields};

/// One resource limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// So many; bytes for memory, files for open files.
    Value(u64),
    /// No limit.
    Unlimited,
}

/// Linux capabilities as a bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// Exempts from the limit on locked memory.
    pub const IPC_LOCK: u32 = 14;
    /// Raw packets.
    pub const NET_RAW: u32 = 13;
    /// Look into other processes.
    pub const SYS_PTRACE: u32 = 19;
    /// Administration.
    pub const SYS_ADMIN: u32 = 21;

    /// Whether a capability is in the set.
    pub fn has(self, bit: u32) -> bool {
        self.0.checked_shr(bit).is_some_and(|set| set & 1 == 1)
    }
}

/// Limits and rights.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Locked memory, soft, bytes.
    pub memlock_soft: Fact<Limit>,
    /// Locked memory, hard, bytes.
    pub memlock_hard: Fact<Limit>,
    /// Open files, soft.
    pub open_files_soft: Fact<Limit>,
    /// Open files, hard.
    pub open_files_hard: Fact<Limit>,
    /// Effective capabilities.
    pub capabilities: Fact<Capabilities>,
    /// Effective user.
    pub uid: Fact<u32>,
    /// Size of `/dev/shm`, bytes.
    pub shm_bytes: Fact<u64>,
    /// Bytes in use of `/dev/shm`.
    pub shm_used_bytes: Fact<u64>,
    /// Memory limit of the control group, bytes.
    pub cgroup_memory: Fact<Limit>,
    /// Processor limit of the control group, thousandths of a processor.
    pub cgroup_cpu_milli: Fact<Limit>,
    /// Limit of the RDMA control group per device: `hca_handle`, `hca_object`.
    pub cgroup_rdma: BTreeMap<String, Fact<String>>,
    /// Processors that this process may use: `0-47`.
    pub cpus_allowed: Fact<String>,
    /// Memory nodes that this process may use.
    pub mems_allowed: Fact<String>,
}

merge_fields!(Limits {
    memlock_soft,
    memlock_hard,
    open_files_soft,
    open_files_hard,
    capabilities,
    uid,
    shm_bytes,
    shm_used_bytes,
    cgroup_memory,
    cgroup_cpu_milli,
    cgroup_rdma,
    cpus_allowed,
    mems_allowed
});
