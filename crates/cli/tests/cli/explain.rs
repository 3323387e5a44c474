//! Whatever `explain` lists can be explained.

use crate::support::Dir;

/// Checks (at the margin) and causes (indented) of the list.
fn listed(text: &str) -> (Vec<String>, Vec<String>) {
    let names = |indentation: &str| {
        text.lines()
            .skip(1)
            .filter_map(|line| line.strip_prefix(indentation))
            .filter(|name| !name.is_empty() && !name.contains(' ') && !name.starts_with(' '))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    (names(""), names("      "))
}

#[test]
fn every_check_and_cause() {
    let dir = Dir::new();
    let list = dir.run(["explain"]);
    list.exits(0);
    let (checks, causes) = listed(&list.stdout);
    assert!(
        checks.len() > 10 && checks.iter().any(|c| c == "env/ucx-tls"),
        "{checks:?}"
    );
    assert!(
        causes.len() > 30 && causes.iter().any(|c| c == "input-broken-yaml"),
        "{causes:?}"
    );
    for check in &checks {
        let out = dir.run(["explain", check]);
        out.exits(0);
        assert!(
            out.stdout.starts_with(&format!("# {check}\n")) && out.stdout.lines().count() > 3,
            "{out}"
        );
    }
    for cause in &causes {
        let out = dir.run(["explain", cause]);
        out.exits(0)
            .says(&["Why it matters:", "Fix:", "No problem if:", "Source:"]);
        assert!(out.stdout.starts_with(&format!("# {cause}\n")), "{out}");
        for line in out.stdout.lines() {
            assert!(
                !line.trim_end().ends_with(':'),
                "an empty field {line:?}: {out}"
            );
        }
    }
    // The check's page has all of its causes.
    let page = dir.run(["explain", "env/ucx-tls"]).stdout;
    assert!(
        page.contains("## Causes") && page.contains("### ucx-tls-no-gpu-memory-transport"),
        "{page}"
    );
}

#[test]
fn names_of_settings_lead_to_the_variable() {
    let dir = Dir::new();
    dir.run(["explain", "env/ucx-rndv-scheme"])
        .exits(0)
        .says(&["UCX_RNDV_SCHEME", "check-interconnect vars UCX_RNDV_SCHEME"]);
}

#[test]
fn unknown_names() {
    let dir = Dir::new();
    for (name, near) in [
        ("env/ucx-tsl", "did you mean env/ucx-tls?"),
        ("ipc-lock-mising", "did you mean ipc-lock-missing?"),
        ("input-broken-yml", "did you mean input-broken-yaml?"),
    ] {
        let out = dir.run(["explain", name]);
        out.exits(2)
            .complains(&[name, near, "check-interconnect explain lists all"]);
        assert!(out.stdout.is_empty(), "{out}");
    }
    let out = dir.run(["explain", "\u{1b}[31mxyzzy\u{202e}"]);
    out.exits(2).complains(&["xyzzy"]);
    assert!(!out.stderr.contains("did you mean"), "{out}");
    crate::support::assert_harmless("stderr", &out.stderr);
    dir.run(["explain", ""]).exits(2);
}

/// Every cause that a report names can be explained; the report says the command.
#[test]
fn causes_in_reports() {
    let dir = Dir::new();
    dir.file("a.yaml", crate::support::blocked());
    dir.file("b.yaml", crate::support::degraded());
    dir.file("c.yaml", crate::support::broken());
    let (_, report) = dir.json(["a.yaml", "b.yaml", "c.yaml", "gone.yaml"]);
    let causes: Vec<&str> = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|c| c["cause"].as_str())
        .collect();
    assert!(causes.len() >= 4, "{causes:?}");
    for cause in causes {
        dir.run(["explain", cause]).exits(0);
    }
}
