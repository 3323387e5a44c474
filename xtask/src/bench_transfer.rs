//! `cargo xtask bench-transfer`: `nixl --transfer` against a script that makes the same calls of NIXL and nothing else, in
//! two isolated workers of this machine. Rates, as ratios: what looking, hashing and counting cost the transfers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

/// Runs of each side, alternating; the fastest transfer of each counts, because something else may run here too.
const RUNS: usize = 3;

/// Bytes a second by operation and size.
type Rates = BTreeMap<(String, u64), f64>;

/// Two workers, which end with this.
struct Workers(Child, PathBuf);

impl Drop for Workers {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ended = self.0.wait();
        let _nothing = std::fs::remove_dir_all(&self.1);
    }
}

pub(crate) fn run(root: &Path, binary: &Path) -> Result<String, String> {
    let wheels = wheels(root)?;
    let path = format!(
        "PYTHONPATH={}:{}",
        wheels.join("v1.5.1").display(),
        wheels.join("numpy").display()
    );
    let folder = std::env::temp_dir().join(format!("bench-transfer-{}", std::process::id()));
    let _workers = workers(root, &folder, &path)?;
    let kubectl = folder.join("kubectl");
    let mut ours = Rates::new();
    let mut plain = Rates::new();
    let (mut our_time, mut plain_time) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..RUNS {
        let begin = Instant::now();
        best(&mut ours, transferred(binary, &kubectl)?);
        our_time = our_time.min(begin.elapsed().as_secs_f64());
        let begin = Instant::now();
        best(&mut plain, scripted(root, &kubectl, &path)?);
        plain_time = plain_time.min(begin.elapsed().as_secs_f64());
    }
    let mut out = String::from(
        "nixl --transfer against a plain script that makes the same calls, over TCP between two isolated workers (NIXL 1.5.1)\n",
    );
    for ((operation, bytes), own) in &ours {
        let Some(other) = plain.get(&(operation.clone(), *bytes)) else {
            continue;
        };
        let _infallible = writeln!(
            out,
            "  {operation:<5} {:>6} KiB: {:6.3} GB/s, script {:6.3} GB/s, ratio {:.2}",
            bytes >> 10,
            own / 1e9,
            other / 1e9,
            own / other
        );
    }
    let _infallible = writeln!(
        out,
        "  all of it: {our_time:.1} s with both looks, the script {plain_time:.1} s, ratio {:.2}",
        our_time / plain_time
    );
    Ok(out)
}

fn best(held: &mut Rates, new: Rates) {
    for (key, rate) in new {
        let one = held.entry(key).or_insert(0.0);
        *one = one.max(rate);
    }
}

fn wheels(root: &Path) -> Result<PathBuf, String> {
    let output = Command::new(root.join(".ci/nixl"))
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!(".ci/nixl: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().last() {
        Some(folder) if output.status.success() => Ok(PathBuf::from(folder)),
        _ => Err("no wheels of NIXL here".to_owned()),
    }
}

fn workers(root: &Path, folder: &Path, path: &str) -> Result<Workers, String> {
    let mut workers = Workers(
        Command::new(root.join("tests/lab/two-workers.sh"))
            .arg("hold")
            .arg(folder)
            .args(["--engine", "--env", path])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("two-workers.sh: {e}"))?,
        folder.to_owned(),
    );
    let mut line = String::new();
    if let Some(stdout) = workers.0.stdout.take() {
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(|e| e.to_string())?;
    }
    if line.trim() == "ready" {
        Ok(workers)
    } else {
        Err("no two workers here; root, unshare and ip are needed".to_owned())
    }
}

fn transferred(binary: &Path, kubectl: &Path) -> Result<Rates, String> {
    let output = Command::new(binary)
        .args([
            "nixl",
            "-n",
            "lab",
            "--pod",
            "decode-0",
            "--peer",
            "prefill-0",
        ])
        .args(["--transfer", "--timeout", "180s", "-o", "json", "--via"])
        .arg(kubectl)
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let legs = report
        .pointer("/transfers/0/legs")
        .and_then(Value::as_array)
        .ok_or("nothing was transferred")?;
    let rate = |leg: &Value| {
        let operation = leg.get("operation")?.as_str()?.to_owned();
        let bytes = leg.get("bytes")?.as_u64()?;
        Some(((operation, bytes), leg.get("bytes_per_second")?.as_f64()?))
    };
    Ok(legs.iter().filter_map(rate).collect())
}

fn scripted(root: &Path, kubectl: &Path, path: &str) -> Result<Rates, String> {
    let start = |pod: &str, words: &[&str]| {
        Command::new(kubectl)
            .args(["exec", "-i", pod, "--", "env", path, "python3"])
            .arg(root.join("tests/lab/plain.py"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("plain.py: {e}"))
    };
    let prefill = start("prefill-0", &["prefill"])?;
    let decode = start("decode-0", &["decode", "192.0.2.1"])?;
    let mut rates = Rates::new();
    for child in [prefill, decode] {
        // How it ends says nothing: a library's destructors may crash then.
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        // NIXL's own logger prints there, too.
        let text = String::from_utf8_lossy(&output.stdout);
        for line in text.lines().filter(|line| line.starts_with('{')) {
            let told: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
            let mut seconds: Vec<f64> = told
                .get("seconds")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_f64)
                .collect();
            seconds.sort_by(f64::total_cmp);
            let (Some(operation), Some(bytes), Some(middle)) = (
                told.get("operation").and_then(Value::as_str),
                told.get("bytes").and_then(Value::as_u64),
                seconds.get(seconds.len() / 2),
            ) else {
                return Err(format!("plain.py printed {line}"));
            };
            #[expect(clippy::cast_precision_loss, reason = "some MiB")]
            rates.insert((operation.to_owned(), bytes), bytes as f64 / middle);
        }
    }
    if rates.is_empty() {
        return Err("plain.py transferred nothing".to_owned());
    }
    Ok(rates)
}
