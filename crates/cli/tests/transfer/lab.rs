//! Two isolated workers of this machine as pods of a stand-in cluster.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::held::{Held, may_isolate};
use serde_json::json;
use stand_in::{Behaviour, Cluster, Pod, StandIn};

#[path = "../common/program.rs"]
#[allow(dead_code)]
mod common;
pub(crate) use common::{Run, causes, of, ways};
use common::{dynamo_worker, ended, program};

/// What a command may take beyond its time: to start, and to say what there is, on a machine whose processors others have
/// too. What hangs here does so for hours.
pub(crate) const BEYOND: Duration = Duration::from_secs(10);

/// Two workers and a cluster that has them as pods.
pub(crate) struct Lab {
    // Before their folder.
    _held: Held,
    folder: tempfile::TempDir,
    pub(crate) api: StandIn,
    /// One after the other: together they take so long that their times are over.
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Lab {
    /// None, with the reason printed, where it cannot be.
    pub(crate) fn up(options: &[&str]) -> Option<Self> {
        Self::with(options, |pod| pod)
    }

    /// With other pods than usual.
    pub(crate) fn with(options: &[&str], change: impl Fn(Pod) -> Pod) -> Option<Self> {
        if !may_isolate() {
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let held = Held::up("two-workers.sh", folder.path(), options.iter().copied()).unwrap();
        let pod = |name: &str, node: &str| {
            let kubectl = folder.path().join("kubectl").display().to_string();
            let words = [&kubectl, "exec", "-i", name, "--"].map(str::to_owned);
            let ip = if node == "node-a" {
                "192.0.2.1"
            } else {
                "192.0.2.2"
            };
            change(
                dynamo_worker(name)
                    .node(node)
                    .set("/status/podIP", json!(ip))
                    .set("/status/podIPs", json!([{ "ip": ip }]))
                    .behaviour(Behaviour::Process(words.into())),
            )
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
            _alone: alone,
        })
    }

    /// The program against this cluster.
    pub(crate) fn program(&self) -> Command {
        program(self.api.kubeconfig())
    }

    /// `nixl` between the two workers, to be said more to.
    pub(crate) fn between(&self) -> Command {
        let mut command = self.program();
        let both = ["--pod", "decode-0", "--peer", "prefill-0"];
        command.args(["nixl", "-n", "lab"]).args(both);
        command
    }

    /// `nixl` between the two workers.
    pub(crate) fn nixl(&self, words: &[&str]) -> Run {
        ended(self.between().args(words))
    }

    /// A measured transfer, as JSON.
    pub(crate) fn transfer(&self, words: &[&str]) -> Run {
        let mut all = vec!["--transfer", "-o", "json"];
        all.extend(words);
        if !words.contains(&"--timeout") {
            all.extend(["--timeout", "150s"]);
        }
        self.nixl(&all)
    }

    /// What stands in for kubectl and reaches the workers without the API.
    pub(crate) fn kubectl(&self) -> String {
        self.folder.path().join("kubectl").display().to_string()
    }

    /// A file of this lab.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
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

    /// Makes the decode worker's engine read so many MiB of the other's; needs ENGINE_PULLS in their environment.
    pub(crate) fn pull(&self, mib: u32) {
        let file = |name: &str| self.folder.path().join(name);
        let _none = std::fs::remove_file(file("pulled"));
        std::fs::write(file("asked"), mib.to_string()).unwrap();
        std::fs::rename(file("asked"), file("pull")).unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while !file("pulled").exists() {
            let log = std::fs::read_to_string(file("decode-0.log")).unwrap_or_default();
            assert!(
                Instant::now() < until && !log.contains("Traceback"),
                "{log}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
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
