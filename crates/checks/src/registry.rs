//! All checks, in the order in which they are told. Everything that lists checks goes through this table.

use crate::check::{Cause, Check};
use crate::env;

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
