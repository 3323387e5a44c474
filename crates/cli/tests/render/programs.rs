//! Scripts in place of kubectl, for what the real one seldom does.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::fixtures::GRAPH;
use crate::{NOTHING, Temp, run};

fn one(script: &str) -> Temp {
    let temp = Temp::new();
    temp.write("k/deploy.yaml", GRAPH)
        .write("k/kustomization.yaml", "resources: [deploy.yaml]\n")
        .script("kubectl", script);
    temp
}

fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    // A process that has ended may wait for whoever inherited it.
    stat.is_ok_and(|s| {
        !s.rsplit(')')
            .next()
            .unwrap_or_default()
            .trim()
            .starts_with('Z')
    })
}

#[test]
fn a_program_that_hangs_is_stopped_with_all_that_it_started() {
    let temp = Temp::new();
    let pids = temp.path().join("pids");
    temp.write("k/deploy.yaml", GRAPH)
        .write("k/kustomization.yaml", "resources: [deploy.yaml]\n")
        .script(
            "kubectl",
            &format!(
                "echo $$ >>{0}\nsleep 300 & echo $! >>{0}\nsleep 300",
                pids.display()
            ),
        );
    let start = Instant::now();
    let found = run(
        temp.path(),
        &temp.scripts_path(),
        &["k", "--render-timeout", "1"],
    );
    assert!(start.elapsed() < Duration::from_secs(10));
    let words = found.skipped();
    assert!(
        words.contains("took longer than 1 s and was stopped"),
        "{words}"
    );
    assert!(found.has("ucx-tls-rdma-only-no-device"));
    let pids = temp.read("pids");
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        assert!(!is_alive(pid), "{pid} is left");
    }
}

/// The first signal ends the run with what is there, and nothing runs on.
#[test]
fn a_signal_while_a_program_runs_ends_the_run_with_a_report() {
    for (signal, code) in [("HUP", 129), ("INT", 130), ("TERM", 143)] {
        let temp = Temp::new();
        let pids = temp.path().join("pids");
        temp.write("k/deploy.yaml", GRAPH)
            .write("k/kustomization.yaml", "resources: [deploy.yaml]\n")
            .script(
                "kubectl",
                &format!(
                    "sleep 300 & echo $! >>{0}\necho $$ >>{0}\nsleep 300",
                    pids.display()
                ),
            );
        let start = Instant::now();
        let child = crate::command(
            temp.path(),
            &temp.scripts_path(),
            &["k", "-o", "json=report"],
        )
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
        while std::fs::read_to_string(&pids).map_or(0, |p| p.lines().count()) < 2 {
            assert!(start.elapsed() < Duration::from_secs(20), "never started");
            std::thread::sleep(Duration::from_millis(5));
        }
        let sent = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
        let out = child.wait_with_output().unwrap();
        assert!(start.elapsed() < Duration::from_secs(20));
        assert_eq!(out.status.code(), Some(code), "{signal}");
        let text = temp.read("report");
        assert!(text.contains("was interrupted before"), "{text}");
        assert!(text.contains("ucx-tls-rdma-only-no-device"), "{text}");
        for pid in temp.read("pids").lines() {
            assert!(!is_alive(pid), "{pid} is left after {signal}");
        }
    }
}

#[test]
fn what_a_program_leaves_behind_is_stopped() {
    let temp = Temp::new();
    let pids = temp.path().join("pids");
    temp.write("k/kustomization.yaml", "resources: [deploy.yaml]\n")
        .write("k/deploy.yaml", GRAPH)
        .script(
            "kubectl",
            &format!(
                "sleep 300 >/dev/null 2>&1 & echo $! >{}\ncat \"$2\"/deploy.yaml",
                pids.display()
            ),
        );
    let found = run(temp.path(), &temp.scripts_path(), &["k"]);
    assert_eq!(found.files(), ["k (kubectl kustomize)"]);
    assert!(!is_alive(temp.read("pids").trim()));
}

#[test]
fn a_flood_is_cut_off() {
    let temp = one("exec yes aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    let found = run(temp.path(), &temp.scripts_path(), &["k"]);
    assert!(
        found.skipped().contains("printed too much"),
        "{}",
        found.stdout
    );
    assert!(found.has("ucx-tls-rdma-only-no-device"));
    // On the other channel it does not matter.
    let temp = one("yes error | head -c 30000000 >&2; exec cat \"$2\"/deploy.yaml");
    let found = run(temp.path(), &temp.scripts_path(), &["k"]);
    assert_eq!(found.files(), ["k (kubectl kustomize)"]);
}

#[test]
fn an_error_text_is_never_shown() {
    let temp = one(
        "printf 'Error: no such file or directory: token=hunter2-s3cr3t\\033[31m\\n' >&2; exit 3",
    );
    for format in ["text", "short", "json", "jsonl"] {
        let out = crate::command(temp.path(), &temp.scripts_path(), &["k", "-v"])
            .args(["-o", &format!("{format}=report")])
            .output()
            .unwrap();
        let report = temp.read("report") + &String::from_utf8_lossy(&out.stdout);
        assert!(report.contains("exit code 3"), "{report}");
        assert!(report.contains("a file that it names is not there"));
        assert!(!report.contains("hunter2") && !report.contains('\u{1b}'));
        assert!(out.stderr.is_empty());
    }
}

#[test]
fn nothing_of_the_environment_steers_it() {
    let temp = Temp::new();
    let seen = temp.path().join("seen");
    temp.write("k/deploy.yaml", GRAPH)
        .write("k/kustomization.yaml", "resources: [deploy.yaml]\n")
        .script(
            "kubectl",
            &format!(
                "{{ env; pwd; echo \"$@\"; }} >{}\nexec cat \"$2\"/deploy.yaml",
                seen.display()
            ),
        );
    let out = crate::command(temp.path(), &temp.scripts_path(), &["k"])
        .env("KUBECONFIG", "/secret")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("HTTPS_PROXY", "http://secret")
        .env("KUSTOMIZE_PLUGIN_HOME", "/secret")
        .env("XDG_CONFIG_HOME", "/secret")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1));
    let seen = temp.read("seen");
    assert!(!seen.contains("secret"), "{seen}");
    assert!(seen.contains("KUBECONFIG=/dev/null"));
    assert!(
        seen.contains(&format!("kustomize {}/k\n", temp.path().display())),
        "{seen}"
    );
}

#[test]
fn kustomize_takes_the_place_of_kubectl() {
    let temp = Temp::new();
    temp.write("k/deploy.yaml", GRAPH)
        .write("k/kustomization.yaml", "resources: [deploy.yaml]\n")
        .script(
            "kustomize",
            "[ \"$1\" = build ] && exec /bin/cat \"$2\"/deploy.yaml",
        );
    let bin = temp.path().join("bin");
    let found = run(temp.path(), &bin.to_string_lossy(), &["k"]);
    assert_eq!(found.files(), ["k (kustomize build)"]);
    // A directory of PATH that is not absolute could be the one under judgement.
    let found = run(temp.path(), "bin:.:", &["k"]);
    assert!(
        found
            .skipped()
            .contains("neither kubectl nor kustomize is on PATH")
    );
}

#[test]
fn odd_output() {
    let cases = [
        ("exit 0", "no document in it"),
        ("printf '\\377\\376'", "UTF-16"),
        ("echo 'a: ['", "line "),
    ];
    for (script, words) in cases {
        let temp = one(script);
        let found = run(temp.path(), &temp.scripts_path(), &["k"]);
        assert!(
            found
                .inputs()
                .iter()
                .any(|(_, file, w)| file == "k (kubectl kustomize)" && w.contains(words)),
            "{script}: {}",
            found.stdout
        );
    }
    let temp = one("kill -9 $$");
    let found = run(temp.path(), &temp.scripts_path(), &["k"]);
    assert!(found.skipped().contains("kubectl kustomize was killed"));
    let temp = one("");
    temp.script("kubectl", "x")
        .write("bin/kubectl", "\u{0}not a program");
    let found = run(temp.path(), &temp.scripts_path(), &["k"]);
    assert!(found.skipped().contains("cannot be started") || found.skipped().contains("exit code"));
}

#[test]
fn many_that_hang_do_not_add_up() {
    let temp = Temp::new();
    for n in 0..40 {
        temp.write(&format!("{n}/deploy.yaml"), GRAPH).write(
            &format!("{n}/kustomization.yaml"),
            "resources: [deploy.yaml]\n",
        );
    }
    temp.script("kubectl", "exec sleep 300");
    let start = Instant::now();
    let found = run(
        temp.path(),
        &temp.scripts_path(),
        &[".", "--render-timeout", "1"],
    );
    assert!(start.elapsed() < Duration::from_secs(15));
    assert!(
        found
            .verdict()
            .contains("40 kustomizations were not rendered")
    );
}

/// What decides which text is judged belongs to the command that judges again.
#[test]
fn the_next_command_judges_the_same_text() {
    let temp = one("exit 1");
    let found = run(temp.path(), NOTHING, &["k", "--no-render"]);
    assert!(
        found
            .stdout
            .contains("\"command\": \"check-interconnect env k --no-render\""),
        "{}",
        found.stdout
    );
}
