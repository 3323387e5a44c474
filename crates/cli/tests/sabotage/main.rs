//! One fault in a deployment of 64 workers is named with the right worker and cause, and nobody else is accused.
//!
//! Every fault is a line of `table`: a name, the worker, what is planted in the objects or in the file tree that the
//! stand-in serves, and the cause that must name it. The collecting script, the way into the cluster and the agent's answer
//! are those of a real run; nothing is planted in facts that were parsed already.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "a broken test should stop"
)]

mod deployment;
mod inside;
#[path = "../pods/support.rs"]
#[allow(dead_code)]
mod support;
mod table;
mod told;
mod worker;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use deployment::Deployment;
use inside::Fabric;
use support::{run, run_with};
use table::{Fault, Place};
use told::Told;

/// Lines of text that a person gets at most.
const LINES: usize = 100;

/// What the report can be printed as.
const FORMATS: [&str; 5] = ["text", "short", "json", "jsonl", "prometheus"];

/// What `check` says, live and again from what it saved, which is the same byte for byte in every format.
fn check(deployment: &Deployment, more: &[&str]) -> (support::Run, Told) {
    check_in(tempfile::tempdir().unwrap().path(), deployment, more)
}

fn check_in(dir: &Path, deployment: &Deployment, more: &[&str]) -> (support::Run, Told) {
    let bundle = dir.join(BUNDLE);
    let bundle = bundle.to_str().unwrap();
    let file = |when: &str, format: &str| dir.join(format!("{when}.{format}"));
    let all = |when: &str, command: &[&str]| -> Vec<String> {
        let mut words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["-o", "text"].map(str::to_owned));
        for format in FORMATS {
            let to = format!("{format}={}", file(when, format).display());
            words.extend(["-o".to_owned(), to]);
        }
        words
    };
    let mut words = all(
        "live",
        &["check", "llama", "-n", "serving", "--bundle", bundle],
    );
    words.extend(more.iter().map(|word| (*word).to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let live = run(&deployment.api, &words);
    assert!(live.code != 2, "{}", live.err);
    let words = all("again", &["replay", bundle]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let again = run_with(Path::new("/nonexistent"), &words);
    assert_eq!(
        (&live.out, live.code),
        (&again.out, again.code),
        "{}",
        again.err
    );
    let read = |when: &str, format: &str| std::fs::read_to_string(file(when, format)).unwrap();
    for format in FORMATS {
        let told = read("live", format);
        assert!(!told.is_empty(), "{format}");
        assert!(
            told == read("again", format),
            "as {format} the bundle tells something else"
        );
    }
    let told = Told::of(&read("live", "json"));
    (live, told)
}

/// What is saved of a run.
const BUNDLE: &str = "llama.tar.gz";

#[test]
fn nothing_is_wrong_with_the_deployment_as_it_is() {
    for fabric in [Fabric::InfiniBand, Fabric::Roce] {
        let deployment = Deployment::start(fabric, &[]);
        let (run, told) = check(&deployment, &[]);
        assert_eq!(told.bad, [], "{}", run.out);
        assert_eq!(told.readiness, "unproven", "{}", run.out);
        assert_eq!(run.code, 0, "{}", run.out);
        assert!(run.out.lines().count() < LINES, "{}", run.out);
        assert_eq!(told.probed, 64);
    }
}

#[test]
fn every_fault_is_named_with_its_worker() {
    let all = table::all();
    let wanted = std::env::var("SABOTAGE").ok();
    let chosen: Vec<&Fault> = all
        .iter()
        .filter(|fault| !fault.cause.is_empty())
        .filter(|fault| wanted.as_ref().is_none_or(|word| fault.name.contains(word)))
        .collect();
    if wanted.is_none() {
        let faults = all.iter().filter(|fault| !fault.cause.is_empty());
        let in_process = faults.clone().filter(|f| f.place == Place::Environment);
        assert!(faults.count() >= 40);
        assert!(in_process.count() >= 10);
    }
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(String::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some(fault) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begin = std::time::Instant::now();
                    // What is asserted for each is told with the name of the fault as well.
                    let told = std::panic::catch_unwind(|| named(fault));
                    if let Err(why) = told.unwrap_or_else(|_| Err("it panicked".to_owned())) {
                        let mut wrong = wrong.lock().unwrap();
                        let _infallible =
                            writeln!(wrong, "{} ({}): {why}", fault.name, fault.worker);
                    }
                    eprintln!("{:6.2} s {}", begin.elapsed().as_secs_f64(), fault.name);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Whether a fault is named as its line says.
fn named(fault: &Fault) -> Result<(), String> {
    let deployment = Deployment::start(fault.fabric, &[(fault.worker, fault.plant)]);
    // Faults in a log, or of an agent, are seen where these are looked at.
    let options = [fault.options, &["--depth", "all"]].concat();
    let (run, told) = check(&deployment, &options);
    let mut wrong = String::new();
    let mut say = |text: String| {
        let _infallible = writeln!(wrong, "\n    {text}");
    };
    let own = |pods: &[String]| matches!(pods, [one] if one == fault.worker);
    let hit = told
        .bad
        .iter()
        .chain(&told.skipped)
        .any(|bad| bad.cause == fault.cause && own(&bad.pods));
    if !hit {
        say(format!(
            "{} does not name it: {:#?} {:#?}",
            fault.cause, told.bad, told.skipped
        ));
    }
    if matches!(
        told.readiness.as_str(),
        "unproven" | "trusted" | "not-applicable"
    ) {
        say(format!("the verdict is {}", told.readiness));
    }
    for bad in &told.bad {
        if !own(&bad.pods) && !fault.pairs.contains(&bad.cause.as_str()) {
            say(format!("accuses others: {bad:?}"));
        }
    }
    let lines = run.out.lines().count();
    if lines >= LINES {
        say(format!("{lines} lines of text:\n{}", run.out));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Many of them at once, each in another worker, so that no two of them are alike.
#[test]
fn differences_that_do_no_harm_are_told_to_nobody() {
    let all = table::all();
    for fabric in [Fabric::InfiniBand, Fabric::Roce] {
        let planted: Vec<(&str, worker::Plant)> = all
            .iter()
            .filter(|fault| fault.cause.is_empty() && fault.fabric == fabric)
            .map(|fault| (fault.worker, fault.plant))
            .collect();
        let deployment = Deployment::start(fabric, &planted);
        let (run, told) = check(&deployment, &[]);
        assert_eq!(told.bad, [], "{}", run.out);
        assert_eq!(told.readiness, "unproven", "{}", run.out);
        assert!(run.out.lines().count() < LINES, "{}", run.out);
    }
}

/// The example that ships with the project, made again: `EXAMPLE=examples/disagg-live/llama.tar.gz cargo test --test
/// sabotage example` writes it. Two faults that nothing announces: a webhook or a start script has set one engine to TCP,
/// and a port of another worker trained at half its rate.
#[test]
fn the_example_shows_two_faults_of_a_deployment() {
    let dir = tempfile::tempdir().unwrap();
    let slow = |worker: &mut worker::Worker| worker.port(5, "rate", "200 Gb/sec (4X HDR)");
    let deployment = Deployment::start(
        Fabric::InfiniBand,
        &[
            ("decode-17", |w| w.process("UCX_TLS", "tcp,cuda_copy")),
            ("prefill-3", slow),
        ],
    );
    let (run, told) = check_in(dir.path(), &deployment, &[]);
    assert_eq!(run.code, 1, "{}", run.out);
    let named: Vec<(&str, &str)> = told
        .bad
        .iter()
        .filter_map(|bad| Some((bad.cause.as_str(), bad.pods.first()?.as_str())))
        .collect();
    assert!(
        named.contains(&("ucx-tls-tcp-only", "decode-17")),
        "{named:?}"
    );
    assert!(
        named.contains(&("ib-rate-degraded", "prefill-3")),
        "{named:?}"
    );
    if let Some(to) = std::env::var_os("EXAMPLE") {
        std::fs::copy(dir.path().join(BUNDLE), Path::new("../..").join(to)).unwrap();
    }
}
