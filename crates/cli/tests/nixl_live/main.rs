//! `nixl` over pods: prepared trees, logs and rights against the stand-in API server, natively and through kubectl; and
//! a real NIXL in two isolated workers of this machine (`tests/lab/two-workers.sh`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

#[path = "../../../../tests/lab/held.rs"]
mod held;
mod lab;
mod logs;
mod real;
mod trees;
#[path = "../../../../tests/lab/wheels.rs"]
mod wheels;
