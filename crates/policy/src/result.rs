//! Results about decisions.

use std::borrow::Cow;

use checks::Cause;
use model::{CheckResult, Grade, Place, Source, Status, Subject};

fn new(name: &'static str, status: Status, detail: String) -> CheckResult {
    CheckResult {
        name: Cow::Borrowed(name),
        status,
        detail,
        cause: None,
        fix: None,
        reason: None,
        note: None,
        grade: Grade::Declared,
        subject: Subject::default(),
        sources: Vec::new(),
        collective: false,
        required: false,
        deployment: None,
    }
}

/// Something that is worth knowing and changes no verdict.
pub(crate) fn noted(name: &'static str, detail: String, note: &str) -> CheckResult {
    CheckResult {
        note: Some(note.to_owned()),
        ..new(name, Status::Ok, detail)
    }
}

/// Something that is wrong with a decision.
pub(crate) fn wrong(
    name: &'static str,
    cause: &'static Cause,
    detail: String,
    place: &Place,
    label: String,
) -> CheckResult {
    CheckResult {
        cause: Some(cause.id),
        fix: Some(cause.fix.to_owned()),
        subject: Subject {
            file: Some(place.file.to_string()),
            ..Subject::default()
        },
        sources: vec![Source::primary(place, label)],
        ..new(name, Status::Warn, detail)
    }
}

/// Turns a finding into an ok result that tells what it was.
pub(crate) fn accept(result: &mut CheckResult, how: &str) {
    let was = was(result);
    result.status = Status::Ok;
    result.cause = None;
    result.fix = None;
    note(result, format!("{how} (was {was})"));
}

/// `warn: ucx-tls-tcp-only`.
pub(crate) fn was(result: &CheckResult) -> String {
    match result.cause {
        Some(cause) => format!("{}: {cause}", result.status.as_str()),
        None => result.status.as_str().to_owned(),
    }
}

/// Puts a note before the one that is there.
pub(crate) fn note(result: &mut CheckResult, note: String) {
    result.note = Some(match result.note.take() {
        Some(old) => format!("{note}; {old}"),
        None => note,
    });
}

/// Whether decisions are about it at all.
pub(crate) fn is_finding(result: &CheckResult) -> bool {
    matches!(result.status, Status::Warn | Status::Fail)
}
