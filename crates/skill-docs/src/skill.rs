//! The skill's own texts, as the benchmark reads them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use model::Readiness;

use crate::record::Record;

/// What a reader expects of one recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Its file, in `evals/cases`.
    pub file: String,
    /// `sound`, `slow`, `broken`, `not-kv` or `unreadable`.
    pub class: String,
    /// The verdict.
    pub readiness: Readiness,
    /// The exit code.
    pub exit: u8,
    /// Causes that must be named.
    pub causes: Vec<String>,
}

/// The skill.
#[derive(Debug, Clone)]
pub struct Skill {
    /// Name of its folder.
    pub folder: String,
    /// `SKILL.md`.
    pub skill_md: String,
    /// `scripts/check_interconnect.py`.
    pub script: String,
    /// References, by path from the folder.
    pub references: BTreeMap<String, String>,
    /// `evals/evals.json`.
    pub evals: String,
    /// `evals/cases/labels.tsv`.
    pub labels: Vec<Label>,
    /// Labelled recipes, by file name.
    pub cases: BTreeMap<String, String>,
    /// `evals/record.json`: what tools outside of this repository said.
    pub record: Record,
}

impl Skill {
    /// Reads the folder; generated files are read only if they are there.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let labels = labels(&text(folder, "evals/cases/labels.tsv")?)?;
        let mut cases = BTreeMap::new();
        for label in &labels {
            let path = format!("evals/cases/{}", label.file);
            cases.insert(label.file.clone(), text(folder, &path)?);
        }
        let mut references = BTreeMap::new();
        for path in [
            "references/interconnect-env-vars.md",
            "references/troubleshooting.md",
        ] {
            if let Ok(found) = text(folder, path) {
                references.insert(path.to_owned(), found);
            }
        }
        Ok(Self {
            folder: folder
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            skill_md: text(folder, "SKILL.md")?,
            script: text(folder, "scripts/check_interconnect.py")?,
            references,
            evals: text(folder, "evals/evals.json")?,
            labels,
            cases,
            record: Record::parse(&text(folder, "evals/record.json").unwrap_or("{}".to_owned()))?,
        })
    }
}

fn text(folder: &Path, path: &str) -> Result<String, String> {
    let path = folder.join(path);
    fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Reads `labels.tsv`.
pub fn labels(table: &str) -> Result<Vec<Label>, String> {
    table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| label(line).ok_or_else(|| format!("labels.tsv: cannot read '{line}'")))
        .collect()
}

fn label(line: &str) -> Option<Label> {
    let mut fields = line.split('\t');
    let mut next = || fields.next().map(str::to_owned);
    Some(Label {
        file: next()?,
        class: next()?,
        readiness: READINESS.iter().copied().find({
            let word = next()?;
            move |r| r.as_str() == word
        })?,
        exit: next()?.parse().ok()?,
        causes: next()?
            .split(',')
            .filter(|c| *c != "-")
            .map(str::to_owned)
            .collect(),
    })
}

/// Every verdict, worst first.
pub const READINESS: [Readiness; 6] = [
    Readiness::Blocked,
    Readiness::Inconclusive,
    Readiness::Degraded,
    Readiness::Unproven,
    Readiness::Trusted,
    Readiness::NotApplicable,
];
