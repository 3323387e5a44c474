//! The findings that a team knows of already, in a file that is committed.
//!
//! An entry is recognized by its file and a fingerprint of check, cause, deployment, workers and the text that the
//! finding is about, never by a line number, so that moving lines changes nothing and changing a value does.

use std::collections::BTreeMap;

use model::CheckResult;
use serde::{Deserialize, Serialize};

/// The value of `schema`.
pub const SCHEMA_NAME: &str = "check-interconnect/baseline-v1";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BaselineFile {
    schema: String,
    findings: Vec<Entry>,
}

/// One known finding. The order of the fields is the order of the entries.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Path relative to the baseline, `/` between its parts; `-` for standard input.
    pub(crate) file: String,
    /// The deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deployment: Option<String>,
    /// The check.
    pub(crate) check: String,
    /// The cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    /// `warn` or `fail`, when it was written.
    pub(crate) status: String,
    /// Roles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) roles: Vec<String>,
    /// Workers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) workers: Vec<String>,
    /// What it is recognized by.
    pub(crate) fingerprint: String,
    /// What the report said, for people.
    pub(crate) detail: String,
}

/// Known findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    /// With whether each occurred, by file and fingerprint.
    entries: BTreeMap<(String, String), (Entry, bool)>,
}

/// Why a baseline cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaselineError {
    /// Not a baseline at all.
    Broken(String),
    /// Of another version.
    OtherVersion(String),
}

impl std::fmt::Display for BaselineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Broken(why) => write!(
                f,
                "not a baseline: {why}; --write-baseline writes a new one"
            ),
            Self::OtherVersion(found) => write!(
                f,
                "a baseline of another kind: its schema is '{}', expected '{SCHEMA_NAME}'; --write-baseline writes a new one",
                found.escape_debug()
            ),
        }
    }
}

impl std::error::Error for BaselineError {}

impl Baseline {
    /// Reads a baseline.
    pub fn parse(text: &str) -> Result<Self, BaselineError> {
        // A baseline of a later version may have other fields: its schema is looked at first.
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head =
            serde_json::from_str(text).map_err(|e| BaselineError::Broken(e.to_string()))?;
        if head.schema != SCHEMA_NAME {
            return Err(BaselineError::OtherVersion(head.schema));
        }
        let file: BaselineFile =
            serde_json::from_str(text).map_err(|e| BaselineError::Broken(e.to_string()))?;
        let mut baseline = Self::default();
        for entry in file.findings {
            baseline.insert(entry);
        }
        Ok(baseline)
    }

    /// The file: sorted, one line per field, so that a diff shows what came and went.
    pub fn to_json(&self) -> String {
        let mut findings: Vec<Entry> = self.entries.values().map(|(e, _)| e.clone()).collect();
        findings.sort();
        let file = BaselineFile {
            schema: SCHEMA_NAME.to_owned(),
            findings,
        };
        format!(
            "{}\n",
            serde_json::to_string_pretty(&file).unwrap_or_default()
        )
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn insert(&mut self, entry: Entry) {
        let key = (entry.file.clone(), entry.fingerprint.clone());
        self.entries.entry(key).or_insert((entry, false));
    }

    /// Whether a finding is known; it then counts as seen.
    pub(crate) fn knows(&mut self, entry: &Entry) -> bool {
        let key = (entry.file.clone(), entry.fingerprint.clone());
        match self.entries.get_mut(&key) {
            Some((_, seen)) => {
                *seen = true;
                true
            }
            None => false,
        }
    }

    /// Entries that did not occur.
    pub(crate) fn unseen(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .values()
            .filter(|(_, seen)| !seen)
            .map(|(entry, _)| entry)
    }
}

impl Entry {
    /// The entry of a finding in a file, which is given relative to the baseline.
    pub(crate) fn of(result: &CheckResult, file: String) -> Self {
        let mut workers = result.subject.workers.clone();
        workers.sort();
        workers.dedup();
        let mut roles: Vec<String> = result
            .subject
            .roles
            .iter()
            .map(|r| r.as_str().to_owned())
            .collect();
        roles.sort();
        let cause = result.cause.unwrap_or_default();
        let mut hash = Fnv::new();
        hash.field(&result.name);
        hash.field(cause);
        hash.field(result.subject.deployment.as_deref().unwrap_or_default());
        hash.field(result.subject.container.as_deref().unwrap_or_default());
        for worker in &workers {
            hash.field(worker);
        }
        for source in result.sources.iter().filter(|s| s.primary) {
            hash.field(marked(&source.place));
        }
        Self {
            file,
            deployment: result.subject.deployment.clone(),
            check: result.name.to_string(),
            cause: result.cause.map(str::to_owned),
            status: result.status.as_str().to_owned(),
            roles,
            workers,
            fingerprint: hash.hex(),
            detail: result.detail.clone(),
        }
    }
}

/// The text that a finding is about; its quotes are no part of a value.
fn marked(place: &model::Place) -> &str {
    place
        .text
        .get(place.mark.0 as usize..place.mark.1 as usize)
        .unwrap_or_default()
        .trim()
        .trim_matches(['"', '\''])
}

/// FNV-1a with 64 bits: written out, since fingerprints are committed and must never change.
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text and an end mark, so that `ab` `c` differs from `a` `bc`.
    fn field(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv_is_fnv() {
        let mut hash = Fnv::new();
        assert_eq!(hash.hex(), "cbf29ce484222325");
        for byte in b"foobar" {
            hash.0 = (hash.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        assert_eq!(hash.hex(), "85944171f73967e8");
    }

    #[test]
    fn only_its_own_version_is_read() {
        assert!(matches!(
            Baseline::parse("{"),
            Err(BaselineError::Broken(_))
        ));
        assert!(matches!(
            Baseline::parse("{\"schema\": \"check-interconnect/baseline-v2\", \"more\": 1}"),
            Err(BaselineError::OtherVersion(v)) if v.ends_with("v2")
        ));
        assert!(matches!(
            Baseline::parse(&format!("{{\"schema\": \"{SCHEMA_NAME}\"}}")),
            Err(BaselineError::Broken(why)) if why.contains("findings")
        ));
        let empty = Baseline::default();
        assert_eq!(Baseline::parse(&empty.to_json()), Ok(empty));
    }
}
