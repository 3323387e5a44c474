//! Named values of the tools of RDMA.

use model::observation::Tool;
use model::observation::rdma::{Device, GidType, LinkLayer, PhysState, Port, PortState};
use serde_json::{Value, json};

use super::Read;

/// Ports in the order of the output.
fn ports(read: &Read) -> Vec<(&str, &Device, u32, &Port)> {
    let rdma = &read.seen.rdma;
    let mut names: Vec<&str> = Vec::new();
    for listing in &rdma.listings {
        names.extend(listing.devices.iter().map(String::as_str));
    }
    for name in rdma.devices.keys() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
        .into_iter()
        .flat_map(|name| {
            let device = &*rdma.devices[name];
            device
                .ports
                .iter()
                .map(move |(n, port)| (name, device, *n, &**port))
        })
        .collect()
}

fn state(tool: &str, state: &PortState) -> String {
    let (title, upper) = match state {
        PortState::Down => ("Down", "DOWN"),
        PortState::Init => ("Initializing", "INIT"),
        PortState::Armed => ("Armed", "ARMED"),
        PortState::Active => ("Active", "ACTIVE"),
        other => return format!("{other:?}"),
    };
    match tool {
        "ibstat" => title.to_owned(),
        "ibv_devinfo" => format!("PORT_{upper}"),
        _ => upper.to_owned(),
    }
}

fn phys(tool: &str, phys: &PhysState) -> String {
    let (title, upper) = match phys {
        PhysState::Polling => ("Polling", "POLLING"),
        PhysState::Disabled => ("Disabled", "DISABLED"),
        PhysState::LinkUp => ("LinkUp", "LINK_UP"),
        other => return format!("{other:?}"),
    };
    match tool {
        "ibstat" | "ibstatus" => title.to_owned(),
        _ => upper.to_owned(),
    }
}

fn layer(layer: &LinkLayer) -> String {
    format!("{layer:?}")
}

fn opt<T>(value: Option<&T>, show: impl Fn(&T) -> Value) -> Value {
    value.map_or(Value::Null, show)
}

fn column(tool: &str, name: &str, (device, _, number, port): (&str, &Device, u32, &Port)) -> Value {
    match name {
        "dev" => json!(device),
        "port" => json!(number),
        "state" => opt(port.state.value(), |s| json!(state(tool, s))),
        "phys" => opt(port.phys.value(), |s| json!(phys(tool, s))),
        "rate" => opt(port.rate_mbps.value(), |r| json!(*r as f64 / 1000.0)),
        "lid" => opt(port.lid.value(), |v| json!(v)),
        "sm_lid" => opt(port.sm_lid.value(), |v| json!(v)),
        "link_layer" => opt(port.link_layer.value(), |l| json!(layer(l))),
        "active_mtu" => opt(port.active_mtu.value(), |v| json!(v)),
        "netdev" => opt(port.netdev.value(), |v| json!(v)),
        other => panic!("column {other}"),
    }
}

fn mask(port: &Port) -> Value {
    opt(port.capability_mask.value(), |m| {
        json!(format!("0x{m:08x}"))
    })
}

fn version(kind: Option<&GidType>) -> Value {
    match kind {
        Some(GidType::RoceV1 | GidType::InfiniBandOrRoceV1) => json!("v1"),
        Some(GidType::RoceV2) => json!("v2"),
        _ => Value::Null,
    }
}

pub(crate) fn project(
    tool: &str,
    key: &str,
    form: &Value,
    facts: &Value,
    read: &Read,
) -> Option<Value> {
    let rdma = &read.seen.rdma;
    let ports = ports(read);
    let first = ports.first().copied();
    let device = first
        .map(|(_, d, _, _)| d)
        .or_else(|| rdma.devices.values().next().map(|device| &**device));
    let port = first.map(|(_, _, _, p)| p);
    let text = |fact: Option<&String>| fact.map(|t| json!(t));
    Some(match key {
        "bytes" => json!(read.bytes),
        "ports" => {
            let columns: Vec<&str> = facts
                .get("cols")
                .map(|c| {
                    c.as_array()
                        .unwrap()
                        .iter()
                        .map(|c| c.as_str().unwrap())
                        .collect()
                })
                .unwrap_or_default();
            let rows = form.as_array()?;
            json!(
                ports
                    .iter()
                    .enumerate()
                    .map(|(at, port)| {
                        // Short rows leave out columns that have no value.
                        let wanted = rows.get(at).and_then(Value::as_array).map_or(0, Vec::len);
                        let mut row: Vec<Value> =
                            columns.iter().map(|c| column(tool, c, *port)).collect();
                        while row.len() > wanted && row.last() == Some(&Value::Null) {
                            row.pop();
                        }
                        row
                    })
                    .collect::<Vec<_>>()
            )
        }
        "ca" => json!(first?.0),
        "ca_type" | "type" => json!(device?.hca_type.value()?),
        "fw" if form.is_array() => {
            let mut all: Vec<&String> = ports.iter().filter_map(|p| p.1.firmware.value()).collect();
            all.dedup();
            json!(all)
        }
        "fw" => json!(device?.firmware.value()?),
        "cut" | "cut_before_first" if key == "cut" => json!(read.cut()),
        "cut_before_first" => json!(read.cut_says("before the first")),
        // A rate of a port that is down is a placeholder: what judges it needs state and rate, both read.
        "rate_is_placeholder" => json!(ports.iter().all(|(_, _, _, p)| {
            p.state.value() == Some(&PortState::Down)
                && matches!(p.rate_mbps.value(), Some(10_000 | 40_000))
        })),
        "pod_prompt" => json!(read.place()?),
        "port_guid" => json!(format!("0x{}", port?.port_guid.value()?)),
        "cap_mask" => mask(port?),
        "error" => json!(read.error()?),
        "width_speed" => json!(format!(
            "{}X {}",
            port?.lanes.value()?,
            port?.lane_speed.value()?
        )),
        "dev" => json!(
            first
                .map(|f| f.0)
                .or_else(|| rdma.devices.keys().next().map(String::as_str))
                .map(str::to_owned)
                .or_else(|| read
                    .seen
                    .software
                    .verbs_problems
                    .first()?
                    .device
                    .as_ref()
                    .map(|d| d.rsplit('/').next().unwrap().to_owned()))?
        ),
        "port" => json!(first?.2),
        "state" => opt(port?.state.value(), |s| json!(state(tool, s))),
        "phys" => opt(port?.phys.value(), |s| json!(phys(tool, s))),
        "link_layer" => json!(layer(port?.link_layer.value()?)),
        "active_mtu" => json!(port?.active_mtu.value()?),
        "max_mtu" => json!(port?.max_mtu.value()?),
        "width" => json!(format!("{}X", port?.lanes.value()?)),
        "speed_gbps" => json!(*port?.lane_mbps.value()? as f64 / 1000.0),
        "lid" => json!(port?.lid.value()?),
        "sm_lid" => json!(port?.sm_lid.value()?),
        "vendor_part_id" => json!(device?.vendor_part_id.value()?),
        "vendor_id" => json!(format!("{:#06x}", device?.vendor_id.value()?)),
        "transport" => text(device?.transport.value())?,
        "hw_ver" => text(device?.hardware_version.value())?,
        "node_guid" => {
            let guid = device?.node_guid.value()?;
            json!(format!(
                "{}:{}:{}:{}",
                &guid[..4],
                &guid[4..8],
                &guid[8..12],
                &guid[12..]
            ))
        }
        "gids" if tool == "ibv_devinfo" && form.is_number() => json!(port?.gids.len()),
        "gids" if tool == "ibv_devinfo" => json!(
            port?
                .gids
                .iter()
                .map(|(index, gid)| {
                    let address = gid.ipv4().map_or_else(
                        || gid.address.value().unwrap().to_string()[..4].to_owned(),
                        |a| a.to_string(),
                    );
                    json!([index, version(gid.kind.value()), address])
                })
                .collect::<Vec<_>>()
        ),
        "gid_ipv4" => json!(
            port?
                .gids
                .iter()
                .filter_map(|(index, gid)| Some((index.to_string(), gid.ipv4()?.to_string())))
                .collect::<std::collections::BTreeMap<_, _>>()
        ),
        "routable_v2_index" | "best_index" => json!(
            port?
                .gids
                .iter()
                .find(|(_, g)| g.kind.value() == Some(&GidType::RoceV2) && g.ipv4().is_some())?
                .0
        ),
        "link_local" => json!(
            port?
                .gids
                .iter()
                .filter(|(_, g)| g.is_link_local() == Some(true))
                .map(|(index, _)| index)
                .collect::<Vec<_>>()
        ),
        "failed_to_open" => json!(rdma.open_failures.len()),
        "opened" => json!(
            rdma.devices
                .iter()
                .filter(|(_, d)| d.opens.value() == Some(&true))
                .map(|(name, _)| name)
                .collect::<Vec<_>>()
        ),
        "driver" => json!(read.seen.software.verbs_problems.first()?.driver),
        "kernel_abi" => json!(read.seen.software.verbs_problems.first()?.kernel_abi?),
        "supports" => json!(read.seen.software.verbs_problems.first()?.supported_abi?),
        "warnings" => json!(
            read.seen
                .log
                .of("verbs-driver-abi")
                .map(|e| e.count)
                .sum::<u32>()
        ),
        "devices" if tool == "ibv_devices" => {
            let list = rdma.listings.first()?;
            json!(
                list.devices
                    .iter()
                    .map(|name| json!({"name": name, "node_guid": rdma.devices[name].node_guid.value()}))
                    .collect::<Vec<_>>()
            )
        }
        "count" => json!(rdma.listings.first()?.devices.len()),
        // `ib…` are names of InfiniBand interfaces, `en…` of Ethernet ones.
        "ib_by_name" | "eth_by_name" => {
            let prefix = if key == "ib_by_name" { "ib" } else { "en" };
            let mut names: Vec<&str> = ports
                .iter()
                .filter(|(_, _, _, p)| {
                    p.netdev
                        .value()
                        .and_then(Option::as_ref)
                        .is_some_and(|n| n.starts_with(prefix))
                })
                .map(|p| p.0)
                .collect();
            names.sort_by_key(|n| n.rsplit('_').next().unwrap().parse::<u32>().unwrap());
            json!(names)
        }
        "up" => json!(
            ports
                .iter()
                .filter(|(_, _, _, p)| p.netdev_up.value() == Some(&true))
                .map(|p| p.0)
                .collect::<Vec<_>>()
        ),
        "netdev" => json!(
            form.as_object()?
                .keys()
                .map(|name| (name, rdma.devices[name].ports[&1].netdev.value().unwrap()))
                .collect::<std::collections::BTreeMap<_, _>>()
        ),
        "netdev_shown" => json!(ports.iter().any(|(_, _, _, p)| p.netdev.is_seen())),
        "reads" => {
            let port = port?;
            let mut states: Vec<(u32, String)> = Vec::new();
            for reading in port.state.readings() {
                for source in &reading.sources {
                    states.push((source.line?, state(tool, &reading.value)));
                }
            }
            json!(
                states
                    .iter()
                    .enumerate()
                    .map(|(at, (line, state))| {
                        let phys = port
                            .phys
                            .readings()
                            .find(|r| r.sources.iter().any(|s| s.line == Some(*line)));
                        let mut read = json!({"dev": first.unwrap().0, "port": first.unwrap().2,
                            "state": state, "phys": phys.map(|r| self::phys(tool, &r.value))});
                        if at == 0 {
                            read["lid"] = json!(port.lid.value());
                            read["sm_lid"] = json!(port.sm_lid.value());
                        }
                        read
                    })
                    .collect::<Vec<_>>()
            )
        }
        // rxe and siw are what the kernel calls its software devices.
        "software" | "hardware" => {
            let soft = key == "software";
            json!(
                ports
                    .iter()
                    .map(|p| p.0)
                    .filter(|n| (n.starts_with("rxe") || n.starts_with("siw")) == soft)
                    .collect::<Vec<_>>()
            )
        }
        "ifindexes" => json!(
            ports
                .iter()
                .filter_map(|p| p.1.index.value())
                .collect::<Vec<_>>()
        ),
        "gids" => gids(facts, read),
        "tables" => json!(rdma.gid_tables.len()),
        "no_n_gids_found_line" => json!(!read.cut()),
        "n_gids_found" => json!(rdma.gid_tables.first()?.entries),
        "devices" | "sysfs" => json!(rdma.listings.first()?.devices),
        "uverbs" | "umad" | "ucm" | "issm" => {
            let names: Vec<&String> = rdma
                .nodes
                .iter()
                .filter(|(n, d)| n.starts_with(key) && d.exists.value() == Some(&true))
                .map(|n| n.0)
                .collect();
            if form.get(0)?.is_array() {
                json!(
                    names
                        .iter()
                        .map(|n| {
                            let node = &rdma.nodes[*n];
                            let (major, minor) = node.numbers.value().unwrap();
                            json!([n, node.mode.value(), major, minor])
                        })
                        .collect::<Vec<_>>()
                )
            } else {
                json!(names)
            }
        }
        "issm_mode" => json!(rdma.nodes.get("issm0")?.mode.value()?),
        "rdma_cm" => json!(rdma.nodes.get("rdma_cm")?.exists.value() == Some(&true)),
        _ => return None,
    })
}

/// Rows of all tables, in order of lines.
fn gids(facts: &Value, read: &Read) -> Value {
    let columns: Vec<&str> = facts
        .get("cols")
        .map(|c| {
            c.as_array()
                .unwrap()
                .iter()
                .map(|c| c.as_str().unwrap())
                .collect()
        })
        .unwrap_or_default();
    let mut rows = Vec::new();
    for (name, device) in &read.seen.rdma.devices {
        for (number, port) in &device.ports {
            for (index, gid) in &port.gids {
                let source = &gid.address.sources()[0];
                assert_eq!(source.from.tool, Tool::ShowGids);
                let row: Vec<Value> = columns
                    .iter()
                    .map(|column| match *column {
                        "pod" => json!(
                            source
                                .from
                                .place
                                .as_deref()
                                .unwrap()
                                .trim_start_matches("pod ")
                        ),
                        "dev" => json!(name),
                        "port" => json!(number),
                        "index" => json!(index),
                        "ipv4" => json!(gid.ipv4().map(|a| a.to_string()).unwrap_or_default()),
                        "gid" => {
                            let parts = gid.address.value().unwrap().segments();
                            json!(parts.map(|p| format!("{p:04x}")).join(":"))
                        }
                        "ver" => version(gid.kind.value()),
                        "netdev" => json!(gid.netdev.value().unwrap()),
                        other => panic!("column {other}"),
                    })
                    .collect();
                rows.push((source.line, row));
            }
        }
    }
    rows.sort_by_key(|(line, _)| *line);
    // A table without a column for the port leaves it out.
    json!(rows.into_iter().map(|(_, row)| row).collect::<Vec<_>>())
}
