//! Ports of RDMA devices with what follows for all checks: what they speak, whether they are selected, and which of
//! them are there for KV (compute ports) and not for storage, management or the front end.

use std::collections::{BTreeMap, BTreeSet};

use model::observation::rdma::{Device, GidType, LinkLayer, Port, PortState};
use model::observation::topology::Level;

use super::selection::Selection;
use crate::node_view::NodeView;

/// What a port speaks, as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fabric {
    InfiniBand,
    Roce,
    /// Amazon's EFA: neither rules of InfiniBand nor of RoCE hold.
    Efa,
    Software,
    Unknown,
}

impl Fabric {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::InfiniBand => "InfiniBand",
            Self::Roce => "RoCE",
            Self::Efa => "EFA",
            Self::Software => "software RDMA",
            Self::Unknown => "RDMA",
        }
    }
}

/// One port with its device.
pub(crate) struct PortRef<'f> {
    pub(crate) name: &'f str,
    pub(crate) number: u32,
    pub(crate) device: &'f Device,
    pub(crate) port: &'f Port,
    pub(crate) fabric: Fabric,
    /// A setting in force names it.
    pub(crate) selected: bool,
    /// The matrix shows it behind the same PCIe switch as a GPU.
    pub(crate) near: bool,
    /// It manages NVLink switches, and reaches no other machine.
    pub(crate) nvlink_controller: bool,
    /// It is one of the ports that are there for KV.
    pub(crate) compute: bool,
}

/// What ports are compared by: peers are ports of the same kind of card.
pub(crate) type Class<'f> = (Fabric, Option<&'f str>, Option<u32>, Option<&'f str>);

impl<'f> PortRef<'f> {
    /// `mlx5_0:1`, as UCX names it.
    pub(crate) fn label(&self) -> String {
        format!("{}:{}", self.name, self.number)
    }

    /// It carries traffic.
    pub(crate) fn is_active(&self) -> bool {
        matches!(
            self.port.state.value(),
            Some(PortState::Active | PortState::ActiveDefer)
        )
    }

    /// Peers have equal ones.
    pub(crate) fn class(&self) -> Class<'f> {
        (
            self.fabric,
            self.device.hca_type.value().map(String::as_str),
            self.device.vendor_part_id.value().copied(),
            self.device.board_id.value().map(String::as_str),
        )
    }

    pub(crate) fn is_hardware(&self) -> bool {
        self.fabric != Fabric::Software
    }
}

/// Azure's accelerated networking: a virtual function of the front-end card.
pub(crate) fn is_azure_front_end(name: &str) -> bool {
    name.starts_with("mlx5_an")
}

/// EFA, by vendor, driver, or the words that tools print for it.
pub(crate) fn is_efa(name: &str, device: &Device) -> bool {
    const AMAZON: u32 = 0x1d0f;
    let unspecified = device
        .transport
        .value()
        .is_some_and(|t| t.to_ascii_lowercase().contains("unspecified"));
    device.vendor_id.value() == Some(&AMAZON)
        || device.driver.value().is_some_and(|d| d == "efa")
        || (unspecified && device.vendor_id.value().is_none())
        || (!device.vendor_id.is_seen()
            && !device.driver.is_seen()
            && (name.starts_with("rdmap") || name.starts_with("efa")))
}

fn fabric(name: &str, device: &Device, port: &Port) -> Fabric {
    if super::rdma_devices::is_software(name, device) {
        return Fabric::Software;
    }
    if is_efa(name, device) {
        return Fabric::Efa;
    }
    match port.link_layer.value() {
        Some(LinkLayer::InfiniBand) => Fabric::InfiniBand,
        Some(LinkLayer::Ethernet) => Fabric::Roce,
        _ => from_gids(port),
    }
}

/// Without a link layer the GIDs tell: version 2 is RoCE, and tools print InfiniBand's as version 1 without interface.
fn from_gids(port: &Port) -> Fabric {
    let kinds: BTreeSet<u8> = port
        .gids
        .values()
        .filter_map(|gid| gid.kind.value())
        .map(|kind| match kind {
            GidType::InfiniBand => 0,
            GidType::RoceV2 => 2,
            GidType::RoceV1 | GidType::InfiniBandOrRoceV1 => 1,
        })
        .collect();
    let with_netdev = port
        .gids
        .values()
        .any(|gid| matches!(gid.netdev.value(), Some(Some(_))));
    if kinds.contains(&0) {
        Fabric::InfiniBand
    } else if kinds.contains(&2) || (kinds.contains(&1) && with_netdev) {
        Fabric::Roce
    } else if kinds.contains(&1)
        && port
            .gids
            .values()
            .all(|gid| matches!(gid.netdev.value(), Some(None)))
    {
        Fabric::InfiniBand
    } else {
        Fabric::Unknown
    }
}

/// Devices that the fabric manager's log names as controllers of NVLink switches: they look like network cards.
pub(crate) fn nvlink_controllers<'f>(view: &NodeView<'f>) -> BTreeSet<&'f str> {
    view.seen
        .log
        .of("nvlink-controller")
        .filter_map(|event| {
            event
                .field("device")?
                .split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '/'))
                .next()
        })
        .filter(|name| !name.is_empty())
        .collect()
}

/// Every port, with what it is for.
pub(crate) fn ports<'f>(view: &NodeView<'f>) -> Vec<PortRef<'f>> {
    ports_of(view, &Selection::of(view))
}

/// The same, whatever settings select.
pub(crate) fn ports_here<'f>(view: &NodeView<'f>) -> Vec<PortRef<'f>> {
    let nothing = Selection {
        selectors: Vec::new(),
    };
    ports_of(view, &nothing)
}

fn ports_of<'f>(view: &NodeView<'f>, selection: &Selection<'f>) -> Vec<PortRef<'f>> {
    let controllers = nvlink_controllers(view);
    let mut ports: Vec<PortRef<'f>> = Vec::new();
    for (name, device) in &view.seen.rdma.devices {
        for (&number, port) in &device.ports {
            ports.push(PortRef {
                name,
                number,
                device,
                port,
                fabric: fabric(name, device, port),
                selected: selection.names(name, number),
                near: near_a_gpu(view, name) == Some(true),
                nvlink_controller: controllers.contains(name.as_str()),
                compute: false,
            });
        }
    }
    mark_compute(&mut ports);
    ports
}

/// Selected ports, else those near a GPU, else those of the kind of card that most ports have.
fn mark_compute(ports: &mut [PortRef<'_>]) {
    if ports.iter().any(|p| p.selected) {
        for port in ports {
            port.compute = port.selected;
        }
        return;
    }
    if ports.iter().any(|p| p.near && !p.nvlink_controller) {
        for port in ports {
            port.compute = port.near && !port.nvlink_controller;
        }
        return;
    }
    let mut sizes: BTreeMap<Class<'_>, usize> = BTreeMap::new();
    for port in ports.iter() {
        if port.is_hardware() && !port.nvlink_controller && !is_azure_front_end(port.name) {
            *sizes.entry(port.class()).or_default() += 1;
        }
    }
    let most = sizes.values().max().copied().unwrap_or(0);
    // Of equally many, InfiniBand: nobody builds it for the front end.
    let infiniband = sizes
        .iter()
        .any(|(class, size)| *size == most && class.0 == Fabric::InfiniBand);
    let compute: BTreeSet<Class<'_>> = sizes
        .iter()
        .filter(|(class, size)| **size == most && (!infiniband || class.0 == Fabric::InfiniBand))
        .map(|(class, _)| *class)
        .collect();
    for port in ports {
        port.compute = port.is_hardware()
            && !port.nvlink_controller
            && !is_azure_front_end(port.name)
            // What does not show its fabric cannot be left out for it.
            && (compute.contains(&port.class()) || port.fabric == Fabric::Unknown);
    }
}

/// Whether a device is one of the nearest of some GPU over PCIe switches alone; `None` where no matrix tells.
pub(crate) fn near_a_gpu(view: &NodeView<'_>, device: &str) -> Option<bool> {
    let mut known = None;
    for matrix in &view.seen.topology.matrices {
        if !matrix
            .nics
            .iter()
            .any(|n| n.device.as_deref() == Some(device))
        {
            continue;
        }
        for gpu in &matrix.gpus {
            let Some((level, near)) = matrix.nearest(gpu) else {
                continue;
            };
            let here = near.iter().any(|n| n.device.as_deref() == Some(device));
            let switched = matches!(level, Level::Pix | Level::Pxb);
            if switched {
                known = Some(known.unwrap_or(false) || here);
            }
        }
    }
    known
}

/// `mlx5_9` before `mlx5_10`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let word: String = rest.chars().take_while(|c| !c.is_ascii_digit()).collect();
        rest = rest.get(word.len()..).unwrap_or_default();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        rest = rest.get(digits.len()..).unwrap_or_default();
        parts.push((word, digits.parse().unwrap_or(u64::MAX)));
    }
    parts
}

/// `mlx5_0, mlx5_1 and 3 more`, in the order of their numbers.
pub(crate) fn list(names: &[String]) -> String {
    const MOST: usize = 16;
    let mut sorted = names.to_vec();
    sorted.sort_by_cached_key(|name| natural(name));
    let shown = sorted
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// `400 Gb/s`, `2.5 Gb/s`.
pub(crate) fn rate(mbps: u64) -> String {
    if mbps.is_multiple_of(1000) {
        format!("{} Gb/s", mbps / 1000)
    } else {
        format!("{}.{} Gb/s", mbps / 1000, (mbps % 1000) / 100)
    }
}

/// Rate of a port in Mb/s: as told, or lanes times lane speed.
pub(crate) fn rate_of(port: &Port) -> Option<u64> {
    port.rate_mbps.value().copied().or_else(|| {
        let lanes = u64::from(*port.lanes.value()?);
        port.lane_mbps.value()?.checked_mul(lanes)
    })
}

#[cfg(test)]
mod tests {
    use super::list;

    #[test]
    fn names_in_the_order_of_their_numbers() {
        let names = ["mlx5_10:1", "mlx5_9:1", "bnxt_re0"].map(str::to_owned);
        assert_eq!(list(&names), "bnxt_re0, mlx5_9:1, mlx5_10:1");
    }
}
