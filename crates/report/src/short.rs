//! `short`: problems, counts and the verdict, one line each, to paste into a chat or a ticket.

use model::{CheckResult, Report, Status};

use crate::screen::{BOLD, Screen, readiness_style, status_style, status_word};
use crate::{Options, group, label};

/// The lines.
pub(crate) fn render(report: &Report, options: &Options) -> String {
    let groups = group::groups_of(report, is_problem);
    let mut screen = Screen::new(options);
    let mut problems: Vec<(&CheckResult, String, String)> = Vec::new();
    for result in &groups.rest {
        let who = result
            .subject
            .deployment
            .as_ref()
            .or(result.subject.file.as_ref())
            .or(result.subject.pod.as_ref())
            .map(|name| screen.name(name).into_owned())
            .unwrap_or_default();
        problems.push((
            result,
            position(&screen, result, &who),
            detail(&screen, result, ""),
        ));
    }
    for (deployment, group) in report.deployments.iter().zip(&groups.deployments) {
        for result in &group.results {
            let label = label::subject(&screen, result, Some(deployment));
            let who = screen.name(&deployment.name);
            problems.push((
                result,
                position(&screen, result, &who),
                detail(&screen, result, &label),
            ));
        }
    }
    problems.sort_by_key(|(result, ..)| rank(result.status));
    for (result, position, detail) in problems {
        screen.paint(BOLD, &position);
        let word = word(&screen, result);
        screen.paint(status_style(result.status), &word);
        screen.push(&detail);
        screen.end();
    }
    let counts = counts_line(&screen, report);
    let scope = label::list(&screen, report.scope.iter().map(String::as_str));
    screen.push(&format!(
        "{counts}  (check-interconnect {} {}{}{scope})",
        options.version,
        report.command,
        if scope.is_empty() { "" } else { " " },
    ));
    screen.end();
    verdict_line(&mut screen, report);
    screen.finish()
}

/// A skipped check that the verdict needs is a problem too: it is what makes a run inconclusive.
fn is_problem(result: &CheckResult) -> bool {
    match result.status {
        Status::Fail | Status::Warn => true,
        Status::Skipped => result.required,
        Status::Ok => false,
    }
}

/// Worst first.
pub(crate) fn rank(status: Status) -> u8 {
    match status {
        Status::Fail => 0,
        Status::Warn => 1,
        Status::Skipped => 2,
        Status::Ok => 3,
    }
}

/// `FAIL[cause]`; the reason for what was skipped.
pub(crate) fn word(screen: &Screen<'_>, result: &CheckResult) -> String {
    let about = match result.status {
        Status::Skipped => result.reason.map(model::Reason::as_str),
        _ => result.cause,
    };
    // A name can hold a variable's name, which comes from an input.
    let about = screen.name(about.unwrap_or(&result.name));
    format!("{}[{about}]", status_word(result.status))
}

/// `file:line:column: `, the form of compilers, which editors and terminals jump to; else who it is about.
fn position(screen: &Screen<'_>, result: &CheckResult, who: &str) -> String {
    let place = result
        .sources
        .iter()
        .find(|s| s.primary)
        .or(result.sources.first())
        .map(|s| &s.place)
        .filter(|place| place.line > 0);
    match place {
        Some(place) => format!(
            "{}:{}:{}: ",
            screen.name(&place.file),
            place.line,
            place.column
        ),
        None if who.is_empty() => String::new(),
        None => format!("{who}: "),
    }
}

/// What follows the word.
fn detail(screen: &Screen<'_>, result: &CheckResult, label: &str) -> String {
    format!(
        " {}{}{}",
        label::prefix(screen, label, result),
        screen.line(&result.detail),
        if result.collective {
            " (collectives, not KV transfer)"
        } else {
            ""
        },
    )
}

/// `1 fail · 1 warn · 14 ok · 1 skipped`, and what was not looked at.
pub(crate) fn counts_line(screen: &Screen<'_>, report: &Report) -> String {
    let counts = report.counts();
    let coverage = &report.coverage;
    let mut parts = vec![
        format!("{} fail", counts.fail),
        format!("{} warn", counts.warn),
        match coverage.accepted.words() {
            words if words.is_empty() => format!("{} ok", counts.ok),
            words => format!("{} ok ({words})", counts.ok),
        },
        format!("{} skipped", counts.skipped),
    ];
    if coverage.inputs_not_read > 0 {
        let plural = if coverage.inputs_not_read == 1 {
            ""
        } else {
            "s"
        };
        parts.push(format!(
            "{} input{plural} not read",
            coverage.inputs_not_read
        ));
    }
    if coverage.pairs_tested > 0 {
        parts.push(format!(
            "{} of {} pairs proven",
            coverage.pairs_proven, coverage.pairs_required
        ));
    }
    parts.join(screen.dot())
}

/// The last line of both formats for people. Never wrapped: it is what is grepped and pasted.
pub(crate) fn verdict_line(screen: &mut Screen<'_>, report: &Report) {
    screen.paint(BOLD, "verdict");
    screen.push("  ");
    screen.paint(readiness_style(report.readiness), report.readiness.as_str());
    screen.push("  ");
    let text = screen.line(&report.verdict).into_owned();
    screen.push(&text);
    screen.end();
}
