//! Outputs of our own making, one per tool: what is read from them, and that nothing breaks when they are broken.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

mod broken;
mod read;

/// Every fixture with its name.
const FIXTURES: &[(&str, &str)] = &[
    ("dcgmi.txt", include_str!("../fixtures/dcgmi.txt")),
    ("fi_info.txt", include_str!("../fixtures/fi_info.txt")),
    ("gpud.json.txt", include_str!("../fixtures/gpud.json.txt")),
    ("gpud.txt", include_str!("../fixtures/gpud.txt")),
    (
        "ibdev2netdev.txt",
        include_str!("../fixtures/ibdev2netdev.txt"),
    ),
    ("ibstat.txt", include_str!("../fixtures/ibstat.txt")),
    ("ibstatus.txt", include_str!("../fixtures/ibstatus.txt")),
    (
        "ibv_devices.txt",
        include_str!("../fixtures/ibv_devices.txt"),
    ),
    (
        "ibv_devinfo-l-cut.txt",
        include_str!("../fixtures/ibv_devinfo-l-cut.txt"),
    ),
    (
        "ibv_devinfo.txt",
        include_str!("../fixtures/ibv_devinfo.txt"),
    ),
    ("ip.txt", include_str!("../fixtures/ip.txt")),
    ("limits.txt", include_str!("../fixtures/limits.txt")),
    ("ls.txt", include_str!("../fixtures/ls.txt")),
    ("lsmod.txt", include_str!("../fixtures/lsmod.txt")),
    ("lspci.txt", include_str!("../fixtures/lspci.txt")),
    ("not-found.txt", include_str!("../fixtures/not-found.txt")),
    (
        "nvidia-smi-q.txt",
        include_str!("../fixtures/nvidia-smi-q.txt"),
    ),
    ("nvlink.txt", include_str!("../fixtures/nvlink.txt")),
    ("other-logs.txt", include_str!("../fixtures/other-logs.txt")),
    ("p2p.txt", include_str!("../fixtures/p2p.txt")),
    (
        "rdma-link.json.txt",
        include_str!("../fixtures/rdma-link.json.txt"),
    ),
    ("rdma-link.txt", include_str!("../fixtures/rdma-link.txt")),
    ("show_gids.txt", include_str!("../fixtures/show_gids.txt")),
    ("sysfs.txt", include_str!("../fixtures/sysfs.txt")),
    ("topo.txt", include_str!("../fixtures/topo.txt")),
    ("ucx-log.txt", include_str!("../fixtures/ucx-log.txt")),
    ("ucx_info.txt", include_str!("../fixtures/ucx_info.txt")),
    ("unknown.txt", include_str!("../fixtures/unknown.txt")),
];

/// One fixture, read.
fn seen(name: &str) -> model::Observation {
    let (_, text) = FIXTURES.iter().find(|(n, _)| *n == name).unwrap();
    probe::recognise(name, text)
}
