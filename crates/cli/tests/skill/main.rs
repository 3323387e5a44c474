//! The agent skill in front of a fresh build: its script, its guide, its evals and its labelled recipes.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod absent;
mod cases;
mod evals;
mod guide;
mod published;
mod size;
mod tools;
