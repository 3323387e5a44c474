//! `nixl --from`: exit codes, what cannot be read, secrets, both sides.

use crate::support::{Dir, FORMATS, Run, assert_harmless};

/// A line of a process as UCX writes it.
fn ucx(host: &str, text: &str) -> String {
    format!("[1790000000.000001] [{host}:7    :0] {text}\n")
}

fn table(host: &str, operation: &str, transport: &str) -> String {
    let rule = ucx(host, "  +--------+-----------+---------+");
    let mut out = rule.clone();
    for row in [
        "  | agent inter-node cfg#1 |".to_owned(),
        format!("  | {operation} |"),
    ] {
        out += &ucx(host, &row);
    }
    out += &rule;
    out += &ucx(host, "  | Range | Description | Config |");
    out += &rule;
    out += &ucx(host, &format!("  | 0..inf | zero-copy | {transport} |"));
    out + &rule
}

const READ: &str = "remote memory read by ucp_get*(multi) into cuda/dev[0] memory from cuda/dev[0]";
const WRITE: &str = "remote memory write by ucp_put*(multi) from cuda/dev[0] memory to cuda/dev[0]";

#[test]
fn the_exit_code_says_what_the_logs_show() {
    let dir = Dir::new();
    dir.file("rdma.log", table("decode-0", READ, "rc_mlx5/mlx5_0:1"));
    dir.file("tcp.log", table("decode-0", READ, "tcp/eth0"));
    dir.file(
        "lanes.log",
        ucx("decode-0", "  ucp_worker.c:1 UCX  INFO    agent inter-node cfg#1 rma(rc_mlx5/mlx5_0:1)  am(rc_mlx5/mlx5_0:1)"),
    );
    for format in FORMATS {
        dir.run(["nixl", "--from", "rdma.log", "-o", format])
            .exits(0)
            .says(&["rc_mlx5/mlx5_0:1", "unproven"]);
        dir.run(["nixl", "--from", "tcp.log", "-o", format])
            .exits(1)
            .says(&["nixl-proto-table", "tcp/eth0", "blocked"]);
        dir.run(["nixl", "--from", "lanes.log", "-o", format])
            .exits(3)
            .says(&["inconclusive", "UCX_PROTO_INFO=y"]);
    }
    dir.run(["nixl", "--from", "rdma.log", "--fail-on", "unproven"])
        .exits(1);
    dir.run(["nixl", "--from", "tcp.log", "--fail-on", "never"])
        .exits(0);
    let report = dir.run(["nixl", "--from", "rdma.log", "-o", "json"]).json();
    assert_eq!(report["command"], "nixl");
    assert_eq!(report["transfer_validated"], false);
    let out = dir.run(["nixl", "--from", "tcp.log", "gone.log"]);
    out.exits(2).says(&["tcp/eth0"]);
    assert!(out.stderr.contains("gone.log"), "{out}");
}

#[test]
fn standard_input_and_both_sides_in_one_stream() {
    let dir = Dir::new();
    let both: String = table("decode-0", READ, "rc_mlx5/mlx5_0:1")
        .lines()
        .zip(table("prefill-0", WRITE, "tcp/eth0").lines())
        .map(|(one, other)| format!("{one}\n{other}\n"))
        .collect();
    Run::new(&dir, ["nixl", "--from", "-"])
        .stdin(both)
        .go()
        .exits(0)
        .says(&["2 sides", "decode-0: READ (get)", "rc_mlx5/mlx5_0:1"]);
    Run::new(&dir, ["nixl", "--from", "-"])
        .stdin("")
        .go()
        .exits(3)
        .says(&["it is empty"]);
}

/// Settings that leave only TCP are a failure where the process is known to move KV.
#[test]
fn the_role_decides_where_a_setting_alone_is_shown() {
    let dir = Dir::new();
    dir.file(
        "a.log",
        ucx(
            "x-0",
            "  parser.c:1 UCX  INFO  UCX_* env variables: UCX_TLS=tcp UCX_LOG_LEVEL=info",
        ),
    );
    dir.run(["nixl", "--from", "a.log"]).exits(0).says(&[
        "degraded",
        "ucx-tls-tcp-only",
        "what carried the payload is not shown",
    ]);
    dir.run(["nixl", "--from", "a.log", "--role", "decode"])
        .exits(1)
        .says(&["blocked"]);
}

#[test]
fn logs_are_data() {
    let dir = Dir::new();
    let secret = "Zq9hunter2xWv7";
    let mut text = String::new();
    for line in [
        format!("sock.c:1 UCX  ERROR connect(fd=5, dest_addr=10.0.0.1:7) failed: Connection refused HF_TOKEN={secret}"),
        format!("select.c:1 UCX  ERROR   no active messages transport to <no debug data>: tcp/eth0 - not available --api-key {secret}"),
        format!("parser.c:1 UCX  INFO  UCX_* env variables: UCX_TLS=tcp MY_SECRET={secret}"),
        format!("parser.c:1 UCX  WARN  unused environment variable: UCX_X (maybe: {secret}=?) password={secret}"),
        "sock.c:1 UCX  ERROR connect(fd=5, dest_addr=\u{1b}]0;x\u{7}\u{202e}\u{1b}[2J10.0.0.2:7) failed: No route to host".to_owned(),
    ] {
        text += &ucx("decode-0", &line);
    }
    text += &format!("HF_TOKEN={secret}\nvllm serve --api-key {secret} --kv-transfer-config x\n");
    text += &format!(
        "E1130 10:00:00.000001 7 backend_plugin.h:102] Failed to create engine: Bearer {secret}\n"
    );
    dir.file("a.log", text);
    for format in FORMATS {
        let out = dir.run(["nixl", "--from", "a.log", "-v", "-o", format]);
        out.exits(1);
        assert!(!out.stdout.contains("hunter2"), "{out}");
        assert_harmless(format, &out.stdout);
    }
}

/// A line without an end is cut, and what comes after it is read.
#[test]
fn a_line_without_end_does_no_harm() {
    let dir = Dir::new();
    let mut text = "x".repeat(5 << 20);
    text.push('\n');
    text += &table("decode-0", READ, "tcp/eth0");
    dir.file("a.log", text);
    dir.run(["nixl", "--from", "a.log"]).exits(1);
}
