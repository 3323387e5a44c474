//! What the collecting script saw on real kernel RDMA devices, beside what the system's own tools print there.
//!
//! `.ci/vm` boots a machine that puts its devices into every state, saves both, and runs this over them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr
)]

use std::fs;
use std::path::{Path, PathBuf};

use model::observation::limits::{Capabilities, Limit};
use model::observation::modules::Presence;
use model::observation::rdma::{Function, GidType, LinkLayer, NetnsMode, PhysState, PortState};
use model::observation::{Fact, Observation};
use probe::stream::Stream;

struct State {
    name: String,
    place: PathBuf,
    seen: Observation,
}

/// Where `.ci/vm` saved everything.
fn lab() -> Option<PathBuf> {
    let place = std::env::var_os("CHECK_INTERCONNECT_LAB").map(PathBuf::from);
    if place.is_none() {
        eprintln!("skipped: CHECK_INTERCONNECT_LAB names no directory; .ci/vm makes one");
    }
    place
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn state(lab: &Path, name: &str) -> State {
    let place = lab.join(name);
    let stream = Stream::parse(&fs::read(place.join("stream.busybox")).unwrap());
    assert_eq!(stream.gap(), None, "{name}");
    assert_eq!(stream.foreign_lines, 0, "{name}");
    State {
        name: name.to_owned(),
        seen: probe::observe::observation(&stream),
        place,
    }
}

impl State {
    fn tool(&self, tool: &str) -> String {
        read(&self.place.join(tool))
    }

    fn devices(&self) -> Vec<&str> {
        self.seen.rdma.devices.keys().map(String::as_str).collect()
    }

    /// Holds every device and port against `ibstat`.
    fn agrees_with_ibstat(&self) {
        let text = self.tool("ibstat");
        let mut device = None;
        let mut port = None;
        let mut compared = Vec::new();
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("CA '") {
                let name = name.trim_end_matches('\'');
                compared.push(name.to_owned());
                device = Some(&self.seen.rdma.devices[name]);
                continue;
            }
            let (Some(device), Some((key, value))) = (device, line.split_once(':')) else {
                continue;
            };
            if let Some(number) = key.strip_prefix("Port ").filter(|_| value.is_empty()) {
                port = Some(&device.ports[&number.parse().unwrap()]);
                continue;
            }
            let value = value.trim();
            let name = &self.name;
            let hexadecimal =
                |text: &str| u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
            match (key, port) {
                ("Number of ports", _) => assert_eq!(
                    device.port_count.value().unwrap().to_string(),
                    value,
                    "{name}"
                ),
                ("Firmware version", _) => {
                    // ibv_devinfo has another word for none.
                    let mut readings = device.firmware.readings();
                    assert!(readings.any(|reading| reading.value == value), "{name}");
                }
                ("CA type", _) if !value.is_empty() => {
                    assert_eq!(device.hca_type.value().unwrap(), value, "{name}");
                }
                ("Node GUID", _) => assert_eq!(
                    format!("0x{}", device.node_guid.value().unwrap()),
                    value,
                    "{name}"
                ),
                ("State", Some(port)) => {
                    let is = match value {
                        "Active" => PortState::Active,
                        "Down" => PortState::Down,
                        other => panic!("{other}"),
                    };
                    assert_eq!(port.state.value(), Some(&is), "{name}");
                }
                ("Physical state", Some(port)) => {
                    let is = match value {
                        "LinkUp" => PhysState::LinkUp,
                        "Disabled" => PhysState::Disabled,
                        other => panic!("{other}"),
                    };
                    assert_eq!(port.phys.value(), Some(&is), "{name}");
                }
                ("Rate", Some(port)) => {
                    let mbps = value.split(" (").next().unwrap().parse::<f64>().unwrap() * 1000.0;
                    let seen = *port.rate_mbps.value().unwrap();
                    assert!(
                        (mbps - f64::from(u32::try_from(seen).unwrap())).abs() < 1.0,
                        "{name}: {seen}"
                    );
                }
                ("Base lid", Some(port)) => {
                    assert_eq!(port.lid.value().unwrap().to_string(), value, "{name}");
                }
                ("SM lid", Some(port)) => {
                    assert_eq!(port.sm_lid.value().unwrap().to_string(), value, "{name}");
                }
                ("Capability mask", Some(port)) => {
                    assert_eq!(
                        port.capability_mask.value(),
                        Some(&hexadecimal(value)),
                        "{name}"
                    );
                }
                ("Link layer", Some(port)) => {
                    let is = match value {
                        "Ethernet" => LinkLayer::Ethernet,
                        "InfiniBand" => LinkLayer::InfiniBand,
                        other => panic!("{other}"),
                    };
                    assert_eq!(port.link_layer.value(), Some(&is), "{name}");
                }
                _ => {}
            }
        }
        assert_eq!(compared, self.devices(), "{}", self.name);
    }

    /// Holds devices and states against `rdma link`.
    fn agrees_with_rdma_link(&self) {
        let mut compared = Vec::new();
        for line in self.tool("rdma-link").lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            let Some((name, number)) = words.get(1).and_then(|w| w.split_once('/')) else {
                continue;
            };
            compared.push(name.to_owned());
            let port = &self.seen.rdma.devices[name].ports[&number.parse().unwrap()];
            let after = |key: &str| {
                words
                    .iter()
                    .position(|w| *w == key)
                    .and_then(|at| words.get(at + 1))
                    .copied()
            };
            assert_eq!(
                after("state") == Some("ACTIVE"),
                port.state.value() == Some(&PortState::Active),
                "{}",
                self.name
            );
            if let Some(netdev) = after("netdev") {
                assert!(
                    port.gids
                        .values()
                        .any(|gid| gid.netdev.value() == Some(&Some(netdev.to_owned()))),
                    "{}",
                    self.name
                );
                assert!(
                    self.seen.interfaces.interfaces.contains_key(netdev),
                    "{}",
                    self.name
                );
            }
        }
        assert_eq!(compared, self.devices(), "{}", self.name);
    }

    /// Devices that can be opened are those that `ibv_devinfo` describes.
    fn agrees_with_ibv_devinfo(&self) {
        let text = self.tool("ibv_devinfo");
        let described: Vec<_> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("hca_id:")?.trim()))
            .collect();
        let opened: Vec<_> = self
            .seen
            .rdma
            .devices
            .iter()
            .filter(|(_, device)| {
                let node = device
                    .uverbs
                    .value()
                    .and_then(|name| self.seen.rdma.nodes.get(name));
                node.is_some_and(|node| node.opens.value() == Some(&true))
            })
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(described, opened, "{}", self.name);
    }

    fn opens(&self, node: &str) -> Option<bool> {
        self.seen.rdma.nodes[node].opens.value().copied()
    }

    fn exists(&self, node: &str) -> Option<bool> {
        self.seen.rdma.nodes[node].exists.value().copied()
    }
}

#[test]
fn every_state_agrees_with_the_tools() {
    let Some(lab) = lab() else { return };
    for name in [
        "core",
        "one",
        "down",
        "up",
        "two",
        "pair",
        "pair-peer",
        "pair-exclusive",
        "pair-exclusive-peer",
    ] {
        let state = state(&lab, name);
        state.agrees_with_ibstat();
        state.agrees_with_rdma_link();
        state.agrees_with_ibv_devinfo();
    }
    state(&lab, "infiniband").agrees_with_ibstat();
}

#[test]
fn no_state_gains_a_module() {
    let Some(lab) = lab() else { return };
    let mut states = 0;
    for entry in fs::read_dir(&lab).unwrap() {
        let place = entry.unwrap().path();
        assert_eq!(
            read(&place.join("modules-before")),
            read(&place.join("modules-after")),
            "{}",
            place.display()
        );
        states += 1;
    }
    assert!(states >= 18, "{states} states");
}

#[test]
fn both_shells_of_the_guest_agree() {
    let Some(lab) = lab() else { return };
    for name in ["bare-first", "core", "one"] {
        let of = |shell: &str| {
            let stream =
                Stream::parse(&fs::read(lab.join(name).join(format!("stream.{shell}"))).unwrap());
            assert!(stream.is_complete(), "{name} {shell}");
            let mut seen = probe::observe::observation(&stream);
            // Flags of addresses change within the first seconds, and so do free bytes.
            seen.limits.shm_used_bytes = Fact::default();
            seen
        };
        let (busybox, bash) = (of("busybox"), of("bash"));
        assert_eq!(busybox.rdma, bash.rdma, "{name}");
        assert_eq!(busybox.modules, bash.modules, "{name}");
        assert_eq!(busybox.limits, bash.limits, "{name}");
        assert_eq!(busybox.interfaces, bash.interfaces, "{name}");
        assert_eq!(busybox.software, bash.software, "{name}");
    }
}

#[test]
fn without_modules_nothing_is_there() {
    let Some(lab) = lab() else { return };
    for name in ["bare-first", "bare-again"] {
        let state = state(&lab, name);
        assert!(state.devices().is_empty());
        assert_eq!(state.seen.rdma.listings.len(), 1);
        // The last state does not get every module out again.
        for module in ["ib_core", "ib_uverbs", "rdma_rxe", "rdma_ucm"] {
            let loaded = state
                .tool("modules-before")
                .lines()
                .any(|line| line == module);
            let presence = if loaded {
                Presence::Loaded
            } else {
                Presence::Absent
            };
            assert_eq!(
                state.seen.modules.presence(module),
                presence,
                "{name} {module}"
            );
        }
    }
    let bare = state(&lab, "bare-first");
    assert_eq!(bare.exists("rdma_cm"), Some(false));
    assert_eq!(bare.seen.modules.presence("ib_core"), Presence::Absent);
    let core = state(&lab, "core");
    assert!(core.devices().is_empty());
    assert_eq!(core.opens("rdma_cm"), Some(true));
    assert_eq!(core.seen.modules.presence("ib_core"), Presence::Loaded);
}

#[test]
fn soft_roce_is_told_as_such() {
    let Some(lab) = lab() else { return };
    let one = state(&lab, "one");
    let rxe = &one.seen.rdma.devices["rxe0"];
    assert_eq!(rxe.function.value(), Some(&Function::Software));
    assert_eq!(rxe.uverbs.value().map(String::as_str), Some("uverbs0"));
    let gids = &rxe.ports[&1].gids;
    assert_eq!(gids.len(), 2);
    assert_eq!(gids[&1].ipv4().unwrap().to_string(), "10.66.0.1");
    assert_eq!(gids[&1].kind.value(), Some(&GidType::RoceV2));
    let addresses = one.seen.interfaces.interfaces["rdma0"]
        .addresses
        .value()
        .unwrap();
    assert!(
        addresses.contains(&("10.66.0.1".parse().unwrap(), 24)),
        "{addresses:?}"
    );
    assert!(
        one.seen
            .limits
            .shm_bytes
            .value()
            .is_some_and(|bytes| *bytes > 1 << 20)
    );
    // Only tools tell these.
    assert_eq!(rxe.ports[&1].active_mtu.value(), Some(&1024));
    assert_eq!(one.seen.rdma.netns_mode.value(), Some(&NetnsMode::Shared));
    assert!(
        one.seen
            .software
            .ucx_resources
            .iter()
            .any(|run| run.transports.iter().any(|t| t.name == "rc_verbs"))
    );
    let down = state(&lab, "down");
    assert_eq!(
        down.seen.rdma.devices["rxe0"].ports[&1].phys.value(),
        Some(&PhysState::Disabled)
    );
}

#[test]
fn addresses_are_the_same_without_ip() {
    let Some(lab) = lab() else { return };
    // Both have rdma0 with its address; only the first ran `ip`.
    let with = state(&lab, "one");
    let without = state(&lab, "up");
    let of = |state: &State| {
        let mut list = state.seen.interfaces.interfaces["rdma0"]
            .addresses
            .value()
            .unwrap()
            .clone();
        list.sort();
        list
    };
    assert_eq!(of(&with), of(&without));
}

#[test]
fn another_namespace_shows() {
    let Some(lab) = lab() else { return };
    let pair = state(&lab, "pair");
    assert_eq!(pair.devices(), ["rxe0", "rxe1"]);
    let netdev = |device: &str| {
        pair.seen.rdma.devices[device].ports[&1].gids[&1]
            .netdev
            .value()
            .cloned()
            .flatten()
    };
    let here = |name: Option<String>| {
        name.is_some_and(|name| pair.seen.interfaces.interfaces.contains_key(&name))
    };
    assert!(here(netdev("rxe0")));
    assert!(!here(netdev("rxe1")), "rdma1 is in the other namespace");
    let peer = state(&lab, "pair-peer");
    // Its own two are the other way round.
    let of_peer = peer.seen.rdma.devices["rxe1"].ports[&1].gids[&1]
        .netdev
        .value()
        .cloned()
        .flatten();
    assert!(
        peer.seen
            .interfaces
            .interfaces
            .contains_key(&of_peer.unwrap())
    );
    let exclusive = state(&lab, "pair-exclusive");
    assert_eq!(exclusive.devices(), ["rxe0"]);
    // The node of the other namespace's device is here, and cannot be opened.
    assert_eq!(
        (exclusive.exists("uverbs1"), exclusive.opens("uverbs1")),
        (Some(true), Some(false))
    );
}

#[test]
fn rights_and_limits_show() {
    let Some(lab) = lab() else { return };
    let hidden = state(&lab, "uverbs-hidden");
    assert_eq!(hidden.devices(), ["rxe0"]);
    assert_eq!(hidden.exists("uverbs0"), Some(false));
    assert_eq!(
        hidden.seen.rdma.nodes["uverbs0"]
            .device
            .value()
            .map(String::as_str),
        Some("rxe0")
    );
    let closed = state(&lab, "not-openable");
    assert_eq!(
        (closed.exists("uverbs0"), closed.opens("uverbs0")),
        (Some(true), Some(false))
    );
    assert_eq!(state(&lab, "user").opens("uverbs0"), Some(true));
    for (name, uid, ipc_lock) in [
        ("memlock-root", 0, true),
        ("memlock-root-without-ipc-lock", 0, false),
        ("memlock-user", 1000, false),
    ] {
        let limits = state(&lab, name).seen.limits;
        assert_eq!(
            limits.memlock_soft.value(),
            Some(&Limit::Value(65_536)),
            "{name}"
        );
        assert_eq!(
            limits.memlock_hard.value(),
            Some(&Limit::Value(65_536)),
            "{name}"
        );
        assert_eq!(limits.uid.value(), Some(&uid), "{name}");
        assert_eq!(
            limits
                .capabilities
                .value()
                .map(|c| c.has(Capabilities::IPC_LOCK)),
            Some(ipc_lock),
            "{name}"
        );
    }
}

#[test]
fn the_engine_is_seen_with_its_device() {
    let Some(lab) = lab() else { return };
    let state = state(&lab, "engine");
    let raw = read(&state.place.join("stream.busybox"));
    assert!(!raw.contains("hunter2"));
    let engine = state.seen.process.processes.values().next().unwrap();
    assert_eq!(
        engine.environment["UCX_TLS"].value().map(String::as_str),
        Some("rc_verbs,tcp")
    );
    assert!(engine.flags.contains_key("--kv-transfer-config"));
    assert!(engine.libraries.is_seen());
    assert_eq!(
        engine.open_devices.value().unwrap(),
        &["/dev/infiniband/uverbs0"]
    );
    assert!(engine.namespaces.contains_key("net"));
}
