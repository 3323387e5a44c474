//! What outputs of tools do not mean: things that look like a fault, or like proof, and are neither.
//!
//! The texts are written for these tests in the formats of the tools; none of them is anyone's.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a broken test should stop"
)]

use checks::{NodeFacts, judge_node};
use model::{Report, Role, Status};

fn judge_as(texts: &[&str], role: Option<Role>) -> Report {
    let named: Vec<(String, &[u8])> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| (format!("output-{n}.txt"), text.as_bytes()))
        .collect();
    let facts = NodeFacts {
        observation: probe::recognise_all(named.iter().map(|(n, t)| (n.as_str(), *t))),
        role,
        saved: true,
        ..NodeFacts::default()
    };
    judge_node("node", &facts, Vec::new())
}

fn judge(texts: &[&str]) -> Report {
    judge_as(texts, None)
}

/// Causes of failures and warnings.
fn told(report: &Report) -> Vec<&str> {
    report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
        .map(|r| r.cause.unwrap_or("?"))
        .collect()
}

#[track_caller]
fn fine(texts: &[&str]) -> Report {
    let report = judge(texts);
    assert!(told(&report).is_empty(), "{:?}", told(&report));
    assert_eq!(report.coverage.inputs_not_read, 0);
    assert!(report.counts().ok > 0);
    report
}

/// One port as `ibstat` prints it.
fn ibstat(name: &str, kind: &str, state: &str, rate: u32, lid: u32, layer: &str) -> String {
    let (phys, sm) = match (state, layer) {
        ("Down", _) => ("Polling", 0),
        (_, "Ethernet") => ("LinkUp", 0),
        _ => ("LinkUp", 1),
    };
    format!(
        "CA '{name}'\n\tCA type: {kind}\n\tNumber of ports: 1\n\tFirmware version: 28.41.1000\n\tHardware version: 0\n\tNode GUID: 0x0000000000000001\n\tSystem image GUID: 0x0000000000000001\n\tPort 1:\n\t\tState: {state}\n\t\tPhysical state: {phys}\n\t\tRate: {rate}\n\t\tBase lid: {lid}\n\t\tLMC: 0\n\t\tSM lid: {sm}\n\t\tCapability mask: 0xa751e848\n\t\tPort GUID: 0x0000000000000002\n\t\tLink layer: {layer}\n"
    )
}

const GIDS: &str = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------\t---\t---\n";

#[test]
fn devices_of_the_host_do_not_make_a_pod_ready() {
    // sysfs of the host shows active ports to every pod of it.
    let sysfs = "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE\n/sys/class/infiniband/mlx5_0/ports/1/link_layer:InfiniBand\n/sys/class/infiniband/mlx5_0/ports/1/rate:400 Gb/sec (4X NDR)\n";
    let list = "$ rdma link\nlink mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 3 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP\n";
    let none =
        "$ ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n";
    for host in [sysfs, list] {
        let report = judge_as(&[host, none], Some(Role::Prefill));
        assert_eq!(told(&report), ["dev-infiniband-missing"]);
    }
    // Modules are those of the host too, and are the right ones: the kernel is shared.
    let report = judge(&[
        "$ lsmod\nModule                  Size  Used by\nnvidia_peermem         16384  0\nmlx5_ib               577536  0\n",
    ]);
    assert!(told(&report).is_empty());
    assert!(report.results.iter().any(|r| r.status == Status::Ok));
}

#[test]
fn without_lsmod_modules_are_unknown() {
    // With a kernel this old, a module that is known to be missing is a warning.
    let old = "$ uname -r\n5.4.0-150-generic\n";
    let nvidia = "/sys/module/nvidia/version:580.65.06\n";
    for text in [
        "$ lsmod\nbash: lsmod: command not found\n",
        "$ cat /proc/modules\ncat: /proc/modules: No such file or directory\n",
        "$ lsmod | grep nvidia_peermem\n",
    ] {
        let report = judge(&[old, nvidia, text]);
        assert!(told(&report).is_empty(), "{text}: {:?}", told(&report));
    }
    // The whole list would have told.
    let report = judge(&[
        old,
        nvidia,
        "$ lsmod\nModule                  Size  Used by\nnvidia              56598528  0\nmlx5_ib               577536  0\n",
    ]);
    assert_eq!(told(&report), ["gdr-peermem-missing"]);
    let module = "/sys/module/nvidia_peermem/refcnt:0\n";
    let report = fine(&["$ lsmod\nbash: lsmod: command not found\n", module]);
    assert!(
        report
            .results
            .iter()
            .any(|r| r.detail.contains("nvidia_peermem is loaded"))
    );
}

#[test]
fn an_empty_answer_of_ibstat_is_never_ok() {
    let report = judge(&["$ ibstat\n$ uname -r\n6.8.0-1012\n"]);
    assert!(
        report
            .results
            .iter()
            .all(|r| r.status != Status::Ok || r.name != "node/rdma-devices")
    );
    let report = judge_as(&["$ ibstat\n$ uname -r\n6.8.0-1012\n"], Some(Role::Decode));
    assert_eq!(told(&report), ["ibstat-silent-empty"]);
}

#[test]
fn an_active_front_end_does_not_stand_for_the_fabric() {
    let front = ibstat("mlx5_2", "MT4117", "Active", 10, 0, "Ethernet");
    for (state, cause) in [
        ("Down", "ib-port-down-polling"),
        ("Initializing", "ib-port-init-no-sm"),
    ] {
        let compute: String = ["mlx5_0", "mlx5_1"]
            .iter()
            .map(|name| {
                ibstat(name, "MT4129", state, 10, 65535, "InfiniBand")
                    .replace("SM lid: 1", "SM lid: 0")
            })
            .collect();
        let report = judge(&[&format!("{compute}{front}")]);
        assert!(
            report
                .results
                .iter()
                .any(|r| r.status == Status::Fail && r.cause == Some(cause)),
            "{state}: {:?}",
            told(&report)
        );
    }
}

#[test]
fn ib_interfaces_that_are_down_say_nothing() {
    let ib = ibstat("mlx5_0", "MT4129", "Active", 400, 17, "InfiniBand");
    fine(&["mlx5_0 port 1 ==> ibp26s0 (Down)\n", &ib]);
}

#[test]
fn a_lid_of_zero_is_normal_on_ethernet() {
    fine(&[
        &ibstat("mlx5_0", "MT4129", "Active", 400, 0, "Ethernet"),
        &format!(
            "{GIDS}mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t10.0.0.1\tv2\tens1\nn_gids_found=1\n"
        ),
    ]);
}

#[test]
fn global_ipv6_gids_are_routable() {
    for gid in [
        "fd00:0000:0000:0001:0000:0000:0000:0002",
        "2001:0db8:0000:0001:0000:0000:0000:0002",
    ] {
        let report = fine(&[
            &ibstat("mlx5_0", "MT4129", "Active", 400, 0, "Ethernet"),
            &format!(
                "{GIDS}mlx5_0\t1\t0\tfe80:0000:0000:0000:0e42:a1ff:fe00:0001\t\tv2\tens1\nmlx5_0\t1\t4\t{gid}\t\tv2\tens1\nn_gids_found=2\n"
            ),
        ]);
        assert!(report.results.iter().any(|r| r.detail.contains("index 4")));
    }
}

#[test]
fn a_bond_is_judged_by_its_fabric() {
    let bond = ibstat("mlx5_bond_0", "MT4125", "Active", 200, 0, "Ethernet");
    let gids = format!(
        "{GIDS}mlx5_bond_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a00:0001\t10.0.0.1\tv2\tbond0\nn_gids_found=1\n"
    );
    fine(&[&bond, &gids]);
    // Beside InfiniBand it is the front end.
    let ib = ibstat("mlx5_0", "MT4129", "Active", 400, 17, "InfiniBand");
    let pick = "[1700000000.000001] [node-a:77 :0]     parser.c:1998 UCX  INFO  UCX_* env variables: UCX_NET_DEVICES=mlx5_bond_0:1\n";
    let report = judge(&[&bond, &gids, &ib, pick]);
    assert_eq!(told(&report), ["ucx-netdev-storage-or-mgmt-nic"]);
}

#[test]
fn few_gpus_and_all_cards_are_no_fault() {
    let mut text = "\tGPU0\tNIC0\tNIC1\tNIC2\tNIC3\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPIX\tNODE\tSYS\tSYS\t0-47\t0\t\tN/A\n".to_owned();
    for row in [
        "NIC0\tPIX\t X \tNODE\tSYS\tSYS",
        "NIC1\tNODE\tNODE\t X \tSYS\tSYS",
        "NIC2\tSYS\tSYS\tSYS\t X \tNODE",
        "NIC3\tSYS\tSYS\tSYS\tNODE\t X ",
    ] {
        text.push_str(row);
        text.push('\n');
    }
    text.push_str(
        "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n  NIC2: mlx5_2\n  NIC3: mlx5_3\n",
    );
    let report = fine(&[&text]);
    assert!(report.results.iter().any(|r| r.detail.contains("mlx5_0")));
}

#[test]
fn numbers_of_links_are_compared_within_the_matrix() {
    // The number differs from board to board; none of them is right or wrong.
    for links in ["NV4", "NV6", "NV8", "NV12", "NV18"] {
        fine(&[&format!(
            "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t{links}\tPIX\t0-47\t0\t\tN/A\nGPU1\t{links}\t X \tPIX\t0-47\t0\t\tN/A\nNIC0\tPIX\tPIX\t X \t\t\t\t\n\nNIC Legend:\n\n  NIC0: mlx5_0\n"
        )]);
    }
}

#[test]
fn zero_guids_and_still_counters_of_efa_are_normal() {
    let efa = "hca_id:\trdmap0s6\n\ttransport:\t\t\tunspecified (4)\n\tfw_ver:\t\t\t\t0.0.0.0\n\tnode_guid:\t\t\t0000:0000:0000:0000\n\tsys_image_guid:\t\t\t0000:0000:0000:0000\n\tvendor_id:\t\t\t0x1d0f\n\tvendor_part_id:\t\t\t61344\n\thw_ver:\t\t\t\t0xEFA0\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x01\n\t\t\tlink_layer:\t\tUnspecified\n\n";
    let still = "/sys/class/infiniband/rdmap0s6/ports/1/hw_counters/rdma_write_bytes:0\n";
    fine(&[efa, still, still]);
}
