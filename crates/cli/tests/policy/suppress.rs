//! Comments in recipes.

use crate::support::{Place, entry, findings, good, of_status, recipe, recipe_on, tcp};

const ABOVE: &str = "            # check-interconnect: ignore[ucx-tls-tcp-only] lab without RDMA\n";

#[test]
fn the_recipe_of_these_tests_is_clean_without_what_is_put_in() {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &good()));
    let (report, code) = place.json(&["a.yaml"]);
    assert!(findings(&report).is_empty(), "{:?}", findings(&report));
    assert_eq!(code, 0);
    assert!(report["coverage"].get("accepted").is_none());
    place.put("a.yaml", &recipe(&good(), &tcp()));
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "fail"), ["ucx-tls-tcp-only"]);
    assert_eq!(code, 1);
}

#[test]
fn a_suppressed_finding_is_ok_with_a_note_and_is_counted() {
    let behind = entry(
        "UCX_TLS",
        "tcp,cuda_copy # check-interconnect: ignore[env/ucx-tls] lab without RDMA",
    );
    let on_name = tcp().replace(
        "UCX_TLS\n",
        "UCX_TLS # check-interconnect: ignore[env/mnnvl, ucx-tls-tcp-only]: lab without RDMA\n",
    );
    let far = format!("{ABOVE}            # and more words\n{}", tcp());
    let between = tcp().replace(
        "              value",
        "              # check-interconnect: ignore[ucx-tls-tcp-only] lab without RDMA\n              value",
    );
    for (decode, extra) in [
        (format!("{ABOVE}{}", tcp()), 0),
        (behind, 0),
        (on_name, 1),
        (far, 0),
        (between, 0),
    ] {
        let place = Place::new();
        place.put("a.yaml", &recipe(&good(), &decode));
        let (report, code) = place.json(&["a.yaml"]);
        let found = findings(&report);
        let (_, status, note) = found
            .iter()
            .find(|(n, ..)| n == "env/ucx-tls")
            .unwrap_or_else(|| panic!("{decode}: {found:?}"));
        assert_eq!(status, "ok", "{decode}");
        assert!(
            note.starts_with("suppressed: lab without RDMA (was fail: ucx-tls-tcp-only)"),
            "{note}"
        );
        assert_eq!(found.len(), 1 + extra, "{found:?}");
        assert_eq!(code, 0);
        assert_eq!(report["coverage"]["accepted"]["suppressed"], 1);
        let verdict = report["verdict"].as_str().unwrap();
        if extra == 0 {
            assert!(verdict.contains("1 suppressed"), "{verdict}");
            assert!(!verdict.contains("no gap seen"), "{verdict}");
            assert_eq!(report["readiness"], "unproven");
        }
        let text = place.run(&["env", "a.yaml"]).out;
        assert!(text.contains("ok (1 suppressed)"), "{text}");
    }
}

#[test]
fn a_suppression_elsewhere_does_not_count_and_is_reported() {
    let place = Place::new();
    let decode = format!("{ABOVE}\n{}", tcp());
    place.put("a.yaml", &recipe(&good(), &decode));
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "fail"), ["ucx-tls-tcp-only"]);
    assert_eq!(of_status(&report, "warn"), ["unused-suppression"]);
    assert_eq!(code, 1);
    let short = place.run(&["env", "a.yaml", "-o", "short"]).out;
    assert!(short.contains("a.yaml:"), "{short}");
    assert!(short.contains("warn[unused-suppression]"), "{short}");
}

#[test]
fn a_reason_is_required() {
    let place = Place::new();
    let decode = entry(
        "UCX_TLS",
        "tcp,cuda_copy # check-interconnect: ignore[ucx-tls-tcp-only] --",
    );
    place.put("a.yaml", &recipe(&good(), &decode));
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "fail"), ["ucx-tls-tcp-only"]);
    assert_eq!(of_status(&report, "warn"), ["suppression-without-reason"]);
    assert_eq!(code, 1);
}

#[test]
fn names_and_form_are_checked() {
    let place = Place::new();
    place.put(
        "a.yaml",
        &format!(
            "# check-interconnect: ignore[ucx-tls-tcp-onyl] typo\n# check-interconnect: ignore ucx-tls\n# check-interconnect: ignore[input-broken-yaml] no\n# check-interconnect: see the wiki\n{}",
            recipe(&good(), &good())
        ),
    );
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(
        of_status(&report, "warn"),
        [
            "suppression-malformed",
            "suppression-unknown-name",
            "suppression-unknown-name"
        ]
    );
    assert_eq!(code, 0);
    assert_eq!(report["readiness"], "degraded");
    let text = place.run(&["env", "a.yaml", "-o", "short", "--fail-on", "warn"]);
    assert_eq!(text.code, 1);
    assert!(
        text.out.contains("did you mean ucx-tls-tcp-only?"),
        "{}",
        text.out
    );
    assert!(text.out.contains("cannot be accepted away"), "{}", text.out);
    let verdict = report["verdict"].as_str().unwrap();
    assert!(verdict.contains("look first at"), "{verdict}");
    for cause in [
        "suppression-malformed",
        "unused-suppression",
        "fabric-not-as-expected",
        "policy",
        "policy/suppression",
    ] {
        assert_eq!(place.run(&["explain", cause]).code, 0);
    }
}

fn script(body: &str) -> String {
    let env = good();
    recipe(&env, &env).replacen(
        "          command: [python3, -m, dynamo.vllm]\n          args: [--model, m, --disaggregation-mode, decode, --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}']\n",
        &format!(
            "          command: [bash, -c]\n          args:\n            - |\n{body}              exec python3 -m dynamo.vllm --model m --disaggregation-mode decode --kv-transfer-config '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}}'\n"
        ),
        1,
    )
}

#[test]
fn comments_of_a_script_count_where_a_finding_stands() {
    let line = "              export UCX_TLS=tcp,cuda_copy";
    for (body, accepted) in [
        (format!("{line}\n"), false),
        (
            format!("{line}  # check-interconnect: ignore[ucx-tls-tcp-only] lab\n"),
            true,
        ),
        (
            format!("              # check-interconnect: ignore[ucx-tls-tcp-only] lab\n{line}\n"),
            true,
        ),
        (
            format!("              echo '# check-interconnect: ignore[x]'\n{line}\n"),
            false,
        ),
        (
            format!("{line}\n              # check-interconnect: ignore[ucx-tls-tcp-only] lab\n"),
            false,
        ),
    ] {
        let place = Place::new();
        place.put("a.yaml", &script(&body));
        let (report, code) = place.json(&["a.yaml"]);
        assert_eq!(code, i32::from(!accepted), "{body}: {report}");
        // Text that only looks like a suppression is no news.
        assert!(of_status(&report, "warn").is_empty(), "{body}: {report}");
    }
    let place = Place::new();
    place.put(
        "a.yaml",
        &script(&format!(
            "{line}  # check-interconnect: ignore[ucx-tls-tcp-only]\n"
        )),
    );
    let (report, _) = place.json(&["a.yaml"]);
    assert_eq!(of_status(&report, "warn"), ["suppression-without-reason"]);
}

#[test]
fn what_was_not_read_stays_unread() {
    let place = Place::new();
    place.put(
        "a.yaml",
        &format!(
            "{}---\n# check-interconnect: ignore[input-broken-yaml, env/ucx-tls] please\nkind: [\n",
            recipe(&good(), &good())
        ),
    );
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!(code, 3, "{report}");
    assert_eq!(report["readiness"], "inconclusive");
}

#[test]
fn standard_input_and_crlf() {
    let place = Place::new();
    let text = recipe(&good(), &format!("{ABOVE}{}", tcp())).replace('\n', "\r\n");
    place.put("a.yaml", &text);
    let (report, code) = place.json(&["a.yaml"]);
    assert_eq!((code, of_status(&report, "warn").len()), (0, 0), "{report}");
}

#[test]
fn a_finding_without_a_line_is_about_its_workers() {
    let place = Place::new();
    let text = recipe_on("", "", "");
    place.put("a.yaml", &text);
    let cause = "no-fabric-and-no-transport-setting";
    let (report, _) = place.json(&["a.yaml"]);
    assert!(
        of_status(&report, "warn").contains(&cause.to_owned()),
        "{report}"
    );
    place.put(
        "a.yaml",
        &text.replace(
            "    Decode:",
            &format!("    # check-interconnect: ignore[{cause}] set by the image\n    Decode:"),
        ),
    );
    let (report, _) = place.json(&["a.yaml"]);
    assert!(
        !of_status(&report, "warn").contains(&cause.to_owned()),
        "{report}"
    );
    place.put("a.yaml", &text);
    place.put("b.yaml", &text);
    place.run(&["env", "a.yaml", "--write-baseline", "known.json"]);
    assert!(!place.get("known.json").contains("\"file\": \"\""));
    let (report, _) = place.json(&["b.yaml", "--baseline", "known.json"]);
    assert!(
        of_status(&report, "warn").contains(&cause.to_owned()),
        "{report}"
    );
}
