//! Pods as an API server tells of them, and the insides of their containers as the collector sees them. All made up.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "each test file uses a part of it, and a broken test should stop"
)]

use checks::{NodeFacts, ProbedPod};
use model::{Fault, Report, Status};
use probe::local;
use recipe::live;
use serde_json::{Value, json};

use stand_in::Tree;

/// Limits of a process: locked memory as given.
pub(crate) fn limits(memlock: &str) -> String {
    format!(
        "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1048576              1048576              files     \nMax locked memory         {memlock:<20} {memlock:<20} bytes     \n"
    )
}

/// A container with a GPU and an InfiniBand card behind the same switch, and an engine.
pub(crate) struct Inside {
    pub(crate) tree: Tree,
}

pub(crate) const PREFILL: &[&str] = &["--disaggregation-mode", "prefill"];
pub(crate) const DECODE: &[&str] = &["--disaggregation-mode", "decode"];

impl Inside {
    pub(crate) fn new(flags: &[&str]) -> Self {
        let inside = Self::bare();
        inside.gpu(0, true);
        inside.rail(0, true);
        inside.engine(87, flags, &["PATH=/usr/bin"]);
        inside
    }

    /// The same without GPU, card and engine.
    pub(crate) fn bare() -> Self {
        let tree = Tree::new();
        tree.files(
            "/sys/class/dmi/id",
            &[("sys_vendor", "Supermicro"), ("product_name", "SYS-821GE")],
        );
        tree.file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme de\n");
        tree.file("/proc/1/comm", "python3\n");
        tree.file("/proc/self/limits", limits("unlimited"));
        tree.file(
            "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
            "x",
        );
        tree.file(
            "/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@builder)\n",
        );
        tree.file("/sys/module/nvidia/version", "580.65.06\n");
        tree.file(
            "/proc/modules",
            "nvidia_peermem 20480 0 - Live 0x0\nnvidia 9453568 20 nvidia_uvm,nvidia_peermem, Live 0x0\ngdrdrv 28672 0 - Live 0x0\nmlx5_ib 500000 0 - Live 0x0\nib_uverbs 200000 1 mlx5_ib, Live 0x0\nib_core 500000 2 mlx5_ib,ib_uverbs, Live 0x0\n",
        );
        tree.files(
            "/sys/module/nvidia_peermem",
            &[("version", "580.65.06"), ("refcnt", "0")],
        );
        for name in ["ib_core", "ib_uverbs"] {
            tree.file(&format!("/sys/module/{name}/refcnt"), "1\n");
        }
        tree.file(
            "/proc/devices",
            "Character devices:\n195 nvidia\n234 gdrdrv\n",
        );
        tree.file("/dev/gdrdrv", "");
        tree.file("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n");
        tree.file(
            "/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so",
            "",
        );
        tree.file("/dev/infiniband/rdma_cm", "");
        Self { tree }
    }

    fn switch(n: usize) -> String {
        format!("/sys/devices/pci0000:{n}5/0000:{n}5:01.0/0000:{n}6:00.0")
    }

    /// A GPU of the node; `given` to this container or not.
    pub(crate) fn gpu(&self, n: usize, given: bool) {
        let gpu = format!("{}/0000:{n}7:00.0/0000:{n}8:00.0", Self::switch(n));
        self.tree.files(
            &gpu,
            &[
                ("class", "0x030200"),
                ("vendor", "0x10de"),
                ("device", "0x2330"),
                ("numa_node", "0"),
                ("current_link_speed", "32.0 GT/s PCIe"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"),
                ("max_link_width", "16"),
            ],
        );
        self.tree
            .link(&format!("/sys/bus/pci/devices/0000:{n}8:00.0"), &gpu);
        self.tree.file(
            &format!("/proc/driver/nvidia/gpus/0000:{n}8:00.0/information"),
            format!(
                "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-11111111-2222-3333-4444-55555555555{n}\nDevice Minor: \t {n}\n"
            ),
        );
        if given {
            self.tree.file(&format!("/dev/nvidia{n}"), "");
        }
    }

    /// An InfiniBand card of the node; `given` to this container or not.
    pub(crate) fn rail(&self, n: usize, given: bool) {
        let name = format!("mlx5_{n}");
        self.tree.device(
            &name,
            &format!("{}/0000:{n}7:01.0/0000:{n}9:00.0", Self::switch(n)),
            "0x0207",
            &[],
        );
        self.port(n, "4: ACTIVE", "5: LinkUp");
        self.tree.files(
            &format!("/sys/class/infiniband/{name}/ports/1/gids"),
            &[("0", &format!("fe80:0000:0000:0000:b83f:d203:0012:345{n}"))],
        );
        self.tree.files(
            &format!("/sys/class/infiniband_verbs/uverbs{n}"),
            &[("ibdev", &name)],
        );
        if given {
            self.tree.file(&format!("/dev/infiniband/uverbs{n}"), "");
        }
    }

    pub(crate) fn port(&self, n: usize, state: &str, phys: &str) {
        self.tree.port(
            &format!("mlx5_{n}"),
            &[
                ("link_layer", "InfiniBand"),
                ("state", state),
                ("phys_state", phys),
                ("rate", "400 Gb/sec (4X NDR)"),
                ("lid", "0x15"),
                ("sm_lid", "0x1"),
            ],
        );
    }

    /// Takes the device nodes of InfiniBand away.
    pub(crate) fn without_nodes(self) -> Self {
        std::fs::remove_dir_all(self.tree.root().join("dev/infiniband")).unwrap();
        self
    }

    pub(crate) fn engine(&self, pid: u32, flags: &[&str], environment: &[&str]) {
        let at = |name: &str| format!("/proc/{pid}/{name}");
        let mut words = vec![
            "python3",
            "-m",
            "dynamo.vllm",
            "--kv-transfer-config",
            r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#,
        ];
        words.extend(flags);
        let line = |words: &[&str]| [words.join("\0"), "\0".to_owned()].concat();
        self.tree.file(&at("comm"), "python3\n");
        self.tree.file(&at("cmdline"), line(&words));
        self.tree.file(&at("environ"), line(environment));
        self.tree.file(&at("limits"), limits("unlimited"));
        self.status(pid, 0, "0000000000004000");
        self.tree.file(&at("maps"), "");
    }

    pub(crate) fn status(&self, pid: u32, uid: u32, capabilities: &str) {
        self.tree.file(
            &format!("/proc/{pid}/status"),
            format!(
                "Name:\tpython3\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities}\n"
            ),
        );
    }

    pub(crate) fn interface(&self, name: &str) {
        self.tree.files(
            &format!("/sys/class/net/{name}"),
            &[
                ("operstate", "up"),
                ("mtu", "9000"),
                ("type", "1"),
                ("flags", "0x1003"),
            ],
        );
    }

    /// What the collector sees.
    pub(crate) fn facts(&self) -> NodeFacts {
        for tool in [
            "ip",
            "rdma",
            "ibv_devinfo",
            "ucx_info",
            "fi_info",
            "df",
            "nvidia-smi",
        ] {
            if !self.tree.tools().join(tool).exists() {
                self.tree.tool(tool, "exit 127");
            }
        }
        let stream = local::run(&self.tree.options()).unwrap();
        assert!(stream.is_complete(), "{:?}", stream.gap());
        NodeFacts {
            observation: probe::observe::observation(&stream),
            ..NodeFacts::default()
        }
    }
}

/// A pod of a Dynamo graph, as the API server tells of it.
pub(crate) fn pod(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "serving",
            "uid": format!("uid-of-{name}"),
            "labels": {
                "nvidia.com/dynamo-graph-deployment-name": "qwen",
                "nvidia.com/dynamo-component": format!("{role}-worker"),
                "nvidia.com/dynamo-component-type": role,
                "pod-template-hash": "7d9f8c6b5",
            },
            "ownerReferences": [
                {"kind": "ReplicaSet", "name": format!("qwen-{role}-7d9f8c6b5"), "controller": true}
            ],
        },
        "spec": {
            "nodeName": "node-a",
            "containers": [{
                "name": "main",
                "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.0",
                "command": ["python3", "-m", "dynamo.vllm"],
                "args": [
                    "--kv-transfer-config",
                    r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#,
                    "--disaggregation-mode",
                    role,
                ],
                "env": [
                    {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}},
                ],
                "resources": {
                    "limits": {"nvidia.com/gpu": "1", "rdma/ib": "1", "memory": "80Gi"},
                    "requests": {"nvidia.com/gpu": "1", "rdma/ib": "1", "cpu": "8"},
                },
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}, "runAsUser": 0},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
            }],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.3.7",
            "hostIP": "192.0.2.4",
            "containerStatuses": [{
                "name": "main",
                "ready": true,
                "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            }],
        },
    })
}

/// A pod with what looking into it gave.
pub(crate) fn probed(object: &Value, probed: Result<NodeFacts, Fault>) -> ProbedPod {
    let text = object.to_string();
    let parsed = live::pod(&text).unwrap();
    let workers = live::workers(&text);
    let taken = live::kv_worker(&parsed, &workers).map_or_else(String::new, |w| w.words);
    let (container, chosen) =
        live::container(&parsed, None).map_or_else(|_| Default::default(), |(n, w)| (n, w.words));
    let worker = workers.into_iter().find(|w| w.container == container);
    ProbedPod {
        object: parsed,
        container,
        taken,
        chosen,
        worker,
        probed,
        later: None,
        role: None,
        by: checks::SeenBy::Exec,
    }
}

/// Failures and warnings: status and cause.
pub(crate) fn told(report: &Report) -> Vec<(Status, &str)> {
    report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
        .map(|r| (r.status, r.cause.unwrap_or("?")))
        .collect()
}

/// What is said under the name of a check.
pub(crate) fn details<'r>(report: &'r Report, name: &str) -> Vec<&'r str> {
    report
        .results
        .iter()
        .filter(|r| r.name == name)
        .map(|r| r.detail.as_str())
        .collect()
}

/// The causes under the name of a check.
pub(crate) fn causes<'r>(report: &'r Report, name: &str) -> Vec<&'r str> {
    report
        .results
        .iter()
        .filter(|r| r.name == name)
        .filter_map(|r| r.cause)
        .collect()
}
