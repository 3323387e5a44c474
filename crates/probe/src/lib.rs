//! Facts of a host or container from saved or pasted outputs of tools, logs and dumps of `/sys` and `/proc`.
//!
//! [`Recogniser`] finds out by content which tool printed which lines, and hands them to one parser per tool.
//! Parsers gather facts and never judge; they accept any input, keep no control characters, and keep a bounded
//! amount of it. [`sysfs::read_into`] turns the content of one file of `/sys` or `/proc` into facts, for dumps
//! as well as for a live collector.

mod clean;
mod command;
mod log;
mod parser;
mod recognise;
pub mod sysfs;
mod text;
mod tools;

pub use log::log_patterns;
pub use recognise::{Recogniser, recognise, recognise_all, recognise_bytes};
