//! Runs the program against a cluster, and reads its report.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stand_in::{Pod, StandIn};

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

/// Ways in, as options. kubectl may not be here.
pub(crate) fn ways() -> Vec<Vec<&'static str>> {
    let mut ways = vec![Vec::new()];
    if has_kubectl() {
        ways.push(vec!["--via", "kubectl"]);
    }
    ways
}

pub(crate) fn has_kubectl() -> bool {
    let there = Command::new("kubectl")
        .args(["version", "--client"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !there {
        eprintln!("skipped: no kubectl here, so only the API is tried");
    }
    there
}

/// The program with a kubeconfig and nothing else of this machine's.
pub(crate) fn program(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_check-interconnect"));
    command
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", kubeconfig.parent().unwrap())
        .env("NO_COLOR", "1")
        .env_remove("HTTPS_PROXY")
        .env_remove("HTTP_PROXY")
        .env_remove("https_proxy")
        .env_remove("http_proxy")
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn ended(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn run_with(kubeconfig: &Path, words: &[&str]) -> Run {
    ended(program(kubeconfig).args(words))
}

pub(crate) fn run(api: &StandIn, words: &[&str]) -> Run {
    run_with(api.kubeconfig(), words)
}

/// Results of one check.
pub(crate) fn of<'r>(report: &'r Value, name: &str) -> Vec<&'r Value> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().filter(|c| c["name"] == name).collect()
}

/// All causes that a report names.
pub(crate) fn causes(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().filter_map(|c| c["cause"].as_str()).collect()
}

/// A worker of Dynamo that is told its role, the first word of its name.
pub(crate) fn dynamo_worker(name: &str) -> Pod {
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
