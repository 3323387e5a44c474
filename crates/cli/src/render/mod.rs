//! Kustomizations and Helm charts among the inputs are judged as what they render to, where that takes neither the
//! network nor a guess; otherwise their parts are judged as they are, and a result says so.
//!
//! Nothing here looks at file contents unless a file has the name of a kustomization or of a chart's description.

mod helm;
mod kustomize;
mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{InputProblem, Outcome};

use kustomize::Forest;
use program::Failure;

pub(crate) use kustomize::is_kustomization;

/// Programs that run at the same time; each may print a lot.
const AT_ONCE: usize = 4;

/// All programs together may take this many times as long as one.
const ROUNDS_OF_TIME: u32 = 4;

/// How to render.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options<'o> {
    /// Judge parts only.
    pub(crate) off: bool,
    /// How long one program may run.
    pub(crate) timeout: Duration,
    /// Values files for charts.
    pub(crate) values: &'o [Values],
}

/// A values file for charts.
#[derive(Debug)]
pub(crate) struct Values {
    /// As given.
    given: PathBuf,
    /// What helm is told: a path that it takes for no URL.
    absolute: PathBuf,
}

impl Values {
    /// The file, if there is one.
    pub(crate) fn new(given: &Path) -> Option<Self> {
        let absolute = std::path::absolute(given).ok()?;
        let there = absolute.metadata().is_ok_and(|m| !m.is_dir());
        there.then(|| Self {
            given: given.to_owned(),
            absolute,
        })
    }
}

/// Something to judge or to tell besides the files that were found.
#[derive(Debug)]
pub(crate) enum Made<R> {
    /// A rendered text that was read, its name, and what to say about it.
    Text(R, Arc<str>, InputProblem),
    /// What was not rendered, and why.
    Problem(Arc<str>, InputProblem),
    /// A part of something that was not rendered, outside what was given.
    Part(PathBuf),
}

/// What became of the files that were found.
#[derive(Debug)]
pub(crate) struct Rendered<R> {
    /// Files that are a part of something rendered, by their numbers, and the name of that.
    pub(crate) covered: BTreeMap<usize, Arc<str>>,
    /// What is new, with the number of the file that it belongs before.
    pub(crate) made: Vec<(usize, Made<R>)>,
    /// A chart was among the files.
    pub(crate) charts: bool,
}

impl<R> Default for Rendered<R> {
    fn default() -> Self {
        Self {
            covered: BTreeMap::new(),
            made: Vec::new(),
            charts: false,
        }
    }
}

/// One thing to render.
struct Job {
    /// The number of the file that showed it.
    at: usize,
    /// Its directory, as given.
    shown: PathBuf,
    /// Its directory by its one true name.
    real: PathBuf,
    /// Set for a chart.
    chart: Option<helm::Chart>,
}

/// A program that renders, and how it is called.
struct Tool {
    program: PathBuf,
    /// As a person writes it, and as part of an input's name.
    call: &'static str,
}

/// Why something is not rendered.
struct Refusal {
    why: String,
    /// Words before the command to run by hand.
    advice: &'static str,
    /// Options that this command needs besides.
    options: &'static str,
    /// What it consists of may be rendered instead.
    descend: bool,
}

impl Refusal {
    fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            advice: "render it by hand: ",
            options: "",
            descend: false,
        }
    }
}

/// Renders what stands among the files. `read` makes of a text what the caller needs; it runs on several threads.
pub(crate) fn all<R: Send>(
    files: &[(usize, &Path)],
    options: Options<'_>,
    read: &(impl Fn(Arc<str>, Vec<u8>) -> R + Sync),
) -> Rendered<R> {
    let named = |is: fn(&OsStr) -> bool| {
        files
            .iter()
            .filter(move |(_, path)| path.file_name().is_some_and(is))
            .map(|(at, path)| (*at, directory_of(path)))
    };
    let mut rendered = Rendered::default();
    let charts = charts(named(helm::is_chart));
    rendered.charts = !charts.is_empty();
    let mut forest = Forest::default();
    let roots = kustomizations(named(is_kustomization), &charts, &mut forest);
    if charts.is_empty() && roots.is_empty() {
        return rendered;
    }
    let tools = Tools::default();
    let mut parts: BTreeMap<PathBuf, Arc<str>> = BTreeMap::new();
    let mut rendered_charts: Vec<(PathBuf, Arc<str>)> = Vec::new();
    let mut refused: Vec<(usize, PathBuf)> = Vec::new();
    let mut tried: BTreeSet<PathBuf> = roots.iter().map(|job| job.real.clone()).collect();
    let deadline = Instant::now() + options.timeout * ROUNDS_OF_TIME;
    let mut jobs: Vec<Job> = roots;
    jobs.extend(charts);
    while !jobs.is_empty() {
        let results = on_threads(&jobs, |job| {
            one(job, &forest, &tools, options, deadline)
                .map(|(name, text)| (Arc::clone(&name), read(name, text)))
        });
        let mut next = Vec::new();
        for (job, result) in jobs.iter().zip(results) {
            match result {
                Ok((name, text)) => {
                    let mut count = 0;
                    if job.chart.is_some() {
                        rendered_charts.push((job.real.clone(), Arc::clone(&name)));
                        for file in options.values {
                            if let Ok(real) = fs::canonicalize(&file.absolute) {
                                parts.entry(real).or_insert_with(|| Arc::clone(&name));
                            }
                        }
                    } else {
                        for real in forest.reached(&job.real) {
                            for part in forest.get(&real).into_iter().flat_map(|k| &k.parts) {
                                count += 1;
                                parts
                                    .entry(part.real.clone())
                                    .or_insert_with(|| Arc::clone(&name));
                            }
                        }
                    }
                    let note = note(job, &tools, options, count);
                    rendered.made.push((job.at, Made::Text(text, name, note)));
                }
                Err(refusal) => {
                    let name: Arc<str> = job.shown.to_string_lossy().into();
                    let problem = problem(job, &refusal, &tools, options);
                    rendered.made.push((job.at, Made::Problem(name, problem)));
                    if job.chart.is_some() || options.off {
                        continue;
                    }
                    refused.push((job.at, job.real.clone()));
                    if refusal.descend {
                        next.extend(below(job, &forest, &mut tried));
                    }
                }
            }
        }
        jobs = next;
    }
    cover(files, &parts, &rendered_charts, &mut rendered);
    if !refused.is_empty() {
        add_parts(files, &forest, &refused, &parts, &mut rendered);
    }
    rendered.made.sort_by_key(|(at, _)| *at);
    rendered
}

fn directory_of(file: &Path) -> PathBuf {
    file.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_owned()
}

/// The charts that are no part of another one.
fn charts(found: impl Iterator<Item = (usize, PathBuf)>) -> Vec<Job> {
    let mut jobs: BTreeMap<PathBuf, (usize, PathBuf)> = BTreeMap::new();
    for (at, shown) in found {
        if let Ok(real) = fs::canonicalize(&shown) {
            jobs.entry(real).or_insert((at, shown));
        }
    }
    let all: BTreeSet<PathBuf> = jobs.keys().cloned().collect();
    let mut jobs: Vec<Job> = jobs
        .into_iter()
        .filter(|(real, _)| !inside_chart(real, &all))
        .map(|(real, (at, shown))| Job {
            at,
            chart: Some(helm::read(&real)),
            shown,
            real,
        })
        .collect();
    jobs.sort_by_key(|job| job.at);
    jobs
}

/// Whether a directory is a part of a chart.
fn inside_chart(real: &Path, charts: &BTreeSet<PathBuf>) -> bool {
    real.ancestors().skip(1).any(|above| {
        charts.contains(above)
            && real
                .strip_prefix(above)
                .is_ok_and(|below| helm::is_part(&below.join("x")))
    })
}

/// The kustomizations that no other one of those found reaches, and that can stand alone.
fn kustomizations(
    found: impl Iterator<Item = (usize, PathBuf)>,
    charts: &[Job],
    forest: &mut Forest,
) -> Vec<Job> {
    let charts: BTreeSet<PathBuf> = charts.iter().map(|c| c.real.clone()).collect();
    let mut candidates: Vec<Job> = Vec::new();
    let mut known = BTreeSet::new();
    for (at, shown) in found {
        let Some(real) = forest.plant(&shown) else {
            continue;
        };
        let component = forest.get(&real).is_some_and(|k| k.component);
        if !component && !inside_chart(&real, &charts) && known.insert(real.clone()) {
            candidates.push(Job {
                at,
                shown,
                real,
                chart: None,
            });
        }
    }
    let mut reached: BTreeSet<PathBuf> = BTreeSet::new();
    for job in &candidates {
        let bases = forest.get(&job.real).into_iter().flat_map(|k| &k.bases);
        reached.extend(bases.flat_map(|base| forest.reached(base)));
    }
    let (mut roots, rest): (Vec<Job>, Vec<Job>) = candidates
        .into_iter()
        .partition(|job| !reached.contains(&job.real));
    // Those that reach each other in a circle have nothing above them.
    let mut below: BTreeSet<PathBuf> = roots
        .iter()
        .flat_map(|job| forest.reached(&job.real))
        .collect();
    for job in rest {
        if !below.contains(&job.real) {
            below.extend(forest.reached(&job.real));
            roots.push(job);
        }
    }
    roots.sort_by_key(|job| job.at);
    roots
}

/// The kustomizations directly below one that cannot be rendered.
fn below(job: &Job, forest: &Forest, tried: &mut BTreeSet<PathBuf>) -> Vec<Job> {
    let bases = forest.get(&job.real).into_iter().flat_map(|k| &k.bases);
    bases
        .filter_map(|real| {
            let base = forest.get(real)?;
            (!base.component && tried.insert(real.clone())).then(|| Job {
                at: job.at,
                shown: base.directory.clone(),
                real: real.clone(),
                chart: None,
            })
        })
        .collect()
}

/// The programs, looked for when they are needed.
struct Tools {
    kustomize: Option<Tool>,
    helm: Option<Tool>,
}

impl Default for Tools {
    fn default() -> Self {
        let tool = |name, call| program::find(name).map(|program| Tool { program, call });
        Self {
            kustomize: tool("kubectl", "kubectl kustomize")
                .or_else(|| tool("kustomize", "kustomize build")),
            helm: tool("helm", "helm template"),
        }
    }
}

/// Renders one: the name and the text of the new input, or why there is none.
fn one(
    job: &Job,
    forest: &Forest,
    tools: &Tools,
    options: Options<'_>,
    deadline: Instant,
) -> Result<(Arc<str>, Vec<u8>), Refusal> {
    if options.off {
        return Err(Refusal::new("--no-render asks for its parts"));
    }
    let (tool, arguments, hint): (_, _, fn(&str) -> _) = if let Some(chart) = &job.chart {
        refuse_chart(chart)?;
        let tool = tools
            .helm
            .as_ref()
            .ok_or_else(|| Refusal::new("helm is not on PATH"))?;
        let arguments = helm::arguments(
            &chart.release,
            &job.real,
            options.values.iter().map(|v| &*v.absolute),
        );
        (tool, arguments, helm::hint)
    } else {
        if let Some(obstacle) = forest.obstacle(&job.real) {
            return Err(Refusal {
                advice: if obstacle.network {
                    "rendering it uses the network; by hand: "
                } else {
                    "correct it and render it by hand: "
                },
                options: obstacle.options,
                why: obstacle.why,
                descend: true,
            });
        }
        let tool = tools
            .kustomize
            .as_ref()
            .ok_or_else(|| Refusal::new("neither kubectl nor kustomize is on PATH"))?;
        let command = if tool.call == "kubectl kustomize" {
            "kustomize"
        } else {
            "build"
        };
        let arguments = vec![command.into(), job.real.clone().into()];
        (tool, arguments, kustomize::hint)
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Refusal::new(
            "rendering the others took all the time that there is",
        ));
    }
    let timeout = options.timeout.min(left);
    // No plugin takes part: there is none in a directory that cannot exist.
    let variables = [
        ("HELM_PLUGINS", OsStr::new("/dev/null/none")),
        ("HELM_NO_PLUGINS", OsStr::new("1")),
    ];
    let text = program::run(&tool.program, &arguments, &variables, timeout, hint)
        .map_err(|failure| refuse_failure(failure, tool, timeout))?;
    let name = format!("{} ({})", job.shown.to_string_lossy(), tool.call);
    Ok((name.into(), text))
}

fn refuse_chart(chart: &helm::Chart) -> Result<(), Refusal> {
    match chart.obstacle {
        None => Ok(()),
        Some(helm::Obstacle::Library) => Err(Refusal::new(
            "a library chart renders only as a part of another one",
        )),
        Some(helm::Obstacle::Broken) => Err(Refusal::new("its Chart.yaml cannot be read")),
        Some(helm::Obstacle::Dependency) => Err(Refusal {
            advice: "getting the dependencies uses the network; by hand: ",
            ..Refusal::new("a chart that it depends on is not in charts/, and nothing is fetched")
        }),
    }
}

fn refuse_failure(failure: Failure, tool: &Tool, timeout: Duration) -> Refusal {
    let call = tool.call;
    match failure {
        Failure::NotStarted => Refusal::new(format!("{call} cannot be started")),
        Failure::TimedOut => Refusal::new(format!(
            "{call} took longer than {} s and was stopped",
            timeout.as_secs_f32().ceil()
        )),
        Failure::Interrupted => {
            Refusal::new(format!("the run was interrupted before {call} ended"))
        }
        Failure::TooLarge => Refusal::new(format!("{call} printed too much and was stopped")),
        Failure::Exit(code, hint) => {
            let code = code.map_or("was killed".to_owned(), |c| {
                format!("ended with exit code {c}")
            });
            let hint = hint.map(|h| format!(" ({h})")).unwrap_or_default();
            Refusal {
                advice: "see its message by hand: ",
                descend: true,
                ..Refusal::new(format!("{call} {code}{hint}"))
            }
        }
    }
}

/// The command that a person runs for the same text.
fn by_hand(job: &Job, tools: &Tools, options: Options<'_>, more: &str) -> String {
    let directory = word(&job.shown);
    let Some(chart) = &job.chart else {
        let call = tools
            .kustomize
            .as_ref()
            .map_or("kubectl kustomize", |t| t.call);
        return format!("{call}{more} {directory}");
    };
    let mut command = String::new();
    if chart.obstacle == Some(helm::Obstacle::Dependency) {
        command = format!("helm dependency build {directory} && ");
    }
    let _infallible = write!(command, "helm template {} {directory}", chart.release);
    for file in options.values {
        let _infallible = write!(command, " --values {}", word(&file.given));
    }
    command
}

/// A path as a word of a shell command.
fn word(path: &Path) -> String {
    let mut text = path.to_string_lossy().into_owned();
    if text.starts_with('-') {
        text.insert_str(0, "./");
    }
    let plain = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./=,:@%+".contains(c));
    if plain {
        text
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

fn note(job: &Job, tools: &Tools, options: Options<'_>, parts: usize) -> InputProblem {
    let of = match (&job.chart, parts) {
        (Some(_), _) => "its templates and values are judged as a part of it".to_owned(),
        (None, 1) => "1 file is judged as a part of it".to_owned(),
        (None, n) => format!("{n} files are judged as parts of it"),
    };
    InputProblem {
        cause: "input-rendered".into(),
        detail: format!("line numbers are those of the rendered text; {of}"),
        fix: format!("see the text: {}", by_hand(job, tools, options, "")),
        position: None,
        outcome: Outcome::Noted,
    }
}

fn problem(job: &Job, refusal: &Refusal, tools: &Tools, options: Options<'_>) -> InputProblem {
    let (cause, what) = if job.chart.is_some() {
        ("input-chart-not-rendered", "a Helm chart")
    } else {
        ("input-kustomization-not-rendered", "a kustomization")
    };
    let outcome = if options.off {
        Outcome::Noted
    } else {
        Outcome::Skipped
    };
    InputProblem {
        cause: cause.into(),
        detail: format!(
            "{what} that was not rendered: {}; its parts are judged as they are",
            refusal.why
        ),
        fix: format!(
            "{}{} | check-interconnect env -",
            refusal.advice,
            by_hand(job, tools, options, refusal.options)
        ),
        position: None,
        outcome,
    }
}

/// Finds the files that are a part of something rendered.
fn cover<R>(
    files: &[(usize, &Path)],
    parts: &BTreeMap<PathBuf, Arc<str>>,
    charts: &[(PathBuf, Arc<str>)],
    rendered: &mut Rendered<R>,
) {
    if parts.is_empty() && charts.is_empty() {
        return;
    }
    for (at, path) in files {
        let Ok(real) = fs::canonicalize(path) else {
            continue;
        };
        let owner = parts.get(&real).or_else(|| {
            charts
                .iter()
                .find(|(chart, _)| real.strip_prefix(chart).is_ok_and(helm::is_part))
                .map(|(_, name)| name)
        });
        if let Some(name) = owner {
            rendered.covered.insert(*at, Arc::clone(name));
        }
    }
}

/// Adds what a kustomization that was not rendered consists of, where it lies outside what was given.
fn add_parts<R>(
    files: &[(usize, &Path)],
    forest: &Forest,
    refused: &[(usize, PathBuf)],
    parts: &BTreeMap<PathBuf, Arc<str>>,
    rendered: &mut Rendered<R>,
) {
    let mut known: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|(_, path)| fs::canonicalize(path).ok())
        .collect();
    known.extend(parts.keys().cloned());
    for (at, root) in refused {
        for real in forest.reached(root) {
            for part in forest.get(&real).into_iter().flat_map(|k| &k.parts) {
                if part.manifest && known.insert(part.real.clone()) {
                    rendered.made.push((*at, Made::Part(part.path.clone())));
                }
            }
        }
    }
}

/// Does the same for all items on a few threads; the results are in the order of the items.
fn on_threads<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(AT_ONCE)
        .min(items.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let run = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return };
            let result = each(item);
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(index, result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    done.into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .into_values()
        .collect()
}
