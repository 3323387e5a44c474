//! Checks of what was observed on a host, in a container, or in saved outputs of tools and logs.

pub(crate) mod rdma_devices;

pub(crate) mod gdrcopy;
pub(crate) mod gpu;
pub(crate) mod gpu_nic_affinity;
pub(crate) mod gpu_peer_access;
pub(crate) mod gpudirect;
pub(crate) mod hardware;
pub(crate) mod nvlink;
pub(crate) mod nvlink_fabric;
pub(crate) mod pcie_link;
pub(crate) mod ucx_build;
pub(crate) mod ucx_transports;
pub(crate) mod words;
