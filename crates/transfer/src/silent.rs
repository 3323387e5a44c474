//! Why UCX went back to TCP although RDMA ports are there, where it says nothing: as the programs themselves saw it.
//!
//! Each was provoked with NIXL 1.5.1 over soft-RoCE, and UCX warned of none: no device nodes, nodes that cannot be
//! opened, ports that are down, interfaces in the place of devices, a libibverbs that finds no provider.

use std::borrow::Cow;

use model::{CheckResult, Grade, Status, Subject};

use crate::attribute::attribute;
use crate::attribution::Carrier;
use crate::message::HostFacts;
use crate::record::{EndRecord, Measurement};
use crate::side::Side;

/// What explains that a leg went over TCP, for each end. Nothing where no leg did, or where an end has no RDMA port.
pub(crate) fn silent(measured: &Measurement) -> Vec<(Side, CheckResult)> {
    let over_tcp = attribute(measured, None)
        .iter()
        .any(|answer| matches!(answer.carrier, Carrier::Tcp { .. }));
    if !over_tcp {
        return Vec::new();
    }
    Side::ALL
        .into_iter()
        .flat_map(|side| {
            let end = measured.ends.of(side);
            let of_end = end.facts.as_ref().map(|facts| of_end(side, end, facts));
            of_end
                .into_iter()
                .flatten()
                .map(move |result| (side, result))
        })
        .collect()
}

fn of_end(side: Side, end: &EndRecord, facts: &HostFacts) -> Vec<CheckResult> {
    let devices: Vec<&str> = facts
        .ports
        .keys()
        .map(|port| port.split(':').next().unwrap_or(port))
        .collect();
    if devices.is_empty() {
        return Vec::new();
    }
    let names = devices.join(", ");
    let nodes: Vec<&String> = facts
        .devices
        .iter()
        .filter(|path| path.contains("/uverbs"))
        .collect();
    let mut all = Vec::new();
    if nodes.is_empty() {
        all.extend(result(
            "dev-infiniband-missing",
            format!("{names} is in /sys, and there is no uverbs node here"),
        ));
    } else if nodes.iter().all(|node| facts.closed.contains(*node)) {
        all.extend(result(
            "uverbs-permission",
            format!("{names} is in /sys, and none of its uverbs nodes may be opened here"),
        ));
    }
    let active = |state: &str| state.contains("ACTIVE");
    if facts
        .ports
        .values()
        .all(|port| !port.state.is_empty() && !active(&port.state))
    {
        let states: Vec<String> = facts
            .ports
            .iter()
            .map(|(name, port)| format!("{name} {}", port.state))
            .collect();
        all.extend(result(
            "ib-port-down-polling",
            format!("no RDMA port is active: {}", states.join(", ")),
        ));
    }
    if let Some(list) = end.settings.get("UCX_NET_DEVICES")
        && let Some(interface) = only_interfaces(list, facts, &devices)
    {
        all.extend(result("ucx-netdev-eth0", interface));
    }
    let printed = probe::recognise(side.as_str(), &end.output);
    let unloadable = printed.software.verbs_problems.iter().find_map(|problem| {
        let provider = provider(&problem.driver)?;
        let device = devices.iter().find(|device| is_for(provider, device))?;
        Some(format!(
            "libibverbs could not load {}, which {device} needs",
            problem.driver
        ))
    });
    if let Some(detail) = unloadable {
        all.extend(result("verbs-provider-not-loadable", detail));
    }
    all
}

/// A list that names no RDMA device, and an interface that belongs to one.
fn only_interfaces(list: &str, facts: &HostFacts, devices: &[&str]) -> Option<String> {
    let named: Vec<&str> = list.split(',').map(str::trim).collect();
    if list.starts_with('^')
        || named.iter().any(|name| {
            let device = name.split(':').next().unwrap_or(name);
            devices.contains(&device) || device == "all"
        })
    {
        return None;
    }
    let of_port = facts
        .ports
        .iter()
        .find(|(_, port)| named.contains(&port.netdev.as_str()));
    Some(match of_port {
        Some((name, port)) => format!(
            "UCX_NET_DEVICES={list} names interfaces only, and {} is the one of {name}: that takes {name} out",
            port.netdev
        ),
        None => format!(
            "UCX_NET_DEVICES={list} names interfaces only, which takes {} out",
            devices.join(", ")
        ),
    })
}

/// `rxe` of `librxe-rdmav34.so`.
fn provider(library: &str) -> Option<&str> {
    let file = library.rsplit('/').next().unwrap_or(library);
    file.strip_prefix("lib")?
        .split(['-', '.'])
        .next()
        .filter(|name| !name.is_empty())
}

/// Devices are named after their kernel drivers, unless udev names them by place.
fn is_for(provider: &str, device: &str) -> bool {
    device.strip_prefix(provider).is_some_and(|rest| {
        rest.starts_with('_') || (!rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    })
}

fn result(cause: &str, detail: String) -> Option<CheckResult> {
    let (check, cause) = checks::cause(cause)?;
    Some(CheckResult {
        name: Cow::Borrowed(check.name),
        status: Status::Fail,
        detail,
        cause: Some(cause.id),
        fix: Some(cause.fix.to_owned()),
        reason: None,
        note: None,
        grade: Grade::Observed,
        subject: Subject::default(),
        sources: Vec::new(),
        collective: false,
        required: false,
        deployment: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::PortFacts;

    fn host(state: &str, devices: &[&str], closed: &[&str]) -> HostFacts {
        let all = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        HostFacts {
            ports: [(
                "rxe0:1".to_owned(),
                PortFacts {
                    state: state.to_owned(),
                    netdev: "rdma0".to_owned(),
                    ..PortFacts::default()
                },
            )]
            .into(),
            devices: all(devices),
            closed: all(closed),
            ..HostFacts::default()
        }
    }

    const NODE: &str = "/dev/infiniband/uverbs0";

    fn causes(facts: &HostFacts, settings: &[(&str, &str)], output: &str) -> Vec<&'static str> {
        let end = EndRecord {
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            output: output.to_owned(),
            ..EndRecord::default()
        };
        of_end(Side::Decode, &end, facts)
            .iter()
            .filter_map(|r| r.cause)
            .collect()
    }

    #[test]
    fn each_silent_way_back_has_its_cause() {
        let good = host("4: ACTIVE", &[NODE], &[]);
        assert_eq!(causes(&good, &[], ""), Vec::<&str>::new());
        assert_eq!(
            causes(
                &host("4: ACTIVE", &["/dev/infiniband/rdma_cm"], &[]),
                &[],
                ""
            ),
            ["dev-infiniband-missing"]
        );
        assert_eq!(
            causes(&host("4: ACTIVE", &[NODE], &[NODE]), &[], ""),
            ["uverbs-permission"]
        );
        assert_eq!(
            causes(&host("1: DOWN", &[NODE], &[]), &[], ""),
            ["ib-port-down-polling"]
        );
        let net = |value| causes(&good, &[("UCX_NET_DEVICES", value)], "");
        assert_eq!(net("rdma0"), ["ucx-netdev-eth0"]);
        for harmless in ["rxe0:1", "rxe0", "rdma0,rxe0:1", "all", "^rdma0"] {
            assert_eq!(net(harmless), Vec::<&str>::new(), "{harmless}");
        }
        let warning = |driver: &str| {
            format!(
                "libibverbs: Warning: couldn't load driver '{driver}': {driver}: cannot open shared object file: No such file or directory\n"
            )
        };
        assert_eq!(
            causes(&good, &[], &warning("librxe-rdmav34.so")),
            ["verbs-provider-not-loadable"]
        );
        // A provider of hardware that is not here is missed by nobody.
        assert_eq!(
            causes(&good, &[], &warning("libmlx5-rdmav34.so")),
            Vec::<&str>::new()
        );
        // Without a port there is nothing to explain here.
        assert_eq!(
            causes(&HostFacts::default(), &[], &warning("librxe-rdmav34.so")),
            Vec::<&str>::new()
        );
    }
}
