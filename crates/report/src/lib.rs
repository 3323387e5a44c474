//! Renders a report: for people (`text`, `short`) and for programs (`json`, `jsonl`, `prometheus`).
//!
//! Renderers arrange what the checks said and never add a judgement of their own. Everything that
//! comes from an input is escaped on its way out, so that no manifest can move the cursor, hide
//! text or forge a line of the report.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use model::Report;
use model::report_v1::{LineV1, ReportV1};
use schemars::Schema;
use serde_json::Value;

mod alike;
mod escape;
mod fold;
mod group;
mod json;
mod jsonl;
mod label;
mod many;
mod names;
mod outline;
mod prometheus;
mod screen;
mod short;
mod snippet;
mod text;
pub mod topology;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use fold::fold;

/// The output formats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// For a person: annotated source lines, every check, the verdict last.
    #[default]
    Text,
    /// Problems, counts and the verdict, one line each.
    Short,
    /// One document, `report-v1`, identical results folded.
    Json,
    /// Every result on a line of its own, then a summary line that proves completeness.
    Jsonl,
    /// Gauges in Prometheus' text format, for a directory of text files that an exporter reads.
    Prometheus,
}

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 5] = [
        Self::Text,
        Self::Short,
        Self::Json,
        Self::Jsonl,
        Self::Prometheus,
    ];

    /// The word that selects it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Short => "short",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Prometheus => "prometheus",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that names no format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown format `{}`; expected one of ",
            escape::name(&self.0, false)
        )?;
        for (index, format) in Format::ALL.into_iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{format}")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == word)
            .ok_or_else(|| UnknownFormat(word.to_owned()))
    }
}

/// How to print. `json` and `jsonl` only look at `version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Print ANSI colours.
    pub color: bool,
    /// Columns of the terminal; 0 never wraps.
    pub width: usize,
    /// Version of the program.
    pub version: &'static str,
    /// Nothing folded into counts, nothing shortened, with names and grades.
    pub verbose: bool,
    /// Print ASCII only, for terminals and logs that know nothing else.
    pub ascii: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            color: false,
            width: 100,
            version: env!("CARGO_PKG_VERSION"),
            verbose: false,
            ascii: false,
        }
    }
}

/// Writes a report. Errors are those of `out`, a broken pipe included.
pub fn render(
    format: Format,
    report: &Report,
    options: &Options,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Text => out.write_all(text::render(report, options).as_bytes()),
        Format::Short => out.write_all(short::render(report, options).as_bytes()),
        Format::Json => json::render(report, options, out),
        Format::Jsonl => jsonl::render(report, options, out),
        Format::Prometheus => out.write_all(prometheus::render(report, options).as_bytes()),
    }
}

/// Text on one line with every character visible that steers a terminal or hides text: for messages that repeat
/// what was typed.
pub fn visible(text: &str) -> String {
    escape::name(text, false).into_owned()
}

/// Any value as JSON in the manner of `json`: characters that steer a terminal are escaped.
pub fn json_text(value: &Value) -> String {
    let mut out = Vec::new();
    // A value of strings, lists and maps into a vector: neither step can fail.
    let _infallible = json::write_pretty(value, &mut out);
    out.push(b'\n');
    String::from_utf8(out).unwrap_or_default()
}

/// JSON Schema of what `json` prints.
pub fn schema_report() -> String {
    pretty_schema(schemars::schema_for!(ReportV1))
}

/// JSON Schema of each line that `jsonl` prints.
pub fn schema_line() -> String {
    pretty_schema(schemars::schema_for!(LineV1))
}

fn pretty_schema(schema: Schema) -> String {
    let mut text = format!("{:#}", sorted(schema.to_value()));
    text.push('\n');
    text
}

/// Keys in alphabetical order, whatever map another crate of the build makes serde_json use: the
/// schema is committed and compared.
fn sorted(value: Value) -> Value {
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
