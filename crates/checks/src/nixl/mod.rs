//! Checks of what runs in a worker, as logs show it.

pub(crate) mod libfabric;
pub(crate) mod rdma_errors;
