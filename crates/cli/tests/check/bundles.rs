//! What is saved gives the same output, byte for byte.

use std::path::Path;

use crate::deployment::{member, well};
use crate::support::{run, run_with, serving, tree_of};

const FORMATS: [&str; 5] = ["text", "short", "json", "jsonl", "prometheus"];

#[test]
fn a_bundle_gives_the_same_output_in_every_format() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("llama.tar.gz");
    let bundle = bundle.to_str().unwrap();
    let well = well();
    let api = &well.api;
    for format in FORMATS {
        let live = run(
            api,
            &[
                "check", "llama", "-n", "serving", "-o", format, "--bundle", bundle,
            ],
        );
        let again = run_with(Path::new("/nonexistent"), &["replay", bundle, "-o", format]);
        assert_eq!(live.out, again.out, "{format}: {}", again.err);
        assert_eq!(live.code, again.code);
    }
}

#[test]
fn what_could_not_be_seen_travels_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("b.tar.gz");
    let bundle = bundle.to_str().unwrap();
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .pod(member("decode-1", &decode.root()).no_shell())
        .pod(member("decode-2", &decode.root()).state(stand_in::State::Unschedulable))
        .start()
        .unwrap();
    for format in FORMATS {
        let live = run(
            &api,
            &["check", "-n", "serving", "-o", format, "--bundle", bundle],
        );
        let again = run_with(Path::new("/nonexistent"), &["replay", bundle, "-o", format]);
        assert_eq!(live.out, again.out, "{format}: {}", again.err);
        assert_eq!(live.code, again.code);
    }
}

#[test]
fn secrets_are_in_no_bundle() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("llama.tar.gz");
    let well = well();
    let api = &well.api;
    let done = run(
        api,
        &[
            "check",
            "llama",
            "-n",
            "serving",
            "--bundle",
            bundle.to_str().unwrap(),
        ],
    );
    assert!(!done.out.contains("hunter2"));
    let unpacked = std::process::Command::new("tar")
        .args(["-xzOf", bundle.to_str().unwrap()])
        .output()
        .unwrap();
    let text = String::from_utf8(unpacked.stdout).unwrap();
    assert!(text.contains("rc,cuda_copy"), "{}", text.len());
    assert!(!text.contains("hunter2"));
}

#[test]
fn what_changed_between_two_bundles_is_told_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .start()
        .unwrap();
    let save = |name: &str| {
        run(&api, &["check", "-n", "serving", "--bundle", &path(name)]);
    };
    save("before");
    decode.file(
        "/proc/42/environ",
        "UCX_TLS=tcp,cuda_copy\0HF_TOKEN=hunter2\0",
    );
    save("after");
    let nowhere = Path::new("/nonexistent");
    let same = run_with(
        nowhere,
        &["replay", &path("before"), "--against", &path("before")],
    );
    assert!(same.out.starts_with("nothing changed"), "{}", same.out);
    let words = ["replay", &path("after"), "--against", &path("before")];
    let changed = run_with(nowhere, &words);
    assert_eq!(changed.code, 1, "{}", changed.err);
    assert!(
        changed.out.contains("[ucx-tls-tcp-only]"),
        "{}",
        changed.out
    );
    assert!(!changed.out.contains("pair/fabric"), "{}", changed.out);
    let mut words = words.to_vec();
    words.extend(["-o", "json"]);
    let json = run_with(nowhere, &words).json();
    assert!(
        json["changes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|change| { change["after"]["cause"] == "ucx-tls-tcp-only" }),
        "{json:#}"
    );
}

/// Which workers stand together in one result, and what each start numbers anew, is no change.
#[test]
fn a_worker_that_is_gone_and_engines_that_were_started_again_are_told_as_that() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let save = |names: &[&str], to: &str| {
        let mut cluster = serving();
        for name in names {
            let tree = if name.starts_with('p') {
                &prefill
            } else {
                &decode
            };
            cluster = cluster.pod(member(name, &tree.root()));
        }
        let api = cluster.start().unwrap();
        let words = ["collect", "-o", to, "llama", "-n", "serving"];
        assert_eq!(run(&api, &words).code, 0);
    };
    let all = ["prefill-0", "decode-0", "decode-1", "decode-2"];
    save(&all, &path("all"));
    save(&all[..3], &path("fewer"));
    for tree in [&prefill, &decode] {
        let process = tree.root().join("proc/42");
        std::fs::rename(process, tree.root().join("proc/77")).unwrap();
    }
    save(&all, &path("restarted"));

    let changes = |after: &str, before: &str| {
        let words = [
            "replay",
            &path(after),
            "--against",
            &path(before),
            "-o",
            "json",
        ];
        let told = run_with(Path::new("/nonexistent"), &words).json();
        told["changes"].as_array().unwrap().clone()
    };
    assert_eq!(changes("restarted", "all"), [serde_json::Value::Null; 0]);
    for (after, before, gone, side) in [
        ("fewer", "all", "after", "before"),
        ("all", "fewer", "before", "after"),
    ] {
        let told = changes(after, before);
        assert!(told.len() < 5, "{told:#?}");
        let of_it: Vec<_> = told
            .iter()
            .filter(|change| change["about"] == "decode-2")
            .collect();
        assert_eq!(of_it.len(), 1, "{told:#?}");
        assert_eq!(of_it[0]["name"], "pod/choice");
        assert!(of_it[0][gone].is_null() && !of_it[0][side].is_null());
    }
}

/// Writes the bundle that `crates/bundle/tests/data` keeps of a version: `EXAMPLE=FILE cargo test`.
#[test]
fn an_example_is_small() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("example.tar.gz");
    let (prefill, decode) = (tree_of("prefill"), tree_of("decode"));
    let api = serving()
        .pod(member("prefill-0", &prefill.root()))
        .pod(member("decode-0", &decode.root()))
        .pod(member("decode-1", &decode.root()).no_shell())
        .start()
        .unwrap();
    let done = run(
        &api,
        &["collect", "-o", path.to_str().unwrap(), "-n", "serving"],
    );
    assert_eq!(done.code, 3, "{}{}", done.out, done.err);
    let size = std::fs::metadata(&path).unwrap().len();
    assert!(size < 64 * 1024, "{size}");
    if let Some(to) = std::env::var_os("EXAMPLE") {
        std::fs::copy(&path, to).unwrap();
    }
}
