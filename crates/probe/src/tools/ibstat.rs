//! `ibstat`, also `-s` and `-l`. Fields are known by name, because pastes lose their indentation.

use model::Observation;
use model::observation::{Completeness, Tool};

use super::{Kind, Names, device, port};
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{
    guid, is_name, keep, key_value, link_layer, phys_state, port_state, small, thousandths,
};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Ibstat,
    programs: &["ibstat"],
    command: |_| true,
    starts: |line, _| {
        ca_name(line).is_some() || orphan(line) || line.trim_start().starts_with("ibpanic: ")
    },
    open: |command| Box::new(Ibstat::new(command)),
};

struct Ibstat {
    names: Names,
    list_only: bool,
    partial: bool,
    short: bool,
    device: Option<String>,
    port: Option<u32>,
    port_count: u32,
    ports_seen: u32,
    any_port: bool,
    /// Fields of a port stand before any device is named: the start is cut off.
    headless: bool,
    /// The line `Port 1:` was filtered out: the field that began the port.
    unnamed: Option<&'static str>,
    last_field: &'static str,
    error: Option<String>,
    cut: Option<String>,
}

/// `CA 'mlx5_0'`.
fn ca_name(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("CA")?;
    let name = rest.trim_start_matches([':', ' ']);
    let name = name.strip_prefix(['\'', '"', '‘', '’', '“', '”', '`', '´'])?;
    let name = name
        .split(['\'', '"', '‘', '’', '“', '”', '`', '´', ':'])
        .next()?;
    is_name(name).then_some(name)
}

/// A field that only `ibstat` prints, where the start is cut off.
fn orphan(line: &str) -> bool {
    key_value(line).is_some_and(|(key, _)| {
        matches!(
            key,
            "CA type" | "Base lid" | "Physical state" | "Capability mask" | "Port GUID"
        )
    })
}

const FIELDS: &[&str] = &[
    "CA type",
    "Number of ports",
    "Firmware version",
    "Hardware version",
    "Node GUID",
    "System image GUID",
    "State",
    "Physical state",
    "Rate",
    "Base lid",
    "LMC",
    "SM lid",
    "Capability mask",
    "Port GUID",
    "Link layer",
];

/// Fields of a port that are worth a port whose own line is not there.
fn of_port(field: &str) -> bool {
    matches!(field, "State" | "Physical state" | "Rate" | "Link layer")
}

impl Ibstat {
    fn new(command: Option<&Command>) -> Self {
        Self {
            names: Names::default(),
            list_only: command.is_some_and(|c| c.has("-l") || c.has("--list_of_cas")),
            partial: command
                .is_some_and(|c| c.filtered || c.arguments.iter().any(|a| !a.starts_with('-'))),
            short: command.is_some_and(|c| c.has("-s") || c.has("--short")),
            device: None,
            port: None,
            port_count: 0,
            ports_seen: 0,
            any_port: false,
            headless: false,
            unnamed: None,
            last_field: "",
            error: None,
            cut: None,
        }
    }

    fn end_of_port(&mut self) {
        if self.port.take().is_some()
            && self.unnamed.take().is_none()
            && self.last_field != "Link layer"
            && !self.last_field.is_empty()
        {
            // Old versions end with the GUID; a port that ends before that is cut.
            if self.last_field != "Port GUID" {
                self.cut.get_or_insert_with(|| {
                    format!(
                        "the last port of {} ends after {:?}",
                        self.device.as_deref().unwrap_or("a device"),
                        self.last_field
                    )
                });
            }
        }
    }

    fn end_of_device(&mut self) {
        self.end_of_port();
        if let Some(name) = self.device.take()
            && self.any_port
            && self.ports_seen < self.port_count
        {
            self.cut.get_or_insert_with(|| {
                format!(
                    "{name} has {} ports, {} are shown",
                    self.port_count, self.ports_seen
                )
            });
        }
        self.port_count = 0;
        self.ports_seen = 0;
    }
}

impl Parser for Ibstat {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if let Some(name) = ca_name(line) {
            self.end_of_device();
            self.device = Some(name.to_owned());
            self.last_field = "";
            self.names.add(name);
            return device(out, name).is_some();
        }
        let text = line.trim();
        if self.list_only && is_name(text) {
            self.names.add(text);
            return device(out, text).is_some();
        }
        if text.starts_with("ibpanic")
            || text.contains("stat of IB device")
            || text.contains("can't open UMAD")
        {
            self.error = Some(keep(text));
            return true;
        }
        if text.starts_with("ibwarn") {
            return true;
        }
        let Some((key, value)) = key_value(text) else {
            return false;
        };
        let number = key
            .strip_prefix("Port ")
            .filter(|_| value.is_empty())
            .and_then(|n| n.trim().parse::<u32>().ok());
        if let Some(number) = number {
            self.end_of_port();
            self.port = Some(number);
            self.last_field = "Port";
            self.any_port = true;
            self.ports_seen = self.ports_seen.saturating_add(1);
            if let Some(name) = &self.device {
                port(out, name, number);
            }
            return true;
        }
        let Some(field) = FIELDS.iter().find(|f| **f == key) else {
            return false;
        };
        self.last_field = field;
        let Some(name) = self.device.clone() else {
            self.headless = true;
            return true;
        };
        let origin = at.origin();
        if of_port(field) {
            match (self.port, self.unnamed) {
                // Ports come in order, and each has a field once.
                (None, _) => {
                    self.port = Some(1);
                    self.unnamed = Some(field);
                }
                (Some(number), Some(first)) if first == *field => {
                    self.port = Some(number.saturating_add(1));
                }
                _ => {}
            }
        }
        let port_number = self.port;
        let Some(ca) = device(out, &name) else {
            return true;
        };
        match *field {
            "CA type" if !value.is_empty() => ca.hca_type.see(keep(value), origin),
            "Number of ports" => {
                if let Some(count) = small(value) {
                    self.port_count = count;
                    ca.port_count.see(count, origin);
                }
            }
            "Firmware version" => ca.firmware.see(keep(value), origin),
            "Hardware version" => ca.hardware_version.see(keep(value), origin),
            "Node GUID" => {
                if let Some(guid) = guid(value) {
                    ca.node_guid.see(guid, origin);
                }
            }
            "System image GUID" => {
                if let Some(guid) = guid(value) {
                    ca.system_image_guid.see(guid, origin);
                }
            }
            _ => {
                let Some(number) = port_number else {
                    return true;
                };
                let Some(port) = port(out, &name, number) else {
                    return true;
                };
                match *field {
                    "State" => {
                        if let Some(state) = port_state(value) {
                            port.state.see(state, origin);
                        }
                    }
                    "Physical state" => {
                        if let Some(phys) = phys_state(value) {
                            port.phys.see(phys, origin);
                        }
                    }
                    "Rate" => {
                        if let Some(rate) = thousandths(value) {
                            port.rate_mbps.see(rate, origin);
                        }
                    }
                    "Base lid" => {
                        if let Some(lid) = small(value) {
                            port.lid.see(lid, origin);
                        }
                    }
                    "SM lid" => {
                        if let Some(lid) = small(value) {
                            port.sm_lid.see(lid, origin);
                        }
                    }
                    "Capability mask" => {
                        if let Some(mask) = small(value) {
                            port.capability_mask.see(mask, origin);
                        }
                    }
                    "Port GUID" => {
                        if let Some(guid) = guid(value) {
                            port.port_guid.see(guid, origin);
                        }
                    }
                    "Link layer" => {
                        if let Some(layer) = link_layer(value) {
                            port.link_layer.see(layer, origin);
                        }
                    }
                    _ => {}
                }
            }
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.end_of_device();
        let cut = self.cut.take().filter(|_| !self.short);
        // A question about one device, or a filtered answer, does not list the devices of the machine.
        let partial = self.partial || self.headless;
        self.names
            .list(at, cut.is_some() || partial, self.error.clone(), out);
        match (cut, self.error.take()) {
            (_, Some(error)) => Completeness::ToolError(error),
            (Some(cut), None) => Completeness::Cut(cut),
            (None, None) if self.headless => {
                Completeness::Cut("it begins within a device".to_owned())
            }
            (None, None) => Completeness::Whole,
        }
    }
}
