//! What hangs, dies or is cut off between two workers: told as what it is, in bounded time, and nothing stays.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use stand_in::{Cut, Fault};

use crate::bounds::{nothing_left, transfers};
use crate::lab::{BEYOND, Lab, causes, of};
use crate::wheels::nixl;

fn engines() -> Option<Lab> {
    let path = nixl("1.5.1")?;
    Lab::up(&["--engine", "--env", &path])
}

/// Nobody took it for more than it was.
fn not_carried_out(report: &Value) -> &Value {
    let came = of(report, "nixl/transfer")[0];
    assert_ne!(came["status"], "ok", "{came}");
    assert_eq!(report["transfer_validated"], false);
    assert_eq!(report["coverage"]["pairs_proven"], 0);
    came
}

/// NIXL is not blamed for what it says of a peer that is gone.
fn nobody_is_blamed(report: &Value) {
    let checks = report["checks"].as_array().unwrap();
    let blamed: Vec<&Value> = checks
        .iter()
        .filter(|c| c["status"] == "fail" && c["name"].as_str().unwrap().starts_with("nixl/"))
        // What went over TCP until then is no matter of that.
        .filter(|c| c["cause"] != "nixl-transfer-not-rdma")
        .collect();
    assert!(blamed.is_empty(), "{blamed:#?}");
}

#[test]
fn a_stream_that_is_cut_off_or_stalls() {
    let Some(lab) = engines() else { return };
    for cut in [Cut::Reset, Cut::HalfClose, Cut::Stall] {
        // The first one is the look.
        lab.api.fault(
            Fault::exec()
                .name("decode-0")
                .after(1)
                .first(1)
                .cut_output(30_000, cut),
        );
        let begin = Instant::now();
        let run = lab.transfer(&["--timeout", "20s", "--rate", "20M"]);
        assert!(
            begin.elapsed() < Duration::from_secs(20) + BEYOND,
            "{cut:?}"
        );
        let report = run.json();
        let came = not_carried_out(&report);
        assert_eq!(came["status"], "skipped", "{cut:?} {came}");
        assert_eq!(came["cause"], "nixl-transfer-not-carried-out", "{cut:?}");
        nobody_is_blamed(&report);
        assert!(nothing_left(&lab), "{cut:?}");
        lab.api.clear_faults();
    }
}

#[test]
fn a_program_that_never_starts() {
    let Some(lab) = engines() else { return };
    lab.api
        .fault(Fault::exec().name("prefill-0").after(1).hang());
    let begin = Instant::now();
    let run = lab.transfer(&["--timeout", "12s"]);
    assert!(begin.elapsed() < Duration::from_secs(12) + BEYOND);
    let report = run.json();
    let came = not_carried_out(&report);
    assert_eq!(came["status"], "skipped", "{came}");
    assert!(
        came["detail"].as_str().unwrap().contains("prefill-0"),
        "{came}"
    );
    assert!(nothing_left(&lab));
}

#[test]
fn a_program_that_dies_while_it_transfers() {
    let Some(lab) = engines() else { return };
    for victim in ["prefill-0", "decode-0"] {
        let before = lab.api.execs().len();
        let child = lab
            .between()
            .args([
                "--transfer",
                "--rate",
                "10M",
                "-o",
                "json",
                "--timeout",
                "40s",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(transfers(&lab, before));
        let begin = Instant::now();
        // The program and its child, as where memory runs out.
        for line in lab.beside(victim) {
            if line.contains("python3") {
                let pid = line.split_whitespace().next().unwrap();
                lab.exec(victim, &["kill", "-KILL", pid]);
            }
        }
        let output = child.wait_with_output().unwrap();
        assert!(begin.elapsed() < Duration::from_secs(38), "{victim}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let came = not_carried_out(&report);
        assert_eq!(came["status"], "skipped", "{victim} {came}");
        nobody_is_blamed(&report);
        let stop = &report["transfers"][0]["stop"];
        assert!(stop["why"].is_string(), "{victim}: {report}");
        assert!(
            !report["transfers"][0]["legs"]
                .as_array()
                .unwrap()
                .is_empty(),
            "{victim}: what was measured before is told"
        );
        // Who was killed so is nobody's child any more, and its engine need not look after it.
        let until = Instant::now() + Duration::from_secs(8);
        let runs = |pod: &str| {
            lab.beside(pod)
                .into_iter()
                .any(|line| !line.contains("defunct"))
        };
        while runs("prefill-0") || runs("decode-0") {
            assert!(Instant::now() < until, "{victim}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn a_firewall_that_drops_what_ucx_sends() {
    let Some(lab) = engines() else { return };
    // Frames to a card that is not there are dropped, as by a network policy.
    lab.exec(
        "decode-0",
        &[
            "ip",
            "neigh",
            "replace",
            "192.0.2.1",
            "lladdr",
            "02:00:00:00:00:99",
            "dev",
            "eth0",
        ],
    );
    let begin = Instant::now();
    let run = lab.transfer(&["--timeout", "30s"]);
    // UCX itself gives up after more than two minutes.
    assert!(begin.elapsed() < Duration::from_secs(30) + BEYOND);
    let report = run.json();
    let came = not_carried_out(&report);
    assert_eq!(came["status"], "fail", "{came}");
    assert!(
        came["detail"].as_str().unwrap().contains("192.0.2."),
        "{came}"
    );
    assert!(
        causes(&report).contains(&"networkpolicy-blocks"),
        "{:?}",
        causes(&report)
    );
    assert!(nothing_left(&lab));
}
