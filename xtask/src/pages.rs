//! The documents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use checks::{CHECKS, PROBLEMS, REQUIRED};
use clap::{CommandFactory as _, ValueEnum as _};
use cli::args::{Cli, EXIT_CODES, FailOnArg};
use serde_json::Value;
use settings::catalogue::{self, Relevance, Variable};

use crate::markdown::{anchor, cell, code, inline, table};
use crate::tree::Files;

/// The first line of every generated document.
const NOTICE: &str =
    "<!-- Generated from the code by `cargo xtask generate-all`; changes here are lost. -->\n\n";

/// One page for each check, one for inputs, and the index.
pub(crate) fn checks(files: &mut Files) {
    let mut rows = Vec::new();
    for check in CHECKS {
        let file = format!("{}.md", check.name.replace('/', "-"));
        let causes: Vec<&str> = check.causes.iter().map(|c| c.id).collect();
        rows.push(row(check.name, &file, check.title, &causes));
        files.insert(format!("docs/checks/{file}"), page(&cli::check_page(check)));
    }
    let causes: Vec<&str> = PROBLEMS.iter().map(|p| p.id).collect();
    rows.push(row(
        "input",
        "input.md",
        "every input can be read and parsed",
        &causes,
    ));
    files.insert("docs/checks/input.md".to_owned(), page(&cli::input_page()));
    files.insert(
        "docs/checks/policy.md".to_owned(),
        page(&cli::policy_page()),
    );
    let index = format!(
        "{NOTICE}# Checks and causes\n\n\
         A check is a property that holds or not; a cause is one way in which it does not. In a terminal,\n\
         `check-interconnect explain NAME` tells the same about both.\n\n{}",
        table(&["Check", "What holds", "Causes"], &rows)
    );
    files.insert("docs/checks/README.md".to_owned(), index);
}

fn row(name: &str, file: &str, title: &str, causes: &[&str]) -> Vec<String> {
    let links: Vec<String> = causes
        .iter()
        .map(|id| format!("[{id}]({file}#{})", anchor(id)))
        .collect();
    vec![format!("[{name}]({file})"), cell(title), links.join("<br>")]
}

/// A page of `explain`. Its first part is Markdown; what the causes say is plain text.
fn page(text: &str) -> String {
    let mut out = NOTICE.to_owned();
    let mut plain = false;
    for line in text.lines() {
        plain |= line == "## Causes";
        let _infallible = writeln!(
            out,
            "{}",
            if plain { inline(line) } else { line.to_owned() }
        );
    }
    out.push_str("\n[All checks](README.md)\n");
    out
}

/// The catalogue of variables.
pub(crate) fn variables() -> String {
    let mut groups: BTreeMap<&str, Vec<&Variable>> = BTreeMap::new();
    for variable in catalogue::all() {
        groups.entry(variable.subsystem).or_default().push(variable);
    }
    let mut out = format!(
        "{NOTICE}# Transport variables\n\n\
         {} variables that matter to KV transfer, or that people take for one that does, by the library that reads\n\
         them. `check-interconnect vars NAME` tells one of them, `check-interconnect vars NAME=VALUE` what a value does.\n\n\
         Relevance:\n\n{}\n\
         A source is `repository:path:line@commit`.\n\n",
        catalogue::all().len(),
        [
            (Relevance::Critical, "decides the path"),
            (
                Relevance::Relevant,
                "can change or break the path in some situations"
            ),
            (Relevance::Tuning, "speed, not the path"),
            (Relevance::Debug, "logs and checks only"),
        ]
        .map(|(relevance, meaning)| format!("- {}: {meaning}\n", relevance.as_str()))
        .concat(),
    );
    // Names that nothing reads come last.
    let (unread, read): (Vec<_>, Vec<_>) = groups
        .into_iter()
        .partition(|(subsystem, _)| subsystem.starts_with('('));
    let groups: Vec<_> = read.into_iter().chain(unread).collect();
    for (subsystem, variables) in &groups {
        let _infallible = writeln!(
            out,
            "- [{subsystem}](#{}) ({})",
            anchor(subsystem),
            variables.len()
        );
    }
    for (subsystem, variables) in &groups {
        let rows: Vec<Vec<String>> = variables
            .iter()
            .map(|v| {
                vec![
                    code(v.name),
                    cell(v.meaning),
                    cell(v.values),
                    cell(v.default),
                    v.relevance.as_str().to_owned(),
                    cell(v.dangerous),
                    code(v.source),
                ]
            })
            .collect();
        let head = [
            "Variable",
            "What it is",
            "Values",
            "Default",
            "Relevance",
            "Values that do harm",
            "Source",
        ];
        let _infallible = write!(out, "\n## {subsystem}\n\n{}", table(&head, &rows));
    }
    out
}

/// Codes and meanings, from the text that every help page shows.
pub(crate) fn exit_code_list() -> Vec<(u8, &'static str)> {
    EXIT_CODES
        .lines()
        .flat_map(|line| line.split("; "))
        .filter_map(|part| {
            let (number, meaning) = part.trim().split_once(' ')?;
            Some((number.parse().ok()?, meaning.trim()))
        })
        .collect()
}

/// The table of exit codes.
pub(crate) fn exit_code_table() -> String {
    let rows: Vec<Vec<String>> = exit_code_list()
        .iter()
        .map(|(number, meaning)| vec![number.to_string(), cell(meaning)])
        .collect();
    table(&["Code", "Meaning"], &rows)
}

/// The page of exit codes.
pub(crate) fn exit_codes() -> String {
    let levels: Vec<Vec<String>> = FailOnArg::value_variants()
        .iter()
        .filter_map(|level| {
            let value = level.to_possible_value()?;
            let help = value
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            Some(vec![
                code(&format!("--fail-on {}", value.get_name())),
                cell(&help),
            ])
        })
        .collect();
    format!(
        "{NOTICE}# Exit codes\n\n\
         The same for every output format.\n\n{}\n\
         A missing path beside good ones: the others are judged and reported, then the code is 2.\n\n\
         ## What counts as failed\n\n\
         `--fail-on` says from what on the code is 1. Without it, `fail` holds.\n\n{}",
        exit_code_table(),
        table(&["Option", "From what on"], &levels)
    )
}

/// The help of every command.
pub(crate) fn command_line() -> String {
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut out = format!("{NOTICE}# Command line\n\nWhat `--help` prints, command by command.\n");
    help(&mut out, &mut root.clone());
    for command in root
        .get_subcommands_mut()
        .filter(|c| c.get_name() != "help")
    {
        help(&mut out, command);
    }
    out
}

fn help(out: &mut String, command: &mut clap::Command) {
    let name = command
        .get_bin_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let text = command.render_long_help().to_string();
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    let _infallible = write!(out, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n"));
}

/// The words of a type of the report and what they mean, from its schema.
pub(crate) fn words(name: &str) -> Result<String, String> {
    let schema: Value =
        serde_json::from_str(&report::schema_report()).map_err(|error| error.to_string())?;
    let variants = schema
        .pointer(&format!("/$defs/{name}/oneOf"))
        .and_then(Value::as_array)
        .ok_or_else(|| format!("no words of {name} in the schema"))?;
    let rows: Vec<Vec<String>> = variants
        .iter()
        .map(|variant| {
            let text = |key: &str| variant.get(key).and_then(Value::as_str).unwrap_or_default();
            vec![
                code(text("const")),
                cell(&text("description").replace('\n', " ")),
            ]
        })
        .collect();
    Ok(table(&["Word", "Meaning"], &rows))
}

/// The facts that a verdict needs.
pub(crate) fn required() -> String {
    let rows: Vec<Vec<String>> = REQUIRED
        .iter()
        .map(|r| {
            vec![
                code(r.command),
                cell(r.fact),
                cell(r.why),
                code(r.without.as_str()),
            ]
        })
        .collect();
    table(&["Command", "Fact", "Why", "At best without it"], &rows)
}
