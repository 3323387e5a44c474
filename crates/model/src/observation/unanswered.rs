//! Why a tool that was to be run on a machine told nothing, or not all.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::result::Reason;

/// Why a tool told nothing, or not all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unanswered {
    /// It was started, took too long and was ended.
    Hangs,
    /// It was not started: what ran before took all the time.
    NoTimeLeft,
    /// It printed too much; the rest was left out.
    TooMuch,
    /// It was not started: nothing could have bounded its output.
    Unbounded,
    /// It is not there.
    Absent,
    /// It was left out on purpose: it would load a kernel module, or has nothing to ask about.
    LeftOut(String),
    /// Collection as a whole ended before, or lost what it said.
    Lost(String),
}

impl Unanswered {
    /// The class.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Hangs | Self::NoTimeLeft => Reason::TimedOut,
            Self::TooMuch | Self::Lost(_) => Reason::Unreadable,
            Self::Unbounded | Self::Absent => Reason::NoTool,
            Self::LeftOut(_) => Reason::NotApplicable,
        }
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Cow<'_, str> = match self {
            Self::Hangs => "it took too long and was ended".into(),
            Self::NoTimeLeft => "no time was left for it: what ran before took too long".into(),
            Self::TooMuch => "it printed too much; the rest was left out".into(),
            Self::Unbounded => {
                "it was not run: `head`, which bounds its output, is not there".into()
            }
            Self::Absent => "it is not there".into(),
            Self::LeftOut(why) | Self::Lost(why) => why.as_str().into(),
        };
        f.write_str(&words)
    }
}
