//! The catalogue is complete and well formed.

#![allow(clippy::indexing_slicing, reason = "a broken test should stop")]

use std::collections::BTreeSet;
use std::fs;

use settings::catalogue;
use settings::kind::Kind;
use settings::{effect, known_names};

const TABLE: &str = include_str!("../data/variables.tsv");

fn rows() -> Vec<Vec<&'static str>> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split('\t').collect()).collect()
}

#[test]
fn every_row_is_read() {
    let rows = rows();
    // The search for a name cuts the text at any byte.
    assert!(TABLE.is_ascii());
    assert_eq!(rows.len(), catalogue::all().len());
    for (row, variable) in rows.iter().zip(catalogue::all()) {
        assert_eq!(row.len(), 11, "{row:?}");
        assert_eq!(row[0], variable.name);
        assert!(Kind::parse(row[9]).is_some(), "{row:?}");
        assert!(matches!(row[10], "" | "secret"), "{row:?}");
        for (index, field) in row.iter().enumerate() {
            // Only the dangers and the secret flag may be empty.
            assert!(!field.is_empty() || matches!(index, 6 | 10), "{row:?}");
            assert_eq!(field.trim(), *field, "{row:?}");
        }
        assert!(variable.meaning.chars().count() <= 110, "{}", variable.name);
    }
}

#[test]
fn names_are_sorted_and_found() {
    let all = catalogue::all();
    assert!(all.len() >= 389);
    assert!(all.windows(2).all(|pair| pair[0].name < pair[1].name));
    for variable in all {
        assert_eq!(catalogue::lookup(variable.name), Some(*variable));
        assert!(catalogue::is_transport_family(variable.name));
        assert_eq!(catalogue::is_allowed(variable.name), !variable.secret);
    }
}

#[test]
fn no_name_says_credential() {
    let words = ["TOKEN", "SECRET", "PASSW", "CREDENTIAL", "API_KEY", "_AUTH"];
    let harmless = |name: &str| {
        // Queue credits and partition keys.
        !words.iter().any(|word| name.contains(word))
    };
    for variable in catalogue::all() {
        assert!(
            harmless(variable.name) || variable.secret,
            "{}",
            variable.name
        );
    }
    for entry in known_names::all() {
        assert!(harmless(entry.name), "{}", entry.name);
    }
}

#[test]
fn kinds_agree_with_the_list_of_names() {
    for variable in catalogue::all() {
        let kind = known_names::known(variable.name).and_then(|entry| entry.kind);
        if let Some(kind) = kind.filter(|kind| *kind != Kind::Text) {
            assert_eq!(variable.kind, kind, "{}", variable.name);
        }
    }
}

#[test]
fn defaults_are_valid_values() {
    for variable in catalogue::all() {
        let validated = !matches!(
            variable.kind,
            Kind::Text | Kind::Removed | Kind::Unread | Kind::Presence | Kind::NcclInt
        );
        // Some defaults are descriptions.
        let literal = !variable.default.contains(' ');
        let still_read = known_names::known(variable.name).is_none_or(|entry| entry.last.is_none());
        if validated && literal && still_read && variable.default != "None" {
            let problem = effect::effect(variable.name, variable.default).problem;
            assert_eq!(problem, None, "{}={}", variable.name, variable.default);
        }
    }
}

#[test]
fn no_value_breaks_anything() {
    let values = [
        "",
        " ",
        "^",
        "=",
        ":",
        "\\",
        ",",
        "é",
        "0x",
        "-",
        "1e999",
        "[0-",
        "[0-99999999999999999999]",
        "intra:",
        "9223372036854775808",
        "🦀,^🦀:🦀",
        "true",
        "nan",
        "1é",
        "0xé",
        "5\u{a0}s",
    ];
    let mut said = 0;
    for variable in catalogue::all() {
        for value in values {
            let effect = effect::effect(variable.name, value);
            assert!(!effect.summary.is_empty(), "{}={value}", variable.name);
            assert!(!effect.summary.contains('\n'));
            said += 1;
        }
        assert!(!effect::describe_unset(variable.name).is_empty());
    }
    assert!(said > 8000);
}

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn has_every_variable_of_the_shared_list() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/knowledge");
    let Ok(text) = fs::read_to_string(format!("{folder}/VARS.tsv")) else {
        eprintln!("skipped: the shared list of variables is not here");
        return;
    };
    let wanted: BTreeSet<&str> = names(&text).skip(1).collect();
    assert!(wanted.len() >= 380);
    for name in wanted {
        assert!(catalogue::lookup(name).is_some(), "{name}");
    }
    for file in ["UCX_VARS.txt", "NCCL_VARS.txt"] {
        let Ok(text) = fs::read_to_string(format!("{folder}/{file}")) else {
            continue;
        };
        for name in names(&text).filter(|name| !name.starts_with('#') && !name.is_empty()) {
            assert!(known_names::known(name).is_some(), "{name}");
        }
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split('\t').next().unwrap_or(""))
}
