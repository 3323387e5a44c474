//! What the tests share: the program, reports, and two isolated workers with a real engine.

use std::process::{Command, Stdio};

use crate::held::{Held, may_isolate};
use crate::wheels::nixl;
use serde_json::{Value, json};
use stand_in::{Behaviour, Cluster, Pod, StandIn};

/// What the program did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|e| panic!("{e}: {}\n{}", self.out, self.err))
    }
}

/// The program with the cluster's kubeconfig and nothing else of this machine's.
pub(crate) fn program(api: &StandIn) -> Command {
    let kubeconfig = api.kubeconfig();
    let mut command = Command::new(env!("CARGO_BIN_EXE_check-interconnect"));
    command
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    for name in ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"] {
        command.env_remove(name);
    }
    command
}

pub(crate) fn run(api: &StandIn, words: &[&str]) -> Run {
    let output = program(api).args(words).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Results of one check.
pub(crate) fn of<'r>(report: &'r Value, name: &str) -> Vec<&'r Value> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().filter(|c| c["name"] == name).collect()
}

/// Whether a result has this status, this cause (none where empty) and these words.
pub(crate) fn has(report: &Value, name: &str, status: &str, cause: &str, words: &str) -> bool {
    of(report, name).iter().any(|check| {
        check["status"] == status
            && check["cause"].as_str().unwrap_or_default() == cause
            && check["detail"].as_str().unwrap_or_default().contains(words)
    })
}

/// All causes that a report names.
pub(crate) fn causes(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().filter_map(|c| c["cause"].as_str()).collect()
}

/// The ways in that are here.
pub(crate) fn ways() -> Vec<Vec<&'static str>> {
    let mut ways = vec![Vec::new()];
    let there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if there.is_ok_and(|status| status.success()) {
        ways.push(vec!["--via", "kubectl"]);
    } else {
        eprintln!("skipped: no kubectl here, so only the API is tried");
    }
    ways
}

/// A worker of Dynamo that is told its role.
pub(crate) fn worker(name: &str) -> Pod {
    Pod::worker(name)
        .spec("image", json!("registry.example/vllm-runtime:1.0.0"))
        .spec("command", json!(["python3", "-m", "dynamo.vllm"]))
        .spec(
            "args",
            json!([
                "--disaggregation-mode",
                name.split('-').next().unwrap(),
                "--kv-transfer-config",
                r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#
            ]),
        )
}

/// Two workers with an engine, and a cluster that has them as pods.
pub(crate) struct Lab {
    // Before their folder.
    _held: Held,
    folder: tempfile::TempDir,
    pub(crate) api: StandIn,
}

impl Lab {
    /// None, with the reason printed, where it cannot be.
    pub(crate) fn up(version: &str, settings: &[&str]) -> Option<Self> {
        Self::with(version, &["--engine"], settings)
    }

    /// The same with other options of the script.
    pub(crate) fn with(version: &str, options: &[&'static str], settings: &[&str]) -> Option<Self> {
        let path = nixl(version)?;
        if !may_isolate() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut options: Vec<&str> = options.to_vec();
        // A later one of the same name wins.
        for setting in [path.as_str()].into_iter().chain(settings.iter().copied()) {
            options.extend(["--env", setting]);
        }
        let held = Held::up("two-workers.sh", folder.path(), options).unwrap();
        let pod = |name: &str, node: &str| {
            let kubectl = folder.path().join("kubectl").display().to_string();
            let words = [&kubectl, "exec", "-i", name, "--"].map(str::to_owned);
            worker(name)
                .node(node)
                .behaviour(Behaviour::Process(words.into()))
        };
        let api = Cluster::new()
            .namespace("lab")
            .pod(pod("prefill-0", "node-a"))
            .pod(pod("decode-0", "node-b"))
            .start()
            .unwrap();
        Some(Self {
            _held: held,
            folder,
            api,
        })
    }

    /// `nixl` over one worker or all, as JSON.
    pub(crate) fn nixl(&self, words: &[&str]) -> Value {
        let mut all = vec!["nixl", "-n", "lab", "-o", "json"];
        all.extend(words);
        run(&self.api, &all).json()
    }

    /// Runs a command in a worker.
    pub(crate) fn exec(&self, pod: &str, words: &[&str]) -> String {
        let output = Command::new(self.folder.path().join("kubectl"))
            .args(["exec", "-i", "-n", "lab", pod, "--"])
            .args(words)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What runs in a worker beside its engine.
    pub(crate) fn beside(&self, pod: &str) -> Vec<String> {
        self.exec(pod, &["ps", "-e", "-o", "pid=,args="])
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.starts_with("1 ") && !line.contains("ps -e -o"))
            .collect()
    }
}
