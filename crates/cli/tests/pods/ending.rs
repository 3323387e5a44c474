//! Ctrl-C: a report with what is there, exit code 130, and nothing of ours in any container.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use stand_in::{Fault, Pod, StandIn};

use crate::support::{program, serving, tree_of, ways, worker};

fn of_group(group: u32) -> usize {
    let group = group.to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            stat.rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(2))
                == Some(&group)
        })
        .count()
}

fn nothing_left(api: &StandIn) -> bool {
    api.wait_for(Duration::from_secs(5), |api| {
        api.execs()
            .iter()
            .filter_map(|exec| exec.pid)
            .all(|pid| of_group(pid) == 0)
    })
}

#[test]
fn an_interrupted_run_reports_what_it_has_and_leaves_nothing() {
    let (quick, slow) = (tree_of("prefill"), tree_of("decode"));
    std::fs::create_dir_all(slow.root().join("bin")).unwrap();
    let tool = slow.root().join("bin/ucx_info");
    std::fs::write(&tool, "#!/bin/sh\nexec sleep 3600\n").unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for way in ways() {
        let api = serving()
            .pod(worker("prefill-0", &quick.root()))
            .pod(worker("decode-0", &slow.root()))
            .start()
            .unwrap();
        let mut child = program(api.kubeconfig())
            .args(["node", "-n", "serving", "--all", "-o", "json"])
            .args(&way)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The quick one is done, the slow one in its tool.
        assert!(api.wait_for(Duration::from_secs(20), |api| {
            let execs = api.execs();
            execs.len() == 2
                && execs
                    .iter()
                    .all(|e| e.status.is_some() || e.stdout.text().contains("tool:ucx_info"))
                && execs.iter().any(|e| e.status.is_some())
        }));
        std::thread::sleep(Duration::from_millis(300));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let begin = Instant::now();
        kill_process(pid, Signal::INT).unwrap();
        let mut out = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(130), "{way:?} {out}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{way:?}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(report["readiness"], "inconclusive", "{out}");
        assert!(
            out.contains("prefill-0") && out.contains("stopped while"),
            "{out}"
        );
        assert!(nothing_left(&api), "{way:?}");
    }
}

#[test]
fn nothing_of_ours_stays_after_the_end_or_a_timeout() {
    let slow = tree_of("decode");
    std::fs::create_dir_all(slow.root().join("bin")).unwrap();
    let tool = slow.root().join("bin/ucx_info");
    // It ends only when it is killed.
    std::fs::write(
        &tool,
        "#!/bin/sh\ntrap '' TERM INT HUP\nwhile :; do sleep 1; done\n",
    )
    .unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for way in ways() {
        for timeout in ["2s", "60s"] {
            let api = serving()
                .pod(worker("decode-0", &slow.root()))
                .start()
                .unwrap();
            let output = program(api.kubeconfig())
                .args([
                    "node",
                    "-n",
                    "serving",
                    "--pod",
                    "decode-0",
                    "--timeout",
                    timeout,
                ])
                .args(&way)
                .output()
                .unwrap();
            assert!(!output.stdout.is_empty());
            assert_eq!(api.execs().len(), 1);
            assert!(nothing_left(&api), "{way:?} {timeout}");
        }
    }
}

/// Processes of this machine whose environment names this kubeconfig.
fn with_kubeconfig(path: &std::path::Path) -> usize {
    let mark = format!("KUBECONFIG={}\0", path.display());
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .filter(|environ| String::from_utf8_lossy(environ).contains(&mark))
        .count()
}

#[test]
fn who_ends_a_run_that_waits_for_a_server_waits_no_longer_and_leaves_no_program() {
    for way in ways() {
        for (times, command) in [
            (1, ["node", "--all"]),
            (2, ["node", "--all"]),
            (1, ["check", "graph"]),
            (2, ["check", "graph"]),
        ] {
            let api = serving()
                .pod(Pod::worker("decode-0"))
                .fault(Fault::on("list", "pods").hang())
                .fault(Fault::on("list", "nodes").hang())
                .start()
                .unwrap();
            let mut child = program(api.kubeconfig())
                .args(command)
                .args(["-n", "serving", "-o", "json"])
                .args(&way)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            assert!(api.wait_for(Duration::from_secs(20), |api| {
                with_kubeconfig(api.kubeconfig()) > usize::from(!way.is_empty())
            }));
            std::thread::sleep(Duration::from_millis(1500));
            let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
            let begin = Instant::now();
            for _ in 0..times {
                // The second one may come too late.
                let _it_is_over = kill_process(pid, Signal::INT);
            }
            let code = child.wait().unwrap().code();
            // Ended in order, or at once by the second one.
            assert!(
                code == Some(130) || times == 2 && code.is_none(),
                "{way:?} {code:?}"
            );
            assert!(begin.elapsed() < Duration::from_secs(8), "{way:?}");
            let gone = api.wait_for(Duration::from_secs(5), |api| {
                with_kubeconfig(api.kubeconfig()) == 0
            });
            assert!(gone, "{way:?} {times}");
        }
    }
}
