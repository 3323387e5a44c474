//! Exit codes: one pure function, the same for every output format.

use crate::result::Status;
use crate::verdict::{Readiness, Report};

/// From which readiness on a run exits with 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FailOn {
    /// Never: 1 and 3 become 0.
    Never,
    /// A failed check (the default).
    #[default]
    Fail,
    /// Also `degraded`.
    Warn,
    /// Also `degraded` and `unproven`.
    Unproven,
}

/// Process exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Nothing failed.
    Ok = 0,
    /// A check failed.
    Failed = 1,
    /// Wrong usage, configuration, or a path that does not exist.
    Usage = 2,
    /// Required evidence is missing, or part of the input was broken, and nothing failed.
    Inconclusive = 3,
    /// Nothing to check.
    Nothing = 4,
    /// The cluster cannot be reached or refuses access.
    Cluster = 5,
    /// Interrupted (Ctrl-C).
    Interrupted = 130,
    /// Terminated.
    Terminated = 143,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }
}

/// The exit code of a finished report.
pub fn exit_of(report: &Report, fail_on: FailOn) -> Exit {
    if report.missing_path {
        return Exit::Usage;
    }
    let failed = report
        .results
        .iter()
        .any(|r| r.status == Status::Fail && !r.collective);
    let wants_one = match fail_on {
        FailOn::Never => false,
        FailOn::Fail => failed,
        FailOn::Warn => failed || report.has_status(Status::Warn),
        FailOn::Unproven => {
            failed || report.has_status(Status::Warn) || report.readiness == Readiness::Unproven
        }
    };
    if wants_one {
        return Exit::Failed;
    }
    // Nothing was judged, so there is no verdict that could be ignored.
    if report.unreachable {
        return Exit::Cluster;
    }
    if report.nothing_to_check {
        // A broken input is not an absent one: it may have been the recipe.
        return match (report.broken_input, fail_on) {
            (true, FailOn::Never) => Exit::Ok,
            (true, _) => Exit::Inconclusive,
            (false, _) => Exit::Nothing,
        };
    }
    if (report.broken_input || report.readiness == Readiness::Inconclusive)
        && fail_on != FailOn::Never
        && !failed
    {
        return Exit::Inconclusive;
    }
    Exit::Ok
}
