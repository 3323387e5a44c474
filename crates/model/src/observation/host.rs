//! The machine and the container.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fact::{Fact, merge_fields};
use super::pci::PciDevice;

/// Where this was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the machine itself.
    Host,
    /// In a container of it.
    Container,
}

/// The machine and the container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Host or container.
    pub place: Fact<Place>,
    /// Host name, in a pod its name.
    pub hostname: Fact<String>,
    /// Kernel release: `6.8.0-1012-azure`.
    pub kernel: Fact<String>,
    /// `x86_64`, `aarch64`.
    pub architecture: Fact<String>,
    /// Changes with every start of the machine; equal on the same machine.
    pub boot_id: Fact<String>,
    /// A virtual machine.
    pub virtual_machine: Fact<bool>,
    /// Who made the system, as its firmware says: `Supermicro`, `QEMU`, `Google`.
    pub system_vendor: Fact<String>,
    /// Network, IPC and PID namespaces by name, as numbers.
    pub namespaces: BTreeMap<String, Fact<u64>>,
    /// PCI functions of interest, by address.
    pub pci: BTreeMap<String, Box<PciDevice>>,
}

merge_fields!(Host {
    place,
    hostname,
    kernel,
    architecture,
    boot_id,
    virtual_machine,
    system_vendor,
    namespaces,
    pci
});
