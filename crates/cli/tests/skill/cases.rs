//! The labelled recipes, through the script: verdicts, exit codes and causes as labelled.

use std::collections::BTreeSet;
use std::fs;

use crate::tools::{has_python, program, script, skill};

#[test]
fn answers_as_labelled_and_as_the_program_itself() {
    if !has_python() {
        return;
    }
    let table = fs::read_to_string(skill().join("evals/cases/labels.tsv")).unwrap();
    let mut verdicts = BTreeSet::new();
    for line in table.lines().filter(|l| !l.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [file, _, readiness, exit, causes] = fields[..] else {
            panic!("{line}");
        };
        let path = format!("evals/cases/{file}");
        let run = script(&skill(), &["env", &path]);
        let report = run.report();
        assert_eq!(
            report.readiness.as_str(),
            readiness,
            "{file}: {}",
            report.verdict
        );
        assert_eq!(run.code.to_string(), exit, "{file}");
        let named: Vec<&str> = report
            .checks
            .iter()
            .filter_map(|c| c.cause.as_deref())
            .collect();
        for cause in causes.split(',').filter(|c| *c != "-") {
            assert!(
                named.contains(&cause),
                "{file}: {cause} is not among {named:?}"
            );
        }
        assert!(!report.transfer_validated, "{file}");
        assert!(!report.verdict.is_empty(), "{file}");

        let direct = program(&["env", &path, "-o", "json"]);
        assert_eq!((direct.code, direct.out), (run.code, run.out), "{file}");
        verdicts.insert(readiness.to_owned());
    }
    // A recipe of each verdict that files can lead to.
    let all = [
        "blocked",
        "degraded",
        "inconclusive",
        "not-applicable",
        "unproven",
    ];
    assert_eq!(verdicts.into_iter().collect::<Vec<_>>(), all);
}
