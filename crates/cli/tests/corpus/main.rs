//! Real recipes with expert verdicts, kept beside a checkout and not part of the project. Without them every test
//! here says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a broken test should stop, and a skipped one says so"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model::{Report, Role, Status};

/// Where the corpus lies, if it does.
fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no corpus of recipes beside this checkout");
    None
}

fn judge(name: &str, text: &str) -> Report {
    let facts = recipe::assemble(vec![recipe::read(name, text)]);
    checks::judge_env(&facts, vec![name.to_owned()])
}

fn roles(report: &Report) -> BTreeSet<&'static str> {
    report
        .deployments
        .iter()
        .flat_map(|d| &d.workers)
        .filter(|w| matches!(w.role, Role::Prefill | Role::Decode | Role::Aggregated))
        .map(|w| w.role.as_str())
        .collect()
}

fn verdict(report: &Report) -> &'static str {
    let counts = report.counts();
    match (counts.fail, counts.warn) {
        (0, 0) => "ok",
        (0, _) => "warn",
        _ => "fail",
    }
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

/// The roles of a row: words in brackets and words other than the three are not compared.
fn expected_roles(text: &str) -> BTreeSet<&'static str> {
    let mut plain = String::new();
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
        .split([',', '+'])
        .filter_map(|word| match word.trim() {
            "prefill" => Some("prefill"),
            "decode" => Some("decode"),
            "agg-worker" | "aggregated" => Some("aggregated"),
            _ => None,
        })
        .collect()
}

/// Rows on which the project disagrees with the table, and why it is right. A row that comes to agree has to
/// leave this list.
const DISAGREEMENTS: &[(&str, &str)] = &[
    (
        "volcano-sh_kthena__cli__kthena__helm__templates__Qwen__Qwen3-Coder-30B-A3B-Instruct-PD-Disaggregated-NixlConnector.yaml",
        "a Helm template: not YAML until it is rendered, so it is skipped with that reason and never guessed at",
    ),
    (
        "vllm-project_aibrix__samples__disaggregation__sglang__pd-bucketing.yaml",
        "one of the three services runs without a disaggregation mode, which is aggregated; the table calls its role other",
    ),
];

#[test]
fn expert_verdicts() {
    let Some(corpus) = corpus() else { return };
    let mut compared = [0_u32; 2];
    let mut right_roles = [0_u32; 2];
    let mut right_verdicts = [0_u32; 2];
    let mut disagreements = BTreeSet::new();
    let mut worst = Vec::new();
    for row in table(&corpus.join("recipes-expected.tsv")) {
        if row["confidence"] == "low" {
            continue;
        }
        let file = &row["file"];
        let text = std::fs::read_to_string(corpus.join("recipes").join(file)).unwrap();
        let report = judge(file, &text);
        let (roles_right, verdict_right) = (
            roles(&report) == expected_roles(&row["roles"]),
            verdict(&report) == row["verdict"],
        );
        for (index, counts) in [true, file.starts_with("ai-dynamo_dynamo__")]
            .into_iter()
            .enumerate()
        {
            if counts {
                compared[index] += 1;
                right_roles[index] += u32::from(roles_right);
                right_verdicts[index] += u32::from(verdict_right);
            }
        }
        if !roles_right || !verdict_right {
            println!(
                "{file}: expected {} {:?}, got {} {:?}",
                row["verdict"],
                expected_roles(&row["roles"]),
                verdict(&report),
                roles(&report)
            );
            disagreements.insert(file.clone());
        }
        if (row["verdict"] == "fail" && verdict(&report) == "ok")
            || (row["verdict"] == "ok" && verdict(&report) == "fail")
        {
            worst.push(file.clone());
        }
    }
    println!(
        "all rows: {compared:?}, roles right {right_roles:?}, verdicts right {right_verdicts:?} (all, ai-dynamo/dynamo)"
    );
    assert_eq!(compared, [71, 47], "the table changed");
    assert!(
        worst.is_empty(),
        "a failing recipe judged ok, or an ok one failing: {worst:?}"
    );
    for index in [0, 1] {
        assert!(
            right_roles[index] * 100 >= compared[index] * 95,
            "roles right in {} of {}",
            right_roles[index],
            compared[index]
        );
        assert!(
            right_verdicts[index] * 100 >= compared[index] * 90,
            "verdicts right in {} of {}",
            right_verdicts[index],
            compared[index]
        );
    }
    let listed: BTreeSet<String> = DISAGREEMENTS
        .iter()
        .map(|(file, _)| (*file).to_owned())
        .collect();
    assert_eq!(
        disagreements, listed,
        "disagreements and the table of reasons differ"
    );
}

fn recipes(corpus: &Path) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = std::fs::read_dir(corpus.join("recipes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect();
    all.sort();
    all
}

/// Files that are templates: the only ones that may not parse.
const TEMPLATES: usize = 13;

#[test]
fn every_recipe_is_read() {
    let Some(corpus) = corpus() else { return };
    let all = recipes(&corpus);
    assert_eq!(all.len(), 245);
    let mut templates = 0;
    for (name, text) in &all {
        let report = judge(name, text);
        for result in report.results.iter().filter(|r| r.subject.file.is_some()) {
            match result.cause {
                Some("input-template") => templates += 1,
                // A file of a kustomization alone, and values alone.
                Some("input-kustomization-not-rendered" | "input-values-alone") | None => {}
                Some(cause) => panic!("{name}: {cause}: {}", result.detail),
            }
        }
        for format in report::Format::ALL {
            let options = report::Options {
                version: "test",
                ..report::Options::default()
            };
            report::render(format, &report, &options, &mut std::io::sink()).unwrap();
        }
    }
    assert_eq!(templates, TEMPLATES);
}

/// What is said of each result, without where it stands.
fn said(report: &Report) -> Vec<String> {
    report
        .results
        .iter()
        .map(|r| {
            format!(
                "{} {} {} {:?} {:?} {}",
                r.name,
                r.status.as_str(),
                r.detail,
                r.cause,
                r.subject.workers,
                r.sources.len()
            )
        })
        .collect()
}

#[test]
fn no_verdict_comes_from_a_comment() {
    let Some(corpus) = corpus() else { return };
    let mut with_comments = 0;
    for (name, text) in recipes(&corpus) {
        let stream = yaml::parse(&text, &yaml::Limits::default());
        if !stream.errors.is_empty() {
            continue;
        }
        let mut bare = text.clone().into_bytes();
        for comment in stream.documents.iter().flat_map(yaml::Document::comments) {
            with_comments += 1;
            for at in comment.span {
                bare[at as usize] = b' ';
            }
        }
        let bare = String::from_utf8(bare).unwrap();
        assert_eq!(
            said(&judge(&name, &text)),
            said(&judge(&name, &bare)),
            "{name}"
        );
    }
    assert!(with_comments > 1000, "only {with_comments} comments");
}

/// Findings per cause over the whole corpus: a net for rules that change what they say.
#[test]
fn findings_over_the_corpus() {
    let Some(corpus) = corpus() else { return };
    let mut causes: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, text) in recipes(&corpus) {
        for result in judge(&name, &text).results {
            if let (Some(cause), Status::Warn | Status::Fail) = (result.cause, result.status) {
                *causes.entry(cause).or_default() += 1;
            }
        }
    }
    println!("{causes:#?}");
    // Aggregated recipes, jobs and downloads are most of the corpus: findings everywhere would be false alarms.
    let total: u32 = causes.values().sum();
    assert!((100..400).contains(&total), "{total} findings: {causes:?}");
}
