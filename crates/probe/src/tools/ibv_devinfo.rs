//! `ibv_devinfo`, also `-v` and `-l`.

use model::Observation;
use model::observation::rdma::GidType;
use model::observation::{Completeness, Tool};

use super::{Kind, MAX_ERRORS, MAX_GIDS, Names, device, port};
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{
    gid, guid, is_name, keep, key_value, link_layer, phys_state, port_state, small, thousandths,
};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::IbvDevinfo,
    programs: &["ibv_devinfo"],
    command: |_| true,
    starts: |line, _| {
        let text = line.trim();
        hca_id(text).is_some()
            || found(text).is_some()
            || text == "No IB devices found"
            || text == "Failed to open device"
            || key_value(text).is_some_and(|(key, _)| {
                matches!(
                    key,
                    "phys_port_cnt" | "port_lmc" | "active_mtu" | "vendor_part_id"
                )
            })
    },
    open: |command| Box::new(Devinfo::new(command)),
};

struct Devinfo {
    names: Names,
    partial: bool,
    list_only: bool,
    device: Option<String>,
    port: Option<u32>,
    headless: bool,
    failures: u32,
    error: Option<String>,
    expected: Option<u32>,
    last: Option<String>,
    in_port_fields: bool,
}

/// `hca_id: mlx5_0`
fn hca_id(text: &str) -> Option<&str> {
    let name = text.strip_prefix("hca_id:")?.trim();
    is_name(name).then_some(name)
}

/// `2 HCAs found:`
fn found(text: &str) -> Option<u32> {
    let (count, rest) = text.split_once(' ')?;
    (rest.starts_with("HCAs found") || rest.starts_with("HCA found"))
        .then(|| count.parse().ok())
        .flatten()
}

/// `GID[  3]:   ::ffff:10.0.0.1, RoCE v2`
fn gid_row(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix("GID[")?;
    let (index, rest) = rest.split_once(']')?;
    Some((
        index.trim().parse().ok()?,
        rest.trim_start_matches(':').trim(),
    ))
}

/// Names of fields are words with `_`; values of lists are words in capital letters.
fn is_field(key: &str) -> bool {
    !key.contains(' ')
        && key
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

impl Devinfo {
    fn new(command: Option<&Command>) -> Self {
        let asked = command
            .and_then(|c| c.option("-d").or_else(|| c.option("--ib-dev")))
            .filter(|name| is_name(name))
            .map(str::to_owned);
        Self {
            names: Names::default(),
            partial: asked.is_some() || command.is_some_and(|c| c.filtered),
            list_only: command.is_some_and(|c| c.has("-l") || c.has("--list")),
            device: asked,
            port: None,
            headless: true,
            failures: 0,
            error: None,
            expected: None,
            last: None,
            in_port_fields: false,
        }
    }

    fn device_field(&self, key: &str, value: &str, at: At<'_>, out: &mut Observation) -> bool {
        let Some(name) = &self.device else {
            return false;
        };
        let Some(device) = device(out, name) else {
            return true;
        };
        let origin = at.origin();
        match key {
            "transport" => device.transport.see(keep(value), origin),
            "fw_ver" => device.firmware.see(keep(value), origin),
            "node_guid" => {
                if let Some(guid) = guid(value) {
                    device.node_guid.see(guid, origin);
                }
            }
            "sys_image_guid" => {
                if let Some(guid) = guid(value) {
                    device.system_image_guid.see(guid, origin);
                }
            }
            "vendor_id" => {
                if let Some(id) = small(value) {
                    device.vendor_id.see(id, origin);
                }
            }
            "vendor_part_id" => {
                if let Some(id) = small(value) {
                    device.vendor_part_id.see(id, origin);
                }
            }
            "hw_ver" => device.hardware_version.see(keep(value), origin),
            "board_id" => device.board_id.see(keep(value), origin),
            "phys_port_cnt" => {
                if let Some(count) = small(value) {
                    device.port_count.see(count, origin);
                }
            }
            _ => return false,
        }
        true
    }

    fn port_field(&self, key: &str, value: &str, at: At<'_>, out: &mut Observation) {
        let Some(name) = &self.device else {
            return;
        };
        // Without its number (a cut start) it is the first port.
        let Some(port) = port(out, name, self.port.unwrap_or(1)) else {
            return;
        };
        let origin = at.origin();
        match key {
            "state" => {
                if let Some(state) = port_state(value) {
                    port.state.see(state, origin);
                }
            }
            "phys_state" => {
                if let Some(phys) = phys_state(value) {
                    port.phys.see(phys, origin);
                }
            }
            "link_layer" => {
                if let Some(layer) = link_layer(value) {
                    port.link_layer.see(layer, origin);
                }
            }
            "max_mtu" => {
                if let Some(mtu) = small(value) {
                    port.max_mtu.see(mtu, origin);
                }
            }
            "active_mtu" => {
                if let Some(mtu) = small(value) {
                    port.active_mtu.see(mtu, origin);
                }
            }
            "sm_lid" => {
                if let Some(lid) = small(value) {
                    port.sm_lid.see(lid, origin);
                }
            }
            "port_lid" => {
                if let Some(lid) = small(value) {
                    port.lid.see(lid, origin);
                }
            }
            "port_cap_flags" => {
                if let Some(mask) = small(value) {
                    port.capability_mask.see(mask, origin);
                }
            }
            "active_width" => {
                if let Some(lanes) = small(value) {
                    port.lanes.see(lanes, origin);
                }
            }
            "active_speed" => {
                if let Some(speed) = thousandths(value) {
                    port.lane_mbps.see(speed, origin);
                }
            }
            _ => {}
        }
    }
}

impl Parser for Devinfo {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        if let Some(name) = hca_id(text) {
            self.device = Some(name.to_owned());
            self.port = None;
            self.headless = false;
            self.names.add(name);
            if let Some(device) = device(out, name) {
                device.opens.see(true, at.origin());
            }
            return true;
        }
        if let Some(count) = found(text) {
            self.expected = Some(count);
            self.list_only = true;
            self.headless = false;
            return true;
        }
        if text == "Failed to open device" {
            self.failures = self.failures.saturating_add(1);
            if out.rdma.open_failures.len() < MAX_ERRORS {
                out.rdma.open_failures.push(at.origin());
            }
            return true;
        }
        if text == "No IB devices found"
            || text.starts_with("Failed to get IB devices list")
            || text.starts_with("Failed to query")
            || text.starts_with("IB device '")
        {
            self.error = Some(keep(text));
            return true;
        }
        if self.list_only && is_name(text) {
            self.names.add(text);
            return device(out, text).is_some();
        }
        if let Some((index, rest)) = gid_row(text) {
            let (address, kind) = rest.split_once(',').unwrap_or((rest, ""));
            let kind = match kind.trim() {
                "RoCE v1" => Some(GidType::RoceV1),
                "RoCE v2" => Some(GidType::RoceV2),
                "IB" | "InfiniBand" => Some(GidType::InfiniBand),
                "IB/RoCE v1" => Some(GidType::InfiniBandOrRoceV1),
                _ => None,
            };
            if let (Some(name), Some(address)) = (&self.device, gid(address))
                && !address.is_unspecified()
                && let Some(port) = port(out, name, self.port.unwrap_or(1))
                && port.gids.len() < MAX_GIDS
            {
                let entry = port.gids.entry(index).or_default();
                entry.address.see(address, at.origin());
                if let Some(kind) = kind {
                    entry.kind.see(kind, at.origin());
                }
            }
            return true;
        }
        // `port 1: PORT_ACTIVE, max_mtu=4096`, as summaries print it.
        if let Some(rest) = text.strip_prefix("port ")
            && let Some((number, rest)) = rest.split_once(':')
            && let Ok(number) = number.trim().parse::<u32>()
        {
            self.port = Some(number);
            for (at_word, word) in rest.split(',').enumerate() {
                match word.trim().split_once('=') {
                    Some((key, value)) => self.port_field(key.trim(), value, at, out),
                    None if at_word == 0 => self.port_field("state", word, at, out),
                    None => {}
                }
            }
            return true;
        }
        let Some((key, value)) = key_value(text) else {
            // Words of a list, such as the flags below `device_cap_flags:`.
            return self.device.is_some()
                && !text.contains(':')
                && (line.starts_with([' ', '\t'])
                    && text.chars().all(|c| {
                        c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | ' ')
                    })
                    || text.ends_with("not supported"));
        };
        if key == "port"
            && let Ok(number) = value.parse::<u32>()
        {
            self.port = Some(number);
            self.in_port_fields = true;
            if let Some(name) = &self.device {
                port(out, name, number);
            }
            return true;
        }
        if !is_field(key) {
            return self.device.is_some() && matches!(key, "Device ports" | "Unknown flags")
                || (self.device.is_some() && key.ends_with("_caps"));
        }
        // Every field has a blank after its colon, or nothing; `a:b` is something else.
        if line.contains(&format!("{key}:")) && !value.is_empty() {
            let after = line.split_once(':').map_or("", |(_, rest)| rest);
            if !after.starts_with([' ', '\t']) {
                return false;
            }
        }
        self.last = Some(keep(key));
        if self.port.is_none() && self.device_field(key, value, at, out) {
            return true;
        }
        self.port_field(key, value, at, out);
        self.device.is_some() || KIND_FIELDS.contains(&key)
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        let cut = match (self.expected, self.names.0.len()) {
            (Some(expected), listed)
                if usize::try_from(expected).unwrap_or(usize::MAX) > listed =>
            {
                Some(format!(
                    "{expected} devices are announced, {listed} are listed"
                ))
            }
            _ if self.headless && self.last.is_some() => {
                Some("it begins within a device".to_owned())
            }
            // The last field of a port is its link layer; what `-v` adds comes after it.
            _ if self.in_port_fields
                && matches!(
                    self.last.as_deref(),
                    Some("state" | "max_mtu" | "active_mtu" | "sm_lid" | "port_lid")
                ) =>
            {
                Some("the last port ends early".to_owned())
            }
            _ => None,
        };
        if !self.headless || self.error.is_some() || self.failures > 0 || self.last.is_none() {
            let partial = self.partial || cut.is_some() || self.failures > 0;
            self.names.list(at, partial, self.error.clone(), out);
        }
        match (self.error.take(), cut) {
            (Some(error), _) => Completeness::ToolError(error),
            (None, Some(cut)) => Completeness::Cut(cut),
            (None, None) => Completeness::Whole,
        }
    }
}

/// Fields that are taken without a device.
const KIND_FIELDS: &[&str] = &[
    "transport",
    "fw_ver",
    "node_guid",
    "sys_image_guid",
    "vendor_id",
    "vendor_part_id",
    "hw_ver",
    "board_id",
    "phys_port_cnt",
    "state",
    "phys_state",
    "link_layer",
    "max_mtu",
    "active_mtu",
    "sm_lid",
    "port_lid",
    "port_lmc",
    "active_width",
    "active_speed",
];
