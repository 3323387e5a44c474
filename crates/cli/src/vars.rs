//! `vars`: the catalogue of transport variables, and what a value of one does.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use settings::catalogue::{self, Variable};
use settings::vars::{RowError, TABLES, evaluate_row};
use settings::{effect, known_names};

use crate::args::VarsArgs;

/// Builds that stand for "current" where none is named.
fn default_build(name: &str) -> &'static str {
    match name {
        "UCX_TLS" => "full-1.23",
        "NCCL_IB_HCA" => "2.30.7",
        _ => "1.23",
    }
}

/// The text or JSON for the arguments.
pub(crate) fn text(args: &VarsArgs) -> Result<String, String> {
    let json = match args.output.as_deref() {
        None | Some("text") => false,
        Some("json") => true,
        Some(other) => {
            return Err(format!(
                "unknown format '{}'; expected text or json",
                other.escape_debug()
            ));
        }
    };
    let Some(given) = args.name.as_deref() else {
        return Ok(list(json));
    };
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name.trim(), Some(value)),
        None => (given.trim(), None),
    };
    if args.unset && value.is_some() {
        return Err("--unset and a value exclude each other".to_owned());
    }
    if value.is_none() && !args.unset {
        if args.build.is_some() {
            return Err(format!("--build needs a value: {name}=VALUE, or --unset"));
        }
        return describe(name, json);
    }
    judged(name, value, args.build.as_deref(), json)
}

fn judged(
    name: &str,
    value: Option<&str>,
    build: Option<&str>,
    json: bool,
) -> Result<String, String> {
    if catalogue::lookup(name).is_none() && known_names::known(name).is_none() {
        return Err(unknown(name));
    }
    let row = if TABLES.contains(&name) {
        match evaluate_row(name, value, build.unwrap_or(default_build(name))) {
            Ok(row) => Some(row),
            Err(RowError::UnknownBuild) => {
                return Err(format!(
                    "unknown build '{}' for {name}; {}",
                    build.unwrap_or_default().escape_debug(),
                    builds(name)
                ));
            }
            Err(error @ RowError::NoTable) => return Err(error.to_string()),
        }
    } else if build.is_some() {
        return Err(format!(
            "--build is for {}; {name} does not depend on it here",
            TABLES.join(", ")
        ));
    } else {
        None
    };
    if let (Some(row), true) = (&row, json || build.is_some()) {
        let object: Map<String, Value> = row
            .iter()
            .map(|(column, cell)| ((*column).to_owned(), cell_value(column, cell)))
            .collect();
        return Ok(report::json_text(&Value::Object(object)));
    }
    let (summary, problem) = match value {
        Some(value) => {
            let effect = effect::effect(name, value);
            (effect.summary, effect.problem)
        }
        None => (effect::describe_unset(name), None),
    };
    if json {
        let mut object = Map::new();
        object.insert("name".into(), name.into());
        object.insert("value".into(), value.map_or(Value::Null, Value::from));
        object.insert("effect".into(), summary.into());
        if let Some(problem) = problem {
            object.insert("problem".into(), problem.text.into());
            object.insert(
                "problem_kind".into(),
                format!("{:?}", problem.kind).to_lowercase().into(),
            );
        }
        return Ok(report::json_text(&Value::Object(object)));
    }
    let shown = value.map_or_else(|| format!("{name} (unset)"), |v| format!("{name}={v}"));
    let mut out = format!(
        "{}\n  {}\n",
        report::visible(&shown),
        report::visible(&summary)
    );
    if let Some(problem) = problem.filter(|p| p.text != summary) {
        let _infallible = writeln!(out, "  but: {}", report::visible(&problem.text));
    }
    for (column, cell) in row.into_iter().flatten().skip(2) {
        if !cell.is_empty() {
            let _infallible = writeln!(out, "  {column:<13}{}", report::visible(&cell));
        }
    }
    Ok(out)
}

/// Words that are truth values in the table become JSON's own.
fn cell_value(column: &str, cell: &str) -> Value {
    match cell {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        "" if !matches!(column, "value" | "warn") => Value::Null,
        text => text.into(),
    }
}

fn builds(name: &str) -> String {
    match name {
        "UCX_TLS" => format!(
            "expected one of {}, or the same with another version",
            settings::ucx_tls::Build::NAMES.join(", ")
        ),
        "NCCL_IB_HCA" => "expected an NCCL version such as 2.30.7".to_owned(),
        _ => "expected a UCX version such as 1.23".to_owned(),
    }
}

fn describe(name: &str, json: bool) -> Result<String, String> {
    if let Some(variable) = catalogue::lookup(name) {
        return Ok(if json {
            report::json_text(&object(&variable))
        } else {
            page(&variable)
        });
    }
    if let Some(known) = known_names::known(name) {
        let last = known
            .last
            .map(|l| format!(", last seen in {l}"))
            .unwrap_or_default();
        return Ok(format!(
            "{name}\n  read by {}, first seen in {}{last}; not in the catalogue of variables that matter to KV transfer\n",
            if name.starts_with("UCX_") {
                "UCX"
            } else {
                "NCCL"
            },
            known.first
        ));
    }
    Err(unknown(name))
}

/// Nothing can be said of a value whose variable nobody reads.
fn unknown(name: &str) -> String {
    let hint = known_names::did_you_mean(name)
        .map(|n| format!("; did you mean {n}?"))
        .unwrap_or_default();
    format!(
        "no library that this tool knows reads '{}'{hint} (check-interconnect vars lists all)",
        name.escape_debug()
    )
}

fn page(v: &Variable) -> String {
    let mut out = format!("{}\n  {}\n", v.name, v.meaning);
    for (label, text) in [
        ("subsystem", v.subsystem),
        ("values", v.values),
        ("default", v.default),
        ("relevance", v.relevance.as_str()),
        ("dangerous", v.dangerous),
        ("since", v.first_version),
        ("source", v.source),
    ] {
        if !text.is_empty() {
            let _infallible = writeln!(out, "  {label:<11}{text}");
        }
    }
    let _infallible = writeln!(out, "  {:<11}{}", "unset", effect::describe_unset(v.name));
    out
}

fn object(v: &Variable) -> Value {
    let mut object = Map::new();
    for (key, text) in [
        ("name", v.name),
        ("subsystem", v.subsystem),
        ("meaning", v.meaning),
        ("values", v.values),
        ("default", v.default),
        ("relevance", v.relevance.as_str()),
        ("dangerous", v.dangerous),
        ("first_version", v.first_version),
        ("source", v.source),
    ] {
        object.insert(key.to_owned(), text.into());
    }
    Value::Object(object)
}

fn list(json: bool) -> String {
    if json {
        return report::json_text(&Value::Array(catalogue::all().iter().map(object).collect()));
    }
    let width = catalogue::all()
        .iter()
        .map(|v| v.name.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for v in catalogue::all() {
        let _infallible = writeln!(
            out,
            "{:<width$}  {:<11} {}",
            v.name,
            v.relevance.as_str(),
            v.meaning
        );
    }
    out
}
