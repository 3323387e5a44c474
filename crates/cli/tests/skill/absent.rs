//! The script without its program, and where it finds one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{
    Run, SCRIPT, VARIABLE, executable, folder, has_python, install, looked_here, program_in,
};

/// A PATH with Python and nothing else.
fn bare_path(base: &Path) -> PathBuf {
    let bin = base.join("bare");
    fs::create_dir_all(&bin).unwrap();
    let python = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    let python = String::from_utf8(python.stdout).unwrap();
    symlink(python.trim(), bin.join("python3")).unwrap();
    bin
}

fn run(skill: &Path, path: &Path, named: Option<&Path>, arguments: &[&str]) -> Run {
    let mut command = Command::new("python3");
    command
        .arg(SCRIPT)
        .args(arguments)
        .current_dir(skill)
        .env("PATH", path)
        .env_remove(VARIABLE);
    if let Some(named) = named {
        command.env(VARIABLE, named);
    }
    Run::of(&command.output().unwrap())
}

/// Nothing was looked at, and the report says so and how to get the program.
fn says_absent(run: &Run, command: &str) {
    let report = run.report();
    assert_eq!(run.code, 3, "{run:?}");
    assert!(!report.transfer_validated);
    assert_eq!(report.readiness, model::Readiness::Inconclusive);
    assert_eq!(report.command, command);
    assert_eq!(report.checks.len(), 1);
    assert_eq!(report.checks[0].status, model::Status::Skipped);
    assert_eq!(report.checks[0].reason, Some(model::Reason::NoTool));
    assert!(
        report.checks[0]
            .fix
            .as_ref()
            .unwrap()
            .contains("cargo install")
    );
    assert!(report.verdict.contains("nothing was looked at"));
    let counts = report.counts;
    assert_eq!(
        (counts.ok, counts.warn, counts.fail, counts.skipped),
        (0, 0, 0, 1)
    );
}

#[test]
fn no_program_anywhere() {
    if !has_python() {
        return;
    }
    let base = folder("absent");
    let (skill, bare) = (install(&base), bare_path(&base));
    for arguments in [
        &["env", "evals/cases/no-fabric.yaml"][..],
        &["node", "--namespace", "n", "--pod", "p"],
        &["nixl"],
    ] {
        says_absent(&run(&skill, &bare, None, arguments), arguments[0]);
    }
    let help = run(&skill, &bare, None, &["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains(VARIABLE));
    let nothing = run(&skill, &bare, None, &[]);
    assert_eq!((nothing.code, nothing.out.as_str()), (2, ""));
    assert!(nothing.err.contains("Usage"));
}

/// Who names a program does not want another one.
#[test]
fn the_named_program_is_wrong() {
    if !has_python() {
        return;
    }
    let base = folder("wrong");
    let (skill, bare) = (install(&base), bare_path(&base));
    program_in(&skill.join("bin"));
    let not_executable = base.join("text");
    fs::write(&not_executable, "no program\n").unwrap();
    let no_program = base.join("garbage");
    executable(&no_program, "\u{1}\u{2} neither a script nor a binary");
    for wrong in [&base.join("not-there"), &not_executable, &no_program, &base] {
        let run = run(
            &skill,
            &bare,
            Some(wrong),
            &["env", "evals/cases/no-fabric.yaml"],
        );
        says_absent(&run, "env");
        let shown = wrong.to_string_lossy();
        assert!(run.report().checks[0].detail.contains(&*shown), "{run:?}");
    }
}

#[test]
fn beside_the_skill_or_on_the_path() {
    if !has_python() {
        return;
    }
    let base = folder("beside");
    let bare = bare_path(&base);
    for place in ["scripts", ".", "bin"] {
        let skill = install(&base.join("in").join(place));
        program_in(&skill.join(place));
        looked_here(&run(&skill, &bare, None, &["nixl"]), "nixl");
    }
    let skill = install(&base.join("on-path"));
    program_in(&bare);
    looked_here(&run(&skill, &bare, None, &["nixl"]), "nixl");
}

/// Only the standard library, as people have no more.
#[test]
fn the_script_imports_nothing_else() {
    if !has_python() {
        return;
    }
    let program = "import ast, sys
tree = ast.parse(open(sys.argv[1], encoding='utf-8').read(), feature_version=(3, 10))
names = [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
names += [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
assert names and all(n.split('.')[0] in sys.stdlib_module_names for n in names), names";
    let output = Command::new("python3")
        .args(["-c", program])
        .arg(crate::tools::skill().join(SCRIPT))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
