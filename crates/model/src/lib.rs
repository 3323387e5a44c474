//! The words of the project as types: what is observed (facts), what is said about it (results),
//! and what follows from that (readiness, verdict, exit code).
//!
//! Nothing in this crate reads a file, a clock or a socket, so that everything built on it can be
//! replayed, fuzzed and tested with plain values.

pub mod coverage;
pub mod deployment;
pub mod exit;
pub mod input;
pub mod observation;
pub mod observed;
pub mod place;
pub mod pod;
pub mod report_v1;
pub mod result;
pub mod setting;
pub mod topology;
pub mod transfer;
pub mod verdict;
pub mod worker;

pub use coverage::{Accepted, Coverage};
pub use deployment::{
    ClaimTemplate, ComputeDomain, Deployment, Facts, HeadlessService, Partial, Surroundings,
};
pub use exit::{Exit, FailOn};
pub use input::{Input, InputProblem, Outcome};
pub use observation::{Fact, Merge, Observation};
pub use observed::{EngineSeen, Found, Medium, Moved, ObservedTraffic};
pub use place::Place;
pub use pod::{ClusterNode, Container, Fault, FaultKind, PodObject};
pub use result::{CheckResult, Grade, Reason, Source, Status, Subject};
pub use setting::{
    CONFIG_FAULT, Form, MODEL, NOT_JSON, Setting, TRTLLM_MODE, VLLM_MODE, Value, is_variable,
};
pub use transfer::{
    Carrier, MemoryKind, Operation, Transfer, TransferEnd, TransferLeg, TransferStop,
};
pub use verdict::{NextStep, Readiness, Report};
pub use worker::{
    Accelerator, Claim, CommandFault, Engine, GroupPart, Hidden, Located, Named, NamedBy, PodFacts,
    Resource, Role, Worker,
};
