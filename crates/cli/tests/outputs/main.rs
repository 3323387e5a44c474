//! Real outputs of tools and logs with their right reading, kept beside a checkout and not part of the project.
//! Without them every test here says so and passes.

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

use checks::{NodeFacts, judge_node};
use model::{Report, Status};

/// Where the project is right and the table is not, each with the reason.
const DISAGREEMENTS: &[(&str, &str)] = &[];

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

/// The worst that is said.
fn status(report: &Report) -> &'static str {
    let counts = report.counts();
    if counts.fail > 0 {
        "fail"
    } else if counts.warn > 0 {
        "warn"
    } else if counts.ok > 0 {
        "ok"
    } else {
        "skipped"
    }
}

fn text(report: &Report) -> String {
    let mut out = Vec::new();
    report::render(
        report::Format::Text,
        report,
        &report::Options::default(),
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

fn problems(row: &BTreeMap<String, String>, report: &Report) -> Vec<String> {
    let mut problems = Vec::new();
    let got = status(report);
    let allowed: Vec<&str> = words(&row["status"]).chain(words(&row["also"])).collect();
    if !allowed.contains(&got) {
        problems.push(format!("status {got}, expected {allowed:?}"));
    }
    let named: Vec<&str> = report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Fail | Status::Warn))
        .filter_map(|r| r.cause)
        .collect();
    let causes: Vec<&str> = words(&row["causes"]).collect();
    if !causes.is_empty()
        && matches!(got, "fail" | "warn")
        && !causes.iter().any(|c| named.contains(c))
    {
        problems.push(format!("causes {named:?}, expected one of {causes:?}"));
    }
    let text = text(report).replace('\n', " ");
    let low: String = text
        .to_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for word in words(&row["must_say"]) {
        if !low.contains(&word.to_lowercase()) {
            problems.push(format!("does not say {word}"));
        }
    }
    for word in words(&row["must_not_say"]) {
        if named.contains(&word) || low.contains(&word.to_lowercase()) {
            problems.push(format!("says {word}"));
        }
    }
    problems
}

#[test]
fn real_outputs_are_judged_as_their_right_reading_says() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = Vec::new();
    let (mut rows, mut right) = (0, 0);
    for row in table(&corpus.join("outputs.tsv")) {
        let name = &row["file"];
        let bytes = fs::read(corpus.join("outputs").join(name)).unwrap();
        let facts = NodeFacts {
            observation: probe::recognise_bytes(name, &bytes),
            saved: true,
            ..NodeFacts::default()
        };
        let report = judge_node("node", &facts, vec![name.clone()]);
        let problems = problems(&row, &report);
        if row["confidence"] == "low" {
            println!("not asserted (low confidence): {name} {problems:?}");
            continue;
        }
        rows += 1;
        if problems.is_empty() {
            right += 1;
            continue;
        }
        match DISAGREEMENTS.iter().find(|(file, _)| file == name) {
            Some((_, why)) => println!("{name}: {problems:?}\n  but: {why}"),
            None => wrong.push(format!("{name}: {problems:?}")),
        }
    }
    println!("{right} of {rows} outputs as the table says");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
