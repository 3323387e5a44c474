//! One parser per tool.

pub(crate) mod dcgmi;
pub(crate) mod fi_info;
pub(crate) mod gpud;
pub(crate) mod ibdev2netdev;
pub(crate) mod ibstat;
pub(crate) mod ibstatus;
pub(crate) mod ibv_devices;
pub(crate) mod ibv_devinfo;
pub(crate) mod ip;
pub(crate) mod json;
pub(crate) mod ls;
pub(crate) mod lsmod;
pub(crate) mod lspci;
pub(crate) mod nvidia_smi;
pub(crate) mod nvlink;
pub(crate) mod rdma;
pub(crate) mod show_gids;
pub(crate) mod sysfs_dump;
pub(crate) mod topo;
pub(crate) mod ucx_info;
pub(crate) mod ulimit;
pub(crate) mod uname;

use std::collections::BTreeSet;

use model::Observation;
use model::observation::Tool;
use model::observation::rdma::{Device, Listing, Port};

use crate::command::Command;
use crate::parser::{At, Open, Starts};
use crate::text::is_name;

/// How outputs of one tool are recognised.
pub(crate) struct Kind {
    pub(crate) tool: Tool,
    pub(crate) programs: &'static [&'static str],
    pub(crate) command: fn(&Command) -> bool,
    pub(crate) starts: Starts,
    pub(crate) open: Open,
}

/// Every kind, the more special ones first.
pub(crate) static KINDS: &[Kind] = &[
    sysfs_dump::KIND,
    ibstat::KIND,
    ibstatus::KIND,
    ibv_devinfo::KIND,
    ibv_devices::KIND,
    ibdev2netdev::KIND,
    rdma::LINK,
    rdma::LINK_JSON,
    rdma::DEV,
    rdma::DEV_JSON,
    rdma::SYSTEM,
    show_gids::KIND,
    topo::KIND,
    topo::P2P,
    nvlink::KIND,
    nvidia_smi::QUERY,
    nvidia_smi::TABLE,
    dcgmi::KIND,
    gpud::TABLE,
    gpud::JSON,
    ip::TEXT,
    ip::JSON,
    ucx_info::KIND,
    fi_info::KIND,
    lspci::KIND,
    ls::KIND,
    ulimit::KIND,
    uname::KIND,
    lsmod::KIND,
];

/// The kind whose output a command prints.
pub(crate) fn kind_of_command(command: &Command) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|kind| kind.programs.contains(&command.program) && (kind.command)(command))
}

/// Devices that are kept.
const MAX_DEVICES: usize = 4096;
/// Ports of one device that are kept.
const MAX_PORTS: usize = 256;
/// Entries of one GID table that are kept.
pub(crate) const MAX_GIDS: usize = 4096;
/// Errors of one kind that are kept.
pub(crate) const MAX_ERRORS: usize = 1024;

/// A device by name; `None` where the name is none or there are too many.
pub(crate) fn device<'a>(out: &'a mut Observation, name: &str) -> Option<&'a mut Device> {
    let devices = &mut out.rdma.devices;
    if !is_name(name) || (devices.len() >= MAX_DEVICES && !devices.contains_key(name)) {
        return None;
    }
    Some(devices.entry(name.to_owned()).or_default())
}

/// A port of a device.
pub(crate) fn port<'a>(out: &'a mut Observation, name: &str, number: u32) -> Option<&'a mut Port> {
    let ports = &mut device(out, name)?.ports;
    if ports.len() >= MAX_PORTS && !ports.contains_key(&number) {
        return None;
    }
    Some(ports.entry(number).or_default())
}

/// Device names that an output lists, in order and once each.
#[derive(Default)]
pub(crate) struct Names(Vec<String>, BTreeSet<String>);

impl Names {
    pub(crate) fn add(&mut self, name: &str) {
        if self.0.len() < MAX_DEVICES && self.1.insert(name.to_owned()) {
            self.0.push(name.to_owned());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Says what was listed.
    pub(crate) fn list(
        &mut self,
        at: At<'_>,
        cut: bool,
        error: Option<String>,
        out: &mut Observation,
    ) {
        self.1.clear();
        if out.rdma.listings.len() < MAX_ERRORS {
            out.rdma.listings.push(Listing {
                origin: at.origin(),
                devices: std::mem::take(&mut self.0),
                cut,
                error,
            });
        }
    }
}
