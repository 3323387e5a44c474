//! A program that is given its text on standard input and says itself when it is done.

use std::time::Duration;

use model::pod::{Fault, FaultKind};
use tokio::time::Instant;

use crate::container::{Ask, End, listen};
use crate::door::Session;
use crate::kubectl_errors;
use crate::stop::Stop;

/// What a program gets, and its bounds.
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// Its text and its orders; standard input stays open behind them.
    pub input: &'a str,
    /// Bytes of its output that are read.
    pub max_bytes: usize,
    /// Bytes of its error output that are kept.
    pub max_errors: usize,
    /// How long all of it may take.
    pub timeout: Duration,
    /// Whether its last line is in this output.
    pub is_last: fn(&[u8]) -> bool,
}

/// What it printed.
#[derive(Debug, Default)]
pub struct Printed {
    /// Its output.
    pub out: Vec<u8>,
    /// Its error output.
    pub err: Vec<u8>,
    /// Why there is not more of it, where its last line is not there.
    pub fault: Option<Fault>,
}

/// How long its error output can be behind its last line.
const ERRORS_GRACE: Duration = Duration::from_secs(2);

/// Gives a program its text and listens until it is done.
pub async fn converse(session: Session, program: &Program<'_>, stop: &Stop) -> Printed {
    let ask = Ask {
        input: program.input,
        max_bytes: program.max_bytes,
        max_errors: program.max_errors,
        errors_grace: ERRORS_GRACE,
        is_last: program.is_last,
    };
    let heard = listen(session, &ask, Instant::now() + program.timeout, stop).await;
    let fault = match heard.end {
        End::Complete => None,
        End::Late => Some(Fault::new(
            FaultKind::TimedOut,
            format!("it was not done in {} s", program.timeout.as_secs()),
        )),
        End::Flood => Some(Fault::new(
            FaultKind::Flood,
            format!(
                "more than {} MiB came back",
                program.max_bytes / 1024 / 1024
            ),
        )),
        End::Stopped => Some(Fault::new(
            FaultKind::Interrupted,
            "the run was ended first",
        )),
        End::Told(ended) => {
            let errors = String::from_utf8_lossy(&heard.err);
            match kubectl_errors::explain(ended, &errors) {
                crate::Ended::Fault(fault) => Some(fault),
                crate::Ended::Code(0) => None,
                crate::Ended::Code(code) | crate::Ended::SeeErrors(code) => Some(Fault::new(
                    FaultKind::ScriptFailed,
                    format!("it ended with exit code {code}"),
                )),
            }
        }
    };
    Printed {
        out: heard.out,
        err: heard.err,
        fault,
    }
}
