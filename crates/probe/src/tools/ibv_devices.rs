//! `ibv_devices`.

use model::Observation;
use model::observation::{Completeness, Tool};

use super::{Kind, Names, device};
use crate::parser::{At, Parser};
use crate::text::{guid, is_name};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::IbvDevices,
    programs: &["ibv_devices"],
    command: |_| true,
    starts: |line, _| is_header(line),
    open: |command| {
        Box::new(Devices {
            names: Names::default(),
            partial: command.is_some_and(|c| c.filtered),
        })
    },
};

struct Devices {
    names: Names,
    partial: bool,
}

fn is_header(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    words == ["device", "node", "GUID"]
}

impl Parser for Devices {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        if is_header(line) {
            return true;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [a, b] if a.chars().chain(b.chars()).all(|c| c == '-') => true,
            [name, digits] if is_name(name) => {
                let Some(guid) = guid(digits) else {
                    return false;
                };
                self.names.add(name);
                if let Some(device) = device(out, name) {
                    device.node_guid.see(guid, at.origin());
                }
                true
            }
            _ => false,
        }
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        self.names.list(at, self.partial, None, out);
        Completeness::Whole
    }
}
