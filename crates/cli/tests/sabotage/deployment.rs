//! Sixty-four workers: 24 for prefill, 40 for decode, a node each.
//!
//! What the collecting script prints in a healthy one is recorded once for each role, with the worker's own digits put
//! in: the script really runs only where a fault is planted.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;
use stand_in::{Behaviour, Cluster, StandIn};

use crate::worker::{self, Worker};

/// Workers of each role.
pub(crate) const SIZES: [(&str, u32); 2] = [("prefill", 24), ("decode", 40)];

/// A worker that there is not, whose digits stand for each worker's own.
const TEMPLATE: u32 = 0xff;

/// What the script prints in a healthy worker of each role.
static STREAMS: LazyLock<BTreeMap<&'static str, String>> = LazyLock::new(|| {
    SIZES
        .iter()
        .map(|(role, _)| {
            let worker = Worker::healthy(role, TEMPLATE);
            worker.write();
            let options = probe::local::Options {
                tools: Some(worker.tree.root().join("bin")),
                sockets: true,
                ..worker.tree.options()
            };
            let printed = probe::local::collect(&options).unwrap();
            (*role, String::from_utf8(printed).unwrap())
        })
        .collect()
});

/// What the script would print in this one.
fn printed(worker: &Worker) -> String {
    let template = format!("{:04x}", worker::id(worker.role, TEMPLATE));
    let address = |name: &str| {
        let object = stand_in::Pod::worker(name).object("serving");
        object["status"]["podIP"].as_str().unwrap().to_owned()
    };
    let name = format!("{}-{TEMPLATE}", worker.role);
    STREAMS[worker.role]
        .replace(&template, &worker.id)
        .replace(&address(&name), &address(&worker.name))
        .replace(&name, &worker.name)
}

/// The deployment with a fault planted in one worker, or as it is.
pub(crate) struct Deployment {
    pub(crate) api: StandIn,
    _faulted: Option<Worker>,
}

impl Deployment {
    pub(crate) fn start(planted: Option<(&str, fn(&mut Worker))>) -> Self {
        let mut cluster = Cluster::new().namespace("serving").keep(0);
        let mut faulted = None;
        for (role, size) in SIZES {
            for number in 0..size {
                let name = format!("{role}-{number}");
                let mut worker = match planted {
                    Some((wanted, plant)) if wanted == name => {
                        let mut worker = Worker::healthy(role, number);
                        plant(&mut worker);
                        worker.write();
                        worker
                    }
                    _ => Worker::without_tree(role, number),
                };
                let stream = match planted {
                    Some((wanted, _)) if wanted == name => None,
                    _ => Some(printed(&worker)),
                };
                let mut pod = worker.object();
                pod = match stream {
                    Some(stream) => pod.recorded(stream, Duration::ZERO),
                    None if worker.missing => pod.no_shell(),
                    None => pod.behaviour(Behaviour::Tree(worker.tree.root())),
                };
                cluster = cluster.pod(pod).object(worker.node.clone());
                for fault in worker.faults.drain(..) {
                    cluster = cluster.fault(fault);
                }
                if planted.is_some_and(|(wanted, _)| wanted == name) {
                    faulted = Some(worker);
                }
            }
        }
        Self {
            api: cluster.start().unwrap(),
            _faulted: faulted,
        }
    }
}

/// A node as its device plugins and the GPU operator leave it.
pub(crate) fn node(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        }},
        "spec": {},
        "status": {
            "capacity": {"cpu": "96", "memory": "1024Gi", "nvidia.com/gpu": "8", "rdma/ib": "8"},
            "allocatable": {"cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": "8", "rdma/ib": "8"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    })
}
