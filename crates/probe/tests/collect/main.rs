//! The collecting script, run by each shell that is here, over prepared trees and over this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr
)]

mod bounds;
mod listener;
mod quiet;
mod secrets;
mod shells;
mod tree;
