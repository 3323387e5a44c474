//! What every parser of a tool's output is.

use std::sync::Arc;

use model::Observation;
use model::observation::{Completeness, Origin, Provenance};

use crate::command::Command;

/// Where a line is.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) from: &'a Arc<Provenance>,
    pub(crate) line: u32,
}

impl At<'_> {
    pub(crate) fn origin(self) -> Origin {
        Origin::line(self.from, self.line)
    }
}

/// Reads one output of one tool, line by line. Any text is accepted.
pub(crate) trait Parser {
    /// Takes a line, or says that it is none of this tool.
    fn take(&mut self, line: &str, at: At<'_>, out: &mut Observation) -> bool;

    /// The output ends here.
    fn finish(&mut self, _at: At<'_>, _out: &mut Observation) -> Completeness {
        Completeness::Whole
    }
}

/// How to open a parser: it is told the command where the text shows one.
pub(crate) type Open = fn(Option<&Command>) -> Box<dyn Parser>;

/// Whether a line (and the one after it) can only be the first of a tool's output.
pub(crate) type Starts = fn(&str, &str) -> bool;
