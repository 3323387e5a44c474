//! Real transfers of NIXL between two isolated workers on this machine.
//!
//! They need root, namespaces, and wheels of NIXL (`.ci/nixl` gets them); what is missing is said.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod faults;
#[path = "../../../../tests/lab/held.rs"]
mod held;
mod killed;
mod lab;
mod transfers;
#[path = "../../../../tests/lab/wheels.rs"]
mod wheels;
