//! Checks of collective communication (NCCL, Gloo) as logs show it. None of it carries KV; a finding counts for KV
//! only where it shows something that UCX meets as well, or that keeps the engine from starting.

pub(crate) mod gloo;
pub(crate) mod nccl_files;
pub(crate) mod nccl_network;
pub(crate) mod nccl_nvlink;
