//! Writes the generated files of the skill; `--check` compares instead, `record` asks the tools outside anew.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    let argument = std::env::args().nth(1);
    let done = match argument.as_deref() {
        None => write(&root),
        Some("--check") => check(&root),
        Some("record") => record(&root),
        Some(other) => Err(format!(
            "unknown argument '{}'; expected nothing, --check or record",
            other.escape_debug()
        )),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _closed_terminal = writeln!(io::stderr(), "skill-docs: {message}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path) -> Result<(), String> {
    for (path, text) in skill_docs::files(root)? {
        save(&root.join(&path), &text)?;
    }
    Ok(())
}

fn check(root: &Path) -> Result<(), String> {
    let drifted: Vec<String> = skill_docs::files(root)?
        .into_iter()
        .filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(text))
        .map(|(path, _)| path)
        .collect();
    if drifted.is_empty() {
        return Ok(());
    }
    Err(format!(
        "not what the code says: {}; run: {}",
        drifted.join(", "),
        skill_docs::WRITE
    ))
}

fn record(root: &Path) -> Result<(), String> {
    // What is counted must be what is written.
    write(root)?;
    let text = skill_docs::record::ask(root)?;
    save(
        &root.join(skill_docs::FOLDER).join("evals/record.json"),
        &text,
    )?;
    write(root)
}

fn save(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
