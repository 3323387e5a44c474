//! Agents cut what is long, and then the verdict is lost.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tools::{Run, program, root, skill};

const LIMIT: usize = 30_000;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn stays_small(file: &Path) {
    let run = program(&["env", &file.to_string_lossy(), "-o", "json"]);
    assert!(
        run.out.len() < LIMIT,
        "{}: {} bytes",
        file.display(),
        run.out.len()
    );
    let Run { code, .. } = run;
    assert!([0, 1, 3, 4].contains(&code), "{}: {code}", file.display());
}

#[test]
fn of_every_example() {
    let mut found = Vec::new();
    files(&skill().join("evals/cases"), &mut found);
    files(&root().join("examples"), &mut found);
    found.retain(|f| f.extension().is_some_and(|e| e == "yaml"));
    assert!(found.len() > 40, "{}", found.len());
    for file in found {
        stays_small(&file);
    }
}

#[test]
fn of_every_real_recipe() {
    let corpus = root().join("../shared/corpus/recipes");
    let Ok(corpus) = corpus.canonicalize() else {
        eprintln!("skipped: no corpus at {}", corpus.display());
        return;
    };
    let mut found = Vec::new();
    files(&corpus, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for file in found {
        stays_small(&file);
    }
}
