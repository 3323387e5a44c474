//! `node`: what a host, a container or saved outputs show.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checks::NodeFacts;
use model::observation::{Merge as _, NotRead, Observation, Unrecognised};
use model::{Exit, Role};

use report::Format;

use crate::args::{NodeArgs, RoleArg};
use crate::output::Outputs;
use crate::{overwrite, pods, sources};

/// The part of a file that is read. An engine's log begins with what matters here.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) fn run(args: &NodeArgs) -> Result<ExitCode, String> {
    // Wrong output arguments are told before anything is read.
    let outputs = Outputs::from_args(&args.output)?;
    overwrite::refuse(&outputs.files(), &args.from, &[])?;
    if args.topology {
        outputs.only(&[Format::Text, Format::Json], "--topology")?;
    }
    if args.from.is_empty() {
        return if pods::are_meant(&args.pods)? {
            if args.topology {
                return Err("--topology has no pods; it takes this host or --from".to_owned());
            }
            let role = args.role.map(role);
            crate::finish(&pods::node(&args.pods, role)?, &args.output)
        } else {
            here(args)
        };
    }
    let mut observation = Observation::default();
    let mut missing = Vec::new();
    for path in &args.from {
        match saved(path) {
            Ok(part) => observation.merge(part),
            Err(Absent::Missing) => missing.push(path.clone()),
            Err(Absent::Unreadable(why)) => {
                return Err(format!("{}: {why}", path.display()));
            }
        }
    }
    if args.topology {
        return topology(&observation, &missing, &outputs);
    }
    let facts = NodeFacts {
        observation,
        role: args.role.map(role),
        saved: true,
        ..NodeFacts::default()
    };
    let scope = args.from.iter().map(|p| p.to_string_lossy().into_owned());
    let mut report = checks::judge_node("node", &facts, scope.collect());
    if !missing.is_empty() {
        // The others are judged all the same.
        report.missing_path = true;
        crate::complain(&no_such_file(&missing));
    }
    crate::finish(&report, &args.output)
}

/// What the collecting script tells of this host or container.
#[cfg(unix)]
pub(crate) fn collected(sockets: bool) -> NodeFacts {
    crate::interrupt::watch();
    let options = probe::local::Options {
        sockets,
        ..probe::local::Options::default()
    };
    let collected = probe::local::run_anywhere(&options, |group| {
        // It ends its tools, which have process groups of their own.
        crate::interrupt::Running::new(group, rustix::process::Signal::TERM)
    });
    let mut facts = NodeFacts::default();
    match collected {
        Ok(stream) => {
            facts.gap = stream.gap().map(|gap| gap.to_string());
            facts.unanswered = probe::observe::tools_without_output(&stream);
            facts.observation = probe::observe::observation(&stream);
        }
        Err(error) => {
            facts.gap = Some(format!(
                "a POSIX shell (sh, bash, dash or busybox) collects the facts, and none can be started: {}",
                sources::reason(&error)
            ));
        }
    }
    facts
}

/// This host or container.
fn here(args: &NodeArgs) -> Result<ExitCode, String> {
    let facts = NodeFacts {
        role: args.role.map(role),
        ..collected(false)
    };
    if args.topology {
        return topology(&facts.observation, &[], &Outputs::from_args(&args.output)?);
    }
    let report = checks::judge_node("node", &facts, Vec::new());
    crate::finish(&report, &args.output)
}

/// Without a POSIX system there is nothing to read.
#[cfg(not(unix))]
pub(crate) fn collected(_sockets: bool) -> NodeFacts {
    NodeFacts {
        gap: Some("facts are collected on Linux only, and in pods from anywhere".to_owned()),
        ..NodeFacts::default()
    }
}

/// Prints the map of GPUs and network cards. Without one, too little could be read.
fn topology(
    observation: &Observation,
    missing: &[PathBuf],
    outputs: &Outputs,
) -> Result<ExitCode, String> {
    let maps = checks::topology(observation);
    outputs.write_texts(|format, options| match format {
        Format::Json => report::topology::json(&maps),
        _ => report::topology::text(&maps, options.ascii),
    })?;
    let exit = if !missing.is_empty() {
        crate::complain(&no_such_file(missing));
        Exit::Usage
    } else if maps.is_empty() {
        Exit::Inconclusive
    } else {
        Exit::Ok
    };
    Ok(ExitCode::from(exit.code()))
}

pub(crate) fn role(role: RoleArg) -> Role {
    match role {
        RoleArg::Prefill => Role::Prefill,
        RoleArg::Decode => Role::Decode,
        RoleArg::Aggregated => Role::Aggregated,
    }
}

/// Why a path gave nothing at all.
enum Absent {
    Missing,
    Unreadable(String),
}

/// Reads one saved output.
fn saved(path: &Path) -> Result<Observation, Absent> {
    let name = path.to_string_lossy();
    let unreadable = |e: &io::Error| Absent::Unreadable(sources::reason(e));
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin()
            .lock()
            .take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| unreadable(&e))?;
    } else {
        if let Some(what) = sources::endless(path) {
            return Err(Absent::Unreadable(format!(
                "it is {what}, not a file; to read a stream, pipe it: command | check-interconnect node --from -"
            )));
        }
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(Absent::Missing),
            other => other.map_err(|e| unreadable(&e))?,
        };
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| unreadable(&e))?;
    }
    let cut = bytes.len() as u64 > MAX_BYTES;
    let mut observation = probe::recognise_bytes(&name, &bytes);
    if cut {
        observation.unrecognised.push(Unrecognised {
            file: name.into_owned(),
            why: NotRead::TooLarge,
            first_line: String::new(),
        });
    }
    Ok(observation)
}

pub(crate) fn no_such_file(missing: &[PathBuf]) -> String {
    let names: Vec<String> = missing.iter().map(|p| p.display().to_string()).collect();
    format!("no such file: {}; the others were judged", names.join(", "))
}
