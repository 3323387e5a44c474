//! `replay A --against B`: what changed.

use std::fmt::Write as _;

use checks::{Changed, Told};
use model::Report;
use report::Format;

use crate::output::Outputs;

/// Prints what changed from the earlier report to the later one.
pub(crate) fn print(before: &Report, after: &Report, outputs: &Outputs) -> Result<(), String> {
    outputs.only(&[Format::Text, Format::Json], "--against")?;
    let changes = checks::changes(before, after);
    outputs.write_texts(|format, _| match format {
        Format::Json => json(before, after, &changes),
        _ => text(before, after, &changes),
    })
}

fn json(before: &Report, after: &Report, changes: &[Changed]) -> String {
    let value = serde_json::json!({
        "before": {"readiness": before.readiness, "verdict": before.verdict},
        "after": {"readiness": after.readiness, "verdict": after.verdict},
        "changes": changes,
    });
    format!("{value:#}\n")
}

/// Those who changed alike that are named in text; json names all.
const ABOUT: usize = 6;

fn text(before: &Report, after: &Report, changes: &[Changed]) -> String {
    let mut out = String::new();
    let show = |told: &Told| {
        let cause = told.cause.map(|c| format!("[{c}]")).unwrap_or_default();
        report::visible(&format!("{}{cause}  {}", told.status.as_str(), told.detail))
    };
    for change in changes {
        let all: Vec<&str> = change.about.split("; ").collect();
        let first = all.get(..all.len().min(ABOUT)).unwrap_or_default();
        let about = report::visible(&first.join("; "));
        let more = match all.len().saturating_sub(first.len()) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let _infallible = writeln!(out, "{}  {about}{more}", change.name);
        for (word, told) in [("before", &change.before), ("after", &change.after)] {
            let said = told.as_ref().map_or_else(|| "nothing".to_owned(), show);
            let _infallible = writeln!(out, "  {word:<6}  {said}");
        }
    }
    if !changes.is_empty() {
        out.push('\n');
    }
    let _infallible = match changes.len() {
        0 => writeln!(out, "nothing changed"),
        1 => writeln!(out, "1 change"),
        n => writeln!(out, "{n} changes"),
    };
    for (word, report) in [("before", before), ("after", after)] {
        let _infallible = writeln!(
            out,
            "{word:<6}  {}  {}",
            report.readiness.as_str(),
            report::visible(&report.verdict)
        );
    }
    out
}
