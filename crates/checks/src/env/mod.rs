//! Checks of what a recipe says. `node` applies the same rules to a live environment.

pub(crate) mod device_access;
pub(crate) mod efa;
pub(crate) mod engine_transfer;
pub(crate) mod engine_values;
mod fabric_kinds;
pub(crate) mod kv_connector;
pub(crate) mod kv_fabric;
pub(crate) mod locked_memory;
pub(crate) mod missing_settings;
pub(crate) mod mnnvl;
mod models;
pub(crate) mod multinode;
pub(crate) mod pod_network;
pub(crate) mod prefill_decode;
pub(crate) mod roles;
pub(crate) mod setting_names;
pub(crate) mod setting_notes;
pub(crate) mod setting_values;
pub(crate) mod settings_in_force;
pub(crate) mod side_channel;
pub(crate) mod start_command;
pub(crate) mod ucx_net_devices;
pub(crate) mod ucx_tls;
