//! Worked examples: what a value does, by library build.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

use std::fs;

use settings::vars::{UNSET, evaluate_row};

/// Some rows of our own, so that the grammar is tested without the shared table: table, value, build, column, cell.
const OWN: &[[&str; 5]] = &[
    ["UCX_TLS", UNSET, "full-1.23", "mnnvl", "True"],
    ["UCX_TLS", "", "full-1.23", "init", "fail:empty"],
    ["UCX_TLS", "^", "full-1.18", "init", "fail:empty"],
    ["UCX_TLS", "all,rc", "full-1.23", "init", "fail:parse"],
    ["UCX_TLS", "^all", "full-1.23", "rdma", "True"],
    [
        "UCX_TLS",
        "cuda_copy",
        "full-1.23",
        "init",
        "fail:no-usable",
    ],
    ["UCX_TLS", "ib,gpu", "full-1.23", "warn", "gpu"],
    ["UCX_TLS", "rc,cuda", "nixl-1.5.1-wheel", "gdr", "True"],
    [
        "UCX_TLS",
        "rc,gdr_copy",
        "nixl-1.5.1-wheel",
        "warn",
        "gdr_copy",
    ],
    ["UCX_TLS", "^rc,dc", "full-1.23", "ud_only", "True"],
    ["UCX_TLS", "^ib", "full-1.18", "rdma", "False"],
    ["UCX_TLS", "ib,cuda", "efa-1.23", "rdma", "True"],
    [
        "UCX_TLS",
        "rc,cuda_copy,cuda_ipc,tcp",
        "no-hca-1.23",
        "rdma",
        "False",
    ],
    [
        "UCX_TLS",
        "rc,cuda_copy,cuda_ipc,tcp",
        "no-hca-1.23",
        "mnnvl",
        "True",
    ],
    [
        "UCX_TLS",
        "rc_mlx5,cuda_copy",
        "full-1.23",
        "boot_missing",
        "True",
    ],
    [
        "UCX_TLS",
        "rc_mlx5,tcp",
        "full-1.23",
        "boot_missing",
        "False",
    ],
    ["UCX_NET_DEVICES", "mlx5_10:1,lo", "1.20", "init", "10 / lo"],
    ["UCX_NET_DEVICES", "mlx5_10", "1.20", "init", "none / none"],
    ["UCX_NET_DEVICES", "^lo", "1.21", "init", "0+1+10 / eth0"],
    ["UCX_NET_DEVICES", "^", "1.21", "init", "0+1+10 / eth0+lo"],
    [
        "UCX_NET_DEVICES",
        "all,lo",
        "1.22",
        "init",
        "parse error (init fails)",
    ],
    [
        "UCX_NET_DEVICES",
        "mlx5_[1-10]:1",
        "1.22",
        "init",
        "1+10 / none",
    ],
    // The caret of a later item is part of its name, also where empty items come first.
    ["UCX_NET_DEVICES", ",^lo", "1.22", "init", "none / none"],
    ["NCCL_IB_HCA", UNSET, "2.30.7", "init", "all"],
    ["NCCL_IB_HCA", "=mlx5_1,mlx5_10:1", "2.30.7", "init", "1+10"],
    ["NCCL_IB_HCA", "mlx5_2:", "2.27.7", "init", "none"],
    ["NCCL_IB_HCA", "mlx5_2:", "2.30.7", "init", "2"],
    ["NCCL_IB_HCA", "^=mlx5_1", "2.27.7", "init", "0+2+10"],
];

fn assert_cell(table: &str, value: &str, build: &str, column: &str, wanted: &str) {
    let given = (value != UNSET).then_some(value);
    let row = evaluate_row(table, given, build)
        .unwrap_or_else(|error| panic!("{table}={value} on {build}: {error}"));
    let got = row.iter().find(|(key, _)| *key == column);
    let got = got.map(|(_, cell)| cell.as_str());
    assert_eq!(got, Some(wanted), "{table}={value:?} on {build}: {column}");
}

#[test]
fn own_examples_hold() {
    for [table, value, build, column, wanted] in OWN {
        assert_cell(table, value, build, column, wanted);
    }
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn shared_examples_hold() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/corpus/setting-vectors.tsv"
    );
    let Ok(text) = fs::read_to_string(path) else {
        eprintln!("skipped: the shared table of worked examples is not here");
        return;
    };
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let mut cells = 0;
    let mut rows = 0;
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[table, value, build, ..] = fields.as_slice() else {
            panic!("short row: {line}");
        };
        rows += 1;
        for (column, wanted) in header.iter().zip(&fields) {
            // An empty cell is "not said", except that an empty value is a value.
            if !wanted.is_empty() {
                assert_cell(table, value, build, column, wanted);
                cells += 1;
            }
        }
    }
    assert!(
        rows >= 250 && cells > 4 * rows,
        "{rows} rows, {cells} cells"
    );
}
