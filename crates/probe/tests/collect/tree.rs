//! Shells and programs of this machine, beside the trees that the script reads.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use stand_in::Tree;

/// Shells that are here, and a line for each that is not.
pub(crate) fn shells() -> Vec<Vec<String>> {
    [vec!["dash"], vec!["busybox", "sh"], vec!["bash"]]
        .into_iter()
        .map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>())
        .filter(|words| {
            let here = has(&words[0]);
            if !here {
                eprintln!("skipped: no {} here", words[0]);
            }
            here
        })
        .collect()
}

/// Whether a program is here.
pub(crate) fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|dir: PathBuf| Path::is_file(&dir.join(program)))
    })
}

/// Runs a program, with its exit code and what it printed; `None` where it is not here.
pub(crate) fn output(command: &mut Command) -> Option<(i32, String)> {
    let out = command.output().ok()?;
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    Some((out.status.code().unwrap_or(-1), text))
}
