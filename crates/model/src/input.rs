//! What became of each input.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Why an input, or a part of it, could not be judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputProblem {
    /// Kebab-case cause, such as `input-not-utf8`.
    pub cause: Cow<'static, str>,
    /// What was got and what was expected.
    pub detail: String,
    /// What to try.
    pub fix: String,
    /// 1-based line and column, where there is one.
    pub position: Option<(u32, u32)>,
    /// A document that cannot be judged for a good reason (a template) is skipped; anything else is broken.
    pub outcome: Outcome,
}

/// How bad a problem of an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// Read, with something to say about it.
    Noted,
    /// Nothing in it to judge.
    Empty,
    /// Left out for a stated reason.
    Skipped,
    /// Broken or unreadable: the report cannot be complete.
    Broken,
    /// The path does not exist.
    Missing,
}

/// One input file or stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The path as given, or `-`.
    pub path: Arc<str>,
    /// Documents that were read from it.
    pub documents: u32,
    /// Problems met on the way.
    pub problems: Vec<InputProblem>,
}
