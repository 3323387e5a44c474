//! A fact: what was read and where, or why it could not be read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::section::Provenance;
use crate::result::Reason;

/// Readings of one fact that are kept apart; a log can repeat itself for ever.
const MAX_READINGS: usize = 64;
/// Sources that are kept for one reading.
const MAX_SOURCES: usize = 8;

/// One place where a fact was read: a line of a saved output, or a file of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Which output or file.
    #[serde(flatten)]
    pub from: Arc<Provenance>,
    /// 1-based line; `None` where the file as a whole is the fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Origin {
    /// A line of an output.
    pub fn line(from: &Arc<Provenance>, line: u32) -> Self {
        Self {
            from: Arc::clone(from),
            line: Some(line),
        }
    }

    /// A file as a whole.
    pub fn whole(from: &Arc<Provenance>) -> Self {
        Self {
            from: Arc::clone(from),
            line: None,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.from.file),
            None => f.write_str(&self.from.file),
        }
    }
}

/// One value, and every place that says the same without another value in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading<T> {
    /// What was read.
    pub value: T,
    /// Where: the first places only, when there are very many.
    pub sources: Vec<Origin>,
}

/// Everything that was read about one fact, in the order of reading; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen<T> {
    first: Reading<T>,
    later: Vec<Reading<T>>,
}

/// Why a fact is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The class.
    pub reason: Reason,
    /// One sentence.
    pub why: Cow<'static, str>,
}

/// What a fact says that nobody looked for.
const NOT_SHOWN: &str = "nothing that was read shows it";

/// A value with its sources, or why it is not known: there is no third way.
///
/// Several readings are kept where they differ: outputs of several moments, tools or pods. [`Fact::value`] is
/// the latest; [`Fact::agreed`] says whether all are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact<T> {
    /// Read at least once.
    Seen(Seen<T>),
    /// Not read.
    Missing(Missing),
}

impl<T> Default for Fact<T> {
    fn default() -> Self {
        Self::Missing(Missing {
            reason: Reason::NotVisible,
            why: Cow::Borrowed(NOT_SHOWN),
        })
    }
}

impl<T> Fact<T> {
    /// Read at one place.
    pub fn seen(value: T, origin: Origin) -> Self {
        Self::Seen(Seen {
            first: Reading {
                value,
                sources: vec![origin],
            },
            later: Vec::new(),
        })
    }

    /// Not known, and why.
    pub fn missing(reason: Reason, why: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing(Missing {
            reason,
            why: why.into(),
        })
    }

    /// The latest value, or why there is none.
    pub fn get(&self) -> Result<&T, &Missing> {
        match self {
            Self::Seen(seen) => Ok(&seen.later.last().unwrap_or(&seen.first).value),
            Self::Missing(missing) => Err(missing),
        }
    }

    /// The latest value.
    pub fn value(&self) -> Option<&T> {
        self.get().ok()
    }

    /// Whether it was read.
    pub fn is_seen(&self) -> bool {
        matches!(self, Self::Seen(_))
    }

    /// Nobody looked for it: neither a value nor a particular reason.
    pub fn is_untouched(&self) -> bool {
        matches!(self, Self::Missing(missing) if missing.why == NOT_SHOWN)
    }

    /// Every reading, in order.
    pub fn readings(&self) -> impl Iterator<Item = &Reading<T>> {
        let (first, later): (_, &[Reading<T>]) = match self {
            Self::Seen(seen) => (Some(&seen.first), &seen.later),
            Self::Missing(_) => (None, &[]),
        };
        first.into_iter().chain(later)
    }

    /// Places of the latest value.
    pub fn sources(&self) -> &[Origin] {
        match self {
            Self::Seen(seen) => &seen.later.last().unwrap_or(&seen.first).sources,
            Self::Missing(_) => &[],
        }
    }
}

impl<T: PartialEq> Fact<T> {
    /// Whether all readings are equal; true where nothing was read.
    pub fn agreed(&self) -> bool {
        match self {
            Self::Seen(seen) => seen.later.iter().all(|r| r.value == seen.first.value),
            Self::Missing(_) => true,
        }
    }

    /// Adds a reading.
    pub fn see(&mut self, value: T, origin: Origin) {
        self.add(Reading {
            value,
            sources: vec![origin],
        });
    }

    /// Says why there is no value, where there is none and no reason yet.
    pub fn miss(&mut self, reason: Reason, why: impl Into<Cow<'static, str>>) {
        if self.is_untouched() {
            *self = Self::missing(reason, why);
        }
    }

    fn add(&mut self, reading: Reading<T>) {
        let Self::Seen(seen) = self else {
            *self = Self::Seen(Seen {
                first: reading,
                later: Vec::new(),
            });
            return;
        };
        let last = seen.later.last_mut().unwrap_or(&mut seen.first);
        if last.value == reading.value {
            let room = MAX_SOURCES.saturating_sub(last.sources.len());
            for origin in reading.sources.into_iter().take(room) {
                if !last.sources.contains(&origin) {
                    last.sources.push(origin);
                }
            }
        } else if seen.later.len() < MAX_READINGS {
            seen.later.push(reading);
        } else if let Some(last) = seen.later.last_mut() {
            // The latest value must stay the latest.
            *last = reading;
        }
    }
}

/// `{"value": …, "sources": […]}`, `{"readings": [{"value": …, "sources": […]}, …]}` where they differ, or
/// `{"missing": reason, "why": …}`: nothing is lost on the way out and back.
impl<T: Serialize> Serialize for Fact<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Seen(seen) if seen.later.is_empty() => {
                map.serialize_entry("value", &seen.first.value)?;
                map.serialize_entry("sources", &seen.first.sources)?;
            }
            Self::Seen(_) => {
                map.serialize_entry("readings", &self.readings().collect::<Vec<_>>())?;
            }
            Self::Missing(missing) => {
                map.serialize_entry("missing", &missing.reason)?;
                map.serialize_entry("why", &missing.why)?;
            }
        }
        map.end()
    }
}

/// The three forms of a fact in one.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
struct Written<T> {
    #[serde(default, deserialize_with = "present")]
    value: Option<T>,
    #[serde(default)]
    sources: Vec<Origin>,
    #[serde(default)]
    readings: Vec<Reading<T>>,
    missing: Option<Reason>,
    #[serde(default)]
    why: String,
}

/// A value that is there, also where it is `null`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fact<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        if let Some(value) = written.value {
            let sources = written.sources;
            return Ok(Self::Seen(Seen {
                first: Reading { value, sources },
                later: Vec::new(),
            }));
        }
        let mut readings = written.readings.into_iter();
        if let Some(first) = readings.next() {
            return Ok(Self::Seen(Seen {
                first,
                later: readings.collect(),
            }));
        }
        match written.missing {
            Some(reason) => Ok(Self::missing(reason, written.why)),
            None => Err(D::Error::custom(
                "a fact with neither value nor readings, and not missing either",
            )),
        }
    }
}

/// Joins what two sources say about the same thing; nothing that either says is lost.
pub trait Merge {
    /// Adds what another source says, read later.
    fn merge(&mut self, later: Self);
}

impl<T: PartialEq> Merge for Fact<T> {
    fn merge(&mut self, later: Self) {
        match later {
            Self::Seen(seen) => {
                self.add(seen.first);
                for reading in seen.later {
                    self.add(reading);
                }
            }
            Self::Missing(missing) => self.miss(missing.reason, missing.why),
        }
    }
}

/// Values that take much room are boxed where few of them stand in a map, which keeps room for eleven.
impl<V: Merge> Merge for Box<V> {
    fn merge(&mut self, later: Self) {
        (**self).merge(*later);
    }
}

impl<K: Ord, V: Merge> Merge for BTreeMap<K, V> {
    fn merge(&mut self, later: Self) {
        for (key, value) in later {
            match self.get_mut(&key) {
                Some(held) => held.merge(value),
                None => {
                    self.insert(key, value);
                }
            }
        }
    }
}

/// Lists of readings, each with its own sources: all are kept, in order.
impl<T> Merge for Vec<T> {
    fn merge(&mut self, mut later: Self) {
        self.append(&mut later);
    }
}

/// Merges a struct field by field.
macro_rules! merge_fields {
    ($type:ty { $($field:ident),+ $(,)? }) => {
        impl $crate::observation::fact::Merge for $type {
            fn merge(&mut self, later: Self) {
                // Every field is named, so that a new one cannot be forgotten.
                let Self { $($field),+ } = later;
                $( $crate::observation::fact::Merge::merge(&mut self.$field, $field); )+
            }
        }
    };
}
pub(super) use merge_fields;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Tool;

    fn origin(file: &str, line: u32) -> Origin {
        let from = Arc::new(Provenance {
            file: file.to_owned(),
            tool: Tool::RdmaLink,
            section: 0,
            place: None,
            command: None,
        });
        Origin::line(&from, line)
    }

    #[test]
    fn a_fact_keeps_who_said_what_and_in_which_order() {
        let mut fact = Fact::seen("down", origin("a", 1));
        fact.see("down", origin("a", 2));
        fact.see("up", origin("b", 7));
        fact.see("down", origin("b", 9));
        assert!(!fact.agreed());
        assert_eq!(fact.value(), Some(&"down"));
        let readings: Vec<(&str, usize)> = fact
            .readings()
            .map(|r| (r.value, r.sources.len()))
            .collect();
        assert_eq!(readings, [("down", 2), ("up", 1), ("down", 1)]);
        assert_eq!(
            fact.sources().first().map(ToString::to_string),
            Some("b:9".to_owned())
        );
    }

    #[test]
    fn a_missing_fact_has_a_reason_that_a_value_replaces() {
        let mut fact: Fact<u32> = Fact::default();
        assert!(fact.is_untouched());
        fact.merge(Fact::missing(Reason::NoPermission, "it may not be read"));
        assert_eq!(fact.get().map_err(|m| m.reason), Err(Reason::NoPermission));
        // The first reason stays, and a value is worth more than any.
        fact.merge(Fact::missing(Reason::NoTool, "no tool"));
        assert_eq!(fact.get().map_err(|m| m.reason), Err(Reason::NoPermission));
        fact.merge(Fact::seen(4, origin("c", 1)));
        fact.merge(Fact::missing(Reason::NoTool, "no tool"));
        assert_eq!(fact.value(), Some(&4));
    }

    #[test]
    fn endless_readings_keep_the_first_and_the_latest() {
        let mut fact = Fact::default();
        for n in 0..10_000_u32 {
            fact.see(n, origin("d", n));
        }
        assert!(fact.readings().count() <= MAX_READINGS + 1);
        assert_eq!(fact.readings().next().map(|r| r.value), Some(0));
        assert_eq!(fact.value(), Some(&9_999));
    }

    #[test]
    fn facts_go_out_as_json_and_come_back_whole() -> Result<(), serde_json::Error> {
        let seen = Fact::seen(1_u32, origin("e", 3));
        assert_eq!(
            serde_json::to_string(&seen)?,
            r#"{"value":1,"sources":[{"file":"e","tool":"rdma-link","section":0,"line":3}]}"#
        );
        let missing: Fact<u32> = Fact::missing(Reason::NoTool, "no tool");
        assert_eq!(
            serde_json::to_string(&missing)?,
            r#"{"missing":"no-tool","why":"no tool"}"#
        );
        let mut several = seen.clone();
        several.see(2, origin("f", 1));
        several.see(1, origin("f", 9));
        for fact in [seen, missing, several, Fact::default()] {
            let text = serde_json::to_string(&fact)?;
            assert_eq!(serde_json::from_str::<Fact<u32>>(&text)?, fact, "{text}");
        }
        let nothing: Fact<Option<u32>> = Fact::seen(None, origin("g", 1));
        let text = serde_json::to_string(&nothing)?;
        assert_eq!(serde_json::from_str::<Fact<Option<u32>>>(&text)?, nothing);
        assert!(serde_json::from_str::<Fact<u32>>("{}").is_err());
        Ok(())
    }
}
