//! `check-interconnect.toml`.

use crate::support::{Place, findings, good, of_status, recipe, recipe_on, tcp};

fn with(config: &str) -> Place {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &tcp()));
    place.put("check-interconnect.toml", config);
    place
}

#[test]
fn levels_move_findings_and_tell_why() {
    for (name, level, status, code, note) in [
        (
            "ucx-tls-tcp-only",
            "allow",
            "ok",
            0,
            "allowed by check-interconnect.toml: lab (was fail: ucx-tls-tcp-only)",
        ),
        (
            "env/ucx-tls",
            "warn",
            "warn",
            0,
            "warn by check-interconnect.toml: lab (was fail)",
        ),
        ("env/ucx-tls", "fail", "fail", 1, ""),
    ] {
        let place = with(&format!(
            "[levels]\n\"{name}\" = {{ level = \"{level}\", reason = \"lab\" }}\n"
        ));
        let (report, got) = place.json(&["a.yaml"]);
        let found = report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|c| c["detail"].as_str().unwrap().contains("leaves only TCP"))
            .unwrap()
            .clone();
        assert_eq!(found["status"], status);
        assert!(
            found["note"].as_str().unwrap_or_default().starts_with(note),
            "{found}"
        );
        assert_eq!(got, code);
        let (_, without) = place.json(&["a.yaml", "--no-config"]);
        assert_eq!(without, 1);
    }
}

#[test]
fn a_cause_wins_over_its_check_and_raising_works() {
    let place = with(
        "[levels]\n\"env/ucx-tls\" = { level = \"allow\", reason = \"a\" }\n\"ucx-tls-tcp-only\" = { level = \"warn\", reason = \"b\" }\n\"unused-suppression\" = { level = \"fail\", reason = \"keep it tidy\" }\n",
    );
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "warn"), ["ucx-tls-tcp-only"]);
    assert_eq!(code, 0);
    place.put(
        "a.yaml",
        &format!(
            "# check-interconnect: ignore[env/mnnvl] x\n{}",
            recipe(&good(), &good())
        ),
    );
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "fail"), ["unused-suppression"]);
    assert_eq!(code, 1);
}

#[test]
fn errors_have_a_place_and_exit_with_2() {
    for (text, words) in [
        (
            "[lvels]\n",
            "check-interconnect.toml:1:2: unknown field `lvels`, expected one of",
        ),
        (
            "[levels]\n\"env/ucx-tsl\" = { level = \"warn\", reason = \"x\" }\n",
            "check-interconnect.toml:2:1: no check or cause is called 'env/ucx-tsl'; did you mean env/ucx-tls?",
        ),
        (
            "[levels]\n\"env/ucx-tls\" = { level = \"warn\" }\n",
            "2:17: missing field `reason`",
        ),
        (
            "[levels]\n\"env/ucx-tls\" = { level = \"off\", reason = \"x\" }\n",
            "2:27: got a word that is not known here, expected one of `allow`, `warn`, `fail`",
        ),
        (
            "[fabric]\nexpected = \"ethernet\"\n",
            "2:12: got a word that is not known here, expected one of `infiniband`",
        ),
        ("exclude = [\"[\"]\n", "1:12: not a path pattern"),
    ] {
        let place = with(text);
        let ran = place.run(&["env", "a.yaml"]);
        assert_eq!(ran.code, 2, "{text}");
        assert!(ran.err.contains(words), "{text}: {}", ran.err);
        assert!(ran.out.is_empty());
        assert_eq!(place.run(&["env", "a.yaml", "--no-config"]).code, 1);
    }
    let place = with("");
    let ran = place.run(&["env", "a.yaml", "--config", "none.toml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("none.toml"), "{}", ran.err);
    let ran = place.run(&["env", "a.yaml", "--config", "x", "--no-config"]);
    assert_eq!(ran.code, 2);
    place.put(".check-interconnect.toml", "");
    let ran = place.run(&["env", "a.yaml"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("keep one"), "{}", ran.err);
}

#[test]
fn it_is_looked_for_up_to_the_root_of_the_repository() {
    let allow = "[levels]\n\"env/ucx-tls\" = { level = \"allow\", reason = \"lab\" }\n";
    let place = Place::new();
    place.put("check-interconnect.toml", allow);
    place.put("repo/sub/a.yaml", &recipe(&good(), &tcp()));
    // Outside a repository nothing above this directory is used.
    assert_eq!(place.run_in("repo/sub", &["env", "a.yaml"]).code, 1);
    place.put("repo/.git/HEAD", "");
    assert_eq!(place.run_in("repo/sub", &["env", "a.yaml"]).code, 1);
    place.put("repo/.check-interconnect.toml", allow);
    assert_eq!(place.run_in("repo/sub", &["env", "a.yaml"]).code, 0);
    let ran = place.run_in(
        "repo/sub",
        &["env", "a.yaml", "--config", "../../check-interconnect.toml"],
    );
    assert_eq!(ran.code, 0);
}

#[test]
fn excludes_are_told_and_named_files_are_always_read() {
    let place = Place::new();
    place.put("r/a.yaml", &recipe(&good(), &good()));
    place.put("r/old/b.yaml", &recipe(&good(), &tcp()));
    place.put("check-interconnect.toml", "exclude = [\"**/old\"]\n");
    let (report, code) = place.json(&["r"]);
    assert_eq!(code, 0, "{report}");
    let found = findings(&report);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "policy/exclude");
    assert_eq!(place.json(&["r/old/b.yaml"]).1, 1);
    assert_eq!(place.json(&["r", "--no-config"]).1, 1);
    place.put("check-interconnect.toml", "exclude = [\"r/**\"]\n");
    assert_eq!(place.json(&["r"]).1, 4);
}

#[test]
fn unneeded_levels_are_told_in_full_reports_only() {
    let place =
        with("[levels]\n\"ucx-tls-empty-string\" = { level = \"allow\", reason = \"x\" }\n");
    assert!(
        !place
            .run(&["env", "a.yaml"])
            .out
            .contains("ucx-tls-empty-string")
    );
    let text = place.run(&["env", "a.yaml", "--verbose"]).out;
    assert!(
        text.contains("no finding ucx-tls-empty-string in this run"),
        "{text}"
    );
}

#[test]
fn another_fabric_than_the_declared_one_is_a_warning() {
    for (asked, expected, warned) in [
        ("rdma/ib: \"1\"", "infiniband", false),
        ("rdma/ib: \"1\"", "roce", true),
        ("rdma/roce: \"1\"", "infiniband", true),
        ("rdma/hca_shared_devices_a: \"1\"", "infiniband", false),
        ("rdma/hca_shared_devices_a: \"1\"", "roce", false),
        ("rdma/ib: \"1\"", "efa", true),
        ("vpc.amazonaws.com/efa: \"1\"", "efa", false),
        ("rdma/ib: \"1\"", "mnnvl", true),
        ("rdma/ib: \"1\"", "tcp", true),
    ] {
        let place = Place::new();
        place.put("a.yaml", &recipe_on(asked, &good(), &good()));
        place.put(
            "check-interconnect.toml",
            &format!("[fabric]\nexpected = \"{expected}\"\n"),
        );
        let (report, _) = place.json(&["a.yaml"]);
        let got = of_status(&report, "warn").contains(&"fabric-not-as-expected".to_owned());
        assert_eq!(got, warned, "{asked} {expected}: {report}");
    }
}

#[test]
fn declared_tcp_is_no_finding_but_a_contradiction_stays_one() {
    let place = Place::new();
    place.put("check-interconnect.toml", "[fabric]\nexpected = \"tcp\"\n");
    for env in [String::new(), tcp(), tcp().replace("tcp,", "tcp,cuda_ipc,")] {
        place.put("a.yaml", &recipe_on("", &env, &env));
        let (report, code) = place.json(&["a.yaml"]);
        let left: Vec<String> = of_status(&report, "warn");
        for cause in [
            "rdma-resource-missing",
            "ucx-tls-tcp-only",
            "cuda-ipc-tcp-without-imex",
        ] {
            assert!(!left.contains(&cause.to_owned()), "{env}: {report}");
        }
        assert!(
            findings(&report)
                .iter()
                .any(|(_, s, n)| s == "ok" && n.contains("declares TCP as the fabric (was warn")),
            "{report}"
        );
        assert_eq!(code, 0);
    }
    place.put("a.yaml", &recipe(&good(), &tcp()));
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "fail"), ["ucx-tls-tcp-only"]);
    assert_eq!(code, 1);
}

#[test]
fn the_schema_is_shipped() {
    let place = Place::new();
    let ran = place.run(&["schema", "config"]);
    assert_eq!(ran.code, 0);
    let schema: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(schema["properties"]["levels"].is_object(), "{schema}");
}

#[test]
fn what_a_worker_asks_for_is_held_against_the_provider() {
    for (asked, provider, cause) in [
        ("rdma/ib: \"1\"", "aws", Some("fabric-not-of-provider")),
        ("vpc.amazonaws.com/efa: \"1\"", "aws", None),
        (
            "vpc.amazonaws.com/efa: \"1\"",
            "azure",
            Some("fabric-not-of-provider"),
        ),
        ("rdma/shared_ib: \"1\"", "azure", None),
        (
            "rdma/roce_gdr: \"1\"",
            "azure",
            Some("fabric-not-of-provider"),
        ),
        ("rdma/ib: \"1\"", "gke", Some("fabric-not-of-provider")),
        (
            "networking.gke.io.networks/rdma-0: \"1\"",
            "gke",
            Some("gke-networks-not-attached"),
        ),
        (
            "networking.gke.io.networks/rdma-0: \"1\"",
            "oci",
            Some("fabric-not-of-provider"),
        ),
        ("rdma/ib: \"1\"", "coreweave", None),
        ("rdma/ib: \"1\"", "nebius", None),
        ("rdma/ib: \"1\"", "nscale", None),
        ("rdma/roce: \"1\"", "oci", None),
        ("rdma/roce: \"1\"", "coreweave", None),
    ] {
        let place = Place::new();
        place.put("a.yaml", &recipe_on(asked, &good(), &good()));
        place.put(
            "check-interconnect.toml",
            &format!("[fabric]\nprovider = \"{provider}\"\n"),
        );
        let (report, _) = place.json(&["a.yaml"]);
        let got: Vec<String> = of_status(&report, "warn")
            .into_iter()
            .filter(|c| c.contains("provider") || c.contains("gke"))
            .collect();
        let wanted: Vec<&str> = cause.into_iter().collect();
        let mut unique = got.clone();
        unique.dedup();
        assert_eq!(unique, wanted, "{asked} {provider}: {report}");
    }
    // The fix names what is there.
    let place = Place::new();
    place.put("a.yaml", &recipe_on("", "", ""));
    place.put("check-interconnect.toml", "[fabric]\nprovider = \"aws\"\n");
    let (report, _) = place.json(&["a.yaml"]);
    assert!(
        report
            .to_string()
            .contains("request vpc.amazonaws.com/efa on both roles, with the LIBFABRIC backend"),
        "{report}"
    );
}

#[test]
fn errors_speak_of_the_file_and_not_of_its_values() {
    let place = Place::new();
    place.put("r.yaml", &recipe("", ""));
    for (text, says) in [
        (
            "[levels]\n\"env/ucx-tls\" = \"hunter2\"\n",
            "2:17: got text, expected a table such as {level = \"warn\", reason = \"why\"}",
        ),
        (
            "[levels]\n\"env/ucx-tls\" = {level = \"hunter2\", reason = \"a\"}\n",
            "got a word that is not known here, expected one of `allow`, `warn`, `fail`",
        ),
        ("exclude = 4\n", "got a number, expected a list"),
        (
            "fabric = \"hunter2\"\n",
            "got text, expected a table such as {expected = \"roce\"}",
        ),
        ("[fabric]\nexpected = 5\n", "expected a word in quotes"),
    ] {
        place.put("c.toml", text);
        let out = place.run(&["env", "--config", "c.toml", "r.yaml"]);
        assert_eq!(out.code, 2, "{text}");
        assert!(out.err.contains(says), "{says}: {}", out.err);
        for word in ["hunter2", "struct", "enum"] {
            assert!(!out.err.contains(word), "{text}: {}", out.err);
        }
    }
}

#[test]
fn a_cluster_of_sockets_is_no_gap() {
    let place = Place::new();
    place.put("r.yaml", &recipe_on("nvidia.com/other: \"1\"", "", ""));
    place.put("c.toml", "[fabric]\nexpected = \"tcp\"\n");
    let (report, code) = place.json(&["--config", "c.toml", "r.yaml"]);
    assert_eq!(code, 0, "{report:#}");
    assert!(
        !findings(&report)
            .iter()
            .any(|(_, status, _)| status == "warn"),
        "{report:#}"
    );
}
