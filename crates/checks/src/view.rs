//! A deployment with what follows directly from its facts, worked out once for all checks.

use model::{Deployment, Engine, Partial, Role, Worker};
use settings::ucx_tls::{self, Build, TlsEffect};

use crate::fabric::{self, Fabric};
use crate::kv_path::{self, KvPath};

/// One prefill or decode worker.
pub(crate) struct WorkerView<'f> {
    pub(crate) worker: &'f Worker,
    pub(crate) path: KvPath,
    pub(crate) fabric: Fabric<'f>,
    /// The effect of a literal UCX_TLS on a build with every transport.
    pub(crate) tls: Option<TlsEffect>,
}

/// A deployment.
pub(crate) struct View<'f> {
    pub(crate) deployment: &'f Deployment,
    /// Prefill and decode workers.
    pub(crate) kv: Vec<WorkerView<'f>>,
}

impl<'f> View<'f> {
    pub(crate) fn of(deployment: &'f Deployment) -> Self {
        let kv = deployment
            .kv_workers()
            .map(|worker| WorkerView {
                worker,
                path: kv_path::of(worker),
                fabric: fabric::of(worker, deployment),
                tls: worker
                    .literal("UCX_TLS")
                    .map(|value| ucx_tls::evaluate(Some(value), &Build::everything(), None)),
            })
            .collect();
        Self { deployment, kv }
    }

    pub(crate) fn role(&self, role: Role) -> impl Iterator<Item = &WorkerView<'f>> {
        self.kv.iter().filter(move |w| w.worker.role == role)
    }

    /// Both roles are in the input.
    pub(crate) fn has_both_roles(&self) -> bool {
        self.role(Role::Prefill).next().is_some() && self.role(Role::Decode).next().is_some()
    }

    /// A patch, values or data: judged for what it sets, never for what it leaves out.
    pub(crate) fn is_part(&self) -> bool {
        matches!(
            self.deployment.partial,
            Some(Partial::Patch | Partial::Data | Partial::Template)
        )
    }

    /// Any role asks for a fabric.
    pub(crate) fn asks_for_fabric(&self) -> bool {
        self.kv.iter().any(|w| w.fabric.any())
    }

    /// Prefill and decode are containers of one pod.
    pub(crate) fn is_one_pod(&self) -> bool {
        let Some(first) = self.kv.first() else {
            return false;
        };
        let same = |w: &WorkerView<'_>| {
            w.worker.name == first.worker.name
                && w.worker.kind == first.worker.kind
                && w.worker.part == first.worker.part
                && w.worker.nodes <= 1
        };
        // Containers of one pod have names of their own; manifests without a name can look alike otherwise.
        let mut containers: Vec<&str> = self
            .kv
            .iter()
            .map(|w| w.worker.container.as_str())
            .collect();
        containers.sort_unstable();
        let distinct = containers
            .windows(2)
            .all(|pair| pair.first() != pair.last());
        // Only workloads with one template: kinds with several could name two of them alike.
        matches!(&*first.worker.kind, "Pod" | "Deployment" | "StatefulSet")
            && distinct
            && self.has_both_roles()
            && self.kv.iter().all(same)
    }

    /// Prefill and decode are kept on one host by something that the input says.
    pub(crate) fn is_single_host(&self) -> bool {
        if self.is_one_pod() {
            return true;
        }
        let placed = |role| {
            self.role(role).next().is_some()
                && self
                    .role(role)
                    .all(|w| w.worker.pod().same_host.is_some() && w.worker.nodes <= 1)
        };
        placed(Role::Prefill) && placed(Role::Decode)
    }
}

/// Kinds whose pods run as the manifest says; others are filled in by a base configuration or a chart.
const AS_WRITTEN: [&str; 11] = [
    "Pod",
    "Deployment",
    "StatefulSet",
    "ReplicaSet",
    "DaemonSet",
    "LeaderWorkerSet",
    "DisaggregatedSet",
    "RoleBasedGroup",
    "PodCliqueSet",
    "DynamoGraphDeployment",
    "DynamoComponentDeployment",
];

impl WorkerView<'_> {
    /// The pod runs as its manifest says. A container without an image is the patch of another one.
    pub(crate) fn is_as_written(&self) -> bool {
        AS_WRITTEN.contains(&&*self.worker.kind) && self.worker.image.is_some()
    }

    /// Dynamo's operator makes the pod.
    pub(crate) fn is_dynamo(&self) -> bool {
        self.worker.kind.starts_with("Dynamo")
    }

    /// Dynamo starts the engine, and so passes it the pod's address: by its module, or where the operator brings the
    /// command.
    pub(crate) fn is_started_by_dynamo(&self) -> bool {
        self.worker.by_dynamo || self.is_dynamo() && !self.worker.has_command
    }

    /// The engine really moves KV cache (a mock engine does not).
    pub(crate) fn is_mock(&self) -> bool {
        self.worker.engine == Engine::Mocker
    }
}
