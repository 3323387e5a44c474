//! What a worker asks the cluster for: RDMA devices, EFA, a compute domain, or the host's own devices.

use model::{Claim, Deployment, Place, Resource, Worker};

/// A fabric request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rdma<'f> {
    /// An extended resource of an RDMA device plugin.
    Resource(&'f Resource),
    /// A DRA claim on a NIC.
    Claim {
        /// The claim.
        claim: &'f Claim,
        /// Its device class is in the input; else only its name says that it is a NIC.
        seen: bool,
    },
    /// Host devices: privileged with the host's network or `/dev/infiniband`.
    HostDevices(&'f Place),
}

impl<'f> Rdma<'f> {
    pub(crate) fn place(self) -> &'f Place {
        match self {
            Rdma::Resource(r) => &r.place,
            Rdma::Claim { claim, .. } => &claim.place,
            Rdma::HostDevices(p) => p,
        }
    }

    pub(crate) fn describe(self) -> String {
        match self {
            Rdma::Resource(r) => format!("{}: {}", r.name, r.quantity),
            Rdma::Claim { claim, seen: true } => format!("device claim {}", claim_name(claim)),
            Rdma::Claim { claim, .. } => {
                format!("device claim {}, a NIC by its name", claim_name(claim))
            }
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
    /// A claim on something that neither its class nor its name tells.
    pub(crate) open_claim: Option<&'f Claim>,
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
            parts.push(format!("compute domain {}", claim_name(claim)));
        }
        if let (true, Some(claim)) = (parts.is_empty(), self.open_claim) {
            parts.push(format!("device claim {}", claim_name(claim)));
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
/// `nvidia.com/hostdev` (host devices of the NVIDIA network operator), `amd.com/nic`, `openshift.io/mlxnics`,
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
        || words().any(|w| matches!(w, "ib" | "hca" | "hostdev" | "irdma"))
        || words().any(|w| ["mlx", "mlnx", "connectx", "bluefield"].iter().any(|p| w.starts_with(p)))
        // AMD's and NVIDIA's network operators hand out whole NICs.
        || (matches!(domain, "amd.com" | "nvidia.com" | "openshift.io")
            && words().any(|w| matches!(w, "nic" | "nics" | "vnic" | "hostnic" | "hostdevs")))
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

/// The template or claim behind a claim, else its name in the pod.
pub(crate) fn claim_name(claim: &Claim) -> &str {
    claim.template.as_deref().unwrap_or(&claim.name)
}

/// What a claim gives, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    ComputeDomain,
    Nic { seen: bool },
    Accelerator,
    Open,
}

/// By the objects of the input where they are there, else by the words of its name.
fn given(claim: &Claim, deployment: &Deployment) -> Given {
    if deployment
        .compute_domains()
        .any(|d| d.template.is_some() && d.template == claim.template)
    {
        return Given::ComputeDomain;
    }
    let classes = deployment
        .claim_templates()
        .find(|t| Some(&t.name) == claim.template.as_ref())
        .map(|t| t.devices.as_slice())
        .unwrap_or_default();
    if !classes.is_empty() {
        let any = |is: fn(&str) -> bool| classes.iter().any(|c| is(&c.to_ascii_lowercase()));
        return if any(|c| c.contains("compute-domain") || c.contains("imex")) {
            Given::ComputeDomain
        } else if any(is_nic_class) {
            Given::Nic { seen: true }
        } else if any(is_accelerator) {
            Given::Accelerator
        } else {
            Given::Open
        };
    }
    let words = words_of_claim(claim);
    if words.contains("compute-domain") || words.contains("imex") || words.contains("mnnvl") {
        return Given::ComputeDomain;
    }
    let nic = words.contains("rdma")
        || words.contains("roce")
        || words.contains("infiniband")
        || words
            .split(['-', '_', ' ', '.'])
            .any(|w| matches!(w, "nic" | "nics" | "ib" | "hca"));
    if nic {
        Given::Nic { seen: false }
    } else if is_accelerator(&words) {
        Given::Accelerator
    } else {
        Given::Open
    }
}

fn is_nic_class(class: &str) -> bool {
    ["rdma", "roce", "sriov", "dranet", "nic", "mellanox", "net."]
        .iter()
        .any(|w| class.contains(w))
}

fn is_accelerator(words: &str) -> bool {
    words.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| {
        let w = w.trim_end_matches(|c: char| c.is_ascii_digit());
        matches!(
            w,
            "gpu"
                | "gpus"
                | "mig"
                | "xpu"
                | "npu"
                | "tpu"
                | "gaudi"
                | "hpu"
                | "neuron"
                | "accelerator"
        )
    })
}

/// Whether a claim is on the channel of a compute domain (multi-node NVLink through IMEX).
pub(crate) fn is_compute_domain(claim: &Claim, deployment: &Deployment) -> bool {
    given(claim, deployment) == Given::ComputeDomain
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
    let claims = || {
        worker
            .claims
            .iter()
            .map(|claim| (claim, given(claim, deployment)))
    };
    // A network driver may attach a claim to the whole pod, so it counts although no container lists it.
    let claim = claims()
        .chain(
            worker
                .pod()
                .unlisted_claims
                .iter()
                .map(|claim| (claim, given(claim, deployment))),
        )
        .find_map(|(claim, given)| match given {
            Given::Nic { seen } => Some(Rdma::Claim { claim, seen }),
            _ => None,
        });
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
        .or(claim)
        .or_else(|| host_devices.or(gke).or(attached).map(Rdma::HostDevices));
    Fabric {
        rdma,
        efa: worker
            .resources
            .iter()
            .find(|r| r.name == EFA && r.is_requested()),
        compute_domain: claims()
            .find(|(_, given)| *given == Given::ComputeDomain)
            .map(|(claim, _)| claim),
        open_claim: claims()
            .find(|(claim, given)| *given == Given::Open && claim.declared)
            .map(|(claim, _)| claim),
        gke_networks,
        privileged: worker.privileged,
    }
}
