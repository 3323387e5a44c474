//! In objects of the API server, and on the way to the container.

use serde_json::json;
use stand_in::{Fault as OnTheWay, State};

use super::{Fault, fault, harmless};
use crate::worker::Worker;

fn hang(worker: &mut Worker) {
    let fault = OnTheWay::exec().name(&worker.name).hang();
    worker.faults.push(fault);
}

fn tag(worker: &mut Worker) {
    worker.pod(|pod| pod.spec("image", json!("registry.example/vllm-runtime:1.0.2")));
}

/// The same tag, which meant another image on the day that this node pulled it.
fn moved_tag(worker: &mut Worker) {
    worker.pod(|pod| {
        pod.set(
            "/status/containerStatuses/0/imageID",
            json!(format!(
                "registry.example/vllm-runtime@sha256:{}",
                "7".repeat(64)
            )),
        )
    });
}

fn host_network(worker: &mut Worker) {
    worker.pod(|pod| pod.set("/spec/hostNetwork", json!(true)));
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        fault("another tag", "decode-1", tag, "worker-spec-differs").pairs(&["ucx-pd-version-skew"]),
        fault("a tag that moved", "decode-2", moved_tag, "worker-software-differs"),
        fault("fewer devices asked for", "decode-3", |w| w.pod(|pod| pod.resource("rdma/ib", "4")), "worker-spec-differs"),
        fault("no device asked for", "decode-4", |w| w.pod(|pod| pod.spec("resources", json!({"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}))), "worker-spec-differs"),
        fault("the node's network", "decode-5", host_network, "worker-spec-differs"),
        fault("a capability less", "decode-6", |w| w.pod(|pod| pod.spec("securityContext", json!({"runAsUser": 0}))), "worker-spec-differs"),
        fault("privileged", "decode-7", |w| w.pod(|pod| pod.spec("securityContext", json!({"privileged": true, "runAsUser": 0, "capabilities": {"add": ["IPC_LOCK"]}}))), "worker-spec-differs"),
        fault("no mounted memory", "decode-8", |w| w.pod(|pod| pod.spec("volumeMounts", json!([]))), "worker-spec-differs"),
        fault("a crash loop", "decode-9", |w| w.pod(|pod| pod.state(State::CrashLoopBackOff)), "container-crash-loop"),
        fault("no node", "prefill-1", |w| w.pod(|pod| pod.state(State::Unschedulable)), "pod-unschedulable"),
        fault("no image", "prefill-2", |w| w.pod(|pod| pod.state(State::ImagePullBackOff)), "container-image-pull"),
        fault("still starting", "prefill-3", |w| w.pod(|pod| pod.state(State::ContainerCreating)), "container-not-started"),
        fault("no shell", "prefill-4", |w| w.missing = true, "container-without-shell"),
        fault("a container that does not answer", "prefill-5", hang, "probe-timed-out").options(&["--timeout", "6s", "--request-timeout", "4s"]),
        harmless("a label of its own", "decode-10", |w| w.pod(|pod| pod.label("team", "other"))),
        harmless("a newer node", "decode-11", |w| w.node["metadata"]["labels"]["kernel"] = json!("new")),
    ]
}
