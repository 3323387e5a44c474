//! RoCE ports have an address that peers can reach.
//!
//! RoCE takes its addresses (GIDs) from the network interface of the port, in the network namespace of the process. A
//! pod that was given the device without its interface has no usable GID. Tables may have gaps and may differ from pod
//! to pod: a GID is chosen by version and address, never by position. On InfiniBand a link-local GID is normal.

use std::collections::{BTreeMap, BTreeSet};

use model::Reason;
use model::observation::rdma::{Gid, GidType};
use model::observation::{Origin, Tool};

use super::ports::{Fabric, PortRef, list, ports};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/rdma-gids";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RoCE ports have a routable GID",
    source: include_str!("rdma_gids.rs"),
    causes: &[NO_NETDEV, LINK_LOCAL, PINNED],
    notes: &[SEVERAL],
    run: Run::Place(run),
};

const NO_NETDEV: Cause = Cause {
    id: "roce-no-netdev-in-pod",
    what: "a RoCE port has no network interface in this network namespace, or no GID at all",
    why: "RoCE takes its GIDs from the interface: without one no queue pair can be set up (ibv_modify_qp: No such device)",
    fix: "attach the interface to the pod (Multus with SR-IOV or macvlan), or use hostNetwork",
    quiet_if: "the port speaks InfiniBand or is EFA, or the tool tells interfaces of no port",
    source: "Linux drivers/infiniband/core/roce_gid_mgmt.c; Mellanox/k8s-rdma-shared-dev-plugin#101",
};

const LINK_LOCAL: Cause = Cause {
    id: "roce-only-link-local-gid",
    what: "all GIDs of a RoCE port are link-local (fe80::)",
    why: "its interface has no IP address: nothing behind a router can be reached, and often nothing at all",
    fix: "give the interface an IP address in the network of its rail",
    quiet_if: "the port speaks InfiniBand, where fe80:: is normal, only the first GID is shown, or ports that have a routable GID are the ones for KV",
    source: "openucx/ucx#6000; NVIDIA/nccl#769",
};

const PINNED: Cause = Cause {
    id: "gid-index-unusable",
    what: "a setting pins a GID index that is empty, link-local or RoCE version 1 here",
    why: "queue pairs then fail, or use an address that no router passes; the index differs from pod to pod",
    fix: "remove the pin: UCX chooses a routable RoCE version 2 GID by itself",
    quiet_if: "the entry at that index is RoCE version 2 with a routable address, or the port speaks InfiniBand",
    source: "ucx src/uct/ib/base/ib_device.c (uct_ib_device_select_gid); k8snetworkplumbingwg/multus-cni#1100",
};

const SEVERAL: Cause = Cause {
    id: "roce-gid-two-ips",
    what: "a RoCE port has several routable addresses",
    why: "several routable addresses: UCX may choose one of another network than its peer does",
    fix: "one address per port in the network of its rail; else pin the index on both sides, or limit NCCL with NCCL_IB_ADDR_RANGE",
    quiet_if: "always a note",
    source: "ucx src/uct/ib/base/ib_device.c (uct_ib_device_select_gid)",
};

/// Variables that pin an index; NCCL's is about collectives.
const PINS: &[(&str, bool)] = &[("UCX_IB_GID_INDEX", false), ("NCCL_IB_GID_INDEX", true)];

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let ports = ports(view);
    none_at_all(view, &ports, findings);
    let roce: Vec<&PortRef<'_>> = ports.iter().filter(|p| p.fabric == Fabric::Roce).collect();
    let mut told = without_netdev(&ports, findings);
    told |= addresses(&roce, &ports, findings);
    told |= pins(view, &roce, findings);
    if !told && roce.iter().any(|p| p.is_active()) {
        let names: Vec<String> = roce.iter().map(|p| p.label()).collect();
        let mut finding = Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "{}: the GIDs are not shown; save the output of show_gids too",
                list(&names)
            ),
        );
        for port in &roce {
            if first_is_empty(port) {
                finding = finding.note(format!(
                    "{} has no GID at index 0, as a container without the interface sees it",
                    port.label()
                ));
            }
        }
        findings.push(finding);
    }
}

/// ibstat takes the port's GUID from the first GID.
fn first_is_empty(port: &PortRef<'_>) -> bool {
    port.port
        .port_guid
        .value()
        .is_some_and(|guid| guid.bytes().all(|b| b == b'0'))
}

/// A whole table without entries.
fn none_at_all(view: &NodeView<'_>, ports: &[PortRef<'_>], findings: &mut Findings) {
    let tables = &view.seen.rdma.gid_tables;
    let Some(table) = tables.iter().find(|t| t.entries == 0 && !t.cut) else {
        return;
    };
    if ports.iter().any(|p| !p.port.gids.is_empty())
        || (!ports.is_empty() && ports.iter().all(|p| p.fabric == Fabric::Efa))
    {
        return;
    }
    let roce = ports.iter().any(|p| p.fabric == Fabric::Roce);
    let finding = if roce || view.is_kv_worker() {
        Finding::fail(NAME, &NO_NETDEV, "no port has a GID here")
    } else {
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            "no port has a GID here: no RoCE or InfiniBand port is usable; whether a KV worker needs one cannot be seen (--role tells)",
        )
        .required()
    };
    findings.push(finding.read_at(std::slice::from_ref(&table.origin), "no GID"));
}

/// Active ports that a source shows without interface, although it tells interfaces.
fn without_netdev(ports: &[PortRef<'_>], findings: &mut Findings) -> bool {
    let lacks = |p: &&PortRef<'_>| {
        matches!(p.port.netdev.value(), Some(None))
            && p.is_active()
            && (p.fabric == Fabric::Roce || (p.fabric == Fabric::Unknown && no_lid(p)))
            && !p.device.netdevs.value().is_some_and(|n| !n.is_empty())
            && routable(p).is_none()
    };
    let bare: Vec<&PortRef<'_>> = ports.iter().filter(lacks).collect();
    let Some(first) = bare.first() else {
        return false;
    };
    let with_netdev = ports
        .iter()
        .any(|p| p.is_active() && !lacks(&p) && p.fabric != Fabric::Software);
    let needed = bare.iter().any(|p| p.selected) || !with_netdev;
    let names: Vec<String> = bare.iter().map(|p| p.label()).collect();
    let detail = format!(
        "{} active, and without netdev in this network namespace: RoCE has no address here",
        if bare.len() == 1 {
            format!("{} is", list(&names))
        } else {
            format!("{} are", list(&names))
        }
    );
    let finding = if needed {
        Finding::fail(NAME, &NO_NETDEV, detail)
    } else {
        Finding::warn(NAME, &NO_NETDEV, detail)
    };
    findings.push(
        finding
            .device(first.label())
            .seen(&first.port.netdev, "no netdev"),
    );
    true
}

/// `rdma link` prints LIDs for InfiniBand only.
fn no_lid(port: &PortRef<'_>) -> bool {
    port.port.lid.value().is_none_or(|lid| *lid == 0)
}

/// GIDs that a whole table tells; ibstatus and ibstat print the first one only.
fn table<'p>(port: &PortRef<'p>) -> BTreeMap<u32, &'p Gid> {
    port.port
        .gids
        .iter()
        .filter(|(_, gid)| {
            gid.address
                .readings()
                .flat_map(|r| &r.sources)
                .any(|o| !matches!(o.from.tool, Tool::Ibstatus | Tool::Ibstat))
        })
        .map(|(index, gid)| (*index, gid))
        .collect()
}

fn is_v1(gid: &Gid) -> bool {
    matches!(
        gid.kind.value(),
        Some(GidType::RoceV1 | GidType::InfiniBandOrRoceV1)
    )
}

/// The first GID that a router passes, preferring IPv4.
fn routable<'p>(port: &PortRef<'p>) -> Option<(u32, &'p Gid)> {
    let table = table(port);
    let good = |gid: &Gid| gid.is_link_local() == Some(false) && !is_v1(gid);
    table
        .iter()
        .find(|(_, gid)| good(gid) && gid.ipv4().is_some())
        .or_else(|| table.iter().find(|(_, gid)| good(gid)))
        .map(|(index, gid)| (*index, *gid))
}

fn address(gid: &Gid) -> String {
    match (gid.ipv4(), gid.address.value()) {
        (Some(ip), _) => ip.to_string(),
        (None, Some(ip)) => ip.to_string(),
        (None, None) => String::new(),
    }
}

fn places(port: &PortRef<'_>) -> Vec<Origin> {
    table(port)
        .values()
        .filter_map(|gid| gid.address.sources().first().cloned())
        .take(1)
        .collect()
}

/// What the tables of RoCE ports hold.
fn addresses(roce: &[&PortRef<'_>], ports: &[PortRef<'_>], findings: &mut Findings) -> bool {
    let shown: Vec<&&PortRef<'_>> = roce.iter().filter(|p| !table(p).is_empty()).collect();
    let any_routable = shown.iter().any(|p| routable(p).is_some());
    let any_infiniband = ports
        .iter()
        .any(|p| p.fabric == Fabric::InfiniBand && p.is_active());
    let mut quiet = Vec::new();
    for port in &shown {
        let local = table(port)
            .values()
            .all(|gid| gid.is_link_local() == Some(true));
        if !local {
            continue;
        }
        let for_kv = port.selected || (port.compute && !any_infiniband);
        if (any_infiniband || any_routable) && !for_kv {
            quiet.push(port.label());
            continue;
        }
        let detail = format!("{} has only link-local GIDs (fe80::)", port.label());
        let finding = if port.selected {
            Finding::fail(NAME, &LINK_LOCAL, detail)
        } else {
            Finding::warn(NAME, &LINK_LOCAL, detail)
        };
        findings.push(
            finding
                .device(port.label())
                .read_at(&places(port), "link-local"),
        );
    }
    let mut note = (!quiet.is_empty())
        .then(|| format!("only link-local GIDs, and not for KV: {}", list(&quiet)));
    for port in &shown {
        let Some((index, gid)) = routable(port) else {
            continue;
        };
        let version = match gid.kind.value() {
            Some(GidType::RoceV2) => "RoCE v2 GID",
            _ => "GID (RoCE version not shown)",
        };
        let mut finding = Finding::ok(
            NAME,
            format!(
                "{} has a routable {version} at index {index}: {}",
                port.label(),
                address(gid)
            ),
        )
        .device(port.label())
        .read_at(&places(port), "GID");
        let by_place = indices_by_place(port);
        if by_place.len() > 1 {
            finding = finding.note(format!(
                "the places that are shown have it at different indices ({}): a pinned index is wrong in one of them",
                by_place
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ));
        }
        if more_addresses(port) {
            finding = finding.told(&SEVERAL);
        }
        if let Some(note) = note.take() {
            finding = finding.note(note);
        }
        findings.push(finding);
    }
    !shown.is_empty()
}

/// Indices of the first routable GID in each pod or host that the text names.
fn indices_by_place(port: &PortRef<'_>) -> BTreeSet<u32> {
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for (index, gid) in table(port) {
        if gid.is_link_local() != Some(false) || is_v1(gid) {
            continue;
        }
        let places = gid
            .address
            .readings()
            .flat_map(|r| &r.sources)
            .filter_map(|o| o.from.place.as_deref());
        for place in places {
            first.entry(place).or_insert(index);
        }
    }
    first.into_values().collect()
}

/// Several addresses of one moment and place, of one version.
fn more_addresses(port: &PortRef<'_>) -> bool {
    let mut places: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
    for gid in table(port).values() {
        if gid.is_link_local() != Some(false) || is_v1(gid) {
            continue;
        }
        for reading in gid.address.readings() {
            let place = reading
                .sources
                .first()
                .and_then(|o| o.from.place.as_deref());
            let all = places.entry(place).or_default();
            let text = reading.value.to_string();
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    places.values().any(|all| all.len() > 1)
}

/// Pinned indices against the tables.
fn pins(view: &NodeView<'_>, roce: &[&PortRef<'_>], findings: &mut Findings) -> bool {
    let mut told = false;
    for (name, collective) in PINS {
        let Some(fact) = view.setting(name) else {
            continue;
        };
        let Some(index) = fact.value().and_then(|v| v.parse::<u32>().ok()) else {
            // `auto` and -1 pin nothing.
            continue;
        };
        for port in roce
            .iter()
            .filter(|p| !table(p).is_empty() && (p.selected || p.compute || roce.len() == 1))
        {
            told = true;
            let entry = table(port).get(&index).copied();
            let (finding, origins) = match entry {
                None => (
                    Finding::fail(
                        NAME,
                        &PINNED,
                        format!("{name}={index} pins an empty GID entry of {}", port.label()),
                    ),
                    places(port),
                ),
                Some(gid) => {
                    let what = if gid.is_link_local() == Some(true) {
                        Some("link-local")
                    } else if is_v1(gid) {
                        Some("RoCE version 1")
                    } else {
                        None
                    };
                    let finding = match what {
                        Some(what) => Finding::fail(
                            NAME,
                            &PINNED,
                            format!(
                                "{name}={index} pins a {what} GID of {}: {}",
                                port.label(),
                                address(gid)
                            ),
                        ),
                        None => Finding::ok(
                            NAME,
                            format!(
                                "{name}={index} is a routable GID of {}: {}",
                                port.label(),
                                address(gid)
                            ),
                        ),
                    };
                    (finding, gid.address.sources().to_vec())
                }
            };
            let finding = finding
                .device(port.label())
                .seen(fact, "setting")
                .read_at(&origins, "GID");
            findings.push(if *collective {
                finding.collective()
            } else {
                finding
            });
        }
    }
    told
}
