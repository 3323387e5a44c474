//! How a worker moves KV cache: the connector and the library under it, from engine flags and configuration.
//!
//! Facts: vLLM picks its NIXL backend from `kv_connector_extra_config.backends`, default UCX. SGLang's
//! `--disaggregation-transfer-backend` defaults to mooncake and counts only with a `--disaggregation-mode`; its NIXL backend is
//! `SGLANG_DISAGGREGATION_NIXL_BACKEND`, default UCX. TensorRT-LLM moves nothing unless
//! `cache_transceiver_config.backend` is set; DEFAULT means NIXL unless a `TRTLLM_USE_*_KVCACHE` says
//! otherwise, and its NIXL backend is `TRTLLM_NIXL_KVCACHE_BACKEND`, default UCX. Dynamo images before 1.0
//! default to NIXL without a flag. LMCache's transfer channel is NIXL (LMCACHE_TRANSFER_CHANNEL, before 0.3.8
//! LMCACHE_ENABLE_NIXL), whose backends LMCACHE_NIXL_BACKENDS names, default UCX. (ai-dynamo/dynamo: components/src/dynamo/vllm/args.py,
//! docs/.../efa-on-aws.mdx, docs/.../kv-cache-transfer.md)

use model::{Engine, Hidden, Place, Setting, Value, Worker};
use settings::connectors::{self, Carries};

/// What moves KV cache between workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Connector {
    /// NIXL.
    Nixl,
    /// Mooncake's transfer engine.
    Mooncake,
    /// Something else that is named.
    Other(String),
    /// Nothing: the command is visible and configures none.
    Nothing,
    /// It cannot be seen; why.
    Unknown(String),
}

/// The library under the connector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backend {
    Ucx,
    Libfabric,
    /// Mooncake moves data itself.
    Mooncake,
    Other(String),
}

/// How a worker moves KV cache.
#[derive(Debug, Clone)]
pub(crate) struct KvPath {
    pub(crate) connector: Connector,
    pub(crate) backend: Option<Backend>,
    /// Whether the backend is named, as against a default.
    pub(crate) backend_is_named: bool,
    /// The line that says it.
    pub(crate) place: Option<Place>,
}

impl KvPath {
    /// `NIXL/UCX`.
    pub(crate) fn summary(&self) -> Option<String> {
        let connector = match &self.connector {
            Connector::Nixl => "NIXL",
            Connector::Mooncake => return Some("Mooncake".to_owned()),
            Connector::Other(name) => return Some(name.clone()),
            Connector::Nothing => return Some("no KV connector".to_owned()),
            Connector::Unknown(_) => return None,
        };
        Some(match &self.backend {
            Some(Backend::Ucx) if self.backend_is_named => format!("{connector}/UCX"),
            Some(Backend::Ucx) => format!("{connector}/UCX (default)"),
            Some(Backend::Libfabric) => format!("{connector}/LIBFABRIC"),
            Some(Backend::Mooncake) => format!("{connector}/Mooncake"),
            Some(Backend::Other(name)) => format!("{connector}/{name}"),
            None => connector.to_owned(),
        })
    }

    /// Whether UCX carries the KV cache, as far as is known; what is unknown counts as the default, UCX.
    pub(crate) fn may_use_ucx(&self) -> bool {
        matches!(
            (&self.connector, &self.backend),
            (
                Connector::Nixl | Connector::Unknown(_),
                None | Some(Backend::Ucx)
            ) | (Connector::Other(_), Some(Backend::Ucx))
        )
    }

    /// Whether KV cache goes from prefill to decode this way, for all that is known.
    pub(crate) fn moves_kv(&self, engine: Engine) -> bool {
        match &self.connector {
            Connector::Nixl | Connector::Mooncake => true,
            Connector::Other(name) => match engine {
                Engine::Sglang | Engine::Trtllm => true,
                _ => connectors::moves_kv(name),
            },
            Connector::Nothing | Connector::Unknown(_) => false,
        }
    }

    /// Why it is open what carries KV under a connector that is known.
    pub(crate) fn open(&self) -> Option<&'static str> {
        match (&self.connector, &self.backend) {
            (Connector::Other(name), None) if name.starts_with(LMCACHE) => Some(
                "LMCache moves KV over NIXL, and so over UCX, where its own configuration says so, and that is not in the input",
            ),
            _ => None,
        }
    }

    pub(crate) fn uses_libfabric(&self) -> bool {
        self.backend == Some(Backend::Libfabric)
    }
}

/// The NIXL backend that a variable names.
fn backend_of(name: &str) -> Backend {
    match name.trim().to_ascii_uppercase().as_str() {
        "UCX" => Backend::Ucx,
        "LIBFABRIC" => Backend::Libfabric,
        "MOONCAKE" => Backend::Mooncake,
        _ => Backend::Other(name.trim().to_owned()),
    }
}

/// How this worker moves KV cache.
pub(crate) fn of(worker: &Worker) -> KvPath {
    match worker.engine {
        Engine::Sglang => sglang(worker),
        Engine::Trtllm => trtllm(worker),
        Engine::Mocker => KvPath {
            connector: Connector::Other("mock engine".into()),
            backend: None,
            backend_is_named: false,
            place: None,
        },
        Engine::Vllm | Engine::TokenSpeed | Engine::Unknown => vllm(worker),
    }
}

fn unknown(why: impl Into<String>) -> KvPath {
    KvPath {
        connector: Connector::Unknown(why.into()),
        backend: None,
        backend_is_named: false,
        place: None,
    }
}

fn vllm(worker: &Worker) -> KvPath {
    let connectors: Vec<_> = worker
        .settings
        .iter()
        .filter(|s| s.name == "kv_connector")
        .collect();
    for setting in &connectors {
        let Some(name) = setting.value.literal() else {
            continue;
        };
        let connector = match connectors::lookup(name).map(|c| c.carries) {
            Some(Carries::Nixl) => Connector::Nixl,
            Some(Carries::Mooncake) => {
                return KvPath {
                    connector: Connector::Mooncake,
                    backend: Some(Backend::Mooncake),
                    backend_is_named: true,
                    place: Some(setting.place.clone()),
                };
            }
            _ => continue,
        };
        let named = worker
            .literal("kv_connector_extra_config.backends")
            .and_then(|b| b.split(',').next())
            .filter(|b| !b.is_empty());
        return KvPath {
            connector,
            backend: Some(named.map_or(Backend::Ucx, backend_of)),
            backend_is_named: named.is_some(),
            place: Some(setting.place.clone()),
        };
    }
    if let Some(setting) = connectors
        .iter()
        .find(|s| s.value.literal().is_some_and(|n| n.starts_with(LMCACHE)))
    {
        return lmcache(worker, setting);
    }
    if let Some(setting) = connectors.first() {
        let name = setting.value.literal().unwrap_or_default().to_owned();
        return KvPath {
            connector: Connector::Other(name),
            backend: None,
            backend_is_named: false,
            place: Some(setting.place.clone()),
        };
    }
    if let Some(setting) = worker.setting("--kv-transfer-config")
        && let Value::Dynamic(why) = &setting.value
    {
        return KvPath {
            place: Some(setting.place.clone()),
            ..unknown(format!("--kv-transfer-config is {why}"))
        };
    }
    match worker.literal("--connector") {
        Some(list) if list.contains("nixl") => {
            return KvPath {
                connector: Connector::Nixl,
                backend: Some(Backend::Ucx),
                backend_is_named: false,
                place: worker.setting("--connector").map(|s| s.place.clone()),
            };
        }
        _ => {}
    }
    if worker.engine == Engine::Unknown {
        return unknown("no known engine is started in the input");
    }
    if let Some(why) = hidden_flags(worker) {
        return unknown(why);
    }
    if is_dynamo_before_1_0(worker) {
        return KvPath {
            connector: Connector::Nixl,
            backend: Some(Backend::Ucx),
            backend_is_named: false,
            place: worker.image.as_ref().map(|i| i.place.clone()),
        };
    }
    KvPath {
        connector: Connector::Nothing,
        backend: None,
        backend_is_named: false,
        place: None,
    }
}

/// How LMCache's connectors are called: LMCacheConnector, LMCacheConnectorV1, LMCacheMPConnector …
const LMCACHE: &str = "LMCache";

/// LMCache moves KV cache over NIXL where its own configuration says so. That configuration is in variables, or in a
/// file that may not be in the input.
fn lmcache(worker: &Worker, connector: &Setting) -> KvPath {
    let text = |name: &str| worker.literal(name).map(str::trim);
    let on = |name: &str| {
        text(name).is_some_and(|v| {
            ["true", "1", "yes"]
                .iter()
                .any(|t| v.eq_ignore_ascii_case(t))
        })
    };
    let channel = text("LMCACHE_TRANSFER_CHANNEL").filter(|c| !c.is_empty());
    let nixl = match channel {
        Some(channel) => channel.eq_ignore_ascii_case("nixl"),
        None => on("LMCACHE_ENABLE_NIXL") || on("LMCACHE_ENABLE_PD"),
    };
    let named = text("LMCACHE_NIXL_BACKENDS")
        .map(|b| b.trim_matches(['[', ']']))
        .and_then(|b| b.split(',').next())
        .map(|b| b.trim_matches([' ', '"', '\'']))
        .filter(|b| !b.is_empty());
    let (name, backend) = if nixl {
        (
            format!("{LMCACHE}/NIXL"),
            Some(named.map_or(Backend::Ucx, backend_of)),
        )
    } else if let Some(channel) = channel {
        (
            format!("{LMCACHE}/{channel}"),
            Some(Backend::Other(channel.to_owned())),
        )
    } else {
        // A file that says nothing of a transfer channel makes LMCache keep KV cache, not move it.
        let backend = worker
            .setting("lmcache.file")
            .map(|_| Backend::Other("no transfer channel".into()));
        let name = connector.value.literal().unwrap_or(LMCACHE).to_owned();
        (name, backend)
    };
    KvPath {
        connector: Connector::Other(name),
        backend,
        backend_is_named: nixl && named.is_some(),
        place: Some(connector.place.clone()),
    }
}

/// Dynamo's vLLM images before 1.0 use NIXL without being told.
fn is_dynamo_before_1_0(worker: &Worker) -> bool {
    let Some(image) = &worker.image else {
        return false;
    };
    if !image.value.contains("vllm-runtime") {
        return false;
    }
    let tag = image.value.rsplit(':').next().unwrap_or_default();
    let mut parts = tag.trim_start_matches('v').split(['.', '-']);
    let major = parts.next().and_then(|p| p.parse::<u32>().ok());
    let minor = parts.next().and_then(|p| p.parse::<u32>().ok());
    matches!((major, minor), (Some(0), Some(_)))
}

/// SGLang serves whole requests, and hands nothing over, unless it is told a mode.
fn is_told_no_mode(worker: &Worker) -> bool {
    worker.setting("--disaggregation-mode").is_none() && hidden_flags(worker).is_none()
}

fn sglang(worker: &Worker) -> KvPath {
    if is_told_no_mode(worker) {
        return KvPath {
            connector: Connector::Nothing,
            backend: None,
            backend_is_named: false,
            place: None,
        };
    }
    let setting = worker.setting("--disaggregation-transfer-backend");
    let name = match setting.map(|s| &s.value) {
        Some(Value::Literal(name)) => name.clone(),
        Some(Value::Dynamic(why)) => {
            return unknown(format!("--disaggregation-transfer-backend is {why}"));
        }
        // The NIXL backend is named for a reason.
        None if worker
            .setting("SGLANG_DISAGGREGATION_NIXL_BACKEND")
            .is_some()
            && hidden_flags(worker).is_some() =>
        {
            "nixl".to_owned()
        }
        None => match hidden_flags(worker) {
            Some(why) => return unknown(why),
            None => "mooncake".to_owned(),
        },
    };
    let place = setting.map(|s| s.place.clone());
    match name.as_str() {
        "nixl" => {
            let named = worker.literal("SGLANG_DISAGGREGATION_NIXL_BACKEND");
            KvPath {
                connector: Connector::Nixl,
                backend: Some(named.map_or(Backend::Ucx, backend_of)),
                backend_is_named: named.is_some(),
                place,
            }
        }
        "mooncake" => KvPath {
            connector: Connector::Mooncake,
            backend: Some(Backend::Mooncake),
            backend_is_named: setting.is_some(),
            place,
        },
        other => KvPath {
            connector: Connector::Other(other.to_owned()),
            backend: None,
            backend_is_named: true,
            place,
        },
    }
}

fn trtllm(worker: &Worker) -> KvPath {
    let setting = worker.setting("cache_transceiver_config.backend");
    let place = setting.map(|s| s.place.clone());
    let name = match setting.map(|s| &s.value) {
        Some(Value::Literal(name)) => name.to_ascii_uppercase(),
        Some(Value::Dynamic(why)) => {
            return unknown(format!("cache_transceiver_config.backend is {why}"));
        }
        // The backend of a transceiver that cannot be seen is named for a reason.
        None if worker.setting("TRTLLM_NIXL_KVCACHE_BACKEND").is_some()
            && hidden_flags(worker).is_some() =>
        {
            "NIXL".to_owned()
        }
        None => {
            if let Some(why) = hidden_flags(worker) {
                return unknown(why);
            }
            let file = [
                "--extra-engine-args",
                "--extra-llm-api-options",
                "--override-engine-args",
            ]
            .iter()
            .any(|f| worker.setting(f).is_some());
            if file {
                return KvPath {
                    connector: Connector::Nothing,
                    backend: None,
                    backend_is_named: false,
                    place: None,
                };
            }
            return unknown("no engine configuration is named in the start command");
        }
    };
    let switch = |name: &str| worker.literal(name).is_some_and(|v| v == "1");
    let name = match name.as_str() {
        "DEFAULT" if switch("TRTLLM_USE_NIXL_KVCACHE") => "NIXL".to_owned(),
        "DEFAULT" if switch("TRTLLM_USE_UCX_KVCACHE") => "UCX".to_owned(),
        "DEFAULT" if switch("TRTLLM_USE_MOONCAKE_KVCACHE") => "MOONCAKE".to_owned(),
        "DEFAULT" if switch("TRTLLM_USE_MPI_KVCACHE") => "MPI".to_owned(),
        "DEFAULT" => "NIXL".to_owned(),
        _ => name,
    };
    match name.as_str() {
        "NIXL" => {
            let named = worker.literal("TRTLLM_NIXL_KVCACHE_BACKEND");
            KvPath {
                connector: Connector::Nixl,
                backend: Some(named.map_or(Backend::Ucx, backend_of)),
                backend_is_named: named.is_some(),
                place,
            }
        }
        "UCX" => KvPath {
            connector: Connector::Other("TensorRT-LLM/UCX".into()),
            backend: Some(Backend::Ucx),
            backend_is_named: true,
            place,
        },
        "MOONCAKE" => KvPath {
            connector: Connector::Mooncake,
            backend: Some(Backend::Mooncake),
            backend_is_named: true,
            place,
        },
        "NULL" | "" => KvPath {
            connector: Connector::Nothing,
            backend: None,
            backend_is_named: false,
            place,
        },
        other => KvPath {
            connector: Connector::Other(format!("TensorRT-LLM/{other}")),
            backend: None,
            backend_is_named: true,
            place,
        },
    }
}

/// Why flags that are not there may still be in force.
fn hidden_flags(worker: &Worker) -> Option<String> {
    if let Some(why) = worker
        .hidden(Hidden::Command)
        .or_else(|| worker.hidden(Hidden::EngineConfig))
    {
        return Some(why.to_owned());
    }
    (!worker.has_command).then(|| "the start command is not in the input".to_owned())
}

/// Whether the connector keeps KV cache (in memory, on disk, in a store) and, for all that is visible, moves none from
/// prefill to decode.
pub(crate) fn keeps_kv(worker: &Worker) -> bool {
    let vllm = matches!(
        worker.engine,
        Engine::Vllm | Engine::TokenSpeed | Engine::Unknown
    );
    vllm && match of(worker).connector {
        Connector::Other(name) => connectors::lookup(&name)
            .is_some_and(|c| matches!(c.carries, Carries::Store | Carries::Wrapped)),
        _ => false,
    }
}
