//! Chores of the repository. `cargo xtask generate-all` writes everything that is derived from the code, and
//! `cargo xtask generate-all --check` fails where it has drifted.

mod bench;
mod bench_pods;
mod bench_transfer;
mod blocks;
mod generate;
mod markdown;
mod pages;
mod tree;

#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::bench_pods::What;
use crate::tree::Drift;

/// Chores of the repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Task {
    /// Write all documents, manual pages, completions and schemas that are derived from the code
    GenerateAll {
        /// Write nothing; fail and name every file that differs
        #[arg(long)]
        check: bool,
    },
    /// Measure speed and memory as ratios to something else in the same run
    Bench {
        /// Directory of recipes; the examples, repeated, without it
        recipes: Option<PathBuf>,
    },
    /// Measure how many pods take how long, against the time that their answers alone take
    BenchPods {
        /// Numbers of pods.
        #[arg(default_values_t = [200])]
        pods: Vec<usize>,
    },
    /// Measure how long a whole deployment takes, in the same way, and what judging it takes
    BenchCheck {
        /// Numbers of workers.
        #[arg(default_values_t = [500, 1000, 5000])]
        workers: Vec<usize>,
    },
    /// Measure `nixl --transfer` against a script that makes the same calls of NIXL (needs root, and wheels of NIXL)
    BenchTransfer,
    /// Parse all files of a directory and do nothing with them (the other side of a comparison)
    #[command(hide = true)]
    BareEvents {
        /// The directory.
        directory: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Task::parse() {
        Task::GenerateAll { check } => generate_all(&root(), check),
        Task::Bench { recipes } => bench::run(&root(), recipes).map(|text| shown(&text)),
        Task::BenchPods { pods } => {
            bench_pods::run(&root(), &pods, What::Node).map(|text| shown(&text))
        }
        Task::BenchCheck { workers } => {
            bench_pods::run(&root(), &workers, What::Check).map(|text| shown(&text))
        }
        Task::BenchTransfer => bench::release(&root())
            .and_then(|binary| bench_transfer::run(&root(), &binary))
            .map(|text| shown(&text)),
        Task::BareEvents { directory } => bench::bare_events(&directory).map(|text| shown(&text)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            say(&format!("xtask: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn shown(text: &str) -> bool {
    say(text.trim_end());
    true
}

/// The root of the repository that cargo runs in.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package
        .parent()
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// True where nothing is left to do.
fn generate_all(root: &Path, check: bool) -> Result<bool, String> {
    let files = generate::all(root)?;
    let drift = tree::compare(root, &files)?;
    if check {
        for item in &drift {
            say(&item.to_string());
        }
        if !drift.is_empty() {
            say(&format!(
                "{} of {} generated files differ from the code; run: cargo xtask generate-all",
                drift.len(),
                files.len()
            ));
        }
        return Ok(drift.is_empty());
    }
    tree::write(root, &files, &drift)?;
    let written = drift
        .iter()
        .filter(|d| !matches!(d, Drift::Surplus(_)))
        .count();
    say(&format!(
        "{} generated files, {written} written, {} removed",
        files.len(),
        drift.len() - written
    ));
    Ok(true)
}

fn say(line: &str) {
    let _closed_terminal = writeln!(io::stderr(), "{line}");
}
