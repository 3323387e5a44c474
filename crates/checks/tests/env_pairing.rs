//! Which objects are judged together, and what is said where the halves of a deployment do not fit.

#![allow(clippy::indexing_slicing, reason = "a broken test should stop")]

use std::fmt::Write as _;

use checks::judge_env;
use model::{Engine, Readiness, Report, Role, Status};

const NIXL: &str = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#;

/// A Deployment of one engine container.
#[derive(Clone)]
struct Object {
    name: &'static str,
    kind: &'static str,
    labels: &'static str,
    command: String,
}

impl Object {
    fn new(name: &'static str, command: impl Into<String>) -> Self {
        Self {
            name,
            kind: "Deployment",
            labels: "",
            command: command.into(),
        }
    }

    fn labels(mut self, labels: &'static str) -> Self {
        self.labels = labels;
        self
    }

    fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    fn yaml(&self) -> String {
        let mut out = format!(
            "apiVersion: apps/v1\nkind: {}\nmetadata: {{name: {}}}\nspec:\n  template:\n    metadata: {{labels: {{{}}}}}\n",
            self.kind, self.name, self.labels
        );
        out.push_str("    spec:\n      containers:\n      - name: server\n        image: registry.example/team/engine:v1.2.0\n");
        let _infallible = writeln!(
            out,
            "        command: [sh, -c]\n        args:\n        - |\n          exec {}",
            self.command
        );
        out.push_str("        env:\n        - {name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}\n");
        out.push_str("        securityContext: {capabilities: {add: [IPC_LOCK]}}\n        resources: {limits: {nvidia.com/gpu: 1, rdma/ib: 1}}\n");
        out
    }
}

fn vllm(kv: &str) -> String {
    format!("vllm serve team/model --kv-transfer-config '{kv}'")
}

fn no_connector() -> String {
    "vllm serve team/model --port 8000".into()
}

fn sglang(mode: &str) -> String {
    format!(
        "python3 -m sglang.launch_server --model-path team/model --disaggregation-transfer-backend nixl {mode}"
    )
}

/// Judges files, each of several objects.
fn judge(files: &[(&str, &[Object])]) -> Report {
    let drafts = files
        .iter()
        .map(|(path, objects)| {
            let text: Vec<String> = objects.iter().map(Object::yaml).collect();
            recipe::read(path, &text.join("---\n"))
        })
        .collect();
    judge_env(&recipe::assemble(drafts), vec!["recipes".into()])
}

/// In one file, and in two of one directory.
fn both_ways(a: &Object, b: &Object) -> [Report; 2] {
    [
        judge(&[("recipes/all.yaml", &[a.clone(), b.clone()])]),
        judge(&[
            ("recipes/one.yaml", std::slice::from_ref(a)),
            ("recipes/two.yaml", std::slice::from_ref(b)),
        ]),
    ]
}

fn causes(report: &Report) -> Vec<(&'static str, Status)> {
    report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
        .filter_map(|r| Some((r.cause?, r.status)))
        .collect()
}

fn has(report: &Report, cause: &str) -> bool {
    causes(report).iter().any(|(c, _)| *c == cause)
}

fn roles(report: &Report) -> Vec<Role> {
    let mut roles: Vec<Role> = report
        .deployments
        .iter()
        .flat_map(|d| d.workers.iter().map(|w| w.role))
        .collect();
    roles.sort_unstable();
    roles
}

#[test]
fn the_half_without_a_connector_belongs_to_the_other() {
    for (name, prefill, decode) in [
        ("names", ("llm-prefill", ""), ("llm-decode", "")),
        (
            "a plain label",
            ("llm-a", "role: prefill"),
            ("llm-b", "role: decode"),
        ),
        (
            "different labels",
            ("llm-a", "app.kubernetes.io/component: prefill"),
            ("llm-b", "llm-d.ai/role: decode"),
        ),
        (
            "a label of one's own",
            ("llm-a", "example.com/disaggregation-role: prefill"),
            ("llm-b", "disagg_role: decode"),
        ),
        (
            "a name and a label",
            ("llm-prefill", ""),
            ("llm-b", "app.kubernetes.io/component: decode-worker"),
        ),
        ("names alone", ("prefill", ""), ("decode", "")),
        ("letters", ("llm-p", ""), ("llm-d", "role: decode")),
    ] {
        let one = |(name, labels): (&'static str, &'static str), command: String| {
            Object::new(name, command).labels(labels)
        };
        for (engine, with, without) in [
            ("vLLM", vllm(NIXL), no_connector()),
            (
                "SGLang",
                sglang("--disaggregation-mode prefill"),
                "python3 -m sglang.launch_server --model-path team/model".to_owned(),
            ),
        ] {
            for report in both_ways(&one(prefill, with.clone()), &one(decode, without.clone())) {
                assert_eq!(report.deployments.len(), 1, "{engine}, {name}");
                assert_eq!(
                    causes(&report),
                    [("decode-no-connector", Status::Fail)],
                    "{engine}, {name}"
                );
            }
        }
        let with = vllm(NIXL);
        for report in both_ways(&one(prefill, no_connector()), &one(decode, with)) {
            assert!(has(&report, "prefill-no-connector"), "{name}");
            assert_eq!(report.readiness, Readiness::Blocked, "{name}");
        }
    }
}

#[test]
fn arguments_of_the_images_own_program_are_seen() {
    let pair = |decode: &str| {
        let image = |object: Object| {
            let text = object.yaml();
            let (from, to) = (
                text.find("        command:").unwrap_or(0),
                text.find("        env:").unwrap_or(0),
            );
            let (head, tail) = (
                text.get(..from).unwrap_or_default(),
                text.get(to..).unwrap_or_default(),
            );
            format!("{head}        args: [{}]\n{tail}", object.command)
                .replace("team/engine", "vllm/vllm-openai")
        };
        let text = [
            image(Object::new(
                "llm-prefill",
                format!("--model, /models/m, --kv-transfer-config, '{NIXL}'"),
            )),
            image(Object::new("llm-decode", decode)),
        ];
        let draft = recipe::read("all.yaml", &text.join("---\n"));
        judge_env(&recipe::assemble(vec![draft]), Vec::new())
    };
    for decode in [
        "--model, /models/m, --port, '8000'",
        "--model, team/m",
        "team/m, --port, '8000'",
    ] {
        assert_eq!(
            causes(&pair(decode)),
            [("decode-no-connector", Status::Fail)],
            "{decode}"
        );
    }
    for decode in ["/scripts/start.sh", "start.sh, --port, '8000'"] {
        let report = pair(decode);
        assert_eq!(causes(&report), [], "{decode}");
        assert_eq!(report.readiness, Readiness::Inconclusive, "{decode}");
    }
}

#[test]
fn directories_that_are_called_after_roles_hold_halves() {
    let report = judge(&[
        (
            "stack/prefill/deployment.yaml",
            &[Object::new("llm-prefill", vllm(NIXL))],
        ),
        (
            "stack/decode/deployment.yaml",
            &[Object::new("llm-decode", no_connector()).kind("StatefulSet")],
        ),
    ]);
    assert_eq!(causes(&report), [("decode-no-connector", Status::Fail)]);
}

#[test]
fn what_is_not_one_deployment_is_judged_apart() {
    // Two whole deployments in one file, one of them broken.
    let report = judge(&[(
        "all.yaml",
        &[
            Object::new("llama-prefill", vllm(NIXL)),
            Object::new("llama-decode", vllm(NIXL)),
            Object::new("qwen-prefill", vllm(NIXL)),
            Object::new("qwen-decode", no_connector()),
        ],
    )]);
    assert_eq!(report.deployments.len(), 2);
    let readiness: Vec<Readiness> = report.deployments.iter().map(|d| d.readiness).collect();
    assert_eq!(readiness, [Readiness::Unproven, Readiness::Blocked]);

    // Halves of different models in one directory.
    let report = judge(&[
        (
            "all/a.yaml",
            &[Object::new(
                "llama-prefill",
                vllm(NIXL).replace("team/model", "team/a"),
            )],
        ),
        (
            "all/b.yaml",
            &[Object::new(
                "qwen-decode",
                vllm(NIXL).replace("team/model", "team/b"),
            )],
        ),
    ]);
    assert_eq!(report.deployments.len(), 2);
    assert_eq!(causes(&report), []);

    // An aggregated server beside a pair.
    let report = judge(&[
        ("all/a.yaml", &[Object::new("llm-prefill", vllm(NIXL))]),
        ("all/b.yaml", &[Object::new("llm-decode", vllm(NIXL))]),
        ("all/c.yaml", &[Object::new("embedding", no_connector())]),
    ]);
    assert_eq!(report.deployments.len(), 2);
    assert_eq!(causes(&report), []);
    assert_eq!(
        roles(&report),
        [Role::Prefill, Role::Decode, Role::Aggregated]
    );

    // In directories that are no siblings.
    let report = judge(&[
        ("a/c/x.yaml", &[Object::new("llm-prefill", vllm(NIXL))]),
        ("b/x.yaml", &[Object::new("llm-decode", no_connector())]),
    ]);
    assert_eq!(causes(&report), []);
}

#[test]
fn a_name_alone_is_no_role() {
    for object in [
        Object::new("prefill-benchmark", no_connector()),
        Object::new("llm-prefill", no_connector()),
        Object::new("llm-decode", no_connector()).labels("role: decode"),
    ] {
        let report = judge(&[("all/a.yaml", &[object])]);
        assert_eq!(causes(&report), []);
        assert_eq!(roles(&report), [Role::Aggregated]);
    }
    for report in both_ways(
        &Object::new("prefill-heavy", no_connector()),
        &Object::new("decode-heavy", no_connector()),
    ) {
        assert_eq!(causes(&report), []);
        assert_eq!(report.readiness, Readiness::NotApplicable);
    }
    // A load test beside a whole deployment.
    let report = judge(&[
        ("all/a.yaml", &[Object::new("llm-prefill", vllm(NIXL))]),
        ("all/b.yaml", &[Object::new("llm-decode", vllm(NIXL))]),
        (
            "all/c.yaml",
            &[Object::new("llm-prefill-benchmark", no_connector())],
        ),
    ]);
    assert_eq!(causes(&report), []);
}

/// A connector that obeys `kv_role`.
fn with_role(connector: &str, role: &str) -> String {
    vllm(&format!(
        r#"{{"kv_connector":"{connector}","kv_role":"{role}"}}"#
    ))
}

#[test]
fn the_same_role_on_both_sides() {
    for command in [
        with_role("MooncakeConnector", "kv_producer"),
        with_role("P2pNcclConnector", "kv_producer"),
        with_role("P2pNcclConnector", "kv_consumer"),
        sglang("--disaggregation-mode prefill"),
        sglang("--disaggregation-mode decode"),
    ] {
        for (a, b) in [
            (
                Object::new("llm-prefill", &*command),
                Object::new("llm-decode", &*command),
            ),
            (
                Object::new("llm-a", &*command).labels("role: prefill"),
                Object::new("llm-b", &*command).labels("llm-d.ai/role: decode"),
            ),
            (
                Object::new("llm-p", &*command),
                Object::new("llm-d", &*command),
            ),
        ] {
            for report in both_ways(&a, &b) {
                assert_eq!(report.deployments.len(), 1, "{} {command}", a.name);
                assert!(has(&report, "role-missing"), "{} {command}", a.name);
                assert!(!has(&report, "role-contradicts-name"), "{command}");
                if a.name != "llm-p" {
                    assert!(
                        causes(&report).contains(&("role-missing", Status::Fail)),
                        "{command}"
                    );
                }
            }
        }
    }
    // Two prefill groups, with decode elsewhere.
    let report = judge(&[
        (
            "all/a.yaml",
            &[Object::new(
                "llm-prefill-a",
                sglang("--disaggregation-mode prefill"),
            )],
        ),
        (
            "all/b.yaml",
            &[Object::new(
                "llm-prefill-b",
                sglang("--disaggregation-mode prefill"),
            )],
        ),
    ]);
    assert_eq!(causes(&report), []);
}

#[test]
fn a_role_that_contradicts_the_name() {
    let swapped = |connector: &str, labels: [&'static str; 2], names: [&'static str; 2]| {
        both_ways(
            &Object::new(names[0], with_role(connector, "kv_consumer")).labels(labels[0]),
            &Object::new(names[1], with_role(connector, "kv_producer")).labels(labels[1]),
        )
    };
    let names = ["llm-prefill", "llm-decode"];
    for report in swapped("MooncakeConnector", ["", ""], names) {
        assert_eq!(
            causes(&report),
            [("role-contradicts-name", Status::Warn); 2]
        );
        assert!(!report.verdict.contains("can run"), "{}", report.verdict);
    }
    let labels = ["llm-d.ai/role: prefill", "llm-d.ai/role: decode"];
    for report in swapped("MooncakeConnector", labels, ["llm-a", "llm-b"]) {
        assert_eq!(
            causes(&report),
            [("role-contradicts-name", Status::Fail); 2]
        );
    }
    // NIXL goes by what it is asked for, not by kv_role.
    for report in swapped("NixlConnector", labels, names) {
        assert_eq!(causes(&report), [("vllm-kv-role", Status::Warn); 2]);
        assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    }
    for report in swapped("MooncakeConnector", ["", ""], ["llm-decode", "llm-prefill"]) {
        assert_eq!(causes(&report), []);
    }
}

/// A group of pods: a leader that starts the engine, and members that only join.
fn group(name: &str, leader: &str, member: &str) -> String {
    let pod = |command: &str| {
        format!(
            "      spec:\n        containers:\n        - name: server\n          image: registry.example/team/vllm:v1.2.0\n          command: [sh, -c]\n          args:\n          - |\n            exec {command}\n          securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}\n          env:\n          - {{name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}\n          resources: {{limits: {{nvidia.com/gpu: 8, rdma/ib: 8}}}}\n"
        )
    };
    format!(
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: {name}}}\nspec:\n  replicas: 1\n  leaderWorkerTemplate:\n    size: 2\n    leaderTemplate:\n{}    workerTemplate:\n{}",
        pod(leader),
        pod(member)
    )
}

#[test]
fn a_leader_and_its_members_are_one_worker() {
    let join = "ray start --block --address=leader";
    let text = [
        group("llm-prefill", &vllm(NIXL), join),
        group("llm-decode", &vllm(NIXL), join),
    ]
    .join("---\n");
    let draft = recipe::read("groups.yaml", &text);
    let report = judge_env(&recipe::assemble(vec![draft]), Vec::new());
    assert_eq!(causes(&report), []);
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    let nodes: Vec<u64> = report.deployments[0]
        .workers
        .iter()
        .map(|w| w.nodes)
        .collect();
    assert_eq!(nodes, [2, 2]);
    assert_eq!(report.coverage.workers_found, 2);
    assert_eq!(report.coverage.pairs_required, 1);

    // The members' pods are told nothing, and are called nothing.
    let draft = recipe::read(
        "group.yaml",
        &group("llm", &with_role("MooncakeConnector", "kv_producer"), join),
    );
    let report = judge_env(&recipe::assemble(vec![draft]), Vec::new());
    assert_eq!(roles(&report), [Role::Prefill]);
}

/// A KServe service of prefill and decode, each with what its containers say.
fn kserve(prefill: &str, decode: &str) -> Report {
    let container = |more: &str| {
        format!(
            "containers:\n      - name: main\n        securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}\n        resources: {{limits: {{nvidia.com/gpu: 1, rdma/ib: 1}}}}\n{more}"
        )
    };
    let text = format!(
        "apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\nmetadata: {{name: llm}}\nspec:\n  model: {{uri: hf://team/model, name: team/model}}\n  template:\n      {}  prefill:\n    template:\n      {}",
        container(decode),
        container(prefill)
    );
    let draft = recipe::read("service.yaml", &text);
    judge_env(&recipe::assemble(vec![draft]), Vec::new())
}

#[test]
fn kserve_runs_vllm_unless_something_else_is_named() {
    let engines = |report: &Report| -> Vec<(Engine, bool)> {
        report.deployments[0]
            .workers
            .iter()
            .map(|w| (w.engine, w.engine_is_assumed))
            .collect()
    };
    let report = kserve("", "        args: [--port, '8000']\n");
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    assert_eq!(engines(&report), [(Engine::Vllm, true); 2]);
    let report = kserve(
        "        image: registry.example/llm-d/llm-d-cuda:v0.5\n",
        "        image: registry.example/lmsysorg/sglang:v0.5.1\n",
    );
    assert_eq!(
        engines(&report),
        [(Engine::Sglang, false), (Engine::Vllm, false)]
    );
    let script = "        image: registry.example/team/server:1\n        command: [/serve]\n";
    let report = kserve(script, script);
    assert_eq!(engines(&report), [(Engine::Unknown, false); 2]);
}

#[test]
fn kserve_counts_a_group_once() {
    let pod = "containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8, rdma/ib: 8}}, securityContext: {capabilities: {add: [IPC_LOCK]}}}]";
    let text = format!(
        "apiVersion: serving.kserve.io/v1alpha1\nkind: LLMInferenceService\nmetadata: {{name: llm}}\nspec:\n  template: {{{pod}}}\n  worker: {{{pod}}}\n  prefill:\n    template: {{{pod}}}\n    worker: {{{pod}}}\n"
    );
    let draft = recipe::read("service.yaml", &text);
    let report = judge_env(&recipe::assemble(vec![draft]), Vec::new());
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    assert_eq!(report.coverage.workers_found, 2);
}

#[test]
fn a_connector_that_cannot_be_seen_makes_the_verdict_inconclusive() {
    let script = |name| {
        let object = Object::new(name, "./start.sh");
        judge(&[("all.yaml", &[object])])
    };
    // Its name alone is no role; nothing is disaggregated here.
    assert_eq!(script("llm-prefill").readiness, Readiness::NotApplicable);

    let text = |command: &str| {
        let role = |name: &str| {
            format!(
                "    - name: {name}\n      entryTemplate:\n        spec:\n          containers:\n          - name: engine\n            image: registry.example/team/vllm:v1.2.0\n            command: [{command}]\n            securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}\n            env:\n            - {{name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}}}\n            resources: {{limits: {{nvidia.com/gpu: 8, rdma/ib: 8}}}}\n"
            )
        };
        format!(
            "apiVersion: workload.serving.volcano.sh/v1alpha1\nkind: ModelServing\nmetadata: {{name: llm}}\nspec:\n  template:\n    roles:\n{}{}",
            role("prefill"),
            role("decode")
        )
    };
    let report = |text: &str| {
        let draft = recipe::read("serving.yaml", text);
        judge_env(&recipe::assemble(vec![draft]), Vec::new())
    };
    for command in ["./prefill.sh", "bash, /scripts/run.sh", "python3, serve.py"] {
        let report = report(&text(command));
        assert_eq!(roles(&report), [Role::Prefill, Role::Decode], "{command}");
        assert_eq!(causes(&report), [], "{command}");
        assert_eq!(report.readiness, Readiness::Inconclusive, "{command}");
        assert!(
            report.verdict.contains("cannot be seen"),
            "{}",
            report.verdict
        );
        assert!(
            !report.verdict.contains("could not be read"),
            "{}",
            report.verdict
        );
    }
    let shown = report(&text(&format!(
        "vllm, serve, team/model, --kv-transfer-config, '{NIXL}'"
    )));
    assert_eq!(shown.readiness, Readiness::Unproven, "{}", shown.verdict);

    // What is wrong is still wrong.
    let broken = report(&text("./prefill.sh").replace(
        "        env:",
        "        env:\n            - {name: UCX_TLS, value: 'rc'}",
    ));
    assert_ne!(broken.readiness, Readiness::Unproven);
}
