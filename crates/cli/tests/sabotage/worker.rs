//! One worker of the deployment, in parts that a fault can be planted in: its file tree, what its engine's process was
//! told, its pod and node as the API server gives them, and what an agent in its place answers.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};
use stand_in::{Fault, Pod, Recorded, Tree};

use crate::deployment;
use crate::inside::{self, Fabric, PID, RAILS};

/// What is planted in a worker.
pub(crate) type Plant = fn(&mut Worker);

/// A change of the pod as the API server gives it.
type Change = Box<dyn FnOnce(Pod) -> Pod + Send>;

/// A worker.
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) role: &'static str,
    /// Four digits that no other worker has.
    pub(crate) id: String,
    pub(crate) fabric: Fabric,
    pub(crate) tree: Arc<Tree>,
    /// Variables of the engine's process.
    environment: Vec<(String, String)>,
    /// Words of its command line.
    words: Vec<String>,
    changes: Vec<Change>,
    /// Things that go wrong on the way to it.
    pub(crate) faults: Vec<Fault>,
    /// There is no shell in its container.
    pub(crate) missing: bool,
    /// Its node as the API server gives it.
    pub(crate) node: Value,
    /// What the agent in the engine's place answers.
    pub(crate) trial: Trial,
    /// Lines of UCX in the engine's log, beside the usual ones.
    pub(crate) logged: Vec<&'static str>,
}

/// What an agent in the engine's place finds.
pub(crate) struct Trial {
    pub(crate) version: &'static str,
    /// Why UCX gives no backend.
    pub(crate) error: Option<&'static str>,
    /// Transports of UCX that are on, beside those of the machine itself.
    pub(crate) transports: Vec<&'static str>,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            version: "1.5.1",
            error: None,
            transports: vec!["rc_mlx5", "dc_mlx5", "ud_mlx5"],
        }
    }
}

/// Variables that all engines have.
const SET: [(&str, &str); 4] = [
    ("PATH", "/usr/bin:/bin"),
    ("UCX_TLS", "rc,cuda_copy,cuda_ipc"),
    ("VLLM_NIXL_SIDE_CHANNEL_PORT", "5600"),
    ("NCCL_IB_HCA", "mlx5"),
];

/// The address of a pod of that name.
pub(crate) fn address(name: &str) -> String {
    let object = Pod::worker(name).object("serving");
    object["status"]["podIP"].as_str().unwrap().to_owned()
}

impl Worker {
    /// A healthy one.
    pub(crate) fn healthy(role: &'static str, number: u32, fabric: Fabric) -> Self {
        let mut worker = Self::without_tree(role, number, fabric);
        worker.tree = Arc::new(inside::tree(&worker.id, fabric));
        worker
    }

    /// One whose tree nobody looks at.
    pub(crate) fn without_tree(role: &'static str, number: u32, fabric: Fabric) -> Self {
        static NONE: LazyLock<Arc<Tree>> = LazyLock::new(Arc::default);
        let name = format!("{role}-{number}");
        let id = format!("{:04x}", id(role, number));
        let mut environment: Vec<(String, String)> = SET
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        environment.push(("VLLM_NIXL_SIDE_CHANNEL_HOST".to_owned(), address(&name)));
        environment.push(("HOSTNAME".to_owned(), name.clone()));
        Self {
            fabric,
            tree: Arc::clone(&NONE),
            node: deployment::node(&node(&id), fabric),
            name,
            role,
            id,
            missing: false,
            environment,
            words: words(role),
            changes: Vec::new(),
            faults: Vec::new(),
            trial: Trial::default(),
            logged: Vec::new(),
        }
    }

    /// Sets a variable of the engine's process, and nothing else.
    pub(crate) fn process(&mut self, name: &str, value: &str) {
        self.unset(name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// Takes a variable of the engine's process away.
    pub(crate) fn unset(&mut self, name: &str) {
        self.environment.retain(|(held, _)| held != name);
    }

    /// Gives a flag of the engine's process another value.
    pub(crate) fn flag(&mut self, name: &str, value: &str) {
        match self.words.iter().position(|word| word == name) {
            Some(at) => value.clone_into(&mut self.words[at + 1]),
            None => self.words.extend([name.to_owned(), value.to_owned()]),
        }
    }

    /// Takes a flag of the engine's process away.
    pub(crate) fn without_flag(&mut self, name: &str) {
        let at = self.words.iter().position(|word| word == name).unwrap();
        self.words.drain(at..at + 2);
    }

    /// Writes a file of the tree.
    pub(crate) fn file(&mut self, path: &str, text: &str) {
        self.tree.file(path, text);
    }

    /// Writes a file of a card's port.
    pub(crate) fn port(&mut self, card: usize, file: &str, text: &str) {
        let path = format!("/sys/class/infiniband/mlx5_{card}/ports/1/{file}");
        self.tree.file(&path, format!("{text}\n"));
    }

    /// The same of all cards of the fabric.
    pub(crate) fn ports(&mut self, file: &str, text: &str) {
        for card in 0..RAILS {
            self.port(card, file, text);
        }
    }

    /// Takes a file or a directory of the tree away.
    pub(crate) fn remove(&mut self, path: &str) {
        let path = self.tree.root().join(path.trim_start_matches('/'));
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Takes a module of the kernel away.
    pub(crate) fn without_module(&mut self, name: &str) {
        let path = self.tree.root().join("proc/modules");
        let text = std::fs::read_to_string(&path).unwrap();
        let kept: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with(&format!("{name} ")))
            .collect();
        std::fs::write(
            path,
            kept.join("\n").replace(&format!("{name},"), "") + "\n",
        )
        .unwrap();
        self.remove(&format!("/sys/module/{name}"));
    }

    /// Has the engine load this library too, or in place of one whose path contains a word.
    pub(crate) fn library(&mut self, path: &str, in_place_of: Option<&str>) {
        let mut paths = inside::loaded();
        if let Some(word) = in_place_of {
            paths.retain(|held| !held.contains(word));
        }
        paths.push(path.to_owned());
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        self.tree
            .file(&format!("/proc/{PID}/maps"), inside::maps(&paths));
    }

    /// Changes the pod as the API server gives it.
    pub(crate) fn pod(&mut self, change: impl FnOnce(Pod) -> Pod + Send + 'static) {
        self.changes.push(Box::new(change));
    }

    /// Writes what the process was told into the tree.
    pub(crate) fn write(&self) {
        let line = |words: &[String]| [words.join("\0"), "\0".to_owned()].concat();
        let environment: Vec<String> = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.tree
            .file(&format!("/proc/{PID}/environ"), line(&environment));
        let mut words: Vec<String> = ["python3", "-m", "dynamo.vllm"].map(str::to_owned).into();
        words.extend(self.words.iter().cloned());
        self.tree
            .file(&format!("/proc/{PID}/cmdline"), line(&words));
    }

    /// What it asks for beside GPUs.
    pub(crate) fn resource(&self) -> &'static str {
        match self.fabric {
            Fabric::InfiniBand => "rdma/ib",
            Fabric::Roce => "rdma/roce",
        }
    }

    fn log(&self) -> String {
        let mut text = log(&self.name, &self.id);
        for line in &self.logged {
            let _infallible = writeln!(text, "[1790000000.000001] [{}:42   :0] {line}", self.name);
        }
        text
    }

    /// The pod, with the changes; how its commands behave is still open.
    pub(crate) fn object(&mut self) -> Pod {
        let mut pod = Pod::worker(&self.name)
            .label("nvidia.com/dynamo-graph-deployment-name", "llama")
            .label("nvidia.com/dynamo-component", self.role)
            .label("nvidia.com/dynamo-component-type", self.role)
            .node(&node(&self.id))
            .spec("image", json!("registry.example/vllm-runtime:1.1.0"))
            .spec("command", json!(["python3", "-m", "dynamo.vllm"]))
            .spec("args", json!(words(self.role)))
            .spec(
                "securityContext",
                json!({"capabilities": {"add": ["IPC_LOCK"]}, "runAsUser": 0}),
            )
            .spec(
                "volumeMounts",
                json!([{"name": "shm", "mountPath": "/dev/shm"}]),
            )
            .set(
                "/spec/volumes",
                json!([{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}]),
            )
            .resource("nvidia.com/gpu", "8")
            .resource(self.resource(), "8")
            .log(self.log());
        let mut variables: Vec<Value> = SET[1..]
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        variables.push(json!({
            "name": "VLLM_NIXL_SIDE_CHANNEL_HOST",
            "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
        }));
        pod = pod.spec("env", variables.into());
        for change in self.changes.drain(..) {
            pod = change(pod);
        }
        pod.answers("env -i", self.trial.recorded())
    }
}

/// What every engine of a role is told.
fn words(role: &str) -> Vec<String> {
    let words = [
        "--model",
        "/models/private-model",
        "--disaggregation-mode",
        role,
        "--tensor-parallel-size",
        "8",
        "--block-size",
        "64",
        "--kv-cache-dtype",
        "fp8",
        "--kv-transfer-config",
        r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#,
    ];
    words.map(str::to_owned).into()
}

/// Prefill workers come first.
pub(crate) fn id(role: &str, number: u32) -> u32 {
    0xa000 + number + if role == "prefill" { 0 } else { 0x100 }
}

/// The node of a worker: each has one of its own.
pub(crate) fn node(id: &str) -> String {
    format!("node-{id}")
}

fn log(name: &str, id: &str) -> String {
    format!(
        "INFO 11-30 10:00:00 [__init__.py:12] engine {name} starts\n\
         2026-11-30 10:00:20 NIXL INFO    _api.py:361 Backend UCX was instantiated\n\
         2026-11-30 10:00:20 NIXL INFO    _api.py:251 Initialized NIXL agent: {id}-agent\n\
         INFO 11-30 10:00:25 [loggers.py:123] Engine 000: Avg prompt throughput: 12.0 tokens/s\n"
    )
}

impl Trial {
    fn recorded(&self) -> Recorded {
        let mut out = String::new();
        let mut say = |value: Value| {
            out.push_str("@check-interconnect@");
            // As the program writes it: a blank after each colon and comma, the kind first.
            let kind = value["say"].as_str().unwrap().to_owned();
            let mut rest = value.as_object().unwrap().clone();
            rest.remove("say");
            let _infallible = write!(out, "{{\"say\": \"{kind}\"");
            for (key, value) in rest {
                let _infallible = write!(out, ", \"{key}\": {value}");
            }
            out.push_str("}\n");
        };
        say(json!({"say": "loaded", "package": "nixl_cu12", "version": self.version}));
        say(json!({"say": "listed", "plugins": ["POSIX", "UCX"]}));
        say(json!({"say": "backend", "name": "UCX", "error": self.error}));
        let open: Vec<String> = (0..RAILS)
            .map(|n| format!("/dev/infiniband/uverbs{n}"))
            .collect();
        say(json!({"say": "held", "libraries": inside::loaded(), "open": open}));
        say(json!({"say": "done"}));
        say(
            json!({"say": "end", "why": "over", "step": null, "finished": true, "signal": null, "left_out": 0}),
        );
        let mut list = String::from(
            "+---+\n| Available Transports and Devices (ctx: x)  |\n+---+\n| Type       | Component | Transport | Device (System device) |\n+---+\n| loopback   | self      | + self    | + memory |\n| network    | tcp       | - tcp     | - eth0 - lo |\n",
        );
        for name in &self.transports {
            let devices: Vec<String> = (0..RAILS).map(|n| format!("+ mlx5_{n}:1 ({n})")).collect();
            let _infallible = writeln!(
                list,
                "| network    | ib        | + {name} | {} |",
                devices.join("  ")
            );
        }
        list.push_str("| accelerator | cuda_cpy  | + cuda_copy | + cuda |\n| accelerator | cuda_ipc  | + cuda_ipc | + cuda |\n| Legend: + = enabled, - = disabled |\n");
        Recorded {
            stdout: out.into(),
            stderr: list.into(),
            ..Recorded::default()
        }
    }
}
