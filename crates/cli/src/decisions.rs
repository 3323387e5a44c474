//! What was decided about findings: finds the configuration file, reads and writes baselines, and runs `env` with them.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use model::{Exit, Report};
use policy::{Baseline, Config, Decisions, FILE_NAMES, Rules};

use crate::args::{EnvArgs, PolicyArgs};
use crate::fix::Plan;
use crate::output;
use crate::overwrite;
use crate::render;
use crate::sources::{self, LeaveOut, Reading, Sources};

/// A configuration or a baseline larger than this is something else.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// `env`, with everything that was decided.
pub(crate) fn env(args: &EnvArgs) -> Result<ExitCode, String> {
    let standard_input = args.paths.iter().any(|p| p == Path::new("-"));
    if (args.policy.fix || args.policy.diff) && standard_input {
        return Err(
            "--fix and --diff change files; standard input (-) is none. Name the file".to_owned(),
        );
    }
    let run = Run::prepare(args)?;
    let mut sources = run.read(&HashMap::new())?;
    let mut notes = Vec::new();
    if args.policy.fix || args.policy.diff {
        let mut decisions = run.decisions(&sources, None);
        let report = checks::judge_env_with(&sources.facts, run.scope(), &mut decisions);
        let plan = Plan::make(&sources.facts, &decisions, &|instead| run.read(instead));
        if args.policy.diff {
            return show(&plan, &report);
        }
        notes = plan.write();
        if plan.changes_anything() {
            sources = run.read(&HashMap::new())?;
        }
    }
    let baseline = match &args.policy.write_baseline {
        Some(path) => Some(run.write_baseline(path, &sources)?),
        None => run.baseline.clone(),
    };
    let mut decisions = run.decisions(&sources, baseline);
    let mut report = checks::judge_env_once(sources.facts, run.scope(), &mut decisions);
    report.results.extend(notes);
    // The report has all that is told; the renderers need the room.
    drop(decisions);
    crate::finish(&report, &args.output)
}

/// Prints the changes. 1 says that there are some; a missing path stays a usage error.
fn show(plan: &Plan, report: &Report) -> Result<ExitCode, String> {
    for note in plan.left_alone() {
        crate::complain(&note);
    }
    crate::print(&plan.diff())?;
    if plan.changes_anything() {
        return Ok(ExitCode::from(Exit::Failed.code()));
    }
    if report.missing_path {
        return Err("a path that was given does not exist".to_owned());
    }
    Ok(ExitCode::SUCCESS)
}

/// What a run needs beside its inputs.
struct Run<'a> {
    args: &'a EnvArgs,
    here: PathBuf,
    config: Config,
    /// Its file name, for messages.
    config_name: String,
    /// Its directory, absolute.
    config_dir: PathBuf,
    baseline: Option<Baseline>,
    /// The baseline's path, absolute.
    baseline_path: Option<PathBuf>,
    /// Values files for charts.
    values: Vec<render::Values>,
    /// Paths relative to the baseline.
    relative: Box<dyn Fn(&str) -> String + 'a>,
    is_gone: Box<dyn Fn(&str) -> bool + 'a>,
}

impl<'a> Run<'a> {
    fn prepare(args: &'a EnvArgs) -> Result<Self, String> {
        let here = std::env::current_dir()
            .map_err(|e| format!("cannot tell the current directory: {e}"))?;
        let file = config_file(&args.policy, &here)?;
        let mut config = Config::default();
        let mut config_name = String::new();
        let mut config_dir = here.clone();
        if let Some(path) = file {
            let text = text_of(&path, "configuration file")?;
            config = Config::parse(&text).map_err(|e| format!("{}:{e}", path.display()))?;
            let whole = normal(&here, &path);
            config_name = whole
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            whole.parent().unwrap_or(&here).clone_into(&mut config_dir);
        }
        let baseline = match &args.policy.baseline {
            None => None,
            Some(path) => {
                let text = text_of(path, "baseline")?;
                Some(Baseline::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?)
            }
        };
        let baseline_path = args
            .policy
            .write_baseline
            .as_ref()
            .or(args.policy.baseline.as_ref())
            .map(|path| normal(&here, path));
        let base = baseline_path
            .as_deref()
            .and_then(Path::parent)
            .unwrap_or(&here)
            .to_owned();
        let relative = {
            let (here, base) = (here.clone(), base.clone());
            move |path: &str| relative(&here, &base, path)
        };
        let mut values = Vec::new();
        for file in &args.values {
            values.push(
                render::Values::new(file)
                    .ok_or_else(|| format!("--values {}: no such file", file.display()))?,
            );
        }
        Ok(Self {
            args,
            values,
            here,
            config,
            config_name,
            config_dir,
            baseline,
            baseline_path,
            relative: Box::new(relative),
            is_gone: Box::new(move |path: &str| {
                path != "-"
                    && matches!(fs::metadata(base.join(path)), Err(e) if e.kind() == io::ErrorKind::NotFound)
            }),
        })
    }

    fn scope(&self) -> Vec<String> {
        self.args
            .paths
            .iter()
            .map(|p| p.to_string_lossy().into_owned())
            .collect()
    }

    fn read(&self, instead: &HashMap<String, String>) -> Result<Sources, String> {
        let leave_out = |path: &Path| {
            // A report or a baseline of an earlier run, wherever it was written to.
            let json = path
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("json"));
            if json && overwrite::is_ours(path) {
                return LeaveOut::Silently;
            }
            if !self.config.has_excludes() && self.baseline_path.is_none() {
                return LeaveOut::No;
            }
            let whole = normal(&self.here, path);
            if self.baseline_path.as_ref() == Some(&whole) {
                return LeaveOut::Silently;
            }
            let excluded = whole
                .strip_prefix(&self.config_dir)
                .is_ok_and(|inside| self.config.excludes(&slashes(inside)));
            if excluded {
                LeaveOut::Counted
            } else {
                LeaveOut::No
            }
        };
        sources::read(
            &self.args.paths,
            render::Options {
                off: self.args.no_render,
                timeout: Duration::from_secs(self.args.render_timeout),
                values: &self.values,
            },
            &Reading {
                leave_out: &leave_out,
                instead,
            },
        )
    }

    fn decisions(&self, sources: &Sources, baseline: Option<Baseline>) -> Decisions<'_> {
        Decisions::new(Rules {
            config: &self.config,
            config_name: &self.config_name,
            suppressions: sources.suppressions.clone(),
            baseline,
            relative: &*self.relative,
            is_gone: &*self.is_gone,
            excluded: sources.excluded,
            verbose: self.args.output.verbose,
            options: self.options(),
        })
    }

    /// What decides which text is judged.
    fn options(&self) -> Vec<String> {
        let args = self.args;
        let no_render = args.no_render.then(|| "--no-render".to_owned());
        let values = args
            .values
            .iter()
            .flat_map(|file| ["--values".to_owned(), file.to_string_lossy().into_owned()]);
        no_render.into_iter().chain(values).collect()
    }

    /// Writes what counts now, and gives it back to be applied.
    fn write_baseline(&self, path: &Path, sources: &Sources) -> Result<Baseline, String> {
        let mut decisions = self.decisions(sources, None);
        checks::judge_env_with(&sources.facts, self.scope(), &mut decisions);
        let baseline = decisions.into_found();
        output::atomically(path, |out| out.write_all(baseline.to_json().as_bytes()))
            .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(baseline)
    }
}

/// The configuration file to use: the one that is named, else the nearest one up to the repository's root. Outside a
/// repository only this directory is looked at: what lies further up may be anybody's.
fn config_file(args: &PolicyArgs, here: &Path) -> Result<Option<PathBuf>, String> {
    if let Some(path) = &args.config {
        return Ok(Some(path.clone()));
    }
    if args.no_config {
        return Ok(None);
    }
    let root = here.ancestors().find(|d| d.join(".git").exists());
    for directory in here.ancestors() {
        let mut there = FILE_NAMES
            .iter()
            .filter(|name| directory.join(name).is_file());
        if let Some(name) = there.next() {
            if let Some(other) = there.next() {
                return Err(format!(
                    "both {name} and {other} are in {}; keep one",
                    directory.display()
                ));
            }
            // Near files are named as a user would name them.
            return Ok(Some(if directory == here {
                PathBuf::from(name)
            } else {
                directory.join(name)
            }));
        }
        if Some(directory) == root || root.is_none() {
            break;
        }
    }
    Ok(None)
}

fn text_of(path: &Path, what: &str) -> Result<String, String> {
    let cannot = |why: String| format!("cannot read the {what} {}: {why}", path.display());
    let meta = fs::metadata(path).map_err(|e| cannot(e.to_string()))?;
    if !meta.is_file() {
        return Err(cannot("it is no file".to_owned()));
    }
    if meta.len() > MAX_BYTES {
        return Err(cannot(format!(
            "it is larger than {} MiB",
            MAX_BYTES / 1024 / 1024
        )));
    }
    let bytes = fs::read(path).map_err(|e| cannot(e.to_string()))?;
    String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".to_owned()))
}

/// An absolute path without `.` and `..`, by its text alone: two names of one file are compared as they are written.
fn normal(here: &Path, path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in here.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

fn slashes(path: &Path) -> String {
    path.components()
        .map(|c| c.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

/// A path of the report as seen from a directory.
fn relative(here: &Path, base: &Path, path: &str) -> String {
    if path == "-" {
        return path.to_owned();
    }
    let whole = normal(here, Path::new(path));
    let shared = base
        .components()
        .zip(whole.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = base.components().count() - shared;
    let mut parts = vec!["..".to_owned(); up];
    parts.extend(
        whole
            .components()
            .skip(shared)
            .map(|c| c.as_os_str().to_string_lossy().into_owned()),
    );
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_baseline() {
        let here = Path::new("/r/sub");
        for (base, path, wanted) in [
            ("/r", "a.yaml", "sub/a.yaml"),
            ("/r", "./x/../a.yaml", "sub/a.yaml"),
            ("/r", "../a.yaml", "a.yaml"),
            ("/r/ci", "/r/a.yaml", "../a.yaml"),
            ("/r", "-", "-"),
        ] {
            assert_eq!(relative(here, Path::new(base), path), wanted, "{path}");
        }
    }
}
