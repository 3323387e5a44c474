//! Many pods.

use std::time::Duration;

use crate::support::{run, serving, tree_of, worker};

/// What one container printed.
fn recorded(role: &str) -> Vec<u8> {
    let tree = tree_of(role);
    let options = probe::local::Options {
        run_tools: false,
        ..tree.options()
    };
    probe::local::collect(&options).unwrap()
}

#[test]
fn two_hundred_pods_fit_on_a_screen_and_take_one_exec_each() {
    let (prefill, decode) = (recorded("prefill"), recorded("decode"));
    let mut scenario = serving();
    let nowhere = std::path::Path::new("/nonexistent");
    for number in 0..200 {
        let (role, stream) = if number % 4 == 0 {
            ("prefill", &prefill)
        } else {
            ("decode", &decode)
        };
        scenario = scenario.pod(
            worker(&format!("{role}-{number}"), nowhere)
                .node(&format!("node-{}", number / 8))
                .recorded(stream.clone(), Duration::from_millis(50)),
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
