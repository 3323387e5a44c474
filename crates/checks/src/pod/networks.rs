//! Networks that the pod attaches have their interfaces inside.
//!
//! RoCE needs the network card's IP interface in the pod: a virtual function whose network was not attached has neither
//! address nor GID. Multus attaches the networks of an annotation and writes what it did into another one; InfiniBand
//! needs no interface, and a pod on its node's network has the node's.

use model::observation::Fact;
use model::observation::rdma::LinkLayer;
use recipe::live;

use super::view::PodView;
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "pod/networks";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "networks that the pod attaches are inside",
    source: include_str!("networks.rs"),
    causes: &[NOT_ATTACHED],
    notes: &[HOST],
    run: Run::Pod(run),
};

const NOT_ATTACHED: Cause = Cause {
    id: "network-not-attached",
    what: "the pod asks for networks, and fewer interfaces are inside",
    why: "a RoCE device without its interface has no address and no GID: UCX cannot use it, and takes TCP where that is allowed",
    fix: "kubectl describe pod shows whether Multus attached them (annotation k8s.v1.cni.cncf.io/network-status, and its events); a network of another namespace needs its prefix, as in default/NAME",
    quiet_if: "every interface is there; the pod is on its node's network; all ports are InfiniBand; the annotation cannot be read, or names no network",
    source: "k8snetworkplumbingwg/multus-cni (network-status); Mellanox/k8s-rdma-shared-dev-plugin#101",
};

const HOST: Cause = Cause {
    id: "pod-on-host-network",
    what: "the pod is on its node's network",
    why: "on the node's network: interfaces and ports are the node's, and shared with every other such pod",
    fix: "none",
    quiet_if: "the pod has a network of its own",
    source: "Kubernetes PodSpec hostNetwork",
};

const ASKED: &str = "k8s.v1.cni.cncf.io/networks";
const STATUS: &str = "k8s.v1.cni.cncf.io/network-status";

fn run(view: &PodView<'_>, findings: &mut Findings) {
    let Some(seen) = view.seen() else { return };
    if view.object.host_network {
        findings.push(Finding::ok(NAME, "the pod is on its node's network").told(&HOST));
        return;
    }
    let Some(text) = view.object.annotations.get(ASKED) else {
        return;
    };
    let Some(wanted) = live::networks_asked(text) else {
        return;
    };
    let inside = &seen.interfaces.interfaces;
    if wanted == 0 || inside.is_empty() {
        return;
    }
    let status = view
        .object
        .annotations
        .get(STATUS)
        .map(|status| live::networks_attached(status))
        .unwrap_or_default();
    // What Multus says that it attached, the pod's first network among it, else by number.
    let missing: Vec<&str> = status
        .iter()
        .map(String::as_str)
        .filter(|name| !inside.contains_key(*name))
        .collect();
    let own = inside
        .keys()
        .filter(|name| !is_virtual(name))
        .count()
        .saturating_sub(1);
    let plural = if wanted == 1 { "network" } else { "networks" };
    let detail = if !missing.is_empty() {
        format!(
            "{wanted} {plural} asked for, and the interface {} is not inside",
            missing.join(", ")
        )
    } else if own < wanted {
        format!("{wanted} {plural} asked for, and {own} beside the pod's own inside")
    } else {
        findings.push(Finding::ok(
            NAME,
            format!("{wanted} {plural} asked for, and attached"),
        ));
        return;
    };
    let infiniband = |fact: &Fact<LinkLayer>| matches!(fact.value(), Some(LinkLayer::InfiniBand));
    let mut ports = seen
        .rdma
        .devices
        .values()
        .flat_map(|d| d.ports.values())
        .peekable();
    if ports.peek().is_some() && ports.all(|p| infiniband(&p.link_layer)) {
        return;
    }
    findings.push(Finding::warn(NAME, &NOT_ATTACHED, detail).grade(model::Grade::Observed));
}

/// Interfaces that the kernel makes in every network namespace.
fn is_virtual(name: &str) -> bool {
    name == "lo"
        || [
            "tunl", "sit", "ip6tnl", "gre", "erspan", "ip_vti", "ip6_vti", "ip6gre",
        ]
        .iter()
        .any(|p| name.starts_with(p))
}
