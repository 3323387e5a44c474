//! Helm charts: which files belong to one, whether it can be rendered without the network, and how.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Component, Path};

use yaml::{Limits, Node};

/// The file that makes a directory a chart.
const CHART: &str = "Chart.yaml";

/// A description of a chart is written by hand.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The release name where the chart's own name cannot be one; helm's default.
const RELEASE: &str = "release-name";

/// Whether a file is the description of a chart by its name.
pub(crate) fn is_chart(name: &OsStr) -> bool {
    name == CHART
}

/// Why a chart is not rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A library: it has nothing of its own to render.
    Library,
    /// A dependency is not in `charts/`; getting it takes the network.
    Dependency,
    /// `Chart.yaml` cannot be read.
    Broken,
}

/// What is known of a chart.
#[derive(Debug)]
pub(super) struct Chart {
    /// The release name to render with.
    pub(super) release: String,
    pub(super) obstacle: Option<Obstacle>,
}

/// Reads the description of a chart.
pub(super) fn read(directory: &Path) -> Chart {
    let broken = Chart {
        release: RELEASE.to_owned(),
        obstacle: Some(Obstacle::Broken),
    };
    let Some(text) = text(&directory.join(CHART)) else {
        return broken;
    };
    let stream = yaml::parse(&text, &Limits::default());
    let (Some(document), true) = (stream.documents.first(), stream.errors.is_empty()) else {
        return broken;
    };
    let root = document.root();
    let name = root.get("name").map(Node::raw_text).unwrap_or_default();
    let mut wanted = dependencies(root);
    // Charts of the first generation list them in a file of their own.
    if let Some(text) = self::text(&directory.join("requirements.yaml")) {
        let stream = yaml::parse(&text, &Limits::default());
        wanted.extend(stream.documents.iter().flat_map(|d| dependencies(d.root())));
    }
    let vendored = vendored(&directory.join("charts"));
    let missing = wanted.iter().any(|name| {
        !vendored.iter().any(|have| match have {
            Vendored::Directory(have) => have == name,
            Vendored::Archive(have) => have
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.starts_with('-')),
        })
    });
    let library = root.get("type").is_some_and(|t| t.raw_text() == "library");
    let obstacle = if library {
        Some(Obstacle::Library)
    } else {
        missing.then_some(Obstacle::Dependency)
    };
    Chart {
        release: release(name),
        obstacle,
    }
}

fn text(file: &Path) -> Option<String> {
    // Anything else could wait for a writer for ever.
    if !file.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file)
        .ok()?
        .take(MAX_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}

fn dependencies(root: Node<'_>) -> Vec<String> {
    root.get("dependencies")
        .into_iter()
        .flat_map(Node::items)
        .filter_map(|d| d.get("name").and_then(Node::text).map(str::to_owned))
        .collect()
}

/// A chart inside `charts/`.
enum Vendored {
    /// Unpacked: by the name in its description.
    Directory(String),
    /// Packed: by the name of the file.
    Archive(String),
}

fn vendored(charts: &Path) -> Vec<Vendored> {
    let Ok(entries) = fs::read_dir(charts) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().extension().is_some_and(|e| e == "tgz") {
                return Some(Vendored::Archive(name));
            }
            let text = text(&entry.path().join(CHART))?;
            let stream = yaml::parse(&text, &Limits::default());
            let root = stream.documents.first()?.root();
            let name = root.get("name").and_then(Node::text)?;
            Some(Vendored::Directory(name.to_owned()))
        })
        .collect()
}

/// A release name must be a DNS name of at most 53 characters.
fn release(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = (1..=53).contains(&name.len())
        && name.chars().all(allowed)
        && !name.starts_with('-')
        && !name.ends_with('-');
    if fits { name } else { RELEASE }.to_owned()
}

/// Whether a file below a chart's directory is a part of the chart: its description, its templates and values, and
/// the charts inside it. Anything else (examples, say) is judged on its own.
pub(super) fn is_part(relative: &Path) -> bool {
    let mut components = relative.components();
    let Some(Component::Normal(first)) = components.next() else {
        return false;
    };
    let first = first.to_string_lossy();
    if components.next().is_some() {
        // ci/ holds values for helm's own test tool.
        return matches!(&*first, "templates" | "charts" | "crds" | "ci");
    }
    matches!(
        &*first,
        CHART | "Chart.lock" | "requirements.yaml" | "requirements.lock" | "values.schema.json"
    ) || is_values(&first)
}

/// `values.yaml`, `values-prod.yaml`, `prod-values.yml`.
fn is_values(name: &str) -> bool {
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let word = |c: char| !c.is_ascii_alphanumeric();
    matches!(extension, "yaml" | "yml")
        && (stem.split(word).next() == Some("values") || stem.rsplit(word).next() == Some("values"))
}

/// The arguments that render a chart. Paths must be absolute, so that none is taken for an option, a URL or a
/// repository.
pub(super) fn arguments<'v>(
    release: &str,
    directory: &Path,
    values: impl Iterator<Item = &'v Path>,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["template", release].map(OsString::from).into();
    arguments.push(directory.into());
    arguments.extend(["--no-hooks", "--skip-tests"].map(OsString::from));
    for file in values {
        arguments.push("--values".into());
        arguments.push(one_of_list(file));
    }
    arguments
}

/// helm reads the option as a line of comma-separated values; a path with a comma or a quote needs quotes.
fn one_of_list(file: &Path) -> OsString {
    let text = file.to_string_lossy();
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        file.into()
    }
}

/// What helm prints on an error, recognized without repeating it.
pub(super) fn hint(text: &str) -> Option<&'static str> {
    let known = [
        (
            "missing in charts/ directory",
            "a chart that it depends on is not in charts/",
        ),
        (
            "nil pointer evaluating",
            "a template uses a value that is not set",
        ),
        (
            "execution error at",
            "a template demands a value that is not set, or refuses one",
        ),
        (
            "meet the specifications of the schema",
            "its values do not fit its schema",
        ),
        (
            "chart requires kubeVersion",
            "it asks for another version of Kubernetes than helm assumes",
        ),
        (
            "YAML parse error",
            "a template does not render to valid YAML with these values",
        ),
        ("parse error", "a template cannot be parsed"),
        ("error calling", "a template fails with these values"),
        ("failed to parse", "a values file is not valid YAML"),
        ("no template", "a template that it includes is not there"),
        ("validation:", "its description is not valid"),
    ];
    known
        .iter()
        .find(|(words, _)| text.contains(words))
        .map(|(_, meaning)| *meaning)
}
