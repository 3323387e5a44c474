//! Logs of one and of both sides: what carried the payload, and what the two together tell.
//!
//! The texts are written for these tests in the formats of UCX and NIXL; none of them is anyone's.

use std::fmt::Write as _;

use checks::{LogFile, NixlFacts, judge_nixl};
use model::{CheckResult, Readiness, Report, Status};

/// Causes that only logs of both sides show.
pub(crate) const SHOWN: [&str; 1] = ["prefill-decode-asymmetric-fabric"];

const READ: &str = "remote memory read by ucp_get*(multi) into host memory from host";
const READ_GPU: &str =
    "remote memory read by ucp_get*(multi) into cuda/dev[1] memory from cuda/dev[1]";
const WRITE: &str = "remote memory write by ucp_put*(multi) from host memory to host";
const PAYLOAD: &str = "nixl/payload-transport";

fn judge(files: &[(&str, String)]) -> Report {
    let files = files.iter().map(|(name, text)| LogFile {
        name: (*name).to_owned(),
        seen: probe::recognise_bytes(name, text.as_bytes()),
    });
    let facts = NixlFacts {
        files: files.collect(),
        role: None,
    };
    judge_nixl(&facts, Vec::new())
}

fn of<'r>(report: &'r Report, name: &str) -> Vec<&'r CheckResult> {
    report.results.iter().filter(|r| r.name == name).collect()
}

fn causes(report: &Report) -> Vec<&'static str> {
    report.results.iter().filter_map(|r| r.cause).collect()
}

/// One process that writes lines as UCX does.
#[derive(Clone, Copy)]
struct Who {
    host: &'static str,
    pid: u32,
    agent: &'static str,
}

const DECODE: Who = Who {
    host: "llm-decode-0",
    pid: 17,
    agent: "engine-a",
};
const PREFILL: Who = Who {
    host: "llm-prefill-0",
    pid: 18,
    agent: "engine-b",
};

impl Who {
    fn line(self, text: &str) -> String {
        format!(
            "[1790000000.000001] [{}:{:<5}:0] {text}\n",
            self.host, self.pid
        )
    }

    fn ucx(self, level: &str, text: &str) -> String {
        self.line(&format!("  ucp_core.c:77   UCX  {level:<5} {text}"))
    }

    fn version(self, version: &str) -> String {
        self.ucx(
            "INFO",
            &format!("Version {version} (loaded from /lib/libucp.so.0)"),
        )
    }

    fn env(self, variables: &str) -> String {
        self.ucx("INFO", &format!("UCX_* env variables: {variables}"))
    }

    fn lanes(self, scope: &str, uses: &str) -> String {
        self.ucx("INFO", &format!("  {} {scope} cfg#1 {uses}", self.agent))
    }

    /// Two title rows and heads of columns, since UCX 1.22.
    fn table(self, scope: &str, words: &str, rows: &[[&str; 3]]) -> String {
        let rule = self.line("  +--------+------+------+");
        let mut out = rule.clone();
        out += &self.line(&format!("  | {} {scope} cfg#1 |", self.agent));
        out += &self.line(&format!("  | {words} |"));
        out += &rule;
        out += &self.line("  | Range | Description | Config |");
        out += &rule;
        for [range, how, config] in rows {
            out += &self.line(&format!("  | {range} | {how} | {config} |"));
        }
        out + &rule
    }

    /// One title row, up to UCX 1.21.
    fn old_table(self, scope: &str, words: &str, rows: &[[&str; 3]]) -> String {
        let rule = self.line("  +--------+------+------+");
        let mut out = rule.clone();
        out += &self.line(&format!("  | ucp_context_0 {scope} cfg#1 | {words} |"));
        out += &rule;
        for [range, how, config] in rows {
            out += &self.line(&format!("  | {range} | {how} | {config} |"));
        }
        out + &rule
    }
}

/// Each row of a read: what is said of it, and what must be in the words.
#[test]
fn the_row_of_large_transfers_decides_in_both_layouts() {
    type Case<'c> = (
        &'c str,
        &'c str,
        &'c [[&'c str; 3]],
        Status,
        Option<&'c str>,
        &'c [&'c str],
    );
    let cases: &[Case<'_>] = &[
        (
            "inter-node",
            READ_GPU,
            &[
                ["0..2K", "copy-out", "rc_mlx5/mlx5_0:1"],
                ["2049..inf", "zero-copy", "rc_mlx5/mlx5_0:1"],
            ],
            Status::Ok,
            None,
            &[
                "READ (get) from cuda/dev[1] to cuda/dev[1]",
                "rc_mlx5/mlx5_0:1",
                "another node",
            ],
        ),
        (
            "inter-node",
            READ_GPU,
            &[[
                "0..inf",
                "zero-copy",
                "72% on rc_mlx5/mlx5_2:1 and 28% on dc_mlx5/mlx5_3:1",
            ]],
            Status::Ok,
            None,
            &["72% on rc_mlx5/mlx5_2:1 and 28% on dc_mlx5/mlx5_3:1"],
        ),
        (
            "intra-node",
            READ_GPU,
            &[["0..inf", "zero-copy", "cuda_ipc/cuda"]],
            Status::Ok,
            None,
            &["cuda_ipc/cuda", "the same node"],
        ),
        (
            "inter-node",
            READ_GPU,
            &[["0..inf", "(?) software emulation", "srd/rdmap0s6:1"]],
            Status::Fail,
            Some("nixl-software-emulation"),
            &["both CPUs copy it"],
        ),
        (
            "inter-node",
            READ_GPU,
            &[["0..inf", "software emulation", "tcp/eth0"]],
            Status::Fail,
            Some("nixl-software-emulation"),
            &["tcp/eth0", "over TCP"],
        ),
        (
            "inter-node",
            READ_GPU,
            &[["0..inf", "copy-out", "rc_mlx5/mlx5_0:1"]],
            Status::Warn,
            Some("gdr-nothing"),
            &["copied through host memory"],
        ),
        // Host memory goes through a buffer as a matter of course.
        (
            "inter-node",
            READ,
            &[["0..inf", "copy-out", "rc_mlx5/mlx5_0:1"]],
            Status::Ok,
            None,
            &["READ (get) from host to host"],
        ),
        (
            "inter-node",
            READ,
            &[["0..inf", "zero-copy", "tcp/eth0"]],
            Status::Fail,
            Some("nixl-proto-table"),
            &["tcp/eth0"],
        ),
        (
            "inter-node",
            READ,
            &[[
                "0..inf",
                "zero-copy",
                "60% on rc_mlx5/mlx5_0:1 and 40% on tcp/eth0",
            ]],
            Status::Warn,
            Some("nixl-proto-table"),
            &["a part of it goes over tcp"],
        ),
        (
            "inter-node",
            READ,
            &[
                ["0..8K", "short", "tcp/eth0"],
                ["8193..1M", "zero-copy", "tcp/eth0"],
                ["1048577..inf", "zero-copy", "rc_mlx5/mlx5_0:1"],
            ],
            Status::Warn,
            Some("nixl-proto-table"),
            &["but tcp/eth0 for 8193..1M bytes"],
        ),
        // Small blocks over tcp are no KV.
        (
            "inter-node",
            READ,
            &[
                ["0..8K", "short", "tcp/eth0"],
                ["8193..inf", "zero-copy", "rc_mlx5/mlx5_0:1"],
            ],
            Status::Ok,
            None,
            &["rc_mlx5/mlx5_0:1 for 8193..inf"],
        ),
        (
            "intra-node",
            READ,
            &[["0..inf", "zero-copy", "cma/memory"]],
            Status::Warn,
            Some("nixl-shm-not-representative"),
            &["cma/memory"],
        ),
        (
            "inter-node",
            READ,
            &[["0..inf", "zero-copy", "rc_verbs/siw0:1"]],
            Status::Warn,
            Some("soft-roce"),
            &["software RDMA"],
        ),
    ];
    for (scope, words, rows, status, cause, says) in cases {
        for text in [
            DECODE.table(scope, words, rows),
            DECODE.old_table(scope, words, rows),
        ] {
            let report = judge(&[("decode.log", text)]);
            let told = of(&report, PAYLOAD);
            let [result] = told.as_slice() else {
                panic!("{rows:?}: {told:#?}");
            };
            assert_eq!((result.status, result.cause), (*status, *cause), "{rows:?}");
            for word in *says {
                assert!(result.detail.contains(word), "{word}: {}", result.detail);
            }
            let readiness = match status {
                Status::Ok => Readiness::Unproven,
                Status::Warn => Readiness::Degraded,
                Status::Fail => Readiness::Blocked,
                Status::Skipped => Readiness::Inconclusive,
            };
            assert_eq!(report.readiness, readiness, "{rows:?}");
            assert!(!report.transfer_validated());
            assert!(report.verdict.contains(says[0]), "{}", report.verdict);
        }
    }
}

const RC: [[&str; 3]; 1] = [["0..inf", "zero-copy", "rc_mlx5/mlx5_0:1"]];
const TCP: [[&str; 3]; 1] = [["0..inf", "zero-copy", "tcp/eth0"]];

/// The log of the target alone names no payload, whatever its table says.
#[test]
fn the_target_alone_tells_nothing() {
    let target = Who {
        agent: "target-1",
        ..PREFILL
    };
    let report = judge(&[("t.log", target.table("inter-node", WRITE, &TCP))]);
    assert_eq!(report.readiness, Readiness::Inconclusive, "{report:#?}");
    assert!(
        report
            .next
            .iter()
            .any(|step| step.command.contains("INITIATOR.log"))
    );
    let initiator = Who {
        agent: "initiator-1",
        ..DECODE
    };
    let report = judge(&[
        ("t.log", target.table("inter-node", WRITE, &TCP)),
        ("i.log", initiator.table("inter-node", READ, &RC)),
    ]);
    assert_eq!(report.readiness, Readiness::Unproven, "{report:#?}");
}

/// What UCX tells of itself, of other operations, or of a way that is never taken is no evidence.
#[test]
fn what_is_no_payload_is_no_evidence() {
    let own = DECODE.table("self", READ, &RC);
    let message = DECODE.table(
        "inter-node",
        "active message by ucp_am_send*(multi) from host memory",
        &TCP,
    );
    let single = DECODE.table(
        "inter-node",
        "remote memory read by ucp_get* into host memory from host",
        &TCP,
    );
    let report = judge(&[("a.log", own.clone() + &message)]);
    assert_eq!(report.readiness, Readiness::Inconclusive, "{report:#?}");
    assert!(
        of(&report, PAYLOAD)
            .iter()
            .all(|r| r.status == Status::Skipped)
    );
    assert!(
        report
            .next
            .iter()
            .any(|step| step.command.contains("UCX_PROTO_INFO=y"))
    );
    // Beside the table that counts they change nothing.
    let read = DECODE.table("inter-node", READ, &RC);
    let report = judge(&[("a.log", own + &message + &single + &read)]);
    assert_eq!(report.readiness, Readiness::Unproven, "{report:#?}");
}

#[test]
fn a_write_alone_leaves_the_read_unproven() {
    let write = DECODE.table("inter-node", WRITE, &RC);
    let report = judge(&[("a.log", write.clone())]);
    assert_eq!(report.readiness, Readiness::Inconclusive, "{report:#?}");
    assert!(
        report
            .verdict
            .contains("no protocol table tells what carries a READ"),
        "{}",
        report.verdict
    );
    let report = judge(&[("a.log", write + &DECODE.table("inter-node", READ, &RC))]);
    assert_eq!(report.readiness, Readiness::Unproven);
}

#[test]
fn lanes_alone_prove_nothing_and_messages_over_tcp_are_normal() {
    for uses in [
        "rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1 tcp/eth0)  ka(tcp/eth0)",
        "rma_am(tcp/eth0)  am(tcp/eth0)",
        "rma_am(tcp/eth0)  am(tcp/eth0 cuda_ipc/cuda)",
    ] {
        let report = judge(&[("a.log", DECODE.lanes("inter-node", uses))]);
        assert_eq!(causes(&report), ["nixl-lane-line"], "{uses}");
        assert_eq!(report.readiness, Readiness::Inconclusive);
        assert!(
            report.verdict.starts_with("lanes only"),
            "{}",
            report.verdict
        );
    }
    // With the table the line of lanes is neither needed nor believed.
    let lanes = DECODE.lanes(
        "inter-node",
        "rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1 tcp/eth0)",
    );
    let report = judge(&[("a.log", lanes + &DECODE.table("inter-node", READ, &RC))]);
    assert_eq!(causes(&report), [] as [&str; 0]);
    assert_eq!(report.readiness, Readiness::Unproven);
}

#[test]
fn a_table_that_ends_early_is_not_taken_for_whole() {
    let rows = [
        ["0..2K", "copy-out", "rc_mlx5/mlx5_0:1"],
        ["2049..inf", "zero-copy", "tcp/eth0"],
    ];
    let whole = DECODE.table("inter-node", READ, &rows);
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let report = judge(&[("a.log", lines[..lines.len() - 2].concat())]);
    assert!(
        of(&report, PAYLOAD)
            .iter()
            .all(|r| r.status == Status::Skipped)
    );
    assert_eq!(report.readiness, Readiness::Inconclusive);
    assert_eq!(judge(&[("a.log", whole)]).readiness, Readiness::Blocked);
}

/// The same read over TCP, however the log was kept.
#[test]
fn wrappings_of_collectors_change_nothing() {
    let plain = DECODE.table("inter-node", READ, &TCP);
    let each = |wrap: &dyn Fn(&str) -> String| -> String {
        plain.lines().map(|line| wrap(line) + "\n").collect()
    };
    let texts = [
        each(&|l| format!("\u{1b}[33m{l}\u{1b}[0m")),
        each(&|l| format!("[pod/llm-decode-0/main] {l}")),
        each(&|l| format!("[pod/llm-decode-0/main] 2026-01-02T03:04:05.123456789Z {l}")),
        each(&|l| format!("2026-01-02T03:04:05.123456789Z stdout F {l}")),
        each(&|l| format!("(EngineCore pid=7) {l}")),
        each(&|l| format!("decode-1  | {l}")),
        each(&|l| {
            // Nothing in these lines needs escapes.
            format!(
                "{{\"log\":\"{l}\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05Z\"}}"
            )
        }),
        each(&|l| format!("{l}\r")),
        each(&|l| format!("some words of the engine\n{l}")),
    ];
    for text in texts {
        let report = judge(&[("a.log", text.clone())]);
        assert_eq!(causes(&report), ["nixl-proto-table"], "{text}");
        assert_eq!(report.readiness, Readiness::Blocked);
    }
}

/// Lines of two processes that one file mixes are two tables and two sides.
#[test]
fn interleaved_processes_are_told_apart() {
    let (a, b) = (
        DECODE.table("inter-node", READ, &RC),
        PREFILL.table("inter-node", WRITE, &TCP),
    );
    let (mut mixed, mut prefixed) = (String::new(), String::new());
    for (a, b) in a.lines().zip(b.lines()) {
        write!(mixed, "{a}\n{b}\n").unwrap();
        write!(
            prefixed,
            "[pod/llm-decode-0/main] {a}\n[pod/llm-prefill-0/main] {b}\n"
        )
        .unwrap();
    }
    for text in [mixed, prefixed] {
        let report = judge(&[("both.log", text)]);
        let payload = of(&report, PAYLOAD);
        assert!(
            payload
                .iter()
                .any(|r| r.status == Status::Ok && r.detail.starts_with("llm-decode-0: READ")),
            "{payload:#?}"
        );
        // How the other side would write is told, and decides nothing.
        assert!(
            payload
                .iter()
                .any(|r| r.status == Status::Skipped && r.detail.starts_with("llm-prefill-0")),
            "{payload:#?}"
        );
        assert_eq!(report.readiness, Readiness::Unproven, "{report:#?}");
        assert!(
            of(&report, "input")
                .iter()
                .any(|r| r.detail.contains("2 sides")),
            "{report:#?}"
        );
    }
}

#[test]
fn files_of_one_process_are_one_side() {
    let error = "E1130 10:00:00.000001   17 nixl_agent.cpp:1] createBackend: backend creation failed for 'UCX'\n";
    let report = judge(&[
        ("run/decode.stdout", DECODE.version("1.23.0")),
        ("run/decode.stderr", error.to_owned()),
        ("run/prefill.stdout", PREFILL.version("1.23.0")),
        ("run/prefill.stderr", String::new()),
    ]);
    let errors = of(&report, "nixl/messages");
    assert!(
        errors.iter().any(|r| r.detail.starts_with("llm-decode-0:")),
        "{report:#?}"
    );
    // An empty output beside others is normal, alone it is not.
    assert!(!report.broken_input);
    let alone = judge(&[("run/prefill.stderr", String::new())]);
    assert!(alone.broken_input);
    assert_eq!(alone.readiness, Readiness::Inconclusive);
}

#[test]
fn a_file_that_nobody_knows_is_named() {
    let report = judge(&[
        ("decode.log", DECODE.table("inter-node", READ, &RC)),
        ("poem.txt", "the quick brown fox\n".to_owned()),
    ]);
    assert!(report.broken_input);
    assert!(
        of(&report, "input")
            .iter()
            .any(|r| r.detail.contains("poem.txt")),
        "{report:#?}"
    );
}

fn pair(decode: &str, prefill: &str) -> Report {
    judge(&[("d.log", decode.to_owned()), ("p.log", prefill.to_owned())])
}

#[test]
fn transports_that_only_one_side_has_are_told() {
    let asymmetric = "prefill-decode-asymmetric-fabric";
    for (one, other, status) in [
        (
            DECODE.env("UCX_TLS=rc,cuda_copy"),
            PREFILL.env("UCX_TLS=tcp"),
            Some(Status::Fail),
        ),
        (
            DECODE.env("UCX_TLS=rc,tcp"),
            PREFILL.env("UCX_TLS=tcp"),
            Some(Status::Fail),
        ),
        (
            DECODE.env("UCX_TLS=rc,cuda_copy"),
            PREFILL.env("UCX_TLS=rc,cuda_copy"),
            None,
        ),
        (
            DECODE.env("UCX_TLS=rc,cuda_copy"),
            PREFILL.env("UCX_LOG_LEVEL=info"),
            None,
        ),
        (
            DECODE.lanes("self", "rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1)"),
            PREFILL.lanes("self", "rma_am(tcp/eth0)  am(tcp/eth0)"),
            Some(Status::Warn),
        ),
        (
            DECODE.lanes("self", "rma_am(tcp/eth0)  am(tcp/eth0)"),
            PREFILL.lanes("self", "rma_am(tcp/eth0)  am(tcp/eth0)"),
            None,
        ),
    ] {
        let report = pair(&one, &other);
        let found = report
            .results
            .iter()
            .find(|r| r.cause == Some(asymmetric))
            .map(|r| r.status);
        assert_eq!(found, status, "{one}{other}{:#?}", report.results);
    }
}

#[test]
fn releases_that_differ_are_told_for_both_sides() {
    let skew = |a: &str, b: &str| {
        let report = pair(&DECODE.version(a), &PREFILL.version(b));
        report
            .results
            .iter()
            .find(|r| r.cause == Some("ucx-pd-version-skew"))
            .map(|r| r.detail.clone())
    };
    let told = skew("1.23.0", "1.20.0").unwrap();
    assert!(
        told.contains("UCX 1.20.0 on llm-prefill-0") && told.contains("UCX 1.23.0 on llm-decode-0"),
        "{told}"
    );
    assert_eq!(skew("1.23.0", "1.23.1"), None);
    assert_eq!(skew("1.23.0", "1.23.0"), None);
}

/// The same refusal is a firewall, an interface that both have, or a peer that had failed.
#[test]
fn a_refusal_is_explained_by_the_other_side() {
    let refused = |who: Who, peer: &str| {
        who.ucx(
            "ERROR",
            &format!("connect(fd=25, dest_addr={peer}) failed: Connection refused"),
        )
    };
    let named = |report: &Report| -> Vec<&'static str> {
        report
            .results
            .iter()
            .filter(|r| r.status == Status::Fail)
            .filter_map(|r| r.cause)
            .collect()
    };
    let both = pair(
        &refused(DECODE, "10.0.0.1:4000"),
        &refused(PREFILL, "10.0.0.2:4001"),
    );
    assert_eq!(named(&both), ["networkpolicy-blocks"]);
    let same = pair(
        &refused(DECODE, "192.168.5.1:4000"),
        &refused(PREFILL, "192.168.5.1:4001"),
    );
    assert_eq!(named(&same), ["ucx-tcp-unreachable-interface"]);
    let gone = pair(
        &(DECODE.version("1.23.0")
            + "E1130 10:00:00.000001   17 serdes.cpp:1] Deserialization of tag n failed for tag mismatch\n"),
        &refused(PREFILL, "10.0.0.2:4001"),
    );
    assert_eq!(named(&gone), ["ucx-pd-version-skew"]);
    let alone = judge(&[("p.log", refused(PREFILL, "10.0.0.2:4001"))]);
    assert_eq!(named(&alone), ["ucx-peer-not-listening"]);
}

/// A flood of one error is one finding, and nothing of it is kept twice.
#[test]
fn a_flood_folds() {
    let mut text = String::new();
    for n in 0..24_000 {
        write!(
            text,
            "{}{}",
            DECODE.ucx("ERROR", &format!("ibv_reg_mr(address=0x7f{n:06x}, length=151552, access=0xf) failed: Cannot allocate memory : Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)")),
            DECODE.ucx("ERROR", "Failed to allocate memory pool (name=ud_recv_skb) chunk: Input/output error")
        )
        .unwrap();
    }
    let seen = probe::recognise_bytes("a.log", text.as_bytes());
    assert!(seen.log.events.len() < 10, "{}", seen.log.events.len());
    assert_eq!(seen.log.dropped, 0);
    let report = judge(&[("a.log", text)]);
    assert_eq!(causes(&report), ["memlock-low"], "{:#?}", report.results);
}

/// The interface's name tells nothing; the log's own lanes do.
#[test]
fn devices_that_the_log_shows_to_be_interfaces_are_told() {
    let cause = "ucx-netdev-eth0";
    let text = DECODE.env("UCX_NET_DEVICES=fabric7")
        + &DECODE.lanes("inter-node", "rma_am(tcp/fabric7)  am(tcp/fabric7)");
    assert!(causes(&judge(&[("a.log", text)])).contains(&cause));
    let text = DECODE.env("UCX_NET_DEVICES=fabric7:1")
        + &DECODE.lanes(
            "inter-node",
            "rma(rc_mlx5/fabric7:1)  am(rc_mlx5/fabric7:1 tcp/eth0)",
        );
    assert!(!causes(&judge(&[("a.log", text)])).contains(&cause));
}

/// Errors of plugins and of old modules that nothing needs are no fault.
#[test]
fn noise_of_healthy_runs_is_no_fault() {
    let noise = [
        "E1130 10:00:00.000001   17 nixl_plugin_manager.cpp:122] Failed to load plugin from /x/libplugin_UCX_MO.so: libcudart.so.12: cannot open shared object file: No such file or directory\n".to_owned(),
        "E1130 10:00:00.000001   17 nixl_plugin_manager.cpp:122] Failed to load plugin from /x/libplugin_GDS.so: libcufile.so.0: cannot open shared object file: No such file or directory\n".to_owned(),
        DECODE.ucx("DIAG", "rdma_create_event_channel failed: No such device"),
        DECODE.ucx("DIAG", "failed to open CM on component rdmacm with status Input/output error"),
        DECODE.ucx("DIAG", "tcp_ep 0x561d0ed6d140 (state=CONNECTED): send(26) failed: Connection reset by remote peer"),
        "I1130 10:00:00.000001   17 config.cpp:69] Failed to modify UCX config: RC_GDA_NUM_CHANNELS=4: Invalid parameter\n".to_owned(),
        "2026-11-30 10:00:00 NIXL WARNING _api.py:306 Failed to load params for plugin GDS\n".to_owned(),
    ]
    .concat();
    let report = judge(&[("a.log", noise + &DECODE.table("inter-node", READ, &RC))]);
    assert_eq!(causes(&report), [] as [&str; 0], "{:#?}", report.results);
    assert_eq!(report.readiness, Readiness::Unproven);
}
