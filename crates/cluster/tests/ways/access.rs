//! Getting in at all.

use cluster::{Access, Right, Stop, Via, granted, named_pod, nodes, pods};
use model::pod::{Fault, FaultKind};
use stand_in::{Certificate, Cluster, Fault as Wrong, Login, Pod, Rights, User};

use crate::support::{access, open, run, ways};

fn cluster() -> Cluster {
    Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("prefill-0").label("tier", "a"))
        .pod(Pod::worker("decode-0").label("tier", "b"))
}

fn list(access: &Access) -> Result<Vec<String>, Fault> {
    run(async {
        let cluster = open(access).await?;
        pods(&*cluster, "serving", None, &Stop::default()).await
    })
}

#[test]
fn both_ways_read_the_same() {
    let api = cluster().start().unwrap();
    let mut answers = Vec::new();
    for via in ways() {
        let access = access(api.kubeconfig(), &via);
        answers.push(run(async {
            let cluster = open(&access).await.unwrap();
            let stop = Stop::default();
            let all = pods(&*cluster, "serving", None, &stop).await.unwrap();
            let some = pods(&*cluster, "serving", Some("tier in (b)"), &stop)
                .await
                .unwrap();
            let one = named_pod(&*cluster, "serving", "decode-0", &stop)
                .await
                .unwrap();
            let nodes = nodes(&*cluster, &stop).await.unwrap();
            (all, some, one, nodes)
        }));
    }
    let (all, some, one, nodes) = &answers[0];
    assert_eq!((all.len(), some.len(), nodes.len()), (2, 1, 2));
    assert!(some[0].contains(r#""name":"decode-0""#), "{some:?}");
    assert!(one.contains("decode-0"));
    for text in all {
        assert_eq!(text.matches(r#""kind":"Pod""#).count(), 1, "{text}");
    }
    assert!(answers.iter().all(|answer| answer == &answers[0]));
}

#[test]
fn the_namespace_is_that_of_the_context() {
    let api = cluster().start().unwrap();
    for via in ways() {
        let mut access = access(api.kubeconfig(), &via);
        access.namespace = None;
        let namespace =
            run(async { open(&access).await.map(|c| c.namespace().to_owned()) }).unwrap();
        assert_eq!(namespace, "serving", "{via:?}");
    }
}

#[test]
fn somebody_else_can_be_meant() {
    let api = cluster().user(User::new("night-shift")).start().unwrap();
    for via in ways() {
        let mut access = access(api.kubeconfig(), &via);
        access.as_user = Some("night-shift".to_owned());
        list(&access).unwrap();
    }
    let asked = api.requests();
    let lists: Vec<_> = asked.iter().filter(|r| r.path.ends_with("/pods")).collect();
    assert_eq!(lists.len(), ways().len());
    for request in lists {
        assert_eq!(request.impersonated.as_deref(), Some("night-shift"));
    }
}

#[test]
fn many_pods_come_page_by_page() {
    let mut cluster = Cluster::new().namespace("serving");
    for number in 0..1201 {
        cluster = cluster.pod(Pod::worker(&format!("decode-{number}")));
    }
    let api = cluster.start().unwrap();
    for via in ways() {
        let all = list(&access(api.kubeconfig(), &via)).unwrap();
        assert_eq!(all.len(), 1201, "{via:?}");
    }
}

/// What each way of not getting in is called.
#[test]
fn every_closed_door_has_its_name() {
    let plain = || cluster().start().unwrap();
    let tls = |certificate| cluster().tls(certificate).start().unwrap();
    let cases = [
        (plain(), Login::UnknownContext, FaultKind::UnknownContext),
        (plain(), Login::NobodyThere, FaultKind::Unreachable),
        (
            tls(Certificate::Good),
            Login::UnknownAuthority,
            FaultKind::UnknownCa,
        ),
        (
            tls(Certificate::Expired),
            Login::Token,
            FaultKind::UnknownCa,
        ),
        (
            tls(Certificate::OtherName),
            Login::Token,
            FaultKind::UnknownCa,
        ),
        (
            tls(Certificate::Good),
            Login::ExpiredToken,
            FaultKind::Unauthorized,
        ),
        (
            tls(Certificate::Good),
            Login::PluginFails,
            FaultKind::CredentialPlugin,
        ),
        (
            tls(Certificate::Good),
            Login::PluginMissing,
            FaultKind::CredentialPlugin,
        ),
    ];
    for (api, login, expected) in cases {
        let kubeconfig = api.kubeconfig_with(&login).unwrap();
        for via in ways() {
            let fault = list(&access(&kubeconfig, &via)).unwrap_err();
            assert_eq!(fault.kind, expected, "{login:?} {via:?}: {}", fault.detail);
            assert!(!fault.detail.is_empty());
        }
    }
}

#[test]
fn every_good_door_opens() {
    let api = cluster().tls(Certificate::Good).start().unwrap();
    for login in [
        Login::Token,
        Login::ClientCertificate,
        Login::Plugin,
        Login::Insecure,
    ] {
        let kubeconfig = api.kubeconfig_with(&login).unwrap();
        for via in ways() {
            let all = list(&access(&kubeconfig, &via));
            assert_eq!(all.map(|a| a.len()), Ok(2), "{login:?} {via:?}");
        }
    }
}

#[test]
fn a_credential_plugin_that_hangs_does_not_hold_the_run() {
    let api = cluster().tls(Certificate::Good).start().unwrap();
    let kubeconfig = api.kubeconfig_with(&Login::PluginHangs).unwrap();
    for via in ways() {
        let begin = std::time::Instant::now();
        let mut access = access(&kubeconfig, &via);
        access.request_timeout = Some(std::time::Duration::from_secs(1));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let fault = runtime.block_on(async {
            match open(&access).await {
                Err(fault) => fault,
                Ok(cluster) => pods(&*cluster, "serving", None, &Stop::default())
                    .await
                    .unwrap_err(),
            }
        });
        runtime.shutdown_background();
        assert!(
            matches!(
                fault.kind,
                FaultKind::CredentialPlugin | FaultKind::TimedOut
            ),
            "{fault:?}"
        );
        assert!(begin.elapsed() < std::time::Duration::from_secs(20));
    }
}

#[test]
fn no_kubeconfig_and_a_broken_one_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let broken = dir.path().join("broken");
    std::fs::write(&broken, "users:\n- name: a\n  user: {token: hunter2\n").unwrap();
    for via in ways() {
        let fault = list(&access(&dir.path().join("none"), &via)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::NoKubeconfig, "{via:?} {fault:?}");
        let fault = list(&access(&broken, &via)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::BrokenKubeconfig, "{via:?} {fault:?}");
        assert!(!fault.detail.contains("hunter2"), "{}", fault.detail);
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let api = cluster().start().unwrap();
    let via = Via::Program(vec!["no-such-kubectl".to_owned()]);
    let fault = list(&access(api.kubeconfig(), &via)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::NoKubectl);
    assert!(fault.detail.contains("no-such-kubectl"));
}

#[test]
fn refusals_of_lists_have_their_names() {
    let cases = [
        (401, FaultKind::Unauthorized),
        (403, FaultKind::ForbiddenPods),
        (404, FaultKind::NotFound),
        (409, FaultKind::Conflict),
        (500, FaultKind::ServerError),
    ];
    for (code, expected) in cases {
        let api = cluster()
            .fault(Wrong::on("list", "pods").status(code))
            .start()
            .unwrap();
        for via in ways() {
            let fault = list(&access(api.kubeconfig(), &via)).unwrap_err();
            assert_eq!(fault.kind, expected, "{code} {via:?}: {}", fault.detail);
        }
    }
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    for via in ways() {
        let api = cluster()
            .fault(
                Wrong::on("list", "pods")
                    .first(2)
                    .status_retry_after(429, 1),
            )
            .start()
            .unwrap();
        let begin = std::time::Instant::now();
        let mut access = access(api.kubeconfig(), &via);
        access.request_timeout = Some(std::time::Duration::from_secs(15));
        assert_eq!(list(&access).map(|a| a.len()), Ok(2), "{via:?}");
        assert!(
            begin.elapsed() >= std::time::Duration::from_secs(2),
            "{via:?}"
        );
    }
}

#[test]
fn what_is_not_allowed_is_known_before_it_is_tried() {
    let api = cluster()
        .rights(Rights::all().deny("create,get", "pods/exec"))
        .start()
        .unwrap();
    let right = |verb, resource, subresource| Right {
        verb,
        group: "",
        resource,
        subresource,
        namespace: Some("serving".to_owned()),
    };
    let rights = [
        right("list", "pods", ""),
        right("create", "pods", "exec"),
        right("get", "pods", "exec"),
    ];
    for via in ways() {
        let access = access(api.kubeconfig(), &via);
        let answers = run(async {
            let cluster = open(&access).await.unwrap();
            granted(&cluster, &rights, &Stop::default()).await
        });
        assert_eq!(answers, [Some(true), Some(false), Some(false)], "{via:?}");
    }
}
