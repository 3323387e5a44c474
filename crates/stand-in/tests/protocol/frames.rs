//! What is on which channel, and in which order.

use serde_json::{Value, json};
use stand_in::{Cluster, Pod, State};
use tokio_tungstenite::tungstenite::Error;

use crate::{all, block_on, channel, open, send};

const CAT: &str = "command=cat&stdin=true&stdout=true&stderr=true";
const BOTH: &str =
    "command=sh&command=-c&command=echo+out;echo+err+%3E%262;exit+4&stdout=true&stderr=true";

#[test]
fn version_5_begins_with_an_empty_message_and_ends_with_a_status_and_a_close_frame() {
    let api = Cluster::new().pod(Pod::plain("p")).start().unwrap();
    block_on(async {
        let (mut socket, answer) = open(&api, "p", "v5.channel.k8s.io", BOTH).await.unwrap();
        assert_eq!(
            answer.headers()["sec-websocket-protocol"],
            "v5.channel.k8s.io"
        );
        let (frames, end) = all(&mut socket).await;
        assert_eq!(frames[0], (1, Vec::new()));
        assert_eq!(
            (channel(&frames, 1).as_str(), channel(&frames, 2).as_str()),
            ("out\n", "err\n")
        );
        let status: Value = serde_json::from_str(&channel(&frames, 3)).unwrap();
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(
            status["details"]["causes"],
            json!([{ "reason": "ExitCode", "message": "4" }])
        );
        assert_eq!(frames.last().unwrap().0, 3);
        assert_eq!(end, "close Some(1000)");
    });
    assert!(api.wait_for(std::time::Duration::from_secs(5), |api| {
        api.execs()[0].ended.is_some()
    }));
    assert!(!api.execs()[0].lost);
}

#[test]
fn version_5_can_close_standard_input_alone() {
    let api = Cluster::new().pod(Pod::plain("p")).start().unwrap();
    block_on(async {
        let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", CAT).await.unwrap();
        send(&mut socket, b"\x00one ").await;
        send(&mut socket, b"\x00two").await;
        send(&mut socket, &[255, 0]).await;
        let (frames, end) = all(&mut socket).await;
        assert_eq!(channel(&frames, 1), "one two");
        assert_eq!(channel(&frames, 3), r#"{"metadata":{},"status":"Success"}"#);
        assert_eq!(end, "close Some(1000)");
    });
    assert_eq!(api.execs()[0].stdin, b"one two");
}

#[test]
fn version_4_has_no_such_close_and_no_empty_message() {
    let api = Cluster::new()
        .only_v4()
        .pod(Pod::plain("p"))
        .start()
        .unwrap();
    block_on(async {
        let (mut socket, answer) = open(&api, "p", "v5.channel.k8s.io, v4.channel.k8s.io", CAT)
            .await
            .unwrap();
        assert_eq!(
            answer.headers()["sec-websocket-protocol"],
            "v4.channel.k8s.io"
        );
        send(&mut socket, b"\x00one").await;
        send(&mut socket, &[255, 0]).await;
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(400), async {
                let (frames, end) = all(&mut socket).await;
                panic!("it ended: {frames:?} {end}");
            })
            .await
            .is_err()
        );
        drop(socket);
    });
    assert!(api.wait_for(std::time::Duration::from_secs(5), |api| {
        api.execs()[0].exit.is_some()
    }));
    let exec = &api.execs()[0];
    assert!(exec.lost && exec.stdin == b"one" && exec.stdout.text() == "one");
}

#[test]
fn version_4_hears_of_the_kubelet_s_errors_before_the_upgrade_and_version_5_after_it() {
    let api = Cluster::new()
        .pod(Pod::plain("p").state(State::ContainerCreating))
        .pod(Pod::plain("bare").no_shell())
        .start()
        .unwrap();
    block_on(async {
        let Err(Error::Http(answer)) = open(&api, "p", "v4.channel.k8s.io", BOTH).await else {
            panic!("an upgrade for a container that does not run");
        };
        assert_eq!(answer.status(), 500);
        assert_eq!(
            answer.body().as_deref(),
            Some(b"container not found (\"main\")".as_slice())
        );
        let text = |frames: &[(u8, Vec<u8>)]| {
            let status: Value = serde_json::from_str(&channel(frames, 3)).unwrap();
            assert_eq!(
                (&status["reason"], &status["code"]),
                (&json!("InternalError"), &json!(500))
            );
            status["message"].as_str().unwrap().to_owned()
        };
        let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", BOTH).await.unwrap();
        let got = text(&all(&mut socket).await.0);
        assert_eq!(
            got,
            "Internal error occurred: unable to upgrade connection: container not found (\"main\")"
        );
        let (mut socket, _) = open(&api, "bare", "v4.channel.k8s.io", BOTH).await.unwrap();
        let got = text(&all(&mut socket).await.0);
        assert!(
            got.starts_with(
                "Internal error occurred: error executing command in container: failed to exec"
            ),
            "{got}"
        );
        let (mut socket, _) = open(&api, "bare", "v5.channel.k8s.io", BOTH).await.unwrap();
        let got = text(&all(&mut socket).await.0);
        assert!(
            got.starts_with("Internal error occurred: Internal error occurred: error executing"),
            "{got}"
        );
    });
}

#[test]
fn only_the_streams_that_were_asked_for_come() {
    let api = Cluster::new().pod(Pod::plain("p")).start().unwrap();
    let query = BOTH.replace("&stderr=true", "");
    block_on(async {
        let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", &query).await.unwrap();
        let (frames, _) = all(&mut socket).await;
        assert_eq!(
            (channel(&frames, 1).as_str(), channel(&frames, 2).as_str()),
            ("out\n", "")
        );
        for (query, says) in [
            (
                "stdout=true",
                "you must specify at least one command for the container",
            ),
            (
                "command=a",
                "you must specify at least 1 of stdin, stdout, stderr",
            ),
            (
                "command=a&stdout=true&container=x",
                "container x is not valid for pod p",
            ),
        ] {
            let Err(Error::Http(answer)) = open(&api, "p", "v5.channel.k8s.io", query).await else {
                panic!("{query}");
            };
            assert_eq!(answer.status(), 400);
            assert!(
                String::from_utf8_lossy(answer.body().as_deref().unwrap()).contains(says),
                "{query}"
            );
        }
    });
}
