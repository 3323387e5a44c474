//! Values of files that only the collector reads; the others are read as in dumps (`crate::text`).

use model::observation::limits::Limit;
use model::observation::rdma::GidType;

use crate::text;

/// `IB/RoCE v1`, `RoCE v2`.
pub(super) fn gid_type(text: &str) -> Option<GidType> {
    match text {
        "RoCE v2" => Some(GidType::RoceV2),
        "RoCE v1" => Some(GidType::RoceV1),
        "IB/RoCE v1" => Some(GidType::InfiniBandOrRoceV1),
        "IB" => Some(GidType::InfiniBand),
        _ => None,
    }
}

/// `32.0 GT/s PCIe` to MT/s.
pub(super) fn pcie_speed(text: &str) -> Option<u32> {
    text::thousandths(text.split_once(" GT/s")?.0)?
        .try_into()
        .ok()
}

/// `unlimited`, or a number.
pub(super) fn limit(text: &str) -> Option<Limit> {
    match text {
        "unlimited" | "max" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::Value),
    }
}

/// The PCI address of a path: of the device itself, or of the nearest one above.
pub(super) fn pci_address(path: &str) -> Option<String> {
    path.rsplit('/').find_map(text::pci_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcie() {
        assert_eq!(pcie_speed("32.0 GT/s PCIe"), Some(32_000));
        assert_eq!(pcie_speed("2.5 GT/s PCIe"), Some(2500));
        assert_eq!(pcie_speed("Unknown"), None);
        assert_eq!(
            pci_address("/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0/mlx5_core.sf.4")
                .as_deref(),
            Some("0000:18:00.0")
        );
        assert_eq!(pci_address("/sys/devices/virtual/net/lo"), None);
    }
}
