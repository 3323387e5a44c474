//! What the tests share: the program, reports, and two isolated workers with a real engine.

use std::process::Command;

use crate::held::{Held, may_isolate};
use crate::wheels::nixl;
use serde_json::Value;
use stand_in::{Behaviour, Cluster, StandIn};

#[path = "../common/program.rs"]
#[allow(dead_code)]
mod common;
pub(crate) use common::{causes, dynamo_worker as worker, of, program, run, ways};

/// Whether a result has this status, this cause (none where empty) and these words.
pub(crate) fn has(report: &Value, name: &str, status: &str, cause: &str, words: &str) -> bool {
    of(report, name).iter().any(|check| {
        check["status"] == status
            && check["cause"].as_str().unwrap_or_default() == cause
            && check["detail"].as_str().unwrap_or_default().contains(words)
    })
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
