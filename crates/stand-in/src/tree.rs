//! Prepared trees of `/sys`, `/proc` and `/dev`, all of them made up, for the collecting script to read.
//!
//! A tree that cannot be written is a broken test machine: it panics.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use probe::local::Options;
use tempfile::TempDir;

/// A directory that stands for the root of a machine or container. It is gone when this is dropped.
#[derive(Debug)]
pub struct Tree {
    dir: TempDir,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// A tree with next to nothing in it.
    pub fn new() -> Self {
        let tree = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        tree.file("/proc/self/limits", LIMITS);
        tree.file(
            "/proc/self/status",
            "Name:\tsh\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n",
        );
        tree.file("/proc/self/environ", "");
        tree.file("/proc/1/comm", "systemd\n");
        tree.file("/proc/sys/kernel/osrelease", "6.8.0-test\n");
        tree
    }

    /// The directory that stands for `/`.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// A directory for tools, beside the tree.
    pub fn tools(&self) -> PathBuf {
        let tools = self.dir.path().join("tools");
        fs::create_dir_all(&tools).unwrap();
        tools
    }

    /// How the script runs over it on this machine.
    pub fn options(&self) -> Options {
        Options {
            root: Some(self.root()),
            tools: Some(self.tools()),
            ..Options::default()
        }
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// Writes a file; the path is as seen from the tree's root.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::write(self.at(path), text).unwrap();
    }

    /// Writes files of one directory, a line each.
    pub fn files(&self, directory: &str, files: &[(&str, &str)]) {
        for (name, text) in files {
            self.file(&format!("{directory}/{name}"), format!("{text}\n"));
        }
    }

    /// A link within the tree; both paths as seen from its root.
    pub fn link(&self, path: &str, target: &str) {
        let up = "../".repeat(path.matches('/').count() - 1);
        symlink(
            format!("{up}{}", target.trim_start_matches('/')),
            self.at(path),
        )
        .unwrap();
    }

    /// A tool that is found before the machine's own.
    pub fn tool(&self, name: &str, script: &str) {
        let path = self.tools().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A node with a GPU, an InfiniBand device with its uverbs node, a RoCE device with 1,024 GID slots and without
    /// one, a virtual function, soft-RoCE, and an engine.
    pub fn worker() -> Self {
        let tree = Self::new();
        let bus = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0";
        let gpu = format!("{bus}/0000:17:00.0/0000:18:00.0");
        tree.files(
            &gpu,
            &[
                ("class", "0x030200"),
                ("vendor", "0x10de"),
                ("device", "0x2330"),
                ("numa_node", "0"),
                ("current_link_speed", "2.5 GT/s PCIe"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"),
                ("max_link_width", "16"),
            ],
        );
        tree.link("/sys/bus/pci/devices/0000:18:00.0", &gpu);
        tree.file(
            "/proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@builder)\nGCC version:  gcc version 13\n",
        );
        tree.file(
            "/proc/driver/nvidia/params",
            "EnableStreamMemOPs: 1\nModifyDeviceFiles: 1\nRegistryDwords: \"\"\n",
        );
        tree.file(
            "/proc/driver/nvidia/gpus/0000:18:00.0/information",
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 100\nGPU UUID: \t GPU-11111111-2222-3333-4444-555555555555\nDevice Minor: \t 0\n",
        );
        tree.file("/dev/nvidia0", "");
        tree.file("/sys/module/nvidia/version", "580.65.06\n");

        // InfiniBand, below the same switch as the GPU.
        let hca = format!("{bus}/0000:17:01.0/0000:19:00.0");
        tree.device("mlx5_0", &hca, "0x0207", &[]);
        tree.port(
            "mlx5_0",
            &[
                ("link_layer", "InfiniBand"),
                ("rate", "400 Gb/sec (4X NDR)"),
                ("lid", "0x15"),
                ("sm_lid", "0x1"),
            ],
        );
        tree.files(
            "/sys/class/infiniband/mlx5_0/ports/1/gids",
            &[
                ("0", "fe80:0000:0000:0000:b83f:d203:0012:3456"),
                ("1", ZERO),
            ],
        );
        tree.files(
            "/sys/class/infiniband_verbs/uverbs0",
            &[("ibdev", "mlx5_0")],
        );
        tree.file("/dev/infiniband/uverbs0", "");
        tree.file("/dev/infiniband/rdma_cm", "");

        // RoCE, on another root port, a virtual function; its node was not given to this container.
        let vf = "/sys/devices/pci0000:15/0000:15:02.0/0000:2a:00.2";
        tree.file(
            "/sys/devices/pci0000:15/0000:15:02.0/0000:2a:00.0/vendor",
            "0x15b3\n",
        );
        tree.device("mlx5_1", vf, "0x0200", &["eth7"]);
        tree.link(
            &format!("{vf}/physfn"),
            "/sys/devices/pci0000:15/0000:15:02.0/0000:2a:00.0",
        );
        tree.port(
            "mlx5_1",
            &[
                ("link_layer", "Ethernet"),
                ("rate", "100 Gb/sec (4X EDR)"),
                ("lid", "0x0"),
                ("sm_lid", "0x0"),
            ],
        );
        let port = "/sys/class/infiniband/mlx5_1/ports/1";
        for slot in 0..1024 {
            tree.file(&format!("{port}/gids/{slot}"), format!("{ZERO}\n"));
        }
        for (slot, gid, kind) in [
            (0, "fe80:0000:0000:0000:0052:44ff:fe4d:4100", "IB/RoCE v1"),
            (3, "0000:0000:0000:0000:0000:ffff:c000:0205", "RoCE v2"),
            (1000, "2001:0db8:0000:0000:0000:0000:0000:0001", "RoCE v2"),
        ] {
            tree.file(&format!("{port}/gids/{slot}"), format!("{gid}\n"));
            tree.file(
                &format!("{port}/gid_attrs/types/{slot}"),
                format!("{kind}\n"),
            );
            if slot != 1000 {
                tree.file(&format!("{port}/gid_attrs/ndevs/{slot}"), "eth7\n");
            }
        }
        tree.files(
            "/sys/class/infiniband_verbs/uverbs1",
            &[("ibdev", "mlx5_1")],
        );
        tree.files(
            "/sys/class/net/eth7",
            &[
                ("operstate", "up"),
                ("mtu", "9000"),
                ("type", "1"),
                ("speed", "100000"),
                ("flags", "0x1003"),
            ],
        );
        tree.link("/sys/class/net/eth7/device", vf);

        // Soft-RoCE has no device behind it.
        tree.files(
            "/sys/class/infiniband/rxe0",
            &[
                ("node_type", "1: CA"),
                ("node_guid", "0052:44ff:fe4d:4100"),
                ("fw_ver", ""),
                ("parent", "eth7"),
            ],
        );
        tree.port(
            "rxe0",
            &[
                ("link_layer", "Ethernet"),
                ("rate", "2.5 Gb/sec (1X SDR)"),
                ("lid", "0x0"),
                ("sm_lid", "0x0"),
            ],
        );

        tree.file(
            "/proc/modules",
            "nvidia_peermem 20480 0 - Live 0x0000000000000000 (OE)\nnvidia 9453568 20 nvidia_uvm,nvidia_peermem, Live 0x0 (OE)\nmlx5_ib 500000 0 - Live 0x0\nib_core 500000 5 mlx5_ib,ib_uverbs, Live 0x0\next4 900000 1 - Live 0x0\n",
        );
        tree.files(
            "/sys/module/nvidia_peermem",
            &[("version", "580.65.06"), ("refcnt", "0")],
        );
        tree.engine(42);
        tree
    }

    /// An RDMA device behind a PCI address.
    pub fn device(&self, name: &str, pci: &str, class: &str, netdevs: &[&str]) {
        self.files(
            pci,
            &[
                ("class", &format!("{class}00")),
                ("vendor", "0x15b3"),
                ("device", "0x1021"),
                ("numa_node", "0"),
                ("current_link_speed", "32.0 GT/s PCIe"),
                ("max_link_speed", "32.0 GT/s PCIe"),
                ("current_link_width", "16"),
                ("max_link_width", "16"),
            ],
        );
        let address = pci.rsplit('/').next().unwrap();
        self.link(&format!("/sys/bus/pci/devices/{address}"), pci);
        self.file(&format!("/sys/bus/pci/drivers/mlx5_core/{address}"), "");
        self.link(&format!("{pci}/driver"), "/sys/bus/pci/drivers/mlx5_core");
        for netdev in netdevs {
            self.file(&format!("{pci}/net/{netdev}/mtu"), "9000\n");
        }
        let class = format!("/sys/class/infiniband/{name}");
        self.files(
            &class,
            &[
                ("node_type", "1: CA"),
                ("node_guid", "b83f:d203:0012:3456"),
                ("fw_ver", "28.41.1000"),
                ("hca_type", "MT4129"),
                ("board_id", "NVD0000000022"),
            ],
        );
        self.link(&format!("{class}/device"), pci);
    }

    /// The first port of a device, with defaults for an active one.
    pub fn port(&self, device: &str, files: &[(&str, &str)]) {
        let port = format!("/sys/class/infiniband/{device}/ports/1");
        self.files(
            &port,
            &[
                ("state", "4: ACTIVE"),
                ("phys_state", "5: LinkUp"),
                ("cap_mask", "0xa751e848"),
            ],
        );
        self.files(&port, files);
        self.files(
            &format!("{port}/counters"),
            &[("port_xmit_data", "1234"), ("link_downed", "0")],
        );
    }

    /// An engine, with settings, a secret in between and libraries of a wheel.
    pub fn engine(&self, pid: u32) {
        let at = |name: &str| format!("/proc/{pid}/{name}");
        self.file(&at("comm"), "python3\n");
        self.file(
            &at("cmdline"),
            "python3\0-m\0dynamo.vllm\0--tokenizer\0/models/private-model\0--kv-transfer-config\0{\"kv_connector\":\"NixlConnector\"}\0--is-prefill-worker\0--api-key=hunter2\0--block_size\x0064\0",
        );
        self.file(
            &at("environ"),
            "PATH=/usr/bin\0UCX_TLS=rc,cuda_copy\0HF_TOKEN=hunter2\0NOTE=hunter2\nUCX_NET_DEVICES=hunter2:1\0UCX_NET_DEVICES=mlx5_0:1\0NIXL_ETCD_ENDPOINTS=http://hunter2@etcd\0",
        );
        self.file(
            &at("limits"),
            LIMITS.replace(
                "8388608              8388608",
                "unlimited            unlimited",
            ),
        );
        self.file(
            &at("status"),
            "Name:\tpython3\nPPid:\t1\nUid:\t0\t0\t0\t0\nCapEff:\t0000000000004000\n",
        );
        self.file(
            &at("maps"),
            "7f0000000000-7f0000001000 r--p 00000000 08:01 1 /opt/venv/lib/python3.12/site-packages/nixl_cu12.libs/libucp-1a2b3c4d.so.0.0.0\n\
             7f0000001000-7f0000002000 r-xp 00001000 08:01 1 /opt/venv/lib/python3.12/site-packages/nixl_cu12.libs/libucp-1a2b3c4d.so.0.0.0\n\
             7f0000003000-7f0000004000 r-xp 00001000 08:01 2 /usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39 (deleted)\n\
             7f0000005000-7f0000006000 r-xp 00001000 08:01 3 /usr/lib/x86_64-linux-gnu/libc.so.6\n",
        );
    }
}

const ZERO: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \nMax open files            1024                 4096                 files     \nMax locked memory         8388608              8388608              bytes     \n";
