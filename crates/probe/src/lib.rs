//! Gathers facts about a machine or a container, and never judges them.
//!
//! [`script`] is the one POSIX shell script that reads them, [`stream`] what it prints, [`local`] runs it here, and
//! [`observe`] makes an [`Observation`](model::observation::Observation) of its stream.

pub mod local;
pub mod observe;
pub mod script;
pub mod stream;
