//! `ibstatus`.

use model::Observation;
use model::observation::rdma::GidType;
use model::observation::{Completeness, Tool};

use super::{Kind, Names, port};
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{gid, keep, key_value, link_layer, phys_state, port_state, rate, small};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Ibstatus,
    programs: &["ibstatus"],
    command: |_| true,
    starts: |line, _| heading(line).is_some() || fatal(line),
    open: |command| Box::new(Ibstatus::new(command)),
};

struct Ibstatus {
    names: Names,
    partial: bool,
    current: Option<(String, u32)>,
    last: &'static str,
    cut: Option<String>,
    error: Option<String>,
}

/// `Infiniband device 'mlx5_0' port 1 status:`
fn heading(line: &str) -> Option<(&str, u32)> {
    let rest = line.trim().strip_prefix("Infiniband device")?;
    let (_, rest) = rest.split_once('\'')?;
    let (name, rest) = rest.split_once('\'')?;
    let (_, rest) = rest.split_once("port")?;
    Some((name, small(rest)?))
}

/// `Fatal error:  No devices`
fn fatal(line: &str) -> bool {
    line.trim()
        .strip_prefix("Fatal error:")
        .is_some_and(|rest| rest.contains("device") || rest.contains("sys files"))
}

const FIELDS: &[&str] = &[
    "default gid",
    "base lid",
    "sm lid",
    "state",
    "phys state",
    "rate",
    "link_layer",
];

impl Ibstatus {
    fn new(command: Option<&Command>) -> Self {
        Self {
            names: Names::default(),
            partial: command
                .is_some_and(|c| c.filtered || c.arguments.iter().any(|a| !a.starts_with('-'))),
            current: None,
            last: "",
            cut: None,
            error: None,
        }
    }

    fn end_of_port(&mut self) {
        if let Some((name, number)) = self.current.take()
            && !matches!(self.last, "link_layer" | "rate")
        {
            self.cut
                .get_or_insert_with(|| format!("{name} port {number} ends after {:?}", self.last));
        }
    }
}

impl Parser for Ibstatus {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if let Some((name, number)) = heading(line) {
            self.end_of_port();
            self.names.add(name);
            self.current = Some((name.to_owned(), number));
            self.last = "";
            return port(out, name, number).is_some();
        }
        if fatal(line) {
            self.error = Some(keep(line));
            return true;
        }
        let Some((key, value)) = key_value(line) else {
            return false;
        };
        let Some(field) = FIELDS.iter().find(|f| **f == key) else {
            return false;
        };
        self.last = field;
        let Some((name, number)) = self.current.clone() else {
            return true;
        };
        let Some(port) = port(out, &name, number) else {
            return true;
        };
        let origin = at.origin();
        match *field {
            "default gid" => {
                if let Some(address) = gid(value)
                    && !address.is_unspecified()
                {
                    let entry = port.gids.entry(0).or_default();
                    entry.address.see(address, origin);
                }
            }
            "base lid" => {
                if let Some(lid) = small(value) {
                    port.lid.see(lid, origin);
                }
            }
            "sm lid" => {
                if let Some(lid) = small(value) {
                    port.sm_lid.see(lid, origin);
                }
            }
            "state" => {
                if let Some(state) = port_state(value) {
                    port.state.see(state, origin);
                }
            }
            "phys state" => {
                if let Some(phys) = phys_state(value) {
                    port.phys.see(phys, origin);
                }
            }
            "rate" => {
                if let Some((mbps, lanes, speed)) = rate(value) {
                    port.rate_mbps.see(mbps, origin.clone());
                    if let Some(lanes) = lanes {
                        port.lanes.see(lanes, origin.clone());
                    }
                    if let Some(speed) = speed {
                        port.lane_speed.see(speed, origin);
                    }
                }
            }
            _ => {
                if let Some(layer) = link_layer(value) {
                    if layer == model::observation::rdma::LinkLayer::InfiniBand
                        && let Some(entry) = port.gids.get_mut(&0)
                    {
                        entry.kind.see(GidType::InfiniBand, origin.clone());
                    }
                    port.link_layer.see(layer, origin);
                }
            }
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.end_of_port();
        let cut = self.cut.take();
        self.names
            .list(at, cut.is_some() || self.partial, self.error.clone(), out);
        match (self.error.take(), cut) {
            (Some(error), _) => Completeness::ToolError(error),
            (None, Some(cut)) => Completeness::Cut(cut),
            (None, None) => Completeness::Whole,
        }
    }
}
