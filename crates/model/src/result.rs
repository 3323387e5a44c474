//! What one check says about one subject.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::place::Place;
use crate::worker::Role;

/// The four things that a check can say.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The property holds.
    Ok,
    /// It runs, but slowly, unverifiably, or on an assumption.
    Warn,
    /// It cannot work, or certainly takes the slow path.
    Fail,
    /// Not judged; the reason says why.
    Skipped,
}

impl Status {
    /// The word that every format prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
            Self::Skipped => "skipped",
        }
    }
}

/// How well a result is supported.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// A default or convention; nothing was read.
    Assumed,
    /// Configuration says so.
    Declared,
    /// One kind of evidence from a running machine.
    Observed,
    /// Two independent kinds of evidence that agree.
    Proven,
}

impl Grade {
    /// The word that every format prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Assumed => "assumed",
            Self::Declared => "declared",
            Self::Observed => "observed",
            Self::Proven => "proven",
        }
    }
}

/// Why a check was skipped.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The question does not arise here.
    NotApplicable,
    /// Switched off by the user.
    Disabled,
    /// The tool or library that would tell is not there.
    NoTool,
    /// Access was refused.
    NoPermission,
    /// It took too long.
    TimedOut,
    /// The process or pod is not running.
    NotRunning,
    /// The input could not be read or parsed.
    Unreadable,
    /// Only the running pod knows.
    Dynamic,
    /// The input is a part of something that is not here.
    NotVisible,
    /// This version of the tool cannot do it.
    NotBuilt,
}

impl Reason {
    /// The word that every format prints.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "not-applicable",
            Self::Disabled => "disabled",
            Self::NoTool => "no-tool",
            Self::NoPermission => "no-permission",
            Self::TimedOut => "timed-out",
            Self::NotRunning => "not-running",
            Self::Unreadable => "unreadable",
            Self::Dynamic => "dynamic",
            Self::NotVisible => "not-visible",
            Self::NotBuilt => "not-built",
        }
    }
}

/// What a result is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// Name of the deployment; `None` for results about an input as a whole.
    pub deployment: Option<String>,
    /// Roles: one for a worker, two for a pair.
    pub roles: Vec<Role>,
    /// Worker (component, service or workload) names.
    pub workers: Vec<String>,
    /// Container.
    pub container: Option<String>,
    /// Pod.
    pub pod: Option<String>,
    /// Pods, where it is about several.
    pub pods: Vec<String>,
    /// Node.
    pub node: Option<String>,
    /// Device or interface.
    pub device: Option<String>,
    /// Input file.
    pub file: Option<String>,
}

/// A place with what is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Where.
    pub place: Place,
    /// Whose line it is and what it says, such as `decode: no RDMA transport in this list`.
    pub label: String,
    /// The line that the finding is about, as against lines that explain it.
    pub primary: bool,
}

impl Source {
    /// The line that a finding is about.
    pub fn primary(place: &Place, label: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            label: label.into(),
            primary: true,
        }
    }

    /// A line that explains a finding.
    pub fn context(place: &Place, label: impl Into<String>) -> Self {
        Self {
            place: place.clone(),
            label: label.into(),
            primary: false,
        }
    }
}

/// One check on one subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The property, such as `env/ucx-tls`.
    pub name: Cow<'static, str>,
    /// What is said.
    pub status: Status,
    /// One line.
    pub detail: String,
    /// The failure mode, where the status is not ok.
    pub cause: Option<&'static str>,
    /// What to do, where there is something to do.
    pub fix: Option<String>,
    /// Why it was skipped.
    pub reason: Option<Reason>,
    /// Something worth knowing that changes no verdict.
    pub note: Option<String>,
    /// How well it is supported.
    pub grade: Grade,
    /// What it is about.
    pub subject: Subject,
    /// Where it was read.
    pub sources: Vec<Source>,
    /// Judged apart: collective communication (NCCL) never enters KV readiness.
    pub collective: bool,
    /// A skipped result that the verdict needs makes it inconclusive.
    pub required: bool,
    /// Index of its deployment in the report: names need not be unique.
    pub deployment: Option<usize>,
}
