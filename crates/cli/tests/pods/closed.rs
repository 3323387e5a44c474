//! A cluster that does not let one in: exit code 5 and why, in every format; and pods that are not there: 4.

use std::time::{Duration, Instant};

use stand_in::{Certificate, Fault, Login, Pod};

use crate::support::{program, run_with, serving, ways};

#[test]
fn every_closed_door_is_named_with_what_to_do() {
    let plain = || serving().pod(Pod::worker("decode-0")).start().unwrap();
    let tls = || {
        serving()
            .pod(Pod::worker("decode-0"))
            .tls(Certificate::Good)
            .start()
            .unwrap()
    };
    let cases = [
        (plain(), Login::UnknownContext, "context-unknown"),
        (plain(), Login::NobodyThere, "api-server-unreachable"),
        (
            tls(),
            Login::UnknownAuthority,
            "api-server-certificate-unknown",
        ),
        (tls(), Login::ExpiredToken, "api-server-unauthorized"),
        (tls(), Login::PluginFails, "credential-plugin-failed"),
    ];
    for (api, login, cause) in cases {
        let kubeconfig = api.kubeconfig_with(&login).unwrap();
        for way in ways() {
            let formats = ["json", "jsonl", "short", "text"];
            let commands = [["node", "--all"], ["check", "graph"]];
            for (format, command) in formats
                .iter()
                .flat_map(|format| commands.iter().map(move |command| (*format, command)))
            {
                let mut words = command.to_vec();
                words.extend(["-n", "serving", "-o", format]);
                words.extend(&way);
                let run = run_with(&kubeconfig, &words);
                assert_eq!(run.code, 5, "{login:?} {words:?}: {}{}", run.out, run.err);
                if format != "short" {
                    assert!(run.out.contains(cause), "{login:?} {words:?}: {}", run.out);
                }
                if format == "json" {
                    let report = run.json();
                    let fix = report["checks"][0]["fix"].as_str().unwrap_or_default();
                    assert!(fix.len() > 10, "{report}");
                    assert_eq!(report["readiness"], "inconclusive");
                }
            }
        }
    }
}

#[test]
fn no_kubeconfig_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    for way in ways() {
        let mut words = vec!["node", "-n", "serving", "--all", "-o", "json"];
        words.extend(&way);
        let run = run_with(&dir.path().join("none"), &words);
        assert_eq!(run.code, 5, "{way:?} {}{}", run.out, run.err);
        assert!(
            run.out.contains("kubeconfig-missing"),
            "{way:?} {}",
            run.out
        );
    }
}

#[test]
fn lists_that_are_refused_have_their_causes() {
    let cases = [
        (401, "api-server-unauthorized", 5),
        (403, "pods-forbidden", 5),
        (404, "api-not-found", 4),
        (500, "api-server-error", 5),
        (429, "api-too-many-requests", 5),
    ];
    for (status, cause, code) in cases {
        let api = serving()
            .pod(Pod::worker("decode-0"))
            .fault(Fault::on("list", "pods").status(status))
            .start()
            .unwrap();
        for way in ways() {
            let mut words = vec!["node", "-n", "serving", "--all", "-o", "json"];
            words.extend(&way);
            words.extend(["--request-timeout", "20s"]);
            let run = run_with(api.kubeconfig(), &words);
            assert!(run.out.contains(cause), "{status} {way:?}: {}", run.out);
            assert_eq!(run.code, code, "{status} {way:?}: {}", run.out);
        }
    }
}

#[test]
fn a_server_that_hangs_or_is_slow_costs_no_more_than_was_allowed() {
    let api = serving()
        .pod(Pod::worker("decode-0"))
        .fault(Fault::on("list", "pods").hang())
        .start()
        .unwrap();
    for way in ways() {
        let begin = Instant::now();
        let mut words = vec![
            "node",
            "-n",
            "serving",
            "--all",
            "-o",
            "json",
            "--request-timeout",
            "1s",
        ];
        words.extend(&way);
        let run = run_with(api.kubeconfig(), &words);
        assert!(run.out.contains("probe-timed-out"), "{way:?} {}", run.out);
        assert_eq!(run.code, 5, "{way:?}");
        assert!(begin.elapsed() < Duration::from_secs(20), "{way:?}");
    }
    api.clear_faults();
    api.fault(Fault::on("list", "pods").slow(Duration::from_secs(2)));
    let run = run_with(
        api.kubeconfig(),
        &["node", "-n", "serving", "-l", "nothing=here", "-o", "json"],
    );
    assert_eq!(run.code, 4, "{}", run.out);
}

#[test]
fn nothing_to_look_at_is_exit_code_four_and_never_green() {
    let api = serving().pod(Pod::worker("decode-0")).start().unwrap();
    for way in ways() {
        for (words, cause) in [
            (vec!["--pod", "decode-7"], "pod-missing"),
            (vec!["-l", "tier=none"], "no-pod-matches"),
        ] {
            let mut all = vec!["node", "-n", "serving", "-o", "json"];
            all.extend(&words);
            all.extend(&way);
            let run = run_with(api.kubeconfig(), &all);
            assert_eq!(run.code, 4, "{all:?} {}", run.out);
            assert!(run.out.contains(cause), "{all:?} {}", run.out);
            assert_eq!(run.json()["readiness"], "inconclusive");
        }
    }
}

#[test]
fn of_several_kubeconfigs_those_that_are_there_count() {
    let api = serving().pod(Pod::worker("decode-0")).start().unwrap();
    let both = std::env::join_paths([
        api.directory().join("none").as_path(),
        api.kubeconfig(),
        api.directory().join("neither").as_path(),
    ])
    .unwrap();
    for way in ways() {
        let mut words = vec!["node", "-l", "tier=none", "-o", "json"];
        words.extend(&way);
        let output = program(api.kubeconfig())
            .env("KUBECONFIG", &both)
            .args(&words)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{way:?} {output:?}");
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_for_this_machine() {
    let api = serving().pod(Pod::worker("decode-0")).start().unwrap();
    for way in ways() {
        let mut words = vec!["node", "-l", "tier=none", "-o", "json"];
        words.extend(&way);
        let output = program(api.kubeconfig())
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
            .env("HTTP_PROXY", "http://127.0.0.1:1")
            .args(&words)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{way:?} {output:?}");
    }
}
