//! `rdma link`, `rdma dev` and `rdma system`, as text of old and new iproute2 and as JSON.

use model::Observation;
use model::observation::rdma::NetnsMode;
use model::observation::{Completeness, Origin, Tool};
use serde_json::Value;

use super::json::{Collector, number, objects, string};
use super::{Kind, Names, device, port};
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{guid, is_name, keep, phys_state, port_state, small};

fn asks(command: &Command, what: &[&str]) -> bool {
    command.arguments.iter().any(|a| what.contains(&a.as_str()))
}

fn json(command: &Command) -> bool {
    command
        .arguments
        .iter()
        .any(|a| matches!(a.as_str(), "-j" | "-jp" | "-pj" | "--json" | "-dj" | "-jd"))
}

pub(crate) const LINK: Kind = Kind {
    tool: Tool::RdmaLink,
    programs: &["rdma"],
    command: |command| asks(command, &["link"]) && !json(command),
    starts: |line, _| link(line).is_some() || netlink_error(line),
    open: |command| Box::new(Links::new(command)),
};

pub(crate) const LINK_JSON: Kind = Kind {
    tool: Tool::RdmaLink,
    programs: &["rdma"],
    command: |command| asks(command, &["link"]) && json(command),
    starts: |line, next| {
        let text = format!("{line}{next}");
        json_start(line) && text.contains("\"ifname\"") && text.contains("\"physical_state\"")
    },
    open: |command| {
        Box::new(Json {
            collector: Collector::default(),
            partial: command.is_some_and(|c| c.filtered),
            links: true,
        })
    },
};

pub(crate) const DEV: Kind = Kind {
    tool: Tool::RdmaDev,
    programs: &["rdma"],
    command: |command| asks(command, &["dev"]) && !json(command),
    starts: |line, _| dev(line).is_some(),
    open: |command| {
        Box::new(Devs {
            names: Names::default(),
            partial: command.is_some_and(|c| c.filtered),
        })
    },
};

pub(crate) const DEV_JSON: Kind = Kind {
    tool: Tool::RdmaDev,
    programs: &["rdma"],
    command: |command| asks(command, &["dev"]) && json(command),
    starts: |line, next| {
        let text = format!("{line}{next}");
        json_start(line) && text.contains("\"ifname\"") && text.contains("\"node_guid\"")
    },
    open: |command| {
        Box::new(Json {
            collector: Collector::default(),
            partial: command.is_some_and(|c| c.filtered),
            links: false,
        })
    },
};

pub(crate) const SYSTEM: Kind = Kind {
    tool: Tool::RdmaSystem,
    programs: &["rdma"],
    command: |command| asks(command, &["system"]),
    starts: |line, _| mode(line).is_some(),
    open: |_| Box::new(System),
};

fn json_start(line: &str) -> bool {
    line.trim_start().starts_with("[{") || line.trim_start().starts_with(['[', '{'])
}

fn netlink_error(line: &str) -> bool {
    line.contains("NETLINK_RDMA")
}

/// `link mlx5_0/1 …` and `8/1: mlx5_0/1: …`.
struct Link<'a> {
    name: &'a str,
    port: u32,
    words: Vec<&'a str>,
    /// Number of the device, which old versions print first.
    index: Option<u32>,
}

fn link(line: &str) -> Option<Link<'_>> {
    let text = line.trim();
    let (subject, rest, index) = match text.strip_prefix("link ") {
        Some(rest) => {
            let (subject, rest) = rest.trim_start().split_once(' ')?;
            (subject, rest, None)
        }
        None => {
            let (index, rest) = text.split_once(": ")?;
            let (a, b) = index.split_once('/')?;
            let number = a.parse::<u32>().ok()?;
            b.parse::<u32>().ok()?;
            let (subject, rest) = rest.trim_start().split_once(": ")?;
            (subject, rest, Some(number))
        }
    };
    let (name, number) = subject.rsplit_once('/')?;
    let words: Vec<&str> = rest.split_whitespace().take(64).collect();
    (is_name(name) && words.contains(&"state")).then(|| {
        Some(Link {
            name,
            port: small(number)?,
            words,
            index,
        })
    })?
}

struct Links {
    names: Names,
    partial: bool,
    error: Option<String>,
    /// Ports without an interface, until it is known whether this version tells interfaces.
    without: Vec<(String, u32, Origin)>,
    any_netdev: bool,
    any_new: bool,
}

/// Ports without an interface that are remembered.
const MAX_WITHOUT: usize = 4096;

impl Links {
    fn new(command: Option<&Command>) -> Self {
        Self {
            names: Names::default(),
            partial: command
                .is_some_and(|c| c.filtered || c.arguments.iter().any(|a| a.contains('/'))),
            error: None,
            without: Vec::new(),
            any_netdev: false,
            any_new: false,
        }
    }
}

/// The word after another.
fn after<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    let at = words.iter().position(|w| *w == key)?;
    words.get(at.checked_add(1)?).copied()
}

impl Parser for Links {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if netlink_error(line) {
            self.error = Some(keep(line));
            return true;
        }
        let Some(link) = link(line) else {
            let text = line.trim();
            // `rdma -d link` adds capabilities below each port.
            return line.starts_with([' ', '\t'])
                && (text.starts_with("caps:") || text.starts_with("netdev "));
        };
        self.names.add(link.name);
        self.any_new |= link.index.is_none();
        if let (Some(index), Some(device)) = (link.index, device(out, link.name)) {
            device.index.see(index, at.origin());
        }
        let netdev = after(&link.words, "netdev").filter(|n| is_name(n));
        if netdev.is_none() && self.without.len() < MAX_WITHOUT {
            self.without
                .push((link.name.to_owned(), link.port, at.origin()));
        }
        let Some(port) = port(out, link.name, link.port) else {
            return true;
        };
        if let Some(state) = after(&link.words, "state").and_then(port_state) {
            port.state.see(state, at.origin());
        }
        if let Some(phys) = after(&link.words, "physical_state").and_then(phys_state) {
            port.phys.see(phys, at.origin());
        }
        if let Some(lid) = after(&link.words, "lid").and_then(small) {
            port.lid.see(lid, at.origin());
            // Only InfiniBand ports have these words.
            if link.words.contains(&"subnet_prefix") {
                port.link_layer
                    .see(model::observation::rdma::LinkLayer::InfiniBand, at.origin());
            }
        }
        if let Some(lid) = after(&link.words, "sm_lid").and_then(small) {
            port.sm_lid.see(lid, at.origin());
        }
        if let Some(netdev) = netdev {
            self.any_netdev = true;
            port.netdev.see(Some(keep(netdev)), at.origin());
        }
        if let Some(index) = after(&link.words, "netdev_index").and_then(small) {
            port.netdev_index.see(index, at.origin());
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        // Old versions of kernel and tool never tell interfaces; then their absence means nothing.
        let tells = self.any_netdev || self.any_new;
        for (name, number, origin) in std::mem::take(&mut self.without) {
            if let Some(port) = port(out, &name, number) {
                if tells {
                    port.netdev.see(None, origin);
                } else {
                    port.netdev.miss(
                        model::Reason::NotBuilt,
                        "this version of rdma tells no interface of any port",
                    );
                }
            }
        }
        self.names.list(at, self.partial, self.error.clone(), out);
        match self.error.take() {
            Some(error) => Completeness::ToolError(error),
            None => Completeness::Whole,
        }
    }
}

/// `2: mlx5_0: node_type ca fw 28.39.1002 node_guid …`
fn dev(line: &str) -> Option<(&str, Vec<&str>)> {
    let (index, rest) = line.trim().split_once(": ")?;
    index.parse::<u32>().ok()?;
    let (name, rest) = rest.split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().take(64).collect();
    (is_name(name) && words.contains(&"node_type")).then_some((name, words))
}

struct Devs {
    names: Names,
    partial: bool,
}

impl Parser for Devs {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let Some((name, words)) = dev(line) else {
            return line.starts_with([' ', '\t']) && line.trim().starts_with("caps:");
        };
        self.names.add(name);
        let Some(device) = device(out, name) else {
            return true;
        };
        if let Some(kind) = after(&words, "node_type") {
            device.node_type.see(keep(kind), at.origin());
        }
        if let Some(firmware) = after(&words, "fw") {
            device.firmware.see(keep(firmware), at.origin());
        }
        if let Some(guid) = after(&words, "node_guid").and_then(guid) {
            device.node_guid.see(guid, at.origin());
        }
        if let Some(guid) = after(&words, "sys_image_guid").and_then(guid) {
            device.system_image_guid.see(guid, at.origin());
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.names.list(at, self.partial, None, out);
        Completeness::Whole
    }
}

fn mode(line: &str) -> Option<NetnsMode> {
    let mut words = line.split_whitespace();
    if words.next()? != "netns" {
        return None;
    }
    match words.next()? {
        "shared" => Some(NetnsMode::Shared),
        "exclusive" => Some(NetnsMode::Exclusive),
        _ => None,
    }
}

struct System;

impl Parser for System {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        match mode(line) {
            Some(mode) => {
                out.rdma.netns_mode.see(mode, at.origin());
                true
            }
            None => false,
        }
    }
}

struct Json {
    collector: Collector,
    partial: bool,
    links: bool,
}

impl Parser for Json {
    fn take(&mut self, line: &str, _: At<'_>, _: &mut Observation) -> bool {
        self.collector.take(line)
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        let mut names = Names::default();
        let value = match self.collector.parse() {
            Ok(Some(value)) => value,
            Ok(None) => Value::Null,
            Err(why) => {
                names.list(at, true, None, out);
                return Completeness::Cut(why);
            }
        };
        for object in objects(&value) {
            let Some(name) = string(object, "ifname").filter(|n| is_name(n)) else {
                continue;
            };
            names.add(name);
            if let (Some(index), Some(device)) = (number(object, "ifindex"), device(out, name)) {
                device.index.see(index, at.origin());
            }
            if self.links {
                link_object(object, name, at, out);
            } else if let Some(device) = device(out, name) {
                if let Some(kind) = string(object, "node_type") {
                    device.node_type.see(keep(kind), at.origin());
                }
                if let Some(firmware) = string(object, "fw") {
                    device.firmware.see(keep(firmware), at.origin());
                }
                if let Some(guid) = string(object, "node_guid").and_then(guid) {
                    device.node_guid.see(guid, at.origin());
                }
                if let Some(guid) = string(object, "sys_image_guid").and_then(guid) {
                    device.system_image_guid.see(guid, at.origin());
                }
            }
        }
        names.list(at, self.partial, None, out);
        Completeness::Whole
    }
}

fn link_object(object: &Value, name: &str, at: At<'_>, out: &mut Observation) {
    let Some(number_of_port) = number(object, "port") else {
        return;
    };
    let Some(port) = port(out, name, number_of_port) else {
        return;
    };
    if let Some(state) = string(object, "state").and_then(port_state) {
        port.state.see(state, at.origin());
    }
    if let Some(phys) = string(object, "physical_state").and_then(phys_state) {
        port.phys.see(phys, at.origin());
    }
    if let Some(lid) = number(object, "lid") {
        port.lid.see(lid, at.origin());
        if object.get("subnet_prefix").is_some() {
            port.link_layer
                .see(model::observation::rdma::LinkLayer::InfiniBand, at.origin());
        }
    }
    if let Some(lid) = number(object, "sm_lid") {
        port.sm_lid.see(lid, at.origin());
    }
    let netdev = string(object, "netdev").filter(|n| is_name(n)).map(keep);
    port.netdev.see(netdev, at.origin());
    if let Some(index) = number(object, "netdev_index") {
        port.netdev_index.see(index, at.origin());
    }
}
