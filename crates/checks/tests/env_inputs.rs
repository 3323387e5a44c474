//! What one input says of workers that another one makes, and what is not said at all: values, kustomizations,
//! objects behind claims.

use checks::judge_env;
use model::{Reason, Report, Role, Status};

fn judge(files: &[(&str, &str)]) -> Report {
    let drafts = files
        .iter()
        .map(|(path, text)| recipe::read(path, text))
        .collect();
    judge_env(&recipe::assemble(drafts), vec!["x".into()])
}

fn causes(report: &Report, status: Status) -> Vec<&'static str> {
    let results = report.results.iter().filter(|r| r.status == status);
    results.filter_map(|r| r.cause).collect()
}

fn roles(report: &Report) -> Vec<Role> {
    let workers = report.deployments.iter().flat_map(|d| &d.workers);
    workers.map(|w| w.role).filter(|r| r.moves_kv()).collect()
}

fn says(report: &Report, words: &str) -> bool {
    report.results.iter().any(|r| r.detail.contains(words))
}

/// The report cannot say that all is well.
#[track_caller]
fn inconclusive(name: &str, report: &Report, cause: &str) {
    assert!(
        causes(report, Status::Skipped).contains(&cause),
        "{name}: {:#?}",
        report.results
    );
    assert_eq!(
        report.readiness,
        model::Readiness::Inconclusive,
        "{name}: {}",
        report.verdict
    );
}

#[test]
fn values_that_name_the_roles_only_are_inconclusive() {
    for text in [
        "enablePD: true\n",
        "engine: {kvRole: kv_producer}\n",
        "prefillWorker: {count: 2}\ndecodeWorker: {count: 1}\n",
        "worker: {prefill: {gpus: 4}, decode: {gpus: 4}}\n",
        "disaggregation: {enabled: true}\n",
        "vllm:\n  env:\n    - {name: UCX_TLS, value: tcp}\n",
        "vllm: {env: {VLLM_NIXL_SIDE_CHANNEL_PORT: 5600}}\n",
    ] {
        inconclusive(text, &judge(&[("values.yaml", text)]), "input-values-alone");
    }
    for text in [
        "enablePD: false\n",
        "disaggregation: {enabled: false}\n",
        "replicaCount: 1\nimage: {repository: nginx}\n",
        "prefill: \"\"\n",
        "mpi: {slots: 8}\nenv: {UCX_TLS: tcp}\n",
        "provider: some-cloud\nenv: {UCX_NET_DEVICES: \"mlx5_0:1\"}\n",
    ] {
        let report = judge(&[("values.yaml", text)]);
        assert_eq!(
            report.readiness,
            model::Readiness::NotApplicable,
            "{text}: {:#?}",
            report.results
        );
    }
}

#[test]
fn values_with_variables_are_judged_for_them() {
    let report = judge(&[(
        "values.yaml",
        "prefillWorker:\n  env:\n    - {name: UCX_TLS, value: \"tcp,cuda_copy\"}\ndecodeWorker:\n  env: {UCX_TLS: \"tcp,cuda_copy\"}\n",
    )]);
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    assert_eq!(
        causes(&report, Status::Warn),
        ["ucx-tls-tcp-only", "ucx-tls-tcp-only"]
    );
    // Nothing tells what accelerator it is.
    let report = judge(&[("values.yaml", "decodeWorker:\n  env: {UCX_TLS: rc}\n")]);
    assert_eq!(
        causes(&report, Status::Warn),
        ["ucx-tls-no-gpu-memory-transport"]
    );
    let report = judge(&[(
        "values.yaml",
        "modelSpec:\n- name: a\n  repository: lmcache/vllm-openai\n  tag: v1\n  lmcacheConfig: {enabled: true, enablePD: true, enableNixl: true, nixlRole: sender, kvRole: kv_producer}\n- name: b\n  repository: lmcache/vllm-openai\n  tag: v1\n  lmcacheConfig: {enabled: true, enablePD: true, enableNixl: true, nixlRole: receiver, kvRole: kv_consumer}\n",
    )]);
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    assert!(says(&report, "both roles use LMCache/NIXL"));
    assert!(
        causes(&report, Status::Warn).is_empty(),
        "{:#?}",
        report.results
    );
}

#[test]
fn a_kustomization_whose_resources_are_not_there_is_inconclusive() {
    let head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
    for (path, text) in [
        (
            "o/kustomization.yaml",
            format!("{head}resources: [../base]\n"),
        ),
        ("o/kustomization.yaml", "resources: [../base]\n".to_owned()),
        (
            "-",
            "namePrefix: a-\nbases:\n- https://git.example/x\n".to_owned(),
        ),
    ] {
        let report = judge(&[(path, &text)]);
        inconclusive(path, &report, "input-kustomization-not-rendered");
    }
    let report = judge(&[
        ("o/kustomization.yaml", "resources: [../base, extra.yaml]\n"),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("base/web.yaml", "kind: Service\nmetadata: {name: web}\n"),
        ("o/extra.yaml", "kind: Service\nmetadata: {name: x}\n"),
    ]);
    assert_eq!(report.readiness, model::Readiness::NotApplicable);
    // Flux's object of the same name is applied by a controller.
    let report = judge(&[(
        "f.yaml",
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: f}\nspec: {path: ./x}\n",
    )]);
    assert_eq!(report.readiness, model::Readiness::NotApplicable);
}

/// A graph whose roles claim from these templates; none for no claim.
fn claims(prefill: Option<&str>, decode: Option<&str>, list: &str) -> String {
    let service = |role: &str, claim: Option<&str>| {
        let (of_container, of_pod) = claim.map_or_else(Default::default, |template| {
            (
                "claims: [{name: c}], ".to_owned(),
                format!(
                    "\n        resourceClaims: [{{name: c, resourceClaimTemplateName: {template}}}]"
                ),
            )
        });
        format!(
            "    {role}:\n      subComponentType: {role}\n      replicas: 1\n      resources: {{{of_container}limits: {{gpu: '1'}}}}\n      extraPodSpec:{of_pod}\n        mainContainer:\n          image: r.example/team/vllm:v1.2.0\n          env: [{{name: UCX_TLS, value: '{list}'}}]\n          command: [python3, -m, dynamo.vllm]\n          args: [--disaggregation-mode, {role}, --enable-sleep-mode, --kv-transfer-config, '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}}']\n"
        )
    };
    format!(
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoGraphDeployment\nmetadata: {{name: kv}}\nspec:\n  services:\n{}{}",
        service("prefill", prefill),
        service("decode", decode)
    )
}

const NVLINK: &str = "cuda_copy,cuda_ipc,tcp";
const DOMAIN: &str = "apiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata: {name: d}\nspec: {numNodes: 0, channel: {resourceClaimTemplate: {name: kv-channel}}}\n";

#[test]
fn a_compute_domain_is_known_by_its_object() {
    let both = claims(Some("kv-channel"), Some("kv-channel"), NVLINK);
    for files in [
        vec![("a/graph.yaml", both.clone()), ("b/domain.yaml", DOMAIN.to_owned())],
        vec![("all.yaml", format!("{both}---\n{DOMAIN}"))],
        vec![
            ("graph.yaml", both.clone()),
            (
                "template.yaml",
                "kind: ResourceClaimTemplate\nmetadata: {name: kv-channel}\nspec: {spec: {devices: {requests: [{name: c, exactly: {deviceClassName: compute-domain-default-channel.nvidia.com}}]}}}\n".to_owned(),
            ),
        ],
    ] {
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (*p, t.as_str())).collect();
        let report = judge(&files);
        assert!(says(&report, "asks for compute domain kv-channel"), "{:#?}", report.results);
        assert!(causes(&report, Status::Warn).is_empty() && causes(&report, Status::Fail).is_empty());
    }
}

#[test]
fn an_unknown_claim_is_neither_a_fabric_nor_none() {
    let report = judge(&[(
        "x.yaml",
        &claims(Some("kv-channel"), Some("kv-channel"), NVLINK),
    )]);
    assert!(says(&report, "may be the fabric, or not"));
    assert!(says(&report, "is right where kv-channel is the channel"));
    assert!(!says(&report, "asks for no fabric") && !says(&report, "KV goes over TCP"));
    let unseen = report
        .results
        .iter()
        .filter(|r| r.reason == Some(Reason::NotVisible));
    assert_eq!(unseen.count(), 4);
    // One role has a domain that is known, the other a claim that is not.
    let report = judge(&[(
        "x.yaml",
        &claims(Some("compute-domain-a"), Some("pool"), NVLINK),
    )]);
    assert!(!causes(&report, Status::Fail).contains(&"one-role-lacks-fabric"));
    // Without any claim it is certain, and a claim on a GPU is none on a fabric.
    for lacks in [None, Some("gpu-claim")] {
        let report = judge(&[("x.yaml", &claims(Some("compute-domain-a"), lacks, NVLINK))]);
        assert!(
            causes(&report, Status::Fail).contains(&"one-role-lacks-fabric"),
            "{lacks:?}"
        );
    }
}

#[test]
fn a_claim_that_sounds_like_a_nic_is_called_that() {
    let recipe = claims(Some("rdma-nic"), Some("rdma-nic"), "rc,cuda_copy");
    let report = judge(&[("x.yaml", &recipe)]);
    assert!(says(
        &report,
        "asks for device claim rdma-nic, a NIC by its name"
    ));
    let template = |class: &str| {
        format!(
            "---\nkind: ResourceClaimTemplate\nmetadata: {{name: rdma-nic}}\nspec: {{spec: {{devices: {{requests: [{{name: c, deviceClassName: {class}}}]}}}}}}\n"
        )
    };
    let report = judge(&[("x.yaml", &format!("{recipe}{}", template("rdma-dranet")))]);
    assert!(
        report
            .results
            .iter()
            .any(|r| r.detail == "asks for device claim rdma-nic")
    );
    // The class wins over the name.
    let report = judge(&[("x.yaml", &format!("{recipe}{}", template("gpu.nvidia.com")))]);
    assert!(!says(&report, "asks for device claim"));
}

#[test]
fn texts_name_the_memory_transport_of_the_accelerator() {
    for (gpu, image, list, missing) in [
        ("amd.com/gpu", "r.example/vllm:v1", "rc", "rocm_copy"),
        ("gpu.intel.com/xe", "r.example/vllm:v1", "rc", "ze_copy"),
        ("gpu", "r.example/rocm/vllm:v1", "rc", "rocm_copy"),
        ("gpu", "r.example/vllm-xpu:v1", "rc", "ze_copy"),
        ("nvidia.com/gpu", "r.example/vllm:v1", "rc", "cuda_copy"),
    ] {
        let recipe = |list: &str| {
            claims(None, None, list)
                .replace("gpu: '1'", &format!("{gpu}: '1', rdma/ib: '1'"))
                .replace("r.example/team/vllm:v1.2.0", image)
        };
        let report = judge(&[("x.yaml", &recipe(list))]);
        assert!(
            says(&report, &format!("has no {missing}")),
            "{gpu} {image}: {:#?}",
            report.results
        );
        let fix = format!("add {missing}, or remove UCX_TLS");
        assert!(
            report
                .results
                .iter()
                .any(|r| r.fix.as_deref() == Some(&fix))
        );
        let report = judge(&[("x.yaml", &recipe(&format!("{list},{missing}")))]);
        assert!(says(&report, "GPU memory supported"), "{gpu} {image}");
        assert!(
            missing == "cuda_copy" || !says(&report, "cuda_copy"),
            "{gpu} {image}"
        );
    }
    // By the class behind a claim.
    let recipe = claims(Some("kv-gpu"), Some("kv-gpu"), "rc")
        .replace("limits: {gpu: '1'}", "limits: {rdma/ib: '1'}")
        + "---\nkind: ResourceClaimTemplate\nmetadata: {name: kv-gpu}\nspec: {spec: {devices: {requests: [{name: c, deviceClassName: gpu.amd.com}]}}}\n";
    assert!(says(&judge(&[("x.yaml", &recipe)]), "has no rocm_copy"));
}

#[test]
fn lmcache_without_its_configuration_is_left_open() {
    let recipe = claims(None, None, "tcp,cuda_copy")
        .replace("gpu: '1'", "gpu: '1', rdma/ib: '1'")
        .replace("NixlConnector", "LMCacheConnectorV1");
    let report = judge(&[("x.yaml", &recipe)]);
    assert!(says(
        &report,
        "UCX_TLS=tcp,cuda_copy cannot be judged: LMCache moves KV over NIXL"
    ));
    assert!(!says(&report, "no effect on KV"));
    assert!(causes(&report, Status::Fail).is_empty());
}

fn kustomized(files: &[(&str, &str)]) -> Report {
    let drafts = files.iter().map(|(path, text)| recipe::read(path, text));
    judge_env(&recipe::assemble(drafts.collect()), Vec::new())
}

/// A patch of every Deployment and one of a single Deployment meet in that one.
#[test]
fn patches_of_one_object_are_judged_together() {
    let overlay = |target: &str, kind: &str| {
        format!(
            "kind: Kustomization\npatches:\n- target: {target}\n  patch: |\n    - op: add\n      path: /spec/template/spec/containers/0/resources/limits/rdma~1ib\n      value: '1'\n- target: {{kind: {kind}, name: kv-decode}}\n  patch: |\n    - op: add\n      path: /spec/template/spec/containers/0/env/-\n      value: {{name: UCX_TLS, value: 'tcp,cuda_copy'}}\n"
        )
    };
    for (target, kind, fails) in [
        ("{kind: Deployment}", "Deployment", true),
        ("{name: .*}", "Deployment", true),
        ("{kind: Deployment, name: kv-decode}", "Deployment", true),
        ("{kind: Deployment}", "StatefulSet", false),
        (
            "{kind: Deployment, labelSelector: app=other}",
            "Deployment",
            false,
        ),
    ] {
        let text = overlay(target, kind);
        let report = kustomized(&[("o/kustomization.yaml", &text)]);
        let failed = report
            .results
            .iter()
            .any(|r| r.cause == Some("ucx-tls-tcp-only") && r.status == Status::Fail);
        assert_eq!(failed, fails, "{text}\n{:#?}", report.results);
    }
}

/// Operations in a file of their own are about the object that the kustomization names.
#[test]
fn a_patch_in_a_file_has_the_role_of_its_target() {
    let report = kustomized(&[
        (
            "o/kustomization.yaml",
            "kind: Kustomization\npatches:\n- path: p.json\n  target: {kind: Deployment, name: kv-decode}\n",
        ),
        (
            "o/p.json",
            r#"[{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "UCX_TLS", "value": "tcp"}}]"#,
        ),
    ]);
    assert!(
        report
            .results
            .iter()
            .any(|r| r.subject.roles == [Role::Decode]
                && r.cause == Some("ucx-tls-no-gpu-memory-transport")),
        "{:#?}",
        report.results
    );
}
