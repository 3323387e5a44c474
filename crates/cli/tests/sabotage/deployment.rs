//! Sixty-four workers: 24 for prefill, 40 for decode, a node each.
//!
//! What the collecting script prints in a healthy one is recorded once for each role, with the worker's own digits put
//! in: the script really runs only where a fault is planted.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::json;
use stand_in::{Behaviour, Cluster, StandIn};

use crate::inside::Fabric;
use crate::worker::{self, Plant, Worker};

/// Workers of each role.
pub(crate) const SIZES: [(&str, u32); 2] = [("prefill", 24), ("decode", 40)];

/// A worker that there is not, whose digits stand for each worker's own.
const TEMPLATE: u32 = 0xff;

/// What the script prints in each worker that is healthy, by name.
type Streams = BTreeMap<String, String>;

fn streams(fabric: Fabric) -> &'static Streams {
    static INFINIBAND: LazyLock<Streams> = LazyLock::new(|| record(Fabric::InfiniBand));
    static ROCE: LazyLock<Streams> = LazyLock::new(|| record(Fabric::Roce));
    match fabric {
        Fabric::InfiniBand => &INFINIBAND,
        Fabric::Roce => &ROCE,
    }
}

fn record(fabric: Fabric) -> Streams {
    let mut all = Streams::new();
    for (role, size) in SIZES {
        let template = Worker::healthy(role, TEMPLATE, fabric);
        template.write();
        let options = probe::local::Options {
            tools: Some(template.tree.root().join("bin")),
            sockets: true,
            ..template.tree.options()
        };
        let printed = String::from_utf8(probe::local::collect(&options).unwrap()).unwrap();
        for number in 0..size {
            let name = format!("{role}-{number}");
            let id = format!("{:04x}", worker::id(role, number));
            let own = printed
                .replace(&template.id, &id)
                .replace(&worker::address(&template.name), &worker::address(&name))
                .replace(&template.name, &name);
            all.insert(name, own);
        }
    }
    all
}

/// The deployment with something planted in workers, or as it is.
pub(crate) struct Deployment {
    pub(crate) api: StandIn,
    _planted: Vec<Worker>,
}

impl Deployment {
    pub(crate) fn start(fabric: Fabric, planted: &[(&str, Plant)]) -> Self {
        let mut cluster = Cluster::new().namespace("serving").keep(0);
        let mut kept = Vec::new();
        for (role, size) in SIZES {
            for number in 0..size {
                let mut worker = Worker::without_tree(role, number, fabric);
                let plants: Vec<_> = planted
                    .iter()
                    .filter(|(name, _)| *name == worker.name)
                    .collect();
                let pod = if plants.is_empty() {
                    let stream = streams(fabric)[&worker.name].as_bytes();
                    worker.object().recorded(stream, Duration::ZERO)
                } else {
                    worker = Worker::healthy(role, number, fabric);
                    for (_, plant) in &plants {
                        plant(&mut worker);
                    }
                    worker.write();
                    let pod = worker.object();
                    if worker.missing {
                        pod.no_shell()
                    } else {
                        pod.behaviour(Behaviour::Tree(worker.tree.root()))
                    }
                };
                cluster = cluster.pod(pod).object(worker.node.clone());
                for fault in worker.faults.drain(..) {
                    cluster = cluster.fault(fault);
                }
                if !plants.is_empty() {
                    kept.push(worker);
                }
            }
        }
        assert!(
            planted
                .iter()
                .all(|(name, _)| kept.iter().any(|w| w.name == *name))
        );
        Self {
            api: cluster.start().unwrap(),
            _planted: kept,
        }
    }
}

/// A node as its device plugins and the GPU operator leave it.
pub(crate) fn node(name: &str, fabric: Fabric) -> serde_json::Value {
    let resource = match fabric {
        Fabric::InfiniBand => "rdma/ib",
        Fabric::Roce => "rdma/roce",
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        }},
        "spec": {},
        "status": {
            "capacity": {"cpu": "96", "memory": "1024Gi", "nvidia.com/gpu": "8", resource: "8"},
            "allocatable": {"cpu": "96", "memory": "1000Gi", "nvidia.com/gpu": "8", resource: "8"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "addresses": [{"type": "Hostname", "address": name}],
        },
    })
}
