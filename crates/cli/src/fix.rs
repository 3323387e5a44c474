//! `--fix` and `--diff`: makes the fixes that are safe, and only where judging the result again shows that they are.
//!
//! A fix is dropped where its finding does not go away by it, where the file no longer reads as it did, or where a
//! finding comes up that was not there before: a name that is put right can bring a value into force that nobody
//! has tried.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use checks::{Change, Fix};
use model::{CheckResult, Facts, Grade, Status, Subject};
use policy::{Decisions, Edit};

use crate::sources::Sources;

/// The changes of one file.
struct FileFix {
    path: String,
    old: String,
    new: String,
    fixes: Vec<Made>,
}

/// A fix and its bytes.
type Made = (Fix, Vec<Edit>);

impl FileFix {
    /// `None` where nothing would change.
    fn of(path: String, old: String, fixes: Vec<Made>) -> Option<Self> {
        let new = policy::apply_edits(&old, &edits(&fixes))?;
        (new != old).then_some(Self {
            path,
            old,
            new,
            fixes,
        })
    }

    /// Fixes that say the same belong together: both roles' lists are put right, or none.
    fn groups(&self) -> Vec<Vec<Made>> {
        let mut groups: Vec<Vec<Made>> = Vec::new();
        for made in &self.fixes {
            let alike = groups
                .iter_mut()
                .find(|g| g.first().is_some_and(|(f, _)| f.change == made.0.change));
            match alike {
                Some(group) => group.push(made.clone()),
                None => groups.push(vec![made.clone()]),
            }
        }
        groups
    }
}

fn edits(fixes: &[Made]) -> Vec<Edit> {
    fixes
        .iter()
        .flat_map(|(_, edits)| edits.iter().cloned())
        .collect()
}

/// All changes, and what is not changed with the reason.
pub(crate) struct Plan {
    files: Vec<FileFix>,
    refused: Vec<(String, String)>,
}

/// Reads the inputs, with other texts for some files.
type Read<'r> = dyn Fn(&HashMap<String, String>) -> Result<Sources, String> + 'r;

/// What identifies a finding across two runs: how bad it is may change, its lines do not.
type Key = (
    String,
    Option<&'static str>,
    Option<String>,
    Vec<String>,
    Option<String>,
);

impl Plan {
    /// Works out what can be changed. `read` reads the inputs with other texts for some files.
    pub(crate) fn make(facts: &Facts, decisions: &Decisions<'_>, read: &Read<'_>) -> Self {
        let mut by_file: BTreeMap<String, Vec<Fix>> = BTreeMap::new();
        let mut seen = HashSet::new();
        let before = checks::judge_env(facts, Vec::new()).results;
        for fix in checks::fixes(facts) {
            let (file, line) = (&fix.place.file, fix.place.line);
            // A fix belongs to a finding that is there and that nobody wants to keep.
            let found = before.iter().any(|r| is_at(r, &fix));
            let key = (file.clone(), line, fix.place.column, describe(&fix.change));
            let kept = fix
                .causes
                .iter()
                .any(|cause| decisions.is_suppressed(cause, file, line));
            if found && !kept && seen.insert(key) {
                by_file.entry(file.to_string()).or_default().push(fix);
            }
        }
        let mut plan = Self {
            files: Vec::new(),
            refused: Vec::new(),
        };
        for (path, fixes) in by_file {
            match fs::read_to_string(&path) {
                Ok(old) => plan.file(path, old, fixes),
                Err(error) => plan.refused.extend(
                    fixes
                        .iter()
                        .map(|fix| (told(fix), format!("the file cannot be read again: {error}"))),
                ),
            }
        }
        plan.verify(&before, read);
        plan
    }

    fn file(&mut self, path: String, old: String, fixes: Vec<Fix>) {
        let mut made = Vec::new();
        for fix in fixes {
            match policy::edits(&old, &fix) {
                Ok(edits) => made.push((fix, edits)),
                Err(why) => self.refused.push((told(&fix), why.as_str().to_owned())),
            }
        }
        self.files.extend(FileFix::of(path, old, made));
    }

    /// Judges with all changes. Of a file that this is not clean for, the changes that are clean alone stay; the
    /// rest is judged again, until nothing is wrong.
    fn verify(&mut self, before: &[CheckResult], read: &Read<'_>) {
        let judge = |files: &[&FileFix]| {
            let instead = files
                .iter()
                .map(|f| (f.path.clone(), f.new.clone()))
                .collect();
            match read(&instead) {
                Ok(sources) => problems(files, before, &sources),
                Err(why) => files
                    .iter()
                    .map(|f| (f.path.clone(), why.clone()))
                    .collect(),
            }
        };
        let mut reduced = HashSet::new();
        while !self.files.is_empty() {
            let found = judge(&self.files.iter().collect::<Vec<_>>());
            if found.is_empty() {
                return;
            }
            let mut left = Vec::new();
            let mut changed = false;
            for file in std::mem::take(&mut self.files) {
                let Some((_, why)) = found.iter().find(|(path, _)| *path == file.path) else {
                    left.push(file);
                    continue;
                };
                changed = true;
                let groups = file.groups();
                if groups.len() < 2 || !reduced.insert(file.path.clone()) {
                    self.refused
                        .extend(file.fixes.iter().map(|(fix, _)| (told(fix), why.clone())));
                    continue;
                }
                let mut good = Vec::new();
                for group in groups {
                    let alone = FileFix::of(file.path.clone(), file.old.clone(), group.clone());
                    let wrong = alone.and_then(|a| judge(&[&a]).into_iter().next());
                    match wrong {
                        None => good.extend(group),
                        Some((_, why)) => self
                            .refused
                            .extend(group.iter().map(|(fix, _)| (told(fix), why.clone()))),
                    }
                }
                left.extend(FileFix::of(file.path, file.old, good));
            }
            if !changed {
                // What came up cannot be told to come from one of the files.
                for file in std::mem::take(&mut left) {
                    let why = found.first().map(|(_, why)| why.clone());
                    self.refused.extend(
                        file.fixes
                            .iter()
                            .map(|(fix, _)| (told(fix), why.clone().unwrap_or_default())),
                    );
                }
            }
            self.files = left;
        }
    }

    pub(crate) fn changes_anything(&self) -> bool {
        !self.files.is_empty()
    }

    /// The changes as a unified diff.
    pub(crate) fn diff(&self) -> String {
        let mut out = String::new();
        for file in &self.files {
            let _infallible = write!(
                out,
                "{}",
                policy::diff(&file.path, &file.old, &edits(&file.fixes))
            );
        }
        out
    }

    /// What is not changed and why, one line each.
    pub(crate) fn left_alone(&self) -> Vec<String> {
        self.refused
            .iter()
            .map(|(what, why)| format!("left alone: {what}: {why}"))
            .collect()
    }

    /// Writes the files, and tells what was done as results.
    pub(crate) fn write(&self) -> Vec<CheckResult> {
        let mut notes = Vec::new();
        for file in &self.files {
            let written = replace(Path::new(&file.path), &file.old, &file.new);
            for (fix, _) in &file.fixes {
                notes.push(match &written {
                    Ok(()) => noted(
                        &file.path,
                        format!("fixed {}", told(fix)),
                        "the file was changed",
                    ),
                    Err(error) => noted(
                        &file.path,
                        format!("left alone {}", told(fix)),
                        &format!("the file cannot be written: {error}"),
                    ),
                });
            }
        }
        for (what, why) in &self.refused {
            notes.push(noted("", format!("left alone {what}"), why));
        }
        notes
    }
}

/// Whether a finding is the one that a fix is for.
fn is_at(result: &CheckResult, fix: &Fix) -> bool {
    result.name == fix.check
        && match result.cause {
            Some(cause) => fix.causes.contains(&cause),
            None => fix.causes.is_empty(),
        }
        && result
            .sources
            .iter()
            .any(|s| s.primary && s.place.file == fix.place.file && s.place.line == fix.place.line)
}

/// Why changes are not to be made, with the file that each reason is about.
fn problems(
    files: &[&FileFix],
    before: &[CheckResult],
    sources: &Sources,
) -> Vec<(String, String)> {
    let after = checks::judge_env(&sources.facts, Vec::new()).results;
    let mut found = Vec::new();
    let unread = |results: &[CheckResult], path: &str| {
        results
            .iter()
            .filter(|r| r.required && r.subject.file.as_deref() == Some(path))
            .count()
    };
    for file in files {
        if unread(&after, &file.path) > unread(before, &file.path) {
            found.push((
                file.path.clone(),
                "the file could not be read any more".to_owned(),
            ));
        }
        for (fix, _) in &file.fixes {
            if after.iter().any(|r| is_at(r, fix)) {
                found.push((
                    file.path.clone(),
                    "the finding would still be there".to_owned(),
                ));
            }
        }
    }
    let known = worst(before);
    for (key, status) in worst(&after) {
        if known.get(&key).is_none_or(|old| *old < status) {
            let (name, cause, _, _, file) = key;
            found.push((
                file.unwrap_or_default(),
                format!(
                    "it would bring up {}, so decide by hand",
                    cause.unwrap_or(&name)
                ),
            ));
        }
    }
    found
}

/// Findings with how bad they are.
fn worst(results: &[CheckResult]) -> BTreeMap<Key, Status> {
    let mut found: BTreeMap<Key, Status> = BTreeMap::new();
    for result in results {
        if matches!(result.status, Status::Warn | Status::Fail) {
            let key = (
                result.name.to_string(),
                result.cause,
                result.subject.deployment.clone(),
                result.subject.workers.clone(),
                result.sources.first().map(|s| s.place.file.to_string()),
            );
            let status = found.entry(key).or_insert(result.status);
            *status = (*status).max(result.status);
        }
    }
    found
}

fn describe(change: &Change) -> String {
    match change {
        Change::Rename { from, to } => format!("{from} is now {to}"),
        Change::Value { name, from, to } => format!("{name}={from} is now {name}={to}"),
        Change::Remove { name } => format!("{name}, which nothing reads, is removed"),
    }
}

fn told(fix: &Fix) -> String {
    format!("{}: {}", fix.place.position(), describe(&fix.change))
}

fn noted(file: &str, detail: String, note: &str) -> CheckResult {
    CheckResult {
        name: Cow::Borrowed("policy/fix"),
        status: Status::Ok,
        detail,
        cause: None,
        fix: None,
        reason: None,
        note: Some(note.to_owned()),
        grade: Grade::Declared,
        subject: Subject {
            file: (!file.is_empty()).then(|| file.to_owned()),
            ..Subject::default()
        },
        sources: Vec::new(),
        collective: false,
        required: false,
        deployment: None,
    }
}

/// Puts a new text in a file's place: whole or not at all, through links, with the same permissions.
fn replace(path: &Path, old: &str, new: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    if fs::read(&path)? != old.as_bytes() {
        return Err(io::Error::other("it was changed by somebody else"));
    }
    let meta = fs::metadata(&path)?;
    if meta.permissions().readonly() {
        return Err(io::Error::other("it is read-only"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let result = (|| {
        let mut out = File::create_new(&part)?;
        out.set_permissions(meta.permissions())?;
        out.write_all(new.as_bytes())?;
        out.sync_all()?;
        fs::rename(&part, &path)
    })();
    if result.is_err() {
        let _gone = fs::remove_file(&part);
    }
    result
}
