//! One exit code, the same for every format; `--fail-on` moves the line.

use crate::support::{Dir, FORMATS, Run, aggregated, blocked, broken, degraded, good, words};

/// All inputs that the table is about.
fn inputs() -> Dir {
    let dir = Dir::new();
    dir.file("blocked.yaml", blocked());
    dir.file("degraded.yaml", degraded());
    dir.file("unproven.yaml", good());
    dir.file("aggregated.yaml", aggregated());
    dir.file("broken.yaml", broken());
    dir.file("empty.yaml", "");
    dir.file(
        "template.yaml",
        "{{- if .Values.a }}\nkind: Pod\n{{- end }}\n",
    );
    dir.file("service.yaml", "kind: Service\nmetadata: {name: s}\n");
    dir
}

/// Inputs, then the codes for `--fail-on` fail, warn, unproven and never.
const TABLE: [(&str, [i32; 4]); 17] = [
    ("blocked.yaml", [1, 1, 1, 0]),
    ("degraded.yaml", [0, 1, 1, 0]),
    ("unproven.yaml", [0, 0, 1, 0]),
    ("aggregated.yaml", [0, 0, 0, 0]),
    ("service.yaml", [4, 4, 4, 4]),
    ("broken.yaml", [3, 3, 3, 0]),
    ("template.yaml", [3, 3, 3, 0]),
    ("empty.yaml", [4, 4, 4, 4]),
    ("gone.yaml", [2, 2, 2, 2]),
    ("blocked.yaml broken.yaml", [1, 1, 1, 0]),
    ("degraded.yaml broken.yaml", [3, 1, 1, 0]),
    ("unproven.yaml broken.yaml", [3, 3, 3, 0]),
    ("aggregated.yaml broken.yaml", [3, 3, 3, 0]),
    ("unproven.yaml empty.yaml", [0, 0, 1, 0]),
    ("unproven.yaml degraded.yaml aggregated.yaml", [0, 1, 1, 0]),
    ("blocked.yaml gone.yaml", [2, 2, 2, 2]),
    ("broken.yaml gone.yaml", [2, 2, 2, 2]),
];

#[test]
fn truth_table() {
    let dir = inputs();
    for (paths, codes) in TABLE {
        for (fail_on, code) in ["fail", "warn", "unproven", "never"].into_iter().zip(codes) {
            for format in FORMATS {
                let out = Run::new(&dir, ["env", "--fail-on", fail_on, "-o", format])
                    .args(words(paths))
                    .go();
                assert_eq!(
                    out.code,
                    Some(code),
                    "{paths} --fail-on {fail_on} -o {format}: {out}"
                );
                assert!(!out.stdout.is_empty(), "a code without a report: {out}");
            }
            // The default is `fail`, and several outputs change nothing.
            if fail_on == "fail" {
                Run::new(&dir, ["env"]).args(words(paths)).go().exits(code);
                Run::new(&dir, ["env", "-v", "-o", "text", "-o", "json=r.json"])
                    .args(words(paths))
                    .go()
                    .exits(code);
            }
        }
    }
}

#[test]
fn readiness_agrees_with_the_code() {
    let dir = inputs();
    for (paths, readiness) in [
        ("blocked.yaml", "blocked"),
        ("degraded.yaml", "degraded"),
        ("unproven.yaml", "unproven"),
        ("aggregated.yaml", "not-applicable"),
        ("broken.yaml", "inconclusive"),
        ("gone.yaml", "inconclusive"),
        ("unproven.yaml broken.yaml", "inconclusive"),
        ("blocked.yaml broken.yaml", "blocked"),
        ("unproven.yaml gone.yaml", "inconclusive"),
    ] {
        let (_, report) = dir.json(words(paths));
        assert_eq!(report["readiness"], readiness, "{paths}: {report:#}");
        assert_eq!(report["transfer_validated"], false, "{paths}");
    }
}

#[test]
fn usage() {
    let dir = inputs();
    for (args, complaint) in [
        ("", "Usage"),
        ("env", "PATH"),
        ("evn x", "--help"),
        ("env unproven.yaml --nothing", "--nothing"),
        ("env unproven.yaml --fail-on sometimes", "unproven"),
        ("env unproven.yaml --color purple", "always"),
        ("explain no-such-thing", "explain lists all"),
        ("vars NO_SUCH_VARIABLE", "vars lists all"),
        ("man nothing", "--help lists them"),
        ("completions tcsh", "bash"),
        ("schema xml", "jsonl"),
    ] {
        let out = dir.run(words(args));
        out.exits(2).complains(&[complaint]);
        assert!(out.stdout.is_empty(), "{out}");
    }
    for args in [
        "--help",
        "-h",
        "--version",
        "env --help",
        "vars -h",
        "explain",
        "vars",
        "schema",
        "schema jsonl",
        "man",
        "man env",
        "completions bash",
        "completions zsh",
        "completions fish",
    ] {
        let out = dir.run(words(args));
        out.exits(0);
        assert!(!out.stdout.is_empty() && out.stderr.is_empty(), "{out}");
    }
    dir.run(["env", "--help"])
        .says(&["0", "1", "2", "3", "4", "Nothing else is run"]);
}

#[test]
fn without_a_cluster_pods_are_never_green() {
    let dir = Dir::new();
    for command in ["node", "nixl"] {
        let pod = [command, "--pod", "p", "-n", "n", "-c", "main"];
        // A file that is not there, whatever this machine has.
        let run = |more: &[&str]| {
            Run::new(
                &dir,
                [&pod[..], &["--kubeconfig", "gone.yaml"], more].concat(),
            )
            .go()
        };
        for format in FORMATS {
            run(&["-o", format])
                .exits(5)
                .says(&["nothing was looked at"]);
        }
        let out = run(&["-o", "json"]);
        let report = out.json();
        assert_eq!(report["transfer_validated"], false);
        assert_eq!(report["readiness"], "inconclusive");
        assert_eq!(report["command"], command);
        assert_eq!(report["counts"]["skipped"], 1);
        assert_eq!(report["counts"]["ok"], 0);
        assert_eq!(report["checks"][0]["status"], "skipped");
        run(&["--fail-on", "unproven"]).exits(5);
        run(&["--fail-on", "never"]).exits(5);
    }
}

#[test]
fn options_of_pods_need_a_pod() {
    let dir = Dir::new();
    for (args, complaint) in [
        ("nixl -n serving", "--namespace without a pod"),
        ("nixl --from a.log --pod p", "--pod"),
        ("nixl --from a.log --force", "--force"),
        ("nixl --from a.log --dry-run", "--dry-run"),
        ("nixl --debug-pods", "--debug-pods takes pods"),
    ] {
        dir.run(words(args)).exits(2).complains(&[complaint]);
    }
}
