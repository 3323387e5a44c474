//! The program in the workers, with a stand-in for NIXL: how it moves, how it ends, and what it never says.
//!
//! They need python3 and a kernel that lets one process read another's memory; the tests of GPU memory need a C
//! compiler. What is missing is said.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod ends;
mod gone;
mod gpu;
mod pair;
