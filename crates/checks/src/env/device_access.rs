//! What the pod is given reaches the container that needs it, and is what the fabric needs.
//!
//! A device claim that only the pod declares reaches no container: the IMEX channel of a compute domain has to be
//! listed by the container. (Network drivers attach a NIC to the whole pod, so those claims are left alone.) A
//! `/dev/infiniband` host path beside EFA shows the provider devices that it may not open. GKE's A3 machines with
//! GPUDirect-TCPX have no RDMA device at all.

use crate::check::{Cause, Check, Run};
use crate::fabric;
use crate::finding::{Finding, Findings};
use crate::view::{View, WorkerView};

const NAME: &str = "env/device-access";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "devices reach the container that needs them",
    source: include_str!("device_access.rs"),
    causes: &[CLAIM_MISSING, HOST_PATH_BREAKS_EFA, TCPX],
    notes: &[],
    run: Run::Recipe(run),
};

const CLAIM_MISSING: Cause = Cause {
    id: "dra-claim-missing",
    what: "the pod declares a device claim that its containers do not list, or a container lists one that the pod does not declare",
    why: "a claimed device reaches only containers that list the claim; a claim that the pod does not declare is refused",
    fix: "declare the claim in the pod's resourceClaims and list it in resources.claims of the engine's container",
    quiet_if: "a NIC claim, which its driver attaches to the whole pod; the container is changed by a patch",
    source: "Kubernetes dynamic resource allocation",
};

const HOST_PATH_BREAKS_EFA: Cause = Cause {
    id: "dev-infiniband-hostpath-breaks-efa",
    what: "/dev/infiniband of the host is mounted beside an EFA resource in a container that is not privileged",
    why: "the EFA provider opens every device that it sees and gives up at the first one that it may not open: NCCL and NIXL then use TCP",
    fix: "remove the hostPath volume: the EFA device plugin puts its devices into the container",
    quiet_if: "no EFA; privileged containers, which may open every device",
    source: "libfabric prov/efa: fi_info -p efa fails with -61 beside mlx5 devices on p6-b200",
};

const TCPX: Cause = Cause {
    id: "gke-tcpx-tcpxo-no-nixl",
    what: "a GKE A3 High or A3 Mega machine (GPUDirect-TCPX or TCPXO) and NIXL over UCX",
    why: "these machines have no RDMA device: NCCL is fast through its plugin, NIXL is on TCP",
    fix: "use a machine type with RDMA NICs (A3 Ultra, A4, A4X) or a transport that knows TCPX",
    quiet_if: "another library carries KV; both roles on one host",
    source: "Google Cloud: GPUDirect-TCPX and TCPXO are NCCL plugins",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in view.kv.iter().filter(|w| !w.is_mock()) {
        if !view.is_part() {
            claims(view, kv, findings);
            tcpx(view, kv, findings);
        }
        host_path(kv, findings);
    }
}

fn claims(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    if !kv.is_as_written() {
        return;
    }
    let role = worker.role.as_str();
    let unlisted = worker
        .pod()
        .unlisted_claims
        .iter()
        .find(|c| fabric::is_compute_domain(c, view.deployment));
    if let Some(claim) = unlisted {
        findings.push(
            Finding::fail(
                NAME,
                &CLAIM_MISSING,
                format!(
                    "{role}: the pod claims {}, and no container lists it",
                    claim.name
                ),
            )
            .worker(worker)
            .at(&claim.place, format!("{role}: reaches no container")),
        );
    }
    if let Some(claim) = worker.claims.iter().find(|c| !c.declared) {
        findings.push(
            Finding::fail(
                NAME,
                &CLAIM_MISSING,
                format!("{role}: the container lists the claim {}, and its pod declares none of that name", claim.name),
            )
            .worker(worker)
            .at(&claim.place, format!("{role}: not in resourceClaims")),
        );
    }
}

fn host_path(kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let Some(efa) = kv.fabric.efa else { return };
    let path = worker
        .host_paths
        .iter()
        .find(|p| p.value.trim_end_matches('/') == "/dev/infiniband");
    let Some(path) = path.filter(|_| !worker.privileged) else {
        return;
    };
    let role = worker.role.as_str();
    // Hosts of this family have two mlx5 devices of their NVLink controllers beside the EFA ones.
    let certain = worker
        .pod()
        .machine
        .as_ref()
        .is_some_and(|m| m.value.starts_with("p6-b"));
    let detail = format!(
        "{role} mounts /dev/infiniband of the host beside {}",
        efa.name
    );
    let finding = if certain {
        Finding::fail(NAME, &HOST_PATH_BREAKS_EFA, detail)
    } else {
        Finding::warn(NAME, &HOST_PATH_BREAKS_EFA, detail)
    };
    findings.push(
        finding
            .worker(worker)
            .at(
                &path.place,
                format!("{role}: shows devices that it may not open"),
            )
            .context(&efa.place, "EFA is asked for"),
    );
}

fn tcpx(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    let machine = worker.pod().machine.as_ref().filter(|m| {
        matches!(
            m.value.as_str(),
            "nvidia-h100-80gb" | "nvidia-h100-mega-80gb"
        )
    });
    let plugin = worker
        .settings
        .iter()
        .map(|s| (s.name.as_str(), &s.place))
        .chain(
            worker
                .unknown_names
                .iter()
                .map(|n| (n.value.as_str(), &n.place)),
        )
        .find(|(n, _)| n.starts_with("NCCL_FASTRAK_") || n.starts_with("NCCL_GPUDIRECTTCPX_"));
    let Some(place) = machine.map(|m| &m.place).or(plugin.map(|(_, p)| p)) else {
        return;
    };
    if !kv.path.may_use_ucx() || view.is_single_host() || kv.fabric.any() {
        return;
    }
    let role = worker.role.as_str();
    findings.push(
        Finding::warn(
            NAME,
            &TCPX,
            format!("{role} runs on a machine with GPUDirect-TCPX, which has no RDMA device: KV goes over TCP"),
        )
        .worker(worker)
        .at(place, format!("{role}: no RDMA device here")),
    );
}
