//! `ip addr` and `ip link`, as text and as JSON.

use std::net::IpAddr;

use model::observation::interfaces::Interface;
use model::observation::{Completeness, Tool};
use model::{Fact, Observation};
use serde_json::Value;

use super::Kind;
use super::json::{Collector, number, objects, string};
use crate::parser::{At, Parser};
use crate::text::{is_name, keep};

pub(crate) const TEXT: Kind = Kind {
    tool: Tool::Ip,
    programs: &["ip"],
    command: |c| {
        !json(c)
            && c.arguments
                .iter()
                .any(|a| matches!(a.as_str(), "addr" | "a" | "address" | "link" | "l"))
    },
    starts: |line, _| heading(line).is_some(),
    open: |_| Box::new(Text::default()),
};

pub(crate) const JSON: Kind = Kind {
    tool: Tool::Ip,
    programs: &["ip"],
    command: json,
    starts: |line, next| {
        line.trim_start().starts_with(['[', '{'])
            && [line, next]
                .iter()
                .any(|l| l.contains("\"ifname\"") && l.contains("\"flags\""))
    },
    open: |_| {
        Box::new(Json {
            collector: Collector::default(),
        })
    },
};

fn json(command: &crate::command::Command) -> bool {
    command.has("-j") || command.has("--json")
}

/// Interfaces that are kept.
const MAX_INTERFACES: usize = 4096;
/// Addresses of one interface that are kept.
const MAX_ADDRESSES: usize = 256;

fn interface<'a>(out: &'a mut Observation, name: &str) -> Option<&'a mut Interface> {
    let all = &mut out.interfaces.interfaces;
    if !is_name(name) || (all.len() >= MAX_INTERFACES && !all.contains_key(name)) {
        return None;
    }
    Some(all.entry(name.to_owned()).or_default())
}

/// `4: eth0@if12: <BROADCAST,UP> mtu 1500 …`
fn heading(line: &str) -> Option<(u32, &str, &str)> {
    let (index, rest) = line.trim().split_once(": ")?;
    let index = index.parse().ok()?;
    let (name, rest) = rest.split_once(": ")?;
    let name = name.split('@').next()?;
    (is_name(name) && rest.trim_start().starts_with('<')).then_some((index, name, rest))
}

#[derive(Default)]
struct Text {
    name: Option<String>,
    addresses: Vec<(IpAddr, u8)>,
    any_address: bool,
    names: Vec<(String, u32)>,
}

impl Text {
    fn flush(&mut self, at: At<'_>, out: &mut Observation) {
        if let Some(name) = self.name.take() {
            let addresses = std::mem::take(&mut self.addresses);
            if !addresses.is_empty()
                && let Some(interface) = interface(out, &name)
            {
                interface.addresses.see(addresses, at.origin());
            } else if self.names.len() < MAX_INTERFACES {
                self.names.push((name, at.line));
            }
        }
    }
}

/// The word after another.
fn after<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    let at = words.iter().position(|w| *w == key)?;
    words.get(at.checked_add(1)?).copied()
}

impl Parser for Text {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if let Some((index, name, rest)) = heading(line) {
            self.flush(at, out);
            self.name = Some(name.to_owned());
            let words: Vec<&str> = rest.split_whitespace().take(64).collect();
            if let Some(interface) = interface(out, name) {
                interface.index.see(index, at.origin());
                if let Some(mtu) = after(&words, "mtu").and_then(|m| m.parse().ok()) {
                    interface.mtu.see(mtu, at.origin());
                }
                if let Some(state) = after(&words, "state") {
                    interface
                        .state
                        .see(keep(state).to_ascii_lowercase(), at.origin());
                }
                if let Some(master) = after(&words, "master") {
                    interface.master.see(keep(master), at.origin());
                }
            }
            return true;
        }
        let Some(name) = self.name.clone() else {
            return false;
        };
        let words: Vec<&str> = line.split_whitespace().take(64).collect();
        let Some(first) = words.first() else {
            return false;
        };
        if let Some(kind) = first.strip_prefix("link/") {
            if let Some(interface) = interface(out, &name) {
                interface.link_type.see(keep(kind), at.origin());
                if let Some(mac) = words.get(1) {
                    interface.mac.see(keep(mac), at.origin());
                }
            }
            return true;
        }
        if matches!(*first, "inet" | "inet6") {
            self.any_address = true;
            if let Some(word) = words.get(1)
                && let Some(address) = parse(word)
                && self.addresses.len() < MAX_ADDRESSES
            {
                self.addresses.push(address);
            }
            return true;
        }
        line.starts_with([' ', '\t'])
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.flush(at, out);
        // `ip link` tells no addresses at all; then their absence means nothing.
        if self.any_address {
            for (name, line) in std::mem::take(&mut self.names) {
                let mut origin = at.origin();
                origin.line = Some(line);
                if let Some(interface) = interface(out, &name) {
                    interface.addresses.see(Vec::new(), origin);
                }
            }
        }
        Completeness::Whole
    }
}

fn parse(word: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = word.split_once('/').unwrap_or((word, "32"));
    Some((address.parse().ok()?, length.parse().ok()?))
}

struct Json {
    collector: Collector,
}

impl Parser for Json {
    fn take(&mut self, line: &str, _: At<'_>, _: &mut Observation) -> bool {
        self.collector.take(line)
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        let value = match self.collector.parse() {
            Ok(Some(value)) => value,
            Ok(None) => return Completeness::Whole,
            Err(why) => return Completeness::Cut(why),
        };
        for object in objects(&value) {
            let Some(name) = string(object, "ifname") else {
                continue;
            };
            let Some(interface) = interface(out, name) else {
                continue;
            };
            let origin = at.origin();
            see_number(&mut interface.index, object, "ifindex", at);
            see_number(&mut interface.mtu, object, "mtu", at);
            see_text(&mut interface.link_type, object, "link_type", at);
            see_text(&mut interface.mac, object, "address", at);
            see_text(&mut interface.master, object, "master", at);
            if let Some(state) = string(object, "operstate") {
                interface
                    .state
                    .see(keep(state).to_ascii_lowercase(), origin);
            }
            if let Some(list) = object.get("addr_info").and_then(Value::as_array) {
                let addresses = list
                    .iter()
                    .take(MAX_ADDRESSES)
                    .filter_map(|a| {
                        let length = u8::try_from(number(a, "prefixlen")?).ok()?;
                        Some((string(a, "local")?.parse().ok()?, length))
                    })
                    .collect();
                interface.addresses.see(addresses, at.origin());
            }
        }
        Completeness::Whole
    }
}

fn see_number(fact: &mut Fact<u32>, object: &Value, key: &str, at: At<'_>) {
    if let Some(value) = number(object, key) {
        fact.see(value, at.origin());
    }
}

fn see_text(fact: &mut Fact<String>, object: &Value, key: &str, at: At<'_>) {
    if let Some(value) = string(object, key) {
        fact.see(keep(value), at.origin());
    }
}
