//! Real NIXL between two prefill and two decode workers of this machine, one of them broken on purpose.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod bad_end;
#[path = "../../../../tests/lab/held.rs"]
mod held;
mod lab;
#[path = "../../../../tests/lab/wheels.rs"]
mod wheels;
