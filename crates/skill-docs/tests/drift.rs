//! The committed files are what the code says, and the skill keeps the rules of the specification.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};

use skill_docs::{FOLDER, WRITE, rules, skill::Skill};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap()
        .to_path_buf()
}

#[test]
fn generated_files_are_up_to_date() {
    let root = root();
    for (path, text) in skill_docs::files(&root).unwrap() {
        let found = fs::read_to_string(root.join(&path)).unwrap_or_default();
        assert!(
            found == text,
            "{path} is not what the code says; run: {WRITE}"
        );
    }
}

#[test]
fn the_skill_keeps_the_rules() {
    let skill = Skill::read(&root().join(FOLDER)).unwrap();
    for rule in rules::check(&skill.folder, &skill.skill_md) {
        assert!(rule.broken.is_empty(), "{}: {:?}", rule.rule, rule.broken);
    }
}

#[test]
fn the_validator_was_asked_about_this_front_matter() {
    let skill = Skill::read(&root().join(FOLDER)).unwrap();
    assert_eq!(
        rules::front_matter(&skill.skill_md),
        Some(skill.record.front_matter.as_str()),
        "run: {WRITE} -- record"
    );
    assert!(skill.record.validator_answer.starts_with("Valid skill"));
}

#[test]
fn every_case_has_one_label() {
    let folder = root().join(FOLDER).join("evals/cases");
    let skill = Skill::read(&root().join(FOLDER)).unwrap();
    let mut labelled: Vec<String> = skill.labels.iter().map(|l| l.file.clone()).collect();
    labelled.sort();
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "labels.tsv")
        .collect();
    files.sort();
    assert_eq!(files, labelled);
}

/// A fault that passes as sound is the worst that can happen, a false alarm the second worst.
#[test]
fn no_false_green_and_no_false_alarm() {
    let skill = Skill::read(&root().join(FOLDER)).unwrap();
    let text = skill_docs::benchmark(&skill);
    for title in ["False greens", "False alarms", "Causes not named"] {
        let section = text.split(&format!("### {title}\n")).nth(1).unwrap();
        let section = section.split("###").next().unwrap();
        assert!(section.contains("None."), "{title}: {section}");
    }
}

#[test]
fn the_stated_size_is_right() {
    let skill = Skill::read(&root().join(FOLDER)).unwrap();
    let stated: usize = skill
        .skill_md
        .split("about ")
        .find_map(|rest| rest.split_once(" tokens")?.0.replace(',', "").parse().ok())
        .unwrap();
    let estimate = skill.skill_md.chars().count().div_ceil(4);
    assert!(
        estimate.abs_diff(stated) * 20 < estimate,
        "SKILL.md says about {stated} tokens, the estimate is {estimate}"
    );
}
