//! Settings that workers of one workload have in common: which count, and when two values are the same.

use std::collections::BTreeSet;

use model::Value;
use serde_json::Value as Json;
use settings::catalogue::{self, Relevance};

use crate::pod::view::PodView;

/// Words in a name that tell that its value is each worker's own.
const OWN: [&str; 9] = [
    "PORT",
    "HOST",
    "ADDR",
    "RANK",
    "ENDPOINT",
    "NODE_ID",
    "INSTANCE",
    "NAMESPACE",
    "IFACE",
];

/// Keys of a configuration whose values are each worker's own.
const OWN_KEYS: [&str; 7] = [
    "port",
    "host",
    "addr",
    "rank",
    "endpoint",
    "engine_id",
    "_ip",
];

/// Settings that name devices: a worker has those that it was given, and other numbers say nothing.
const DEVICES: [&str; 8] = [
    "UCX_NET_DEVICES",
    "NCCL_IB_HCA",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ASCEND_RT_VISIBLE_DEVICES",
    "--disaggregation-ib-device",
];

/// What a difference in a setting means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// It can change the path of KV.
    Counts,
    /// It is worth knowing: speed, or what does not carry KV.
    Note,
}

/// What a difference in a setting of that name means; `None` where it is not compared.
fn weight(name: &str, over_nccl: bool) -> Option<Weight> {
    let upper = name.to_ascii_uppercase();
    if OWN.iter().any(|word| upper.contains(word)) {
        return None;
    }
    if !model::is_variable(name) {
        return Some(Weight::Counts);
    }
    match catalogue::lookup(name)?.relevance {
        Relevance::Debug => None,
        Relevance::Tuning => Some(Weight::Note),
        // Collectives inside of a worker do not move KV to another one.
        _ if !over_nccl && (name.starts_with("NCCL_") || name.starts_with("GLOO_")) => {
            Some(Weight::Note)
        }
        Relevance::Critical | Relevance::Relevant => Some(Weight::Counts),
    }
}

/// Names of settings that any of the workers has and that are compared.
pub(super) fn names<'p>(pods: &[&'p PodView<'p>]) -> Vec<(&'p str, Weight)> {
    let settings = || {
        pods.iter()
            .filter_map(|pod| pod.live)
            .flat_map(|live| &live.worker.settings)
    };
    let over_nccl = settings().any(|setting| {
        setting.name == "--kv-transfer-config"
            && matches!(&setting.value, Value::Literal(text) if text.to_ascii_lowercase().contains("nccl"))
    });
    let names: BTreeSet<&str> = settings().map(|setting| setting.name.as_str()).collect();
    names
        .into_iter()
        .filter_map(|name| Some((name, weight(name, over_nccl)?)))
        .collect()
}

/// A worker's setting as it is; `None` where it is not known, or a value of its own.
pub(super) fn given(pod: &PodView<'_>, name: &str) -> Option<String> {
    let live = pod.live?;
    let unread = if model::is_variable(name) {
        &live.environment
    } else {
        &live.flags
    };
    if unread.is_some() {
        return None;
    }
    match live.worker.setting(name) {
        Some(setting) => match &setting.value {
            Value::Literal(text) => Some(text.clone()),
            Value::Dynamic(_) => None,
        },
        None => Some("not set".to_owned()),
    }
}

/// The same for all who mean the same.
pub(super) fn alike(name: &str, text: &str) -> String {
    if DEVICES.contains(&name) {
        return text
            .split(',')
            .map(|item| device(item.trim()))
            .collect::<Vec<_>>()
            .join(",");
    }
    match serde_json::from_str::<Json>(text) {
        Ok(mut value @ (Json::Object(_) | Json::Array(_))) => {
            without_own(&mut value);
            value.to_string()
        }
        _ => text.to_owned(),
    }
}

/// `mlx5_3:1` is `mlx5_#:#`, as every other of them.
fn device(item: &str) -> String {
    if let Some((kind, _)) = item.split_once('-')
        && matches!(kind, "GPU" | "MIG")
    {
        return format!("{kind}-#");
    }
    let mut out = String::new();
    for c in item.chars() {
        match c {
            '0'..='9' if out.ends_with('#') => {}
            '0'..='9' => out.push('#'),
            c => out.push(c),
        }
    }
    out
}

fn without_own(value: &mut Json) {
    match value {
        Json::Object(map) => {
            map.retain(|key, _| {
                let key = key.to_ascii_lowercase();
                !OWN_KEYS.iter().any(|word| key.contains(word))
            });
            map.values_mut().for_each(without_own);
        }
        Json::Array(list) => list.iter_mut().for_each(without_own),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Weight, alike, weight};

    #[test]
    fn numbers_of_devices_are_no_difference_and_their_count_is() {
        let alike = |text| alike("UCX_NET_DEVICES", text);
        assert_eq!(alike("mlx5_0:1"), alike("mlx5_11:1"));
        assert_ne!(alike("mlx5_0:1"), alike("mlx5_0:1,mlx5_1:1"));
        assert_ne!(alike("mlx5_0:1"), alike("eth0"));
        assert_ne!(alike("mlx5_0:1"), alike("not set"));
    }

    #[test]
    fn configurations_are_compared_by_what_they_mean() {
        let alike = |text| alike("--kv-transfer-config", text);
        let one = r#"{"kv_connector":"NixlConnector","kv_port":20001,"engine_id":"a"}"#;
        let other = r#"{ "engine_id": "b", "kv_port": 20002, "kv_connector": "NixlConnector" }"#;
        assert_eq!(alike(one), alike(other));
        assert_ne!(
            alike(one),
            alike(r#"{"kv_connector":"LMCacheConnectorV1"}"#)
        );
        assert_eq!(alike("{no json"), "{no json");
    }

    #[test]
    fn what_does_not_carry_kv_is_a_note() {
        assert_eq!(weight("UCX_TLS", false), Some(Weight::Counts));
        assert_eq!(weight("NCCL_IB_DISABLE", false), Some(Weight::Note));
        assert_eq!(weight("NCCL_IB_DISABLE", true), Some(Weight::Counts));
        assert_eq!(weight("NCCL_DEBUG", false), None);
        assert_eq!(weight("UCX_MAX_RNDV_RAILS", false), Some(Weight::Note));
        assert_eq!(weight("VLLM_NIXL_SIDE_CHANNEL_PORT", false), None);
        assert_eq!(weight("--block-size", false), Some(Weight::Counts));
    }
}
