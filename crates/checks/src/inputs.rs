//! Problems of inputs as results: nothing that was given is left out without a word.

use std::borrow::Cow;

use model::{CheckResult, Grade, Input, Outcome, Reason, Status, Subject};

use crate::check::Cause;

/// The name of results about inputs.
const NAME: &str = "input";

/// What can be wrong with an input.
pub const PROBLEMS: &[Cause] = &[
    problem(
        "input-missing",
        "the path does not exist",
        "nothing can be judged there",
        "check the path",
    ),
    problem(
        "input-unreadable",
        "the file cannot be read",
        "it is left out",
        "check its permissions, or pipe its content to standard input",
    ),
    problem(
        "input-not-utf8",
        "the content is not UTF-8 text",
        "it is left out: binary data and other encodings are no manifests",
        "convert it to UTF-8",
    ),
    problem(
        "input-too-large",
        "the file is larger than the limit",
        "it is left out",
        "give the manifest, not a data file",
    ),
    problem(
        "input-not-a-file",
        "the path is neither a file nor a directory (a FIFO, a socket, a device)",
        "it is left out: reading it could wait for ever",
        "use - to read standard input",
    ),
    problem(
        "input-empty",
        "there is no document in the input",
        "there is nothing to judge",
        "give a manifest",
    ),
    problem(
        "input-no-manifest",
        "the directory holds no YAML or JSON file",
        "there is nothing to judge",
        "give a directory with manifests, or the files",
    ),
    problem(
        "input-not-a-manifest",
        "a document is not a mapping",
        "it is left out",
        "give Kubernetes manifests",
    ),
    problem(
        "input-broken-yaml",
        "a document cannot be parsed",
        "it is left out; the other documents of the file are judged",
        "correct the line that is named",
    ),
    problem(
        "input-wrong-shape",
        "a part of an object is of another shape than its kind has, such as a list where a mapping belongs",
        "Kubernetes refuses the object, and what is in the part cannot be read",
        "correct the line that is named",
    ),
    problem(
        "input-template",
        "a document is a template",
        "it is left out, never guessed at",
        "render it and give the result",
    ),
    problem(
        "input-broken-alias",
        "an alias refers to nothing, or to itself",
        "what it stands for counts as empty",
        "define the anchor first, or write the value out",
    ),
    problem(
        "input-duplicate-key",
        "a mapping has a key twice",
        "Kubernetes keeps the last one; so does this tool",
        "remove one of the two",
    ),
    problem(
        "input-link-loop",
        "a symbolic link leads back to its own directory, or nowhere",
        "it is not followed",
        "remove the link",
    ),
    problem(
        "input-rendered",
        "a kustomization or a Helm chart is judged as what it renders to",
        "line numbers are those of the rendered text, and its files are not judged a second time",
        "run the command that is named to see the text; --no-render judges the parts instead",
    ),
    problem(
        "input-kustomization-not-rendered",
        "a kustomization was not rendered: the program is missing or failed, or it would fetch something",
        "resources and patches are judged each for itself; what they make together is not known",
        "run the command that is named, and give its output to env -",
    ),
    problem(
        "input-values-alone",
        "chart values name prefill and decode, and what makes workers of them is not in the input",
        "nothing can be said of workers that cannot be seen",
        "give the chart with --values FILE, or the result of rendering it",
    ),
    problem(
        "input-chart-not-rendered",
        "a Helm chart was not rendered: helm is missing or failed, or a dependency is not in charts/",
        "templates are left out, and values are judged as far as they tell something",
        "run the command that is named, and give its output to env -",
    ),
];

const fn problem(
    id: &'static str,
    what: &'static str,
    why: &'static str,
    fix: &'static str,
) -> Cause {
    Cause {
        id,
        what,
        why,
        fix,
        quiet_if: "never",
        source: "the input itself",
    }
}

/// The cause in the table: a bundle holds its name only.
fn known(id: &str) -> Option<&'static str> {
    PROBLEMS
        .iter()
        .find(|cause| cause.id == id)
        .map(|cause| cause.id)
}

/// One result for each problem.
pub(crate) fn results(inputs: &[Input]) -> Vec<CheckResult> {
    let mut results = Vec::new();
    for input in inputs {
        for problem in &input.problems {
            let (status, reason, required) = match problem.outcome {
                Outcome::Noted => (Status::Ok, None, false),
                Outcome::Empty => (Status::Skipped, Some(Reason::NotApplicable), false),
                Outcome::Skipped => (Status::Skipped, Some(Reason::NotVisible), false),
                Outcome::Broken | Outcome::Missing => {
                    (Status::Skipped, Some(Reason::Unreadable), true)
                }
            };
            let at = problem.position.map_or_else(
                || input.path.to_string(),
                |(line, column)| format!("{}:{line}:{column}", input.path),
            );
            let detail = if status == Status::Ok {
                format!("{at} was read")
            } else {
                format!("{at}: {}", problem.detail)
            };
            results.push(CheckResult {
                name: Cow::Borrowed(NAME),
                status,
                note: (status == Status::Ok).then(|| problem.detail.clone()),
                detail,
                cause: (status != Status::Ok)
                    .then(|| known(&problem.cause))
                    .flatten(),
                fix: Some(problem.fix.clone()),
                reason,
                grade: Grade::Declared,
                subject: Subject {
                    file: Some(input.path.to_string()),
                    ..Subject::default()
                },
                sources: Vec::new(),
                collective: false,
                required,
                deployment: None,
            });
        }
    }
    results
}
