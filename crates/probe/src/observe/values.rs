//! Values as the kernel prints them.

use model::observation::limits::Limit;
use model::observation::rdma::{GidType, LinkLayer, PhysState, PortState};

use super::facts::printable;

/// `0x15b3`, or decimal.
pub(super) fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `b83f:d203:0012:3456` to 16 digits; all zeros is none.
pub(super) fn guid(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let hexadecimal = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    hexadecimal.then(|| digits.to_ascii_lowercase())
}

/// `4: ACTIVE`.
pub(super) fn port_state(text: &str) -> Option<PortState> {
    let (_, word) = text.split_once(':')?;
    Some(match word.trim() {
        "NOP" => PortState::Nop,
        "DOWN" => PortState::Down,
        "INIT" => PortState::Init,
        "ARMED" => PortState::Armed,
        "ACTIVE" => PortState::Active,
        "ACTIVE_DEFER" => PortState::ActiveDefer,
        other => PortState::Other(printable(other)),
    })
}

/// `5: LinkUp`.
pub(super) fn phys_state(text: &str) -> Option<PhysState> {
    let (_, word) = text.split_once(':')?;
    Some(match word.trim() {
        "Sleep" => PhysState::Sleep,
        "Polling" => PhysState::Polling,
        "Disabled" => PhysState::Disabled,
        "PortConfigurationTraining" => PhysState::Training,
        "LinkUp" => PhysState::LinkUp,
        "LinkErrorRecovery" => PhysState::ErrorRecovery,
        "Phy Test" => PhysState::PhyTest,
        other => PhysState::Other(printable(other)),
    })
}

/// `InfiniBand`.
pub(super) fn link_layer(text: &str) -> Option<LinkLayer> {
    Some(match text {
        "" => return None,
        "InfiniBand" => LinkLayer::InfiniBand,
        "Ethernet" => LinkLayer::Ethernet,
        "Unknown" | "Unspecified" => LinkLayer::Unspecified,
        other => LinkLayer::Other(printable(other)),
    })
}

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

/// `400 Gb/sec (4X NDR)` to Mb/s, lanes and the name of the lane speed.
pub(super) fn rate(text: &str) -> Option<(u64, u32, Option<String>)> {
    let (number, rest) = text.split_once(" Gb/sec")?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let tenths: u64 = match tenths.len() {
        1 => tenths.parse().ok()?,
        _ => return None,
    };
    let mbps = whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(tenths.checked_mul(100)?)?;
    let inside = rest.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (lanes, name) = inside.split_once('X')?;
    let name = Some(name.trim()).filter(|name| !name.is_empty());
    Some((mbps, lanes.trim().parse().ok()?, name.map(printable)))
}

/// `32.0 GT/s PCIe` to MT/s.
pub(super) fn pcie_speed(text: &str) -> Option<u32> {
    let number = text.split_once(" GT/s")?.0;
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    let tenths: u32 = part.chars().next()?.to_digit(10)?;
    whole
        .parse::<u32>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(tenths.checked_mul(100)?)
}

/// `unlimited`, or a number.
pub(super) fn limit(text: &str) -> Option<Limit> {
    match text {
        "unlimited" | "max" => Some(Limit::Unlimited),
        number => number.parse().ok().map(Limit::Value),
    }
}

/// The PCI address at the end of a path, or of the nearest directory above that has one.
pub(super) fn pci_address(path: &str) -> Option<&str> {
    path.rsplit('/').find(|part| is_pci_address(part))
}

/// `0000:18:00.0`; the domain may have more digits.
pub(super) fn is_pci_address(word: &str) -> bool {
    let Some((rest, function)) = word.split_once('.') else {
        return false;
    };
    let parts: Vec<_> = rest.split(':').collect();
    let hexadecimal = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    matches!(parts.as_slice(), [domain, bus, slot]
        if domain.len() >= 4 && bus.len() == 2 && slot.len() == 2 && hexadecimal(domain) && hexadecimal(bus) && hexadecimal(slot))
        && function.len() == 1
        && hexadecimal(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates() {
        assert_eq!(
            rate("400 Gb/sec (4X NDR)"),
            Some((400_000, 4, Some("NDR".into())))
        );
        assert_eq!(
            rate("2.5 Gb/sec (1X SDR)"),
            Some((2500, 1, Some("SDR".into())))
        );
        assert_eq!(rate("10 Gb/sec (4X)"), Some((10_000, 4, None)));
        assert_eq!(rate("fast"), None);
        assert_eq!(rate("99999999999999999999 Gb/sec (4X)"), None);
    }

    #[test]
    fn pcie() {
        assert_eq!(pcie_speed("32.0 GT/s PCIe"), Some(32_000));
        assert_eq!(pcie_speed("2.5 GT/s PCIe"), Some(2500));
        assert_eq!(pcie_speed("Unknown"), None);
        assert_eq!(
            pci_address("/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0/mlx5_core.sf.4"),
            Some("0000:18:00.0")
        );
        assert_eq!(pci_address("/sys/devices/virtual/net/lo"), None);
    }

    #[test]
    fn guids() {
        assert_eq!(
            guid("b83f:d203:00AA:3456").as_deref(),
            Some("b83fd20300aa3456")
        );
        assert_eq!(guid("b83f"), None);
    }
}
