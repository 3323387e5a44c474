//! `vars`: the catalogue, and what a value does.

use std::path::Path;

use serde_json::Value;

use crate::support::Dir;

/// The vectors that other implementations agree on; not part of the source tree.
const VECTORS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/setting-vectors.tsv"
);

/// Rows that go through the built program; the library's own tests take all of them.
const SAMPLE: usize = 72;

const COLUMNS: [&str; 15] = [
    "table",
    "value",
    "build",
    "init",
    "detect",
    "rdma",
    "ud_only",
    "gdr",
    "nvlink",
    "mnnvl",
    "tcp",
    "shm",
    "inter",
    "boot_missing",
    "warn",
];

/// How a cell of the table is written in JSON.
fn cell(text: &str) -> Value {
    match text {
        "True" => true.into(),
        "False" => false.into(),
        text => text.into(),
    }
}

#[test]
fn columns_of_the_table() {
    let out = Dir::new().run(["vars", "UCX_TLS=tcp", "--build", "nixl-1.5.1-wheel"]);
    out.exits(0);
    let row = out.json();
    let mut keys: Vec<&str> = row
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let mut columns = COLUMNS.to_vec();
    keys.sort_unstable();
    columns.sort_unstable();
    assert_eq!(keys, columns);
    assert_eq!(
        (&row["table"], &row["value"], &row["build"]),
        (&"UCX_TLS".into(), &"tcp".into(), &"nixl-1.5.1-wheel".into())
    );
    assert_eq!(
        (&row["tcp"], &row["rdma"], &row["init"]),
        (&true.into(), &false.into(), &"ok".into())
    );
}

#[test]
fn vectors() {
    let Ok(text) = std::fs::read_to_string(VECTORS) else {
        eprintln!(
            "skipped: no {}",
            Path::new(VECTORS).file_name().unwrap().to_string_lossy()
        );
        return;
    };
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
    assert_eq!(header, COLUMNS);
    let rows: Vec<Vec<&str>> = lines
        .filter(|l| !l.is_empty())
        .map(|l| l.split('\t').collect())
        .collect();
    assert!(rows.len() >= SAMPLE, "{} rows", rows.len());
    let step = rows.len() / SAMPLE;
    let dir = Dir::new();
    let (mut ran, mut cells) = (0, 0);
    for row in rows.iter().step_by(step.max(1)) {
        let (name, value, build) = (row[0], row[1], row[2]);
        let out = if value == "<unset>" {
            dir.run(["vars", name, "--unset", "--build", build])
        } else {
            dir.run(["vars", &format!("{name}={value}"), "--build", build])
        };
        out.exits(0);
        let got = out.json();
        for (column, text) in COLUMNS.iter().zip(row) {
            // An empty cell is "not said", except that an empty value is a value.
            if !text.is_empty() || *column == "value" {
                assert_eq!(got[*column], cell(text), "{column} of {row:?}: {out}");
                cells += 1;
            }
        }
        ran += 1;
    }
    assert!(ran >= 60 && cells > 4 * ran, "{ran} rows, {cells} cells");
}

#[test]
fn empty_and_unset_differ() {
    let dir = Dir::new();
    let unset = dir.run(["vars", "UCX_TLS", "--unset"]);
    unset
        .exits(0)
        .says(&["UCX_TLS (unset)", "every transport that works"]);
    let empty = dir.run(["vars", "UCX_TLS="]);
    empty.exits(0).says(&["UCX_TLS="]);
    assert_ne!(unset.stdout, empty.stdout);
    let json = dir.run(["vars", "UCX_TLS=", "--build", "full-1.23"]).json();
    assert_eq!(json["value"], "");
    let json = dir.run(["vars", "UCX_TLS", "--unset", "-o", "json"]).json();
    assert_eq!(json["value"], "<unset>");
}

#[test]
fn pages_and_lists() {
    let dir = Dir::new();
    dir.run(["vars", "UCX_TLS"])
        .exits(0)
        .says(&["UCX_TLS", "critical", "values", "default", "unset"]);
    let all = dir.run(["vars"]);
    all.exits(0).says(&["UCX_TLS", "NCCL_IB_HCA"]);
    let json = dir.run(["vars", "-o", "json"]).json();
    let names: Vec<&str> = json
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|v| v["name"].as_str())
        .collect();
    assert_eq!(names.len(), all.stdout.lines().count());
    // Every variable of the list has a page.
    for name in names.iter().step_by(names.len() / 30) {
        dir.run(["vars", name]).exits(0).says(&[name]);
    }
    let json = dir
        .run(["vars", "UCX_RNDV_SCHEME=nonsense", "-o", "json"])
        .json();
    assert_eq!(json["name"], "UCX_RNDV_SCHEME");
    assert!(json["problem"].as_str().is_some(), "{json:#}");
    // Known to the library, not worth a page.
    dir.run(["vars", "UCX_RC_VERBS_TX_QUEUE_LEN"])
        .exits(0)
        .says(&["UCX"]);
}

#[test]
fn wrong_usage() {
    let dir = Dir::new();
    for (args, complaint) in [
        (
            &["vars", "UCX_TSL"][..],
            &["UCX_TSL", "did you mean UCX_TLS?", "vars lists all"][..],
        ),
        (&["vars", "NCCL_IB_HAC"], &["did you mean NCCL_IB_HCA?"]),
        (
            &["vars", "UCX_TSL=tcp"],
            &["UCX_TSL", "did you mean UCX_TLS?"],
        ),
        (&["vars", "UCX_TSL", "--unset"], &["did you mean UCX_TLS?"]),
        (
            &["vars", "NOBODY_READS_THIS"],
            &["NOBODY_READS_THIS", "vars lists all"],
        ),
        (
            &["vars", "NOBODY_READS_THIS=1"],
            &["NOBODY_READS_THIS", "vars lists all"],
        ),
        (
            &["vars", "UCX_TLS=tcp", "--build", "mine"],
            &[
                "unknown build 'mine' for UCX_TLS",
                "expected one of",
                "nixl-1.5.1-wheel",
            ],
        ),
        (
            &["vars", "UCX_NET_DEVICES=x", "--build", "mine"],
            &[
                "unknown build 'mine' for UCX_NET_DEVICES",
                "expected a UCX version",
            ],
        ),
        (
            &["vars", "NCCL_IB_HCA=x", "--build", ""],
            &[
                "unknown build '' for NCCL_IB_HCA",
                "expected an NCCL version",
            ],
        ),
        (
            &["vars", "UCX_TLS", "--build", "full-1.23"],
            &["--build needs a value", "--unset"],
        ),
        (
            &["vars", "UCX_RNDV_SCHEME=auto", "--build", "full-1.23"],
            &["--build is for UCX_TLS", "UCX_RNDV_SCHEME"],
        ),
        (&["vars", "UCX_TLS=tcp", "--unset"], &["exclude each other"]),
        (&["vars", "--unset"], &["NAME"]),
        (
            &["vars", "UCX_TLS", "-o", "xml"],
            &["unknown format 'xml'", "expected text or json"],
        ),
        (&["vars", "", "--unset"], &["vars lists all"]),
        (&["vars", "=tcp"], &["vars lists all"]),
    ] {
        let out = dir.run(args);
        out.exits(2).complains(complaint);
        assert!(out.stdout.is_empty(), "{out}");
    }
    let out = dir.run(["vars", "UCX_\u{1b}[31m\u{202e}TLS"]);
    out.exits(2);
    crate::support::assert_harmless("stderr", &out.stderr);
    let out = dir.run(["vars", "UCX_TLS=\u{1b}[31m\u{9b}\u{202e}x\u{7}"]);
    out.exits(0);
    crate::support::assert_harmless("stdout", &out.stdout);
    let out = dir.run([
        "vars",
        "UCX_TLS=\u{1b}[31m\u{9b}\u{202e}x\u{7}",
        "-o",
        "json",
    ]);
    out.exits(0);
    crate::support::assert_harmless("stdout", &out.stdout);
}
