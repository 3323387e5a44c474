//! What a worker asks for, held against the conventions of the cloud that its cluster is declared to run on.
//!
//! No check of its own: without a declaration there is nothing to hold it against. Only what a provider documents is a
//! rule here; names of device plugins that a site chooses are not.

use model::{CheckResult, Deployment, Place, Status, Worker};

use crate::check::Cause;
use crate::expected::Expected;
use crate::fabric::{self, Fabric, Rdma};
use crate::finding::{Finding, Findings};

/// A cloud that a configuration can declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Amazon EKS: EFA.
    Aws,
    /// Google GKE: RoCE networks attached by annotation, or device claims.
    Gke,
    /// Azure AKS: InfiniBand.
    Azure,
    /// CoreWeave: InfiniBand, RoCE on some machines.
    Coreweave,
    /// Nebius: InfiniBand.
    Nebius,
    /// Nscale: InfiniBand.
    Nscale,
    /// Oracle OKE: RoCE.
    Oci,
}

/// The name of its results.
const NAME: &str = "policy/provider";

/// GKE's resources for the networks of its machines.
const GKE_NETWORKS: &str = "networking.gke.io.networks/";

/// GKE's annotation that attaches them.
const GKE_INTERFACES: &str = "networking.gke.io/interfaces";

/// A worker asks for what the declared provider does not have.
pub const FABRIC_NOT_OF_PROVIDER: Cause = Cause {
    id: "fabric-not-of-provider",
    what: "a worker asks for a fabric that the provider in the configuration file does not offer",
    why: "the recipe was written for another cloud: no node offers the resource, so the pods stay Pending",
    fix: "request what the provider's nodes offer (kubectl get nodes -o yaml | grep -i -E 'rdma|ib|efa'), or correct [fabric] provider in check-interconnect.toml",
    quiet_if: "no provider is declared; device claims and the host's own devices, which the name does not tell; a resource that fits",
    source: "ai-dynamo/dynamo recipes/addons/providers; the providers' own documentation",
};

/// GKE's networks are asked for and not attached.
pub const NETWORKS_NOT_ATTACHED: Cause = Cause {
    id: "gke-networks-not-attached",
    what: "on GKE, rdma-N networks are asked for without the annotation networking.gke.io/interfaces",
    why: "the annotation attaches the NICs; without it the pod has no RDMA interface",
    fix: "add the annotation networking.gke.io/interfaces with the same networks",
    quiet_if: "the annotation is there; device claims; the host's network; provider gke is not declared (a note of env/kv-fabric)",
    source: "Google Cloud: GPUDirect RDMA on GKE; ai-dynamo/dynamo recipes/addons/providers (gke-roce)",
};

impl Provider {
    /// The name in the configuration file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Aws => "aws",
            Self::Gke => "gke",
            Self::Azure => "azure",
            Self::Coreweave => "coreweave",
            Self::Nebius => "nebius",
            Self::Nscale => "nscale",
            Self::Oci => "oci",
        }
    }

    /// Whether the provider has machines with this fabric.
    pub fn offers(self, fabric: Expected) -> bool {
        match fabric {
            Expected::Tcp | Expected::Mnnvl => true,
            Expected::Efa => self == Self::Aws,
            Expected::Infiniband => !matches!(self, Self::Aws | Self::Gke | Self::Oci),
            Expected::Roce => matches!(self, Self::Gke | Self::Oci | Self::Coreweave),
        }
    }

    /// What to request where nothing is requested.
    fn request(self) -> &'static str {
        match self {
            Self::Aws => {
                "request vpc.amazonaws.com/efa on both roles, with the LIBFABRIC backend in vLLM and SGLang"
            }
            Self::Gke => {
                "request networking.gke.io.networks/rdma-N on both roles, with the annotation networking.gke.io/interfaces, or claim the NICs"
            }
            Self::Azure => {
                "request the InfiniBand resource of the node pool on both roles (rdma/shared_ib, rdma/hca_shared_devices_a), and keep both in one node pool"
            }
            Self::Coreweave | Self::Nebius | Self::Nscale => "request rdma/ib on both roles",
            Self::Oci => {
                "request the RDMA virtual functions on both roles (nvidia.com/sriov-rdma-vf where Oracle's operator offers them), or use the host's network"
            }
        }
    }
}

/// What the conventions of a provider add to the findings of a deployment.
pub fn provider_conventions(
    deployment: &Deployment,
    provider: Provider,
    results: &mut [CheckResult],
) -> Vec<CheckResult> {
    for result in results
        .iter_mut()
        .filter(|r| r.cause == Some("rdma-resource-missing") && r.status != Status::Ok)
    {
        result.fix = Some(format!(
            "{}, or keep both roles on one host on purpose",
            provider.request()
        ));
    }
    let mut findings = Findings::of(&deployment.name);
    for worker in deployment.kv_workers() {
        let asked = fabric::of(worker, deployment);
        if let Some((place, what)) = foreign(&asked, provider) {
            findings.push(differs(worker, provider, place, &what));
        } else if provider == Provider::Gke {
            attached(worker, &asked, &mut findings);
        }
    }
    findings.into_results()
}

/// What is asked for and the provider does not have, unless something that it has is asked for too.
fn foreign<'f>(asked: &Fabric<'f>, provider: Provider) -> Option<(&'f Place, String)> {
    if asked.compute_domain.is_some() {
        return None;
    }
    let efa = asked
        .efa
        .map(|r| (&r.place, format!("{}: {}", r.name, r.quantity)));
    let resource = match asked.rdma {
        Some(rdma @ Rdma::Resource(resource)) => Some((resource, rdma.describe())),
        Some(_) => return None,
        None => None,
    };
    if provider == Provider::Aws {
        return match (efa, resource) {
            (None, Some((resource, what))) => Some((&resource.place, what)),
            _ => None,
        };
    }
    let Some((resource, what)) = resource else {
        return efa;
    };
    let of_gke = resource.name.starts_with(GKE_NETWORKS);
    let roce = resource
        .name
        .to_ascii_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|w| w.starts_with("roce"));
    let wrong = match provider {
        Provider::Gke => !of_gke,
        Provider::Azure | Provider::Nebius | Provider::Nscale => of_gke || roce,
        Provider::Coreweave | Provider::Oci => of_gke,
        Provider::Aws => false,
    };
    wrong.then_some((&resource.place, what))
}

fn differs(worker: &Worker, provider: Provider, place: &Place, what: &str) -> Finding {
    let role = worker.role.as_str();
    Finding::warn(
        NAME,
        &FABRIC_NOT_OF_PROVIDER,
        format!(
            "{role} asks for {what}, which {} does not offer",
            provider.as_str()
        ),
    )
    .fix(provider.request())
    .worker(worker)
    .at(place, format!("{role}: not on {}", provider.as_str()))
}

fn attached(worker: &Worker, asked: &Fabric<'_>, findings: &mut Findings) {
    let Some(Rdma::Resource(resource)) = asked.rdma else {
        return;
    };
    let annotated = worker.annotations.iter().any(|(n, _)| n == GKE_INTERFACES);
    if !resource.name.starts_with(GKE_NETWORKS) || annotated || worker.host_network {
        return;
    }
    let role = worker.role.as_str();
    findings.push(
        Finding::warn(
            NAME,
            &NETWORKS_NOT_ATTACHED,
            format!(
                "{role} asks for {} without the annotation {GKE_INTERFACES}",
                resource.name
            ),
        )
        .worker(worker)
        .at(&resource.place, format!("{role}: not attached")),
    );
}
