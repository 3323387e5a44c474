//! `explain`: the documentation of checks and causes, from the checks themselves.

use std::fmt::Write as _;

use checks::{CHECKS, Cause, Check};

/// The text for one name, or the list of all.
pub(crate) fn text(name: Option<&str>) -> Result<String, String> {
    let Some(name) = name else { return Ok(list()) };
    if let Some(check) = checks::check(name) {
        return Ok(of_check(check));
    }
    if let Some((check, cause)) = checks::cause(name) {
        return Ok(of_cause(cause, Some(check)));
    }
    if let Some(cause) = checks::PROBLEMS
        .iter()
        .chain(policy::CAUSES)
        .find(|p| p.id == name)
    {
        return Ok(of_cause(cause, None));
    }
    if name == "input" {
        return Ok(of_inputs());
    }
    if name == "policy" || name.starts_with("policy/") {
        return Ok(of_policy());
    }
    // `env/ucx-rndv-scheme` names a setting that no check of its own judges.
    if let Some(setting) = name.strip_prefix("env/") {
        let variable = setting.to_ascii_uppercase().replace('-', "_");
        if settings::catalogue::lookup(&variable).is_some() {
            return Ok(format!(
                "{name}: the setting {variable}\n\nTold with its value, how it is set and what it does; see\n  check-interconnect vars {variable}\nThe check that tells it is env/settings.\n"
            ));
        }
    }
    let all = CHECKS
        .iter()
        .map(|c| c.name)
        .chain(
            CHECKS
                .iter()
                .flat_map(|c| c.causes.iter().chain(c.notes).map(|c| c.id)),
        )
        .chain(checks::PROBLEMS.iter().map(|p| p.id))
        .chain(policy::CAUSES.iter().map(|p| p.id));
    let close = settings::distance::closest(name, all);
    let hint = close
        .map(|c| format!("; did you mean {c}?"))
        .unwrap_or_default();
    Err(format!(
        "no check or cause is called '{}'{hint} (check-interconnect explain lists all)",
        name.escape_debug()
    ))
}

fn list() -> String {
    let mut out = String::from("Checks and their causes:\n");
    for check in CHECKS {
        let _infallible = writeln!(out, "\n{}\n    {}", check.name, check.title);
        for cause in check.causes {
            let _infallible = writeln!(out, "      {}", cause.id);
        }
        for note in check.notes {
            let _infallible = writeln!(out, "      {} (a note)", note.id);
        }
    }
    let _infallible = writeln!(out, "\ninput\n    what could not be read, and why");
    for problem in checks::PROBLEMS {
        let _infallible = writeln!(out, "      {}", problem.id);
    }
    let _infallible = writeln!(
        out,
        "\npolicy\n    suppressions and declarations that do not hold"
    );
    for problem in policy::CAUSES {
        let _infallible = writeln!(out, "      {}", problem.id);
    }
    out
}

/// What is said about decisions, as Markdown.
pub fn of_policy() -> String {
    let mut out = String::from(
        "# policy\n\nSuppressions in recipes, the baseline and check-interconnect.toml decide what findings count as. What they accept stays in the report as an ok result with a note, and what does not hold in them is a finding of its own.\n\n## Causes\n",
    );
    for cause in policy::CAUSES {
        let _infallible = write!(out, "\n### {}\n\n{}", cause.id, body(cause));
    }
    out
}

/// A check with all its causes, as Markdown.
pub fn of_check(check: &Check) -> String {
    let mut out = format!("# {}\n\n{}\n", check.name, check.doc().trim_end());
    if !check.causes.is_empty() {
        out.push_str("\n## Causes\n");
    }
    for cause in check.causes {
        let _infallible = write!(out, "\n### {}\n\n{}", cause.id, body(cause));
    }
    if !check.notes.is_empty() {
        out.push_str("\n## Notes\n\nThey change no verdict.\n");
    }
    for note in check.notes {
        let _infallible = write!(out, "\n### {}\n\n{}", note.id, body(note));
    }
    out
}

/// What can be wrong with an input, as Markdown.
pub fn of_inputs() -> String {
    let mut out = String::from(
        "# input\n\nEvery input is judged or named with the reason why not; nothing that was given is left out without a word.\n\n## Causes\n",
    );
    for problem in checks::PROBLEMS {
        let _infallible = write!(out, "\n### {}\n\n{}", problem.id, body(problem));
    }
    out
}

fn of_cause(cause: &Cause, check: Option<&Check>) -> String {
    let check = check
        .map(|c| format!("\nChecked by {} ({})\n", c.name, c.title))
        .unwrap_or_default();
    format!("# {}\n\n{}{check}", cause.id, body(cause))
}

fn body(cause: &Cause) -> String {
    let sentence = |text: &str| {
        let mut chars = text.chars();
        let first = chars
            .next()
            .map(|c| c.to_uppercase().collect::<String>())
            .unwrap_or_default();
        format!("{first}{}.", chars.as_str().trim_end_matches('.'))
    };
    format!(
        "{}\n\n- Why it matters: {}\n- Fix: {}\n- No problem if: {}\n- Source: {}\n",
        sentence(cause.what),
        cause.why,
        cause.fix,
        cause.quiet_if,
        cause.source
    )
}
