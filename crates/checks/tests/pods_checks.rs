//! Every check of a pod's spec beside what is seen inside: what it fires on, and what it leaves alone.

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

use std::collections::BTreeSet;

use checks::{Around, CHECKS, ProbedPod, judge_pods};
use model::pod::FaultKind;
use model::{Fault, Report, Status};
use recipe::live;
use serde_json::{Value, json};
use support::{DECODE, Inside, details, limits, pod, probed, told};

fn judge(pods: Vec<ProbedPod>) -> Report {
    judge_pods("node", pods, &Around::default(), Vec::new())
}

/// One decode pod: a change to what the API server says, and one to what is inside.
fn one(object: impl FnOnce(&mut Value), inside: impl FnOnce(&Inside)) -> Report {
    let mut value = pod("qwen-decode-0", "decode");
    object(&mut value);
    let within = Inside::new(DECODE);
    inside(&within);
    judge(vec![probed(&value, Ok(within.facts()))])
}

fn same(_: &mut Value) {}
fn untouched(_: &Inside) {}

fn remove(inside: &Inside, path: &str) {
    let path = inside.tree.root().join(path);
    if path.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
}

fn resources(list: Value) -> impl FnOnce(&mut Value) {
    move |pod| {
        pod["spec"]["containers"][0]["resources"] = json!({"limits": list});
    }
}

/// Notes under the name of a check.
fn notes<'r>(report: &'r Report, name: &str) -> Vec<&'r str> {
    report
        .results
        .iter()
        .filter(|r| r.name == name)
        .filter_map(|r| r.note.as_deref())
        .collect()
}

#[test]
fn a_healthy_worker_has_no_fault() {
    let report = one(same, untouched);
    assert_eq!(told(&report), []);
    for (name, detail) in [
        (
            "pod/rdma-devices",
            "rdma/ib: 1 was granted, and 1 device node is in the container",
        ),
        (
            "pod/locked-memory",
            "IPC_LOCK, which the spec adds, is in force",
        ),
        (
            "pod/gpus",
            "nvidia.com/gpu: 1 was granted, and 1 is visible",
        ),
        (
            "pod/choice",
            "taken by label nvidia.com/dynamo-component-type=decode; container main: named main",
        ),
    ] {
        assert_eq!(details(&report, name), [detail], "{name}");
    }
    // About whom: everything is said.
    let result = report
        .results
        .iter()
        .find(|r| r.name == "pod/rdma-devices")
        .unwrap();
    let subject = &result.subject;
    assert_eq!(subject.pod.as_deref(), Some("qwen-decode-0"));
    assert_eq!(subject.container.as_deref(), Some("main"));
    assert_eq!(subject.node.as_deref(), Some("node-a"));
    assert_eq!(subject.roles, [model::Role::Decode]);
    assert_eq!(subject.workers, ["decode-worker"]);
    assert_eq!(subject.deployment.as_deref(), Some("qwen"));
}

#[test]
fn granted_devices_have_to_arrive() {
    let gone = |inside: &Inside| remove(inside, "dev/infiniband");
    let report = one(same, gone);
    assert_eq!(told(&report), [(Status::Fail, "rdma-granted-no-device")]);
    let fail = report
        .results
        .iter()
        .find(|r| r.status == Status::Fail)
        .unwrap();
    // What the place says of the same fact is not told twice.
    let note = fail.note.as_deref().unwrap();
    assert!(note.contains("inside: the kernel has mlx5_0"), "{note}");
    // Nothing was granted: what the place says stays, and its fix is right.
    let report = one(resources(json!({"nvidia.com/gpu": "1"})), gone);
    assert!(
        told(&report).contains(&(Status::Fail, "dev-infiniband-missing")),
        "{:?}",
        told(&report)
    );
    // By a claim, of which only the name tells that it is a NIC.
    let claim = |template: &'static str| {
        move |pod: &mut Value| {
            pod["spec"]["resourceClaims"] =
                json!([{"name": "dev", "resourceClaimTemplateName": template}]);
            pod["spec"]["containers"][0]["resources"] =
                json!({"limits": {"nvidia.com/gpu": "1"}, "claims": [{"name": "dev"}]});
        }
    };
    let report = one(claim("rdma-nics"), gone);
    assert!(
        told(&report)
            .iter()
            .any(|(_, cause)| *cause == "rdma-granted-no-device")
    );
    let report = one(claim("gpus"), gone);
    assert!(
        !told(&report)
            .iter()
            .any(|(_, cause)| *cause == "rdma-granted-no-device")
    );
    // Fewer nodes than slots are normal.
    let report = one(
        resources(json!({"nvidia.com/gpu": "1", "rdma/ib": "8"})),
        untouched,
    );
    assert_eq!(told(&report), []);
}

#[test]
fn efa_counts_devices() {
    let efa =
        |n: &'static str| resources(json!({"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": n}));
    let report = one(efa("2"), untouched);
    assert!(told(&report).contains(&(Status::Warn, "efa-fewer-than-granted")));
    let report = one(efa("1"), untouched);
    assert!(!told(&report).contains(&(Status::Warn, "efa-fewer-than-granted")));
}

#[test]
fn devices_that_nobody_granted_are_noted() {
    let none = || resources(json!({"nvidia.com/gpu": "1"}));
    let report = one(none(), untouched);
    assert!(
        notes(&report, "pod/rdma-devices")
            .iter()
            .any(|n| n.contains("the scheduler does not count them"))
    );
    for change in [
        (|pod: &mut Value| {
            pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
        }) as fn(&mut Value),
        |pod| {
            pod["spec"]["containers"][0]["volumeMounts"] =
                json!([{"name": "ib", "mountPath": "/dev/infiniband"}]);
            pod["spec"]["volumes"] =
                json!([{"name": "ib", "hostPath": {"path": "/dev/infiniband"}}]);
        },
    ] {
        let report = one(
            |pod| {
                none()(pod);
                change(pod);
            },
            untouched,
        );
        assert_eq!(details(&report, "pod/rdma-devices"), Vec::<&str>::new());
    }
}

#[test]
fn a_capability_has_to_be_in_force() {
    let closed = |memlock: &'static str, uid: u32| {
        move |inside: &Inside| {
            inside.tree.file("/proc/87/limits", limits(memlock));
            inside.status(87, uid, "0000000000000000");
        }
    };
    for uid in [0, 1000] {
        let report = one(same, closed("8388608", uid));
        assert_eq!(
            told(&report),
            [(Status::Fail, "ipc-lock-asked-not-effective")],
            "{uid}"
        );
    }
    let report = one(same, closed("8388608", 1000));
    let detail = details(&report, "pod/locked-memory");
    assert_eq!(
        detail,
        ["the spec adds IPC_LOCK, and the process does not have it: it runs as user 1000"]
    );
    // Without a limit nobody needs it.
    let report = one(same, closed("unlimited", 1000));
    assert_eq!(told(&report), []);
    assert!(
        notes(&report, "pod/locked-memory")
            .iter()
            .any(|n| n.contains("it is not needed"))
    );
    // The spec does not add it: what the place says stays.
    let report = one(
        |pod| pod["spec"]["containers"][0]["securityContext"] = json!({}),
        closed("8388608", 1000),
    );
    assert_eq!(told(&report), [(Status::Fail, "ipc-lock-nonroot-inert")]);
}

#[test]
fn what_is_inside_settles_what_the_spec_leaves_open() {
    let pair = |change: &dyn Fn(&mut Value), inside: &dyn Fn(&Inside)| {
        let pods = [("prefill", support::PREFILL), ("decode", DECODE)]
            .into_iter()
            .map(|(role, flags)| {
                let mut value = pod(&format!("qwen-{role}-0"), role);
                change(&mut value);
                let within = Inside::new(flags);
                inside(&within);
                probed(&value, Ok(within.facts()))
            })
            .collect();
        judge(pods)
    };
    let nothing = |pod: &mut Value| {
        resources(json!({"nvidia.com/gpu": "1"}))(pod);
        pod["spec"]["containers"][0]["securityContext"] = json!({});
    };
    // The runtime brought the devices, and set no limit.
    let report = pair(&nothing, &untouched);
    assert_eq!(told(&report), []);
    // It did not: what the text shows is right.
    let report = pair(&nothing, &|inside: &Inside| {
        remove(inside, "dev/infiniband");
    });
    let causes: BTreeSet<&str> = told(&report).into_iter().map(|(_, cause)| cause).collect();
    assert!(causes.contains("rdma-resource-missing"), "{causes:?}");
    // One role has them.
    let report = pair(
        &|pod| {
            if pod["metadata"]["name"] == "qwen-decode-0" {
                nothing(pod);
            }
        },
        &untouched,
    );
    assert_eq!(told(&report), []);
}

#[test]
fn gpus_are_counted() {
    let two = || resources(json!({"nvidia.com/gpu": "2", "rdma/ib": "1"}));
    // A GPU of the node that this container was not given does not count.
    let report = one(two(), |inside| inside.gpu(1, false));
    assert_eq!(told(&report), [(Status::Warn, "gpu-fewer-than-granted")]);
    let report = one(two(), |inside| inside.gpu(1, true));
    assert_eq!(told(&report), []);
    let report = one(same, |inside| inside.gpu(1, true));
    assert_eq!(told(&report), []);
    assert!(
        notes(&report, "pod/gpus")
            .iter()
            .any(|n| n.contains("more GPUs are visible"))
    );
    // Shares of a GPU are not GPUs.
    for name in ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb"] {
        let report = one(resources(json!({name: "4", "rdma/ib": "1"})), untouched);
        assert_eq!(details(&report, "pod/gpus"), Vec::<&str>::new(), "{name}");
    }
    let node = live::node(
        &json!({"kind": "Node", "metadata": {"name": "node-a",
            "labels": {"nvidia.com/gpu.sharing-strategy": "time-slicing"}}})
        .to_string(),
    )
    .unwrap();
    let mut value = pod("qwen-decode-0", "decode");
    two()(&mut value);
    let around = Around {
        nodes: Ok(vec![node]),
        ..Around::default()
    };
    let report = judge_pods(
        "node",
        vec![probed(&value, Ok(Inside::new(DECODE).facts()))],
        &around,
        Vec::new(),
    );
    assert_eq!(details(&report, "pod/gpus"), Vec::<&str>::new());
}

fn shm(mb: u64) -> impl FnOnce(&Inside) {
    move |inside| {
        inside.tree.tool(
            "df",
            &format!(
                "echo 'Filesystem 1024-blocks Used Available Capacity Mounted on'; echo 'shm {} 0 1 0% /dev/shm'",
                mb * 1024
            ),
        );
    }
}

#[test]
fn shared_memory_is_as_large_as_its_volume() {
    let report = one(same, shm(64));
    assert!(
        report
            .results
            .iter()
            .any(|r| r.cause == Some("shm-smaller-than-mounted") && r.collective)
    );
    // It never counts for KV transfer.
    assert_ne!(report.readiness, model::Readiness::Degraded);
    let report = one(same, shm(8192));
    assert_eq!(
        details(&report, "pod/shared-memory"),
        ["/dev/shm has 8192 MB, as the pod mounts it"]
    );
    let report = one(
        |pod| pod["spec"]["volumes"] = json!([{"name": "shm", "emptyDir": {"medium": "Memory"}}]),
        shm(64),
    );
    assert_eq!(details(&report, "pod/shared-memory"), Vec::<&str>::new());
}

#[test]
fn networks_have_to_be_attached() {
    let asks = |pod: &mut Value| {
        pod["metadata"]["annotations"] = json!({
            "k8s.v1.cni.cncf.io/networks": "rail-0, rail-1",
            "k8s.v1.cni.cncf.io/network-status":
                r#"[{"interface":"eth0","default":true},{"interface":"net1"},{"interface":"net2"}]"#,
        });
    };
    let roce = |inside: &Inside| {
        inside.tree.port(
            "mlx5_0",
            &[("link_layer", "Ethernet"), ("rate", "400 Gb/sec (4X NDR)")],
        );
        inside.interface("eth0");
        inside.interface("net1");
    };
    let report = one(asks, roce);
    assert!(told(&report).contains(&(Status::Warn, "network-not-attached")));
    assert!(
        details(&report, "pod/networks")
            .iter()
            .any(|d| d.contains("net2"))
    );
    // By number, where nobody wrote what was attached.
    let report = one(
        |pod| {
            pod["metadata"]["annotations"] =
                json!({"k8s.v1.cni.cncf.io/networks": "rail-0, rail-1"});
        },
        roce,
    );
    assert!(told(&report).contains(&(Status::Warn, "network-not-attached")));
    let report = one(asks, |inside| {
        roce(inside);
        inside.interface("net2");
    });
    assert_eq!(
        details(&report, "pod/networks"),
        ["2 networks asked for, and attached"]
    );
    // InfiniBand needs no interface.
    let report = one(asks, |inside| {
        inside.interface("eth0");
    });
    assert_eq!(told(&report), []);
    // The node's network has the node's interfaces.
    let report = one(
        |pod| {
            asks(pod);
            pod["spec"]["hostNetwork"] = true.into();
        },
        roce,
    );
    assert!(
        !told(&report)
            .iter()
            .any(|(_, c)| *c == "network-not-attached")
    );
    assert!(
        notes(&report, "pod/networks")
            .iter()
            .any(|n| n.contains("shared with every other"))
    );
}

/// A node of the cluster.
fn node(name: &str, allocatable: Value, change: impl FnOnce(&mut Value)) -> model::ClusterNode {
    let mut value = json!({
        "kind": "Node",
        "metadata": {"name": name, "labels": {"agentpool": "gpu"}},
        "spec": {},
        "status": {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]},
    });
    change(&mut value);
    live::node(&value.to_string()).unwrap()
}

/// A pod that waits for a node, with these nodes.
fn pending(nodes: Vec<model::ClusterNode>) -> Report {
    let mut value = pod("qwen-decode-0", "decode");
    value["spec"].as_object_mut().unwrap().remove("nodeName");
    value["spec"]["nodeSelector"] = json!({"agentpool": "gpu"});
    value["status"] = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "message": "0/2 nodes are available: 2 Insufficient rdma/ib."}]});
    let parsed = live::pod(&value.to_string()).unwrap();
    let fault = live::state(&parsed, "main").unwrap_err();
    let around = Around {
        nodes: Ok(nodes),
        ..Around::default()
    };
    judge_pods(
        "node",
        vec![probed(&value, Err(fault))],
        &around,
        Vec::new(),
    )
}

#[test]
fn a_worker_that_waits_is_held_against_the_nodes() {
    let gpu = json!({"nvidia.com/gpu": "8"});
    let whole = json!({"nvidia.com/gpu": "8", "rdma/ib": "8"});
    // The accelerators are there and the fabric is nowhere: a device plugin.
    let report = pending(vec![
        node("a", gpu.clone(), |_| {}),
        node("b", json!({"nvidia.com/gpu": "8", "rdma/ib": "0"}), |_| {}),
    ]);
    assert_eq!(
        told(&report),
        [(Status::Fail, "rdma-resource-zero-allocatable")]
    );
    assert_eq!(report.readiness, model::Readiness::Blocked);
    let state = report
        .results
        .iter()
        .find(|r| r.name == "pod/state")
        .unwrap();
    assert!(
        state.detail.contains("Insufficient rdma/ib"),
        "{}",
        state.detail
    );
    // Neither is there: an autoscaler may bring such nodes.
    let report = pending(vec![node("a", json!({"nvidia.com/nothing": "1"}), |_| {})]);
    assert_eq!(
        told(&report),
        [(Status::Warn, "rdma-resource-zero-allocatable")]
    );
    assert_eq!(report.readiness, model::Readiness::Inconclusive);
    // All that offer it are closed, each in its way.
    let closed: [(&str, fn(&mut Value)); 4] = [
        ("cordoned", |n| n["spec"]["unschedulable"] = true.into()),
        ("not ready", |n| n["status"]["conditions"] = json!([])),
        ("tainted gpu=x:NoSchedule", |n| {
            n["spec"]["taints"] = json!([{"key": "gpu", "value": "x", "effect": "NoSchedule"}]);
        }),
        ("without the label agentpool=gpu", |n| {
            n["metadata"]["labels"] = json!({"agentpool": "cpu"});
        }),
    ];
    for (why, change) in closed {
        let report = pending(vec![
            node("a", whole.clone(), change),
            node("b", gpu.clone(), |_| {}),
        ]);
        assert_eq!(
            told(&report),
            [(Status::Warn, "nodes-closed-to-worker")],
            "{why}"
        );
        assert!(
            details(&report, "pod/nodes")
                .iter()
                .any(|d| d.contains(why)),
            "{why}: {:?}",
            details(&report, "pod/nodes")
        );
    }
    // One is open: what it has is in use.
    let report = pending(vec![node("a", whole, |_| {})]);
    assert_eq!(told(&report), []);
    assert!(
        details(&report, "pod/nodes")
            .iter()
            .any(|d| d.contains("in use"))
    );
    // Without nodes, nothing is guessed at.
    assert_eq!(
        details(&pending(Vec::new()), "pod/nodes"),
        Vec::<&str>::new()
    );
}

#[test]
fn devices_that_are_shared_a_thousand_times_are_enough() {
    let shared = json!({"nvidia.com/gpu": "8", "rdma/ib": "1k"});
    let report = pending(vec![node("a", shared, |_| {})]);
    assert_eq!(told(&report), []);
}

#[test]
fn a_name_inside_of_a_network_is_no_network() {
    let asks = |pod: &mut Value| {
        pod["metadata"]["annotations"] = json!({
            "k8s.v1.cni.cncf.io/networks": r#"[{"name":"rail-0","cni-args":{"name":"x"}}]"#,
        });
    };
    let roce = |inside: &Inside| {
        inside.tree.port("mlx5_0", &[("link_layer", "Ethernet")]);
        inside.interface("eth0");
        inside.interface("net1");
    };
    let report = one(asks, roce);
    assert_eq!(
        details(&report, "pod/networks"),
        ["1 network asked for, and attached"]
    );
}

#[test]
fn what_nodes_offer_is_told_once_for_all_alike() {
    let mut nodes: Vec<_> = (0..50)
        .map(|n| {
            node(
                &format!("gpu-{n}"),
                json!({"nvidia.com/gpu": "8", "rdma/ib": "8", "cpu": "96"}),
                |_| {},
            )
        })
        .collect();
    nodes.push(node("odd", json!({"nvidia.com/gpu": "8"}), |n| {
        n["spec"]["unschedulable"] = true.into();
    }));
    nodes.push(node("cpu-0", json!({"cpu": "96"}), |_| {}));
    let around = Around {
        nodes: Ok(nodes),
        ..Around::default()
    };
    let facts = Inside::new(DECODE).facts();
    let report = judge_pods(
        "node",
        vec![probed(&pod("qwen-decode-0", "decode"), Ok(facts))],
        &around,
        Vec::new(),
    );
    assert_eq!(
        details(&report, "pod/nodes"),
        [
            "nvidia.com/gpu: 8, rdma/ib: 8 allocatable on 50 nodes (gpu-0, gpu-1, gpu-2 and 47 more)",
            "nvidia.com/gpu: 8 allocatable on 1 node (odd)",
        ]
    );
    assert!(notes(&report, "pod/nodes").contains(&"1 of them cordoned"));
}

#[test]
fn nodes_that_may_not_be_read_are_one_line() {
    let around = Around {
        nodes: Err(Fault::new(
            FaultKind::ForbiddenNodes,
            "nodes is forbidden: User \"sre\" cannot list resource \"nodes\"",
        )),
        ..Around::default()
    };
    let facts = Inside::new(DECODE).facts();
    let pods = (0..5)
        .map(|n| {
            probed(
                &pod(&format!("qwen-decode-{n}"), "decode"),
                Ok(facts.clone()),
            )
        })
        .collect();
    let report = judge_pods("node", pods, &around, Vec::new());
    let lines: Vec<_> = report
        .results
        .iter()
        .filter(|r| r.cause == Some("nodes-forbidden"))
        .collect();
    assert_eq!(lines.len(), 1);
    assert!(
        lines
            .iter()
            .all(|r| r.status == Status::Skipped && !r.required)
    );
    // Nothing that a verdict needs.
    assert_eq!(report.readiness, model::Readiness::Unproven);
}

#[test]
fn what_was_passed_over_is_told_by_kind() {
    let around = Around {
        passed_over: vec![
            (
                "front-0".into(),
                "label nvidia.com/dynamo-component-type=frontend".into(),
            ),
            (
                "front-1".into(),
                "label nvidia.com/dynamo-component-type=frontend".into(),
            ),
            (
                "plan-0".into(),
                "label nvidia.com/dynamo-component-type=planner".into(),
            ),
        ],
        ..Around::default()
    };
    let facts = Inside::new(DECODE).facts();
    let report = judge_pods(
        "node",
        vec![probed(&pod("qwen-decode-0", "decode"), Ok(facts))],
        &around,
        Vec::new(),
    );
    let told: Vec<(&str, usize)> = report
        .results
        .iter()
        .filter(|r| r.name == "pod/choice" && r.status == Status::Skipped)
        .map(|r| (r.detail.as_str(), r.subject.pods.len()))
        .collect();
    assert_eq!(
        told,
        [
            (
                "passed over 2 pods: label nvidia.com/dynamo-component-type=frontend",
                2
            ),
            (
                "passed over a pod: label nvidia.com/dynamo-component-type=planner",
                1
            ),
        ]
    );
}

#[test]
fn no_cause_is_without_a_case() {
    // Faults have a test of their own (pods_faults), and so has what keeps a run from looking inside (pods_rights).
    let shown: BTreeSet<&str> = [
        "rdma-granted-no-device",
        "efa-fewer-than-granted",
        "rdma-device-not-granted",
        "ipc-lock-asked-not-effective",
        "ipc-lock-not-needed",
        "gpu-fewer-than-granted",
        "gpu-more-than-granted",
        "shm-smaller-than-mounted",
        "network-not-attached",
        "pod-on-host-network",
        "rdma-resource-zero-allocatable",
        "nodes-closed-to-worker",
        "right-missing",
        "optional-right-missing",
        "engine-not-in-sight",
        "pod-object-not-read",
        "worker-resources-unknown",
    ]
    .into();
    let faults: BTreeSet<&str> = FaultKind::ALL.iter().map(|kind| kind.id()).collect();
    for cause in CHECKS
        .iter()
        .filter(|c| c.name.starts_with("pod/"))
        .flat_map(|c| c.causes.iter().chain(c.notes))
    {
        assert!(
            shown.contains(cause.id) || faults.contains(cause.id),
            "no case for {}",
            cause.id
        );
    }
}
