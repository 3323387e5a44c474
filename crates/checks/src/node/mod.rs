//! Checks of what was observed on a host, in a container, or in saved outputs of tools and logs.

pub(crate) mod collection;
pub(crate) mod device_access;
pub(crate) mod efa;
pub(crate) mod locked_memory;
pub(crate) mod port_counters;
pub(crate) mod ports;
pub(crate) mod process_limits;
pub(crate) mod rdma_devices;
pub(crate) mod rdma_gids;
pub(crate) mod rdma_namespace;
pub(crate) mod rdma_ports;
pub(crate) mod rdma_rates;
pub(crate) mod selected_devices;
mod selection;

// GPUs and UCX.
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
