//! GPUs, NVLink, the NVLink fabric and IMEX.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Merge, Origin, merge_fields};
use super::pci::PcieLink;
use super::rdma::DevNode;

/// All GPUs that any source names, and what their driver says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpus {
    /// One each; which is which is told by index, UUID or PCI address.
    pub gpus: GpuList,
    /// Version of the kernel driver.
    pub driver_version: Fact<String>,
    /// CUDA version that the driver supports.
    pub cuda_version: Fact<String>,
    /// Whether the kernel modules are the open ones; only these export dma-buf.
    pub open_kernel_modules: Fact<bool>,
    /// Registry options of the driver: `EnableStreamMemOPs`, `ImexChannelCount`.
    pub driver_parameters: BTreeMap<String, Fact<String>>,
    /// Whether the fabric manager runs on this machine.
    pub fabric_manager: Fact<bool>,
    /// Number of NVSwitches in sight.
    pub nvswitches: Fact<u32>,
    /// Multi-node NVLink: memory export between machines.
    pub imex: Imex,
    /// What the NVIDIA tools printed in place of an answer.
    pub errors: Vec<ToolError>,
    /// Accelerators of other vendors: `amdgpu`, `xe`, `ascend`.
    pub other_accelerators: Fact<Vec<String>>,
}

merge_fields!(Gpus {
    gpus,
    driver_version,
    cuda_version,
    open_kernel_modules,
    driver_parameters,
    fabric_manager,
    nvswitches,
    imex,
    errors,
    other_accelerators
});

impl Gpus {
    /// GPUs that can be used here. A container sees all of its node on the PCI bus; those that it was given have a device
    /// node. Where nobody looked at nodes, all count.
    pub fn usable(&self) -> usize {
        let with_node = self
            .gpus
            .iter()
            .filter(|gpu| gpu.node.exists.value() == Some(&true))
            .count();
        if with_node > 0 {
            with_node
        } else {
            self.gpus.len()
        }
    }
}

/// What a tool printed in place of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    /// Where.
    pub origin: Origin,
    /// Its words, without control characters.
    pub text: String,
}

/// IMEX: the service and the channels that a container needs for multi-node NVLink.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Imex {
    /// The driver knows channels (`/proc/devices`).
    pub registered: Fact<bool>,
    /// Numbers of channel nodes in `/dev/nvidia-caps-imex-channels`; empty: none is here.
    pub channels: Fact<Vec<u32>>,
    /// Whether a channel node can be opened, by number.
    pub nodes: BTreeMap<u32, DevNode>,
    /// State of the domain or node, as `nvidia-imex-ctl` prints it.
    pub state: Fact<String>,
}

merge_fields!(Imex {
    registered,
    channels,
    nodes,
    state
});

/// GPUs in order of first sight.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GpuList(Vec<Gpu>);

/// GPUs that are kept; a machine has far fewer.
const MAX_GPUS: usize = 1024;

impl GpuList {
    /// All.
    pub fn iter(&self) -> std::slice::Iter<'_, Gpu> {
        self.0.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// None.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one; what is known about the same GPU is joined.
    pub fn add(&mut self, gpu: Gpu) {
        let room = self.0.len() < MAX_GPUS;
        match self.0.iter_mut().find(|held| held.same_as(&gpu)) {
            Some(held) => held.merge(gpu),
            None if room => self.0.push(gpu),
            None => {}
        }
    }
}

impl<'a> IntoIterator for &'a GpuList {
    type Item = &'a Gpu;
    type IntoIter = std::slice::Iter<'a, Gpu>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Merge for GpuList {
    fn merge(&mut self, later: Self) {
        for gpu in later.0 {
            self.add(gpu);
        }
    }
}

/// One GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gpu {
    /// Index that `nvidia-smi` gives it in this container.
    pub index: Fact<u32>,
    /// `GPU-…`.
    pub uuid: Fact<String>,
    /// PCI address, `0000:18:00.0`.
    pub pci: Fact<String>,
    /// `NVIDIA H100 80GB HBM3`.
    pub name: Fact<String>,
    /// Minor number N of `/dev/nvidiaN`.
    pub minor: Fact<u32>,
    /// NUMA node of its PCI slot; -1 where the firmware does not say.
    pub numa_node: Fact<i32>,
    /// MIG instances that are visible, by UUID; empty: none.
    pub mig: Fact<Vec<String>>,
    /// PCIe speed and width; lowered while idle.
    pub pcie: PcieLink,
    /// NVLinks by number.
    pub links: BTreeMap<u32, NvLink>,
    /// The tool names no link because all are inactive.
    pub all_links_inactive: Fact<bool>,
    /// NVLink as a whole: what the tool says in place of links (`Not Supported`).
    pub nvlink_message: Fact<String>,
    /// Its attachment to the NVLink fabric.
    pub fabric: Fabric,
    /// `/dev/nvidiaN`.
    pub node: DevNode,
}

impl Gpu {
    /// Whether both are the same GPU: same UUID, else same PCI address, else same index.
    fn same_as(&self, other: &Self) -> bool {
        if let (Some(a), Some(b)) = (self.uuid.value(), other.uuid.value()) {
            return a == b;
        }
        if let (Some(a), Some(b)) = (self.pci.value(), other.pci.value()) {
            return a == b;
        }
        matches!((self.index.value(), other.index.value()), (Some(a), Some(b)) if a == b)
    }
}

merge_fields!(Gpu {
    index,
    uuid,
    pci,
    name,
    minor,
    numa_node,
    mig,
    pcie,
    links,
    all_links_inactive,
    nvlink_message,
    fabric,
    node
});

/// State of one NVLink.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkState {
    /// Carries traffic.
    Up,
    /// Inactive or down.
    Down,
    /// Switched off.
    Disabled,
    /// Not there on this GPU.
    NotSupported,
}

/// One NVLink of a GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NvLink {
    /// Its state.
    pub state: Fact<LinkState>,
    /// MB/s per direction (25781 is 25.781 GB/s).
    pub mb_per_s: Fact<u64>,
}

merge_fields!(NvLink { state, mb_per_s });

/// Attachment of a GPU to the NVLink fabric, as the driver words it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fabric {
    /// `Completed`, `In Progress`, `Not Started`, `Not Supported`, `N/A`.
    pub state: Fact<String>,
    /// `Success`, an error, or `N/A`.
    pub status: Fact<String>,
    /// Whether the driver can tell a state at all.
    pub supported: Fact<bool>,
    /// Clique within the cluster.
    pub clique: Fact<u32>,
    /// Cluster; all zeros is none.
    pub cluster_uuid: Fact<String>,
    /// `Healthy`, `Unhealthy`, `Limited Capacity`, `Not Supported`, `N/A`.
    pub health_summary: Fact<String>,
    /// `Full`, `Degraded`, `N/A`.
    pub bandwidth: Fact<String>,
    /// Other health rows by name: `Route Recovery in progress`, `Incorrect Configuration`.
    pub health: BTreeMap<String, Fact<String>>,
}

merge_fields!(Fabric {
    state,
    status,
    supported,
    clique,
    cluster_uuid,
    health_summary,
    bandwidth,
    health
});
