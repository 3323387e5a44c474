//! Settings followed from the recipe to the engine.

use serde_json::{Value, json};
use stand_in::{Cluster, Tree};

use crate::deployment::member;
use crate::support::{about, run, serving, tree_of};

pub(crate) const RECIPE: &str = r#"apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: llama
  namespace: serving
spec:
  services:
    prefill:
      componentType: worker
      subComponentType: prefill
      replicas: 1
      envs:
        - name: UCX_TLS
          value: rc,cuda_copy
      resources:
        limits:
          gpu: "1"
          custom:
            rdma/ib: "1"
      extraPodSpec:
        mainContainer:
          image: registry.example/vllm-runtime:1.0.0
          command: ["python3", "-m", "dynamo.vllm"]
          args: ["--disaggregation-mode", "prefill"]
    decode:
      componentType: worker
      subComponentType: decode
      replicas: 1
      envs:
        - name: UCX_TLS
          value: rc,cuda_copy
      resources:
        limits:
          gpu: "1"
          custom:
            rdma/ib: "1"
      extraPodSpec:
        mainContainer:
          image: registry.example/vllm-runtime:1.0.0
          command: ["python3", "-m", "dynamo.vllm"]
          args: ["--disaggregation-mode", "decode"]
"#;

/// The object of the graph as the API server has it, with this value of `UCX_TLS` for decode.
fn graph(decode: &str) -> Value {
    let service = |role: &str, tls: &str| {
        json!({
            "componentType": "worker",
            "subComponentType": role,
            "replicas": 1,
            "envs": [{"name": "UCX_TLS", "value": tls}, {"name": "HF_TOKEN", "value": "hunter2"}],
        })
    };
    json!({
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {
            "name": "llama",
            "namespace": "serving",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"secret\":\"hunter2\"}"},
        },
        "spec": {"services": {
            "prefill": service("prefill", "rc,cuda_copy"),
            "decode": service("decode", decode),
        }},
    })
}

struct Changed {
    graph: &'static str,
    spec: &'static str,
    process: &'static str,
}

fn cluster(changed: &Changed, trees: [&Tree; 2]) -> Cluster {
    let [prefill, decode] = trees;
    decode.file("/proc/42/environ", format!("UCX_TLS={}\0", changed.process));
    serving()
        .serves_dynamo()
        .object(graph(changed.graph))
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()).env("UCX_TLS", changed.spec))
}

/// The change that is told of decode-0.
fn told(changed: &Changed, with_recipe: bool) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let recipe = dir.path().join("deploy.yaml");
    std::fs::write(&recipe, RECIPE).unwrap();
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = cluster(changed, [&prefill, &decode]).start().unwrap();
    let mut words = vec!["check", "-o", "json"];
    if with_recipe {
        words.extend(["-f", recipe.to_str().unwrap()]);
    } else {
        words.extend(["llama", "-n", "serving"]);
    }
    let done = run(&api, &words);
    assert!(!done.out.contains("hunter2"));
    let report = done.json();
    about(&report, "decode-0")
        .iter()
        .filter(|check| check["cause"] == "setting-changed-on-the-way")
        .map(|check| {
            format!(
                "{}; {}",
                check["detail"].as_str().unwrap(),
                check["note"].as_str().unwrap_or_default()
            )
        })
        .collect()
}

const SAME: &str = "rc,cuda_copy";

#[test]
fn the_layer_that_changed_a_setting_is_named() {
    let same = Changed {
        graph: SAME,
        spec: SAME,
        process: SAME,
    };
    assert!(told(&same, true).is_empty());
    assert!(told(&same, false).is_empty());

    let edited = Changed {
        graph: "tcp",
        spec: "tcp",
        process: "tcp",
    };
    let changes = told(&edited, true);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0].contains("UCX_TLS: rc,cuda_copy in ")
            && changes[0].contains("tcp in DynamoGraphDeployment llama"),
        "{changes:?}"
    );
    // Without the recipe nobody knows what was meant.
    assert!(told(&edited, false).is_empty());

    let webhook = Changed {
        graph: SAME,
        spec: "tcp",
        process: "tcp",
    };
    let changes = told(&webhook, false);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0].contains("tcp in the pod's spec") && changes[0].contains("webhook"),
        "{changes:?}"
    );

    let script = Changed {
        graph: SAME,
        spec: SAME,
        process: "tcp",
    };
    let changes = told(&script, true);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(
        changes[0].contains("tcp in the engine process") && changes[0].contains("start script"),
        "{changes:?}"
    );
}

#[test]
fn a_graph_that_may_not_be_read_costs_one_line() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let same = Changed {
        graph: SAME,
        spec: SAME,
        process: SAME,
    };
    let api = cluster(&same, [&prefill, &decode])
        .rights(stand_in::Rights::all().deny("get", "dynamographdeployments.nvidia.com"))
        .start()
        .unwrap();
    let done = run(&api, &["check", "llama", "-n", "serving", "-o", "jsonl"]);
    let lines: Vec<&str> = done
        .out
        .lines()
        .filter(|line| line.contains("optional-right-missing"))
        .collect();
    assert_eq!(lines.len(), 1, "{}", done.out);
    assert!(lines[0].contains("\"skipped\""));
}
