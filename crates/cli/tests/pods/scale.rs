//! Many pods.

use std::time::Duration;

use crate::support::{run, serving, tree_of, worker};

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
