//! Listings of `/dev/infiniband`, `/dev/nvidia*`, IMEX channels, and `/sys/class/infiniband`.

use model::observation::rdma::{DevNode, Function};
use model::observation::{Completeness, Tool};
use model::{Observation, Reason};

use super::{Kind, Names, device};
use crate::command::Command;
use crate::parser::{At, Parser};
use crate::text::{is_name, keep, pci_address};

pub(crate) const KIND: Kind = Kind {
    tool: Tool::Ls,
    programs: &["ls", "find"],
    command: |command| folder_of(command).is_some(),
    starts: |line, _| {
        missing(line).is_some()
            || long(line).is_some_and(|l| {
                node_folder(l.name).is_some()
                    || l.name == "rdma_cm"
                    || l.target.is_some_and(|t| t.contains("/infiniband/"))
            })
            || {
                let mut words = line.split_whitespace().peekable();
                words.peek().is_some()
                    && line.split_whitespace().any(|w| w.starts_with("uverbs"))
                    && words.all(|w| {
                        node_folder(base(w)).is_some()
                            || w == "rdma_cm"
                            || w == "by-ibdev"
                            || w == "by-path"
                    })
            }
            || (line.trim().ends_with(':') && folder(line.trim().trim_end_matches(':')).is_some())
    },
    open: |command| {
        Box::new(Ls {
            folder: command.and_then(folder_of),
            commanded: command.is_some_and(|c| !c.filtered),
            devices: Names::default(),
            nodes: 0,
            gone: false,
        })
    },
};

#[derive(Clone, Copy, PartialEq)]
enum Folder {
    /// `/dev/infiniband`
    Nodes,
    /// `/sys/class/infiniband`
    Devices,
    /// `/dev/nvidia-caps-imex-channels`
    Channels,
    /// `/dev`, `/dev/nvidia*`
    Gpus,
    /// Another folder below `/sys/class`, whose names mean nothing here.
    Other,
}

struct Ls {
    folder: Option<Folder>,
    commanded: bool,
    devices: Names,
    nodes: u32,
    gone: bool,
}

/// Nodes that are kept.
const MAX_NODES: usize = 8192;

fn folder(path: &str) -> Option<Folder> {
    let path = path.trim_end_matches(['/', '*', ':']);
    Some(match path {
        "/dev/infiniband" => Folder::Nodes,
        "/sys/class/infiniband" => Folder::Devices,
        "/dev/nvidia-caps-imex-channels" => Folder::Channels,
        "/dev" | "/dev/nvidia" => Folder::Gpus,
        _ if path.starts_with("/sys/class/infiniband") || path.starts_with("/dev/infiniband/") => {
            Folder::Other
        }
        _ => return None,
    })
}

fn folder_of(command: &Command) -> Option<Folder> {
    command.arguments.iter().find_map(|a| folder(a))
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Nodes whose names tell where they are.
fn node_folder(name: &str) -> Option<Folder> {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()))
    };
    if numbered("uverbs") || numbered("umad") || numbered("issm") || numbered("ucm") {
        Some(Folder::Nodes)
    } else if numbered("channel") {
        Some(Folder::Channels)
    } else if numbered("nvidia") || name == "gdrdrv" || name == "nvidiactl" || name == "nvidia-uvm"
    {
        Some(Folder::Gpus)
    } else {
        None
    }
}

struct Long<'a> {
    mode: &'a str,
    owner: (&'a str, &'a str),
    numbers: Option<(u32, u32)>,
    name: &'a str,
    target: Option<&'a str>,
}

/// A line of `ls -l`.
fn long(line: &str) -> Option<Long<'_>> {
    let mut words = line.split_whitespace();
    let mode = words.next()?;
    let kind = mode.chars().next()?;
    if !matches!(kind, 'c' | 'b' | 'l' | 'd' | '-' | 's' | 'p')
        || mode.trim_end_matches(['.', '+', '@']).len() != 10
        || !mode.chars().skip(1).all(|c| "rwxsStT-.+@".contains(c))
    {
        return None;
    }
    words.next()?.parse::<u64>().ok()?;
    let owner = (words.next()?, words.next()?);
    let third = words.next()?;
    let numbers = match third.strip_suffix(',') {
        Some(major) => Some((major.parse().ok()?, words.next()?.parse().ok()?)),
        // `231,192` without a blank.
        None => third
            .split_once(',')
            .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?))),
    };
    let rest: Vec<&str> = words.collect();
    let (name, target) = match rest.iter().position(|w| *w == "->") {
        Some(at) => (
            rest.get(at.checked_sub(1)?).copied()?,
            rest.get(at.checked_add(1)?).copied(),
        ),
        None => (rest.last().copied()?, None),
    };
    Some(Long {
        mode,
        owner,
        numbers,
        name: base(name),
        target,
    })
}

/// `ls: cannot access '/dev/infiniband': No such file or directory`
fn missing(line: &str) -> Option<Folder> {
    let text = line.trim();
    if !text.starts_with("ls: ") || !text.contains("No such file") {
        return None;
    }
    let path = text
        .split(['\'', '"', ' ', '‘', '’'])
        .find(|w| w.starts_with('/'))?;
    folder(path)
}

impl Ls {
    fn node<'a>(out: &'a mut Observation, name: &str, folder: Folder) -> Option<&'a mut DevNode> {
        match folder {
            Folder::Nodes => {
                let nodes = &mut out.rdma.nodes;
                if nodes.len() >= MAX_NODES && !nodes.contains_key(name) {
                    return None;
                }
                Some(nodes.entry(name.to_owned()).or_default())
            }
            Folder::Channels => {
                let number = name.strip_prefix("channel")?.parse().ok()?;
                let nodes = &mut out.gpu.imex.nodes;
                if nodes.len() >= MAX_NODES && !nodes.contains_key(&number) {
                    return None;
                }
                Some(nodes.entry(number).or_default())
            }
            Folder::Gpus if name == "gdrdrv" => Some(&mut out.gpudirect.gdrcopy_node),
            _ => None,
        }
    }

    fn name(&mut self, name: &str, folder: Folder, at: At<'_>, out: &mut Observation) {
        match folder {
            Folder::Devices => {
                if is_name(name) {
                    self.devices.add(name);
                    device(out, name);
                }
            }
            Folder::Nodes | Folder::Channels | Folder::Gpus => {
                if let Some(node) = Self::node(out, name, folder) {
                    node.exists.see(true, at.origin());
                    self.nodes = self.nodes.saturating_add(1);
                }
            }
            Folder::Other => {}
        }
    }
}

impl Parser for Ls {
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool {
        let text = line.trim();
        if let Some(folder) = missing(line) {
            self.folder = Some(folder);
            self.gone = true;
            match folder {
                Folder::Nodes => out.rdma.nodes_present.see(false, at.origin()),
                Folder::Channels => out.gpu.imex.channels.see(Vec::new(), at.origin()),
                _ => {}
            }
            return true;
        }
        if text.starts_with("ls: ") {
            return true;
        }
        if let Some(rest) = text.strip_suffix(':')
            && let Some(folder) = folder(rest)
        {
            self.folder = Some(folder);
            return true;
        }
        if text.starts_with("total ") && text.split_whitespace().count() == 2 {
            return true;
        }
        if let Some(long) = long(line) {
            let folder = node_folder(long.name)
                .or((long.name == "rdma_cm").then_some(Folder::Nodes))
                .or(self.folder.filter(|_| long.mode.starts_with('l')));
            let Some(folder) = folder else {
                return self.folder.is_some();
            };
            // A link below /sys/class tells the PCI address.
            if let Some(target) = long.target
                && (target.contains("/infiniband/") || self.folder == Some(Folder::Devices))
            {
                self.name(long.name, Folder::Devices, at, out);
                if let Some(device) = device(out, long.name) {
                    if let Some(pci) = target.split('/').rev().find_map(pci_address) {
                        device.pci.see(pci, at.origin());
                    } else if target.contains("/virtual/") {
                        device.function.see(Function::Software, at.origin());
                        device.pci.miss(
                            Reason::NotApplicable,
                            "it is a virtual device without hardware",
                        );
                    }
                }
                return true;
            }
            self.name(long.name, folder, at, out);
            if let Some(node) = Self::node(out, long.name, folder) {
                node.mode.see(keep(long.mode), at.origin());
                node.owner
                    .see((keep(long.owner.0), keep(long.owner.1)), at.origin());
                if let Some(numbers) = long.numbers {
                    node.numbers.see(numbers, at.origin());
                }
            }
            return true;
        }
        let words: Vec<&str> = text.split_whitespace().take(4096).collect();
        let plain = words.iter().all(|w| is_name(base(w)));
        if !plain {
            return false;
        }
        match self.folder {
            Some(folder) => {
                for word in words {
                    self.name(base(word), folder, at, out);
                }
                true
            }
            None if words.iter().any(|w| node_folder(base(w)).is_some()) => {
                for word in words {
                    let name = base(word);
                    let folder = node_folder(name).unwrap_or(Folder::Nodes);
                    self.name(name, folder, at, out);
                }
                true
            }
            None => false,
        }
    }

    fn finish(&mut self, at: At<'_>, out: &mut Observation) -> Completeness {
        match self.folder {
            Some(Folder::Devices) if self.commanded || !self.devices.is_empty() => {
                self.devices.list(at, !self.commanded, None, out);
            }
            Some(Folder::Nodes) if self.commanded && !self.gone => {
                out.rdma.nodes_present.see(self.nodes > 0, at.origin());
            }
            None if self.nodes > 0 => out.rdma.nodes_present.see(true, at.origin()),
            Some(Folder::Channels) if self.commanded && !self.gone => {
                let channels = out
                    .gpu
                    .imex
                    .nodes
                    .iter()
                    .filter(|(_, n)| n.exists.value() == Some(&true))
                    .map(|(n, _)| *n)
                    .collect();
                out.gpu.imex.channels.see(channels, at.origin());
            }
            _ => {}
        }
        Completeness::Whole
    }
}
