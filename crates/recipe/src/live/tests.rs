//! Objects of the API server, choices and states.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a broken test should stop"
)]

use model::pod::{ContainerKind, ContainerState};
use model::{Fault, FaultKind, PodObject, Role, Value as Set, Worker};
use serde_json::{Value, json};

use super::{container, kv_worker, passed_over, state, workers};

/// A vLLM prefill worker with a sidecar, an init container and a secret.
fn object() -> Value {
    json!({
        "kind": "Pod",
        "metadata": {
            "name": "p-0",
            "namespace": "serving",
            "uid": "u-1",
            "labels": {"llm-d.ai/role": "prefill", "app": "hunter2", "llm-d.ai/model": "m"},
            "annotations": {
                "k8s.v1.cni.cncf.io/networks": "rdma-net",
                "kubectl.kubernetes.io/last-applied-configuration": "{\"env\":\"hunter2\"}",
            },
            "managedFields": [{"manager": "hunter2"}],
            "ownerReferences": [{"kind": "ReplicaSet", "name": "p-5f7", "controller": true}],
        },
        "spec": {
            "nodeName": "n1",
            "hostNetwork": true,
            "nodeSelector": {"agentpool": "gpu"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "resourceClaims": [{"name": "nic", "resourceClaimTemplateName": "rdma-nics"}],
            "initContainers": [
                {"name": "copy", "image": "busybox"},
                {"name": "proxy", "image": "proxy", "restartPolicy": "Always"},
            ],
            "containers": [
                {
                    "name": "vllm",
                    "image": "vllm/vllm-openai:v0.11.0",
                    "command": ["vllm", "serve", "m", "--kv-transfer-config",
                        r#"{"kv_connector":"NixlConnector","kv_role":"kv_producer"}"#,
                        "--api-key", "hunter2"],
                    "env": [
                        {"name": "UCX_TLS", "value": "rc,cuda_copy"},
                        {"name": "API_TOKEN", "value": "hunter2"},
                        {"name": "MY_PORT", "value": "hunter2"},
                        {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST",
                         "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                    ],
                    "resources": {"limits": {"nvidia.com/gpu": "8", "rdma/ib": "8", "cpu": "4"},
                                  "claims": [{"name": "nic"}]},
                    "securityContext": {"privileged": true, "runAsUser": 1000,
                        "capabilities": {"add": ["CAP_IPC_LOCK"]}},
                    "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm/"},
                                     {"name": "models", "mountPath": "/models"}],
                },
                {"name": "metrics", "image": "exporter"},
            ],
            "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
                        {"name": "models", "hostPath": {"path": "/hunter2"}}],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "hostIP": "192.0.2.1",
            "containerStatuses": [
                {"name": "vllm", "ready": true, "restartCount": 2,
                 "state": {"running": {"startedAt": "t0"}}},
            ],
        },
    })
}

fn read(value: &Value) -> (PodObject, Vec<Worker>) {
    let text = value.to_string();
    (super::pod(&text).unwrap(), workers(&text))
}

#[test]
fn a_pod_is_read_and_nothing_else_of_it() {
    let (pod, found) = read(&object());
    assert_eq!(
        (pod.name.as_str(), pod.node.as_deref()),
        ("p-0", Some("n1"))
    );
    assert_eq!(pod.owner, Some(("ReplicaSet".into(), "p-5f7".into())));
    assert_eq!(pod.addresses, ["10.0.0.1", "fd00::1"]);
    assert!(pod.host_network);
    assert_eq!(pod.claims["nic"], "rdma-nics");
    assert_eq!(pod.tolerates, ["nvidia.com/gpu"]);
    let vllm = pod.container("vllm").unwrap();
    assert_eq!(vllm.resources.len(), 2, "cpu is no extended resource");
    assert_eq!(vllm.capabilities, ["IPC_LOCK"]);
    assert_eq!(vllm.mounts["/dev/shm"], "emptyDir Memory 8Gi");
    assert_eq!((vllm.run_as_user, vllm.restarts), (Some(1000), 2));
    assert_eq!(vllm.state, ContainerState::Running("t0".into()));
    assert_eq!(pod.container("copy").unwrap().kind, ContainerKind::Init);
    assert_eq!(pod.container("proxy").unwrap().kind, ContainerKind::Sidecar);

    let worker = found.iter().find(|w| w.container == "vllm").unwrap();
    assert_eq!(worker.role, Role::Prefill);
    assert_eq!(worker.literal("UCX_TLS"), Some("rc,cuda_copy"));
    assert_eq!(
        worker
            .setting("VLLM_NIXL_SIDE_CHANNEL_HOST")
            .map(|s| &s.value),
        Some(&Set::Dynamic("field status.podIP".into()))
    );
    let place = &worker.setting("UCX_TLS").unwrap().place;
    assert_eq!((&*place.file, place.line), ("pod p-0", 0));
    assert_eq!(
        worker.setting("UCX_TLS").unwrap().form.as_str(),
        "env entry"
    );

    // No secret, no value of another variable, nothing of who manages what.
    let all = format!("{pod:?}{found:?}");
    assert!(!all.contains("hunter2"), "{all}");
}

#[test]
fn odd_objects_are_read_as_far_as_they_go() {
    for text in [
        "",
        "[]",
        "null",
        "{",
        "{\"kind\":\"Service\"}",
        "{\"kind\":7}",
        "{}",
    ] {
        assert!(super::pod(text).is_err(), "{text}");
        assert!(super::node(text).is_err(), "{text}");
        assert!(workers(text).is_empty(), "{text}");
    }
    // Every field of another type in turn.
    let whole = object();
    let mut paths: Vec<Vec<String>> = Vec::new();
    collect(&whole, &mut Vec::new(), &mut paths);
    assert!(paths.len() > 80);
    for path in paths {
        for odd in [
            json!(null),
            json!(7),
            json!("x"),
            json!([1]),
            json!({"a": []}),
        ] {
            let mut changed = whole.clone();
            *at(&mut changed, &path) = odd;
            let text = changed.to_string();
            let pod = super::pod(&text);
            let found = workers(&text);
            let all = format!("{pod:?}{found:?}");
            assert!(!all.contains("hunter2"), "{path:?}: {all}");
        }
    }
}

fn collect(value: &Value, here: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(n, v)| (n.to_string(), v))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in entries {
        here.push(key);
        out.push(here.clone());
        collect(value, here, out);
        here.pop();
    }
}

fn at<'v>(value: &'v mut Value, path: &[String]) -> &'v mut Value {
    path.iter().fold(value, |value, key| match value {
        Value::Array(list) => &mut list[key.parse::<usize>().unwrap()],
        value => &mut value[key.as_str()],
    })
}

#[test]
fn huge_objects_are_read_in_time() {
    let mut big = object();
    let entries: Vec<Value> = (0..30_000)
        .map(|n| json!({"name": format!("OTHER_{n}"), "value": "x".repeat(100)}))
        .collect();
    big["spec"]["containers"][0]["env"] = entries.into();
    big["metadata"]["annotations"]["x"] = "y".repeat(1_000_000).into();
    let text = big.to_string();
    assert!(text.len() > 4_000_000);
    let begin = std::time::Instant::now();
    let pod = super::pod(&text).unwrap();
    assert!(format!("{pod:?}").len() < 100_000);
    assert_eq!(workers(&text).len(), 2);
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    // Deeper than anything that Kubernetes has.
    let deep = format!("{}{}", "{\"a\":".repeat(10_000), "1");
    assert!(super::pod(&deep).is_err());
}

#[test]
fn control_characters_and_credentials_do_not_get_through() {
    let mut odd = object();
    odd["status"]["message"] = "a\u{1b}[31mb https://user:hunter2@registry/x".into();
    odd["metadata"]["labels"]["llm-d.ai/model"] = "m\u{7}\nx".into();
    let (pod, _) = read(&odd);
    let message = pod.message.unwrap();
    assert!(
        !message.contains('\u{1b}') && !message.contains("hunter2"),
        "{message}"
    );
    assert!(!pod.labels["llm-d.ai/model"].contains(char::is_control));
}

#[test]
fn a_node_is_read() {
    let node = super::node(
        &json!({
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {"agentpool": "gpu", "secret": "hunter2"}},
            "spec": {"unschedulable": true, "taints": [
                {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
                {"key": "soft", "effect": "PreferNoSchedule"}]},
            "status": {"allocatable": {"cpu": "96", "nvidia.com/gpu": "8", "rdma/ib": 8},
                "conditions": [{"type": "Ready", "status": "True"}]},
        })
        .to_string(),
    )
    .unwrap();
    assert!(node.ready && node.cordoned);
    assert_eq!(node.taints, ["nvidia.com/gpu=present:NoSchedule"]);
    assert_eq!(node.allocatable.len(), 2);
    assert_eq!(node.allocatable["rdma/ib"], "8");
    assert_eq!(node.labels.len(), 1);
}

/// What shows that a pod moves KV cache, after a change to it.
fn chosen(change: impl FnOnce(&mut Value)) -> Option<String> {
    let mut value = object();
    change(&mut value);
    let (pod, found) = read(&value);
    kv_worker(&pod, &found).map(|why| why.words)
}

fn without_connector(pod: &mut Value) {
    pod["metadata"]["labels"] = json!({});
    pod["spec"]["containers"][0]["command"] = json!(["vllm", "serve", "m"]);
}

#[test]
fn workers_are_chosen_by_label_or_flag() {
    let label = |name: &'static str, value: &'static str| {
        move |pod: &mut Value| {
            without_connector(pod);
            pod["metadata"]["labels"] = json!({name: value});
        }
    };
    for (name, value) in [
        ("llm-d.ai/role", "prefill"),
        ("nvidia.com/dynamo-component-type", "decode"),
        ("nvidia.com/dynamo-sub-component-type", "prefill"),
        ("rolebasedgroup.workloads.x-k8s.io/role", "decode"),
        ("disaggregatedset.x-k8s.io/role", "prefill"),
        ("role-name", "decode"),
        ("modelserving.volcano.sh/role", "prefill"),
    ] {
        assert_eq!(
            chosen(label(name, value)),
            Some(format!("label {name}={value}"))
        );
    }
    let told = |words: &'static [&'static str]| {
        move |pod: &mut Value| {
            without_connector(pod);
            pod["spec"]["containers"][0]["command"] = json!(words);
        }
    };
    assert_eq!(
        chosen(told(&[
            "vllm",
            "serve",
            "m",
            "--kv-transfer-config",
            r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#
        ])),
        Some("flag --kv-transfer-config in container vllm".into())
    );
    assert_eq!(
        chosen(told(&[
            "python3",
            "-m",
            "sglang.launch_server",
            "--disaggregation-mode",
            "decode"
        ])),
        Some("flag --disaggregation-mode in container vllm".into())
    );
}

#[test]
fn what_moves_no_kv_is_passed_over() {
    // An engine that serves whole requests, with all of its command visible.
    assert_eq!(chosen(without_connector), None);
    for (name, value) in [
        ("nvidia.com/dynamo-component-type", "frontend"),
        ("nvidia.com/dynamo-component-type", "planner"),
    ] {
        assert_eq!(
            chosen(|pod| {
                without_connector(pod);
                pod["metadata"]["labels"] = json!({name: value});
                // Even where the command cannot be seen.
                pod["spec"]["containers"][0]
                    .as_object_mut()
                    .unwrap()
                    .remove("command");
            }),
            None,
            "{value}"
        );
    }
    // A mock engine moves nothing, whatever its label says.
    assert_eq!(
        chosen(|pod| pod["spec"]["containers"][0]["command"] =
            json!(["python3", "-m", "dynamo.mocker"])),
        None
    );
    let mut aggregated = object();
    without_connector(&mut aggregated);
    let (pod, found) = read(&aggregated);
    assert!(passed_over(&pod, &found).contains("whole requests"));
    aggregated["metadata"]["labels"] = json!({"nvidia.com/dynamo-component-type": "frontend"});
    let (pod, found) = read(&aggregated);
    assert!(passed_over(&pod, &found).contains("frontend"));
}

#[test]
fn a_hidden_command_is_no_reason_to_pass_over() {
    let hidden = |pod: &mut Value| {
        without_connector(pod);
        pod["spec"]["containers"][0]
            .as_object_mut()
            .unwrap()
            .remove("command");
    };
    let words = chosen(hidden).unwrap();
    assert!(words.contains("asks for accelerators"), "{words}");
    // Without accelerators it is a router or a store.
    assert_eq!(
        chosen(|pod| {
            hidden(pod);
            pod["spec"]["containers"][0]["resources"] = json!({});
        }),
        None
    );
}

#[test]
fn containers_are_chosen_with_a_reason() {
    let pick = |change: &dyn Fn(&mut Value), asked: Option<&str>| {
        let mut value = object();
        change(&mut value);
        container(&read(&value).0, asked).map(|(name, why)| (name, why.words))
    };
    let same = |_: &mut Value| {};
    assert_eq!(
        pick(&same, Some("metrics")).unwrap(),
        ("metrics".into(), "asked for".into())
    );
    assert_eq!(
        pick(&same, None).unwrap(),
        ("vllm".into(), "the one that asks for accelerators".into())
    );
    assert_eq!(
        pick(
            &|pod| pod["spec"]["containers"][1]["name"] = "main".into(),
            None
        )
        .unwrap(),
        ("main".into(), "named main".into())
    );
    assert_eq!(
        pick(
            &|pod| {
                pod["spec"]["containers"]
                    .as_array_mut()
                    .unwrap()
                    .truncate(1);
                pod["spec"]["containers"][0]["resources"] = json!({});
            },
            None
        )
        .unwrap(),
        ("vllm".into(), "the only one".into())
    );
    // Never a sidecar, an init container, or one of several alike.
    let fault: Fault = pick(
        &|pod| pod["spec"]["containers"][0]["resources"] = json!({}),
        None,
    )
    .unwrap_err();
    assert_eq!(fault.kind, FaultKind::AmbiguousContainer);
    assert!(fault.detail.contains("vllm, metrics"), "{}", fault.detail);
    assert!(!fault.detail.contains("copy") && !fault.detail.contains("proxy"));
    let fault = pick(&same, Some("nope")).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoSuchContainer);
    assert!(
        fault.detail.contains("vllm, metrics, copy, proxy"),
        "{}",
        fault.detail
    );
    let fault = pick(&|pod| pod["spec"]["containers"] = json!([]), None).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoSuchContainer);
}

/// How the container `vllm` is after a change.
fn after(change: impl FnOnce(&mut Value)) -> Result<(), Fault> {
    let mut value = object();
    change(&mut value);
    state(&read(&value).0, "vllm")
}

fn waiting(reason: &'static str) -> impl FnOnce(&mut Value) {
    move |pod| {
        pod["status"]["containerStatuses"][0]["state"] =
            json!({"waiting": {"reason": reason, "message": "because"}});
    }
}

#[test]
fn states_are_told_with_what_is_known() {
    assert_eq!(after(|_| {}), Ok(()));
    let fault = |change: &dyn Fn(&mut Value), kind, words: &[&str]| {
        let fault = after(change).unwrap_err();
        assert_eq!(fault.kind, kind, "{}", fault.detail);
        for word in words {
            assert!(fault.detail.contains(word), "{word}: {}", fault.detail);
        }
        assert!(!fault.detail.contains("p-0"), "{}", fault.detail);
    };
    fault(
        &|pod| {
            pod["spec"].as_object_mut().unwrap().remove("nodeName");
            pod["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
                "status": "False", "reason": "Unschedulable",
                "message": "0/4 nodes are available: 4 Insufficient rdma/ib."}]});
        },
        FaultKind::Unschedulable,
        &["0/4 nodes", "rdma/ib"],
    );
    fault(
        &|pod| waiting("ImagePullBackOff")(pod),
        FaultKind::ImagePull,
        &["ImagePullBackOff", "vllm/vllm-openai:v0.11.0", "because"],
    );
    fault(
        &|pod| waiting("ContainerCreating")(pod),
        FaultKind::NotStarted,
        &["ContainerCreating"],
    );
    fault(
        &|pod| {
            waiting("CrashLoopBackOff")(pod);
            pod["status"]["containerStatuses"][0]["restartCount"] = 12.into();
            pod["status"]["containerStatuses"][0]["lastState"] =
                json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        },
        FaultKind::CrashLoop,
        &["12 restarts", "exit code 137 (OOMKilled)"],
    );
    fault(
        &|pod| {
            pod["status"]["phase"] = "Failed".into();
            pod["status"]["reason"] = "Evicted".into();
            pod["status"]["message"] = "low on memory".into();
        },
        FaultKind::Completed,
        &["Evicted", "low on memory"],
    );
    fault(
        &|pod| {
            pod["metadata"]["deletionTimestamp"] = "t".into();
            waiting("ContainerCreating")(pod);
        },
        FaultKind::Deleted,
        &["deleted"],
    );
    fault(
        &|pod| pod["status"]["containerStatuses"] = json!([]),
        FaultKind::NotStarted,
        &["nothing is said"],
    );
    // An init container that crashes is why the others wait.
    fault(
        &|pod| {
            waiting("PodInitializing")(pod);
            pod["status"]["initContainerStatuses"] = json!([{"name": "copy", "restartCount": 3,
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}}]);
        },
        FaultKind::CrashLoop,
        &["copy", "exit code 1"],
    );
    // It still runs while it is being deleted.
    assert_eq!(
        after(|pod| pod["metadata"]["deletionTimestamp"] = "t".into()),
        Ok(())
    );
}

#[test]
fn what_happens_meanwhile_is_seen() {
    let before = read(&object()).0;
    assert_eq!(super::during(&before, "vllm", &before), None);
    let later = |change: &dyn Fn(&mut Value)| {
        let mut value = object();
        change(&mut value);
        super::during(&before, "vllm", &read(&value).0).map(|f| f.kind)
    };
    let status = |key: &'static str, to: Value| {
        move |pod: &mut Value| pod["status"]["containerStatuses"][0][key] = to.clone()
    };
    assert_eq!(
        later(&status("restartCount", 3.into())),
        Some(FaultKind::Restarted)
    );
    assert_eq!(
        later(&status("state", json!({"running": {"startedAt": "t1"}}))),
        Some(FaultKind::Restarted)
    );
    assert_eq!(
        later(&status("state", json!({"terminated": {"exitCode": 1}}))),
        Some(FaultKind::Completed)
    );
    assert_eq!(
        later(&|pod| pod["metadata"]["uid"] = "u-2".into()),
        Some(FaultKind::Deleted)
    );
    assert_eq!(
        later(&|pod| pod["metadata"]["deletionTimestamp"] = "t".into()),
        Some(FaultKind::Deleted)
    );
    // Readiness comes and goes.
    assert_eq!(later(&status("ready", false.into())), None);
}
