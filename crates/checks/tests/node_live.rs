//! The collector and the checks together, over prepared trees of a machine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

use std::fmt::Write as _;

use checks::{NodeFacts, judge_node};
use model::{Readiness, Report, Status};
use probe::local;
use stand_in::Tree;

const UNLIMITED: &str = "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1048576              1048576              files     \nMax locked memory         unlimited            unlimited            bytes     \n";

const ROWS: usize = 8;

/// Where the switch of each GPU and its card stands.
fn switch(n: usize) -> String {
    format!("/sys/devices/pci0000:{n}5/0000:{n}5:01.0/0000:{n}6:00.0")
}

/// An HGX machine with 8 GPUs, each with a card behind its switch, and a prefill worker; bare metal.
fn machine() -> Tree {
    let tree = Tree::new();
    tree.files(
        "/sys/class/dmi/id",
        &[("sys_vendor", "Supermicro"), ("product_name", "SYS-821GE")],
    );
    tree.file(
        "/proc/cpuinfo",
        "processor\t: 0\nflags\t\t: fpu vme de pse\n",
    );
    tree.file("/proc/self/limits", UNLIMITED);
    tree.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@builder)\n",
    );
    tree.file("/sys/module/nvidia/version", "580.65.06\n");
    tree.file(
        "/proc/modules",
        "nvidia_peermem 20480 0 - Live 0x0\nnvidia 9453568 20 nvidia_uvm,nvidia_peermem, Live 0x0\ngdrdrv 28672 0 - Live 0x0\nmlx5_ib 500000 0 - Live 0x0\nib_uverbs 200000 1 mlx5_ib, Live 0x0\nib_core 500000 2 mlx5_ib,ib_uverbs, Live 0x0\n",
    );
    tree.files(
        "/sys/module/nvidia_peermem",
        &[("version", "580.65.06"), ("refcnt", "0")],
    );
    tree.file(
        "/proc/devices",
        "Character devices:\n195 nvidia\n234 gdrdrv\n",
    );
    tree.file("/dev/gdrdrv", "");
    tree.file("/run/nvidia-fabricmanager/socket", "");
    tree.file("/dev/infiniband/rdma_cm", "");
    for name in ["ib_core", "ib_uverbs"] {
        tree.file(&format!("/sys/module/{name}/refcnt"), "1\n");
    }
    tree.file("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n");
    tree.file(
        "/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so",
        "",
    );
    for n in 0..ROWS {
        let gpu = format!("{}/0000:{n}7:00.0/0000:{n}8:00.0", switch(n));
        tree.files(
            &gpu,
            &[
                ("class", "0x030200"),
                ("vendor", "0x10de"),
                ("device", "0x2330"),
                ("numa_node", "0"),
                ("current_link_speed", "32.0 GT/s PCIe"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"),
                ("max_link_width", "16"),
            ],
        );
        tree.link(&format!("/sys/bus/pci/devices/0000:{n}8:00.0"), &gpu);
        tree.file(
            &format!("/proc/driver/nvidia/gpus/0000:{n}8:00.0/information"),
            format!(
                "Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t {}\nDevice Minor: \t {n}\n",
                uuid(n)
            ),
        );
        tree.file(&format!("/dev/nvidia{n}"), "");
        let name = format!("mlx5_{n}");
        tree.device(
            &name,
            &format!("{}/0000:{n}7:01.0/0000:{n}9:00.0", switch(n)),
            "0x0207",
            &[],
        );
        rail(&tree, n, "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)");
        tree.files(
            &format!("/sys/class/infiniband/{name}/ports/1/gids"),
            &[("0", &format!("fe80:0000:0000:0000:b83f:d203:0012:345{n}"))],
        );
        tree.files(
            &format!("/sys/class/infiniband_verbs/uverbs{n}"),
            &[("ibdev", &name)],
        );
        tree.file(&format!("/dev/infiniband/uverbs{n}"), "");
    }
    smi(&tree, "Completed", "Healthy");
    engine(&tree, "UCX_LOG_LEVEL=warn\0");
    tree
}

fn uuid(n: usize) -> String {
    format!("GPU-11111111-2222-3333-4444-55555555555{n}")
}

fn rail(tree: &Tree, n: usize, state: &str, phys: &str, rate: &str) {
    tree.port(
        &format!("mlx5_{n}"),
        &[
            ("link_layer", "InfiniBand"),
            ("state", state),
            ("phys_state", phys),
            ("rate", rate),
            ("lid", "0x15"),
            ("sm_lid", "0x1"),
        ],
    );
}

/// What the driver's tool says of the fabric.
fn smi(tree: &Tree, state: &str, health: &str) {
    let mut gpus = String::new();
    for n in 0..ROWS {
        write!(
            gpus,
            "GPU 00000000:{n}8:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    GPU UUID                              : {}\n    Minor Number                          : {n}\n    GPU Virtualization Mode\n        Virtualization Mode               : None\n    Fabric\n        State                             : {state}\n        Status                            : Success\n        CliqueId                          : 0\n        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n        Health\n            Summary                       : {health}\n            Bandwidth                     : Full\n",
            uuid(n)
        )
        .unwrap();
    }
    tree.tool(
        "nvidia-smi",
        &format!(
            "[ \"$1\" = -q ] || exit 0\nprintf '%s\\n' '\n==============NVSMI LOG==============\n\nDriver Version                            : 580.65.06\nCUDA Version                              : 13.0\n\nAttached GPUs                             : 8\n{gpus}'"
        ),
    );
}

/// A prefill worker with an environment of its own.
fn engine(tree: &Tree, environment: &str) {
    tree.file("/proc/42/comm", "python3\n");
    tree.file(
        "/proc/42/cmdline",
        "python3\0-m\0dynamo.vllm\0--kv-transfer-config\0{\"kv_connector\":\"NixlConnector\"}\0--is-prefill-worker\0",
    );
    tree.file("/proc/42/environ", environment);
    tree.file("/proc/42/limits", UNLIMITED);
    tree.file(
        "/proc/42/status",
        "Name:\tpython3\nPPid:\t1\nUid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n",
    );
    tree.file("/proc/42/maps", "");
}

fn judge(tree: &Tree) -> Report {
    for tool in ["ip", "rdma", "ibv_devinfo", "ucx_info", "fi_info", "df"] {
        if !tree.tools().join(tool).exists() {
            tree.tool(tool, "exit 127");
        }
    }
    let stream = local::run(&tree.options()).unwrap();
    let facts = NodeFacts {
        observation: probe::observe::observation(&stream),
        ..NodeFacts::default()
    };
    judge_node("node", &facts, Vec::new())
}

/// Failures and warnings: status and cause.
fn told(report: &Report) -> Vec<(Status, &str)> {
    report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
        .map(|r| (r.status, r.cause.unwrap_or("?")))
        .collect()
}

#[track_caller]
fn only(tree: &Tree, status: Status, cause: &str) -> Report {
    let report = judge(tree);
    let details: Vec<&str> = report.results.iter().map(|r| r.detail.as_str()).collect();
    assert_eq!(told(&report), [(status, cause)], "{details:#?}");
    report
}

#[test]
fn a_healthy_machine_has_no_fault() {
    let report = judge(&machine());
    let details: Vec<&str> = report.results.iter().map(|r| r.detail.as_str()).collect();
    assert!(told(&report).is_empty(), "{:?} {details:#?}", told(&report));
    assert_eq!(report.readiness, Readiness::Unproven, "{details:#?}");
    // What parsers read of saved outputs, the collector reads here too.
    for words in [
        "RDMA devices: mlx5_0",
        "nvidia_peermem is loaded",
        "GDRCopy is there",
        "the fabric manager runs",
        "fabric state Completed",
        "uverbs nodes are here",
        "unlimited",
    ] {
        assert!(
            details.iter().any(|d| d.contains(words)),
            "{words}: {details:#?}"
        );
    }
}

#[test]
fn one_rail_of_eight_is_down() {
    let tree = machine();
    rail(&tree, 5, "1: DOWN", "2: Polling", "10 Gb/sec (4X SDR)");
    let report = only(&tree, Status::Warn, "ib-port-down-polling");
    assert!(report.results.iter().any(|r| r.detail.contains("mlx5_5")));
}

#[test]
fn a_selected_device_was_not_given_to_the_container() {
    let tree = machine();
    engine(&tree, "UCX_NET_DEVICES=mlx5_3:1,mlx5_4:1\0");
    std::fs::remove_file(tree.root().join("dev/infiniband/uverbs3")).unwrap();
    only(&tree, Status::Fail, "dev-infiniband-partial");
}

#[test]
fn locked_memory_is_too_small() {
    let tree = machine();
    tree.file(
        "/proc/42/limits",
        UNLIMITED.replace(
            "unlimited            unlimited            bytes",
            "65536                65536                bytes",
        ),
    );
    only(&tree, Status::Fail, "memlock-low");
}

#[test]
fn the_fabric_is_complete_and_unhealthy() {
    let tree = machine();
    smi(&tree, "Completed", "Unhealthy");
    only(&tree, Status::Fail, "fabric-health-unhealthy");
}

#[test]
fn a_setting_names_a_device_that_is_not_here() {
    let tree = machine();
    engine(&tree, "UCX_NET_DEVICES=mlx5_17:1\0");
    only(&tree, Status::Fail, "selected-device-missing");
}

#[test]
fn a_worker_runs_with_tcp_only() {
    let tree = machine();
    engine(&tree, "UCX_TLS=tcp\0");
    only(&tree, Status::Fail, "ucx-tls-tcp-only");
}

#[test]
fn the_word_of_the_processor_tells_a_virtual_machine() {
    let tree = machine();
    let seen = |tree: &Tree| {
        probe::observe::observation(&local::run(&tree.options()).unwrap())
            .host
            .virtual_machine
    };
    assert_eq!(seen(&tree).value(), Some(&false));
    tree.file(
        "/proc/cpuinfo",
        "processor\t: 0\nflags\t\t: fpu hypervisor vme\n",
    );
    assert_eq!(seen(&tree).value(), Some(&true));
    // Elsewhere than on x86 the firmware may tell.
    tree.file(
        "/proc/cpuinfo",
        "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n",
    );
    assert_eq!(seen(&tree).value(), None);
    tree.file("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert_eq!(seen(&tree).value(), Some(&true));
}

#[test]
fn files_that_settings_name_are_looked_for_as_the_process_sees_them() {
    let tree = machine();
    engine(&tree, "NCCL_TOPO_FILE=/opt/topology.xml\0");
    // How the process sees its files cannot be seen.
    assert!(told(&judge(&tree)).is_empty());
    tree.file("/proc/42/root/etc/nccl.conf", "");
    let report = only(&tree, Status::Warn, "nccl-topo-file-missing");
    assert!(
        report
            .results
            .iter()
            .any(|r| r.detail.contains("/etc/nccl.conf"))
    );
    tree.file("/proc/42/root/opt/topology.xml", "");
    assert!(told(&judge(&tree)).is_empty());
}

#[test]
fn channels_between_nodes_are_looked_for() {
    let rack = |tree: &Tree| {
        let path = tree.tools().join("nvidia-smi");
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text
            .replace("NVIDIA H100 80GB HBM3", "NVIDIA GB200")
            .replace(
                "00000000-0000-0000-0000-000000000000",
                "11111111-0000-0000-0000-000000000000",
            );
        std::fs::write(path, text).unwrap();
    };
    let tree = machine();
    rack(&tree);
    let report = judge(&tree);
    assert!(told(&report).contains(&(Status::Warn, "imex-channel-missing")));
    tree.file("/dev/nvidia-caps-imex-channels/channel0", "");
    let report = judge(&tree);
    assert!(!told(&report).contains(&(Status::Warn, "imex-channel-missing")));
    assert!(
        report
            .results
            .iter()
            .any(|r| r.detail.contains("IMEX: channel0"))
    );
}

#[test]
fn without_a_module_dma_buf_is_looked_for() {
    let tree = machine();
    tree.file(
        "/proc/modules",
        "nvidia 9453568 20 nvidia_uvm, Live 0x0\nmlx5_ib 500000 0 - Live 0x0\nib_core 500000 1 mlx5_ib, Live 0x0\n",
    );
    std::fs::remove_dir_all(tree.root().join("sys/module/nvidia_peermem")).unwrap();
    let report = judge(&tree);
    assert!(told(&report).is_empty(), "{:?}", told(&report));
    assert!(report.results.iter().any(|r| r.detail.contains("dma-buf")));
    // Closed modules give none.
    tree.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Release Build\n",
    );
    only(&tree, Status::Warn, "gdr-peermem-missing");
}

#[test]
fn a_sparse_table_of_gids_is_fine() {
    let tree = Tree::new();
    tree.file("/proc/self/limits", UNLIMITED);
    tree.device(
        "mlx5_0",
        "/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0",
        "0x0200",
        &["ens1"],
    );
    tree.port(
        "mlx5_0",
        &[
            ("link_layer", "Ethernet"),
            ("rate", "400 Gb/sec (4X NDR)"),
            ("lid", "0x0"),
            ("sm_lid", "0x0"),
        ],
    );
    tree.files(
        "/sys/class/infiniband_verbs/uverbs0",
        &[("ibdev", "mlx5_0")],
    );
    tree.file("/dev/infiniband/uverbs0", "");
    let port = "sys/class/infiniband/mlx5_0/ports/1";
    for slot in 0..8 {
        tree.file(
            &format!("{port}/gids/{slot}"),
            "0000:0000:0000:0000:0000:0000:0000:0000\n",
        );
    }
    // Types of empty slots cannot be read.
    std::fs::create_dir_all(tree.root().join(format!("{port}/gid_attrs/types/0"))).unwrap();
    tree.file(
        &format!("{port}/gids/6"),
        "0000:0000:0000:0000:0000:ffff:0a00:0001\n",
    );
    tree.file(&format!("{port}/gid_attrs/types/6"), "RoCE v2\n");
    tree.file(&format!("{port}/gid_attrs/ndevs/6"), "ens1\n");
    let report = judge(&tree);
    let ids = told(&report);
    assert!(
        !ids.iter()
            .any(|(_, id)| id.starts_with("roce") || id.starts_with("gid")),
        "{ids:?}"
    );
    assert!(report.results.iter().any(|r| r.detail.contains("index 6")));
}
