//! Objects of other stacks than Dynamo: found by their name, followed from the recipe to the engine, and read only where
//! that may be done.

use serde_json::{Value, json};
use stand_in::{Cluster, Pod, Rights, StandIn, Tree};

use crate::support::{about, bare, run, serving, tree_of};

const SAME: &str = "rc,cuda_copy";

/// A pod template with this value of `UCX_TLS`.
fn template(role: &str, tls: &str) -> Value {
    json!({"spec": {"containers": [{
        "name": "main",
        "image": "registry.example/vllm-runtime:1.0.0",
        "command": ["python3", "-m", "dynamo.vllm"],
        "args": ["--disaggregation-mode", role],
        "env": [{"name": "UCX_TLS", "value": tls}, {"name": "HF_TOKEN", "value": "hunter2"}],
        "resources": {"limits": {"nvidia.com/gpu": "1", "rdma/ib": "1"}},
    }]}})
}

fn object(api: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": "serving"},
        "spec": spec,
    })
}

/// A stack: its objects with this value of decode's `UCX_TLS`, and how it labels a pod of a role.
struct Stack {
    api: &'static str,
    resource: &'static str,
    kind: &'static str,
    /// The object of decode.
    name: &'static str,
    objects: fn(api: &str, decode: &str) -> Vec<Value>,
    labels: fn(role: &str) -> Vec<(&'static str, String)>,
}

const STACKS: [Stack; 4] = [
    Stack {
        api: "leaderworkerset.x-k8s.io/v1",
        resource: "leaderworkersets",
        kind: "LeaderWorkerSet",
        name: "llama-decode",
        objects: |api, decode| {
            let set = |role: &str, tls: &str| {
                let spec = json!({"leaderWorkerTemplate": {"size": 1, "workerTemplate": template(role, tls)}});
                object(api, "LeaderWorkerSet", &format!("llama-{role}"), &spec)
            };
            vec![set("prefill", SAME), set("decode", decode)]
        },
        labels: |role| {
            vec![
                ("leaderworkerset.sigs.k8s.io/name", format!("llama-{role}")),
                ("leaderworkerset.sigs.k8s.io/worker-index", "0".to_owned()),
            ]
        },
    },
    Stack {
        api: "disaggregatedset.x-k8s.io/v1",
        resource: "disaggregatedsets",
        kind: "DisaggregatedSet",
        name: "llama",
        objects: |api, decode| {
            let role = |role: &str, tls: &str| {
                json!({"name": role, "spec": {"leaderWorkerTemplate": {
                    "size": 2,
                    "leaderTemplate": template(role, tls),
                    "workerTemplate": template(role, "tcp"),
                }}})
            };
            let spec = json!({"roles": [role("prefill", SAME), role("decode", decode)]});
            vec![object(api, "DisaggregatedSet", "llama", &spec)]
        },
        labels: |role| {
            vec![
                ("disaggregatedset.x-k8s.io/name", "llama".to_owned()),
                ("disaggregatedset.x-k8s.io/role", role.to_owned()),
                ("leaderworkerset.sigs.k8s.io/worker-index", "0".to_owned()),
            ]
        },
    },
    // An older release of the operator, which does not know the newer version.
    Stack {
        api: "workloads.x-k8s.io/v1alpha1",
        resource: "rolebasedgroups",
        kind: "RoleBasedGroup",
        name: "llama",
        objects: |api, decode| {
            let role = |role: &str, tls: &str| json!({"name": role, "replicas": 1, "template": template(role, tls)});
            let spec = json!({"roles": [role("prefill", SAME), role("decode", decode)]});
            vec![object(api, "RoleBasedGroup", "llama", &spec)]
        },
        labels: |role| {
            vec![
                ("rolebasedgroup.workloads.x-k8s.io/name", "llama".to_owned()),
                ("rolebasedgroup.workloads.x-k8s.io/role", role.to_owned()),
            ]
        },
    },
    Stack {
        api: "serving.kserve.io/v1alpha2",
        resource: "llminferenceservices",
        kind: "LLMInferenceService",
        name: "llama",
        objects: |api, decode| {
            let of = |role: &str, tls: &str| template(role, tls)["spec"].clone();
            let spec = json!({
                "template": of("decode", decode),
                "prefill": {"template": of("prefill", SAME)},
            });
            vec![object(api, "LLMInferenceService", "llama", &spec)]
        },
        labels: |role| {
            vec![
                ("app.kubernetes.io/name", "llama".to_owned()),
                (
                    "app.kubernetes.io/part-of",
                    "llminferenceservice".to_owned(),
                ),
                ("kserve.io/component", "workload".to_owned()),
                ("llm-d.ai/role", role.to_owned()),
            ]
        },
    },
];

/// Workers of a stack, whose decode worker has this value in its spec and its engine; without the stack's objects.
struct Workers {
    cluster: Cluster,
    _trees: [Tree; 2],
}

fn workers(stack: &Stack, decode: &str, change: fn(Pod) -> Pod) -> Workers {
    let trees = [tree_of("prefill"), tree_of("decode")];
    trees[1].file("/proc/42/environ", format!("UCX_TLS={decode}\0"));
    let mut cluster = serving().serves(stack.api, stack.resource, stack.kind);
    for (role, tree) in ["prefill", "decode"].iter().zip(&trees) {
        let mut pod = bare(&format!("llama-{role}-0"), role, &tree.root());
        for (label, value) in (stack.labels)(role) {
            pod = pod.label(label, &value);
        }
        if *role == "decode" {
            pod = change(pod.env("UCX_TLS", decode));
        }
        cluster = cluster.pod(pod);
    }
    Workers {
        cluster,
        _trees: trees,
    }
}

fn with(cluster: Cluster, objects: Vec<Value>) -> StandIn {
    objects
        .into_iter()
        .fold(cluster, Cluster::object)
        .start()
        .unwrap()
}

/// The changes that are told of the decode worker, and with which rights missing.
fn told(api: &StandIn, words: &[&str]) -> Vec<String> {
    let done = run(
        api,
        &[&["check", "-n", "serving", "-o", "json"], words].concat(),
    );
    assert!(!done.out.contains("hunter2"));
    let report = done.json();
    assert_eq!(report["coverage"]["workers_probed"], 2, "{}", done.out);
    about(&report, "llama-decode-0")
        .iter()
        .filter(|check| check["cause"] == "setting-changed-on-the-way")
        .map(|check| format!("{}; {}", check["detail"], check["note"]))
        .collect()
}

fn one(changes: &[String], words: &[&str]) {
    assert_eq!(changes.len(), 1, "{changes:?}");
    for word in words {
        assert!(changes[0].contains(word), "{word}: {changes:?}");
    }
}

#[test]
fn the_layer_that_changed_a_setting_is_named_in_each_stack() {
    let dir = tempfile::tempdir().unwrap();
    for stack in &STACKS {
        let recipe = dir.path().join(format!("{}.yaml", stack.kind));
        let text: Vec<String> = (stack.objects)(stack.api, SAME)
            .iter()
            .map(Value::to_string)
            .collect();
        std::fs::write(&recipe, text.join("\n---\n")).unwrap();
        let with_recipe = ["-f", recipe.to_str().unwrap()];
        let object = format!("{} {}", stack.kind, stack.name);

        let same = workers(stack, SAME, |pod| pod);
        let api = with(same.cluster, (stack.objects)(stack.api, SAME));
        assert_eq!(told(&api, &with_recipe), [""; 0], "{object}");
        assert_eq!(told(&api, &[]), [""; 0], "{object}");

        let edited = workers(stack, "tcp", |pod| pod);
        let api = with(edited.cluster, (stack.objects)(stack.api, "tcp"));
        let layer = format!("tcp in {object}");
        one(
            &told(&api, &with_recipe),
            &[&layer, "an edit of the object"],
        );
        // Without the recipe nobody knows what was meant.
        assert_eq!(told(&api, &[]), [""; 0], "{object}");

        let webhook = workers(stack, "tcp", |pod| pod);
        let api = with(webhook.cluster, (stack.objects)(stack.api, SAME));
        let from = format!("{SAME} in {object}");
        one(
            &told(&api, &[]),
            &[&from, "tcp in the pod's spec", "webhook"],
        );
    }
}

#[test]
fn what_a_controller_makes_of_an_object_is_a_layer_of_its_own() {
    let stack = &STACKS[0];
    let owned = |pod: Pod| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "llama-decode", "controller": true}]);
        pod.set("/metadata/ownerReferences", owner)
    };
    let made = workers(stack, "tcp", owned);
    let spec = json!({"template": template("decode", "tcp")});
    let mut objects = (stack.objects)(stack.api, SAME);
    objects.push(object("apps/v1", "StatefulSet", "llama-decode", &spec));
    let api = with(made.cluster, objects);
    one(
        &told(&api, &[]),
        &[
            "rc,cuda_copy in LeaderWorkerSet llama-decode",
            "tcp in StatefulSet llama-decode",
            "the operator or controller",
        ],
    );
}

#[test]
fn an_object_is_found_by_its_name() {
    for stack in STACKS.iter().filter(|stack| stack.name == "llama") {
        let same = workers(stack, SAME, |pod| pod);
        let api = with(same.cluster, (stack.objects)(stack.api, SAME));
        assert_eq!(told(&api, &["llama"]), [""; 0], "{}", stack.kind);
        let other = run(&api, &["check", "qwen", "-n", "serving", "-o", "json"]);
        assert_eq!(other.code, 4, "{} {}", stack.kind, other.out);
    }
}

#[test]
fn a_right_to_read_objects_is_missed_only_where_workers_are_made_from_such() {
    for stack in &STACKS {
        let same = workers(stack, SAME, |pod| pod);
        let rights = STACKS.iter().fold(Rights::all(), |rights, one| {
            rights.deny("get", one.resource)
        });
        let rights = rights.deny("get", "dynamographdeployments");
        let api = with(
            same.cluster.rights(rights),
            (stack.objects)(stack.api, SAME),
        );
        let done = run(&api, &["check", "-n", "serving", "-o", "json"]);
        let report = done.json();
        let of_rights: Vec<&Value> = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|check| check["name"] == "pod/rights")
            .collect();
        assert_eq!(of_rights.len(), 1, "{} {of_rights:#?}", stack.kind);
        assert_eq!(of_rights[0]["cause"], "optional-right-missing");
        let words = format!("get {}.", stack.resource);
        let detail = of_rights[0]["detail"].as_str().unwrap();
        assert!(detail.starts_with(&words), "{detail}");
        assert!(!done.out.contains("workload-forbidden"), "{}", done.out);
    }
}
