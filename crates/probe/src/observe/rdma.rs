//! RDMA devices, ports, GIDs and device nodes.

use std::net::Ipv6Addr;

use model::Reason;
use model::observation::pci::PcieLink;
use model::observation::rdma::{DevNode, Device, Function, Gid, Listing, Port, has_software_name};
use model::observation::{Fact, Observation};

use super::facts::{Facts, origin, printable};
use super::values;
use crate::stream::Kind;
use crate::text;

const CLASS: &str = "/sys/class/infiniband";
const NODES: &str = "/dev/infiniband";

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    let names: Vec<&str> = facts
        .listed("rdma")
        .iter()
        .filter_map(|path| path.strip_prefix(CLASS)?.strip_prefix('/'))
        .collect();
    for name in &names {
        seen.rdma
            .devices
            .insert((*name).to_owned(), Box::new(device(facts, name)));
    }
    // What follows the devices was reached, so none was left unread.
    let all = facts.reached("counters") || facts.reached("tools");
    // The class is not there where no RDMA module is loaded: that is a list as well, an empty one.
    if facts.reached("rdma") && (all || !names.is_empty()) {
        seen.rdma.listings.push(Listing {
            origin: origin(CLASS),
            devices: names.iter().map(|name| (*name).to_owned()).collect(),
            cut: !all
                || !facts.nothing_lost()
                || facts
                    .of(Kind::None, CLASS)
                    .iter()
                    .any(|why| *why != "absent"),
            error: None,
        });
    }
    seen.rdma.abi_version = facts.fact("/sys/class/infiniband_verbs/abi_version", |t| {
        t.parse().ok()
    });
    nodes(facts, seen);
}

/// Nodes below `/dev/infiniband`, and which device each belongs to.
fn nodes(facts: &Facts<'_>, seen: &mut Observation) {
    if facts.reached("rdma") && facts.nothing_lost() {
        let any = facts
            .nodes()
            .any(|path| path.starts_with(NODES) && facts.node(path) != Some("absent"));
        seen.rdma.nodes_present = Fact::seen(any, origin(NODES));
    }
    for path in facts.nodes() {
        let Some(name) = path.strip_prefix(NODES).and_then(|p| p.strip_prefix('/')) else {
            continue;
        };
        let mut node = dev_node(facts, path);
        let class = if name.starts_with("umad") {
            "infiniband_mad"
        } else {
            "infiniband_verbs"
        };
        let ibdev = format!("/sys/class/{class}/{name}/ibdev");
        if facts.text(&ibdev).is_some() {
            node.device = facts.string(&ibdev);
            if let (Some(device), "infiniband_verbs") = (facts.text(&ibdev), class)
                && let Some(device) = seen.rdma.devices.get_mut(device)
            {
                device.uverbs.see(name.to_owned(), origin(&ibdev));
            }
        }
        seen.rdma.nodes.insert(name.to_owned(), node);
    }
}

/// What is known about a device node.
pub(super) fn dev_node(facts: &Facts<'_>, path: &str) -> DevNode {
    let mut node = DevNode::default();
    let Some(text) = facts.node(path) else {
        node.exists = facts.missing(path);
        return node;
    };
    node.exists = Fact::seen(text != "absent", origin(path));
    node.opens = match text {
        // "accessible": its mode and the control group allow it, but it was not opened.
        "opened" | "accessible" => Fact::seen(true, origin(path)),
        "absent" => Fact::missing(Reason::NotVisible, format!("{path} is not there")),
        "not a device" => Fact::missing(Reason::Unreadable, format!("{path} is not a device")),
        _ => Fact::seen(false, origin(path)),
    };
    if let Some(error) = text.strip_prefix("failed: ") {
        node.open_error = Fact::seen(printable(error), origin(path));
    }
    node
}

fn device(facts: &Facts<'_>, name: &str) -> Device {
    let at = |file: &str| format!("{CLASS}/{name}/{file}");
    let mut device = Device {
        hca_type: facts.string(&at("hca_type")),
        board_id: facts.string(&at("board_id")),
        firmware: facts.string(&at("fw_ver")),
        hardware_version: facts.string(&at("hw_rev")),
        node_description: facts.string(&at("node_desc")),
        node_guid: facts.fact(&at("node_guid"), text::guid),
        system_image_guid: facts.fact(&at("sys_image_guid"), text::guid),
        node_type: facts.fact(&at("node_type"), |text| {
            Some(printable(
                text.split_once(": ").map_or(text, |(_, word)| word),
            ))
        }),
        ..Device::default()
    };
    if let Some(directory) = facts.link(&at("pci")) {
        let address = values::pci_address(directory);
        device.pci = match address {
            Some(address) => Fact::seen(address, origin(&at("device"))),
            None => Fact::missing(
                Reason::NotApplicable,
                format!("{directory} is not a PCI device"),
            ),
        };
        device.vendor_id = facts.fact(&format!("{directory}/vendor"), text::small);
        device.vendor_part_id = facts.fact(&format!("{directory}/device"), text::small);
        device.numa_node = facts.fact(&format!("{directory}/numa_node"), |t| t.parse().ok());
        device.pcie = pcie(facts, directory);
        let virtual_function = facts.link(&format!("{directory}/physfn")).is_some();
        let scalable = facts
            .link(&at("device"))
            .is_some_and(|leaf| leaf.contains(".sf."));
        let function = match (scalable, virtual_function) {
            (true, _) => Function::Scalable,
            (_, true) => Function::Virtual,
            _ => Function::Physical,
        };
        device.function = Fact::seen(function, origin(&at("device")));
    } else if facts.link(&at("device")).is_none()
        && (facts.text(&at("parent")).is_some() || is_software(name, facts))
    {
        // Soft-RoCE and soft-iWARP have an interface as their parent, and no device.
        device.function = Fact::seen(Function::Software, origin(&at("parent")));
        device.netdevs = facts.fact(&at("parent"), |name| Some(vec![printable(name)]));
        device.pci = Fact::missing(Reason::NotApplicable, "software RDMA has no PCI device");
    }
    if let Some(driver) = facts.link(&at("device/driver")) {
        let word = driver.rsplit('/').next().unwrap_or(driver);
        device.driver = Fact::seen(printable(word), origin(&at("device/driver")));
    }
    // Ports are read after the interfaces.
    if facts.link(&at("device")).is_some() && !facts.names(Kind::File, &at("ports")).is_empty() {
        let netdevs = facts.listed(&at("netdev"));
        device.netdevs = Fact::seen(
            netdevs.iter().map(|n| printable(n)).collect(),
            origin(&at("device/net")),
        );
    }
    let ports = at("ports");
    let mut count = 0;
    for port_name in facts.names(Kind::File, &ports) {
        if let Ok(number) = port_name.parse::<u32>() {
            count += 1;
            let port = port(facts, &format!("{ports}/{port_name}"));
            device.ports.insert(number, Box::new(port));
        }
    }
    if count > 0 {
        device.port_count = Fact::seen(count, origin(&ports));
    }
    device
}

/// rxe and siw below kernels that name no parent.
fn is_software(name: &str, facts: &Facts<'_>) -> bool {
    has_software_name(name)
        && facts
            .text(&format!("{CLASS}/{name}/fw_ver"))
            .is_none_or(str::is_empty)
}

/// Speed and width of a PCI device's link.
pub(super) fn pcie(facts: &Facts<'_>, directory: &str) -> PcieLink {
    let at = |file: &str| format!("{directory}/{file}");
    PcieLink {
        speed_mts: facts.fact(&at("current_link_speed"), values::pcie_speed),
        max_speed_mts: facts.fact(&at("max_link_speed"), values::pcie_speed),
        width: facts.fact(&at("current_link_width"), |t| t.parse().ok()),
        max_width: facts.fact(&at("max_link_width"), |t| t.parse().ok()),
        ..PcieLink::default()
    }
}

fn port(facts: &Facts<'_>, directory: &str) -> Port {
    let at = |file: &str| format!("{directory}/{file}");
    let mut port = Port {
        state: facts.fact(&at("state"), text::port_state),
        phys: facts.fact(&at("phys_state"), text::phys_state),
        link_layer: facts.fact(&at("link_layer"), text::link_layer),
        rate_mbps: facts.fact(&at("rate"), |t| Some(text::rate(t)?.0)),
        lanes: facts.fact(&at("rate"), |t| text::rate(t)?.1),
        lane_speed: facts.fact(&at("rate"), |t| text::rate(t)?.2),
        lid: facts.fact(&at("lid"), text::small),
        sm_lid: facts.fact(&at("sm_lid"), text::small),
        capability_mask: facts.fact(&at("cap_mask"), text::small),
        ..Port::default()
    };
    for (index, address) in facts.entries(Kind::File, &at("gids")) {
        let (Ok(number), Ok(address)) = (index.parse(), address.trim().parse::<Ipv6Addr>()) else {
            continue;
        };
        let gid = Gid {
            address: Fact::seen(address, origin(&at(&format!("gids/{index}")))),
            kind: facts.fact(&at(&format!("gid_attrs/types/{index}")), values::gid_type),
            netdev: facts.fact(&at(&format!("gid_attrs/ndevs/{index}")), |text| {
                Some(Some(printable(text)).filter(|name| !name.is_empty()))
            }),
        };
        if let (Some(Some(name)), Some(from)) = (gid.netdev.value(), gid.netdev.sources().first()) {
            port.netdev.see(Some(name.clone()), from.clone());
        }
        port.gids.insert(number, gid);
    }
    for (index, key) in facts.entries(Kind::File, &at("pkeys")) {
        // An entry without a partition is empty.
        if let (Ok(number), Some(key)) = (index.parse(), text::small(key))
            && key & 0x7fff != 0
        {
            let from = origin(&at(&format!("pkeys/{index}")));
            port.pkeys.insert(number, Fact::seen(key, from));
        }
    }
    for (folder, prefix) in [("counters", ""), ("hw_counters", "hw_counters/")] {
        let directory = at(folder);
        for name in facts.names(Kind::File, &directory) {
            let path = format!("{directory}/{name}");
            port.counters.insert(
                format!("{prefix}{}", printable(name)),
                facts.fact(&path, |text| text.parse().ok()),
            );
        }
    }
    port
}
