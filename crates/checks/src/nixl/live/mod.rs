//! NIXL in a worker that runs: what its engine has loaded, what it announces, what it uses now.

pub(crate) mod backends;
pub(crate) mod in_use;
pub(crate) mod judge;
pub(crate) mod libraries;
pub(crate) mod metrics;
pub(crate) mod next;
pub(crate) mod side_channel;
pub(crate) mod transports;
pub(crate) mod view;
