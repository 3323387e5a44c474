//! Transport settings: which variables matter to KV transfer, and exactly what their values do.
//!
//! The grammars are those of UCX, NCCL and libfabric; every fact names its source as `repository:path:line`, at ucx
//! 9466d104a3 (1.23dev), nccl 5067397c (2.30.7), nixl 8770b655a (1.5.1), ofi af8ddbe92 and awsofi 2daf7d30. Nothing here
//! reads the environment or a file.

pub mod catalogue;
pub mod connectors;
pub mod distance;
pub mod effect;
pub mod kind;
pub mod known_names;
pub mod nccl_ib_hca;
pub mod nccl_int;
pub mod nccl_level;
pub mod nccl_socket_ifname;
mod sorted_table;
pub mod ucx_allow_list;
pub mod ucx_net_devices;
pub mod ucx_tls;
pub mod ucx_value;
pub mod vars;
pub mod version;
