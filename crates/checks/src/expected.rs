//! The fabric that a deployment asks for, held against the one that its cluster is declared to have.
//!
//! No check of its own: without a declaration there is nothing to hold it against.

use model::{CheckResult, Deployment, Place, Worker};

use crate::check::Cause;
use crate::fabric::{self, Fabric};
use crate::finding::{Finding, Findings};

/// A fabric that a configuration can declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// InfiniBand.
    Infiniband,
    /// RDMA over Converged Ethernet.
    Roce,
    /// AWS Elastic Fabric Adapter.
    Efa,
    /// Multi-node NVLink.
    Mnnvl,
    /// None: sockets.
    Tcp,
}

impl Expected {
    /// How a sentence names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Infiniband => "InfiniBand",
            Self::Roce => "RoCE",
            Self::Efa => "EFA",
            Self::Mnnvl => "multi-node NVLink",
            Self::Tcp => "TCP",
        }
    }
}

/// The name of its results.
const NAME: &str = "policy/fabric";

/// A deployment asks for another fabric than the declared one.
pub const FABRIC_NOT_AS_EXPECTED: Cause = Cause {
    id: "fabric-not-as-expected",
    what: "a worker asks for another fabric than the configuration file declares",
    why: "the recipe was written for another cluster: its pods stay Pending, or KV goes over something else than planned",
    fix: "request the declared fabric on both roles, or correct [fabric] expected in check-interconnect.toml",
    quiet_if: "no fabric is declared; the worker asks for none (env/kv-fabric tells that); the resource's name does not tell InfiniBand from RoCE",
    source: "the configuration file and the recipe",
};

/// One finding for each prefill or decode worker that asks for something else, none where nothing is asked for.
pub fn expected_fabric(deployment: &Deployment, expected: Expected) -> Vec<CheckResult> {
    let mut findings = Findings::of(&deployment.name);
    for worker in deployment.kv_workers() {
        let asked = fabric::of(worker, deployment);
        if asked.any() && !fits(&asked, expected) {
            findings.push(finding(worker, &asked, expected));
        }
    }
    findings.into_results()
}

fn finding(worker: &Worker, asked: &Fabric<'_>, expected: Expected) -> Finding {
    let role = worker.role.as_str();
    let summary = asked.summary();
    let finding = Finding::warn(
        NAME,
        &FABRIC_NOT_AS_EXPECTED,
        format!(
            "{role} asks for {summary}, and the configuration declares {}",
            expected.as_str()
        ),
    )
    .worker(worker);
    match place(asked) {
        Some(place) => finding.at(place, format!("{role}: {summary}")),
        None => finding,
    }
}

fn place<'f>(asked: &Fabric<'f>) -> Option<&'f Place> {
    asked
        .rdma
        .map(fabric::Rdma::place)
        .or(asked.efa.map(|r| &r.place))
        .or(asked.compute_domain.map(|c| &c.place))
}

/// A request for several fabrics fits where one of them is the declared one.
fn fits(asked: &Fabric<'_>, expected: Expected) -> bool {
    match expected {
        Expected::Efa => asked.efa.is_some(),
        Expected::Mnnvl => asked.compute_domain.is_some(),
        Expected::Tcp => false,
        // Device plugins let every site choose names: only a name that says the other fabric is another one.
        Expected::Infiniband => asked.rdma.is_some_and(|r| !says(&r.describe(), &["roce"])),
        Expected::Roce => asked
            .rdma
            .is_some_and(|r| !says(&r.describe(), &["ib", "infiniband"])),
    }
}

fn says(name: &str, words: &[&str]) -> bool {
    name.to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|w| words.contains(&w))
}

#[cfg(test)]
mod tests {
    use super::says;

    #[test]
    fn only_words_count() {
        assert!(says("rdma/ib: 4", &["ib"]));
        assert!(says("nvidia.com/roce_gdr: 1", &["roce"]));
        assert!(!says("rdma/ibp: 4", &["ib"]));
        assert!(!says("rdma/hca_shared_devices_a: 1", &["ib", "infiniband"]));
    }
}
