//! `nixl --dry-run`: what would run where, word for word.

use std::fmt::Write as _;
use std::process::ExitCode;

use cluster::Limits;
use model::Exit;
use transfer::readiness::Ready;

use crate::args::NixlArgs;
use crate::{beside, pods};

/// Stands for what only the first look tells.
const PROCESS: &str = "PROCESS";

pub(crate) fn print(args: &NixlArgs, in_pods: bool) -> Result<ExitCode, String> {
    let mut out = String::new();
    if !in_pods {
        let _ = writeln!(
            out,
            "on this host:\n  1. sh -c SCRIPT probe limit=25 tool_limit=10 sockets=yes    # reads /sys, /proc and what tools print",
        );
        agent(&mut out, args, 2);
        return crate::print(&out);
    }
    let (chosen, around) = pods::chosen(&args.pods)?;
    for fault in &around.faults {
        let _ = writeln!(out, "not looked at: {}", fault.detail);
    }
    for (pod, why) in &around.passed_over {
        let _ = writeln!(out, "passed over: {pod}: {why}");
    }
    let limits = Limits {
        timeout: args.pods.timeout,
        sockets: true,
        ..Limits::default()
    };
    for pod in &chosen {
        let object = &pod.object;
        let _ = writeln!(
            out,
            "pod {} in {} ({}):",
            object.name, object.namespace, pod.taken
        );
        if let Err(fault) = &pod.probed {
            let _ = writeln!(out, "  nothing: {}", fault.detail);
            continue;
        }
        let _ = writeln!(
            out,
            "  1. exec in container {} ({}): {}    # the collecting script on its standard input",
            pod.container,
            pod.chosen,
            cluster::command(&limits).join(" ")
        );
        let _ = writeln!(
            out,
            "  2. GET /api/v1/namespaces/{}/pods/{}/log?container={}&limitBytes=4194304, and where it is longer &tailLines=N",
            object.namespace, object.name, pod.container
        );
        match beside::may_try(pod, args.transfer.force) {
            Ok(()) => agent(&mut out, args, 3),
            Err(_) => {
                let _ = writeln!(
                    out,
                    "  3. nothing: it does not look like a KV worker; --force makes an agent all the same"
                );
            }
        }
    }
    crate::print(&out)?;
    let exit = if !chosen.is_empty() {
        Exit::Ok
    } else if around
        .faults
        .iter()
        .any(|f| f.kind.scope() == model::pod::FaultScope::Access)
    {
        Exit::Cluster
    } else {
        Exit::Nothing
    };
    Ok(ExitCode::from(exit.code()))
}

/// The command of the agent, with the process that the first look finds left open.
fn agent(out: &mut String, args: &NixlArgs, number: u32) {
    let ready = Ready {
        process: 0,
        processes: Vec::new(),
        engine: transfer::Engine::default(),
        backends: Vec::new(),
        seconds: beside::seconds(&args.pods),
    };
    let _ = writeln!(
        out,
        "  {number}. where a process of the engine has libnixl loaded, in its place, once: {}",
        quoted(&ready.command())
    );
    let _ = writeln!(
        out,
        "     # {PROCESS}: that process; the program follows on its standard input and ends with it: it makes UCX and the backends that the engine names, moves nothing, and reads /metrics of the engine's ports on 127.0.0.1"
    );
    if args.output.verbose {
        let _ = writeln!(
            out,
            "     # the program:\n{}",
            transfer::readiness::READINESS
        );
    }
}

fn quoted(words: &[String]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            let plain = word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-./=:,".contains(&b));
            match word.as_str() {
                "0" => PROCESS.to_owned(),
                _ if plain && !word.is_empty() => word.clone(),
                _ => format!("'{}'", word.replace('\'', r"'\''")),
            }
        })
        .collect();
    words.join(" ")
}
