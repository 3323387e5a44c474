//! Pods of prefill and decode workers resolve names, and nothing stands between them and their peers.
//!
//! On the host's network a pod resolves cluster names only with `dnsPolicy: ClusterFirstWithHostNet`. SR-IOV virtual
//! functions need a network attachment each, or they have no address. A service mesh's proxy sits between the pods
//! and breaks what NCCL, libfabric and UCX set up over TCP. Ranks that find each other through a headless Service
//! need addresses before the pods are ready.

use model::Resource;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::view::{View, WorkerView};

const NAME: &str = "env/pod-network";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "pods resolve names and reach each other",
    source: include_str!("pod_network.rs"),
    causes: &[HOST_NETWORK_DNS, MULTUS, MESH, HEADLESS],
    notes: &[],
    run: Run::Recipe(run),
};

const HOST_NETWORK_DNS: Cause = Cause {
    id: "hostnetwork-without-dnspolicy",
    what: "hostNetwork without dnsPolicy: ClusterFirstWithHostNet in a worker that uses names of the cluster",
    why: "the pod asks the node's resolver, which knows no cluster names: etcd, NATS, the router or the leader are not found",
    fix: "set dnsPolicy: ClusterFirstWithHostNet",
    quiet_if: "no name of the cluster is used in the file; dnsPolicy is set; a patch",
    source: "Kubernetes, DNS for Services and Pods: ClusterFirst falls back to Default on the host's network",
};

const MULTUS: Cause = Cause {
    id: "multus-annotation-missing",
    what: "SR-IOV virtual functions are asked for and fewer network attachments than functions are named",
    why: "a function without an attachment has no interface and no address in the pod: RoCE cannot use it",
    fix: "name one NetworkAttachmentDefinition for each function in k8s.v1.cni.cncf.io/networks (default/NAME for another namespace)",
    quiet_if: "as many attachments as functions; the host's network; device claims; the controller of the kind may add the annotation; InfiniBand resources",
    source: "SR-IOV network device plugin and Multus documentation",
};

const MESH: Cause = Cause {
    id: "istio-sidecar",
    what: "a service mesh puts its proxy into a worker's pod",
    why: "what NIXL, NCCL and libfabric set up over TCP goes through the proxy, and stalls or breaks there",
    fix: "set sidecar.istio.io/inject: \"false\" (or linkerd.io/inject: disabled) on the workers",
    quiet_if: "injection is off; ports are excluded from the proxy; the namespace decides, which the file does not show",
    source: "Istio: sidecar injection; reports of NCCL and NIXL behind Envoy",
};

const HEADLESS: Cause = Cause {
    id: "dns-headless",
    what: "ranks meet at a headless Service that does not publish addresses of pods that are not ready",
    why: "no rank becomes ready before it has met the others, and none is found before it is ready: the start hangs",
    fix: "set publishNotReadyAddresses: true in the Service",
    quiet_if: "LeaderWorkerSet and Grove (they make the Service themselves); the Service is not in the input; one node",
    source: "Kubernetes Service API, publishNotReadyAddresses",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    if view.is_part() {
        return;
    }
    for kv in view.kv.iter().filter(|w| !w.is_mock()) {
        host_network(kv, findings);
        multus(kv, findings);
        mesh(kv, findings);
        headless(view, kv, findings);
    }
}

fn host_network(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let policy = worker.pod().dns_policy.as_ref();
    let resolves =
        policy.is_some_and(|p| p.value == "ClusterFirstWithHostNet" || p.value == "None");
    if !worker.host_network || resolves || !kv.is_as_written() {
        return;
    }
    let role = worker.role.as_str();
    let Some(place) = worker
        .uses_cluster_names
        .as_deref()
        .or(kv.is_dynamo().then_some(&worker.place))
    else {
        return;
    };
    let mut finding = Finding::warn(
        NAME,
        &HOST_NETWORK_DNS,
        format!("{role} is on the host's network and keeps its resolver: names of the cluster are not found"),
    )
    .worker(worker)
    .at(place, format!("{role}: uses names of the cluster"));
    if let Some(policy) = policy {
        finding = finding.context(&policy.place, "dnsPolicy");
    }
    findings.push(finding);
}

/// Whether a resource stands for virtual functions on Ethernet.
fn is_virtual_function(resource: &Resource) -> bool {
    let Some((domain, rest)) = resource.name.split_once('/') else {
        return false;
    };
    let rest = rest.to_ascii_lowercase();
    let mut words = rest.split(['-', '_', '.']);
    let infiniband =
        rest.split(['-', '_', '.']).any(|w| w.starts_with("ib")) || rest.contains("infiniband");
    !infiniband
        && (domain == "openshift.io"
            || rest.contains("sriov")
            || words.any(|w| w == "vf" || w == "vfs"))
}

fn multus(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    if worker.host_network || !kv.is_as_written() {
        return;
    }
    let Some(resource) = worker
        .resources
        .iter()
        .find(|r| r.is_requested() && is_virtual_function(r))
    else {
        return;
    };
    let annotated = worker
        .annotations
        .iter()
        .any(|(n, _)| n == "k8s.v1.cni.cncf.io/networks" || n == "k8s.volcengine.com/pod-networks");
    let wanted = resource.count().unwrap_or(1);
    let enough = match &worker.pod().networks {
        Some(networks) => networks.value >= wanted,
        None => annotated,
    };
    if enough {
        return;
    }
    let role = worker.role.as_str();
    let have = worker.pod().networks.as_ref().map_or(0, |n| n.value);
    let mut finding = Finding::warn(
        NAME,
        &MULTUS,
        format!(
            "{role} asks for {}: {} and names {have} network attachments",
            resource.name, resource.quantity
        ),
    )
    .worker(worker)
    .at(&resource.place, format!("{role}: virtual functions"));
    if let Some(networks) = &worker.pod().networks {
        finding = finding.context(&networks.place, "the attachments");
    }
    findings.push(finding);
}

fn mesh(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let Some(mesh) = &worker.pod().mesh else {
        return;
    };
    let role = worker.role.as_str();
    findings.push(
        Finding::warn(
            NAME,
            &MESH,
            format!(
                "{role}: {} puts a mesh's proxy between the worker and its peers",
                mesh.value
            ),
        )
        .worker(worker)
        .at(&mesh.place, format!("{role}: behind a proxy")),
    );
}

fn headless(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let Some(address) = worker.setting("--dist-init-addr") else {
        return;
    };
    let several = worker.nodes > 1
        || worker
            .literal("--nnodes")
            .and_then(|n| n.parse::<u64>().ok())
            .is_some_and(|n| n > 1);
    let Some(value) = address.value.literal().filter(|_| several) else {
        return;
    };
    let service = view.deployment.headless_services().find(|s| {
        !s.publishes_not_ready
            && !s.name.is_empty()
            && value.split([':', '.', '/']).any(|part| part == s.name)
    });
    let Some(service) = service else { return };
    let role = worker.role.as_str();
    findings.push(
        Finding::warn(
            NAME,
            &HEADLESS,
            format!(
                "{role}: ranks meet at Service {}, which has no address of a pod before it is ready",
                service.name
            ),
        )
        .worker(worker)
        .at(&service.place, "no publishNotReadyAddresses: true")
        .context(&address.place, format!("{role}: meets there")),
    );
}
