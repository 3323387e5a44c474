//! Layers of a worker, and what it means when one of several alike is not like the others in one of them.

use crate::check::Cause;

/// Where a difference lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// What the pod's spec asks for.
    Spec,
    /// Variables and flags of the engine.
    Settings,
    /// RDMA devices and ports.
    Rails,
    /// GPUs, their driver, and how network cards reach their memory.
    Gpus,
    /// Libraries and versions.
    Software,
    /// Limits and rights.
    Limits,
}

impl Layer {
    /// All of them, in the order in which they are told.
    pub(crate) const ALL: [Self; 6] = [
        Self::Spec,
        Self::Settings,
        Self::Rails,
        Self::Gpus,
        Self::Software,
        Self::Limits,
    ];

    /// The failure mode.
    pub(crate) fn cause(self) -> &'static Cause {
        match self {
            Self::Spec => &SPEC,
            Self::Settings => &SETTINGS,
            Self::Rails => &RAILS,
            Self::Gpus => &GPUS,
            Self::Software => &SOFTWARE,
            Self::Limits => &LIMITS,
        }
    }
}

/// What they have in common.
const QUIET: &str = "fewer than three workers of the workload could be compared; no value is that of more than half; every fourth worker has the other value (machines of another type); the workers are of different templates (a rollout); the value is one that each worker has of its own (a port, an address, a rank); it could not be read";
const FROM: &str =
    "comparison of the workers of one workload; no value is held against a number of ours";

pub(crate) const SPEC: Cause = Cause {
    id: "worker-spec-differs",
    what: "a worker's pod asks for something else than the others of its workload",
    why: "replicas are made from one template: this one is older or was changed, and KV takes another path there",
    fix: "restart the worker, so that it is made from the template of today (kubectl rollout status tells whether one is under way)",
    quiet_if: QUIET,
    source: FROM,
};

pub(crate) const SETTINGS: Cause = Cause {
    id: "worker-settings-differ",
    what: "the engine of one worker has another setting of transport or KV than the others of its workload",
    why: "KV to and from this worker takes another path, or none",
    fix: "find who sets it on this worker only: its pod's spec, a webhook, its node, its start script; then restart it",
    quiet_if: QUIET,
    source: FROM,
};

pub(crate) const RAILS: Cause = Cause {
    id: "worker-rails-differ",
    what: "a worker has other RDMA ports than the others of its workload: fewer, slower, of another kind",
    why: "each transfer is as fast as the slower end, and a rail that only one end has carries nothing",
    fix: "look at the node: check-interconnect node on it tells which port is down or slow; cordon it until it is like the others",
    quiet_if: QUIET,
    source: FROM,
};

pub(crate) const GPUS: Cause = Cause {
    id: "worker-gpus-differ",
    what: "a worker has other GPUs, or another GPU driver, than the others of its workload",
    why: "GPUDirect and NVLink depend on them: what the others do, this one may not",
    fix: "bring the node to the state of the others, or keep this workload off it",
    quiet_if: QUIET,
    source: FROM,
};

pub(crate) const SOFTWARE: Cause = Cause {
    id: "worker-software-differs",
    what: "a worker has other transport libraries loaded than the others of its workload",
    why: "another NIXL or UCX can refuse its peers, or take another transport",
    fix: "run the same image on all replicas, by its digest; a tag that moved gives each node the image of its day",
    quiet_if: QUIET,
    source: FROM,
};

pub(crate) const LIMITS: Cause = Cause {
    id: "worker-limits-differ",
    what: "a worker runs with other limits or rights than the others of its workload",
    why: "memory that cannot be locked cannot be registered for RDMA: this worker fails, or falls back, where the others do not",
    fix: "look at the container runtime of its node (LimitMEMLOCK), and at who changed its security context",
    quiet_if: QUIET,
    source: FROM,
};
