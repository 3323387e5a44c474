//! Both ways into a cluster against the stand-in API server: what works, and what can go wrong.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::needless_pass_by_value
)]

mod access;
mod containers;
mod credentials;
mod foreign;
mod load;
mod support;
