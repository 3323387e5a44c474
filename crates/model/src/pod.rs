//! Pods of a cluster: what the API server says of them, and why one could not be looked into.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::result::Reason;

/// What the API server says of a pod. The container's settings are a [`Worker`](crate::Worker) apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodObject {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `metadata.uid`: another one under the same name is another pod.
    pub uid: String,
    /// Node that it is bound to; `None` while it waits for one.
    pub node: Option<String>,
    /// `status.phase`.
    pub phase: String,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// `status.reason`, such as `Evicted`.
    pub reason: Option<String>,
    /// Why the scheduler has found no node (condition `PodScheduled`, reason `Unschedulable`), in its words.
    pub unschedulable: Option<String>,
    /// `metadata.ownerReferences` of the controller: kind and name.
    pub owner: Option<(String, String)>,
    /// Labels that name a role or a deployment, and no others.
    pub labels: BTreeMap<String, String>,
    /// Keys of annotations that attach networks or devices, with their values.
    pub annotations: BTreeMap<String, String>,
    /// Its containers, in the order of the spec.
    pub containers: Vec<Container>,
    /// `status.message`, such as why it was evicted.
    pub message: Option<String>,
    /// `spec.hostNetwork`: its interfaces are the node's.
    pub host_network: bool,
    /// Claims of dynamic resource allocation that the pod declares, with the ResourceClaimTemplate or ResourceClaim
    /// behind each.
    pub claims: BTreeMap<String, String>,
    /// `status.podIP` and the others of `podIPs`.
    pub addresses: Vec<String>,
    /// `status.hostIP`.
    pub host_address: Option<String>,
    /// `spec.nodeSelector`.
    pub node_selector: BTreeMap<String, String>,
    /// Keys of taints that it tolerates; `*` for all of them.
    pub tolerates: Vec<String>,
}

impl PodObject {
    /// Its container of that name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|c| c.name == name)
    }
}

/// One container of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Container {
    /// Name.
    pub name: String,
    /// An init container, or one that was added to debug the pod.
    pub kind: ContainerKind,
    /// Image as written.
    pub image: Option<String>,
    /// Digest of the image that runs (`imageID`), where the runtime tells one of a registry: the same tag can mean another
    /// image on another day.
    #[serde(default)]
    pub digest: Option<String>,
    /// Extended resources in its limits or requests: what the scheduler granted.
    pub resources: BTreeMap<String, String>,
    /// Claims of dynamic resource allocation that it lists.
    pub claims: Vec<String>,
    /// `securityContext.privileged`.
    pub privileged: bool,
    /// Added capabilities, without the `CAP_` prefix.
    pub capabilities: Vec<String>,
    /// `runAsUser` of the container, else of the pod.
    pub run_as_user: Option<i64>,
    /// Paths inside the container where volumes are mounted that matter here (`/dev/infiniband`, `/dev/shm`, …), with
    /// what is mounted: `hostPath /dev/infiniband`, `emptyDir Memory 8Gi`.
    pub mounts: BTreeMap<String, String>,
    /// How it is.
    pub state: ContainerState,
    /// `restartCount`.
    pub restarts: u32,
    /// `ready`.
    pub ready: bool,
    /// Why it waits, in the kubelet's words, without credentials.
    pub message: Option<String>,
}

/// What a container is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerKind {
    /// It runs as long as the pod.
    #[default]
    Main,
    /// An init container with `restartPolicy: Always`: a sidecar by its place in the spec.
    Sidecar,
    /// It runs before the others.
    Init,
    /// Added to a running pod.
    Ephemeral,
}

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContainerState {
    /// Nothing is said of it.
    #[default]
    Unknown,
    /// It runs, since the given time.
    Running(String),
    /// It waits: the reason (`CrashLoopBackOff`, `ImagePullBackOff`, `ContainerCreating`, …) and how it ended last.
    Waiting(String, Option<Ended>),
    /// It has ended.
    Ended(Ended),
}

/// How a container ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ended {
    /// Exit code.
    pub code: i32,
    /// `Error`, `OOMKilled`, `Completed`, …
    pub reason: Option<String>,
}

/// A node of the cluster, as far as it matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterNode {
    /// Name.
    pub name: String,
    /// Allocatable extended resources: GPUs, RDMA, EFA, networks.
    pub allocatable: BTreeMap<String, String>,
    /// Labels that tell its GPUs, its NICs and its place.
    pub labels: BTreeMap<String, String>,
    /// Condition `Ready`.
    pub ready: bool,
    /// `spec.unschedulable`: cordoned.
    pub cordoned: bool,
    /// Taints that keep pods away: `key=value:effect`.
    pub taints: Vec<String>,
}

/// Why something in the cluster could not be looked at. One of these is one message, one fix and one test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The class.
    pub kind: FaultKind,
    /// What was got, in one line; data of the cluster, already without credentials.
    pub detail: String,
}

impl Fault {
    /// A fault with what was got.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }
}

macro_rules! fault_kinds {
    ($($(#[doc = $doc:literal])* $name:ident = $id:literal, $scope:ident, $reason:ident;)*) => {
        /// Classes of faults on the way to a container.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum FaultKind {
            $($(#[doc = $doc])* $name,)*
        }

        impl FaultKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name of the cause.
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// Whether nothing at all can be looked at, or one pod only.
            pub fn scope(self) -> FaultScope {
                match self {
                    $(Self::$name => FaultScope::$scope,)*
                }
            }

            /// The reason of the check that is skipped for it.
            pub fn reason(self) -> Reason {
                match self {
                    $(Self::$name => Reason::$reason,)*
                }
            }
        }
    };
}

/// How far a fault reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultScope {
    /// The cluster cannot be reached, or refuses who asks: exit code 5 where nothing was judged.
    Access,
    /// One pod or container.
    Pod,
    /// The request: what was asked for is not there, or not one thing.
    Request,
    /// What stands around pods: they are judged without it.
    Beside,
}

fault_kinds! {
    /// No kubeconfig file and no service account.
    NoKubeconfig = "kubeconfig-missing", Access, Unreadable;
    /// The kubeconfig cannot be read or parsed.
    BrokenKubeconfig = "kubeconfig-broken", Access, Unreadable;
    /// The context that was asked for is not in the kubeconfig.
    UnknownContext = "context-unknown", Access, Unreadable;
    /// The program that gives credentials failed.
    CredentialPlugin = "credential-plugin-failed", Access, NoPermission;
    /// No answer from the API server: name, route, refused connection, proxy.
    Unreachable = "api-server-unreachable", Access, NotRunning;
    /// The API server's certificate is not signed by who the kubeconfig trusts.
    UnknownCa = "api-server-certificate-unknown", Access, NoPermission;
    /// What answers is no API server: a login page, a redirect, an answer without end.
    NotApi = "api-answer-foreign", Access, Unreadable;
    /// 401: no credentials, wrong ones, or expired ones.
    Unauthorized = "api-server-unauthorized", Access, NoPermission;
    /// 403 on reading pods.
    ForbiddenPods = "pods-forbidden", Access, NoPermission;
    /// 403 on reading nodes, which a role in one namespace cannot grant.
    ForbiddenNodes = "nodes-forbidden", Beside, NoPermission;
    /// 403 on reading the objects that pods are made from.
    ForbiddenWorkload = "workload-forbidden", Beside, NoPermission;
    /// 403 on the log of a container.
    ForbiddenLog = "pod-log-forbidden", Beside, NoPermission;
    /// The kubectl-compatible program cannot be started.
    NoKubectl = "kubectl-missing", Access, NoTool;
    /// The kubectl-compatible program failed in a way that nothing explains.
    KubectlFailed = "kubectl-failed", Access, Unreadable;
    /// 404 on the namespace, or on the resource kind.
    NotFound = "api-not-found", Request, NotRunning;
    /// No pod of that name.
    NoSuchPod = "pod-missing", Request, NotRunning;
    /// No pod matches the selector.
    NoMatch = "no-pod-matches", Request, NotRunning;
    /// The selector is none.
    BadSelector = "selector-invalid", Request, Unreadable;
    /// Several containers could be meant.
    AmbiguousContainer = "container-ambiguous", Pod, NotVisible;
    /// The container that was asked for is not in the pod.
    NoSuchContainer = "container-missing", Pod, NotRunning;
    /// 403 on exec.
    ForbiddenExec = "exec-forbidden", Pod, NoPermission;
    /// 409: the API server refuses for the state of the object.
    Conflict = "api-conflict", Pod, NotRunning;
    /// 429, also after waiting as long as it said.
    TooManyRequests = "api-too-many-requests", Pod, TimedOut;
    /// 5xx.
    ServerError = "api-server-error", Pod, Unreadable;
    /// The pod waits for a node.
    Unschedulable = "pod-unschedulable", Pod, NotRunning;
    /// The pod has a node, and the container does not run yet.
    NotStarted = "container-not-started", Pod, NotRunning;
    /// The image cannot be pulled.
    ImagePull = "container-image-pull", Pod, NotRunning;
    /// The container ends again and again.
    CrashLoop = "container-crash-loop", Pod, NotRunning;
    /// The pod, or the container, has ended.
    Completed = "pod-completed", Pod, NotRunning;
    /// The pod is being deleted, or was while it was looked at.
    Deleted = "pod-deleted", Pod, NotRunning;
    /// The container was started again while it was looked at.
    Restarted = "container-restarted", Pod, NotRunning;
    /// No shell in the container.
    NoShell = "container-without-shell", Pod, NoTool;
    /// What came back is not the script's: something else answered.
    NotOurs = "probe-output-foreign", Pod, Unreadable;
    /// More came back than the limit.
    Flood = "probe-output-flood", Pod, Unreadable;
    /// Nothing came back in time.
    TimedOut = "probe-timed-out", Pod, TimedOut;
    /// The stream ended in its middle.
    Cut = "probe-cut", Pod, Unreadable;
    /// The script, or the shell, ended with an error.
    ScriptFailed = "probe-failed", Pod, Unreadable;
    /// The run was ended before this one was looked at.
    Interrupted = "probe-interrupted", Pod, TimedOut;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_name_of_its_own() {
        let mut names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.id()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
