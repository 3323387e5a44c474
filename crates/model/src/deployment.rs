//! What is judged together: the workers of one deployment, and what surrounds them in the input.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::input::Input;
use crate::place::Place;
use crate::setting::Setting;
use crate::worker::{GroupPart, Role, Worker};

/// Why a deployment's text is not all there is to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Partial {
    /// A patch or overlay: it changes objects that are elsewhere.
    Patch,
    /// Values for a chart.
    Values,
    /// A template that is not YAML until it is rendered.
    Template,
    /// Provider data that other tools turn into manifests.
    Data,
}

impl Partial {
    /// How a report names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Values => "chart values",
            Self::Template => "template",
            Self::Data => "provider data",
        }
    }
}

/// A ComputeDomain (multi-node NVLink) in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeDomain {
    /// Its name.
    pub name: String,
    /// The ResourceClaimTemplate that it makes.
    pub template: Option<String>,
    /// `numNodes`, where written.
    pub nodes: Option<u64>,
    /// Where it stands.
    pub place: Place,
}

/// A ResourceClaimTemplate or ResourceClaim in the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimTemplate {
    /// Its name.
    pub name: String,
    /// Device classes that it asks for.
    pub devices: Vec<String>,
}

/// A Service without an address of its own: its name resolves to the pods themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadlessService {
    /// Its name.
    pub name: String,
    /// Pods resolve before they are ready.
    pub publishes_not_ready: bool,
    /// Where it stands.
    pub place: Place,
}

/// Objects of one file that hold no worker and that workers refer to by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surroundings {
    /// ComputeDomains.
    pub compute_domains: Vec<ComputeDomain>,
    /// ResourceClaimTemplates and ResourceClaims.
    pub claim_templates: Vec<ClaimTemplate>,
    /// Headless Services.
    pub headless_services: Vec<HeadlessService>,
}

/// Workers that are judged together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// Name for people: the graph's or the workloads' name.
    pub name: String,
    /// Kubernetes namespace, where written.
    pub namespace: Option<String>,
    /// Kind of its main object.
    pub kind: Arc<str>,
    /// Files that it was read from.
    pub files: Vec<Arc<str>>,
    /// Its workers, frontends and jobs included.
    pub workers: Vec<Worker>,
    /// Set where the text is only a part.
    pub partial: Option<Partial>,
    /// Objects around the workers. Shared: a file can hold thousands of deployments.
    pub around: Vec<Arc<Surroundings>>,
    /// Transport settings that belong to no worker: patches and data that apply to several.
    pub loose: Vec<Setting>,
}

impl Deployment {
    /// Workers of one role.
    pub fn role(&self, role: Role) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(move |w| w.role == role)
    }

    /// ComputeDomains of the same files.
    pub fn compute_domains(&self) -> impl Iterator<Item = &ComputeDomain> {
        self.around.iter().flat_map(|a| &a.compute_domains)
    }

    /// ResourceClaimTemplates and ResourceClaims of the same files.
    pub fn claim_templates(&self) -> impl Iterator<Item = &ClaimTemplate> {
        self.around.iter().flat_map(|a| &a.claim_templates)
    }

    /// Headless Services of the same files.
    pub fn headless_services(&self) -> impl Iterator<Item = &HeadlessService> {
        self.around.iter().flat_map(|a| &a.headless_services)
    }

    /// Prefill and decode workers.
    pub fn kv_workers(&self) -> impl Iterator<Item = &Worker> {
        self.workers.iter().filter(|w| w.role.moves_kv())
    }

    /// Workers as people count them: a leader and the members of its group are one worker of several pods, for which the
    /// leader stands.
    pub fn whole_workers(&self) -> impl Iterator<Item = &Worker> {
        let of = |w: &Worker| (w.name.clone(), w.kind.clone(), w.role);
        let led: BTreeSet<(String, Arc<str>, Role)> = self
            .workers
            .iter()
            .filter(|w| w.part == Some(GroupPart::Leader))
            .map(of)
            .collect();
        self.workers.iter().filter(move |w| {
            w.part != Some(GroupPart::Member) || led.is_empty() || !led.contains(&of(w))
        })
    }

    /// Whether anything here moves KV cache between workers.
    pub fn is_disaggregated(&self) -> bool {
        self.kv_workers().next().is_some()
    }
}

/// Everything that a run gathered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// What is judged, in input order.
    pub deployments: Vec<Deployment>,
    /// Every input and what became of it.
    pub inputs: Vec<Input>,
}
