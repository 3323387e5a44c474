//! PCI devices and their links.

use serde::{Deserialize, Serialize};

use super::fact::{Fact, merge_fields};

/// Speed and width of a PCIe link. GPUs lower both when idle; network cards do not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PcieLink {
    /// Now, in MT/s (16000 is 16 GT/s).
    pub speed_mts: Fact<u32>,
    /// At most, in MT/s.
    pub max_speed_mts: Fact<u32>,
    /// Lanes now.
    pub width: Fact<u32>,
    /// Lanes at most.
    pub max_width: Fact<u32>,
    /// The tool itself says that the speed is lowered.
    pub speed_downgraded: Fact<bool>,
    /// The tool itself says that the width is lowered.
    pub width_downgraded: Fact<bool>,
}

merge_fields!(PcieLink {
    speed_mts,
    max_speed_mts,
    width,
    max_width,
    speed_downgraded,
    width_downgraded
});

/// One PCI function of an inventory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PciDevice {
    /// Class name as `lspci` prints it: `Infiniband controller`.
    pub class_name: Fact<String>,
    /// Class code: `0x0207` InfiniBand, `0x0200` Ethernet, `0x0302` GPU, `0x0680` bridge.
    pub class: Fact<u32>,
    /// Vendor: `0x10de` NVIDIA, `0x15b3` Mellanox, `0x1d0f` Amazon.
    pub vendor: Fact<u32>,
    /// Device number of the vendor.
    pub device: Fact<u32>,
    /// Name of vendor and device.
    pub name: Fact<String>,
    /// The name calls it a virtual function, or it has a parent function.
    pub virtual_function: Fact<bool>,
    /// Kernel driver in use.
    pub driver: Fact<String>,
    /// NUMA node; -1 where the firmware does not say.
    pub numa_node: Fact<i32>,
    /// Its link.
    pub pcie: PcieLink,
    /// Access control of a bridge sends peer-to-peer traffic through the root (`ReqRedir+` or `CmpltRedir+`).
    pub acs_redirect: Fact<bool>,
}

merge_fields!(PciDevice {
    class_name,
    class,
    vendor,
    device,
    name,
    virtual_function,
    driver,
    numa_node,
    pcie,
    acs_redirect
});
