//! Inputs that are broken, odd or not there. Each gives a message that says what was got, what was expected and
//! what to try, and never stops what stands beside it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::{
    Dir, PROGRAM, Run, aggregated, assert_harmless, blocked, both, broken, container, good, graph,
    inputs, is_root, readiness,
};

/// What is expected of one bad input.
struct Expected<'e> {
    cause: &'e str,
    /// Parts of the message: what was got, what was expected.
    got: &'e [&'e str],
    /// Part of what to try.
    try_this: &'e str,
    alone: i32,
    beside_good: i32,
}

/// Broken: 3, with whatever else there is.
fn broken_by<'e>(cause: &'e str, got: &'e [&'e str], try_this: &'e str) -> Expected<'e> {
    Expected {
        cause,
        got,
        try_this,
        alone: 3,
        beside_good: 3,
    }
}

/// Nothing in it: 4 alone, harmless beside others.
fn nothing_by<'e>(cause: &'e str, got: &'e [&'e str], try_this: &'e str) -> Expected<'e> {
    Expected {
        cause,
        got,
        try_this,
        alone: 4,
        beside_good: 0,
    }
}

#[track_caller]
fn holds(dir: &Dir, path: impl AsRef<OsStr>, expected: &Expected<'_>) {
    let path = path.as_ref();
    let (out, report) = dir.json([path]);
    out.exits(expected.alone);
    message(&report, expected);
    Run::new(dir, ["env"])
        .args([path])
        .go()
        .exits(expected.alone)
        .says(expected.got)
        .says(&[expected.try_this]);

    // In either order, and the good recipe is judged as if it were alone.
    for order in [
        [path, OsStr::new("good.yaml")],
        [OsStr::new("good.yaml"), path],
    ] {
        let (out, report) = dir.json(order);
        out.exits(expected.beside_good);
        message(&report, expected);
        good_is_judged(&report);
    }
    let out = Run::new(dir, ["env", "-o", "short"])
        .args([OsStr::new("good.yaml"), path])
        .go();
    out.exits(expected.beside_good);
}

#[track_caller]
fn message<'r>(report: &'r Value, expected: &Expected<'_>) -> &'r Value {
    let found = inputs(report);
    let hit = found.iter().find(|c| c["cause"] == expected.cause);
    let hit = hit.unwrap_or_else(|| panic!("no {} in {found:#?}", expected.cause));
    assert_eq!(hit["status"], "skipped");
    let detail = hit["detail"].as_str().unwrap();
    for word in expected.got {
        assert!(detail.contains(word), "no {word:?} in {detail:?}");
    }
    let fix = hit["fix"].as_str().unwrap();
    assert!(
        fix.contains(expected.try_this),
        "no {:?} in {fix:?}",
        expected.try_this
    );
    hit
}

/// The recipe of `good.yaml` has its verdict and its results.
#[track_caller]
fn good_is_judged(report: &Value) {
    assert_eq!(readiness(report, "good"), Some("unproven"), "{report:#}");
    let of_good = |name: &str| {
        report["checks"].as_array().unwrap().iter().any(|c| {
            c["name"] == name && c["subject"]["deployment"] == "good" && c["status"] == "ok"
        })
    };
    for name in [
        "env/kv-connector",
        "env/kv-fabric",
        "env/ucx-tls",
        "env/prefill-decode",
    ] {
        assert!(of_good(name), "no {name} for good: {report:#}");
    }
}

/// A readable recipe with something odd in it: judged, and so is what stands beside it.
#[track_caller]
fn judged(content: impl AsRef<[u8]>, name: &str, expected: &str, code: i32) -> Value {
    let dir = Dir::with_good();
    dir.file("odd.yaml", content);
    let (out, report) = dir.json(["odd.yaml", "good.yaml"]);
    out.exits(code);
    assert_eq!(readiness(&report, name), Some(expected), "{report:#}");
    good_is_judged(&report);
    report
}

#[test]
fn empty_file() {
    let dir = Dir::with_good();
    dir.file("empty.yaml", "");
    holds(
        &dir,
        "empty.yaml",
        &nothing_by(
            "input-empty",
            &[
                "empty.yaml",
                "no document in it",
                "a Kubernetes manifest was expected",
            ],
            "give a manifest",
        ),
    );
}

#[test]
fn only_comments() {
    let dir = Dir::with_good();
    dir.file("comments.yaml", "# nothing\n  # at all\n");
    holds(
        &dir,
        "comments.yaml",
        &nothing_by(
            "input-empty",
            &["comments.yaml", "no document in it"],
            "give a manifest",
        ),
    );
}

#[test]
fn only_a_document_mark() {
    let dir = Dir::with_good();
    for (name, text, got) in [
        ("dashes.yaml", "---\n", "no document in it"),
        ("more.yaml", "---\n---\n# x\n---\n", "no document in it"),
        ("end.yaml", "---\n...\n", "no document in it"),
        ("null.yaml", "null\n", "no manifest in it"),
        ("list.yaml", "kind: List\nitems: []\n", "no manifest in it"),
    ] {
        dir.file(name, text);
        holds(
            &dir,
            name,
            &nothing_by("input-empty", &[name, got], "give a manifest"),
        );
    }
}

#[test]
fn missing_path() {
    let dir = Dir::with_good();
    let expected = Expected {
        cause: "input-missing",
        got: &["gone.yaml", "no such file or directory"],
        try_this: "check the path",
        alone: 2,
        beside_good: 2,
    };
    holds(&dir, "gone.yaml", &expected);
    let below = Expected {
        got: &["good.yaml/x", "no such file or directory"],
        ..expected
    };
    holds(&dir, "good.yaml/x", &below);
}

#[test]
fn directory_without_manifest() {
    let dir = Dir::with_good();
    dir.file("docs/readme.md", "# hello\n");
    holds(
        &dir,
        "docs",
        &nothing_by(
            "input-no-manifest",
            &["docs", "no .yaml, .yml or .json file"],
            "give a directory with manifests",
        ),
    );
    fs::create_dir(dir.path().join("void")).unwrap();
    holds(
        &dir,
        "void",
        &nothing_by(
            "input-no-manifest",
            &["void", "no .yaml, .yml or .json file"],
            "name the files",
        ),
    );
}

#[test]
fn directory_is_searched() {
    let dir = Dir::new();
    dir.file("r/a/good.yaml", good());
    dir.file("r/b/blocked.YML", blocked());
    dir.file("r/c/agg.json", r#"{"kind":"Deployment","metadata":{"name":"fromjson"},"spec":{"template":{"spec":{"containers":[{"name":"x","image":"vllm"}]}}}}"#);
    dir.file("r/.git/hidden.yaml", broken());
    dir.file("r/notes.txt", broken());
    let (out, report) = dir.json(["r"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
    assert_eq!(readiness(&report, "fromjson"), Some("not-applicable"));
    assert!(inputs(&report).is_empty(), "{report:#}");
}

/// How to run a program as somebody else than root.
fn as_nobody(dir: &Dir) -> Option<(&'static str, Vec<String>)> {
    let ways: [(&str, &[&str]); 3] = [
        (
            "setpriv",
            &["--reuid=65534", "--regid=65534", "--clear-groups"],
        ),
        ("runuser", &["-u", "nobody", "--"]),
        (
            "su",
            &["nobody", "-s", "/bin/sh", "-c", "exec \"$0\" \"$@\""],
        ),
    ];
    // The copy lies where anybody can reach it; the build directory may not.
    let copy = dir.path().join("program");
    fs::copy(PROGRAM, &copy).ok()?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).ok()?;
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).ok()?;
    let copy = copy.to_str()?.to_owned();
    ways.into_iter().find_map(|(program, args)| {
        let mut all: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        all.push(copy.clone());
        let works = Command::new(program)
            .args(&all)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success());
        works.then_some((program, all))
    })
}

#[test]
fn unreadable_file_and_directory() {
    let dir = Dir::with_good();
    let secret = dir.file("locked.yaml", good());
    dir.file("closed/x.yaml", good());
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let (program, before) = if is_root() {
        let Some(way) = as_nobody(&dir) else {
            eprintln!("skipped: runs as root, and none of setpriv, runuser and su works here");
            return;
        };
        way
    } else {
        (PROGRAM, Vec::new())
    };
    for path in ["locked.yaml", "closed"] {
        let run = |args: &[&str]| Run::of(&dir, program, &before).args(args).go();
        let got = [path, "permission denied"];
        let expected = broken_by("input-unreadable", &got, "check its permissions");
        let alone = run(&["env", path, "-o", "json"]);
        alone.exits(3);
        message(&alone.json(), &expected);
        let beside = run(&["env", path, "good.yaml", "-o", "json"]);
        beside.exits(3);
        message(&beside.json(), &expected);
        good_is_judged(&beside.json());
        run(&["env", path])
            .exits(3)
            .says(expected.got)
            .says(&[expected.try_this]);
    }
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn binary_file() {
    let dir = Dir::with_good();
    dir.file("elf.yaml", b"\x7fELF\x02\x01\x01\0\0\0\0\xff\xfe");
    holds(
        &dir,
        "elf.yaml",
        &broken_by(
            "input-not-utf8",
            &["elf.yaml", "binary data", "UTF-8 text was expected"],
            "give a manifest",
        ),
    );
    dir.file(
        "latin1.yaml",
        b"kind: Deployment\nmetadata: {name: caf\xe9}\n",
    );
    holds(
        &dir,
        "latin1.yaml",
        &broken_by(
            "input-not-utf8",
            &[
                "latin1.yaml",
                "byte 37 is not UTF-8",
                "UTF-8 text was expected",
            ],
            "convert it to UTF-8",
        ),
    );
}

#[test]
fn utf16() {
    let dir = Dir::with_good();
    let units: Vec<u16> = "\u{feff}"
        .encode_utf16()
        .chain(good().encode_utf16())
        .collect();
    dir.file(
        "le.yaml",
        units
            .iter()
            .flat_map(|u| u.to_le_bytes())
            .collect::<Vec<u8>>(),
    );
    dir.file(
        "be.yaml",
        units
            .iter()
            .flat_map(|u| u.to_be_bytes())
            .collect::<Vec<u8>>(),
    );
    for name in ["le.yaml", "be.yaml"] {
        holds(
            &dir,
            name,
            &broken_by(
                "input-not-utf8",
                &[name, "UTF-16 text", "UTF-8 text was expected"],
                "iconv -f UTF-16 -t UTF-8",
            ),
        );
    }
}

#[test]
fn utf32() {
    let dir = Dir::with_good();
    let text: Vec<char> = format!("\u{feff}{}", good()).chars().collect();
    let bytes = |of: fn(u32) -> [u8; 4]| -> Vec<u8> {
        text.iter().flat_map(|c| of(u32::from(*c))).collect()
    };
    dir.file("le.yaml", bytes(u32::to_le_bytes));
    dir.file("be.yaml", bytes(u32::to_be_bytes));
    for name in ["le.yaml", "be.yaml"] {
        holds(
            &dir,
            name,
            &broken_by(
                "input-not-utf8",
                &[name, "UTF-32 text", "UTF-8 text was expected"],
                "iconv -f UTF-32 -t UTF-8",
            ),
        );
    }
}

#[test]
fn byte_order_mark_and_line_ends() {
    let recipe = good().replace("name: good", "name: odd");
    judged(format!("\u{feff}{recipe}"), "odd", "unproven", 0);
    let crlf = recipe.replace('\n', "\r\n");
    let report = judged(&crlf, "odd", "unproven", 0);
    assert!(
        !report.to_string().contains("\\r"),
        "a carriage return came through: {report:#}"
    );
    judged(
        crlf.replace("value: rc,cuda_copy,cuda_ipc", "value: tcp"),
        "odd",
        "blocked",
        1,
    );
    let dir = Dir::new();
    dir.file(
        "crlf.yaml",
        crlf.replace("value: rc,cuda_copy,cuda_ipc", "value: tcp"),
    );
    let out = dir.run(["env", "crlf.yaml"]);
    out.exits(1).says(&["value: tcp", "^^^"]);
    assert_harmless("text", &out.stdout);
}

#[test]
fn tabs_as_indentation() {
    let dir = Dir::with_good();
    dir.file("tabs.yaml", "kind: Deployment\nmetadata:\n\tname: x\n");
    holds(
        &dir,
        "tabs.yaml",
        &broken_by(
            "input-broken-yaml",
            &[
                "tabs.yaml:3:1",
                "found a tab as indentation, expected spaces",
            ],
            "indent with spaces",
        ),
    );
}

#[test]
fn deep_nesting() {
    let flow = |depth: usize| {
        format!(
            "kind: Pod\nmetadata: {{name: odd}}\na: {}{}\n",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let block = |depth: usize| {
        (0..depth).fold(
            String::from("kind: Pod\nmetadata: {name: odd}\n"),
            |all, at| format!("{all}{}k:\n", " ".repeat(at)),
        )
    };
    // Odd, but within the limit.
    judged(flow(200), "odd", "not-applicable", 0);
    judged(block(200), "odd", "not-applicable", 0);
    judged(
        format!(
            "{}---\n{}",
            flow(200).replace("name: odd", "name: deep"),
            with_env("env: []\n")
        ),
        "odd",
        "unproven",
        0,
    );
    let dir = Dir::with_good();
    dir.file("flow.yaml", flow(2_000));
    dir.file("block.yaml", block(2_000));
    for name in ["flow.yaml", "block.yaml"] {
        holds(
            &dir,
            name,
            &broken_by(
                "input-broken-yaml",
                &[name, "found more", "nesting"],
                "check that this is a manifest",
            ),
        );
    }
    // Two braces begin a template; thousands do not.
    dir.file(
        "braces.yaml",
        format!("kind: Pod\na: {}", "{".repeat(5_000)),
    );
    holds(
        &dir,
        "braces.yaml",
        &broken_by(
            "input-broken-yaml",
            &["braces.yaml", "more nesting than the limit allows"],
            "check that this is a manifest",
        ),
    );
    for hostile in ["[", "{", "- ", "? ", "{a: [", "'", "\"", "&a [", "!x ["] {
        dir.file(
            "hostile.yaml",
            format!("kind: Pod\na:\n  {}", hostile.repeat(100_000)),
        );
        let (_, report) = dir.json(["hostile.yaml", "good.yaml"]);
        good_is_judged(&report);
        assert!(
            !inputs(&report).is_empty() || report["deployments"].as_array().unwrap().len() == 2,
            "{hostile:?} left no trace: {report:#}"
        );
    }
}

/// Nine levels of ten aliases: ten thousand million nodes.
fn bomb() -> String {
    let mut bomb =
        String::from("kind: Pod\nmetadata: {name: odd}\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..=9 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    bomb
}

#[test]
fn alias_bombs() {
    let bomb = bomb();
    let configuration = bomb
        .lines()
        .skip(2)
        .map(|l| format!("    {l}\n"))
        .collect::<String>();
    let lists = (1..8).fold(
        String::from("kind: List\nl0: &l0 {kind: List, items: [{kind: Pod}, {kind: Pod}]}\n"),
        |all, level| {
            format!(
                "{all}l{level}: &l{level} {{kind: List, items: [{}]}}\n",
                vec![format!("*l{}", level - 1); 10].join(", ")
            )
        },
    );
    let templates = (1..8).fold(String::from("kind: X\np0: &p0 {containers: [{name: x, image: vllm, env: [{name: UCX_TLS, value: tcp}]}]}\n"), |all, level| {
        format!("{all}p{level}: &p{level} [{}]\n", vec![format!("*p{}", level - 1); 10].join(", "))
    });
    let merges = (1..8).fold(
        String::from("kind: X\nm0: &m0 {containers: []}\n"),
        |all, level| {
            format!(
                "{all}m{level}: &m{level} {{<<: [{}]}}\n",
                vec![format!("*m{}", level - 1); 10].join(", ")
            )
        },
    );
    let config_map = format!(
        "kind: ConfigMap\nmetadata: {{name: c}}\ndata:\n  e.yaml: |\n{configuration}    kv-transfer-config: *a9\n    cache_transceiver_config: {{backend: *a9}}\n"
    );
    for (name, text, code) in [
        ("bomb", format!("{bomb}spec:\n  containers: *a9\n"), 3),
        ("spec", format!("{bomb}spec: *a9\n"), 3),
        (
            "fields",
            bomb.replace("kind: Pod", "kind: Service")
                + "spec:\n  containers: [{name: x, env: *a9, args: *a9, resources: *a9, image: *a9}]\n",
            0,
        ),
        (
            "graph",
            bomb.replace("kind: Pod", "kind: DynamoGraphDeployment")
                + "spec: {services: {x: {envs: *a9}}, envs: *a9, components: *a9}\n",
            3,
        ),
        ("lists", format!("{lists}items: [*l7]\n"), 3),
        ("templates", templates, 3),
        ("merges", merges, 0),
        ("configuration", config_map, 0),
    ] {
        let dir = Dir::with_good();
        dir.file("bomb.yaml", text);
        let (out, report) = dir.json(["bomb.yaml", "good.yaml"]);
        // Not a speed: an expanded bomb would take minutes.
        assert!(out.took < Duration::from_secs(20), "{name}: {out}");
        assert_eq!(out.code, Some(code), "{name}: {out}");
        good_is_judged(&report);
        if name == "graph" {
            wrong_shape(&report, "an item of env");
        } else if code == 3 {
            message(
                &report,
                &broken_by(
                    "input-broken-alias",
                    &["bomb.yaml:1:1", "multiply to more than a manifest can hold"],
                    "write out what is needed",
                ),
            );
        }
    }
}

#[test]
fn aliases_that_lead_nowhere() {
    let dir = Dir::with_good();
    dir.file(
        "self.yaml",
        "kind: Pod\nmetadata: {name: odd}\nspec: &a\n  containers: []\n  again: *a\n",
    );
    holds(
        &dir,
        "self.yaml",
        &broken_by(
            "input-broken-alias",
            &["self.yaml:5:10", "inside the very node that it refers to"],
            "define the anchor first",
        ),
    );
    dir.file(
        "undefined.yaml",
        "kind: Pod\nmetadata: {name: odd}\nspec: *nothing\n",
    );
    holds(
        &dir,
        "undefined.yaml",
        &broken_by(
            "input-broken-alias",
            &["undefined.yaml:3:7", "anchor that is not defined before it"],
            "define the anchor first",
        ),
    );
}

#[test]
fn duplicate_keys() {
    let text = with_env("env:\n  - name: UCX_TLS\n    value: tcp\n    value: rc,cuda_copy\n");
    let report = judged(text, "odd", "unproven", 0);
    let note = inputs(&report)
        .into_iter()
        .find(|c| c["status"] == "ok")
        .expect("a note");
    let said = note["note"].as_str().unwrap();
    assert!(
        said.contains("repeats a key") && said.contains("keeps the last one"),
        "{said}"
    );
    assert!(
        note["fix"].as_str().unwrap().contains("remove one"),
        "{note}"
    );
}

#[test]
fn dangling_link() {
    let dir = Dir::with_good();
    symlink("nowhere.yaml", dir.path().join("dangling.yaml")).unwrap();
    holds(
        &dir,
        "dangling.yaml",
        &broken_by(
            "input-link-loop",
            &["dangling.yaml", "a symbolic link to nothing"],
            "correct or remove the link",
        ),
    );
    fs::create_dir(dir.path().join("d")).unwrap();
    symlink("nowhere.yaml", dir.path().join("d/inside.yaml")).unwrap();
    holds(
        &dir,
        "d",
        &broken_by(
            "input-link-loop",
            &["inside.yaml", "a symbolic link to nothing"],
            "correct or remove the link",
        ),
    );
}

#[test]
fn link_loops() {
    let dir = Dir::with_good();
    symlink("b.yaml", dir.path().join("a.yaml")).unwrap();
    symlink("a.yaml", dir.path().join("b.yaml")).unwrap();
    holds(
        &dir,
        "a.yaml",
        &broken_by(
            "input-link-loop",
            &["a.yaml", "a symbolic link that cannot be followed"],
            "correct or remove the link",
        ),
    );

    // A directory that holds a link to itself: what is in it is judged, once.
    dir.file("tree/blocked.yaml", blocked());
    symlink(".", dir.path().join("tree/again")).unwrap();
    let (out, report) = dir.json(["tree", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(
        report["deployments"].as_array().unwrap().len(),
        2,
        "{report:#}"
    );
    assert!(report.to_string().contains("not followed"), "{report:#}");
}

#[test]
fn directory_with_the_name_of_a_file() {
    let dir = Dir::with_good();
    dir.file("x.yaml/inner.yaml", blocked());
    let (out, report) = dir.json(["x.yaml", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
    let around = Dir::with_good();
    around.file("top/x.yaml/inner.yaml", blocked());
    let (out, report) = around.json(["top"]);
    out.exits(1);
    assert!(inputs(&report).is_empty(), "{report:#}");
    fs::create_dir(dir.path().join("void.yaml")).unwrap();
    holds(
        &dir,
        "void.yaml",
        &nothing_by(
            "input-no-manifest",
            &["void.yaml", "no .yaml, .yml or .json file"],
            "name the files",
        ),
    );
}

#[test]
fn fifo_never_hangs() {
    let dir = Dir::with_good();
    fs::create_dir(dir.path().join("d")).unwrap();
    for name in ["pipe.yaml", "d/pipe.yaml"] {
        assert!(
            Command::new("mkfifo")
                .arg(dir.path().join(name))
                .status()
                .unwrap()
                .success()
        );
    }
    holds(
        &dir,
        "pipe.yaml",
        &broken_by(
            "input-not-a-file",
            &["pipe.yaml", "a FIFO, not a file or directory"],
            "check-interconnect env -",
        ),
    );
    holds(
        &dir,
        "d",
        &broken_by(
            "input-not-a-file",
            &["pipe.yaml", "a FIFO, not a file or directory"],
            "check-interconnect env -",
        ),
    );
    holds(
        &dir,
        "/dev/null",
        &broken_by(
            "input-not-a-file",
            &["/dev/null", "a device, not a file or directory"],
            "check-interconnect env -",
        ),
    );
}

#[test]
fn process_substitution() {
    let dir = Dir::with_good();
    dir.file("blocked.yaml", blocked());
    let script = format!("'{PROGRAM}' env <(cat blocked.yaml) good.yaml -o json");
    let out = Run::of(&dir, "bash", ["-c", &script]).go();
    out.exits(1);
    let report = out.json();
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
}

/// Ten megabytes, so that a debug build stays quick; a hundred in release builds, or where
/// `CHECK_INTERCONNECT_LARGE` is set.
fn large() -> usize {
    let all = !cfg!(debug_assertions) || std::env::var_os("CHECK_INTERCONNECT_LARGE").is_some();
    if all { 100_000_000 } else { 10_000_000 }
}

#[test]
fn large_file_of_small_documents() {
    let dir = Dir::with_good();
    let mut file = File::create(dir.path().join("many.yaml")).unwrap();
    let filler = format!(
        "---\nkind: ConfigMap\nmetadata:\n  name: filler\ndata:\n  text: |\n{}",
        "    some text that is no setting at all\n".repeat(250)
    );
    let times = large() / filler.len();
    for at in 0..times {
        if at == times / 2 {
            writeln!(file, "---\n{}", blocked()).unwrap();
        }
        file.write_all(filler.as_bytes()).unwrap();
    }
    drop(file);
    let (out, report) = dir.json(["many.yaml", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
    assert!(
        out.stdout.len() < 100_000,
        "{} bytes of report",
        out.stdout.len()
    );
}

#[test]
fn large_file_of_one_document() {
    let dir = Dir::with_good();
    let mut text = blocked();
    text.push_str("  notes:\n");
    let line = "    - some more text that is no setting at all, again and again\n";
    text.push_str(&line.repeat(large() / line.len()));
    dir.file("one.yaml", text);
    let (out, report) = dir.json(["one.yaml", "good.yaml"]);
    good_is_judged(&report);
    // Either it is judged, or it is said that the document has more nodes than the limit.
    if readiness(&report, "blocked").is_some() {
        out.exits(1);
    } else {
        out.exits(3);
        message(
            &report,
            &broken_by(
                "input-broken-yaml",
                &["one.yaml", "limit"],
                "check that this is a manifest",
            ),
        );
    }

    let long = format!(
        "kind: ConfigMap\nmetadata: {{name: x}}\ndata: {{blob: \"{}\"}}\n---\n{}",
        "x".repeat(large()),
        blocked()
    );
    dir.file("line.yaml", long);
    let (out, report) = dir.json(["line.yaml", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
}

#[test]
fn larger_than_the_limit() {
    let dir = Dir::with_good();
    File::create(dir.path().join("huge.yaml"))
        .unwrap()
        .set_len(300 * 1024 * 1024)
        .unwrap();
    holds(
        &dir,
        "huge.yaml",
        &broken_by(
            "input-too-large",
            &[
                "huge.yaml",
                "larger than 256 MiB",
                "a manifest was expected",
            ],
            "not a data file",
        ),
    );
    let (out, _) = dir.json(["huge.yaml"]);
    assert!(out.took < Duration::from_secs(20), "{out}");
}

#[test]
fn unterminated_quotes() {
    let dir = Dir::with_good();
    for (name, quote) in [("double.yaml", '"'), ("single.yaml", '\'')] {
        dir.file(
            name,
            format!("kind: Pod\nmetadata:\n  name: {quote}oops\nspec: {{}}\n"),
        );
        let at = format!("{name}:3:9");
        holds(
            &dir,
            name,
            &broken_by(
                "input-broken-yaml",
                &[&at, "expected a closing"],
                "close the quote",
            ),
        );
    }
}

/// A recipe called `odd` with this in both main containers.
fn with_env(env: &str) -> String {
    both("odd", env)
}

#[test]
fn env_of_another_type() {
    for env in [
        "env: null\n",
        "env: []\n",
        "env: {}\n",
        "envFrom: [7, {}, null]\n",
    ] {
        judged(with_env(env), "odd", "unproven", 0);
    }
    for (env, got) in [
        ("env: UCX_TLS=tcp\n", "env: got text, expected a list"),
        ("env: 7\n", "env: got a number, expected a list"),
        ("env: true\n", "env: got true or false, expected a list"),
        ("envFrom: 7\n", "envFrom: got a number, expected a list"),
        (
            "env: [1]\n",
            "an item of env: got a number, expected a mapping",
        ),
        (
            "env: [null]\n",
            "an item of env: got nothing, expected a mapping",
        ),
        ("env: [[]]\n", "an item of env: got an empty list"),
        ("env: [{}]\n", "an item of env has no name"),
        (
            "env: [UCX_TLS=tcp]\n",
            "an item of env: got text, expected a mapping",
        ),
        (
            "env: [{Name: UCX_TLS, value: tcp}]\n",
            "an item of env has no name",
        ),
        (
            "env: [{name: X, valueFrom: 5}]\n",
            "valueFrom: got a number, expected a mapping",
        ),
        (
            "envFrom: {a: b}\n",
            "envFrom: got a mapping, expected a list",
        ),
        (
            "volumeMounts: {a: b}\n",
            "volumeMounts: got a mapping, expected a list",
        ),
    ] {
        let report = judged(with_env(env), "odd", "unproven", 3);
        assert!(
            !report.to_string().contains("UCX_TLS=tcp"),
            "{env}: a string is no list of variables: {report:#}"
        );
        wrong_shape(&report, got);
    }
    // What is filled in later is no mistake.
    let report = judged(
        with_env("env: \"{{ .Values.env }}\"\n"),
        "odd",
        "unproven",
        0,
    );
    assert!(report.to_string().contains("filled in by a template"));
}

#[track_caller]
fn wrong_shape(report: &Value, got: &str) {
    assert!(
        inputs(report)
            .iter()
            .any(|r| r["cause"] == "input-wrong-shape" && r["detail"].to_string().contains(got)),
        "{got}: {report:#}"
    );
}

#[test]
fn values_that_are_no_strings() {
    for (value, expected) in [
        ("1", "unproven"),
        ("0x10", "unproven"),
        ("1e3", "unproven"),
        ("-5", "unproven"),
        ("0o17", "unproven"),
        ("true", "blocked"),
        (".inf", "blocked"),
    ] {
        let report = judged(
            with_env(&format!(
                "env:\n  - name: UCX_IB_GID_INDEX\n    value: {value}\n  - name: UCX_TLS\n    value: rc,cuda_copy\n"
            )),
            "odd",
            expected,
            i32::from(expected == "blocked"),
        );
        let want = format!("UCX_IB_GID_INDEX={value}");
        assert!(
            report.to_string().contains(&want),
            "told as it is written, {want}: {report:#}"
        );
    }
    for value in ["null", "~", "", "\"\""] {
        let report = judged(
            with_env(&format!("env:\n  - name: UCX_TLS\n    value: {value}\n")),
            "odd",
            "blocked",
            1,
        );
        assert!(report.to_string().contains("UCX_TLS="), "{report:#}");
    }
    for value in ["[tcp]", "{a: b}"] {
        let report = judged(
            with_env(&format!("env:\n  - name: UCX_TLS\n    value: {value}\n")),
            "odd",
            "unproven",
            3,
        );
        wrong_shape(&report, "the value of an item of env: got a");
    }
}

#[test]
fn entries_without_a_usable_name() {
    for entry in [
        "value: tcp",
        "name: null\n    value: tcp",
        "name: 5\n    value: tcp",
        "name: [UCX_TLS]\n    value: tcp",
        "name: {a: b}\n    value: tcp",
        "name: \"\"\n    value: tcp",
    ] {
        let report = judged(
            with_env(&format!(
                "env:\n  - {entry}\n  - name: UCX_TLS\n    value: rc,cuda_copy\n"
            )),
            "odd",
            "unproven",
            3,
        );
        wrong_shape(&report, "name");
        assert!(
            report.to_string().contains("UCX_TLS=rc,cuda_copy"),
            "the entry behind it is judged: {report:#}"
        );
    }
}

#[test]
fn templates_and_quantities_that_kubernetes_refuses() {
    let deployment = |template: &str| {
        format!("kind: Deployment\nmetadata: {{name: odd}}\nspec: {{template: {template}}}\n")
    };
    for (template, got) in [
        ("5", "template: got a number, expected a mapping"),
        ("null", "template: got nothing, expected a mapping"),
        ("[]", "template: got an empty list, expected a mapping"),
        (
            "{spec: 5}",
            "spec of template: got a number, expected a mapping",
        ),
        (
            "{spec: []}",
            "spec of template: got an empty list, expected a mapping",
        ),
    ] {
        wrong_shape(
            &judged(deployment(template), "odd", "not-applicable", 3),
            got,
        );
    }
    for (quantity, code) in [
        ("1", 0),
        ("\"2\"", 0),
        ("1k", 0),
        ("abc", 3),
        ("one", 3),
        ("1x", 3),
        ("[1]", 3),
    ] {
        let text = with_env(&format!(
            "resources: {{limits: {{nvidia.com/gpu: 1, rdma/ib: {quantity}}}}}\n"
        ));
        let report = judged(text, "odd", "unproven", code);
        if code == 3 {
            wrong_shape(&report, "rdma/ib: got ");
            wrong_shape(&report, "expected a quantity such as 1");
        }
    }
    // A list may hold only objects.
    let list = "kind: List\nitems: [1, null, x, {kind: 5}]\n";
    let dir = Dir::new();
    dir.file("list.yaml", list);
    let (out, report) = dir.json(["list.yaml"]);
    out.exits(3);
    for got in [
        "an item of items: got a number, expected a mapping",
        "an item of items: got nothing, expected a mapping",
        "an item of items: got text, expected a mapping",
        "kind: got a number, expected text",
    ] {
        wrong_shape(&report, got);
    }
}

#[test]
fn containers_that_are_none() {
    let deployment = |containers: &str| {
        format!(
            "kind: Deployment\nmetadata: {{name: odd}}\nspec: {{template: {{spec: {{containers: {containers}}}}}}}\n"
        )
    };
    for (containers, got) in [
        ("null", "containers: got nothing, expected a list"),
        ("[]", "containers: got an empty list, expected a list"),
        (
            "[null]",
            "an item of containers: got nothing, expected a mapping",
        ),
        ("7", "containers: got a number, expected a list"),
        ("text", "containers: got text, expected a list"),
        ("{name: x}", "containers: got a mapping, expected a list"),
        (
            "[null, 7, text, []]",
            "an item of containers: got a number, expected a mapping",
        ),
    ] {
        let report = judged(deployment(containers), "odd", "not-applicable", 3);
        wrong_shape(&report, got);
    }
    let text = aggregated()
        .replace("name: aggregated", "name: odd")
        .replace(
            "      containers:\n",
            "      containers:\n        - null\n        - 7\n",
        );
    wrong_shape(
        &judged(text, "odd", "not-applicable", 3),
        "an item of containers",
    );
    let services = |services: &str| {
        format!(
            "kind: DynamoGraphDeployment\nmetadata: {{name: odd}}\nspec: {{services: {services}}}\n"
        )
    };
    for list in ["null", "[]", "{}", "{a: null}"] {
        judged(services(list), "odd", "not-applicable", 0);
    }
    for (list, got) in [
        ("7", "services: got a number, expected a mapping"),
        ("[null, 7]", "services: got a list, expected a mapping"),
        ("[1, 2]", "services: got a list, expected a mapping"),
        ("{a: null, b: 7}", "b: got a number, expected a mapping"),
        (
            "{a: {resources: [x]}}",
            "resources: got a list, expected a mapping",
        ),
        (
            "{a: {extraPodSpec: {mainContainer: [x]}}}",
            "mainContainer: got a list, expected a mapping",
        ),
    ] {
        wrong_shape(&judged(services(list), "odd", "not-applicable", 3), got);
    }
    for (spec, code) in [("null", 0), ("7", 3), ("[]", 3), ("text", 3)] {
        judged(
            format!("kind: DynamoGraphDeployment\nmetadata: {{name: odd}}\nspec: {spec}\n"),
            "odd",
            "not-applicable",
            code,
        );
    }
    // Kinds of others may mean something else by the same word.
    judged(
        "kind: Shelf\nmetadata: {name: odd}\nspec: {containers: 7}\n",
        "odd",
        "not-applicable",
        0,
    );
}

#[test]
fn odd_metadata() {
    for metadata in [
        "null",
        "7",
        "[]",
        "{name: null}",
        "{name: 7}",
        "{name: [x]}",
        "{labels: 7, annotations: [x]}",
    ] {
        let dir = Dir::with_good();
        dir.file(
            "odd.yaml",
            good().replace(
                "metadata:\n  name: good\n",
                &format!("metadata: {metadata}\n"),
            ),
        );
        let (out, report) = dir.json(["odd.yaml", "good.yaml"]);
        out.exits(0);
        good_is_judged(&report);
        assert_eq!(
            report["deployments"].as_array().unwrap().len(),
            2,
            "{metadata}: {report:#}"
        );
        assert!(
            report["deployments"]
                .as_array()
                .unwrap()
                .iter()
                .all(|d| d["readiness"] == "unproven"),
            "{metadata}: {report:#}"
        );
    }
}

#[test]
fn one_broken_document_among_three() {
    let dir = Dir::with_good();
    dir.file(
        "three.yaml",
        format!(
            "{}---\nkind: Pod\nmetadata: {{name: [x\n---\n{}",
            blocked(),
            aggregated()
        ),
    );
    let (out, report) = dir.json(["three.yaml", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
    assert_eq!(readiness(&report, "aggregated"), Some("not-applicable"));
    let line = blocked().lines().count() + 3;
    let at = format!("three.yaml:{line}:");
    message(
        &report,
        &broken_by(
            "input-broken-yaml",
            &[&at, "expected"],
            "other documents of the file are still judged",
        ),
    );

    dir.file(
        "fine.yaml",
        format!(
            "{}---\nkind: Pod\nmetadata: {{name: [x\n---\n{}",
            good().replace("name: good", "name: other"),
            aggregated()
        ),
    );
    let (out, report) = dir.json(["fine.yaml"]);
    out.exits(3);
    assert_eq!(readiness(&report, "other"), Some("unproven"));
    assert_eq!(report["readiness"], "inconclusive");
}

#[test]
fn documents_that_are_no_manifests() {
    let dir = Dir::with_good();
    for (name, text, got) in [
        ("list.yaml", "- a\n- b\n", "the document is a list"),
        ("scalar.yaml", "hello\n", "the document is a single value"),
    ] {
        dir.file(name, text);
        holds(
            &dir,
            name,
            &nothing_by(
                "input-not-a-manifest",
                &[name, got, "a manifest is a mapping"],
                "give a Kubernetes manifest",
            ),
        );
    }
}

#[test]
fn templates_are_said_to_be_templates() {
    let dir = Dir::with_good();
    dir.file(
        "t.yaml",
        "{{- if .Values.x }}\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n{{- end }}\n",
    );
    holds(
        &dir,
        "t.yaml",
        &Expected {
            cause: "input-template",
            got: &["t.yaml", "a template, not YAML until it is rendered"],
            try_this: "helm template",
            alone: 3,
            beside_good: 0,
        },
    );
    // To YAML, braces are mappings; a manifest that is made of them is not judged as if nothing were there.
    for (name, text) in [
        (
            "value.yaml",
            "kind: Deployment\nspec: {{ .Values.spec }}\nmetadata: {name: a}\n",
        ),
        ("whole.yaml", "{{ x }}\n"),
    ] {
        dir.file(name, text);
        holds(
            &dir,
            name,
            &Expected {
                cause: "input-template",
                got: &[name, "what its braces stand for is not known"],
                try_this: "helm template",
                alone: 3,
                beside_good: 0,
            },
        );
    }
}

#[test]
fn lists() {
    let item = |text: &str| {
        text.lines()
            .map(|l| format!("  {l}\n"))
            .collect::<String>()
            .replacen("  ", "- ", 1)
    };
    let list = format!(
        "kind: List\nitems:\n{}{}",
        item(&blocked()),
        item(&aggregated())
    );
    let report = judged(&list, "blocked", "blocked", 1);
    assert_eq!(readiness(&report, "aggregated"), Some("not-applicable"));
    let nested = format!("kind: List\nitems:\n{}- null\n- 7\n", item(&list));
    let report = judged(nested, "blocked", "blocked", 1);
    assert_eq!(readiness(&report, "aggregated"), Some("not-applicable"));
    // Lists in lists without end are no manifest; nothing breaks.
    judged(
        format!(
            "{}\n---\n{}",
            "{kind: List, items: [".repeat(20) + &"]}".repeat(20),
            blocked()
        ),
        "blocked",
        "blocked",
        1,
    );
}

#[test]
fn json_recipe() {
    let dir = Dir::with_good();
    let json = json_recipe_text("blocked", "tcp");
    dir.file("r.json", &json);
    let (out, report) = dir.json(["r.json", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));

    dir.file("garbage.json", format!("{json} }} trailing"));
    holds(
        &dir,
        "garbage.json",
        &broken_by(
            "input-broken-yaml",
            &["garbage.json:1:", "expected"],
            "correct the line",
        ),
    );
}

/// A recipe as JSON on one line.
fn json_recipe_text(name: &str, tls: &str) -> String {
    let service = |role: &str| {
        serde_json::json!({
            "subComponentType": role,
            "resources": {"limits": {"gpu": "1", "custom": {"rdma/ib": "1"}}},
            "extraPodSpec": {"mainContainer": {
                "image": "example.com/vllm-runtime:1.0.0",
                "command": ["python3", "-m", "dynamo.vllm"],
                "args": ["--disaggregation-mode", role, "--kv-transfer-config", "{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}"],
                "env": [{"name": "UCX_TLS", "value": tls}],
            }},
        })
    };
    serde_json::json!({"kind": "DynamoGraphDeployment", "metadata": {"name": name}, "spec": {"services": {"Prefill": service("prefill"), "Decode": service("decode")}}}).to_string()
}

#[test]
fn ten_thousand_documents() {
    let dir = Dir::with_good();
    let mut text = String::new();
    for at in 0..10_000 {
        text.push_str(&format!("---\nkind: Service\nmetadata:\n  name: s{at}\n"));
    }
    text.push_str("---\n");
    text.push_str(&blocked());
    dir.file("many.yaml", text);
    let (out, report) = dir.json(["many.yaml", "good.yaml"]);
    out.exits(1);
    good_is_judged(&report);
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
    assert!(out.took < Duration::from_secs(20), "{out}");

    // As many recipes: the report stays one.
    let pods: String = (0..10_000)
        .map(|at| {
            format!(
                "---\n{}",
                aggregated().replace("name: aggregated", &format!("name: a{at}"))
            )
        })
        .collect();
    dir.file("pods.yaml", pods);
    let out = dir.run(["env", "pods.yaml", "good.yaml"]);
    out.exits(0)
        .says(&["10000 deployments with nothing disaggregated", "verdict"]);
    assert!(
        out.stdout.lines().count() < 200,
        "{} lines",
        out.stdout.lines().count()
    );
}

#[test]
fn standard_input() {
    let dir = Dir::with_good();
    let out = Run::new(&dir, ["env", "-", "-o", "json"])
        .stdin(blocked())
        .go();
    out.exits(1);
    let report = out.json();
    assert_eq!(readiness(&report, "blocked"), Some("blocked"));
    assert!(report.to_string().contains("\"file\":\"-\""), "{report}");

    let out = Run::new(&dir, ["env", "good.yaml", "-", "-o", "json"])
        .stdin(broken())
        .go();
    out.exits(3);
    good_is_judged(&out.json());
    message(
        &out.json(),
        &broken_by("input-broken-yaml", &["-:", "expected"], "correct the line"),
    );

    Run::new(&dir, ["env", "-"])
        .stdin("")
        .go()
        .exits(4)
        .says(&["no document in it", "give a manifest"]);
    // Nothing behind it at all.
    let closed = Run::of(
        &dir,
        "sh",
        [
            "-c",
            &format!("exec '{PROGRAM}' env - good.yaml -o json <&-"),
        ],
    )
    .go();
    let report = closed.json();
    good_is_judged(&report);
    assert_eq!(inputs(&report).len(), 1, "{closed}");
}

#[test]
fn the_same_file_twice() {
    let dir = Dir::with_good();
    let (once, one) = dir.json(["good.yaml"]);
    once.exits(0);
    for paths in [
        ["good.yaml", "good.yaml"],
        ["good.yaml", "./good.yaml"],
        ["good.yaml", "."],
    ] {
        let (twice, two) = dir.json(paths);
        twice.exits(0);
        good_is_judged(&two);
        assert_eq!(
            one["counts"], two["counts"],
            "a file is judged once, however it is named: {paths:?}"
        );
        assert_eq!(two["deployments"].as_array().unwrap().len(), 1, "{two:#}");
    }
}

#[test]
fn odd_path_names() {
    let dir = Dir::with_good();
    let names: [OsString; 5] = [
        OsString::from("with space.yaml"),
        OsString::from("esc\u{1b}[31m.yaml"),
        OsString::from("new\nline.yaml"),
        OsString::from("-dash.yaml"),
        OsStr::from_bytes(b"caf\xe9.yaml").to_owned(),
    ];
    for name in names {
        dir.file(&name, blocked());
        let mut path = OsString::from("./");
        path.push(&name);
        let (out, report) = dir.json([path.as_os_str(), OsStr::new("good.yaml")]);
        out.exits(1);
        good_is_judged(&report);
        assert_eq!(readiness(&report, "blocked"), Some("blocked"));
        for format in ["text", "short", "json", "jsonl"] {
            let out = Run::new(&dir, ["env", "-o", format]).args([&path]).go();
            out.exits(1);
            assert_harmless(format, &out.stdout);
            assert_harmless(format, &out.stderr);
        }
        let mut gone = path.clone();
        gone.push(".gone");
        let out = Run::new(&dir, ["env"]).args([&gone]).go();
        out.exits(2).says(&["no such file or directory"]);
        assert_harmless("text", &out.stdout);
        fs::remove_file(dir.path().join(&name)).unwrap();
    }
    dir.file("with space.yaml", blocked());
    let out = dir.run(["env", "with space.yaml"]);
    out.exits(1)
        .says(&["check-interconnect env 'with space.yaml'"]);
}

#[test]
fn an_unreadable_role_is_not_taken_for_a_missing_one() {
    // Decode is broken: prefill alone must not pass for the whole.
    let dir = Dir::new();
    dir.file(
        "half.yaml",
        format!(
            "{}---\nkind: Deployment\nmetadata: {{name: [decode\n",
            good()
        ),
    );
    let (out, report) = dir.json(["half.yaml"]);
    out.exits(3);
    assert_eq!(report["readiness"], "inconclusive");
    assert_eq!(report["transfer_validated"], false);
}

#[test]
fn two_roles_in_one_graph_differ() {
    let text = graph(
        "odd",
        &container(
            "prefill",
            "env: [{name: UCX_TLS, value: \"rc,cuda_copy\"}]\n",
        ),
        &container("decode", "env: [{name: UCX_TLS, value: tcp}]\n"),
    );
    let report = judged(text, "odd", "blocked", 1);
    assert!(
        report["checks"].as_array().unwrap().iter().any(
            |c| c["status"] == "fail" && c["subject"]["roles"] == serde_json::json!(["decode"])
        ),
        "{report:#}"
    );
}
