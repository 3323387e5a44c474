//! Network interfaces of this namespace.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, merge_fields};

/// Network interfaces, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interfaces {
    /// By name, such as `eth0`.
    pub interfaces: BTreeMap<String, Box<Interface>>,
    /// Interface of the default route.
    pub default_route: Fact<String>,
}

merge_fields!(Interfaces {
    interfaces,
    default_route
});

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Addresses with prefix length; empty: none.
    pub addresses: Fact<Vec<(IpAddr, u8)>>,
    /// Bytes.
    pub mtu: Fact<u32>,
    /// `up`, `down`, `unknown`: operational state in small letters.
    pub state: Fact<String>,
    /// Mb/s; on virtual interfaces a made-up number.
    pub speed_mbps: Fact<u64>,
    /// `ether`, `infiniband`, `loopback`.
    pub link_type: Fact<String>,
    /// Link-layer address.
    pub mac: Fact<String>,
    /// Index.
    pub index: Fact<u32>,
    /// Bond or bridge that it belongs to.
    pub master: Fact<String>,
    /// Kernel driver, where it is a device: `mlx5_core`, `ena`.
    pub driver: Fact<String>,
    /// PCI address, where it is a device.
    pub pci: Fact<String>,
}

merge_fields!(Interface {
    addresses,
    mtu,
    state,
    speed_mbps,
    link_type,
    mac,
    index,
    master,
    driver,
    pci
});
