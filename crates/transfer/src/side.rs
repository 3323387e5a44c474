//! The two workers of a pair.

use serde::{Deserialize, Serialize};

/// One of the two workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// It has the KV cache first.
    Prefill,
    /// It needs it.
    Decode,
}

impl Side {
    /// Both, in the order of the data.
    pub const ALL: [Self; 2] = [Self::Prefill, Self::Decode];

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Prefill => Self::Decode,
            Self::Decode => Self::Prefill,
        }
    }

    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prefill => "prefill",
            Self::Decode => "decode",
        }
    }
}

/// One thing for each worker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Both<T> {
    /// The prefill worker's.
    pub prefill: T,
    /// The decode worker's.
    pub decode: T,
}

impl<T> Both<T> {
    /// The one of a side.
    pub fn of(&self, side: Side) -> &T {
        match side {
            Side::Prefill => &self.prefill,
            Side::Decode => &self.decode,
        }
    }

    /// The one of a side.
    pub fn of_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Prefill => &mut self.prefill,
            Side::Decode => &mut self.decode,
        }
    }
}
