//! `replay`: judges bundles.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use checks::Gathered;

use crate::args::{Color, OutputArgs, ReplayArgs};
use crate::output::Outputs;
use crate::{against, bundles, overwrite};

pub(crate) fn run(args: &ReplayArgs) -> Result<ExitCode, String> {
    // Wrong output arguments are told before anything is read.
    let outputs = Outputs::from_args(&args.output)?;
    if !args.against.is_empty() {
        without_effect(&args.output)?;
    }
    let read: Vec<PathBuf> = args.bundles.iter().chain(&args.against).cloned().collect();
    overwrite::refuse(&outputs.files(), &read, &[])?;
    let after = checks::judge_check(opened(&args.bundles)?);
    if args.against.is_empty() {
        return crate::finish(&after, &args.output);
    }
    let before = checks::judge_check(opened(&args.against)?);
    against::print(&before, &after, &outputs)?;
    Ok(crate::exit(&after, &args.output))
}

/// Changes are told whole, and without colour.
fn without_effect(output: &OutputArgs) -> Result<(), String> {
    let option = match output.color {
        Color::Always => "--color always",
        _ if output.verbose => "--verbose",
        _ => return Ok(()),
    };
    Err(format!(
        "{option} does nothing with --against, which tells every change; leave it out"
    ))
}

/// Several bundles as one.
fn opened(paths: &[PathBuf]) -> Result<Gathered, String> {
    let mut gathered: Option<Gathered> = None;
    for path in paths {
        let more = bundles::open(path)?;
        match &mut gathered {
            None => gathered = Some(more),
            Some(all) => join(all, more, path)?,
        }
    }
    gathered.ok_or_else(|| "no bundle was given".to_owned())
}

/// Puts another bundle beside.
fn join(all: &mut Gathered, more: Gathered, path: &Path) -> Result<(), String> {
    for pod in &more.pods {
        let known = |held: &&checks::ProbedPod| {
            held.object.namespace == pod.object.namespace && held.object.name == pod.object.name
        };
        if all.pods.iter().any(|held| known(&held)) {
            return Err(format!(
                "{}: worker {} is in an earlier bundle as well; bundles that are judged together hold different workers",
                path.display(),
                pod.object.name
            ));
        }
    }
    all.pods.extend(more.pods);
    all.scope.extend(more.scope);
    for declared in more.declared {
        if !all.declared.contains(&declared) {
            all.declared.push(declared);
        }
    }
    all.declared.sort_by_key(|declared| declared.by);
    all.inputs.extend(more.inputs);
    all.transfers.extend(more.transfers);
    let around = more.around;
    all.around.faults.extend(around.faults);
    all.around.passed_over.extend(around.passed_over);
    match (&mut all.around.nodes, around.nodes) {
        (Ok(held), Ok(nodes)) => {
            for node in nodes {
                if !held.iter().any(|known| known.name == node.name) {
                    held.push(node);
                }
            }
        }
        (Ok(_), Err(fault)) => all.around.nodes = Err(fault),
        (Err(_), _) => {}
    }
    match (&mut all.around.rights, around.rights) {
        (Some(held), Some(rights)) => held.join(rights),
        (held @ None, rights) => *held = rights,
        (Some(_), None) => {}
    }
    // How to look again is not one command any more.
    all.around.asked.clear();
    Ok(())
}
