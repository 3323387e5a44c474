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
    let row: Vec<(&str, String)> = row.into_iter().flatten().collect();
    let cell = |column: &str| {
        row.iter()
            .find(|(name, _)| *name == column)
            .map(|(_, cell)| cell.as_str())
    };
    if let (Some(build), Some(init)) = (cell("build"), cell("init")) {
        let _infallible = if name == "UCX_TLS" {
            writeln!(
                out,
                "  with UCX {build} (--build names another):\n  {:<40}{}",
                "starts",
                starts(init)
            )
        } else {
            writeln!(out, "  {}", kept(name, build, init))
        };
    }
    for (column, words) in WORDS {
        let says = name == "UCX_TLS" && cell("init") == Some("ok");
        let Some(cell) = cell(column).filter(|_| says) else {
            continue;
        };
        let yes = cell == "True";
        // What is only worth saying where it is so.
        if yes || !matches!(*column, "ud_only" | "boot_missing") {
            let _infallible = writeln!(out, "  {words:<40}{}", if yes { "yes" } else { "no" });
        }
    }
    Ok(out)
}

/// What the columns of the table mean, in the order in which a person asks.
const WORDS: &[(&str, &str)] = &[
    ("detect", "recognizes GPU memory"),
    ("inter", "reaches another node"),
    ("rdma", "RDMA with one-sided put and get"),
    ("ud_only", "RDMA only by unreliable datagrams"),
    ("gdr", "RDMA from GPU memory (GPUDirect)"),
    ("nvlink", "NVLink inside a node"),
    ("mnnvl", "NVLink between nodes"),
    ("tcp", "TCP"),
    ("shm", "shared memory"),
    ("boot_missing", "lacks a way to set up connections"),
];

fn starts(init: &str) -> String {
    match init {
        "ok" => "yes".to_owned(),
        "fail:empty" => "no: the list is empty".to_owned(),
        "fail:no-usable" => "no: nothing in the list is there".to_owned(),
        other => format!("no: {}", other.trim_start_matches("fail:")),
    }
}

/// What a value keeps of the devices that the table's host has.
fn kept(name: &str, build: &str, init: &str) -> String {
    let (library, host) = if name == "NCCL_IB_HCA" {
        ("NCCL", "mlx5_0, mlx5_1, mlx5_2 and mlx5_10")
    } else {
        ("UCX", "mlx5_0, mlx5_1, mlx5_10, eth0 and lo")
    };
    let device = |word: &str| {
        if word.bytes().all(|b| b.is_ascii_digit()) {
            format!("mlx5_{word}")
        } else {
            word.to_owned()
        }
    };
    let devices: Vec<String> = init
        .split(" / ")
        .flat_map(|part| part.split('+'))
        .filter(|word| *word != "none")
        .map(device)
        .collect();
    let kept = match init {
        "all" => "keeps all of them".to_owned(),
        _ if init.contains("error") => format!("does not start: {init}"),
        _ if devices.is_empty() => "keeps none of them".to_owned(),
        _ => format!("keeps {}", devices.join(", ")),
    };
    format!("on a host with {host}, {library} {build} {kept}")
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
