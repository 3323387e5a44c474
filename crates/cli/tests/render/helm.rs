//! Charts: with the real helm where there is one, and a script for what it is told.

use std::env;
use std::path::Path;

use crate::fixtures::{GRAPH, TEMPLATE};
use crate::{NOTHING, Temp, run};

fn chart() -> Temp {
    let temp = Temp::new();
    temp.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: kv\nversion: 0.1.0\n",
    )
    .write("chart/values.yaml", "rdma: false\n")
    .write("chart/prod, \"one\".yaml", "rdma: true\n")
    .write("chart/templates/deploy.yaml", TEMPLATE)
    .write(
        "chart/templates/hook.yaml",
        &format!(
            "{}\n",
            GRAPH.replace(
                "  name: disagg\n",
                "  name: hook\n  annotations: {helm.sh/hook: pre-install}\n"
            )
        ),
    );
    temp
}

/// A PATH with helm, or none with a message.
fn helm() -> Option<String> {
    if let Some(file) = env::var_os("CHECK_INTERCONNECT_TEST_HELM") {
        let directory = Path::new(&file).parent().unwrap();
        return Some(format!("{}:/usr/bin:/bin", directory.display()));
    }
    crate::real("helm")
}

#[test]
fn values_change_the_verdict() {
    let Some(path) = helm() else { return };
    let temp = chart();
    let plain = run(temp.path(), &path, &["chart"]);
    assert!(
        plain.files().contains(&"chart (helm template)".to_owned()),
        "{}",
        plain.stdout
    );
    assert!(plain.has("ucx-tls-rdma-only-no-device"));
    assert!(!plain.stdout.contains("\"hook\""), "hooks are left out");
    assert!(!plain.has("input-template"));
    let prod = run(
        temp.path(),
        &path,
        &["chart", "--values", "chart/prod, \"one\".yaml"],
    );
    assert_eq!(prod.files(), ["chart (helm template)"], "{}", prod.stdout);
    assert!(!prod.has("ucx-tls-rdma-only-no-device"));
    assert_eq!(prod.code, 0);
    let named = run(temp.path(), &path, &["chart/Chart.yaml"]);
    assert_eq!(named.files(), ["chart (helm template)"]);
}

#[test]
fn charts_inside_a_chart_are_a_part_of_it() {
    let Some(path) = helm() else { return };
    let temp = chart();
    temp.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: kv\nversion: 0.1.0\ndependencies: [{name: sub, version: 0.1.0, repository: 'oci://192.0.2.1/x'}]\n",
    )
    .write("chart/charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n")
    .write("chart/charts/sub/values.yaml", "a: b\n")
    .write("chart/charts/sub/templates/sub.yaml", &GRAPH.replace("disagg", "from-sub"))
    .write("chart/examples/plain.yaml", &GRAPH.replace("disagg", "example"));
    let found = run(
        temp.path(),
        &path,
        &["chart", "--values", "chart/prod, \"one\".yaml"],
    );
    let mut files = found.files();
    files.sort();
    assert_eq!(
        files,
        [
            "chart (helm template)",
            "chart (helm template)",
            "chart/examples/plain.yaml"
        ],
        "{}",
        found.stdout
    );
}

#[test]
fn a_chart_that_fails_leaves_its_parts() {
    let Some(path) = helm() else { return };
    let temp = chart();
    temp.write(
        "chart/templates/deploy.yaml",
        "{{ fail \"the password is hunter2\" }}\n",
    );
    let found = run(temp.path(), &path, &["chart"]);
    let told = found.inputs();
    assert!(
        told.iter().any(|(_, file, words)| file == "chart"
            && words.contains("helm template ended with exit code 1")
            && words.contains("helm template kv chart | check-interconnect env -")),
        "{told:?}"
    );
    assert!(!found.stdout.contains("the password is"));
    assert!(found.verdict().contains("1 Helm chart was not rendered"));
}

#[test]
fn what_would_be_fetched_is_not() {
    let temp = chart();
    temp.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: kv\nversion: 0.1.0\ndependencies: [{name: sub, version: 0.1.0, repository: 'oci://192.0.2.1/x'}]\n",
    )
    .script("helm", "exec sleep 300");
    let found = run(temp.path(), &temp.scripts_path(), &["chart"]);
    let told = found.inputs();
    assert!(
        told.iter().any(|(_, file, words)| file == "chart"
            && words.contains("nothing is fetched")
            && words.contains("helm dependency build chart && helm template kv chart |")),
        "{told:?}"
    );
    assert!(!found.stdout.contains("192.0.2.1"));
    // A packed chart is there.
    temp.write("chart/charts/sub-0.1.0.tgz", "")
        .script("helm", "exec cat \"$3\"/../plain.yaml")
        .write("plain.yaml", GRAPH);
    let found = run(temp.path(), &temp.scripts_path(), &["chart"]);
    assert!(
        found.files().contains(&"chart (helm template)".to_owned()),
        "{}",
        found.stdout
    );
}

#[test]
fn helm_is_told_what_it_needs() {
    let temp = chart();
    let seen = temp.path().join("seen");
    temp.write("more.yaml", "a: b\n")
        .write("plain.yaml", GRAPH)
        .script(
            "helm",
            &format!(
                "{{ env; for a; do echo \"[$a]\"; done; }} >{}\nexec cat \"$3\"/../plain.yaml",
                seen.display()
            ),
        );
    let out = crate::command(
        temp.path(),
        &temp.scripts_path(),
        &[
            "chart",
            "--values",
            "more.yaml",
            "--values",
            "chart/prod, \"one\".yaml",
        ],
    )
    .env("HELM_NAMESPACE", "secret")
    .env("HELM_KUBETOKEN", "secret")
    .output()
    .unwrap();
    assert_eq!(out.status.code(), Some(1));
    let seen = temp.read("seen");
    assert!(!seen.contains("secret"), "{seen}");
    let here = temp.path().display();
    let arguments: Vec<&str> = seen.lines().filter(|l| l.starts_with('[')).collect();
    assert_eq!(
        arguments,
        [
            "[template]",
            "[kv]",
            &format!("[{here}/chart]"),
            "[--no-hooks]",
            "[--skip-tests]",
            "[--values]",
            &format!("[{here}/more.yaml]"),
            "[--values]",
            &format!("[\"{here}/chart/prod, \"\"one\"\".yaml\"]"),
        ]
    );
}

#[test]
fn without_helm_the_parts_are_judged() {
    let temp = chart();
    let found = run(temp.path(), NOTHING, &["chart"]);
    let told = found.inputs();
    assert!(
        told.iter().any(|(status, file, words)| status == "skipped"
            && file == "chart"
            && words.contains("helm is not on PATH")),
        "{told:?}"
    );
    assert!(found.has("input-template"));
    assert!(found.files().contains(&"chart/values.yaml".to_owned()));
    assert!(found.verdict().contains("1 Helm chart was not rendered"));
}

#[test]
fn wrong_values_are_wrong_usage() {
    let temp = chart();
    let missing = run(temp.path(), NOTHING, &["chart", "--values", "gone.yaml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("--values gone.yaml: no such file"));
    temp.write("plain.yaml", GRAPH);
    let no_chart = run(
        temp.path(),
        NOTHING,
        &["plain.yaml", "--values", "plain.yaml"],
    );
    assert_eq!(no_chart.code, 2);
    assert!(
        no_chart
            .stderr
            .contains("no Helm chart is among the inputs")
    );
}

#[test]
fn a_library_is_a_part_of_others() {
    let temp = chart();
    temp.write(
        "chart/Chart.yaml",
        "apiVersion: v2\nname: kv\nversion: 0.1.0\ntype: library\n",
    )
    .script("helm", "exit 1");
    let found = run(temp.path(), &temp.scripts_path(), &["chart"]);
    assert!(
        found
            .inputs()
            .iter()
            .any(|(_, _, w)| w.contains("a library chart"))
    );
}
