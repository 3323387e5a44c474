//! The rails of a worker: the ports of its RDMA devices that are there for KV.

use std::collections::{BTreeMap, BTreeSet};

use crate::node::ports::{Fabric, PortRef, ports, ports_here, rate, rate_of};
use crate::node_view::NodeView;
use crate::pod::view::PodView;

/// `InfiniBand and RoCE`.
pub(crate) fn fabric_words(fabrics: &BTreeSet<Fabric>) -> String {
    let words: Vec<&str> = fabrics.iter().map(|fabric| fabric.word()).collect();
    words.join(" and ")
}

/// Subnet prefixes as `ibstat` prints them.
pub(crate) fn subnet_words(subnets: &BTreeSet<u64>) -> String {
    let words: Vec<String> = subnets
        .iter()
        .map(|prefix| format!("{prefix:016x}"))
        .collect();
    words.join(", ")
}

/// Partition keys with the bit of full members.
pub(crate) fn partition_words(partitions: &BTreeMap<u32, bool>) -> String {
    let words: Vec<String> = partitions
        .iter()
        .map(|(key, full)| format!("0x{:04x}", key | if *full { 0x8000 } else { 0 }))
        .collect();
    words.join(", ")
}

/// What is compared of a worker's rails.
pub(crate) struct Rails<'p> {
    ports: Vec<PortRef<'p>>,
}

impl<'p> Rails<'p> {
    /// Those that a worker uses; `None` where nothing was seen, or no device was listed.
    pub(crate) fn of(pod: &PodView<'p>) -> Option<Self> {
        Self::by(pod, ports)
    }

    /// Those that a worker has, whatever its settings select: a setting is no fault of a machine.
    pub(crate) fn here(pod: &PodView<'p>) -> Option<Self> {
        Self::by(pod, ports_here)
    }

    fn by(pod: &PodView<'p>, list: fn(&NodeView<'p>) -> Vec<PortRef<'p>>) -> Option<Self> {
        let facts = pod.facts?;
        let seen = &facts.observation;
        // Nobody listed devices: that none is known means nothing.
        if seen.rdma.listings.is_empty() && seen.rdma.devices.is_empty() {
            return None;
        }
        let ports = list(&NodeView::of(facts))
            .into_iter()
            .filter(|port| port.compute && port.is_hardware() && !port.nvlink_controller)
            .collect();
        Some(Self { ports })
    }

    fn active(&self) -> impl Iterator<Item = &PortRef<'p>> {
        self.ports.iter().filter(|port| port.is_active())
    }

    /// `8`, or `7 of 8` where one is not active.
    pub(crate) fn count(&self) -> String {
        let active = self.active().count();
        if active == self.ports.len() {
            active.to_string()
        } else {
            format!("{active} of {}", self.ports.len())
        }
    }

    /// How many carry traffic.
    pub(crate) fn active_count(&self) -> usize {
        self.active().count()
    }

    /// `8 at 400 Gb/s`; slower ones of an uneven set apart. None where a rate is not known.
    pub(crate) fn rates(&self) -> Option<String> {
        let mut rates: BTreeMap<u64, usize> = BTreeMap::new();
        for port in self.active() {
            let count = rates.entry(rate_of(port.port)?).or_default();
            *count = count.saturating_add(1);
        }
        let words: Vec<String> = rates
            .iter()
            .rev()
            .map(|(mbps, count)| format!("{count} at {}", rate(*mbps)))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// `InfiniBand`, `RoCE`, or both; none without an active port.
    pub(crate) fn fabrics(&self) -> BTreeSet<Fabric> {
        self.active()
            .map(|port| port.fabric)
            .filter(|fabric| *fabric != Fabric::Unknown)
            .collect()
    }

    /// Packet sizes of the active ports, in bytes.
    pub(crate) fn mtus(&self) -> Option<BTreeSet<u32>> {
        self.active()
            .map(|port| port.port.active_mtu.value().copied())
            .collect::<Option<BTreeSet<u32>>>()
            .filter(|mtus| !mtus.is_empty())
    }

    /// Prefixes of the InfiniBand subnets of the active ports: the first half of GID 0.
    pub(crate) fn subnets(&self) -> Option<BTreeSet<u64>> {
        let prefixes: Option<BTreeSet<u64>> = self
            .active()
            .filter(|port| port.fabric == Fabric::InfiniBand)
            .map(|port| {
                let address = port.port.gids.get(&0)?.address.value()?;
                u64::try_from(u128::from(*address) >> 64).ok()
            })
            .collect();
        prefixes.filter(|prefixes| !prefixes.is_empty())
    }

    /// Partitions of the active InfiniBand ports, each with whether it is a full member.
    pub(crate) fn partitions(&self) -> Option<BTreeMap<u32, bool>> {
        let mut partitions = BTreeMap::new();
        let mut any = false;
        for port in self
            .active()
            .filter(|port| port.fabric == Fabric::InfiniBand)
        {
            let keys: Vec<u32> = port
                .port
                .pkeys
                .values()
                .filter_map(|key| key.value().copied())
                // An entry of a table that holds no partition.
                .filter(|key| key & 0x7fff != 0)
                .collect();
            if keys.is_empty() {
                return None;
            }
            any = true;
            for key in keys {
                let full = partitions.entry(key & 0x7fff).or_insert(false);
                *full |= key & 0x8000 != 0;
            }
        }
        any.then_some(partitions)
    }

    /// Kinds of GID that RoCE ports have: version 2 is what a router passes.
    pub(crate) fn roce_versions(&self) -> Option<&'static str> {
        use model::observation::rdma::GidType;
        let mut any = false;
        let mut second = false;
        for port in self.active().filter(|port| port.fabric == Fabric::Roce) {
            for kind in port.port.gids.values().filter_map(|gid| gid.kind.value()) {
                any = true;
                second |= *kind == GidType::RoceV2;
            }
        }
        any.then_some(if second { "v2" } else { "v1 only" })
    }

    /// Drivers, firmware and the like of the devices: one word for each kind that there is.
    pub(crate) fn device_words(
        &self,
        of: impl Fn(&'p model::observation::rdma::Device) -> Option<&'p String>,
    ) -> Option<String> {
        let words: BTreeSet<&str> = self
            .ports
            .iter()
            .filter_map(|port| of(port.device))
            .map(String::as_str)
            .filter(|word| !word.is_empty())
            .collect();
        (!words.is_empty()).then(|| words.into_iter().collect::<Vec<_>>().join(", "))
    }
}
