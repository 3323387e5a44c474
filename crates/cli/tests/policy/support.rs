//! A directory of its own, a clean environment, and recipes to put into it.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// Something that no output may ever show.
pub(crate) const SECRET: &str = "hf_s3cr3tT0ken";

/// A directory that goes away with the test.
pub(crate) struct Place {
    pub(crate) root: tempfile::TempDir,
}

/// What a run gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_in("", args)
    }

    pub(crate) fn run_in(&self, directory: &str, args: &[&str]) -> Ran {
        let Output {
            status,
            stdout,
            stderr,
        } = Command::new(env!("CARGO_BIN_EXE_check-interconnect"))
            .args(args)
            .env_clear()
            .current_dir(self.path(directory))
            .output()
            .unwrap();
        let ran = Ran {
            code: status.code().unwrap(),
            out: String::from_utf8(stdout).unwrap(),
            err: String::from_utf8(stderr).unwrap(),
        };
        assert!(!ran.out.contains(SECRET), "{}", ran.out);
        assert!(!ran.err.contains(SECRET), "{}", ran.err);
        ran
    }

    /// The JSON report of `env` with these arguments, and the exit code.
    pub(crate) fn json(&self, args: &[&str]) -> (Value, i32) {
        let mut all = vec!["env", "-o", "json"];
        all.extend(args);
        let ran = self.run(&all);
        let value = serde_json::from_str(&ran.out)
            .unwrap_or_else(|e| panic!("{e}: {}{}", ran.out, ran.err));
        (value, ran.code)
    }
}

/// `(cause or check, status, note)` of all results that were found, accepted or are about decisions.
pub(crate) fn findings(report: &Value) -> Vec<(String, String, String)> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| {
            c["cause"].is_string()
                || c["name"].as_str().unwrap().starts_with("policy/")
                || ["suppressed", "known", "allowed", "declares", "(was"]
                    .iter()
                    .any(|w| text(&c["note"]).contains(w))
        })
        .map(|c| {
            let name = if c["cause"].is_string() {
                &c["cause"]
            } else {
                &c["name"]
            };
            (text(name), text(&c["status"]), text(&c["note"]))
        })
        .collect()
}

/// The findings of one status, by name.
pub(crate) fn of_status(report: &Value, status: &str) -> Vec<String> {
    let mut names: Vec<String> = findings(report)
        .into_iter()
        .filter(|(_, s, _)| s == status)
        .map(|(n, ..)| n)
        .collect();
    names.sort();
    names
}

/// A recipe without a gap, but for what is put into the environment of prefill and decode. Both list items of
/// `env`, with twelve spaces in front.
pub(crate) fn recipe(prefill: &str, decode: &str) -> String {
    recipe_on("rdma/ib: \"1\"", prefill, decode)
}

pub(crate) fn recipe_on(fabric: &str, prefill: &str, decode: &str) -> String {
    let mut out = String::from(
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata:\n  name: demo\nspec:\n  services:\n",
    );
    for (service, role, env) in [
        ("Prefill", "prefill", prefill),
        ("Decode", "decode", decode),
    ] {
        let _infallible = write!(
            out,
            r#"    {service}:
      componentType: worker
      subComponentType: {role}
      resources:
        limits:
          gpu: "1"
          custom: {{{fabric}}}
      extraPodSpec:
        mainContainer:
          image: vllm-runtime:1.0.0
          securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}
          command: [python3, -m, dynamo.vllm]
          args: [--model, m, --disaggregation-mode, {role}, --kv-transfer-config, '{{"kv_connector":"NixlConnector","kv_role":"kv_both"}}']
          env:
            - name: HF_TOKEN
              value: {SECRET}
{env}"#
        );
    }
    out
}

/// One environment entry on lines of its own.
pub(crate) fn entry(name: &str, value: &str) -> String {
    format!("            - name: {name}\n              value: {value}\n")
}

/// Good transports.
pub(crate) fn good() -> String {
    entry("UCX_TLS", "rc,cuda_copy,cuda_ipc")
}

/// Transports that leave TCP only.
pub(crate) fn tcp() -> String {
    entry("UCX_TLS", "tcp,cuda_copy")
}
