//! Kustomizations: what one reaches, whether it can be rendered without the network, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use yaml::{Limits, LineIndex, Node};

/// The names that kustomize looks for.
const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A kustomization is written by hand; anything larger is something else.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Entries of one kustomization, with those that aliases repeat; each costs a look at the file system.
const MAX_ENTRIES: u32 = 20_000;

/// Whether a file is a kustomization by its name.
pub(crate) fn is_kustomization(name: &OsStr) -> bool {
    NAMES.iter().any(|n| name == *n)
}

/// Why a kustomization is not rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle {
    /// In words, with the place and without quoting what stands there.
    pub(super) why: String,
    /// Rendering it fetches something.
    pub(super) network: bool,
    /// Further options that a person has to decide about.
    pub(super) options: &'static str,
}

/// A file that a kustomization names.
#[derive(Debug)]
pub(super) struct Part {
    /// As reached from the path that was given.
    pub(super) path: PathBuf,
    /// The same file by its one true name.
    pub(super) real: PathBuf,
    /// A resource or a patch: something to judge where the whole cannot be rendered.
    pub(super) manifest: bool,
}

/// One directory with a kustomization.
#[derive(Debug)]
pub(super) struct Kustomization {
    /// As reached from the path that was given.
    pub(super) directory: PathBuf,
    /// Its own files (more than one is an error) and those that it names.
    pub(super) parts: Vec<Part>,
    /// Directories that it names, by their true names.
    pub(super) bases: Vec<PathBuf>,
    /// It can only be a part of another one.
    pub(super) component: bool,
    /// What keeps it from being rendered, by itself.
    pub(super) obstacle: Option<Obstacle>,
}

/// All kustomizations that a run meets, by the true names of their directories.
#[derive(Debug, Default)]
pub(super) struct Forest {
    known: BTreeMap<PathBuf, Option<Kustomization>>,
}

impl Forest {
    /// Reads a directory's kustomization and all that it reaches. Its true name, if there is one.
    pub(super) fn plant(&mut self, directory: &Path) -> Option<PathBuf> {
        let root = fs::canonicalize(directory).ok()?;
        let mut waiting = vec![(root.clone(), directory.to_owned())];
        while let Some((real, shown)) = waiting.pop() {
            if self.known.contains_key(&real) {
                continue;
            }
            let (kustomization, next) = match read(&shown) {
                Some((kustomization, next)) => (Some(kustomization), next),
                None => (None, Vec::new()),
            };
            waiting.extend(next);
            self.known.insert(real, kustomization);
        }
        self.get(&root).is_some().then_some(root)
    }

    pub(super) fn get(&self, real: &Path) -> Option<&Kustomization> {
        self.known.get(real)?.as_ref()
    }

    /// Every kustomization that one reaches, itself first.
    pub(super) fn reached(&self, root: &Path) -> BTreeSet<PathBuf> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![root.to_owned()];
        while let Some(real) = waiting.pop() {
            if let Some(found) = self.get(&real)
                && seen.insert(real)
            {
                waiting.extend(found.bases.iter().cloned());
            }
        }
        seen
    }

    /// The first thing that keeps a kustomization from being rendered, in itself or in what it reaches.
    pub(super) fn obstacle(&self, root: &Path) -> Option<Obstacle> {
        let reached = self.reached(root);
        // Its own obstacle is told first.
        std::iter::once(root)
            .chain(reached.iter().map(PathBuf::as_path))
            .find_map(|real| self.get(real).and_then(|k| k.obstacle.clone()))
            .or_else(|| {
                self.has_circle(&reached)
                    .then(|| obstacle("it reaches itself".to_owned()))
            })
    }

    /// Whether some of these reach each other: taking away what nothing else reaches does not take away all.
    fn has_circle(&self, all: &BTreeSet<PathBuf>) -> bool {
        let bases = |real: &Path| self.get(real).into_iter().flat_map(|k| &k.bases);
        let mut above: BTreeMap<&Path, usize> = all.iter().map(|real| (&**real, 0)).collect();
        for base in all.iter().flat_map(|real| bases(real)) {
            if let Some(count) = above.get_mut(&**base) {
                *count += 1;
            }
        }
        let mut free: Vec<&Path> = above
            .iter()
            .filter(|(_, count)| **count == 0)
            .map(|(real, _)| *real)
            .collect();
        let mut gone = 0;
        while let Some(real) = free.pop() {
            gone += 1;
            for base in bases(real) {
                if let Some(count) = above.get_mut(&**base) {
                    *count -= 1;
                    if *count == 0 {
                        free.push(base);
                    }
                }
            }
        }
        gone < above.len()
    }
}

fn obstacle(why: String) -> Obstacle {
    Obstacle {
        why,
        network: false,
        options: "",
    }
}

/// What kustomize prints on an error, recognized without repeating it.
pub(super) fn hint(text: &str) -> Option<&'static str> {
    let known = [
        (
            "is not in or below",
            "a file that it names lies outside its directory, which kustomize refuses",
        ),
        (
            "already registered id",
            "two resources have the same kind and name",
        ),
        ("no matches for", "a patch finds no object to change"),
        ("no resource matches", "a patch finds no object to change"),
        (
            "unable to find patch target",
            "a patch finds no object to change",
        ),
        (
            "unable to find field in replacement target",
            "a replacement finds no field to change",
        ),
        (
            "nothing selected by",
            "a replacement finds no object to read from",
        ),
        (
            "unknown field",
            "it has a field that this kustomize does not know",
        ),
        (
            "doc is missing path",
            "a JSON patch names a path that its object does not have",
        ),
        (
            "operation does not apply",
            "a JSON patch does not fit its object",
        ),
        (
            "invalid jsonpatch",
            "a patch is neither a JSON patch nor a manifest",
        ),
        (
            "unable to parse SM or JSON patch",
            "a patch is neither a JSON patch nor a manifest",
        ),
        ("cycle detected", "it reaches itself"),
        (
            "no such file or directory",
            "a file that it names is not there",
        ),
        (
            "MalformedYAMLError",
            "a file that it names is not valid YAML",
        ),
        (
            "missing metadata.name",
            "a resource that it names has no name",
        ),
        (
            "missing Resource metadata",
            "a resource that it names has no metadata",
        ),
        ("yaml: ", "a file that it names is not valid YAML"),
    ];
    known
        .iter()
        .find(|(words, _)| text.contains(words))
        .map(|(_, meaning)| *meaning)
}

type Next = Vec<(PathBuf, PathBuf)>;

/// Reads one directory; none where it holds no kustomization, or one that belongs to another program.
fn read(directory: &Path) -> Option<(Kustomization, Next)> {
    let files: Vec<PathBuf> = NAMES
        .iter()
        .map(|name| directory.join(name))
        .filter(|file| file.is_file())
        .collect();
    let file = files.first()?;
    let mut text = String::new();
    let read = File::open(file).and_then(|f| f.take(MAX_BYTES + 1).read_to_string(&mut text));
    let mut reader = Reader {
        directory,
        file,
        lines: LineIndex::new(&text),
        at: 0,
        left: MAX_ENTRIES,
        found: Kustomization {
            directory: directory.to_owned(),
            parts: Vec::new(),
            bases: Vec::new(),
            component: false,
            obstacle: None,
        },
        next: Vec::new(),
    };
    for file in &files {
        reader.part(file, false);
    }
    if files.len() > 1 {
        reader.refuse(obstacle(
            "its directory has more than one kustomization file".to_owned(),
        ));
    }
    if read.is_err() || text.len() as u64 > MAX_BYTES {
        reader.refuse(obstacle(format!("{} cannot be read", file.display())));
        return Some((reader.found, reader.next));
    }
    let stream = yaml::parse(&text, &Limits::default());
    if let Some(error) = stream.errors.first() {
        reader.refuse(obstacle(format!(
            "{}:{} is not valid YAML",
            file.display(),
            error.line
        )));
    }
    for document in &stream.documents {
        let root = document.root();
        let version = root.get("apiVersion").map(Node::raw_text);
        if version.is_some_and(|v| !v.is_empty() && !v.starts_with("kustomize.config.k8s.io/")) {
            // A Flux Kustomization, say: an object for a cluster.
            return None;
        }
        reader.found.component |= root
            .get("kind")
            .is_some_and(|k| k.raw_text() == "Component");
        reader.document(root);
    }
    Some((reader.found, reader.next))
}

/// Goes through the fields of one kustomization.
struct Reader<'r> {
    directory: &'r Path,
    file: &'r Path,
    /// The text, for line numbers.
    lines: LineIndex<'r>,
    /// Where in it the reader is.
    at: u32,
    /// Entries that may still come.
    left: u32,
    found: Kustomization,
    next: Next,
}

impl Reader<'_> {
    fn document(&mut self, root: Node<'_>) {
        for (key, value) in root.entries() {
            self.at = key.written_span().start;
            if !key.raw_text().is_ascii() {
                // kustomize compares names of fields by Unicode case folding.
                self.refuse_here("a field that is not known");
                continue;
            }
            // And so it takes RESOURCES for resources.
            let field = key.raw_text().to_ascii_lowercase();
            for item in list(value) {
                self.at = item.written_span().start;
                if !self.spend() {
                    return;
                }
                match field.as_str() {
                    "resources" | "bases" | "components" => self.resource(item.raw_text()),
                    "crds" | "configurations" => self.file(item.raw_text(), false),
                    "patchesstrategicmerge" => {
                        let entry = item.raw_text();
                        if !is_inline(entry) || is_url(entry) {
                            self.file(entry, true);
                        }
                    }
                    "patches" | "patchesjson6902" => {
                        for path in fields(item, &["path"]) {
                            self.file(path.raw_text(), true);
                        }
                    }
                    "replacements" | "openapi" => {
                        for path in fields(item, &["path"]) {
                            self.file(path.raw_text(), false);
                        }
                    }
                    "configmapgenerator" | "secretgenerator" => {
                        for source in fields(item, &["files", "envs", "env"]) {
                            for entry in list(source) {
                                if !self.spend() {
                                    return;
                                }
                                self.data(entry.raw_text());
                            }
                        }
                    }
                    "generators" | "transformers" | "validators" => self.plugin(item.raw_text()),
                    "helmcharts" | "helmchartinflationgenerator" => {
                        let why = self.here("inflates a Helm chart, which can fetch it");
                        self.refuse(Obstacle {
                            why,
                            network: true,
                            options: " --enable-helm",
                        });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes one entry from those that may come.
    fn spend(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.refuse_here("too many entries");
        }
        self.left > 0
    }

    fn here(&self, what: &str) -> String {
        let line = self.lines.line_column(self.at).0;
        format!("{}:{line} {what}", self.file.display())
    }

    fn refuse(&mut self, obstacle: Obstacle) {
        // The network is the reason that matters most.
        if self
            .found
            .obstacle
            .as_ref()
            .is_none_or(|known| !known.network && obstacle.network)
        {
            self.found.obstacle = Some(obstacle);
        }
    }

    fn refuse_here(&mut self, what: &str) {
        let why = self.here(&format!("has {what}"));
        self.refuse(obstacle(why));
    }

    fn remote(&mut self) {
        let why = self.here("names something remote, and nothing is fetched");
        self.refuse(Obstacle {
            why,
            network: true,
            options: "",
        });
    }

    fn missing(&mut self) {
        let why = self.here("names something that is not there");
        self.refuse(obstacle(why));
    }

    fn part(&mut self, path: &Path, manifest: bool) {
        if let Ok(real) = fs::canonicalize(path) {
            self.found.parts.push(Part {
                path: plain(path, &real),
                real,
                manifest,
            });
        }
    }

    /// A resource, a base or a component. Only what exists here is taken for local.
    fn resource(&mut self, entry: &str) {
        if entry.is_empty() {
            return;
        }
        if is_url(entry) {
            return self.remote();
        }
        let path = self.directory.join(entry);
        // kustomize looks for a file first, then for a repository, then for a directory.
        if is_remote(entry) && !path.is_file() {
            return self.remote();
        }
        match fs::metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                let has_one = NAMES.iter().any(|n| path.join(n).is_file());
                match fs::canonicalize(&path) {
                    Ok(real) if has_one => {
                        self.found.bases.push(real.clone());
                        self.next.push((real.clone(), plain(&path, &real)));
                    }
                    _ => {
                        let why = self.here("names a directory without a kustomization");
                        self.refuse(obstacle(why));
                    }
                }
            }
            Ok(meta) if meta.is_file() => self.part(&path, true),
            Ok(_) => {
                let why = self.here("names something that is neither a file nor a directory");
                self.refuse(obstacle(why));
            }
            Err(_) => self.missing(),
        }
    }

    fn file(&mut self, entry: &str, manifest: bool) {
        if entry.is_empty() {
            return;
        }
        if is_url(entry) {
            return self.remote();
        }
        let path = self.directory.join(entry);
        if path.is_file() {
            self.part(&path, manifest);
        } else {
            self.missing();
        }
    }

    /// A file of a generator: `path` or `key=path`.
    fn data(&mut self, entry: &str) {
        let path = entry.split_once('=').map_or(entry, |(_, path)| path);
        self.file(if is_url(entry) { entry } else { path }, false);
    }

    /// The configuration of a plugin can name files of its own, and programs; those are off.
    fn plugin(&mut self, entry: &str) {
        let path = self.directory.join(entry);
        let mut text = entry.to_owned();
        if !is_inline(entry)
            && path.is_file()
            && let Ok(file) = File::open(&path)
        {
            // What cannot be read is for kustomize to complain about.
            let _short = file.take(MAX_BYTES).read_to_string(&mut text);
        }
        if ["://", "git@", "HelmChart"]
            .iter()
            .any(|w| text.contains(w))
        {
            let why = self.here("configures a plugin that can fetch something");
            self.refuse(Obstacle {
                why,
                network: true,
                options: "",
            });
        } else if !is_inline(entry) {
            self.resource(entry);
        }
    }
}

/// The items of a list; anything else stands for itself.
fn list(value: Node<'_>) -> Vec<Node<'_>> {
    if value.is_sequence() {
        value.items().collect()
    } else {
        vec![value]
    }
}

/// Values of some fields, whatever their case: kustomize's decoder does not mind it.
fn fields<'d>(node: Node<'d>, names: &'d [&str]) -> impl Iterator<Item = Node<'d>> {
    node.entries()
        .filter(|(key, _)| names.iter().any(|n| key.raw_text().eq_ignore_ascii_case(n)))
        .map(|(_, value)| value)
}

/// Text of a patch or of a plugin's configuration in place of a path.
fn is_inline(entry: &str) -> bool {
    entry.contains('\n') || entry.contains(": ") || entry.trim_start().starts_with(['{', '['])
}

/// Files are fetched by URL only. An inline patch can have one inside, not at its start.
fn is_url(entry: &str) -> bool {
    !entry.contains('\n')
        && entry.split_once("://").is_some_and(|(scheme, _)| {
            scheme
                .trim()
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.:=_/".contains(c))
        })
}

/// Whether kustomize, in any of its versions, could take an entry for a repository to fetch.
fn is_remote(entry: &str) -> bool {
    let entry = entry.trim().to_ascii_lowercase();
    let user = entry
        .split_once('@')
        .is_some_and(|(user, _)| user.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
    entry.contains("://")
        || entry.contains("?ref=")
        || entry.contains("&ref=")
        || user
        || ["git::", "gh:", "github.com/", "github.com:"]
            .iter()
            .any(|prefix| entry.starts_with(prefix))
}

/// A path without its `..`, where that is the same file.
fn plain(path: &Path, real: &Path) -> PathBuf {
    use std::path::Component;
    let mut short = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(short.components().next_back(), Some(Component::Normal(_))) =>
            {
                short.pop();
            }
            other => short.push(other),
        }
    }
    if short.as_os_str().is_empty() {
        short.push(".");
    }
    if fs::canonicalize(&short).is_ok_and(|s| s == real) {
        short
    } else {
        path.to_owned()
    }
}
