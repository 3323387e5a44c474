//! What the tests share.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use model::report_v1::ReportV1;
use serde_json::Value;

/// The program that was just built.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_check-interconnect");

/// The variable that names it to the script.
pub(crate) const VARIABLE: &str = "CHECK_INTERCONNECT_BIN";

/// The script, in the skill's folder.
pub(crate) const SCRIPT: &str = "scripts/check_interconnect.py";

/// Root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap().to_path_buf()
}

/// The skill's folder.
pub(crate) fn skill() -> PathBuf {
    root().join("skills/dynamo-interconnect-check")
}

/// Whether there is a Python to run the script with; says so where not.
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: no python3 on PATH");
    }
    found
}

/// An empty folder for one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("skill")
        .join(name);
    let _absent = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Copies the skill, as somebody does who installs it. Its name stays.
pub(crate) fn install(into: &Path) -> PathBuf {
    let to = into.join("dynamo-interconnect-check");
    copy(&skill(), &to);
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Puts the program into a folder, under its name.
pub(crate) fn program_in(folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let path = folder.join("check-interconnect");
    symlink(PROGRAM, &path).unwrap();
    path
}

/// An executable file.
pub(crate) fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A labelled recipe.
pub(crate) fn case(name: &str) -> PathBuf {
    skill().join("evals/cases").join(name)
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().expect("it ended by itself"),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// The report; it must have the form of our own and the keys of the published script.
    pub(crate) fn report(&self) -> ReportV1 {
        let value = self.value();
        for key in ["checks", "counts", "verdict", "transfer_validated"] {
            assert!(value.get(key).is_some(), "{key} is missing: {value}");
        }
        for status in ["ok", "warn", "fail", "skipped"] {
            assert!(value["counts"][status].is_u64(), "counts.{status}: {value}");
        }
        for check in value["checks"].as_array().unwrap() {
            for key in ["name", "status", "detail"] {
                assert!(check[key].is_string(), "{key}: {check}");
            }
            let status = check["status"].as_str().unwrap();
            assert!(
                ["ok", "warn", "fail", "skipped"].contains(&status),
                "{check}"
            );
        }
        serde_json::from_value(value).unwrap()
    }
}

/// Runs the script of the skill in `at` against the fresh build.
pub(crate) fn script(at: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new("python3");
    command
        .arg(SCRIPT)
        .args(arguments)
        .current_dir(at)
        .env("KUBECONFIG", NO_KUBECONFIG)
        .env(VARIABLE, PROGRAM);
    Run::of(&command.output().unwrap())
}

/// Runs the program itself.
pub(crate) fn program(arguments: &[&str]) -> Run {
    let mut command = Command::new(PROGRAM);
    Run::of(
        &command
            .args(arguments)
            .current_dir(skill())
            .output()
            .unwrap(),
    )
}

/// Without a cluster nothing is looked at, and the report says what is missing: a kubeconfig.
pub(crate) fn no_cluster(run: &Run, command: &str) {
    let report = run.report();
    assert_eq!(report.command, command);
    let causes: Vec<_> = report
        .checks
        .iter()
        .filter_map(|c| c.cause.as_deref())
        .collect();
    assert_eq!(causes, ["kubeconfig-missing"], "{run:?}");
    assert_eq!(report.checks[0].status, model::Status::Skipped);
    assert!(report.checks[0].fix.is_some());
    let counts = report.counts;
    assert_eq!(
        (counts.ok, counts.warn, counts.fail, counts.skipped),
        (0, 0, 0, 1)
    );
    assert_eq!(report.readiness, model::Readiness::Inconclusive);
    assert!(!report.transfer_validated);
    assert_eq!(run.code, 5);
}

/// Whatever this machine has, looking at it validates no transfer.
pub(crate) fn looked_here(run: &Run, command: &str) {
    let report = run.report();
    assert_eq!(report.command, command);
    assert!(!report.checks.is_empty() && !report.transfer_validated);
    assert!([0, 1, 3].contains(&run.code), "{run:?}");
}

/// A kubeconfig that is not there: no test reaches a cluster of this machine.
pub(crate) const NO_KUBECONFIG: &str = "/nonexistent/kubeconfig";
