//! The same facts from every shell, and the right ones.

use std::net::Ipv6Addr;

use model::Reason;
use model::observation::Observation;
use model::observation::limits::{Capabilities, Limit};
use model::observation::modules::Presence;
use model::observation::rdma::{Function, GidType, LinkLayer, PortState};
use model::observation::topology::Level;
use probe::local::{self, Options};
use probe::stream::{Kind, Stream};

use crate::tree::{Tree, shells};

/// Facts of a stream.
pub(crate) fn observe(stream: &Stream) -> Observation {
    probe::observe::observation(stream)
}

#[test]
fn every_shell_prints_the_same() {
    let tree = Tree::worker();
    let streams: Vec<_> = shells()
        .into_iter()
        .map(|shell| {
            let name = shell.join(" ");
            let stream = local::run(&Options {
                shell,
                run_tools: false,
                ..tree.options()
            })
            .unwrap();
            assert_eq!(stream.gap(), None, "{name}");
            assert_eq!(stream.foreign_lines, 0, "{name}");
            (name, stream)
        })
        .collect();
    for pair in streams.windows(2) {
        let [(a, first), (b, second)] = pair else {
            continue;
        };
        for (x, y) in first.records.iter().zip(&second.records) {
            assert_eq!(x, y, "{a} and {b}");
        }
        assert_eq!(first.records.len(), second.records.len());
    }
}

#[test]
fn this_machine_is_read_by_every_shell() {
    for shell in shells() {
        let name = shell.join(" ");
        let stream = local::run(&Options {
            shell,
            ..Options::default()
        })
        .unwrap();
        assert_eq!(stream.gap(), None, "{name}");
        assert_eq!(stream.foreign_lines, 0, "{name}");
        let seen = observe(&stream);
        assert!(
            seen.host.kernel.is_seen() && seen.limits.memlock_soft.is_seen(),
            "{name}"
        );
        assert!(seen.interfaces.interfaces.contains_key("lo"), "{name}");
    }
}

#[test]
fn facts_of_a_worker() {
    let tree = Tree::worker();
    let stream = local::run(&Options {
        run_tools: false,
        ..tree.options()
    })
    .unwrap();
    let seen = observe(&stream);

    let names: Vec<_> = seen.rdma.devices.keys().map(String::as_str).collect();
    assert_eq!(names, ["mlx5_0", "mlx5_1", "rxe0"]);
    assert_eq!(seen.rdma.listings[0].devices, names);
    let hca = &seen.rdma.devices["mlx5_0"];
    assert_eq!(hca.pci.value().map(String::as_str), Some("0000:19:00.0"));
    assert_eq!(hca.driver.value().map(String::as_str), Some("mlx5_core"));
    assert_eq!(hca.function.value(), Some(&Function::Physical));
    assert_eq!(hca.firmware.value().map(String::as_str), Some("28.41.1000"));
    assert_eq!(hca.vendor_id.value(), Some(&0x15b3));
    assert_eq!(hca.pcie.speed_mts.value(), Some(&32_000));
    assert_eq!(hca.uverbs.value().map(String::as_str), Some("uverbs0"));
    let port = &hca.ports[&1];
    assert_eq!(port.state.value(), Some(&PortState::Active));
    assert_eq!(port.link_layer.value(), Some(&LinkLayer::InfiniBand));
    assert_eq!(port.rate_mbps.value(), Some(&400_000));
    assert_eq!(
        (port.lid.value(), port.sm_lid.value()),
        (Some(&0x15), Some(&1))
    );
    assert_eq!(port.capability_mask.value(), Some(&0xa751_e848));
    assert_eq!(port.counters["port_xmit_data"].value(), Some(&1234));

    let vf = &seen.rdma.devices["mlx5_1"];
    assert_eq!(vf.function.value(), Some(&Function::Virtual));
    assert_eq!(vf.netdevs.value().unwrap(), &["eth7"]);
    let gids = &vf.ports[&1].gids;
    assert_eq!(gids.keys().copied().collect::<Vec<_>>(), [0, 3, 1000]);
    assert_eq!(gids[&3].ipv4().unwrap().to_string(), "192.0.2.5");
    assert_eq!(gids[&3].kind.value(), Some(&GidType::RoceV2));
    assert_eq!(
        gids[&1000].address.value(),
        Some(&"2001:db8::1".parse::<Ipv6Addr>().unwrap())
    );
    // Its interface is in another network namespace.
    assert!(!gids[&1000].netdev.is_seen());
    assert_eq!(
        seen.rdma.devices["rxe0"].function.value(),
        Some(&Function::Software)
    );

    let node = |name: &str| &seen.rdma.nodes[name];
    assert_eq!(
        (
            node("uverbs0").exists.value(),
            node("uverbs0").opens.value()
        ),
        (Some(&true), Some(&true))
    );
    assert_eq!(
        node("uverbs0").device.value().map(String::as_str),
        Some("mlx5_0")
    );
    assert_eq!(node("uverbs1").exists.value(), Some(&false));
    assert_eq!(
        node("uverbs1").device.value().map(String::as_str),
        Some("mlx5_1")
    );

    assert_eq!(seen.modules.presence("nvidia_peermem"), Presence::Loaded);
    assert_eq!(seen.modules.presence("gdrdrv"), Presence::Absent);
    assert_eq!(
        seen.modules.modules["nvidia_peermem"]
            .version
            .value()
            .map(String::as_str),
        Some("580.65.06")
    );
    assert_eq!(
        seen.gpu.driver_version.value().map(String::as_str),
        Some("580.65.06")
    );
    assert_eq!(seen.gpu.open_kernel_modules.value(), Some(&true));
    assert_eq!(seen.gpu.gpus.len(), 1);
    let gpu = seen.gpu.gpus.iter().next().unwrap();
    assert_eq!(
        gpu.uuid.value().map(String::as_str),
        Some("GPU-11111111-2222-3333-4444-555555555555")
    );
    assert_eq!(gpu.node.exists.value(), Some(&true));
    let matrix = &seen.topology.matrices[0];
    assert_eq!(matrix.to_nic("GPU0", "mlx5_0"), Some(&Level::Pix));
    assert_eq!(matrix.to_nic("GPU0", "mlx5_1"), Some(&Level::Phb));

    assert_eq!(
        seen.limits.memlock_soft.value(),
        Some(&Limit::Value(8_388_608))
    );
    let engine = &seen.process.processes[&42];
    assert_eq!(engine.name.value().map(String::as_str), Some("dynamo.vllm"));
    assert_eq!(engine.limits.memlock_soft.value(), Some(&Limit::Unlimited));
    assert!(
        engine
            .limits
            .capabilities
            .value()
            .unwrap()
            .has(Capabilities::IPC_LOCK)
    );
    let environment: Vec<_> = engine
        .environment
        .iter()
        .map(|(n, v)| (n.as_str(), v.value().unwrap().as_str()))
        .collect();
    assert_eq!(
        environment,
        [("UCX_NET_DEVICES", "mlx5_0:1"), ("UCX_TLS", "rc,cuda_copy")]
    );
    assert_eq!(
        engine.flags["--block-size"].value().map(String::as_str),
        Some("64")
    );
    assert_eq!(
        engine.flags["--is-prefill-worker"]
            .value()
            .map(String::as_str),
        Some("")
    );
    let libraries = engine.libraries.value().unwrap();
    let names: Vec<_> = libraries
        .iter()
        .map(|l| (l.library.as_str(), l.deleted))
        .collect();
    assert_eq!(names, [("libibverbs", true), ("libucp", false)]);
}

#[test]
fn what_is_not_there_says_so() {
    let tree = Tree::new();
    let stream = local::run(&Options {
        run_tools: false,
        ..tree.options()
    })
    .unwrap();
    let seen = observe(&stream);
    // An empty list is a fact: the class is not there.
    assert!(seen.rdma.listings[0].devices.is_empty() && !seen.rdma.listings[0].cut);
    assert_eq!(
        seen.gpu.driver_version.get().unwrap_err().reason,
        Reason::NotVisible
    );
    assert_eq!(seen.gpudirect.gdrcopy_node.exists.value(), Some(&false));
    assert!(seen.process.processes.is_empty());
    assert!(seen.limits.memlock_soft.is_seen());
}

#[test]
fn what_was_not_reached_is_not_taken_as_absent() {
    let tree = Tree::worker();
    let raw = local::collect(&Options {
        run_tools: false,
        ..tree.options()
    })
    .unwrap();
    // Without its last line break a stream is complete all the same.
    for end in (0..raw.len().saturating_sub(1)).step_by(97) {
        let stream = Stream::parse(&raw[..end]);
        assert!(!stream.is_complete());
        let seen = observe(&stream);
        for listing in &seen.rdma.listings {
            assert!(!listing.devices.is_empty(), "an empty list, cut at {end}");
        }
        if let Some(node) = seen.rdma.nodes.get("uverbs0") {
            assert_ne!(node.exists.value(), Some(&false), "cut at {end}");
        }
        assert_ne!(
            seen.modules.presence("nvidia_peermem"),
            Presence::Absent,
            "cut at {end}"
        );
    }
}

#[test]
fn odd_names_and_bytes_do_no_harm() {
    let tree = Tree::worker();
    tree.files(
        "/sys/class/infiniband/bad\tname\n%1\tend",
        &[("node_guid", "0")],
    );
    tree.file(
        "/sys/class/infiniband/mlx5_0/board_id",
        b"\x1b[31m\xff\xfe\t%\nx",
    );
    tree.file("/sys/class/net/a b/mtu", "1\n");
    for shell in shells() {
        let stream = local::run(&Options {
            shell,
            run_tools: false,
            ..tree.options()
        })
        .unwrap();
        assert!(stream.is_complete() && stream.foreign_lines == 0);
        let seen = observe(&stream);
        assert_eq!(seen.rdma.devices.len(), 3);
        assert!(seen.rdma.listings[0].cut);
        let board = seen.rdma.devices["mlx5_0"].board_id.value().unwrap();
        assert!(!board.chars().any(char::is_control), "{board:?}");
    }
}

#[test]
fn long_values_are_cut() {
    let tree = Tree::worker();
    let long = "x".repeat(100_000);
    tree.file(
        "/proc/42/environ",
        format!("UCX_TLS={long}\0UCX_NET_DEVICES=mlx5_0:1\0"),
    );
    for shell in shells() {
        let stream = local::run(&Options {
            shell,
            run_tools: false,
            ..tree.options()
        })
        .unwrap();
        assert!(stream.is_complete());
        let tls = stream
            .records
            .iter()
            .find(|r| r.kind == Kind::Env && r.key == "42/UCX_TLS")
            .unwrap();
        assert_eq!(tls.text.len(), 4096);
        assert!(
            stream
                .records
                .iter()
                .any(|r| r.kind == Kind::Cut && r.key == "42/UCX_TLS")
        );
    }
}

#[test]
fn on_standard_input_it_does_the_same() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let tree = Tree::worker();
    // A tool that reads its input must not eat the rest of the script.
    tree.tool("nvidia-smi", "cat; echo read");
    for shell in shells() {
        let name = shell.join(" ");
        let options = Options {
            shell: shell.clone(),
            ..tree.options()
        };
        let mut child = Command::new(&shell[0])
            .args(&shell[1..])
            .args(["-s", "--"])
            .args(options.arguments())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(probe::script::text().as_bytes()).unwrap();
        drop(input);
        let out = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&out.stderr), "", "{name}");
        let stream = Stream::parse(&out.stdout);
        assert_eq!(stream.gap(), None, "{name}");
        let kinds = |stream: &Stream| {
            let lines = stream.records.iter();
            lines
                .filter(|record| record.key != "tool:df" && record.key != "tool:ip")
                .map(|record| (record.kind, record.key.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            kinds(&stream),
            kinds(&local::run(&options).unwrap()),
            "{name}"
        );
    }
}
