//! `check`: a whole deployment, live or from a bundle.

use std::process::ExitCode;

use checks::Gathered;

use crate::args::{CheckArgs, ChoiceArgs};
use crate::output::Outputs;
use crate::overwrite::{self, Target};
use crate::pods::{self, Wanted};

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, String> {
    // Wrong output arguments are told before anything is read.
    let outputs = Outputs::from_args(&args.output)?;
    let mut targets = outputs.files();
    targets.extend(args.bundle.as_deref().map(|path| Target {
        option: "--bundle".to_owned(),
        path,
    }));
    overwrite::refuse(&targets, &args.from_logs, &[])?;
    let gathered = if args.from_logs.is_empty() {
        gather(&args.choice)?
    } else {
        crate::from_logs::gathered(&args.from_logs)?
    };
    if let Some(path) = &args.bundle {
        crate::bundles::save(path, &gathered)?;
    }
    crate::finish(&checks::judge_check(gathered), &args.output)
}

/// Which workers are meant.
fn wanted(args: &ChoiceArgs) -> Wanted {
    match (&args.name, &args.prefill, &args.decode) {
        (Some(name), _, _) => Wanted::Of(vec![name.clone()]),
        (None, Some(prefill), Some(decode)) => Wanted::Roles(prefill.clone(), decode.clone()),
        _ => Wanted::AsAsked,
    }
}

/// Everything that can be seen of them.
pub(crate) fn gather(args: &ChoiceArgs) -> Result<Gathered, String> {
    let mut of_pods = args.pods.clone();
    let named = !of_pods.pod.is_empty() || of_pods.selector.is_some() || of_pods.all;
    let wanted = wanted(args);
    if !named && matches!(wanted, Wanted::AsAsked) {
        if of_pods.namespace.is_none() {
            return Err("name what is to be checked: check NAME -n NAMESPACE, check -n NAMESPACE for all KV workers of it, \
                        check -l SELECTOR, or check --prefill SELECTOR --decode SELECTOR"
                .to_owned());
        }
        of_pods.all = true;
    }
    let (pods, mut around) = pods::gathered(&of_pods, &wanted)?;
    let mut scope = Vec::new();
    let mut asked = Vec::new();
    match &wanted {
        Wanted::Of(names) => {
            scope.extend(names.iter().map(|name| format!("deployment {name}")));
            asked.extend(names.iter().cloned());
        }
        Wanted::Roles(prefill, decode) => {
            scope.push(format!("prefill pods with {prefill}"));
            scope.push(format!("decode pods with {decode}"));
            asked.extend(["--prefill", prefill, "--decode", decode].map(str::to_owned));
        }
        Wanted::AsAsked => {}
    }
    scope.extend(pods::scope(&of_pods));
    asked.append(&mut around.asked);
    around.asked = asked;
    Ok(Gathered {
        pods,
        around,
        scope,
    })
}
