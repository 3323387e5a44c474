//! Every cause and note of `env`: a recipe that shows it, with its line, and one where it stays quiet.
//!
//! The recipes are put together from a few parameters; none of them is anyone's.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use checks::{CHECKS, judge_env};
use model::{CheckResult, Report, Role, Status};

/// A worker's pod, as far as the rules look at it.
#[derive(Clone)]
struct Pod {
    role: &'static str,
    image: String,
    /// The whole command, or none for flags of `engine`.
    command: Option<String>,
    engine: &'static str,
    flags: Vec<String>,
    env: Vec<String>,
    limits: Vec<String>,
    claims: Vec<String>,
    spec: Vec<String>,
    labels: Vec<String>,
    annotations: Vec<String>,
    security: Vec<String>,
    mounts: Vec<String>,
    nodes: u64,
    replicas: u64,
    container: &'static str,
}

const NIXL: &str = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both"}"#;

/// vLLM over NIXL and UCX, with everything that it needs.
fn vllm(role: &'static str) -> Pod {
    Pod {
        role,
        image: "registry.example/team/vllm:v1.2.0".into(),
        command: None,
        engine: "dynamo.vllm",
        flags: vec![
            format!("--disaggregation-mode={role}"),
            format!("--kv-transfer-config={NIXL}"),
        ],
        env: Vec::new(),
        limits: vec!["nvidia.com/gpu: '2'".into(), "rdma/ib: '2'".into()],
        claims: Vec::new(),
        spec: Vec::new(),
        labels: Vec::new(),
        annotations: Vec::new(),
        security: vec!["capabilities: {add: [IPC_LOCK]}".into()],
        mounts: Vec::new(),
        nodes: 1,
        replicas: 1,
        container: "main",
    }
}

fn sglang(role: &'static str) -> Pod {
    Pod {
        image: "docker.io/lmsysorg/sglang:v0.5.30".into(),
        engine: "dynamo.sglang",
        flags: vec![
            format!("--disaggregation-mode={role}"),
            "--disaggregation-transfer-backend=nixl".into(),
        ],
        ..vllm(role)
    }
}

fn trtllm(role: &'static str) -> Pod {
    Pod {
        image: "registry.example/team/tensorrtllm:v1.2.0".into(),
        engine: "dynamo.trtllm",
        flags: vec![
            format!("--disaggregation-mode={role}"),
            r#"--override-engine-args={"cache_transceiver_config":{"backend":"NIXL"}}"#.into(),
        ],
        ..vllm(role)
    }
}

fn trtllm_over(role: &'static str, backend: &str) -> Pod {
    trtllm(role).without("--override").flag(&format!(
        r#"--override-engine-args={{"cache_transceiver_config":{{"backend":"{backend}"}}}}"#
    ))
}

fn trtllm_dtype(role: &'static str, dtype: &str) -> Pod {
    trtllm(role).without("--override").flag(&format!(
        r#"--override-engine-args={{"cache_transceiver_config":{{"backend":"NIXL"}},"kv_cache_config":{{"dtype":"{dtype}"}}}}"#
    ))
}

fn trtllm_blocks(role: &'static str, tokens: u32) -> Pod {
    trtllm(role).without("--override").flag(&format!(
        r#"--override-engine-args={{"cache_transceiver_config":{{"backend":"NIXL"}},"kv_cache_config":{{"tokens_per_block":{tokens}}}}}"#
    ))
}

/// TensorRT-LLM with a configuration file of one line, out of a ConfigMap.
fn engine_file(line: &str) -> String {
    let workers = both(|role| {
        trtllm(role)
            .without("--override")
            .flag("--extra-engine-args=/etc/engine/engine.yaml")
            .spec("volumes: [{name: engine, configMap: {name: engine}}]")
            .mount("{name: engine, mountPath: /etc/engine}")
    });
    format!(
        "{workers}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: engine}}\ndata:\n  engine.yaml: |\n    {line}\n"
    )
}

/// LeaderWorkerSets without a template for the leader.
fn unled(prefill: &str, decode: &str) -> String {
    groups(vllm, |role| {
        let model = if role == "prefill" { prefill } else { decode };
        vllm(role)
            .field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP")
            .command(&format!(
                "command: [vllm, serve, {model}]\nargs: [--kv-transfer-config, '{NIXL}']\n"
            ))
    })
    .split("    leaderTemplate:\n")
    .enumerate()
    .map(
        |(index, part)| match part.split_once("    workerTemplate:\n") {
            Some((_, rest)) if index > 0 => format!("    workerTemplate:\n{rest}"),
            _ => part.to_owned(),
        },
    )
    .collect()
}

/// One JobSet for each role; decode has a connector, or none.
fn jobs(connected: bool) -> String {
    ["prefill", "decode"]
        .map(|role| {
            let flags = if connected || role == "prefill" {
                format!("args: [--kv-transfer-config, '{NIXL}']\n")
            } else {
                String::new()
            };
            let mut pod = vllm(role)
                .field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP")
                .command(&format!("command: [vllm, serve, team/model]\n{flags}"));
            pod.labels.clear();
            let template = pod
                .template("")
                .replace(&format!("    llm-d.ai/role: {role}\n"), "    app: kv\n")
                .replace("- name: main", &format!("- name: kv-{role}"));
            format!(
                "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {{name: kv-{role}}}\nspec:\n  replicatedJobs:\n  - name: serve\n    template:\n      spec:\n        template:\n{}",
                indent(&template, 10)
            )
        })
        .join("---\n")
}

/// A start script: something before the engine's line, and something behind it.
fn script(before: &str, behind: &str) -> String {
    both(|role| {
        let text = format!(
            "{before} python3 -m dynamo.vllm --disaggregation-mode {role} --kv-transfer-config '{NIXL}' {}{behind}",
            if behind.starts_with('&') { "" } else { "\n" }
        );
        vllm(role).command(&format!(
            "command: [bash, -c]\nargs:\n- |\n{}",
            indent(text.trim_start(), 2)
        ))
    })
}

/// LMCache, with a transport list that leaves only TCP.
fn lmcache(role: &'static str) -> Pod {
    let kv_role = if role == "prefill" {
        "kv_producer"
    } else {
        "kv_consumer"
    };
    vllm(role)
        .kv(&format!(
            r#"{{"kv_connector":"LMCacheConnectorV1","kv_role":"{kv_role}"}}"#
        ))
        .env("UCX_TLS", "tcp,cuda_copy")
}

fn lmcache_file(role: &'static str) -> Pod {
    lmcache(role)
        .env("LMCACHE_CONFIG_FILE", "/etc/lmcache/lmcache.yaml")
        .spec("volumes: [{name: lmcache, configMap: {name: lmcache}}]")
        .mount("{name: lmcache, mountPath: /etc/lmcache}")
}

fn lmcache_config(line: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: lmcache}}\ndata:\n  lmcache.yaml: |\n    chunk_size: 256\n    {line}\n"
    )
}

/// LIBFABRIC over EFA.
fn efa(role: &'static str) -> Pod {
    vllm(role)
        .kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}"#)
        .without("rdma/ib")
        .limit("vpc.amazonaws.com/efa: '2'")
        .security("privileged: true")
        .spec("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}")
}

/// Multi-node NVLink.
fn mnnvl(role: &'static str) -> Pod {
    vllm(role)
        .without("rdma/ib")
        .claim("channel")
        .spec("resourceClaims: [{name: channel, resourceClaimTemplateName: kv-compute-domain}]")
        .env("UCX_TLS", "cuda_copy,cuda_ipc,tcp")
        .flag("--enable-sleep-mode")
}

impl Pod {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.env
            .push(format!("- {{name: {name}, value: \"{value}\"}}"));
        self
    }

    fn field(mut self, name: &str, path: &str) -> Self {
        self.env.push(format!(
            "- {{name: {name}, valueFrom: {{fieldRef: {{fieldPath: {path}}}}}}}"
        ));
        self
    }

    fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.into());
        self
    }

    fn kv(mut self, json: &str) -> Self {
        self.flags.retain(|f| !f.starts_with("--kv-transfer"));
        self.flag(&format!("--kv-transfer-config={json}"))
    }

    fn limit(mut self, limit: &str) -> Self {
        self.limits.push(limit.into());
        self
    }

    fn without(mut self, what: &str) -> Self {
        self.limits.retain(|l| !l.starts_with(what));
        self.flags.retain(|f| !f.starts_with(what));
        self.security.retain(|s| !s.starts_with(what));
        self.spec.retain(|s| !s.starts_with(what));
        self.env.retain(|e| !e.contains(what));
        self
    }

    fn gpus(self, number: u64) -> Self {
        self.without("nvidia.com/gpu")
            .limit(&format!("nvidia.com/gpu: '{number}'"))
    }

    fn accelerator(self, limit: &str) -> Self {
        self.without("nvidia.com/gpu").limit(limit)
    }

    fn claim(mut self, name: &str) -> Self {
        self.claims.push(name.into());
        self
    }

    fn spec(mut self, line: &str) -> Self {
        self.spec.push(line.into());
        self
    }

    fn label(mut self, line: &str) -> Self {
        self.labels.push(line.into());
        self
    }

    fn annotation(mut self, line: &str) -> Self {
        self.annotations.push(line.into());
        self
    }

    fn security(mut self, line: &str) -> Self {
        self.security.push(line.into());
        self
    }

    fn mount(mut self, mount: &str) -> Self {
        self.mounts.push(format!("- {mount}"));
        self
    }

    fn image(mut self, image: &str) -> Self {
        self.image = image.into();
        self
    }

    fn nodes(mut self, nodes: u64) -> Self {
        self.nodes = nodes;
        self
    }

    fn command(mut self, yaml: &str) -> Self {
        self.command = Some(yaml.into());
        self
    }

    /// Both roles by one hostname.
    fn one_host(self) -> Self {
        self.spec("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname}]}}")
    }

    fn container(&self) -> String {
        let mut out = format!("- name: {}\n", self.container);
        let mut line = |text: &str| {
            let _infallible = writeln!(out, "  {text}");
        };
        if !self.image.is_empty() {
            line(&format!("image: {}", self.image));
        }
        match &self.command {
            Some(command) => command.lines().for_each(&mut line),
            None => {
                line(&format!("command: [python3, -m, {}]", self.engine));
                line("args:");
                for flag in &self.flags {
                    line(&format!("- '{}'", flag.replace('\'', "''")));
                }
            }
        }
        let mut list = |key: &str, lines: &[String]| {
            if !lines.is_empty() {
                line(&format!("{key}:"));
                for entry in lines {
                    line(&format!("  {entry}"));
                }
            }
        };
        list("env", &self.env);
        list("securityContext", &self.security);
        list("volumeMounts", &self.mounts);
        let mut resources = vec!["limits:".to_owned()];
        resources.extend(self.limits.iter().map(|l| format!("  {l}")));
        if !self.claims.is_empty() {
            resources.push("claims:".into());
            resources.extend(self.claims.iter().map(|c| format!("- name: {c}")));
        }
        list("resources", &resources);
        out
    }

    /// A pod template, `metadata` and `spec`.
    fn template(&self, more_containers: &str) -> String {
        let mut out = String::from("metadata:\n  labels:\n");
        let _infallible = writeln!(out, "    llm-d.ai/role: {}", self.role);
        for label in &self.labels {
            let _infallible = writeln!(out, "    {label}");
        }
        if !self.annotations.is_empty() {
            out.push_str("  annotations:\n");
            for annotation in &self.annotations {
                let _infallible = writeln!(out, "    {annotation}");
            }
        }
        out.push_str("spec:\n");
        for line in &self.spec {
            let _infallible = writeln!(out, "  {line}");
        }
        out.push_str("  containers:\n");
        out.push_str(&indent(&self.container(), 2));
        out.push_str(&indent(more_containers, 2));
        out
    }
}

fn indent(text: &str, by: usize) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        let _infallible = writeln!(out, "{:by$}{line}", "");
        out
    })
}

/// A DynamoGraphDeployment.
fn graph(pods: &[Pod]) -> String {
    let mut out = String::from(
        "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: kv}\nspec:\n  components:\n",
    );
    for pod in pods {
        let _infallible = write!(
            out,
            "  - name: {}-worker\n    type: {}\n    replicas: {}\n",
            pod.role, pod.role, pod.replicas
        );
        if pod.nodes > 1 {
            let _infallible = writeln!(out, "    multinode: {{nodeCount: {}}}", pod.nodes);
        }
        out.push_str("    podTemplate:\n");
        out.push_str(&indent(&pod.template(""), 6));
    }
    out
}

/// Two DynamoGraphDeployment workers, prefill and decode made alike.
fn both(make: impl Fn(&'static str) -> Pod) -> String {
    graph(&[make("prefill"), make("decode")])
}

/// Plain Deployments.
fn plain(make: impl Fn(&'static str) -> Pod) -> String {
    ["prefill", "decode"]
        .map(|role| {
            let mut pod = make(role);
            if pod.command.is_none() {
                // Plain vLLM is told no role.
                let flags: Vec<&String> = pod
                    .flags
                    .iter()
                    .filter(|f| !f.starts_with("--disaggregation-mode"))
                    .collect();
                let mut command = String::from("command: [vllm, serve, model]\nargs:\n");
                for flag in flags {
                    let _infallible = writeln!(command, "- '{flag}'");
                }
                pod.command = Some(command);
            }
            format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: kv-{role}}}\nspec:\n  replicas: 1\n  template:\n{}",
                indent(&pod.template(""), 4)
            )
        })
        .join("---\n")
}

/// One Deployment with both roles in its pod.
fn one_pod(prefill: &Pod, decode: &Pod) -> String {
    let mut decode = decode.clone();
    decode.container = "decode";
    let mut prefill = prefill.clone();
    prefill.container = "prefill";
    prefill.labels.clear();
    let template = prefill
        .template(&decode.container())
        .replace("    llm-d.ai/role: prefill\n", "    app: kv\n");
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: kv}}\nspec:\n  template:\n{}",
        indent(&template, 4)
    )
}

/// One LeaderWorkerSet for each role.
fn groups(leader: impl Fn(&'static str) -> Pod, member: impl Fn(&'static str) -> Pod) -> String {
    ["prefill", "decode"]
        .map(|role| {
            format!(
                "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {{name: kv-{role}}}\nspec:\n  leaderWorkerTemplate:\n    size: 2\n    leaderTemplate:\n{}    workerTemplate:\n{}",
                indent(&leader(role).template(""), 6),
                indent(&member(role).template(""), 6)
            )
        })
        .join("---\n")
}

/// A patch of a graph: no image, no command.
fn patch(make: impl Fn(&'static str) -> Pod) -> String {
    both(|role| {
        let mut pod = make(role).without("nvidia.com/gpu").image("");
        pod.command = Some(String::new());
        pod
    })
}

const DOMAIN: &str = "---\napiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata: {name: kv}\nspec:\n  numNodes: 0\n  channel: {resourceClaimTemplate: {name: kv-compute-domain}}\n";

const TRANSPORT: &str = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: transport}\ndata:\n  UCX_TLS: rc,cuda_copy\n";

/// A worker whose Mooncake reads a file out of a ConfigMap.
fn mooncake_file(pod: Pod) -> Pod {
    pod.kv(r#"{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}"#)
        .env("MOONCAKE_CONFIG_PATH", "/etc/mooncake/mooncake.json")
        .spec("volumes: [{name: mooncake, configMap: {name: mooncake}}]")
        .mount("{name: mooncake, mountPath: /etc/mooncake}")
}

fn mooncake_json(protocol: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: mooncake}}\ndata:\n  mooncake.json: '{{\"protocol\": \"{protocol}\"}}'\n"
    )
}

fn judge(yaml: &str) -> Report {
    let draft = recipe::read("recipe.yaml", yaml);
    judge_env(&recipe::assemble(vec![draft]), vec!["recipe.yaml".into()])
}

struct Case {
    cause: &'static str,
    status: Status,
    /// A part of the line that the finding stands on.
    line: &'static str,
    shows: String,
    quiet: String,
}

fn fail(cause: &'static str, line: &'static str, shows: String, quiet: String) -> Case {
    Case {
        cause,
        status: Status::Fail,
        line,
        shows,
        quiet,
    }
}

fn warn(cause: &'static str, line: &'static str, shows: String, quiet: String) -> Case {
    Case {
        status: Status::Warn,
        ..fail(cause, line, shows, quiet)
    }
}

/// A note: `ok`, with the text of the note.
fn note(cause: &'static str, line: &'static str, shows: String, quiet: String) -> Case {
    Case {
        status: Status::Ok,
        ..fail(cause, line, shows, quiet)
    }
}

fn cases() -> Vec<Case> {
    let good = || both(vllm);
    let ucx = |name: &'static str, value: &'static str| both(move |r| vllm(r).env(name, value));
    let tls = |value: &'static str| ucx("UCX_TLS", value);
    let devices = |value: &'static str| ucx("UCX_NET_DEVICES", value);
    let no_rdma = |r| vllm(r).without("rdma/ib").without("capabilities");
    let one = |role: &'static str, change: fn(Pod) -> Pod| {
        graph(&["prefill", "decode"].map(|r| if r == role { change(vllm(r)) } else { vllm(r) }))
    };
    let libfabric = r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}"#;
    let mooncake = |protocol: &str| {
        format!(
            r#"{{"kv_connector":"MooncakeConnector","kv_role":"kv_both","kv_connector_extra_config":{{"mooncake_protocol":"{protocol}"}}}}"#
        )
    };
    let transceiver = |backend: &str| {
        format!(
            r#"--override-engine-args={{"cache_transceiver_config":{{"backend":"{backend}"}}}}"#
        )
    };
    let with_transceiver = |role, backend: &str| {
        trtllm(role)
            .without("--override-engine-args")
            .flag(&transceiver(backend))
    };
    let headless = |publish: bool| {
        format!(
            "---\napiVersion: v1\nkind: Service\nmetadata: {{name: ranks}}\nspec:\n  clusterIP: None\n  publishNotReadyAddresses: {publish}\n"
        )
    };
    let podip = |r| vllm(r).field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP");
    let host =
        |value: &'static str| plain(move |r| vllm(r).env("VLLM_NIXL_SIDE_CHANNEL_HOST", value));
    let domain = |make: fn(&'static str) -> Pod| format!("{}{DOMAIN}", both(make));
    let mut cases = vec![
        // The start command.
        fail(
            "shell-folded-command",
            "ulimit -l unlimited",
            both(|r| vllm(r).command(&format!("command: [sh, -c]\nargs:\n- ulimit -l unlimited python3 -m dynamo.vllm --disaggregation-mode {r}"))),
            both(|r| vllm(r).command(&format!("command: [sh, -c]\nargs:\n- ulimit -l unlimited && exec python3 -m dynamo.vllm --disaggregation-mode {r} --kv-transfer-config '{NIXL}'"))),
        ),
        fail(
            "shell-c-drops-arguments",
            "- python3",
            both(|r| vllm(r).command(&format!("command: [sh, -c]\nargs:\n- python3\n- -m\n- dynamo.vllm\n- --disaggregation-mode={r}"))),
            both(|r| vllm(r).command(&format!("command: [sh, -c]\nargs:\n- exec \"$@\"\n- --\n- python3\n- -m\n- dynamo.vllm\n- --disaggregation-mode={r}"))),
        ),
        fail(
            "kv-transfer-config-not-json",
            "--kv-transfer-config=NixlConnector",
            both(|r| vllm(r).kv("NixlConnector")),
            both(|r| vllm(r).kv("$(KV_CONFIG)").field("KV_CONFIG", "metadata.annotations")),
        ),
        // Values that the engine refuses.
        fail(
            "engine-value-unknown",
            "producer",
            one("prefill", |p| p.kv(r#"{"kv_connector":"NixlConnector","kv_role":"producer"}"#)),
            one("prefill", |p| p.kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_producer"}"#)),
        ),
        fail(
            "engine-value-unknown",
            "--disaggregation-mode=Decode",
            graph(&[vllm("prefill"), vllm("decode").without("--disaggregation-mode").flag("--disaggregation-mode=Decode")]),
            both(|r| vllm(r).without("--disaggregation-mode").flag("--disaggregation-mode=${MODE}")),
        ),
        fail(
            "engine-value-unknown",
            "--disaggregation-mode=prefil",
            graph(&[sglang("prefill").without("--disaggregation-mode").flag("--disaggregation-mode=prefil"), sglang("decode")]),
            both(sglang),
        ),
        warn(
            "engine-value-unknown",
            "--disaggregation-mode=hybrid",
            both(|r| vllm(r).without("--disaggregation-mode").flag("--disaggregation-mode=hybrid")),
            good(),
        ),
        fail(
            "engine-value-unknown",
            "cdua",
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cdua"}"#)),
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cuda"}"#)),
        ),
        fail(
            "engine-value-unknown",
            "NIXLL",
            graph(&[trtllm_over("prefill", "NIXLL"), trtllm("decode")]),
            both(|r| trtllm_over(r, "nixl")),
        ),
        fail(
            "vllm-kv-role-missing",
            "NixlConnector",
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConnector"}"#)),
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConnector"}"#).flag("--kv-transfer-config.kv_role=kv_both")),
        ),
        fail(
            "engine-config-broken",
            "cache_transceiver_config: 5",
            engine_file("cache_transceiver_config: 5"),
            engine_file("cache_transceiver_config: {backend: NIXL}"),
        ),
        fail(
            "engine-config-broken",
            "kv_cache_config: [1",
            engine_file("kv_cache_config: [1"),
            engine_file("{{ include \"engine\" . }} kv_cache_config: [1"),
        ),
        fail(
            "engine-config-broken",
            "--override-engine-args",
            both(|r| trtllm(r).without("--override-engine-args").flag(r#"--override-engine-args={"cache_transceiver_config":5}"#)),
            both(|r| trtllm(r).without("--override-engine-args").flag("--override-engine-args=${ENGINE_ARGS}")),
        ),
        warn(
            "block-size-differs",
            "64",
            graph(&[trtllm_blocks("prefill", 64), trtllm_blocks("decode", 32)]),
            both(|r| trtllm_blocks(r, 64)),
        ),
        // The connector.
        fail(
            "prefill-no-connector",
            "--disaggregation-mode=prefill",
            one("prefill", |p| p.without("--kv-transfer-config")),
            // Images before 1.0 use NIXL without being told.
            one("prefill", |p| {
                p.without("--kv-transfer-config")
                    .image("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0")
            }),
        ),
        fail(
            "decode-no-connector",
            "--disaggregation-mode=decode",
            one("decode", |p| p.without("--kv-transfer-config")),
            one("decode", |p| p.command("command: [/opt/start.sh]")),
        ),
        fail(
            "trtllm-transceiver-unset",
            "--override-engine-args",
            both(|r| trtllm(r).without("--override-engine-args").flag(r#"--override-engine-args={"x":1}"#)),
            both(|r| trtllm(r).without("--override-engine-args").flag("--extra-engine-args=/opt/decode.yaml")),
        ),
        fail(
            "vllm-kv-role",
            "kv_consumer",
            one("prefill", |p| p.kv(r#"{"kv_connector":"MooncakeConnector","kv_role":"kv_consumer"}"#)),
            // NIXL takes either direction.
            one("prefill", |p| p.kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}"#)),
        ),
        warn(
            "vllm-kv-role",
            "kv_producer",
            plain(|r| podip(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_producer"}"#)),
            plain(podip),
        ),
        warn(
            "trtllm-mpi",
            "--override-engine-args",
            both(|r| with_transceiver(r, "MPI")),
            both(|r| with_transceiver(r, "UCX")),
        ),
        note(
            "trtllm-default-flip",
            "--override-engine-args",
            both(|r| with_transceiver(r, "DEFAULT")),
            both(|r| with_transceiver(r, "NIXL")),
        ),
        // The fabric.
        warn("rdma-resource-missing", "name: decode-worker", both(no_rdma), both(|r| no_rdma(r).one_host())),
        fail(
            "one-role-lacks-fabric",
            "rdma/ib",
            one("prefill", |p| p.without("rdma/ib")),
            one("prefill", |p| p.without("rdma/ib").security("privileged: true")),
        ),
        warn(
            "privileged-without-rdma-resource",
            "name: decode-worker",
            both(move |r| no_rdma(r).security("privileged: true")),
            both(|r| vllm(r).security("privileged: true")),
        ),
        warn(
            "claim-template-placeholder",
            "your-compute-domain-channel",
            both(|r| mnnvl(r).without("resourceClaims").spec("resourceClaims: [{name: channel, resourceClaimTemplateName: your-compute-domain-channel}]")),
            domain(mnnvl),
        ),
        warn(
            "libfabric-without-efa",
            "LIBFABRIC",
            both(move |r| no_rdma(r).kv(libfabric)),
            both(efa),
        ),
        fail(
            "libfabric-on-ib-is-tcp",
            "rdma/ib",
            both(move |r| vllm(r).kv(libfabric)),
            both(move |r| vllm(r).kv(libfabric).without("rdma/ib").limit("example.com/rdma-cxi: '2'")),
        ),
        note(
            "gke-rdma-annotations",
            "rdma-0",
            both(|r| vllm(r).without("rdma/ib").limit("networking.gke.io.networks/rdma-0: '1'")),
            both(|r| vllm(r).without("rdma/ib").limit("networking.gke.io.networks/rdma-0: '1'").annotation("networking.gke.io/interfaces: '[]'")),
        ),
        note(
            "nvlink-not-between-pods",
            "topologyKey",
            both(move |r| no_rdma(r).one_host()),
            one_pod(&no_rdma("prefill"), &no_rdma("decode")),
        ),
        note(
            "ucx-roce-reachability-unset",
            "rdma-0",
            both(|r| vllm(r).without("rdma/ib").limit("networking.gke.io.networks/rdma-0: '1'")),
            both(|r| vllm(r).without("rdma/ib").limit("networking.gke.io.networks/rdma-0: '1'").env("UCX_IB_ROCE_REACHABILITY_MODE", "all")),
        ),
        // UCX_TLS.
        fail("ucx-tls-tcp-only", "UCX_TLS", tls("tcp,cuda_copy"), tls("^tcp")),
        warn(
            "ucx-tls-tcp-only",
            "UCX_TLS",
            both(move |r| no_rdma(r).env("UCX_TLS", "tcp,cuda_copy")),
            both(move |r| no_rdma(r).accelerator("gpu.intel.com/xe: '1'").env("UCX_TLS", "tcp,ze_copy")),
        ),
        warn(
            "ucx-tls-tcp-only",
            "UCX_TLS",
            plain(move |r| no_rdma(r).env("UCX_TLS", "tcp,cuda_copy")),
            one_pod(
                &no_rdma("prefill").env("UCX_TLS", "tcp,cuda_copy"),
                &no_rdma("decode").env("UCX_TLS", "tcp,cuda_copy"),
            ),
        ),
        warn(
            "cuda-ipc-tcp-without-imex",
            "UCX_TLS",
            both(move |r| no_rdma(r).env("UCX_TLS", "cuda_copy,cuda_ipc,tcp")),
            domain(mnnvl),
        ),
        warn(
            "ucx-tls-srd-without-efa",
            "UCX_TLS",
            both(move |r| no_rdma(r).env("UCX_TLS", "srd,tcp,cuda_copy")),
            both(|r| efa(r).kv(NIXL).env("UCX_TLS", "srd,tcp,cuda_copy")),
        ),
        fail(
            "ucx-tls-rdma-only-no-device",
            "UCX_TLS",
            both(move |r| no_rdma(r).env("UCX_TLS", "rc,cuda_copy")),
            tls("rc,cuda_copy"),
        ),
        fail(
            "ucx-tls-no-gpu-memory-transport",
            "UCX_TLS",
            tls("rc,tcp"),
            both(|r| vllm(r).env("UCX_TLS", "rc,tcp").kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cpu"}"#)),
        ),
        fail("ucx-tls-empty-string", "UCX_TLS", tls(""), good()),
        fail("ucx-tls-all-not-alone", "UCX_TLS", tls("all,^cuda_ipc"), tls("all")),
        warn("ucx-tls-unknown-name", "UCX_TLS", tls("rc,sockcm,cuda_copy"), tls("rc,cuda_copy")),
        fail(
            "ucx-tls-unknown-name",
            "UCX_TLS",
            tls("efa,sockcm,sm,self,cuda_copy,cuda_ipc"),
            both(|r| efa(r).env("UCX_TLS", "efa,sm")),
        ),
        fail("ucx-tls-mid-list-caret", "UCX_TLS", tls("rc,ud,sm,^cuda_ipc"), tls("^cuda_ipc")),
        fail("ucx-tls-spaces-quotes-case", "UCX_TLS", tls("rc, cuda_copy"), tls("rc,cuda_copy")),
        fail(
            "ucx-tls-one-node-only",
            "UCX_TLS",
            tls("sm,self,cuda_copy,cuda_ipc"),
            both(|r| vllm(r).one_host().env("UCX_TLS", "sm,self,cuda_copy,cuda_ipc")),
        ),
        fail(
            "ucx-tls-cuda-only-no-am",
            "UCX_TLS",
            both(|r| vllm(r).one_host().env("UCX_TLS", "cuda_copy,cuda_ipc")),
            both(|r| vllm(r).one_host().env("UCX_TLS", "cuda_copy,cuda_ipc,sm")),
        ),
        warn("ucx-tls-rc-no-bootstrap", "UCX_TLS", tls("rc_verbs,cuda_copy"), tls("rc_verbs,ud,cuda_copy")),
        warn("ucx-tls-ud-only", "UCX_TLS", tls("ud,cuda_copy"), tls("ud,rc,cuda_copy")),
        // UCX_NET_DEVICES.
        warn(
            "single-nic-pin-multi-gpu",
            "UCX_NET_DEVICES",
            both(|r| vllm(r).gpus(8).env("UCX_NET_DEVICES", "mlx5_0:1")),
            both(|r| vllm(r).gpus(1).env("UCX_NET_DEVICES", "mlx5_0:1")),
        ),
        fail("ucx-netdev-nccl-syntax", "UCX_NET_DEVICES", devices("=mlx5_0"), devices("mlx5_0:1")),
        warn("ucx-netdev-space", "UCX_NET_DEVICES", devices("mlx5_0:1, mlx5_1:1"), devices("mlx5_0:1,mlx5_1:1")),
        fail(
            "ucx-netdev-eth0",
            "UCX_NET_DEVICES",
            devices("eth0"),
            both(move |r| no_rdma(r).env("UCX_NET_DEVICES", "eth0").env("UCX_TLS", "tcp,cuda_copy")),
        ),
        warn("ucx-netdev-netdev-name-on-gke", "UCX_NET_DEVICES", devices("gpu0rdma0,gpu1rdma0"), devices("mlx5_0:1")),
        warn("ucx-netdev-azure-an-device", "UCX_NET_DEVICES", devices("mlx5_an0:1,mlx5_ib0:1"), devices("^mlx5_an0:1")),
        fail("ucx-netdev-empty", "UCX_NET_DEVICES", devices(""), good()),
        fail("ucx-netdev-loopback", "UCX_NET_DEVICES", devices("lo"), devices("mlx5_0:1")),
        // Multi-node NVLink.
        warn(
            "mnnvl-kv-memory-no-fabric-handle",
            "UCX_TLS",
            domain(|r| mnnvl(r).without("--enable-sleep-mode")),
            domain(mnnvl),
        ),
        warn(
            "compute-domain-differs",
            "decode-imex",
            both(|r| mnnvl(r).without("resourceClaims").spec(&format!("resourceClaims: [{{name: channel, resourceClaimTemplateName: {r}-imex}}]"))),
            domain(mnnvl),
        ),
        fail(
            "ucx-mnnvl-option",
            "UCX_CUDA_IPC_ENABLE_MNNVL",
            domain(|r| mnnvl(r).env("UCX_CUDA_IPC_ENABLE_MNNVL", "n")),
            domain(|r| mnnvl(r).env("UCX_CUDA_IPC_ENABLE_MNNVL", "y")),
        ),
        warn(
            "ucx-tls-negated-cuda-ipc",
            "UCX_TLS",
            domain(|r| mnnvl(r).without("UCX_TLS").env("UCX_TLS", "^cuda_ipc")),
            tls("^cuda_ipc"),
        ),
        note(
            "imex-node-count",
            "resourceClaimTemplateName",
            both(mnnvl) + &DOMAIN.replace("numNodes: 0", "numNodes: 7"),
            both(mnnvl) + &DOMAIN.replace("numNodes: 0", "numNodes: 2"),
        ),
        // EFA.
        warn(
            "efa-backend-not-libfabric",
            "kv_connector",
            both(|r| efa(r).kv(NIXL)),
            both(|r| efa(r).kv(NIXL).env("UCX_TLS", "srd,cuda_copy")),
        ),
        warn(
            "efa-image-unverified",
            "image:",
            both(|r| efa(r).without("privileged")),
            both(|r| efa(r).without("privileged").image("registry.example/vllm-efa:v1.2.0")),
        ),
        warn(
            "efa-gpudirect-off",
            "FI_EFA_USE_DEVICE_RDMA",
            both(|r| efa(r).env("FI_EFA_USE_DEVICE_RDMA", "0")),
            both(|r| efa(r).env("FI_EFA_USE_DEVICE_RDMA", "1")),
        ),
        fail(
            "efa-fi-provider-env",
            "FI_PROVIDER",
            both(|r| efa(r).env("FI_PROVIDER", "tcp")),
            both(|r| efa(r).env("FI_PROVIDER", "efa")),
        ),
        note(
            "efa-same-node-loopback",
            "vpc.amazonaws.com/efa",
            both(|r| efa(r).without("affinity")),
            both(efa),
        ),
        // Devices.
        fail(
            "dra-claim-missing",
            "resourceClaims",
            both(|mut_role| {
                let mut pod = mnnvl(mut_role);
                pod.claims.clear();
                pod
            }),
            domain(mnnvl),
        ),
        fail(
            "dra-claim-missing",
            "- name: channel",
            both(|r| mnnvl(r).without("resourceClaims")),
            // A network driver attaches its device to the whole pod.
            both(|r| vllm(r).spec("resourceClaims: [{name: nic, resourceClaimTemplateName: roce-nic}]")),
        ),
        warn(
            "dev-infiniband-hostpath-breaks-efa",
            "/dev/infiniband",
            both(|r| efa(r).without("privileged").image("registry.example/vllm-efa:v1.2.0").spec("volumes: [{name: ib, hostPath: {path: /dev/infiniband}}]")),
            both(|r| efa(r).spec("volumes: [{name: ib, hostPath: {path: /dev/infiniband}}]")),
        ),
        fail(
            "dev-infiniband-hostpath-breaks-efa",
            "/dev/infiniband",
            both(|r| efa(r).without("privileged").spec("nodeSelector: {node.kubernetes.io/instance-type: p6-b200.48xlarge}").spec("volumes: [{name: ib, hostPath: {path: /dev/infiniband}}]")),
            both(|r| vllm(r).spec("volumes: [{name: ib, hostPath: {path: /dev/infiniband}}]")),
        ),
        warn(
            "gke-tcpx-tcpxo-no-nixl",
            "nvidia-h100-mega-80gb",
            both(move |r| no_rdma(r).spec("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-mega-80gb}")),
            both(move |r| no_rdma(r).spec("nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h200-141gb}")),
        ),
        // Limits.
        warn(
            "ipc-lock-missing",
            "rdma/ib",
            both(|r| vllm(r).without("capabilities")),
            both(|r| vllm(r).without("capabilities").security("privileged: true")),
        ),
        note(
            "image-runs-nonroot",
            "IPC_LOCK",
            both(|r| vllm(r).image("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0")),
            both(|r| vllm(r).image("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0").security("runAsUser: 0")),
        ),
        // The side channel.
        fail("side-channel-host-any", "SIDE_CHANNEL_HOST", host("0.0.0.0"), host("0.0.0.0").replace("apiVersion: apps/v1\nkind: Deployment", "apiVersion: orchestration.aibrix.ai/v1alpha1\nkind: StormService")),
        fail("side-channel-host-loopback", "SIDE_CHANNEL_HOST", host("127.0.0.1"), plain(podip)),
        warn("side-channel-host-loopback", "kv_connector", plain(vllm), both(vllm)),
        warn(
            "side-channel-host-wrong-ip",
            "status.hostIP",
            plain(|r| vllm(r).field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.hostIP")),
            plain(|r| vllm(r).spec("hostNetwork: true").field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.hostIP")),
        ),
        warn("side-channel-host-wrong-ip", "10.1.2.3", host("10.1.2.3"), host("prefill-0.kv")),
        fail(
            "side-channel-port-clash",
            "SIDE_CHANNEL_PORT",
            plain(move |r| podip(r).one_host().spec("hostNetwork: true").env("VLLM_NIXL_SIDE_CHANNEL_PORT", "5600")),
            plain(move |r| podip(r).one_host().env("VLLM_NIXL_SIDE_CHANNEL_PORT", "5600")),
        ),
        // Engines.
        warn(
            "sglang-nixl-ignores-ib-device",
            "--disaggregation-ib-device",
            both(|r| sglang(r).image("lmsysorg/sglang:v0.5.2").flag("--disaggregation-ib-device=mlx5_0,mlx5_1")),
            both(|r| sglang(r).flag("--disaggregation-ib-device=mlx5_0,mlx5_1")),
        ),
        fail(
            "mooncake-protocol-tcp",
            "mooncake_protocol",
            both(|r| vllm(r).kv(&mooncake("tcp"))),
            both(|r| vllm(r).kv(&mooncake("rdma"))),
        ),
        warn(
            "mooncake-protocol-tcp",
            "MC_FORCE_TCP",
            both(move |r| no_rdma(r).kv(&mooncake("rdma")).env("MC_FORCE_TCP", "0")),
            both(move |r| no_rdma(r).env("MC_FORCE_TCP", "0")),
        ),
        note(
            "mooncake-file-protocol-tcp",
            "mooncake.json",
            both(move |r| mooncake_file(no_rdma(r))) + &mooncake_json("tcp"),
            both(move |r| mooncake_file(no_rdma(r))) + &mooncake_json("rdma"),
        ),
        warn(
            "vllm-kv-buffer-cpu",
            "kv_buffer_device",
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cpu"}"#)),
            both(|r| vllm(r).accelerator("gpu.intel.com/xe: '1'").kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cpu"}"#)),
        ),
        note(
            "gdr-trtllm-off-by-default",
            "",
            both(|r| with_transceiver(r, "UCX")),
            both(|r| with_transceiver(r, "NIXL")),
        ),
        // Pods.
        warn(
            "hostnetwork-without-dnspolicy",
            "name: decode-worker",
            both(|r| vllm(r).spec("hostNetwork: true")),
            both(|r| vllm(r).spec("hostNetwork: true").spec("dnsPolicy: ClusterFirstWithHostNet")),
        ),
        warn(
            "hostnetwork-without-dnspolicy",
            "ETCD",
            plain(move |r| podip(r).spec("hostNetwork: true").env("ETCD_ENDPOINTS", "http://etcd.infra.svc:2379")),
            plain(move |r| podip(r).spec("hostNetwork: true")),
        ),
        warn(
            "multus-annotation-missing",
            "openshift.io/roce",
            both(|r| vllm(r).without("rdma/ib").limit("openshift.io/roce: '2'").annotation("k8s.v1.cni.cncf.io/networks: rails/one")),
            both(|r| vllm(r).without("rdma/ib").limit("openshift.io/roce: '2'").annotation("k8s.v1.cni.cncf.io/networks: rails/one,rails/two")),
        ),
        warn(
            "istio-sidecar",
            "sidecar.istio.io/inject",
            both(|r| vllm(r).label("sidecar.istio.io/inject: 'true'")),
            both(|r| vllm(r).label("sidecar.istio.io/inject: 'false'")),
        ),
        warn(
            "istio-sidecar",
            "linkerd.io/inject",
            both(|r| vllm(r).annotation("linkerd.io/inject: enabled")),
            both(|r| vllm(r).annotation("linkerd.io/inject: enabled").annotation("config.linkerd.io/skip-inbound-ports: '1-65535'")),
        ),
        warn(
            "dns-headless",
            "clusterIP: None",
            both(|r| sglang(r).nodes(2).flag("--dist-init-addr=ranks:5000")) + &headless(false),
            both(|r| sglang(r).nodes(2).flag("--dist-init-addr=ranks:5000")) + &headless(true),
        ),
        // Several nodes.
        fail(
            "lws-grove-partial-patch",
            "- name: main",
            groups(podip, |r| podip(r).without("rdma/ib")),
            groups(podip, podip),
        ),
        warn(
            "lws-grove-partial-patch",
            "UCX_NET_DEVICES",
            groups(|r| podip(r).env("UCX_NET_DEVICES", "mlx5_0:1"), podip),
            groups(|r| podip(r).env("UCX_RNDV_SCHEME", "auto"), podip),
        ),
        warn(
            "trtllm-ranks-miss-settings",
            "export UCX_TLS",
            both(|r| trtllm(r).nodes(2).command(&format!("command: [sh, -c]\nargs:\n- |\n  export UCX_TLS=rc,cuda_copy\n  exec python3 -m dynamo.trtllm --disaggregation-mode {r} --extra-engine-args /opt/{r}.yaml"))),
            both(|r| trtllm(r).nodes(2).env("UCX_TLS", "rc,cuda_copy")),
        ),
        warn(
            "trtllm-ranks-miss-settings",
            "UCX_TLS: ",
            graph(&["prefill", "decode"].map(|r| trtllm(r).nodes(2))).replace("securityContext:", "envFrom: [{configMapRef: {name: transport}}]\n          securityContext:") + TRANSPORT,
            graph(&["prefill", "decode"].map(trtllm)).replace("securityContext:", "envFrom: [{configMapRef: {name: transport}}]\n          securityContext:") + TRANSPORT,
        ),
        // The roles.
        warn(
            "role-missing",
            "--disaggregation-mode=decode",
            both(vllm)
                .replace("name: prefill-worker", "name: first")
                .replace("type: prefill", "type: decode")
                .replace("--disaggregation-mode=prefill", "--disaggregation-mode=decode")
                .replace("llm-d.ai/role: prefill", "llm-d.ai/role: decode"),
            good(),
        ),
        fail(
            "role-contradicts-name",
            "kv_consumer",
            plain(|r| {
                let told = if r == "prefill" { "kv_consumer" } else { "kv_producer" };
                vllm(r).kv(&format!(
                    r#"{{"kv_connector":"MooncakeConnector","kv_role":"{told}"}}"#
                ))
            }),
            plain(|r| {
                let told = if r == "prefill" { "kv_producer" } else { "kv_consumer" };
                vllm(r).kv(&format!(
                    r#"{{"kv_connector":"MooncakeConnector","kv_role":"{told}"}}"#
                ))
            }),
        ),
        // The pair.
        fail(
            "model-differs",
            "--model=team/Small-1B",
            graph(&[
                vllm("prefill").flag("--model=team/Big-8B"),
                vllm("decode").flag("--model=team/Small-1B"),
            ]),
            graph(&[
                vllm("prefill").flag("--model=team/Big-8B").flag("--served-model-name=a"),
                vllm("decode").flag("--model=Team/big-8b-FP8").flag("--served-model-name=b"),
            ]),
        ),
        fail(
            "model-differs",
            "team/Small-1B",
            plain(|r| {
                let model = if r == "prefill" { "team/Big-8B" } else { "team/Small-1B" };
                vllm(r).command(&format!(
                    "command: [vllm, serve, {model}, --kv-transfer-config, '{NIXL}']\n"
                ))
            }),
            plain(|r| {
                let model = if r == "prefill" { "team/Big-8B" } else { "/models/small" };
                vllm(r).command(&format!(
                    "command: [vllm, serve, {model}, --kv-transfer-config, '{NIXL}']\n"
                ))
            }),
        ),
        warn(
            "model-differs",
            "--model-path=mirror/prod",
            graph(&[
                sglang("prefill").flag("--model-path=team/Big-8B"),
                sglang("decode").flag("--model-path=mirror/prod"),
            ]),
            graph(&[
                sglang("prefill").flag("--model-path=team/Big-8B"),
                sglang("decode").flag("--model=$(MODEL)").field("MODEL", "metadata.annotations"),
            ]),
        ),
        fail(
            "connector-differs",
            "MooncakeConnector",
            one("decode", |p| p.kv(r#"{"kv_connector":"MooncakeConnector","kv_role":"kv_both"}"#)),
            one("decode", |p| p.command("command: [/opt/start.sh]")),
        ),
        warn(
            "nic-list-differs-between-roles",
            "mlx5_9:1",
            one("decode", |p| p.env("UCX_NET_DEVICES", "mlx5_0:1,mlx5_9:1")).replacen("securityContext", "env:\n          - {name: UCX_NET_DEVICES, value: \"mlx5_0:1,mlx5_1:1\"}\n          securityContext", 1),
            devices("mlx5_0:1,mlx5_1:1"),
        ),
        fail(
            "kv-cache-dtype-differs",
            "--kv-cache-dtype=fp8",
            graph(&[vllm("prefill").flag("--kv-cache-dtype=fp8"), vllm("decode").flag("--kv-cache-dtype=bfloat16")]),
            both(|r| vllm(r).flag("--kv-cache-dtype=fp8")),
        ),
        warn(
            "block-size-differs",
            "--block-size=16",
            graph(&[vllm("prefill").flag("--block-size=16"), vllm("decode").flag("--block-size=64")]),
            graph(&[vllm("prefill").flag("--block-size=16"), vllm("decode")]),
        ),
        fail(
            "kv-cache-layout-differs",
            "NHD",
            graph(&[vllm("prefill").env("VLLM_KV_CACHE_LAYOUT", "HND"), vllm("decode").env("VLLM_KV_CACHE_LAYOUT", "NHD")]),
            both(|r| vllm(r).env("VLLM_KV_CACHE_LAYOUT", "HND")),
        ),
        warn(
            "vllm-tp-not-divisible",
            "--tensor-parallel-size=3",
            graph(&[vllm("prefill").flag("--tensor-parallel-size=2"), vllm("decode").flag("--tensor-parallel-size=3")]),
            graph(&[vllm("prefill").flag("--tensor-parallel-size=2"), vllm("decode").flag("--tensor-parallel-size=4")]),
        ),
        note(
            "vllm-tp-mismatch",
            "--tensor-parallel-size=4",
            graph(&[vllm("prefill").flag("--tensor-parallel-size=2"), vllm("decode").flag("--tensor-parallel-size=4")]),
            both(|r| vllm(r).flag("--tensor-parallel-size=4")),
        ),
        warn(
            "ucx-pd-version-skew",
            "v1.1.0",
            one("decode", |p| p.image("registry.example/team/vllm:v1.1.0")),
            one("decode", |p| p.image("registry.example/team/vllm:nightly")),
        ),
        note(
            "roce-v1-v2-mismatch",
            "",
            graph(&[vllm("prefill").env("UCX_IB_GID_INDEX", "1"), vllm("decode").env("UCX_IB_GID_INDEX", "3")]),
            ucx("UCX_IB_GID_INDEX", "3"),
        ),
        // Settings.
        warn("setting-name-typo", "UCX_NET_DEVICE,", ucx("UCX_NET_DEVICE", "mlx5_0:1"), devices("mlx5_0:1")),
        fail(
            "flag-name-typo",
            "--kv-transfer-confg",
            one("decode", |p| {
                p.without("--kv-transfer-config")
                    .flag(&format!("--kv-transfer-confg={NIXL}"))
            }),
            both(|r| vllm(r).flag("--kv-events-config={}")),
        ),
        fail(
            "flag-name-typo",
            "--disagregation-mode",
            both(|r| {
                sglang(r)
                    .without("--disaggregation-mode")
                    .flag(&format!("--disagregation-mode={r}"))
            }),
            good(),
        ),
        warn(
            "flag-name-typo",
            "--disaggregation-mod=",
            both(|r| {
                sglang(r)
                    .without("--disaggregation-mode")
                    .flag(&format!("--disaggregation-mod={r}"))
            }),
            good(),
        ),
        fail(
            "kv-transfer-config-not-json",
            "kv_producer",
            both(|r| {
                vllm(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_producer""#)
            }),
            good(),
        ),
        fail(
            "resource-name-typo",
            "rmda/hca_shared",
            graph(&[
                vllm("prefill").without("rdma/ib").limit("rdma/hca_shared: '2'"),
                vllm("decode").without("rdma/ib").limit("rmda/hca_shared: '2'"),
            ]),
            both(|r| vllm(r).without("rdma/ib").limit("rmda/hca_shared: '2'")),
        ),
        warn(
            "resource-name-typo",
            "rdma/hca_shraed",
            graph(&[
                vllm("prefill").without("rdma/ib").limit("rdma/hca_shared: '2'"),
                vllm("decode").without("rdma/ib").limit("rdma/hca_shraed: '2'"),
            ]),
            graph(&[
                vllm("prefill").without("rdma/ib").limit("rdma/hca_shared_a: '2'"),
                vllm("decode").without("rdma/ib").limit("rdma/hca_shared_b: '2'"),
            ]),
        ),
        warn(
            "fabrics-differ",
            "rdma/roce",
            graph(&[vllm("prefill"), vllm("decode").without("rdma/ib").limit("rdma/roce: '2'")]),
            // One name for whatever the node has tells no fabric.
            graph(&[vllm("prefill"), vllm("decode").without("rdma/ib").limit("rdma/hca_shared: '2'")]),
        ),
        warn(
            "fabrics-differ",
            "nvidia.com/roce_gdr",
            graph(&[vllm("prefill"), vllm("decode").without("rdma/ib").limit("nvidia.com/roce_gdr: '2'")]),
            graph(&[vllm("prefill").limit("rdma/roce: '2'"), vllm("decode").without("rdma/ib").limit("rdma/roce: '2'")]),
        ),
        fail(
            "model-differs",
            "team/large",
            unled("team/large", "team/small"),
            unled("team/large", "team/large"),
        ),
        fail(
            "decode-no-connector",
            "name: kv-decode",
            jobs(false),
            jobs(true),
        ),
        fail(
            "ucx-tls-no-gpu-memory-transport",
            "export UCX_TLS=rc",
            script("export UCX_TLS=rc\nexec", ""),
            // What stands behind exec, or behind an engine in the foreground, is never reached.
            script("exec", "export UCX_TLS=rc\n"),
        ),
        fail(
            "ucx-tls-no-gpu-memory-transport",
            "export UCX_TLS=rc",
            // Functions run when they are called.
            script("start() {\n", "}\nexport UCX_TLS=rc\nstart\n"),
            script("", "export UCX_TLS=rc\n"),
        ),
        fail(
            "ucx-tls-no-gpu-memory-transport",
            "export UCX_TLS=rc",
            script("exec > /tmp/log\nexport UCX_TLS=rc\n", ""),
            script("", "& export UCX_TLS=rc\nwait\n"),
        ),
        warn(
            "rdma-resource-missing",
            "name: decode-worker",
            both(|r| vllm(r).without("rdma/ib").without("capabilities").limit("nvidia.com/mig-1g.10gb: '1'")),
            both(|r| vllm(r).without("rdma/ib").limit("nvidia.com/hostdev: '2'")),
        ),
        warn(
            "side-channel-host-loopback",
            "NixlConnector",
            plain(vllm),
            plain(|r| vllm(r).command(&format!("command: [python3, -m, dynamo.vllm]\nargs: [--disaggregation-mode, {r}, --kv-transfer-config, '{NIXL}']\n"))),
        ),
        fail(
            "resource-name-typo",
            "rmda/ib",
            both(|r| vllm(r).without("rdma/ib").limit("rmda/ib: '2'")),
            both(|r| vllm(r).without("rdma/ib").limit("rdma/hca: '2'")),
        ),
        warn(
            "kv-over-nccl-sockets",
            "NCCL_IB_DISABLE",
            both(|r| vllm(r).env("NCCL_IB_DISABLE", "1").kv(r#"{"kv_connector":"P2pNcclConnector"}"#)),
            both(|r| vllm(r).env("NCCL_IB_DISABLE", "0").kv(r#"{"kv_connector":"P2pNcclConnector"}"#)),
        ),
        warn(
            "kv-over-nccl-sockets",
            "NCCL_IB_DISABLE",
            both(|r| vllm(r).env("NCCL_IB_DISABLE", "0x1").kv(r#"{"kv_connector":"P2pNcclConnector"}"#)),
            both(|r| vllm(r).env("NCCL_IB_DISABLE", "off").kv(r#"{"kv_connector":"P2pNcclConnector"}"#)),
        ),
        warn(
            "kv-over-nccl-sockets",
            "NCCL_NET",
            both(|r| vllm(r).env("NCCL_NET", "Socket").kv(r#"{"kv_connector":"P2pNcclConnector"}"#)),
            ucx("NCCL_NET", "Socket"),
        ),
        warn(
            "kv-cache-dtype-differs",
            "fp8",
            one("prefill", |p| p.flag("--kv-cache-dtype=fp8")),
            both(|r| vllm(r).flag("--kv-cache-dtype=fp8")),
        ),
        fail(
            "kv-path-name-typo",
            "NixlConector",
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConector","kv_role":"kv_both"}"#)),
            both(|r| vllm(r).kv(r#"{"kv_connector":"NixlConector","kv_connector_module_path":"team.nixl","kv_role":"kv_both"}"#)),
        ),
        fail(
            "kv-path-name-typo",
            "LIBFABRC",
            both(|r| efa(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRC"]}}"#)),
            both(|r| efa(r).kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_connector_extra_config":{"backends":["LIBFABRIC"]}}"#)),
        ),
        fail(
            "setting-value-invalid",
            "UCX_PROTO_ENABLE",
            ucx("UCX_PROTO_ENABLE", "true"),
            both(|r| efa(r).env("UCX_PROTO_ENABLE", "true")),
        ),
        fail(
            "ucx-gdr-forced-off",
            "UCX_IB_GPU_DIRECT_RDMA",
            ucx("UCX_IB_GPU_DIRECT_RDMA", "no"),
            both(|r| vllm(r).env("UCX_IB_GPU_DIRECT_RDMA", "no").kv(r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cpu"}"#)),
        ),
        warn(
            "rndv-thresh-loses-zero-copy",
            "UCX_RNDV_THRESH",
            both(|r| efa(r).kv(NIXL).env("UCX_TLS", "srd,cuda_copy").env("UCX_RNDV_THRESH", "8k")),
            ucx("UCX_RNDV_THRESH", "8k"),
        ),
        fail(
            "setting-value-invalid",
            "UCX_IB_GPU_DIRECT_RDMA",
            ucx("UCX_IB_GPU_DIRECT_RDMA", "true"),
            both(|r| efa(r).env("UCX_IB_GPU_DIRECT_RDMA", "true")),
        ),
        fail(
            "setting-value-invalid",
            "UCX_IB_GID_INDEX",
            ucx("UCX_IB_GID_INDEX", "true"),
            ucx("UCX_IB_GID_INDEX", "auto"),
        ),
        warn(
            "setting-value-invalid",
            "UCX_CUDA_COPY_REG_WHOLE_ALLOC",
            ucx("UCX_CUDA_COPY_REG_WHOLE_ALLOC", "true"),
            ucx("UCX_CUDA_COPY_REG_WHOLE_ALLOC", "auto"),
        ),
        warn(
            "setting-value-invalid",
            "MC_GID_INDEX",
            both(|r| {
                sglang(r)
                    .without("--disaggregation-transfer")
                    .env("MC_GID_INDEX", "true")
            }),
            both(|r| sglang(r).env("MC_GID_INDEX", "true")),
        ),
        fail(
            "ucx-netdev-newer-syntax",
            "UCX_NET_DEVICES",
            both(|r| {
                vllm(r)
                    .image("registry.example/dynamo/vllm-runtime:0.7.1")
                    .env("UCX_NET_DEVICES", "mlx5_0,mlx5_1")
            }),
            ucx("UCX_NET_DEVICES", "mlx5_0,mlx5_1"),
        ),
        fail(
            "ucx-netdev-newer-syntax",
            "UCX_NET_DEVICES",
            both(|r| {
                vllm(r)
                    .image("registry.example/team/vllm:v1.2.0-ucx1.20")
                    .env("UCX_NET_DEVICES", "^mlx5_9:1")
            }),
            both(|r| {
                vllm(r)
                    .image("registry.example/team/vllm:v1.2.0-ucx1.21")
                    .env("UCX_NET_DEVICES", "^mlx5_9:1")
            }),
        ),
        warn(
            "ucx-netdev-newer-syntax",
            "UCX_NET_DEVICES",
            both(|r| {
                vllm(r)
                    .image("registry.example/team/vllm:v1.2.0-ucx1.21")
                    .env("UCX_NET_DEVICES", "mlx5_[0-1]:1,mlx5_4:1")
            }),
            both(|r| {
                vllm(r)
                    .image("registry.example/team/vllm:v1.2.0-ucx1.22")
                    .env("UCX_NET_DEVICES", "mlx5_[0-1]:1,mlx5_4:1")
            }),
        ),
        warn(
            "nic-list-differs-between-roles",
            "mlx5_0",
            graph(&[
                vllm("prefill").env("UCX_NET_DEVICES", "mlx5_0:1"),
                vllm("decode").env("UCX_NET_DEVICES", "mlx5_0"),
            ]),
            graph(&[("prefill", "mlx5_0:1"), ("decode", "mlx5_0")].map(|(role, devices)| {
                vllm(role)
                    .image("registry.example/team/vllm:v1.2.0-ucx1.23")
                    .env("UCX_NET_DEVICES", devices)
            })),
        ),
        fail(
            "connector-differs",
            "backend",
            graph(&[trtllm("prefill"), trtllm_over("decode", "UCX")]),
            both(trtllm),
        ),
        warn(
            "connector-differs",
            "backend",
            graph(&[trtllm_over("prefill", "DEFAULT"), trtllm_over("decode", "UCX")]),
            graph(&[
                trtllm_over("prefill", "DEFAULT").env("TRTLLM_USE_UCX_KVCACHE", "1"),
                trtllm_over("decode", "UCX"),
            ]),
        ),
        fail(
            "connector-differs",
            "transfer-backend",
            graph(&[
                sglang("prefill"),
                sglang("decode")
                    .without("--disaggregation-transfer")
                    .flag("--disaggregation-transfer-backend=mori"),
            ]),
            both(sglang),
        ),
        warn(
            "kv-cache-dtype-differs",
            "kv_cache_config",
            graph(&[trtllm("prefill"), trtllm_dtype("decode", "fp8")]),
            both(|r| trtllm_dtype(r, "fp8")),
        ),
        warn(
            "kv-cache-dtype-differs",
            "kv_cache_config",
            graph(&[trtllm_dtype("prefill", "auto"), trtllm_dtype("decode", "fp8")]),
            graph(&[trtllm("prefill"), trtllm_dtype("decode", "auto")]),
        ),
        fail(
            "kv-cache-dtype-differs",
            "kv_cache_config",
            graph(&[trtllm_dtype("prefill", "bf16"), trtllm_dtype("decode", "fp8")]),
            both(|r| trtllm_dtype(r, "bf16")),
        ),
        // LMCache over NIXL is over UCX.
        fail(
            "ucx-tls-tcp-only",
            "UCX_TLS",
            both(|r| lmcache(r).env("LMCACHE_ENABLE_PD", "True").env("LMCACHE_TRANSFER_CHANNEL", "nixl")),
            both(lmcache),
        ),
        fail(
            "ucx-tls-tcp-only",
            "UCX_TLS",
            both(lmcache_file) + &lmcache_config("enable_nixl: True"),
            both(lmcache_file) + &lmcache_config("local_cpu: True"),
        ),
        warn(
            "no-fabric-and-no-transport-setting",
            "",
            both(no_rdma),
            both(|r| no_rdma(r).one_host()),
        ),
    ];
    // Notes beside a setting: the line is the setting's.
    let beside = |cause, name: &'static str, shows: &'static str, quiet: &'static str| {
        note(cause, name, ucx(name, shows), ucx(name, quiet))
    };
    cases.extend([
        note(
            "mooncake-store-protocol-tcp",
            "MOONCAKE_PROTOCOL",
            both(|r| {
                sglang(r)
                    .without("--disaggregation-transfer")
                    .env("MOONCAKE_PROTOCOL", "tcp")
            }),
            both(|r| sglang(r).env("MOONCAKE_PROTOCOL", "rdma")),
        ),
        beside("ucx-gdr-forced-yes", "UCX_IB_GPU_DIRECT_RDMA", "yes", "try"),
        beside(
            "ucx-warn-unused-suppressed",
            "UCX_WARN_UNUSED_ENV_VARS",
            "n",
            "y",
        ),
        beside(
            "ucx-warn-unused-suppressed",
            "UCX_LOG_LEVEL",
            "error",
            "info",
        ),
        note(
            "ucx-ib-addr-type-deprecated",
            "UCX_IB_ADDR_TYPE",
            ucx("UCX_IB_ADDR_TYPE", "eth"),
            both(|r| efa(r).env("UCX_IB_ADDR_TYPE", "eth")),
        ),
        beside("ucx-gid-index-pinned", "UCX_IB_GID_INDEX", "3", "auto"),
        note(
            "ucx-roce-reachability-mode",
            "UCX_IB_ROCE_REACHABILITY_MODE",
            ucx("UCX_IB_ROCE_REACHABILITY_MODE", "all"),
            good(),
        ),
        note(
            "ucx-rndv-settings-no-effect",
            "UCX_RNDV_SCHEME",
            ucx("UCX_RNDV_SCHEME", "get_zcopy"),
            both(|r| with_transceiver(r, "UCX").env("UCX_RNDV_SCHEME", "get_zcopy")),
        ),
        beside("ucx-memtype-cache-off", "UCX_MEMTYPE_CACHE", "n", "y"),
        note(
            "ucx-mnnvl-option-without-domain",
            "UCX_CUDA_IPC_ENABLE_MNNVL",
            ucx("UCX_CUDA_IPC_ENABLE_MNNVL", "y"),
            domain(|r| mnnvl(r).env("UCX_CUDA_IPC_ENABLE_MNNVL", "y")),
        ),
        note(
            "pcie-relaxed-ordering",
            "UCX_IB_PCI_RELAXED_ORDERING",
            ucx("UCX_IB_PCI_RELAXED_ORDERING", "try"),
            good(),
        ),
        note(
            "roce-traffic-class-ucx-vs-nccl",
            "NCCL_IB_TC",
            ucx("NCCL_IB_TC", "106"),
            both(|r| {
                vllm(r)
                    .env("NCCL_IB_TC", "106")
                    .env("UCX_IB_TRAFFIC_CLASS", "106")
            }),
        ),
        note(
            "nixl-plugin-dir",
            "NIXL_PLUGIN_DIR",
            ucx("NIXL_PLUGIN_DIR", "/opt/nixl/plugins"),
            good(),
        ),
        note(
            "dynamo-kvbm-backend",
            "DYN_KVBM_NIXL_BACKEND_LIBFABRIC",
            ucx("DYN_KVBM_NIXL_BACKEND_LIBFABRIC", "true"),
            good(),
        ),
        note(
            "vllm-gpu-nic-mapping-env",
            "VLLM_GPU_NIC_PCIE_MAPPING",
            ucx("VLLM_GPU_NIC_PCIE_MAPPING", "0:mlx5_0"),
            good(),
        ),
        note(
            "mooncake-nvlink-pool",
            "SGLANG_MOONCAKE_CUSTOM_MEM_POOL",
            both(|r| sglang(r).env("SGLANG_MOONCAKE_CUSTOM_MEM_POOL", "NVLINK")),
            both(sglang),
        ),
        note(
            "efa-fi-provider-not-needed",
            "FI_PROVIDER",
            both(|r| efa(r).env("FI_PROVIDER", "efa")),
            both(efa),
        ),
        note(
            "nccl-ib-disable-1",
            "NCCL_IB_DISABLE",
            both(|r| vllm(r).nodes(2).env("NCCL_IB_DISABLE", "1")),
            ucx("NCCL_IB_DISABLE", "1"),
        ),
        note(
            "nccl-env-does-not-steer-nixl",
            "NCCL_IB_HCA",
            ucx("NCCL_IB_HCA", "mlx5"),
            both(|r| {
                vllm(r)
                    .env("NCCL_IB_HCA", "mlx5")
                    .env("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1")
            }),
        ),
        beside("nccl-ib-hca-prefix", "NCCL_IB_HCA", "mlx5_1", "=mlx5_1"),
        note(
            "nccl-exclude-ib-hca-not-a-variable",
            "NCCL_EXCLUDE_IB_HCA",
            ucx("NCCL_EXCLUDE_IB_HCA", "mlx5_8"),
            ucx("NCCL_IB_HCA", "^mlx5_8"),
        ),
        beside("nccl-p2p-disable", "NCCL_P2P_DISABLE", "1", "0"),
        beside("nccl-net-gdr-level", "NCCL_NET_GDR_LEVEL", "LOC", "PIX"),
        note(
            "nccl-socket-ifname-wrong",
            "NCCL_SOCKET_IFNAME",
            both(|r| vllm(r).nodes(2).env("NCCL_SOCKET_IFNAME", "docker0")),
            both(|r| vllm(r).nodes(2).env("NCCL_SOCKET_IFNAME", "eth0")),
        ),
        beside(
            "gloo-socket-ifname-caret",
            "GLOO_SOCKET_IFNAME",
            "^lo,docker",
            "eth0",
        ),
        note(
            "nccl-net-socket",
            "NCCL_NET",
            both(|r| vllm(r).nodes(2).env("NCCL_NET", "Socket")),
            ucx("NCCL_NET", "Socket"),
        ),
        beside("nccl-gid-index-set-new", "NCCL_IB_GID_INDEX", "3", "-1"),
        note(
            "nccl-mnnvl-cumem-off",
            "NCCL_CUMEM_ENABLE",
            domain(|r| mnnvl(r).env("NCCL_CUMEM_ENABLE", "0")),
            ucx("NCCL_CUMEM_ENABLE", "0"),
        ),
        beside("nccl-dmabuf-off", "NCCL_DMABUF_ENABLE", "0", "1"),
        note(
            "ucx-tls-copied-from-nccl-job",
            "UCX_TLS",
            both(|r| {
                vllm(r)
                    .env("NCCL_IB_HCA", "mlx5")
                    .env("UCX_TLS", "tcp,cuda_copy")
            }),
            tls("tcp,cuda_copy"),
        ),
    ]);
    cases
}

/// Results of the report that name a cause, or tell a note.
fn told<'r>(report: &'r Report, case: &Case) -> Vec<&'r CheckResult> {
    let Some((_, cause)) = checks::cause(case.cause) else {
        return Vec::new();
    };
    report
        .results
        .iter()
        .filter(|r| {
            if case.status == Status::Ok {
                r.note.as_deref().is_some_and(|n| n.contains(cause.why))
            } else {
                r.cause == Some(case.cause)
            }
        })
        .collect()
}

#[test]
fn every_cause_is_shown_and_stays_quiet() {
    let mut problems = Vec::new();
    for (index, case) in cases().iter().enumerate() {
        let name = format!("{index}: {} ({})", case.cause, case.status.as_str());
        let report = judge(&case.shows);
        let found = told(&report, case);
        if found.is_empty() {
            let all: Vec<String> = report
                .results
                .iter()
                .map(|r| {
                    format!(
                        "  {} {} {:?} {}",
                        r.status.as_str(),
                        r.name,
                        r.cause,
                        r.detail
                    )
                })
                .collect();
            problems.push(format!(
                "{name}: not shown\n{}\n{}",
                all.join("\n"),
                case.shows
            ));
            continue;
        }
        if case.status != Status::Ok
            && let Some(wrong) = found.iter().find(|r| r.status != case.status)
        {
            problems.push(format!(
                "{name}: is {}: {}",
                wrong.status.as_str(),
                wrong.detail
            ));
        }
        let lines: BTreeSet<u32> = case
            .shows
            .lines()
            .zip(1..)
            .filter(|(line, _)| line.contains(case.line))
            .map(|(_, number)| number)
            .collect();
        assert!(!lines.is_empty(), "{name}: no line has {}", case.line);
        if !case.line.is_empty()
            && !found
                .iter()
                .any(|r| r.sources.iter().any(|s| lines.contains(&s.place.line)))
        {
            let at: Vec<u32> = found
                .iter()
                .flat_map(|r| r.sources.iter().map(|s| s.place.line))
                .collect();
            problems.push(format!("{name}: stands on {at:?}, not on {lines:?}"));
        }
        let report = judge(&case.quiet);
        // Quiet for its own reason, not because nothing was recognized.
        let roles: BTreeSet<Role> = report
            .deployments
            .iter()
            .flat_map(|d| d.workers.iter().map(|w| w.role))
            .collect();
        if !roles.contains(&Role::Prefill) || !roles.contains(&Role::Decode) {
            problems.push(format!(
                "{name}: the quiet recipe has {roles:?}\n{}",
                case.quiet
            ));
        }
        if let Some(noise) = told(&report, case).first() {
            problems.push(format!(
                "{name}: not quiet: {}\n{}",
                noise.detail, case.quiet
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

#[test]
fn no_cause_is_without_a_case() {
    let shown: BTreeSet<&str> = cases().iter().map(|c| c.cause).collect();
    let missing: Vec<&str> = CHECKS
        .iter()
        .filter(|c| c.name.starts_with("env/"))
        .flat_map(|c| c.causes.iter().chain(c.notes))
        .map(|c| c.id)
        .filter(|id| !shown.contains(id))
        .collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn names_are_unique() {
    let mut seen = BTreeSet::new();
    for cause in CHECKS.iter().flat_map(|c| c.causes.iter().chain(c.notes)) {
        assert!(seen.insert(cause.id), "{} twice", cause.id);
    }
}

#[test]
fn good_recipes_are_quiet() {
    for (name, yaml) in [
        ("vLLM over InfiniBand", both(vllm)),
        ("SGLang over InfiniBand", both(sglang)),
        ("TensorRT-LLM over InfiniBand", both(trtllm)),
        ("EFA", both(efa)),
        ("multi-node NVLink", format!("{}{DOMAIN}", both(mnnvl))),
        (
            "plain vLLM",
            plain(|r| vllm(r).field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP")),
        ),
        (
            "groups of pods",
            groups(
                |r| vllm(r).field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP"),
                |r| vllm(r).field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP"),
            ),
        ),
        ("a patch", patch(|r| vllm(r).env("UCX_TLS", "rc,cuda_copy"))),
    ] {
        for result in judge(&yaml).results {
            assert!(
                !matches!(result.status, Status::Warn | Status::Fail),
                "{name}: {:?} {}\n{yaml}",
                result.cause,
                result.detail
            );
        }
    }
}

/// What looks like a fault and is none.
#[test]
fn lookalikes_are_quiet() {
    let podip = |r| vllm(r).field("VLLM_NIXL_SIDE_CHANNEL_HOST", "status.podIP");
    let script = |lines: &str| {
        let lines = indent(lines, 2);
        both(move |r| {
            vllm(r).command(&format!(
                "command: [sh, -c]\nargs:\n- |\n{lines}  exec python3 -m dynamo.vllm --disaggregation-mode {r} --kv-transfer-config '{NIXL}'\n"
            ))
        })
    };
    for (name, yaml) in [
        (
            "a directory that is called like an engine",
            script("cd /opt/tokenspeed\nmkdir -p /tmp/dynamo.vllm\n"),
        ),
        (
            "`set --` and exec",
            both(|r| {
                vllm(r).command(&format!(
                    "command: [sh, -c]\nargs:\n- |\n  ulimit -l unlimited\n  set -- python3 -m dynamo.vllm --disaggregation-mode {r} --kv-transfer-config '{NIXL}'\n  exec \"$@\"\n"
                ))
            }),
        ),
        (
            "a placeholder that a template fills in",
            both(|r| vllm(r).kv("${KV_TRANSFER_CONFIG}")),
        ),
        (
            "two manifests without a name",
            plain(podip)
                .replace("metadata: {name: kv-prefill}", "metadata: {}")
                .replace("metadata: {name: kv-decode}", "metadata: {}"),
        ),
        (
            "ranks that Ray starts",
            groups(
                |r| podip(r).env("UCX_TLS", "rc,cuda_copy"),
                |r| podip(r).command("command: [ray, start, --block, --address=leader]"),
            ),
        ),
        (
            "a NIC that a network driver attaches to the whole pod",
            both(|r| {
                vllm(r)
                    .without("rdma/ib")
                    .spec("resourceClaims: [{name: nic, resourceClaimTemplateName: roce-nic}]")
            }),
        ),
        (
            "a name that only resembles a service's",
            plain(move |r| {
                podip(r)
                    .spec("hostNetwork: true")
                    .env("METRICS_URL", "https://push.svcmetrics.example")
            }),
        ),
        (
            "an image whose tag tells no version",
            both(|r| {
                sglang(r)
                    .image("lmsysorg/sglang:latest")
                    .flag("--disaggregation-ib-device=mlx5_0")
            }),
        ),
        (
            "a variable for a store beside NIXL",
            both(|r| sglang(r).env("MOONCAKE_PROTOCOL", "tcp")),
        ),
    ] {
        for result in judge(&yaml).results {
            assert!(
                !matches!(result.status, Status::Warn | Status::Fail),
                "{name}: {:?} {}\n{yaml}",
                result.cause,
                result.detail
            );
        }
    }
}

#[test]
fn collective_notes_never_count_for_kv() {
    let report = judge(&both(|r| {
        vllm(r)
            .nodes(2)
            .env("NCCL_IB_DISABLE", "1")
            .env("GLOO_SOCKET_IFNAME", "^lo")
            .env("NCCL_NET", "Socket")
    }));
    let collective: Vec<&CheckResult> = report.results.iter().filter(|r| r.collective).collect();
    assert_eq!(collective.len(), 6);
    assert!(collective.iter().all(|r| r.status == Status::Ok));
}
