//! How the program is started in a container: the shell there reads the engine's environment from `/proc`, so that no
//! value of it travels.

use crate::command::{Engine, HANDED_ON, LEFT_OUT, TOLD, goes_along};
use crate::program::BOOT;

const PYTHON: &str = concat!(
    include_str!("launch/settings.sh"),
    include_str!("launch/python.sh")
);
const BENCH: &str = concat!(
    include_str!("launch/settings.sh"),
    include_str!("launch/bench.sh")
);

/// The script of the shell, without what is for readers of its source.
fn script(template: &str) -> String {
    let left_out: Vec<String> = LEFT_OUT.iter().map(|prefix| format!("{prefix}*")).collect();
    let mut handed_on: Vec<&str> = HANDED_ON.to_vec();
    // UCX tells misspelt names of its own, so all of them go along.
    handed_on.push("UCX_*");
    let names: Vec<&str> = settings::catalogue::allowed_names()
        .filter(|name| !name.starts_with("UCX_") && !handed_on.contains(name) && goes_along(name))
        .collect();
    handed_on.extend(names);
    let mut out = String::new();
    for line in template.lines() {
        let code = line.trim_start();
        if code.starts_with('#') {
            continue;
        }
        out.push_str(
            &code
                .replace("@LEFT_OUT@", &left_out.join("|"))
                .replace("@HANDED_ON@", &handed_on.join("|")),
        );
        out.push('\n');
    }
    out
}

/// The command line that starts the program in a container, for an exec there. `process` is the engine's, whose
/// environment and interpreter it gets; without one it has those of the exec.
pub fn launch(engine: &Engine, process: Option<u32>, seconds: u32, control: bool) -> Vec<String> {
    let mut argv = start(engine, process, seconds, TOLD);
    if control {
        argv.push("UCX_PROTO_EMULATION_ENABLE=n".to_owned());
    }
    argv
}

/// The same for any program; `told` holds whatever the engine has.
pub(crate) fn start(
    engine: &Engine,
    process: Option<u32>,
    seconds: u32,
    told: &[(&str, &str)],
) -> Vec<String> {
    let limit = seconds.saturating_add(10);
    argv(script(PYTHON), process, limit, engine.site(), BOOT, told)
}

/// The same for another program, by its command line.
pub(crate) fn start_program(process: Option<u32>, seconds: u32, words: &[String]) -> Vec<String> {
    argv(
        script(BENCH),
        process,
        seconds,
        None,
        &words.join("\n"),
        TOLD,
    )
}

fn argv(
    script: String,
    process: Option<u32>,
    limit: u32,
    site: Option<&str>,
    started: &str,
    told: &[(&str, &str)],
) -> Vec<String> {
    let mut argv: Vec<String> = ["sh", "-c"].map(str::to_owned).into();
    argv.extend([
        script,
        "check-interconnect".to_owned(),
        process.map(|pid| pid.to_string()).unwrap_or_default(),
        limit.to_string(),
        site.unwrap_or_default().to_owned(),
        started.to_owned(),
    ]);
    argv.extend(told.iter().map(|(name, value)| format!("{name}={value}")));
    argv
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// What the script would start, with `env` in the place of Python.
    fn started(own: &[(&str, &str)], engine: &Engine, control: bool) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!(
            "launch-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&folder).unwrap();
        let python = folder.join("python3");
        std::fs::write(&python, "#!/bin/sh\nexec env\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&python, mode).unwrap();
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let argv = launch(engine, None, 5, control);
        let output = Command::new(&argv[0])
            .args(&argv[1..])
            .env_clear()
            .env("PATH", &path)
            .envs(own.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn settings_of_transports_go_along_and_nothing_else() {
        let got = started(
            &[
                ("UCX_TLS", "rc, cuda_copy"),
                ("UCX_TSL", "rc"),
                ("UCX_LOG_LEVEL", "fatal"),
                ("UCX_STATS_DEST", "udp:collector"),
                ("HF_TOKEN", "hunter2"),
                ("VLLM_API_KEY", "hunter2"),
                ("NIXL_ETCD_ENDPOINTS", "http://u:hunter2@etcd"),
                ("LINES", "a\nUCX_TLS=tcp"),
            ],
            &Engine::default(),
            false,
        );
        for line in [
            "UCX_TLS=rc, cuda_copy",
            "UCX_TSL=rc",
            "UCX_LOG_LEVEL=info",
            "UCX_PROTO_INFO=y",
        ] {
            assert!(got.iter().any(|l| l == line), "{line} in {got:?}");
        }
        for part in ["hunter2", "UCX_STATS", "UCX_TLS=tcp", "fatal", "EMULATION"] {
            assert!(!got.iter().any(|l| l.contains(part)), "{part} in {got:?}");
        }
    }

    #[test]
    fn the_package_of_the_engine_comes_first() {
        let engine = Engine {
            libraries: vec!["/site/nixl_cu13/_bindings.cpython-312.so".to_owned()],
            ..Engine::default()
        };
        let got = started(&[("PYTHONPATH", "/app")], &engine, true);
        assert!(got.contains(&"PYTHONPATH=/site:/app".to_owned()), "{got:?}");
        assert!(got.contains(&"UCX_PROTO_EMULATION_ENABLE=n".to_owned()));
        let got = started(&[], &engine, false);
        assert!(got.contains(&"PYTHONPATH=/site".to_owned()), "{got:?}");
    }
}
