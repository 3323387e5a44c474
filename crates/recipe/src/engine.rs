//! Engines: which program starts one, and which of its flags decide the KV path.

use model::{Engine, Role};

/// Flags whose values decide, or help to judge, how KV cache moves. Their values are never secret.
/// Names with `-`; the engines take `_` as well.
pub const FLAGS: [&str; 40] = [
    "--disaggregation-mode",
    "--disaggregation-strategy",
    "--is-prefill-worker",
    "--is-decode-worker",
    "--kv-transfer-config",
    "--connector",
    "--disaggregation-transfer-backend",
    "--disaggregation-ib-device",
    "--disaggregation-bootstrap-port",
    "--mooncake-ib-device",
    "--extra-engine-args",
    "--extra-llm-api-options",
    "--override-engine-args",
    "--config",
    "--config-file",
    "--engine-config",
    "--tensor-parallel-size",
    "--tp-size",
    "--tp",
    "-tp",
    "--pipeline-parallel-size",
    "--data-parallel-size",
    "--dp-size",
    "--ep-size",
    "--block-size",
    "--page-size",
    "--kv-cache-dtype",
    "--kv-block-size",
    "--enable-sleep-mode",
    "--enable-cumem-allocator",
    "--enable-nccl-nvls",
    "--nnodes",
    "--dist-init-addr",
    "--host",
    "--kv-connector",
    "--server-role",
    "--enable-disagg",
    "--mem-pool",
    model::MODEL,
    "--model-path",
];

/// Those of [`FLAGS`] that are switches: the word behind one is not its value. `--no-…` turns one off again.
pub const SWITCHES: [&str; 6] = [
    "--is-prefill-worker",
    "--is-decode-worker",
    "--enable-sleep-mode",
    "--enable-cumem-allocator",
    "--enable-nccl-nvls",
    "--enable-disagg",
];

/// Whether a flag of [`FLAGS`] takes no value.
pub(crate) fn is_switch(flag: &str) -> bool {
    SWITCHES.contains(&flag)
}

/// The switch that `--no-…` turns off.
pub(crate) fn switched_off(word: &str) -> Option<&'static str> {
    let name = word.strip_prefix("--no-").or(word.strip_prefix("--no_"))?;
    SWITCHES
        .into_iter()
        .find(|known| known.strip_prefix("--").is_some_and(|k| same(k, name)))
}

/// Whether a text turns a switch off.
pub(crate) fn is_off(value: &str) -> bool {
    matches!(
        value.trim().to_ascii_lowercase().as_str(),
        "false" | "0" | "no" | "off"
    )
}

/// Whether a text turns a switch on.
pub(crate) fn is_on(value: &str) -> bool {
    matches!(
        value.trim().to_ascii_lowercase().as_str(),
        "true" | "1" | "yes" | "on"
    )
}

/// A known name and one as written, `_` for `-` included.
fn same(known: &str, name: &str) -> bool {
    known.len() == name.len()
        && known
            .bytes()
            .zip(name.bytes())
            .all(|(k, n)| k == n || (k == b'-' && n == b'_'))
}

/// The entry of [`FLAGS`] for a flag as written, and for `--x=y` the value.
pub(crate) fn known_flag(word: &str) -> Option<(&'static str, Option<&str>)> {
    if !word.starts_with('-') {
        return None;
    }
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    FLAGS
        .iter()
        .find(|known| same(known, name))
        .map(|known| (*known, value))
}

/// What a program or Python module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// An inference engine.
    Engine(Engine),
    /// Routes or plans; holds no KV cache.
    Frontend,
    /// A benchmark, a download, a test: nothing to do with serving.
    Tool,
}

/// Recognizes a program by the word that starts it, and the word after it.
pub(crate) fn program(word: &str, next: Option<&str>) -> Option<Program> {
    let base = word.rsplit('/').next().unwrap_or(word);
    let engine = |e| Some(Program::Engine(e));
    match base {
        "dynamo.vllm"
        | "vllm.entrypoints.openai.api_server"
        | "vllm.entrypoints.api_server"
        | "vllm.entrypoints.cli.main"
        | "vllm_omni" => engine(Engine::Vllm),
        "vllm" if matches!(next, Some("serve")) => engine(Engine::Vllm),
        "dynamo.sglang" | "sglang.launch_server" | "dynamo.sglang_prefill" => {
            engine(Engine::Sglang)
        }
        "sglang" if matches!(next, Some("serve")) => engine(Engine::Sglang),
        "dynamo.trtllm" | "trtllm-serve" | "tensorrt_llm.commands.serve" => match next {
            // The disaggregated front of trtllm-serve is a router.
            Some("disaggregated") => Some(Program::Frontend),
            _ => engine(Engine::Trtllm),
        },
        "dynamo.tokenspeed" | "tokenspeed" => engine(Engine::TokenSpeed),
        "dynamo.mocker" => engine(Engine::Mocker),
        "sglang_router.launch_router"
        | "sglang.srt.disaggregation.mini_lb"
        | "sglang.srt.disaggregation.launch_lb"
        | "sglang_router"
        | "sgl-router"
        | "smg"
        | "mooncake_master"
        | "mooncake.mooncake_store_service"
        | "mooncake_store_service" => Some(Program::Frontend),
        "nixlbench"
        | "nixlbench_etcd"
        | "aiperf"
        | "genai-perf"
        | "hf"
        | "huggingface-cli"
        | "evalscope"
        | "lm_eval"
        | "sglang.bench_serving"
        | "guidellm"
        | "all_reduce_perf"
        | "all_gather_perf"
        | "alltoall_perf"
        | "nvbandwidth"
        | "ib_write_bw"
        | "ib_read_bw" => Some(Program::Tool),
        _ => base
            .strip_prefix("dynamo.")
            .filter(|rest| {
                !rest.is_empty()
                    && rest
                        .bytes()
                        .all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.')
            })
            .map(|_| Program::Frontend),
    }
}

/// The engine that an image's name tells.
pub(crate) fn engine_of_image(image: &str) -> Option<Engine> {
    let name = image.to_ascii_lowercase();
    if name.contains("sglang") {
        Some(Engine::Sglang)
    } else if name.contains("tensorrtllm")
        || name.contains("trtllm")
        || name.contains("tensorrt-llm")
        || name.contains("tensorrt_llm")
    {
        Some(Engine::Trtllm)
    } else if name.contains("tokenspeed") {
        Some(Engine::TokenSpeed)
    } else if name.contains("vllm") || is_llm_d(&name) {
        Some(Engine::Vllm)
    } else {
        None
    }
}

/// llm-d's images of vLLM, one for each accelerator; its routers and simulators are called otherwise.
fn is_llm_d(image: &str) -> bool {
    let name = image.split(['@']).next().unwrap_or(image);
    let base = name.rsplit('/').next().unwrap_or(name);
    let base = base.split(':').next().unwrap_or(base);
    matches!(
        base.strip_prefix("llm-d"),
        Some(
            "" | "-aws"
                | "-cpu"
                | "-cuda"
                | "-cuda-dev"
                | "-dev"
                | "-gke"
                | "-hpu"
                | "-rocm"
                | "-xpu"
        )
    ) || ["llm-d-cuda", "llm-d-aws", "llm-d-xpu"]
        .iter()
        .any(|n| base.starts_with(n))
}

/// `backendFramework`.
pub(crate) fn engine_of_framework(text: &str) -> Option<Engine> {
    match text {
        "vllm" => Some(Engine::Vllm),
        "sglang" => Some(Engine::Sglang),
        "trtllm" => Some(Engine::Trtllm),
        _ => None,
    }
}

/// The role that a value of a mode flag or field names.
pub(crate) fn role_of_mode(mode: &str) -> Option<Role> {
    // TensorRT-LLM writes its roles in upper case, and calls them context and generation.
    match mode.trim().to_ascii_lowercase().as_str() {
        "prefill" | "prefill_first" | "context" => Some(Role::Prefill),
        "decode" | "generation" => Some(Role::Decode),
        "agg" | "pd" | "null" | "prefill_and_decode" | "aggregated" | "none" => {
            Some(Role::Aggregated)
        }
        "encode" => Some(Role::Encode),
        _ => None,
    }
}

/// The role that a name suggests: a word of it, split at anything but letters and at changes of case.
pub(crate) fn role_of_name(name: &str) -> Option<Role> {
    role_by(name, &|word| match word {
        "prefill" | "prefiller" | "prefills" | "prefillworker" => Some(Role::Prefill),
        "decode" | "decoder" | "decodes" | "dec" | "decodeworker" => Some(Role::Decode),
        "encode" | "encoder" => Some(Role::Encode),
        _ => None,
    })
}

/// The role that a name suggests by words that have other meanings too: TensorRT-LLM's context and generation, producer
/// and consumer. They count beside a connector that moves KV cache.
pub(crate) fn role_of_other_words(name: &str) -> Option<Role> {
    role_by(name, &|word| role_of_other_word(word))
}

/// The same for one word in lower case.
pub(crate) fn role_of_other_word(word: &str) -> Option<Role> {
    match word {
        "ctx" | "context" | "producer" => Some(Role::Prefill),
        "gen" | "generation" | "consumer" => Some(Role::Decode),
        _ => None,
    }
}

fn role_by(name: &str, role_of_word: &dyn Fn(&str) -> Option<Role>) -> Option<Role> {
    let mut found = None;
    for word in name_words(name) {
        // `decode-heavy-bench` is a load, not a role.
        if matches!(
            word.as_str(),
            "heavy" | "bound" | "intensive" | "bench" | "benchmark" | "benchmarks" | "loadgen"
        ) {
            return None;
        }
        let Some(role) = role_of_word(&word) else {
            continue;
        };
        match found {
            None => found = Some(role),
            // A name with both, such as `prefill-decode-router`, names neither.
            Some(other) if other != role => return None,
            Some(_) => {}
        }
    }
    found
}

fn name_words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower_before = false;
    for c in name.chars() {
        if !c.is_ascii_alphabetic() || (c.is_ascii_uppercase() && lower_before) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_ascii_alphabetic() {
            word.push(c.to_ascii_lowercase());
        }
        lower_before = c.is_ascii_lowercase();
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_roles_by_words() {
        assert_eq!(role_of_name("VllmPrefillWorker"), Some(Role::Prefill));
        assert_eq!(role_of_name("dec"), Some(Role::Decode));
        assert_eq!(role_of_name("my-decode-0"), Some(Role::Decode));
        assert_eq!(role_of_name("decimal"), None);
        assert_eq!(role_of_name("prefill-decode-router"), None);
        assert_eq!(role_of_name("prefill-benchmark"), None);
        assert_eq!(role_of_name("llama-decode-heavy"), None);
    }

    #[test]
    fn flags_take_underscores_and_values() {
        assert_eq!(
            known_flag("--kv_transfer_config"),
            Some(("--kv-transfer-config", None))
        );
        assert_eq!(
            known_flag("--disaggregation-mode=decode"),
            Some(("--disaggregation-mode", Some("decode")))
        );
        assert_eq!(known_flag("--api-key"), None);
    }

    #[test]
    fn programs() {
        assert_eq!(program("dynamo.frontend", None), Some(Program::Frontend));
        assert_eq!(
            program("/opt/venv/bin/vllm", Some("serve")),
            Some(Program::Engine(Engine::Vllm))
        );
        assert_eq!(program("vllm", Some("bench")), None);
    }
}
