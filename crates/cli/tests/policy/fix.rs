//! `--fix` and `--diff`.

use std::fs;

use crate::support::{Place, SECRET, entry, findings, good, of_status, recipe};

/// Runs `--diff`, then `--fix`, then both again; the file must change from `old` to `new`.
fn fixes(old: &str, new: &str) {
    let place = Place::new();
    place.put("a.yaml", old);
    let ran = place.run(&["env", "a.yaml", "--diff"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.starts_with("--- a.yaml\n+++ a.yaml\n@@ -"),
        "{}",
        ran.out
    );
    assert_eq!(place.get("a.yaml"), old, "--diff changes nothing");
    let ran = place.run(&["env", "a.yaml", "--fix"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("fixed a.yaml:"), "{}", ran.out);
    assert_eq!(place.get("a.yaml"), new);
    let (report, code) = place.json(&["a.yaml", "--fix"]);
    assert_eq!(code, 0);
    assert!(findings(&report).is_empty(), "{report}");
    assert_eq!(place.get("a.yaml"), new, "a second time changes nothing");
    let ran = place.run(&["env", "a.yaml", "--diff"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert_eq!(fs::read_dir(place.root.path()).unwrap().count(), 1);
}

/// The same where nothing may be changed.
fn is_left_alone(text: &str) -> String {
    let place = Place::new();
    place.put("a.yaml", text);
    let diff = place.run(&["env", "a.yaml", "--diff"]);
    assert_eq!((diff.code, diff.out.as_str()), (0, ""), "{}", diff.err);
    let ran = place.run(&["env", "a.yaml", "--fix"]);
    assert_eq!(place.get("a.yaml"), text);
    format!("{}{}", diff.err, ran.out)
}

#[test]
fn slips_with_one_right_text() {
    for (wrong, right) in [
        ("\"rc, cuda_copy, cuda_ipc\"", "\"rc,cuda_copy,cuda_ipc\""),
        ("'RC,CUDA_COPY'  # why", "'rc,cuda_copy'  # why"),
        ("rc, cuda_copy, cuda_ipc", "rc,cuda_copy,cuda_ipc"),
        ("'\"rc,cuda_copy\"'", "'rc,cuda_copy'"),
        ("\"\\\"rc,cuda_copy\\\"\"", "\"rc,cuda_copy\""),
    ] {
        fixes(
            &recipe(&entry("UCX_TLS", wrong), &good()),
            &recipe(&entry("UCX_TLS", right), &good()),
        );
    }
    let with = |value: &str| {
        recipe(
            &format!("{}{}", good(), entry("UCX_NET_DEVICES", value)),
            &good(),
        )
    };
    fixes(
        &with("\"mlx5_0:1, mlx5_1:1\""),
        &with("\"mlx5_0:1,mlx5_1:1\""),
    );
    let with = |name: &str| recipe(&format!("{}{}", good(), entry(name, "inf")), &good());
    fixes(&with("UCX_RNDV_TRESH"), &with("UCX_RNDV_THRESH"));
}

#[test]
fn line_ends_comments_and_formatting_stay() {
    let odd = |name: &str, value: &str| {
        format!(
            "{}            -   name:   '{name}'   # a name\n\n                value:    {value} # a value\t\n# odd\n",
            good()
        )
    };
    let old = recipe(&odd("UCX_RNDV_TRESH", "inf"), &good()).replace('\n', "\r\n");
    let new = recipe(&odd("UCX_RNDV_THRESH", "inf"), &good()).replace('\n', "\r\n");
    fixes(&old, &new);
    let flow = |value: &str| format!("            - {{ name: UCX_TLS,value: \"{value}\" }} # x\n");
    fixes(
        &recipe(&flow("rc, cuda_copy"), &good()),
        &recipe(&flow("rc,cuda_copy"), &good()),
    );
    // The last line needs no line break, a byte order mark stays.
    let mut old = format!(
        "\u{feff}{}",
        recipe(&good(), &entry("UCX_TLS", "RC,CUDA_COPY"))
    );
    let mut new = format!(
        "\u{feff}{}",
        recipe(&good(), &entry("UCX_TLS", "rc,cuda_copy"))
    );
    old.pop();
    new.pop();
    fixes(&old, &new);
}

/// For options that nothing reads: no finding is open, only the diff tells.
fn removes(old: &str, new: &str) {
    let place = Place::new();
    place.put("a.yaml", old);
    let ran = place.run(&["env", "a.yaml", "--diff"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("name: NIXL_SKIP_TOPOLOGY_CHECK") || ran.out.contains("FI_EFA_ENABLE_SHM"),
        "{}",
        ran.out
    );
    assert_eq!(place.get("a.yaml"), old);
    let ran = place.run(&["env", "a.yaml", "--fix", "--verbose"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(
        ran.out.contains("which nothing reads, is removed"),
        "{}",
        ran.out
    );
    assert_eq!(place.get("a.yaml"), new);
    let ran = place.run(&["env", "a.yaml", "--diff"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
}

#[test]
fn options_that_nothing_reads_are_removed() {
    let dead = entry("NIXL_SKIP_TOPOLOGY_CHECK", "\"1\"");
    let comment = "            # why the next one is there\n";
    let with = |dead: &str| {
        format!(
            "{}{comment}{dead}{}",
            good(),
            entry("UCX_LOG_LEVEL", "info")
        )
    };
    removes(&recipe(&with(&dead), &good()), &recipe(&with(""), &good()));
    // Both roles, and at the end of the file.
    let at_end = |dead: &str| format!("{}{dead}", good());
    removes(
        &recipe(&at_end(&dead), &at_end(&dead)),
        &recipe(&good(), &good()),
    );
    let flow = "            - {name: NIXL_SKIP_TOPOLOGY_CHECK, value: '1'}\n";
    removes(
        &recipe(&with(flow), &good()).replace('\n', "\r\n"),
        &recipe(&with(""), &good()).replace('\n', "\r\n"),
    );
    // The name that it is mistaken for is set too.
    let both = |dead: &str| {
        format!(
            "{}{}{dead}",
            good(),
            entry("FI_EFA_ENABLE_SHM_TRANSFER", "\"0\"")
        )
    };
    removes(
        &recipe(&both(&entry("FI_EFA_ENABLE_SHM", "\"0\"")), &good()),
        &recipe(&both(""), &good()),
    );
}

#[test]
fn options_that_something_may_read_stay() {
    let dead = entry("NIXL_SKIP_TOPOLOGY_CHECK", "\"1\"");
    let with = |entry: &str| recipe(&format!("{}{entry}", good()), &good());
    for text in [
        // Mistaken for another name; read by launch scripts; read by old releases.
        with(&entry("FI_EFA_ENABLE_SHM", "\"0\"")),
        with(&entry("NIXL_BACKEND", "UCX")),
        with(&entry("NCCL_IB_CUDA_SUPPORT", "\"1\"")),
        // Not in the catalogue.
        with(&entry("TEAM_NIXL_SKIP", "\"1\"")),
        // A comment of its own, a script that uses it, a program that may.
        with(&dead.replacen('\n', " # keep\n", 1)),
        with(&dead).replace("--model, m,", "--model, $(NIXL_SKIP_TOPOLOGY_CHECK),"),
        with(&dead).replace("[python3, -m, dynamo.vllm]", "[/opt/start.sh]"),
    ] {
        let place = Place::new();
        place.put("a.yaml", &text);
        let ran = place.run(&["env", "a.yaml", "--diff"]);
        assert_eq!(ran.out, "", "{text}");
        place.run(&["env", "a.yaml", "--fix"]);
        assert_eq!(place.get("a.yaml"), text);
    }
}

#[test]
fn an_anchored_text_is_changed_once() {
    let old = recipe(
        &entry("UCX_TLS", "&tls \"rc, cuda_copy\""),
        &entry("UCX_TLS", "*tls"),
    );
    fixes(&old, &old.replace("rc, cuda", "rc,cuda"));
}

fn script(line: &str) -> String {
    recipe(&good(), "").replacen(
        "          command: [python3, -m, dynamo.vllm]\n          args: [--model, m, --disaggregation-mode, decode, --kv-transfer-config, '{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}']\n",
        &format!(
            "          command: [bash, -c]\n          args:\n            - |\n              # a script\n              export API_KEY={SECRET} {line}\n              {line}\n              exec python3 -m dynamo.vllm --model m --disaggregation-mode decode --kv-transfer-config '{{\"kv_connector\":\"NixlConnector\",\"kv_role\":\"kv_both\"}}'\n"
        ),
        1,
    )
}

#[test]
fn scripts_where_the_text_is_as_it_reads() {
    let text = script("").replace(
        "              \n",
        "              export UCX_TLS=\"rc, cuda_copy\"\n",
    );
    fixes(&text, &text.replace("rc, cuda", "rc,cuda"));
    let text = script("").replace(
        "              \n",
        "              export UCX_RNDV_TRESH=inf\n",
    );
    fixes(&text, &text.replace("TRESH", "THRESH"));
    // Somebody uses the old name.
    let text = text.replace("--model m", "--model $UCX_RNDV_TRESH");
    let said = is_left_alone(&text);
    assert!(said.contains("a script refers to the old name"), "{said}");
    // A script inside a script, as it reads.
    let text = script("").replace(
        "              \n",
        "              export A='x'; bash -c \"export UCX_TLS='rc, cuda_copy'; python3 -m dynamo.vllm --disaggregation-mode decode --kv-transfer-config.kv_connector NixlConnector --kv-transfer-config.kv_role kv_both\"\n",
    );
    fixes(&text, &text.replace("rc, cuda", "rc,cuda"));
    // Inside a quoted string of YAML a script is not written as it reads.
    let text = recipe(&good(), "").replacen(
        "args: [--model, m, --disaggregation-mode, decode, ",
        "args: [\"export UCX_TLS=\\\"rc, cuda_copy\\\"; exec python3 -m dynamo.vllm --model m --disaggregation-mode decode --kv-transfer-config '{\\\"kv_connector\\\":\\\"NixlConnector\\\",\\\"kv_role\\\":\\\"kv_both\\\"}'\", ",
        1,
    ).replace("          command: [python3, -m, dynamo.vllm]\n          args: [\"", "          command: [bash, -c]\n          args: [\"");
    let said = is_left_alone(&text);
    assert!(said.contains("not written out as it is read"), "{said}");
}

#[test]
fn a_config_map_is_changed_where_its_text_is_the_value() {
    let from = "            - name: UCX_TLS\n              valueFrom: {configMapKeyRef: {name: net, key: tls}}\n";
    let map = |value: &str| {
        format!(
            "{}---\nkind: ConfigMap\nmetadata: {{name: net}}\ndata:\n  tls: \"{value}\"\n  token: {SECRET}\n",
            recipe(from, from)
        )
    };
    fixes(&map("rc, cuda_copy"), &map("rc,cuda_copy"));
}

#[test]
fn what_is_not_certain_is_left_alone() {
    for env in [
        entry("UCX_TLS", "rc,cuda_cpoy"),
        entry("UCX_TLS", "\"rc cuda_copy\""),
        format!(
            "{}{}",
            good(),
            entry("UCX_NET_DEVICES", "\"mlx5_0:1, eth0\"")
        ),
        // Its right name is set as well.
        format!(
            "{}{}{}",
            good(),
            entry("UCX_RNDV_TRESH", "inf"),
            entry("UCX_RNDV_THRESH", "inf")
        ),
        // A made-up name may mean something else.
        format!("{}{}", good(), entry("NIXL_SIDE_CHANNEL_PORT", "\"5600\"")),
    ] {
        is_left_alone(&recipe(&env, &good()));
    }
}

#[test]
fn a_fix_that_brings_up_another_finding_is_not_made() {
    let said = is_left_alone(&recipe(&good(), &entry("UCX_TSL", "tcp,cuda_copy")));
    assert!(
        said.contains("it would bring up ucx-tls-tcp-only, so decide by hand"),
        "{said}"
    );
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let place = Place::new();
    let bad = recipe(&good(), &entry("UCX_TSL", "tcp,cuda_copy"));
    place.put("a.yaml", &bad);
    place.put(
        "b.yaml",
        &recipe(&good(), &entry("UCX_TLS", "\"rc, cuda_copy\"")),
    );
    place.run(&["env", ".", "--fix"]);
    assert_eq!(place.get("a.yaml"), bad);
    assert!(place.get("b.yaml").contains("\"rc,cuda_copy\""));
}

#[test]
fn one_bad_fix_does_not_stop_the_others_of_its_file() {
    let place = Place::new();
    let env = |name: &str| {
        format!(
            "{}{}",
            entry("UCX_TSL", "tcp,cuda_copy"),
            entry(name, "inf")
        )
    };
    place.put("a.yaml", &recipe(&good(), &env("UCX_RNDV_TRESH")));
    let ran = place.run(&["env", "a.yaml", "--fix", "-o", "short"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert_eq!(
        place.get("a.yaml"),
        recipe(&good(), &env("UCX_RNDV_THRESH"))
    );
}

#[test]
fn suppressed_findings_are_not_fixed() {
    let place = Place::new();
    let text = recipe(
        &entry(
            "UCX_TLS",
            "\"rc, cuda_copy\" # check-interconnect: ignore[ucx-tls-spaces-quotes-case] a test of ours",
        ),
        &good(),
    );
    place.put("a.yaml", &text);
    let (report, code) = place.json(&["a.yaml", "--fix"]);
    assert_eq!(code, 0);
    assert_eq!(of_status(&report, "fail").len(), 0);
    assert_eq!(place.get("a.yaml"), text);
}

#[test]
fn a_diff_shows_no_line_in_full_that_may_hold_more() {
    let place = Place::new();
    let flow = format!("            - {{name: UCX_TLS, value: \"rc, cuda_copy\"}} # {SECRET}\n");
    place.put("a.yaml", &recipe(&flow, &flow));
    let ran = place.run(&["env", "a.yaml", "--diff"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.out.contains("the rest of the line is not shown"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.contains("-…rc, cuda_copy\"…\n+…rc,cuda_copy\"…\n"),
        "{}",
        ran.out
    );
    let place = Place::new();
    let map = format!("            UCX_RNDV_TRESH: {SECRET}\n");
    let text = recipe("", "").replace(
        &format!("            - name: HF_TOKEN\n              value: {SECRET}\n"),
        &map,
    );
    place.put("a.yaml", &text);
    place.run(&["env", "a.yaml", "--diff"]);
}

#[test]
fn wrong_uses() {
    let place = Place::new();
    place.put("a.yaml", &recipe(&good(), &good()));
    for args in [
        &["env", "-", "--fix"][..],
        &["env", "a.yaml", "-", "--diff"],
        &["env", "a.yaml", "--diff", "-o", "json"],
        &["env", "a.yaml", "--diff", "--write-baseline", "x.json"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.out.is_empty());
    }
    assert_eq!(place.run(&["env", "none.yaml", "--diff"]).code, 2);
    assert_eq!(place.run(&["env", "a.yaml", "--fix", "--diff"]).code, 0);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.put(
        "real/a.yaml",
        &recipe(&good(), &entry("UCX_TLS", "RC,CUDA_COPY")),
    );
    let real = place.path("real/a.yaml");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("real/a.yaml", place.path("link.yaml")).unwrap();
    place.run(&["env", "link.yaml", "--fix"]);
    assert!(place.get("real/a.yaml").contains("rc,cuda_copy\n"));
    assert!(
        fs::symlink_metadata(place.path("link.yaml"))
            .unwrap()
            .is_symlink()
    );
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
}
