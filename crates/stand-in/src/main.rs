//! Serves a scenario from a directory, for a command or until it is interrupted.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stand_in::{Cluster, StandIn};

const USAGE: &str = "\
usage: stand-in DIR [--record FILE] [-- COMMAND [ARGUMENT]...]

DIR has a scenario.json. With a command: runs it with KUBECONFIG set and takes over its exit code. Without: prints the
path of the kubeconfig and serves until SIGINT or SIGTERM. FILE gets every request and every exec, one JSON object a line.
";

struct Arguments {
    directory: PathBuf,
    record: Option<PathBuf>,
    command: Vec<String>,
}

fn arguments() -> Option<Arguments> {
    let mut words = std::env::args().skip(1);
    let mut directory = None;
    let mut record = None;
    let mut command = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--record" => record = Some(PathBuf::from(words.next()?)),
            "--" => command = words.by_ref().collect(),
            flag if flag.starts_with('-') => return None,
            _ if directory.is_some() => return None,
            path => directory = Some(PathBuf::from(path)),
        }
    }
    Some(Arguments {
        directory: directory?,
        record,
        command,
    })
}

fn main() -> ExitCode {
    let Some(arguments) = arguments() else {
        let _ = io::stderr().write_all(USAGE.as_bytes());
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "stand-in: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> io::Result<u8> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let api = Cluster::from_directory(&arguments.directory)?.start()?;
    let code = match arguments.command.split_first() {
        Some((program, rest)) => {
            let status = Command::new(program)
                .args(rest)
                .env("KUBECONFIG", api.kubeconfig())
                .env("KUBECACHEDIR", api.directory().join("cache"))
                .status()?;
            status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(1)
        }
        None => {
            writeln!(io::stdout(), "{}", api.kubeconfig().display())?;
            io::stdout().flush()?;
            signals.forever().next();
            0
        }
    };
    if let Some(path) = &arguments.record {
        write_record(&api, path)?;
    }
    Ok(code)
}

fn write_record(api: &StandIn, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for request in api.requests() {
        let line = json!({
            "kind": "request",
            "at_ms": u64::try_from(request.at.as_millis()).unwrap_or(u64::MAX),
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "user": request.user,
            "impersonated": request.impersonated,
            "agent": request.agent,
            "status": request.status,
        });
        writeln!(file, "{line}")?;
    }
    for exec in api.execs() {
        let line = json!({
            "kind": "exec",
            "namespace": exec.namespace,
            "pod": exec.pod,
            "container": exec.container,
            "argv": exec.argv,
            "user": exec.user,
            "protocol": exec.protocol,
            "started_ms": u64::try_from(exec.started.as_millis()).unwrap_or(u64::MAX),
            "ended_ms": exec.ended.map(|at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX)),
            "exit": exec.exit.map(|(code, _)| code),
            "stdin_bytes": exec.stdin.len(),
            "stdout_bytes": exec.stdout.len(),
            "stderr": exec.stderr.text(),
            "status": exec.status,
            "lost": exec.lost,
            "concurrent": exec.concurrent,
        });
        writeln!(file, "{line}")?;
    }
    file.flush()
}
