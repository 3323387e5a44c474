//! `node` on this machine and over saved outputs: exit codes, what cannot be read, secrets.

use std::process::Command;

use crate::support::{Dir, FORMATS};

const PORT: &str = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 400\n\t\tBase lid: 42\n\t\tSM lid: 3\n\t\tLink layer: InfiniBand\n";

#[test]
fn saved_outputs_are_one_picture() {
    let dir = Dir::new();
    dir.file("ibstat.txt", PORT);
    dir.file("limit.txt", "max locked memory           (kbytes, -l) 64\n");
    dir.run(["node", "--from", "ibstat.txt"])
        .exits(0)
        .says(&["mlx5_0:1 active, 400 Gb/s InfiniBand", "unproven"]);
    // What the second file shows makes the difference, in every format.
    for format in FORMATS {
        let files = ["node", "--from", "ibstat.txt", "limit.txt", "-o", format];
        dir.run(files).exits(0).says(&["memlock-low"]);
        dir.run([&files[..], &["--fail-on", "warn"]].concat())
            .exits(1);
    }
}

#[test]
fn no_device_is_a_failure_for_a_kv_worker_only() {
    let dir = Dir::new();
    dir.file(
        "devices.txt",
        "    device          \t   node GUID\n    ------          \t----------------\n",
    );
    dir.run(["node", "--from", "devices.txt"])
        .exits(3)
        .says(&["inconclusive"]);
    let decode = ["node", "--from", "devices.txt", "--role", "decode"];
    dir.run(decode).exits(1).says(&["rdma-no-device"]);
    dir.run([&decode[..], &["--fail-on", "never"]].concat())
        .exits(0);
}

#[test]
fn what_is_not_known_is_named_and_never_green() {
    let dir = Dir::new();
    dir.file("empty.txt", "");
    dir.file("poem.txt", "the quick brown fox\n");
    dir.file("junk.bin", [0_u8, 159, 146, 150].repeat(300));
    dir.file("ibstat.txt", PORT);
    for name in ["empty.txt", "poem.txt", "junk.bin"] {
        for format in FORMATS {
            dir.run(["node", "--from", name, "-o", format])
                .exits(3)
                .says(&[name]);
        }
        // Beside a known one it is named all the same.
        dir.run(["node", "--from", "ibstat.txt", name])
            .exits(3)
            .says(&[name, "mlx5_0:1 active"]);
    }
    let out = dir.run(["node", "--from", "ibstat.txt", "gone.txt"]);
    out.exits(2);
    assert!(out.stderr.contains("gone.txt"), "{out}");
    assert!(out.stdout.contains("mlx5_0:1 active"), "{out}");
}

#[test]
fn this_machine_is_never_trusted() {
    let dir = Dir::new();
    let out = dir.run(["node", "-o", "json"]);
    let report = out.json();
    assert_eq!(report["command"], "node");
    assert_eq!(report["transfer_validated"], false);
    assert_eq!(report["coverage"]["workers_probed"], 1);
    assert_ne!(report["readiness"], "trusted");
    if !std::path::Path::new("/sys/class/infiniband").is_dir() {
        // Neither RDMA nor anything that says what runs here.
        out.exits(3);
        dir.run(["node", "--role", "prefill"])
            .exits(1)
            .says(&["rdma-no-device"]);
        dir.run(["node", "--fail-on", "never"]).exits(0);
    }
}

/// An engine that is full of secrets, looked at from beside it.
#[test]
fn no_secret_of_a_process_is_told() {
    let dir = Dir::new();
    let engine = dir.path().join("python3");
    // A program that waits, under the name of an interpreter.
    if std::fs::copy("/bin/sleep", &engine).is_err() {
        return;
    }
    let mut worker = Command::new(&engine)
        .args(["60"])
        .env("UCX_TLS", "rc,cuda_copy")
        .env("HF_TOKEN", "hunter2")
        .env("UCX_MY_TOKEN", "hunter2")
        .spawn()
        .unwrap();
    let mut told = String::new();
    for format in FORMATS {
        let out = dir.run(["node", "-v", "-o", format]);
        told.push_str(&out.stdout);
        told.push_str(&out.stderr);
    }
    worker.kill().unwrap();
    worker.wait().unwrap();
    assert!(!told.contains("hunter2"), "{told}");
}

/// A FIFO without a writer would be waited for for ever.
#[cfg(unix)]
#[test]
fn a_fifo_is_refused() {
    let dir = Dir::new();
    let made = Command::new("mkfifo").arg(dir.path().join("f")).status();
    if !made.is_ok_and(|s| s.success()) {
        return;
    }
    let out = dir.run(["node", "--from", "f"]);
    out.exits(2);
    assert!(
        out.stderr.contains("a FIFO") && out.stderr.contains("pipe it"),
        "{out}"
    );
}
