//! Servers that are none of Kubernetes, or do not keep to its rules: named as that, within bounds, and never taken for a
//! cluster without pods.

use std::time::{Duration, Instant};

use cluster::{Access, Stop, Via, pods};
use model::pod::{Fault, FaultKind};
use stand_in::{Cluster, Fault as Wrong, Pod};

use crate::support::{access, look, open, run, ways};

fn cluster() -> Cluster {
    Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("prefill-0"))
        .pod(Pod::worker("decode-0"))
}

fn list(access: &Access) -> Result<Vec<String>, Fault> {
    run(async {
        let cluster = open(access).await?;
        pods(&*cluster, "serving", None, &Stop::default()).await
    })
}

fn answer(kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into()
}

fn lists() -> Wrong {
    Wrong::on("list", "pods")
}

#[test]
fn what_is_no_list_of_pods_is_no_empty_one() {
    for body in [
        "<html><body>Log in</body></html>",
        "",
        "null",
        "[]",
        "[[[[]]]]",
        r#"{"login": "required"}"#,
        r#"{"items": {"a": 1}}"#,
        r#"{"items": ["#,
    ] {
        let api = cluster()
            .fault(lists().garbage(answer("application/json", body)))
            .start()
            .unwrap();
        for via in ways() {
            let fault = list(&access(api.kubeconfig(), &via)).unwrap_err();
            assert_eq!(fault.kind, FaultKind::NotApi, "{body} {via:?} {fault:?}");
        }
    }
    // Nothing is there, and that is said.
    for body in [r#"{"items": []}"#, r#"{"items": null, "metadata": null}"#] {
        let api = cluster()
            .fault(lists().garbage(answer("application/json", body)))
            .start()
            .unwrap();
        for via in ways() {
            let found = list(&access(api.kubeconfig(), &via));
            assert_eq!(found, Ok(Vec::new()), "{body} {via:?}");
        }
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = cluster().start().unwrap();
    let head = format!(
        "HTTP/1.1 302 Found\r\nLocation: {}/api/v1/namespaces/serving/pods\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        elsewhere.url()
    );
    let api = cluster().fault(lists().garbage(head)).start().unwrap();
    let fault = list(&access(api.kubeconfig(), &Via::Api)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NotApi, "{fault:?}");
    assert!(elsewhere.requests().is_empty());
}

#[test]
fn pages_are_followed_to_their_end_and_no_further() {
    let more = r#"{"items": [], "metadata": {"continue": "more"}}"#;
    let page = || lists().garbage(answer("application/json", more));
    for via in ways() {
        // An empty page is no last one.
        let last =
            r#"{"items": [{"metadata": {"name": "decode-0"}}], "metadata": {"continue": ""}}"#;
        let api = cluster()
            .fault(page().first(1))
            .fault(lists().garbage(answer("application/json", last)))
            .start()
            .unwrap();
        let found = list(&access(api.kubeconfig(), &via)).map(|found| found.len());
        assert_eq!(found, Ok(1), "{via:?}");
        let api = cluster().fault(page()).start().unwrap();
        let fault = list(&access(api.kubeconfig(), &via)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NotApi, "{via:?} {fault:?}");
        let asked = api.requests().len();
        assert!(asked < 8, "{via:?}: {asked} requests");
    }
}

#[test]
fn a_list_that_is_too_old_is_begun_again_by_each_way() {
    for via in ways() {
        let api = cluster()
            .fault(lists().first(1).status(410))
            .start()
            .unwrap();
        let found = list(&access(api.kubeconfig(), &via)).map(|found| found.len());
        assert_eq!(found, Ok(2), "{via:?}");
    }
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let body = " ".repeat(140 * 1024 * 1024);
    let api = cluster()
        .fault(lists().garbage(answer("application/json", &body)))
        .start()
        .unwrap();
    drop(body);
    for via in ways() {
        let mut access = access(api.kubeconfig(), &via);
        access.request_timeout = Some(Duration::from_mins(1));
        let fault = list(&access).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NotApi, "{via:?} {fault:?}");
        assert!(fault.detail.contains("MiB"), "{}", fault.detail);
    }
}

#[test]
fn whoever_ends_a_run_waits_for_no_server() {
    let api = cluster().fault(lists().hang()).start().unwrap();
    for via in ways() {
        let mut access = access(api.kubeconfig(), &via);
        access.request_timeout = Some(Duration::from_secs(30));
        let begin = Instant::now();
        let fault = run(async {
            let cluster = open(&access).await.unwrap();
            let stop = Stop::default();
            let ends = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(300)).await;
                ends.stop();
            });
            pods(&*cluster, "serving", None, &stop).await.unwrap_err()
        });
        assert_eq!(fault.kind, FaultKind::Interrupted, "{via:?}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{via:?}");
    }
}

#[test]
fn what_a_server_calls_a_pod_is_no_option_and_no_path() {
    for name in ["--server=http://127.0.0.1:1", "../nodes", "a b", "-", "Ä"] {
        let api = Cluster::new()
            .namespace("serving")
            .pod(Pod::worker(name))
            .start()
            .unwrap();
        for via in ways() {
            let fault = look(&api, &via, name, Duration::from_secs(5))
                .answer
                .unwrap_err();
            assert_eq!(fault.kind, FaultKind::NotApi, "{name} {via:?} {fault:?}");
        }
        let asked = api.requests();
        assert!(
            asked.iter().all(|request| !request.path.contains("exec")),
            "{name}"
        );
    }
}

#[test]
fn a_selector_that_cannot_be_read_is_no_failure_of_the_server() {
    let api = cluster().start().unwrap();
    for via in ways() {
        let access = access(api.kubeconfig(), &via);
        let of = |selector: &'static str| {
            run(async {
                let cluster = open(&access).await?;
                pods(&*cluster, "serving", Some(selector), &Stop::default()).await
            })
        };
        assert_eq!(of("a in (").unwrap_err().kind, FaultKind::BadSelector);
        assert_eq!(of("tier=none"), Ok(Vec::new()), "{via:?}");
    }
}
