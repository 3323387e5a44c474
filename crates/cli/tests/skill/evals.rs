//! The evals: their form, and their commands with what they must answer.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::tools::{NO_KUBECONFIG, PROGRAM, Run, VARIABLE, has_python, no_cluster, skill};

fn evals() -> Vec<Value> {
    let text = fs::read_to_string(skill().join("evals/evals.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["skill_name"], "dynamo-interconnect-check");
    value["evals"].as_array().unwrap().clone()
}

fn texts(value: &Value) -> Vec<&str> {
    let all = value
        .as_array()
        .unwrap_or_else(|| panic!("a list: {value}"));
    all.iter().map(|v| v.as_str().unwrap()).collect()
}

#[test]
fn have_their_form() {
    let evals = evals();
    let names: BTreeSet<&str> = evals.iter().map(|e| e["name"].as_str().unwrap()).collect();
    let ids: BTreeSet<u64> = evals.iter().map(|e| e["id"].as_u64().unwrap()).collect();
    assert_eq!((names.len(), ids.len()), (evals.len(), evals.len()));
    for eval in &evals {
        assert!(!eval["prompt"].as_str().unwrap().is_empty());
        assert!(!eval["expected_output"].as_str().unwrap().is_empty());
        assert!(!texts(&eval["must_not_say"]).is_empty(), "{eval}");
        let right = eval["use"].as_bool().unwrap();
        assert_eq!(eval["command"].is_string(), right, "{eval}");
        assert_eq!(texts(&eval["must_say"]).is_empty(), !right, "{eval}");
        for file in eval["files"].as_array().into_iter().flatten() {
            assert!(skill().join(file.as_str().unwrap()).is_file(), "{file}");
        }
    }
    for name in [
        "trust-before-benchmark",
        "slow-disagg-fast-agg",
        "multi-node-readiness",
        "missing-exec-rights",
        "deploy-a-recipe",
        "crashing-pods",
        "router-change",
    ] {
        assert!(names.contains(name), "{name}");
    }
}

#[test]
fn commands_answer_as_expected() {
    if !has_python() {
        return;
    }
    let mut ran = 0;
    for eval in evals().iter().filter(|e| e["use"] == true) {
        let name = eval["name"].as_str().unwrap();
        let command = eval["command"].as_str().unwrap();
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(skill())
            .env("KUBECONFIG", NO_KUBECONFIG)
            .env(VARIABLE, PROGRAM)
            .output()
            .unwrap();
        let run = Run::of(&output);
        let expect = &eval["expect"];
        if let Some(command) = expect["no_cluster"].as_str() {
            no_cluster(&run, command);
            ran += 1;
            continue;
        }
        let report = run.report();
        assert_eq!(Some(i64::from(run.code)), expect["exit"].as_i64(), "{name}");
        assert_eq!(
            Some(report.readiness.as_str()),
            expect["readiness"].as_str(),
            "{name}"
        );
        assert!(!report.transfer_validated, "{name}");
        let causes: BTreeSet<&str> = report
            .checks
            .iter()
            .filter(|c| c.status != model::Status::Ok)
            .filter_map(|c| c.cause.as_deref())
            .collect();
        let expected = texts(&expect["causes"]);
        for cause in &expected {
            assert!(
                causes.contains(cause),
                "{name}: {cause} is not among {causes:?}"
            );
        }
        assert_eq!(expected.is_empty(), causes.is_empty(), "{name}: {causes:?}");
        for text in texts(&expect["contains"]) {
            assert!(
                run.out.contains(text),
                "{name}: '{text}' is not in {}",
                run.out
            );
        }
        ran += 1;
    }
    assert!(ran >= 10, "{ran}");
}
