//! What carried a payload, from made-up measurements: each transport, each disagreement, each gap.

#![allow(clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use model::Grade;
use transfer::{
    Attribution, Both, Carrier, EndRecord, EvidenceKind, Finding, HostFacts, Leg, LegRecord,
    Measurement, Memory, Operation, Plan, PortFacts, Side, Snapshot, Socket, Stop, Traffic,
    attribute, pace,
};

const BYTES: u64 = 16 << 20;
const TRANSFERS: u64 = 4;
const PAYLOAD: u64 = BYTES * TRANSFERS;

/// A measurement of one READ by decode, of memory of the GPU where `gpu`.
struct Made {
    gpu: bool,
    write: bool,
    table: String,
    /// Bytes of eth0 at both ends.
    interface: u64,
    /// Bytes of own connections at both ends; none where they cannot be read.
    sockets: Option<u64>,
    /// Bytes of mlx5_0:1 at both ends; none where there is no RDMA device.
    port: Option<u64>,
    /// Name of that port.
    device: &'static str,
    same_kernel: bool,
    seconds: f64,
}

impl Made {
    fn new(how: &str, config: &str) -> Self {
        Self {
            gpu: false,
            write: false,
            table: row(how, config),
            interface: 900,
            sockets: Some(300),
            port: None,
            device: "mlx5_0:1",
            same_kernel: false,
            seconds: 0.001,
        }
    }

    fn rdma() -> Self {
        let mut made = Self::new("zero-copy", "rc_mlx5/mlx5_0:1");
        made.port = Some(PAYLOAD + PAYLOAD / 50);
        made
    }

    fn tcp() -> Self {
        let mut made = Self::new("software emulation", "tcp/eth0");
        made.interface = PAYLOAD + PAYLOAD / 60;
        made.sockets = Some(PAYLOAD + 4000);
        made
    }

    fn measurement(&self) -> Measurement {
        let memory = if self.gpu { Memory::Gpu } else { Memory::Host };
        let (operation, initiator) = if self.write {
            (Operation::Write, Side::Prefill)
        } else {
            (Operation::Read, Side::Decode)
        };
        let leg = Leg {
            operation,
            initiator,
            local: memory,
            remote: memory,
            bytes: BYTES,
            repeats: 3,
            warm_up: 1,
        };
        let kind = if self.gpu { "cuda/GPU0" } else { "host" };
        let words = if self.write {
            format!("remote memory write by ucp_put*(multi) from {kind} memory to {kind}")
        } else {
            format!("remote memory read by ucp_get*(multi) into {kind} memory from {kind}")
        };
        let mut ends = Both {
            prefill: self.end(Side::Prefill),
            decode: self.end(Side::Decode),
        };
        ends.of_mut(initiator).output = self.table.replace("WORDS", &words);
        Measurement {
            plan: Plan {
                legs: vec![leg],
                seconds: 60,
                start_seconds: 60,
                step_seconds: 30,
                bytes_per_second: None,
                gpu: 0,
            },
            ends,
            legs: vec![LegRecord {
                leg,
                transfers: 4,
                seconds: vec![self.seconds; 3],
                verified: 4,
                before: Both {
                    prefill: self.snapshot(Side::Prefill, false),
                    decode: self.snapshot(Side::Decode, false),
                },
                after: Some(Both {
                    prefill: self.snapshot(Side::Prefill, true),
                    decode: self.snapshot(Side::Decode, true),
                }),
            }],
            stop: None,
        }
    }

    fn end(&self, side: Side) -> EndRecord {
        let own = |text: &str| {
            if self.same_kernel {
                text.to_owned()
            } else {
                format!("{text} of {}", side.as_str())
            }
        };
        EndRecord {
            facts: Some(HostFacts {
                hostname: side.as_str().to_owned(),
                boot: own("boot"),
                namespaces: BTreeMap::from([
                    ("pid".to_owned(), own("pid")),
                    ("ipc".to_owned(), own("ipc")),
                ]),
                addresses: BTreeMap::from([(address(side), "eth0".to_owned())]),
                ports: BTreeMap::from([(
                    self.device.to_owned(),
                    PortFacts {
                        rate: "400 Gb/sec (4X NDR)".to_owned(),
                        ..PortFacts::default()
                    },
                )]),
                ..HostFacts::default()
            }),
            finished: true,
            ..EndRecord::default()
        }
    }

    /// Data goes from prefill to decode.
    fn snapshot(&self, side: Side, after: bool) -> Snapshot {
        let grown = |bytes: u64| 5_000 + if after { bytes } else { 0 };
        let (out, into) = match side {
            Side::Prefill => (1, 0),
            Side::Decode => (0, 1),
        };
        Snapshot {
            interfaces: Some(BTreeMap::from([
                ("lo".to_owned(), Traffic::default()),
                (
                    "eth0".to_owned(),
                    Traffic {
                        sent: grown(self.interface * out),
                        received: grown(self.interface * into),
                    },
                ),
            ])),
            ports: self
                .port
                .map(|bytes| {
                    let counters = BTreeMap::from([
                        ("port_xmit_data".to_owned(), grown(bytes * out / 4)),
                        ("port_rcv_data".to_owned(), grown(bytes * into / 4)),
                    ]);
                    (self.device.to_owned(), counters)
                })
                .into_iter()
                .collect(),
            sockets: self.sockets.map(|bytes| {
                vec![Socket {
                    local: (address(side), 1000),
                    remote: (address(side.other()), 2000),
                    sent: grown(bytes * out),
                    received: grown(bytes * into),
                }]
            }),
        }
    }

    fn answer(&self) -> Attribution {
        answer(&self.measurement())
    }
}

fn answer(measured: &Measurement) -> Attribution {
    let mut all = attribute(measured, None);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn address(side: Side) -> String {
    match side {
        Side::Prefill => "198.51.100.1".to_owned(),
        Side::Decode => "198.51.100.2".to_owned(),
    }
}

/// A table in the layout of UCX 1.23, with a row for small sizes that is not about this transfer.
fn row(how: &str, config: &str) -> String {
    let prefix = "[1700000000.000001] [decode:7:0]  ";
    [
        "+---------+-----------+-----------+",
        "| check-interconnect-decode inter-node cfg#1 |",
        "| WORDS |",
        "+---------+-----------+-----------+",
        "| Range | Description | Config |",
        "+---------+-----------+-----------+",
        "| 0..8184 | short | tcp/eth9 |",
        &format!("| 8185..inf | {how} | {config} |"),
        "+---------+-----------+-----------+",
        "",
    ]
    .iter()
    .fold(String::new(), |text, line| text + prefix + line + "\n")
}

fn found(answer: &Attribution, kind: EvidenceKind) -> Finding {
    answer
        .evidence
        .iter()
        .find(|e| e.kind == kind)
        .expect("it was looked at")
        .finding
}

#[test]
fn rdma_is_proven_by_table_and_ports() {
    for write in [false, true] {
        for gpu in [false, true] {
            let mut made = Made::rdma();
            (made.write, made.gpu) = (write, gpu);
            let answer = made.answer();
            assert_eq!(answer.grade, Some(Grade::Proven), "{answer:#?}");
            assert!(answer.counts());
            assert_eq!(
                answer.carrier,
                Carrier::Rdma {
                    devices: vec!["mlx5_0:1".to_owned()],
                    software: false
                }
            );
        }
    }
}

#[test]
fn rdma_without_counters_is_only_observed() {
    let mut made = Made::rdma();
    made.port = None;
    let answer = made.answer();
    assert_eq!(answer.grade, Some(Grade::Observed), "{answer:#?}");
    assert!(!answer.counts());
    assert_eq!(found(&answer, EvidenceKind::OwnSockets), Finding::Fits);
    assert!(answer.notes.iter().any(|n| n.contains("no second kind")));
}

#[test]
fn ports_alone_prove_nothing() {
    let mut made = Made::rdma();
    made.table.clear();
    let answer = made.answer();
    assert_eq!(answer.carrier, Carrier::Unknown);
    assert_eq!(answer.grade, None);
}

#[test]
fn another_port_proves_nothing() {
    let mut made = Made::rdma();
    made.device = "mlx5_9:1";
    assert_eq!(made.answer().grade, Some(Grade::Observed));
}

#[test]
fn ports_beside_busy_interfaces_are_not_counted() {
    let mut made = Made::rdma();
    // Something else moves as much over TCP, and the ports belong to the whole machine.
    made.interface = PAYLOAD * 2;
    let answer = made.answer();
    assert_eq!(answer.grade, Some(Grade::Observed));
    assert_eq!(found(&answer, EvidenceKind::ByteCounters), Finding::Silent);
}

#[test]
fn a_table_of_rdma_with_bytes_in_own_connections_is_contradicted() {
    let mut made = Made::rdma();
    made.sockets = Some(PAYLOAD + 1000);
    made.interface = PAYLOAD + 1000;
    let answer = made.answer();
    assert_eq!(answer.carrier, Carrier::Unknown);
    assert_eq!(answer.grade, None);
    assert!(answer.notes.iter().any(|n| n.contains("contradicted")));
}

#[test]
fn a_read_without_emulation_is_a_second_kind() {
    let mut made = Made::rdma();
    made.port = None;
    let measured = made.measurement();
    let mut control = made.measurement();
    let version = |number: &str| {
        format!(
            "[1.0] [decode:7:0] ucp_context.c:2340 UCX  INFO  Version {number} (loaded from /x/libucp.so.0)\n"
        )
    };
    let table = control.ends.decode.output.clone();
    control.ends.decode.output = version("1.21.0") + &table;
    let answer = attribute(&measured, Some(&control)).remove(0);
    assert_eq!(answer.grade, Some(Grade::Proven), "{answer:#?}");
    // A UCX without that switch, or of no known version, tells nothing; nor does another way.
    control.ends.decode.output = version("1.20.0") + &table;
    let answer = attribute(&measured, Some(&control)).remove(0);
    assert_eq!(answer.grade, Some(Grade::Observed), "{answer:#?}");
    control.ends.decode.output.clone_from(&table);
    let answer = attribute(&measured, Some(&control)).remove(0);
    assert_eq!(answer.grade, Some(Grade::Observed));
    control.ends.decode.output = version("1.21.0") + &table.replace("mlx5_0", "mlx5_7");
    let answer = attribute(&measured, Some(&control)).remove(0);
    assert_eq!(answer.grade, Some(Grade::Observed));
    // A WRITE passes without emulation over TCP as well: that proves nothing.
    made.write = true;
    let answer = attribute(&made.measurement(), Some(&made.measurement())).remove(0);
    assert_eq!(answer.grade, Some(Grade::Observed));
    // Refused: the table cannot be right.
    made.write = false;
    let mut control = made.measurement();
    control.legs[0].after = None;
    control.stop = Some(Stop {
        side: Side::Decode,
        step: None,
        why: "refused".to_owned(),
    });
    control.ends.decode.output = "[1.0] [decode:7:0] proto_reconfig.c:67 UCX ERROR No zero-copy protocol found for get into host from host, 4096 bytes.\n".to_owned();
    let answer = attribute(&made.measurement(), Some(&control)).remove(0);
    assert_eq!(answer.carrier, Carrier::Unknown, "{answer:#?}");
}

#[test]
fn software_rdma_is_named_and_does_not_count() {
    let mut made = Made::new("copy-out", "rc_verbs/rxe0:1");
    made.device = "rxe0:1";
    made.port = Some(PAYLOAD * 2);
    // Its frames go through an interface.
    made.interface = PAYLOAD + PAYLOAD / 20;
    let answer = made.answer();
    assert_eq!(answer.grade, Some(Grade::Proven), "{answer:#?}");
    assert!(!answer.counts());
    assert!(answer.carrier.words().starts_with("software RDMA"));
}

#[test]
fn tcp_is_proven_to_be_tcp() {
    let answer = Made::tcp().answer();
    assert_eq!(answer.grade, Some(Grade::Proven), "{answer:#?}");
    assert!(answer.emulated);
    assert!(!answer.counts());
    assert_eq!(
        answer.carrier,
        Carrier::Tcp {
            interfaces: vec!["eth0".to_owned()]
        }
    );
}

#[test]
fn tcp_of_another_interface_is_not_proven() {
    let mut made = Made::tcp();
    made.table = row("zero-copy", "tcp/net1");
    let answer = made.answer();
    assert_ne!(answer.grade, Some(Grade::Proven), "{answer:#?}");
}

#[test]
fn a_table_of_tcp_without_bytes_is_contradicted() {
    let mut made = Made::tcp();
    made.interface = 500;
    made.sockets = Some(500);
    assert_eq!(made.answer().carrier, Carrier::Unknown);
    // Where own connections cannot be read, the interfaces say enough.
    let mut made = Made::tcp();
    made.sockets = None;
    let answer = made.answer();
    assert_eq!(answer.grade, Some(Grade::Proven));
    assert_eq!(found(&answer, EvidenceKind::OwnSockets), Finding::Silent);
}

#[test]
fn shared_memory_needs_one_kernel() {
    let mut made = Made::new("zero-copy", "cma/memory");
    made.same_kernel = true;
    let answer = made.answer();
    assert_eq!(answer.grade, Some(Grade::Proven), "{answer:#?}");
    assert!(!answer.counts());
    assert!(answer.notes.iter().any(|n| n.contains("two pods do not")));
    made.same_kernel = false;
    assert_eq!(made.answer().carrier, Carrier::Unknown);
}

#[test]
fn gpu_to_gpu() {
    let mut made = Made::new("zero-copy", "cuda_ipc/cuda");
    made.gpu = true;
    made.same_kernel = true;
    let answer = made.answer();
    assert_eq!(answer.carrier, Carrier::GpuIpc);
    assert_eq!(answer.grade, Some(Grade::Proven), "{answer:#?}");
    assert!(answer.counts());
    // A port that moved the payload may have carried it.
    made.port = Some(PAYLOAD);
    assert_eq!(made.answer().grade, Some(Grade::Observed));
}

#[test]
fn a_mixture_is_never_proven() {
    let mut made = Made::new("zero-copy", "72% on rc_mlx5/mlx5_0:1 and 28% on tcp/eth0");
    made.port = Some(PAYLOAD);
    let answer = made.answer();
    assert!(
        matches!(answer.carrier, Carrier::Mixed { .. }),
        "{answer:#?}"
    );
    assert!(!answer.counts());
    assert_eq!(answer.grade, Some(Grade::Observed));
}

#[test]
fn several_rails_are_one_carrier() {
    let mut made = Made::new(
        "zero-copy",
        "50% on rc_mlx5/mlx5_0:1 and 50% on rc_mlx5/mlx5_1:1",
    );
    made.port = Some(PAYLOAD);
    let answer = made.answer();
    assert_eq!(
        answer.carrier,
        Carrier::Rdma {
            devices: vec!["mlx5_0:1".to_owned(), "mlx5_1:1".to_owned()],
            software: false
        }
    );
}

#[test]
fn tables_of_others_do_not_count() {
    // Of the process itself, of the other operation, of another memory, of other sizes, and cut off.
    let good = row("zero-copy", "rc_mlx5/mlx5_0:1");
    for (table, note) in [
        (good.replace("inter-node", "self"), "no protocol table"),
        (
            good.replace(
                "WORDS",
                "remote memory write by ucp_put* from host memory to host",
            ),
            "no protocol table",
        ),
        (
            good.replace(
                "WORDS",
                "remote memory read by ucp_get* into cuda/GPU0 memory from host",
            ),
            "no protocol table",
        ),
        (good.replace("8185..inf", "8185..65536"), "has this size"),
        (
            format!("{good}{}", row("zero-copy", "tcp/eth0")),
            "that differ",
        ),
        (good.replace("rc_mlx5/mlx5_0:1", "nothing"), "no transport"),
    ] {
        let mut made = Made::rdma();
        made.table = table;
        let answer = made.answer();
        assert_eq!(answer.carrier, Carrier::Unknown, "{note}");
        assert_eq!(answer.grade, None, "{note}");
        assert!(
            answer.notes.iter().any(|n| n.contains(note)),
            "{note}: {:?}",
            answer.notes
        );
    }
}

#[test]
fn an_unfinished_leg_and_lost_content_have_no_grade() {
    let mut measured = Made::rdma().measurement();
    measured.legs[0].verified = 3;
    let one = answer(&measured);
    assert!(!one.verified && one.grade.is_none() && !one.counts());
    let mut measured = Made::rdma().measurement();
    measured.legs[0].after = None;
    let two = answer(&measured);
    assert!(!two.verified && two.grade.is_none() && !two.counts());
}

#[test]
fn a_rate_is_judged_for_large_transfers_over_rdma_only() {
    // 16 MiB in 1 ms are 16.8 GB/s; a link of 400 Gb/s has 50, and a quarter of it is 12.5.
    let judge = |made: &Made| {
        let measured = made.measurement();
        let answer = answer(&measured);
        pace(&measured, &measured.legs[0], &answer.carrier).expect("it was timed")
    };
    let mut made = Made::rdma();
    assert_eq!(judge(&made).plausible, Some(true));
    assert_eq!(judge(&made).link_bytes_per_second, Some(50e9));
    made.seconds = 0.002;
    assert_eq!(judge(&made).plausible, Some(false));
    assert_eq!(judge(&Made::tcp()).plausible, None);
    let measured = made.measurement();
    let mut small = measured.legs[0].clone();
    small.leg.bytes = 65536;
    let carrier = answer(&measured).carrier;
    assert_eq!(
        pace(&measured, &small, &carrier)
            .expect("it was timed")
            .plausible,
        None
    );
}
