//! `nixl` where something runs: in pods, or on this host.

use std::process::ExitCode;

use checks::{Beside, NodeFacts};

use crate::args::NixlArgs;
use crate::beside::{self, Look};
use crate::failure::Failure;
use crate::node::{collected, role};
use crate::{debug_pods, dry_run, pods};

pub(crate) fn run(args: &NixlArgs) -> Result<ExitCode, Failure> {
    let in_pods = pods::are_meant(&args.pods)?;
    if args.transfer.dry_run {
        return Ok(dry_run::print(args, in_pods)?);
    }
    if args.debug_pods {
        if !in_pods {
            return Err("--debug-pods takes pods: --pod, --selector or --all"
                .to_owned()
                .into());
        }
        let texts = pods::as_given(&args.pods)?;
        let made: Vec<String> = texts
            .iter()
            .filter_map(|(text, pod)| {
                let annotations: Vec<&str> =
                    pod.object.annotations.keys().map(String::as_str).collect();
                debug_pods::of(text, &pod.container, &annotations)
            })
            .collect();
        return Ok(crate::print(&made.concat())?);
    }
    let role = args.role.map(role);
    if in_pods {
        let look = Look::Inside {
            force: args.transfer.force,
        };
        return Ok(crate::finish(
            &pods::nixl(&args.pods, role, look)?,
            &args.output,
        )?);
    }
    let mut facts = NodeFacts {
        role,
        ..collected(true)
    };
    facts.nixl = Some(Box::new(Beside {
        log: None,
        trial: Some(beside::here(&facts)),
    }));
    let report = checks::judge_nixl_here(&facts, Vec::new());
    Ok(crate::finish(&report, &args.output)?)
}
