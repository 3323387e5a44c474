//! No report takes the place of what is judged: a file that is an input, or a part of one, is never written over.
//!
//! A report or a baseline of an earlier run may be: the same command is run again and again.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::sources;

/// The head of a file in which ours says what it is.
const HEAD_BYTES: u64 = 4096;

/// A file that is going to be written.
pub(crate) struct Target<'t> {
    /// As it was asked for: `-o json=`, `--write-baseline`.
    pub(crate) option: String,
    pub(crate) path: &'t Path,
}

/// Refuses where a target is one of the inputs, lies in a directory that is read, or is one of `also`: files that a run
/// reads beside its inputs. Nothing has been read or written yet.
pub(crate) fn refuse(
    targets: &[Target<'_>],
    inputs: &[PathBuf],
    also: &[&Path],
) -> Result<(), String> {
    let inputs: Vec<(PathBuf, &PathBuf)> = inputs
        .iter()
        .map(|input| {
            let path = if input == Path::new("-") {
                Path::new("/dev/stdin")
            } else {
                input
            };
            (real(path), input)
        })
        .collect();
    let mut written: Vec<(PathBuf, &str)> = Vec::new();
    for target in targets {
        let path = real(target.path);
        let twice = written
            .iter()
            .find(|(other, _)| *other == path && target.path.metadata().is_ok_and(|m| m.is_file()));
        if let Some((_, option)) = twice {
            return Err(format!(
                "{option} and {} are one file, {}; give each its own",
                target.option,
                target.path.display()
            ));
        }
        let why = what_is_lost(&path, &inputs, also);
        if let Some(why) = why {
            return Err(format!(
                "{} {}: {why}, and would be replaced; give another file",
                target.option,
                target.path.display()
            ));
        }
        written.push((path, &target.option));
    }
    Ok(())
}

/// Why a file must not be replaced.
fn what_is_lost(path: &Path, inputs: &[(PathBuf, &PathBuf)], also: &[&Path]) -> Option<String> {
    if also.iter().any(|other| real(other) == path) {
        return Some("this run reads it".to_owned());
    }
    let meta = match fs::metadata(path) {
        Ok(meta) if meta.is_file() => meta,
        // A device or a pipe loses nothing.
        Ok(_) => return None,
        // Nothing is there yet. Named as an input it is expected to be.
        Err(_) => {
            let named = inputs.iter().any(|(input, _)| input == path);
            return named.then(|| "it is one of the inputs".to_owned());
        }
    };
    if meta.len() == 0 || is_ours(path) {
        return None;
    }
    for (input, shown) in inputs {
        if input == path {
            return Some("it is one of the inputs".to_owned());
        }
        if input.is_dir() && is_read_in(input, path) {
            return Some(format!("it is an input, in {}", shown.display()));
        }
    }
    // What a kustomization or a chart reads may lie anywhere.
    let manifest = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("yaml") || e.eq_ignore_ascii_case("yml"));
    manifest.then(|| "it is there already and no report of ours".to_owned())
}

/// Whether a directory that is searched gives this file, by its own name or through a link.
fn is_read_in(directory: &Path, path: &Path) -> bool {
    if let Ok(inside) = path.strip_prefix(directory)
        && !inside
            .parent()
            .is_some_and(|above| above.iter().any(sources::is_hidden))
        && sources::is_read(path)
    {
        return true;
    }
    // Some link may lead to it: to the file, or to a directory above it.
    sources::files_of(directory)
        .filter(|file| file.file_name() == path.file_name() || file.is_symlink())
        .any(|file| real(&file) == path)
}

/// One name for each file.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // Of what is not there yet the directory may have several names.
    match (
        absolute.parent().map(fs::canonicalize),
        absolute.file_name(),
    ) {
        (Some(Ok(directory)), Some(name)) => directory.join(name),
        _ => absolute,
    }
}

/// Whether a file is a report or a baseline that this program wrote.
pub(crate) fn is_ours(path: &Path) -> bool {
    let json = |e: &OsStr| {
        ["json", "jsonl", "yaml", "yml"]
            .iter()
            .any(|j| e.eq_ignore_ascii_case(j))
    };
    if !path.extension().is_some_and(json) {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && starts_as_ours(&String::from_utf8_lossy(&head))
}

/// Whether a text begins as our JSON does: a brace and our schema's name, or a line about a check.
fn starts_as_ours(text: &str) -> bool {
    if text.starts_with("{\"type\":\"check\",\"name\":\"") {
        return true;
    }
    let rest = text.trim_start().strip_prefix('{').map(str::trim_start);
    let value = rest
        .and_then(|r| r.strip_prefix("\"schema\""))
        .map(str::trim_start)
        .and_then(|r| r.strip_prefix(':'))
        .map(str::trim_start);
    value.is_some_and(|v| {
        ["report-v", "line-v", "baseline-v"]
            .iter()
            .any(|kind| v.starts_with(&format!("\"check-interconnect/{kind}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_files_are_known_by_their_schema() {
        assert!(starts_as_ours(
            "{\n  \"schema\": \"check-interconnect/report-v1\",\n"
        ));
        assert!(starts_as_ours(
            policy::Baseline::default().to_json().as_str()
        ));
        for text in [
            "",
            "{}",
            "kind: Deployment",
            "{\"kind\": \"List\", \"schema\": \"check-interconnect/report-v1\"}",
            "{\"schema\": \"other/report-v1\"}",
        ] {
            assert!(!starts_as_ours(text), "{text}");
        }
    }
}
