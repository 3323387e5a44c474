//! `node --topology`: which card serves which GPU, as text and as JSON.

use crate::support::Dir;

const MATRIX: &str = "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
GPU0\t X \tNV18\tPIX\tNODE\tSYS\t0-31\t0\t\tN/A\n\
GPU1\tNV18\t X \tNODE\tPIX\tSYS\t0-31\t0\t\tN/A\n\
\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_3\n  NIC2: mlx5_bond_0\n";

#[test]
fn text_is_a_small_matrix() {
    let dir = Dir::new();
    dir.file("topo.txt", MATRIX);
    let out = dir.run(["node", "--from", "topo.txt", "--topology"]);
    out.exits(0);
    assert_eq!(
        out.stdout,
        "GPUs and network cards, from topo.txt:1\n\
        \u{20}       nearest  over  NUMA  mlx5_0  mlx5_3  mlx5_bond_0\n\
        \u{20} GPU0  mlx5_0   PIX   0     PIX     NODE    SYS\n\
        \u{20} GPU1  mlx5_3   PIX   0     NODE    PIX     SYS\n\
        \u{20} nearest to none of these GPUs: mlx5_bond_0\n"
    );
}

#[test]
fn json_is_an_object_of_its_own() {
    let dir = Dir::new();
    dir.file("topo.txt", MATRIX);
    let out = dir.run(["node", "--from", "topo.txt", "--topology", "-o", "json"]);
    out.exits(0);
    let map = &out.json()["topology"][0];
    assert_eq!(map["gpus"][1]["nearest"][0], "mlx5_3");
    assert_eq!(map["gpus"][1]["level"], "PIX");
    assert_eq!(map["gpus"][0]["paths"][2]["path"], "SYS");
    assert_eq!(map["near_none"][0], "mlx5_bond_0");
    assert_eq!(map["cut"], false);
}

#[test]
fn without_a_matrix_nothing_is_made_up() {
    let dir = Dir::new();
    dir.file(
        "other.txt",
        "Linux node-1 6.8.0-60-generic #63-Ubuntu SMP x86_64 GNU/Linux\n",
    );
    let out = dir.run(["node", "--from", "other.txt", "--topology"]);
    out.exits(3);
    assert!(out.stdout.starts_with("no matrix"));
}

#[test]
fn a_missing_row_leaves_its_card_open() {
    let dir = Dir::new();
    let cut: String = MATRIX.split_inclusive('\n').take(2).collect();
    dir.file("topo.txt", cut);
    let out = dir.run(["node", "--from", "topo.txt", "--topology", "-o", "json"]);
    out.exits(0);
    let map = &out.json()["topology"][0];
    assert_eq!(map["cut"], true);
    assert!(map["near_none"].as_array().expect("a list").is_empty());
    assert!(map["gpus"][1]["nearest"].is_null());
}

#[test]
fn other_formats_are_refused() {
    let dir = Dir::new();
    dir.file("topo.txt", MATRIX);
    let out = dir.run(["node", "--from", "topo.txt", "--topology", "-o", "short"]);
    out.exits(2);
    assert!(out.stderr.contains("text and json"), "{}", out.stderr);
}
