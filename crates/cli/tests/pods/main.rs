//! Pods of a cluster, from the command line: against the stand-in API server, natively and through a real kubectl.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr
)]

mod cases;
mod choice;
mod closed;
mod ending;
mod faults;
mod hostile;
mod inside;
mod programs;
mod report;
mod scale;
mod support;
