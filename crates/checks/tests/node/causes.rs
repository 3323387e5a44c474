//! Every cause of `node` about RDMA, limits and fabric logs: outputs that show it, and outputs where it stays quiet.
//!
//! The texts are written for these tests in the formats of the tools; none of them is anyone's.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use checks::{NodeFacts, judge_node};
use model::observation::{Origin, Provenance, Tool};
use model::{CheckResult, Readiness, Report, Role, Status};

struct Case {
    cause: &'static str,
    status: Status,
    shows: Vec<String>,
    quiet: Vec<String>,
    role: Option<Role>,
}

fn case(cause: &'static str, status: Status, shows: &[&str], quiet: &[&str]) -> Case {
    let own = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    Case {
        cause,
        status,
        shows: own(shows),
        quiet: own(quiet),
        role: None,
    }
}

impl Case {
    fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }
}

fn judge(texts: &[String], role: Option<Role>) -> Report {
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

fn with<'r>(report: &'r Report, cause: &str) -> Vec<&'r CheckResult> {
    let note = checks::cause(cause).map(|(_, c)| c.why);
    report
        .results
        .iter()
        .filter(|r| {
            r.cause == Some(cause)
                || r.note
                    .as_deref()
                    .is_some_and(|n| note.is_some_and(|why| n.contains(why)))
        })
        .collect()
}

/// One port as `ibstat` prints it.
#[derive(Clone, Copy)]
struct Ib {
    name: &'static str,
    kind: &'static str,
    state: &'static str,
    phys: &'static str,
    rate: u32,
    lid: u32,
    sm: u32,
    layer: &'static str,
}

const NDR: Ib = Ib {
    name: "mlx5_0",
    kind: "MT4129",
    state: "Active",
    phys: "LinkUp",
    rate: 400,
    lid: 17,
    sm: 1,
    layer: "InfiniBand",
};

fn ibstat(ports: &[Ib]) -> String {
    let mut out = String::new();
    for (n, p) in ports.iter().enumerate() {
        write!(
            out,
            "CA '{}'\n\tCA type: {}\n\tNumber of ports: 1\n\tFirmware version: 28.41.1000\n\tHardware version: 0\n\tNode GUID: 0x00000000000000{n:02x}\n\tSystem image GUID: 0x00000000000000{n:02x}\n\tPort 1:\n\t\tState: {}\n\t\tPhysical state: {}\n\t\tRate: {}\n\t\tBase lid: {}\n\t\tLMC: 0\n\t\tSM lid: {}\n\t\tCapability mask: 0xa751e848\n\t\tPort GUID: 0x00000000000001{n:02x}\n\t\tLink layer: {}\n",
            p.name, p.kind, p.state, p.phys, p.rate, p.lid, p.sm, p.layer
        )
        .unwrap();
    }
    out
}

/// Four InfiniBand ports, the last of them as given.
fn four(last: Ib) -> String {
    ibstat(&[
        NDR,
        Ib {
            name: "mlx5_1",
            ..NDR
        },
        Ib {
            name: "mlx5_2",
            ..NDR
        },
        Ib {
            name: "mlx5_3",
            ..last
        },
    ])
}

/// Four ports, two of them as given.
fn two_off(off: Ib) -> String {
    ibstat(&[
        NDR,
        Ib {
            name: "mlx5_1",
            ..NDR
        },
        Ib {
            name: "mlx5_2",
            ..off
        },
        Ib {
            name: "mlx5_3",
            ..off
        },
    ])
}

/// Active InfiniBand ports with these rates, as `ibstatus` prints them.
fn ibstatus(rates: &[&str]) -> String {
    rates.iter().enumerate().fold(String::new(), |mut out, (n, rate)| {
        write!(
            out,
            "Infiniband device 'mlx5_{n}' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:0002:c903:0000:000{n}\n\tbase lid:\t 0x1\n\tsm lid:\t\t 0x1\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n\trate:\t\t {rate}\n\tlink_layer:\t InfiniBand\n\n"
        )
        .unwrap();
        out
    })
}

/// UCX prints the settings that it reads.
fn setting(text: &str) -> String {
    format!(
        "[1700000000.000001] [node-a:77 :0]     parser.c:1998 UCX  INFO  UCX_* env variables: {text}\n"
    )
}

fn gids(rows: &[(&str, u32, &str, &str, &str)]) -> String {
    let mut out = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4\t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------\t---\t---\n".to_owned();
    for (device, index, gid, ip, version) in rows {
        writeln!(out, "{device}\t1\t{index}\t{gid}\t{ip}\t{version}\tens1").unwrap();
    }
    writeln!(out, "n_gids_found={}", rows.len()).unwrap();
    out
}

const LOCAL: &str = "fe80:0000:0000:0000:0e42:a1ff:fe00:0001";
const MAPPED: &str = "0000:0000:0000:0000:0000:ffff:0a00:0001";

fn roce() -> Ib {
    Ib {
        lid: 0,
        sm: 0,
        layer: "Ethernet",
        ..NDR
    }
}

const ROCE_LINK: &str =
    "$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\n";
const BARE_LINK: &str = "$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP\n";
const LS_DEVICES: &str = "$ ls /sys/class/infiniband\nmlx5_0  mlx5_1\n";
const NODE_LIST: &str = "$ ls /dev/infiniband\nrdma_cm  uverbs0  uverbs1\n";
const EFA: &str = "hca_id:\trdmap0s6\n\ttransport:\t\t\tunspecified (4)\n\tfw_ver:\t\t\t\t0.0.0.0\n\tnode_guid:\t\t\t0000:0000:0000:0000\n\tsys_image_guid:\t\t\t0000:0000:0000:0000\n\tvendor_id:\t\t\t0x1d0f\n\tvendor_part_id:\t\t\t61344\n\thw_ver:\t\t\t\t0xEFA0\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tport_lmc:\t\t0x01\n\t\t\tlink_layer:\t\tUnspecified\n\n";
const FI_EFA: &str = "$ fi_info -p efa\nprovider: efa\n    fabric: efa\n    domain: rdmap0s6-rdm\n    version: 204.0\n    type: FI_EP_RDM\n    protocol: FI_PROTO_EFA\n";

fn counter(name: &str, values: &[u64]) -> String {
    values.iter().fold(String::new(), |mut out, v| {
        writeln!(out, "/sys/class/infiniband/mlx5_0/ports/1/{name}:{v}").unwrap();
        out
    })
}

fn limits(soft: &str, hard: &str) -> String {
    format!(
        "$ cat /proc/self/limits\nLimit                     Soft Limit           Hard Limit           Units     \nMax open files            1048576              1048576              files     \nMax locked memory         {soft:<20} {hard:<20} bytes     \n"
    )
}

fn status(uid: u32, capabilities: &str) -> String {
    format!(
        "$ cat /proc/self/status\nName:\tpython3\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities}\n"
    )
}

const NO_CAPS: &str = "0000000000000000";
const WITH_IPC_LOCK: &str = "0000000000004000";

/// GPU0 is near mlx5_0, and mlx5_1 is on the other socket.
const MATRIX: &str = "\tGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPIX\tSYS\t0-47\t0\t\tN/A\nNIC0\tPIX\t X \tSYS\t\t\t\t\nNIC1\tSYS\tSYS\t X \t\t\t\t\n\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

fn device_cases() -> Vec<Case> {
    use Status::{Fail, Warn};
    let two = ibstat(&[
        NDR,
        Ib {
            name: "mlx5_1",
            ..NDR
        },
    ]);
    let abi = "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1) for device /sys/class/infiniband/bnxt_re0\n";
    let opened = "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_id:\t\t\t0x02c9\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tsm_lid:\t\t\t1\n\t\t\tport_lid:\t\t4\n\t\t\tlink_layer:\t\tInfiniBand\n";
    vec![
        case("rdma-no-device", Fail, &["$ ibv_devinfo\nNo IB devices found\n"], &[&two]).role(Role::Prefill),
        case("ibstat-silent-empty", Fail, &["$ ibstat\n$ uname -r\n6.8.0-1012\n"], &["$ ibstat\n$ ibv_devices\n    device          \t   node GUID\n    ------          \t----------------\n    mlx5_0          \t0000000000000001\n"]).role(Role::Decode),
        case(
            "ibstat-partial-ibpanic",
            Warn,
            &[&format!("{two}ibpanic: [77] main: stat of IB device 'mlx5_2' failed: No such file or directory\n")],
            &[&two],
        ),
        case("soft-roce", Warn, &["$ rdma link\nlink rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"], &[ROCE_LINK]),
        case(
            "soft-roce",
            Warn,
            &["$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\nlink rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"],
            &[
                "$ rdma link\nlink mlx5_0/1 state ACTIVE physical_state LINK_UP netdev ens1\nlink rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0\n",
                &setting("UCX_NET_DEVICES=mlx5_0:1"),
            ],
        ),
        case(
            "image-provider-abi",
            Fail,
            &[&format!("{abi}No IB devices found\n")],
            &[&format!("{abi}{opened}")],
        ),
        case(
            "verbs-provider-not-loadable",
            Fail,
            &[&two, "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open shared object file: No such file or directory\n"],
            &[&two, "libibverbs: Warning: couldn't load driver 'libefa-rdmav34.so': libefa-rdmav34.so: cannot open shared object file: No such file or directory\n"],
        ),
        case(
            "dual-port-same-asic",
            Status::Ok,
            &["$ ls -l /sys/class/infiniband\ntotal 0\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 mlx5_0 -> ../../devices/pci0000:15/0000:15:01.0/0000:18:00.0/infiniband/mlx5_0\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 mlx5_1 -> ../../devices/pci0000:15/0000:15:01.0/0000:18:00.1/infiniband/mlx5_1\n"],
            &["$ ls -l /sys/class/infiniband\ntotal 0\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 mlx5_0 -> ../../devices/pci0000:15/0000:15:01.0/0000:18:00.0/infiniband/mlx5_0\nlrwxrwxrwx 1 root root 0 Jan  1 00:00 mlx5_1 -> ../../devices/pci0000:15/0000:15:03.0/0000:2a:00.0/infiniband/mlx5_1\n"],
        ),
        case(
            "verbs-provider-not-loadable",
            Warn,
            &["libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open shared object file: No such file or directory\n"],
            // UCX uses RDMA all the same; and a provider of hardware that carries no KV.
            &[
                "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open shared object file: No such file or directory\n\
                 [1700000000.000001] [a:7    :0]   ucp_worker.c:1855 UCX  INFO    agent inter-node cfg#1 rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1)\n\
                 libibverbs: Warning: couldn't load driver 'libcxgb4-rdmav34.so': libcxgb4-rdmav34.so: cannot open shared object file: No such file or directory\n",
            ],
        ),
        case("dev-infiniband-missing", Fail, &[LS_DEVICES, "$ ls /dev/infiniband\nls: cannot access '/dev/infiniband': No such file or directory\n"], &[LS_DEVICES, NODE_LIST]),
        case("dev-infiniband-missing", Fail, &[BARE_LINK, "$ ibv_devinfo\nNo IB devices found\n"], &[BARE_LINK, opened]),
        case(
            "dev-infiniband-partial",
            Fail,
            &[
                LS_DEVICES,
                "$ ls /dev/infiniband\nrdma_cm  uverbs0\n",
                "/sys/class/infiniband_verbs/uverbs0/ibdev:mlx5_0\n/sys/class/infiniband_verbs/uverbs1/ibdev:mlx5_1\n",
                &setting("UCX_NET_DEVICES=mlx5_1:1"),
            ],
            &[
                LS_DEVICES,
                "$ ls /dev/infiniband\nrdma_cm  uverbs0\n",
                "/sys/class/infiniband_verbs/uverbs0/ibdev:mlx5_0\n/sys/class/infiniband_verbs/uverbs1/ibdev:mlx5_1\n",
                &setting("UCX_NET_DEVICES=mlx5_0:1"),
            ],
        ),
        case(
            "uverbs-permission",
            Fail,
            &["$ ls -l /dev/infiniband\ntotal 0\ncrw------- 1 root root 231, 192 Jan  1 00:00 uverbs0\n", &status(1000, NO_CAPS)],
            &["$ ls -l /dev/infiniband\ntotal 0\ncrw-rw-rw- 1 root root 231, 192 Jan  1 00:00 uverbs0\n", &status(1000, NO_CAPS)],
        ),
        case("rdma-netns-exclusive", Warn, &["$ rdma system\nnetns exclusive\n", "$ ibv_devinfo\nNo IB devices found\n"], &["$ rdma system\nnetns exclusive\n", &two]),
    ]
}

fn port_cases() -> Vec<Case> {
    use Status::{Fail, Ok, Warn};
    let polling = Ib {
        state: "Down",
        phys: "Polling",
        rate: 10,
        ..NDR
    };
    let disabled = Ib {
        state: "Down",
        phys: "Disabled",
        rate: 10,
        ..NDR
    };
    let init = Ib {
        state: "Initializing",
        phys: "LinkUp",
        lid: 65535,
        sm: 0,
        ..NDR
    };
    let armed = Ib {
        state: "Armed",
        ..NDR
    };
    let vf = Ib {
        kind: "MT4124",
        state: "Down",
        phys: "LinkUp",
        lid: 65535,
        ..NDR
    };
    let slow = |rate| Ib { rate, ..NDR };
    let old = |state: &str| {
        format!(
            "link mlx5_7/1 subnet_prefix fe80:0000:0000:0000 lid 34 sm_lid 1 lmc 0 state {state} physical_state LINK_UP\n"
        )
    };
    vec![
        case(
            "ib-port-down-polling",
            Fail,
            &[&ibstat(&[polling])],
            &[&ibstat(&[
                NDR,
                Ib {
                    name: "mlx5_1",
                    kind: "MT4125",
                    layer: "Ethernet",
                    ..polling
                },
            ])],
        ),
        case(
            "ib-port-down-polling",
            Warn,
            &[&four(polling)],
            &[&four(NDR)],
        ),
        // Both compute ports are down; that the front end is up does not help.
        case(
            "ib-port-down-polling",
            Fail,
            &[&ibstat(&[
                polling,
                Ib {
                    name: "mlx5_1",
                    ..polling
                },
                Ib {
                    name: "mlx5_2",
                    kind: "MT4117",
                    rate: 25,
                    ..roce()
                },
            ])],
            &[&ibstat(&[
                NDR,
                Ib {
                    name: "mlx5_1",
                    ..NDR
                },
                Ib {
                    name: "mlx5_2",
                    kind: "MT4117",
                    rate: 25,
                    state: "Down",
                    phys: "Polling",
                    ..roce()
                },
            ])],
        ),
        case(
            "ib-port-disabled",
            Fail,
            &[&ibstat(&[disabled])],
            &[&two_off(disabled)],
        ),
        // One among many is forgotten, or its interface went down.
        case(
            "ib-port-disabled",
            Warn,
            &[&four(disabled)],
            &[&two_off(disabled)],
        ),
        case(
            "ib-port-disabled",
            Warn,
            &[&four(Ib {
                layer: "Ethernet",
                ..disabled
            })
            .replace("InfiniBand", "Ethernet")],
            // A port of another driver is no peer.
            &[&four(Ib { ..disabled }).replace("mlx5_3", "irdma0")],
        ),
        case(
            "ib-port-flapping",
            Fail,
            &[&ibstat(&[Ib {
                state: "Down",
                phys: "LinkErrorRecovery",
                ..NDR
            }])],
            &[&ibstat(&[NDR])],
        ),
        case(
            "ib-rate-degraded",
            Warn,
            &[&ibstatus(&["400 Gb/sec (4X NDR)", "200 Gb/sec (2X NDR)"])],
            &[&ibstatus(&["200 Gb/sec (2X NDR)", "200 Gb/sec (2X NDR)"])],
        ),
        case(
            "ib-rate-degraded",
            Warn,
            &[&ibstatus(&["100 Gb/sec (1X NDR)"])],
            // Ethernet counts lanes otherwise, and 4X HDR is as fast as 2X NDR.
            &[&ibstatus(&["100 Gb/sec (1X NDR)"]).replace("InfiniBand", "Ethernet")],
        ),
        case(
            "ib-rate-degraded",
            Warn,
            &[&ibstatus(&["400 Gb/sec (4X NDR)", "100 Gb/sec (1X NDR)"])],
            &[&ibstatus(&["200 Gb/sec (4X HDR)", "200 Gb/sec (2X NDR)"])],
        ),
        case(
            "ib-port-disabled",
            Fail,
            &[&four(disabled), &setting("UCX_NET_DEVICES=mlx5_3:1")],
            &[&four(disabled), &setting("UCX_NET_DEVICES=mlx5_1:1")],
        ),
        case(
            "ib-port-init-no-sm",
            Fail,
            &[&ibstat(&[init])],
            &[&ibstat(&[Ib {
                layer: "Ethernet",
                ..init
            }])],
        ),
        case(
            "ib-port-armed",
            Warn,
            &[&ibstat(&[armed])],
            &[&ibstat(&[NDR])],
        ),
        case(
            "ib-vf-guid-not-in-sm",
            Fail,
            &[&ibstat(&[vf])],
            &[&ibstat(&[
                NDR,
                Ib {
                    name: "mlx5_1",
                    ..NDR
                },
                Ib {
                    name: "mlx5_2",
                    ..vf
                },
            ])],
        ),
        case(
            "ib-port-flapping",
            Warn,
            &[&format!(
                "$ rdma link\n{}{}{}",
                old("DOWN"),
                old("INIT"),
                old("ACTIVE")
            )],
            &[&format!("$ rdma link\n{}{}", old("ACTIVE"), old("ACTIVE"))],
        ),
        case(
            "ib-rate-degraded",
            Warn,
            &[&four(slow(200))],
            &[&four(Ib {
                state: "Down",
                phys: "Disabled",
                ..slow(10)
            })],
        ),
        // Storage cards of another kind are slower on purpose.
        case(
            "ib-rate-degraded",
            Warn,
            &[&four(slow(100))],
            &[&four(Ib {
                kind: "MT4123",
                ..slow(200)
            })],
        ),
        case(
            "ib-rate-low-absolute",
            Warn,
            &[&ibstat(&[Ib { rate: 25, ..roce() }])],
            &[&ibstat(&[
                NDR,
                Ib {
                    name: "mlx5_1",
                    rate: 25,
                    kind: "MT4117",
                    ..roce()
                },
            ])],
        ),
        // Old kernels print 10 for InfiniBand speeds that they do not know.
        case(
            "ib-rate-low-absolute",
            Warn,
            &[&ibstat(&[Ib { rate: 10, ..roce() }])],
            &[&ibstat(&[slow(10)])],
        ),
        case(
            "roce-mtu-1500",
            Ok,
            &[
                "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_id:\t\t\t0x02c9\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tlink_layer:\t\tEthernet\n",
                &ibstat(&[roce()]),
            ],
            &[
                "hca_id:\tmlx5_0\n\ttransport:\t\t\tInfiniBand (0)\n\tvendor_id:\t\t\t0x02c9\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t4096 (5)\n\t\t\tsm_lid:\t\t\t0\n\t\t\tport_lid:\t\t0\n\t\t\tlink_layer:\t\tEthernet\n",
                &ibstat(&[roce()]),
            ],
        ),
        case(
            "ib-pkey-limited",
            Warn,
            &[
                &ibstat(&[NDR]),
                &counter("pkeys/0", &[0x7fff]),
                &counter("pkeys/1", &[0]),
            ],
            &[
                &ibstat(&[NDR]),
                &counter("pkeys/0", &[0x7fff]),
                &counter("pkeys/1", &[0xffff]),
            ],
        ),
        case(
            "ib-error-counters",
            Warn,
            &[
                &counter("counters/symbol_error", &[4]),
                &counter("counters/symbol_error", &[9]),
            ],
            &[&counter("counters/symbol_error", &[255])],
        ),
        case(
            "roce-pfc-ecn",
            Warn,
            &[
                &counter("hw_counters/out_of_sequence", &[0]),
                &counter("hw_counters/out_of_sequence", &[12]),
            ],
            &[
                &counter("hw_counters/out_of_sequence", &[12]),
                &counter("hw_counters/out_of_sequence", &[12]),
            ],
        ),
    ]
}

fn gid_cases() -> Vec<Case> {
    use Status::{Fail, Warn};
    let local = gids(&[
        ("mlx5_0", 0, LOCAL, "", "v1"),
        ("mlx5_0", 1, LOCAL, "", "v2"),
    ]);
    let good = gids(&[
        ("mlx5_0", 0, LOCAL, "", "v1"),
        ("mlx5_0", 1, LOCAL, "", "v2"),
        ("mlx5_0", 2, MAPPED, "10.0.0.1", "v1"),
        ("mlx5_0", 3, MAPPED, "10.0.0.1", "v2"),
    ]);
    let active = ibstat(&[roce()]);
    vec![
        case("roce-no-netdev-in-pod", Fail, &[BARE_LINK], &[ROCE_LINK]),
        // InfiniBand and EFA need no interface.
        case(
            "roce-no-netdev-in-pod",
            Fail,
            &[BARE_LINK],
            &[
                "$ rdma link\nlink mlx5_0/1 subnet_prefix fe80:0000:0000:0000 lid 3 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP\nlink rdmap0s6/1 state ACTIVE physical_state LINK_UP\n",
            ],
        ),
        case(
            "roce-no-netdev-in-pod",
            Fail,
            &[&gids(&[])],
            &[&gids(&[]), EFA],
        )
        .role(Role::Prefill),
        case(
            "roce-only-link-local-gid",
            Warn,
            &[&local, &active],
            &[&good, &active],
        ),
        case(
            "roce-gid-two-ips",
            Status::Ok,
            &[
                &gids(&[
                    ("mlx5_0", 3, MAPPED, "10.0.0.1", "v2"),
                    (
                        "mlx5_0",
                        5,
                        "0000:0000:0000:0000:0000:ffff:0a00:0102",
                        "10.0.1.2",
                        "v2",
                    ),
                ]),
                &active,
            ],
            &[&good, &active],
        ),
        case(
            "gid-index-unusable",
            Fail,
            &[&good, &setting("UCX_IB_GID_INDEX=5")],
            &[&good, &setting("UCX_IB_GID_INDEX=3")],
        ),
        case(
            "gid-index-unusable",
            Fail,
            &[&good, &setting("UCX_IB_GID_INDEX=1")],
            &[&good, &setting("UCX_IB_GID_INDEX=auto")],
        ),
    ]
}

fn selection_cases() -> Vec<Case> {
    use Status::{Fail, Warn};
    let two = ibstat(&[
        NDR,
        Ib {
            name: "mlx5_1",
            ..NDR
        },
    ]);
    let mixed = ibstat(&[
        NDR,
        Ib {
            name: "mlx5_1",
            kind: "MT4125",
            rate: 100,
            ..roce()
        },
    ]);
    let azure = ibstat(&[
        NDR,
        Ib {
            name: "mlx5_an0",
            kind: "MT4118",
            rate: 100,
            ..roce()
        },
    ]);
    let pick = |value: &str| setting(&format!("UCX_NET_DEVICES={value}"));
    let lpf = "[Nov 03 2025 04:05:06] [INFO] found NVSwitch LPF: device=mlx5_1 port=1\n";
    vec![
        case(
            "selected-device-missing",
            Fail,
            &[&two, &pick("mlx5_5:1")],
            &[&two, &pick("mlx5_1:1")],
        ),
        case(
            "selected-device-missing",
            Warn,
            &[&two, &pick("mlx5_0:1,mlx5_5:1")],
            &[&two, &pick("mlx5_[0-1]:1")],
        ),
        case(
            "selected-device-missing",
            Fail,
            &[&two, &pick("mlx5_7")],
            &[&two, &pick("^mlx5_7:1")],
        ),
        case(
            "ucx-netdev-storage-or-mgmt-nic",
            Warn,
            &[&mixed, &pick("mlx5_1:1")],
            &[&mixed, &pick("mlx5_0:1")],
        ),
        case(
            "ucx-netdev-azure-an-device",
            Warn,
            &[&azure, &pick("mlx5_an0:1")],
            &[&azure, &pick("mlx5_0:1")],
        ),
        case(
            "ucx-netdev-eth0",
            Fail,
            &[&two, &pick("eth0")],
            &[&two, &pick("eth0,mlx5_0:1")],
        ),
        case(
            "ucx-netdev-loopback",
            Fail,
            &[&two, &pick("lo")],
            &[&two, &pick("^lo")],
        ),
        case(
            "ucx-netdev-nccl-syntax",
            Fail,
            &[&two, &pick("=mlx5_0")],
            &[&two, &pick("mlx5_0:1")],
        ),
        case(
            "ucx-netdev-ib-roce-mixed",
            Warn,
            &[&mixed, &pick("mlx5_0:1,mlx5_1:1")],
            &[&mixed, &pick("^mlx5_9:1")],
        ),
        // A port that is down takes no part.
        case(
            "ucx-netdev-ib-roce-mixed",
            Warn,
            &[&mixed, &pick("mlx5_0:1,mlx5_1:1")],
            &[
                &ibstat(&[
                    NDR,
                    Ib {
                        name: "mlx5_1",
                        kind: "MT4125",
                        state: "Down",
                        phys: "Disabled",
                        ..roce()
                    },
                ]),
                &pick("mlx5_0:1,mlx5_1:1"),
            ],
        ),
        case(
            "b200-nvswitch-lpf-as-nic",
            Warn,
            &[&two, lpf, &pick("mlx5_1:1")],
            &[&two, lpf, &pick("mlx5_0:1")],
        ),
        case(
            "b200-nvswitch-lpf-as-nic",
            Warn,
            &[&two, lpf, &pick("mlx5_0:1,mlx5_1:1")],
            &[&two, &pick("mlx5_1:1")],
        ),
        // The virtual card of a cloud's front end beside InfiniBand.
        case(
            "ucx-netdev-storage-or-mgmt-nic",
            Warn,
            &[
                &four(Ib {
                    kind: "MT4126",
                    rate: 100,
                    ..roce()
                }),
                &pick("mlx5_3:1"),
            ],
            &[
                &four(Ib {
                    kind: "MT4126",
                    rate: 100,
                    ..roce()
                }),
                &pick("mlx5_0:1"),
            ],
        ),
        case(
            "topo-far-numa-selected",
            Warn,
            &[&two, MATRIX, &pick("mlx5_1:1")],
            &[&two, MATRIX, &pick("mlx5_0:1")],
        ),
    ]
}

fn limit_cases() -> Vec<Case> {
    use Status::{Fail, Ok, Warn};
    vec![
        case(
            "memlock-low",
            Warn,
            &["$ ulimit -l\n64\n"],
            &["$ ulimit -l\nunlimited\n"],
        ),
        case(
            "memlock-low",
            Fail,
            &[&limits("65536", "65536"), &status(0, NO_CAPS)],
            &[&limits("65536", "65536"), &status(0, WITH_IPC_LOCK)],
        ),
        case(
            "memlock-low",
            Fail,
            &[
                "[1700000000.000001] [node-a:77 :0]       ib_md.c:290  UCX  ERROR ibv_reg_mr(address=0x7f0000000000, length=65536, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)\n",
            ],
            &["$ ulimit -l\nunlimited\n"],
        ),
        case(
            "ipc-lock-nonroot-inert",
            Fail,
            &[&limits("65536", "65536"), &status(1000, NO_CAPS)],
            &[&limits("unlimited", "unlimited"), &status(1000, NO_CAPS)],
        ),
        case(
            "rdma-cgroup-limit",
            Fail,
            &["$ cat /sys/fs/cgroup/rdma.max\nmlx5_0 hca_handle=0 hca_object=2000\n"],
            &["$ cat /sys/fs/cgroup/rdma.max\nmlx5_0 hca_handle=max hca_object=2000\n"],
        ),
        case(
            "nofile-low",
            Ok,
            &["$ ulimit -n\n1024\n"],
            &["$ ulimit -n\n1048576\n"],
        ),
    ]
}

fn efa_cases() -> Vec<Case> {
    use Status::{Fail, Warn};
    let controller = "$ rdma link\nlink ibp115s0f0/1 subnet_prefix fe80:0000:0000:0000 lid 3 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP\n";
    vec![
        case(
            "efa-provider-no-device",
            Fail,
            &[
                EFA,
                "$ fi_info -p efa\nfi_getinfo: -61 (No data available)\n",
            ],
            &[EFA, FI_EFA],
        ),
        case(
            "efa-plugin-counts-nvlink-controllers",
            Warn,
            &[EFA, controller],
            &[controller],
        ),
        case(
            "efa-rails-mismatch",
            Fail,
            &[
                "E0102 03:04:05.000001     77 nixl_serdes.cpp:1] Deserialization of tag dest_data_ep_8 failed\n",
            ],
            &["I0102 03:04:05.000001     77 libfabric_common.cpp:1] Discovered 8 efa devices\n"],
        ),
        case(
            "efa-64k-page",
            Fail,
            &[
                "libfabric:77:1700000000::efa:mr:efa_mr_reg_impl():900<warn> fi_mr_reg failed: Bad address\n",
            ],
            &["$ ulimit -l\nunlimited\n"],
        ),
        case(
            "libfabric-plugin-not-loaded",
            Fail,
            &[
                "I0102 03:04:05.000001     77 nixl_plugin_manager.cpp:1] Failed to load plugin from /opt/nixl/libplugin_LIBFABRIC.so: libcudart.so.12: cannot open shared object file: No such file or directory\nE0102 03:04:05.000001     77 nixl_agent.cpp:1] createBackend: unsupported backend 'LIBFABRIC'\n",
            ],
            &[
                "I0102 03:04:05.000001     77 nixl_plugin_manager.cpp:1] Failed to load plugin from /opt/nixl/libplugin_LIBFABRIC.so: libcudart.so.12: cannot open shared object file: No such file or directory\n",
            ],
        ),
    ]
}

fn log_cases() -> Vec<Case> {
    use Status::{Fail, Warn};
    let ucx = |file: &str, text: &str| format!("[node-a:77:0:77] {file}  {text}\n");
    let retry = |link: &str| {
        ucx(
            "ib_mlx5_log.c:143",
            &format!(
                "Transport retry count exceeded on mlx5_0:1/{link} (synd 0x15 vend 0x81 hw_synd 0/0)"
            ),
        )
    };
    let kernel = |text: &str| format!("[   12.000001] mlx5_core 0000:18:00.0 ens1: {text}\n");
    vec![
        case(
            "roce-retry-exceeded",
            Fail,
            &[&retry("RoCE")],
            &[&retry("IB")],
        ),
        case(
            "ib-retry-exceeded",
            Fail,
            &[&retry("IB")],
            &[&retry("RoCE")],
        ),
        case(
            "rdma-completion-error",
            Fail,
            &[&format!(
                "[1700000000.000001] [node-a:77 :0]  ib_mlx5_log.c:170  UCX  ERROR {}\n",
                "Remote access error on mlx5_0:1/IB (synd 0x13 vend 0x88 hw_synd 0/0)"
            )],
            &[&format!(
                "[1700000000.000001] [node-a:77 :0]  ib_mlx5_log.c:170  UCX  ERROR {}\n",
                "Work request flushed error on mlx5_0:1/IB (synd 0x5 vend 0xf9 hw_synd 0/0)"
            )],
        ),
        case(
            "ib-pkey-limited",
            Warn,
            &[
                "[1700000000.000001] [node-a:77 :0]     ib_iface.c:900  UCX  ERROR there is no valid pkey to use on mlx5_0:1\n",
            ],
            &[&ibstat(&[NDR])],
        ),
        case(
            "roce-no-ip-route-between-rails",
            Warn,
            &[
                "[1700000000.000001] [node-a:77 :0]     rc_iface.c:900  UCX  ERROR connect on mlx5_1 failed: Connection timed out\n",
            ],
            &[
                "[1700000000.000001] [node-a:77 :0]     rc_iface.c:900  UCX  ERROR connect on mlx5_1 failed: Invalid argument\n",
            ],
        ),
        case(
            "kernel-link-lost",
            Warn,
            &[&kernel("Link down")],
            &[&format!("{}{}", kernel("Link down"), kernel("Link up"))],
        ),
        case(
            "kernel-nic-cable",
            Warn,
            &[
                "[   12.000001] mlx5_core 0000:18:00.0: Port module event[error]: module 0, Cable error, High Temperature\n",
            ],
            &[
                "[   12.000001] mlx5_core 0000:18:00.0: Port module event: module 0, Cable plugged\n",
            ],
        ),
        case(
            "kernel-nic-health",
            Warn,
            &[
                "[   12.000001] mlx5_core 0000:18:00.0: health_recovery_work:330:(pid 9): health recovery flow aborted since the nic state is invalid\n",
            ],
            &[
                "[   12.000001] mlx5_core 0000:18:00.0: Port module event: module 0, Cable plugged\n",
            ],
        ),
        case(
            "kernel-nic-health",
            Warn,
            &[
                "[   12.000001] mlx5_core 0000:18:00.0: Detected insufficient power on the PCIe slot (27W).\n",
            ],
            &[
                "[   12.000001] mlx5_core 0000:18:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)\n",
            ],
        ),
        case(
            "image-libmlx5-symbol",
            Warn,
            &[
                "/usr/lib/x86_64-linux-gnu/libmlx5.so.1: undefined symbol: mlx5dv_get_data_direct_sysfs_path\n",
            ],
            &[&ibstat(&[NDR])],
        ),
        case(
            "nccl-completion-error",
            Warn,
            &[
                "node-a:123:999 [0] NCCL WARN NET/IB: Got completion from peer 10.0.0.6<43210> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129\n",
            ],
            &["node-a:123:999 [0] NCCL INFO Using network IB\n"],
        ),
        case(
            "nccl-net-socket",
            Warn,
            &[
                "node-a:77:99 [0] NCCL INFO NET/IB : No device found.\nnode-a:77:99 [0] NCCL INFO Using network Socket\n",
            ],
            &[
                "node-a:77:99 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\nnode-a:77:99 [0] NCCL INFO Using network Socket\nnode-a:77:99 [0] NCCL INFO Using network IB\n",
            ],
        ),
        case(
            "nccl-libibverbs-missing",
            Warn,
            &[
                "node-a:77:99 [0] NCCL INFO Failed to open libibverbs.so[.1]\nnode-a:77:99 [0] NCCL INFO Using network Socket\n",
            ],
            &[
                "node-a:77:99 [0] NCCL INFO Failed to open libibverbs.so[.1]\nnode-a:77:99 [0] NCCL INFO Using network AWS Libfabric\n",
            ],
        ),
        case(
            "nccl-socket-ifname-wrong",
            Fail,
            &[
                "node-a:77:99 [0] bootstrap.cc:100 NCCL WARN Bootstrap : no socket interface found\n",
            ],
            &["node-a:77:99 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"],
        ),
        case(
            "nccl-efa-plugin-missing",
            Fail,
            &[EFA, "node-a:77:99 [0] NCCL INFO Using network Socket\n"],
            &[
                EFA,
                "node-a:77:99 [0] NCCL INFO NET/OFI Selected Provider is efa\nnode-a:77:99 [0] NCCL INFO Using network AWS Libfabric\n",
            ],
        ),
        case(
            "nvls-multicast-error",
            Warn,
            &[
                "node-a:77:99 [0] transport/nvls.cc:200 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401\n",
            ],
            &[
                "node-a:77:99 [0] NCCL INFO NCCL_NVLS_ENABLE set by environment to 0.\nnode-a:77:99 [0] transport/nvls.cc:200 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401\n",
            ],
        ),
        case(
            "nvl-healthmask",
            Warn,
            &[
                "node-a:77:99 [0] NCCL INFO MNNVL busId 0x19000 fabric UUID 0.0 cliqueId 0x1 state 3 healthMask 0xaa\n",
            ],
            &[
                "node-a:77:99 [0] NCCL INFO MNNVL busId 0x19000 fabric UUID 0.0 cliqueId 0x1 state 3 healthMask 0x0\n",
            ],
        ),
        case(
            "gloo-loopback-hostnetwork",
            Fail,
            &[
                "[rank1]: Warning: Unable to resolve hostname to a (local) address. Using the loopback address as fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME.\nRuntimeError: Gloo connectFullMesh failed with timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:4242\n",
            ],
            &[
                "RuntimeError: Gloo connectFullMesh failed with timed out connecting: SO_ERROR: Connection refused, remote=[10.0.0.2]:4242\n",
            ],
        ),
        case(
            "gloo-socket-ifname-caret",
            Fail,
            &[
                "RuntimeError: [enforce fail at /src/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: ^lo,docker0\n",
            ],
            &["node-a:77:99 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ^lo,docker0\n"],
        ),
    ]
}

fn cases() -> Vec<Case> {
    let mut all = device_cases();
    all.extend(port_cases());
    all.extend(gid_cases());
    all.extend(selection_cases());
    all.extend(limit_cases());
    all.extend(efa_cases());
    all.extend(log_cases());
    all
}

#[test]
fn every_cause_is_shown_and_stays_quiet() {
    let mut wrong = Vec::new();
    for case in cases() {
        let report = judge(&case.shows, case.role);
        let shown = with(&report, case.cause);
        let told: Vec<String> = report
            .results
            .iter()
            .map(|r| format!("{:?} {:?} {} {:?}", r.status, r.cause, r.detail, r.note))
            .collect();
        if !shown.iter().any(|r| r.status == case.status) {
            wrong.push(format!(
                "{} not shown as {:?}:\n  {}",
                case.cause,
                case.status,
                told.join("\n  ")
            ));
        }
        for result in shown {
            // A line of an output is named, so that a reader finds it.
            if result.sources.is_empty() && case.cause != "efa-plugin-counts-nvlink-controllers" {
                wrong.push(format!("{} names no line", case.cause));
            }
        }
        let report = judge(&case.quiet, case.role);
        for result in with(&report, case.cause) {
            wrong.push(format!(
                "{} told where it is quiet: {}",
                case.cause, result.detail
            ));
        }
        let unread = &report.coverage.inputs_not_read;
        if *unread > 0 {
            wrong.push(format!(
                "{}: {unread} inputs of the quiet case are not read",
                case.cause
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What has a case here.
pub(crate) fn shown() -> BTreeSet<&'static str> {
    let mut shown: BTreeSet<&str> = cases().iter().map(|c| c.cause).collect();
    // No tool's output that is read tells it: small_shared_memory_belongs_to_collectives.
    shown.insert("shm-small");
    // No saved output tells these: node_records.rs.
    shown.insert("nvidia-smi-no-answer");
    shown.insert("uverbs-open-fails");
    shown
}

#[test]
fn nccl_says_nothing_about_kv() {
    let report = judge(
        &["node-a:77:99 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\nnode-a:77:99 [0] NCCL INFO Using network IB\n".to_owned()],
        None,
    );
    assert_eq!(report.readiness, Readiness::Inconclusive);
    assert!(report.results.iter().all(|r| r.collective));
}

#[test]
fn nothing_is_ok_from_nothing() {
    for text in [
        "$ ibstat\n",
        "$ ibv_devinfo\nNo IB devices found\n",
        "Failed to open NETLINK_RDMA socket\n",
    ] {
        let report = judge(&[text.to_owned()], None);
        assert_eq!(report.readiness, Readiness::Inconclusive, "{text}");
        assert_eq!(report.counts().ok, 0, "{text}");
    }
}

#[test]
fn small_shared_memory_belongs_to_collectives() {
    let of = |bytes: u64| {
        let from = Arc::new(Provenance {
            file: "/dev/shm".to_owned(),
            tool: Tool::SystemCall,
            section: 0,
            place: None,
            command: None,
        });
        let mut facts = NodeFacts::default();
        facts
            .observation
            .limits
            .shm_bytes
            .see(bytes, Origin::whole(&from));
        judge_node("node", &facts, Vec::new())
    };
    let small = of(64 << 20);
    let shown = with(&small, "shm-small");
    assert!(
        shown
            .iter()
            .any(|r| r.status == Status::Warn && r.collective)
    );
    assert_eq!(small.counts().warn, 0);
    assert!(with(&of(8 << 30), "shm-small").is_empty());
}

/// A machine as it should be: eight rails, a front end that is slower and half unused, and settings that fit.
#[test]
fn a_healthy_machine_has_no_gap() {
    let names = [
        "mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_4", "mlx5_5", "mlx5_6", "mlx5_7",
    ];
    let mut ports: Vec<Ib> = names.iter().map(|name| Ib { name, ..NDR }).collect();
    ports.push(Ib {
        name: "mlx5_8",
        kind: "MT4125",
        rate: 100,
        ..roce()
    });
    ports.push(Ib {
        name: "mlx5_9",
        kind: "MT4125",
        rate: 40,
        state: "Down",
        phys: "Disabled",
        ..roce()
    });
    let texts = [
        ibstat(&ports),
        "$ ls /dev/infiniband\nrdma_cm uverbs0 uverbs1 uverbs2 uverbs3 uverbs4 uverbs5 uverbs6 uverbs7\n".to_owned(),
        "$ rdma system\nnetns shared\n".to_owned(),
        limits("unlimited", "unlimited"),
        setting("UCX_NET_DEVICES=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1"),
    ];
    for shown in [&texts[..4], &texts[..]] {
        let report = judge(shown, Some(Role::Prefill));
        let told: Vec<&CheckResult> = report
            .results
            .iter()
            .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
            .collect();
        assert!(told.is_empty(), "{told:?}");
        assert_eq!(report.readiness, Readiness::Unproven);
    }
}

/// Outputs of two machines in one file are no change of one port.
#[test]
fn two_machines_do_not_flap() {
    let link = |state: &str| {
        format!(
            "link mlx5_7/1 subnet_prefix fe80:0000:0000:0000 lid 34 sm_lid 1 lmc 0 state {state} physical_state LINK_UP\n"
        )
    };
    let text = format!(
        "root@node-a:~# rdma link\n{}root@node-b:~# rdma link\n{}",
        link("DOWN"),
        link("ACTIVE")
    );
    assert!(with(&judge(&[text], None), "ib-port-flapping").is_empty());
}

/// A port near a GPU counts although others are active; one that is near none does not.
#[test]
fn the_matrix_tells_which_ports_count() {
    let down = Ib {
        state: "Down",
        phys: "Disabled",
        rate: 10,
        ..NDR
    };
    let near_is_down = ibstat(&[
        down,
        Ib {
            name: "mlx5_1",
            ..NDR
        },
    ]);
    let far_is_down = ibstat(&[
        NDR,
        Ib {
            name: "mlx5_1",
            ..down
        },
    ]);
    let report = judge(&[near_is_down, MATRIX.to_owned()], None);
    assert!(
        with(&report, "ib-port-disabled")
            .iter()
            .any(|r| r.status == Status::Fail)
    );
    let report = judge(&[far_is_down, MATRIX.to_owned()], None);
    assert!(with(&report, "ib-port-disabled").is_empty());
}

/// Something was given, and its own words say why it tells nothing.
#[test]
fn what_is_recognised_is_not_called_nothing() {
    for (text, words) in [
        (
            "root@pod:/# ibstat\nbash: ibstat: command not found\n",
            "command not found",
        ),
        (
            "ibpanic: [412] main: stat of IB device 'mlx5_0' failed: No such file or directory\n",
            "could not be listed",
        ),
        ("root@n:~# lsmod | grep peermem\nroot@n:~# \n", "recognised"),
    ] {
        let report = judge(&[text.to_owned()], None);
        assert_eq!(report.readiness, Readiness::Inconclusive, "{text}");
        assert!(report.verdict.contains(words), "{text}{}", report.verdict);
    }
}

/// Captions, prompts and prefixes of hosts: each machine has its own verdict, whichever comes last.
#[test]
fn machines_of_one_file_are_judged_apart() {
    let good = four(NDR);
    let bad = ibstat(&[Ib {
        state: "Down",
        phys: "Polling",
        rate: 10,
        ..NDR
    }]);
    let prefixed = |host: &str, text: &str| -> String {
        let mut out = String::new();
        for line in text.lines() {
            writeln!(out, "{host}: {line}").unwrap();
        }
        out
    };
    for text in [
        format!("=== prefill-0 ===\n{good}=== decode-0 ===\n{bad}"),
        format!("=== decode-0 ===\n{bad}=== prefill-0 ===\n{good}"),
        prefixed("decode-0", &bad) + &prefixed("prefill-0", &good),
    ] {
        let report = judge(std::slice::from_ref(&text), None);
        assert!(with(&report, "ib-port-flapping").is_empty(), "{text}");
        let down: Vec<&str> = with(&report, "ib-port-down-polling")
            .iter()
            .map(|r| r.detail.as_str())
            .collect();
        assert!(
            !down.is_empty() && down.iter().all(|d| d.starts_with("decode-0: ")),
            "{down:?}\n{text}"
        );
        assert!(
            report
                .results
                .iter()
                .any(|r| r.status == Status::Ok && r.detail.starts_with("prefill-0: "))
        );
    }
    // Captions of times are no machines.
    let text = format!("=== before ===\n{bad}=== after ===\n{good}");
    let report = judge(&[text], None);
    assert!(
        report
            .results
            .iter()
            .all(|r| !r.detail.contains("before: "))
    );
    // A node and a container on it show the same device.
    let text = format!("root@node-a:~# ibstat\n{good}root@decode-0:/# ibstat\n{good}");
    let report = judge(&[text], None);
    assert!(
        report
            .results
            .iter()
            .all(|r| !r.detail.starts_with("node-a: "))
    );
}

/// Lines of `env` and `ucx_info -c` are settings in force; a filter of `ibstat` keeps the states.
#[test]
fn settings_and_filtered_states_are_read() {
    for text in [
        "$ env | grep UCX\nUCX_NET_DEVICES=mlx5_3:1\nUCX_TLS=tcp,cuda_copy\n",
        "# ucx_info -c | grep TLS\nUCX_TLS=tcp,cuda_copy\n",
        "export UCX_TLS=\"tcp,cuda_copy\"\n",
    ] {
        let report = judge(&[text.to_owned()], None);
        assert!(
            report
                .results
                .iter()
                .any(|r| r.name == "nixl/ucx-settings" && r.status == Status::Warn),
            "{text}{:#?}",
            report.results
        );
    }
    let text = "$ ibstat | grep -e CA -e State -e Rate\n\
        CA 'mlx5_0'\n\tCA type: MT4129\n\t\tState: Active\n\t\tRate: 400\n\
        CA ’mlx5_1’\n\tCA type: MT4129\n\t\tState: Down\n\t\tRate: 10\n";
    let report = judge(&[text.to_owned()], None);
    let details: Vec<&str> = report.results.iter().map(|r| r.detail.as_str()).collect();
    assert!(
        details.iter().any(|d| d.contains("mlx5_0:1 active")),
        "{details:?}"
    );
    assert!(
        report
            .results
            .iter()
            .any(|r| r.note.as_deref().is_some_and(|n| n.contains("mlx5_1:1"))),
        "{details:?}"
    );
}
