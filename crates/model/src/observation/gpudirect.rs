//! Signs that network cards can reach GPU memory, apart from modules and what UCX says.

use serde::{Deserialize, Serialize};

use super::fact::{Fact, merge_fields};
use super::rdma::DevNode;

/// Each sign by itself; none alone is proof.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GpuDirect {
    /// The CUDA driver says that it exports dma-buf.
    pub cuda_dmabuf: Fact<bool>,
    /// `/dev/gdrdrv` of GDRCopy.
    pub gdrcopy_node: DevNode,
    /// The kernel has the character device of GDRCopy (`/proc/devices`).
    pub gdrcopy_registered: Fact<bool>,
    /// Version of GDRCopy's module.
    pub gdrcopy_version: Fact<String>,
    /// An IOMMU translates; on bare metal that slows or breaks traffic between devices.
    pub iommu_groups: Fact<bool>,
    /// Kernel command line words about the IOMMU: `iommu=pt`.
    pub iommu_options: Fact<Vec<String>>,
}

merge_fields!(GpuDirect {
    cuda_dmabuf,
    gdrcopy_node,
    gdrcopy_registered,
    gdrcopy_version,
    iommu_groups,
    iommu_options
});
