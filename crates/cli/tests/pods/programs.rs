//! Programs that stand between: wrappers of kubectl that greet, warn, or are not there; plugins that ask.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{about, has_kubectl, program, run, run_with, serving, tree_of, worker};

/// A program of this script.
fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn what_a_wrapper_says_beside_the_answer_changes_nothing() {
    if !has_kubectl() {
        return;
    }
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(worker("prefill-0", &prefill.root()))
        .pod(worker("decode-0", &decode.root()))
        .start()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let wrappers = [
        (
            "warns",
            "echo 'Warning: version difference between client (1.20) and server (1.33)' >&2\necho 'Defaulted container \"main\" out of: main, proxy' >&2\nexec kubectl \"$@\"",
        ),
        (
            "greets",
            "echo 'Using profile {default}.'\necho\nkubectl \"$@\"\ncode=$?\necho ' bye'\nexit $code",
        ),
        (
            "talks",
            "head -c 1000000 /dev/zero | tr '\\0' x >&2\nexec kubectl \"$@\"",
        ),
        // Words of its own before those of kubectl.
        (
            "tool",
            "[ \"$1 $2\" = 'kube ctl' ] || exit 64\nshift 2\nexec kubectl \"$@\"",
        ),
    ];
    for selected in [
        vec!["--all"],
        vec!["--pod", "decode-0", "--pod", "prefill-0"],
    ] {
        let ask = |via: &[&str]| {
            let words: Vec<&str> = ["node", "-n", "serving", "-o", "json"]
                .into_iter()
                .chain(selected.iter().copied())
                .chain(via.iter().copied())
                .collect();
            run(&api, &words)
        };
        let plain = ask(&[]);
        assert_eq!(plain.code, 0, "{}", plain.out);
        for (name, text) in wrappers {
            let mut via = script(directory.path(), name, text).display().to_string();
            if name == "tool" {
                via.push_str(" kube ctl");
            }
            let wrapped = ask(&["--via", &via]);
            assert_eq!(wrapped.code, 0, "{name} {}{}", wrapped.out, wrapped.err);
            let told = wrapped.out.replace(&format!(" --via {via}"), "");
            let told = told.replace(&format!(" --via '{via}'"), "");
            assert_eq!(told, plain.out, "{name}");
        }
    }
}

#[test]
fn a_program_that_cannot_be_used_is_named_without_its_secrets() {
    let api = serving()
        .pod(stand_in::Pod::worker("decode-0"))
        .start()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let closed = directory.path().join("closed");
    std::fs::write(&closed, "no program").unwrap();
    let closed = closed.display().to_string();
    let old = script(
        directory.path(),
        "old",
        "echo 'error: unknown flag: --raw' >&2\nexit 1",
    );
    let silent = script(directory.path(), "silent", "exit 3");
    let hangs = script(directory.path(), "hangs", "exec sleep 600");
    let path = |path: &Path| path.display().to_string();
    for (via, cause) in [
        (
            "no-such-kubectl --token hunter2".to_owned(),
            "kubectl-missing",
        ),
        (format!("{closed} --token=hunter2"), "kubectl-missing"),
        (format!("{} --token hunter2", path(&old)), "kubectl-failed"),
        (
            format!("{} --token=hunter2", path(&silent)),
            "kubectl-failed",
        ),
        (
            format!("{} --password hunter2", path(&hangs)),
            "probe-timed-out",
        ),
    ] {
        for format in ["json", "text"] {
            let words = [
                "node",
                "-n",
                "serving",
                "--all",
                "--via",
                &via,
                "-o",
                format,
                "--request-timeout",
                "1s",
            ];
            let run = run(&api, &words);
            assert_eq!(run.code, 5, "{via} {}{}", run.out, run.err);
            assert!(run.out.contains(cause), "{via} {}", run.out);
            assert!(
                !run.out.contains("hunter2") && !run.err.contains("hunter2"),
                "{via} {}",
                run.out
            );
        }
    }
}

#[test]
fn a_plugin_that_asks_its_user_asks_on_a_terminal_and_nowhere_else() {
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .tls(stand_in::Certificate::Good)
        .start()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(api.kubeconfig()).unwrap();
    let mut file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let token = file["users"][0]["user"]["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let plugin = script(
        directory.path(),
        "asks",
        &format!(
            "if [ -t 0 ]; then printf 'Code: ' >&2; read -r code; else code=none; fi\n[ \"$code\" = \"$WANTED\" ] || exit 7\necho '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"{token}\"}}}}'"
        ),
    );
    let mut write = |mode: &str, wanted: &str| {
        file["users"][0]["user"] = serde_json::json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": plugin,
            "env": [{"name": "WANTED", "value": wanted}],
            "interactiveMode": mode,
        }});
        let path = directory.path().join(format!("{mode}.{wanted}"));
        std::fs::write(&path, file.to_string()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let words = ["node", "-n", "serving", "--pod", "decode-0", "-o", "json"];
    // Without a terminal.
    let always = run_with(&write("Always", "none"), &words);
    assert_eq!(always.code, 5, "{}", always.out);
    assert!(
        always.out.contains("interactiveMode Always"),
        "{}",
        always.out
    );
    for mode in ["IfAvailable", "Never"] {
        let run = run_with(&write(mode, "none"), &words);
        assert_eq!(run.code, 0, "{mode} {}", run.out);
        assert!(!about(&run.json(), "decode-0").is_empty());
    }
    // On one: what is typed goes to the plugin.
    let has_script = std::process::Command::new("script")
        .arg("--version")
        .output()
        .is_ok();
    if !has_script {
        eprintln!("skipped: no script(1) here, which makes a terminal");
        return;
    }
    for (mode, wanted, code) in [
        ("Always", "4711", 0),
        ("IfAvailable", "4711", 0),
        ("Never", "none", 0),
        ("Always", "4712", 5),
    ] {
        let kubeconfig = write(mode, wanted);
        let report = directory.path().join("report.json");
        let own = program(&kubeconfig);
        let line = format!(
            "'{}' node -n serving --pod decode-0 -o json='{}'",
            own.get_program().display(),
            report.display()
        );
        let mut command = std::process::Command::new("script");
        command.args(["-qec", &line, "/dev/null"]);
        for (name, value) in own.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // Kept open: its end would be one of the terminal.
        let mut typed = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut typed, b"4711\n").unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{mode} {wanted} {shown}");
        assert_eq!(shown.contains("Code: "), mode != "Never", "{mode} {shown}");
        drop(typed);
    }
}
