//! Real outputs with their right reading, kept beside a checkout and not part of the project. Without them every
//! test here says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a broken test should stop, and a skipped one says so"
)]

mod lab;
mod logs;
mod nvidia;
mod others;
mod rdma;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::Observation;
use model::observation::Completeness;
use serde_json::Value;

/// Where the corpus lies, if it does.
fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no corpus of outputs beside this checkout");
    None
}

/// Rows of a tab-separated table, by column name.
fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().unwrap().split('\t').collect();
    lines
        .map(|line| {
            columns
                .iter()
                .map(ToString::to_string)
                .zip(line.split('\t').map(str::to_owned))
                .collect()
        })
        .collect()
}

/// A saved output and what was read from it.
struct Read {
    bytes: usize,
    seen: Observation,
}

impl Read {
    fn cut(&self) -> bool {
        self.seen
            .sections
            .iter()
            .any(|s| matches!(s.completeness, Completeness::Cut(_)))
    }

    fn cut_says(&self, words: &str) -> bool {
        self.seen
            .sections
            .iter()
            .any(|s| matches!(&s.completeness, Completeness::Cut(why) if why.contains(words)))
    }

    fn error(&self) -> Option<String> {
        self.seen
            .sections
            .iter()
            .find_map(|s| match &s.completeness {
                Completeness::ToolError(text) => Some(text.clone()),
                _ => None,
            })
    }

    fn command(&self) -> Option<String> {
        self.seen
            .sections
            .iter()
            .find_map(|s| s.from.command.clone())
    }

    fn place(&self) -> Option<String> {
        self.seen.sections.iter().find_map(|s| s.from.place.clone())
    }
}

/// Equal by value: 400 is 400.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Computes one named value from what was read. The expected value tells only which of its forms the table uses.
fn project(tool: &str, key: &str, form: &Value, facts: &Value, read: &Read) -> Option<Value> {
    match tool {
        "ibstat" | "ibstatus" | "ibv_devinfo" | "ibv_devices" | "ibdev2netdev" | "rdma-link"
        | "show_gids" | "ls-dev-infiniband" => rdma::project(tool, key, form, facts, read),
        "nvidia-smi-topo"
        | "nvidia-smi-topo-p2p"
        | "nvidia-smi-nvlink"
        | "dcgmi-nvlink"
        | "nvidia-smi-fabric"
        | "gpud-table"
        | "gpud-json" => nvidia::project(tool, key, form, read),
        "ucx-log" | "nccl-log" | "gloo-log" | "nixl-log" => logs::project(tool, key, form, read),
        _ => others::project(tool, key, form, read),
    }
}

#[test]
fn facts_of_every_output() {
    let Some(corpus) = corpus() else { return };
    let (mut rows, mut values, mut wrong) = (0, 0, Vec::new());
    for row in table(&corpus.join("outputs.tsv")) {
        let file = &row["file"];
        let bytes = std::fs::read(corpus.join("outputs").join(file)).unwrap();
        let read = Read {
            bytes: bytes.len(),
            seen: probe::recognise_bytes(file, &bytes),
        };
        let facts: Value = serde_json::from_str(&row["facts"]).unwrap();
        let mut right = true;
        for (key, form) in facts.as_object().unwrap() {
            // Names of the columns of another value.
            if key == "cols" {
                continue;
            }
            values += 1;
            let got = project(&row["tool"], key, form, &facts, &read);
            if !got.as_ref().is_some_and(|got| same(got, form)) {
                right = false;
                let line = format!(
                    "{file}: {key}: expected {form}, got {}",
                    got.map_or_else(|| "nothing".to_owned(), |v| v.to_string())
                );
                if row["confidence"] == "low" {
                    println!("not asserted: {line}");
                } else {
                    wrong.push(line);
                }
            }
        }
        rows += u32::from(right);
    }
    println!("{rows} outputs with all values right, {values} values");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
