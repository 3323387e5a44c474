//! A secret that stands anywhere in an input is in no output, whatever the format and whatever fails.

use std::fs;

use crate::support::{Dir, FORMATS, Out, Run, container, graph};

/// Recognisable, and of characters that no rule takes for punctuation.
const SECRET: &str = "Zq9hunter2xWv7";

/// Parts of it of this length must not be shown either: a line may be cut.
const PART: usize = 6;

#[track_caller]
fn assert_hidden(what: &str, text: &str) {
    for start in 0..=SECRET.len() - PART {
        let part = &SECRET[start..start + PART];
        if let Some(at) = text.find(part) {
            let from = text[..at]
                .char_indices()
                .rev()
                .nth(200)
                .map_or(0, |(i, _)| i);
            let to = text[at..]
                .char_indices()
                .nth(200)
                .map_or(text.len(), |(i, _)| at + i);
            panic!("{what}: the secret is shown: {}", &text[from..to]);
        }
    }
}

/// Every format and `-v`, on standard output, standard error and into files.
#[track_caller]
fn hidden_everywhere(what: &str, file: &str, content: &[u8]) -> Out {
    let dir = Dir::new();
    dir.file(file, content);
    let run = |args: &[&str]| Run::new(&dir, ["env", file]).args(args).go();
    let text = run(&[
        "-o", "text", "-o", "short=s", "-o", "json=j", "-o", "jsonl=l",
    ]);
    let color = run(&["-v", "--color", "always"]);
    for out in [&text, &color] {
        assert_hidden(&format!("{what}, stdout"), &out.stdout);
        assert_hidden(&format!("{what}, stderr"), &out.stderr);
        assert_eq!(out.code, text.code, "{what}: {out}");
    }
    for name in ["s", "j", "l"] {
        let written = fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(!written.is_empty());
        assert_hidden(&format!("{what}, file {name}"), &written);
    }
    text
}

/// What is done to a recipe so that its lines are shown: nothing, values that fail, values that warn, a slip of
/// the pen in the name.
const VARIANTS: [(&str, &str); 6] = [
    ("UCX_TLS", "rc,cuda_copy"),
    ("UCX_TLS", "tcp"),
    ("UCX_TLS", "rc,cuda_cpoy"),
    ("UCX_TLS", "^tcp"),
    ("UCX_TSL", "tcp"),
    ("UCX_TLS", ""),
];

/// `@S@` is the secret, `@N@` and `@V@` the variable and its value, `@R@` the role.
fn filled(text: &str, role: &str, name: &str, value: &str) -> String {
    text.replace("@S@", SECRET)
        .replace("@N@", name)
        .replace("@V@", value)
        .replace("@R@", role)
}

/// Runs a main container in both roles through all variants.
#[track_caller]
fn container_hides(what: &str, body: &str) {
    assert!(body.contains("@S@"), "{what}: no secret in it");
    let mut shown = 0;
    for (name, value) in VARIANTS {
        let text = graph(
            "g",
            &filled(body, "prefill", name, value),
            &filled(body, "decode", name, value),
        );
        let out = hidden_everywhere(
            &format!("{what}, {name}={value}"),
            "r.yaml",
            text.as_bytes(),
        );
        assert!(out.stdout.contains("verdict"), "{out}");
        shown += usize::from(out.stdout.contains("-->"));
        if value != "tcp" {
            continue;
        }
        // CRLF must not change what is structure.
        hidden_everywhere(
            &format!("{what}, {name}={value}, CRLF"),
            "r.yaml",
            text.replace('\n', "\r\n").as_bytes(),
        );
        // One role without its connector: other lines are shown.
        let half = text.replacen("kv_both", "kv_consumer", 1).replacen(
            "rdma/ib",
            "example.com/nothing",
            1,
        );
        hidden_everywhere(
            &format!("{what}, {name}={value}, half"),
            "r.yaml",
            half.as_bytes(),
        );
    }
    assert!(
        shown > 0,
        "{what}: no variant shows a source line, so nothing was tested"
    );
}

/// The container of a worker, with this behind it.
fn worker(rest: &str) -> String {
    container("@R@", rest)
}

#[test]
fn values_of_other_variables() {
    container_hides(
        "block entry",
        &worker("env:\n  - name: HF_TOKEN\n    value: @S@\n  - name: @N@\n    value: \"@V@\"\n"),
    );
    container_hides(
        "flow entries on one line",
        &worker(
            "env: [{name: HF_TOKEN, value: @S@}, {name: @N@, value: \"@V@\"}, {name: B, value: '@S@'}]\n",
        ),
    );
    container_hides(
        "flow entry, name last",
        &worker("env: [{value: @S@, name: HF_TOKEN}, {value: \"@V@\", name: @N@}]\n"),
    );
    container_hides(
        "flow entry, twice a value",
        &worker("env: [{name: @N@, value: @S@, value: \"@V@\"}]\n"),
    );
    container_hides(
        "mapping",
        &worker("env:\n  HF_TOKEN: @S@\n  @N@: \"@V@\"\n"),
    );
    container_hides(
        "flow mapping",
        &worker("env: {HF_TOKEN: @S@, @N@: \"@V@\", OTHER: \"@S@\"}\n"),
    );
    container_hides(
        "name of a family that nothing reads",
        &worker(
            "env: [{name: UCX_MY_TOKEN, value: @S@}, {name: NIXL_PASSWORD, value: @S@}, {name: @N@, value: \"@V@\"}]\n",
        ),
    );
    container_hides(
        "names close to known ones",
        &worker(
            "env: [{name: UCX_TLSS, value: @S@}, {name: NCCL_DEBUGG, value: @S@}, {name: @N@, value: \"@V@\"}]\n",
        ),
    );
    container_hides(
        "a comma and a colon in quotes",
        &worker("env: {HF_TOKEN: \"pass, @S@: x\", @N@: \"@V@\"}\n"),
    );
    container_hides(
        "a bracket in quotes",
        &worker("env: {HF_TOKEN: 'pass}, {@S@: x', @N@: \"@V@\", X: \"a\\\", @S@: b\"}\n"),
    );
    container_hides(
        "a quote in quotes",
        &worker("env: {HF_TOKEN: 'it''s, @S@: x', @N@: \"@V@\"}\n"),
    );
    container_hides(
        "a quoted value over two lines",
        &worker("env: {HF_TOKEN: \"first\n    @S@: x\", @N@: \"@V@\"}\n"),
    );
    container_hides(
        "an anchor on the line",
        &worker(
            "env: [{name: HF_TOKEN, value: &s @S@}, {name: OTHER, value: *s}, {name: @N@, value: \"@V@\"}]\n",
        ),
    );
    container_hides(
        "a tag on the line",
        &worker("env: [{name: HF_TOKEN, value: !!str @S@}, {name: @N@, value: !!str \"@V@\"}]\n"),
    );
    container_hides(
        "a key in quotes",
        &worker("env: {\"HF_TOKEN\": \"@S@\", \"@N@\": \"@V@\"}\n"),
    );
    container_hides(
        "an explicit key",
        &worker("env: {? HF_TOKEN : @S@, ? @N@ : \"@V@\"}\n"),
    );
    container_hides(
        "other scripts",
        &worker("env: {HF_TOKEN: ключ-@S@, @N@: \"@V@\", Пароль: @S@}\n"),
    );
}

#[test]
fn values_that_refer_to_a_secret() {
    container_hides(
        "a catalogue variable made of another",
        &worker(
            "env: [{name: HF_TOKEN, value: @S@}, {name: NCCL_SOCKET_IFNAME, value: $(HF_TOKEN)}, {name: UCX_NET_DEVICES, value: \"$(HF_TOKEN)\"}, {name: @N@, value: \"@V@\"}]\n",
        ),
    );
    container_hides(
        "a flag made of another variable",
        "image: example.com/vllm-runtime:1.0.0\nenv: [{name: HF_TOKEN, value: @S@}, {name: @N@, value: \"@V@\"}]\ncommand: [python3, -m, dynamo.vllm]\nargs: [--host, $(HF_TOKEN), --kv-cache-dtype, $(HF_TOKEN), --config, $(HF_TOKEN), --disaggregation-mode, @R@, --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}']\n",
    );
    container_hides(
        "a catalogue variable with a URL",
        &worker(
            "env: [{name: UCX_LOG_FILE, value: 'http://user:@S@@host/x'}, {name: NCCL_TOPO_FILE, value: 'https://@S@@host/x'}, {name: MOONCAKE_MASTER, value: 'redis://:@S@@host:1'}, {name: @N@, value: \"@V@\"}]\n",
        ),
    );
    container_hides(
        "a catalogue variable with a user, a token or an argument of a URL",
        &worker(
            "env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: 'user:@S@@host'}, {name: UCX_LOG_FILE, value: '/x?token=@S@'}, {name: UCX_NET_DEVICES, value: sk-ABC0123456789@S@}, {name: UCX_TLS, value: 'tcp,ghp_ABC0123456789@S@'}, {name: @N@, value: \"@V@\"}]\n",
        ),
    );
    container_hides(
        "variables that hold parameters",
        &worker(
            "env:\n  - name: SGLANG_DISAGGREGATION_NIXL_BACKEND_PARAMS\n    value: '{\"access_key\":\"@S@\",\"secret_key\":\"@S@\"}'\n  - {name: NIXL_ETCD_ENDPOINTS, value: 'http://u:@S@@h:2379'}\n  - {name: MOONCAKE_TE_META_DATA_SERVER, value: 'http://u:@S@@h/m'}\n  - name: @N@\n    value: \"@V@\"\n",
        ),
    );
}

/// A container whose start command is this script.
fn script(lines: &str) -> String {
    let indented: String = lines.lines().map(|l| format!("    {l}\n")).collect();
    format!(
        "image: example.com/vllm-runtime:1.0.0\ncommand: [/bin/sh, -c]\nargs:\n  - |\n{indented}"
    )
}

const SERVE: &str = "python3 -m dynamo.vllm --disaggregation-mode @R@ --kv-transfer-config '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}'";

#[test]
fn start_scripts() {
    for (what, lines) in [
        ("export on one line", format!("export TOKEN=@S@ @N@=@V@ B=\"@S@\"\nexec {SERVE}")),
        ("a flag before", format!("export @N@=@V@\nexec python3 -m dynamo.vllm --api-key @S@ --disaggregation-mode @R@ --api-key=@S@ {}", SERVE.split_once("@R@ ").unwrap().1)),
        ("assignment before the command", format!("TOKEN=@S@ @N@=@V@ {SERVE} --api-key '@S@'")),
        ("env before the command", format!("env TOKEN=@S@ @N@=@V@ {SERVE}")),
        ("export behind a separator", format!("TOKEN=@S@;export @N@=@V@;X=@S@\n{SERVE}")),
        ("substitution in a value", format!("export @N@=$(curl -H \"Authorization: @S@\" http://u:@S@@h/tls)\n{SERVE}")),
        ("backticks", format!("export @N@=`curl -H 'Authorization: @S@' http://h`\n{SERVE}")),
        ("a default", format!("export @N@=${{X:-@V@}} TOKEN=${{TOKEN:-@S@}}\n{SERVE}")),
        ("a source", format!(". $(curl -H \"Authorization: @S@\" http://h)\nexport @N@=@V@\n{SERVE}")),
        ("a source only", "export @N@=@V@\nsource <(curl -H \"Authorization: @S@\" http://h)\nsource $(fetch --token @S@)\n. \"$(fetch --token @S@)\"\nsource 'http://u:@S@@h/env'\n./$(fetch --token @S@)/start.sh --token @S@\n".to_owned()),
        ("an own program only", "export @N@=@V@\n\"/opt/run me $(fetch @S@)\" --token @S@\n".to_owned()),
        ("a configuration", format!("export @N@=@V@\n{SERVE} --config http://u:@S@@h/config.yaml")),
        ("a configuration from a program", format!("export @N@=@V@\n{SERVE} --config $(fetch --token @S@)")),
        ("a here-document", format!("cat > /tmp/x <<EOF\ntoken: @S@ @N@=@V@\nEOF\nexport @N@=@V@\n{SERVE}")),
        ("a comment", format!("export @N@=@V@ # token @S@\n{SERVE} # @S@")),
        ("a pipe", format!("echo @S@ | login; export @N@=@V@ && {SERVE} 2>&1 | tee /x/@S@")),
        ("a launcher", format!("mpirun -x TOKEN=@S@ -x @N@=@V@ {SERVE}")),
        ("nested shells", format!("bash -c \"export TOKEN=@S@ @N@=@V@; {}\"", SERVE.replace('"', "\\\""))),
        ("values of flags that are not ours", format!("export @N@=@V@\n{SERVE} --enable-sleep-mode http://u:@S@@h/model")),
        ("an address with a password", format!("export @N@=@V@\n{SERVE} --dist-init-addr http://u:@S@@h:1 --host http://u:@S@@h")),
    ] {
        container_hides(what, &script(&lines));
        let folded = script(&lines.replace('\n', "\n\n")).replace("- |", "- >-");
        container_hides(&format!("{what}, folded"), &folded);
    }
    container_hides(
        "a quoted script",
        &format!(
            "image: example.com/vllm-runtime:1.0.0\ncommand: [sh, -c, \"export TOKEN=@S@ @N@=@V@ && {}\"]\n",
            SERVE.replace('"', "\\\"")
        ),
    );
    container_hides(
        "a script in single quotes",
        &format!(
            "image: example.com/vllm-runtime:1.0.0\ncommand: [sh, -c, 'export TOKEN=@S@ @N@=@V@ && {}']\n",
            SERVE.replace('\'', "''")
        ),
    );
    container_hides(
        "a plain script",
        "image: example.com/vllm-runtime:1.0.0\ncommand: sh\nargs:\n  - -c\n  - export TOKEN=@S@ @N@=@V@ && python3 -m dynamo.vllm --api-key @S@ --disaggregation-mode @R@\n    --more @S@ --connector nixl\n",
    );
}

#[test]
fn arguments() {
    let image = "image: example.com/vllm-runtime:1.0.0\ncommand: [python3, -m, dynamo.vllm]\nenv: [{name: @N@, value: \"@V@\"}]\n";
    for (what, args) in [
        (
            "one line",
            "args: [--api-key, @S@, --disaggregation-mode, @R@, \"--api-key=@S@\", --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}', @S@]",
        ),
        (
            "one argument",
            "args: ['--api-key @S@ --disaggregation-mode @R@ --token=@S@ --connector nixl']",
        ),
        (
            "extra configuration",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config, '{\"token\":\"@S@\",\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{\"token\":\"@S@\",\"backends\":[\"UCX\"],\"key\":\"@S@\"}}']",
        ),
        (
            "values of another type",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"kv_buffer_device\":{\"token\":\"@S@\"},\"kv_connector_extra_config\":{\"backends\":{\"token\":\"@S@\"}}}']",
        ),
        (
            "a list of objects",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{\"backends\":[{\"token\":\"@S@\"},\"UCX\"]}}']",
        ),
        (
            "broken JSON",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"token\":\"@S@\"']",
        ),
        (
            "JSON that is none",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config, '@S@ {x}', --connector, '{@S@}', --mem-pool, '{\"a\":\"@S@\"}']",
        ),
        (
            "dotted",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config.kv_connector, NixlConnector, --kv-transfer-config.kv_connector_extra_config.token, @S@, --kv-transfer-config.token=@S@]",
        ),
        (
            "a wrapper",
            "args: [--disaggregation-mode, @R@, --kv-transfer-config, '{\"kv_connector\":\"MultiConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{\"connectors\":[{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{\"token\":\"@S@\"}}]}}']",
        ),
        (
            "engine arguments",
            "args: [--disaggregation-mode, @R@, --override-engine-args, '{\"token\":\"@S@\",\"cache_transceiver_config\":{\"backend\":\"UCX\",\"key\":\"@S@\"}}', --extra-engine-args, '{\"token\":\"@S@\"}', --config, 's3://u:@S@@h/x']",
        ),
        (
            "over several lines",
            "args:\n  - --disaggregation-mode\n  - @R@\n  - --kv-transfer-config\n  - >-\n    {\"kv_connector\": \"NixlConnector\", \"kv_role\": \"kv_both\",\n    \"token\": \"@S@\", \"kv_connector_extra_config\": {\"backends\": [\"UCX\"],\n    \"x\": \"@S@\"}}",
        ),
    ] {
        container_hides(what, &format!("{image}{args}\n"));
    }
}

#[test]
fn elsewhere_in_a_container() {
    container_hides(
        "a comment on the line",
        &worker("env:\n  - name: @N@ # @S@\n    value: \"@V@\" # token: @S@, {a: @S@}\n"),
    );
    container_hides(
        "a comment with a quote",
        &worker("env:\n  - {name: @N@, value: \"@V@\"} # it's, @S@: \"x\n"),
    );
    container_hides(
        "a comment above and below",
        &worker("env:\n  # @S@\n  - name: @N@\n  # @S@\n    value: \"@V@\"\n  # @S@\n"),
    );
    container_hides(
        "resources",
        &worker(
            "env: [{name: @N@, value: \"@V@\"}]\nresources: {limits: {nvidia.com/gpu: 1, rdma/ib: 1, token: @S@}, requests: {a: @S@}}\n",
        ),
    );
    container_hides(
        "a probe",
        &worker(
            "env: [{name: @N@, value: \"@V@\"}]\nlivenessProbe: {httpGet: {httpHeaders: [{name: Authorization, value: @S@}]}}\n",
        ),
    );
    container_hides(
        "an image with a password",
        "image: http://u:@S@@example.com/vllm-runtime:1.0.0\nenv: [{name: @N@, value: \"@V@\"}]\ncommand: [python3, -m, dynamo.vllm]\nargs: [--disaggregation-mode, @R@]\n",
    );
    container_hides(
        "values from references",
        &worker(
            "env: [{name: @N@, valueFrom: {secretKeyRef: {name: s, key: k}, token: @S@}}, {name: UCX_NET_DEVICES, value: x, token: @S@}, {name: UCX_TLS, value: \"@V@\"}]\n",
        ),
    );
}

#[test]
fn elsewhere_in_a_file() {
    let env = |name: &str, value: &str| {
        format!(
            "env:\n  - name: {name}\n    value: \"{value}\"\nenvFrom: [{{configMapRef: {{name: c}}}}, {{secretRef: {{name: s}}}}]\n"
        )
    };
    for (name, value) in VARIANTS {
        let recipe = graph(
            "g",
            &container("prefill", &env(name, value)),
            &container("decode", &env(name, value)),
        );
        let others = [
            "kind: ConfigMap\nmetadata: {name: c}\ndata: {HF_TOKEN: @S@, NCCL_DEBUG: INFO, UCX_MAX_RNDV_RAILS: x}\n",
            "kind: ConfigMap\nmetadata: {name: c}\ndata:\n  HF_TOKEN: @S@\n  UCX_NET_DEVICES: \"\" # @S@\n  engine.yaml: |\n    token: @S@\n    cache_transceiver_config: {token: @S@, backend: X, k: @S@}\n",
            "kind: Secret\nmetadata: {name: s}\nstringData: {UCX_TLS: @S@, TOKEN: @S@}\ndata: {UCX_TLS: @S@}\n",
            "kind: Deployment\nmetadata: {name: d, annotations: {token: @S@, \"k8s.v1.cni.cncf.io/networks\": @S@}, labels: {a: @S@}}\nspec: {template: {metadata: {annotations: {k8s.v1.cni.cncf.io/networks: @S@}}, spec: {imagePullSecrets: [{name: x, token: @S@}], containers: [{name: decode, image: vllm, env: [{name: UCX_TLS, value: tcp}]}]}}}\n",
            "kind: Kustomization\nsecretGenerator: [{name: x, literals: [TOKEN=@S@]}]\nconfigMapGenerator: [{name: c, literals: [UCX_TLS=tcp, TOKEN=@S@]}]\n",
            "- op: replace\n  path: /x\n  value: @S@\n",
            "@S@\n",
            "- @S@\n",
            "@S@: @S@\n",
            "kind: @S@x\nspec: @S@\n",
        ];
        for other in others {
            for text in [
                format!("{recipe}---\n{other}"),
                format!("{other}---\n{recipe}"),
            ] {
                // A kind is shown, as a name is; nobody hides a secret in one.
                let text = text.replace("kind: @S@x", "kind: X").replace("@S@", SECRET);
                let out = hidden_everywhere(
                    &format!("{name}={value} beside {other:?}"),
                    "r.yaml",
                    text.as_bytes(),
                );
                assert!(out.stdout.contains("verdict"), "{out}");
            }
        }
    }
}

#[test]
fn broken_text() {
    for line in [
        "token: \"@S@",
        "token: '@S@",
        "token: [@S@, x",
        "token: {@S@: x",
        "token: @S@: @S@",
        "token: @S@\n\t@S@: x",
        "token: *@S@",
        "token: !@S@!x y",
        "token: &@S@ *@S@",
        "%@S@ x\n---",
        "%TAG !@S@! x",
        "- @S@",
        "@S@",
        "token: \"\\x@S@\"",
        "token: \"\\@S@\"",
        "token: |@S@\n  x",
        "token: @S@ #@S@\n @S@",
        "? @S@\n: - x\n - y",
        "token: @S@\ntoken: @S@",
        "@S@: x\n@S@: y",
        "token: {{ .Values.@S@ }}",
        "{{ @S@ }}",
        "{% @S@ %}",
        "token: \"x\" @S@",
        "token: ]@S@",
        "token: `@S@",
        "token: @@S@",
        "token: \u{7}@S@",
        "token: \u{feff}@S@",
    ] {
        for around in [
            "kind: Pod\nmetadata:\n  name: x\n@L@\n",
            "@L@\nkind: Pod\n",
            "kind: Pod\nspec:\n  containers:\n    - name: x\n@L@\n",
        ] {
            let text = around.replace("@L@", line).replace("@S@", SECRET);
            hidden_everywhere(
                &format!("{line:?} in {around:?}"),
                "r.yaml",
                text.as_bytes(),
            );
            hidden_everywhere(
                &format!("{line:?} as JSON"),
                "r.json",
                format!("{{\"kind\": \"Pod\", {text}}}").as_bytes(),
            );
        }
    }
    let latin = format!("kind: Pod\ntoken: {SECRET}\nname: caf\u{e9}\n")
        .chars()
        .map(|c| c as u8)
        .collect::<Vec<u8>>();
    hidden_everywhere("not UTF-8", "r.yaml", &latin);
    hidden_everywhere("binary", "r.yaml", format!("{SECRET}\0").as_bytes());
}

/// Text inside text: patches, scripts and configurations that are strings of another document.
#[test]
fn texts_inside_of_texts() {
    let variables = "env:\n  - {name: HF_TOKEN, value: @S@}\n  - {value: \"x, @S@: y\", name: A}\n  - {name: @N@, value: \"@V@\"} # @S@\n";
    let indent = |text: &str, by: usize| {
        text.lines()
            .map(|line| format!("{}{line}\n", " ".repeat(by)))
            .collect::<String>()
    };
    let pod = format!(
        "kind: Deployment\nmetadata:\n  name: decode\nspec:\n  template:\n    spec:\n      containers:\n        - name: vllm\n          image: vllm-openai:1\n          args: [--api-key, @S@, --kv-transfer-config, '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"token\":\"@S@\"}}']\n{}",
        indent(variables, 10)
    );
    let start = format!(
        "export TOKEN=@S@ @N@=@V@\nexec {} --api-key @S@\n",
        SERVE.replace("@R@", "decode")
    );
    let mounted = "kind: Deployment\nmetadata: {name: decode}\nspec:\n  template:\n    spec:\n      containers:\n        - {name: vllm, image: vllm-openai:1, command: [bash, /s/start.sh, --token, @S@], volumeMounts: [{name: s, mountPath: /s}], resources: {limits: {nvidia.com/gpu: 1}}}\n        - {name: more, image: vllm-openai:1, command: [bash, -c, 'source /s/start.sh; . /s/$(fetch @S@); exec python3 -m dynamo.vllm --disaggregation-mode decode'], volumeMounts: [{name: s, mountPath: /s}]}\n      volumes: [{name: s, configMap: {name: c}}]\n";
    for (name, value) in VARIANTS {
        for (what, text) in [
            ("patch", format!("kind: Kustomization\npatches:\n  - target: {{kind: Deployment, name: decode}}\n    patch: |-\n{}", indent(&pod, 6))),
            ("folded patch", format!("kind: Kustomization\npatches:\n  - target: {{kind: Deployment, name: decode}}\n    patch: {}\n", serde_json::Value::from(pod.as_str()))),
            ("broken patch", format!("kind: Kustomization\npatches:\n  - patch: |-\n{}      token: \"@S@\n", indent(&pod, 6))),
            ("operations", "kind: Kustomization\npatches:\n  - target: {kind: Deployment, name: decode}\n    patch: |-\n      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: HF_TOKEN, value: @S@}}\n      - {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: @N@, value: \"@V@\", token: @S@}} # @S@\n      - op: replace\n        path: /spec/template/spec/containers/0/args\n        value: [--api-key, @S@, --disaggregation-mode, decode]\n".to_owned()),
            ("patch file", "- op: add\n  path: /spec/template/spec/containers/0/env\n  value: [{name: HF_TOKEN, value: @S@}, {name: @N@, value: \"@V@\"}]\n".to_owned()),
            ("chart values", format!("decode:\n  replicas: 2\n  token: @S@\n  containers:\n    - name: vllm\n      args: [--api-key, @S@, --disaggregation-mode, decode]\n{}prefill:\n{}", indent(variables, 6), indent(variables, 2))),
            ("engine configuration", "token: @S@\ncache_transceiver_config: {backend: X, token: @S@}\nkv-transfer-config: {kv_connector: NixlConnector, token: @S@}\nenv: {HF_TOKEN: @S@, @N@: \"@V@\"}\n".to_owned()),
            ("mounted script", format!("{mounted}---\nkind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  token: @S@\n  start.sh: |\n{}", indent(&start, 4))),
            ("overrides", format!("kind: DynamoGraphDeploymentRequest\nmetadata: {{name: r}}\nspec:\n  token: @S@\n  overrides:\n    dgd:\n{}", indent(&graph("g", &filled(&worker(variables), "prefill", name, value), &filled(&worker(variables), "decode", name, value)), 6))),
        ] {
            let text = filled(&text, "decode", name, value);
            let out = hidden_everywhere(&format!("{what}, {name}={value}"), "kustomization.yaml", text.as_bytes());
            assert!(out.stdout.contains("verdict"), "{out}");
        }
    }
}

/// The recipe as JSON: on one line, and with line breaks.
#[test]
fn json_recipes() {
    for (name, value) in VARIANTS {
        for pad in [0, 200, 50_000] {
            let service = |role: &str| {
                serde_json::json!({
                    "subComponentType": role,
                    "resources": {"limits": {"gpu": "1", "custom": {"rdma/ib": "1"}}},
                    "extraPodSpec": {"imagePullSecrets": [{"name": SECRET}], "mainContainer": {
                        "image": "example.com/vllm-runtime:1.0.0",
                        "command": ["python3", "-m", "dynamo.vllm"],
                        "args": ["--api-key", SECRET, "--disaggregation-mode", role, format!("--token={SECRET}"), "--kv-transfer-config", format!("{{\"token\":\"{SECRET}\",\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{{\"token\":\"{SECRET}\"}}}}")],
                        "env": [{"name": "A", "value": format!("{SECRET}, {SECRET}: {}", "x".repeat(pad))}, {"name": "TOKEN", "value": SECRET}, {"name": name, "value": value}, {"name": "B", "value": format!("{}{SECRET}: x, \"{SECRET}\": \"", "y ".repeat(pad))}],
                    }},
                })
            };
            let recipe = serde_json::json!({"kind": "DynamoGraphDeployment", "metadata": {"name": "g", "annotations": {"token": SECRET}}, "spec": {"services": {"P": service("prefill"), "D": service("decode")}}});
            for text in [
                recipe.to_string(),
                serde_json::to_string_pretty(&recipe).unwrap(),
                recipe.to_string().replace(':', ": ").replace(',', ", "),
            ] {
                for file in ["r.json", "r.yaml"] {
                    let out = hidden_everywhere(
                        &format!("JSON, {name}={value}, {pad}, {file}"),
                        file,
                        text.as_bytes(),
                    );
                    assert!(
                        out.stdout.contains("2 prefill") || out.stdout.contains("1 prefill"),
                        "{out}"
                    );
                }
            }
        }
    }
}

/// A line that is cut must be cut between what may be shown, at every distance.
#[test]
fn long_lines_at_every_distance() {
    for distance in (0..700).step_by(11) {
        let gap = "x".repeat(distance);
        for body in [
            format!(
                "env: [{{name: A, value: \"{gap}, @S@: {gap}\"}}, {{name: TOKEN, value: @S@}}, {{name: @N@, value: \"@V@\"}}, {{name: B, value: '{gap}, @S@: {gap}'}}, {{name: C, value: @S@}}]\n"
            ),
            format!(
                "env: [{{name: A, value: {}@S@, token: @S@}}, {{name: @N@, value: \"@V@\"}}, {{token: @S@, x: \"{gap} @S@: \"}}]\n",
                gap.replace("xx", "x ")
            ),
        ] {
            let body = worker(&body);
            let text = graph(
                "g",
                &filled(&body, "prefill", "UCX_TLS", "tcp"),
                &filled(&body, "decode", "UCX_TLS", "tcp"),
            );
            let out = hidden_everywhere(&format!("distance {distance}"), "r.yaml", text.as_bytes());
            out.exits(1).says(&["tcp", "-->"]);
        }
    }
}

/// What is typed is repeated in messages, but never what stands in a file.
#[test]
fn every_format_alone() {
    let body = worker("env: [{name: TOKEN, value: @S@}, {name: @N@, value: \"@V@\"}]\n");
    let text = graph(
        "g",
        &filled(&body, "prefill", "UCX_TLS", "tcp"),
        &filled(&body, "decode", "UCX_TLS", "tcp"),
    );
    let dir = Dir::new();
    dir.file("r.yaml", &text);
    for format in FORMATS {
        for verbose in [&["-v"][..], &[]] {
            let out = Run::new(&dir, ["env", "r.yaml", "-o", format])
                .args(verbose)
                .go();
            out.exits(1);
            assert!(out.stdout.contains("UCX_TLS"), "{out}");
            assert_hidden(format, &out.stdout);
            let out = Run::new(&dir, ["env", "-", "-o", format])
                .args(verbose)
                .stdin(&text)
                .go();
            out.exits(1);
            assert_hidden(format, &out.stdout);
        }
    }
}
