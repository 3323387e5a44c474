//! `ibdev2netdev`, also `-v`. Up and down are the states of the interface, not of the port.

use model::Observation;
use model::observation::{Completeness, Tool};

use super::{Kind, Names, device, port};
use crate::parser::{At, Parser};
use crate::text::{is_name, keep, pci_address, small};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Ibdev2netdev,
    programs: &["ibdev2netdev"],
    command: |_| true,
    starts: |line, _| row(line).is_some(),
    open: |command| {
        Box::new(Netdevs {
            names: Names::default(),
            partial: command.is_some_and(|c| c.filtered),
        })
    },
};

struct Netdevs {
    names: Names,
    partial: bool,
}

struct Row<'a> {
    name: &'a str,
    pci: Option<String>,
    port: u32,
    netdev: &'a str,
    state: &'a str,
}

/// `mlx5_0 port 1 ==> ib0 (Down)`, with `-v` the PCI address before and much text between.
fn row(line: &str) -> Option<Row<'_>> {
    let (front, back) = line.split_once("==>")?;
    let (before, number) = front.rsplit_once("port")?;
    let mut words = before.split_whitespace();
    let first = words.next()?;
    let (pci, name) = match pci_address(first) {
        Some(pci) => (Some(pci), words.next()?),
        None => (None, first),
    };
    let (netdev, state) = back.split_once('(').unwrap_or((back, ""));
    is_name(name).then(|| {
        Some(Row {
            name,
            pci,
            port: small(number)?,
            netdev: netdev.trim(),
            state: state.trim().trim_end_matches(')'),
        })
    })?
}

impl Parser for Netdevs {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let Some(row) = row(line) else {
            return false;
        };
        self.names.add(row.name);
        if let Some(pci) = row.pci
            && let Some(device) = device(out, row.name)
        {
            device.pci.see(pci, at.origin());
        }
        let Some(port) = port(out, row.name, row.port) else {
            return true;
        };
        let netdev = is_name(row.netdev).then(|| keep(row.netdev));
        port.netdev.see(netdev, at.origin());
        match row.state.to_ascii_lowercase().as_str() {
            "up" => port.netdev_up.see(true, at.origin()),
            "down" => port.netdev_up.see(false, at.origin()),
            _ => {}
        }
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.names.list(at, self.partial, None, out);
        Completeness::Whole
    }
}
