//! `check`: a whole deployment, live or from a bundle.

use std::process::ExitCode;

use checks::Gathered;
use model::{Input, Outcome};

use crate::args::{CheckArgs, ChoiceArgs, Depth, PairArgs, TransferArgs};
use crate::beside::Look;
use crate::choice::Wanted;
use crate::declared;
use crate::output::Outputs;
use crate::overwrite::{self, Target};
use crate::pods;

pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, String> {
    // Wrong output arguments are told before anything is read.
    let outputs = Outputs::from_args(&args.output)?;
    let mut targets = outputs.files();
    targets.extend(args.bundle.as_deref().map(|path| Target {
        option: "--bundle".to_owned(),
        path,
    }));
    let beside: Vec<_> = args
        .choice
        .filename
        .iter()
        .chain(&args.from_logs)
        .cloned()
        .collect();
    overwrite::refuse(&targets, &beside, &[])?;
    let gathered = if args.from_logs.is_empty() {
        gather(&args.choice, Some(&args.pairs))?
    } else {
        crate::from_logs::gathered(&args.from_logs)?
    };
    if let Some(path) = &args.bundle {
        crate::bundles::save(path, &gathered)?;
    }
    crate::finish(&checks::judge_check(gathered), &args.output)
}

/// What was asked for.
struct Asked {
    wanted: Wanted,
    /// In words.
    scope: Vec<String>,
    /// As options.
    words: Vec<String>,
    /// What the recipes say, and what became of them.
    recipes: Option<checks::Declared>,
    inputs: Vec<Input>,
    /// The namespace that a recipe names.
    namespace: Option<String>,
}

fn asked(args: &ChoiceArgs) -> Result<Asked, String> {
    let mut asked = Asked {
        wanted: Wanted::AsAsked,
        scope: Vec::new(),
        words: Vec::new(),
        recipes: None,
        inputs: Vec::new(),
        namespace: None,
    };
    if !args.filename.is_empty() {
        let mut facts = declared::recipes(&args.filename)?;
        asked.inputs = std::mem::take(&mut facts.inputs);
        asked.namespace = facts.deployments.iter().find_map(|d| d.namespace.clone());
        let recipes = declared::of_recipes(facts, &args.filename);
        for path in &args.filename {
            asked
                .words
                .extend(["-f".to_owned(), path.display().to_string()]);
        }
        asked.scope.push(format!("recipe {}", recipes.name));
        let wanted = declared::disaggregated(&recipes);
        if wanted.is_empty() {
            return Err(nothing_declared(&recipes.name, &asked.inputs));
        }
        asked.recipes = Some(recipes);
        asked.wanted = Wanted::Declared(wanted);
    }
    let given = [
        ("NAME", &args.name),
        ("--prefill", &args.prefill),
        ("--decode", &args.decode),
    ];
    // A variable that is empty by mistake would stand for everything, or for nothing.
    if let Some((what, _)) = given
        .iter()
        .find(|(_, text)| text.as_ref().is_some_and(|t| t.trim().is_empty()))
    {
        return Err(format!(
            "{what} is empty; check -n NAMESPACE takes all KV workers of a namespace"
        ));
    }
    match (&args.name, &args.prefill, &args.decode) {
        (Some(name), _, _) => {
            asked.scope.insert(0, format!("deployment {name}"));
            asked.words.insert(0, name.clone());
            asked.wanted = Wanted::Of(vec![name.clone()]);
        }
        (None, Some(prefill), Some(decode)) => {
            asked.scope.push(format!("prefill pods with {prefill}"));
            asked.scope.push(format!("decode pods with {decode}"));
            let words = ["--prefill", prefill, "--decode", decode];
            asked.words.extend(words.map(str::to_owned));
            asked.wanted = Wanted::Roles(prefill.clone(), decode.clone());
        }
        _ => {}
    }
    Ok(asked)
}

/// Why recipes name no worker: what could not be read, or what is in them.
fn nothing_declared(name: &str, inputs: &[Input]) -> String {
    let problems = inputs.iter().flat_map(|input| &input.problems);
    let broken: Vec<&str> = problems
        .filter(|problem| matches!(problem.outcome, Outcome::Broken | Outcome::Missing))
        .map(|problem| problem.detail.as_str())
        .collect();
    if broken.is_empty() {
        format!(
            "{name} declares no prefill or decode worker; check-interconnect env tells what it declares"
        )
    } else {
        format!(
            "no prefill or decode worker could be read from {name}: {}",
            broken.join("; ")
        )
    }
}

/// Workers in all of which logs are read and agents are made.
const FEW: usize = 16;

/// What bounds each transfer.
fn transfers(args: &PairArgs) -> TransferArgs {
    TransferArgs {
        peer: None,
        peer_container: None,
        peer_namespace: None,
        transfer: true,
        rate: args.rate,
        largest: args.largest,
        dry_run: args.dry_run,
        force: false,
        observe: None,
    }
}

/// Everything that can be seen of the workers that are meant.
pub(crate) fn gather(args: &ChoiceArgs, pairs: Option<&PairArgs>) -> Result<Gathered, String> {
    let pairs = pairs.filter(|pairs| pairs.transfer);
    let mut asked = asked(args)?;
    let mut of_pods = args.pods.clone();
    let named = !of_pods.pod.is_empty() || of_pods.selector.is_some() || of_pods.all;
    if named && args.name.is_none() && args.prefill.is_none() {
        // What is asked for by pods counts, and a recipe is held against them.
        asked.wanted = Wanted::AsAsked;
    }
    of_pods.namespace.take_if(|namespace| namespace.is_empty());
    if of_pods.namespace.is_none() {
        of_pods.namespace = asked.namespace.take();
    }
    if !named && matches!(asked.wanted, Wanted::AsAsked) {
        if of_pods.namespace.is_none() {
            return Err("name what is to be checked: check NAME -n NAMESPACE, check -n NAMESPACE for all KV workers of it, \
                        check -l SELECTOR, check -f RECIPE, or check --prefill SELECTOR --decode SELECTOR"
                .to_owned());
        }
        of_pods.all = true;
    }
    let mut gathered = pods::gathered(pods::Check {
        args: &of_pods,
        wanted: asked.wanted.clone(),
        look: match args.depth {
            Depth::Auto => Look::Sample { most: FEW },
            Depth::Sample => Look::Sample { most: 0 },
            Depth::All => Look::Inside { force: false },
        },
        limit: args.run_timeout,
        transfers: pairs.map(|pairs| (pairs.pairs, transfers(pairs))),
    })?;
    gathered.scope = asked.scope;
    gathered.scope.extend(pods::scope(&of_pods));
    asked.words.append(&mut gathered.around.asked);
    if let Some(pairs) = pairs {
        let pairs = pairs.pairs.to_string();
        let words = ["--transfer", "--pairs", &pairs].map(str::to_owned);
        asked.words.extend(words);
    }
    gathered.around.asked = asked.words;
    if let Some(recipes) = asked.recipes {
        gathered.declared.insert(0, recipes);
    }
    gathered.inputs = asked.inputs;
    Ok(gathered)
}
