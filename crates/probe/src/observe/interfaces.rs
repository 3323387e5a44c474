//! Network interfaces and their addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use model::observation::interfaces::Interface;
use model::observation::{Fact, Observation};

use super::facts::{Facts, origin, printable};
use super::values;
use crate::stream::Kind;

const CLASS: &str = "/sys/class/net";
const IF_INET6: &str = "/proc/net/if_inet6";
const ROUTE: &str = "/proc/net/route";
const TRIE: &str = "/proc/net/fib_trie";

type Addresses = BTreeMap<String, Vec<(IpAddr, u8)>>;

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    let (addresses, from) = match facts.tool("tool:ip") {
        Some(text) if !facts.of(Kind::Tool, "tool:ip").is_empty() => (of_ip(&text), "ip addr"),
        _ => (of_proc(facts), IF_INET6),
    };
    if let Some(name) = default_route(facts) {
        seen.interfaces.default_route = Fact::seen(name, origin(ROUTE));
    }
    for name in facts.names(Kind::File, CLASS) {
        let at = |file: &str| format!("{CLASS}/{name}/{file}");
        let mut interface = Interface {
            mtu: facts.fact(&at("mtu"), |t| t.parse().ok()),
            state: facts.fact(&at("operstate"), |t| Some(printable(t))),
            // -1 where there is no link, or no such thing.
            speed_mbps: facts.fact(&at("speed"), |t| t.parse().ok()),
            link_type: facts.fact(&at("type"), link_type),
            ..Interface::default()
        };
        if let Some(device) = facts.link(&at("device"))
            && let Some(address) = values::pci_address(device)
        {
            let driver = format!("/sys/bus/pci/devices/{address}/driver");
            interface.pci = Fact::seen(address, origin(&at("device")));
            if let Some(word) = facts.link(&driver).and_then(|d| d.rsplit('/').next()) {
                interface.driver = Fact::seen(printable(word), origin(&driver));
            }
        }
        if let Some(word) = facts.link(&at("master")).and_then(|m| m.rsplit('/').next()) {
            interface.master = Fact::seen(printable(word), origin(&at("master")));
        }
        interface.addresses = if facts.reached("tools") || addresses.contains_key(name) {
            let list = addresses.get(name).cloned().unwrap_or_default();
            Fact::seen(list, origin(from))
        } else {
            facts.missing(IF_INET6)
        };
        seen.interfaces
            .interfaces
            .insert(name.to_owned(), Box::new(interface));
    }
}

/// Interface of the default route, the one with the lowest metric.
fn default_route(facts: &Facts<'_>) -> Option<String> {
    facts
        .lines(ROUTE)
        .iter()
        .filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            match words.as_slice() {
                [name, "00000000", _, _, _, _, metric, "00000000", ..] => {
                    Some((metric.parse::<u32>().ok()?, printable(name)))
                }
                _ => None,
            }
        })
        .min()
        .map(|(_, name)| name)
}

/// Hardware types of Linux (`if_arp.h`).
fn link_type(text: &str) -> Option<String> {
    Some(match text {
        "1" => "ether".to_owned(),
        "32" => "infiniband".to_owned(),
        "772" => "loopback".to_owned(),
        other => other.parse::<u32>().ok()?.to_string(),
    })
}

/// `ip -o addr show`: `4: eth0    inet 192.0.2.2/24 brd …`.
fn of_ip(text: &str) -> Addresses {
    let mut out = Addresses::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let (Some(_), Some(name), Some("inet" | "inet6"), Some(address)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (address, length) = address.split_once('/').unwrap_or((address, ""));
        let Ok(address) = address.parse::<IpAddr>() else {
            continue;
        };
        let whole = if address.is_ipv4() { 32 } else { 128 };
        let length = length.parse().unwrap_or(whole);
        out.entry(name.split('@').next().unwrap_or(name).to_owned())
            .or_default()
            .push((address, length));
    }
    out
}

/// From `/proc`, where there is no `ip`: IPv4 addresses have no interface there, so each goes to the interface whose
/// directly connected network holds it.
fn of_proc(facts: &Facts<'_>) -> Addresses {
    let mut out = Addresses::new();
    for line in facts.lines(IF_INET6) {
        let words: Vec<_> = line.split_whitespace().collect();
        let [digits, _, length, _, _, name] = words.as_slice() else {
            continue;
        };
        if let (Ok(bits), Ok(length)) = (
            u128::from_str_radix(digits, 16),
            u8::from_str_radix(length, 16),
        ) {
            out.entry((*name).to_owned())
                .or_default()
                .push((IpAddr::V6(Ipv6Addr::from_bits(bits)), length));
        }
    }
    let networks: Vec<_> = facts
        .lines(ROUTE)
        .iter()
        .filter_map(|l| network(l))
        .collect();
    let mut locals: Vec<Ipv4Addr> = facts
        .lines(TRIE)
        .iter()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    locals.sort_unstable();
    locals.dedup();
    for address in locals {
        let nearest = networks
            .iter()
            .filter(|(_, network, mask)| address.to_bits() & mask == *network)
            .max_by_key(|(_, _, mask)| mask.count_ones());
        let (name, length) = match nearest {
            Some((name, _, mask)) => (*name, u8::try_from(mask.count_ones()).unwrap_or(32)),
            None if address.is_loopback() => ("lo", 8),
            None => continue,
        };
        out.entry(name.to_owned())
            .or_default()
            .push((IpAddr::V4(address), length));
    }
    out
}

/// A directly connected network of `/proc/net/route`: interface, network, mask.
fn network(line: &str) -> Option<(&str, u32, u32)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [name, destination, gateway, _, _, _, _, mask, ..] = words.as_slice() else {
        return None;
    };
    // In the byte order of the machine: every machine with such devices is little-endian.
    let bits = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::swap_bytes);
    let mask = bits(mask)?;
    (bits(gateway)? == 0 && mask != 0).then_some((*name, bits(destination)?, mask))
}
