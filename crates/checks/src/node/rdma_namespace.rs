//! How network namespaces share RDMA devices.
//!
//! In shared mode every container sees every device of the host, and device nodes decide what it may open. In
//! exclusive mode a container sees only devices that were moved into its namespace (`rdma-cni` does that).

use model::observation::host::Place;
use model::observation::rdma::NetnsMode;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/rdma-namespace";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA devices are in this network namespace",
    source: include_str!("rdma_namespace.rs"),
    causes: &[EXCLUSIVE],
    notes: &[],
    run: Run::Place(run),
};

const EXCLUSIVE: Cause = Cause {
    id: "rdma-netns-exclusive",
    what: "the RDMA subsystem is in exclusive mode, and no device is in this namespace",
    why: "a container then has no RDMA device unless one was moved into it; the shared device plugin refuses this mode",
    fix: "chain rdma-cni behind the network that gives the virtual function, or set the shared mode on the node (rdma system set netns shared)",
    quiet_if: "a device is in this namespace",
    source: "iproute2 rdma-system(8); Mellanox/k8s-rdma-shared-dev-plugin#87; sriov-network-operator#481",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let rdma = &view.seen.rdma;
    let Some(mode) = rdma.netns_mode.value() else {
        return;
    };
    let mode_fact = &rdma.netns_mode;
    let finding = match mode {
        NetnsMode::Shared => Finding::ok(
            NAME,
            "RDMA devices are shared: every network namespace sees all of them, device nodes decide who may use them",
        ),
        NetnsMode::Exclusive if !rdma.devices.is_empty() => Finding::ok(
            NAME,
            format!(
                "RDMA devices are exclusive to their network namespace; here: {}",
                rdma.devices.keys().cloned().collect::<Vec<_>>().join(", ")
            ),
        ),
        NetnsMode::Exclusive if rdma.listings.is_empty() => Finding::skipped(
            NAME,
            model::Reason::NotVisible,
            "RDMA devices are exclusive to their network namespace; which are in this one is not shown",
        ),
        NetnsMode::Exclusive => {
            let detail =
                "RDMA devices are exclusive to their network namespace, and this one has none";
            if view.seen.host.place.value() == Some(&Place::Host) {
                Finding::warn(
                    NAME,
                    &EXCLUSIVE,
                    format!("{detail}; they may be in containers"),
                )
            } else if view.is_kv_worker() {
                Finding::fail(NAME, &EXCLUSIVE, detail)
            } else {
                Finding::warn(NAME, &EXCLUSIVE, detail)
            }
        }
    };
    findings.push(finding.seen(mode_fact, "mode"));
}
