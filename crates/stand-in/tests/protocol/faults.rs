//! Faults, as a client sees them byte by byte.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use stand_in::{Cluster, Cut, Fault, Pod, PodEvent, Refusal, StandIn};

use crate::{all, block_on, channel, open};

const ECHO: &str = "command=echo&command=0123456789&stdout=true";
const LIST: &str = "/api/v1/namespaces/default/pods";

fn start(faults: &[Fault]) -> StandIn {
    let cluster = Cluster::new().pod(Pod::plain("p")).pod(Pod::plain("q"));
    faults
        .iter()
        .cloned()
        .fold(cluster, Cluster::fault)
        .start()
        .unwrap()
}

/// Sends a GET and reads until the end, or for a second.
fn get(api: &StandIn, path: &str) -> (Vec<u8>, Option<ErrorKind>) {
    let mut tcp = TcpStream::connect(api.url().strip_prefix("http://").unwrap()).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    write!(
        tcp,
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut got = Vec::new();
    let end = tcp.read_to_end(&mut got).err().map(|error| error.kind());
    (got, end)
}

fn text(api: &StandIn, path: &str) -> String {
    String::from_utf8(get(api, path).0).unwrap()
}

#[test]
fn statuses_come_with_the_words_of_a_real_server_and_stop_when_ordered() {
    for (code, says) in [
        (
            401,
            r#""message":"Unauthorized","metadata":{},"reason":"Unauthorized","status":"Failure""#,
        ),
        (
            403,
            r#"cannot list resource \"pods\" in API group \"\" in the namespace \"default\""#,
        ),
        (404, "the server could not find the requested resource"),
        (409, "the object has been modified"),
        (410, "The provided continue parameter is too old"),
        (429, "Too many requests, please try again later."),
        (500, "etcdserver: request timed out"),
        (503, "the server is currently unable to handle the request"),
        (504, "Timeout: request did not complete"),
    ] {
        let api = start(&[Fault::on("list", "pods").first(1).status(code)]);
        let got = text(&api, LIST);
        assert!(
            got.starts_with(&format!("HTTP/1.1 {code} ")) && got.contains(says),
            "{got}"
        );
        assert_eq!(got.contains("retry-after: 1\r\n"), code == 429);
        assert!(text(&api, LIST).starts_with("HTTP/1.1 200"), "{code}");
    }
    let api = start(&[
        Fault::on("get", "pods")
            .name("p")
            .after(1)
            .status_retry_after(503, 7),
        Fault::on("get", "pods")
            .name("q")
            .refuse(Refusal::text(502, "Bad Gateway\n")),
    ]);
    let p = format!("{LIST}/p");
    assert!(text(&api, &p).starts_with("HTTP/1.1 200"));
    assert!(text(&api, &p).contains("retry-after: 7\r\n"));
    assert!(text(&api, &format!("{LIST}/q")).contains("Bad Gateway"));
}

#[test]
fn answers_can_be_slow_or_missing_or_cut_or_no_http_at_all() {
    let api = start(&[Fault::everywhere().slow(Duration::from_millis(300))]);
    let began = Instant::now();
    assert!(text(&api, "/version").contains("gitVersion"));
    assert!(began.elapsed() >= Duration::from_millis(300));
    api.clear_faults();

    api.fault(Fault::on("list", "pods").first(1).hang());
    assert_eq!(get(&api, LIST), (Vec::new(), Some(ErrorKind::WouldBlock)));
    assert!(api.requests().last().unwrap().status.is_none());

    api.fault(Fault::on("list", "pods").first(1).reset_after(100));
    let (got, end) = get(&api, LIST);
    assert_eq!((got.len(), end), (100, Some(ErrorKind::ConnectionReset)));
    assert_eq!(api.sent().last().unwrap().bytes, got);

    api.fault(Fault::on("list", "pods").first(1).half_close_after(200));
    let (got, end) = get(&api, LIST);
    assert_eq!((got.len(), end), (200, None));

    api.fault(Fault::on("list", "pods").first(1).stall_after(300));
    let (got, end) = get(&api, LIST);
    assert_eq!((got.len(), end), (300, Some(ErrorKind::WouldBlock)));

    api.fault(
        Fault::on("list", "pods")
            .first(1)
            .garbage(&b"\x00\xffSSH-2.0-x\r\n"[..]),
    );
    assert_eq!(get(&api, LIST).0, b"\x00\xffSSH-2.0-x\r\n");
    assert!(text(&api, LIST).starts_with("HTTP/1.1 200"));
}

#[test]
fn sessions_are_cut_where_ordered() {
    for (cut, end) in [
        (Cut::Reset, "Connection reset"),
        (Cut::HalfClose, "without closing handshake"),
    ] {
        let api = start(&[Fault::exec().cut_output(4, cut)]);
        block_on(async {
            let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", ECHO).await.unwrap();
            let (frames, how) = all(&mut socket).await;
            assert_eq!(channel(&frames, 1), "0123");
            assert_eq!(channel(&frames, 3), "");
            assert!(how.contains(end), "{cut:?}: {how}");
        });
    }
    let api = start(&[Fault::exec().cut_output(4, Cut::Stall)]);
    block_on(async {
        let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", ECHO).await.unwrap();
        let got = tokio::time::timeout(Duration::from_millis(500), all(&mut socket)).await;
        assert!(got.is_err(), "nothing is closed");
    });
}

#[test]
fn sessions_can_end_without_a_status_or_with_another_close_frame() {
    let api = start(&[
        Fault::exec().name("p").no_status(),
        Fault::exec().name("q").close_frame(1011, "gone"),
    ]);
    block_on(async {
        for (pod, want) in [("p", "close Some(1000)"), ("q", "close Some(1011)")] {
            let (mut socket, _) = open(&api, pod, "v4.channel.k8s.io", ECHO).await.unwrap();
            let (frames, end) = all(&mut socket).await;
            assert_eq!(
                (channel(&frames, 1).as_str(), channel(&frames, 3).as_str()),
                ("0123456789\n", "")
            );
            assert_eq!(end, want);
        }
    });
}

#[test]
fn output_can_be_endless_and_the_subprotocol_another_one() {
    let api = start(&[
        Fault::exec().name("p").flood(),
        Fault::exec().name("q").first(1).subprotocol(None),
        Fault::exec()
            .name("q")
            .subprotocol(Some("v1.channel.k8s.io")),
    ]);
    block_on(async {
        let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", ECHO).await.unwrap();
        let mut bytes = 0;
        while bytes < 20_000_000 {
            bytes += futures_util::StreamExt::next(&mut socket)
                .await
                .unwrap()
                .unwrap()
                .len();
        }
        drop(socket);
        for _ in 0..2 {
            assert!(
                open(&api, "q", "v5.channel.k8s.io", ECHO).await.is_err(),
                "a client that looks refuses it"
            );
        }
    });
    assert!(api.wait_for(Duration::from_secs(5), |api| api.execs()[0].ended.is_some()));
    assert!(
        api.sent().iter().any(|sent| sent.dropped > 0),
        "not all of a flood is kept"
    );
}

#[test]
fn pods_go_while_a_command_runs() {
    let sleep = "command=sleep&command=30&stdout=true";
    for (event, status, there) in [
        (PodEvent::Deleted, "137", false),
        (PodEvent::DeletedAndReset, "", false),
        (PodEvent::Restarted, "137", true),
        (PodEvent::Replaced, "137", true),
    ] {
        let api = start(&[Fault::exec()
            .name("p")
            .during(Duration::from_millis(100), event)]);
        let before = text(&api, &format!("{LIST}/p"));
        block_on(async {
            let (mut socket, _) = open(&api, "p", "v5.channel.k8s.io", sleep).await.unwrap();
            let (frames, _) = all(&mut socket).await;
            let said = channel(&frames, 3);
            assert!(
                said.contains(status) && said.is_empty() == status.is_empty(),
                "{event:?}: {said}"
            );
        });
        let after = text(&api, &format!("{LIST}/p"));
        assert_eq!(after.starts_with("HTTP/1.1 200"), there, "{event:?}");
        assert_ne!(before, after);
        assert_eq!(
            after.contains(r#""restartCount":1"#),
            event == PodEvent::Restarted
        );
        assert!(api.wait_for(Duration::from_secs(5), |api| api.execs()[0].exit.is_some()));
        assert!(api.execs()[0].ended.unwrap() < Duration::from_secs(20));
    }
}
