//! Facts from the content of files of `/sys` and `/proc`, one function for dumps and for a live collector.

use model::observation::limits::{Capabilities, Limit};
use model::observation::rdma::{DevNode, Function, GidType};
use model::observation::{Origin, gpu::Gpu};
use model::{Fact, Observation};

use crate::text::{
    gid, guid, is_name, keep, key_value, link_layer, number, pci_address, phys_state, port_state,
    rate, small, thousandths,
};
use crate::tools::{MAX_GIDS, device, port};

/// Counters of one port that are kept.
const MAX_COUNTERS: usize = 1024;
/// Entries of other maps that are kept.
const MAX_ENTRIES: usize = 4096;

/// Puts what one file says into the observation. The value may have several lines; values that are error texts
/// (an entry that cannot be read) must not be given. Returns whether the path means something here.
///
/// Files: everything below `/sys/class/infiniband`, `/sys/class/infiniband_verbs`, `/sys/class/net`,
/// `/sys/module`, `/sys/kernel/mm/memory_peers`, `/sys/bus/pci/devices`, `/sys/fs/cgroup`, and of `/proc`:
/// `driver/nvidia`, `devices`, `PID/status`, `PID/limits`, `sys/kernel`, `cmdline`, `version`.
pub fn read_into(path: &str, value: &str, origin: &Origin, out: &mut Observation) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).take(64).collect();
    if let Some(at) = parts.iter().position(|p| *p == "infiniband")
        && let Some((name, rest)) = parts
            .get(at.saturating_add(1)..)
            .and_then(<[&str]>::split_first)
        && parts.first() == Some(&"sys")
    {
        return rdma_device(name, rest, value, origin, out);
    }
    if let Some(at) = parts.iter().position(|p| *p == "infiniband_verbs") {
        return verbs(
            parts.get(at.saturating_add(1)..).unwrap_or_default(),
            value,
            origin,
            out,
        );
    }
    match parts.as_slice() {
        ["sys", "class", "net", name, rest @ ..] => interface(name, rest, value, origin, out),
        ["sys", "module", name, rest @ ..] => module(name, rest, value, origin, out),
        ["sys", "kernel", "mm", "memory_peers", client, ..] => {
            let mut all = out
                .modules
                .peer_memory_clients
                .value()
                .cloned()
                .unwrap_or_default();
            if !all.iter().any(|c| c == client) && all.len() < MAX_ENTRIES {
                all.push(keep(client));
            }
            out.modules.peer_memory_clients = Fact::seen(all, origin.clone());
            true
        }
        ["sys", "bus", "pci", "devices", address, rest @ ..] => {
            pci(address, rest, value, origin, out)
        }
        ["sys", "fs", "cgroup", .., file] => cgroup(file, value, origin, out),
        [
            "sys",
            "class",
            "dmi",
            "id",
            file @ ("sys_vendor" | "product_name"),
        ] => {
            if is_hypervisor(value) {
                out.host.virtual_machine.see(true, origin.clone());
            }
            if *file == "sys_vendor" {
                see(&mut out.host.system_vendor, value, origin);
            }
            true
        }
        ["proc", "driver", "nvidia", rest @ ..] => nvidia(rest, value, origin, out),
        ["proc", "devices"] => {
            for line in value.lines() {
                match line.split_whitespace().last() {
                    Some("nvidia-caps-imex-channels") => {
                        out.gpu.imex.registered.see(true, origin.clone());
                    }
                    Some("gdrdrv") => out.gpudirect.gdrcopy_registered.see(true, origin.clone()),
                    _ => {}
                }
            }
            true
        }
        ["proc", "cmdline"] => {
            let words = value
                .split_whitespace()
                .filter(|w| w.contains("iommu"))
                .take(16)
                .map(keep)
                .collect();
            out.gpudirect.iommu_options.see(words, origin.clone());
            true
        }
        ["proc", "sys", "kernel", "osrelease"] => see(&mut out.host.kernel, value, origin),
        ["proc", "sys", "kernel", "hostname"] => see(&mut out.host.hostname, value, origin),
        ["proc", "sys", "kernel", "random", "boot_id"] => see(&mut out.host.boot_id, value, origin),
        ["proc", "version"] => match value.strip_prefix("Linux version ") {
            Some(rest) => see(
                &mut out.host.kernel,
                rest.split_whitespace().next().unwrap_or_default(),
                origin,
            ),
            None => false,
        },
        ["proc", "self" | "1" | "thread-self", "status"] => status(value, origin, out),
        ["proc", "self" | "1" | "thread-self", "limits"] => limits(value, origin, out),
        _ => false,
    }
}

/// Names that firmware has in guests only; clouds give bare metal their own name too, so that is no sign.
pub(crate) fn is_hypervisor(text: &str) -> bool {
    const NAMES: [&str; 8] = [
        "qemu",
        "kvm",
        "virtual machine",
        "vmware",
        "virtualbox",
        "xen",
        "hvm domu",
        "google compute engine",
    ];
    let text = text.to_ascii_lowercase();
    NAMES.iter().any(|name| text.contains(name))
}

/// Puts where a link of `/sys` points to into the observation: the PCI address and kind of a device, its driver.
pub fn link_into(path: &str, target: &str, origin: &Origin, out: &mut Observation) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|p| !p.is_empty()).take(64).collect();
    let last = target
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    match parts.as_slice() {
        ["sys", "class", "infiniband", name] | ["sys", "class", "infiniband", name, "device"] => {
            let Some(device) = device(out, name) else {
                return false;
            };
            if target.contains("/virtual/") {
                device.function.see(Function::Software, origin.clone());
            } else if let Some(pci) = target.split('/').rev().find_map(pci_address) {
                device.pci.see(pci, origin.clone());
                if target.split('/').any(|p| p.contains(".sf.")) {
                    device.function.see(Function::Scalable, origin.clone());
                }
            }
            true
        }
        ["sys", "class", "infiniband", name, "device", "driver"] => match device(out, name) {
            Some(device) => see(&mut device.driver, last, origin),
            None => false,
        },
        ["sys", "class", "infiniband", name, "device", "physfn"] => match device(out, name) {
            Some(device) => {
                device.function.see(Function::Virtual, origin.clone());
                true
            }
            None => false,
        },
        ["sys", "class", "net", name, "device"] => {
            if let (Some(interface), Some(pci)) = (net(out, name), pci_address(last)) {
                interface.pci.see(pci, origin.clone());
            }
            true
        }
        ["sys", "class", "net", name, "device", "driver"] => match net(out, name) {
            Some(interface) => see(&mut interface.driver, last, origin),
            None => false,
        },
        _ => false,
    }
}

fn see(fact: &mut Fact<String>, value: &str, origin: &Origin) -> bool {
    fact.see(keep(value), origin.clone());
    true
}

fn see_number(fact: &mut Fact<u32>, value: &str, origin: &Origin) -> bool {
    if let Some(value) = small(value) {
        fact.see(value, origin.clone());
    }
    true
}

fn rdma_device(
    name: &str,
    rest: &[&str],
    value: &str,
    origin: &Origin,
    out: &mut Observation,
) -> bool {
    if let ["ports", number, rest @ ..] = rest
        && let Ok(number) = number.parse()
    {
        return rdma_port(name, number, rest, value, origin, out);
    }
    let Some(device) = device(out, name) else {
        return false;
    };
    match rest {
        ["fw_ver"] => see(&mut device.firmware, value, origin),
        ["hca_type"] => see(&mut device.hca_type, value, origin),
        ["board_id"] => see(&mut device.board_id, value, origin),
        ["hw_rev"] => see(&mut device.hardware_version, value, origin),
        ["node_desc"] => see(&mut device.node_description, value, origin),
        ["node_type"] => {
            let word = value.split_once(':').map_or(value, |(_, word)| word);
            see(&mut device.node_type, word, origin)
        }
        ["node_guid"] => {
            if let Some(guid) = guid(value) {
                device.node_guid.see(guid, origin.clone());
            }
            true
        }
        ["sys_image_guid"] => {
            if let Some(guid) = guid(value) {
                device.system_image_guid.see(guid, origin.clone());
            }
            true
        }
        // Software devices name the interface that they are made on.
        ["parent"] => {
            if is_name(value.trim()) {
                device.parent_netdev.see(keep(value), origin.clone());
                device.function.see(Function::Software, origin.clone());
            }
            true
        }
        ["device", "numa_node"] => {
            if let Ok(node) = value.trim().parse() {
                device.numa_node.see(node, origin.clone());
            }
            true
        }
        ["device", "vendor"] => see_number(&mut device.vendor_id, value, origin),
        ["device", "device"] => see_number(&mut device.vendor_part_id, value, origin),
        [
            "device",
            file @ ("current_link_speed" | "max_link_speed" | "current_link_width"
            | "max_link_width"),
        ] => pcie(&mut device.pcie, file, value, origin),
        ["device", "uevent"] => {
            for line in value.lines() {
                match line.split_once('=') {
                    Some(("DRIVER", driver)) => {
                        see(&mut device.driver, driver, origin);
                    }
                    Some(("PCI_SLOT_NAME", address)) => {
                        if let Some(pci) = pci_address(address) {
                            device.pci.see(pci, origin.clone());
                        }
                    }
                    _ => {}
                }
            }
            true
        }
        ["device", "net", netdev, ..] if is_name(netdev) => {
            let mut all = device.netdevs.value().cloned().unwrap_or_default();
            if !all.iter().any(|n| n == netdev) && all.len() < 64 {
                all.push(keep(netdev));
                device.netdevs = Fact::seen(all, origin.clone());
            }
            true
        }
        ["device", "infiniband_verbs", uverbs, ..] => see(&mut device.uverbs, uverbs, origin),
        _ => true,
    }
}

fn pcie(
    link: &mut model::observation::pci::PcieLink,
    file: &str,
    value: &str,
    origin: &Origin,
) -> bool {
    match file {
        "current_link_speed" | "max_link_speed" => {
            if let Some(speed) = thousandths(value).and_then(|s| u32::try_from(s).ok()) {
                if file.starts_with('c') {
                    link.speed_mts.see(speed, origin.clone());
                } else {
                    link.max_speed_mts.see(speed, origin.clone());
                }
            }
        }
        "current_link_width" => {
            see_number(&mut link.width, value, origin);
        }
        _ => {
            see_number(&mut link.max_width, value, origin);
        }
    }
    true
}

fn rdma_port(
    name: &str,
    number_of_port: u32,
    rest: &[&str],
    value: &str,
    origin: &Origin,
    out: &mut Observation,
) -> bool {
    let Some(port) = port(out, name, number_of_port) else {
        return false;
    };
    match rest {
        ["state"] => {
            if let Some(state) = port_state(value) {
                port.state.see(state, origin.clone());
            }
        }
        ["phys_state"] => {
            if let Some(phys) = phys_state(value) {
                port.phys.see(phys, origin.clone());
            }
        }
        ["link_layer"] => {
            if let Some(layer) = link_layer(value) {
                port.link_layer.see(layer, origin.clone());
            }
        }
        ["rate"] => {
            if let Some((mbps, lanes, speed)) = rate(value) {
                port.rate_mbps.see(mbps, origin.clone());
                if let Some(lanes) = lanes {
                    port.lanes.see(lanes, origin.clone());
                }
                if let Some(speed) = speed {
                    port.lane_speed.see(speed, origin.clone());
                }
            }
        }
        ["lid"] => {
            see_number(&mut port.lid, value, origin);
        }
        ["sm_lid"] => {
            see_number(&mut port.sm_lid, value, origin);
        }
        ["pkeys", index] => {
            if let (Ok(index), Some(key)) = (index.parse::<u32>(), small(value))
                && key != 0
                && (port.pkeys.len() < MAX_ENTRIES || port.pkeys.contains_key(&index))
            {
                port.pkeys
                    .entry(index)
                    .or_default()
                    .see(key, origin.clone());
            }
        }
        ["cap_mask"] => {
            see_number(&mut port.capability_mask, value, origin);
        }
        ["gids", index] | ["gid_attrs", "types" | "ndevs", index] => {
            let Ok(index) = index.parse::<u32>() else {
                return true;
            };
            let address = gid(value).filter(|a| !a.is_unspecified());
            if rest.first() == Some(&"gids") && address.is_none() {
                return true;
            }
            if port.gids.len() >= MAX_GIDS && !port.gids.contains_key(&index) {
                return true;
            }
            let entry = port.gids.entry(index).or_default();
            match (rest, address) {
                (["gids", _], Some(address)) => entry.address.see(address, origin.clone()),
                (["gid_attrs", "types", _], _) => {
                    let kind = match value.trim() {
                        "RoCE v2" => Some(GidType::RoceV2),
                        "RoCE v1" => Some(GidType::RoceV1),
                        "IB" => Some(GidType::InfiniBand),
                        "IB/RoCE v1" => Some(GidType::InfiniBandOrRoceV1),
                        _ => None,
                    };
                    if let Some(kind) = kind {
                        entry.kind.see(kind, origin.clone());
                    }
                }
                (["gid_attrs", _, _], _) if is_name(value.trim()) => {
                    // The name stands here also where the interface is in another network namespace,
                    // so it is a fact of the entry, not of the port in this namespace.
                    entry.netdev.see(Some(keep(value)), origin.clone());
                }
                _ => {}
            }
        }
        ["counters" | "hw_counters" | "counters_ext", counter] => {
            let key = if rest.first() == Some(&"counters") {
                keep(counter)
            } else {
                format!("hw_counters/{}", keep(counter))
            };
            if let Some(value) = number(value)
                && (port.counters.len() < MAX_COUNTERS || port.counters.contains_key(&key))
            {
                port.counters
                    .entry(key)
                    .or_default()
                    .see(value, origin.clone());
            }
        }
        _ => {}
    }
    true
}

fn verbs(rest: &[&str], value: &str, origin: &Origin, out: &mut Observation) -> bool {
    match rest {
        ["abi_version"] => see_number(&mut out.rdma.abi_version, value, origin),
        [node, "ibdev"] if is_name(node) && is_name(value.trim()) => {
            let name = keep(value);
            if let Some(device) = device(out, &name) {
                see(&mut device.uverbs, node, origin);
            }
            if out.rdma.nodes.len() < MAX_ENTRIES || out.rdma.nodes.contains_key(*node) {
                let node: &mut DevNode = out.rdma.nodes.entry((*node).to_owned()).or_default();
                node.device.see(name, origin.clone());
            }
            true
        }
        _ => false,
    }
}

fn net<'a>(
    out: &'a mut Observation,
    name: &str,
) -> Option<&'a mut model::observation::interfaces::Interface> {
    let all = &mut out.interfaces.interfaces;
    if !is_name(name) || (all.len() >= MAX_ENTRIES && !all.contains_key(name)) {
        return None;
    }
    Some(all.entry(name.to_owned()).or_default())
}

fn interface(
    name: &str,
    rest: &[&str],
    value: &str,
    origin: &Origin,
    out: &mut Observation,
) -> bool {
    let Some(interface) = net(out, name) else {
        return false;
    };
    match rest {
        ["mtu"] => see_number(&mut interface.mtu, value, origin),
        ["ifindex"] => see_number(&mut interface.index, value, origin),
        ["operstate"] => see(&mut interface.state, &value.to_ascii_lowercase(), origin),
        ["address"] => see(&mut interface.mac, value, origin),
        ["type"] => {
            // Numbers of if_arp.h.
            let word = match value.trim() {
                "1" => "ether",
                "32" => "infiniband",
                "772" => "loopback",
                other => other,
            };
            see(&mut interface.link_type, word, origin)
        }
        ["speed"] => {
            // -1: not known.
            if let Ok(speed) = value.trim().parse::<u64>() {
                interface.speed_mbps.see(speed, origin.clone());
            }
            true
        }
        _ => false,
    }
}

fn module(name: &str, rest: &[&str], value: &str, origin: &Origin, out: &mut Observation) -> bool {
    let all = &mut out.modules.modules;
    if !is_name(name) || (all.len() >= MAX_ENTRIES && !all.contains_key(name)) {
        return false;
    }
    let module = all.entry(name.to_owned()).or_default();
    match rest {
        ["version"] => {
            see(&mut module.version, value, origin);
            if name == "gdrdrv" {
                see(&mut out.gpudirect.gdrcopy_version, value, origin);
            }
        }
        ["refcnt"] => {
            see_number(&mut module.use_count, value, origin);
        }
        _ => {}
    }
    // `initstate` and `refcnt` exist for loadable modules only; built-in code has its parameters here as well.
    if matches!(
        rest,
        ["refcnt" | "initstate" | "srcversion" | "version" | "taint" | "coresize"]
    ) {
        out.modules
            .modules
            .entry(name.to_owned())
            .or_default()
            .loaded
            .see(true, origin.clone());
    }
    true
}

fn pci(address: &str, rest: &[&str], value: &str, origin: &Origin, out: &mut Observation) -> bool {
    let Some(address) = pci_address(address) else {
        return false;
    };
    let all = &mut out.host.pci;
    if all.len() >= MAX_ENTRIES && !all.contains_key(&address) {
        return false;
    }
    let function = all.entry(address).or_default();
    match rest {
        ["vendor"] => see_number(&mut function.vendor, value, origin),
        ["device"] => see_number(&mut function.device, value, origin),
        ["class"] => {
            // 0x020700: class, subclass, interface.
            if let Some(class) = small(value) {
                function.class.see(class >> 8, origin.clone());
            }
            true
        }
        ["numa_node"] => {
            if let Ok(node) = value.trim().parse() {
                function.numa_node.see(node, origin.clone());
            }
            true
        }
        [
            file @ ("current_link_speed" | "max_link_speed" | "current_link_width"
            | "max_link_width"),
        ] => pcie(&mut function.pcie, file, value, origin),
        _ => false,
    }
}

fn cgroup(file: &str, value: &str, origin: &Origin, out: &mut Observation) -> bool {
    let limit = |text: &str| match text.trim() {
        "max" => Some(Limit::Unlimited),
        text => text.parse().ok().map(Limit::Value),
    };
    match file {
        "memory.max" | "memory.limit_in_bytes" => {
            if let Some(limit) = limit(value) {
                out.limits.cgroup_memory.see(limit, origin.clone());
            }
            true
        }
        "cpu.max" => {
            let mut words = value.split_whitespace();
            let quota = words.next().and_then(limit);
            let period = words.next().and_then(|w| w.parse::<u64>().ok());
            let milli = match (quota, period) {
                (Some(Limit::Unlimited), _) => Some(Limit::Unlimited),
                (Some(Limit::Value(quota)), Some(period)) => quota
                    .saturating_mul(1000)
                    .checked_div(period)
                    .map(Limit::Value),
                _ => None,
            };
            if let Some(milli) = milli {
                out.limits.cgroup_cpu_milli.see(milli, origin.clone());
            }
            true
        }
        "rdma.max" => {
            for line in value.lines().take(MAX_ENTRIES) {
                if let Some((device, limits)) = line.split_once(' ') {
                    out.limits
                        .cgroup_rdma
                        .entry(keep(device))
                        .or_default()
                        .see(keep(limits), origin.clone());
                }
            }
            true
        }
        _ => false,
    }
}

fn nvidia(rest: &[&str], value: &str, origin: &Origin, out: &mut Observation) -> bool {
    match rest {
        ["version"] => {
            for line in value.lines() {
                let Some(text) = line.strip_prefix("NVRM version:") else {
                    continue;
                };
                out.gpu
                    .open_kernel_modules
                    .see(text.contains("Open Kernel Module"), origin.clone());
                // The version is the first word of digits and points.
                let version = text
                    .split_whitespace()
                    .find(|w| w.contains('.') && w.chars().all(|c| c.is_ascii_digit() || c == '.'));
                if let Some(version) = version {
                    see(&mut out.gpu.driver_version, version, origin);
                }
            }
            true
        }
        ["params"] => {
            for line in value.lines().take(MAX_ENTRIES) {
                if let Some((key, value)) = key_value(line)
                    && is_name(key)
                    && out.gpu.driver_parameters.len() < MAX_ENTRIES
                {
                    out.gpu
                        .driver_parameters
                        .entry(key.to_owned())
                        .or_default()
                        .see(keep(value), origin.clone());
                }
            }
            true
        }
        ["gpus", address, "information"] => {
            let Some(address) = pci_address(address) else {
                return false;
            };
            let mut gpu = Gpu::default();
            gpu.pci.see(address, origin.clone());
            for line in value.lines() {
                match key_value(line) {
                    Some(("Model", value)) => gpu.name.see(keep(value), origin.clone()),
                    Some(("GPU UUID", value))
                        if value.starts_with("GPU-") && !value.contains('?') =>
                    {
                        gpu.uuid.see(keep(value), origin.clone());
                    }
                    Some(("Device Minor", value)) => {
                        see_number(&mut gpu.minor, value, origin);
                    }
                    _ => {}
                }
            }
            out.gpu.gpus.add(gpu);
            true
        }
        _ => false,
    }
}

fn status(value: &str, origin: &Origin, out: &mut Observation) -> bool {
    for line in value.lines() {
        match key_value(line) {
            Some(("CapEff", value)) => {
                if let Ok(set) = u64::from_str_radix(value, 16) {
                    out.limits
                        .capabilities
                        .see(Capabilities(set), origin.clone());
                }
            }
            // Real, effective, saved, filesystem.
            Some(("Uid", value)) => {
                if let Some(uid) = value.split_whitespace().nth(1).and_then(small) {
                    out.limits.uid.see(uid, origin.clone());
                }
            }
            Some(("Cpus_allowed_list", value)) => {
                see(&mut out.limits.cpus_allowed, value, origin);
            }
            Some(("Mems_allowed_list", value)) => {
                see(&mut out.limits.mems_allowed, value, origin);
            }
            _ => {}
        }
    }
    true
}

fn limits(value: &str, origin: &Origin, out: &mut Observation) -> bool {
    let limit = |text: &str| match text {
        "unlimited" => Some(Limit::Unlimited),
        text => text.parse().ok().map(Limit::Value),
    };
    for line in value.lines() {
        let (rest, soft, hard) = if let Some(rest) = line.strip_prefix("Max locked memory") {
            (
                rest,
                &mut out.limits.memlock_soft,
                &mut out.limits.memlock_hard,
            )
        } else if let Some(rest) = line.strip_prefix("Max open files") {
            (
                rest,
                &mut out.limits.open_files_soft,
                &mut out.limits.open_files_hard,
            )
        } else {
            continue;
        };
        let mut words = rest.split_whitespace();
        if let Some(limit) = words.next().and_then(limit) {
            soft.see(limit, origin.clone());
        }
        if let Some(limit) = words.next().and_then(limit) {
            hard.see(limit, origin.clone());
        }
    }
    true
}
