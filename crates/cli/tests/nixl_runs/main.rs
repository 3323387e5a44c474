//! Recorded runs of NIXL transfers with their truth, kept beside a checkout and not part of the project: `nixl --from`
//! over the streams of each run, and nothing else of it. Without them the test says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a broken test should stop, and a skipped one says so"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Causes that the table names and a report does not name as a cause, each with the reason. A run passes where every
/// other cause is named.
const MAPPED: &[(&str, &str, &str)] = &[
    (
        "rdma_vm/r1_unset",
        "nixl-proto-table",
        "the table shows RDMA: no fault has that name, the result of nixl/payload-transport is the table",
    ),
    (
        "rdma_vm/rdma_hack",
        "nixl-proto-table",
        "the table shows RDMA: no fault has that name, the result of nixl/payload-transport is the table",
    ),
];

fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.join("nixl-runs.tsv").is_file() {
        return Some(path);
    }
    println!("skipped: no recorded runs of NIXL beside this checkout");
    None
}

type Row = BTreeMap<String, String>;

fn rows(path: &Path) -> Vec<Row> {
    let text = fs::read_to_string(path).unwrap();
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

/// The words of a cell; `-` is none.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split([';', ','])
        .map(str::trim)
        .filter(|w| !w.is_empty() && *w != "-")
}

/// What the processes of a run printed: `initiator.stdout`, `target.log`, `initiator.stdout.head40`.
fn streams(folder: &Path) -> Vec<String> {
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| {
            (name.starts_with("initiator.") || name.starts_with("target."))
                && Path::new(name).extension().is_none_or(|e| e != "json")
        })
        .collect();
    files.sort();
    files
}

struct Run {
    report: Value,
    code: i32,
    /// All that it prints, in one line and small letters.
    says: String,
}

fn run(folder: &Path, files: &[String]) -> Run {
    let print = |format: &[&str]| {
        let out = Command::new(env!("CARGO_BIN_EXE_check-interconnect"))
            .current_dir(folder)
            .args(["nixl", "--from"])
            .args(files)
            .args(format)
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        (text, out.status.code().unwrap())
    };
    let (json, code) = print(&["-o", "json"]);
    let (text, _) = print(&["--verbose"]);
    let both = format!("{json} {text}").to_lowercase();
    Run {
        report: serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {json}")),
        code,
        says: both.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

impl Run {
    /// The worst that is said.
    fn worst(&self) -> &'static str {
        let counts = &self.report["counts"];
        ["fail", "warn", "ok"]
            .into_iter()
            .find(|word| counts[*word].as_u64() > Some(0))
            .unwrap_or("skipped")
    }

    /// The same by the verdict.
    fn verdict(&self) -> &'static str {
        match self.report["readiness"].as_str() {
            Some("blocked") => "fail",
            Some("degraded") => "warn",
            Some("unproven") => "ok",
            Some("inconclusive") => "skipped",
            other => panic!("{other:?}"),
        }
    }

    fn checks(&self) -> impl Iterator<Item = &Value> {
        self.report["checks"].as_array().unwrap().iter()
    }

    fn causes(&self) -> Vec<&str> {
        self.checks().filter_map(|c| c["cause"].as_str()).collect()
    }

    /// Sentences in which a transport of the payload is stated.
    fn payload(&self) -> Vec<&str> {
        self.checks()
            .filter(|c| c["name"] == "nixl/payload-transport" && c["status"] != "skipped")
            .filter_map(|c| c["detail"].as_str())
            .collect()
    }
}

/// Whether the transport of one operation is stated as the table has it.
fn transport(run: &Run, operation: &str, expected: &str, problems: &mut Vec<String>) {
    let stated: Vec<&str> = run
        .payload()
        .into_iter()
        .filter(|d| d.contains(operation))
        .collect();
    if matches!(expected, "unknown" | "none") {
        if !stated.is_empty() {
            problems.push(format!("{operation} is stated: {stated:?}"));
        }
        return;
    }
    let emulated = expected.strip_prefix("emulated:");
    let lanes: Vec<&str> = emulated.unwrap_or(expected).split('+').collect();
    if !stated.iter().any(|d| {
        lanes.iter().all(|lane| d.contains(lane))
            && d.contains("software emulation") == emulated.is_some()
    }) {
        problems.push(format!("{operation} over {expected}, stated {stated:?}"));
    }
}

fn problems(row: &Row, run: &Run) -> Vec<String> {
    let mut problems = Vec::new();
    let allowed: Vec<&str> = words(&row["status"]).chain(words(&row["also"])).collect();
    for got in [run.worst(), run.verdict()] {
        if !allowed.contains(&got) {
            problems.push(format!("status {got}, expected {allowed:?}"));
        }
    }
    let code = match run.verdict() {
        "fail" => 1,
        "skipped" => 3,
        _ => 0,
    };
    if run.code != code {
        problems.push(format!("exit code {}, expected {code}", run.code));
    }
    let named = run.causes();
    for cause in words(&row["causes"]) {
        let mapped = MAPPED
            .iter()
            .any(|(case, id, _)| *case == row["case"] && *id == cause);
        if !named.contains(&cause) && !mapped {
            problems.push(format!("no {cause} among {named:?}"));
        }
    }
    for word in words(&row["must_say"]) {
        if !run.says.contains(&word.to_lowercase()) {
            problems.push(format!("does not say {word}"));
        }
    }
    for word in words(&row["must_not_say"]) {
        if run.says.contains(&word.to_lowercase()) {
            problems.push(format!("says {word}"));
        }
    }
    if row["provable_from_streams"] == "yes" {
        transport(run, "READ", &row["read_transport"], &mut problems);
        transport(run, "WRITE", &row["write_transport"], &mut problems);
    } else if !run.payload().is_empty() {
        problems.push(format!("a transport is stated: {:?}", run.payload()));
    }
    if run.report["transfer_validated"] != false {
        problems.push("transfer_validated".to_owned());
    }
    problems
}

#[test]
fn each_run_is_told_from_its_streams() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    let (mut asserted, mut right) = (0, 0);
    println!(
        "{:40} {:10} {:22} {:8} problems",
        "case", "provable", "expected", "got"
    );
    for row in rows(&corpus.join("nixl-runs.tsv")) {
        let folder = corpus.join("nixl-runs").join(&row["case"]);
        let run = run(&folder, &streams(&folder));
        let problems = problems(&row, &run);
        let expected: Vec<&str> = words(&row["status"]).chain(words(&row["also"])).collect();
        println!(
            "{:40} {:10} {:22} {:8} {}",
            row["case"],
            row["provable_from_streams"],
            expected.join(" or "),
            run.worst(),
            problems.join("; ")
        );
        if row["confidence"] == "low" {
            println!("  not asserted: low confidence");
            continue;
        }
        asserted += 1;
        if problems.is_empty() {
            right += 1;
        } else {
            wrong.push(format!("{}: {problems:?}", row["case"]));
        }
    }
    for (case, cause, why) in MAPPED {
        println!("{case}: {cause} is no cause of the report: {why}");
    }
    println!("{right} of {asserted} runs as the table says");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
