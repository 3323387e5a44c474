//! Builds results: a check states what it found, about whom, and where it stands.

use std::borrow::Cow;

use model::observation::{Fact, Missing, Origin};
use model::{CheckResult, Grade, Place, Reason, Role, Source, Status, Subject, Worker};

use crate::check::Cause;

/// Results of a run, in order.
#[derive(Default)]
pub(crate) struct Findings {
    results: Vec<CheckResult>,
    deployment: Option<String>,
}

impl Findings {
    pub(crate) fn of(deployment: &str) -> Self {
        Self {
            results: Vec::new(),
            deployment: Some(deployment.to_owned()),
        }
    }

    /// Of a run that is about no deployment.
    pub(crate) fn of_place() -> Self {
        Self::default()
    }

    pub(crate) fn into_results(self) -> Vec<CheckResult> {
        self.results
    }

    /// Results so far.
    pub(crate) fn results(&self) -> &[CheckResult] {
        &self.results
    }

    /// Adds a result.
    pub(crate) fn push(&mut self, mut result: Finding) {
        if self.deployment.is_some() {
            result.0.subject.deployment.clone_from(&self.deployment);
        }
        // A large run has a hundred thousand of them, and most have one entry where lists make room for four.
        result.0.sources.shrink_to_fit();
        result.0.subject.workers.shrink_to_fit();
        self.results.push(result.0);
    }
}

/// Places of one fact that a result names: the tool that said it first, and a second one that agrees.
const ORIGINS: usize = 2;

/// A line of an output. Its text is left out: a log line can hold anything.
fn origin_place(origin: &Origin) -> Place {
    Place {
        file: origin.from.file.as_str().into(),
        line: origin.line.unwrap_or(0),
        column: 0,
        text: "".into(),
        mark: (0, 0),
    }
}

/// A result that is being put together.
#[must_use]
pub(crate) struct Finding(CheckResult);

impl Finding {
    fn new(name: impl Into<Cow<'static, str>>, status: Status, detail: String) -> Self {
        Self(CheckResult {
            name: name.into(),
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
        })
    }

    /// The property holds.
    pub(crate) fn ok(name: impl Into<Cow<'static, str>>, detail: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, detail.into())
    }

    /// A failure mode that degrades.
    pub(crate) fn warn(
        name: impl Into<Cow<'static, str>>,
        cause: &'static Cause,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(name, Status::Warn, detail.into()).caused_by(cause)
    }

    /// A failure mode that blocks.
    pub(crate) fn fail(
        name: impl Into<Cow<'static, str>>,
        cause: &'static Cause,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(name, Status::Fail, detail.into()).caused_by(cause)
    }

    /// Not judged.
    pub(crate) fn skipped(
        name: impl Into<Cow<'static, str>>,
        reason: Reason,
        detail: impl Into<String>,
    ) -> Self {
        let mut finding = Self::new(name, Status::Skipped, detail.into());
        finding.0.reason = Some(reason);
        finding
    }

    /// Not judged because something failed on the way to it.
    pub(crate) fn fault(
        name: impl Into<Cow<'static, str>>,
        cause: &'static Cause,
        reason: Reason,
        detail: impl Into<String>,
    ) -> Self {
        let mut finding = Self::skipped(name, reason, detail).caused_by(cause);
        finding.0.grade = Grade::Assumed;
        finding
    }

    /// Not judged because a fact is missing, for the reason that the fact gives.
    pub(crate) fn lacking(
        name: impl Into<Cow<'static, str>>,
        missing: &Missing,
        what: &str,
    ) -> Self {
        let mut finding = Self::skipped(name, missing.reason, format!("{what}: {}", missing.why));
        finding.0.grade = Grade::Assumed;
        finding
    }

    /// A verdict needs what was skipped.
    pub(crate) fn required(mut self) -> Self {
        self.0.required = true;
        self
    }

    fn caused_by(mut self, cause: &'static Cause) -> Self {
        self.0.cause = Some(cause.id);
        self.0.fix = Some(cause.fix.to_owned());
        self
    }

    /// Its sentence.
    pub(crate) fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The name of its cause.
    pub(crate) fn cause(&self) -> Option<&'static str> {
        self.0.cause
    }

    /// A fix that fits better than the cause's general one.
    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.0.fix = Some(fix.into());
        self
    }

    /// Something worth knowing that changes no verdict. Several are told one after another.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        let note = note.into();
        self.0.note = Some(match self.0.note.take() {
            Some(before) => format!("{before}; {note}"),
            None => note,
        });
        self
    }

    /// A note that the check lists.
    pub(crate) fn told(self, note: &'static Cause) -> Self {
        self.note(note.why)
    }

    /// Evidence grade.
    pub(crate) fn grade(mut self, grade: Grade) -> Self {
        self.0.grade = grade;
        self
    }

    /// It belongs to collective communication, not to KV transfer.
    pub(crate) fn collective(mut self) -> Self {
        self.0.collective = true;
        self
    }

    /// About one worker.
    pub(crate) fn worker(mut self, worker: &Worker) -> Self {
        self.0.subject.roles.push(worker.role);
        self.0.subject.workers.push(worker.name.clone());
        self.0.subject.container = Some(worker.container.clone());
        self
    }

    /// About several workers: a pair, or all of a deployment.
    pub(crate) fn workers<'w>(mut self, workers: impl IntoIterator<Item = &'w Worker>) -> Self {
        for worker in workers {
            if !self.0.subject.roles.contains(&worker.role) {
                self.0.subject.roles.push(worker.role);
            }
            if !self.0.subject.workers.contains(&worker.name) {
                self.0.subject.workers.push(worker.name.clone());
            }
        }
        self
    }

    /// About a role as a whole.
    pub(crate) fn role(mut self, role: Role) -> Self {
        if !self.0.subject.roles.contains(&role) {
            self.0.subject.roles.push(role);
        }
        self
    }

    /// The line that the finding is about.
    pub(crate) fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.0.sources.push(Source::primary(place, label));
        self
    }

    /// About several pods.
    pub(crate) fn pods(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.0.subject.pods.extend(names);
        self
    }

    /// About whom.
    pub(crate) fn about(mut self, subject: &Subject) -> Self {
        self.0.subject.clone_from(subject);
        self
    }

    /// About a device, a port or an interface.
    pub(crate) fn device(mut self, name: impl Into<String>) -> Self {
        self.0.subject.device = Some(name.into());
        self
    }

    /// Read on a machine, or in its output: the first places where the fact stands.
    pub(crate) fn seen<T>(self, fact: &Fact<T>, label: &str) -> Self {
        self.read_at(fact.sources(), label)
    }

    /// Read on a machine, or in its output.
    pub(crate) fn read_at(mut self, origins: &[Origin], label: &str) -> Self {
        self.0.grade = Grade::Observed;
        for origin in origins.iter().take(ORIGINS) {
            let place = origin_place(origin);
            if !self.0.sources.iter().any(|s| s.place == place) {
                self.0.sources.push(Source::primary(&place, label));
            }
        }
        self
    }

    /// A line that explains it.
    pub(crate) fn context(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.0.sources.push(Source::context(place, label));
        self
    }
}
