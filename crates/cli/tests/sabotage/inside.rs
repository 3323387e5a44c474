//! What is inside of a healthy worker's container: eight GPUs joined by NVLink, eight InfiniBand cards each beside one,
//! an Ethernet card of the machine's, and an engine with NIXL loaded.

use std::fmt::Write as _;

use stand_in::Tree;

/// GPUs, and cards beside them.
pub(crate) const RAILS: usize = 8;
/// The engine's process.
pub(crate) const PID: u32 = 42;

/// Where its wheel put NIXL and UCX.
pub(crate) const SITE: &str = "/opt/venv/lib/python3.12/site-packages";

/// Limits of a process: locked memory as given.
pub(crate) fn limits(memlock: &str, files: &str) -> String {
    format!(
        "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            {files:<20} {files:<20} files     \nMax locked memory         {memlock:<20} {memlock:<20} bytes     \n"
    )
}

fn switch(n: usize) -> String {
    format!("/sys/devices/pci0000:{n}5/0000:{n}5:01.0/0000:{n}6:00.0")
}

/// What the cards speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fabric {
    InfiniBand,
    Roce,
}

/// The machine and the container, without what the engine is told. `id` is four digits that no other machine has.
pub(crate) fn tree(id: &str, fabric: Fabric) -> Tree {
    let tree = Tree::new();
    tree.files(
        "/sys/class/dmi/id",
        &[("sys_vendor", "Supermicro"), ("product_name", "SYS-821GE")],
    );
    tree.file("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu vme de\n");
    tree.file("/proc/1/comm", "python3\n");
    tree.file("/proc/self/limits", limits("unlimited", "1048576"));
    tree.file("/proc/sys/kernel/hostname", format!("pod-{id}\n"));
    tree.file(
        "/proc/sys/kernel/random/boot_id",
        format!("0000{id}-0000-4000-8000-000000000000\n"),
    );
    tree.file(
        "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
        "serving",
    );
    tree.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@builder)\n",
    );
    tree.file("/sys/module/nvidia/version", "580.65.06\n");
    tree.file(
        "/proc/modules",
        "nvidia_peermem 20480 0 - Live 0x0\nnvidia_uvm 2000000 4 - Live 0x0\nnvidia 9453568 20 nvidia_uvm,nvidia_peermem, Live 0x0\ngdrdrv 28672 0 - Live 0x0\nmlx5_ib 500000 0 - Live 0x0\nib_uverbs 200000 1 mlx5_ib, Live 0x0\nib_core 500000 2 mlx5_ib,ib_uverbs, Live 0x0\nmlx5_core 2500000 1 mlx5_ib, Live 0x0\n",
    );
    tree.files(
        "/sys/module/nvidia_peermem",
        &[("version", "580.65.06"), ("refcnt", "0")],
    );
    for name in ["ib_core", "ib_uverbs", "mlx5_core", "mlx5_ib"] {
        tree.file(&format!("/sys/module/{name}/refcnt"), "1\n");
    }
    tree.file(
        "/proc/devices",
        "Character devices:\n195 nvidia\n231 infiniband_verbs\n234 gdrdrv\n",
    );
    for node in ["gdrdrv", "nvidiactl", "nvidia-uvm", "infiniband/rdma_cm"] {
        tree.file(&format!("/dev/{node}"), "");
    }
    tree.file("/run/nvidia-fabricmanager/socket", "");
    tree.file("/etc/libibverbs.d/mlx5.driver", "driver mlx5\n");
    tree.file(
        "/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so",
        "",
    );
    tree.file(&format!("{SITE}/nixl_cu12-1.5.1.dist-info/METADATA"), "");
    for n in 0..RAILS {
        gpu(&tree, n, id);
        match fabric {
            Fabric::InfiniBand => rail(&tree, n, id),
            Fabric::Roce => roce(&tree, n, id),
        }
    }
    front_end(&tree, id);
    tools(&tree, id);
    packets(&tree, fabric, 4096);
    engine(&tree);
    tree
}

fn gpu(tree: &Tree, n: usize, id: &str) {
    let gpu = format!("{}/0000:{n}7:00.0/0000:{n}8:00.0", switch(n));
    tree.files(
        &gpu,
        &[
            ("class", "0x030200"),
            ("vendor", "0x10de"),
            ("device", "0x2330"),
            ("numa_node", if n < RAILS / 2 { "0" } else { "1" }),
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
            uuid(n, id)
        ),
    );
    tree.file(&format!("/dev/nvidia{n}"), "");
}

fn uuid(n: usize, id: &str) -> String {
    format!("GPU-0000{id}-2222-3333-4444-55555555555{n}")
}

fn rail(tree: &Tree, n: usize, id: &str) {
    let name = format!("mlx5_{n}");
    tree.device(
        &name,
        &format!("{}/0000:{n}7:01.0/0000:{n}9:00.0", switch(n)),
        "0x0207",
        &[],
    );
    tree.file(
        &format!("/sys/class/infiniband/{name}/node_guid"),
        format!("b83f:d203:{id}:000{n}\n"),
    );
    let lid = format!("0x{:x}", 0x15 + n);
    tree.port(
        &name,
        &[
            ("link_layer", "InfiniBand"),
            ("rate", "400 Gb/sec (4X NDR)"),
            ("lid", &lid),
            ("sm_lid", "0x1"),
        ],
    );
    let port = format!("/sys/class/infiniband/{name}/ports/1");
    tree.files(
        &format!("{port}/gids"),
        &[("0", &format!("fe80:0000:0000:0000:b83f:d203:{id}:000{n}"))],
    );
    tree.files(
        &format!("{port}/pkeys"),
        &[("0", "0xffff"), ("1", "0x0000")],
    );
    tree.files(
        &format!("/sys/class/infiniband_verbs/uverbs{n}"),
        &[("ibdev", &name)],
    );
    tree.file(&format!("/dev/infiniband/uverbs{n}"), "");
}

/// A RoCE card with an interface in the pod.
fn roce(tree: &Tree, n: usize, id: &str) {
    let name = format!("mlx5_{n}");
    let netdev = format!("rdma{n}");
    let card = format!("{}/0000:{n}7:01.0/0000:{n}9:00.0", switch(n));
    tree.device(&name, &card, "0x0200", &[&netdev]);
    tree.file(
        &format!("/sys/class/infiniband/{name}/node_guid"),
        format!("b83f:d203:{id}:000{n}\n"),
    );
    tree.port(
        &name,
        &[
            ("link_layer", "Ethernet"),
            ("rate", "400 Gb/sec (4X NDR)"),
            ("lid", "0x0"),
            ("sm_lid", "0x0"),
        ],
    );
    gids(tree, n, id, true);
    tree.files(
        &format!("/sys/class/infiniband_verbs/uverbs{n}"),
        &[("ibdev", &name)],
    );
    tree.file(&format!("/dev/infiniband/uverbs{n}"), "");
    tree.files(
        &format!("/sys/class/net/{netdev}"),
        &[
            ("operstate", "up"),
            ("mtu", "9000"),
            ("type", "1"),
            ("speed", "400000"),
            ("flags", "0x1003"),
        ],
    );
    tree.link(&format!("/sys/class/net/{netdev}/device"), &card);
}

/// GIDs of a RoCE port: link-local and by its address, of version 1 and, where it has that, of version 2.
pub(crate) fn gids(tree: &Tree, n: usize, id: &str, second: bool) {
    let port = format!("/sys/class/infiniband/mlx5_{n}/ports/1");
    let local = format!("fe80:0000:0000:0000:ba3f:d2ff:{id}:000{n}");
    let routed = format!("0000:0000:0000:0000:0000:ffff:0a6{n}:{id}");
    for (slot, gid, kind) in [
        (0, &local, "IB/RoCE v1"),
        (1, &local, "RoCE v2"),
        (2, &routed, "IB/RoCE v1"),
        (3, &routed, "RoCE v2"),
    ] {
        let kind = if second { kind } else { "IB/RoCE v1" };
        tree.file(&format!("{port}/gids/{slot}"), format!("{gid}\n"));
        tree.file(
            &format!("{port}/gid_attrs/types/{slot}"),
            format!("{kind}\n"),
        );
        tree.file(
            &format!("{port}/gid_attrs/ndevs/{slot}"),
            format!("rdma{n}\n"),
        );
    }
}

/// What `ibv_devinfo` tells of the packets.
pub(crate) fn packets(tree: &Tree, fabric: Fabric, bytes: u32) {
    let lids = match fabric {
        Fabric::InfiniBand => "sm_lid=1 lid=$((21 + n))",
        Fabric::Roce => "sm_lid=0 lid=0",
    };
    let code = bytes.trailing_zeros().saturating_sub(7);
    let root = tree.root();
    let script = format!(
        "for n in 0 1 2 3 4 5 6 7; do\n\
         port={root}/sys/class/infiniband/mlx5_$n/ports/1\n\
         [ -d $port ] && [ -e {root}/dev/infiniband/uverbs$n ] || continue\n\
         read -r state rest <$port/state\n\
         read -r layer <$port/link_layer\n\
         case $state in 1:) word=PORT_DOWN ;; 2:) word=PORT_INIT ;; 3:) word=PORT_ARMED ;; *) word=PORT_ACTIVE ;; esac\n\
         {lids}\n\
         printf 'hca_id:\\tmlx5_%s\\n\\ttransport:\\t\\t\\tInfiniBand (0)\\n\\tphys_port_cnt:\\t\\t\\t1\\n' $n\n\
         printf '\\t\\tport:\\t1\\n\\t\\t\\tstate:\\t\\t\\t%s (%s)\\n\\t\\t\\tmax_mtu:\\t\\t4096 (5)\\n' $word ${{state%:}}\n\
         printf '\\t\\t\\tactive_mtu:\\t\\t{bytes} ({code})\\n\\t\\t\\tsm_lid:\\t\\t\\t%s\\n\\t\\t\\tport_lid:\\t\\t%s\\n' $sm_lid $lid\n\
         printf '\\t\\t\\tport_lmc:\\t\\t0x00\\n\\t\\t\\tlink_layer:\\t\\t%s\\n\\n' $layer\n\
         done",
        root = root.display()
    );
    tool(tree, "ibv_devinfo", &script);
}

/// The machine's own network and storage, on a card that the container was not given.
fn front_end(tree: &Tree, id: &str) {
    let name = format!("mlx5_{RAILS}");
    tree.device(
        &name,
        "/sys/devices/pci0000:a5/0000:a5:01.0/0000:a9:00.0",
        "0x0200",
        &[],
    );
    tree.file(
        &format!("/sys/class/infiniband/{name}/node_guid"),
        format!("b83f:d203:{id}:0008\n"),
    );
    tree.port(
        &name,
        &[
            ("link_layer", "Ethernet"),
            ("rate", "25 Gb/sec (1X EDR)"),
            ("lid", "0x0"),
            ("sm_lid", "0x0"),
        ],
    );
    tree.files(
        &format!("/sys/class/infiniband_verbs/uverbs{RAILS}"),
        &[("ibdev", &name)],
    );
    tree.files(
        "/sys/class/net/eth0",
        &[
            ("operstate", "up"),
            ("mtu", "1500"),
            ("type", "1"),
            ("flags", "0x1003"),
        ],
    );
    tree.files(
        "/sys/class/net/lo",
        &[("operstate", "unknown"), ("mtu", "65536"), ("type", "772")],
    );
}

/// What the tools of the container print.
fn tools(tree: &Tree, id: &str) {
    for absent in ["rdma", "ucx_info", "fi_info"] {
        tool(tree, absent, "exit 127");
    }
    shared_memory(tree, 64 << 20);
    tool(
        tree,
        "ip",
        "echo '1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever preferred_lft forever'\n\
         echo '2: eth0    inet 10.1.0.7/24 brd 10.1.0.255 scope global eth0\\       valid_lft forever preferred_lft forever'",
    );
    driver(tree, id, &Driver::default());
}

/// A tool of the container.
pub(crate) fn tool(tree: &Tree, name: &str, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let path = format!("/bin/{name}");
    tree.file(&path, format!("#!/bin/sh\n{script}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(tree.root().join(path.trim_start_matches('/')), mode).unwrap();
}

/// The size of `/dev/shm`, in KiB.
pub(crate) fn shared_memory(tree: &Tree, kib: u64) {
    tree.file("/dev/shm/.keep", "");
    tool(
        tree,
        "df",
        &format!(
            "echo 'Filesystem     1024-blocks      Used Available Capacity Mounted on'\necho 'tmpfs             {kib}         0 {kib}       0% /dev/shm'"
        ),
    );
}

/// What `nvidia-smi` tells.
pub(crate) struct Driver {
    pub(crate) version: &'static str,
    pub(crate) gpus: usize,
    /// Fabric of the last GPU.
    pub(crate) fabric: (&'static str, &'static str, &'static str),
    /// Clique and cluster of all.
    pub(crate) clique: (&'static str, &'static str),
    /// What is printed of a link of the first GPU.
    pub(crate) link: &'static str,
}

impl Default for Driver {
    fn default() -> Self {
        Self {
            version: "580.65.06",
            gpus: RAILS,
            fabric: ("Completed", "Success", "Healthy"),
            clique: ("0", "00000000-0000-0000-0000-000000000000"),
            link: "26.562 GB/s",
        }
    }
}

pub(crate) fn driver(tree: &Tree, id: &str, told: &Driver) {
    let mut query = format!(
        "==============NVSMI LOG==============\n\nDriver Version                            : {}\nCUDA Version                              : 13.0\n\nAttached GPUs                             : {}\n",
        told.version, told.gpus
    );
    let mut links = String::new();
    let mut matrix = String::new();
    for n in 0..told.gpus {
        let last = n + 1 == told.gpus;
        let (state, status, health) = if last {
            told.fabric
        } else {
            ("Completed", "Success", "Healthy")
        };
        let _ = writeln!(
            query,
            "GPU 00000000:{n}8:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n    GPU UUID                              : {}\n    Minor Number                          : {n}\n    MIG Mode\n        Current                           : Disabled\n    GPU Virtualization Mode\n        Virtualization Mode               : None\n    Fabric\n        State                             : {state}\n        Status                            : {status}\n        CliqueId                          : {}\n        ClusterUUID                       : {}\n        Health\n            Summary                       : {health}\n            Bandwidth                     : Full\n            Route Unhealthy               : False",
            uuid(n, id),
            told.clique.0,
            told.clique.1
        );
        let _ = writeln!(
            links,
            "GPU {n}: NVIDIA H100 80GB HBM3 (UUID: {})",
            uuid(n, id)
        );
        for link in 0..18 {
            let text = if n == 0 && link == 17 {
                told.link
            } else {
                "26.562 GB/s"
            };
            let _ = writeln!(links, "\t Link {link}: {text}");
        }
    }
    for title in 0..told.gpus {
        let _ = write!(matrix, "\tGPU{title}");
    }
    for title in 0..RAILS {
        let _ = write!(matrix, "\tNIC{title}");
    }
    matrix.push_str("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n");
    let far = |a: usize, b: usize| {
        if (a < RAILS / 2) == (b < RAILS / 2) {
            "NODE"
        } else {
            "SYS"
        }
    };
    for own in 0..told.gpus {
        let _ = write!(matrix, "GPU{own}");
        for other in 0..told.gpus {
            matrix.push_str(if own == other { "\t X " } else { "\tNV18" });
        }
        for card in 0..RAILS {
            let _ = write!(
                matrix,
                "\t{}",
                if own == card { "PXB" } else { far(own, card) }
            );
        }
        let numa = usize::from(own >= RAILS / 2);
        let _ = writeln!(matrix, "\t{}-{}\t{numa}\tN/A", numa * 48, numa * 48 + 47);
    }
    for own in 0..RAILS {
        let _ = write!(matrix, "NIC{own}");
        for other in 0..told.gpus {
            let _ = write!(
                matrix,
                "\t{}",
                if own == other { "PXB" } else { far(own, other) }
            );
        }
        for card in 0..RAILS {
            let _ = write!(
                matrix,
                "\t{}",
                if own == card { " X " } else { far(own, card) }
            );
        }
        matrix.push('\n');
    }
    matrix.push_str("\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC Legend:\n\n");
    for card in 0..RAILS {
        let _ = writeln!(matrix, "  NIC{card}: mlx5_{card}");
    }
    for (name, text) in [("query", &query), ("links", &links), ("matrix", &matrix)] {
        tree.file(&format!("/tmp/nvidia-smi-{name}"), text);
    }
    let root = tree.root();
    let root = root.display();
    tool(
        tree,
        "nvidia-smi",
        &format!(
            "case \"$1\" in\n-q) cat {root}/tmp/nvidia-smi-query ;;\ntopo) cat {root}/tmp/nvidia-smi-matrix ;;\nnvlink) cat {root}/tmp/nvidia-smi-links ;;\nesac"
        ),
    );
}

/// Libraries that the engine has mapped.
pub(crate) fn maps(paths: &[&str]) -> String {
    let mut text = String::new();
    for (n, path) in paths.iter().enumerate() {
        let _ = writeln!(
            text,
            "7f00000{n}1000-7f00000{n}2000 r-xp 00001000 08:01 {n} {path}"
        );
    }
    text
}

/// Those of a wheel of NIXL.
pub(crate) fn loaded() -> Vec<String> {
    let libs = format!("{SITE}/nixl_cu12.libs");
    let mut all = vec![
        format!("{SITE}/nixl_cu12/_bindings.cpython-312-x86_64-linux-gnu.so"),
        format!("{SITE}/.nixl_cu12.mesonpy.libs/libnixl.so"),
        format!("{SITE}/.nixl_cu12.mesonpy.libs/plugins/libplugin_UCX.so"),
    ];
    all.extend(
        [
            "libucp-1a2b3c4d.so.0.0.0",
            "libuct-1a2b3c4d.so.0.0.0",
            "libucs-1a2b3c4d.so.0.0.0",
            "ucx/libuct_ib-1a2b3c4d.so.0.0.0",
            "ucx/libuct_cuda-1a2b3c4d.so.0.0.0",
        ]
        .map(|name| format!("{libs}/{name}")),
    );
    all.push("/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39".to_owned());
    all.push("/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so".to_owned());
    all.push("/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06".to_owned());
    all
}

/// The engine's process; its variables and words are written by who plants them.
fn engine(tree: &Tree) {
    let at = |name: &str| format!("/proc/{PID}/{name}");
    tree.file(&at("comm"), "python3\n");
    tree.file(&at("limits"), limits("unlimited", "1048576"));
    status(tree, 0, "0000000000004000");
    let paths = loaded();
    tree.file(
        &at("maps"),
        maps(&paths.iter().map(String::as_str).collect::<Vec<_>>()),
    );
    let target = |path: &str, target: &str| {
        tree.file(path, "");
        let path = tree.root().join(path.trim_start_matches('/'));
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    };
    for who in ["self", "42"] {
        for (name, number) in [
            ("net", 4_026_532_111_u32),
            ("ipc", 4_026_532_112),
            ("pid", 4_026_532_113),
        ] {
            target(
                &format!("/proc/{who}/ns/{name}"),
                &format!("{name}:[{number}]"),
            );
        }
    }
    target(&at("exe"), "/usr/bin/python3.12");
    for n in 0..RAILS {
        target(
            &at(&format!("fd/{}", n + 20)),
            &format!("/dev/infiniband/uverbs{n}"),
        );
    }
    target(&at("fd/30"), "socket:[9001]");
    // It listens on port 5600 of every address.
    tree.file(
        &at("net/tcp"),
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   0: 00000000:15E0 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 9001 1 0000000000000000 100 0 0 10 0\n",
    );
    tree.file(
        &at("net/tcp6"),
        "  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
    );
    tree.file(&at("root/.keep"), "");
}

/// User and capabilities of the engine.
pub(crate) fn status(tree: &Tree, uid: u32, capabilities: &str) {
    tree.file(
        &format!("/proc/{PID}/status"),
        format!(
            "Name:\tpython3\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{capabilities}\nCpus_allowed_list:\t0-95\n"
        ),
    );
}
