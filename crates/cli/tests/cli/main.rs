//! The built program against whatever it can be given: broken files, secrets, hostile text, every exit code and
//! every output.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "a broken test should stop, and a skipped one says so"
)]
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "inputs are small, and read better so"
)]
#![cfg(unix)]

mod bad_input;
mod exit_codes;
mod explain;
mod hostile_text;
mod nixl;
mod node;
mod output;
mod secrets;
mod support;
mod topology;
mod vars;
