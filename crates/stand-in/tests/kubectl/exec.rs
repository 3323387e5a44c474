//! Commands in containers.

use std::time::Duration;

use stand_in::{Certificate, Cluster, Fault, Pod, PodEvent, State};

use crate::{have_kubectl, kubectl, kubectl_with};

fn cluster() -> Cluster {
    Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("decode-0").environment("WORD", "from the image"))
        .pod(Pod::worker("bare").no_shell())
        .pod(Pod::worker("done").state(State::Completed))
        .pod(Pod::worker("unscheduled").state(State::Unschedulable))
        .pod(Pod::worker("starting").state(State::ContainerCreating))
        .pod(Pod::worker("said").recorded("recorded\n", Duration::from_millis(50)))
}

const EXEC: [&str; 3] = ["exec", "decode-0", "--"];

#[test]
fn output_errors_and_exit_codes_come_through() {
    if !have_kubectl() {
        return;
    }
    for cluster in [cluster(), cluster().tls(Certificate::Good)] {
        let api = cluster.start().unwrap();
        let run = |script: &str| kubectl(&api, &[&EXEC[..], &["sh", "-c", script]].concat());
        let both = run("echo to out; echo to err >&2; echo \"$WORD\"");
        assert_eq!(
            (both.code, both.out.as_str(), both.err.as_str()),
            (Some(0), "to out\nfrom the image\n", "to err\n")
        );
        let seven = run("exit 7");
        assert_eq!(
            (seven.code, seven.err.as_str()),
            (Some(7), "command terminated with exit code 7\n")
        );
        let input = [
            &["exec", "-i", "decode-0", "--"][..],
            &["sh", "-s", "--", "a b"],
        ]
        .concat();
        let piped = kubectl_with(&api, &input, b"echo got \"$1\"\nexit 3\n");
        assert_eq!(
            (piped.code, piped.out.as_str()),
            (Some(3), "got a b\n"),
            "{}",
            piped.err
        );
        let cat = [&["exec", "-i", "decode-0", "--"][..], &["cat"]].concat();
        let text = b"0123456789abcdef".repeat(20_000);
        let echoed = kubectl_with(&api, &cat, &text);
        assert_eq!(echoed.code, Some(0), "{}", echoed.err);
        assert!(echoed.raw == text);

        let execs = api.execs();
        assert_eq!(execs.len(), 4);
        assert!(
            execs
                .iter()
                .all(|e| e.protocol == "v5.channel.k8s.io" && e.container == "main" && !e.lost)
        );
        assert_eq!(execs[2].argv, ["sh", "-s", "--", "a b"]);
        assert!(execs[2].stdin.starts_with(b"echo got") && execs[2].stdin_ended.is_some());
        assert_eq!(execs[1].exit.map(|(code, _)| code), Some(7));
    }
}

#[test]
fn five_megabytes_arrive_whole() {
    if !have_kubectl() {
        return;
    }
    let api = cluster().start().unwrap();
    let got = kubectl(
        &api,
        &[
            "exec",
            "decode-0",
            "--",
            "sh",
            "-c",
            "yes 'some line of text' | head -c 5000000",
        ],
    );
    assert_eq!(got.code, Some(0), "{}", got.err);
    assert_eq!(got.raw.len(), 5_000_000);
    assert!(
        got.out
            .lines()
            .take(200_000)
            .all(|line| line == "some line of text")
    );
    assert_eq!(api.execs()[0].stdout.len(), 5_000_000);
    assert!(
        api.sent()
            .iter()
            .any(|sent| sent.contains(b"some line of text"))
    );
    assert!(
        !api.sent()
            .iter()
            .any(|sent| sent.contains(b"some other text"))
    );
}

#[test]
fn containers_that_cannot_run_anything_say_why() {
    if !have_kubectl() {
        return;
    }
    let api = cluster().start().unwrap();
    for (pod, says) in [
        (
            "bare",
            "OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file not found in $PATH: unknown",
        ),
        (
            "done",
            "error: cannot exec into a container in a completed pod; current phase is Succeeded",
        ),
        (
            "unscheduled",
            "Error from server (BadRequest): pod unscheduled does not have a host assigned",
        ),
        (
            "starting",
            "unable to upgrade connection: container not found (\"main\")",
        ),
        (
            "gone",
            "Error from server (NotFound): pods \"gone\" not found",
        ),
    ] {
        let got = kubectl(&api, &["exec", pod, "--", "sh", "-c", "true"]);
        assert_eq!(got.code, Some(1), "{pod}");
        assert!(got.err.contains(says), "{pod}: {}", got.err);
    }
    let got = kubectl(&api, &["exec", "decode-0", "-c", "x", "--", "true"]);
    assert!(
        got.err
            .contains("container x is not valid for pod decode-0"),
        "{}",
        got.err
    );
    let got = kubectl(&api, &["exec", "decode-0", "--", "no-such-program"]);
    assert!(
        got.err
            .contains("exec: \"no-such-program\": executable file not found"),
        "{}",
        got.err
    );
}

#[test]
fn recorded_output_comes_back_with_and_without_input() {
    if !have_kubectl() {
        return;
    }
    let api = cluster().start().unwrap();
    let got = kubectl(&api, &["exec", "said", "--", "anything"]);
    assert_eq!(
        (got.code, got.out.as_str()),
        (Some(0), "recorded\n"),
        "{}",
        got.err
    );
    let got = kubectl_with(&api, &["exec", "-i", "said", "--", "sh", "-s"], b"a script");
    assert_eq!(
        (got.code, got.out.as_str()),
        (Some(0), "recorded\n"),
        "{}",
        got.err
    );
    let execs = api.execs();
    assert_eq!(execs[1].stdin, b"a script");
    assert!(execs.iter().all(|e| e.pid.is_none()));
}

#[test]
fn streams_end_as_ordered() {
    if !have_kubectl() {
        return;
    }
    let at = |name: &str| Fault::exec().name(name);
    let api = ["reset", "error", "killed"]
        .into_iter()
        .fold(Cluster::new(), |cluster, name| {
            cluster.pod(Pod::worker(name))
        })
        .fault(at("reset").cut_output(5, stand_in::Cut::Reset))
        .fault(at("error").exec_error("the runtime says no"))
        .fault(at("killed").during(Duration::from_millis(300), PodEvent::Deleted))
        .start()
        .unwrap();
    let got = kubectl(
        &api,
        &[
            "exec",
            "reset",
            "--",
            "sh",
            "-c",
            "echo 0123456789; sleep 5",
        ],
    );
    assert_eq!(got.out, "01234");
    assert!(
        got.code == Some(1) && got.err.contains("connection reset by peer"),
        "{}",
        got.err
    );
    let got = kubectl(&api, &["exec", "error", "--", "true"]);
    assert!(
        got.code == Some(1) && got.err.contains("the runtime says no"),
        "{}",
        got.err
    );
    let got = kubectl(&api, &["exec", "killed", "--", "sleep", "30"]);
    assert_eq!(got.code, Some(137), "{}", got.err);
    let got = kubectl(&api, &["exec", "killed", "--", "true"]);
    assert!(got.err.contains("pods \"killed\" not found"), "{}", got.err);
}
