//! `--baseline` and `--write-baseline`.

use crate::support::{Place, entry, findings, good, of_status, recipe, tcp};

#[test]
fn what_is_known_counts_as_ok_until_it_changes() {
    let place = Place::new();
    place.put("r/a.yaml", &recipe(&good(), &tcp()));
    let ran = place.run(&[
        "env",
        "r",
        "--write-baseline",
        "known.json",
        "--fail-on",
        "warn",
    ]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 known"), "{}", ran.out);
    let written = place.get("known.json");
    let value: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["schema"], "check-interconnect/baseline-v1");
    assert_eq!(value["findings"].as_array().unwrap().len(), 1);
    assert_eq!(value["findings"][0]["file"], "r/a.yaml");
    assert_eq!(value["findings"][0]["cause"], "ucx-tls-tcp-only");
    assert!(!written.contains(crate::support::SECRET));
    assert!(!written.contains(place.root.path().to_str().unwrap()));

    let (report, code) = place.json(&["r", "--baseline", "known.json"]);
    assert_eq!(code, 0);
    assert_eq!(report["coverage"]["accepted"]["known"], 1);
    assert!(
        findings(&report)[0]
            .2
            .starts_with("known: in the baseline (was fail: ucx-tls-tcp-only)")
    );

    // From elsewhere, by another way of writing the path, and with lines moved.
    let ran = place.run_in("r", &["env", "./a.yaml", "--baseline", "../known.json"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    place.put(
        "r/a.yaml",
        &format!("# a new line\n\n{}", recipe(&good(), &tcp())),
    );
    assert_eq!(place.json(&["r", "--baseline", "known.json"]).1, 0);
    assert_eq!(
        place.get("known.json"),
        {
            place.run(&["env", "r", "--write-baseline", "known.json"]);
            place.get("known.json")
        },
        "nothing but lines moved"
    );

    // Another value, another worker and another file are new.
    place.put(
        "r/a.yaml",
        &recipe(&good(), &entry("UCX_TLS", "tcp,cuda_copy,sm")),
    );
    let (report, code) = place.json(&["r", "--baseline", "known.json"]);
    assert_eq!(code, 1);
    assert_eq!(of_status(&report, "fail"), ["ucx-tls-tcp-only"]);
    assert_eq!(of_status(&report, "ok"), ["policy/baseline"]);
    place.put("r/a.yaml", &recipe(&tcp(), &good()));
    assert_eq!(place.json(&["r", "--baseline", "known.json"]).1, 1);
    place.put("r/a.yaml", &recipe(&good(), &tcp()));
    place.put("r/b.yaml", &recipe(&good(), &tcp()));
    assert_eq!(place.json(&["r", "--baseline", "known.json"]).1, 1);
}

#[test]
fn what_is_fixed_is_told() {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &tcp()));
    place.put("b.yaml", &recipe(&good(), &tcp()));
    place.run(&["env", "a.yaml", "b.yaml", "--write-baseline", "known.json"]);
    place.put("a.yaml", &recipe(&good(), &good()));
    let (report, code) = place.json(&["a.yaml", "--baseline", "known.json"]);
    assert_eq!(code, 0);
    let found = findings(&report);
    // The other file was not looked at, so nothing is said of it.
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].0.as_str(), found[0].1.as_str()),
        ("policy/baseline", "ok")
    );
    assert!(found[0].2.contains("fixed; remove from the baseline"));
    std::fs::remove_file(place.path("b.yaml")).unwrap();
    let (report, _) = place.json(&["a.yaml", "--baseline", "known.json"]);
    assert_eq!(findings(&report).len(), 2);
    // A file that cannot be read proves nothing.
    place.put("a.yaml", "kind: [\n");
    let (report, code) = place.json(&["a.yaml", "--baseline", "known.json"]);
    assert_eq!(code, 3);
    let text = report.to_string();
    assert!(!text.contains("no longer occurs in a.yaml"), "{text}");
}

#[test]
fn a_baseline_that_cannot_be_used_is_an_error() {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &tcp()));
    place.put("broken.json", "{");
    place.put(
        "other.json",
        "{\"schema\": \"check-interconnect/baseline-v9\", \"x\": []}",
    );
    place.put(
        "extra.json",
        "{\"schema\": \"check-interconnect/baseline-v1\", \"findings\": [], \"x\": 1}",
    );
    for (file, words) in [
        ("none.json", "cannot read the baseline none.json"),
        (".", "it is no file"),
        ("broken.json", "broken.json: not a baseline"),
        ("other.json", "expected 'check-interconnect/baseline-v1'"),
        ("extra.json", "unknown field `x`"),
    ] {
        let ran = place.run(&["env", "a.yaml", "--baseline", file]);
        assert_eq!(ran.code, 2, "{file}");
        assert!(ran.err.contains(words), "{file}: {}", ran.err);
        assert!(ran.out.is_empty());
    }
    let ran = place.run(&["env", "a.yaml", "--baseline", "a", "--write-baseline", "b"]);
    assert_eq!(ran.code, 2);
    let ran = place.run(&[
        "env",
        "a.yaml",
        "--write-baseline",
        "no/such/directory.json",
    ]);
    assert_eq!(ran.code, 2);
}

#[test]
fn the_nearest_decision_wins() {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &tcp()));
    place.put(
        "check-interconnect.toml",
        "[levels]\n\"env/ucx-tls\" = { level = \"fail\", reason = \"x\" }\n",
    );
    place.run(&["env", "a.yaml", "--write-baseline", "known.json"]);
    let (report, code) = place.json(&["a.yaml", "--baseline", "known.json"]);
    assert_eq!(code, 0, "the baseline wins over a level");
    assert!(findings(&report)[0].2.starts_with("known"));
    let comment = "            # check-interconnect: ignore[ucx-tls-tcp-only] lab\n";
    place.put("a.yaml", &recipe(&good(), &format!("{comment}{}", tcp())));
    let (report, _) = place.json(&["a.yaml", "--baseline", "known.json"]);
    let found = findings(&report);
    assert!(found[0].2.starts_with("suppressed: lab"), "{found:?}");
    assert_eq!(found.len(), 1, "still there, so not fixed: {found:?}");
    // Neither what is suppressed nor what is allowed goes into a new baseline.
    place.run(&["env", "a.yaml", "--write-baseline", "known.json"]);
    assert!(place.get("known.json").contains("\"findings\": []"));
    place.put("a.yaml", &recipe(&good(), &tcp()));
    place.put(
        "check-interconnect.toml",
        "[levels]\n\"env/ucx-tls\" = { level = \"allow\", reason = \"x\" }\n",
    );
    place.run(&["env", "a.yaml", "--write-baseline", "known.json"]);
    assert!(place.get("known.json").contains("\"findings\": []"));
}

#[test]
fn broken_inputs_and_missing_paths_are_never_known() {
    let place = Place::new();
    place.put(
        "a.yaml",
        &format!("{}---\nkind: [\n", recipe(&good(), &good())),
    );
    let ran = place.run(&["env", "a.yaml", "--write-baseline", "known.json"]);
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert_eq!(place.json(&["a.yaml", "--baseline", "known.json"]).1, 3);
    let ran = place.run(&[
        "env",
        "a.yaml",
        "none.yaml",
        "--write-baseline",
        "known.json",
    ]);
    assert_eq!(ran.code, 2);
}

#[test]
fn the_baseline_itself_is_no_recipe() {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &tcp()));
    place.run(&["env", ".", "--write-baseline", "known.json"]);
    let (report, code) = place.json(&[".", "--baseline", "known.json"]);
    assert_eq!(code, 0);
    assert_eq!(report["coverage"]["inputs_read"], 1);
}
