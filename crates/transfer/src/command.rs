//! How the program is started in a worker: as the engine was, as far as transport goes.

use std::collections::BTreeMap;

use crate::program::BOOT;
use crate::record::BackendParameters;

/// Variables beside those of the catalogue that decide which libraries and settings a process gets.
pub(crate) const HANDED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NIXL_PLUGIN_DIR",
    "NIXL_PREFIX",
    "NIXL_CONFIG_FILE",
];

/// Prefixes of names whose variables take part in a transfer. Other allowed names (engine, NCCL) do not.
const TAKE_PART: &[&str] = &["UCX_", "NIXL_", "FI_", "IBV_", "MLX5_", "RDMAV_"];

/// Variables that would touch what belongs to the engine: its metrics port, its metadata store.
pub(crate) const LEFT_OUT: &[&str] = &[
    "NIXL_TELEMETRY_",
    "NIXL_ETCD_",
    "NIXL_TCPSTORE_",
    "NIXL_TRACE_",
    "UCX_STATS_",
    "UCX_VFS_",
    "UCX_PROFILE_",
];

/// What makes NIXL and UCX tell what they do. None of it changes which transport is taken.
pub(crate) const TOLD: &[(&str, &str)] = &[
    ("UCX_PROTO_INFO", "y"),
    // The version, the lanes, and warnings where the engine's level hides them.
    ("UCX_LOG_LEVEL", "info"),
    // Not through the buffers of stdout.
    ("UCX_LOG_FILE", "stderr"),
    ("NIXL_LOG_LEVEL", "INFO"),
    ("PYTHONUNBUFFERED", "1"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// What is known of the engine process in a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Engine {
    /// Its environment (`/proc/PID/environ`), or the part of it that may leave the pod.
    pub environment: BTreeMap<String, String>,
    /// Its interpreter (`/proc/PID/exe`).
    pub executable: Option<String>,
    /// Libraries that it maps (`/proc/PID/maps`).
    pub libraries: Vec<String>,
    /// Parameters that it gives to the UCX backend.
    pub backend: BackendParameters,
}

impl Engine {
    /// The Python file of NIXL's bindings that it maps.
    fn bindings(&self) -> Option<(&str, &str)> {
        self.libraries.iter().find_map(|path| {
            let (folder, file) = path.rsplit_once('/')?;
            let (site, package) = folder.rsplit_once('/')?;
            (package.starts_with("nixl") && file.starts_with("_bindings."))
                .then_some((site, package))
        })
    }

    /// The folder in which its package of NIXL is.
    pub(crate) fn site(&self) -> Option<&str> {
        self.bindings().map(|(site, _)| site)
    }

    /// The package of NIXL that it has loaded: `nixl_cu13`.
    pub(crate) fn nixl_package(&self) -> Option<String> {
        self.bindings().map(|(_, package)| package.to_owned())
    }

    /// Its interpreter, or what the worker's PATH has.
    fn interpreter(&self) -> &str {
        match self.executable.as_deref() {
            Some(path)
                if path
                    .rsplit('/')
                    .next()
                    .is_some_and(|name| name.starts_with("python") || name.starts_with("pypy"))
                    && !path.ends_with(" (deleted)") =>
            {
                path
            }
            _ => "python3",
        }
    }
}

/// What the program gets of the engine's environment: the settings of transports, and what decides which libraries are
/// loaded. Values of other variables are never handed on.
pub fn environment(live: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let mut kept: BTreeMap<String, String> = live
        .iter()
        .filter(|(name, _)| goes_along(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (name, value) in TOLD {
        kept.insert((*name).to_owned(), (*value).to_owned());
    }
    kept.into_iter().collect()
}

pub(crate) fn goes_along(name: &str) -> bool {
    let named = HANDED_ON.contains(&name);
    let takes_part = TAKE_PART.iter().any(|prefix| name.starts_with(prefix))
        // Also names that nobody knows: UCX tells misspelt ones.
        && (settings::catalogue::is_allowed(name) || name.starts_with("UCX_"));
    let left_out = LEFT_OUT.iter().any(|prefix| name.starts_with(prefix));
    (named || takes_part)
        && !left_out
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// A command line for one worker, without a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl Command {
    /// Starts the program as the engine was; it is ended from outside where it does not end by itself.
    pub fn new(engine: &Engine, seconds: u32) -> Self {
        Self::with(engine, seconds, &[])
    }

    /// The same with emulation switched off, for [`crate::Plan::control`]; UCX 1.21 or later knows the variable.
    pub fn control(engine: &Engine, seconds: u32) -> Self {
        Self::with(engine, seconds, &[("UCX_PROTO_EMULATION_ENABLE", "n")])
    }

    fn with(engine: &Engine, seconds: u32, more: &[(&str, &str)]) -> Self {
        let mut variables = environment(&engine.environment);
        for (name, value) in more {
            variables.retain(|(held, _)| held != name);
            variables.push(((*name).to_owned(), (*value).to_owned()));
        }
        // A virtual environment does not show in the path of the interpreter itself.
        if let Some((site, _)) = engine.bindings() {
            match variables.iter_mut().find(|(name, _)| name == "PYTHONPATH") {
                Some((_, value)) if value.split(':').any(|part| part == site) => {}
                Some((_, value)) if !value.is_empty() => *value = format!("{site}:{value}"),
                Some((_, value)) => site.clone_into(value),
                None => variables.push(("PYTHONPATH".to_owned(), site.to_owned())),
            }
        }
        let mut argv = vec!["env".to_owned(), "-i".to_owned()];
        argv.extend(
            variables
                .into_iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        argv.extend(
            [
                "timeout",
                "-k",
                "5",
                &seconds.saturating_add(10).to_string(),
                engine.interpreter(),
                "-u",
                "-c",
                BOOT,
            ]
            .map(str::to_owned),
        );
        Self { argv }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn names(live_names: &[(&str, &str)]) -> Vec<String> {
        environment(&live(live_names))
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    #[test]
    fn hands_on_transport_and_libraries_and_nothing_else() {
        let names = names(&[
            ("UCX_TLS", "rc,cuda_copy"),
            ("UCX_TSL", "rc"),
            ("LD_PRELOAD", "/x.so"),
            ("CUDA_VISIBLE_DEVICES", "3"),
            ("HF_TOKEN", "hunter2"),
            ("VLLM_API_KEY", "hunter2"),
            ("NIXL_TELEMETRY_PROMETHEUS_PORT", "9090"),
            ("NIXL_ETCD_ENDPOINTS", "http://user:pw@etcd"),
            ("NIXL_SECRET_THING", "hunter2"),
        ]);
        for name in [
            "UCX_TLS",
            "UCX_TSL",
            "LD_PRELOAD",
            "CUDA_VISIBLE_DEVICES",
            "UCX_PROTO_INFO",
        ] {
            assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
        }
        for name in [
            "HF_TOKEN",
            "VLLM_API_KEY",
            "NIXL_TELEMETRY_PROMETHEUS_PORT",
            "NIXL_ETCD_ENDPOINTS",
            "NIXL_SECRET_THING",
        ] {
            assert!(!names.iter().any(|n| n == name), "{name} in {names:?}");
        }
    }

    #[test]
    fn tells_more_than_the_engine_does() {
        let environment = environment(&live(&[
            ("UCX_LOG_LEVEL", "fatal"),
            ("UCX_LOG_FILE", "/tmp/ucx.log"),
            ("UCX_PROTO_INFO", "n"),
        ]));
        let of = |wanted: &str| {
            let values: Vec<&str> = environment
                .iter()
                .filter(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_str())
                .collect();
            values.join("+")
        };
        assert_eq!(of("UCX_LOG_LEVEL"), "info");
        assert_eq!(of("UCX_LOG_FILE"), "stderr");
        assert_eq!(of("UCX_PROTO_INFO"), "y");
    }

    #[test]
    fn uses_the_engine_s_interpreter_and_its_nixl() {
        let engine = Engine {
            environment: live(&[("PYTHONPATH", "/app")]),
            executable: Some("/usr/bin/python3.12".to_owned()),
            libraries: vec![
                "/usr/lib/libc.so.6".to_owned(),
                "/opt/venv/lib/python3.12/site-packages/nixl_cu13/_bindings.cpython-312-x86_64-linux-gnu.so".to_owned(),
            ],
            backend: BackendParameters::new(),
        };
        let argv = Command::new(&engine, 60).argv;
        assert!(
            argv.contains(&"PYTHONPATH=/opt/venv/lib/python3.12/site-packages:/app".to_owned())
        );
        let at = argv.iter().position(|a| a == "timeout").unwrap();
        assert_eq!(
            argv[at + 1..at + 6],
            ["-k", "5", "70", "/usr/bin/python3.12", "-u"]
        );
        assert_eq!(engine.nixl_package().as_deref(), Some("nixl_cu13"));
    }

    #[test]
    fn another_executable_is_no_interpreter() {
        for path in [
            "/usr/local/bin/trtllm-serve",
            "/usr/bin/python3.12 (deleted)",
        ] {
            let engine = Engine {
                executable: Some(path.to_owned()),
                ..Engine::default()
            };
            let argv = Command::new(&engine, 60).argv;
            assert!(argv.contains(&"python3".to_owned()), "{path}");
            assert!(!argv.iter().any(|a| a.starts_with("PYTHONPATH")));
        }
    }

    #[test]
    fn control_switches_emulation_off_whatever_the_engine_says() {
        let engine = Engine {
            environment: live(&[("UCX_PROTO_EMULATION_ENABLE", "y")]),
            ..Engine::default()
        };
        let argv = Command::control(&engine, 60).argv;
        let set: Vec<&String> = argv.iter().filter(|a| a.contains("EMULATION")).collect();
        assert_eq!(set, ["UCX_PROTO_EMULATION_ENABLE=n"]);
    }
}
