//! Generated files against those that are there.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Generated files: path from the root of the repository, with forward slashes, to content.
pub(crate) type Files = BTreeMap<String, String>;

/// Directories in which every file is generated.
const OWNED: &[&str] = &["completions", "docs/checks", "man", "schema"];

/// One difference.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Drift {
    /// The file is not there.
    Missing(String),
    /// Its content is another one.
    Changed(String),
    /// Nothing generates it any more.
    Surplus(String),
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "missing  {path}"),
            Self::Changed(path) => write!(f, "changed  {path}"),
            Self::Surplus(path) => write!(f, "surplus  {path}"),
        }
    }
}

/// All differences, in the order of paths.
pub(crate) fn compare(root: &Path, files: &Files) -> Result<Vec<Drift>, String> {
    let mut drift = Vec::new();
    for (path, text) in files {
        match fs::read(root.join(path)) {
            Ok(there) if there == text.as_bytes() => {}
            Ok(_) => drift.push(Drift::Changed(path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                drift.push(Drift::Missing(path.clone()));
            }
            Err(error) => return Err(format!("cannot read {path}: {error}")),
        }
    }
    for directory in OWNED {
        for path in listed(root, directory)? {
            if !files.contains_key(&path) {
                drift.push(Drift::Surplus(path));
            }
        }
    }
    Ok(drift)
}

/// Makes the differences go away.
pub(crate) fn write(root: &Path, files: &Files, drift: &[Drift]) -> Result<(), String> {
    for item in drift {
        let (Drift::Missing(path) | Drift::Changed(path) | Drift::Surplus(path)) = item;
        let target = root.join(path);
        let done = match files.get(path) {
            Some(text) => target
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&target, text)),
            None => fs::remove_file(&target),
        };
        done.map_err(|error| format!("cannot write {path}: {error}"))?;
    }
    Ok(())
}

fn listed(root: &Path, directory: &str) -> Result<Vec<String>, String> {
    let at = |error: io::Error| format!("cannot list {directory}: {error}");
    let entries = match fs::read_dir(root.join(directory)) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry.map_err(at)?;
        paths.push(format!(
            "{directory}/{}",
            entry.file_name().to_string_lossy()
        ));
    }
    paths.sort();
    Ok(paths)
}
