//! Dumps and outputs of the same machine in the same state say the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use model::observation::rdma::PortState;
use model::observation::{NotRead, Tool};
use model::{Fact, Observation};

use super::corpus;

/// Outputs that are of no tool that is read here.
const OTHER_TOOLS: &[&str] = &[
    "rdma-res-j.txt",
    "rdma-statistic-j.txt",
    "ibhosts.txt",
    "ibnetdiscover.txt",
    "perfquery.txt",
    "sminfo.txt",
];

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
    out.sort();
}

fn read(path: &Path) -> Observation {
    let name = path.file_name().unwrap().to_str().unwrap();
    probe::recognise_bytes(name, &std::fs::read(path).unwrap())
}

#[test]
fn every_output_of_the_lab_is_recognised() {
    let Some(corpus) = corpus() else { return };
    let states = [
        "bare",
        "core",
        "core-mlx5",
        "one",
        "two",
        "down",
        "pair",
        "pair-exclusive",
        "kernel-6.12",
    ];
    let mut all = Vec::new();
    for state in states {
        files(&corpus.join("rdma-lab").join(state), &mut all);
    }
    assert!(all.len() > 300, "{}", all.len());
    let mut unknown = Vec::new();
    for path in all {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let seen = read(&path);
        for lost in &seen.unrecognised {
            assert_eq!(lost.file, name);
            // The tail of a kernel log may say nothing of interest.
            if lost.why != NotRead::Empty
                && name != "dmesg-tail.txt"
                && !OTHER_TOOLS.contains(&name.as_str())
            {
                unknown.push(format!("{}: {}", path.display(), lost.first_line));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}

/// Facts of one port that a tool may tell.
fn facts(seen: &Observation) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut put = |key: String, value: Option<String>| {
        if let Some(value) = value {
            all.insert(key, value);
        }
    };
    fn show<T: std::fmt::Debug>(fact: &Fact<T>) -> Option<String> {
        fact.value().map(|v| format!("{v:?}"))
    }
    for (name, device) in &seen.rdma.devices {
        put(format!("{name} node guid"), show(&device.node_guid));
        for (number, port) in &device.ports {
            let key = |what: &str| format!("{name}/{number} {what}");
            put(key("state"), show(&port.state));
            put(key("phys"), show(&port.phys));
            put(key("link layer"), show(&port.link_layer));
            put(key("rate"), show(&port.rate_mbps));
            put(key("lid"), show(&port.lid));
            put(key("sm lid"), show(&port.sm_lid));
            put(key("cap mask"), show(&port.capability_mask));
            put(key("netdev"), show(&port.netdev));
            for (index, gid) in &port.gids {
                put(key(&format!("gid {index}")), show(&gid.address));
                put(key(&format!("gid type {index}")), show(&gid.kind));
            }
        }
    }
    all
}

#[test]
fn all_tools_say_the_same_in_the_same_state() {
    let Some(corpus) = corpus() else { return };
    for state in [
        "one",
        "two",
        "down",
        "pair/root",
        "kernel-6.12/one",
        "kernel-6.12/two",
        "kernel-6.12/down",
    ] {
        let folder = corpus.join("rdma-lab").join(state);
        let dump = read(&folder.join("sysfs-dump.txt"));
        let truth = facts(&dump);
        assert!(truth.len() > 10, "{state}: {truth:?}");
        for tool in [
            "ibstat",
            "ibstatus",
            "ibv_devinfo",
            "ibv_devinfo-v",
            "rdma-link",
            "rdma-link-j",
            "ibv_devices",
            "rdma-dev-j",
        ] {
            let seen = read(&folder.join(format!("{tool}.txt")));
            let told = facts(&seen);
            assert!(!told.is_empty(), "{state} {tool}");
            for (key, value) in &told {
                if let Some(expected) = truth.get(key) {
                    assert_eq!(value, expected, "{state} {tool}: {key}");
                }
            }
            let names: Vec<&String> = dump.rdma.devices.keys().collect();
            assert_eq!(
                seen.rdma.devices.keys().collect::<Vec<_>>(),
                names,
                "{state} {tool}"
            );
        }
        let down = dump
            .rdma
            .devices
            .values()
            .flat_map(|d| d.ports.values())
            .all(|p| p.state.value() == Some(&PortState::Down));
        assert_eq!(down, state.contains("down"), "{state}");
    }
}

#[test]
fn outputs_of_one_state_make_one_picture() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    files(&corpus.join("rdma-lab/two"), &mut paths);
    let texts: Vec<(String, Vec<u8>)> = paths
        .iter()
        .map(|p| {
            (
                p.file_name().unwrap().to_str().unwrap().to_owned(),
                std::fs::read(p).unwrap(),
            )
        })
        .collect();
    let seen = probe::recognise_all(texts.iter().map(|(n, t)| (n.as_str(), t.as_slice())));
    let port = &seen.rdma.devices["rxe0"].ports[&1];
    assert!(port.state.agreed() && port.state.is_seen());
    let tools: Vec<Tool> = port.state.sources().iter().map(|s| s.from.tool).collect();
    assert!(
        tools.contains(&Tool::Ibstat) && tools.contains(&Tool::RdmaLink),
        "{tools:?}"
    );
    let lists = seen
        .rdma
        .listings
        .iter()
        .filter(|l| !l.cut && l.devices == ["rxe0", "rxe1"])
        .count();
    assert!(lists > 5, "{lists}");
    assert_eq!(
        seen.limits.memlock_soft.value(),
        Some(&model::observation::limits::Limit::Value(8_388_608))
    );
    assert!(seen.limits.memlock_soft.agreed());
    assert_eq!(
        seen.host.kernel.value().map(String::as_str),
        Some("7.3.4+deb13-amd64")
    );
}

#[test]
fn runs_of_nixl_show_their_tables_and_lanes() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    files(&corpus.join("nixl-runs"), &mut paths);
    let (mut tables, mut lanes, mut versions) = (0, 0, 0);
    for path in paths {
        let seen = read(&path);
        tables += seen.log.tables.len();
        lanes += seen.log.lanes.len();
        versions += seen.software.ucx.len();
        for table in &seen.log.tables {
            assert!(!table.rows.is_empty() || table.cut, "{}", path.display());
            for row in &table.rows {
                assert!(!row.lanes.is_empty(), "{}: {}", path.display(), row.config);
            }
        }
    }
    println!("{tables} tables, {lanes} lanes, {versions} versions");
    assert!(tables > 20 && lanes > 50 && versions > 50);
}
