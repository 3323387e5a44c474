//! Isolated workers of this machine (tests/lab/workers.sh) as pods of a stand-in cluster.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use stand_in::{Behaviour, Cluster, Pod, StandIn};

const NAMES: [&str; 4] = ["prefill-0", "prefill-1", "decode-0", "decode-1"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `PYTHONPATH=…` of one version of NIXL; none, with the reason printed, where it cannot be had.
pub(crate) fn nixl(version: &str) -> Option<String> {
    let output = Command::new(repository().join(".ci/nixl")).output().ok()?;
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    let folder = PathBuf::from(text.lines().last()?);
    let one = folder.join(format!("v{version}"));
    if !one.is_dir() {
        eprintln!("skipped: no wheel of NIXL {version} here");
        return None;
    }
    Some(format!(
        "PYTHONPATH={}:{}",
        one.display(),
        folder.join("numpy").display()
    ))
}

fn may_isolate() -> bool {
    let output = Command::new("unshare")
        .args([
            "--net", "--pid", "--ipc", "--uts", "--mount", "--fork", "ip", "link",
        ])
        .output();
    let works = output.as_ref().is_ok_and(|o| o.status.success());
    if !works {
        eprintln!("skipped: no namespaces for us here (root and unshare are needed): {output:?}");
    }
    works
}

/// Two prefill and two decode workers, and a cluster that has them as pods.
pub(crate) struct Lab {
    script: Child,
    folder: tempfile::TempDir,
    api: StandIn,
}

impl Lab {
    /// `own` are variables of one of them.
    pub(crate) fn up(all: &[&str], own: &[(&str, &str)]) -> Option<Self> {
        if !may_isolate() {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, variables) in own {
            std::fs::write(folder.path().join(format!("{name}.env")), variables).unwrap();
        }
        let mut script = Command::new(repository().join("tests/lab/workers.sh"))
            .arg("hold")
            .arg(folder.path())
            .args(NAMES)
            .arg("--")
            .args(all)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(script.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        if line.trim() != "ready" {
            let mut why = String::new();
            let _read = script.stderr.take().unwrap().read_to_string(&mut why);
            panic!("the workers do not start: {why}");
        }
        let mut cluster = Cluster::new().namespace("lab");
        for (at, name) in NAMES.iter().enumerate() {
            cluster = cluster.pod(pod(name, at, folder.path()));
        }
        let api = cluster.start().unwrap();
        Some(Self {
            script,
            folder,
            api,
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
        let kubeconfig = self.api.kubeconfig();
        let output = Command::new(env!("CARGO_BIN_EXE_check-interconnect"))
            .args([
                "check",
                "-n",
                "lab",
                "--transfer",
                "--largest",
                "1M",
                "-o",
                "json",
            ])
            .args(words)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", kubeconfig.parent().unwrap())
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            told.contains("--transfer: ") && told.contains(" pairs (--pairs "),
            "{told}"
        );
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"))
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

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ended = self.script.wait();
    }
}

fn pod(name: &str, at: usize, folder: &Path) -> Pod {
    let kubectl = folder.join("kubectl").display().to_string();
    let words = [&kubectl, "exec", "-i", name, "--"].map(str::to_owned);
    let ip = format!("192.0.2.{}", at + 1);
    let role = name.split('-').next().unwrap();
    Pod::worker(name)
        .node(&format!("node-{at}"))
        .label("nvidia.com/dynamo-component", role)
        .set("/status/podIP", json!(ip))
        .set("/status/podIPs", json!([{ "ip": ip }]))
        .behaviour(Behaviour::Process(words.into()))
        .spec("image", json!("registry.example/vllm-runtime:1.0.0"))
        .spec("command", json!(["python3", "-m", "dynamo.vllm"]))
        .spec(
            "args",
            json!([
                "--disaggregation-mode",
                role,
                "--kv-transfer-config",
                r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#
            ]),
        )
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
