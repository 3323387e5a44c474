//! RDMA devices, their ports and GIDs.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::fact::{Fact, Origin, merge_fields};
use super::pci::PcieLink;

/// All RDMA devices that any source names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rdma {
    /// By name, such as `mlx5_0`.
    pub devices: BTreeMap<String, Box<Device>>,
    /// Who listed devices, and whom it listed. An empty one says that there was no device to list.
    pub listings: Vec<Listing>,
    /// Nodes below `/dev/infiniband`, by name: `uverbs0`, `rdma_cm`.
    pub nodes: BTreeMap<String, DevNode>,
    /// Whether `/dev/infiniband` has any node; `false` also where the folder is not there.
    pub nodes_present: Fact<bool>,
    /// Whether all network namespaces see all RDMA devices (`rdma system`).
    pub netns_mode: Fact<NetnsMode>,
    /// `abi_version` of the uverbs interface.
    pub abi_version: Fact<u32>,
    /// Devices that `ibv_devinfo` could not open; it does not name them.
    pub open_failures: Vec<Origin>,
    /// Tables of GIDs that were listed; one without entries says that there was no GID to list.
    pub gid_tables: Vec<GidTable>,
}

merge_fields!(Rdma {
    devices,
    listings,
    nodes,
    nodes_present,
    netns_mode,
    abi_version,
    open_failures,
    gid_tables
});

/// One source's list of devices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Who says so.
    pub origin: Origin,
    /// Device names, in its order.
    pub devices: Vec<String>,
    /// A part of the list is missing.
    pub cut: bool,
    /// What the tool printed in place of a list.
    pub error: Option<String>,
}

/// One table of GIDs over all devices (`show_gids`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GidTable {
    /// Where.
    pub origin: Origin,
    /// How many GIDs it has.
    pub entries: u32,
    /// A part is missing, or only one device was asked for.
    pub cut: bool,
}

/// How network namespaces share RDMA devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetnsMode {
    /// Every namespace sees every device.
    Shared,
    /// A namespace sees the devices that were moved into it.
    Exclusive,
}

/// What stands behind a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// A whole PCI device.
    Physical,
    /// An SR-IOV virtual function.
    Virtual,
    /// A scalable function on the auxiliary bus.
    Scalable,
    /// Soft-RoCE (rxe) or soft-iWARP (siw): no RDMA hardware.
    Software,
}

/// Software RDMA by the names that the kernel's own tools give it (`rxe0`, `siw_eth0`).
pub fn has_software_name(device: &str) -> bool {
    device.starts_with("rxe") || device.starts_with("siw")
}

/// One RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// By port number, from 1.
    pub ports: BTreeMap<u32, Box<Port>>,
    /// Number that the kernel gives the device (`rdma link`, `rdma dev`).
    pub index: Fact<u32>,
    /// Number of ports that the device says it has.
    pub port_count: Fact<u32>,
    /// `MT4129`.
    pub hca_type: Fact<String>,
    /// `NVD0000000022`.
    pub board_id: Fact<String>,
    /// `28.41.1000`; empty on software devices.
    pub firmware: Fact<String>,
    /// `0x0`, `0xEFA0`.
    pub hardware_version: Fact<String>,
    /// 16 hexadecimal digits without separators.
    pub node_guid: Fact<String>,
    /// 16 hexadecimal digits without separators.
    pub system_image_guid: Fact<String>,
    /// `mlx5_0`, or what the administrator calls it.
    pub node_description: Fact<String>,
    /// `CA`, `RNIC`.
    pub node_type: Fact<String>,
    /// `0x02c9` is Mellanox, `0x1d0f` Amazon.
    pub vendor_id: Fact<u32>,
    /// `4129`.
    pub vendor_part_id: Fact<u32>,
    /// `InfiniBand (0)`, `unspecified (4)` as `ibv_devinfo` prints it.
    pub transport: Fact<String>,
    /// Kernel driver: `mlx5_core`, `efa`, `bnxt_re`, `rxe`.
    pub driver: Fact<String>,
    /// What stands behind it.
    pub function: Fact<Function>,
    /// PCI address, `0000:18:00.0`.
    pub pci: Fact<String>,
    /// NUMA node; -1 where the firmware does not say.
    pub numa_node: Fact<i32>,
    /// PCIe speed and width.
    pub pcie: PcieLink,
    /// Network interfaces of the device in this network namespace; empty: none here.
    pub netdevs: Fact<Vec<String>>,
    /// Interface that a software device was made on; it may be in another network namespace.
    pub parent_netdev: Fact<String>,
    /// Name of its uverbs node, such as `uverbs0`, from sysfs.
    pub uverbs: Fact<String>,
    /// Whether user space could open it: `ibv_devinfo` prints its attributes, or says that it failed.
    pub opens: Fact<bool>,
    /// Whether peers can write into GPU memory over PCIe by data direct (`mlx5` data-direct interface).
    pub data_direct: Fact<bool>,
}

merge_fields!(Device {
    ports,
    index,
    port_count,
    hca_type,
    board_id,
    firmware,
    hardware_version,
    node_guid,
    system_image_guid,
    node_description,
    node_type,
    vendor_id,
    vendor_part_id,
    transport,
    driver,
    function,
    pci,
    numa_node,
    pcie,
    netdevs,
    parent_netdev,
    uverbs,
    opens,
    data_direct
});

/// Logical state of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortState {
    /// Nothing is known to the device.
    Nop,
    /// Down.
    Down,
    /// Up, but no subnet manager has set it up (InfiniBand).
    Init,
    /// Set up, not yet active.
    Armed,
    /// Carries traffic.
    Active,
    /// Active, in a transition.
    ActiveDefer,
    /// Another word.
    Other(String),
}

/// Physical state of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhysState {
    /// Asleep.
    Sleep,
    /// Looks for a peer: no cable, or none at the other end.
    Polling,
    /// Switched off.
    Disabled,
    /// Negotiates.
    Training,
    /// The link is there.
    LinkUp,
    /// Recovers from errors.
    ErrorRecovery,
    /// Test mode.
    PhyTest,
    /// Another word.
    Other(String),
}

/// What the port speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkLayer {
    /// InfiniBand.
    InfiniBand,
    /// Ethernet: RoCE or iWARP.
    Ethernet,
    /// `Unspecified` or `Unknown`, as EFA prints it.
    Unspecified,
    /// Another word.
    Other(String),
}

/// One port of a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Logical state.
    pub state: Fact<PortState>,
    /// Physical state.
    pub phys: Fact<PhysState>,
    /// What it speaks.
    pub link_layer: Fact<LinkLayer>,
    /// Rate in Mb/s. On a port that is down it is a placeholder.
    pub rate_mbps: Fact<u64>,
    /// Lanes: 1, 2, 4, 8, 12.
    pub lanes: Fact<u32>,
    /// Name of the lane speed: `NDR`.
    pub lane_speed: Fact<String>,
    /// Speed of one lane in Mb/s, as `ibv_devinfo -v` prints it.
    pub lane_mbps: Fact<u64>,
    /// Local identifier; 0 on Ethernet, 65535 where none was assigned.
    pub lid: Fact<u32>,
    /// LID of the subnet manager; 0 on Ethernet, or where there is none.
    pub sm_lid: Fact<u32>,
    /// Bytes.
    pub active_mtu: Fact<u32>,
    /// Bytes.
    pub max_mtu: Fact<u32>,
    /// Network interface; `None` where the source tells interfaces and has none for this port.
    pub netdev: Fact<Option<String>>,
    /// Whether that interface is up, which says nothing about an InfiniBand port (`ibdev2netdev`).
    pub netdev_up: Fact<bool>,
    /// Index of that interface.
    pub netdev_index: Fact<u32>,
    /// 16 hexadecimal digits without separators.
    pub port_guid: Fact<String>,
    /// Capability mask.
    pub capability_mask: Fact<u32>,
    /// By index. Empty entries are left out.
    pub gids: BTreeMap<u32, Gid>,
    /// Partition keys by index: `0xffff` is full membership of the default partition, `0x7fff` limited. Empty
    /// entries (`0x0000`) are left out.
    pub pkeys: BTreeMap<u32, Fact<u32>>,
    /// `port_xmit_data` (units of 4 bytes), `link_downed`, `hw_counters/out_of_sequence`.
    pub counters: BTreeMap<String, Fact<u64>>,
}

merge_fields!(Port {
    state,
    phys,
    link_layer,
    rate_mbps,
    lanes,
    lane_speed,
    lane_mbps,
    lid,
    sm_lid,
    active_mtu,
    max_mtu,
    netdev,
    netdev_up,
    netdev_index,
    port_guid,
    capability_mask,
    gids,
    pkeys,
    counters
});

/// What kind of address a GID is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GidType {
    /// InfiniBand.
    #[serde(rename = "ib")]
    InfiniBand,
    /// RoCE version 1: Ethernet frames that no router passes.
    #[serde(rename = "v1")]
    RoceV1,
    /// RoCE version 2: UDP.
    #[serde(rename = "v2")]
    RoceV2,
    /// `IB/RoCE v1`, as sysfs prints the first two.
    #[serde(rename = "ib-or-v1")]
    InfiniBandOrRoceV1,
}

/// One entry of a GID table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gid {
    /// The address, all 128 bits.
    pub address: Fact<Ipv6Addr>,
    /// Its kind.
    pub kind: Fact<GidType>,
    /// Network interface that it belongs to; `None` where the source prints none.
    pub netdev: Fact<Option<String>>,
}

merge_fields!(Gid {
    address,
    kind,
    netdev
});

impl Gid {
    /// The IPv4 address that is mapped into the latest GID, if it is one.
    pub fn ipv4(&self) -> Option<Ipv4Addr> {
        self.address.value()?.to_ipv4_mapped()
    }

    /// Link-local: no router passes it.
    pub fn is_link_local(&self) -> Option<bool> {
        self.address.value().map(Ipv6Addr::is_unicast_link_local)
    }
}

/// One node below `/dev`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DevNode {
    /// Whether it is there.
    pub exists: Fact<bool>,
    /// `crw-rw-rw-`.
    pub mode: Fact<String>,
    /// Owner and group.
    pub owner: Fact<(String, String)>,
    /// Device numbers, major and minor.
    pub numbers: Fact<(u32, u32)>,
    /// Whether this process may open it for reading and writing.
    pub opens: Fact<bool>,
    /// What the kernel said where opening it failed: `Permission denied`, `No such device or address`.
    pub open_error: Fact<String>,
    /// The RDMA device behind it.
    pub device: Fact<String>,
}

merge_fields!(DevNode {
    exists,
    mode,
    owner,
    numbers,
    opens,
    open_error,
    device
});
