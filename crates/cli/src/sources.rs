//! Reads what `env` is given: files, directories, standard input. Whatever cannot be read becomes a problem of
//! its own and never stops the others.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, FileType};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use model::{Facts, Input, InputProblem, Outcome};
use policy::Suppression;
use recipe::FileDraft;
use walkdir::WalkDir;

use crate::render::{self, Made};

/// Larger inputs are no manifests.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Files above this are read one at a time, so that memory follows the largest file and not the number of cores.
const LARGE: u64 = 4 * 1024 * 1024;

/// What became of one path.
enum Read {
    Draft(FileDraft, Vec<Suppression>),
    /// A rendered text: judged without regard to its neighbours, with something to say about it.
    Rendered(FileDraft, Vec<Suppression>, InputProblem),
    Problem(Arc<str>, InputProblem),
}

/// One thing to read.
enum Work {
    Stdin,
    File(PathBuf),
    Problem(Arc<str>, InputProblem),
    /// Rendered and read already; taken out once.
    Done(Arc<str>, Box<Mutex<Option<Read>>>),
}

impl Work {
    /// The name of the input.
    fn name(&self) -> Arc<str> {
        match self {
            Self::Stdin => "-".into(),
            Self::File(path) => shown(path),
            Self::Problem(name, _) | Self::Done(name, _) => Arc::clone(name),
        }
    }
}

/// How to read.
pub(crate) struct Reading<'r> {
    /// Whether a file of a directory is left out; one that is named is always read.
    pub(crate) leave_out: &'r dyn Fn(&Path) -> LeaveOut,
    /// Texts that stand for those of files, by their path as it is shown.
    pub(crate) instead: &'r HashMap<String, String>,
}

/// What becomes of a file of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaveOut {
    /// It is read.
    No,
    /// It is left out, which the report says.
    Counted,
    /// It is a file of ours and no input.
    Silently,
}

/// What was read.
pub(crate) struct Sources {
    pub(crate) facts: Facts,
    pub(crate) suppressions: Vec<Suppression>,
    /// Files that were left out.
    pub(crate) excluded: usize,
}

/// Reads all paths into facts, in the order given; directories in the order of their names.
pub(crate) fn read(
    paths: &[PathBuf],
    options: render::Options<'_>,
    reading: &Reading<'_>,
) -> Result<Sources, String> {
    let mut work = Vec::new();
    let mut excluded = 0;
    for path in paths {
        plan(path, reading, &mut work, &mut excluded);
    }
    once(&mut work);
    let work = rendered(work, paths, options)?;
    let mut drafts = Vec::new();
    let mut problems = Vec::new();
    let mut suppressions = Vec::new();
    let mut alone = Vec::new();
    for read in read_all(&work, reading.instead) {
        match read {
            Read::Draft(draft, found) => {
                drafts.push(draft);
                suppressions.extend(found);
            }
            Read::Rendered(draft, found, note) => {
                alone.push((draft, note));
                suppressions.extend(found);
            }
            Read::Problem(path, problem) => problems.push(Input {
                path,
                documents: 0,
                problems: vec![problem],
            }),
        }
    }
    let mut facts = recipe::assemble(drafts);
    once_told(&mut facts, &problems);
    if alone.is_empty() {
        facts.inputs.extend(problems);
        return Ok(Sources {
            facts,
            suppressions,
            excluded,
        });
    }
    for (draft, note) in alone {
        // A ConfigMap or the other half of a deployment is in the same text, or it is not deployed with it.
        let mut own = recipe::assemble(vec![draft]);
        if let Some(input) = own.inputs.first_mut() {
            input.problems.insert(0, note);
        }
        facts.inputs.append(&mut own.inputs);
        facts.deployments.append(&mut own.deployments);
    }
    let mut order: HashMap<Arc<str>, usize> = HashMap::new();
    for (at, item) in work.iter().enumerate() {
        order.entry(item.name()).or_insert(at);
    }
    let place = |path: Option<&Arc<str>>| path.and_then(|p| order.get(p)).copied();
    facts.inputs.sort_by_key(|i| place(Some(&i.path)));
    facts.deployments.sort_by_key(|d| place(d.files.first()));
    facts.inputs.extend(problems);
    Ok(Sources {
        facts,
        suppressions,
        excluded,
    })
}

/// A kustomization that was not rendered is told of once, with the reason.
fn once_told(facts: &mut Facts, problems: &[Input]) {
    const CAUSE: &str = "input-kustomization-not-rendered";
    let told: HashSet<&str> = problems
        .iter()
        .filter(|i| {
            i.problems
                .iter()
                .any(|p| p.cause == CAUSE && p.outcome == Outcome::Skipped)
        })
        .map(|i| &*i.path)
        .collect();
    if told.is_empty() {
        return;
    }
    for input in &mut facts.inputs {
        let directory = input.path.rsplit_once('/').map_or(".", |(d, _)| d);
        if told.contains(directory) {
            input.problems.retain(|p| p.cause != CAUSE);
        }
    }
}

/// Puts what kustomizations and charts render to in place of their files.
fn rendered(
    work: Vec<Work>,
    paths: &[PathBuf],
    options: render::Options<'_>,
) -> Result<Vec<Work>, String> {
    let files: Vec<(usize, &Path)> = work
        .iter()
        .enumerate()
        .filter_map(|(at, item)| match item {
            Work::File(path) => Some((at, path.as_path())),
            _ => None,
        })
        .collect();
    let render::Rendered {
        covered,
        made,
        charts,
    } = render::all(&files, options, &|path, bytes| text(path, Ok(bytes)));
    if !charts && !options.values.is_empty() {
        return Err("--values: no Helm chart is among the inputs".to_owned());
    }
    if covered.is_empty() && made.is_empty() {
        return Ok(work);
    }
    let mut made = made.into_iter().peekable();
    let mut all = Vec::with_capacity(work.len());
    for (at, item) in work.into_iter().enumerate() {
        while let Some((_, new)) = made.next_if(|(before, _)| *before <= at) {
            all.push(match new {
                Made::Text(read, name, note) => {
                    let read = match read {
                        Read::Draft(draft, found) => Read::Rendered(draft, found, note),
                        other => other,
                    };
                    Work::Done(name, Box::new(Mutex::new(Some(read))))
                }
                Made::Problem(path, problem) => Work::Problem(path, problem),
                Made::Part(path) => Work::File(path),
            });
        }
        match (covered.get(&at), item) {
            // What was named itself is not left out without a word.
            (Some(owner), Work::File(path)) if paths.contains(&path) => {
                let note = problem(
                    "input-rendered",
                    format!("it is judged as a part of {owner}"),
                    "nothing is lost; --no-render judges it alone",
                    Outcome::Noted,
                );
                all.push(Work::Problem(shown(&path), note));
            }
            (Some(_), _) => {}
            (None, item) => all.push(item),
        }
    }
    Ok(all)
}

/// A file that is named twice, itself and by its directory perhaps, is one recipe and not two. Links to it keep
/// their own names: what stands beside a file can belong to it.
fn once(work: &mut Vec<Work>) {
    let mut seen = HashSet::new();
    // A directory is resolved once, whatever the number of its files.
    let mut resolved: HashMap<PathBuf, PathBuf> = HashMap::new();
    work.retain(|item| match item {
        Work::Stdin => seen.insert(PathBuf::from("-")),
        Work::File(path) if is_open_pipe(path) => true,
        Work::File(path) => {
            let directory = path
                .parent()
                .filter(|d| !d.as_os_str().is_empty())
                .unwrap_or(Path::new("."));
            let directory = match resolved.get(directory) {
                Some(known) => known,
                None => resolved.entry(directory.to_owned()).or_insert_with(|| {
                    fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned())
                }),
            };
            seen.insert(directory.join(path.file_name().unwrap_or_default()))
        }
        Work::Problem(..) | Work::Done(..) => true,
    });
}

fn shown(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

fn problem(
    cause: &'static str,
    detail: impl Into<String>,
    fix: &str,
    outcome: Outcome,
) -> InputProblem {
    InputProblem {
        cause: cause.into(),
        detail: detail.into(),
        fix: fix.to_owned(),
        position: None,
        outcome,
    }
}

/// Decides what there is to read under a path.
fn plan(path: &Path, reading: &Reading<'_>, work: &mut Vec<Work>, excluded: &mut usize) {
    if path == Path::new("-") {
        work.push(Work::Stdin);
        return;
    }
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => directory(path, reading, work, excluded),
        Ok(meta) if meta.is_file() || is_open_pipe(path) => work.push(Work::File(path.to_owned())),
        Ok(meta) => work.push(Work::Problem(shown(path), not_a_file(meta.file_type()))),
        Err(error) => work.push(Work::Problem(shown(path), unreachable_path(path, &error))),
    }
}

/// `<(command)` gives a pipe that is open already; any other FIFO could wait for a writer for ever.
fn is_open_pipe(path: &Path) -> bool {
    path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
        || path == Path::new("/dev/stdin")
}

/// What a path is that may have no end, or no beginning: a FIFO without a writer, a socket or a device.
pub(crate) fn endless(path: &Path) -> Option<&'static str> {
    let kind = fs::metadata(path).ok()?.file_type();
    let plain =
        kind.is_file() || kind.is_dir() || is_open_pipe(path) || path == Path::new("/dev/null");
    (!plain).then(|| what_kind(kind))
}

fn not_a_file(kind: FileType) -> InputProblem {
    let what = what_kind(kind);
    problem(
        "input-not-a-file",
        format!("{what}, not a file or directory"),
        "to read a stream, pipe it: command | check-interconnect env -",
        Outcome::Broken,
    )
}

#[cfg(unix)]
fn what_kind(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn what_kind(_kind: FileType) -> &'static str {
    "something else"
}

fn unreachable_path(path: &Path, error: &io::Error) -> InputProblem {
    let is_link = fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink());
    match error.kind() {
        io::ErrorKind::NotFound if is_link => problem(
            "input-link-loop",
            "a symbolic link to nothing",
            "correct or remove the link",
            Outcome::Broken,
        ),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => problem(
            "input-missing",
            "no such file or directory",
            "check the path",
            Outcome::Missing,
        ),
        io::ErrorKind::PermissionDenied => problem(
            "input-unreadable",
            "permission denied",
            "check its permissions, or pipe its content: check-interconnect env - < FILE",
            Outcome::Broken,
        ),
        _ if is_link => problem(
            "input-link-loop",
            format!("a symbolic link that cannot be followed: {}", reason(error)),
            "correct or remove the link",
            Outcome::Broken,
        ),
        _ => problem(
            "input-unreadable",
            reason(error),
            "check the path",
            Outcome::Broken,
        ),
    }
}

/// The system's words without Rust's "(os error N)".
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error")
        .map_or(text.clone(), |(head, _)| head.to_owned())
        .to_ascii_lowercase()
}

/// What lies below a directory, links followed, without hidden directories.
fn walk(root: &Path) -> impl Iterator<Item = walkdir::Result<walkdir::DirEntry>> {
    WalkDir::new(root)
        .follow_links(true)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|e| e.depth() == 0 || !(e.file_type().is_dir() && is_hidden(e.file_name())))
}

/// Whether a file of a directory is an input, by its name.
pub(crate) fn is_read(path: &Path) -> bool {
    is_manifest_name(path) || path.file_name().is_some_and(render::is_kustomization)
}

/// The files of a directory that are inputs.
pub(crate) fn files_of(directory: &Path) -> impl Iterator<Item = PathBuf> {
    walk(directory)
        .filter_map(Result::ok)
        .filter(|e| e.file_type().is_file() && is_read(e.path()))
        .map(walkdir::DirEntry::into_path)
}

fn directory(root: &Path, reading: &Reading<'_>, work: &mut Vec<Work>, excluded: &mut usize) {
    let mut found = false;
    for entry in walk(root) {
        match entry {
            Ok(entry) if entry.file_type().is_dir() => {}
            Ok(entry) if !is_read(entry.path()) => {}
            Ok(entry) if entry.file_type().is_file() => {
                found = true;
                match (reading.leave_out)(entry.path()) {
                    LeaveOut::No => {}
                    LeaveOut::Counted => {
                        *excluded += 1;
                        continue;
                    }
                    LeaveOut::Silently => continue,
                }
                work.push(Work::File(entry.into_path()));
            }
            Ok(entry) => {
                found = true;
                work.push(Work::Problem(
                    shown(entry.path()),
                    not_a_file(entry.file_type()),
                ));
            }
            Err(error) => {
                let path = error.path().unwrap_or(root).to_owned();
                if error.loop_ancestor().is_some() {
                    // What the link leads back to is read where it stands.
                    work.push(Work::Problem(
                        shown(&path),
                        problem(
                            "input-link-loop",
                            "a symbolic link back to a directory above it; not followed",
                            "nothing is lost; remove the link to silence this",
                            Outcome::Noted,
                        ),
                    ));
                } else if let Some(io_error) = error.io_error() {
                    let link_to_data = !is_manifest_name(&path) && path.extension().is_some();
                    if !link_to_data {
                        work.push(Work::Problem(
                            shown(&path),
                            unreachable_in_directory(&path, io_error),
                        ));
                    }
                }
            }
        }
    }
    if !found {
        work.push(Work::Problem(
            shown(root),
            problem(
                "input-no-manifest",
                "no .yaml, .yml or .json file in this directory",
                "give a directory with manifests, or name the files",
                Outcome::Empty,
            ),
        ));
    }
}

/// Inside a directory nobody named the path, so its absence is no usage error.
fn unreachable_in_directory(path: &Path, error: &io::Error) -> InputProblem {
    let mut problem = unreachable_path(path, error);
    if problem.outcome == Outcome::Missing {
        problem.outcome = Outcome::Broken;
    }
    problem
}

pub(crate) fn is_hidden(name: &std::ffi::OsStr) -> bool {
    name.to_string_lossy().starts_with('.')
}

fn is_manifest_name(path: &Path) -> bool {
    path.extension().is_some_and(|e| {
        e.eq_ignore_ascii_case("yaml")
            || e.eq_ignore_ascii_case("yml")
            || e.eq_ignore_ascii_case("json")
    })
}

/// Reads everything, on all cores where there is more than one file.
fn read_all(work: &[Work], instead: &HashMap<String, String>) -> Vec<Read> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(work.len());
    if threads < 2 {
        return work.iter().map(|w| one(w, None, instead)).collect();
    }
    let next = AtomicUsize::new(0);
    let large = Mutex::new(());
    let mut done: Vec<(usize, Read)> = std::thread::scope(|scope| {
        let run = || {
            let mut mine = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = work.get(index) else {
                    return mine;
                };
                mine.push((index, one(item, Some(&large), instead)));
            }
        };
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut all = run();
        for other in others {
            if let Ok(part) = other.join() {
                all.extend(part);
            }
        }
        all
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, read)| read).collect()
}

fn one(work: &Work, large: Option<&Mutex<()>>, instead: &HashMap<String, String>) -> Read {
    match work {
        Work::Problem(path, problem) => Read::Problem(Arc::clone(path), problem.clone()),
        Work::Done(name, read) => {
            let taken = read.lock().ok().and_then(|mut read| read.take());
            taken.unwrap_or_else(|| text(Arc::clone(name), Ok(Vec::new())))
        }
        Work::Stdin => text("-".into(), bytes(&mut io::stdin().lock(), 0)),
        Work::File(path) => {
            let name = shown(path);
            if let Some(text) = instead.get(&*name) {
                return draft(&name, text);
            }
            let file = match File::open(path) {
                Ok(file) => file,
                Err(error) => return Read::Problem(name, unreachable_path(path, &error)),
            };
            let size = file.metadata().map_or(0, |m| m.len());
            let guard = large.filter(|_| size > LARGE).map(Mutex::lock);
            let mut file = file;
            let read = text(name, bytes(&mut file, size));
            drop(guard);
            read
        }
    }
}

fn bytes(source: &mut dyn io::Read, size: u64) -> Result<Vec<u8>, InputProblem> {
    let too_large = || {
        problem(
            "input-too-large",
            format!(
                "larger than {} MiB; a manifest was expected",
                MAX_BYTES / 1024 / 1024
            ),
            "give the manifest, not a data file",
            Outcome::Broken,
        )
    };
    if size > MAX_BYTES {
        return Err(too_large());
    }
    let mut buffer = Vec::with_capacity(usize::try_from(size).unwrap_or(0).saturating_add(1));
    match source.take(MAX_BYTES + 1).read_to_end(&mut buffer) {
        Ok(_) if buffer.len() as u64 > MAX_BYTES => Err(too_large()),
        Ok(_) => Ok(buffer),
        Err(error) => Err(problem(
            "input-unreadable",
            reason(&error),
            "check that it is a readable file",
            Outcome::Broken,
        )),
    }
}

fn draft(path: &Arc<str>, text: &str) -> Read {
    Read::Draft(recipe::read(path, text), policy::scan(path, text))
}

fn text(path: Arc<str>, bytes: Result<Vec<u8>, InputProblem>) -> Read {
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(problem) => return Read::Problem(path, problem),
    };
    let encoding = |what: &str, fix: &str| {
        problem(
            "input-not-utf8",
            format!("{what}; UTF-8 text was expected"),
            fix,
            Outcome::Broken,
        )
    };
    // UTF-32 begins as UTF-16 does.
    if bytes.starts_with(&[0xFF, 0xFE, 0, 0]) || bytes.starts_with(&[0, 0, 0xFE, 0xFF]) {
        return Read::Problem(
            path,
            encoding("UTF-32 text", "convert it: iconv -f UTF-32 -t UTF-8 FILE"),
        );
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Read::Problem(
            path,
            encoding("UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
        );
    }
    if bytes.contains(&0) {
        return Read::Problem(
            path,
            encoding("binary data (it has NUL bytes)", "give a manifest"),
        );
    }
    match String::from_utf8(bytes) {
        Ok(text) => draft(&path, &text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            Read::Problem(
                path,
                encoding(
                    &format!("byte {at} is not UTF-8"),
                    "convert it to UTF-8, or leave it out",
                ),
            )
        }
    }
}
