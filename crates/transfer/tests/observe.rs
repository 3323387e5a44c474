//! What counters of two looks say, and what they never say.

#![allow(clippy::expect_used)]

use model::Grade;
use transfer::{Both, Counted, Seen, observe, read_counters};

const MIB: u64 = 1 << 20;

/// Counters of one look: interfaces with received and sent bytes, and words of mlx5_0:1.
fn look(seconds: u64, interfaces: &[(&str, u64, u64)], port: Option<(u64, u64)>) -> Counted {
    let mut lines = vec![format!("time {seconds}.5")];
    for (name, received, sent) in interfaces {
        lines.push(format!("net {name} {received} {sent}"));
    }
    if let Some((received, sent)) = port {
        lines.push(format!("port mlx5_0:1 port_rcv_data {}", received / 4));
        lines.push(format!("port mlx5_0:1 port_xmit_data {}", sent / 4));
    }
    lines.push("end".to_owned());
    read_counters(&lines.join("\n")).expect("it is whole")
}

fn both(prefill: Counted, decode: Counted) -> Both<Counted> {
    Both { prefill, decode }
}

fn idle() -> Both<Counted> {
    both(
        look(10, &[("lo", 0, 0), ("eth0", 1000, 1000)], Some((0, 0))),
        look(10, &[("lo", 0, 0), ("eth0", 1000, 1000)], Some((0, 0))),
    )
}

#[test]
fn bytes_that_leave_one_and_reach_the_other() {
    let after = both(
        look(
            20,
            &[("lo", 0, 0), ("eth0", 2 * MIB, 520 * MIB)],
            Some((0, 0)),
        ),
        look(20, &[("lo", 0, 0), ("eth0", 510 * MIB, MIB)], Some((0, 0))),
    );
    let seen = observe(&idle(), &after);
    assert_eq!(seen.grade, Some(Grade::Observed));
    assert!(
        seen.sentence.contains("prefill sent 519 MiB on eth0"),
        "{}",
        seen.sentence
    );
    let Seen::Over { movers } = seen.seen else {
        unreachable!("{:?}", seen.seen)
    };
    assert!(
        movers
            .iter()
            .all(|m| m.grown.name == "eth0" && !m.grown.rdma)
    );
}

#[test]
fn ports_belong_to_the_machine() {
    let after = both(
        look(20, &[("eth0", MIB, MIB)], Some((0, 900 * MIB))),
        look(20, &[("eth0", MIB, MIB)], Some((880 * MIB, 0))),
    );
    let seen = observe(&idle(), &after);
    assert_eq!(seen.grade, Some(Grade::Observed));
    assert!(seen.sentence.contains("mlx5_0:1") && seen.sentence.contains("whole machine"));
}

#[test]
fn an_idle_pair_tells_nothing() {
    let after = both(
        look(20, &[("eth0", MIB, MIB)], Some((0, 0))),
        look(20, &[("eth0", MIB, MIB)], Some((0, 0))),
    );
    let seen = observe(&idle(), &after);
    assert_eq!((seen.seen, seen.grade), (Seen::NoTraffic, None));
    assert!(seen.sentence.starts_with("no traffic in 10 s"));
}

#[test]
fn other_traffic_is_not_called_kv() {
    // Decode received much from somewhere else; or both talk to others in the wrong direction.
    for (prefill, decode) in [
        ((MIB, MIB), (900 * MIB, MIB)),
        ((900 * MIB, 0), (0, 900 * MIB)),
    ] {
        let after = both(
            look(
                20,
                &[("eth0", prefill.0, prefill.1.max(1000))],
                Some((0, 0)),
            ),
            look(20, &[("eth0", decode.0.max(1000), decode.1)], Some((0, 0))),
        );
        let seen = observe(&idle(), &after);
        assert_eq!(seen.grade, None, "{}", seen.sentence);
        assert!(!matches!(seen.seen, Seen::Over { .. }), "{}", seen.sentence);
    }
}

#[test]
fn loopback_and_new_interfaces_are_left_out() {
    let after = both(
        look(
            20,
            &[
                ("lo", 900 * MIB, 900 * MIB),
                ("net1", 0, 900 * MIB),
                ("eth0", MIB, MIB),
            ],
            None,
        ),
        look(
            20,
            &[
                ("lo", 900 * MIB, 900 * MIB),
                ("net1", 900 * MIB, 0),
                ("eth0", MIB, MIB),
            ],
            None,
        ),
    );
    assert_eq!(observe(&idle(), &after).seen, Seen::NoTraffic);
}

#[test]
fn counters_that_cannot_be_compared() {
    // The container was started again, or the look is cut off.
    let after = both(
        look(20, &[("eth0", 0, 0)], None),
        look(20, &[("eth0", 900 * MIB, 0)], None),
    );
    assert_eq!(observe(&idle(), &after).seen, Seen::Unknown);
    assert_eq!(observe(&idle(), &idle()).seen, Seen::Unknown);
    assert_eq!(read_counters("time 1.0\nnet eth0 1 2\n"), None);
    assert_eq!(read_counters("net eth0 1 2\nend\n"), None);
    assert_eq!(read_counters("time 1.0\nnet eth0 many 2\nend\n"), None);
}
