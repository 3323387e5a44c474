//! How programs end, whatever happens in them.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use transfer::{
    Carrier, Command, LegRecord, Measurement, Memory, PROGRAM, Plan, Side, attribute, local,
};

use crate::pair::{With, can, engine, measured, plan, run};

const HOST: &[Memory] = &[Memory::Host];

#[test]
fn moves_and_verifies() {
    if !can() {
        return;
    }
    let measured = measured(&plan(HOST), With::default());
    assert_eq!(measured.stop, None);
    assert!(measured.legs.iter().all(LegRecord::complete));
    for answer in attribute(&measured, None) {
        assert!(answer.verified);
        assert!(matches!(answer.carrier, Carrier::SharedMemory { .. }));
    }
    for side in Side::ALL {
        let end = measured.ends.of(side);
        assert!(end.finished);
        // What was printed without a mark is output, on whichever stream.
        assert!(end.output.contains("on stdout, without a mark"));
        assert!(!end.output.contains("@check-interconnect@"));
    }
}

/// Transfers of the smaller size have places of their own in the buffer of the larger.
fn small_and_large() -> Plan {
    let mut plan = plan(HOST);
    let large = plan.legs.clone();
    for leg in &mut plan.legs {
        leg.bytes = 30_000;
        leg.repeats = 8;
    }
    plan.legs.extend(large);
    plan
}

#[test]
fn small_transfers_follow_each_other_and_each_is_verified() {
    if !can() {
        return;
    }
    // Six at a time, and three more.
    let plan = small_and_large();
    assert_eq!(plan.buffer() / 30_000, 6);
    let measured = measured(&plan, With::default());
    assert_eq!(measured.stop, None);
    for record in &measured.legs {
        assert!(record.complete(), "{record:?}");
        assert_eq!(record.seconds.len(), record.leg.repeats as usize);
    }
    for fault in ["corrupt", "lost"] {
        let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", fault)];
        let measured = measured_with(&plan, settings);
        let of_decode = |record: &&LegRecord| record.leg.initiator == Side::Decode;
        for record in measured.legs.iter().filter(of_decode) {
            assert_eq!(
                (record.transfers, record.verified),
                (record.leg.transfers(), 0)
            );
        }
    }
}

fn measured_with(plan: &Plan, decode: &[(&str, &str)]) -> Measurement {
    measured(
        plan,
        With {
            decode,
            ..With::default()
        },
    )
}

#[test]
fn content_that_does_not_arrive_is_no_success() {
    if !can() {
        return;
    }
    for fault in ["corrupt", "lost"] {
        let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", fault)];
        let measured = measured(
            &plan(HOST),
            With {
                decode: settings,
                ..With::default()
            },
        );
        assert_eq!(measured.stop, None);
        let answers = attribute(&measured, None);
        // Decode reads, prefill writes.
        assert!(!answers[0].verified, "{fault}");
        assert_eq!(answers[0].grade, None);
        assert!(answers[0].sentence().contains("did NOT arrive"));
        assert!(answers[1].verified, "{fault}");
    }
}

#[test]
fn without_a_table_nothing_is_known() {
    if !can() {
        return;
    }
    let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", "no-table")];
    let measured = measured(
        &plan(HOST),
        With {
            prefill: settings,
            decode: settings,
        },
    );
    for answer in attribute(&measured, None) {
        assert!(answer.verified);
        assert_eq!(answer.carrier, Carrier::Unknown);
        assert_eq!(answer.grade, None);
        assert!(!answer.notes.is_empty());
    }
}

#[test]
fn a_claim_of_rdma_that_nothing_supports_is_not_proven() {
    if !can() {
        return;
    }
    let settings: &[(&str, &str)] = &[("UCX_FAKE_CARRIER", "rc_mlx5/mlx5_0:1")];
    let measured = measured(
        &plan(HOST),
        With {
            prefill: settings,
            decode: settings,
        },
    );
    for answer in attribute(&measured, None) {
        assert!(!answer.counts(), "{answer:#?}");
        assert_ne!(answer.grade, Some(model::Grade::Proven));
    }
}

#[test]
fn a_call_that_never_returns_is_ended_and_named() {
    if !can() {
        return;
    }
    let begin = Instant::now();
    let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", "hang")];
    let measured = measured(
        &plan(HOST),
        With {
            decode: settings,
            ..With::default()
        },
    );
    let stop = measured.stop.expect("it hangs");
    assert_eq!(
        (stop.side, stop.step.as_deref()),
        (Side::Decode, Some("connect"))
    );
    // The parent process answered, though the child holds the interpreter's lock.
    assert!(measured.ends.decode.looked.is_some());
    assert!(
        begin.elapsed() < Duration::from_secs(20),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn refusals_and_crashes_are_told() {
    if !can() {
        return;
    }
    for (fault, word) in [("refuse", "refused as told"), ("crash", "signal 11")] {
        let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", fault)];
        let measured = measured(
            &plan(HOST),
            With {
                prefill: settings,
                ..With::default()
            },
        );
        let stop = measured.stop.expect("it stops");
        assert_eq!(
            (stop.side, stop.step.as_deref()),
            (Side::Prefill, Some("backend"))
        );
        assert!(stop.why.contains(word), "{}", stop.why);
        assert!(measured.legs.is_empty());
    }
}

#[test]
fn floods_are_left_out() {
    if !can() {
        return;
    }
    let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", "flood")];
    let measured = measured(
        &plan(HOST),
        With {
            prefill: settings,
            ..With::default()
        },
    );
    assert_eq!(measured.stop, None);
    let end = measured.ends.of(Side::Prefill);
    assert!(end.left_out > 23_000, "{}", end.left_out);
    assert!(end.output.len() < 100_000);
    // What is wanted came through.
    assert!(end.output.contains("ucp_put"));
    assert_eq!(measured.ends.decode.left_out, 0);
}

#[test]
fn without_nixl_it_says_so() {
    if !can() {
        return;
    }
    let settings: &[(&str, &str)] = &[("PYTHONPATH", "/nonexistent")];
    let measured = measured(
        &plan(HOST),
        With {
            decode: settings,
            ..With::default()
        },
    );
    let stop = measured.stop.expect("there is none");
    assert_eq!(stop.step.as_deref(), Some("import"));
    assert!(stop.why.contains("nixl"), "{}", stop.why);
}

#[test]
fn without_python_it_says_so() {
    let settings: &[(&str, &str)] = &[("PATH", "/nonexistent")];
    let measured = measured(
        &plan(HOST),
        With {
            prefill: settings,
            decode: settings,
        },
    );
    let stop = measured.stop.expect("there is none");
    assert!(stop.why.contains("it did not start"), "{}", stop.why);
}

/// Starts one, gives it the program and a plan, and waits until NIXL is loaded.
async fn started(seconds: u32) -> (tokio::process::Child, transfer::Streams, String) {
    let command = Command::new(&engine(&[]), seconds);
    let (child, mut streams) = local::spawn(&command.argv).expect("it starts");
    let start = format!(
        "{}\n{PROGRAM}{{\"name\": \"alone\", \"memory\": [\"host\"], \"bytes\": 4096, \"seconds\": {seconds}}}\n",
        PROGRAM.len()
    );
    streams
        .stdin
        .write_all(start.as_bytes())
        .await
        .expect("it reads");
    streams.stdin.flush().await.expect("it reads");
    let mut said = String::new();
    let mut buffer = [0; 4096];
    while !said.contains("\"ready\"") {
        let count = streams.stdout.read(&mut buffer).await.expect("it answers");
        assert!(count > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(
            buffer.get(..count).unwrap_or_default(),
        ));
    }
    (child, streams, said)
}

#[test]
fn ends_with_its_stdin() {
    if !can() {
        return;
    }
    run(async {
        let (mut child, streams, _) = started(100).await;
        drop(streams.stdin);
        let ended = tokio::time::timeout(Duration::from_secs(5), child.wait()).await;
        assert!(ended.is_ok(), "it goes on without its stdin");
    });
}

#[test]
fn ends_when_its_time_is_over() {
    if !can() {
        return;
    }
    run(async {
        let (mut child, mut streams, _) = started(2).await;
        let ended = tokio::time::timeout(Duration::from_secs(8), child.wait()).await;
        assert!(ended.is_ok(), "it goes on after its time");
        let mut rest = String::new();
        streams
            .stdout
            .read_to_string(&mut rest)
            .await
            .expect("text");
        assert!(rest.contains("\"deadline\""), "{rest}");
    });
}

#[test]
fn leaves_no_process_and_no_file() {
    if !can() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().display().to_string();
    let settings: &[(&str, &str)] = &[("HOME", &name)];
    let measured = measured(
        &plan(HOST),
        With {
            prefill: settings,
            decode: settings,
        },
    );
    assert_eq!(measured.stop, None);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        0
    );
    // Python would keep what it compiled beside the modules.
    let fake = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/fake/nixl");
    assert!(!fake.join("__pycache__").exists());
}

#[test]
fn keeps_to_the_rate() {
    if !can() {
        return;
    }
    let mut plan = plan(HOST);
    // Six transfers of 200 kB at 1 MB/s.
    plan.bytes_per_second = Some(1_000_000);
    let begin = Instant::now();
    let measured = measured(&plan, With::default());
    assert_eq!(measured.stop, None);
    assert!(
        begin.elapsed() >= Duration::from_millis(1150),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_crash_after_the_work_is_no_failure() {
    if !can() {
        return;
    }
    let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", "crash-late")];
    let measured = measured(
        &plan(HOST),
        With {
            prefill: settings,
            decode: settings,
        },
    );
    assert_eq!(measured.stop, None);
    assert!(measured.legs.iter().all(LegRecord::complete));
    assert!(attribute(&measured, None).iter().all(|a| a.grade.is_some()));
    assert_eq!(measured.ends.prefill.signal, Some(11));
}

#[test]
fn a_transfer_that_never_completes_is_given_up() {
    if !can() {
        return;
    }
    let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", "slow")];
    let measured = measured(
        &plan(HOST),
        With {
            decode: settings,
            ..With::default()
        },
    );
    let stop = measured.stop.as_ref().expect("it is given up");
    assert_eq!(stop.side, Side::Decode);
    assert_eq!(stop.step.as_deref(), Some("READ host host 200000"));
    let answers = attribute(&measured, None);
    assert!(!answers[0].verified && answers[0].grade.is_none());
}

#[test]
fn what_never_answers_and_never_ends_takes_no_more_than_the_time() {
    run(async {
        let engines = transfer::Both {
            prefill: engine(&[]),
            decode: engine(&[]),
        };
        let mut plan = plan(HOST);
        plan.seconds = 2;
        // Neither is read, and neither ends: a connection that hangs.
        let (first, _held) = silent();
        let (second, _held_too) = silent();
        let begin = Instant::now();
        let measured = transfer::measure(&plan, &engines, first, second, plan.end()).await;
        let took = begin.elapsed();
        assert!(took < Duration::from_secs(4), "{took:?}");
        let stop = measured.stop.expect("nothing answered");
        assert!(stop.why.contains("in time"), "{}", stop.why);
    });
}

/// Streams of nobody.
fn silent() -> (transfer::Streams, [tokio::io::DuplexStream; 3]) {
    let [(stdin, one), (stdout, two), (stderr, three)] = [64, 64, 64].map(tokio::io::duplex);
    let streams = transfer::Streams {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
    };
    (streams, [one, two, three])
}

#[test]
fn both_end_when_the_measurement_is_dropped() {
    if !can() {
        return;
    }
    run(async {
        let settings: &[(&str, &str)] = &[("UCX_FAKE_FAULT", "slow")];
        let engines = transfer::Both {
            prefill: engine(settings),
            decode: engine(settings),
        };
        let plan = plan(HOST);
        let command = Command::new(&engines.decode, 100);
        let (mut one, first) = local::spawn(&command.argv).expect("it starts");
        let (mut two, second) = local::spawn(&command.argv).expect("it starts");
        // As Ctrl-C does in the middle of a transfer.
        let cut = tokio::time::timeout(
            Duration::from_secs(2),
            transfer::measure(&plan, &engines, first, second, plan.end()),
        );
        assert!(cut.await.is_err());
        for child in [&mut one, &mut two] {
            let ended = tokio::time::timeout(Duration::from_secs(5), child.wait()).await;
            assert!(ended.is_ok(), "it goes on though nobody listens");
        }
    });
}
