//! Runs the program in a directory of its own, with a scrubbed environment and a time limit.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_check-interconnect");

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(1);

/// Every format.
pub(crate) const FORMATS: [&str; 4] = ["text", "short", "json", "jsonl"];

/// A directory with inputs; the program runs in it.
pub(crate) struct Dir(TempDir);

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with the directories above it.
    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("its directory");
        fs::write(&path, content).expect("a file");
        path
    }

    /// A directory with a recipe that has nothing wrong: it is called `good` and `unproven`.
    pub(crate) fn with_good() -> Self {
        let dir = Self::new();
        dir.file("good.yaml", good());
        dir
    }

    /// The program with these arguments.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Out {
        Run::new(self, args).go()
    }

    /// `env` with a JSON report.
    pub(crate) fn json<S: AsRef<OsStr>>(&self, paths: impl IntoIterator<Item = S>) -> (Out, Value) {
        let out = Run::new(self, ["env", "-o", "json"]).args(paths).go();
        let value = out.json();
        (out, value)
    }
}

/// A run to be.
pub(crate) struct Run {
    command: Command,
    stdin: Option<Vec<u8>>,
}

impl Run {
    pub(crate) fn new<S: AsRef<OsStr>>(dir: &Dir, args: impl IntoIterator<Item = S>) -> Self {
        Self::of(dir, PROGRAM, args)
    }

    /// Another program (a shell around ours).
    pub(crate) fn of<S: AsRef<OsStr>>(
        dir: &Dir,
        program: &str,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(dir.path())
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        Self {
            command,
            stdin: None,
        }
    }

    pub(crate) fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        self.stdin = Some(text.as_ref().to_vec());
        self
    }

    /// Runs it. A run over the time limit fails the test.
    pub(crate) fn go(self) -> Out {
        let Self { mut command, stdin } = self;
        let piped = if stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let started = Instant::now();
        let mut child = command
            .stdin(piped)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut to = child.stdin.take();
        let feeder = thread::spawn(move || {
            if let (Some(to), Some(text)) = (&mut to, stdin) {
                // The program may have seen enough before the end.
                let _closed = to.write_all(&text);
            }
        });
        let mut out = child.stdout.take().expect("piped");
        let mut err = child.stderr.take().expect("piped");
        let read_out = thread::spawn(move || {
            let mut all = Vec::new();
            out.read_to_end(&mut all).map(|_| all)
        });
        let read_err = thread::spawn(move || {
            let mut all = Vec::new();
            err.read_to_end(&mut all).map(|_| all)
        });
        let status: ExitStatus = loop {
            if let Some(status) = child.try_wait().expect("it can be waited for") {
                break status;
            }
            if started.elapsed() > LIMIT {
                let _dead = child.kill();
                let _reaped = child.wait();
                panic!("{command:?} was still running after {LIMIT:?}");
            }
            thread::sleep(Duration::from_millis(2));
        };
        feeder.join().expect("the feeder ends");
        let bytes_out = read_out
            .join()
            .expect("the reader ends")
            .expect("stdout can be read");
        let bytes_err = read_err
            .join()
            .expect("the reader ends")
            .expect("stderr can be read");
        let out = Out {
            what: format!("{command:?}"),
            code: status.code(),
            stdout: String::from_utf8(bytes_out).expect("stdout is UTF-8"),
            stderr: String::from_utf8(bytes_err).expect("stderr is UTF-8"),
            took: started.elapsed(),
        };
        assert!(!out.stderr.contains("panicked"), "{out}");
        assert!(out.code.is_some(), "ended by a signal: {out}");
        out
    }
}

/// What a run did.
pub(crate) struct Out {
    what: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl std::fmt::Display for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cut = |text: &str| text.chars().take(6000).collect::<String>();
        write!(
            f,
            "{}\nexit {:?} after {:?}\n--- stdout\n{}\n--- stderr\n{}",
            self.what,
            self.code,
            self.took,
            cut(&self.stdout),
            cut(&self.stderr)
        )
    }
}

impl Out {
    #[track_caller]
    pub(crate) fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Standard output holds all of these. Line breaks count as spaces: text is wrapped.
    #[track_caller]
    pub(crate) fn says(&self, words: &[&str]) -> &Self {
        let flat = flat(&self.stdout);
        for word in words {
            assert!(flat.contains(word), "no {word:?} in\n{self}");
        }
        self
    }

    /// Standard error holds all of these.
    #[track_caller]
    pub(crate) fn complains(&self, words: &[&str]) -> &Self {
        let flat = flat(&self.stderr);
        for word in words {
            assert!(flat.contains(word), "no {word:?} on stderr of\n{self}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self}"))
    }
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Results about inputs in a JSON report.
pub(crate) fn inputs(report: &Value) -> Vec<&Value> {
    report["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .filter(|c| c["name"] == "input")
        .collect()
}

/// Readiness of the deployment of that name.
pub(crate) fn readiness<'r>(report: &'r Value, name: &str) -> Option<&'r str> {
    report["deployments"]
        .as_array()
        .expect("deployments")
        .iter()
        .find(|d| d["name"] == name)
        .and_then(|d| d["readiness"].as_str())
}

/// A DynamoGraphDeployment: the main containers of prefill and decode as YAML text without indentation.
pub(crate) fn graph(name: &str, prefill: &str, decode: &str) -> String {
    let mut out = format!(
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata:\n  name: {name}\nspec:\n  services:\n"
    );
    for (service, role, body) in [
        ("Prefill", "prefill", prefill),
        ("Decode", "decode", decode),
    ] {
        out.push_str(&format!(
            "    {service}:\n      subComponentType: {role}\n      replicas: 2\n      resources:\n        limits:\n          gpu: \"1\"\n          custom:\n            rdma/ib: \"1\"\n      extraPodSpec:\n        mainContainer:\n"
        ));
        for line in body.lines() {
            out.push_str("          ");
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The main container of a vLLM worker.
pub(crate) fn container(role: &str, env: &str) -> String {
    format!(
        "image: example.com/vllm-runtime:1.0.0\ncommand: [python3, -m, dynamo.vllm]\nargs:\n  - --model\n  - some/model\n  - --disaggregation-mode\n  - {role}\n  - --kv-transfer-config\n  - '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}}'\nsecurityContext:\n  capabilities:\n    add: [IPC_LOCK]\n{env}"
    )
}

/// The same in both roles.
pub(crate) fn both(name: &str, env: &str) -> String {
    graph(name, &container("prefill", env), &container("decode", env))
}

fn with_tls(name: &str, tls: &str) -> String {
    both(
        name,
        &format!("env:\n  - name: UCX_TLS\n    value: {tls}\n"),
    )
}

/// Nothing wrong, nothing proven.
pub(crate) fn good() -> String {
    with_tls("good", "rc,cuda_copy,cuda_ipc")
}

/// Fails: TCP alone in GPU workers that ask for RDMA.
pub(crate) fn blocked() -> String {
    with_tls("blocked", "tcp")
}

/// Warns: RDMA without IPC_LOCK.
pub(crate) fn degraded() -> String {
    with_tls("degraded", "rc,cuda_copy,cuda_ipc")
        .lines()
        .filter(|l| {
            !["securityContext:", "capabilities:", "add:"]
                .iter()
                .any(|w| l.trim().starts_with(w))
        })
        .fold(String::new(), |all, line| all + line + "\n")
}

/// One worker that does both.
pub(crate) fn aggregated() -> String {
    "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: aggregated\nspec:\n  replicas: 1\n  template:\n    spec:\n      containers:\n        - name: server\n          image: example.com/vllm-openai:1.0.0\n          command: [vllm, serve, some/model]\n          resources:\n            limits:\n              nvidia.com/gpu: 1\n".to_owned()
}

/// Parses to an error.
pub(crate) fn broken() -> String {
    "kind: Deployment\nmetadata:\n  name: [a, b\nspec: {\n".to_owned()
}

/// Whether the tests run as root, for whom no file is unreadable.
pub(crate) fn is_root() -> bool {
    // `/proc/self` belongs to whoever runs.
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// Control characters and others that steer a terminal or hide text.
pub(crate) fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{61c}')
}

/// No output has a character that steers a terminal.
#[track_caller]
pub(crate) fn assert_harmless(what: &str, text: &str) {
    if let Some((at, c)) = text.char_indices().find(|(_, c)| is_hostile(*c)) {
        let around: String = text[..at]
            .chars()
            .rev()
            .take(60)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        panic!("{what}: U+{:04X} behind {around:?}", u32::from(c));
    }
}

/// Words as arguments.
pub(crate) fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}
