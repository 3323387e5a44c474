//! The states that a pod can be in, as `status` shows them.
//!
//! Fields and reasons follow Kubernetes' API reference (PodStatus) and the kubelet's and scheduler's own words.

use serde_json::{Value, json};

use crate::ids;
use crate::pod::{CREATED, put};

/// What state a pod is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All containers run and are ready.
    Running,
    /// All containers run, none is ready.
    NotReady,
    /// The scheduler has found no node.
    Unschedulable,
    /// It has a node; its containers are being made.
    ContainerCreating,
    /// An image cannot be pulled.
    ImagePullBackOff,
    /// Containers end again and again.
    CrashLoopBackOff,
    /// All containers have ended with 0.
    Completed,
    /// The kubelet has put it out.
    Evicted,
    /// It runs, and is being deleted.
    Terminating,
}

impl State {
    /// The state that is written like this.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "Running" => Self::Running,
            "NotReady" => Self::NotReady,
            "Unschedulable" => Self::Unschedulable,
            "ContainerCreating" => Self::ContainerCreating,
            "ImagePullBackOff" => Self::ImagePullBackOff,
            "CrashLoopBackOff" => Self::CrashLoopBackOff,
            "Completed" => Self::Completed,
            "Evicted" => Self::Evicted,
            "Terminating" => Self::Terminating,
            _ => return None,
        })
    }
}

fn condition(kind: &str, holds: bool) -> Value {
    json!({
        "type": kind,
        "status": if holds { "True" } else { "False" },
        "lastProbeTime": null,
        "lastTransitionTime": CREATED,
    })
}

fn container(object: &Value, name: &str, state: &Value, ready: bool, restarts: u64) -> Value {
    let uid = object
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut status = json!({
        "name": name,
        "state": state,
        "lastState": {},
        "ready": ready,
        "restartCount": restarts,
        "image": "registry.example/worker:1.0",
        "imageID": format!("registry.example/worker@sha256:{}", ids::hex("image", 64)),
        "started": ready,
    });
    if state.get("waiting").is_none() || restarts > 0 {
        let id = ids::hex(&format!("{uid}/{name}/{restarts}"), 64);
        put(
            &mut status,
            "/containerID",
            format!("containerd://{id}").into(),
        );
    }
    status
}

/// Writes `status`, and what of `spec` and `metadata` belongs to a state.
pub(crate) fn apply(state: State, object: &mut Value, containers: &[&str]) {
    let running = json!({ "running": { "startedAt": CREATED } });
    let waiting = |reason: &str, message: &str| match message {
        "" => json!({ "waiting": { "reason": reason } }),
        message => json!({ "waiting": { "reason": reason, "message": message } }),
    };
    let ended = |code: i32, reason: &str| {
        json!({ "terminated": {
            "exitCode": code, "reason": reason, "startedAt": CREATED, "finishedAt": CREATED,
        } })
    };
    let back_off_pull = "Back-off pulling image \"registry.example/worker:1.0\"";
    let (phase, each, ready, restarts) = match state {
        State::Running | State::Terminating => ("Running", running, true, 0),
        State::NotReady => ("Running", running, false, 0),
        State::Unschedulable => ("Pending", Value::Null, false, 0),
        State::ContainerCreating => ("Pending", waiting("ContainerCreating", ""), false, 0),
        State::ImagePullBackOff => (
            "Pending",
            waiting("ImagePullBackOff", back_off_pull),
            false,
            0,
        ),
        State::CrashLoopBackOff => {
            let message = "back-off 5m0s restarting failed container";
            ("Running", waiting("CrashLoopBackOff", message), false, 7)
        }
        State::Completed => ("Succeeded", ended(0, "Completed"), false, 0),
        State::Evicted => ("Failed", Value::Null, false, 0),
    };
    let mut status = json!({
        "phase": phase,
        "qosClass": "Burstable",
        "conditions": [
            condition("PodReadyToStartContainers", !each.is_null()),
            condition("Initialized", !each.is_null()),
            condition("Ready", ready),
            condition("ContainersReady", ready),
            condition("PodScheduled", state != State::Unschedulable),
        ],
    });
    if !each.is_null() {
        let mut list = Vec::new();
        for name in containers {
            let mut one = container(object, name, &each, ready, restarts);
            if state == State::CrashLoopBackOff {
                put(&mut one, "/lastState", ended(1, "Error"));
            }
            list.push(one);
        }
        put(&mut status, "/containerStatuses", list.into());
        put(&mut status, "/hostIP", "10.0.0.1".into());
        put(&mut status, "/startTime", CREATED.into());
    }
    if matches!(
        state,
        State::Running | State::NotReady | State::Terminating | State::CrashLoopBackOff
    ) {
        put(&mut status, "/podIP", "10.1.0.1".into());
        put(&mut status, "/podIPs", json!([{ "ip": "10.1.0.1" }]));
    }
    match state {
        State::Unschedulable => {
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                spec.remove("nodeName");
            }
            // kube-scheduler's FitError.
            let message = "0/4 nodes are available: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: \
                           }, 3 Insufficient rdma/ib. preemption: 0/4 nodes are available: 1 Preemption is not helpful for \
                           scheduling, 3 No preemption victims found for incoming pod.";
            put(
                &mut status,
                "/conditions",
                json!([{
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                    "lastProbeTime": null, "lastTransitionTime": CREATED,
                }]),
            );
        }
        State::Evicted => {
            put(&mut status, "/reason", "Evicted".into());
            let message = "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. ";
            put(&mut status, "/message", message.into());
        }
        State::Terminating => {
            put(
                object,
                "/metadata/deletionTimestamp",
                "2026-01-01T01:00:00Z".into(),
            );
            put(object, "/metadata/deletionGracePeriodSeconds", 30.into());
        }
        _ => {}
    }
    put(object, "/status", status);
}

/// The container as it is after one more start.
pub(crate) fn restart(object: &mut Value, name: &str) {
    let uid = object
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let list = object
        .pointer_mut("/status/containerStatuses")
        .and_then(Value::as_array_mut);
    for status in list.into_iter().flatten() {
        if status.get("name").and_then(Value::as_str) != Some(name) {
            continue;
        }
        let count = status
            .get("restartCount")
            .and_then(Value::as_u64)
            .unwrap_or(0)
            + 1;
        let old = status.get("containerID").cloned().unwrap_or(Value::Null);
        put(status, "/restartCount", count.into());
        let id = ids::hex(&format!("{uid}/{name}/{count}"), 64);
        put(status, "/containerID", format!("containerd://{id}").into());
        put(
            status,
            "/lastState",
            json!({ "terminated": {
                "exitCode": 137, "reason": "Error", "startedAt": CREATED, "finishedAt": CREATED, "containerID": old,
            } }),
        );
    }
}

/// Whether commands can be run in the container.
pub(crate) fn runs(object: &Value, name: &str) -> bool {
    object
        .pointer("/status/containerStatuses")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|status| {
            status.get("name").and_then(Value::as_str) == Some(name)
                && status.pointer("/state/running").is_some()
        })
}
