//! Each thing that can be wrong with one pod, inside a deployment of eight workers: the rest of the run is complete, the
//! verdict counts what is missing, and a bundle tells the same.

use std::path::Path;
use std::time::Duration;

use stand_in::Fault;

use crate::cases::cases;
use crate::deployment::member;
use crate::support::{about, names, run, run_with, serving, tree_of};

const BAD: &str = "decode-3";
const GOOD: [&str; 7] = [
    "prefill-0",
    "prefill-1",
    "decode-0",
    "decode-1",
    "decode-2",
    "decode-4",
    "decode-5",
];

#[test]
fn one_bad_worker_of_eight_is_named_and_the_rest_is_complete() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let root = |name: &str| {
        if name.starts_with('p') {
            prefill.root()
        } else {
            decode.root()
        }
    };
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let bundle = bundle.to_str().unwrap();
    let mut odd = Vec::new();
    for case in cases(&member(BAD, &decode.root()), BAD) {
        let mut scenario = serving();
        for name in GOOD {
            scenario = scenario.pod(member(name, &root(name)));
        }
        scenario = scenario.pod(case.pod.clone());
        if let Some(fault) = &case.fault {
            scenario = scenario.fault(fault.clone());
        }
        let api = scenario.start().unwrap();
        let file = |format: &str| dir.path().join(format).to_str().unwrap().to_owned();
        let more = ["text", "short", "jsonl", "prometheus"]
            .map(|format| format!("{format}={}", file(format)));
        let words = [
            "check",
            "llama",
            "-n",
            "serving",
            "-o",
            "json",
            "-o",
            &more[0],
            "-o",
            &more[1],
            "-o",
            &more[2],
            "-o",
            &more[3],
            "--timeout",
            "9s",
            "--request-timeout",
            "4s",
            "--bundle",
            bundle,
        ];
        let live = run(&api, &words);
        let report = live.json();
        let mut complain = |what: &str| odd.push(format!("{}: {what}", case.name));
        let bad = about(&report, BAD);
        if !case.causes.iter().any(|cause| names(&bad, cause)) {
            complain("its cause is not named");
        }
        for good in GOOD {
            let checks = about(&report, good);
            if checks.len() < 10 || names(&checks, case.causes[0]) {
                complain(&format!("{good} is not judged as it is: {}", checks.len()));
            }
        }
        if report["coverage"]["workers_found"] != 8 {
            complain(&format!("found {}", report["coverage"]["workers_found"]));
        }
        if !report["verdict"].as_str().unwrap().contains(" of 8 pods") {
            complain(&format!(
                "the verdict does not count: {}",
                report["verdict"]
            ));
        }
        if live.code != 3 {
            complain(&format!("exit code {}", live.code));
        }
        for format in ["json", "text", "short", "jsonl", "prometheus"] {
            let again = run_with(Path::new("/nonexistent"), &["replay", bundle, "-o", format]);
            let told = match format {
                "json" => live.out.clone(),
                _ => std::fs::read_to_string(file(format)).unwrap(),
            };
            if again.out != told {
                complain(&format!("its bundle tells something else as {format}"));
            }
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
fn a_slow_worker_of_eight_is_judged_as_the_others() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let mut scenario = serving();
    for name in GOOD.iter().chain(&[BAD]) {
        let tree = if name.starts_with('p') {
            &prefill
        } else {
            &decode
        };
        scenario = scenario.pod(member(name, &tree.root()));
    }
    let api = scenario.start().unwrap();
    let words = ["check", "llama", "-n", "serving", "-o", "json"];
    let soon = run(&api, &words);
    api.fault(Fault::exec().name(BAD).slow(Duration::from_secs(2)));
    let late = run(&api, &words);
    assert_eq!(late.json()["coverage"]["workers_probed"], 8);
    assert_eq!(late.json()["checks"], soon.json()["checks"]);
    assert_eq!(late.code, soon.code);
}
