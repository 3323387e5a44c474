//! Whole deployments, from the command line: against the stand-in API server, and from bundles.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr
)]

mod asked;
mod bundles;
#[path = "../pods/cases.rs"]
mod cases;
mod choice;
mod deployment;
mod drift;
mod faults;
mod hosts;
mod manifests;
mod rights;
mod stacks;
#[path = "../pods/support.rs"]
#[allow(dead_code)]
mod support;
