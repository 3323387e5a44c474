//! Every cause of `node` about GPUs and UCX, and of logs about NIXL: a text that shows it, and one where it stays quiet.
//!
//! The texts are written for these tests in the formats of the tools; none of them is anyone's.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use checks::{NodeFacts, judge_node};
use model::observation::{Observation, Origin, Provenance, Tool};
use model::{CheckResult, Fact, Report, Role, Status};

/// One text in, or where the tools print nothing of it, facts.
struct Case {
    cause: &'static str,
    status: Status,
    shows: String,
    quiet: String,
    role: Option<Role>,
    tune: fn(&mut Observation, bool),
}

fn case(
    cause: &'static str,
    status: Status,
    shows: impl Into<String>,
    quiet: impl Into<String>,
) -> Case {
    Case {
        cause,
        status,
        shows: shows.into(),
        quiet: quiet.into(),
        role: None,
        tune: |_, _| {},
    }
}

impl Case {
    fn role(mut self, role: Role) -> Self {
        self.role = Some(role);
        self
    }

    /// Changes the facts; `true` where the cause is to show.
    fn tune(mut self, tune: fn(&mut Observation, bool)) -> Self {
        self.tune = tune;
        self
    }
}

fn origin() -> Origin {
    Origin::whole(&std::sync::Arc::new(Provenance {
        file: "facts".into(),
        tool: Tool::Sys,
        section: 0,
        place: None,
        command: None,
    }))
}

fn seen<T>(value: T) -> Fact<T> {
    Fact::seen(value, origin())
}

fn judge(text: &str, role: Option<Role>, tune: impl FnOnce(&mut Observation)) -> Report {
    let mut observation = if text.is_empty() {
        Observation::default()
    } else {
        probe::recognise_bytes("output.txt", text.as_bytes())
    };
    tune(&mut observation);
    let facts = NodeFacts {
        observation,
        role,
        saved: true,
        ..NodeFacts::default()
    };
    judge_node("node", &facts, Vec::new())
}

/// Results with a cause, or with its words as a note.
fn with<'r>(report: &'r Report, cause: &str) -> Vec<&'r CheckResult> {
    let note = checks::cause(cause).map(|(_, c)| c.why).unwrap();
    report
        .results
        .iter()
        .filter(|r| r.cause == Some(cause) || r.note.as_deref().is_some_and(|n| n.contains(note)))
        .collect()
}

/// A matrix; cells by row, each `GPU`'s first.
fn topo(gpus: usize, nics: &[&str], rows: &[&str]) -> String {
    let mut out = String::new();
    for n in 0..gpus {
        write!(out, "\tGPU{n}").unwrap();
    }
    for n in 0..nics.len() {
        write!(out, "\tNIC{n}").unwrap();
    }
    out.push_str("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n");
    for (n, row) in rows.iter().enumerate() {
        let cells = row.split_whitespace().collect::<Vec<_>>().join("\t");
        writeln!(out, "GPU{n}\t{cells}\t0-31\t0\t\tN/A").unwrap();
    }
    out.push_str("\nLegend:\n\n  X    = Self\n\nNIC Legend:\n\n");
    for (n, nic) in nics.iter().enumerate() {
        writeln!(out, "  NIC{n}: {nic}").unwrap();
    }
    out
}

const GOOD: [&str; 3] = [
    "X NV18 NV18 PIX NODE",
    "NV18 X NV18 NODE PIX",
    "NV18 NV18 X NODE PIX",
];
const TWO: [&str; 2] = ["mlx5_0", "mlx5_1"];

fn nvlink(name: &str, links: &str) -> String {
    let mut out = format!("GPU 0: {name} (UUID: GPU-11111111-2222-3333-4444-555555555555)\n");
    for (n, link) in links.split(' ').enumerate() {
        let value = if link == "-" {
            "<inactive>".to_owned()
        } else {
            format!("{link} GB/s")
        };
        writeln!(out, "\t Link {n}: {value}").unwrap();
    }
    out
}

fn all_inactive(name: &str) -> String {
    format!(
        "GPU 0: {name} (UUID: GPU-11111111-2222-3333-4444-555555555555)\nNVML: Unable to retrieve NVLink information as all links are inActive\n"
    )
}

fn fabric(name: &str, state: &str, status: &str, health: &str) -> String {
    format!(
        "==============NVSMI LOG==============\n\nGPU 00000000:18:00.0\n    Product Name                          : {name}\n    Fabric\n        State                             : {state}\n        Status                            : {status}\n        CliqueId                          : 0\n        ClusterUUID                       : 00000000-0000-0000-0000-000000000000\n        Health\n            Summary                       : {health}\n            Bandwidth                     : Full\n            Route Unhealthy               : False\n"
    )
}

/// A line of UCX.
fn ucx(level: &str, text: &str) -> String {
    format!("[1790000000.000001] [decode-7:41   :0]      ucp_core.c:77   UCX  {level:<5} {text}\n")
}

fn nixl(text: &str) -> String {
    format!("E1130 10:00:00.000001   41 ucx_utils.cpp:10] {text}\n")
}

/// A protocol table of the new layout.
fn table(scope: &str, words: &str, rows: &[[&str; 3]]) -> String {
    let mut out = String::new();
    let rule = "+--------+------+------+";
    let mut line =
        |text: &str| writeln!(out, "[1790000000.000001] [decode-7:41   :0]   {text}").unwrap();
    line(rule);
    line(&format!("| agent {scope} cfg#1 |"));
    line(&format!("| {words} |"));
    line(rule);
    line("| Range | Description | Config |");
    line(rule);
    for [range, how, config] in rows {
        line(&format!("| {range} | {how} | {config} |"));
    }
    line(rule);
    out
}

const READ: &str = "remote memory read by ucp_get* into cuda/GPU0 from cuda";

fn resources(transports: &[(&str, &str, &str)]) -> String {
    let mut out = String::from("#\n");
    for (domain, name, device) in transports {
        write!(
            out,
            "# Memory domain: {domain}\n#     Component: {}\n#             register: unlimited, cost: 0 nsec\n#         memory types: host (access,reg,cache)\n#\n#      Transport: {name}\n#         Device: {device}\n#           Type: network\n#  System device: <unknown>\n#\n#      capabilities:\n#            bandwidth: 10.00/ppn + 0.00 MB/sec\n#\n",
            if domain.starts_with("mlx") { "ib" } else { domain },
        )
        .unwrap();
    }
    out
}

const CUDA_DOMAIN: &str = "# Memory domain: cuda_cpy\n#     Component: cuda_cpy\n#             register: unlimited, cost: 0 nsec\n#         memory types: host (reg), cuda (access,alloc,reg,detect)\n#\n#      Transport: cuda_copy\n#         Device: cuda\n#           Type: accelerator\n#  System device: <unknown>\n#\n#      capabilities:\n#            bandwidth: 10000.00/ppn + 0.00 MB/sec\n#\n";

fn version(number: &str, configure: &str) -> String {
    format!(
        "# Library version: {number}\n# Library path: /opt/lib/libucs.so.0\n# API headers version: {number}\n# Git branch '', revision 0000000\n# Configured with: --enable-mt {configure}\n"
    )
}

const LSMOD: &str = "Module                  Size  Used by\n";

fn lspci(address: &str, class: &str, cap: &str, sta: &str) -> String {
    format!(
        "{address} {class}: Example Corporation Device\n\tLnkCap:\tPort #0, Speed {cap}, ASPM L1\n\tLnkSta:\tSpeed {sta}\n"
    )
}

fn cases() -> Vec<Case> {
    let mut all = gpus();
    all.extend(gpudirect());
    all.extend(ucx_cases());
    all.extend(messages());
    all
}

fn gpus() -> Vec<Case> {
    vec![
        case(
            "gpu-xid-fault",
            Status::Fail,
            "[  999.9] NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
            "[  999.9] NVRM: Xid (PCI:0000:1b:00): 31, pid=77, name=python3, MMU Fault\n",
        ),
        case(
            "gpu-xid-nvlink",
            Status::Warn,
            "[  999.9] NVRM: Xid (PCI:0008:01:00): 145, RLW_SRC_TRACK Nonfatal XC0 i0 Link 06\n",
            "[  999.9] NVRM: Xid (PCI:0008:01:00): 13, pid=77, name=python3, Graphics Exception\n",
        ),
        case(
            "gpu-driver-not-answering",
            Status::Fail,
            "$ nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n",
            "$ nvidia-smi topo -m\nFailed to run topology matrix\n",
        ),
        case(
            "gpu-none-visible",
            Status::Fail,
            "$ nvidia-smi\nNo devices were found\n",
            "$ nvidia-smi\nNo devices were found\n",
        )
        .role(Role::Decode)
        .tune(|o, shows| {
            if !shows {
                o.gpu.other_accelerators = seen(vec!["amdgpu".to_owned()]);
            }
        }),
        case(
            "gpu-mig",
            Status::Ok,
            "$ nvidia-smi -L\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n  MIG 1g.10gb     Device  0: (UUID: MIG-11111111-2222-3333-4444-555555555556)\n",
            "$ nvidia-smi -L\nGPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222-3333-4444-555555555555)\n",
        ),
        case(
            "nvlink-inactive",
            Status::Fail,
            nvlink("NVIDIA A100-SXM4-40GB", "25 25 - 25"),
            nvlink("NVIDIA A100-PCIE-40GB", "- - - -"),
        ),
        case(
            "nvlink-inactive",
            Status::Warn,
            topo(
                4,
                &[],
                &[
                    "X NV18 NV18 NV16",
                    "NV18 X NV18 NV16",
                    "NV18 NV18 X NV16",
                    "NV16 NV16 NV16 X",
                ],
            ),
            topo(
                4,
                &[],
                &[
                    "X NV1 NV2 SYS",
                    "NV1 X SYS NV2",
                    "NV2 SYS X NV1",
                    "SYS NV2 NV1 X",
                ],
            ),
        ),
        case(
            "nvlink-all-inactive-message",
            Status::Fail,
            all_inactive("NVIDIA H200"),
            all_inactive("NVIDIA H100 PCIe"),
        ),
        case(
            "topo-gpu-off-nvlink",
            Status::Fail,
            topo(
                4,
                &[],
                &[
                    "X NV18 NV18 SYS",
                    "NV18 X NV18 SYS",
                    "NV18 NV18 X SYS",
                    "SYS SYS SYS X",
                ],
            ),
            topo(
                4,
                &[],
                &[
                    "X NV4 SYS SYS",
                    "NV4 X SYS SYS",
                    "SYS SYS X NODE",
                    "SYS SYS NODE X",
                ],
            ),
        ),
        case(
            "nvlink-empty-output",
            Status::Ok,
            "GPU 0: NVIDIA L40S (UUID: GPU-11111111-2222-3333-4444-555555555555)\nNVML: Unable to retrieve NVLink information: Not Supported\n",
            nvlink("NVIDIA A100-SXM4-40GB", "25 25 25 25"),
        ),
        case(
            "fabric-state-not-completed",
            Status::Fail,
            fabric("NVIDIA H100 80GB HBM3", "In Progress", "N/A", "N/A"),
            fabric("NVIDIA H100 PCIe", "In Progress", "N/A", "N/A"),
        ),
        case("nvlink-active-but-fabric-dead", Status::Fail, "", "").tune(|o, shows| {
            use model::observation::gpu::{Gpu, LinkState, NvLink};
            let mut gpu = Gpu {
                index: seen(0),
                name: seen("NVIDIA B200".to_owned()),
                ..Gpu::default()
            };
            gpu.fabric.state = seen(if shows { "Not Started" } else { "Completed" }.to_owned());
            gpu.fabric.status = seen("Success".to_owned());
            gpu.links.insert(
                0,
                NvLink {
                    state: seen(LinkState::Up),
                    ..NvLink::default()
                },
            );
            o.gpu.gpus.add(gpu);
        }),
        case(
            "fabric-status-not-success",
            Status::Fail,
            fabric("NVIDIA GB200", "Completed", "Insufficient Resources", "N/A"),
            fabric("NVIDIA H100 80GB HBM3", "Completed", "Success", "N/A"),
        ),
        case(
            "fabric-health-unhealthy",
            Status::Fail,
            fabric("NVIDIA GB200", "Completed", "Success", "Unhealthy"),
            fabric("NVIDIA GB200", "Completed", "Success", "Not Supported"),
        ),
        case(
            "fabric-not-supported-on-gb200",
            Status::Fail,
            fabric("NVIDIA GB200", "Not Supported", "Success", "N/A"),
            fabric("NVIDIA GH200 480GB", "Not Supported", "Success", "N/A"),
        ),
        case(
            "fabric-manager-not-running",
            Status::Warn,
            "{\"fabric_manager_active\":false,\"fabric_state_supported\":true,\"fabric_states\":[{\"gpu_uuid\":\"GPU-1\",\"clique_id\":0,\"cluster_uuid\":\"00000000-0000-0000-0000-000000000000\",\"state\":\"Completed\",\"status\":\"Success\",\"summary\":\"N/A\"}]}\n",
            "{\"fabric_manager_active\":false,\"fabric_state_supported\":true,\"fabric_states\":[{\"gpu_uuid\":\"GPU-1\",\"clique_id\":7,\"cluster_uuid\":\"11111111-2222-3333-4444-555555555555\",\"state\":\"Completed\",\"status\":\"Success\",\"summary\":\"N/A\"}]}\n",
        ),
        case(
            "imex-channel-missing",
            Status::Warn,
            fabric("NVIDIA GB200", "Completed", "Success", "N/A"),
            fabric("NVIDIA H100 80GB HBM3", "Completed", "Success", "N/A"),
        )
        .tune(|o, _| o.gpu.imex.channels = seen(Vec::new())),
        case(
            "gdr-passthrough-pix",
            Status::Warn,
            topo(3, &TWO, &GOOD),
            topo(3, &TWO, &GOOD),
        )
        .tune(|o, shows| {
            o.host.virtual_machine = seen(shows);
            o.host.system_vendor = seen("QEMU".to_owned());
            o.process.processes.entry(7).or_default().name = seen("engine".to_owned());
        }),
        // Clouds set up ATS for the machines that they sell with GPUs and RDMA.
        case(
            "gdr-passthrough-pix",
            Status::Warn,
            topo(3, &TWO, &GOOD),
            topo(3, &TWO, &GOOD),
        )
        .tune(|o, shows| {
            o.host.virtual_machine = seen(true);
            o.host.system_vendor = seen(if shows { "QEMU" } else { "Google" }.to_owned());
            o.process.processes.entry(7).or_default().name = seen("engine".to_owned());
        }),
        case(
            "gdr-broadcom-phb",
            Status::Ok,
            topo(
                2,
                &["bnxt_re0", "bnxt_re1"],
                &["X NV4 PHB SYS", "NV4 X SYS PHB"],
            ),
            topo(
                2,
                &["bnxt_re0", "bnxt_re1"],
                &["X NV4 PIX SYS", "NV4 X SYS PIX"],
            ),
        ),
        case("nccl-topo-file-missing", Status::Warn, "", "").tune(|o, shows| {
            let process = o.process.processes.entry(7).or_default();
            let path = "/opt/topology.xml".to_owned();
            process
                .environment
                .insert("NCCL_TOPO_FILE".to_owned(), seen(path.clone()));
            process.files.insert(path, seen(!shows));
        }),
        case("nccl-conf-file", Status::Ok, "", "").tune(|o, shows| {
            let process = o.process.processes.entry(7).or_default();
            process
                .files
                .insert("/etc/nccl.conf".to_owned(), seen(shows));
        }),
        case(
            "topo-best-level-not-pix",
            Status::Ok,
            topo(2, &TWO, &["X NV4 NODE SYS", "NV4 X SYS NODE"]),
            topo(3, &TWO, &GOOD),
        ),
        case(
            "topo-sys-on-grace",
            Status::Ok,
            topo(2, &TWO, &["X NV18 SYS SYS", "NV18 X SYS SYS"]).replace("N/A", "2"),
            topo(2, &TWO, &["X NV4 SYS SYS", "NV4 X SYS SYS"]),
        ),
        case(
            "topo-no-nic-columns",
            Status::Skipped,
            topo(2, &[], &["X NV4", "NV4 X"]),
            topo(3, &TWO, &GOOD),
        ),
        case(
            "topo-command-fails",
            Status::Skipped,
            "$ nvidia-smi topo -m\nFailed to run topology matrix\n",
            topo(3, &TWO, &GOOD),
        ),
        case(
            "topo-nic-shared-by-gpus",
            Status::Ok,
            topo(
                4,
                &TWO,
                &[
                    "X NV12 NV12 NV12 PXB SYS",
                    "NV12 X NV12 NV12 PXB SYS",
                    "NV12 NV12 X NV12 SYS PXB",
                    "NV12 NV12 NV12 X SYS PXB",
                ],
            ),
            topo(2, &TWO, &["X NV12 PXB SYS", "NV12 X SYS PXB"]),
        ),
        case(
            "gpu-no-peer-access",
            Status::Warn,
            "$ nvidia-smi topo -p2p r\n\tGPU0\tGPU1\nGPU0\tX\tCNS\nGPU1\tCNS\tX\n",
            "$ nvidia-smi topo -p2p n\n\tGPU0\tGPU1\nGPU0\tX\tNS\nGPU1\tNS\tX\n",
        ),
        case(
            "pcie-link-degraded",
            Status::Warn,
            lspci(
                "18:00.0",
                "Infiniband controller",
                "32GT/s, Width x16",
                "32GT/s, Width x8",
            ),
            lspci(
                "19:00.0",
                "3D controller",
                "32GT/s, Width x16",
                "2.5GT/s, Width x16",
            ),
        ),
        case(
            "pcie-link-degraded",
            Status::Warn,
            lspci(
                "18:00.0",
                "Ethernet controller",
                "32GT/s, Width x16",
                "8GT/s (downgraded), Width x16 (ok)",
            ),
            // Alike cards in slots that give no more.
            lspci(
                "18:00.0",
                "Ethernet controller",
                "64GT/s, Width x16",
                "32GT/s, Width x16",
            ) + &lspci(
                "3a:00.0",
                "Ethernet controller",
                "64GT/s, Width x16",
                "32GT/s, Width x16",
            ),
        ),
    ]
}

fn gpudirect() -> Vec<Case> {
    let rdma = "mlx5_ib               577536  0\nib_uverbs             245760  1 mlx5_ib\n";
    let nvidia = "nvidia              56598528  0\n";
    let old = "Linux node-1 5.4.0-150-generic #167-Ubuntu SMP Mon May 15 17:35:05 UTC 2023 x86_64 GNU/Linux\n";
    let new = "Linux node-1 6.8.0-60-generic #63-Ubuntu SMP Mon May 15 17:35:05 UTC 2026 x86_64 GNU/Linux\n";
    let domain = |dmabuf: &str| {
        format!(
            "# Memory domain: mlx5_0\n#     Component: ib\n#             register: unlimited,{dmabuf} cost: 16000 + 0.060 * N nsec\n#         memory types: host (access,reg,cache)\n#\n#      Transport: rc_mlx5\n#         Device: mlx5_0:1\n#           Type: network\n#  System device: mlx5_0 (0)\n#\n"
        )
    };
    let exports = CUDA_DOMAIN.replace("detect)", "detect,dmabuf)");
    vec![
        case("gdr-nothing", Status::Fail, format!("#\n{CUDA_DOMAIN}{}", domain("")), format!("#\n{exports}{}", domain(" dmabuf,"))),
        case(
            "gdr-nothing",
            Status::Fail,
            ucx("DEBUG", "mlx5_0: cuda GPUDirect RDMA is disabled") + &ucx("DEBUG", "mlx5_0: ibv_reg_dmabuf_mr(fd=-1) returned Protocol not supported, dmabuf is not supported"),
            ucx("DEBUG", "mlx5_0: cuda GPUDirect RDMA is disabled") + &ucx("DEBUG", "mlx5_0: ibv_reg_dmabuf_mr(fd=-1) returned Bad file descriptor, dmabuf is supported"),
        ),
        case("gdr-host-only-list-is-not-proof", Status::Ok, format!("#\n{exports}{}", domain(" dmabuf,")), format!("#\n{CUDA_DOMAIN}{}", domain(""))),
        case("gdr-peermem-missing", Status::Warn, format!("{old}$ lsmod\n{LSMOD}{nvidia}{rdma}"), format!("{new}$ lsmod\n{LSMOD}{nvidia}{rdma}")),
        case(
            "gdr-peermem-stale-abi",
            Status::Warn,
            "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n",
            format!("modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument\n#\n{exports}{}", domain(" dmabuf,")),
        ),
        case("gdr-geforce-unsupported", Status::Warn, all_inactive("NVIDIA GeForce RTX 4090"), all_inactive("NVIDIA RTX PRO 6000 Blackwell")),
        case("gdr-dgx-spark", Status::Warn, all_inactive("NVIDIA GB10"), all_inactive("NVIDIA GB200")),
        case("gdr-acs-bare-metal", Status::Warn, "17:00.0 PCI bridge: Example Switch\n\tACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n", "17:00.0 PCI bridge: Example Switch\n\tACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+\n")
            .tune(|o, shows| o.host.virtual_machine = seen(!shows)),
        case("gdr-legacy-nv-peer-mem", Status::Ok, format!("{LSMOD}nv_peer_mem   16384  1\n{rdma}"), format!("{LSMOD}nvidia_peermem   16384  1\n{rdma}")),
        case("gdr-use-count-zero", Status::Ok, format!("{LSMOD}nvidia_peermem   16384  0\n{rdma}"), format!("{LSMOD}nvidia_peermem   16384  3\n{rdma}")),
        case("gdr-vm-no-ats", Status::Ok, format!("{LSMOD}nvidia_peermem   16384  0\n{rdma}"), format!("{LSMOD}nvidia_peermem   16384  0\n{rdma}"))
            .tune(|o, shows| o.host.virtual_machine = seen(shows)),
        case("gdr-efa-peermem", Status::Ok, "", "").tune(|o, shows| {
            o.gpu.open_kernel_modules = seen(true);
            let name = if shows { "rdmap16s27" } else { "mlx5_0" };
            o.rdma.devices.entry(name.to_owned()).or_default();
        }),
        case("gdrcopy-missing", Status::Warn, format!("$ lsmod\n{LSMOD}efa  100000 0\nib_uverbs 245760 1 efa\n") + &nixl("Discovered 4 efa devices"), format!("$ lsmod\n{LSMOD}{rdma}")),
        case("ucx-direct-nic-524", Status::Fail, ucx("ERROR", "ibv_reg_dmabuf_mr(address=0x1000, length=4096, access=0xf) failed: Unknown error 524"), ucx("ERROR", "ibv_reg_dmabuf_mr(address=0x1000, length=4096, access=0xf) failed: Bad address")),
        case("gdr-dmabuf-no-cuda-support", Status::Warn, ucx("DEBUG", "dmabuf is not supported on cuda device 0"), ucx("DEBUG", "dmabuf is not supported on cuda device 0") + &ucx("DEBUG", "mlx5_0: cuda GPUDirect RDMA is enabled")),
        case(
            "gpu-memory-registration-failed",
            Status::Fail,
            ucx("ERROR", "failed to register address 0x7f00 (cuda) length 4096 dmabuf_fd -1 on md[3]=mlx5_2: Bad address"),
            ucx("ERROR", "failed to register address 0x7f00 (cuda) length 4096 dmabuf_fd -1 on md[3]=mlx5_2: Cannot allocate memory"),
        ),
    ]
}

fn ucx_cases() -> Vec<Case> {
    let tcp = ("tcp", "tcp", "eth0");
    let rc = ("mlx5_0", "rc_mlx5", "mlx5_0:1");
    let refuse = "# Memory domain: mlx5_0\n#     Component: ib\n#             register: unlimited, cost: 0 nsec\n#         memory types: host (access,reg,cache)\n#\n#      Transport: rc_mlx5\n#         Device: mlx5_0:1\n#           Type: network\n#  System device: <unknown>\n#   < failed to open interface >\n#\n";
    let bound = ucx(
        "INFO",
        "Version 1.23.0 (loaded from /wheel/libs/libucp.so.0)",
    );
    vec![
        case(
            "image-no-verbs",
            Status::Fail,
            version("1.22.0", "--without-verbs --with-cuda=/usr/local/cuda"),
            version("1.22.0", "--with-verbs --with-cuda=/usr/local/cuda"),
        ),
        case(
            "image-no-cuda",
            Status::Warn,
            version("1.22.0", "--with-verbs --without-cuda"),
            version("1.22.0", "--with-verbs --without-cuda --with-rocm"),
        ),
        case(
            "ucx-version-below-119",
            Status::Warn,
            version("1.17.0", "--with-verbs"),
            version("1.19.1", "--with-verbs"),
        ),
        case(
            "image-two-ucx",
            Status::Ok,
            version("1.22.0", "--with-verbs") + &bound,
            version("1.22.0", "--with-verbs"),
        ),
        case(
            "gdr-ucx-118-gdr-copy-bug",
            Status::Warn,
            version("1.18.0", "--with-verbs --with-gdrcopy"),
            version("1.18.0", "--with-verbs --without-gdrcopy"),
        ),
        case(
            "ucx-offers-no-rdma",
            Status::Warn,
            resources(&[tcp]) + CUDA_DOMAIN,
            resources(&[tcp, rc]) + CUDA_DOMAIN,
        ),
        case(
            "ucx-offers-no-cuda",
            Status::Fail,
            resources(&[tcp, rc]),
            resources(&[tcp, rc]) + CUDA_DOMAIN,
        )
        .role(Role::Decode),
        case(
            "ucx-transport-not-opened",
            Status::Fail,
            format!("#\n{refuse}{CUDA_DOMAIN}"),
            format!(
                "#\n# Memory domain: mlx5_9\n#     Component: ib\n#   < failed to open memory domain >\n{}{CUDA_DOMAIN}",
                resources(&[rc])
            ),
        ),
        case(
            "ucx-tcp-bandwidth-guess",
            Status::Warn,
            resources(&[tcp]) + CUDA_DOMAIN,
            resources(&[rc]) + CUDA_DOMAIN,
        ),
        case(
            "ucx-tls-tcp-only",
            Status::Fail,
            ucx("INFO", "UCX_* env variables: UCX_TLS=tcp,cuda_copy"),
            ucx("INFO", "UCX_* env variables: UCX_TLS=rc,cuda_copy"),
        )
        .role(Role::Prefill),
        case(
            "ucx-gdr-forced-off",
            Status::Fail,
            ucx("INFO", "UCX_* env variables: UCX_IB_GPU_DIRECT_RDMA=no"),
            ucx("INFO", "UCX_* env variables: UCX_IB_GPU_DIRECT_RDMA=yes"),
        ),
        case(
            "ucx-warn-unused-suppressed",
            Status::Ok,
            ucx(
                "INFO",
                "UCX_* env variables: UCX_TLS=rc,cuda_copy UCX_LOG_LEVEL=error",
            ),
            ucx("INFO", "UCX_* env variables: UCX_TLS=rc,cuda_copy"),
        ),
        case(
            "ucx-transport-not-here",
            Status::Fail,
            ucx(
                "WARN",
                "transports 'rc','cuda_copy' are not available, please use one or more of: self, sm, tcp",
            ),
            ucx(
                "WARN",
                "transport 'tpc' is not available, please use one or more of: self, sm, tcp",
            ),
        ),
        case(
            "ucx-tls-mid-list-caret",
            Status::Warn,
            ucx(
                "WARN",
                "transport '^cuda_ipc' is not available, please use one or more of: rc_mlx5, tcp",
            ),
            ucx(
                "WARN",
                "transport 'ud_x' is not available, please use one or more of: rc_mlx5, tcp",
            ),
        ),
        case(
            "ucx-tls-spaces-quotes-case",
            Status::Warn,
            ucx(
                "WARN",
                "transport ' rc' is not available, please use one or more of: rc_mlx5, tcp",
            ),
            ucx(
                "WARN",
                "transport 'rcc' is not available, please use one or more of: rc_mlx5, tcp",
            ),
        ),
        case(
            "ucx-tls-unknown-name",
            Status::Warn,
            ucx(
                "WARN",
                "transport 'rdma' is not available, please use one or more of: rc_mlx5, tcp",
            ),
            ucx(
                "WARN",
                "transport 'dc' is not available, please use one or more of: rc_mlx5, tcp",
            ),
        ),
        case(
            "ucx-tls-empty-string",
            Status::Fail,
            ucx(
                "ERROR",
                "The TLs list is empty. Please specify the transports you would like to allow/forbid",
            ),
            bound.clone(),
        ),
        case(
            "ucx-tls-all-not-alone",
            Status::Fail,
            ucx(
                "ERROR",
                "Invalid value for TLS: 'all,tcp'. Expected: comma-separated list of: string",
            ),
            ucx(
                "ERROR",
                "Invalid value for MAX_RMA_RAILS: 'abc'. Expected: unsigned integer",
            ),
        ),
        case(
            "setting-value-invalid",
            Status::Fail,
            ucx(
                "ERROR",
                "Invalid value for MAX_RMA_RAILS: 'abc'. Expected: unsigned integer",
            ),
            bound.clone(),
        ),
        case(
            "ucx-netdev-missing-device",
            Status::Fail,
            ucx(
                "WARN",
                "network device 'mlx5_3:1' is not available, please use one or more of: 'eth0'(tcp)",
            ),
            ucx(
                "WARN",
                "network device ' mlx5_3:1' is not available, please use one or more of: 'eth0'(tcp)",
            ),
        ),
        case(
            "ucx-netdev-space",
            Status::Warn,
            ucx(
                "WARN",
                "network device ' mlx5_3:1' is not available, please use one or more of: 'eth0'(tcp)",
            ),
            ucx(
                "WARN",
                "network device 'mlx5_3:1' is not available, please use one or more of: 'eth0'(tcp)",
            ),
        ),
        case(
            "ucx-netdev-nccl-syntax",
            Status::Fail,
            ucx(
                "WARN",
                "network device '=mlx5_3' is not available, please use one or more of: 'mlx5_3:1'(ib)",
            ),
            ucx(
                "WARN",
                "network device 'mlx5_4:1' is not available, please use one or more of: 'mlx5_3:1'(ib)",
            ),
        ),
        case(
            "ucx-netdev-excludes-everything",
            Status::Fail,
            ucx(
                "ERROR",
                "no usable transports/devices (asked tcp on network:mlx5_0:1 intra-node:accelerator:loopback:)",
            ),
            ucx(
                "ERROR",
                "no usable transports/devices (asked rc,cuda_copy on network:intra-node:accelerator:loopback:)",
            ),
        ),
        // UCX 1.18 leaves out the blank before `on`.
        case(
            "ucx-netdev-excludes-everything",
            Status::Fail,
            ucx(
                "ERROR",
                "no usable transports/devices (asked ud_mlx5on network:mlx5_0:1 intra-node:loopback:)",
            ),
            ucx(
                "ERROR",
                "no usable transports/devices (asked ud_mlx5on network:intra-node:loopback:)",
            ),
        ),
        case(
            "soft-roce",
            Status::Warn,
            resources(&[("mlx5_9", "rc_verbs", "rxe0:1")]) + CUDA_DOMAIN,
            resources(&[rc]) + CUDA_DOMAIN,
        ),
        case(
            "ucx-tls-list-without-tcp",
            Status::Fail,
            ucx(
                "ERROR",
                "no usable transports/devices (asked rc,cuda_copy on network:intra-node:accelerator:loopback:)",
            ),
            ucx(
                "ERROR",
                "no usable transports/devices (asked rcc on network:intra-node:accelerator:loopback:)",
            ),
        ),
        case(
            "ucx-unused-env-ib",
            Status::Fail,
            ucx("WARN", "unused environment variable: UCX_IB_GID_INDEX"),
            ucx(
                "WARN",
                "unused environment variable: UCX_IB_GID_INDX (maybe: UCX_IB_GID_INDEX?)",
            ),
        ),
        case(
            "ucx-unused-env-cuda",
            Status::Warn,
            ucx(
                "WARN",
                "unused environment variable: UCX_CUDA_IPC_ENABLE_MNNVL",
            ),
            ucx("WARN", "unused environment variable: UCX_IB_GID_INDEX"),
        ),
        case(
            "ucx-env-typo",
            Status::Warn,
            ucx(
                "WARN",
                "unused environment variable: UCX_NET_DEVICE (maybe: UCX_NET_DEVICES?)",
            ),
            ucx("WARN", "unused environment variable: UCX_RC_TIMEOUT"),
        ),
        case(
            "ucx-module-not-loaded",
            Status::Fail,
            ucx(
                "DEBUG",
                "dlopen('/opt/ucx/libuct_ib.so.0', mode=0x102) failed: libibverbs.so.1: cannot open shared object file",
            ),
            ucx(
                "DEBUG",
                "dlopen('/opt/ucx/libuct_xpmem.so.0', mode=0x102) failed: libxpmem.so.0: cannot open shared object file",
            ),
        ),
    ]
}

fn messages() -> Vec<Case> {
    let peer = |reasons: &str| {
        ucx(
            "ERROR",
            &format!("no active messages transport to <no debug data>: {reasons}"),
        )
    };
    let quiet = ucx(
        "INFO",
        "Version 1.23.0 (loaded from /wheel/libs/libucp.so.0)",
    );
    let rdma = table(
        "inter-node",
        READ,
        &[["0..inf", "zero-copy", "rc_mlx5/mlx5_0:1"]],
    );
    let lanes = |text: &str| ucx("INFO", &format!("  agent inter-node cfg#1 {text}"));
    let missing = |backend: &str| nixl(&format!("createBackend: unsupported backend '{backend}'"));
    vec![
        case(
            "ucx-peer-unreachable",
            Status::Fail,
            peer("tcp/eth0 - not available, rc_mlx5/mlx5_0:1 - Destination is unreachable"),
            quiet.clone(),
        ),
        case(
            "ucx-tls-cuda-only-no-am",
            Status::Fail,
            peer("cuda_copy/cuda - no am bcopy, cuda_ipc/cuda - no am bcopy"),
            peer("tcp/eth0 - not available, cuda_ipc/cuda - no am bcopy"),
        ),
        case(
            "ucx-netdev-loopback",
            Status::Fail,
            peer("self/memory - no peer failure handler, tcp/lo - different pid namespaces 1 vs 2"),
            peer("self/memory - no peer failure handler, tcp/eth0 - not available"),
        ),
        case(
            "ucx-error-handling-am-peer-failure",
            Status::Fail,
            peer("self/memory - no peer failure handler, cma/memory - no am bcopy"),
            peer("self/memory - no peer failure handler, tcp/eth0 - not available"),
        ),
        case(
            "ucx-tcp-unreachable-interface",
            Status::Fail,
            ucx(
                "ERROR",
                "connect(fd=27, dest_addr=10.9.0.4:3033) failed: No route to host",
            ),
            ucx(
                "ERROR",
                "connect(fd=27, dest_addr=10.9.0.4:3033) failed: Connection timed out",
            ),
        ),
        case(
            "ucx-peer-not-listening",
            Status::Fail,
            ucx(
                "ERROR",
                "connect(fd=27, dest_addr=10.9.0.4:3033) failed: Connection refused",
            ),
            ucx(
                "ERROR",
                "connect(fd=27, dest_addr=10.9.0.4:3033) failed: Connection timed out",
            ),
        ),
        case(
            "networkpolicy-blocks",
            Status::Fail,
            ucx(
                "ERROR",
                "connect(fd=27, dest_addr=10.9.0.4:3033) failed: Connection timed out",
            ),
            ucx(
                "ERROR",
                "connect(fd=27, dest_addr=172.17.0.1:3033) failed: Connection refused",
            ),
        ),
        case(
            "nixl-software-emulation",
            Status::Fail,
            ucx(
                "ERROR",
                "No zero-copy protocol found for get into host from host, 4096 bytes. Please check",
            ),
            quiet.clone(),
        ),
        case(
            "ucx-cuda-ipc-get-off-no-nvlink",
            Status::Warn,
            ucx(
                "DEBUG",
                "cuda-ipc get zcopy disabled as no nvlinks detected",
            ),
            quiet.clone(),
        ),
        case(
            "mnnvl-kv-memory-no-fabric-handle",
            Status::Warn,
            ucx(
                "DEBUG",
                "allocated memory at 0x1000 of size 4096 does not have fabric property",
            ),
            quiet.clone(),
        ),
        case(
            "ucx-api-mismatch",
            Status::Warn,
            ucx(
                "WARN",
                "UCP API version is incompatible: required >= 1.20, actual 1.18.0",
            ),
            quiet.clone(),
        ),
        case(
            "nixl-err-backend-devx",
            Status::Fail,
            ucx(
                "ERROR",
                "mlx5dv_devx_obj_destroy(SRQ) failed: Remote I/O error",
            ),
            quiet.clone(),
        ),
        case(
            "nixl-proto-table",
            Status::Fail,
            table("inter-node", READ, &[["0..inf", "zero-copy", "tcp/eth0"]]),
            table("self", READ, &[["0..inf", "zero-copy", "tcp/eth0"]]) + &rdma,
        ),
        case(
            "nixl-software-emulation",
            Status::Fail,
            table(
                "inter-node",
                READ,
                &[["0..inf", "software emulation", "srd/rdmap0:1"]],
            ),
            table(
                "inter-node",
                READ,
                &[
                    ["0..4K", "software emulation", "rc_mlx5/mlx5_0:1"],
                    ["4097..inf", "zero-copy", "rc_mlx5/mlx5_0:1"],
                ],
            ),
        ),
        case(
            "nixl-shm-not-representative",
            Status::Warn,
            table("intra-node", READ, &[["0..inf", "zero-copy", "cma/memory"]]),
            rdma.clone(),
        ),
        case(
            "soft-roce",
            Status::Warn,
            table(
                "inter-node",
                READ,
                &[["0..inf", "zero-copy", "rc_verbs/rxe0:1"]],
            ),
            rdma.clone(),
        ),
        case(
            "nixl-endpoint-advertises-more-than-payload",
            Status::Skipped,
            lanes("rma_am(tcp/eth0)  am(tcp/eth0)")
                + &table("intra-node", READ, &[["0..inf", "zero-copy", "cma/memory"]]),
            lanes("rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1 tcp/eth0)  ka(tcp/eth0)") + &rdma,
        ),
        case(
            "nixl-lane-line",
            Status::Skipped,
            lanes("rma_am(tcp/eth0)  am(tcp/eth0 cuda_ipc/cuda)"),
            lanes("rma_am(tcp/eth0)  am(tcp/eth0)") + &rdma,
        ),
        case(
            "cuda-ipc-hidden-gpus",
            Status::Ok,
            table(
                "intra-node",
                READ,
                &[["0..inf", "zero-copy", "rc_mlx5/mlx5_0:1"]],
            ),
            rdma,
        ),
        case(
            "vllm-kv-metrics-line",
            Status::Warn,
            "INFO 11-30 10:00:00 [metrics.py:96] KV Transfer metrics: Num successful transfers=3, Avg xfer time (ms)=500.0, Avg MB per transfer=512.0, Throughput (MB/s)=1024.0\n",
            "INFO 11-30 10:00:00 [metrics.py:96] KV Transfer metrics: Num successful transfers=3, Avg xfer time (ms)=5.0, Avg MB per transfer=4.5, Throughput (MB/s)=900.0\n",
        ),
        case(
            "vllm-hash-mismatch",
            Status::Fail,
            "ERROR NIXL handshake: compatibility hash mismatch between prefill and decode\n",
            quiet.clone(),
        ),
        case(
            "bootstrap-room-timeouts",
            Status::Fail,
            "ERROR KVTransferError(bootstrap_room=7): Failed to get kvcache from prefill instance, it might be dead\n",
            quiet.clone(),
        ),
        case(
            "mooncake-device-wrong",
            Status::Fail,
            "W1130 10:00:00.000001 41 topology.cpp:9] Device mlx5_9 port not active\n",
            "I1130 10:00:00.000001 41 rdma_context.cpp:9] RDMA device: mlx5_3, LID: 17, GID: (0) fe:80\n",
        ),
        case(
            "mooncake-reg-fail",
            Status::Fail,
            "E1130 10:00:00.000001 41 rdma_context.cpp:9] Failed to register memory 0x7f0000000000: Input/output error [5]\n",
            quiet.clone(),
        ),
        case(
            "mooncake-qp-rtr",
            Status::Fail,
            "E1130 10:00:00.000001 41 rdma_endpoint.cpp:9] Failed to modify QP to RTR, check mtu, gid, peer lid, peer qp num\n",
            quiet.clone(),
        ),
        case(
            "trtllm-buffer-small",
            Status::Warn,
            "[TRT-LLM] [W] CacheTransBufferManager::getOrAllocateBuffers: bufferCoverTargetNum:1 < targetNum:4\n",
            quiet.clone(),
        ),
        case(
            "nixl-cuda-missing",
            Status::Fail,
            nixl(
                "8 NVIDIA GPU(s) were detected, but UCX CUDA support was not found! GPU memory is not supported.",
            ),
            quiet.clone(),
        ),
        case(
            "nixl-ib-warning-limits",
            Status::Warn,
            nixl(
                "8 IB device(s) were detected, but accelerated IB support was not found! Performance may be degraded.",
            ),
            quiet.clone(),
        ),
        case(
            "ucx-tls-no-gpu-memory-transport",
            Status::Fail,
            nixl(
                "Invalid UCX_TLS=rc for NIXL UCX backend: NVIDIA GPU(s) are present, but this setting does not enable CUDA memory support.",
            ),
            quiet.clone(),
        ),
        case(
            "nixl-cuda-missing",
            Status::Fail,
            "OSError: libcuda.so.1: cannot open shared object file: No such file or directory\n",
            nixl(
                "Failed to load plugin from /opt/plugins/libplugin_GDS.so: libcuda.so.1: cannot open shared object file: No such file or directory",
            ),
        ),
        case(
            "trtllm-nixl-agent-failed",
            Status::Fail,
            "[TensorRT-LLM][ERROR] Assertion failed: status == NIXL_SUCCESS (transferAgent.cpp:654)\n",
            nixl("Initialized NIXL agent: decode"),
        ),
        case(
            "nixl-plugin-dir",
            Status::Fail,
            nixl("getPluginParams: backend 'UCX' not found"),
            nixl("getPluginParams: backend 'GDS' not found"),
        ),
        case(
            "nixl-plugin-dir",
            Status::Fail,
            missing("UCX"),
            nixl(
                "Failed to load plugin from /opt/plugins/libplugin_GDS.so: libcufile.so.0: cannot open shared object file",
            ),
        ),
        case(
            "ucx-pd-version-skew",
            Status::Fail,
            nixl("Deserialization of tag n failed for tag mismatch"),
            nixl("Deserialization of tag dest_data_ep_1 failed"),
        ),
        case(
            "nixl-err-codes",
            Status::Fail,
            "nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND\n",
            "nixl._bindings.nixlBackendError: NIXL_ERR_BACKEND\n".to_owned() + &missing("UCX"),
        ),
        case(
            "nixl-backend-instantiated-proves-nothing",
            Status::Skipped,
            "2026-11-30 10:00:00 NIXL INFO    _api.py:363 Backend UCX was instantiated\n",
            quiet,
        ),
    ]
}

#[test]
fn each_cause_shows_and_stays_quiet() {
    let mut wrong = Vec::new();
    for case in cases() {
        let report = judge(&case.shows, case.role, |o| (case.tune)(o, true));
        let shown = with(&report, case.cause);
        match shown.first() {
            None => {
                let told: Vec<&str> = report.results.iter().map(|r| r.detail.as_str()).collect();
                wrong.push(format!("{} is not told, but {told:?}", case.cause));
            }
            Some(result) if result.status != case.status => wrong.push(format!(
                "{} is {}, expected {}: {}",
                case.cause,
                result.status.as_str(),
                case.status.as_str(),
                result.detail
            )),
            Some(result) if result.sources.is_empty() => {
                wrong.push(format!("{} names no place", case.cause));
            }
            Some(_) => {}
        }
        let report = judge(&case.quiet, case.role, |o| (case.tune)(o, false));
        for result in with(&report, case.cause) {
            wrong.push(format!(
                "{} told where it is quiet: {}",
                case.cause, result.detail
            ));
        }
        if report.coverage.inputs_not_read > 0 {
            wrong.push(format!("{}: the quiet text is not read", case.cause));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// What has a case here.
pub(crate) fn shown() -> BTreeSet<&'static str> {
    cases().iter().map(|c| c.cause).collect()
}

fn nvlink_of(text: &str) -> Vec<Status> {
    judge(text, None, |_| {})
        .results
        .iter()
        .filter(|r| r.name == "node/nvlink")
        .map(|r| r.status)
        .collect()
}

#[test]
fn no_nvlink_is_normal_only_where_the_names_say_so() {
    let rows = ["X SYS PIX SYS", "SYS X SYS PIX"];
    let matrix = format!("$ nvidia-smi topo -m\n{}", topo(2, &TWO, &rows));
    assert_eq!(nvlink_of(&matrix), [Status::Skipped]);
    let named = |name: &str| {
        let list: Vec<String> = (0..2)
            .map(|n| format!("GPU {n}: {name} (UUID: GPU-00000000-0000-0000-0000-00000000000{n})"))
            .collect();
        let list = list.join("\n") + "\n";
        nvlink_of(&format!("$ nvidia-smi -L\n{list}{matrix}"))
    };
    assert_eq!(named("NVIDIA L40S"), [Status::Ok]);
    assert_eq!(named("NVIDIA H100 80GB HBM3"), [Status::Fail]);
}

#[test]
fn one_odd_pair_is_told() {
    let rows = |first: &str, second: &str| {
        topo(
            4,
            &[],
            &[
                &format!("X {first} NV18 NV18"),
                &format!("{second} X NV18 NV18"),
                "NV18 NV18 X NV18",
                "NV18 NV18 NV18 X",
            ],
        )
    };
    assert_eq!(nvlink_of(&rows("NV18", "NV18")), [Status::Ok]);
    assert_eq!(nvlink_of(&rows("NV17", "NV18")), [Status::Warn]);
    assert_eq!(nvlink_of(&rows("NV18", "NV17")), [Status::Warn]);
    assert_eq!(nvlink_of(&rows("NV17", "NV17")), [Status::Warn]);
    // By design some pairs have two links and some one.
    let cube = topo(
        4,
        &[],
        &[
            "X NV1 NV1 NV2",
            "NV1 X NV2 NV1",
            "NV1 NV2 X NV1",
            "NV2 NV1 NV1 X",
        ],
    );
    assert_eq!(nvlink_of(&cube), [Status::Ok]);
}

/// A terminal of so many columns breaks each line.
fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut wide = String::new();
        for c in line.chars() {
            if c == '\t' {
                wide.push(' ');
                while !wide.len().is_multiple_of(8) {
                    wide.push(' ');
                }
            } else {
                wide.push(c);
            }
        }
        while wide.len() > columns {
            let rest = wide.split_off(columns);
            out.push_str(&wide);
            out.push('\n');
            wide = rest;
        }
        out.push_str(&wide);
        out.push('\n');
    }
    out
}

#[test]
fn a_matrix_that_a_terminal_broke_is_not_whole() {
    let nics = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"];
    let whole = topo(
        4,
        &nics,
        &[
            "X NV18 NV18 NV18 PIX NODE SYS SYS",
            "NV18 X NV18 NV18 NODE PIX SYS SYS",
            "NV18 NV18 X NV18 SYS SYS PIX NODE",
            "NV18 NV18 NV18 X SYS SYS NODE PIX",
        ],
    );
    let affinity = |text: &str| -> Vec<Status> {
        judge(text, None, |_| {})
            .results
            .iter()
            .filter(|r| r.name == "node/gpu-nic-affinity")
            .map(|r| r.status)
            .collect()
    };
    assert_eq!(affinity(&whole), [Status::Ok]);
    for columns in [32, 40, 48, 56, 64] {
        let text = wrapped(&whole, columns);
        let told = affinity(&text);
        assert!(
            told.iter().all(|s| *s == Status::Skipped),
            "{columns}: {told:?}\n{text}"
        );
        let report = judge(&text, None, |_| {});
        assert!(
            report
                .results
                .iter()
                .all(|r| r.status != Status::Warn && r.status != Status::Fail),
            "{columns}: {text}"
        );
        assert!(
            report
                .results
                .iter()
                .any(|r| r.name == "input" && r.status == Status::Skipped),
            "{columns}: {text}"
        );
    }
}

#[test]
fn accelerators_of_others_are_named() {
    let report = judge(
        "c1:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Instinct [1002:74a1]\n",
        Some(Role::Decode),
        |_| {},
    );
    let told = report
        .results
        .iter()
        .find(|r| r.name == "node/gpu")
        .unwrap();
    assert_eq!(told.status, Status::Ok);
    assert!(told.detail.contains("AMD"), "{}", told.detail);
    assert_eq!(report.counts().fail, 0);
}

#[test]
fn a_whole_matrix_is_told_with_names() {
    let report = judge(&topo(3, &TWO, &GOOD), None, |_| {});
    let details: Vec<&str> = report.results.iter().map(|r| r.detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "NV18 between all 3 GPUs",
            "each GPU has a NIC at PIX: GPU0 mlx5_0; GPU1, GPU2 with mlx5_1"
        ]
    );
}

#[test]
fn a_row_that_is_missing_is_unknown() {
    let report = judge(&topo(3, &TWO, &GOOD[..2]), None, |_| {});
    assert_eq!(report.counts().ok, 0);
    assert!(report.results.iter().any(|r| r.detail.contains("GPU2")));
}

/// Collectors of logs put words before a line and behind it; a table is read all the same, and lanes beside a table
/// that cannot be read earn nothing.
#[test]
fn a_table_counts_whatever_stands_around_its_lines() {
    const READ: &str = "remote memory read by ucp_get*(multi) into cuda/GPU0 from cuda";
    let lane = "[1700000000.000001] [decode-0:7    :0]      ucp_worker.c:1855 UCX  INFO    agent inter-node cfg#1 rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1)\n";
    let rows = [
        "+--------+-----------+----------+",
        "| agent inter-node cfg#1         |",
        &format!("| {READ} |"),
        "+--------+-----------+----------+",
        "| Range  | Description | Config |",
        "+--------+-----------+----------+",
        "| 0..inf | zero-copy | tcp/eth0 |",
        "+--------+-----------+----------+",
    ];
    let prefixed: Vec<String> = rows
        .iter()
        .map(|row| format!("[1700000000.000002] [decode-0:7    :0]   {row}"))
        .collect();
    let around = |before: &str, after: &str| -> String {
        let mut text = String::new();
        for line in std::iter::once(lane.trim_end()).chain(prefixed.iter().map(String::as_str)) {
            writeln!(text, "{before}{line}{after}").unwrap();
        }
        text
    };
    let boxes = lane.to_owned()
        + &prefixed
            .join("\n")
            .replace('|', "│")
            .replace("+-", "┼─")
            .replace("--", "──");
    let texts = [
        around("", ""),
        around("{\"log\":\"", "\\n\",\"stream\":\"stdout\"}"),
        around("{\"log\":\"", "\\n\",\"stream\":\"std"),
        around("2026-01-02T03:04:05Z\t{pod=\"decode-0\"}\t", ""),
        around("decode-0 main ", ""),
        around("[1,0]<stdout>:", ""),
        around("12:", ""),
        around("worker.log:12:", ""),
        around("\"2026-01-02\",\"", "\""),
        around("[2026-01-02 03:04:05] ", ""),
        around("", "").replace("[1700000000.000002]", "[2026/01/02 03:04:05.123]"),
        lane.to_owned() + &rows.join("\n"),
        boxes,
    ];
    for text in texts {
        let report = judge(&text, None, |_| {});
        assert!(
            with(&report, "nixl-proto-table")
                .iter()
                .any(|r| r.status == Status::Fail),
            "{text}\n{:#?}",
            report.results
        );
    }
    // Bars that became something else: the table shows and says nothing, so nothing is ok.
    let unread = lane.to_owned() + &rows.join("\n").replace('|', ";");
    let report = judge(&unread, None, |_| {});
    assert!(
        report
            .results
            .iter()
            .all(|r| r.name != "nixl/payload-transport" || r.status == Status::Skipped),
        "{:#?}",
        report.results
    );
}

/// TCP beside RDMA in the lanes of the payload is no green light, in whichever order.
#[test]
fn lanes_that_mix_rdma_and_tcp_are_no_proof() {
    for uses in [
        "rma(rc_mlx5/mlx5_0:1 tcp/eth0)  am(rc_mlx5/mlx5_0:1)",
        "rma(tcp/eth0 rc_mlx5/mlx5_0:1)  am(tcp/eth0)",
    ] {
        let text = ucx("INFO", &format!("  agent inter-node cfg#1 {uses}"));
        let report = judge(&text, None, |_| {});
        assert_eq!(
            with(&report, "nixl-lane-line")
                .first()
                .map(|r| (r.status, r.detail.contains("a part of it may go over tcp"))),
            Some((Status::Skipped, true)),
            "{:#?}",
            report.results
        );
    }
    // Control messages over tcp are normal.
    let text = ucx(
        "INFO",
        "  agent inter-node cfg#1 rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1 tcp/eth0)",
    );
    let report = judge(&text, None, |_| {});
    assert!(
        with(&report, "nixl-lane-line")
            .iter()
            .all(|r| r.status == Status::Skipped && !r.detail.contains("tcp")),
        "{:#?}",
        report.results
    );
}

/// The matrix of AMD's tool has the same titles and none of NVIDIA's words: nothing about NVLink follows.
#[test]
fn a_matrix_of_rocm_is_not_nvidias() {
    let text = "       GPU0         GPU1\nGPU0   0            XGMI\nGPU1   XGMI         0\n";
    let report = judge(text, None, |_| {});
    assert!(
        report.results.iter().all(|r| !r.name.starts_with("node/")),
        "{:#?}",
        report.results
    );
}
