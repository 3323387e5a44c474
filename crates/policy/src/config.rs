//! `check-interconnect.toml`: what counts as what in this repository, and why.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use checks::{Expected, Provider};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use model::Status;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use crate::causes;

/// Names of the file, in the order in which they are looked for.
pub const FILE_NAMES: [&str; 2] = ["check-interconnect.toml", ".check-interconnect.toml"];

/// What a finding counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Ok, with a note.
    Allow,
    /// A warning.
    Warn,
    /// A failure.
    Fail,
}

/// Configuration of check-interconnect
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigFile {
    /// What findings count as, by check (`env/ucx-tls`) or cause (`ucx-tls-tcp-only`); a cause wins over its check.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, LevelFile>")]
    levels: BTreeMap<Spanned<String>, LevelFile>,
    /// Paths that are left out where they are found in a directory, as patterns relative to this file.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    exclude: Vec<Spanned<String>>,
    /// The fabric of the cluster.
    fabric: Option<FabricFile>,
}

/// A level and why.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LevelFile {
    /// What the finding counts as.
    level: Level,
    /// Why; told with every finding that it changes.
    #[schemars(with = "String", length(min = 1))]
    reason: Spanned<String>,
}

/// The fabric of the cluster.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FabricFile {
    /// The fabric that KV cache is meant to use. A worker that asks for another one is warned of. With `tcp`, warnings
    /// that say no more than that KV goes over TCP count as ok.
    #[schemars(with = "Option<ExpectedFile>")]
    expected: Option<Spanned<ExpectedFile>>,
    /// The cloud that the cluster runs on. A worker that asks for what it does not offer is warned of, GKE's networks
    /// have to be attached, and fixes name what the provider's nodes offer.
    provider: Option<ProviderFile>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ProviderFile {
    /// Amazon EKS.
    Aws,
    /// Google GKE.
    Gke,
    /// Azure AKS.
    Azure,
    /// CoreWeave.
    Coreweave,
    /// Nebius.
    Nebius,
    /// Nscale.
    Nscale,
    /// Oracle OKE.
    Oci,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ExpectedFile {
    /// InfiniBand.
    Infiniband,
    /// RDMA over Converged Ethernet.
    Roce,
    /// AWS Elastic Fabric Adapter.
    Efa,
    /// Multi-node NVLink.
    Mnnvl,
    /// Sockets, on purpose.
    Tcp,
}

impl FabricFile {
    fn read(self, text: &str) -> Result<(Option<Expected>, Option<Provider>), ConfigError> {
        let provider = self.provider.map(|p| match p {
            ProviderFile::Aws => Provider::Aws,
            ProviderFile::Gke => Provider::Gke,
            ProviderFile::Azure => Provider::Azure,
            ProviderFile::Coreweave => Provider::Coreweave,
            ProviderFile::Nebius => Provider::Nebius,
            ProviderFile::Nscale => Provider::Nscale,
            ProviderFile::Oci => Provider::Oci,
        });
        let span = self.expected.as_ref().map(Spanned::span);
        let expected = self.expected.map(|e| match e.into_inner() {
            ExpectedFile::Infiniband => Expected::Infiniband,
            ExpectedFile::Roce => Expected::Roce,
            ExpectedFile::Efa => Expected::Efa,
            ExpectedFile::Mnnvl => Expected::Mnnvl,
            ExpectedFile::Tcp => Expected::Tcp,
        });
        if let (Some(expected), Some(provider)) = (expected, provider)
            && !provider.offers(expected)
        {
            return Err(ConfigError::at(
                text,
                span,
                format!(
                    "{} has no {}; correct one of provider and expected",
                    provider.as_str(),
                    expected.as_str()
                ),
            ));
        }
        Ok((expected, provider))
    }
}

/// A level as it was read.
#[derive(Debug, Clone)]
pub(crate) struct LevelRule {
    pub(crate) name: String,
    pub(crate) level: Level,
    pub(crate) reason: String,
}

/// A configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    pub(crate) levels: Vec<LevelRule>,
    pub(crate) expected: Option<Expected>,
    pub(crate) provider: Option<Provider>,
    patterns: Vec<String>,
    exclude: GlobSet,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// 1-based line.
    pub line: usize,
    /// 1-based column, in characters.
    pub column: usize,
    /// What was got and what was expected.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    fn at(text: &str, span: Option<Range<usize>>, message: impl Into<String>) -> Self {
        let before = text.get(..span.map_or(0, |s| s.start)).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            message: message.into(),
        }
    }
}

impl Config {
    /// Reads a configuration.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: ConfigFile = toml::from_str(text)
            .map_err(|e| ConfigError::at(text, e.span(), in_words(e.message())))?;
        let mut levels = Vec::new();
        for (name, rule) in file.levels {
            let span = Some(name.span());
            let name = name.into_inner();
            if !causes::leveled().any(|known| known == name) {
                return Err(ConfigError::at(
                    text,
                    span,
                    format!(
                        "{} (check-interconnect explain lists all)",
                        causes::unknown(&name, causes::leveled())
                    ),
                ));
            }
            let reason_span = rule.reason.span();
            let reason = rule.reason.into_inner().trim().to_owned();
            if reason.is_empty() {
                return Err(ConfigError::at(
                    text,
                    Some(reason_span),
                    format!("the reason for {name} is empty; say why, for whoever reads it next"),
                ));
            }
            levels.push(LevelRule {
                name,
                level: rule.level,
                reason,
            });
        }
        let mut patterns = Vec::new();
        let mut exclude = GlobSetBuilder::new();
        for pattern in file.exclude {
            let span = pattern.span();
            let pattern = pattern.into_inner();
            let glob = GlobBuilder::new(pattern.strip_prefix("./").unwrap_or(&pattern))
                .literal_separator(true)
                .build()
                .map_err(|e| {
                    ConfigError::at(
                        text,
                        Some(span.clone()),
                        format!("not a path pattern: {}", e.kind()),
                    )
                })?;
            exclude.add(glob);
            // A directory's name leaves out all that is in it.
            if let Ok(inside) = GlobBuilder::new(&format!(
                "{}/**",
                pattern
                    .strip_prefix("./")
                    .unwrap_or(&pattern)
                    .trim_end_matches('/')
            ))
            .literal_separator(true)
            .build()
            {
                exclude.add(inside);
            }
            patterns.push(pattern);
        }
        let (expected, provider) = match file.fabric {
            Some(fabric) => fabric.read(text)?,
            None => (None, None),
        };
        let exclude = exclude
            .build()
            .map_err(|e| ConfigError::at(text, None, format!("exclude: {}", e.kind())))?;
        Ok(Self {
            levels,
            expected,
            provider,
            patterns,
            exclude,
        })
    }

    /// Whether a path, relative to the configuration file and with `/`, is left out.
    pub fn excludes(&self, path: &str) -> bool {
        self.exclude.is_match(path)
    }

    /// Whether any path can be left out.
    pub fn has_excludes(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// The level of a finding: its cause's, else its check's. Gives the number of the rule.
    pub(crate) fn level(&self, check: &str, cause: Option<&str>) -> Option<usize> {
        let find = |name: &str| self.levels.iter().position(|l| l.name == name);
        cause.and_then(find).or_else(|| find(check))
    }
}

impl Level {
    /// The status that a finding gets; `None` for ok.
    pub(crate) fn status(self) -> Option<Status> {
        match self {
            Self::Allow => None,
            Self::Warn => Some(Status::Warn),
            Self::Fail => Some(Status::Fail),
        }
    }
}

/// A message of the parser in the words of whoever wrote the file: what was got by its kind and never by its value, and
/// what is expected as it is written.
fn in_words(message: &str) -> String {
    let message = message
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    let wanted = |text: &str| {
        EXPECTED
            .iter()
            .fold(text.to_owned(), |text, (theirs, ours)| {
                text.replace(theirs, ours)
            })
    };
    for start in ["invalid type: ", "invalid value: ", "unknown variant "] {
        let Some(rest) = message.strip_prefix(start) else {
            continue;
        };
        // The value itself may hold these words; what is expected comes last.
        let Some((got, expected)) = rest.rsplit_once(", expected ") else {
            continue;
        };
        let kind = got.split(['"', '`']).next().unwrap_or_default().trim();
        let kind = match kind {
            "" | "string" => "text",
            "integer" | "floating point" => "a number",
            "boolean" => "true or false",
            "sequence" => "a list",
            "map" => "a table",
            other => other,
        };
        let kind = if start == "unknown variant " {
            "a word that is not known here"
        } else {
            kind
        };
        return format!("got {kind}, expected {}", wanted(expected));
    }
    if message.starts_with("wanted string or table") {
        return "expected a word in quotes".to_owned();
    }
    wanted(&message)
}

/// Names of this program's own types, and what a file has in their place.
const EXPECTED: [(&str, &str); 7] = [
    (
        "struct LevelFile",
        "a table such as {level = \"warn\", reason = \"why\"}",
    ),
    ("struct FabricFile", "a table such as {expected = \"roce\"}"),
    (
        "struct ConfigFile",
        "the tables levels and fabric, and the list exclude",
    ),
    ("enum Level", "one of `allow`, `warn`, `fail`"),
    (
        "enum ExpectedFile",
        "one of `infiniband`, `roce`, `efa`, `mnnvl`, `tcp`",
    ),
    (
        "enum ProviderFile",
        "the name of a cloud, such as `aws` or `gke`",
    ),
    ("a sequence", "a list"),
];

/// The JSON Schema of the configuration file.
pub fn schema_config() -> String {
    let mut text = format!("{:#}", sorted(schemars::schema_for!(ConfigFile).to_value()));
    text.push('\n');
    text
}

/// Keys in alphabetical order: the schema is committed and compared.
fn sorted(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(entries.into_iter().map(|(k, v)| (k, sorted(v))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_file_is_read() {
        let config = Config::parse(
            "exclude = [\"charts/**/templates\", \"./old/*.yaml\"]\n[levels]\n\"ucx-tls-tcp-only\" = { level = \"warn\", reason = \"lab cluster without RDMA\" }\n\"env/ucx-tls\" = { level = \"fail\", reason = \"x\" }\n[fabric]\nexpected = \"roce\"\n",
        )
        .unwrap();
        assert_eq!(config.expected, Some(Expected::Roce));
        let rule = |check, cause| config.level(check, cause).map(|i| config.levels[i].level);
        assert_eq!(
            rule("env/ucx-tls", Some("ucx-tls-tcp-only")),
            Some(Level::Warn)
        );
        assert_eq!(
            rule("env/ucx-tls", Some("ucx-tls-empty-string")),
            Some(Level::Fail)
        );
        assert_eq!(rule("env/mnnvl", None), None);
        for (path, left_out) in [
            ("charts/a/templates/x.yaml", true),
            ("charts/a/b/templates/c/x.yaml", true),
            ("charts/x.yaml", false),
            ("old/x.yaml", true),
            ("old/sub/x.yaml", false),
        ] {
            assert_eq!(config.excludes(path), left_out, "{path}");
        }
        assert!(Config::parse("").is_ok());
        let config = Config::parse("[fabric]\nprovider = \"gke\"\n").unwrap();
        assert_eq!(
            (config.expected, config.provider),
            (None, Some(Provider::Gke))
        );
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, place, words) in [
            (
                "\n[lvels]\n",
                "2:2: ",
                "expected one of `levels`, `exclude`, `fabric`",
            ),
            (
                "[levels]\n\"ucx-tls-tcp-onyl\" = { level = \"warn\", reason = \"x\" }\n",
                "2:1: ",
                "did you mean ucx-tls-tcp-only?",
            ),
            (
                "[levels]\n\"ucx-tls-empty-string\" = { level = \"ignore\", reason = \"x\" }\n",
                "2:36: ",
                "got a word that is not known here, expected one of `allow`, `warn`, `fail`",
            ),
            (
                "[levels]\n\"ucx-tls-empty-string\" = { level = \"warn\" }\n",
                "2:26: ",
                "missing field `reason`",
            ),
            (
                "[levels]\n\"ucx-tls-empty-string\" = { level = \"warn\", reason = \" \" }\n",
                "2:53: ",
                "is empty",
            ),
            (
                "[levels]\n\"input-broken-yaml\" = { level = \"allow\", reason = \"x\" }\n",
                "2:1: ",
                "cannot be accepted away",
            ),
            (
                "[levels]\n\"ucx-tls-empty-string\" = { level = \"warn\", reason = \"x\", until = 3 }\n",
                "2:58: ",
                "unknown field `until`",
            ),
            ("exclude = 3\n", "1:11: ", "got a number, expected a list"),
            ("exclude = [\"a[\"]\n", "1:12: ", "not a path pattern"),
            (
                "[fabric]\nexpected = \"ethernet\"\n",
                "2:12: ",
                "expected one of `infiniband`, `roce`, `efa`, `mnnvl`, `tcp`",
            ),
            (
                "[fabric]\nprovider = \"heroku\"\n",
                "2:12: ",
                "expected one of `aws`, `gke`, `azure`, `coreweave`, `nebius`, `nscale`, `oci`",
            ),
            (
                "[fabric]\nprovider = \"aws\"\nexpected = \"infiniband\"\n",
                "3:12: ",
                "aws has no InfiniBand",
            ),
            ("levels = {\n", "", "expected"),
        ] {
            let error = error(text);
            assert!(error.starts_with(place), "{text}: {error}");
            assert!(error.contains(words), "{text}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_schema_takes_what_the_parser_takes() {
        let schema = serde_json::from_str(&schema_config()).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for (value, good) in [
            (serde_json::json!({}), true),
            (
                serde_json::json!({"exclude": ["a"], "fabric": {"expected": "tcp"}, "levels": {"env/ucx-tls": {"level": "warn", "reason": "x"}}}),
                true,
            ),
            (
                serde_json::json!({"levels": {"env/ucx-tls": {"level": "warn"}}}),
                false,
            ),
            (
                serde_json::json!({"levels": {"env/ucx-tls": {"level": "warn", "reason": ""}}}),
                false,
            ),
            (serde_json::json!({"fabric": {"provider": "aws"}}), true),
            (serde_json::json!({"fabric": {"provider": "heroku"}}), false),
            (serde_json::json!({"lvels": {}}), false),
        ] {
            assert_eq!(validator.is_valid(&value), good, "{value}");
        }
    }
}
