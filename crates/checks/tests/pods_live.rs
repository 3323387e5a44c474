//! What engine processes have, in place of what their pods' specs say.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::type_complexity,
    reason = "a broken test should stop"
)]

#[path = "pods/support.rs"]
mod support;

use checks::{Around, ProbedPod, judge_pods};
use model::{Grade, Readiness, Reason, Report, Status};
use serde_json::{Value, json};
use support::{DECODE, Inside, PREFILL, details, pod, probed, told};

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_pods(
        "node",
        pods,
        &Around::default(),
        vec!["-n serving".to_owned()],
    )
}

/// A prefill pod whose engine has these variables, beside what the spec sets.
fn with(spec: &[(&str, &str)], environment: &[&str]) -> ProbedPod {
    let inside = Inside::new(PREFILL);
    let mut all = vec!["PATH=/usr/bin"];
    all.extend(environment);
    inside.engine(87, PREFILL, &all);
    let mut object = pod("qwen-prefill-0", "prefill");
    env(&mut object, spec);
    probed(&object, Ok(inside.facts()))
}

fn env(object: &mut Value, spec: &[(&str, &str)]) {
    let list: Vec<Value> = spec
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    object["spec"]["containers"][0]["env"] = list.into();
}

#[test]
fn the_process_is_judged_and_not_the_spec() {
    let report = judge(vec![with(
        &[("UCX_TLS", "rc,cuda_copy")],
        &["UCX_TLS=tcp,cuda_copy"],
    )]);
    assert_eq!(told(&report), [(Status::Fail, "ucx-tls-tcp-only")]);
    assert_eq!(report.readiness, Readiness::Blocked);
    let fail = report
        .results
        .iter()
        .find(|r| r.cause == Some("ucx-tls-tcp-only"))
        .unwrap();
    assert_eq!(fail.grade, Grade::Observed);
    assert_eq!(
        fail.sources.first().map(|s| &*s.place.file),
        Some("pod qwen-prefill-0: /proc/87/environ")
    );
    // Who reads the spec would not believe it.
    let noted = report
        .results
        .iter()
        .find(|r| r.name == "pod/live-settings")
        .unwrap();
    assert!(
        noted.detail.contains("UCX_TLS is tcp,cuda_copy"),
        "{}",
        noted.detail
    );
    assert!(noted.note.as_deref().unwrap().contains("says rc,cuda_copy"));
    assert_eq!(noted.status, Status::Ok);
}

#[test]
fn a_spec_that_the_process_mends_is_no_fault() {
    let report = judge(vec![with(
        &[("UCX_TLS", "tcp")],
        &["UCX_TLS=rc,cuda_copy,cuda_ipc"],
    )]);
    assert_eq!(told(&report), []);
    assert!(
        report
            .results
            .iter()
            .any(|r| r.name == "env/ucx-tls" && r.status == Status::Ok)
    );
}

#[test]
fn what_agrees_is_not_told_as_different() {
    let report = judge(vec![with(
        &[("UCX_TLS", "rc,cuda_copy")],
        &["UCX_TLS=rc,cuda_copy"],
    )]);
    assert_eq!(details(&report, "pod/live-settings"), Vec::<&str>::new());
    assert_eq!(told(&report), []);
    // Only the process has it: the image, a script or a Secret.
    let report = judge(vec![with(&[], &["UCX_TLS=rc,cuda_copy", "PYTHONPATH=/x"])]);
    assert_eq!(
        details(&report, "pod/live-settings"),
        ["set in the engine process and not in the pod's spec: UCX_TLS=rc,cuda_copy"]
    );
    // Only the spec has it.
    let report = judge(vec![with(&[("UCX_TLS", "tcp")], &[])]);
    assert_eq!(told(&report), []);
    assert_eq!(
        details(&report, "pod/live-settings"),
        ["UCX_TLS is not set in the engine process"]
    );
}

#[test]
fn a_closed_environment_leaves_the_spec_and_says_so() {
    let inside = Inside::new(PREFILL);
    // It holds nothing that the collector could take for an environment.
    inside.tree.file("/proc/87/environ", "");
    let mut object = pod("qwen-prefill-0", "prefill");
    env(&mut object, &[("UCX_TLS", "rc,cuda_copy")]);
    let report = judge(vec![probed(&object, Ok(inside.facts()))]);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    let line = report
        .results
        .iter()
        .find(|r| r.name == "pod/live-settings")
        .unwrap();
    assert!(
        line.detail.starts_with("the pod's spec is judged"),
        "{}",
        line.detail
    );
    assert!(!line.required);
    let tls = report
        .results
        .iter()
        .find(|r| r.name == "env/ucx-tls")
        .unwrap();
    assert_eq!(tls.grade, Grade::Declared);
}

#[test]
fn a_pod_without_an_engine_process_is_judged_by_its_spec() {
    let inside = Inside::new(PREFILL);
    std::fs::remove_dir_all(inside.tree.root().join("proc/87")).unwrap();
    let mut object = pod("qwen-prefill-0", "prefill");
    env(&mut object, &[("UCX_TLS", "tcp,cuda_copy")]);
    let report = judge(vec![probed(&object, Ok(inside.facts()))]);
    assert_eq!(told(&report), [(Status::Fail, "ucx-tls-tcp-only")]);
    let line = report
        .results
        .iter()
        .find(|r| r.name == "pod/live-settings")
        .unwrap();
    assert_eq!(line.reason, Some(Reason::NotRunning));
}

#[test]
fn nothing_else_of_a_process_gets_out() {
    let report = judge(vec![with(
        &[("API_TOKEN", "hunter2"), ("NOTES", "hunter2")],
        &["HF_TOKEN=hunter2", "NOTES=hunter2", "UCX_TLS=rc,cuda_copy"],
    )]);
    let all = format!("{report:?}");
    assert!(!all.contains("hunter2"));
}

#[test]
fn a_pods_own_address_is_not_a_fixed_one() {
    let own = "VLLM_NIXL_SIDE_CHANNEL_HOST=10.0.3.7";
    let report = judge(vec![with(&[], &[own])]);
    assert_eq!(told(&report), []);
    assert_eq!(
        details(&report, "env/side-channel"),
        ["VLLM_NIXL_SIDE_CHANNEL_HOST comes from field status.podIP"]
    );
    // Another one is, also one that begins like it.
    let report = judge(vec![with(&[], &["VLLM_NIXL_SIDE_CHANNEL_HOST=10.0.3.71"])]);
    assert_eq!(
        told(&report),
        [(Status::Warn, "side-channel-host-wrong-ip")]
    );
    let report = judge(vec![with(&[], &["VLLM_NIXL_SIDE_CHANNEL_HOST=10.9.9.9"])]);
    assert_eq!(
        told(&report),
        [(Status::Warn, "side-channel-host-wrong-ip")]
    );
    let report = judge(vec![with(&[], &["VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1"])]);
    assert_eq!(
        told(&report),
        [(Status::Fail, "side-channel-host-loopback")]
    );
    // The node's, where the pod is not on its network.
    let report = judge(vec![with(&[], &["VLLM_NIXL_SIDE_CHANNEL_HOST=192.0.2.4"])]);
    assert_eq!(
        told(&report),
        [(Status::Warn, "side-channel-host-wrong-ip")]
    );
}

/// A prefill and a decode pod with engines of these flags.
fn pair(prefill: &[&str], decode: &[&str]) -> Vec<ProbedPod> {
    [("prefill", PREFILL, prefill), ("decode", DECODE, decode)]
        .into_iter()
        .map(|(role, mode, more)| {
            let flags: Vec<&str> = mode.iter().chain(more).copied().collect();
            probed(
                &pod(&format!("qwen-{role}-0"), role),
                Ok(Inside::new(&flags).facts()),
            )
        })
        .collect()
}

#[test]
fn prefill_and_decode_are_held_against_each_other() {
    let report = judge(pair(&["--block-size", "64"], &["--block-size", "64"]));
    assert_eq!(told(&report), []);
    assert_eq!(report.readiness, Readiness::Unproven);
    assert_eq!(report.coverage.pairs_required, 1);
    let report = judge(pair(
        &["--kv-cache-dtype", "fp8"],
        &["--kv-cache-dtype", "bf16"],
    ));
    assert_eq!(told(&report), [(Status::Fail, "kv-cache-dtype-differs")]);
    // Both are named, by their roles.
    let differs = report
        .results
        .iter()
        .find(|r| r.cause == Some("kv-cache-dtype-differs"))
        .unwrap();
    assert_eq!(differs.subject.workers, ["prefill-worker", "decode-worker"]);
}

#[test]
fn one_role_alone_is_no_alarm() {
    let one = |name: &str| probed(&pod(name, "decode"), Ok(Inside::new(DECODE).facts()));
    let other = Inside::new(DECODE);
    other.engine(87, DECODE, &["PATH=/usr/bin", "UCX_TLS=rc,cuda_copy"]);
    let mut pods = vec![one("qwen-decode-0"), one("qwen-decode-1")];
    pods.push(probed(&pod("qwen-decode-2", "decode"), Ok(other.facts())));
    let report = judge(pods);
    assert_eq!(told(&report), []);
    assert_eq!(report.readiness, Readiness::Unproven);
    assert!(
        details(&report, "env/roles").is_empty(),
        "{:?}",
        details(&report, "env/roles")
    );
    // The odd one is told by its name.
    let tls = report
        .results
        .iter()
        .find(|r| r.name == "env/ucx-tls")
        .unwrap();
    assert_eq!(tls.subject.pod.as_deref(), Some("qwen-decode-2"));
    let workers: Vec<(&str, Option<u64>)> = report
        .deployments
        .iter()
        .flat_map(|d| &d.workers)
        .map(|w| (w.name.as_str(), w.replicas))
        .collect();
    assert_eq!(
        workers,
        [("decode-worker", Some(2)), ("qwen-decode-2", Some(1))]
    );
}

#[test]
fn the_role_is_what_the_engine_was_told() {
    // The label says decode, and the engine prefills: requests for one role reach the other.
    let report = judge(vec![probed(
        &pod("qwen-decode-0", "decode"),
        Ok(Inside::new(PREFILL).facts()),
    )]);
    assert_eq!(told(&report), [(Status::Fail, "role-contradicts-name")]);
}

#[test]
fn a_start_script_is_no_riddle_where_its_process_runs() {
    let mut object = pod("qwen-prefill-0", "prefill");
    object["metadata"]["labels"] = json!({});
    let container = &mut object["spec"]["containers"][0];
    container["command"] = json!(["/opt/start.sh"]);
    container["args"] = json!([]);
    let found = probed(&object, Ok(Inside::new(PREFILL).facts()));
    assert!(
        found.taken.contains("asks for accelerators"),
        "{}",
        found.taken
    );
    let report = judge(vec![found]);
    assert_eq!(told(&report), []);
    let summary = report.deployments.first().unwrap().workers.first().unwrap();
    assert_eq!(summary.role, model::Role::Prefill);
    assert_eq!(summary.connector.as_deref(), Some("NIXL/UCX (default)"));
}
