//! What was decided about findings, from the outside: suppressions, the configuration file, baselines and fixes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what it expects by failing"
)]

mod baseline;
mod config;
mod fix;
mod support;
mod suppress;
