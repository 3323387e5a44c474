//! `cargo xtask-release bench-pods` and `bench-check`: many pods against the stand-in API server, each answering a recorded stream after 50 ms.
//!
//! The ideal is what the answers alone take: pods divided by how many are looked into at once, times 50 ms.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use stand_in::{Cluster, Pod, StandIn, Tree};

use crate::bench;

/// How long each container takes.
const ANSWER: Duration = Duration::from_millis(50);
/// Runs of each size; the fastest counts, because something else may run here too.
const RUNS: usize = 5;
/// The program's default.
const AT_ONCE: usize = 16;

/// What one size took.
struct Took {
    pods: f64,
    seconds: f64,
    kilobytes: f64,
}

/// Which command is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// `node` over pods.
    Node,
    /// `check` over a deployment.
    Check,
}

impl What {
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["node", "-n", "serving", "--all"],
            Self::Check => &["check", "llama", "-n", "serving"],
        }
    }
}

/// Runs the program over so many pods, and prints one line for each number.
pub(crate) fn run(root: &Path, sizes: &[usize], what: What) -> Result<String, String> {
    if cfg!(debug_assertions) {
        return Err(
            "the stand-in API server has to be optimised as the program is, or it is measured: cargo xtask-release"
                .to_owned(),
        );
    }
    let binary = bench::release(root)?;
    let mut out = String::from(
        "pods that answer after 50 ms, against the time that their answers alone take (promised: at most 1.3)\n",
    );
    let streams = [recorded("prefill")?, recorded("decode")?];
    let mut first: Option<Took> = None;
    for size in sizes {
        let api = serving(*size, &streams).map_err(|e| e.to_string())?;
        let mut best = Duration::MAX;
        let mut lines = 0;
        for _ in 0..RUNS {
            let begin = Instant::now();
            let output = command(&binary, &api, what)
                .output()
                .map_err(|e| format!("{}: {e}", binary.display()))?;
            best = best.min(begin.elapsed());
            lines = String::from_utf8_lossy(&output.stdout).lines().count();
        }
        let execs = api.execs().len() / RUNS;
        let kilobytes = peak(&binary, &api, what);
        let ideal = ANSWER * u32::try_from(size.div_ceil(AT_ONCE)).unwrap_or(u32::MAX);
        let _infallible = writeln!(
            out,
            "  {size:>5} pods, {AT_ONCE} at once: {:7.0} ms, ideal {:6.0} ms, ratio {:.2}; {execs} execs, {lines} lines of text, peak memory {}",
            best.as_secs_f64() * 1000.0,
            ideal.as_secs_f64() * 1000.0,
            best.as_secs_f64() / ideal.as_secs_f64(),
            kilobytes.map_or_else(
                || "not measured".to_owned(),
                |k| format!("{} MiB", k / 1024)
            ),
        );
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let took = Took {
            pods: *size as f64,
            seconds: best.as_secs_f64(),
            kilobytes: kilobytes.unwrap_or_default() as f64,
        };
        if let Some(few) = &first {
            let more = (took.pods / few.pods).ln();
            let _infallible = writeln!(
                out,
                "        against {} pods, time grows with an exponent of {:.2}, memory of {:.2}",
                few.pods,
                (took.seconds / few.seconds).ln() / more,
                (took.kilobytes / few.kilobytes).ln() / more
            );
        }
        first.get_or_insert(took);
        if what == What::Check {
            let _infallible = writeln!(out, "        {}", judged(&binary, &api)?);
        }
    }
    Ok(out)
}

fn command(binary: &Path, api: &StandIn, what: What) -> Command {
    let mut command = Command::new(binary);
    command.args(what.words());
    quiet(&mut command, api);
    command
}

fn quiet(command: &mut Command, api: &StandIn) {
    command
        .env("KUBECONFIG", api.kubeconfig())
        .env("HOME", api.directory())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
}

/// What judging alone takes: a bundle of the same, judged again.
fn judged(binary: &Path, api: &StandIn) -> Result<String, String> {
    let bundle = api.directory().join("bundle.tar.gz");
    let failed = |e: std::io::Error| format!("{}: {e}", binary.display());
    let mut save = command(binary, api, What::Check);
    save.arg("--bundle").arg(&bundle).stdout(Stdio::null());
    save.status().map_err(failed)?;
    let bytes = std::fs::metadata(&bundle).map_err(failed)?.len();
    let output = Command::new("/usr/bin/time")
        .args(["-f", "%U %S %M"])
        .arg(binary)
        .arg("replay")
        .arg(&bundle)
        .stdout(Stdio::null())
        .output()
        .map_err(failed)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = text.lines().last().unwrap_or_default().to_owned();
    let mut words = last.split_whitespace();
    Ok(format!(
        "replay of its bundle ({} KiB): {} s of processor, {} s of the system, peak memory {} KiB",
        bytes / 1024,
        words.next().unwrap_or("?"),
        words.next().unwrap_or("?"),
        words.next().unwrap_or("?"),
    ))
}

/// Peak memory in KiB, where GNU time tells it.
fn peak(binary: &Path, api: &StandIn, what: What) -> Option<u64> {
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "%M"]).arg(binary).args(what.words());
    quiet(&mut command, api);
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines().last()?.trim().parse().ok()
}

/// What the collecting script prints for a worker of this role.
fn recorded(role: &str) -> Result<Vec<u8>, String> {
    let tree = Tree::worker();
    tree.file(
        "/proc/42/cmdline",
        format!(
            "python3\0-m\0dynamo.vllm\0--disaggregation-mode\0{role}\0--kv-transfer-config\0{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}}\0"
        ),
    );
    let options = probe::local::Options {
        run_tools: false,
        ..tree.options()
    };
    probe::local::collect(&options).map_err(|e| e.to_string())
}

fn serving(size: usize, streams: &[Vec<u8>; 2]) -> std::io::Result<StandIn> {
    let [prefill, decode] = streams;
    // What was sent is not looked at here.
    let mut cluster = Cluster::new().namespace("serving").keep(0);
    for number in 0..size {
        // As many pairs as there can be of so many.
        let (role, stream) = if number % 2 == 0 {
            ("prefill", prefill)
        } else {
            ("decode", decode)
        };
        let config = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#;
        cluster = cluster.pod(
            Pod::worker(&format!("{role}-{number}"))
                .graph("llama")
                .label("nvidia.com/dynamo-component", role)
                .node(&format!("node-{}", number / 8))
                .spec("image", json!("registry.example/vllm-runtime:1.0.0"))
                .spec("command", json!(["python3", "-m", "dynamo.vllm"]))
                .spec(
                    "args",
                    json!([
                        "--disaggregation-mode",
                        role,
                        "--kv-transfer-config",
                        config
                    ]),
                )
                .env("UCX_TLS", "rc,cuda_copy")
                .resource("nvidia.com/gpu", "1")
                .resource("rdma/ib", "1")
                .recorded(stream.clone(), ANSWER),
        );
    }
    cluster.start()
}
