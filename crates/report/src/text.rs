//! `text`: for a person, perhaps at three in the morning. Worst first, the verdict last and alone.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use model::verdict::{DeploymentSummary, WorkerSummary};
use model::{CheckResult, Engine, Readiness, Reason, Report, Role, Source, Status};

use crate::fold::Entry;
use crate::group::{self, Group};
use crate::label;
use crate::many::{is_of_pods, without_alike};
use crate::screen::{
    BOLD, DIM, PLAIN, Screen, columns, readiness_style, status_style, status_word,
};
use crate::short::{counts_line, rank, verdict_line, word};
use crate::{Options, snippet};

/// Widest column of subjects; longer ones push their own line only.
const SUBJECT: usize = 28;
/// Deployments of pods of which each gets a line.
const LINES: usize = 12;
/// Deployments with findings from which on lines that hold are only counted.
const MANY: usize = 3;
/// Where details begin after the status word: `  skip  `.
const AFTER_WORD: usize = 8;
/// Width of the longest readiness, `not-applicable`.
const READINESS: usize = 14;
/// Kinds of workers that a section lists.
const KINDS: usize = 12;
/// Checks of what is inside a container.
const INSIDE: [&str; 3] = ["node/", "nixl/", "collectives/"];
/// Pods from which on what holds inside them is only counted.
const FEW_PODS: usize = 8;
/// Source lines of a finding that say the same; the places of further ones are only named.
const ALIKE: usize = 2;

/// The screen.
pub(crate) fn render(report: &Report, options: &Options) -> String {
    let groups = group::groups(report);
    let mut screen = Screen::new(options);
    head(&mut screen, report);
    if let ([deployment], [group]) = (report.deployments.as_slice(), groups.deployments.as_slice())
    {
        section(&mut screen, deployment, group, false);
    } else {
        sections(&mut screen, &report.deployments, &groups.deployments);
    }
    inputs(&mut screen, &groups.rest);
    next(&mut screen, report);
    screen.gap();
    let counts = counts_line(&screen, report);
    screen.push(&counts);
    screen.end();
    verdict_line(&mut screen, report);
    screen.finish()
}

fn head(screen: &mut Screen<'_>, report: &Report) {
    let mut column = 0;
    let title = format!("check-interconnect {}", report.command);
    screen.paint(BOLD, &title);
    column += columns(&title);
    let mut facts = String::new();
    if let [deployment] = report.deployments.as_slice() {
        let name = title_of(screen, deployment);
        screen.push("  ");
        screen.paint(BOLD, &name);
        column += 2 + columns(&name);
        facts = facts_of(screen, deployment);
    } else {
        let scope = label::list(screen, report.scope.iter().map(String::as_str));
        let many = report.deployments.len();
        if many > 0 {
            facts = format!("{many} deployments");
        }
        if !scope.is_empty() {
            facts.push_str(if many > 0 { " in " } else { "" });
            facts.push_str(&scope);
        }
    }
    if screen.verbose() {
        facts = format!("{facts} (version {})", screen.version());
    }
    if facts.trim().is_empty() {
        screen.end();
    } else {
        screen.push("  ");
        screen.para(column + 2, 4, PLAIN, facts.trim());
    }
}

/// `namespace/name`.
fn title_of(screen: &Screen<'_>, deployment: &DeploymentSummary) -> String {
    let name = screen.name(&deployment.name);
    match &deployment.namespace {
        Some(namespace) => format!("{}/{name}", screen.name(namespace)),
        None => name.into_owned(),
    }
}

/// `2 prefill · 2 decode · vLLM · NIXL/UCX · rdma/ib: 4`.
fn facts_of(screen: &Screen<'_>, deployment: &DeploymentSummary) -> String {
    let mut facts: Vec<String> = Vec::new();
    if let Some(partial) = deployment.partial {
        facts.push(partial.to_owned());
    }
    for role in [
        Role::Prefill,
        Role::Decode,
        Role::Unknown,
        Role::Aggregated,
        Role::Encode,
    ] {
        let mut of_role = deployment
            .workers
            .iter()
            .filter(|w| w.role == role)
            .peekable();
        if of_role.peek().is_some() {
            let count: u64 = of_role
                .map(|w| w.replicas.unwrap_or(1))
                .fold(0, u64::saturating_add);
            facts.push(format!("{count} {}", role.as_str()));
        }
    }
    let shown = || deployment.workers.iter().filter(|w| is_engine(w.role));
    let engines = shown()
        .map(|w| w.engine)
        .filter(|engine| *engine != Engine::Unknown)
        .map(Engine::as_str);
    let connectors = shown().filter_map(|w| w.connector.as_deref());
    let fabrics = shown().map(|w| w.fabric.as_str());
    facts.extend(distinct(screen, engines));
    facts.extend(distinct(screen, connectors));
    facts.extend(distinct(screen, fabrics));
    facts.join(screen.dot())
}

/// The same with the files: among many deployments a name alone does not lead to its text.
fn facts_and_files(screen: &Screen<'_>, deployment: &DeploymentSummary) -> String {
    let facts = facts_of(screen, deployment);
    let files = label::list(screen, deployment.files.iter().map(String::as_str));
    match (facts.is_empty(), files.is_empty()) {
        (_, true) => facts,
        (true, false) => format!("({files})"),
        (false, false) => format!("{facts} ({files})"),
    }
}

/// Different words, joined; `None` where there is none.
fn distinct<'w>(screen: &Screen<'_>, words: impl Iterator<Item = &'w str>) -> Option<String> {
    let mut seen: Vec<&str> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    (!seen.is_empty()).then(|| label::list(screen, seen))
}

/// Roles whose lines are shown: routers and jobs move no KV cache.
fn is_engine(role: Role) -> bool {
    !matches!(role, Role::Frontend | Role::Other)
}

/// Deployments with something to say in full, worst first; of the others a line each; and of those
/// where nothing is disaggregated only the number.
fn sections(screen: &mut Screen<'_>, deployments: &[DeploymentSummary], groups: &[Group<'_>]) {
    let verbose = screen.verbose();
    let mut loud: Vec<(&DeploymentSummary, &Group<'_>)> = Vec::new();
    let mut quiet: Vec<&DeploymentSummary> = Vec::new();
    let mut elsewhere = 0_usize;
    for (deployment, group) in deployments.iter().zip(groups) {
        if verbose || group.results.iter().any(|r| says_something(r)) {
            loud.push((deployment, group));
        } else if deployment.readiness == Readiness::NotApplicable {
            elsewhere += 1;
        } else {
            quiet.push(deployment);
        }
    }
    loud.sort_by_key(|(deployment, _)| deployment.readiness);
    let (kinds, rest) = if verbose {
        (
            loud.into_iter().map(|one| (one, Vec::new())).collect(),
            Vec::new(),
        )
    } else {
        without_alike(loud)
    };
    let many = kinds.len() > MANY && !verbose;
    for ((deployment, group), alike) in kinds {
        screen.gap();
        let title = title_of(screen, deployment);
        screen.paint(BOLD, &title);
        let facts = facts_and_files(screen, deployment);
        screen.push("  ");
        screen.para(columns(&title) + 2, 4, PLAIN, &facts);
        section(screen, deployment, group, many || !alike.is_empty());
        screen.gap();
        screen.push("  ");
        let word = deployment.readiness.as_str();
        screen.paint(readiness_style(deployment.readiness), word);
        screen.push("  ");
        let verdict = screen.line(&deployment.verdict).into_owned();
        screen.para(word.len() + 4, 4, PLAIN, &verdict);
        if !alike.is_empty() {
            let names = label::list(screen, alike.iter().map(|d| d.name.as_str()));
            let text = format!(
                "the same of {} more: {names} (--verbose lists them)",
                alike.len()
            );
            screen.push("  ");
            screen.para(2, 4, PLAIN, &text);
        }
    }
    if !rest.is_empty() {
        screen.gap();
    }
    short_lines(screen, rest, |screen, deployment| {
        screen.line(&deployment.verdict).into_owned()
    });
    if !quiet.is_empty() || elsewhere > 0 {
        screen.gap();
    }
    quiet.sort_by_key(|deployment| deployment.readiness);
    short_lines(screen, quiet, facts_and_files);
    if elsewhere > 0 {
        let plural = if elsewhere == 1 { "" } else { "s" };
        let text = format!(
            "{elsewhere} deployment{plural} with nothing disaggregated (--verbose lists them)"
        );
        one_line(screen, Readiness::NotApplicable, "", &text);
    }
}

/// A line for each of these deployments. Of pods there may be thousands, and only the first are told.
fn short_lines(
    screen: &mut Screen<'_>,
    deployments: Vec<&DeploymentSummary>,
    text: impl Fn(&Screen<'_>, &DeploymentSummary) -> String,
) {
    let mut more: BTreeMap<Readiness, usize> = BTreeMap::new();
    let mut told = 0_usize;
    for deployment in deployments {
        if is_of_pods(deployment) && !screen.verbose() {
            told += 1;
            if told > LINES {
                *more.entry(deployment.readiness).or_default() += 1;
                continue;
            }
        }
        let title = title_of(screen, deployment);
        let text = text(screen, deployment);
        one_line(screen, deployment.readiness, &title, &text);
    }
    for (readiness, count) in more {
        let plural = if count == 1 { "" } else { "s" };
        let text = format!("{count} more deployment{plural} (--verbose lists them)");
        one_line(screen, readiness, "", &text);
    }
}

/// `readiness  title  text`, with the readiness in a column of its own.
fn one_line(screen: &mut Screen<'_>, readiness: Readiness, title: &str, text: &str) {
    let word = readiness.as_str();
    screen.paint(readiness_style(readiness), word);
    screen.pad(READINESS.saturating_sub(word.len()) + 2);
    let mut column = READINESS + 2;
    if !title.is_empty() {
        screen.paint(BOLD, title);
        screen.push("  ");
        column += columns(title) + 2;
    }
    screen.para(column, READINESS + 2, PLAIN, text);
}

/// What is worth a section of its own. A check that does not apply here is not news.
pub(crate) fn says_something(result: &CheckResult) -> bool {
    match result.status {
        Status::Fail | Status::Warn => true,
        Status::Skipped => {
            result.required
                || !matches!(
                    result.reason,
                    Some(Reason::NotApplicable | Reason::Disabled)
                )
        }
        Status::Ok => false,
    }
}

/// One deployment: workers, findings, what holds, what was skipped, notes, collectives.
fn section(screen: &mut Screen<'_>, deployment: &DeploymentSummary, group: &Group<'_>, many: bool) {
    screen.about(&deployment.files);
    if let ([file], false) = (deployment.files.as_slice(), many) {
        screen.push("  ");
        let file = screen.name(file).into_owned();
        screen.paint(DIM, &file);
        screen.end();
    }
    workers(screen, deployment);
    let (collectives, checks): (Vec<&CheckResult>, Vec<_>) = group
        .results
        .iter()
        .map(|r| &**r)
        .partition(|r| r.collective);
    findings(screen, &checks, Some(deployment));
    let mut lines: Vec<&CheckResult> = compact_lines(&checks);
    if many {
        lines.retain(|r| r.status != Status::Ok || r.note.is_some());
    }
    let before = lines.len();
    let pods = checks.iter().map(|r| r.subject.pods.len()).max();
    let many_pods = (many && is_of_pods(deployment)) || pods.is_some_and(|n| n > FEW_PODS);
    let many_pods = many_pods && !screen.verbose();
    if many_pods {
        // Where something is to be done, that comes first: what else holds is only counted too.
        let loud = checks
            .iter()
            .any(|r| matches!(r.status, Status::Fail | Status::Warn));
        lines.retain(|r| !holds_inside(r) && !(loud && holds_by_itself(r)));
    }
    let hidden = before - lines.len();
    let width = subject_width(screen, &lines, Some(deployment));
    if !lines.is_empty() || (many && group.counts.ok > 0) {
        screen.gap();
    }
    for result in lines {
        line(screen, result, Some(deployment), width);
    }
    if many && group.counts.ok > 0 {
        counted(screen, &format!("{} checks hold", group.counts.ok));
    } else if hidden > 0 {
        counted(screen, &format!("{hidden} more checks hold"));
    }
    let collectives: Vec<&CheckResult> = collectives
        .into_iter()
        .filter(|r| !many_pods || !holds_inside(r))
        .collect();
    if !collectives.is_empty() {
        screen.gap();
        screen.paint(BOLD, "collectives");
        screen.push(" (not KV transfer)");
        screen.end();
        findings(screen, &collectives, Some(deployment));
        let lines = compact_lines(&collectives);
        if lines.len() < collectives.len() {
            screen.gap();
        }
        let width = subject_width(screen, &lines, Some(deployment));
        for result in lines {
            line(screen, result, Some(deployment), width);
        }
    }
    screen.about(&[]);
}

/// `ok    N checks hold (--verbose lists them)`.
fn counted(screen: &mut Screen<'_>, text: &str) {
    screen.push("  ");
    screen.paint(status_style(Status::Ok), "ok");
    screen.push(&format!("    {text} (--verbose lists them)"));
    screen.end();
}

/// What holds inside a container: of many pods nobody reads it line by line.
fn holds_inside(result: &CheckResult) -> bool {
    result.status == Status::Ok && INSIDE.iter().any(|group| result.name.starts_with(group))
}

/// What holds and explains nothing else: which pods were taken, and what a start script changed, does.
fn holds_by_itself(result: &CheckResult) -> bool {
    result.status == Status::Ok
        && !matches!(
            &*result.name,
            "pod/choice" | "pod/live-settings" | "pod/state"
        )
}

/// A line per kind of worker.
fn workers(screen: &mut Screen<'_>, deployment: &DeploymentSummary) {
    let mut kinds: Vec<(&WorkerSummary, Vec<&str>)> = Vec::new();
    for worker in &deployment.workers {
        if !is_engine(worker.role) && !screen.verbose() {
            continue;
        }
        let alike = |other: &WorkerSummary| {
            other.role == worker.role
                && other.engine == worker.engine
                && other.engine_is_assumed == worker.engine_is_assumed
                && other.connector == worker.connector
                && other.fabric == worker.fabric
                && other.replicas == worker.replicas
                && other.nodes == worker.nodes
                && other.accelerators == worker.accelerators
        };
        match kinds.iter_mut().find(|(kind, _)| alike(kind)) {
            Some((_, names)) => names.push(&worker.name),
            None => kinds.push((worker, vec![&worker.name])),
        }
    }
    if kinds.is_empty() {
        return;
    }
    let hidden = if screen.verbose() || kinds.len() <= KINDS {
        0
    } else {
        kinds.drain(KINDS..).map(|(_, names)| names.len()).sum()
    };
    let rows: Vec<Vec<String>> = kinds
        .into_iter()
        .map(|(worker, names)| {
            let mut size: Vec<String> = Vec::new();
            if names.len() > 1 {
                size.push(format!("{} workers", names.len()));
            }
            if let Some(replicas) = worker.replicas {
                size.push(plural(replicas, "replica"));
            }
            if worker.nodes > 1 {
                size.push(format!("{} nodes each", worker.nodes));
            }
            if let Some(accelerators) = worker.accelerators {
                size.push(format!("{} per pod", plural(accelerators, "accelerator")));
            }
            vec![
                worker.role.as_str().to_owned(),
                label::list(screen, names),
                if worker.engine_is_assumed {
                    format!("{} (assumed)", worker.engine.as_str())
                } else {
                    worker.engine.as_str().to_owned()
                },
                screen
                    .line(worker.connector.as_deref().unwrap_or("-"))
                    .into_owned(),
                match worker.fabric.as_str() {
                    "" => "-".to_owned(),
                    fabric => screen.line(fabric).into_owned(),
                },
                size.join(", "),
            ]
        })
        .collect();
    let widths: Vec<usize> = (0..6)
        .map(|index| {
            rows.iter()
                .filter_map(|row| row.get(index))
                .map(|cell| columns(cell))
                .max()
                .unwrap_or(0)
                .min(SUBJECT)
        })
        .collect();
    screen.gap();
    for row in &rows {
        let mut text = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            text.push_str("  ");
            text.push_str(cell);
            text.extend(std::iter::repeat_n(
                ' ',
                width.saturating_sub(columns(cell)),
            ));
        }
        screen.push(text.trim_end());
        screen.end();
    }
    if hidden > 0 {
        screen.push(&format!(
            "  and {hidden} more workers (--verbose lists them)"
        ));
        screen.end();
    }
}

fn plural(count: u64, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Failures, then warnings, each with its source lines.
fn findings(
    screen: &mut Screen<'_>,
    results: &[&CheckResult],
    deployment: Option<&DeploymentSummary>,
) {
    let mut findings: Vec<&CheckResult> = results
        .iter()
        .copied()
        .filter(|r| matches!(r.status, Status::Fail | Status::Warn))
        .collect();
    findings.sort_by_key(|r| rank(r.status));
    for result in findings {
        finding(screen, result, deployment);
    }
}

fn finding(screen: &mut Screen<'_>, result: &CheckResult, deployment: Option<&DeploymentSummary>) {
    screen.gap();
    let word = word(screen, result);
    screen.paint(status_style(result.status), &word);
    screen.push(" ");
    let label = label::subject(screen, result, deployment);
    let mut detail = format!(
        "{}{}",
        label::prefix(screen, &label, result),
        screen.line(&result.detail)
    );
    if let Some(grade) = label::grade(result, screen.verbose()) {
        let _ = write!(detail, " ({grade})");
    }
    screen.para(columns(&word) + 1, 6, BOLD, &detail);
    let (shown, alike) = without_repeats(screen, &result.sources);
    let gutter = if result.sources.is_empty() {
        1
    } else {
        snippet::write(screen, result.status, &shown)
    };
    let workers = &result.subject.workers;
    let unseen = workers.len() > shown.len().max(2);
    let fix = result.fix.as_deref();
    let note = result.note.as_deref().filter(|n| *n != result.detail);
    if !result.sources.is_empty()
        && (unseen || fix.is_some() || note.is_some() || result.cause.is_some())
    {
        snippet::close(screen, gutter);
    }
    if !alike.is_empty() {
        let text = label::places(screen, &alike);
        snippet::trailer(screen, gutter, "also", &text);
    }
    if unseen {
        let names = label::list(screen, workers.iter().map(String::as_str));
        let text = format!("{names} ({})", workers.len());
        snippet::trailer(screen, gutter, "workers", &text);
    }
    let pods = &result.subject.pods;
    if pods.len() > 3 {
        let names = label::list(screen, pods.iter().map(String::as_str));
        let text = format!("{names} ({})", pods.len());
        snippet::trailer(screen, gutter, "pods", &text);
    }
    for (word, text) in [("fix", fix), ("note", note)] {
        if let Some(text) = text {
            let text = screen.line(text).into_owned();
            snippet::trailer(screen, gutter, word, &text);
        }
    }
    if let Some(cause) = result.cause {
        let text = format!("check-interconnect explain {cause}");
        snippet::trailer(screen, gutter, "explain", &text);
    }
    if screen.verbose() {
        let name = screen.name(&result.name).into_owned();
        snippet::trailer(screen, gutter, "check", &name);
    }
}

/// Sources to show, and those whose line says nothing that was not shown twice already.
fn without_repeats(screen: &Screen<'_>, sources: &[Source]) -> (Vec<Source>, Vec<Source>) {
    let mut seen: HashMap<(&str, &str, bool), usize> = HashMap::new();
    let mut shown = Vec::new();
    let mut alike = Vec::new();
    for source in sources {
        let kind = (source.place.text.trim(), &*source.label, source.primary);
        let times = seen.entry(kind).or_default();
        *times += 1;
        if screen.verbose() || *times <= ALIKE {
            shown.push(source.clone());
        } else {
            alike.push(source.clone());
        }
    }
    (shown, alike)
}

/// What needs one line: what holds, then what was skipped, then what holds with a note.
fn compact_lines<'r>(results: &[&'r CheckResult]) -> Vec<&'r CheckResult> {
    let mut lines: Vec<&CheckResult> = results
        .iter()
        .copied()
        .filter(|r| matches!(r.status, Status::Ok | Status::Skipped))
        .collect();
    lines.sort_by_key(|r| match (r.status, &r.note) {
        // A pod that nobody could look into is not to be found below what holds in the others.
        (Status::Skipped, _) if r.required && r.name.starts_with("pod/") => 0,
        (Status::Ok, None) => 1,
        (Status::Ok, Some(_)) => 3,
        _ => 2,
    });
    lines
}

fn subject_width(
    screen: &Screen<'_>,
    results: &[&CheckResult],
    deployment: Option<&DeploymentSummary>,
) -> usize {
    results
        .iter()
        .map(|r| columns(&label::subject(screen, r, deployment)))
        .filter(|width| *width <= SUBJECT)
        .max()
        .unwrap_or(0)
}

/// `  ok    prefill, decode  UCX_TLS=rc,cuda_copy: RDMA (deploy.yaml:23)`.
fn line(
    screen: &mut Screen<'_>,
    result: &CheckResult,
    deployment: Option<&DeploymentSummary>,
    width: usize,
) {
    let label = label::subject(screen, result, deployment);
    line_labelled(screen, result, &label, width);
}

fn line_labelled(screen: &mut Screen<'_>, result: &CheckResult, label: &str, width: usize) {
    let word = status_word(result.status);
    screen.push("  ");
    screen.paint(status_style(result.status), word);
    screen.pad(AFTER_WORD - 2 - word.len());
    let mut column = AFTER_WORD;
    if width > 0 {
        screen.push(label);
        let label_width = columns(label);
        screen.pad(width.saturating_sub(label_width) + 2);
        column += label_width.max(width) + 2;
    }
    let hang = AFTER_WORD + if width > 0 { width + 2 } else { 0 };
    let mut text = screen.line(&result.detail).into_owned();
    let places = label::places(screen, &result.sources);
    // Of many pods, a few files tell nothing.
    let few = result.subject.pods.len() <= FEW_PODS || screen.verbose();
    if !places.is_empty() && few {
        let _ = write!(text, " ({places})");
    }
    let name = screen.name(&result.name).into_owned();
    let mut tags: Vec<&str> = Vec::new();
    if result.status == Status::Skipped {
        tags.extend(result.reason.map(Reason::as_str));
        tags.extend(result.required.then_some("required"));
    }
    if screen.verbose() {
        tags.push(&name);
    }
    tags.extend(label::grade(result, screen.verbose()).filter(|_| result.status == Status::Ok));
    if !tags.is_empty() {
        let _ = write!(text, " [{}]", tags.join(", "));
    }
    screen.para(column, hang, PLAIN, &text);
    // What is merely worth knowing is left to --verbose where many pods are told.
    let note = result
        .note
        .as_deref()
        .filter(|n| *n != result.detail && (few || result.status != Status::Ok));
    for (word, more) in [("fix: ", result.fix.as_deref()), ("note: ", note)] {
        if let Some(more) = more {
            screen.pad(hang);
            screen.paint(DIM, word);
            let more = screen.line(more).into_owned();
            screen.para(hang + word.len(), hang + word.len(), PLAIN, &more);
        }
    }
}

/// Checks of what was observed in a place.
const OBSERVED: [&str; 4] = ["pod/", "node/", "nixl/", "collectives/"];

/// What is to be said about no deployment: what was observed in a place, then inputs.
fn inputs(screen: &mut Screen<'_>, rest: &[Entry<'_>]) {
    let all: Vec<&CheckResult> = rest.iter().map(|r| &**r).collect();
    findings(screen, &all, None);
    let (observed, inputs): (Vec<&CheckResult>, Vec<_>) = all
        .into_iter()
        .partition(|r| OBSERVED.iter().any(|group| r.name.starts_with(group)));
    lines_of(screen, "observed", &observed);
    lines_of(screen, "inputs", &inputs);
}

/// What holds and what was skipped, below a heading.
fn lines_of(screen: &mut Screen<'_>, heading: &str, all: &[&CheckResult]) {
    // A directory of templates says the same for every file: one line for all of them.
    let mut lines: Vec<(&CheckResult, Vec<&str>)> = Vec::new();
    for result in compact_lines(all) {
        let alike = |other: &CheckResult| {
            !screen.verbose()
                && result.subject.file.is_some()
                && other.subject.file.is_some()
                && other.status == result.status
                && other.reason == result.reason
                && without_place(other) == without_place(result)
                && other.note == result.note
                && other.fix == result.fix
        };
        let file = result.subject.file.as_deref();
        match lines.iter_mut().find(|(other, _)| alike(other)) {
            Some((_, files)) => files.extend(file),
            None => lines.push((result, file.into_iter().collect())),
        }
    }
    if lines.is_empty() {
        return;
    }
    screen.gap();
    screen.paint(BOLD, heading);
    screen.end();
    for (result, files) in lines {
        let mut label = match files.as_slice() {
            // The detail begins with it.
            [file] if result.detail.starts_with(file) => {
                line_labelled(screen, result, "", 0);
                continue;
            }
            files => label::list(screen, files.iter().copied()),
        };
        if files.len() > 1 {
            let width = columns(&label).min(1);
            let common = CheckResult {
                detail: without_place(result).to_owned(),
                ..result.clone()
            };
            line_labelled(screen, &common, &label, width);
            continue;
        }
        if label.is_empty() {
            label = result
                .subject
                .deployment
                .as_deref()
                .map(|name| screen.name(name).into_owned())
                .unwrap_or_default();
        }
        // Paths are too different in length for a column of their own.
        let width = columns(&label).min(1);
        line_labelled(screen, result, &label, width);
    }
}

/// What is said of an input, without the path and the position that it begins with.
fn without_place(result: &CheckResult) -> &str {
    let detail = result.detail.as_str();
    let Some(rest) = result
        .subject
        .file
        .as_deref()
        .and_then(|file| detail.strip_prefix(file))
    else {
        return detail;
    };
    rest.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit())
        .trim_start()
}

/// Commands on lines of their own, ready to be copied.
fn next(screen: &mut Screen<'_>, report: &Report) {
    if report.next.is_empty() {
        return;
    }
    screen.gap();
    screen.paint(BOLD, "next");
    screen.end();
    for step in &report.next {
        screen.push("  ");
        let command = screen.line(&step.command).into_owned();
        screen.push(&command);
        screen.end();
        let mut why = screen.line(&step.why).into_owned();
        if !step.read_only {
            why.push_str(" (not read-only)");
        }
        screen.pad(6);
        screen.para(6, 6, DIM, &why);
    }
}
