//! Applies all decisions to the findings of a run.

use std::collections::HashSet;

use checks::{Expected, OfPolicy, Policy, expected_fabric, provider_conventions};
use model::{Accepted, CheckResult, Deployment, Input, Outcome, Place, Status};

use crate::baseline::{Baseline, Entry};
use crate::config::{Config, Level};
use crate::result;
use crate::suppress::{Suppression, Suppressions};

/// Causes that say no more than that KV goes over TCP; with TCP declared, a warning of one is no news. A failure
/// still is: there a fabric is asked for and not used.
const TCP_CAUSES: [&str; 4] = [
    "no-fabric-and-no-transport-setting",
    "rdma-resource-missing",
    "ucx-tls-tcp-only",
    "cuda-ipc-tcp-without-imex",
];

/// What was decided.
pub struct Rules<'r> {
    /// The configuration file.
    pub config: &'r Config,
    /// How messages call the configuration file.
    pub config_name: &'r str,
    /// Suppressions of all inputs.
    pub suppressions: Vec<Suppression>,
    /// The baseline, where one is used.
    pub baseline: Option<Baseline>,
    /// Turns a path of the report into one relative to the baseline.
    pub relative: &'r dyn Fn(&str) -> String,
    /// Whether a path of the baseline is gone; an entry of a file that was not read is then fixed as well.
    pub is_gone: &'r dyn Fn(&str) -> bool,
    /// Files that the configuration left out of directories.
    pub excluded: usize,
    /// Also tell which decisions nothing needed.
    pub verbose: bool,
    /// Options of this run that another one needs to see the same.
    pub options: Vec<String>,
}

/// Decisions at work.
pub struct Decisions<'r> {
    rules: Rules<'r>,
    suppressions: Suppressions,
    levels_used: Vec<bool>,
    /// What counts, as entries for a new baseline.
    found: Baseline,
    /// Cause, file and line of what is suppressed: nobody wants that fixed.
    suppressed: HashSet<(Option<&'static str>, String, u32)>,
}

impl<'r> Decisions<'r> {
    /// Ready for a run.
    pub fn new(mut rules: Rules<'r>) -> Self {
        let suppressions = Suppressions::new(std::mem::take(&mut rules.suppressions));
        let levels_used = vec![false; rules.config.levels.len()];
        Self {
            rules,
            suppressions,
            levels_used,
            found: Baseline::default(),
            suppressed: HashSet::new(),
        }
    }

    /// After the run: a baseline of everything that was neither suppressed nor allowed.
    pub fn into_found(self) -> Baseline {
        self.found
    }

    /// Whether a finding of this cause on this line is suppressed.
    pub fn is_suppressed(&self, cause: &'static str, file: &str, line: u32) -> bool {
        self.suppressed
            .contains(&(Some(cause), file.to_owned(), line))
    }

    fn decide(
        &mut self,
        result: &mut CheckResult,
        deployment: Option<&Deployment>,
        accepted: &mut Accepted,
    ) {
        if !result::is_finding(result) {
            return;
        }
        // Every kind of decision is asked about every finding, so that one which another one makes
        // superfluous is not reported as unused.
        let lines = lines(result, deployment);
        let reason = self.suppressions.reason(result, &lines);
        let file = lines
            .first()
            .map(|p| &*p.file)
            .or_else(|| deployment.and_then(|d| d.files.first()).map(|f| &**f))
            .or(result.subject.file.as_deref())
            .map(self.rules.relative)
            .unwrap_or_default();
        let entry = Entry::of(result, file);
        let known = self
            .rules
            .baseline
            .as_mut()
            .is_some_and(|b| b.knows(&entry));
        let level = self.rules.config.level(&result.name, result.cause);
        if let Some(used) = level.and_then(|l| self.levels_used.get_mut(l)) {
            *used = true;
        }
        let level = level.and_then(|l| self.rules.config.levels.get(l));
        if let Some(reason) = reason {
            for place in lines {
                self.suppressed
                    .insert((result.cause, place.file.to_string(), place.line));
            }
            result::accept(result, &format!("suppressed: {reason}"));
            accepted.suppressed += 1;
            return;
        }
        let config = self.rules.config_name;
        if self.rules.config.expected == Some(Expected::Tcp)
            && result.status == Status::Warn
            && level.is_none()
            && result.cause.is_some_and(|c| TCP_CAUSES.contains(&c))
        {
            // Declared, so it is neither a finding nor something for a baseline.
            result::accept(result, &format!("{config} declares TCP as the fabric"));
            accepted.allowed += 1;
            return;
        }
        if !level.is_some_and(|l| l.level == Level::Allow) {
            self.found.insert(entry);
        }
        if known {
            result::accept(result, "known: in the baseline");
            accepted.known += 1;
            return;
        }
        let Some(level) = level else { return };
        match level.level.status() {
            None => {
                result::accept(result, &format!("allowed by {config}: {}", level.reason));
                accepted.allowed += 1;
            }
            Some(status) if status != result.status => {
                let note = format!(
                    "{} by {config}: {} (was {})",
                    status.as_str(),
                    level.reason,
                    result.status.as_str()
                );
                result.status = status;
                result::note(result, note);
            }
            Some(_) => {}
        }
    }

    fn decide_all(
        &mut self,
        results: &mut [CheckResult],
        deployment: Option<&Deployment>,
    ) -> Accepted {
        let mut accepted = Accepted::default();
        for result in results {
            self.decide(result, deployment, &mut accepted);
        }
        accepted
    }

    /// Entries of the baseline whose finding is gone, as far as this run can tell.
    fn fixed(&self, inputs: &[Input], results: &mut Vec<CheckResult>) {
        let Some(baseline) = &self.rules.baseline else {
            return;
        };
        let read: HashSet<String> = inputs
            .iter()
            .filter(|i| {
                i.documents > 0
                    && !i
                        .problems
                        .iter()
                        .any(|p| matches!(p.outcome, Outcome::Broken | Outcome::Skipped))
            })
            .map(|i| (self.rules.relative)(&i.path))
            .collect();
        for entry in baseline.unseen() {
            if !read.contains(&entry.file) && !(self.rules.is_gone)(&entry.file) {
                continue;
            }
            let what = entry.cause.as_deref().unwrap_or(&entry.check);
            let about = entry.deployment.as_deref().unwrap_or(&entry.file);
            results.push(result::noted(
                "policy/baseline",
                format!("{what} of {about} no longer occurs in {}", entry.file),
                "fixed; remove from the baseline (--write-baseline writes a new one)",
            ));
        }
    }

    fn unneeded(&self, results: &mut Vec<CheckResult>) {
        let config = self.rules.config_name;
        if self.rules.excluded > 0 {
            let files = if self.rules.excluded == 1 {
                "file was"
            } else {
                "files were"
            };
            results.push(result::noted(
                "policy/exclude",
                format!("{} {files} left out of directories", self.rules.excluded),
                &format!("excluded by {config}"),
            ));
        }
        if !self.rules.verbose {
            return;
        }
        for (level, used) in self.rules.config.levels.iter().zip(&self.levels_used) {
            if !used {
                results.push(result::noted(
                    "policy/levels",
                    format!("no finding {} in this run", level.name),
                    &format!("its level in {config} was not needed here"),
                ));
            }
        }
        if self.rules.config.has_excludes() && self.rules.excluded == 0 {
            results.push(result::noted(
                "policy/exclude",
                "no file was left out".to_owned(),
                &format!("exclude in {config} was not needed here"),
            ));
        }
    }
}

/// The lines that a finding is about; for one about what is not written anywhere, those that name its workers.
fn lines(result: &CheckResult, deployment: Option<&Deployment>) -> Vec<Place> {
    let primary: Vec<Place> = result
        .sources
        .iter()
        .filter(|s| s.primary)
        .map(|s| s.place.clone())
        .collect();
    if !primary.is_empty() {
        return primary;
    }
    deployment
        .into_iter()
        .flat_map(|d| &d.workers)
        .filter(|w| {
            if result.subject.workers.is_empty() {
                result.subject.roles.contains(&w.role)
            } else {
                result.subject.workers.contains(&w.name)
            }
        })
        .map(|w| w.place.clone())
        .collect()
}

impl Policy for Decisions<'_> {
    fn deployment(&mut self, deployment: &Deployment, results: &mut Vec<CheckResult>) -> Accepted {
        if let Some(provider) = self.rules.config.provider {
            let found = provider_conventions(deployment, provider, results);
            results.extend(found);
        }
        if let Some(expected) = self.rules.config.expected {
            results.extend(expected_fabric(deployment, expected));
        }
        self.decide_all(results, Some(deployment))
    }

    fn options(&self) -> &[String] {
        &self.rules.options
    }

    fn finish(&mut self, inputs: &[Input]) -> OfPolicy {
        let mut results = self.suppressions.problems();
        let accepted = self.decide_all(&mut results, None);
        self.fixed(inputs, &mut results);
        self.unneeded(&mut results);
        OfPolicy { results, accepted }
    }
}
