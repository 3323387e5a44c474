//! Text that tries to move the cursor, hide itself or forge a line of the report; and inputs that no author wrote.

use std::panic::{AssertUnwindSafe, catch_unwind};

use report::{Format, Options};
use serde_json::Value;

use crate::support::{
    Dir, FORMATS, Run, aggregated, assert_harmless, blocked, both, broken, container, degraded,
    good, graph,
};

/// Each as YAML writes it between double quotes.
const ATTACKS: [(&str, &str); 14] = [
    ("ESC", "\\e[31mred\\e[0m"),
    ("CSI", "\\u009b31m"),
    ("OSC", "\\e]0;title\\a\\e]8;;http://x\\e\\\\\\\\"),
    ("BEL", "\\a\\a"),
    ("backspace", "ok\\b\\bno"),
    ("carriage return", "x\\rverdict  trusted"),
    ("line feed", "x\\nverdict  trusted  all is well"),
    ("bidi override", "\\u202egpj\\u202c\\u2066x\\u2069"),
    ("line separator", "x\\u2028verdict  trusted\\u2029"),
    ("next line", "x\\u0085verdict  trusted"),
    ("zero width", "a\\u200bb\\u200d\\ufeffc\\u2060"),
    ("delete", "\\x7f\\x7f"),
    ("form feed and tab", "\\f\\t\\v"),
    (
        "all of C1",
        "\\u0080\\u0084\\u008d\\u0090\\u0098\\u009c\\u009d\\u009e\\u009f",
    ),
];

#[track_caller]
fn harmless_everywhere(what: &str, text: &str) {
    let dir = Dir::new();
    dir.file("r.yaml", text);
    let plain = Run::new(&dir, ["env", "r.yaml"]).go();
    for format in FORMATS {
        for verbose in [&["-v"][..], &[]] {
            let out = Run::new(&dir, ["env", "r.yaml", "-o", format])
                .args(verbose)
                .go();
            assert_harmless(&format!("{what}, {format}"), &out.stdout);
            assert_harmless(&format!("{what}, stderr"), &out.stderr);
            assert_eq!(out.code, plain.code, "{what}: {out}");
            assert_verdict(what, format, &out.stdout);
        }
    }
}

/// One verdict, where it belongs, and not the one that a recipe wishes for.
#[track_caller]
fn assert_verdict(what: &str, format: &str, text: &str) {
    match format {
        "text" | "short" => {
            let at: Vec<usize> = text
                .lines()
                .enumerate()
                .filter(|(_, l)| l.starts_with("verdict"))
                .map(|(at, _)| at)
                .collect();
            assert_eq!(at, [text.lines().count() - 1], "{what}: {text}");
            assert!(
                !text.lines().any(|l| l.starts_with("verdict  trusted")),
                "{what}: {text}"
            );
        }
        "json" => {
            let value: Value = serde_json::from_str(text).expect("JSON");
            assert_ne!(value["readiness"], "trusted");
        }
        _ => {
            for line in text.lines() {
                let _value: Value = serde_json::from_str(line).expect("one value on each line");
            }
        }
    }
}

#[test]
fn in_names_and_values() {
    for (what, attack) in ATTACKS {
        let quoted = format!("\"{attack}\"");
        let with = |env: &str| both("g", env);
        let cases = [
            ("metadata.name", blocked().replace("name: blocked", &format!("name: {quoted}"))),
            ("namespace", blocked().replace("name: blocked", &format!("name: b\n  namespace: {quoted}"))),
            ("kind", blocked().replace("kind: DynamoGraphDeployment", &format!("kind: {quoted}"))),
            ("service name", blocked().replace("    Prefill:", &format!("    {quoted}:"))),
            ("container name", aggregated().replace("name: server", &format!("name: {quoted}"))),
            ("value that fails", with(&format!("env: [{{name: UCX_TLS, value: {quoted}}}]\n"))),
            ("value of devices", with(&format!("env: [{{name: UCX_NET_DEVICES, value: {quoted}}}, {{name: UCX_TLS, value: \"tcp,{attack}\"}}]\n"))),
            ("values of others", with(&format!("env: [{{name: UCX_RNDV_SCHEME, value: {quoted}}}, {{name: NCCL_IB_HCA, value: {quoted}}}, {{name: UCX_LOG_FILE, value: {quoted}}}, {{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: {quoted}}}]\n"))),
            ("variable name", with(&format!("env: [{{name: \"UCX_{attack}\", value: x}}, {{name: \"UCX_TLS{attack}\", value: x}}, {{name: UCX_TLS, value: tcp}}]\n"))),
            ("references", with(&format!("env: [{{name: UCX_TLS, valueFrom: {{configMapKeyRef: {{name: {quoted}, key: {quoted}}}}}}}, {{name: UCX_NET_DEVICES, valueFrom: {{fieldRef: {{fieldPath: {quoted}}}}}}}]\nenvFrom: [{{configMapRef: {{name: {quoted}}}}}]\n"))),
            ("resources", with(&format!("resources: {{limits: {{\"rdma/{attack}\": {quoted}, nvidia.com/gpu: {quoted}}}}}\n"))),
            ("capabilities", with(&format!("securityContext: {{capabilities: {{add: [{quoted}]}}, runAsUser: {quoted}}}\n"))),
            ("image", blocked().replace("image: example.com/vllm-runtime:1.0.0", &format!("image: \"example.com/vllm-{attack}\""))),
            ("flags", graph("g", &container("prefill", "").replace("- some/model", &format!("- {quoted}\n  - --host\n  - {quoted}\n  - --kv-cache-dtype\n  - {quoted}")), &container(attack, "").replace(&format!("- {attack}"), &format!("- {quoted}")))),
            ("connector", blocked().replace("NixlConnector", "X\\u001b[31m\\u202e\\u0007\\nverdict  trusted")),
            ("annotations", aggregated().replace("    spec:\n", &format!("    metadata: {{annotations: {{k8s.v1.cni.cncf.io/networks: {quoted}, \"rdma.ome.io/{attack}\": x}}, labels: {{a: {quoted}}}}}\n    spec:\n"))),
            ("compute domain", format!("{}---\nkind: ComputeDomain\nmetadata: {{name: {quoted}}}\nspec: {{numNodes: 2, channel: {{resourceClaimTemplate: {{name: {quoted}}}}}}}\n", blocked())),
            ("script", graph("g", "image: vllm-runtime:1\ncommand: [sh, -c]\nargs: [@A@]\n", "image: vllm-runtime:1\ncommand: [sh, -c]\nargs: [@A@]\n").replace("@A@", &format!("\"export UCX_TLS='tcp {attack}'; source '/x{attack}'; '/opt/{attack}' ; python3 -m dynamo.vllm --disaggregation-mode prefill\""))),
            ("duplicate keys", format!("kind: Pod\nmetadata: {{name: x, {quoted}: 1, {quoted}: 2}}\n")),
            ("anchors", format!("kind: Pod\nmetadata: {{name: x}}\nspec: *a{}\n", what.replace(' ', ""))),
        ];
        for (place, text) in cases {
            harmless_everywhere(&format!("{what} in {place}"), &text);
        }
    }
}

/// Characters as they are, not as escapes: in comments, plain values, broken lines.
#[test]
fn raw_characters() {
    for c in [
        '\u{1b}', '\u{9b}', '\u{7}', '\u{8}', '\u{7f}', '\u{85}', '\u{202e}', '\u{2066}',
        '\u{2028}', '\u{200b}', '\u{feff}', '\u{c}', '\u{0b}', '\u{1}',
    ] {
        for (place, text) in [
            (
                "value",
                blocked().replace("value: tcp", &format!("value: tcp{c}[31mx")),
            ),
            (
                "comment",
                blocked().replace("value: tcp", &format!("value: tcp # {c}[31mx")),
            ),
            (
                "name",
                blocked().replace("name: blocked", &format!("name: blo{c}[31mcked")),
            ),
            ("broken line", format!("kind: Pod\n{c}[31m: [x\n")),
            ("whole document", format!("{c}[31m\n")),
            (
                "quotes",
                blocked().replace("value: tcp", &format!("value: 'tcp{c}[31mx'")),
            ),
            (
                "key",
                blocked().replace("      replicas", &format!("      re{c}plicas")),
            ),
        ] {
            harmless_everywhere(&format!("U+{:04X} in {place}", u32::from(c)), &text);
        }
    }
}

#[test]
fn in_paths_and_arguments() {
    let dir = Dir::with_good();
    for (what, attack) in [
        ("ESC", "\u{1b}[31mx"),
        ("C1", "\u{9b}31m"),
        ("bidi", "\u{202e}x"),
        ("line", "a\nverdict  trusted"),
        ("separator", "\u{2028}verdict  trusted"),
        ("return", "x\rverdict"),
        ("BEL", "\u{7}"),
    ] {
        dir.file(format!("d{attack}/r{attack}.yaml"), blocked());
        let directory = format!("d{attack}");
        let gone = format!("gone{attack}");
        for format in FORMATS {
            for path in [&directory, &gone, &format!("{directory}/r{attack}.yaml")] {
                let out = Run::new(&dir, ["env", "-o", format, "good.yaml"])
                    .args([path])
                    .go();
                assert_harmless(&format!("{what} in {path:?}, {format}"), &out.stdout);
                assert_harmless(what, &out.stderr);
                assert_verdict(what, format, &out.stdout);
            }
        }
        for args in [
            vec!["env", "good.yaml", "--color", attack],
            vec!["env", "good.yaml", "--fail-on", attack],
            vec!["env", "good.yaml", "-o", attack],
            vec!["env", "good.yaml", &gone, "--nothing", attack],
            vec![attack],
            vec!["man", attack],
            vec!["completions", attack],
            vec!["explain", attack],
            vec!["vars", attack],
            vec!["vars", "UCX_TLS=tcp", "--build", attack],
            vec!["vars", "UCX_TLS", "-o", attack],
            vec!["node", "--pod", attack, "-o", attack],
        ] {
            let out = dir.run(&args);
            out.exits(2);
            assert_harmless(&format!("{args:?}"), &out.stderr);
            assert_harmless(&format!("{args:?}"), &out.stdout);
        }
    }
}

/// A source of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(below.max(1)).unwrap()).unwrap()
    }
}

/// One small accident.
fn mutate(text: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut out = text.to_vec();
    let lines = || {
        text.split_inclusive(|b| *b == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<Vec<_>>()
    };
    match numbers.next(8) {
        0 => {
            let at = numbers.next(out.len());
            if let Some(byte) = out.get_mut(at) {
                *byte ^= 1 << numbers.next(7);
            }
        }
        1 => out.truncate(numbers.next(text.len())),
        2 => {
            let mut all = lines();
            let at = numbers.next(all.len());
            if let Some(line) = all.get(at).cloned() {
                all.insert(numbers.next(all.len()), line);
            }
            out = all.concat();
        }
        3 => {
            let mut all = lines();
            if !all.is_empty() {
                all.remove(numbers.next(all.len()));
            }
            out = all.concat();
        }
        4 => {
            let mut all = lines();
            let (a, b) = (numbers.next(all.len()), numbers.next(all.len()));
            if !all.is_empty() {
                all.swap(a, b);
            }
            out = all.concat();
        }
        5 => {
            let hostile: [&[u8]; 16] = [
                b"\x1b[31m",
                "\u{202e}".as_bytes(),
                b"\t",
                b"\"",
                b"'",
                b"{",
                b"}",
                b"[",
                b": ",
                b"- ",
                b"*a ",
                b"&a ",
                b"# ",
                b"\\",
                b"$(",
                "\u{9b}…🚀é".as_bytes(),
            ];
            let at = numbers.next(out.len());
            out.splice(at..at, hostile[numbers.next(hostile.len())].iter().copied());
        }
        6 => {
            let from = numbers.next(out.len());
            let to = (from + numbers.next(40)).min(out.len());
            out.drain(from..to);
        }
        _ => {
            let from = numbers.next(out.len());
            let to = (from + numbers.next(200)).min(out.len());
            let piece = out[from..to].to_vec();
            let at = numbers.next(out.len());
            out.splice(at..at, piece);
        }
    }
    out
}

/// The built program reads no differently: this goes through the same functions without a process each.
fn whole_run(text: &str) -> Vec<(Format, String)> {
    let facts = recipe::assemble(vec![recipe::read("m.yaml", text)]);
    let report = checks::judge_env(&facts, vec!["m.yaml".to_owned()]);
    Format::ALL
        .into_iter()
        .flat_map(|format| [(format, false), (format, true)])
        .map(|(format, verbose)| {
            let mut out = Vec::new();
            report::render(
                format,
                &report,
                &Options {
                    verbose,
                    ..Options::default()
                },
                &mut out,
            )
            .expect("a buffer takes everything");
            (format, String::from_utf8(out).expect("UTF-8"))
        })
        .collect()
}

#[test]
fn mutations_never_panic() {
    let script = "image: vllm-runtime:1\ncommand: [/bin/bash, -c]\nargs:\n  - |\n    set -ea\n    export UCX_TLS=\"rc,${X:-tcp}\" TOKEN=$(cat /x) # note\n    if true; then UCX_NET_DEVICES=mlx5_0:1; fi\n    cat <<EOF\n    a\n    EOF\n    mpirun -x NCCL_DEBUG=INFO python3 -m dynamo.vllm \\\n      --disaggregation-mode decode --kv-transfer-config '{\"kv_connector\":\"MultiConnector\",\"kv_connector_extra_config\":{\"connectors\":[{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}]}}'\n";
    let maps = "---\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  UCX_TLS: tcp\n  engine.yaml: |\n    cache_transceiver_config: {backend: UCX}\n    kv-transfer-config: {kv_connector: NixlConnector}\n---\nkind: ComputeDomain\nmetadata: {name: d}\nspec: {numNodes: 2, channel: {resourceClaimTemplate: {name: t}}}\n---\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: {devices: {requests: [{name: x, deviceClassName: gpu.nvidia.com}]}}}\n";
    let more = "env: &e\n  - {name: UCX_TLS, value: 'rc,cuda_copy'}\n  - name: UCX_NET_DEVICES\n    valueFrom: {configMapKeyRef: {name: c, key: UCX_TLS}}\n  - {name: NCCL_IB_HCA, value: $(UCX_TLS)}\n  - {name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: 0.0.0.0}\n  - {name: UCX_TSL, value: x}\nenvFrom: [{configMapRef: {name: c}}]\nresources: {limits: {rdma/ib: 4, vpc.amazonaws.com/efa: 4}, claims: [{name: x}]}\n";
    let seeds = [
        good(),
        blocked(),
        degraded(),
        aggregated(),
        broken(),
        format!("{}{maps}", both("m", more)),
        graph("s", script, script),
        format!(
            "kind: List\nitems:\n- &p {}- *p\n",
            aggregated().replace('\n', "\n  ").trim_end_matches(' ')
        ),
        format!(
            "{}\n",
            serde_json::json!({"kind": "Deployment", "metadata": {"name": "prefill"}, "spec": {"template": {"spec": {"containers": [{"name": "x", "image": "sglang", "command": ["python3", "-m", "sglang.launch_server"], "args": ["--disaggregation-mode=prefill", "--disaggregation-transfer-backend", "nixl"], "env": [{"name": "UCX_TLS", "value": "tcp"}]}]}}}})
        ),
    ];
    for seed in &seeds {
        assert_eq!(whole_run(seed).len(), 10);
    }
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut judged = 0;
    // More on request, for a long night.
    let rounds = std::env::var("CHECK_INTERCONNECT_MUTATIONS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000);
    for round in 0..rounds {
        let mut text = seeds[round % seeds.len()].clone().into_bytes();
        for _ in 0..=numbers.next(2) {
            text = mutate(&text, &mut numbers);
        }
        // What is not UTF-8 never comes this far.
        let text = String::from_utf8_lossy(&text).into_owned();
        let outputs = catch_unwind(AssertUnwindSafe(|| whole_run(&text)))
            .unwrap_or_else(|_| panic!("round {round} panicked over\n{text}"));
        for (format, out) in outputs {
            assert_harmless(&format!("round {round}, {format}, of\n{text}"), &out);
            judged += usize::from(format == Format::Json && out.contains("env/ucx-tls"));
            match format {
                Format::Json => assert!(
                    serde_json::from_str::<Value>(&out).is_ok(),
                    "round {round}: {out}"
                ),
                Format::Text | Format::Short => assert!(
                    out.lines().last().is_some_and(|l| l.starts_with("verdict")),
                    "round {round}: {out}"
                ),
                Format::Prometheus => assert!(
                    out.contains("check_interconnect_readiness{"),
                    "round {round}: {out}"
                ),
                Format::Jsonl => assert!(
                    out.lines()
                        .last()
                        .is_some_and(|l| l.contains("\"type\":\"summary\"")),
                    "round {round}: {out}"
                ),
            }
        }
    }
    assert!(
        judged > 500,
        "only {judged} reports had a check in them: the mutations destroy too much"
    );
}
