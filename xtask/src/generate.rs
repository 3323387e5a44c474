//! Everything that is derived from the code, as one set of files.

use std::fs;
use std::fs::File;
use std::path::Path;

use clap::{CommandFactory as _, ValueEnum as _};
use clap_complete::Generator as _;
use clap_complete::Shell;
use cli::args::Cli;

use crate::tree::Files;
use crate::{blocks, pages};

/// The bundle whose report the README shows.
pub(crate) const EXAMPLE: &str = "examples/disagg-live/llama.tar.gz";

/// The binary.
const NAME: &str = "check-interconnect";

/// Every generated file. Of the repository only the example is read, and the files that have generated parts.
pub(crate) fn all(root: &Path) -> Result<Files, String> {
    let mut files = Files::new();
    files.extend(skill_docs::files(root)?);
    pages::checks(&mut files);
    files.insert("docs/variables.md".to_owned(), pages::variables());
    files.insert("docs/exit-codes.md".to_owned(), pages::exit_codes());
    files.insert("docs/cli.md".to_owned(), pages::command_line());
    files.insert(
        "schema/report-v1.schema.json".to_owned(),
        report::schema_report(),
    );
    files.insert(
        "schema/report-line-v1.schema.json".to_owned(),
        report::schema_line(),
    );
    files.insert(
        "schema/config.schema.json".to_owned(),
        policy::schema_config(),
    );
    files.insert(format!("man/{NAME}.1"), cli::man(None)?);
    for command in commands() {
        files.insert(format!("man/{NAME}-{command}.1"), cli::man(Some(&command))?);
    }
    for shell in Shell::value_variants() {
        files.insert(
            format!("completions/{}", shell.file_name(NAME)),
            cli::completions(*shell),
        );
    }
    for (file, name, block) in [
        ("README.md", "example output", example(root)?),
        ("README.md", "exit codes", pages::exit_code_table()),
        ("docs/evidence.md", "grades", pages::words("Grade")?),
        ("docs/evidence.md", "statuses", pages::words("Status")?),
        ("docs/evidence.md", "readiness", pages::words("Readiness")?),
        ("docs/evidence.md", "reasons", pages::words("Reason")?),
        ("docs/evidence.md", "required facts", pages::required()),
    ] {
        let text = match files.remove(file) {
            Some(text) => text,
            None => read(root, file)?,
        };
        let text =
            blocks::replace(&text, name, &block).map_err(|error| format!("{file}: {error}"))?;
        files.insert(file.to_owned(), text);
    }
    Ok(files)
}

/// The names of all commands.
pub(crate) fn commands() -> Vec<String> {
    Cli::command()
        .get_subcommands()
        .map(|c| c.get_name().to_owned())
        .collect()
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"))
}

/// What `env` prints about the example into a file or a pipe.
fn example(root: &Path) -> Result<String, String> {
    let file = File::open(root.join(EXAMPLE)).map_err(|e| format!("{EXAMPLE}: {e}"))?;
    let gathered =
        bundle::read(std::io::BufReader::new(file)).map_err(|e| format!("{EXAMPLE}: {e}"))?;
    let judged = checks::judge_check(gathered);
    let mut out = Vec::new();
    report::render(
        report::Format::Text,
        &judged,
        &report::Options::default(),
        &mut out,
    )
    .map_err(|error| error.to_string())?;
    Ok(format!("```text\n{}```", String::from_utf8_lossy(&out)))
}
