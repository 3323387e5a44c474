//! Kustomizations and Helm charts through the program: with the real kubectl and helm where they are there (a test
//! says so where not), and with scripts in their place for what the real ones seldom do.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stderr)]

mod fixtures;
mod helm;
mod kustomize;
mod programs;

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A directory that is gone after the test.
pub(crate) struct Temp(PathBuf);

impl Temp {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("render-test-{}-{n}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, with the directories above it.
    pub(crate) fn write(&self, name: &str, text: &str) -> &Self {
        let file = self.0.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self
    }

    /// Writes a script into `bin/`. Another process writes it: a descriptor that is open for writing here could be
    /// inherited by a program started at the same time, and then the script could not be executed.
    pub(crate) fn script(&self, name: &str, body: &str) -> &Self {
        let bin = self.0.join("bin");
        fs::create_dir_all(&bin).unwrap();
        let mut writer = Command::new("/bin/sh")
            .args(["-c", "cat >\"$1\" && chmod 755 \"$1\"", "sh"])
            .arg(bin.join(name))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = writer.stdin.take().unwrap();
        write!(input, "#!/bin/sh\n{body}\n").unwrap();
        drop(input);
        assert!(writer.wait().unwrap().success());
        self
    }

    /// A PATH with the scripts first.
    pub(crate) fn scripts_path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.0.join("bin").display())
    }

    /// What a script wrote.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// What a run printed.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) json: Value,
}

impl Run {
    pub(crate) fn verdict(&self) -> &str {
        self.json["verdict"].as_str().unwrap()
    }

    /// Every deployment by the file that it was read from, with its readiness.
    pub(crate) fn deployments(&self) -> Vec<(String, String)> {
        let list = self.json["deployments"].as_array().unwrap();
        list.iter()
            .map(|d| {
                let text = |v: &Value| v.as_str().unwrap().to_owned();
                (text(&d["files"][0]), text(&d["readiness"]))
            })
            .collect()
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.deployments().into_iter().map(|(f, _)| f).collect()
    }

    /// Results about inputs: status, file, and the words about it.
    pub(crate) fn inputs(&self) -> Vec<(String, String, String)> {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        self.json["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["name"] == "input")
            .map(|c| {
                let words = format!(
                    "{} {} {}",
                    text(&c["detail"]),
                    text(&c["note"]),
                    text(&c["fix"])
                );
                (text(&c["status"]), text(&c["subject"]["file"]), words)
            })
            .collect()
    }

    /// The words about the one input that was skipped.
    pub(crate) fn skipped(&self) -> String {
        let all: Vec<_> = self
            .inputs()
            .into_iter()
            .filter(|i| i.0 == "skipped")
            .collect();
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().unwrap().2
    }

    /// How many results a check gave.
    pub(crate) fn count(&self, name: &str) -> usize {
        let checks = self.json["checks"].as_array().unwrap();
        checks.iter().filter(|c| c["name"] == name).count()
    }

    /// Whether a cause was found.
    pub(crate) fn has(&self, cause: &str) -> bool {
        let checks = self.json["checks"].as_array().unwrap();
        checks.iter().any(|c| c["cause"] == cause)
    }
}

/// Runs `env -o json` in a directory with nothing but a PATH around it.
pub(crate) fn run(directory: &Path, path: &str, arguments: &[&str]) -> Run {
    let out = command(directory, path, arguments).output().unwrap();
    let stdout = String::from_utf8(out.stdout).unwrap();
    let stderr = String::from_utf8(out.stderr).unwrap();
    Run {
        code: out.status.code().unwrap(),
        json: serde_json::from_str(&stdout).unwrap_or(Value::Null),
        stdout,
        stderr,
    }
}

pub(crate) fn command(directory: &Path, path: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_check-interconnect"));
    command
        .args(["env", "-o", "json"])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", path)
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null());
    command
}

/// No program is here.
pub(crate) const NOTHING: &str = "/nonexistent";

/// A PATH with the real program, or none with a message.
pub(crate) fn real(name: &str) -> Option<String> {
    let found = env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .find(|directory| directory.join(name).is_file())
        .map(|directory| format!("{}:/usr/bin:/bin", directory.display()));
    if found.is_none() {
        eprintln!("skipped: {name} is not on PATH");
    }
    found
}
