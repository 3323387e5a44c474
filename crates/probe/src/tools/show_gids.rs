//! `show_gids`. The index counts, never the position: tables start anywhere and have gaps.

use model::Observation;
use model::observation::rdma::GidType;
use model::observation::{Completeness, Tool};

use super::{Kind, MAX_GIDS, Names, port};
use crate::parser::{At, Parser};
use crate::text::{gid, ipv4, is_name, keep, small};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::ShowGids,
    programs: &["show_gids"],
    command: |_| true,
    starts: |line, _| is_header(line) || row(line).is_some() || count(line).is_some(),
    open: |command| {
        Box::new(Gids {
            names: Names::default(),
            partial: command.is_some_and(|c| {
                c.filtered
                    || c.arguments
                        .iter()
                        .any(|a| !a.starts_with('-') && a != "show_gids")
            }),
            rows: 0,
            announced: None,
            header_seen: false,
        })
    },
};

struct Gids {
    names: Names,
    partial: bool,
    rows: u32,
    announced: Option<u32>,
    header_seen: bool,
}

fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.starts_with(&["DEV", "PORT", "INDEX", "GID"])
}

/// `n_gids_found=4`
fn count(line: &str) -> Option<u32> {
    small(line.trim().strip_prefix("n_gids_found=")?)
}

struct Row<'a> {
    name: &'a str,
    port: u32,
    index: u32,
    address: std::net::Ipv6Addr,
    kind: Option<GidType>,
    netdev: Option<&'a str>,
}

fn row(line: &str) -> Option<Row<'_>> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|w| is_name(w))?;
    let port = words.next()?.parse().ok()?;
    let index = words.next()?.parse().ok()?;
    let address = gid(words.next()?)?;
    let mut kind = None;
    let mut netdev = None;
    for word in words.take(4) {
        match word {
            "v1" => kind = Some(GidType::RoceV1),
            "v2" => kind = Some(GidType::RoceV2),
            "IB" => kind = Some(GidType::InfiniBand),
            word if ipv4(word).is_some() => {}
            word if is_name(word) => netdev = Some(word),
            _ => {}
        }
    }
    Some(Row {
        name,
        port,
        index,
        address,
        kind,
        netdev,
    })
}

impl Parser for Gids {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if is_header(line) {
            // A second header is another table.
            return !std::mem::replace(&mut self.header_seen, true);
        }
        let text = line.trim();
        if text.starts_with("---") && text.chars().all(|c| c == '-' || c.is_whitespace()) {
            return true;
        }
        if let Some(count) = count(line) {
            self.announced = Some(count);
            return true;
        }
        let Some(row) = row(line) else {
            return false;
        };
        self.rows = self.rows.saturating_add(1);
        self.names.add(row.name);
        let Some(port) = port(out, row.name, row.port) else {
            return true;
        };
        if port.gids.len() >= MAX_GIDS && !port.gids.contains_key(&row.index) {
            return true;
        }
        let entry = port.gids.entry(row.index).or_default();
        entry.address.see(row.address, at.origin());
        // An InfiniBand port has no interface in this table, and its version means nothing.
        match (row.kind, row.netdev) {
            (Some(GidType::RoceV1), None) => {
                entry.kind.see(GidType::InfiniBandOrRoceV1, at.origin());
            }
            (Some(kind), _) => entry.kind.see(kind, at.origin()),
            (None, _) => {}
        }
        entry.netdev.see(row.netdev.map(keep), at.origin());
        true
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        let cut = match self.announced {
            Some(announced) if announced > self.rows => Some(format!(
                "{announced} GIDs are announced, {} are listed",
                self.rows
            )),
            _ => None,
        };
        let devices = !self.names.is_empty();
        // It lists ports that have GIDs; a device without any is not in it.
        if devices || self.header_seen || self.announced.is_some() {
            out.rdma
                .gid_tables
                .push(model::observation::rdma::GidTable {
                    origin: at.origin(),
                    entries: self.rows,
                    cut: cut.is_some() || self.partial,
                });
        }
        match cut {
            Some(cut) => Completeness::Cut(cut),
            None => Completeness::Whole,
        }
    }
}
