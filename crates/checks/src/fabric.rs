//! What a worker asks the cluster for: RDMA devices, EFA, a compute domain, or the host's own devices.

use model::{Claim, Deployment, Place, Resource, Worker};

/// A fabric request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rdma<'f> {
    /// An extended resource of an RDMA device plugin.
    Resource(&'f Resource),
    /// A DRA claim on a NIC.
    Claim(&'f Claim),
    /// Host devices: privileged with the host's network or `/dev/infiniband`.
    HostDevices(&'f Place),
}

impl<'f> Rdma<'f> {
    pub(crate) fn place(self) -> &'f Place {
        match self {
            Rdma::Resource(r) => &r.place,
            Rdma::Claim(c) => &c.place,
            Rdma::HostDevices(p) => p,
        }
    }

    pub(crate) fn describe(self) -> String {
        match self {
            Rdma::Resource(r) => format!("{}: {}", r.name, r.quantity),
            Rdma::Claim(c) => format!("device claim {}", c.template.as_deref().unwrap_or(&c.name)),
            Rdma::HostDevices(_) => "host devices".to_owned(),
        }
    }
}

/// All that a worker asks for.
#[derive(Debug, Clone)]
pub(crate) struct Fabric<'f> {
    pub(crate) rdma: Option<Rdma<'f>>,
    pub(crate) efa: Option<&'f Resource>,
    pub(crate) compute_domain: Option<&'f Claim>,
    /// RDMA resources that are named, with a quantity of zero included.
    pub(crate) gke_networks: bool,
    /// The container sees every device of its host.
    pub(crate) privileged: bool,
}

impl Fabric<'_> {
    /// Whether anything but plain Ethernet is asked for.
    pub(crate) fn any(&self) -> bool {
        self.rdma.is_some() || self.efa.is_some() || self.compute_domain.is_some()
    }

    /// One line for the head of a report.
    pub(crate) fn summary(&self) -> String {
        let mut parts = Vec::new();
        if let Some(rdma) = self.rdma {
            parts.push(rdma.describe());
        }
        if let Some(efa) = self.efa {
            parts.push(format!("{}: {}", efa.name, efa.quantity));
        }
        if let Some(claim) = self.compute_domain {
            parts.push(format!(
                "compute domain {}",
                claim.template.as_deref().unwrap_or(&claim.name)
            ));
        }
        if parts.is_empty() && self.privileged {
            parts.push("privileged".to_owned());
        }
        if parts.is_empty() {
            "no fabric requested".to_owned()
        } else {
            parts.join(" + ")
        }
    }
}

/// EFA's resource name on Kubernetes.
pub(crate) const EFA: &str = "vpc.amazonaws.com/efa";

/// Whether an extended resource stands for RDMA devices. Device plugins let every site choose names, so the
/// rule goes by the words in use: `rdma/…`, `…/roce…`, `…/hca…`, `nvidia.com/ib`, `mellanox.com/…`,
/// `networking.gke.io.networks/rdma-N`, `vke.volcengine.com/rdma`, SR-IOV virtual functions of NICs.
pub(crate) fn is_rdma_resource(name: &str) -> bool {
    let Some((domain, rest)) = name.split_once('/') else {
        return false;
    };
    if name == EFA {
        return false;
    }
    let rest = rest.to_ascii_lowercase();
    let words = || rest.split(['-', '_', '.']);
    domain == "rdma"
        || domain == "mellanox.com"
        || rest.contains("rdma")
        || rest.contains("roce")
        || rest.contains("infiniband")
        || words().any(|w| matches!(w, "ib" | "hca" | "mlnxnics" | "mlnx"))
        || (domain == "openshift.io" && rest.contains("sriov"))
        || rest.contains("sriov")
}

fn words_of_claim(claim: &Claim) -> String {
    format!(
        "{} {}",
        claim.name,
        claim.template.as_deref().unwrap_or_default()
    )
    .to_ascii_lowercase()
}

/// Whether a claim is on the channel of a compute domain (multi-node NVLink through IMEX).
pub(crate) fn is_compute_domain(claim: &Claim, deployment: &Deployment) -> bool {
    let named = deployment
        .compute_domains()
        .any(|d| d.template.is_some() && d.template == claim.template);
    let words = words_of_claim(claim);
    named || words.contains("compute-domain") || words.contains("imex") || words.contains("mnnvl")
}

fn is_nic_claim(claim: &Claim, deployment: &Deployment) -> bool {
    let classes = deployment
        .claim_templates()
        .find(|t| Some(&t.name) == claim.template.as_ref())
        .map(|t| t.devices.as_slice())
        .unwrap_or_default();
    let by_class = classes.iter().any(|c| {
        let c = c.to_ascii_lowercase();
        c.contains("rdma")
            || c.contains("roce")
            || c.contains("sriov")
            || c.contains("dranet")
            || c.contains("nic")
            || c.contains("mellanox")
            || c.contains("net.")
    });
    let words = words_of_claim(claim);
    by_class
        || words.contains("rdma")
        || words.contains("roce")
        || words.contains("infiniband")
        || words
            .split(['-', '_', ' ', '.'])
            .any(|w| matches!(w, "nic" | "nics" | "ib" | "hca"))
}

/// What this worker asks for.
pub(crate) fn of<'f>(worker: &'f Worker, deployment: &'f Deployment) -> Fabric<'f> {
    let resource = worker
        .resources
        .iter()
        .find(|r| is_rdma_resource(&r.name) && r.is_requested());
    // GKE's `rdma-N: 0` together with the interfaces annotation is its documented way to attach the NICs.
    let gke_networks = worker
        .resources
        .iter()
        .any(|r| r.name.starts_with("networking.gke.io.networks/rdma"));
    // A network driver may attach a claim to the whole pod, so it counts although no container lists it.
    let claim = worker
        .claims
        .iter()
        .chain(&worker.pod().unlisted_claims)
        .find(|c| !is_compute_domain(c, deployment) && is_nic_claim(c, deployment));
    let device_mount = worker.host_paths.first().map(|p| &p.place);
    let host_devices = (worker.privileged && (worker.host_network || device_mount.is_some()))
        .then(|| device_mount.unwrap_or(&worker.place));
    let gke = gke_networks
        .then(|| {
            worker
                .annotations
                .iter()
                .find(|(n, _)| n == "networking.gke.io/interfaces")
                .map(|(_, p)| p)
        })
        .flatten();
    let attached = worker
        .annotations
        .iter()
        .find(|(n, _)| n.starts_with("rdma.ome.io/"))
        .map(|(_, p)| p);
    let rdma = resource
        .map(Rdma::Resource)
        .or_else(|| claim.map(Rdma::Claim))
        .or_else(|| host_devices.or(gke).or(attached).map(Rdma::HostDevices));
    Fabric {
        rdma,
        efa: worker
            .resources
            .iter()
            .find(|r| r.name == EFA && r.is_requested()),
        compute_domain: worker
            .claims
            .iter()
            .find(|c| is_compute_domain(c, deployment)),
        gke_networks,
        privileged: worker.privileged,
    }
}
