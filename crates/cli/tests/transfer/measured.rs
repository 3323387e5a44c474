//! What a measured transfer is called, and what explains it.

use serde_json::Value;

use crate::lab::{Lab, Run, causes, of, ways};
use crate::wheels::nixl;

/// All blocks, and those below 16 MiB.
const ALL: [u64; 4] = [64 << 10, 1 << 20, 16 << 20, 64 << 20];
const SMALL: [u64; 2] = [64 << 10, 1 << 20];

/// Each leg is verified, proven, and went over TCP on eth0.
fn assert_tcp(run: &Run, report: &Value, blocks: &[u64]) {
    let transfers = report["transfers"].as_array().unwrap();
    assert_eq!(transfers.len(), 1, "{}", run.out);
    let legs = transfers[0]["legs"].as_array().unwrap();
    assert_eq!(legs.len(), 2 * blocks.len());
    for leg in legs {
        assert_eq!(leg["verified"], true, "{leg}");
        assert_eq!(leg["carrier"], "tcp", "{leg}");
        assert_eq!(leg["over"], serde_json::json!(["eth0"]), "{leg}");
        assert_eq!(leg["grade"], "proven", "{leg}");
        let agree = leg["evidence"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|e| e["finding"] == "agrees")
            .count();
        assert!(agree >= 2, "{leg}");
        assert!(leg["bytes_per_second"].as_u64().unwrap() > 0);
        // A rate over TCP is told, and never judged.
        assert_eq!(leg["plausible"], Value::Null);
    }
    for (operation, initiator) in [("READ", "decode"), ("WRITE", "prefill")] {
        let sizes: Vec<u64> = legs
            .iter()
            .filter(|l| l["operation"] == operation && l["initiator"] == initiator)
            .filter_map(|l| l["bytes"].as_u64())
            .collect();
        assert_eq!(sizes, blocks);
    }
}

#[test]
fn tcp_is_measured_verified_and_called_not_rdma() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path, "--env", "HF_TOKEN=hunter2"]) else {
        return;
    };
    for mut way in ways() {
        // Through kubectl the same with fewer bytes.
        let whole = way.is_empty();
        if !whole {
            way.extend(["--largest", "1M"]);
        }
        let before = lab.api.execs().len();
        let run = lab.transfer(&way);
        let report = run.json();
        assert_eq!(run.code, 1, "{}", run.out);
        assert_eq!(report["readiness"], "blocked");
        assert_eq!(report["transfer_validated"], false);
        assert_tcp(&run, &report, if whole { &ALL } else { &SMALL });
        let came = of(&report, "nixl/transfer");
        assert_eq!(came.len(), 1);
        assert_eq!(came[0]["status"], "ok", "{}", came[0]);
        let path = of(&report, "nixl/transfer-path");
        // vLLM's NixlConnector READs; its engines do not write.
        let said = |operation: &str| {
            path.iter()
                .find(|c| c["detail"].as_str().unwrap().starts_with(operation))
                .unwrap()
        };
        let read = said("READ by decode, host memory, 64 KiB to ");
        assert_eq!(read["status"], "fail", "{read}");
        assert_eq!(read["cause"], "nixl-transfer-not-rdma");
        assert_eq!(read["grade"], "proven");
        let words = read["detail"].as_str().unwrap();
        assert!(words.contains("rdma-no-device"), "{words}");
        assert!(words.contains("prefill-0, decode-0") || words.contains("decode-0, prefill-0"));
        let write = said("WRITE by prefill");
        assert_eq!(write["status"], "ok", "{write}");
        assert!(
            write["note"]
                .as_str()
                .unwrap()
                .contains("do not transfer this way")
        );
        let verdict = report["verdict"].as_str().unwrap();
        assert!(
            verdict.contains("TCP on eth0") && verdict.contains("not RDMA"),
            "{verdict}"
        );
        let coverage = &report["coverage"];
        assert_eq!(
            (
                &coverage["pairs_required"],
                &coverage["pairs_tested"],
                &coverage["pairs_proven"]
            ),
            (&1.into(), &1.into(), &0.into())
        );
        // The plan was told before: where, how much, what it takes.
        for part in [
            if whole {
                "532 MiB in 50 transfers"
            } else {
                "in 36 transfers"
            },
            "pod lab/decode-0, container main, on node-b",
            "it begins each READ, as its engine does",
            "it begins each WRITE, which its engine does not",
            "with the settings of its engine (process 1)",
            "as fast as it goes",
            "no GPU memory",
        ] {
            assert!(run.err.contains(part), "{part}: {}", run.err);
        }
        // One look and one program in each.
        assert_eq!(lab.api.execs().len() - before, 4);
        for pod in ["prefill-0", "decode-0"] {
            assert_eq!(lab.beside(pod), Vec::<String>::new());
        }
        assert!(!run.out.contains("hunter2") && !run.err.contains("hunter2"));
    }
    // No value of a variable travels, but those of the catalogue that a look is allowed.
    for exec in lab.api.execs() {
        for text in [exec.stdout.text(), exec.stderr.text()] {
            assert!(!text.contains("hunter2") && !text.contains("PYTHONPATH="));
        }
    }
}

#[test]
fn a_setting_that_leaves_tcp_alone_is_the_explanation() {
    let Some(path) = nixl("1.5.1") else { return };
    let settings = ["--engine", "--env", &path, "--env", "UCX_TLS=tcp,cuda_copy"];
    let Some(lab) = Lab::up(&settings) else {
        return;
    };
    let run = lab.transfer(&["--largest", "1M"]);
    let report = run.json();
    assert_eq!(run.code, 1);
    assert_tcp(&run, &report, &SMALL);
    let path = of(&report, "nixl/transfer-path");
    let read = path.iter().find(|c| c["status"] == "fail").unwrap();
    assert!(
        read["detail"]
            .as_str()
            .unwrap()
            .contains("ucx-tls-tcp-only"),
        "{read}"
    );
    assert!(causes(&report).contains(&"ucx-tls-tcp-only"));
    // The program had the engine's settings.
    let decode = &report["transfers"][0]["decode"];
    assert_eq!(decode["process"], 1);
}

#[test]
fn shared_memory_of_one_pod_is_explained_and_proves_nothing_between_pods() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--share-pid", "--engine", "--env", &path]) else {
        return;
    };
    // With a PID namespace in common both engines are in sight of both, and look alike in both.
    let run = lab.transfer(&["--force", "--largest", "1M"]);
    let report = run.json();
    assert_ne!(run.code, 0, "{}", run.out);
    assert_eq!(report["transfer_validated"], false);
    assert!(report["transfers"].is_array(), "{}\n{}", run.out, run.err);
    let legs = report["transfers"][0]["legs"].as_array().unwrap();
    assert!(
        legs.iter()
            .all(|l| l["carrier"] == "shared-memory" && l["verified"] == true),
        "{}",
        run.out
    );
    // Each has the settings of its own engine all the same.
    let process = |role: &str| report["transfers"][0][role]["process"].as_u64().unwrap();
    assert_ne!(process("prefill"), process("decode"));
    let path = of(&report, "nixl/transfer-path");
    assert!(!path.is_empty());
    for check in path {
        assert_eq!(check["status"], "warn", "{check}");
        assert_eq!(check["cause"], "nixl-shm-not-representative");
        assert!(check["note"].as_str().unwrap().contains("two pods do not"));
    }
}

#[test]
fn releases_that_do_not_understand_each_other_are_named() {
    let (Some(old), Some(new)) = (nixl("0.4.1"), nixl("1.5.1")) else {
        return;
    };
    let settings = ["--engine", "--prefill-env", &old, "--decode-env", &new];
    let Some(lab) = Lab::up(&settings) else {
        return;
    };
    let run = lab.transfer(&[]);
    let report = run.json();
    assert_eq!(run.code, 1, "{}\n{}", run.out, run.err);
    let came = of(&report, "nixl/transfer");
    assert_eq!(came[0]["status"], "fail", "{}", came[0]);
    assert_eq!(came[0]["cause"], "nixl-transfer-refused");
    assert!(
        came[0]["detail"]
            .as_str()
            .unwrap()
            .contains("at the step connect")
    );
    assert!(
        causes(&report).contains(&"ucx-pd-version-skew"),
        "{:?}",
        causes(&report)
    );
    let transfer = &report["transfers"][0];
    assert_eq!(transfer["prefill"]["nixl"], "0.4.1");
    assert_eq!(transfer["decode"]["nixl"], "1.5.1");
    assert_eq!(transfer["stop"]["by_nixl"], true);
    assert_eq!(of(&report, "nixl/transfer-path").len(), 0);
}

#[test]
fn a_worker_without_nixl_is_not_called_broken() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--decode-env", &path]) else {
        return;
    };
    let run = lab.transfer(&[]);
    let report = run.json();
    let came = of(&report, "nixl/transfer");
    assert_eq!(came[0]["status"], "skipped", "{}", came[0]);
    assert_eq!(came[0]["reason"], "no-tool", "{}", came[0]);
    assert_eq!(came[0]["cause"], "nixl-transfer-not-carried-out");
    assert!(
        came[0]["detail"]
            .as_str()
            .unwrap()
            .contains("No module named 'nixl'")
    );
    assert!(!causes(&report).contains(&"nixl-transfer-refused"));
}

#[test]
fn any_program_that_takes_the_arguments_of_kubectl_reaches_both() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    let run = lab.transfer(&["--via", &lab.kubectl(), "--largest", "1M"]);
    let report = run.json();
    assert_eq!(run.code, 1, "{}\n{}", run.out, run.err);
    assert!(lab.api.execs().is_empty());
    let legs = report["transfers"][0]["legs"].as_array().unwrap();
    assert_eq!(legs.len(), 4);
    assert!(
        legs.iter()
            .all(|l| l["carrier"] == "tcp" && l["grade"] == "proven")
    );
    assert!(run.err.contains("sizes 64 KiB, 1 MiB"), "{}", run.err);
}

/// UCX says nothing of values that it does not know, and prints no table with them; the program sets its own.
#[test]
fn settings_that_ucx_ignores_in_silence_cost_no_evidence() {
    let Some(path) = nixl("1.5.1") else { return };
    let settings = [
        "--engine",
        "--env",
        &path,
        "--env",
        "UCX_LOG_LEVEL=verbose",
        "--env",
        "UCX_PROTO_INFO=maybe",
    ];
    let Some(lab) = Lab::up(&settings) else {
        return;
    };
    let run = lab.transfer(&["--largest", "1M"]);
    assert_tcp(&run, &run.json(), &SMALL);
}
