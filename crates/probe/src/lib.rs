//! Facts of a host or container: collected here, or from saved or pasted outputs of tools, logs and dumps of `/sys`
//! and `/proc`. Nothing here judges.
//!
//! [`Recogniser`] finds out by content which tool printed which lines, and hands them to one parser per tool.
//! Parsers gather facts and never judge; they accept any input, keep no control characters, and keep a bounded
//! amount of it. [`sysfs::read_into`] turns the content of one file of `/sys` or `/proc` into facts, for dumps
//! as well as for a live collector.
//!
//! [`script`] is the one POSIX shell script that collects on a machine or in a container, [`stream`] what it prints,
//! [`local`] runs it here, [`carried`] finds its streams in logs, and [`observe`] makes facts of them.

pub mod carried;
mod clean;
mod command;
pub mod local;
mod log;
pub mod observe;
mod parser;
mod recognise;
pub mod script;
pub mod stream;
pub mod sysfs;
mod text;
mod tools;

pub use log::log_patterns;
pub use recognise::{Recogniser, is_plain, recognise, recognise_all, recognise_bytes};
