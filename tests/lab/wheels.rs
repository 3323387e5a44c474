//! Wheels of NIXL, as `.ci/nixl` prepares them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of all wheels, prepared once; none, with the reason printed, where they cannot be had.
fn wheels() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/nixl");
            let output = Command::new(script).output().ok()?;
            if !output.status.success() {
                eprint!("{}", String::from_utf8_lossy(&output.stderr));
                eprintln!("skipped: no wheels of NIXL here");
                return None;
            }
            let text = String::from_utf8(output.stdout).ok()?;
            Some(PathBuf::from(text.lines().last()?))
        })
        .as_deref()
}

/// The folder of one version of NIXL.
pub(crate) fn wheel(version: &str) -> Option<PathBuf> {
    let one = wheels()?.join(format!("v{version}"));
    if !one.is_dir() {
        eprintln!("skipped: no wheel of NIXL {version} here");
        return None;
    }
    Some(one)
}

/// Where Python finds one version of NIXL, and what it needs.
pub(crate) fn python_path(version: &str) -> Option<String> {
    let one = wheel(version)?;
    Some(format!(
        "{}:{}",
        one.display(),
        wheels()?.join("numpy").display()
    ))
}

/// The same as a setting of a worker.
#[allow(dead_code, reason = "some of the tests that have this file look at it")]
pub(crate) fn nixl(version: &str) -> Option<String> {
    python_path(version).map(|path| format!("PYTHONPATH={path}"))
}
