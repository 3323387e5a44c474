//! What is seen while engines transfer by themselves: which interface, how much, and that it was KV only where the
//! engines' own connections and metrics say so.

use std::process::{Child, Command as Process, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use transfer::{Both, Command, Engine, Memory, Plan, Side, local, measure};

use crate::lab::{Lab, of, ways};
use crate::wheels::nixl;

/// `--observe` in the background.
fn begin(lab: &Lab, seconds: &str, way: &[&str]) -> Child {
    let before = lab.api.execs().len();
    let child = lab
        .between()
        .args(["--observe", seconds, "-o", "json"])
        .args(way)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Both looks and both first counters are done.
    assert!(lab.api.wait_for(Duration::from_mins(1), |api| {
        let execs = api.execs();
        execs.len() == before + 4 && execs.iter().all(|e| e.exit.is_some())
    }));
    child
}

fn end(child: Child) -> (Value, i32) {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let report = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (report, output.status.code().unwrap())
}

fn seen(report: &Value) -> &Value {
    let found = of(report, "nixl/observed-traffic");
    assert_eq!(found.len(), 1, "{report}");
    found[0]
}

/// A real transfer of NIXL that nobody asked the program for; gives its payload.
fn engines_transfer(lab: &Lab, path: &str) -> u64 {
    let mut plan = Plan::both_ways_of_engines(&[Memory::Host]);
    plan.legs.retain(|leg| leg.bytes == 16 << 20);
    let (name, value) = path.split_once('=').unwrap();
    let engine = Engine {
        environment: [
            (name.to_owned(), value.to_owned()),
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ]
        .into(),
        ..Engine::default()
    };
    let command = Command::new(&engine, plan.seconds);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let measured = runtime.block_on(async {
        let start = |side: Side| {
            let pod = format!("{}-0", side.as_str());
            let mut argv = vec![lab.kubectl()];
            argv.extend(["exec", "-i", &pod, "--"].map(str::to_owned));
            argv.extend(command.argv.iter().cloned());
            local::spawn(&argv).unwrap()
        };
        let (one, prefill) = start(Side::Prefill);
        let (two, decode) = start(Side::Decode);
        let engines = Both {
            prefill: engine.clone(),
            decode: engine.clone(),
        };
        let measured = measure(&plan, &engines, prefill, decode, plan.end()).await;
        drop((one, two));
        measured
    });
    assert_eq!(measured.stop, None);
    plan.total_bytes()
}

/// Bytes that an end counted on eth0.
fn bytes(report: &Value, pod: &str, sent: bool) -> u64 {
    let moved = report["observed"]["moved"].as_array().unwrap();
    let one = moved
        .iter()
        .find(|m| m["pod"] == pod && m["name"] == "eth0" && m["sent"] == sent)
        .unwrap_or_else(|| panic!("{report}"));
    assert_eq!(one["medium"], "interface");
    one["bytes"].as_u64().unwrap()
}

fn within_5_percent(counted: u64, payload: u64) -> bool {
    counted >= payload / 100 * 95 && counted <= payload / 100 * 105
}

#[test]
fn the_interface_that_carried_a_real_transfer_is_named_with_its_bytes() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    let begun = Instant::now();
    let child = begin(&lab, "30s", &[]);
    let payload = engines_transfer(&lab, &path);
    let took = begun.elapsed();
    let (report, code) = end(child);
    let check = seen(&report);
    let words = check["detail"].as_str().unwrap();
    assert!(
        took < Duration::from_secs(30),
        "the machine is too slow for this test: {took:?}"
    );
    // A program beside the engines moved it: nothing of theirs says that it was KV.
    assert_eq!(check["status"], "skipped", "{check}");
    assert_eq!(check["cause"], "nixl-observed-not-attributed");
    assert_eq!(check["grade"], "observed");
    assert_eq!(check["subject"]["device"], "eth0");
    for (pod, sent) in [("prefill-0", true), ("decode-0", false)] {
        let counted = bytes(&report, pod, sent);
        assert!(within_5_percent(counted, payload), "{counted} of {payload}");
    }
    assert!(
        words.contains("prefill sent") && words.contains("on eth0"),
        "{words}"
    );
    assert!(words.contains("whether it was KV is not known"), "{words}");
    let observed = &report["observed"];
    assert_eq!(
        (&observed["found"], &observed["over"]),
        (&"between".into(), &"interface".into())
    );
    assert_eq!(observed["kv"], false);
    let seconds = observed["milliseconds"].as_u64().unwrap() / 1000;
    assert!((29..60).contains(&seconds), "{observed}");
    // What else is wrong with these workers comes first: no RDMA device is there.
    assert_eq!(code, 1);
    assert_eq!(report["transfer_validated"], false);
    // Its engine is told, too.
    assert!(
        check["note"]
            .as_str()
            .unwrap()
            .contains("the engine of decode-0 (process 1)")
    );
}

#[test]
fn what_the_engines_themselves_moved_is_called_kv() {
    let Some(path) = nixl("1.5.1") else { return };
    let mut options = vec!["--engine", "--env", &path];
    for setting in [
        "ENGINE_PULLS=y",
        "NIXL_TELEMETRY_ENABLE=y",
        "NIXL_TELEMETRY_EXPORTER=prometheus",
    ] {
        options.extend(["--env", setting]);
    }
    let Some(lab) = Lab::up(&options) else { return };
    // Engines connect when they transfer first.
    lab.pull(16);
    let child = begin(&lab, "30s", &[]);
    let begun = Instant::now();
    lab.pull(256);
    assert!(
        begun.elapsed() < Duration::from_secs(28),
        "the machine is too slow for this test"
    );
    let (report, code) = end(child);
    let check = seen(&report);
    assert_eq!(check["status"], "warn", "{check}");
    assert_eq!(check["cause"], "nixl-observed-over-interface");
    assert_eq!(check["subject"]["device"], "eth0");
    let words = check["detail"].as_str().unwrap();
    assert!(words.contains("it was KV: the engines have"), "{words}");
    let observed = &report["observed"];
    assert_eq!(observed["kv"], true);
    let payload = 256 << 20;
    for (pod, sent) in [("prefill-0", true), ("decode-0", false)] {
        let counted = bytes(&report, pod, sent);
        assert!(within_5_percent(counted, payload), "{counted} of {payload}");
    }
    let engines = observed["engines"].as_array().unwrap();
    assert_eq!(engines.len(), 2);
    for engine in engines {
        assert!(
            engine["connections_to_peer"].as_u64().unwrap() > 0,
            "{engine}"
        );
    }
    let decode = engines.iter().find(|e| e["pod"] == "decode-0").unwrap();
    assert_eq!(decode["kv_bytes"], payload, "{decode}");
    assert_eq!(decode["kv_metric"], "agent_rx_bytes_total");
    assert_ne!(report["readiness"], "trusted");
    assert_eq!(report["coverage"]["pairs_proven"], 0);
    // What else is wrong with these workers comes first: no RDMA device is there.
    assert_eq!(code, 1, "{report}");
}

#[test]
fn without_traffic_nothing_is_known() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    for way in ways() {
        let before = lab.api.execs().len();
        let (report, _) = end(begin(&lab, "1s", &way));
        let check = seen(&report);
        assert_eq!(check["status"], "skipped");
        assert_eq!(check["cause"], "nixl-observed-no-traffic", "{check}");
        assert!(
            check["detail"]
                .as_str()
                .unwrap()
                .starts_with("no traffic in")
        );
        assert_eq!(report["transfer_validated"], false);
        assert_eq!(report["observed"]["found"], "nothing");
        assert_eq!(report["observed"]["moved"], serde_json::json!([]));
        // A look and two small ones in each, and nothing stays.
        assert_eq!(lab.api.execs().len() - before, 6);
        for pod in ["prefill-0", "decode-0"] {
            assert_eq!(lab.beside(pod), Vec::<String>::new());
        }
    }
    // One end alone.
    let output = lab
        .program()
        .args([
            "nixl",
            "-n",
            "lab",
            "--pod",
            "decode-0",
            "--observe",
            "1s",
            "-o",
            "json",
        ])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let check = seen(&report);
    assert_eq!(check["status"], "skipped", "{check}");
    assert!(check["fix"].as_str().unwrap().contains("--peer"));
    assert_eq!(report["observed"]["found"], "one-end");
}

#[test]
fn other_traffic_is_not_called_kv() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    // 64 MiB from the decode to the prefill worker: answers, logs, anything.
    let send = |from: &str, to: &str, address: &str| {
        let script = format!(
            "import socket,sys\ns=socket.create_server(('{address}',7777))\nprint('ready',flush=True)\nc,_=s.accept()\nwhile c.recv(1<<20): pass"
        );
        let kubectl = lab.kubectl();
        let mut sink = Process::new(&kubectl)
            .args(["exec", "-i", to, "--", "python3", "-u", "-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = [0; 5];
        std::io::Read::read_exact(sink.stdout.as_mut().unwrap(), &mut line).unwrap();
        let script = format!(
            "import socket\nc=socket.create_connection(('{address}',7777))\nfor _ in range(64): c.sendall(bytes(1<<20))"
        );
        lab.exec(from, &["python3", "-c", &script]);
        sink.wait().unwrap();
    };
    let child = begin(&lab, "12s", &[]);
    send("decode-0", "prefill-0", "192.0.2.1");
    let (report, _) = end(child);
    let check = seen(&report);
    assert_eq!(check["status"], "skipped", "{check}");
    // It went the wrong way, so that nothing of it can be KV.
    assert_eq!(check["cause"], "nixl-observed-no-traffic");
    // The right way over the right interface, and still nobody says that it was KV.
    let child = begin(&lab, "12s", &[]);
    send("prefill-0", "decode-0", "192.0.2.2");
    let (report, _) = end(child);
    let check = seen(&report);
    let words = check["detail"].as_str().unwrap();
    assert!(
        words.contains("eth0") && words.contains("whether it was KV is not known"),
        "{words}"
    );
    assert_eq!(check["status"], "skipped");
    assert_eq!(check["cause"], "nixl-observed-not-attributed");
    assert_eq!(check["grade"], "observed");
    assert_eq!(report["observed"]["kv"], false);
    assert_ne!(report["readiness"], "degraded");
    assert_eq!(report["coverage"]["pairs_tested"], 0);
    assert_eq!(report["coverage"]["pairs_proven"], 0);
}
