//! Checks of pods: what the API server says of them, beside what is seen inside.

pub(crate) mod access;
pub(crate) mod choice;
pub(crate) mod deployment;
pub(crate) mod evidence;
pub(crate) mod explains;
pub(crate) mod faults;
pub(crate) mod gpus;
pub(crate) mod live_settings;
pub(crate) mod locked_memory;
pub(crate) mod namespace;
pub(crate) mod networks;
pub(crate) mod nodes;
pub(crate) mod prepare;
pub(crate) mod rdma_devices;
pub(crate) mod rights;
pub(crate) mod settled;
pub(crate) mod shared_memory;
pub(crate) mod state;
pub(crate) mod view;
pub(crate) mod workers;
