//! nixlbench where a worker has no Python with NIXL: driven in both, read, and bounded. It is a stand-in that prints the
//! documented output (tests/lab/nixlbench.py); nothing here shows what a real one does.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::lab::{BEYOND, Lab, Run, causes, of};

/// Two workers without NIXL, with the stand-in in their path.
fn lab(fault: &str) -> Option<Lab> {
    let lab = Lab::up(&[])?;
    let bench = lab.file("nixlbench");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/lab/nixlbench.py");
    std::fs::copy(source, &bench).unwrap();
    if !fault.is_empty() {
        std::fs::write(lab.file("nixlbench.fault"), fault).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let folder = bench.parent().unwrap().display().to_string();
    std::fs::write(
        lab.file("before"),
        format!("env PATH={folder}:{path} PYTHONNOUSERSITE=1 NIXL_ETCD_ENDPOINTS=http://etcd:2379"),
    )
    .unwrap();
    Some(lab)
}

fn transfer(lab: &Lab, words: &[&str]) -> (Run, Value) {
    let mut all = vec!["--force"];
    all.extend(words);
    let run = lab.transfer(&all);
    let report = run.json();
    for pod in ["prefill-0", "decode-0"] {
        let until = Instant::now() + Duration::from_secs(8);
        while lab
            .beside(pod)
            .iter()
            .any(|line| line.contains("nixlbench"))
        {
            assert!(Instant::now() < until, "{:?}", lab.beside(pod));
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    (run, report)
}

fn leg(report: &Value) -> &Value {
    let legs = report["transfers"][0]["legs"].as_array().unwrap();
    assert_eq!(legs.len(), 1, "{report}");
    &legs[0]
}

#[test]
fn its_result_is_read_and_its_limits_are_told() {
    // By a connection of its own, and by etcd where it is older.
    for fault in ["", "old"] {
        let Some(lab) = lab(fault) else { return };
        let (run, report) = transfer(&lab, &[]);
        let transfer = &report["transfers"][0];
        assert_eq!(transfer["tool"], "nixlbench", "{}\n{}", run.out, run.err);
        let leg = leg(&report);
        assert_eq!(leg["operation"], "READ");
        assert_eq!(leg["initiator"], "decode");
        assert_eq!(leg["bytes"], 1 << 20);
        assert_eq!(leg["transfers"], 80);
        assert_eq!(leg["verified"], true);
        assert!(leg["bytes_per_second"].as_u64().unwrap() > 1_000_000);
        // It does not print the transport; UCX and the kernels do.
        assert_eq!(leg["carrier"], "tcp");
        assert_eq!(leg["over"], json!(["eth0"]));
        assert_eq!(leg["grade"], "proven", "{leg}");
        let finding = |kind: &str| {
            let all = leg["evidence"].as_array().unwrap();
            let one = all.iter().find(|e| e["kind"] == kind);
            one.map(|e| e["finding"].clone()).unwrap_or_default()
        };
        assert_eq!(finding("protocol-table"), "agrees");
        assert_eq!(finding("byte-counters"), "agrees");
        assert_eq!(finding("own-sockets"), "silent");
        let came = of(&report, "nixl/transfer");
        assert_eq!(came[0]["status"], "ok", "{}", came[0]);
        let note = came[0]["note"].as_str().unwrap();
        assert!(note.contains("does not print the transport"), "{note}");
        assert!(causes(&report).contains(&"nixl-transfer-not-rdma"));
        assert_eq!(run.code, 1);
        let says = if fault == "old" {
            "by the etcd that the containers name"
        } else {
            "of decode-0"
        };
        assert!(run.err.contains("nixlbench in both instead"), "{}", run.err);
        assert!(run.err.contains(says), "{}", run.err);
        assert!(!run.err.contains("http://etcd") && !run.out.contains("http://etcd"));
    }
}

#[test]
fn what_goes_wrong_with_it_is_told_and_bounded() {
    for (fault, status, cause, says) in [
        (
            "consistency",
            "fail",
            "nixl-transfer-content-differs",
            "did not arrive",
        ),
        (
            "backend",
            "fail",
            "nixl-transfer-refused",
            "createBackend failed",
        ),
        (
            "alone",
            "skipped",
            "nixl-transfer-not-carried-out",
            "ASIO Connection",
        ),
        (
            "hang",
            "skipped",
            "nixl-transfer-not-carried-out",
            "time was over",
        ),
        (
            "flood",
            "skipped",
            "nixl-transfer-not-carried-out",
            "nixlbench",
        ),
        (
            "crash",
            "skipped",
            "nixl-transfer-not-carried-out",
            "nixlbench",
        ),
    ] {
        let Some(lab) = lab(fault) else { return };
        let begin = Instant::now();
        let (run, report) = transfer(&lab, &["--timeout", "20s"]);
        assert!(
            begin.elapsed() < Duration::from_secs(20) + BEYOND,
            "{fault}"
        );
        let came = of(&report, "nixl/transfer");
        assert_eq!(
            came[0]["status"], status,
            "{fault} {}\n{}",
            came[0], run.err
        );
        assert_eq!(came[0]["cause"], cause, "{fault} {}", came[0]);
        let words = came[0]["detail"].as_str().unwrap();
        assert!(words.contains(says), "{fault}: {words}");
        assert_ne!(report["readiness"], "trusted");
        assert_eq!(report["coverage"]["pairs_proven"], 0);
    }
}

#[test]
fn one_worker_with_it_is_not_enough() {
    let Some(lab) = lab("") else { return };
    // In the mounts of the prefill worker it cannot be run.
    lab.exec(
        "prefill-0",
        &[
            "mount",
            "-t",
            "tmpfs",
            "tmpfs",
            lab.file("").to_str().unwrap(),
        ],
    );
    let (_, report) = transfer(&lab, &[]);
    let came = of(&report, "nixl/transfer");
    assert_eq!(came[0]["status"], "skipped", "{}", came[0]);
    let words = came[0]["detail"].as_str().unwrap();
    assert!(
        words.contains("nixlbench is in the decode worker only"),
        "{words}"
    );
    assert_eq!(report["transfers"][0]["tool"], Value::Null);
}
