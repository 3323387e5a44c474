//! What whoever asks may do: each right that is missing is told, all at once, and the printed Role has all of them.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use checks::RIGHTS;
use serde_json::Value;
use stand_in::{Fault, Rights, StandIn};

use crate::deployment::{Well, well};
use crate::support::{Run, has_kubectl, run, run_with, ways};

const CHECK: [&str; 6] = ["check", "llama", "-n", "serving", "-o", "json"];

fn checked(api: &StandIn, way: &[&str]) -> Run {
    run(api, &[&CHECK, way].concat())
}

/// What was not judged: check and cause.
fn skips(report: &Value) -> BTreeSet<(String, String)> {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["status"] == "skipped")
        .map(|check| {
            (
                check["name"].as_str().unwrap().to_owned(),
                check["cause"].as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}

fn of_rights(report: &Value) -> Vec<&Value> {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["name"] == "pod/rights")
        .collect()
}

/// The workers, with exactly these rights.
fn with(well: &Well, rights: Rights) {
    well.api.set_rights(rights);
}

#[test]
fn removing_each_right_in_turn_gives_exactly_the_named_skips() {
    let well = well();
    for way in ways() {
        with(&well, Rights::all());
        let whole = checked(&well.api, &way).json();
        let told = of_rights(&whole);
        assert_eq!(told.len(), 1, "{way:?} {told:#?}");
        assert_eq!(told[0]["status"], "ok", "{way:?} {told:#?}");
        let mut refusals = 0;
        for right in RIGHTS {
            let words = right.words();
            let mut resource = right.resource.to_owned();
            if !right.subresource.is_empty() {
                resource = format!("{resource}/{}", right.subresource);
            }
            with(&well, Rights::all().deny(right.verb, &resource));
            let run = checked(&well.api, &way);
            let report = run.json();
            let more: BTreeSet<_> = skips(&report).difference(&skips(&whole)).cloned().collect();
            let skip = |name: &str, cause: &str| (name.to_owned(), cause.to_owned());
            let refused = report["coverage"]["workers_probed"] == 0;
            // Refused one, kubectl tries the other, in a way that the stand-in does not speak.
            let refusal = if words == "get pods/exec" && !way.is_empty() {
                "api-conflict"
            } else {
                "exec-forbidden"
            };
            refusals += usize::from(refused && words.ends_with("pods/exec"));
            assert!(!(refused && words == "get pods" && way.is_empty()));
            // And whether the verdict needed it.
            let (expected, needed) = match words.as_str() {
                "list pods" => (
                    vec![
                        skip("pod/access", "pods-forbidden"),
                        skip("pod/rights", "right-missing"),
                    ],
                    true,
                ),
                // An exec over WebSocket is a get; kubectl before 1.31 speaks SPDY, which is a create.
                // Either kubectl reads the pod first.
                "get pods" | "create pods/exec" | "get pods/exec" if refused => (
                    vec![
                        skip("pod/access", refusal),
                        skip("pod/rights", "right-missing"),
                    ],
                    true,
                ),
                "get pods" | "create pods/exec" | "get pods/exec" => {
                    (vec![skip("pod/rights", "right-missing")], false)
                }
                "get pods/log" | "list nodes" | "get dynamographdeployments.nvidia.com" => {
                    (vec![skip("pod/rights", "optional-right-missing")], false)
                }
                // No worker is made from such an object.
                "get disaggregatedsets.disaggregatedset.x-k8s.io"
                | "get rolebasedgroups.workloads.x-k8s.io"
                | "get llminferenceservices.serving.kserve.io"
                | "get leaderworkersets.leaderworkerset.x-k8s.io"
                | "get replicasets.apps"
                | "get statefulsets.apps" => (Vec::new(), false),
                other => panic!("what is expected without {other}?"),
            };
            let named = !expected.is_empty();
            assert_eq!(
                more,
                expected.into_iter().collect(),
                "{way:?} without {words}: {}",
                run.out
            );
            if needed {
                assert_eq!(report["readiness"], "inconclusive", "{way:?} {words}");
            } else {
                assert_eq!(report["readiness"], whole["readiness"], "{way:?} {words}");
            }
            let told = of_rights(&report);
            assert_eq!(told.len(), 1, "{way:?} without {words}");
            if !named {
                assert_eq!(told[0]["status"], "ok", "{way:?} without {words}");
                continue;
            }
            assert!(
                told[0]["detail"].as_str().unwrap().contains(&words),
                "{told:#?}"
            );
            let fix = told[0]["fix"].as_str().unwrap();
            assert!(
                fix.contains("check-interconnect rbac -n serving"),
                "{told:#?}"
            );
            assert_eq!(fix.contains("--nodes"), right.of_cluster, "{fix}");
            assert_eq!(run.code == 5, words == "list pods", "{words}: {}", run.code);
        }
        assert_eq!(refusals, 1, "{way:?}: one of the verbs lets nothing in");
    }
}

#[test]
fn all_that_is_missing_is_told_at_once_and_again_from_a_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let bundle = bundle.to_str().unwrap();
    let well = well();
    with(&well, Rights::none().allow("list", "pods"));
    for way in ways() {
        for format in ["json", "text", "short", "jsonl"] {
            let words = ["check", "-n", "serving", "-o", format, "--bundle", bundle];
            let live = run(&well.api, &[&words, way.as_slice()].concat());
            let again = run_with(Path::new("/nonexistent"), &["replay", bundle, "-o", format]);
            assert_eq!(live.out, again.out, "{way:?} {format}: {}", again.err);
            if format != "json" {
                continue;
            }
            let report = live.json();
            let told = of_rights(&report);
            assert_eq!(told.len(), 4, "{told:#?}");
            let detail = told[0]["detail"].as_str().unwrap();
            assert_eq!(
                detail,
                "not granted in namespace serving: get pods, create pods/exec, get pods/exec"
            );
            assert_eq!(report["readiness"], "inconclusive");
            // What is told for all is not told again for each.
            assert!(!live.out.contains("nodes-forbidden"), "{}", live.out);
        }
    }
}

#[test]
fn a_server_that_does_not_answer_refuses_nothing() {
    for fault in [
        Fault::on("create", "selfsubjectaccessreviews").status(500),
        Fault::on("create", "selfsubjectaccessreviews").status(403),
        Fault::on("create", "selfsubjectaccessreviews").hang(),
    ] {
        let well = well();
        well.api.fault(fault.clone());
        let report = checked(&well.api, &[]).json();
        assert!(
            of_rights(&report).iter().all(|c| c["status"] == "ok"),
            "{fault:?}"
        );
        assert_eq!(report["coverage"]["workers_probed"], 6, "{fault:?}");
    }
}

#[test]
fn a_right_that_is_not_used_is_not_asked_for() {
    let well = well();
    with(&well, Rights::all().deny("list", "pods"));
    let words = ["check", "-n", "serving", "--pod", "decode-0", "-o", "json"];
    let report = run(&well.api, &words).json();
    assert_eq!(of_rights(&report)[0]["status"], "ok");
    // What other commands tell has not changed.
    let words = ["node", "-n", "serving", "--pod", "decode-0", "-o", "json"];
    assert!(of_rights(&run(&well.api, &words).json()).is_empty());
}

fn printed(words: &[&str]) -> String {
    let run = run_with(Path::new("/nonexistent"), &[&["rbac"], words].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    run.out
}

/// The rights of the printed Roles, as a cluster would grant them.
fn granted(text: &str) -> Rights {
    let stream = yaml::parse(text, &yaml::Limits::default());
    assert!(stream.errors.is_empty(), "{:?}\n{text}", stream.errors);
    let mut rights = Rights::none();
    for document in &stream.documents {
        let root = document.root();
        let of = |path: &[&str]| root.get_path(path).and_then(yaml::Node::as_str);
        let kind = of(&["kind"]).unwrap();
        let Some(rules) = root.get("rules") else {
            continue;
        };
        for rule in rules.items() {
            let list = |key: &str| -> String {
                let items = rule.get(key).unwrap().items();
                let items: Vec<String> = items.map(|i| i.as_str().unwrap().into_owned()).collect();
                items.join(",")
            };
            let (verbs, resources) = (list("verbs"), list("resources"));
            rights = match &*kind {
                "Role" => {
                    let namespace = of(&["metadata", "namespace"]).unwrap();
                    rights.allow_in(&namespace, &verbs, &resources)
                }
                _ => rights.allow(&verbs, &resources),
            };
        }
    }
    rights
}

#[test]
fn the_printed_role_is_enough_and_no_more() {
    let well = well();
    for way in ways() {
        with(&well, granted(&printed(&["-n", "serving", "--nodes"])));
        let run = checked(&well.api, &way);
        let told = run.json();
        let told = of_rights(&told);
        assert_eq!(told.len(), 1, "{way:?} {told:#?}");
        assert_eq!(told[0]["status"], "ok", "{way:?} {told:#?}");
        assert!(!run.out.contains("-forbidden"), "{way:?} {}", run.out);
        // Without the part on the whole cluster only the nodes are missing.
        with(&well, granted(&printed(&["-n", "serving"])));
        let report = checked(&well.api, &way).json();
        let told = of_rights(&report);
        assert_eq!(told.len(), 1, "{way:?} {told:#?}");
        assert!(
            told[0]["detail"]
                .as_str()
                .unwrap()
                .starts_with("list nodes")
        );
        // In another namespace it grants nothing.
        with(&well, granted(&printed(&["-n", "other", "--nodes"])));
        assert_eq!(checked(&well.api, &way).code, 5, "{way:?}");
    }
}

#[test]
fn kubectl_takes_what_is_printed() {
    if !has_kubectl() {
        return;
    }
    let well = well();
    for words in [
        vec!["-n", "serving"],
        vec!["-n", "serving", "--nodes", "--name", "kv-check"],
        vec![
            "-n",
            "serving",
            "--user",
            "O'Brien: \"#1\" <a@b>",
            "--group",
            "system:masters",
            "--service-account",
            "ci:runner",
            "--nodes",
        ],
    ] {
        let text = printed(&words);
        let mut child = Command::new("kubectl")
            .env("KUBECONFIG", well.api.kubeconfig())
            .env("HOME", well.api.directory())
            .args([
                "create",
                "--dry-run=client",
                "--validate=false",
                "-o",
                "json",
                "-f",
                "-",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("no matches for kind") {
            // The stand-in serves no RBAC, and kubectl asks the server for kinds.
            eprintln!("skipped: {errors}");
            continue;
        }
        assert!(output.status.success(), "{errors}\n{text}");
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(out.contains("RoleBinding"), "{out}");
    }
}

#[test]
fn names_that_kubernetes_would_refuse_are_refused() {
    for words in [
        vec!["-n", "Not_A_Name"],
        vec!["-n", "serving\nkind: Evil"],
        vec!["-n", "serving", "--name", "-x"],
        vec!["-n", "serving", "--service-account", "runner"],
        vec!["-n", "serving", "--user", ""],
    ] {
        let run = run_with(
            Path::new("/nonexistent"),
            &[&["rbac"], words.as_slice()].concat(),
        );
        assert_eq!(run.code, 2, "{words:?} {}", run.out);
        assert!(run.out.is_empty());
    }
}
