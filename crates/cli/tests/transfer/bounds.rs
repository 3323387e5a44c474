//! What is not transferred, and that nothing of a transfer stays: after its time, Ctrl-C, a lost connection.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::lab::{Lab, causes, of, ways};
use crate::wheels::nixl;

#[test]
fn a_dry_run_says_exactly_what_would_run_and_runs_nothing() {
    let Some(path) = nixl("1.5.1") else { return };
    let settings = [
        "--engine",
        "--env",
        &path,
        "--env",
        "UCX_IB_KEY_FILE=hunter2",
    ];
    let Some(lab) = Lab::up(&settings) else {
        return;
    };
    let run = lab.transfer(&["--dry-run", "--rate", "2G"]);
    let report = run.json();
    let came = of(&report, "nixl/transfer");
    assert_eq!(came[0]["status"], "skipped");
    assert_eq!(came[0]["reason"], "disabled");
    assert_eq!(report["transfers"], serde_json::Value::Null);
    assert_eq!(lab.api.execs().len(), 2, "a look into each, and no more");
    for part in [
        "kubectl exec -i -n lab prefill-0 -c main -- sh -c",
        "kubectl exec -i -n lab decode-0 -c main -- sh -c",
        "timeout -k 5",
        "at most 2000000000 bytes a second",
        "bytes of Python",
    ] {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
    assert!(!run.err.contains("hunter2"));
    // What it says is what is run.
    let line = run
        .err
        .lines()
        .position(|l| l.contains("kubectl exec -i -n lab decode-0"))
        .unwrap();
    let said: Vec<&str> = run.err.lines().skip(line).collect();
    lab.transfer(&["--timeout", "10s", "--largest", "64K"]);
    let execs = lab.api.execs();
    let ran = execs
        .iter()
        .skip(2)
        .find(|e| e.pod == "decode-0" && e.argv.iter().any(|w| w == "check-interconnect"))
        .unwrap();
    for word in ran.argv[2].lines().chain(ran.argv.last().unwrap().lines()) {
        let plain = word.replace('\'', "'\\''");
        assert!(
            said.iter().any(|l| l.contains(&plain)),
            "{plain} in {said:#?}"
        );
    }
}

#[test]
fn a_pod_that_is_no_kv_worker_is_left_alone() {
    let Some(path) = nixl("1.5.1") else { return };
    let frontend = |pod: stand_in::Pod| {
        pod.label("nvidia.com/dynamo-component-type", "frontend")
            .label("nvidia.com/dynamo-component", "Frontend")
            .spec(
                "command",
                serde_json::json!(["python3", "-m", "dynamo.frontend"]),
            )
            .spec("args", serde_json::json!([]))
    };
    let Some(lab) = Lab::with(&["--env", &path], frontend) else {
        return;
    };
    let run = lab.transfer(&[]);
    let report = run.json();
    assert_eq!(lab.api.execs().len(), 2);
    let came = of(&report, "nixl/transfer");
    assert_eq!(
        came[0]["cause"], "nixl-transfer-not-a-kv-worker",
        "{}",
        came[0]
    );
    assert_eq!(report["transfer_validated"], false);
    assert_eq!(report["coverage"]["pairs_tested"], 0);
    assert!(causes(&report).contains(&"nixl-transfer-not-a-kv-worker"));
    assert_ne!(run.code, 0);
    let forced = lab.transfer(&["--force", "--timeout", "10s", "--largest", "64K"]);
    // A look and a program in each, and, as no NIXL came of that, a look for nixlbench in each.
    assert_eq!(lab.api.execs().len(), 2 + 4 + 2, "{}", forced.err);
}

#[test]
fn usage_is_told_before_anything_is_read() {
    for (words, says) in [
        (vec!["--transfer", "--pod", "a"], "--peer"),
        (vec!["--transfer", "--peer", "b"], "--pod"),
        (
            vec!["--transfer", "--pod", "a", "--pod", "c", "--peer", "b"],
            "one --pod",
        ),
        (
            vec!["--transfer", "--pod", "a", "--peer", "a"],
            "both --pod and --peer",
        ),
        (
            vec!["--transfer", "--pod", "a", "--peer", "b", "--rate", "5x"],
            "expected one like 500M",
        ),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_check-interconnect"))
            .arg("nixl")
            .args(&words)
            .env("KUBECONFIG", "/dev/null")
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?} {err}");
        assert!(err.contains(says), "{words:?} {err}");
    }
}

/// Waits until nothing but the engine runs in the workers.
pub(crate) fn nothing_left(lab: &Lab) -> bool {
    let until = Instant::now() + Duration::from_secs(8);
    loop {
        let left: Vec<String> = ["prefill-0", "decode-0"]
            .iter()
            .flat_map(|pod| lab.beside(pod))
            .collect();
        if left.is_empty() {
            return true;
        }
        if Instant::now() > until {
            eprintln!("left: {left:#?}");
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until the programs that were started last transfer.
pub(crate) fn transfers(lab: &Lab, before: usize) -> bool {
    lab.api.wait_for(Duration::from_mins(1), |api| {
        let moved = |pod: &str| {
            api.execs()
                .iter()
                .skip(before)
                .any(|e| e.pod == pod && e.stdout.text().contains("\"moved\""))
        };
        moved("decode-0")
    })
}

#[test]
fn ctrl_c_ends_both_programs_and_tells_what_there_is() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    for way in ways() {
        let before = lab.api.execs().len();
        let mut child = lab
            .between()
            // Slow enough to be interrupted.
            .args(["--transfer", "--rate", "10M", "-o", "json"])
            .args(&way)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        assert!(lab.api.wait_for(Duration::from_mins(1), |api| {
            api.execs().len() == before + 4
        }));
        assert!(transfers(&lab, before));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        let begin = Instant::now();
        kill_process(pid, Signal::INT).unwrap();
        let mut out = String::new();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_string(&mut out).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!(code, Some(130), "{way:?} {out}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{way:?}");
        let report: serde_json::Value = serde_json::from_str(&out).unwrap();
        let came = of(&report, "nixl/transfer");
        assert_eq!(came[0]["status"], "skipped", "{}", came[0]);
        assert!(came[0]["detail"].as_str().unwrap().contains("ended first"));
        assert!(
            !report["transfers"][0]["legs"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        assert!(nothing_left(&lab), "{way:?}");
    }
}

#[test]
fn a_lost_connection_and_time_that_is_over_leave_nothing() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    // Time that is over, although there was more to do.
    let begin = Instant::now();
    let run = lab.transfer(&["--timeout", "12s", "--rate", "10M"]);
    assert!(begin.elapsed() < Duration::from_mins(1));
    let report = run.json();
    let came = of(&report, "nixl/transfer");
    assert_eq!(came[0]["status"], "skipped", "{}", came[0]);
    assert_eq!(came[0]["reason"], "timed-out", "{}", came[0]);
    assert!(nothing_left(&lab));
    // The program is killed, so that its connections break without a word.
    for way in ways() {
        let before = lab.api.execs().len();
        let mut child = lab
            .between()
            .args(["--transfer", "--rate", "10M"])
            .args(&way)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(lab.api.wait_for(Duration::from_mins(1), |api| {
            api.execs().len() == before + 4
        }));
        assert!(transfers(&lab, before));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(nothing_left(&lab), "{way:?}");
    }
}
