//! Isolated workers of this machine (tests/lab/workers.sh) as pods of a stand-in cluster.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::held::{Held, may_isolate};
use serde_json::{Value, json};
use stand_in::{Behaviour, Cluster, Pod, StandIn};

#[path = "../common/program.rs"]
#[allow(dead_code)]
mod common;
use common::{dynamo_worker, ended, program};

const NAMES: [&str; 4] = ["prefill-0", "prefill-1", "decode-0", "decode-1"];

/// Two prefill and two decode workers, and a cluster that has them as pods.
pub(crate) struct Lab {
    // Before their folder.
    _held: Held,
    folder: tempfile::TempDir,
    api: StandIn,
    /// One after the other: four engines and as many transfers leave no processor for others.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Lab {
    /// `own` are variables of one of them.
    pub(crate) fn up(all: &[&str], own: &[(&str, &str)]) -> Option<Self> {
        if !may_isolate() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        for (name, variables) in own {
            std::fs::write(folder.path().join(format!("{name}.env")), variables).unwrap();
        }
        let words = NAMES.iter().chain(&["--"]).chain(all).copied();
        let held = Held::up("workers.sh", folder.path(), words).unwrap();
        let mut cluster = Cluster::new().namespace("lab");
        for (at, name) in NAMES.iter().enumerate() {
            cluster = cluster.pod(pod(name, at, folder.path()));
        }
        let api = cluster.start().unwrap();
        Some(Self {
            _held: held,
            folder,
            api,
            _alone: alone,
        })
    }

    /// Runs a command in the namespaces of a worker.
    pub(crate) fn exec(&self, pod: &str, words: &[&str]) -> String {
        let output = Command::new(self.folder.path().join("kubectl"))
            .args(["exec", "-i", "-n", "lab", pod, "--"])
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `check` over all of them, with measured transfers.
    pub(crate) fn check(&self, words: &[&str]) -> Value {
        let measured = [
            "check",
            "-n",
            "lab",
            "--transfer",
            "--largest",
            "1M",
            "-o",
            "json",
        ];
        let run = ended(program(self.api.kubeconfig()).args(measured).args(words));
        let told = &run.err;
        assert!(
            told.contains("--transfer: ") && told.contains(" pairs (--pairs "),
            "{told}"
        );
        run.json()
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

fn pod(name: &str, at: usize, folder: &Path) -> Pod {
    let kubectl = folder.join("kubectl").display().to_string();
    let words = [&kubectl, "exec", "-i", name, "--"].map(str::to_owned);
    let ip = format!("192.0.2.{}", at + 1);
    let role = name.split('-').next().unwrap();
    dynamo_worker(name)
        .node(&format!("node-{at}"))
        .label("nvidia.com/dynamo-component", role)
        .set("/status/podIP", json!(ip))
        .set("/status/podIPs", json!([{ "ip": ip }]))
        .behaviour(Behaviour::Process(words.into()))
}

/// Pods that are named as a bad end.
pub(crate) fn bad_ends(report: &Value) -> Vec<String> {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["cause"] == "nixl-transfer-bad-end")
        .map(|check| check["subject"]["pod"].as_str().unwrap().to_owned())
        .collect()
}
