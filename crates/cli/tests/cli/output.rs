//! Where reports go, in which format, and that all formats say the same.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{
    Dir, FORMATS, PROGRAM, Run, aggregated, assert_harmless, blocked, broken, degraded, words,
};

fn fixtures() -> Dir {
    let dir = Dir::with_good();
    dir.file("blocked.yaml", blocked());
    dir.file("degraded.yaml", degraded());
    dir.file("aggregated.yaml", aggregated());
    dir.file("broken.yaml", broken());
    dir.file("empty.yaml", "");
    let many: String = (0..40)
        .map(|at| {
            format!(
                "---\n{}",
                blocked().replace("name: blocked", &format!("name: g{at}"))
            )
        })
        .collect();
    dir.file("many.yaml", many);
    let nccl = "env: [{name: NCCL_IB_HCA, value: '=mlx5_0'}, {name: NCCL_IB_DISABLE, value: '1'}, {name: UCX_TLS, value: rc}]\n";
    dir.file("nccl.yaml", crate::support::both("nccl", nccl));
    dir
}

const SETS: [&str; 10] = [
    "good.yaml",
    "blocked.yaml",
    "degraded.yaml",
    "aggregated.yaml",
    "broken.yaml",
    "empty.yaml",
    "gone.yaml",
    "many.yaml",
    "nccl.yaml",
    "good.yaml blocked.yaml degraded.yaml aggregated.yaml broken.yaml empty.yaml gone.yaml many.yaml nccl.yaml",
];

#[test]
fn json_fits_its_schema() {
    let dir = fixtures();
    let report = jsonschema::validator_for(&dir.run(["schema"]).json()).expect("a schema");
    let line = jsonschema::validator_for(&dir.run(["schema", "jsonl"]).json()).expect("a schema");
    assert!(
        !report.is_valid(&serde_json::json!({"checks": []})),
        "a schema that takes anything"
    );
    assert!(
        !line.is_valid(&serde_json::json!({"type": "other"})),
        "a schema that takes anything"
    );
    let check = |validator: &jsonschema::Validator, value: &Value, what: &str| {
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:?}");
    };
    for paths in SETS {
        let (_, value) = dir.json(words(paths));
        check(&report, &value, paths);
        let lines = Run::new(&dir, ["env", "-o", "jsonl"])
            .args(words(paths))
            .go()
            .stdout;
        for text in lines.lines() {
            check(
                &line,
                &serde_json::from_str(text).expect("a JSON line"),
                paths,
            );
        }
    }
    for command in ["node", "nixl"] {
        check(&report, &dir.run([command, "-o", "json"]).json(), command);
    }
}

#[test]
fn json_lines_end_with_the_summary() {
    let dir = fixtures();
    for paths in SETS {
        let (_, report) = dir.json(words(paths));
        let out = Run::new(&dir, ["env", "-o", "jsonl"])
            .args(words(paths))
            .go();
        assert!(out.stdout.ends_with('\n'));
        let lines: Vec<Value> = out
            .stdout
            .lines()
            .map(|l| serde_json::from_str(l).expect("a JSON line"))
            .collect();
        let (summary, results) = lines.split_last().expect("lines");
        assert_eq!(summary["type"], "summary");
        for key in [
            "counts",
            "readiness",
            "verdict",
            "transfer_validated",
            "coverage",
            "deployments",
            "next",
            "scope",
            "command",
            "schema",
        ] {
            if key != "deployments" || paths.split(' ').count() == 1 {
                assert_eq!(summary[key], report[key], "{paths}: {key}");
            }
        }
        // What is counted is there, line by line.
        for status in ["ok", "warn", "fail", "skipped"] {
            let n = results
                .iter()
                .filter(|l| l["type"] == "check" && l["status"] == status)
                .count();
            assert_eq!(summary["counts"][status], n, "{paths}: {status}");
        }
        assert!(
            results
                .iter()
                .all(|l| l["type"] == "check" || l["type"] == "collective")
        );
        assert_eq!(
            report["collectives"]
                .as_array()
                .is_some_and(|c| !c.is_empty()),
            results.iter().any(|l| l["type"] == "collective"),
            "{paths}"
        );
    }
}

#[test]
fn all_formats_say_the_same() {
    let dir = fixtures();
    for paths in SETS {
        let (json, report) = dir.json(words(paths));
        let verdict = report["verdict"].as_str().unwrap();
        let readiness = report["readiness"].as_str().unwrap();
        let counts = &report["counts"];
        for format in FORMATS {
            let out = Run::new(&dir, ["env", "-o", format])
                .args(words(paths))
                .go();
            assert_eq!(out.code, json.code, "{paths} as {format}: {out}");
            assert!(out.stderr.is_empty(), "{out}");
            if format == "json" {
                assert_eq!(out.json(), report);
            } else if format == "jsonl" {
                let last: Value =
                    serde_json::from_str(out.stdout.lines().last().unwrap()).expect("a JSON line");
                assert_eq!(
                    (&last["verdict"], &last["readiness"]),
                    (&report["verdict"], &report["readiness"]),
                    "{paths}"
                );
            }
            if matches!(format, "text" | "short") {
                let last = out.stdout.lines().last().unwrap();
                assert!(
                    last.starts_with("verdict")
                        && last.contains(verdict)
                        && last.contains(readiness),
                    "{last}"
                );
                for status in ["fail", "warn", "ok", "skipped"] {
                    assert!(
                        out.stdout.contains(&format!("{} {status}", counts[status])),
                        "{paths} as {format}: {counts}: {out}"
                    );
                }
            }
        }
        // The same again is the same, byte for byte.
        let again = Run::new(&dir, ["env", "-o", "json"])
            .args(words(paths))
            .go();
        assert_eq!(again.stdout, json.stdout);
    }
}

#[test]
fn several_outputs() {
    let dir = fixtures();
    let alone = |format: &str| dir.run(["env", "blocked.yaml", "-o", format]).stdout;
    let out = dir.run([
        "env",
        "blocked.yaml",
        "-o",
        "text",
        "-o",
        "json=r.json",
        "--output",
        "short=s.txt",
        "--output=jsonl=l.jsonl",
    ]);
    out.exits(1);
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    assert_eq!(out.stdout, alone("text"));
    assert_eq!(read("r.json"), alone("json"));
    assert_eq!(read("s.txt"), alone("short"));
    assert_eq!(read("l.jsonl"), alone("jsonl"));

    // Files only: nothing on standard output. A file is replaced as a whole.
    let out = dir.run(["env", "good.yaml", "-o", "json=r.json"]);
    out.exits(0);
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{out}");
    assert_eq!(
        serde_json::from_str::<Value>(&read("r.json")).unwrap()["readiness"],
        "unproven"
    );
    assert!(!read("r.json").contains("blocked"));
    // The equals sign belongs to the name.
    dir.run(["env", "good.yaml", "-o", "short=a=b.txt"])
        .exits(0);
    assert!(read("a=b.txt").contains("verdict"));
    // No file of ours is left behind.
    let left: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| n.contains("part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn special_targets() {
    let dir = fixtures();
    dir.run(["env", "blocked.yaml", "-o", "json=/dev/null", "-o", "short"])
        .exits(1)
        .says(&["verdict"]);
    let out = dir.run(["env", "blocked.yaml", "-o", "short=/dev/stdout"]);
    out.exits(1).says(&["verdict"]);
    // A link is written through, not replaced.
    dir.file("real.json", "old");
    std::os::unix::fs::symlink("real.json", dir.path().join("link.json")).unwrap();
    dir.run(["env", "good.yaml", "-o", "json=link.json"])
        .exits(0);
    assert!(
        fs::symlink_metadata(dir.path().join("link.json"))
            .unwrap()
            .is_symlink(),
        "the link is gone"
    );
    assert!(
        fs::read_to_string(dir.path().join("real.json"))
            .unwrap()
            .contains("report-v1")
    );
    // Who could read the file before can read it afterwards, and nobody else.
    let private = dir.file("private.json", "old");
    fs::set_permissions(&private, fs::Permissions::from_mode(0o600)).unwrap();
    dir.run(["env", "good.yaml", "-o", "json=private.json"])
        .exits(0);
    assert_eq!(
        fs::metadata(&private).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn outputs_that_cannot_be_written() {
    let dir = fixtures();
    fs::create_dir(dir.path().join("d")).unwrap();
    for (file, got) in [
        ("nowhere/r.json", "nowhere/r.json"),
        ("d", "d"),
        ("good.yaml/r.json", "good.yaml/r.json"),
        ("/proc/r.json", "/proc/r.json"),
    ] {
        let out = dir.run([
            "env",
            "good.yaml",
            "-o",
            &format!("json={file}"),
            "-o",
            "text",
        ]);
        out.exits(2).complains(&["cannot write", got]);
        assert!(
            !out.stderr.contains("os error"),
            "words of the language, not of the user: {out}"
        );
    }
    dir.run(["env", "good.yaml", "-o", "json="])
        .exits(2)
        .complains(&["no file name behind json=", "expected -o json=FILE"]);
    let full = dir.run(["env", "good.yaml", "-o", "json=/dev/full"]);
    full.exits(2)
        .complains(&["cannot write /dev/full", "no space left"]);
    let full = Run::of(
        &dir,
        "sh",
        ["-c", &format!("exec '{PROGRAM}' env good.yaml >/dev/full")],
    )
    .go();
    full.exits(2)
        .complains(&["cannot write to standard output", "no space left"]);
    let full = Run::of(
        &dir,
        "sh",
        ["-c", &format!("exec '{PROGRAM}' schema >/dev/full")],
    )
    .go();
    full.exits(2)
        .complains(&["cannot write to standard output"]);
    // A hostile name in the message.
    let out = dir.run(["env", "good.yaml", "-o", "json=no\u{1b}[31m\u{202e}/x\ny"]);
    out.exits(2);
    assert_harmless("stderr", &out.stderr);
    assert_eq!(out.stderr.lines().count(), 1, "{out}");
}

#[test]
fn wrong_output_arguments() {
    let dir = fixtures();
    for format in ["xml", "JSON", "", "=", "xml=r", "te xt", "\u{1b}[31m"] {
        let out = dir.run(["env", "good.yaml", "-o", format]);
        out.exits(2).complains(&[
            "unknown format",
            "expected one of text, short, json, jsonl, prometheus",
        ]);
        assert!(out.stdout.is_empty(), "{out}");
        assert_harmless("stderr", &out.stderr);
    }
    for pair in [["text", "json"], ["json", "json"]] {
        let out = dir.run(["env", "good.yaml", "-o", pair[0], "-o", pair[1]]);
        out.exits(2).complains(&[
            "two formats for standard output",
            "-o text -o json=report.json",
        ]);
        assert!(out.stdout.is_empty(), "{out}");
    }
    let out = dir.run(["env", "good.yaml", "-o", "json=same", "-o", "text=same"]);
    out.exits(2).complains(&["two formats", "same"]);
    // Told before anything is read: this would wait for standard input.
    dir.run(["env", "-", "-o", "xml"]).exits(2);
    dir.run(["node", "-o", "xml"])
        .exits(2)
        .complains(&["unknown format"]);
}

#[test]
fn a_reader_that_stops_early() {
    let dir = fixtures();
    for args in [
        "env many.yaml",
        "env many.yaml -v",
        "env many.yaml -o json",
        "env many.yaml -o jsonl",
        "vars",
        "explain",
        "schema",
        "man",
        "completions bash",
        "--help",
        "env --help",
    ] {
        let script = format!(
            "set -o pipefail; '{PROGRAM}' {args} | head -1 >/dev/null; echo \"${{PIPESTATUS[0]}}\""
        );
        let out = Run::of(&dir, "bash", ["-c", &script]).go();
        assert!(out.stderr.is_empty(), "{args}: {out}");
        let code: i32 = out.stdout.trim().parse().unwrap();
        assert!(
            code == 0 || (code == 1 && args.contains("many")),
            "{args}: {out}"
        );
        // A reader that is gone before the first byte.
        let script = format!("'{PROGRAM}' {args} | :; echo \"${{PIPESTATUS[0]}}\"");
        let out = Run::of(&dir, "bash", ["-c", &script]).go();
        assert!(
            out.stderr.is_empty() && out.stdout.trim() == code.to_string(),
            "{args}: {out}"
        );
    }
    // The exit code is the report's, whoever read it.
    let out = Run::of(
        &dir,
        "bash",
        [
            "-c",
            &format!("'{PROGRAM}' env blocked.yaml | :; exit ${{PIPESTATUS[0]}}"),
        ],
    )
    .go();
    out.exits(1);
    // Closed standard output and standard error.
    for closed in [">&-", "2>&-", ">&- 2>&-"] {
        let out = Run::of(
            &dir,
            "sh",
            [
                "-c",
                &format!("'{PROGRAM}' env blocked.yaml {closed}; echo \"code $?\" >code"),
            ],
        )
        .go();
        out.exits(0);
        let code = fs::read_to_string(dir.path().join("code")).unwrap();
        assert!(
            code == "code 1\n" || (code == "code 2\n" && closed.starts_with('>')),
            "{closed}: {code}"
        );
    }
}

/// Removes our own colours: `ESC [ digits ; … m`.
fn without_colors(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        out.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let end = code
            .find(|c: char| !(c.is_ascii_digit() || c == ';'))
            .unwrap_or(code.len());
        assert!(
            code[end..].starts_with('m'),
            "not a colour: {:?}",
            &code[..(end + 1).min(code.len())]
        );
        rest = &code[end + 1..];
    }
    out.push_str(rest);
    out
}

#[test]
fn color() {
    let dir = fixtures();
    for paths in SETS {
        for format in ["text", "short"] {
            let plain = Run::new(&dir, ["env", "-o", format])
                .args(words(paths))
                .go();
            assert_harmless(format, &plain.stdout);
            // Not a terminal: nothing asks for colour but --color.
            let never = Run::new(&dir, ["env", "-o", format, "--color", "never"])
                .args(words(paths))
                .go();
            let clicolor = Run::new(&dir, ["env", "-o", format])
                .args(words(paths))
                .env("CLICOLOR_FORCE", "1")
                .env("TERM", "xterm")
                .go();
            assert_eq!(plain.stdout, never.stdout);
            assert_eq!(plain.stdout, clicolor.stdout);
            let always = Run::new(&dir, ["env", "-o", format, "--color", "always"])
                .args(words(paths))
                .go();
            assert!(always.stdout.contains("\u{1b}["), "{always}");
            assert_eq!(
                without_colors(&always.stdout),
                plain.stdout,
                "colour changes words"
            );
            assert_eq!(always.code, plain.code);
            // What is said outright wins over the environment.
            let both = Run::new(&dir, ["env", "-o", format, "--color", "always"])
                .args(words(paths))
                .env("NO_COLOR", "1")
                .go();
            assert_eq!(both.stdout, always.stdout);
        }
        for format in ["json", "jsonl"] {
            let always = Run::new(&dir, ["env", "-o", format, "--color", "always"])
                .args(words(paths))
                .go();
            assert_harmless(format, &always.stdout);
        }
    }
    // Every colour that is switched on is switched off on the same line.
    let always = dir.run(["env", "many.yaml", "--color", "always"]);
    for line in always.stdout.lines() {
        let on = line.matches("\u{1b}[").count() - line.matches("\u{1b}[0m").count();
        assert!(
            on == 0 || line.rfind("\u{1b}[0m") > line.rfind("\u{1b}[1"),
            "{line:?}"
        );
    }
    // A file gets no colour unless asked for.
    dir.run(["env", "blocked.yaml", "-o", "text=t.txt", "--color", "auto"])
        .exits(1);
    assert_harmless(
        "file",
        &fs::read_to_string(dir.path().join("t.txt")).unwrap(),
    );
}

/// On a terminal: colour, unless NO_COLOR or a dumb terminal says otherwise.
#[test]
fn terminal() {
    let dir = fixtures();
    let on_terminal = |before: &str| {
        let out = Run::of(
            &dir,
            "script",
            [
                "-qec",
                &format!("{before} '{PROGRAM}' env blocked.yaml"),
                "/dev/null",
            ],
        )
        .env("TERM", "xterm")
        .go();
        assert_eq!(out.code, Some(1), "{out}");
        out.stdout
    };
    if !std::process::Command::new("script")
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("skipped: no script(1) to make a terminal with");
        return;
    }
    assert!(on_terminal("").contains("\u{1b}["));
    assert!(!on_terminal("env NO_COLOR=1").contains('\u{1b}'));
    assert!(
        on_terminal("env NO_COLOR=").contains("\u{1b}["),
        "an empty NO_COLOR says nothing"
    );
    assert!(!on_terminal("env TERM=dumb").contains('\u{1b}'));
    let ascii = on_terminal("env NO_COLOR=1 LC_ALL=C");
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn verbose_adds_and_takes_nothing_away() {
    let dir = fixtures();
    for paths in SETS {
        let plain = Run::new(&dir, ["env"]).args(words(paths)).go();
        let verbose = Run::new(&dir, ["env", "-v"]).args(words(paths)).go();
        assert_eq!(plain.code, verbose.code);
        assert_eq!(plain.stdout.lines().last(), verbose.stdout.lines().last());
        assert!(verbose.stdout.len() >= plain.stdout.len(), "{verbose}");
    }
}

#[test]
fn inputs_are_never_written_over() {
    let recipe = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b}]}\n";
    let dir = Dir::new();
    dir.file("f.yaml", recipe);
    dir.file("d/in.json", "{\"kind\": \"Pod\"}");
    dir.file("d/notes.txt", "text");
    dir.file("d/.hidden/x.json", "{\"kind\": \"Pod\"}");
    dir.file("base/kept.yml", recipe);
    dir.file("c.toml", "");
    dir.file("known.json", BASELINE);
    dir.file("values.json", "{}");
    let link = |to: &str, name: &str| {
        std::os::unix::fs::symlink(to, dir.path().join(name)).unwrap();
    };
    link("f.yaml", "link.json");
    link("d", "dlink");
    dir.file("other/elsewhere.json", "{\"kind\": \"Pod\"}");
    fs::create_dir(dir.path().join("links")).unwrap();
    link("../other/elsewhere.json", "links/through.json");
    link("../other", "links/above");
    let before = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    for (input, target, kept) in [
        ("f.yaml", "f.yaml", "f.yaml"),
        ("f.yaml", "./d/../f.yaml", "f.yaml"),
        ("f.yaml", "link.json", "f.yaml"),
        ("link.json", "f.yaml", "f.yaml"),
        ("d", "d/in.json", "d/in.json"),
        (".", "d/in.json", "d/in.json"),
        ("d", "dlink/in.json", "d/in.json"),
        ("dlink", "d/in.json", "d/in.json"),
        ("links", "other/elsewhere.json", "other/elsewhere.json"),
        ("f.yaml", "base/kept.yml", "base/kept.yml"),
    ] {
        let text = before(kept);
        let written = format!("json={target}");
        for args in [["-o", written.as_str()], ["--write-baseline", target]] {
            let out = dir.run(["env", input, args[0], args[1]]);
            out.exits(2).complains(&[target, "give another file"]);
            assert!(out.stdout.is_empty(), "{out}");
            assert_eq!(before(kept), text, "{input} {target}: written over");
        }
    }
    // Standard input can be a file too.
    let out = Run::of(
        &dir,
        "sh",
        [
            "-c",
            &format!("exec '{PROGRAM}' env - -o json=f.yaml <f.yaml"),
        ],
    )
    .go();
    out.exits(2).complains(&["one of the inputs"]);
    assert_eq!(before("f.yaml"), recipe);
    // What a run reads beside its inputs.
    for args in [
        ["--config", "c.toml", "-o", "json=c.toml"],
        ["--baseline", "known.json", "-o", "json=known.json"],
        ["-o", "json=new.json", "--write-baseline", "new.json"],
    ] {
        let files = ["c.toml", "known.json"].map(before);
        let out = dir.run(["env", "f.yaml"].iter().chain(&args));
        if args[0] == "-o" {
            // Neither is there yet, and the second time they are one.
            out.exits(0);
            dir.run(["env", "f.yaml"].iter().chain(&args))
                .exits(2)
                .complains(&["are one file"]);
        } else {
            out.exits(2).complains(&["this run reads it"]);
        }
        assert_eq!(["c.toml", "known.json"].map(before), files);
    }
    // What is no input is written, and again, and what ours wrote is no input.
    for target in ["d/report.json", "d/notes.txt", "d/.hidden/x.json", "r.json"] {
        for _ in 0..2 {
            dir.run(["env", "d", "-o", &format!("json={target}")])
                .exits(0);
        }
    }
    dir.file("d/empty.json", "");
    dir.run(["env", "d", "--write-baseline", "d/empty.json"])
        .exits(0);
    dir.run(["env", "d", "--write-baseline", "d/empty.json"])
        .exits(0);
    let (_, report) = dir.json(["d"]);
    assert_eq!(
        report["deployments"].as_array().map_or(0, Vec::len),
        1,
        "{report:#}"
    );
    // Named itself, a report is no manifest.
    let (out, report) = dir.json(["d/report.json"]);
    out.exits(4);
    assert!(report.to_string().contains("no manifest"), "{report:#}");
}

const BASELINE: &str =
    "{\n  \"schema\": \"check-interconnect/baseline-v1\",\n  \"findings\": []\n}\n";
