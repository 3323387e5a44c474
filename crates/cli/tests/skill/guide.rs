//! Every shell line of the guide and of the references does what the text says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools::{
    NO_KUBECONFIG, Run, VARIABLE, case, executable, folder, has_python, install, no_cluster,
    program_in, skill,
};

/// A stand-in for a cluster: it writes down what it is asked, holds it against the real kubectl's flags where there
/// is one, and runs an exec here.
const KUBECTL: &str = r#"#!/bin/sh
printf '%s\n' "$*" >> "$KUBECTL_LOG"
if [ -n "$KUBECTL_REAL" ]; then
    "$KUBECTL_REAL" --kubeconfig=/dev/null --server=http://127.0.0.1:9 --request-timeout=1s "$@" \
        >/dev/null 2>>"$KUBECTL_LOG.real" </dev/null
fi
case "$1 $2" in
"auth can-i") echo yes ;;
"get pods") echo pod/qwen-worker-0 ;;
"logs "*) echo "ucp_context_0 inter-node cfg#1 rma(rc_mlx5/mlx5_0:1)" ;;
"exec "*)
    while [ "$1" != "--" ]; do shift; done
    shift
    exec "$@"
    ;;
*)
    echo "not expected: $*" >&2
    exit 64
    ;;
esac
"#;

/// Lines of all `bash` and `sh` blocks, continued lines joined. Other blocks hold no commands for a shell.
fn shell_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut within = false;
    let mut whole = String::new();
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            assert!(
                ["", "bash", "sh"].contains(&language),
                "a block in {language}"
            );
            assert!(
                within || !language.is_empty(),
                "a block without its language"
            );
            within = !within;
        } else if within && !line.starts_with('#') {
            whole.push_str(line.strip_suffix('\\').unwrap_or(line));
            if !line.ends_with('\\') {
                lines.push(std::mem::take(&mut whole));
            }
        }
    }
    assert!(!within);
    lines.retain(|l| !l.trim().is_empty());
    lines
}

fn documents() -> Vec<(String, String)> {
    let mut paths = vec![skill().join("SKILL.md")];
    paths.extend(
        fs::read_dir(skill().join("references"))
            .unwrap()
            .map(|e| e.unwrap().path()),
    );
    paths.sort();
    paths
        .into_iter()
        .map(|p| {
            let name = p
                .strip_prefix(skill())
                .unwrap()
                .to_string_lossy()
                .into_owned();
            (name, fs::read_to_string(p).unwrap())
        })
        .collect()
}

fn real_kubectl() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|p| p.join("kubectl"))
        .find(|p| p.is_file())
}

struct Place {
    base: PathBuf,
    skill: PathBuf,
}

impl Place {
    fn new() -> Self {
        let base = folder("every line");
        let skill = install(&base);
        program_in(&base.join("bin"));
        executable(&base.join("bin/kubectl"), KUBECTL);
        let recipe = base.join("my recipe");
        fs::create_dir(&recipe).unwrap();
        fs::copy(case("rdma-both-roles.yaml"), recipe.join("deploy.yaml")).unwrap();
        Self { base, skill }
    }

    fn log(&self) -> PathBuf {
        self.base.join("kubectl.log")
    }

    fn run(&self, line: &str) -> Run {
        let mut path = vec![self.base.join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let output = Command::new("bash")
            .args(["-u", "-o", "pipefail", "-c", line])
            .current_dir(&self.skill)
            .env("PATH", std::env::join_paths(path).unwrap())
            .env_remove(VARIABLE)
            .env("RECIPE", self.base.join("my recipe"))
            .env("NAMESPACE", "dynamo-demo")
            .env("POD", "qwen-worker-0")
            .env("CONTAINER", "main")
            .env("PEER", "qwen-worker-1")
            .env("KUBECONFIG", NO_KUBECONFIG)
            .env("KUBECTL_LOG", self.log())
            .env("KUBECTL_REAL", real_kubectl().unwrap_or_default())
            .output()
            .unwrap();
        Run::of(&output)
    }
}

#[test]
fn every_line_runs() {
    if !has_python() || Command::new("bash").arg("--version").output().is_err() {
        return;
    }
    let place = Place::new();
    let mut ran = 0;
    for (document, text) in documents() {
        for line in shell_lines(&text) {
            let run = place.run(&line);
            judge(&document, &line, &run);
            ran += 1;
        }
    }
    assert!(ran >= 20, "{ran}");
    asked_only_to_read(&place.log());
}

fn judge(document: &str, line: &str, run: &Run) {
    let told = || format!("{document}: {line}\n{run:?}");
    if line.contains("check_interconnect.py nixl") {
        return no_cluster(run, "nixl");
    }
    if line.contains("check_interconnect.py node") {
        // What this machine has decides; a saved output says always the same.
        if line.contains("--pod") {
            return no_cluster(run, "node");
        }
        let report = run.report();
        assert_eq!(report.command, "node", "{}", told());
        assert!(!report.checks.is_empty() && !report.transfer_validated);
        if line.contains("port-down") {
            assert_eq!(run.code, 1, "{}", told());
        }
        assert!([0, 1, 3].contains(&run.code), "{}", told());
        return;
    }
    let expected = i32::from(line.contains("decode-tcp-only"));
    assert_eq!(run.code, expected, "{}", told());
    assert_eq!(run.err, "", "{}", told());
    assert!(!run.out.trim().is_empty(), "{}", told());
    if line.contains("check_interconnect.py env") {
        let readiness = run.report().readiness.as_str();
        let right = if expected == 1 { "blocked" } else { "unproven" };
        assert_eq!(readiness, right, "{}", told());
    }
}

fn asked_only_to_read(log: &Path) {
    let asked = fs::read_to_string(log).unwrap();
    for line in asked.lines() {
        let verb = line.split(' ').next().unwrap();
        assert!(["auth", "get", "logs", "exec"].contains(&verb), "{line}");
        assert!(line.contains("dynamo-demo"), "no namespace: {line}");
        // In a worker nothing is written anywhere; messages alone are thrown away.
        assert!(!line.replace("2>/dev/null", "").contains('>'), "{line}");
    }
    assert!(
        asked.lines().filter(|l| l.starts_with("exec")).count() >= 8,
        "{asked}"
    );
    match fs::read_to_string(log.with_extension("log.real")) {
        Ok(errors) => {
            assert!(
                !errors.contains("unknown") && !errors.contains("invalid"),
                "{errors}"
            );
        }
        Err(_) => eprintln!("skipped: no kubectl to hold the flags against"),
    }
}

/// A worker's environment has secrets in it; the line that reads it takes names that it knows and no others.
#[test]
fn the_environment_is_read_by_name() {
    let lines: Vec<String> = documents()
        .iter()
        .flat_map(|(_, t)| shell_lines(t))
        .collect();
    let reading: Vec<&String> = lines.iter().filter(|l| l.contains("environ")).collect();
    assert_eq!(reading.len(), 1);
    let program = reading[0]
        .split("sh -c '")
        .nth(1)
        .unwrap()
        .strip_suffix('\'')
        .unwrap();
    let mut worker = Command::new("sleep")
        .arg("60")
        .env("UCX_TLS", "rc,cuda_copy")
        .env("HF_TOKEN", "hunter2")
        .env("UCX_TLS_TOKEN", "hunter2")
        .spawn()
        .unwrap();
    let environ = format!("/proc/{}/environ", worker.id());
    let output = Command::new("sh")
        .args(["-c", &program.replace("/proc/1/environ", &environ)])
        .output()
        .unwrap();
    worker.kill().unwrap();
    worker.wait().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, "UCX_TLS=rc,cuda_copy\n");
    for line in &lines {
        assert!(
            !line.contains("-o yaml") && !line.contains("get secret"),
            "{line}"
        );
    }
}

/// Files that the guide names are there, one level deep.
#[test]
fn files_that_are_named_exist() {
    let (_, guide) = documents().remove(0);
    let named: Vec<&str> = guide
        .split(['`', ' ', '(', ')', ',', ';', ':', '\n'])
        .filter(|w| {
            ["references/", "scripts/", "evals/"]
                .iter()
                .any(|p| w.starts_with(p))
        })
        .collect();
    assert!(named.len() > 5, "{named:?}");
    for name in named {
        assert!(skill().join(name).exists(), "{name}");
    }
}
