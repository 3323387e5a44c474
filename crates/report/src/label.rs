//! Who a result is about, and where it was read, in few words.

use std::collections::HashSet;
use std::fmt::Write as _;

use model::verdict::DeploymentSummary;
use model::{CheckResult, Grade, Source};

use crate::names;
use crate::screen::Screen;

/// Names that a line lists before it only counts them.
const NAMES: usize = 3;
/// Places that a line lists.
const PLACES: usize = 3;

/// Roles, and workers only where not all workers of these roles are meant.
pub(crate) fn subject(
    screen: &Screen<'_>,
    result: &CheckResult,
    deployment: Option<&DeploymentSummary>,
) -> String {
    let subject = &result.subject;
    let mut roles = subject.roles.clone();
    roles.sort_unstable();
    roles.dedup();
    let mut label = roles
        .iter()
        .map(|role| role.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let all_meant = deployment.is_some_and(|deployment| {
        let named: HashSet<&str> = subject.workers.iter().map(String::as_str).collect();
        deployment
            .workers
            .iter()
            .filter(|worker| roles.contains(&worker.role))
            .all(|worker| named.contains(worker.name.as_str()))
    });
    let of_pods = subject.pod.is_some() || !subject.pods.is_empty();
    if !subject.workers.is_empty() && (roles.is_empty() || !all_meant && !of_pods) {
        let workers = list(screen, subject.workers.iter().map(String::as_str));
        label = if label.is_empty() {
            workers
        } else {
            format!("{label} ({workers})")
        };
    }
    let machine = subject.pod.as_ref().or(subject.node.as_ref());
    if !subject.pods.is_empty() {
        pods(screen, result, &mut label);
    } else if label.is_empty() {
        label = machine
            .or(subject.file.as_ref())
            .map(|name| screen.name(name).into_owned())
            .unwrap_or_default();
    } else if let Some(machine) = machine {
        let _ = write!(label, " ({})", screen.name(machine));
    }
    if let Some(device) = &subject.device {
        if !label.is_empty() {
            label.push(' ');
        }
        label.push_str(&screen.name(device));
    }
    label
}

/// `decode ×120 pods`; by name where somebody has to act on them, or where they are few.
fn pods(screen: &Screen<'_>, result: &CheckResult, label: &mut String) {
    let all = &result.subject.pods;
    if !label.is_empty() {
        label.push(' ');
    }
    if all.len() <= NAMES || result.required {
        let names = list(screen, all.iter().map(String::as_str));
        let _ = write!(label, "({names})");
    } else {
        let _ = write!(label, "{}{} pods", screen.times(), all.len());
    }
}

/// Whether a detail leaves it to the label to say which pods it is about.
fn pods_unsaid(result: &CheckResult) -> bool {
    let subject = &result.subject;
    let mut named = subject.pod.iter().chain(&subject.pods);
    let few = subject.pods.len() <= NAMES;
    few && (subject.pod.is_some() || !subject.pods.is_empty())
        && !named.all(|pod| result.detail.contains(pod.as_str()))
}

/// What goes before a detail that stands alone. Most details name their roles; then it is empty.
pub(crate) fn prefix(screen: &Screen<'_>, label: &str, result: &CheckResult) -> String {
    let roles_said = !result.subject.roles.is_empty()
        && result
            .subject
            .roles
            .iter()
            .all(|role| result.detail.contains(role.as_str()));
    // The line below says the file of an input, and the column too.
    let file_shown = result.subject.roles.is_empty()
        && result.subject.deployment.is_none()
        && !result.sources.is_empty();
    if roles_said && pods_unsaid(result) {
        let subject = &result.subject;
        let names: Vec<&str> = subject
            .pod
            .iter()
            .chain(&subject.pods)
            .map(String::as_str)
            .collect();
        return format!("{}: ", list(screen, names));
    }
    if label.is_empty() || roles_said || file_shown || result.detail.contains(label) {
        String::new()
    } else {
        format!("{label}: ")
    }
}

/// Safe names, shortened.
pub(crate) fn list<'n>(screen: &Screen<'_>, all: impl IntoIterator<Item = &'n str>) -> String {
    let most = if screen.verbose() { usize::MAX } else { NAMES };
    let (shown, hidden) = names::capped(all, most);
    let mut text = shown
        .iter()
        .map(|name| screen.name(name))
        .collect::<Vec<_>>()
        .join(", ");
    if hidden > 0 {
        let _ = write!(text, " and {hidden} more");
    }
    text
}

/// `deploy.yaml:23, 57` for the lines that a result is about, `line 23, 57` where the file is said already; empty
/// where there are none.
pub(crate) fn places(screen: &Screen<'_>, sources: &[Source]) -> String {
    let mut chosen: Vec<&Source> = sources.iter().filter(|s| s.primary).collect();
    if chosen.is_empty() {
        chosen = sources.iter().collect();
    }
    let mut seen = HashSet::new();
    chosen.retain(|s| seen.insert((&s.place.file, s.place.line)));
    let hidden = if screen.verbose() || chosen.len() <= PLACES {
        0
    } else {
        chosen.drain(PLACES..).count()
    };
    let mut text = String::new();
    let mut last_file = None;
    for source in chosen {
        let place = &source.place;
        if !text.is_empty() {
            text.push_str(", ");
        }
        if last_file != Some(&place.file) && screen.is_about(&place.file) && place.line > 0 {
            text.push_str(if text.is_empty() { "line " } else { "" });
            last_file = Some(&place.file);
        } else if last_file != Some(&place.file) {
            text.push_str(&screen.name(&place.file));
            if place.line > 0 {
                text.push(':');
            }
            last_file = Some(&place.file);
        }
        if place.line > 0 {
            text.push_str(&place.line.to_string());
        }
    }
    if hidden > 0 {
        text.push_str(", ");
        text.push_str(screen.ellipsis());
    }
    text
}

/// The grade, where it is not what anybody would take it for: configuration that was read, a state
/// that was seen.
pub(crate) fn grade(result: &CheckResult, verbose: bool) -> Option<&'static str> {
    match result.grade {
        Grade::Assumed | Grade::Proven => Some(result.grade.as_str()),
        Grade::Declared | Grade::Observed => verbose.then(|| result.grade.as_str()),
    }
}
