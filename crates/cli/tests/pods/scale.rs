//! Many pods.

use std::time::Duration;

use crate::support::{bare, run, serving, tree_of, worker};

/// What one container printed.
fn recorded(tree: &stand_in::Tree) -> Vec<u8> {
    let options = probe::local::Options {
        run_tools: false,
        ..tree.options()
    };
    probe::local::collect(&options).unwrap()
}

#[test]
fn two_hundred_pods_fit_on_a_screen_and_take_one_exec_each() {
    // Nothing wrong, and in each pod half a dozen things wrong.
    let good = (tree_of("prefill"), tree_of("decode"));
    let bad = (stand_in::Tree::worker(), stand_in::Tree::worker());
    for (prefill, decode) in [good, bad] {
        fit(&recorded(&prefill), &recorded(&decode));
    }
}

fn fit(prefill: &[u8], decode: &[u8]) {
    let mut scenario = serving();
    let nowhere = std::path::Path::new("/nonexistent");
    for number in 0..200 {
        let (role, stream) = if number % 4 == 0 {
            ("prefill", prefill)
        } else {
            ("decode", decode)
        };
        scenario = scenario.pod(
            worker(&format!("{role}-{number}"), nowhere)
                .node(&format!("node-{}", number / 8))
                .recorded(stream.to_vec(), Duration::from_millis(50)),
        );
    }
    let api = scenario.start().unwrap();
    let run = run(&api, &["node", "-n", "serving", "--all"]);
    let lines = run.out.lines().count();
    assert!(lines < 60, "{lines} lines\n{}", run.out);
    assert_eq!(api.execs().len(), 200);
    assert!(api.most_execs_at_once() >= 16);
    assert!(run.out.contains("verdict"), "{}", run.out);
}

#[test]
fn hundreds_of_pods_that_nothing_joins_fit_on_a_screen() {
    let bad = (stand_in::Tree::worker(), stand_in::Tree::worker());
    let good = (tree_of("prefill"), tree_of("decode"));
    let nowhere = std::path::Path::new("/nonexistent");
    // Numbered by a script, and each with a name of its own.
    let names: [fn(usize, &str) -> String; 2] = [
        |number, role| format!("{role}-{number}"),
        |number, role| format!("{}-{role}-server", letters(number)),
    ];
    for (prefill, decode) in [good, bad] {
        let (prefill, decode) = (recorded(&prefill), recorded(&decode));
        for name in names {
            let mut scenario = serving();
            for number in 0..300 {
                let (role, stream) = if number % 4 == 0 {
                    ("prefill", &prefill)
                } else {
                    ("decode", &decode)
                };
                let pod = bare(&name(number, role), role, nowhere)
                    .recorded(stream.clone(), Duration::ZERO);
                scenario = scenario.pod(pod);
            }
            let api = scenario.start().unwrap();
            let run = run(
                &api,
                &["node", "-n", "serving", "--all", "--concurrency", "64"],
            );
            let lines = run.out.lines().count();
            assert!(lines < 120, "{lines} lines\n{}", run.out);
            assert!(run.out.len() < 12_000, "{}", run.out);
            assert!(run.out.contains("verdict"), "{}", run.out);
        }
    }
}

/// A name without a digit.
fn letters(number: usize) -> String {
    number
        .to_string()
        .bytes()
        .map(|digit| char::from(digit + b'a' - b'0'))
        .collect()
}
