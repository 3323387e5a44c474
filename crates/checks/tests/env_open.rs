//! What a manifest leaves open: roles that nothing names, values that the start script decides, variables and halves that
//! are elsewhere. None of it may read like a green light, and none of it is a finding by itself.

#![allow(clippy::indexing_slicing, reason = "a broken test should stop")]

use std::fmt::Write as _;

use checks::judge_env;
use model::{CheckResult, Readiness, Reason, Report, Role, Status};

const NIXL: &str = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#;
const TCP: &str = "tcp,cuda_copy";

fn judge(files: &[(&str, String)]) -> Report {
    let drafts = files
        .iter()
        .map(|(path, text)| recipe::read(path, text))
        .collect();
    judge_env(&recipe::assemble(drafts), vec!["recipes".into()])
}

fn one(text: String) -> Report {
    judge(&[("recipes/all.yaml", text)])
}

fn indented(lines: &str, by: usize) -> String {
    let lines: Vec<String> = lines
        .lines()
        .map(|l| format!("{}{l}\n", " ".repeat(by)))
        .collect();
    lines.concat()
}

/// A Deployment whose script is `lines`, with `extra` lines in its container.
fn pod(name: &str, labels: &str, lines: &str, extra: &str) -> String {
    let script = indented(lines, 10);
    let extra = indented(extra, 8);
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  template:\n    metadata: {{labels: {{{labels}}}}}\n    spec:\n      containers:\n      - name: server\n        image: registry.example/team/engine:v1.2.0\n        command: [bash, -c]\n        args:\n        - |\n{script}        securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}\n        resources: {{limits: {{nvidia.com/gpu: 1, rdma/ib: 1}}}}\n{extra}"
    )
}

fn side_channel() -> &'static str {
    "- {name: VLLM_NIXL_SIDE_CHANNEL_HOST, valueFrom: {fieldRef: {fieldPath: status.podIP}}}"
}

fn serve(kv: &str) -> String {
    format!("exec vllm serve team/model --kv-transfer-config '{kv}'")
}

/// A worker that serves with this connector and these variables.
fn worker(name: &str, labels: &str, kv: &str, env: &[(&str, &str)]) -> String {
    let mut list = format!("env:\n{}\n", side_channel());
    for (key, value) in env {
        let _infallible = writeln!(list, "- {{name: {key}, value: '{value}'}}");
    }
    pod(name, labels, &serve(kv), &list)
}

/// Prefill and decode with a start script in front of the engine.
fn scripted(script: &str, extra: &str) -> Report {
    let half = |role: &str| {
        pod(
            &format!("llm-{role}"),
            "",
            &format!("{script}\n{}", serve(NIXL)),
            &format!("env:\n{}\n{extra}", side_channel()),
        )
    };
    one(half("prefill") + &half("decode"))
}

fn causes(report: &Report) -> Vec<(&'static str, Status)> {
    report
        .results
        .iter()
        .filter(|r| matches!(r.status, Status::Warn | Status::Fail))
        .filter_map(|r| Some((r.cause?, r.status)))
        .collect()
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

fn skipped<'r>(report: &'r Report, name: &str, reason: Reason) -> Vec<&'r CheckResult> {
    report
        .results
        .iter()
        .filter(|r| r.name == name && r.status == Status::Skipped && r.reason == Some(reason))
        .collect()
}

const TCP_FAILS: (&str, Status) = ("ucx-tls-tcp-only", Status::Fail);
const TCP_WARNS: (&str, Status) = ("ucx-tls-tcp-only", Status::Warn);

#[test]
fn other_words_name_roles_beside_a_connector() {
    for (prefill, decode) in [
        ("llm-ctx", "llm-gen"),
        ("context", "generation"),
        ("llm-producer-0", "llm-consumer-0"),
    ] {
        let report =
            one(worker(prefill, "", NIXL, &[]) + &worker(decode, "", NIXL, &[("UCX_TLS", TCP)]));
        assert_eq!(roles(&report), [Role::Prefill, Role::Decode], "{prefill}");
        assert_eq!(causes(&report), [TCP_FAILS]);
    }
    let report = one(worker("a", "stage: ctx", NIXL, &[]) + &worker("b", "stage: gen", NIXL, &[]));
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    assert_eq!(report.readiness, Readiness::Unproven);
    // The half that lacks its connector.
    let report =
        one(worker("llm-ctx", "", NIXL, &[])
            + &pod("llm-gen", "", "exec vllm serve team/model", ""));
    assert_eq!(causes(&report), [("decode-no-connector", Status::Fail)]);
    // The same words without a connector, and of another name.
    for text in [
        pod("image-gen", "", "exec vllm serve team/model", ""),
        pod("long-context", "", "exec vllm serve team/model", ""),
        pod("a-ctx", "", "exec vllm serve team/model", "")
            + &pod("a-gen", "", "exec vllm serve team/model", ""),
    ] {
        let report = one(text);
        assert!(roles(&report).iter().all(|r| *r == Role::Aggregated));
        assert_eq!(report.readiness, Readiness::NotApplicable);
    }
    let report = one(worker("llm-ctx", "", NIXL, &[])
        + &worker("llm-gen", "", NIXL, &[])
        + &pod("image-gen", "", "exec vllm serve team/model", ""));
    assert_eq!(causes(&report), []);
}

#[test]
fn tensorrt_llm_says_context_and_generation() {
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  x.yml: |\n    cache_transceiver_config:\n      backend: UCX\n";
    let half = |name: &str, flags: &str, env: &str| {
        pod(
            name,
            "",
            &format!("exec trtllm-serve team/model --extra_llm_api_options /cfg/x.yml {flags}"),
            &format!("{env}volumeMounts: [{{name: c, mountPath: /cfg}}]\n"),
        ) + "      volumes: [{name: c, configMap: {name: c}}]\n"
    };
    let tcp = "env: [{name: UCX_TLS, value: 'tcp,cuda_copy'}]\n";
    let report = one(map.to_owned() + &half("trt-ctx", "", "") + &half("trt-gen", "", tcp));
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    assert_eq!(causes(&report), [TCP_FAILS]);
    let report = one(map.to_owned()
        + &half("one", "--server_role CONTEXT", "")
        + &half("two", "--server_role GENERATION", ""));
    assert_eq!(roles(&report), [Role::Prefill, Role::Decode]);
    let report = one(map.to_owned() + &half("one", "", ""));
    assert_eq!(roles(&report), [Role::Unknown]);
}

#[test]
fn a_connector_without_a_role_is_inconclusive() {
    let report = one(worker("vllm-a", "", NIXL, &[]) + &worker("vllm-b", "", NIXL, &[]));
    assert_eq!(roles(&report), [Role::Unknown, Role::Unknown]);
    assert_eq!(causes(&report), []);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    let unseen = skipped(&report, "env/roles", Reason::NotVisible);
    assert_eq!(unseen.len(), 2);
    assert!(unseen.iter().all(|r| r.required && r.sources.len() == 1));
    // Its own faults show all the same.
    let report = one(worker("vllm-b", "", NIXL, &[("UCX_TLS", TCP)]));
    assert_eq!(causes(&report), [TCP_FAILS]);

    // Connectors that move nothing between workers, and workers that say that they do both.
    for report in [
        one(worker(
            "a",
            "",
            r#"{"kv_connector":"OffloadingConnector","kv_role":"kv_both"}"#,
            &[],
        )),
        one(worker(
            "a",
            "",
            r#"{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}"#,
            &[],
        )),
        one(worker("a", "llm-d.ai/role: both", NIXL, &[])),
        one(pod(
            "a",
            "",
            "exec python3 -m sglang.launch_server --model-path m --disaggregation-transfer-backend nixl",
            "",
        )),
        one(pod(
            "a",
            "",
            &format!(
                "exec python3 -m dynamo.vllm --disaggregation-mode agg --kv-transfer-config '{NIXL}'"
            ),
            "",
        )),
        one(pod(
            "a",
            "",
            r#"exec python3 -m dynamo.trtllm --override-engine-args '{"cache_transceiver_config":{"backend":"DEFAULT"}}'"#,
            "",
        )),
    ] {
        assert_eq!(roles(&report), [Role::Aggregated]);
        assert_eq!(report.readiness, Readiness::NotApplicable);
    }
}

#[test]
fn variables_of_dynamo_tell_roles() {
    let half = |name: &str, engine: &str, env: &[(&str, &str)]| {
        let list: Vec<String> = env
            .iter()
            .map(|(k, v)| format!("- {{name: {k}, value: '{v}'}}\n"))
            .collect();
        let list = list.concat();
        pod(
            name,
            "",
            &format!("exec python3 -m {engine}"),
            &format!("env:\n{}\n{list}", side_channel()),
        )
    };
    let vllm = format!("dynamo.vllm --kv-transfer-config '{NIXL}'");
    let trt =
        r#"dynamo.trtllm --override-engine-args '{"cache_transceiver_config":{"backend":"UCX"}}'"#;
    for (engine, prefill, decode) in [
        (
            vllm.as_str(),
            ("DYN_VLLM_DISAGGREGATION_MODE", "prefill"),
            ("DYN_VLLM_DISAGGREGATION_MODE", "decode"),
        ),
        (
            vllm.as_str(),
            ("DYN_VLLM_IS_PREFILL_WORKER", "true"),
            ("DYN_VLLM_IS_DECODE_WORKER", "1"),
        ),
        (
            trt,
            ("DYN_TRTLLM_DISAGGREGATION_MODE", "prefill"),
            ("DYN_TRTLLM_DISAGGREGATION_MODE", "decode"),
        ),
    ] {
        let report = one(half("a", engine, &[prefill]) + &half("b", engine, &[decode]));
        assert_eq!(roles(&report), [Role::Prefill, Role::Decode], "{prefill:?}");
        assert_eq!(causes(&report), []);
    }
    // The flag wins; the variable of another engine, and one that is off, say nothing.
    let flag = format!("{vllm} --disaggregation-mode decode");
    let report = one(half(
        "a",
        &flag,
        &[("DYN_VLLM_DISAGGREGATION_MODE", "prefill")],
    ));
    assert_eq!(roles(&report), [Role::Decode]);
    let report = one(half(
        "a",
        trt,
        &[("DYN_VLLM_DISAGGREGATION_MODE", "prefill")],
    ));
    assert_eq!(roles(&report), [Role::Aggregated]);
    let report = one(half("a", &vllm, &[("DYN_VLLM_IS_PREFILL_WORKER", "false")]));
    assert_eq!(roles(&report), [Role::Unknown]);
}

fn ray(serve: &str, groups: &[(&str, &str)]) -> Report {
    let mut text = format!(
        "apiVersion: ray.io/v1\nkind: RayService\nmetadata: {{name: r}}\nspec:\n  serveConfigV2: |\n{serve}  rayClusterConfig:\n    headGroupSpec:\n      template: {{spec: {{containers: [{{name: head, image: registry.example/ray:2.50}}]}}}}\n    workerGroupSpecs:\n"
    );
    for (name, extra) in groups {
        let _infallible = write!(
            text,
            "    - groupName: {name}\n      replicas: 1\n      template:\n        spec:\n          containers:\n          - name: w\n            image: registry.example/ray:2.50\n            securityContext: {{capabilities: {{add: [IPC_LOCK]}}}}\n            resources: {{limits: {{nvidia.com/gpu: 4, rdma/ib: 1}}}}\n{extra}"
        );
    }
    one(text)
}

fn application(decode: &str) -> String {
    let kv = "{kv_connector: NixlConnector, kv_role: kv_both}";
    format!(
        "    applications:\n    - name: pd\n      args:\n        prefill_config:\n          model_loading_config: {{model_source: team/model}}\n          engine_kwargs: {{kv_transfer_config: {kv}}}\n        decode_config:\n          model_loading_config: {{model_source: team/model}}\n          engine_kwargs: {{{decode}}}\n          runtime_env: {{env_vars: {{UCX_TLS: 'rc,cuda_copy'}}}}\n"
    )
}

#[test]
fn ray_serves_prefill_and_decode() {
    let kv = "kv_transfer_config: {kv_connector: NixlConnector, kv_role: kv_both}";
    let tcp = "            env: [{name: UCX_TLS, value: 'tcp,cuda_copy'}]\n";
    for groups in [&[("prefill", ""), ("decode", "")] as &[_], &[("gpu", "")]] {
        let report = ray(&application(kv), groups);
        let of_kv: Vec<Role> = roles(&report)
            .into_iter()
            .filter(|r| r.moves_kv())
            .collect();
        assert_eq!(of_kv, [Role::Prefill, Role::Decode]);
        assert_eq!(causes(&report), []);
        assert_eq!(report.readiness, Readiness::Unproven);
        let report = ray(&application(""), groups);
        assert_eq!(causes(&report), [("decode-no-connector", Status::Fail)]);
    }
    // The runtime environment wins over the pod's.
    let report = ray(&application(kv), &[("prefill", tcp), ("decode", tcp)]);
    assert_eq!(causes(&report), [TCP_FAILS]);
    // Start commands of their own, under the names of the groups.
    let command = |env: &str| {
        format!("            command: [vllm, serve, m, --kv-transfer-config, '{NIXL}']\n{env}")
    };
    let (plain, slow) = (command(""), command(tcp));
    let other = "    applications:\n    - name: llm\n";
    let report = ray(other, &[("prefill", &plain), ("decode", &slow)]);
    assert_eq!(causes(&report), [TCP_FAILS]);
    let report = ray(other, &[("prefill", &plain), ("decode", &plain)]);
    assert_eq!(causes(&report), []);
    // An aggregated application.
    let report = ray(other, &[("gpu", "")]);
    assert_eq!(report.readiness, Readiness::NotApplicable);
}

#[test]
fn branches_are_tried() {
    for harmful in [
        "if [ -z \"$FOO\" ]; then\n  export UCX_TLS=tcp,cuda_copy\nfi",
        "export UCX_TLS=rc,cuda_copy\nif [ -n \"$FOO\" ]; then export UCX_TLS=tcp,cuda_copy; fi",
        "case \"$FOO\" in\n  a) export UCX_TLS=rc,cuda_copy ;;\n  *) export UCX_TLS=tcp,cuda_copy ;;\nesac",
        "[ -e /dev/infiniband ] || export UCX_TLS=tcp,cuda_copy",
        "[[ -n $FOO ]] && export UCX_TLS=tcp,cuda_copy",
        "UCX_TLS=tcp,cuda_copy\nif true; then UCX_TLS=rc,cuda_copy; fi\nexport UCX_TLS",
    ] {
        let report = scripted(harmful, "");
        assert_eq!(causes(&report), [TCP_WARNS, TCP_WARNS], "{harmful}");
        assert_eq!(report.readiness, Readiness::Degraded);
        assert!(skipped(&report, "env/ucx-tls", Reason::Dynamic).is_empty());
    }
    // Other settings are tried as well.
    let report = scripted(
        "if true; then export UCX_NET_DEVICES='mlx5_0:1, mlx5_1:1'; fi",
        "",
    );
    assert_eq!(causes(&report), [("ucx-netdev-space", Status::Warn); 2]);
    // No branch does harm: it is not known all the same, and the verdict says so.
    for harmless in [
        "if [ -n \"$FOO\" ]; then export UCX_TLS=rc,cuda_copy; else export UCX_TLS=rc,cuda_copy,cuda_ipc; fi",
        "export UCX_TLS=$(choose)",
        "export UCX_TLS=$SITE_TLS",
    ] {
        let report = scripted(harmless, "");
        assert_eq!(causes(&report), [], "{harmless}");
        assert_eq!(report.readiness, Readiness::Unproven);
        assert_eq!(skipped(&report, "env/ucx-tls", Reason::Dynamic).len(), 2);
        assert!(
            report
                .verdict
                .contains("UCX_TLS of prefill is decided at start")
        );
    }
    // What is set after the branch replaces it; a chain that only goes on is no branch.
    for plain in [
        "if true; then export UCX_TLS=tcp,cuda_copy; fi\nexport UCX_TLS=rc,cuda_copy",
        "mkdir -p /tmp/x && export UCX_TLS=rc,cuda_copy",
    ] {
        let report = scripted(plain, "");
        assert_eq!(causes(&report), [], "{plain}");
        assert!(skipped(&report, "env/ucx-tls", Reason::Dynamic).is_empty());
    }
}

#[test]
fn defaults_and_references_that_nothing_defines() {
    for script in [
        "export UCX_TLS=\"${UCX_TLS:-tcp,cuda_copy}\"",
        "export UCX_TLS=${UCX_TLS-tcp,cuda_copy}",
        ": \"${UCX_TLS:=tcp,cuda_copy}\"\nexport UCX_TLS",
    ] {
        let report = scripted(script, "");
        assert_eq!(causes(&report), [TCP_FAILS, TCP_FAILS], "{script}");
        // Something that is not in the input may set it: a value to try.
        let report = scripted(script, "envFrom: [{configMapRef: {name: site}}]\n");
        let report_causes = causes(&report);
        assert_eq!(report_causes, [TCP_WARNS, TCP_WARNS], "{script}");
        // The pod sets it.
        let report = scripted(script, "- {name: UCX_TLS, value: 'rc,cuda_copy'}\n");
        assert_eq!(causes(&report), [], "{script}");
    }
    let reference = "- {name: UCX_TLS, value: '$(NOPE),cuda_copy'}\n";
    let report = scripted("true", reference);
    assert_eq!(causes(&report), [("ucx-tls-unknown-name", Status::Fail); 2]);
    for open in [
        "envFrom: [{configMapRef: {name: site}}]\n",
        "envFrom: [{secretRef: {name: site}}]\n",
    ] {
        let report = scripted("true", &format!("{reference}{open}"));
        assert_eq!(causes(&report), []);
        assert_eq!(skipped(&report, "env/ucx-tls", Reason::Dynamic).len(), 2);
    }
    let report = scripted("true", &format!("- {{name: NOPE, value: rc}}\n{reference}"));
    assert_eq!(causes(&report), []);
}

#[test]
fn env_from_takes_variables_under_a_prefix() {
    let map = |key: &str, value: &str| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: net}}\ndata:\n  {key}: {value}\n"
        )
    };
    let halves = |from: &str| {
        ["prefill", "decode"]
            .map(|role| {
                pod(
                    &format!("llm-{role}"),
                    "",
                    &serve(NIXL),
                    &format!("env:\n{}\nenvFrom: [{from}]\n", side_channel()),
                )
            })
            .concat()
    };
    let prefixed = "{prefix: UCX_, configMapRef: {name: net}}";
    let report = one(map("TLS", TCP) + &halves(prefixed));
    assert_eq!(causes(&report), [TCP_FAILS, TCP_FAILS]);
    // The key alone is no variable, and with a prefix another one.
    assert_eq!(
        causes(&one(
            map("TLS", TCP) + &halves("{configMapRef: {name: net}}")
        )),
        []
    );
    assert_eq!(causes(&one(map("UCX_TLS", TCP) + &halves(prefixed))), []);

    let note = |from: &str| {
        let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {UCX_TLS: hush}\n";
        let report = one(secret.to_owned() + &halves(from));
        assert_eq!(causes(&report), []);
        assert!(!format!("{report:?}").contains("hush"));
        let unset = report
            .results
            .iter()
            .find(|r| r.name == "env/missing-settings");
        unset.and_then(|r| r.note.clone()).unwrap_or_default()
    };
    assert!(
        note("{configMapRef: {name: net}}")
            .contains("envFrom of ConfigMap net, which is not in the input")
    );
    assert!(note("{secretRef: {name: keys}}").contains("envFrom of Secret keys"));
}

#[test]
fn the_other_half_is_missing() {
    let prefill = worker("llm-prefill", "", NIXL, &[("UCX_TLS", "rc,cuda_copy")]);
    let report = one(prefill.clone());
    assert_eq!(causes(&report), []);
    assert_eq!(report.readiness, Readiness::Unproven);
    assert_eq!(skipped(&report, "env/roles", Reason::NotVisible).len(), 1);
    assert!(
        report.verdict.contains("decode is not in the input"),
        "{}",
        report.verdict
    );
    let report = one(prefill + &worker("llm-decode", "", NIXL, &[]));
    assert_eq!(
        skipped(&report, "env/roles", Reason::NotVisible),
        Vec::<&CheckResult>::new()
    );
    assert!(
        !report.verdict.contains("not in the input"),
        "{}",
        report.verdict
    );
}

#[test]
fn a_connector_that_keeps_kv_moves_none() {
    let kv = r#"{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}"#;
    let halves = |env: &[(&str, &str)]| {
        one(worker("llm-prefill", "", kv, env) + &worker("llm-decode", "", kv, env))
    };
    let report = halves(&[]);
    assert_eq!(causes(&report), []);
    assert_eq!(report.readiness, Readiness::Inconclusive);
    assert!(
        report.verdict.contains("nothing visible moves it"),
        "{}",
        report.verdict
    );
    let report = halves(&[("LMCACHE_ENABLE_PD", "true")]);
    assert_eq!(report.readiness, Readiness::Unproven);
}

#[test]
fn pools_of_one_role_are_compared_each() {
    let bare =
        |name: &str, env: &[(&str, &str)]| worker(name, "", NIXL, env).replace(", rdma/ib: 1", "");
    let good = |name: &str| worker(name, "", NIXL, &[]);
    let report = one(good("llm-prefill") + &good("llm-decode") + &bare("llm-decode-b", &[]));
    assert_eq!(causes(&report), [("one-role-lacks-fabric", Status::Fail)]);
    let finding = report
        .results
        .iter()
        .find(|r| r.cause == Some("one-role-lacks-fabric"));
    assert!(finding.is_some_and(|r| r.detail.contains("llm-decode-b (decode)")));
    let report = one(good("llm-prefill") + &good("llm-decode") + &good("llm-decode-b"));
    assert_eq!(causes(&report), []);

    // Other comparisons.
    let with =
        |name: &str, flags: &str| good(name).replace("team/model", &format!("team/model {flags}"));
    for (flags, cause) in [
        ("--block-size 32", "block-size-differs"),
        ("--kv-cache-dtype fp8", "kv-cache-dtype-differs"),
    ] {
        let other = flags.replace("32", "16").replace("fp8", "auto");
        let report = one(with("llm-prefill", &other)
            + &with("llm-decode", &other)
            + &with("llm-decode-b", flags));
        assert!(causes(&report).iter().any(|(c, _)| *c == cause), "{cause}");
        // Each has its partner.
        let report = one(with("llm-prefill", &other)
            + &with("llm-prefill-b", flags)
            + &with("llm-decode", &other)
            + &with("llm-decode-b", flags));
        assert_eq!(causes(&report), [], "{cause}");
    }
    let report = one(good("llm-prefill")
        + &good("llm-decode")
        + &good("llm-decode-b").replace("Nixl", "Mooncake"));
    assert!(causes(&report).contains(&("connector-differs", Status::Fail)));
}

#[test]
fn sibling_directories_hold_halves_where_names_agree() {
    let prefill = |name: &str| worker(name, "", NIXL, &[]);
    let decode = |name: &str| pod(name, "", "exec vllm serve team/model", "");
    for (p, d, paths) in [
        (
            "qwen-prefill",
            "qwen-decode",
            ["p/prefill.yaml", "d/decode.yaml"],
        ),
        (
            "qwen-prefill",
            "qwen-decode",
            ["all/one/x.yaml", "all/two/x.yaml"],
        ),
    ] {
        let report = judge(&[(paths[0], prefill(p)), (paths[1], decode(d))]);
        assert_eq!(report.deployments.len(), 1, "{paths:?}");
        assert_eq!(causes(&report), [("decode-no-connector", Status::Fail)]);
    }
    // The same model under names that do not agree.
    let report = judge(&[
        ("all/one/x.yaml", prefill("one-prefill")),
        ("all/two/x.yaml", worker("two-decode", "", NIXL, &[])),
    ]);
    assert_eq!(report.deployments.len(), 1);
    // Other names and models; directories that are no siblings; more than two.
    for files in [
        vec![
            ("all/one/x.yaml", prefill("one-prefill")),
            (
                "all/two/x.yaml",
                decode("two-decode").replace("team/model", "team/other"),
            ),
        ],
        vec![
            ("a/b/x.yaml", prefill("q-prefill")),
            ("c/d/x.yaml", decode("q-decode")),
        ],
        vec![
            ("all/one/x.yaml", prefill("q-prefill")),
            ("all/two/x.yaml", decode("q-decode")),
            ("all/three/x.yaml", prefill("q-prefill")),
        ],
    ] {
        let report = judge(&files);
        assert_eq!(report.deployments.len(), files.len());
        assert_eq!(causes(&report), []);
    }
}

#[test]
fn why_a_swapped_kv_role_is_quiet() {
    let half = |mode: &str, role: &str| {
        let kv = format!(r#"{{"kv_connector":"NixlConnector","kv_role":"{role}"}}"#);
        pod(
            &format!("llm-{mode}"),
            "",
            &format!(
                "exec python3 -m dynamo.vllm --disaggregation-mode {mode} --kv-transfer-config '{kv}'"
            ),
            &format!("env:\n{}\n", side_channel()),
        )
    };
    let report = one(half("prefill", "kv_consumer") + &half("decode", "kv_producer"));
    assert_eq!(causes(&report), []);
    let notes = report.results.iter().filter(|r| {
        r.name == "env/kv-connector"
            && r.note
                .as_ref()
                .is_some_and(|n| n.contains("decides nothing here"))
    });
    assert_eq!(notes.count(), 2);
    let report = one(half("prefill", "kv_producer") + &half("decode", "kv_consumer"));
    assert!(
        report
            .results
            .iter()
            .all(|r| r.name != "env/kv-connector" || r.note.is_none())
    );
}
