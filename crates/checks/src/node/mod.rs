//! Checks of what was observed on a host, in a container, or in saved outputs of tools and logs.

pub(crate) mod rdma_devices;
