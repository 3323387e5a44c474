//! In the words of one engine's command line: the pod's spec is that of the others.

use super::{Fault, fault};

const OTHER: &str = r#"{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}"#;
const ROLELESS: &str = r#"{"kv_connector":"NixlConnector"}"#;
const ON_HOST: &str =
    r#"{"kv_connector":"NixlConnector","kv_role":"kv_both","kv_buffer_device":"cpu"}"#;

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        fault("another block size", "decode-30", |w| w.flag("--block-size", "128"), "worker-settings-differ").pairs(&["block-size-differs"]),
        fault("another KV type", "prefill-5", |w| w.flag("--kv-cache-dtype", "auto"), "worker-settings-differ").pairs(&["kv-cache-dtype-differs"]),
        fault("another connector", "decode-31", |w| w.flag("--kv-transfer-config", OTHER), "worker-settings-differ").pairs(&["connector-differs"]),
        fault("no connector", "decode-32", |w| w.without_flag("--kv-transfer-config"), "decode-no-connector"),
        fault("a connector without a role", "decode-33", |w| w.flag("--kv-transfer-config", ROLELESS), "vllm-kv-role-missing"),
        fault("a connector that is no JSON", "decode-34", |w| w.flag("--kv-transfer-config", "{kv_connector: Nixl"), "kv-transfer-config-not-json"),
        fault("KV in host memory", "decode-35", |w| w.flag("--kv-transfer-config", ON_HOST), "vllm-kv-buffer-cpu"),
        fault("the other role", "decode-36", |w| w.flag("--disaggregation-mode", "prefill"), "role-contradicts-name"),
        fault("no role", "prefill-6", |w| w.without_flag("--disaggregation-mode"), "worker-settings-differ"),
        fault("ranks that do not divide", "decode-37", |w| w.flag("--tensor-parallel-size", "3"), "worker-settings-differ").pairs(&["vllm-tp-not-divisible"]),
        fault("another model", "decode-38", |w| w.flag("--model", "/models/elsewhere"), "worker-settings-differ").pairs(&["model-differs"]),
    ]
}
