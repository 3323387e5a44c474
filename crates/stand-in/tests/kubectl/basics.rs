//! Lists, objects, rights, logs, logging in.

use stand_in::{Certificate, Cluster, Fault, Login, Pod, Rights, State, User};

use crate::{have_kubectl, kubectl};

fn cluster() -> Cluster {
    Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("prefill-0").label("tier", "a").node("node-a"))
        .pod(
            Pod::worker("decode-0")
                .label("tier", "b")
                .node("node-b")
                .container("sidecar"),
        )
        .pod(Pod::plain("other").label("tier", "b"))
}

#[test]
fn pods_are_listed_selected_and_shown() {
    if !have_kubectl() {
        return;
    }
    let api = cluster()
        .pod(Pod::worker("decode-1").state(State::CrashLoopBackOff))
        .start()
        .unwrap();
    let all = kubectl(&api, &["get", "pods"]);
    assert_eq!(all.code, Some(0), "{}", all.err);
    let lines: Vec<Vec<&str>> = all
        .out
        .lines()
        .map(|l| l.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert!(
        lines.contains(&vec!["decode-0", "2/2", "Running", "0", "1h"]),
        "{}",
        all.out
    );
    assert!(
        lines.contains(&vec!["decode-1", "0/1", "CrashLoopBackOff", "7", "1h"]),
        "{}",
        all.out
    );

    for (selector, want) in [
        ("tier=b", "pod/decode-0\npod/other\n"),
        (
            "nvidia.com/dynamo-component-type in (prefill,decode),tier",
            "pod/decode-0\npod/prefill-0\n",
        ),
        ("!nvidia.com/dynamo-component", "pod/other\n"),
        ("tier notin (a,b)", "pod/decode-1\n"),
    ] {
        let got = kubectl(&api, &["get", "pods", "-o", "name", "-l", selector]);
        assert_eq!(got.out, want, "{selector}: {}", got.err);
    }
    let one_node = kubectl(
        &api,
        &[
            "get",
            "pods",
            "-o",
            "name",
            "--field-selector",
            "spec.nodeName=node-b",
        ],
    );
    assert_eq!(one_node.out, "pod/decode-0\n");
    let paged = kubectl(&api, &["get", "pods", "-o", "name", "--chunk-size=2"]);
    assert_eq!(paged.out.lines().count(), 4);
    let pages = api
        .requests()
        .iter()
        .filter(|r| r.parameter("limit") == Some("2"))
        .count();
    assert_eq!(pages, 2);

    let json = kubectl(&api, &["get", "pod", "decode-0", "-o", "json"]);
    let pod: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(pod["spec"]["containers"][1]["name"], "sidecar");
    let missing = kubectl(&api, &["get", "pod", "nope"]);
    assert_eq!(
        missing.err,
        "Error from server (NotFound): pods \"nope\" not found\n"
    );
    let nodes = kubectl(&api, &["get", "nodes", "-o", "name"]);
    assert_eq!(nodes.out, "node/node-a\nnode/node-b\n");
}

#[test]
fn custom_resources_are_there_when_their_crd_is() {
    if !have_kubectl() {
        return;
    }
    let api = cluster().start().unwrap();
    let none = kubectl(&api, &["get", "dynamographdeployments"]);
    assert!(
        none.err.contains("the server doesn't have a resource type"),
        "{}",
        none.err
    );

    let api = cluster()
        .serves_dynamo()
        .object(serde_json::json!({
            "apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment",
            "metadata": { "name": "graph", "namespace": "serving" }, "spec": { "components": [] },
        }))
        .start()
        .unwrap();
    let some = kubectl(&api, &["get", "dynamographdeployments", "-o", "name"]);
    assert_eq!(
        some.out, "dynamographdeployment.nvidia.com/graph\n",
        "{}",
        some.err
    );
    let all = kubectl(&api, &["get", "dynamographdeployments", "-A"]);
    assert!(all.out.contains("graph"), "{}", all.out);
}

#[test]
fn rights_are_asked_for_and_refused() {
    if !have_kubectl() {
        return;
    }
    let rights = Rights::all()
        .deny("create,get", "pods/exec")
        .deny("list", "nodes");
    let api = cluster()
        .user(User::new("alice").rights(Rights::none().allow("get,list", "pods")))
        .rights(rights)
        .start()
        .unwrap();
    let may = kubectl(&api, &["auth", "can-i", "list", "pods"]);
    assert_eq!(
        (may.code, may.out.as_str()),
        (Some(0), "yes\n"),
        "{}",
        may.err
    );
    let may_not = kubectl(
        &api,
        &["auth", "can-i", "create", "pods", "--subresource=exec"],
    );
    assert_eq!(
        (may_not.code, may_not.out.as_str()),
        (Some(1), "no\n"),
        "{}",
        may_not.err
    );
    let list = kubectl(&api, &["auth", "can-i", "--list"]);
    assert!(
        list.out.contains("pods/log") && !list.out.contains("pods/exec"),
        "{}",
        list.out
    );

    let refused = kubectl(&api, &["exec", "decode-0", "-c", "main", "--", "true"]);
    let text = "pods \"decode-0\" is forbidden: User \"stand-in-user\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"serving\"";
    assert!(
        refused.err.contains("Error from server (Forbidden)") && refused.err.contains(text),
        "{}",
        refused.err
    );
    let refused = kubectl(&api, &["get", "nodes"]);
    let text = "nodes is forbidden: User \"stand-in-user\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    assert_eq!(
        refused.err,
        format!("Error from server (Forbidden): {text}\n")
    );

    let seen = api.requests().len();
    let as_alice = kubectl(&api, &["get", "pods", "-o", "name", "--as", "alice"]);
    assert_eq!(as_alice.code, Some(0), "{}", as_alice.err);
    let requests = api.requests();
    assert!(
        requests[seen..]
            .iter()
            .all(|r| r.user == "alice" && r.impersonated.as_deref() == Some("alice"))
    );
    let refused = kubectl(&api, &["get", "services", "--as", "alice"]);
    assert!(
        refused
            .err
            .contains("User \"alice\" cannot list resource \"services\""),
        "{}",
        refused.err
    );
}

#[test]
fn logs_come_whole_and_in_part() {
    if !have_kubectl() {
        return;
    }
    let api = cluster()
        .pod(
            Pod::plain("talks")
                .log("one\ntwo\nthree\n")
                .container("sidecar")
                .log("four\n"),
        )
        .pod(Pod::plain("starts").state(State::ContainerCreating))
        .start()
        .unwrap();
    let log = |args: &[&str]| kubectl(&api, &[&["logs"], args].concat());
    assert_eq!(log(&["talks", "-c", "main"]).out, "one\ntwo\nthree\n");
    assert_eq!(log(&["talks", "-c", "main", "--tail=1"]).out, "three\n");
    assert_eq!(
        log(&["talks", "-c", "main", "--limit-bytes=5", "--since=1h"]).out,
        "one\nt"
    );
    assert_eq!(log(&["talks", "-c", "sidecar"]).out, "four\n");
    let waiting = log(&["starts"]);
    assert_eq!(
        waiting.err,
        "Error from server (BadRequest): container \"main\" in pod \"starts\" is waiting to start: ContainerCreating\n"
    );
    let previous = log(&["talks", "-c", "main", "-p"]);
    assert_eq!(
        previous.err,
        "Error from server (BadRequest): previous terminated container \"main\" in pod \"talks\" not found\n"
    );
}

#[test]
fn everybody_logs_in_as_their_kubeconfig_says() {
    if !have_kubectl() {
        return;
    }
    let api = cluster()
        .user(User::new("bob"))
        .tls(Certificate::Good)
        .start()
        .unwrap();
    for (login, ok, says) in [
        (Login::Token, true, ""),
        (Login::ClientCertificate, true, ""),
        (Login::Plugin, true, ""),
        (Login::Insecure, true, ""),
        (Login::TokenOf("bob".to_owned()), true, ""),
        (
            Login::ExpiredToken,
            false,
            "You must be logged in to the server (Unauthorized)",
        ),
        (Login::PluginFails, false, "login required"),
        (
            Login::PluginMissing,
            false,
            "executable no-such-credential-plugin not found",
        ),
        (
            Login::Nobody,
            false,
            // It asks for a name on standard input, which is at its end.
            "EOF",
        ),
        (
            Login::UnknownContext,
            false,
            "context was not found for specified context: not-here",
        ),
        (
            Login::UnknownAuthority,
            false,
            "certificate signed by unknown authority",
        ),
        (Login::NobodyThere, false, "connection refused"),
    ] {
        let config = api.kubeconfig_with(&login).unwrap();
        let config = config.to_str().unwrap();
        let got = kubectl(&api, &["--kubeconfig", config, "get", "pods", "-o", "name"]);
        assert_eq!(got.code == Some(0), ok, "{login:?}: {}", got.err);
        assert!(got.err.contains(says), "{login:?}: {}", got.err);
    }
    let users: Vec<String> = api.requests().into_iter().map(|r| r.user).collect();
    assert!(users.iter().any(|u| u == "bob") && users.iter().any(|u| u == "stand-in-user"));
}

#[test]
fn a_server_s_certificate_can_be_wrong() {
    if !have_kubectl() {
        return;
    }
    for (certificate, says) in [
        (Certificate::Expired, "certificate has expired"),
        (Certificate::OtherName, "doesn't contain any IP SANs"),
    ] {
        let api = cluster().tls(certificate).start().unwrap();
        let got = kubectl(&api, &["get", "pods"]);
        assert_ne!(got.code, Some(0));
        assert!(got.err.contains(says), "{certificate:?}: {}", got.err);
    }
}

#[test]
fn a_busy_server_is_asked_again() {
    if !have_kubectl() {
        return;
    }
    let api = cluster()
        .fault(Fault::on("list", "pods").first(1).status(429))
        .start()
        .unwrap();
    let got = kubectl(&api, &["get", "pods", "-o", "name"]);
    assert_eq!(got.code, Some(0), "{}", got.err);
    let statuses: Vec<Option<u16>> = api
        .requests()
        .iter()
        .filter(|r| r.path.ends_with("/pods"))
        .map(|r| r.status)
        .collect();
    assert_eq!(statuses, [Some(429), Some(200)]);
}

#[test]
fn a_proxy_is_gone_through() {
    if !have_kubectl() {
        return;
    }
    let api = cluster().tls(Certificate::Good).start().unwrap();
    let config = api
        .kubeconfig_with(&Login::Proxy(api.proxy().to_owned()))
        .unwrap();
    let config = config.to_str().unwrap();
    let got = kubectl(&api, &["--kubeconfig", config, "get", "pods", "-o", "name"]);
    assert_eq!(got.code, Some(0), "{}", got.err);
    let got = kubectl(
        &api,
        &[
            "--kubeconfig",
            config,
            "exec",
            "other",
            "--",
            "echo",
            "hello",
        ],
    );
    assert_eq!(got.out, "hello\n", "{}", got.err);
    assert!(api.proxied() >= 2);
}
