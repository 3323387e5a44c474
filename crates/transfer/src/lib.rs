//! A measured NIXL transfer between two workers, and which transport carried it.
//!
//! [`measure`] drives one small Python program in each worker over byte streams, whatever carries them (an exec of
//! Kubernetes, a child process), and gives a [`Measurement`]: what was moved, and what the kernels and the libraries
//! at both ends say about it. [`attribute`] says from a measurement which transport carried each leg, and how well
//! that is supported; [`faults`] says why a transfer did not come about. Both are pure: they judge a saved
//! measurement as well as a fresh one.
//!
//! The program needs nothing but the worker's own Python and NIXL, writes nothing to the worker's disk, and ends with
//! its stdin. [`Command`] is how it is started there.

mod attribute;
mod attribution;
mod command;
mod control;
mod counters;
mod drive;
mod faults;
mod launch;
mod link;
pub mod local;
mod message;
pub mod nixlbench;
mod observe;
mod pace;
mod plan;
mod program;
pub mod readiness;
mod record;
mod side;
mod silent;
mod table;
mod told;
mod weigh;
mod whose;

pub use attribute::attribute;
pub use attribution::{Attribution, Carrier, Evidence, EvidenceKind, Finding};
pub use command::{Command, Engine, environment};
pub use drive::measure;
pub use faults::faults;
pub use launch::launch;
pub use link::Streams;
pub use message::{Connection, HostFacts, PortFacts, Snapshot, Socket, Traffic};
pub use observe::{
    COUNTERS, Counted, Grown, Mover, Observed, Seen, amount, grown, observe, read_counters,
};
pub use pace::{Pace, pace};
pub use plan::{Leg, Memory, Operation, Plan};
pub use program::PROGRAM;
pub use record::{EndRecord, LegRecord, Measurement, Stop};
pub use side::{Both, Side};
pub use told::{OfEngine, told};
pub use whose::{Metric, Opened, Whose, metric, shared, whose};
