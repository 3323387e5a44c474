//! What is read from each fixture.

use model::observation::gpu::LinkState;
use model::observation::limits::{Capabilities, Limit};
use model::observation::log::{Scope, TableLayout};
use model::observation::modules::Presence;
use model::observation::rdma::{Function, GidType, LinkLayer, PhysState, PortState};
use model::observation::topology::{Level, MatrixKind};
use model::observation::{Completeness, NotRead, Tool};
use model::{Merge as _, Observation, Reason};

use super::seen;

fn cut(seen: &Observation) -> Option<&str> {
    seen.sections.iter().find_map(|s| match &s.completeness {
        Completeness::Cut(why) => Some(why.as_str()),
        _ => None,
    })
}

#[test]
fn ibstat() {
    let seen = seen("ibstat.txt");
    let port = &seen.rdma.devices["mlx5_4"].ports[&1];
    assert_eq!(port.state.value(), Some(&PortState::Init));
    assert_eq!(port.rate_mbps.value(), Some(&800_000));
    assert_eq!(port.lid.value(), Some(&65535));
    assert_eq!(port.link_layer.value(), Some(&LinkLayer::InfiniBand));
    let source = &port.state.sources()[0];
    assert_eq!(source.to_string(), "ibstat.txt:10");
    assert_eq!(source.from.place.as_deref(), Some("decode-3"));
    assert_eq!(source.from.command.as_deref(), Some("ibstat"));
    assert!(!seen.rdma.listings[0].cut);
}

#[test]
fn ibstatus() {
    let seen = seen("ibstatus.txt");
    let port = &seen.rdma.devices["bnxt_re0"].ports[&1];
    assert_eq!(port.lanes.value(), Some(&4));
    assert_eq!(port.lane_speed.value().unwrap(), "EDR");
    assert_eq!(port.gids[&0].is_link_local(), Some(true));
}

#[test]
fn ibv_devinfo() {
    let seen = seen("ibv_devinfo.txt");
    assert_eq!(seen.rdma.open_failures.len(), 1);
    let device = &seen.rdma.devices["mlx5_2"];
    assert_eq!(device.opens.value(), Some(&true));
    assert_eq!(device.ports[&1].sm_lid.value(), Some(&1));
    assert_eq!(device.node_guid.value().unwrap(), "0001020304050607");
}

#[test]
fn a_shorter_list_than_announced_is_cut() {
    let seen = seen("ibv_devinfo-l-cut.txt");
    assert_eq!(seen.rdma.listings[0].devices, ["mlx5_0", "mlx5_1"]);
    assert!(seen.rdma.listings[0].cut);
    assert!(cut(&seen).unwrap().contains('3'));
}

#[test]
fn ibv_devices_and_ibdev2netdev() {
    assert_eq!(
        seen("ibv_devices.txt").rdma.listings[0].devices,
        ["mlx5_0", "efa_0"]
    );
    let seen = seen("ibdev2netdev.txt");
    let first = &seen.rdma.devices["mlx5_0"];
    assert_eq!(first.pci.value().unwrap(), "0000:1a:00.0");
    assert_eq!(first.ports[&1].netdev_up.value(), Some(&false));
    assert!(!first.ports[&1].state.is_seen());
    assert_eq!(
        seen.rdma.devices["mlx5_1"].ports[&1].netdev.value(),
        Some(&Some("ens2np0".to_owned()))
    );
}

#[test]
fn rdma_link_as_text_and_json() {
    let text = seen("rdma-link.txt");
    assert_eq!(
        text.rdma.devices["mlx5_2"].ports[&1].netdev.value(),
        Some(&None)
    );
    let json = seen("rdma-link.json.txt");
    let port = &json.rdma.devices["mlx5_0"].ports[&1];
    assert_eq!(port.lid.value(), Some(&9));
    assert_eq!(port.link_layer.value(), Some(&LinkLayer::InfiniBand));
    let other = &json.rdma.devices["mlx5_1"].ports[&1];
    assert_eq!(other.phys.value(), Some(&PhysState::Disabled));

    // One picture of both, which knows that they differ.
    let mut both = text;
    both.merge(json);
    let port = &both.rdma.devices["mlx5_1"].ports[&1];
    assert!(!port.state.agreed());
    assert_eq!(port.state.value(), Some(&PortState::Down));
    let files: Vec<&str> = port
        .state
        .readings()
        .map(|r| r.sources[0].from.file.as_str())
        .collect();
    assert_eq!(files, ["rdma-link.txt", "rdma-link.json.txt"]);
    assert!(both.rdma.devices["mlx5_0"].ports[&1].state.agreed());
    assert_eq!(
        both.rdma.devices["mlx5_0"].ports[&1].state.sources().len(),
        2
    );
}

#[test]
fn old_rdma_link_tells_no_interface() {
    let seen = probe::recognise("x", "0/1: mlx5_0/1: state ACTIVE physical_state LINK_UP \n");
    let netdev = &seen.rdma.devices["mlx5_0"].ports[&1].netdev;
    assert_eq!(netdev.get().unwrap_err().reason, Reason::NotBuilt);
}

#[test]
fn show_gids() {
    let seen = seen("show_gids.txt");
    let gid = &seen.rdma.devices["mlx5_0"].ports[&1].gids[&3];
    assert_eq!(gid.ipv4().unwrap().to_string(), "192.168.1.2");
    assert_eq!(gid.kind.value(), Some(&GidType::RoceV2));
    assert!(cut(&seen).is_some() && seen.rdma.gid_tables[0].cut);
}

#[test]
fn lsmod() {
    let seen = seen("lsmod.txt");
    assert_eq!(seen.modules.presence("nvidia_peermem"), Presence::Loaded);
    assert_eq!(seen.modules.presence("gdrdrv"), Presence::Absent);
    let filtered = probe::recognise("x", "$ lsmod | grep nvidia\nnvidia 5 1 nvidia_uvm\n");
    assert_eq!(filtered.modules.presence("gdrdrv"), Presence::Unknown);
    assert_eq!(filtered.modules.presence("nvidia_uvm"), Presence::Loaded);
}

#[test]
fn topology() {
    let seen = seen("topo.txt");
    let matrix = &seen.topology.matrices[0];
    assert_eq!(matrix.kind, MatrixKind::WithNvLink);
    assert_eq!(matrix.between("GPU0", "GPU1"), Some(&Level::NvLink(4)));
    assert_eq!(matrix.to_nic("GPU1", "mlx5_bond_1"), Some(&Level::Phb));
    let (level, near) = matrix.nearest("GPU1").unwrap();
    assert_eq!((level, near[0].name()), (Level::Phb, "mlx5_bond_1"));
    let row = matrix.gpu_row("GPU1").unwrap();
    assert_eq!(row.cpu_affinity.as_deref(), Some(""));
    assert_eq!(row.numa_affinity.as_deref(), Some("1"));
    assert_eq!(row.gpu_numa_id.as_deref(), Some("N/A"));
    assert!(!matrix.cut && matrix.header);
    assert_eq!(matrix.nic_rows.len(), 2);
}

#[test]
fn rows_that_are_missing_are_named() {
    let text = "	GPU0	GPU1	GPU2	NIC0	CPU Affinity	NUMA Affinity\nGPU0	 X 	NV2	NV2	PIX	0-7	0\nGPU1	NV2	 X \n";
    let seen = probe::recognise("x", text);
    let matrix = &seen.topology.matrices[0];
    assert!(matrix.cut);
    assert_eq!(matrix.missing_rows().collect::<Vec<_>>(), ["GPU2"]);
    assert_eq!(matrix.nearest("GPU1"), None);
    assert!(cut(&seen).unwrap().contains("GPU2"));
}

#[test]
fn peer_access() {
    let seen = seen("p2p.txt");
    let matrix = &seen.topology.p2p[0];
    assert_eq!(matrix.asked.as_deref(), Some("r"));
    assert_eq!(matrix.rows[0].1, ["X", "OK", "CNS"]);
    assert!(matrix.cut);
    assert!(seen.topology.matrices.is_empty());
}

#[test]
fn nvlink() {
    let seen = seen("nvlink.txt");
    let gpus: Vec<_> = seen.gpu.gpus.iter().collect();
    assert_eq!(gpus[0].links[&0].mb_per_s.value(), Some(&26_562));
    assert_eq!(gpus[0].links[&1].state.value(), Some(&LinkState::Down));
    assert_eq!(gpus[1].all_links_inactive.value(), Some(&true));
}

#[test]
fn fabric_of_nvidia_smi() {
    let seen = seen("nvidia-smi-q.txt");
    assert_eq!(seen.gpu.driver_version.value().unwrap(), "580.10.01");
    let gpus: Vec<_> = seen.gpu.gpus.iter().collect();
    assert_eq!(gpus.len(), 2);
    assert_eq!(gpus[0].pci.value().unwrap(), "0008:01:00.0");
    assert_eq!(gpus[0].fabric.clique.value(), Some(&7));
    assert_eq!(
        gpus[0].fabric.health["Route Unhealthy"].value().unwrap(),
        "False"
    );
    assert_eq!(gpus[1].fabric.state.value().unwrap(), "In Progress");
    assert_eq!(
        gpus[1].fabric.clique.get().unwrap_err().reason,
        Reason::NotApplicable
    );
}

#[test]
fn signs_of_a_virtual_machine() {
    for (text, is) in [
        (
            "/sys/class/dmi/id/sys_vendor:QEMU\n/sys/class/dmi/id/product_name:Standard PC\n",
            Some(true),
        ),
        (
            "/sys/class/dmi/id/sys_vendor:Microsoft Corporation\n/sys/class/dmi/id/product_name:Virtual Machine\n",
            Some(true),
        ),
        // Bare metal of a cloud bears its name as well.
        (
            "/sys/class/dmi/id/sys_vendor:Amazon EC2\n/sys/class/dmi/id/product_name:p5.metal\n",
            None,
        ),
        (
            "$ nvidia-smi -q\n\n==============NVSMI LOG==============\n\nDriver Version                            : 580.65.06\nAttached GPUs                             : 1\nGPU 00000000:18:00.0\n    Product Name                          : NVIDIA H200\n    GPU Virtualization Mode\n        Virtualization Mode               : Pass-Through\n        Host VGPU Mode                    : N/A\n",
            Some(true),
        ),
        (
            "$ nvidia-smi -q\n\n==============NVSMI LOG==============\n\nDriver Version                            : 580.65.06\nAttached GPUs                             : 1\nGPU 00000000:18:00.0\n    Product Name                          : NVIDIA H200\n    GPU Virtualization Mode\n        Virtualization Mode               : None\n        Host VGPU Mode                    : N/A\n",
            None,
        ),
    ] {
        let seen = probe::recognise("x", text);
        assert_eq!(seen.host.virtual_machine.value().copied(), is, "{text}");
    }
}

#[test]
fn dcgmi_and_gpud() {
    let seen_dcgmi = seen("dcgmi.txt");
    assert_eq!(seen_dcgmi.gpu.nvswitches.value(), Some(&1));
    let links = &seen_dcgmi.gpu.gpus.iter().next().unwrap().links;
    assert_eq!(links[&3].state.value(), Some(&LinkState::Disabled));
    assert_eq!(links[&5].state.value(), Some(&LinkState::Down));
    let mut table = seen("gpud.txt");
    let json = seen("gpud.json.txt");
    assert_eq!(json.gpu.fabric_manager.value(), Some(&true));
    table.merge(json);
    // The same UUID is the same GPU.
    assert_eq!(table.gpu.gpus.len(), 1);
    assert_eq!(
        table
            .gpu
            .gpus
            .iter()
            .next()
            .unwrap()
            .fabric
            .clique
            .sources()
            .len(),
        2
    );
}

#[test]
fn ucx_info() {
    let seen = seen("ucx_info.txt");
    let resources = &seen.software.ucx_resources[0];
    assert_eq!(resources.domains.len(), 2);
    assert!(
        resources.domains[0].registers_dmabuf() == Some(true) && resources.domains[1].no_devices
    );
    let failed: Vec<bool> = resources
        .transports
        .iter()
        .map(|t| t.failed_to_open)
        .collect();
    assert_eq!(failed, [false, true]);
    assert_eq!(resources.errors.len(), 1);
    let build = &seen.software.ucx[0];
    assert_eq!(build.version.as_deref(), Some("1.20.1"));
    assert_eq!(
        (
            build.with("verbs"),
            build.with("cuda"),
            build.with("mt"),
            build.with("go")
        ),
        (Some(false), Some(true), Some(true), None)
    );
    assert_eq!(seen.log.of("ucx-queue-creation-failed").count(), 1);
}

#[test]
fn fi_info() {
    let seen = seen("fi_info.txt");
    let listing = &seen.software.libfabric[0];
    assert_eq!(listing.entries[1].device(), Some("rdmap0s6"));
    assert!(cut(&seen).is_some());
}

#[test]
fn lspci() {
    let seen = seen("lspci.txt");
    let card = &seen.host.pci["0000:17:00.0"];
    assert_eq!(
        (card.class.value(), card.vendor.value()),
        (Some(&0x0207), Some(&0x15b3))
    );
    assert_eq!(
        (card.pcie.speed_mts.value(), card.pcie.max_speed_mts.value()),
        (Some(&16_000), Some(&32_000))
    );
    assert_eq!(
        (card.pcie.width.value(), card.pcie.width_downgraded.value()),
        (Some(&8), Some(&true))
    );
    assert_eq!(card.numa_node.value(), Some(&1));
    assert_eq!(
        seen.host.pci["0000:18:00.0"].acs_redirect.value(),
        Some(&true)
    );
}

#[test]
fn listings() {
    let seen = seen("ls.txt");
    assert_eq!(seen.rdma.nodes["uverbs1"].exists.value(), Some(&true));
    assert_eq!(seen.rdma.nodes_present.value(), Some(&true));
    assert_eq!(seen.gpu.imex.channels.value(), Some(&vec![0]));
    assert_eq!(
        seen.rdma.devices["mlx5_7"].pci.value().unwrap(),
        "0000:5e:00.0"
    );
}

#[test]
fn dumps_of_sysfs_and_proc() {
    let seen = seen("sysfs.txt");
    let device = &seen.rdma.devices["mlx5_0"];
    assert_eq!(device.pci.value().unwrap(), "0000:18:00.0");
    assert_eq!(device.numa_node.value(), Some(&1));
    assert_eq!(
        (
            device.pcie.speed_mts.value(),
            device.pcie.max_speed_mts.value()
        ),
        (Some(&16_000), Some(&32_000))
    );
    assert_eq!(device.uverbs.value().unwrap(), "uverbs0");
    let port = &device.ports[&1];
    assert_eq!(port.state.value(), Some(&PortState::Active));
    assert_eq!(port.gids.len(), 1);
    assert_eq!(port.counters["link_downed"].value(), Some(&3));
    assert_eq!(
        port.counters["hw_counters/out_of_sequence"].value(),
        Some(&12)
    );
    assert_eq!(seen.interfaces.interfaces["eth0"].mtu.value(), Some(&9000));
    assert_eq!(seen.modules.presence("nvidia_peermem"), Presence::Loaded);
    assert_eq!(
        seen.modules.peer_memory_clients.value(),
        Some(&vec!["nv_mem".to_owned()])
    );
    assert_eq!(seen.gpu.open_kernel_modules.value(), Some(&true));
    assert_eq!(seen.gpu.driver_version.value().unwrap(), "580.10.01");
    assert_eq!(seen.gpu.gpus.iter().next().unwrap().minor.value(), Some(&2));
    assert_eq!(seen.gpu.imex.registered.value(), Some(&true));
    assert!(
        seen.limits
            .capabilities
            .value()
            .unwrap()
            .has(Capabilities::NET_RAW)
    );
    assert!(
        !seen
            .limits
            .capabilities
            .value()
            .unwrap()
            .has(Capabilities::IPC_LOCK)
    );
    assert_eq!(seen.host.pci["0000:18:00.0"].class.value(), Some(&0x0207));
    assert_ne!(device.function.value(), Some(&Function::Software));
}

#[test]
fn limits_and_interfaces() {
    let seen_limits = seen("limits.txt");
    let soft: Vec<Limit> = seen_limits
        .limits
        .memlock_soft
        .readings()
        .map(|r| r.value)
        .collect();
    // Kibibytes from the shell, bytes from the kernel.
    assert_eq!(soft, [Limit::Value(67_108_864)]);
    assert_eq!(
        seen_limits.limits.memlock_hard.value(),
        Some(&Limit::Unlimited)
    );
    let seen = seen("ip.txt");
    let net1 = &seen.interfaces.interfaces["net1"];
    assert_eq!(
        (net1.mtu.value(), net1.addresses.value()),
        (Some(&9000), Some(&vec![]))
    );
}

#[test]
fn ucx_logs() {
    let seen = seen("ucx-log.txt");
    let table = &seen.log.tables[0];
    assert_eq!(
        (table.layout, table.scope.clone()),
        (TableLayout::Old, Scope::InterNode)
    );
    assert_eq!(table.operation, "get");
    assert_eq!(
        (table.from_memory.as_deref(), table.to_memory.as_deref()),
        (Some("cuda"), Some("cuda/GPU0"))
    );
    assert_eq!(table.rows[1].from_bytes, Some(4096));
    assert_eq!(table.rows[1].lanes.len(), 2);
    assert_eq!(table.rows[0].how, "(?) software emulation");
    assert!(!table.cut);
    assert_eq!(seen.log.lanes[0].uses[1].1[1].transport, "tcp");
    assert_eq!(
        seen.software.ucx[0].library.as_deref(),
        Some("/opt/ucx/lib/libucp.so.0")
    );
    assert_eq!(
        seen.process.environment["UCX_TLS"].value().unwrap(),
        "rc,cuda"
    );
    // The second differs only in the address and is counted.
    let memlock = seen.log.of("ucx-memlock").next().unwrap();
    assert_eq!(
        (memlock.count, memlock.field("current")),
        (2, Some("64 kbytes"))
    );
    assert_eq!(memlock.process.host.as_deref(), Some("decode-0"));
    // A variable that is not in the catalogue is not kept.
    assert!(!serde_json::to_string(&seen).unwrap().contains("secret"));
}

#[test]
fn other_logs() {
    let seen = seen("other-logs.txt");
    let cuda = seen.log.of("nixl-cuda-missing").next().unwrap();
    assert_eq!(cuda.field("count"), Some("8"));
    assert_eq!(cuda.origin.from.place.as_deref(), Some("prefill-0"));
    assert_eq!(
        seen.log.of("nccl-channel").next().unwrap().field("path"),
        Some("NET/IB/0/GDRDMA")
    );
    assert_eq!(
        seen.process.environment["NCCL_SOCKET_IFNAME"]
            .value()
            .unwrap(),
        "eth0"
    );
    assert_eq!(
        seen.log.of("kernel-xid").next().unwrap().field("xid"),
        Some("79")
    );
    assert_eq!(seen.log.of("kernel-mlx5-link-down").count(), 1);
    assert_eq!(seen.software.verbs_problems[0].driver, "librxe-rdmav34.so");
}

#[test]
fn what_is_not_there_is_told() {
    let missing = seen("not-found.txt");
    assert_eq!(missing.sections.len(), 1);
    assert_eq!(missing.sections[0].from.tool, Tool::Ibstat);
    assert!(matches!(
        missing.sections[0].completeness,
        Completeness::ToolError(_)
    ));
    assert!(missing.rdma.listings.is_empty());
    let unknown = seen("unknown.txt");
    assert_eq!(unknown.unrecognised[0].why, NotRead::Unknown);
    assert_eq!(unknown.unrecognised[0].first_line, "The quick brown fox");
    assert_eq!(
        probe::recognise("x", "").unrecognised[0].why,
        NotRead::Empty
    );
    assert_eq!(
        probe::recognise("x", "\n \n\t\n").unrecognised[0].why,
        NotRead::Blank
    );
    assert_eq!(
        probe::recognise_bytes("x", &[0, 1, 0, 2, 0, 3]).unrecognised[0].why,
        NotRead::Binary
    );
}

#[test]
fn an_empty_answer_of_a_tool_lists_no_device() {
    let seen = probe::recognise("x", "$ ibstat\n[exit 0]\n");
    assert!(seen.rdma.listings[0].devices.is_empty() && !seen.rdma.listings[0].cut);
    let filtered = probe::recognise("x", "$ ibstat | grep Active\n");
    assert!(filtered.rdma.listings[0].cut);
}

#[test]
fn no_secret_of_a_foreign_text_is_kept() {
    let seen = probe::recognise("x", "HF_TOKEN=hf_verysecret\nAuthorization: Bearer abc\n");
    assert_eq!(seen.unrecognised[0].first_line, "HF_TOKEN");
    let seen = probe::recognise("x", "$ HF_TOKEN=hf_verysecret ibstat\nCA 'mlx5_0'\n");
    assert!(!serde_json::to_string(&seen).unwrap().contains("verysecret"));
    assert_eq!(seen.sections[0].from.command.as_deref(), Some("ibstat"));
}

#[test]
fn hosts_of_a_parallel_shell_are_told_apart() {
    let text = "n1: CA 'mlx5_0'\nn2: CA 'mlx5_0'\nn1: \tPort 1:\nn2: \tPort 1:\nn1: \t\tState: Active\nn2: \t\tState: Down\n";
    let seen = probe::recognise("x", text);
    let state = &seen.rdma.devices["mlx5_0"].ports[&1].state;
    let places: Vec<(Option<&str>, &PortState)> = state
        .readings()
        .map(|r| (r.sources[0].from.place.as_deref(), &r.value))
        .collect();
    assert_eq!(
        places,
        [
            (Some("n1"), &PortState::Active),
            (Some("n2"), &PortState::Down)
        ]
    );
}

#[test]
fn json_over_many_lines_is_known_without_its_command() {
    let text = "[ {\n    \"ifindex\": 3,\n    \"ifname\": \"mlx5_0\",\n    \"port\": 1,\n    \"state\": \"ACTIVE\",\n    \"physical_state\": \"LINK_UP\",\n    \"netdev\": \"ib0\"\n} ]\n";
    let seen = probe::recognise("x", text);
    assert_eq!(
        seen.rdma.devices["mlx5_0"].ports[&1].netdev.value(),
        Some(&Some("ib0".to_owned()))
    );
    let cut = probe::recognise("x", text.rsplit_once("\"netdev\"").unwrap().0);
    assert!(matches!(cut.sections[0].completeness, Completeness::Cut(_)));
}

#[test]
fn links_of_devices_are_known_without_a_command() {
    let text = "lrwxrwxrwx 1 root root 0 Jan  1 00:00 mlx5_0 -> ../../devices/pci0000:00/0000:00:06.0/0000:01:00.0/infiniband/mlx5_0\n\
        lrwxrwxrwx 1 root root 0 Jan  1 00:00 rxe0 -> ../../devices/virtual/infiniband/rxe0\n";
    let seen = probe::recognise("x", text);
    assert_eq!(
        seen.rdma.devices["mlx5_0"].pci.value().unwrap(),
        "0000:01:00.0"
    );
    assert_eq!(
        seen.rdma.devices["rxe0"].function.value(),
        Some(&Function::Software)
    );
}

#[test]
fn a_filtered_list_of_transports_says_nothing_about_dmabuf() {
    let text = "# Memory domain: mlx5_0\n#      Transport: rc_verbs\n#         Device: mlx5_0:1\n";
    let seen = probe::recognise("x", text);
    let resources = &seen.software.ucx_resources[0];
    assert!(resources.cut);
    assert_eq!(resources.domains[0].registers_dmabuf(), None);
}
