//! What a pod's spec leaves open, and a look inside has settled.
//!
//! A recipe's rules warn of what its text does not show: no RDMA resource, no IPC_LOCK. Where all pods that such a
//! finding is about were looked into, and have what it misses, it would be a false alarm: what is inside counts, whatever
//! way it came.

use model::observation::rdma::Rdma;
use model::{CheckResult, Status};

use crate::node::ports::is_efa;
use crate::node_view::NodeFacts;

/// What a look inside has to show.
#[derive(Clone, Copy)]
enum Shows {
    /// The container runs.
    Runs,
    /// A device node of RDMA.
    Device,
    /// An EFA device and a device node.
    Efa,
    /// The same, and an engine that has libfabric in its memory.
    EfaInUse,
    /// The limit of locked memory.
    MemoryLimit,
}

/// Causes that a look inside settles.
const CAUSES: &[(&str, Shows)] = &[
    ("rdma-resource-missing", Shows::Device),
    ("one-role-lacks-fabric", Shows::Device),
    ("privileged-without-rdma-resource", Shows::Device),
    ("no-fabric-and-no-transport-setting", Shows::Device),
    ("gke-tcpx-tcpxo-no-nixl", Shows::Device),
    ("ucx-tls-rdma-only-no-device", Shows::Device),
    ("libfabric-without-efa", Shows::Efa),
    ("efa-image-unverified", Shows::EfaInUse),
    ("claim-template-placeholder", Shows::Runs),
    // The limit itself is judged by node/locked-memory and pod/locked-memory.
    ("ipc-lock-missing", Shows::MemoryLimit),
    ("image-runs-nonroot", Shows::MemoryLimit),
];

fn has_node(rdma: &Rdma) -> bool {
    rdma.nodes
        .iter()
        .any(|(name, node)| name.starts_with("uverbs") && node.exists.value() == Some(&true))
}

fn shows(facts: &NodeFacts, what: Shows) -> bool {
    let seen = &facts.observation;
    match what {
        Shows::Runs => true,
        Shows::Device => has_node(&seen.rdma),
        Shows::Efa => {
            has_node(&seen.rdma)
                && seen
                    .rdma
                    .devices
                    .iter()
                    .any(|(name, device)| is_efa(name, device))
        }
        Shows::EfaInUse => {
            let libraries = seen
                .process
                .processes
                .values()
                .filter_map(|process| process.libraries.value())
                .flatten();
            shows(facts, Shows::Efa)
                && libraries
                    .into_iter()
                    .any(|mapped| mapped.path.contains("/libfabric.so"))
        }
        Shows::MemoryLimit => {
            seen.limits.memlock_soft.is_seen()
                || seen
                    .process
                    .processes
                    .values()
                    .any(|p| p.limits.memlock_soft.is_seen())
        }
    }
}

/// Whether what a finding misses was seen inside all pods that it is about; `None` stands for one that nobody could
/// look into.
pub(crate) fn is_settled<'f>(
    result: &CheckResult,
    pods: impl IntoIterator<Item = Option<&'f NodeFacts>>,
) -> bool {
    let what = match result.status {
        // That the spec adds a capability is no news beside whether it is in force.
        Status::Ok if result.name == "env/locked-memory" => Some(Shows::MemoryLimit),
        Status::Warn | Status::Fail => CAUSES
            .iter()
            .find(|(cause, _)| Some(*cause) == result.cause)
            .map(|(_, what)| *what),
        _ => None,
    };
    let Some(what) = what else {
        return false;
    };
    let mut any = false;
    pods.into_iter()
        .inspect(|_| any = true)
        .all(|facts| facts.is_some_and(|facts| shows(facts, what)))
        && any
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_cause_exists() {
        for (cause, _) in super::CAUSES {
            assert!(crate::registry::cause(cause).is_some(), "{cause}");
        }
    }
}
