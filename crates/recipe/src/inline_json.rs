//! JSON that stands in an engine's flag: what of it may be kept.
//!
//! Connectors take keys of their own there, such as the address and the password of a store. Names of keys stay, and of
//! values those that decide the path.

use std::borrow::Cow;

use serde_json::Value;

use crate::credentials::{masked, masked_message};
use crate::json_keys::KEYS;

/// Keys of TensorRT-LLM's engine configuration that decide the path.
const ENGINE_KEYS: [&str; 3] = ["backend", "dtype", "tokens_per_block"];

/// Keys whose values are kept: those, and those of vLLM's KV transfer configuration.
pub fn kept_keys() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter().chain(ENGINE_KEYS)
}

/// The value of a flag without what is nobody's business.
pub fn value_of_flag<'t>(flag: &str, text: &'t str) -> Cow<'t, str> {
    // SGLang takes devices by GPU: `{"0": "mlx5_0"}`.
    if !text.contains('{') || flag.ends_with("-ib-device") {
        return masked(text);
    }
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(mut value) => {
            reduce(&mut value, false);
            Cow::Owned(value.to_string())
        }
        Err(_) => Cow::Owned(masked_message(text)),
    }
}

/// `kept` are values under a key of the list.
fn reduce(value: &mut Value, kept: bool) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                reduce(value, kept_keys().any(|kept| kept == key));
            }
        }
        Value::Array(list) => {
            for value in list {
                reduce(value, kept);
            }
        }
        Value::String(text) if !kept => "...".clone_into(text),
        Value::String(text) => *text = masked(text).into_owned(),
        Value::Number(number) if !kept => *number = 0.into(),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "--kv-transfer-config";

    #[test]
    fn only_what_decides_the_path_is_kept() {
        let text = r#"{"kv_connector":"MultiConnector","password":"hunter2","pin":4711,"on":true,
            "kv_connector_extra_config":{"backends":["UCX","hunter3"],"auth":["hunter4"],"connectors":[{"kv_role":"kv_both","url":"redis://:hunter5@x"}]},
            "kv_cache_config":{"tokens_per_block":32}}"#;
        let kept = value_of_flag(CONFIG, text);
        for secret in ["hunter2", "4711", "hunter4", "hunter5"] {
            assert!(!kept.contains(secret), "{secret}: {kept}");
        }
        let kept: Value = serde_json::from_str(&kept).expect("it is JSON still");
        assert_eq!(kept["kv_connector"], "MultiConnector");
        assert_eq!(kept["on"], true);
        assert_eq!(kept["kv_connector_extra_config"]["backends"][0], "UCX");
        assert_eq!(
            kept["kv_connector_extra_config"]["connectors"][0]["kv_role"],
            "kv_both"
        );
        assert_eq!(kept["kv_cache_config"]["tokens_per_block"], 32);
    }

    #[test]
    fn what_is_no_json_keeps_no_secret_either() {
        for text in [
            r#"{"kv_role":"kv_producer","password":"hunter2""#,
            "prefix token=hunter2",
        ] {
            assert!(!value_of_flag(CONFIG, text).contains("hunter2"), "{text}");
        }
        assert_eq!(value_of_flag("--connector", "nixl"), "nixl");
    }

    #[test]
    fn devices_by_gpu_are_kept() {
        let devices = r#"{"0": "mlx5_0", "1": "mlx5_1"}"#;
        assert_eq!(
            value_of_flag("--disaggregation-ib-device", devices),
            devices
        );
    }
}
