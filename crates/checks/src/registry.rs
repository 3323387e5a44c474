//! All checks, in the order in which they are told. Everything that lists checks goes through this table.

use crate::check::{Cause, Check};
use crate::{collectives, compare, env, nixl, node, pod};

/// Every check.
pub const CHECKS: &[Check] = &[
    env::roles::CHECK,
    env::start_command::CHECK,
    env::engine_values::CHECK,
    env::kv_connector::CHECK,
    env::kv_fabric::CHECK,
    env::ucx_tls::CHECK,
    env::ucx_net_devices::CHECK,
    env::mnnvl::CHECK,
    env::efa::CHECK,
    env::device_access::CHECK,
    env::locked_memory::CHECK,
    env::side_channel::CHECK,
    env::engine_transfer::CHECK,
    env::pod_network::CHECK,
    env::multinode::CHECK,
    env::prefill_decode::CHECK,
    env::setting_names::CHECK,
    env::setting_values::CHECK,
    env::missing_settings::CHECK,
    // Last: it tells what no other check has told.
    env::settings_in_force::CHECK,
    // Pods: which, whether they could be looked into, and their specs beside what is inside.
    pod::rights::CHECK,
    pod::access::CHECK,
    pod::state::CHECK,
    pod::evidence::CHECK,
    pod::nodes::CHECK,
    pod::rdma_devices::CHECK,
    pod::locked_memory::CHECK,
    pod::gpus::CHECK,
    pod::networks::CHECK,
    pod::live_settings::CHECK,
    pod::shared_memory::CHECK,
    pod::choice::CHECK,
    // Workers of one deployment, held against each other.
    compare::fabric::CHECK,
    compare::nvlink::CHECK,
    compare::software::CHECK,
    compare::side_channel::CHECK,
    compare::placement::CHECK,
    compare::odd_one_out::CHECK,
    compare::drift::CHECK,
    // What the others stand on.
    node::collection::CHECK,
    // RDMA.
    node::rdma_devices::CHECK,
    node::device_access::CHECK,
    node::rdma_namespace::CHECK,
    node::rdma_ports::CHECK,
    node::rdma_rates::CHECK,
    node::rdma_gids::CHECK,
    node::selected_devices::CHECK,
    node::port_counters::CHECK,
    node::efa::CHECK,
    node::locked_memory::CHECK,
    node::process_limits::CHECK,
    // GPUs and UCX.
    node::hardware::CHECK,
    node::gpu::CHECK,
    node::nvlink::CHECK,
    node::nvlink_fabric::CHECK,
    node::gpu_nic_affinity::CHECK,
    node::gpu_peer_access::CHECK,
    node::pcie_link::CHECK,
    node::gpudirect::CHECK,
    node::gdrcopy::CHECK,
    node::ucx_build::CHECK,
    node::ucx_transports::CHECK,
    // A measured transfer.
    nixl::transfer::CHECK,
    nixl::transfer_path::CHECK,
    nixl::transfer_rate::CHECK,
    nixl::bad_end::CHECK,
    nixl::observed_traffic::CHECK,
    // NIXL in an engine that runs.
    nixl::live::libraries::CHECK,
    nixl::live::backends::CHECK,
    nixl::live::transports::CHECK,
    nixl::live::side_channel::CHECK,
    nixl::live::in_use::CHECK,
    nixl::live::metrics::CHECK,
    // What logs tell.
    nixl::ucx_settings::CHECK,
    nixl::ucx_messages::CHECK,
    nixl::ucx_connections::CHECK,
    nixl::gpudirect::CHECK,
    nixl::payload_transport::CHECK,
    nixl::two_sides::CHECK,
    nixl::engine_messages::CHECK,
    nixl::rdma_errors::CHECK,
    nixl::libfabric::CHECK,
    // After the others of its kind: it tells errors that none of them explains.
    nixl::messages::CHECK,
    collectives::nccl_network::CHECK,
    collectives::nccl_nvlink::CHECK,
    collectives::nccl_files::CHECK,
    collectives::gloo::CHECK,
];

/// A check by its name.
pub fn check(name: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|c| c.name == name)
}

/// A cause by its name, with its check.
pub fn cause(id: &str) -> Option<(&'static Check, &'static Cause)> {
    CHECKS
        .iter()
        .find_map(|c| c.cause(id).map(|cause| (c, cause)))
}
