//! Which pods are judged together, and how they are called.

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
use model::{Report, Status};
use serde_json::{Value, json};
use support::{DECODE, Inside, PREFILL, details, pod, probed, told};

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_pods("node", pods, &Around::default(), Vec::new())
}

/// A pod with these labels, owned so.
fn owned(name: &str, role: &str, labels: Value, owner: (&str, &str), more: &[&str]) -> ProbedPod {
    let mut value = pod(name, role);
    value["metadata"]["labels"] = labels;
    value["metadata"]["ownerReferences"] =
        json!([{"kind": owner.0, "name": owner.1, "controller": true}]);
    let mode = if role == "prefill" { PREFILL } else { DECODE };
    let flags: Vec<&str> = mode.iter().chain(more).copied().collect();
    probed(&value, Ok(Inside::new(&flags).facts()))
}

/// Deployments with their workers: names and replicas.
fn deployments(report: &Report) -> Vec<(String, Vec<(String, u64)>)> {
    report
        .deployments
        .iter()
        .map(|d| {
            let workers = d
                .workers
                .iter()
                .map(|w| (w.name.clone(), w.replicas.unwrap_or(0)))
                .collect();
            (format!("{} {}", d.kind, d.name), workers)
        })
        .collect()
}

fn named(list: &[(&str, &[(&str, u64)])]) -> Vec<(String, Vec<(String, u64)>)> {
    list.iter()
        .map(|(name, workers)| {
            let workers = workers.iter().map(|(n, r)| ((*n).to_owned(), *r)).collect();
            ((*name).to_owned(), workers)
        })
        .collect()
}

#[test]
fn a_stack_names_its_deployment() {
    let llm_d = |role: &str| json!({"llm-d.ai/role": role, "llm-d.ai/model": "qwen"});
    let set = |kind| -> (&'static str, &'static str) { ("ReplicaSet", kind) };
    let report = judge(vec![
        owned(
            "ms-prefill-1-a",
            "prefill",
            llm_d("prefill"),
            set("ms-prefill-5d9f8c6b7"),
            &[],
        ),
        owned(
            "ms-decode-1-a",
            "decode",
            llm_d("decode"),
            set("ms-decode-5d9f8c6b7"),
            &[],
        ),
        owned(
            "ms-decode-1-b",
            "decode",
            llm_d("decode"),
            set("ms-decode-5d9f8c6b7"),
            &[],
        ),
    ]);
    assert_eq!(told(&report), []);
    assert_eq!(
        deployments(&report),
        named(&[("Pod qwen", &[("ms-prefill", 1), ("ms-decode", 2)])])
    );
    for (labels, kind) in [
        (
            json!({"rolebasedgroup.workloads.x-k8s.io/name": "g", "rolebasedgroup.workloads.x-k8s.io/role": "prefill"}),
            "RoleBasedGroup g",
        ),
        (
            json!({"storm-service-name": "g", "role-name": "prefill"}),
            "StormService g",
        ),
        (
            json!({"modelserving.volcano.sh/name": "g", "modelserving.volcano.sh/role": "prefill"}),
            "ModelServing g",
        ),
        (
            json!({"disaggregatedset.x-k8s.io/name": "g", "disaggregatedset.x-k8s.io/role": "prefill"}),
            "DisaggregatedSet g",
        ),
    ] {
        let report = judge(vec![owned(
            "x-0",
            "prefill",
            labels,
            ("StatefulSet", "x"),
            &[],
        )]);
        assert_eq!(deployments(&report).first().unwrap().0, kind);
    }
}

#[test]
fn halves_find_each_other_by_their_names() {
    let none = || json!({});
    let fp8: &[&str] = &["--kv-cache-dtype", "fp8"];
    let bf16: &[&str] = &["--kv-cache-dtype", "bf16"];
    // Two deployments in one namespace, each in itself right.
    let pods = || {
        vec![
            owned(
                "a-prefill-0",
                "prefill",
                none(),
                ("StatefulSet", "a-prefill"),
                fp8,
            ),
            owned(
                "a-decode-0",
                "decode",
                none(),
                ("StatefulSet", "a-decode"),
                fp8,
            ),
            owned(
                "b-prefill-0",
                "prefill",
                none(),
                ("StatefulSet", "b-prefill"),
                bf16,
            ),
            owned(
                "b-decode-0",
                "decode",
                none(),
                ("StatefulSet", "b-decode"),
                bf16,
            ),
        ]
    };
    let report = judge(pods());
    assert_eq!(told(&report), []);
    assert_eq!(report.deployments.len(), 2);
    // And one that is not.
    let mut wrong = pods();
    wrong.truncate(3);
    wrong.push(owned(
        "b-decode-0",
        "decode",
        none(),
        ("StatefulSet", "b-decode"),
        fp8,
    ));
    let report = judge(wrong);
    assert_eq!(told(&report), [(Status::Fail, "kv-cache-dtype-differs")]);
    // Halves whose names have nothing in common are held against each other by their namespace.
    let report = judge(vec![
        owned("one-0", "prefill", none(), ("StatefulSet", "one"), fp8),
        owned("two-0", "decode", none(), ("StatefulSet", "two"), bf16),
    ]);
    assert_eq!(told(&report), [(Status::Fail, "kv-cache-dtype-differs")]);
    assert_eq!(
        deployments(&report),
        named(&[("Pod serving", &[("one", 1), ("two", 1)])])
    );
    // Two of one role are not.
    let report = judge(vec![
        owned("one-0", "decode", none(), ("StatefulSet", "one"), fp8),
        owned("two-0", "decode", none(), ("StatefulSet", "two"), bf16),
    ]);
    assert_eq!(told(&report), []);
    assert_eq!(report.deployments.len(), 2);
}

#[test]
fn ranks_of_a_group_are_leader_and_members() {
    let labels = |rank: &str| {
        json!({
            "llm-d.ai/role": "decode",
            "leaderworkerset.sigs.k8s.io/name": "wide",
            "leaderworkerset.sigs.k8s.io/worker-index": rank,
        })
    };
    let rank = |name: &str, rank: &str, rdma: bool| {
        let mut value = pod(name, "decode");
        value["metadata"]["labels"] = labels(rank);
        let inside = Inside::new(DECODE);
        let inside = if rdma { inside } else { inside.without_nodes() };
        if !rdma {
            value["spec"]["containers"][0]["resources"] =
                json!({"limits": {"nvidia.com/gpu": "1"}});
        }
        probed(&value, Ok(inside.facts()))
    };
    let report = judge(vec![
        rank("wide-0", "0", true),
        rank("wide-0-1", "1", true),
        rank("wide-0-2", "2", true),
    ]);
    assert_eq!(told(&report), []);
    assert_eq!(deployments(&report), named(&[("Pod wide", &[("wide", 1)])]));
    // The members' template lacks the fabric.
    let report = judge(vec![
        rank("wide-0", "0", true),
        rank("wide-0-1", "1", false),
    ]);
    let causes: Vec<&str> = told(&report).into_iter().map(|(_, c)| c).collect();
    assert!(causes.contains(&"lws-grove-partial-patch"), "{causes:?}");
    assert!(causes.contains(&"dev-infiniband-missing"), "{causes:?}");
}

#[test]
fn a_port_of_each_pods_own_makes_no_kind_of_its_own() {
    let pods = (0..20)
        .map(|n| {
            let inside = Inside::new(DECODE);
            let port = format!("VLLM_NIXL_SIDE_CHANNEL_PORT={}", 5600 + n);
            inside.engine(87, DECODE, &["PATH=/x", &port]);
            probed(
                &pod(&format!("qwen-decode-{n}"), "decode"),
                Ok(inside.facts()),
            )
        })
        .collect();
    let report = judge(pods);
    assert_eq!(
        deployments(&report),
        named(&[("DynamoGraphDeployment qwen", &[("decode-worker", 20)])])
    );
    assert_eq!(told(&report), []);
    let lines = details(&report, "env/vllm-nixl-side-channel-port");
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[test]
fn a_pod_that_nobody_could_look_into_is_judged_by_its_spec_where_no_other_is_like_it() {
    let lost = |name: &str| {
        let mut value = pod(name, "decode");
        value["spec"]["containers"][0]["env"] =
            json!([{"name": "UCX_TLS", "value": "tcp,cuda_copy"}]);
        probed(
            &value,
            Err(model::Fault::new(model::FaultKind::NoShell, "no sh")),
        )
    };
    let report = judge(vec![lost("qwen-decode-0")]);
    assert_eq!(told(&report), [(Status::Fail, "ucx-tls-tcp-only")]);
    assert!(
        report
            .results
            .iter()
            .filter(|r| r.status == Status::Fail)
            .all(|r| r.grade == model::Grade::Declared)
    );
    // One beside it shows what its engine really has.
    let fine = probed(
        &pod("qwen-decode-1", "decode"),
        Ok(Inside::new(DECODE).facts()),
    );
    let report = judge(vec![lost("qwen-decode-0"), fine]);
    assert_eq!(told(&report), []);
}
