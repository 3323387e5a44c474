//! Of the generator: what it makes is what is committed, and what it makes can be read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use checks::REQUIRED;
use model::{Exit, Facts, Input, InputProblem, Outcome, Readiness};

use crate::tree::{self, Drift, Files};
use crate::{blocks, generate, markdown, pages};

/// A directory that goes away with its owner.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!(
            "check-interconnect-xtask-{name}-{}",
            std::process::id()
        ));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

fn files() -> Files {
    generate::all(&crate::root()).unwrap()
}

#[test]
fn generates_the_same_twice() {
    assert!(files() == files());
}

#[test]
fn generates_text_without_escapes_or_trailing_blanks() {
    for (path, text) in files() {
        assert!(
            text.ends_with('\n') && !text.ends_with("\n\n"),
            "{path}: one newline at the end"
        );
        assert!(
            !text.contains('\u{1b}') && !text.contains('\r'),
            "{path}: control characters"
        );
        if Path::new(&path).extension().is_some_and(|e| e == "md") {
            assert!(
                text.lines().all(|l| l.trim_end() == l),
                "{path}: trailing blanks"
            );
        }
    }
}

#[test]
fn tells_what_has_drifted_and_repairs_it() {
    let files = files();
    let scratch = Scratch::new("drift");
    let root = scratch.0.as_path();
    let all = tree::compare(root, &files).unwrap();
    assert_eq!(all.len(), files.len());
    assert!(all.iter().all(|d| matches!(d, Drift::Missing(_))));
    tree::write(root, &files, &all).unwrap();
    assert_eq!(tree::compare(root, &files).unwrap(), []);

    fs::write(root.join("docs/checks/env-gone.md"), "old").unwrap();
    fs::write(root.join("schema/report-v1.schema.json"), "{}").unwrap();
    fs::remove_file(root.join("man/check-interconnect.1")).unwrap();
    // Written by hand, so nobody's business.
    fs::write(root.join("docs/stability.md"), "by hand").unwrap();
    let drift = tree::compare(root, &files).unwrap();
    assert_eq!(
        drift,
        [
            Drift::Missing("man/check-interconnect.1".to_owned()),
            Drift::Changed("schema/report-v1.schema.json".to_owned()),
            Drift::Surplus("docs/checks/env-gone.md".to_owned()),
        ]
    );
    tree::write(root, &files, &drift).unwrap();
    assert_eq!(tree::compare(root, &files).unwrap(), []);
    assert!(
        !root.join("docs/checks/env-gone.md").exists() && root.join("docs/stability.md").exists()
    );
}

#[test]
fn replaces_only_what_stands_between_the_comments() {
    let text = "head\n<!-- begin: a -->\nold\n<!-- end: a -->\ntail\n";
    let new = blocks::replace(text, "a", "new\n").unwrap();
    assert_eq!(
        new,
        "head\n<!-- begin: a -->\n\nnew\n\n<!-- end: a -->\ntail\n"
    );
    assert_eq!(blocks::replace(&new, "a", "new").unwrap(), new);
    assert!(
        blocks::replace(text, "b", "")
            .unwrap_err()
            .contains("begin: b")
    );
    assert!(
        blocks::replace(&format!("{text}{text}"), "a", "")
            .unwrap_err()
            .starts_with("two lines")
    );
}

#[test]
fn escapes_what_means_something_in_markdown() {
    assert_eq!(
        markdown::inline("FI_* and <name>, `a*<b`"),
        "FI_\\* and &lt;name>, `a*<b`"
    );
    assert_eq!(markdown::inline("one ` only"), "one \\` only");
    assert_eq!(markdown::cell("a|b"), "a\\|b");
    assert_eq!(
        markdown::anchor("check-interconnect env"),
        "check-interconnect-env"
    );
    assert_eq!(markdown::anchor("(not a variable)"), "not-a-variable");
}

#[test]
fn every_check_and_command_has_its_pages() {
    let files = files();
    for check in checks::CHECKS {
        let page = files
            .get(&format!("docs/checks/{}.md", check.name.replace('/', "-")))
            .unwrap();
        for cause in check.causes {
            assert!(
                page.contains(&format!("\n### {}\n", cause.id)),
                "{}",
                cause.id
            );
        }
    }
    let cli = &files["docs/cli.md"];
    for command in generate::commands() {
        assert!(
            files.contains_key(&format!("man/check-interconnect-{command}.1")),
            "{command}"
        );
        assert!(
            cli.contains(&format!("\n## check-interconnect {command}\n")),
            "{command}"
        );
    }
}

#[test]
fn exit_codes_are_those_of_the_program() {
    let told: Vec<u8> = pages::exit_code_list()
        .iter()
        .map(|(number, _)| *number)
        .collect();
    let codes = [
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::Inconclusive,
        Exit::Nothing,
        Exit::Cluster,
        Exit::Interrupted,
        Exit::Terminated,
    ];
    assert_eq!(told, codes.map(Exit::code));
}

/// The facts of the example without a fault, and an input with this problem beside it.
fn with_problem(outcome: Option<Outcome>) -> Facts {
    let path = "examples/disagg-rdma/deploy.yaml";
    let text = fs::read_to_string(crate::root().join(path)).unwrap();
    let mut facts = recipe::assemble(vec![recipe::read(&Arc::from(path), &text)]);
    if let Some(outcome) = outcome {
        let problem = InputProblem {
            cause: "input-unreadable".into(),
            detail: String::new(),
            fix: String::new(),
            position: None,
            outcome,
        };
        facts.inputs.push(Input {
            path: Arc::from("other.yaml"),
            documents: 0,
            problems: vec![problem],
        });
    }
    facts
}

#[test]
fn required_facts_about_inputs_are_required() {
    for required in REQUIRED.iter().filter(|r| r.outcome.is_some()) {
        let report = checks::judge_env(&with_problem(required.outcome), Vec::new());
        assert_eq!(report.readiness, required.without, "{}", required.fact);
    }
    // And nothing else about inputs is.
    for outcome in [
        None,
        Some(Outcome::Noted),
        Some(Outcome::Empty),
        Some(Outcome::Skipped),
    ] {
        assert!(
            REQUIRED
                .iter()
                .all(|r| r.outcome.is_none() || r.outcome != outcome)
        );
        assert_eq!(
            checks::judge_env(&with_problem(outcome), Vec::new()).readiness,
            Readiness::Unproven,
            "{outcome:?}"
        );
    }
}

#[test]
fn examples_come_out_as_their_names_say() {
    for (name, readiness) in [
        ("aggregated", Readiness::NotApplicable),
        ("disagg-no-fabric", Readiness::Degraded),
        ("disagg-rdma", Readiness::Unproven),
        ("disagg-tcp-decode", Readiness::Blocked),
    ] {
        let path = format!("examples/{name}/deploy.yaml");
        let text = fs::read_to_string(crate::root().join(&path)).unwrap();
        let facts = recipe::assemble(vec![recipe::read(&Arc::from(path), &text)]);
        assert_eq!(
            checks::judge_env(&facts, Vec::new()).readiness,
            readiness,
            "{name}"
        );
    }
}

/// Every Markdown file that people read.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in ["", "docs", "docs/checks"] {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn anchors(path: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(path).unwrap();
    prose(&text)
        .filter(|l| l.starts_with('#'))
        .map(|l| markdown::anchor(l.trim_start_matches('#').trim()))
        .collect()
}

/// Targets of the links of one line, code left out.
fn targets(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect();
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned()))
        .collect()
}

#[test]
fn links_in_documents_lead_somewhere() {
    let mut links = 0;
    for document in documents(&crate::root()) {
        let text = fs::read_to_string(&document).unwrap();
        for target in prose(&text).flat_map(targets) {
            if target.starts_with("https://") {
                continue;
            }
            links += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() {
                document.clone()
            } else {
                document.parent().unwrap().join(file)
            };
            assert!(
                path.exists(),
                "{}: {target} does not exist",
                document.display()
            );
            assert!(
                anchor.is_empty() || anchors(&path).contains(anchor),
                "{}: no heading for {target}",
                document.display()
            );
        }
    }
    assert!(links > 50, "{links} links found");
}

#[test]
fn readme_has_one_command_for_each_of_the_two_jobs() {
    let readme = fs::read_to_string(crate::root().join("README.md")).unwrap();
    let commands: Vec<&str> = readme
        .split("```sh\n")
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next())
        .collect();
    let main = format!(
        "cargo run --release -p check-interconnect -- replay {}",
        generate::EXAMPLE
    );
    assert_eq!(commands, [main.as_str(), "cargo test --workspace"]);
}
