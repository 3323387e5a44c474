//! When bytes that moved between two workers are called KV, and when not.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::IpAddr;

use model::observation::process::Connection;
use transfer::{Both, Counted, Metric, Opened, Side, Whose, observe, read_counters, whose};

const MIB: u64 = 1 << 20;

/// What moved: MiB on eth0, MiB (or packets) on an RDMA port, at both ends.
fn moved(eth0: u64, port: Option<(&str, u64)>) -> (Both<Counted>, Both<Counted>) {
    let look = |seconds: u64, side: Side, eth0: u64, port: Option<(&str, u64)>| {
        let (sent, received) = match side {
            Side::Prefill => (eth0, 0),
            Side::Decode => (0, eth0),
        };
        let mut text = format!("time {seconds}.0\nnet eth0 {received} {sent}\n");
        if let Some((kind, grown)) = port {
            let names = if kind == "packets" {
                ["sent_pkts", "rcvd_pkts"]
            } else {
                ["port_xmit_data", "port_rcv_data"]
            };
            for name in names {
                let _infallible = writeln!(text, "port rxe0:1 {name} {grown}");
            }
        }
        read_counters(&(text + "end\n")).expect("it is whole")
    };
    let both = |seconds, eth0, port| Both {
        prefill: look(seconds, Side::Prefill, eth0, port),
        decode: look(seconds, Side::Decode, eth0, port),
    };
    (
        both(10, 0, port.map(|(kind, _)| (kind, 0))),
        both(20, eth0 * MIB, port),
    )
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// Both engines have this connection.
fn connected() -> Both<Opened> {
    let (one, other) = ((address(1), 40000), (address(2), 50000));
    let opened = |local, remote, own: u8| Opened {
        connections: Some(vec![Connection { local, remote }]),
        queue_pairs: BTreeMap::new(),
        addresses: BTreeMap::from([(address(own), "eth0".to_owned())]),
    };
    Both {
        prefill: opened(one, other, 1),
        decode: opened(other, one, 2),
    }
}

fn counted(mib: u64) -> Both<Option<Metric>> {
    Both {
        prefill: None,
        decode: Some(Metric {
            bytes: mib * MIB,
            name: "agent_rx_bytes_total".to_owned(),
        }),
    }
}

fn said(
    moved: &(Both<Counted>, Both<Counted>),
    opened: &Both<Opened>,
    metrics: &Both<Option<Metric>>,
) -> Option<Whose> {
    whose(&observe(&moved.0, &moved.1), opened, metrics)
}

fn unknown(said: Option<Whose>) -> String {
    match said {
        Some(Whose::Unknown(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn connections_and_metrics_that_agree_make_it_kv() {
    match said(&moved(102, None), &connected(), &counted(100)) {
        Some(Whose::Kv(why)) => {
            assert!(why.contains("a connection to each other"), "{why}");
            assert!(
                why.contains("agent_rx_bytes_total counted 100 MiB"),
                "{why}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_of_them_alone_does_not() {
    let none = Both::<Option<Metric>> {
        prefill: None,
        decode: None,
    };
    let why = unknown(said(&moved(102, None), &connected(), &none));
    assert!(why.contains("no metrics of KV"), "{why}");
    // Sockets that could not be read, and those of others.
    let closed = Both::<Opened> {
        prefill: Opened::default(),
        decode: Opened::default(),
    };
    let why = unknown(said(&moved(102, None), &closed, &counted(100)));
    assert!(why.contains("could not be read"), "{why}");
    let mut others = connected();
    others.decode.connections = Some(Vec::new());
    let why = unknown(said(&moved(102, None), &others, &counted(100)));
    assert!(why.contains("no connection to each other"), "{why}");
    // The connection is on another interface.
    let mut elsewhere = connected();
    elsewhere.prefill.addresses = BTreeMap::from([(address(1), "net1".to_owned())]);
    let why = unknown(said(&moved(102, None), &elsewhere, &counted(100)));
    assert!(why.contains("no connection to each other there"), "{why}");
}

#[test]
fn metrics_that_do_not_fit_what_moved_do_not() {
    // No KV meanwhile, less than moved, more than moved, and as much over a port.
    for (moved, metric, says) in [
        (moved(102, None), 0, "counted no KV"),
        (moved(900, None), 100, "does not fit"),
        (moved(102, None), 500, "does not fit"),
        (
            moved(102, Some(("words", 100 * MIB / 4))),
            100,
            "does not fit",
        ),
    ] {
        let why = unknown(said(&moved, &connected(), &counted(metric)));
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn queue_pairs_take_the_place_of_connections() {
    let mut pairs = connected();
    for end in [&mut pairs.prefill, &mut pairs.decode] {
        end.queue_pairs = BTreeMap::from([("rxe0".to_owned(), 2)]);
    }
    for port in [("words", 110 * MIB / 4), ("packets", 110 * MIB / 4096)] {
        match said(&moved(0, Some(port)), &pairs, &counted(100)) {
            Some(Whose::Kv(why)) => assert!(why.contains("4 on rxe0"), "{why}"),
            other => panic!("{other:?}"),
        }
        let why = unknown(said(&moved(0, Some(port)), &connected(), &counted(100)));
        assert!(why.contains("no queue pair"), "{why}");
    }
    // Where only packets are counted, that is said.
    let seen = observe(
        &moved(0, Some(("packets", 0))).0,
        &moved(0, Some(("packets", 50_000))).1,
    );
    assert!(
        seen.sentence
            .contains("prefill sent 50000 packets on rxe0:1 (at most 195 MiB; this kernel counts no bytes there)"),
        "{}",
        seen.sentence
    );
    // Nothing moved: nothing is said.
    assert_eq!(said(&moved(0, None), &pairs, &counted(100)), None);
}
