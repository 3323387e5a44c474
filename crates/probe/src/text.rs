//! Small readers of words and numbers that several tools share.

use std::net::{Ipv4Addr, Ipv6Addr};

use model::observation::rdma::{LinkLayer, PhysState, PortState};

/// Words that are kept are clipped to this; nothing that is a fact is longer.
const MAX_TEXT: usize = 512;

/// Text that can be kept: trimmed, clipped, without control characters, which JSON can bring along.
pub(crate) fn keep(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_TEXT && text.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_TEXT)
        .collect()
}

/// `key: value`, both trimmed; the key must not be empty.
pub(crate) fn key_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    (!key.is_empty()).then(|| (key, value.trim()))
}

/// A decimal or `0x` number, up to the first character that is no digit of it.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = hex
            .find(|c: char| !c.is_ascii_hexdigit())
            .unwrap_or(hex.len());
        return u64::from_str_radix(hex.get(..end)?, 16).ok();
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// [`number`] that fits.
pub(crate) fn small(text: &str) -> Option<u32> {
    u32::try_from(number(text)?).ok()
}

/// `2.5` in thousandths: 2500. Stops at the first character that is no digit or point.
pub(crate) fn thousandths(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let text = text.get(..end)?;
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let part = part.split('.').next().unwrap_or_default();
    let whole: u64 = whole.parse().ok()?;
    let mut scaled = 0_u64;
    let mut digits = part.chars();
    for _ in 0..3 {
        let digit = digits.next().and_then(|c| c.to_digit(10)).unwrap_or(0);
        scaled = scaled.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    whole.checked_mul(1000)?.checked_add(scaled)
}

/// 16 hexadecimal digits out of `0x0123…`, `0123:4567:89ab:cdef` or plain.
pub(crate) fn guid(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix("0x").unwrap_or(text);
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    (digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()))
        .then(|| digits.to_ascii_lowercase())
}

/// A GID in long or short form.
pub(crate) fn gid(text: &str) -> Option<Ipv6Addr> {
    text.trim().parse().ok()
}

/// An IPv4 address.
pub(crate) fn ipv4(text: &str) -> Option<Ipv4Addr> {
    text.trim().parse().ok()
}

/// A name of a device, interface or module.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '@'))
        && text.chars().any(|c| c.is_ascii_alphabetic())
}

/// `0000:18:00.0`, also with a longer domain or without one; small letters, four digits of domain.
pub(crate) fn pci_address(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let (front, function) = text.split_once('.')?;
    let parts: Vec<&str> = front.split(':').collect();
    let (domain, bus, slot) = match parts.as_slice() {
        [domain, bus, slot] => (*domain, *bus, *slot),
        [bus, slot] => ("0000", *bus, *slot),
        _ => return None,
    };
    let hex = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
    if !(hex(domain) && hex(bus) && hex(slot) && hex(function))
        || bus.len() != 2
        || slot.len() != 2
        || function.len() != 1
        || !(4..=8).contains(&domain.len())
    {
        return None;
    }
    let domain = u32::from_str_radix(domain, 16).ok()?;
    Some(format!("{domain:04x}:{bus}:{slot}.{function}"))
}

/// A state word in small letters without decoration: `PORT_ACTIVE (4)`, `4: ACTIVE` and `Active` are `active`.
fn bare(text: &str) -> String {
    let text = text.trim();
    let text = match text.split_once(':') {
        Some((digits, rest)) if digits.trim().chars().all(|c| c.is_ascii_digit()) => rest,
        _ => text,
    };
    let text = text.split('(').next().unwrap_or(text);
    let text: String = text
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect::<String>()
        .to_ascii_lowercase();
    match text.strip_prefix("port") {
        // `PortConfigurationTraining` keeps its name.
        Some(rest) if !rest.starts_with("configuration") => rest.to_owned(),
        _ => text,
    }
}

/// Logical state of a port.
pub(crate) fn port_state(text: &str) -> Option<PortState> {
    Some(match bare(text).as_str() {
        "" => return None,
        "nop" | "nostatechange" => PortState::Nop,
        "down" => PortState::Down,
        "init" | "initializing" | "initialize" => PortState::Init,
        "armed" => PortState::Armed,
        "active" => PortState::Active,
        "activedefer" => PortState::ActiveDefer,
        _ => PortState::Other(keep(text)),
    })
}

/// Physical state of a port.
pub(crate) fn phys_state(text: &str) -> Option<PhysState> {
    Some(match bare(text).as_str() {
        "" => return None,
        "sleep" => PhysState::Sleep,
        "polling" => PhysState::Polling,
        "disabled" => PhysState::Disabled,
        "training" | "configurationtraining" | "portconfigurationtraining" => PhysState::Training,
        "linkup" => PhysState::LinkUp,
        "errorrecovery" | "linkerrorrecovery" | "linkerrorrecover" => PhysState::ErrorRecovery,
        "phytest" => PhysState::PhyTest,
        _ => PhysState::Other(keep(text)),
    })
}

/// Link layer of a port.
pub(crate) fn link_layer(text: &str) -> Option<LinkLayer> {
    Some(match bare(text).as_str() {
        "" => return None,
        "infiniband" | "ib" => LinkLayer::InfiniBand,
        "ethernet" | "eth" => LinkLayer::Ethernet,
        "unspecified" | "unknown" => LinkLayer::Unspecified,
        _ => LinkLayer::Other(keep(text)),
    })
}

/// `400 Gb/sec (4X NDR)`: Mb/s, lanes, name of the lane speed.
pub(crate) fn rate(text: &str) -> Option<(u64, Option<u32>, Option<String>)> {
    let mbps = thousandths(text)?;
    let inside = text
        .split_once('(')
        .and_then(|(_, rest)| rest.split(')').next());
    let mut words = inside.unwrap_or_default().split_whitespace();
    let lanes = words
        .next()
        .and_then(|word| word.strip_suffix('X'))
        .and_then(|digits| digits.parse().ok());
    let name = words.next().map(keep);
    Some((mbps, lanes, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number("0xffff"), Some(65535));
        assert_eq!(number("4096 (5)"), Some(4096));
        assert_eq!(number("x"), None);
        assert_eq!(thousandths("2.5 Gb/sec"), Some(2500));
        assert_eq!(thousandths("25.781 GB/s"), Some(25781));
        assert_eq!(thousandths("99999999999999999999"), None);
        assert_eq!(thousandths("1.2.3"), Some(1200));
    }

    #[test]
    fn states_of_every_tool_are_the_same() {
        for word in ["Active", "PORT_ACTIVE (4)", "4: ACTIVE", "ACTIVE"] {
            assert_eq!(port_state(word), Some(PortState::Active), "{word}");
        }
        for word in ["LinkUp", "LINK_UP (5)", "5: LinkUp", "LINK_UP"] {
            assert_eq!(phys_state(word), Some(PhysState::LinkUp), "{word}");
        }
        assert_eq!(
            phys_state("PortConfigurationTraining"),
            Some(PhysState::Training)
        );
        assert_eq!(port_state(""), None);
    }

    #[test]
    fn rates() {
        assert_eq!(
            rate("400 Gb/sec (4X NDR)"),
            Some((400_000, Some(4), Some("NDR".to_owned())))
        );
        assert_eq!(rate("10 Gb/sec (4X)"), Some((10_000, Some(4), None)));
        assert_eq!(rate("40"), Some((40_000, None, None)));
    }

    #[test]
    fn addresses() {
        assert_eq!(
            pci_address("00000000:18:00.0"),
            Some("0000:18:00.0".to_owned())
        );
        assert_eq!(pci_address("18:00.0"), Some("0000:18:00.0".to_owned()));
        assert_eq!(pci_address("c941:00:02.0"), Some("c941:00:02.0".to_owned()));
        assert_eq!(pci_address("10:20"), None);
        assert_eq!(
            guid("0123:4567:89ab:CDEF"),
            Some("0123456789abcdef".to_owned())
        );
    }
}
