//! Variants that do harm: the verdict must get worse, and a finding must point at the changed line.

use model::{Engine, Facts, Role, Worker};
use serde_json::{Value, json};

use crate::Variant;
use crate::edit::{self, Edits, Site, env_literal, rewrite, script, set_env, set_script};
use crate::same::{ENV_FORMS, flag_value, kv_json, move_env, rename_flag, replace_flag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    Ucx,
    Libfabric,
    Mooncake,
    Unknown,
}

pub fn carrier(w: &Worker) -> Carrier {
    let of = |name: Option<&str>| match name.map(str::to_ascii_uppercase).as_deref() {
        None | Some("UCX") => Carrier::Ucx,
        Some("LIBFABRIC") => Carrier::Libfabric,
        Some("MOONCAKE") => Carrier::Mooncake,
        Some(_) => Carrier::Unknown,
    };
    match w.engine {
        Engine::Vllm => match w.literal("kv_connector") {
            Some("NixlConnector") => of(w
                .literal("kv_connector_extra_config.backends")
                .and_then(|b| b.split(',').next())),
            Some("MooncakeConnector") => Carrier::Mooncake,
            _ => Carrier::Unknown,
        },
        Engine::Sglang => match w.literal("--disaggregation-transfer-backend") {
            Some("nixl") => of(w.literal("SGLANG_DISAGGREGATION_NIXL_BACKEND")),
            Some("mooncake") => Carrier::Mooncake,
            None if w.has_command && w.hidden.is_empty() => Carrier::Mooncake,
            _ => Carrier::Unknown,
        },
        Engine::Trtllm => match w.literal("cache_transceiver_config.backend") {
            Some("DEFAULT" | "NIXL") => of(w.literal("TRTLLM_NIXL_KVCACHE_BACKEND")),
            Some("UCX") => Carrier::Ucx,
            _ => Carrier::Unknown,
        },
        _ => Carrier::Unknown,
    }
}

/// What the recipe relies on.
pub struct Base<'a> {
    pub text: &'a str,
    pub sites: &'a [Site<'a>],
    pub facts: &'a Facts,
    pub carrier: Carrier,
    /// An RDMA resource, claim or annotation is asked for by every worker.
    pub rdma: bool,
    pub efa: bool,
    pub mnnvl: bool,
    pub single_host: bool,
    pub partial: bool,
    /// AIBrix's gateway rewrites the side channel's address.
    pub gateway: bool,
}

impl Base<'_> {
    fn roles(&self) -> Vec<(&'static str, Vec<Role>)> {
        let has = |r| self.sites.iter().any(|s| s.role == r);
        if has(Role::Prefill) && has(Role::Decode) {
            vec![
                ("prefill", vec![Role::Prefill]),
                ("decode", vec![Role::Decode]),
                ("both", vec![Role::Prefill, Role::Decode]),
            ]
        } else if has(Role::Prefill) {
            vec![("prefill", vec![Role::Prefill])]
        } else {
            vec![("decode", vec![Role::Decode])]
        }
    }

    /// Only one role is in the file: the other half is elsewhere, and what it has is not known.
    fn half(&self) -> bool {
        self.roles().len() == 1
    }

    fn change(
        &self,
        roles: &[Role],
        f: &mut dyn FnMut(&Site<'_>, &mut Value) -> Option<()>,
    ) -> Option<String> {
        let mut edits = Edits::default();
        let mut any = false;
        for site in self.sites.iter().filter(|s| roles.contains(&s.role)) {
            let mut c = edit::value(site.container);
            if f(site, &mut c).is_some() {
                rewrite(&mut edits, self.text, site.container, &c);
                any = true;
            }
        }
        any.then(|| edits.apply(self.text))
    }

    fn workers(&self) -> impl Iterator<Item = &Worker> {
        self.facts
            .deployments
            .iter()
            .flat_map(model::Deployment::kv_workers)
    }

    /// A variable is set by nothing that would win over the env list.
    fn settable(&self, name: &str) -> bool {
        self.workers().all(|w| {
            w.setting(name).is_none_or(|s| {
                matches!(
                    s.form,
                    model::Form::EnvEntry
                        | model::Form::EnvFlow
                        | model::Form::EnvAlias
                        | model::Form::Graph
                )
            })
        })
    }
}

/// Sets a variable in a container as a block entry, so that its value stands on a line of its own.
fn values(b: &Base<'_>) -> Vec<(&'static str, &'static str)> {
    let mut list: Vec<(&str, &str)> = Vec::new();
    if b.carrier == Carrier::Ucx {
        list.extend([
            ("UCX_TLS", ""),
            ("UCX_TLS", "all,tcp"),
            ("UCX_TLS", "tcp"),
            ("UCX_TLS", "tcp,self"),
        ]);
        list.extend([
            ("UCX_TLS", "RC,CUDA_COPY"),
            ("UCX_TLS", "rc, cuda_copy"),
            ("UCX_TLS", "rc"),
            ("UCX_TLS", "sm,self"),
        ]);
        list.extend([
            ("UCX_NET_DEVICES", ""),
            ("UCX_NET_DEVICES", "mlx5_*"),
            ("UCX_NET_DEVICES", "mlx5_0:1 mlx5_1:1"),
        ]);
        if !b.single_host {
            list.extend([
                ("UCX_TLS", "cuda_copy,cuda_ipc"),
                ("UCX_TLS", "tcp,cuda_copy"),
                ("UCX_NET_DEVICES", "lo"),
            ]);
        }
        if b.rdma {
            list.extend([
                ("UCX_NET_DEVICES", "eth0"),
                ("UCX_TLS", "^rc,dc,ud,ib,rc_x,rc_v,dc_x,ud_x,ud_v"),
                ("UCX_TLS", "tcp,cuda_copy,cuda_ipc"),
            ]);
            list.extend([
                ("UCX_IB_GPU_DIRECT_RDMA", "n"),
                ("UCX_IB_GPU_DIRECT_RDMA", "no"),
                ("UCX_IB_GPU_DIRECT_RDMA", "off"),
                ("UCX_IB_GPU_DIRECT_RDMA", "true"),
                ("UCX_IB_GPU_DIRECT_RDMA", ""),
            ]);
        }
    }
    if b.carrier == Carrier::Libfabric && b.efa {
        list.extend([
            ("FI_PROVIDER", "tcp"),
            ("FI_PROVIDER", "sockets"),
            ("FI_PROVIDER", "^efa"),
            ("FI_EFA_USE_DEVICE_RDMA", "0"),
            ("FI_EFA_USE_DEVICE_RDMA", "false"),
            ("FI_HMEM_DISABLE_P2P", "1"),
            ("FI_HMEM_DISABLE_P2P", "true"),
        ]);
    }
    if b.workers()
        .all(|w| w.engine == Engine::Vllm && w.literal("kv_connector") == Some("NixlConnector"))
        && !b.partial
    {
        list.push(("VLLM_NIXL_SIDE_CHANNEL_HOST", "127.0.0.1"));
        list.push(("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost"));
        if !b.gateway {
            list.push(("VLLM_NIXL_SIDE_CHANNEL_HOST", "0.0.0.0"));
        }
    }
    if b.carrier == Carrier::Mooncake {
        list.extend([
            ("MC_FORCE_TCP", "1"),
            ("MC_FORCE_TCP", "true"),
            ("MC_GID_INDEX", "true"),
        ]);
    }
    list
}

pub fn env_values(b: &Base<'_>, out: &mut Vec<Variant>) {
    for (name, value) in values(b) {
        if !b.settable(name) {
            continue;
        }
        for (who, roles) in b.roles() {
            let made = b.change(&roles, &mut |_, c| {
                set_env(c, name, value);
                Some(())
            });
            let kind = format!("{name}={}", json!(value));
            if let Some(made) = made {
                // The entry, written as a block, starts with its name or its value.
                out.push(Variant::worse(&kind, who, made, Some(name.to_owned())));
            }
        }
        // The same harm in other forms, on decode.
        if matches!(
            (name, value),
            (
                "UCX_TLS"
                    | "UCX_NET_DEVICES"
                    | "FI_PROVIDER"
                    | "VLLM_NIXL_SIDE_CHANNEL_HOST"
                    | "MC_FORCE_TCP"
                    | "UCX_IB_GPU_DIRECT_RDMA",
                "tcp" | "eth0" | "127.0.0.1" | "1" | "n" | ""
            )
        ) {
            for form in ENV_FORMS {
                let roles = b.roles().remove(0).1;
                let mut tail = String::new();
                let made = b.change(&roles, &mut |_, c| {
                    set_env(c, name, value);
                    tail = move_env(c, form, name, "^gga")?;
                    Some(())
                });
                if let Some(made) = made {
                    out.push(Variant::worse(
                        &format!("{name}={} by {form}", json!(value)),
                        "first role",
                        format!("{made}{tail}"),
                        None,
                    ));
                }
            }
        }
    }
}

const SLIPS: &[(&str, &str)] = &[
    ("UCX_TLS", "UCX_TSL"),
    ("UCX_TLS", "UCX_TLS_"),
    ("UCX_TLS", "UCXTLS"),
    ("UCX_TLS", "UXC_TLS"),
    ("UCX_TLS", "ucx_tls"),
    ("UCX_TLS", "UCX_TL"),
    ("UCX_TLS", "UCX-TLS"),
    ("UCX_NET_DEVICES", "UCX_NET_DEVICE"),
    ("UCX_NET_DEVICES", "UCX_NETDEVICES"),
    ("UCX_NET_DEVICES", "UCX_NET_DEVCIES"),
    ("UCX_IB_GPU_DIRECT_RDMA", "UCX_IB_GPU_DIRECT_RMDA"),
    ("UCX_IB_GPU_DIRECT_RDMA", "UCX_GPU_DIRECT_RDMA"),
    ("FI_PROVIDER", "FI_PROVIDRE"),
    ("FI_PROVIDER", "FI_PROVDER"),
    ("FI_EFA_USE_DEVICE_RDMA", "FI_EFA_USE_DEVICE_RMDA"),
    (
        "VLLM_NIXL_SIDE_CHANNEL_HOST",
        "VLLM_NIXL_SIDE_CHANNEL_HOSTT",
    ),
    ("VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDECHANNEL_HOST"),
    (
        "SGLANG_DISAGGREGATION_NIXL_BACKEND",
        "SGLANG_DISAGGREGATION_NIXL_BACKENDS",
    ),
    (
        "SGLANG_DISAGGREGATION_NIXL_BACKEND",
        "SGLANG_DISAGGREGATION_NXIL_BACKEND",
    ),
    (
        "TRTLLM_NIXL_KVCACHE_BACKEND",
        "TRTLLM_NIXL_KVCACHE_BACKENDS",
    ),
    (
        "TRTLLM_NIXL_KVCACHE_BACKEND",
        "TRTLLM_NIXL_KV_CACHE_BACKEND",
    ),
];

/// Names with a slip, where the right name was set and where it was not.
pub fn names(b: &Base<'_>, out: &mut Vec<Variant>) {
    for (right, wrong) in SLIPS {
        let matters = match right.split('_').next() {
            Some("UCX") => b.carrier == Carrier::Ucx,
            Some("FI") => b.carrier == Carrier::Libfabric,
            Some("VLLM") => b.workers().all(|w| w.engine == Engine::Vllm),
            Some("SGLANG") => b.workers().all(|w| {
                w.engine == Engine::Sglang
                    && w.literal("--disaggregation-transfer-backend") == Some("nixl")
            }),
            _ => b.workers().all(|w| w.engine == Engine::Trtllm),
        };
        if !matters {
            continue;
        }
        let set = b.workers().any(|w| w.setting(right).is_some());
        for (who, roles) in b.roles() {
            let made = b.change(&roles, &mut |_, c| {
                let list = c["env"].as_array_mut()?;
                match list.iter_mut().find(|i| i["name"] == *right) {
                    Some(item) => item["name"] = json!(wrong),
                    None if !set => {
                        let value = match *right {
                            "UCX_TLS" => "rc,cuda_copy,cuda_ipc",
                            "UCX_NET_DEVICES" => "mlx5_0:1,mlx5_1:1",
                            "FI_PROVIDER" => "efa",
                            _ => "UCX",
                        };
                        list.push(json!({"name": wrong, "value": value}));
                    }
                    None => return None,
                }
                Some(())
            });
            if let Some(made) = made {
                out.push(Variant::worse(
                    &format!("misspelt {wrong}"),
                    who,
                    made,
                    Some((*wrong).to_owned()),
                ));
            }
        }
        // In a script.
        let made = b.change(&b.roles().remove(0).1, &mut |_, c| {
            let s = script(c)?;
            set_script(
                c,
                &crate::same::before_script(&s, &format!("export {wrong}=rc,cuda_copy,cuda_ipc")),
            );
            Some(())
        });
        if let Some(made) = made.filter(|_| !wrong.contains('-')) {
            out.push(Variant::worse(
                &format!("misspelt export {wrong}"),
                "first role",
                made,
                Some((*wrong).to_owned()),
            ));
        }
    }
    for (right, wrong) in [
        ("--kv-transfer-config", "--kv-transfer-confg"),
        ("--kv-transfer-config", "--kv-tranfer-config"),
        ("--kv-transfer-config", "--kv-transfer-configs"),
        ("--disaggregation-mode", "--disaggregation-mod"),
        ("--disaggregation-mode", "--disagregation-mode"),
        (
            "--disaggregation-transfer-backend",
            "--disaggregation-transfer-backed",
        ),
    ] {
        for (who, roles) in b.roles() {
            if let Some(made) = b.change(&roles, &mut |_, c| rename_flag(c, right, wrong)) {
                out.push(Variant::worse(
                    &format!("misspelt {wrong}"),
                    who,
                    made,
                    Some(wrong.to_owned()),
                ));
            }
        }
    }
    for (right, wrong) in [
        ("kv_connector", "kv_conector"),
        ("kv_connector", "kv_connectr"),
    ] {
        for (who, roles) in b.roles() {
            let made = b.change(&roles, &mut |_, c| {
                let text = kv_json(c)?;
                let wrong = text.replacen(&format!("\"{right}\""), &format!("\"{wrong}\""), 1);
                edit_json(c, &wrong)
            });
            if let Some(made) = made {
                out.push(Variant::worse(
                    &format!("misspelt {wrong}"),
                    who,
                    made,
                    Some(wrong.to_owned()),
                ));
            }
        }
    }
    if b.rdma {
        for (who, roles) in b.roles() {
            let mut wrong = String::new();
            let made = owners(b, &roles, &mut |v| {
                let mut any = false;
                deep_keys(v, &mut |k| match k {
                    "rdma/ib" => {
                        any = true;
                        wrong = "rdma/bi".into();
                        Some("rdma/bi".into())
                    }
                    "rdma/shared_ib" => {
                        any = true;
                        wrong = "rdma/shared_bi".into();
                        Some("rdma/shared_bi".into())
                    }
                    _ => None,
                });
                any
            });
            if let Some(made) = made {
                out.push(Variant::worse(
                    "misspelt resource",
                    who,
                    made,
                    Some(wrong.clone()),
                ));
            }
        }
    }
}

/// Puts other JSON where the KV transfer configuration is written.
fn edit_json(c: &mut Value, text: &str) -> Option<()> {
    let value = flag_value(c, "--kv-transfer-config")?;
    if value.trim_start().starts_with('{') {
        let quoted = if script(c).is_some() {
            format!("'{text}'")
        } else {
            text.to_owned()
        };
        return replace_flag(
            c,
            "--kv-transfer-config",
            &["--kv-transfer-config".into(), quoted],
        );
    }
    let name = value
        .trim_start_matches(['$', '{', '('])
        .trim_end_matches(['}', ')'])
        .to_owned();
    env_literal(c, &name)?;
    set_env(c, &name, text);
    Some(())
}

pub fn deep_keys(v: &mut Value, f: &mut dyn FnMut(&str) -> Option<String>) {
    match v {
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                if let Some(new) = f(&key)
                    && let Some(value) = map.remove(&key)
                {
                    map.insert(new, value);
                }
            }
            for v in map.values_mut() {
                deep_keys(v, f);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| deep_keys(v, f)),
        _ => {}
    }
}

/// Changes the whole component, service or workload of each role.
fn owners(b: &Base<'_>, roles: &[Role], f: &mut dyn FnMut(&mut Value) -> bool) -> Option<String> {
    let mut edits = Edits::default();
    let mut any = false;
    let mut seen = Vec::new();
    for site in b.sites.iter().filter(|s| roles.contains(&s.role)) {
        if seen.contains(&site.owner.id()) {
            continue;
        }
        seen.push(site.owner.id());
        let mut v = edit::value(site.owner);
        if f(&mut v) {
            rewrite(&mut edits, b.text, site.owner, &v);
            any = true;
        }
    }
    any.then(|| edits.apply(b.text))
}

fn is_rdma_key(k: &str) -> bool {
    k.contains('/')
        && (k.starts_with("rdma/")
            || k.contains("rdma")
            || k.contains("efa")
            || k == "networking.gke.io/interfaces"
            || k == "k8s.volcengine.com/pod-networks")
}

/// Removes every request for a fabric.
fn without_fabric(v: &mut Value) -> bool {
    let mut any = false;
    match v {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|k, _| !is_rdma_key(k) && k != "resourceClaims" && k != "claims");
            any |= map.len() != before;
            for key in ["volumes", "volumeMounts"] {
                if let Some(list) = map.get_mut(key).and_then(Value::as_array_mut) {
                    let before = list.len();
                    list.retain(|i| {
                        !i.to_string().contains("/dev/infiniband")
                            && !(key == "volumeMounts" && i["mountPath"] == "/dev/infiniband")
                    });
                    any |= list.len() != before;
                }
            }
            for v in map.values_mut() {
                any |= without_fabric(v);
            }
        }
        Value::Array(list) => {
            for v in list {
                any |= without_fabric(v);
            }
        }
        _ => {}
    }
    any
}

pub fn fabric(b: &Base<'_>, out: &mut Vec<Variant>) {
    if !(b.rdma || b.efa || b.mnnvl) || b.partial || b.half() {
        return;
    }
    for (who, roles) in b.roles() {
        if let Some(made) = owners(b, &roles, &mut without_fabric) {
            out.push(Variant::worse("fabric dropped", who, made, None));
        }
        if let Some(made) = owners(b, &roles, &mut |v| {
            let mut any = false;
            zero(v, &mut any);
            any
        }) && !b.mnnvl
        {
            out.push(Variant::worse(
                "fabric asked for zero times",
                who,
                made,
                None,
            ));
        }
        if b.rdma
            && b.workers()
                .all(|w| w.resources.iter().any(|r| r.name.contains("rdma")))
        {
            let made = owners(b, &roles, &mut |v| {
                let mut any = false;
                without_lock(v, &mut any);
                any
            });
            if let Some(made) = made {
                out.push(Variant::worse(
                    "IPC_LOCK and privileged dropped",
                    who,
                    made,
                    None,
                ));
            }
        }
    }
}

fn zero(v: &mut Value, any: &mut bool) {
    match v {
        Value::Object(map) => {
            for (k, v) in map.iter_mut() {
                if is_rdma_key(k)
                    && !k.starts_with("networking.gke.io")
                    && (v.is_number() || v.as_str().is_some_and(|s| s.parse::<u32>().is_ok()))
                {
                    *v = json!("0");
                    *any = true;
                } else {
                    zero(v, any);
                }
            }
            if let Some(list) = map.get_mut("volumes").and_then(Value::as_array_mut) {
                list.retain(|i| !i.to_string().contains("/dev/infiniband"));
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| zero(v, any)),
        _ => {}
    }
}

fn without_lock(v: &mut Value, any: &mut bool) {
    match v {
        Value::Object(map) => {
            *any |= map.remove("privileged").is_some();
            if let Some(list) = map.get_mut("add").and_then(Value::as_array_mut) {
                let before = list.len();
                list.retain(|c| c != "IPC_LOCK" && c != "CAP_IPC_LOCK" && c != "ALL");
                *any |= list.len() != before;
            }
            for v in map.values_mut() {
                without_lock(v, any);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| without_lock(v, any)),
        _ => {}
    }
}

/// Connectors, backends and directions.
pub fn connectors(b: &Base<'_>, out: &mut Vec<Variant>) {
    if b.partial || b.half() {
        return;
    }
    for (who, roles) in b.roles() {
        let one = roles.len() == 1;
        if one
            && let Some(made) = b.change(&roles, &mut |_, c| {
                replace_flag(c, "--kv-transfer-config", &[])
            })
        {
            out.push(Variant::worse("connector removed", who, made, None));
        }
        if one
            && let Some(made) = json_change(b, &roles, &mut |v| {
                let role = if who == "prefill" {
                    "kv_consumer"
                } else {
                    "kv_producer"
                };
                // NIXL takes either direction, whatever it is called.
                let kept = v["kv_role"].is_string() && v["kv_connector"] != "NixlConnector";
                v["kv_role"] = json!(role);
                kept
            })
        {
            out.push(Variant::worse(
                "kv_role swapped",
                who,
                made,
                Some("kv_role".into()),
            ));
        }
        if let Some(made) = json_change(b, &roles, &mut |v| {
            v["kv_buffer_device"] = json!("cpu");
            v["kv_connector"] == "NixlConnector"
        }) {
            out.push(Variant::worse(
                "kv_buffer_device cpu",
                who,
                made,
                Some("kv_buffer_device".into()),
            ));
        }
        if one
            && let Some(made) = json_change(b, &roles, &mut |v| {
                v["kv_connector"] = json!("MooncakeConnector");
                true
            })
        {
            out.push(Variant::worse(
                "another connector",
                who,
                made,
                Some("MooncakeConnector".into()),
            ));
        }
        let other = if b.carrier == Carrier::Libfabric {
            "UCX"
        } else {
            "LIBFABRIC"
        };
        if (one || b.efa)
            && let Some(made) = json_change(b, &roles, &mut |v| {
                v["kv_connector_extra_config"] = json!({"backends": [other]});
                v["kv_connector"] == "NixlConnector"
            })
        {
            out.push(Variant::worse(
                "another NIXL backend",
                who,
                made,
                Some(other.into()),
            ));
        }
        if (one || b.efa)
            && b.carrier == Carrier::Libfabric
            && let Some(made) = json_change(b, &roles, &mut |v| {
                v.as_object_mut()
                    .and_then(|m| m.remove("kv_connector_extra_config"))
                    .is_some()
            })
        {
            out.push(Variant::worse(
                "NIXL backend removed",
                who,
                made,
                Some("kv_connector".into()),
            ));
        }
        for (engine, name) in [
            (Engine::Sglang, "SGLANG_DISAGGREGATION_NIXL_BACKEND"),
            (Engine::Trtllm, "TRTLLM_NIXL_KVCACHE_BACKEND"),
        ] {
            let nixl = b.workers().all(|w| {
                w.engine == engine
                    && (engine != Engine::Sglang
                        || w.literal("--disaggregation-transfer-backend") == Some("nixl"))
            }) && matches!(b.carrier, Carrier::Ucx | Carrier::Libfabric);
            if !nixl {
                continue;
            }
            if one || b.efa {
                let made = b.change(&roles, &mut |_, c| {
                    set_env(c, name, other);
                    Some(())
                });
                if let Some(made) = made {
                    out.push(Variant::worse(
                        "another NIXL backend",
                        who,
                        made,
                        Some(name.into()),
                    ));
                }
                let made = b.change(&roles, &mut |_, c| {
                    env_literal(c, name).filter(|_| b.carrier == Carrier::Libfabric)?;
                    edit::remove_env(c, name);
                    Some(())
                });
                if let Some(made) = made {
                    out.push(Variant::worse("NIXL backend removed", who, made, None));
                }
            }
        }
        if one {
            let current = b
                .workers()
                .next()
                .and_then(|w| w.literal("--disaggregation-transfer-backend"))
                .map(str::to_owned);
            let other = if current.as_deref() == Some("nixl") {
                "mooncake"
            } else {
                "nixl"
            };
            if let Some(made) = b.change(&roles, &mut |_, c| {
                replace_flag(
                    c,
                    "--disaggregation-transfer-backend",
                    &["--disaggregation-transfer-backend".into(), other.into()],
                )
            }) {
                out.push(Variant::worse(
                    "another transfer backend",
                    who,
                    made,
                    Some("--disaggregation-transfer-backend".into()),
                ));
            }
            if current.as_deref() == Some("nixl")
                && let Some(made) = b.change(&roles, &mut |_, c| {
                    replace_flag(c, "--disaggregation-transfer-backend", &[])
                })
            {
                out.push(Variant::worse("transfer backend removed", who, made, None));
            }
        }
    }
    // Engine configuration in ConfigMaps.
    for (kind, from, to) in [
        (
            "transceiver backend removed",
            "      backend: DEFAULT\n",
            "",
        ),
        (
            "transceiver backend null",
            "backend: DEFAULT",
            "backend: null",
        ),
        (
            "transfer backend differs",
            "disaggregation-transfer-backend: nixl",
            "disaggregation-transfer-backend: mooncake",
        ),
        (
            "transfer backend removed",
            "    disaggregation-transfer-backend: nixl\n",
            "",
        ),
        ("kv_role swapped", "kv_producer", "kv_consumer"),
    ] {
        for (n, (at, _)) in b.text.match_indices(from).enumerate().take(2) {
            let line = b.text[..at].rsplit('\n').next().unwrap_or_default();
            // Beside an explicit mode NIXL takes either direction, whatever it is called.
            let told = b.text.contains("--disaggregation-mode");
            if line.trim_start().starts_with('#') || kind == "kv_role swapped" && (n > 0 || told) {
                continue;
            }
            let mut made = b.text.to_owned();
            made.replace_range(at..at + from.len(), to);
            out.push(Variant::worse(
                kind,
                if n == 0 { "first" } else { "second" },
                made,
                None,
            ));
        }
    }
}

/// Changes the JSON of the KV transfer configuration.
fn json_change(
    b: &Base<'_>,
    roles: &[Role],
    f: &mut dyn FnMut(&mut Value) -> bool,
) -> Option<String> {
    b.change(roles, &mut |_, c| {
        let mut v: Value = serde_json::from_str(&kv_json(c)?).ok()?;
        if !f(&mut v) {
            return None;
        }
        edit_json(c, &v.to_string())
    })
}

/// One role turned into the other, so that none is left.
pub fn roles(b: &Base<'_>, out: &mut Vec<Variant>) {
    let has = |r| b.sites.iter().any(|s| s.role == r);
    if b.partial || !has(Role::Prefill) || !has(Role::Decode) {
        return;
    }
    for (from, to, role) in [
        ("prefill", "decode", Role::Prefill),
        ("decode", "prefill", Role::Decode),
    ] {
        for renamed in [false, true] {
            let mut text = b.text.to_owned();
            let mut ranges: Vec<_> = b
                .sites
                .iter()
                .filter(|s| s.role == role)
                .map(|s| s.owner_range.clone())
                .collect();
            ranges.sort_by_key(|r| std::cmp::Reverse(r.start));
            ranges.dedup();
            let mut any = false;
            for range in ranges {
                let range = range.start as usize..range.end as usize;
                let old = &b.text[range.clone()];
                let new = turned(old, from, to, renamed);
                any |= new != old;
                text.replace_range(range, &new);
            }
            // What the engines are told in a ConfigMap.
            let (told, other) = (
                format!("disaggregation-mode: {from}"),
                format!("disaggregation-mode: {to}"),
            );
            any |= text.contains(&told);
            text = text.replace(&told, &other);
            if any {
                out.push(Variant::worse(
                    &format!(
                        "{from} turned into {to}{}",
                        if renamed { ", renamed" } else { "" }
                    ),
                    from,
                    text,
                    None,
                ));
            }
        }
    }
}

fn turned(text: &str, from: &str, to: &str, renamed: bool) -> String {
    let (f, t) = if from == "prefill" {
        ("kv_producer", "kv_consumer")
    } else {
        ("kv_consumer", "kv_producer")
    };
    let mut new = text
        .replace(
            &format!("subComponentType: {from}"),
            &format!("subComponentType: {to}"),
        )
        .replace(&format!("type: {from}"), &format!("type: {to}"))
        .replace(f, t)
        .replace(
            &format!("llm-d.ai/role: {from}"),
            &format!("llm-d.ai/role: {to}"),
        )
        .replace(&format!("--is-{from}-worker"), &format!("--is-{to}-worker"));
    // The word behind the mode flag, whatever is between.
    let mut at = 0;
    while let Some(found) = new[at..].find("--disaggregation-mode") {
        let start = at + found + "--disaggregation-mode".len();
        let gap = new[start..]
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(0);
        if new[start + gap..].starts_with(from) {
            new.replace_range(start + gap..start + gap + from.len(), to);
        }
        at = start;
    }
    if renamed {
        let upper = |w: &str| w[..1].to_ascii_uppercase() + &w[1..];
        new = new
            .replace(from, &format!("{to}-b"))
            .replace(&upper(from), &format!("{}B", upper(to)));
        // Words that are values and not names keep their exact spelling.
        for (k, sep) in [
            ("--disaggregation-mode", " "),
            ("--disaggregation-mode", "="),
            ("type:", " "),
            ("subComponentType:", " "),
        ] {
            new = new.replace(&format!("{k}{sep}{to}-b"), &format!("{k}{sep}{to}"));
        }
    }
    new
}
