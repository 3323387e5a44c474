//! Each thing that can be wrong with one of several pods: named with what to do, and the others are judged.

use stand_in::{Cut, Fault, State};

use crate::cases::cases;
use crate::support::{about, names, run, serving, tree_of, ways, worker};

#[test]
fn one_bad_pod_is_named_and_the_rest_is_complete() {
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let cases = cases(&worker("decode-1", &decode.root()), "decode-1");
    let mut odd = Vec::new();
    for case in cases {
        for way in ways() {
            let mut scenario = serving()
                .pod(worker("prefill-0", &prefill.root()))
                .pod(worker("decode-0", &decode.root()))
                .pod(case.pod.clone());
            if let Some(fault) = &case.fault {
                scenario = scenario.fault(fault.clone());
            }
            let api = scenario.start().unwrap();
            let mut words = vec![
                "node",
                "-n",
                "serving",
                "-l",
                "nvidia.com/dynamo-graph-deployment-name=graph",
            ];
            words.extend(["-o", "json", "--timeout", "9s", "--request-timeout", "4s"]);
            words.extend(&way);
            let run = run(&api, &words);
            let report = run.json();
            let mut complain = |what: &str| {
                odd.push(format!(
                    "{} {way:?}: {what}; {:#?}",
                    case.name,
                    about(&report, "decode-1")
                ));
            };
            let bad = about(&report, "decode-1");
            match bad
                .iter()
                .find(|c| case.causes.iter().any(|cause| c["cause"] == *cause))
            {
                None => complain("its cause is not named"),
                Some(check) => {
                    let fix = check["fix"].as_str().unwrap_or_default();
                    if fix.len() < 10 || !fix.contains(case.fix) {
                        complain(&format!("fix is {fix:?}"));
                    }
                }
            }
            for good in ["prefill-0", "decode-0"] {
                let checks = about(&report, good);
                if checks.len() < 10 || names(&checks, case.causes[0]) {
                    complain(&format!("{good} is not judged as it is: {}", checks.len()));
                }
            }
            if run.out.contains("-n NAMESPACE") {
                complain("a fix leaves the namespace open");
            }
            if run.code != 3 {
                complain(&format!("exit code {}: {}", run.code, report["verdict"]));
            }
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n\n"));
}

#[test]
fn a_pod_that_is_being_deleted_is_judged_and_said_to_be() {
    let decode = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &decode.root()).state(State::Terminating))
        .start()
        .unwrap();
    let run = run(
        &api,
        &["node", "-n", "serving", "--pod", "decode-0", "-o", "json"],
    );
    let report = run.json();
    assert!(about(&report, "decode-0").len() > 10, "{}", run.out);
    assert!(run.out.contains("being deleted"), "{}", run.out);
}

#[test]
fn what_came_before_a_cut_is_judged() {
    let decode = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &decode.root()))
        .fault(Fault::exec().cut_output(12_000, Cut::Reset))
        .start()
        .unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--pod", "decode-0", "-o", "json"];
        words.extend(&way);
        let run = run(&api, &words);
        let report = run.json();
        assert_eq!(report["readiness"], "inconclusive", "{way:?} {}", run.out);
        let judged = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|c| c["status"] == "ok")
            .count();
        assert!(judged > 3, "{way:?} {}", run.out);
        assert!(run.out.contains("stopped while"), "{way:?} {}", run.out);
    }
}
