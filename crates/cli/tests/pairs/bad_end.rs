//! The worker that is broken is named, and nobody else.

use crate::lab::{Lab, bad_ends};
use crate::wheels::nixl;

#[test]
fn without_a_fault_nobody_is_named() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&[&path], &[]) else {
        return;
    };
    let report = lab.check(&["--pairs", "all", "--timeout", "120s"]);
    assert!(bad_ends(&report).is_empty(), "{report:#}");
    assert_eq!(report["transfers"].as_array().unwrap().len(), 4);
    assert_eq!(report["coverage"]["pairs_tested"], 4);
    // It is TCP, and never more than that.
    assert_eq!(report["coverage"]["pairs_proven"], 0);
    assert_eq!(report["transfer_validated"], false);
    for pod in ["prefill-0", "prefill-1", "decode-0", "decode-1"] {
        assert!(lab.beside(pod).is_empty(), "{:?}", lab.beside(pod));
    }
}

#[test]
fn a_wrong_device_is_named() {
    let Some(path) = nixl("1.5.1") else { return };
    let fault = ("decode-1", "UCX_NET_DEVICES=lo\n");
    let Some(lab) = Lab::up(&[&path], &[fault]) else {
        return;
    };
    // A ring has each worker once; the suspects are tried again.
    let report = lab.check(&["--pairs", "ring", "--timeout", "60s"]);
    assert_eq!(bad_ends(&report), ["decode-1"], "{report:#}");
    assert!(
        report["verdict"].as_str().unwrap().contains("decode-1"),
        "{}",
        report["verdict"]
    );
}

#[test]
fn a_port_that_drops_everything_is_named() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&[&path], &[]) else {
        return;
    };
    // Frames to a card that is not there are dropped, as by a network policy.
    for peer in ["192.0.2.3", "192.0.2.4"] {
        lab.exec(
            "prefill-1",
            &[
                "ip",
                "neigh",
                "replace",
                peer,
                "lladdr",
                "02:00:00:00:00:99",
                "dev",
                "eth0",
                "nud",
                "permanent",
            ],
        );
    }
    let report = lab.check(&["--pairs", "ring", "--timeout", "35s"]);
    assert_eq!(bad_ends(&report), ["prefill-1"], "{report:#}");
    assert!(lab.beside("prefill-1").is_empty());
}

#[test]
fn an_older_nixl_is_named() {
    let (Some(path), Some(old)) = (nixl("1.5.1"), nixl("0.4.1")) else {
        return;
    };
    let fault = ("decode-0", format!("{old}\n"));
    let Some(lab) = Lab::up(&[&path], &[(fault.0, &fault.1)]) else {
        return;
    };
    let report = lab.check(&["--pairs", "ring", "--timeout", "60s"]);
    assert_eq!(bad_ends(&report), ["decode-0"], "{report:#}");
    let named = report["checks"].as_array().unwrap().iter().any(|check| {
        check["cause"] == "nixl-versions-incompatible" && check.to_string().contains("decode-0")
    });
    assert!(named, "{report:#}");
}
