//! Transfers between two pods, from the command line: real NIXL in two isolated workers of this machine
//! (`tests/lab/two-workers.sh`), reached through the stand-in API server, natively and through kubectl.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr
)]

mod bench;
mod bounds;
mod hangs;
#[path = "../../../../tests/lab/held.rs"]
mod held;
mod lab;
mod measured;
mod observed;
mod timeout;
#[path = "../../../../tests/lab/wheels.rs"]
mod wheels;
