//! Checks: pure functions from facts to results, one file each, registered in one table.
//!
//! A check reads facts, never a file or a clock. It states what it found, about whom, where it stands, and when it
//! stays quiet; what follows for the whole is worked out in one place ([`judge`]).

mod branches;
mod check;
mod collectives;
mod compare;
mod env;
mod expected;
mod fabric;
mod finding;
mod fixes;
mod gathered;
mod image;
mod inputs;
mod judge;
mod judge_nixl;
mod judge_node;
mod judge_observed;
mod judge_pods;
mod judge_transfer;
mod kv_path;
mod may_stop;
mod model_name;
mod nixl;
mod node;
mod node_topology;
mod node_view;
mod pod;
mod pods_verdict;
mod policy;
mod provider;
mod registry;
mod requirements;
mod rights;
mod view;

pub use check::{Cause, Check};
pub use expected::{Expected, FABRIC_NOT_AS_EXPECTED, expected_fabric};
pub use fixes::{Change, Fix, fixes};
pub use gathered::Gathered;
pub use inputs::PROBLEMS;
pub use judge::{judge_env, judge_env_once, judge_env_with, shell_word};
pub use judge_nixl::{NixlFacts, judge_nixl};
pub use judge_node::{NodeFacts, judge_node};
pub use judge_observed::judge_observed;
pub use judge_pods::{Around, ProbedPod, judge_check, judge_nixl_pods, judge_pods};
pub use judge_transfer::{TransferFacts, judge_transfer, memory_of, operation_of};
pub use nixl::live::judge::judge_nixl_here;
pub use nixl::live::view::{Beside, LogSeen, NoTrial, TrialSeen};
pub use nixl::observed_traffic::{ObservedFacts, Traffic};
pub use nixl::sides::LogFile;
pub use nixl::transfer::Tried;
pub use node::ucx_transports::{Family, family};
pub use node_topology::topology;
pub use pod::evidence::SeenBy;
pub use pod::prepare::live_of;
pub use pod::workers::{deployment_of, is_of, workload_of};
pub use policy::{OfPolicy, Policy, Unchanged};
pub use provider::{FABRIC_NOT_OF_PROVIDER, NETWORKS_NOT_ATTACHED, Provider, provider_conventions};
pub use registry::{CHECKS, cause, check};
pub use requirements::{REQUIRED, Required};
pub use rights::{By, Needed, RIGHTS, RightsSeen};
