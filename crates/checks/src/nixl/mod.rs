//! Checks of what runs in a worker, as logs show it.

pub(crate) mod bad_end;
pub(crate) mod engine_messages;
pub(crate) mod gpudirect;
mod lane_lines;
pub(crate) mod libfabric;
pub(crate) mod live;
pub(crate) mod messages;
pub(crate) mod observed_traffic;
pub(crate) mod payload_transport;
pub(crate) mod rdma_errors;
pub(crate) mod sides;
pub(crate) mod transfer;
pub(crate) mod transfer_path;
pub(crate) mod transfer_rate;
pub(crate) mod two_sides;
pub(crate) mod ucx_connections;
pub(crate) mod ucx_messages;
pub(crate) mod ucx_settings;
pub(crate) mod words;

/// The check that tells what carried the payload.
pub(crate) const PAYLOAD: &str = payload_transport::CHECK.name;
