//! Credentials that are fetched: by a plugin or from a file, anew where they end, and never told.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cluster::{Access, Stop, Via, pods};
use model::pod::{Fault, FaultKind};
use serde_json::{Value, json};
use stand_in::{Certificate, Cluster, Pod, StandIn};

use crate::support::{access, open, run, ways};

fn api() -> StandIn {
    Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("decode-0"))
        .tls(Certificate::Good)
        .start()
        .unwrap()
}

fn list(access: &Access) -> Result<usize, Fault> {
    run(async {
        let cluster = open(access).await?;
        pods(&*cluster, "serving", None, &Stop::default())
            .await
            .map(|found| found.len())
    })
}

/// The stand-in's kubeconfig with another user.
fn kubeconfig(api: &StandIn, directory: &Path, user: &Value) -> PathBuf {
    let text = std::fs::read_to_string(api.kubeconfig()).unwrap();
    let mut file: Value = serde_json::from_str(&text).unwrap();
    file["users"][0]["user"] = user.clone();
    let path = directory.join("kubeconfig");
    std::fs::write(&path, file.to_string()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

fn token(api: &StandIn) -> String {
    let text = std::fs::read_to_string(api.kubeconfig()).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["users"][0]["user"]["token"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// A plugin of this script.
fn plugin(directory: &Path, script: &str) -> Value {
    let path = directory.join("plugin");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": path,
        "args": ["--key=hunter2"],
        "env": [{"name": "AWS_KEY", "value": "hunter2"}],
        "interactiveMode": "IfAvailable",
    }})
}

fn credential(status: &Value) -> String {
    let text = json!({
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": status,
    });
    format!("cat <<'END'\n{text}\nEND")
}

#[test]
fn a_plugin_that_fails_tells_no_secret() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    for script in [
        "echo hunter2; echo hunter2 >&2; exit 3",
        "echo '{\"kind\": \"ExecCredential\", \"status\": {\"token\": \"hunter2\"'",
        "echo hunter2; kill -9 $$",
        &credential(&json!({"token": "hunter2\nX-Evil: 1"})),
        &credential(&json!({"expirationTimestamp": "hunter2"})),
        "exec hunter2-is-not-there",
    ] {
        let user = plugin(directory.path(), script);
        let kubeconfig = kubeconfig(&api, directory.path(), &user);
        let fault = list(&access(&kubeconfig, &Via::Api)).unwrap_err();
        assert_eq!(
            fault.kind,
            FaultKind::CredentialPlugin,
            "{script} {fault:?}"
        );
        assert!(!fault.detail.contains("hunter2"), "{script} {fault:?}");
        assert!(fault.detail.contains("plugin"), "{fault:?}");
    }
}

/// Processes that were started from here.
fn left(directory: &Path) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .filter(|environ| {
            let mark = format!("ATTACHED={}", directory.display());
            String::from_utf8_lossy(environ).contains(&mark)
        })
        .count()
}

#[test]
fn nothing_of_a_plugin_that_hangs_stays() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    let mut user = plugin(directory.path(), "sleep 600 & sleep 600");
    user["exec"]["env"] = json!([{"name": "ATTACHED", "value": directory.path()}]);
    let kubeconfig = kubeconfig(&api, directory.path(), &user);
    for via in ways() {
        let mut access = access(&kubeconfig, &via);
        access.request_timeout = Some(Duration::from_secs(1));
        list(&access).unwrap_err();
        let gone = api.wait_for(Duration::from_secs(5), |_| left(directory.path()) == 0);
        assert!(gone, "{via:?}");
    }
}

#[test]
fn a_plugin_is_asked_again_where_its_token_ends() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    let calls = directory.path().join("calls");
    let script = |status: &Value| format!("echo x >>'{}'\n{}", calls.display(), credential(status));
    let count = || {
        std::fs::read_to_string(&calls)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let lists = |times: usize, kubeconfig: &Path| {
        let access = access(kubeconfig, &Via::Api);
        run(async {
            let cluster = open(&access).await.unwrap();
            let mut found = Vec::new();
            for _ in 0..times {
                let stop = Stop::default();
                found.push(
                    pods(&*cluster, "serving", None, &stop)
                        .await
                        .map(|f| f.len()),
                );
            }
            found
        })
    };
    // One whose end is far is asked once.
    for (ends, times, asked) in [
        ("2999-01-01T00:00:00Z", 3, 1),
        ("2020-01-01T00:00:00Z", 3, 4),
    ] {
        let _first = std::fs::remove_file(&calls);
        let status = json!({"token": token(&api), "expirationTimestamp": ends});
        let user = plugin(directory.path(), &script(&status));
        let kubeconfig = kubeconfig(&api, directory.path(), &user);
        assert_eq!(lists(times, &kubeconfig), vec![Ok(1); times], "{ends}");
        assert_eq!(count(), asked, "{ends}");
    }
    // One that the server does not know is asked once more for each refusal, and no more.
    let _first = std::fs::remove_file(&calls);
    let user = plugin(directory.path(), &script(&json!({"token": "unknown"})));
    let kubeconfig = kubeconfig(&api, directory.path(), &user);
    let refused = lists(1, &kubeconfig);
    assert_eq!(
        refused[0].as_ref().unwrap_err().kind,
        FaultKind::Unauthorized
    );
    assert_eq!(count(), 2);
}

#[test]
fn a_token_that_ended_is_fetched_anew() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    let script = format!(
        "if [ -e '{0}' ]; then\n{2}\nelse\ntouch '{0}'\n{1}\nfi",
        directory.path().join("second").display(),
        credential(&json!({"token": "ended"})),
        credential(&json!({"token": token(&api)})),
    );
    let user = plugin(directory.path(), &script);
    let kubeconfig = kubeconfig(&api, directory.path(), &user);
    assert_eq!(list(&access(&kubeconfig, &Via::Api)), Ok(1));
}

#[test]
fn a_file_of_a_token_may_end_with_a_line_break() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("token"), format!("{}\n", token(&api))).unwrap();
    // As seen from the kubeconfig.
    let kubeconfig = kubeconfig(&api, directory.path(), &json!({"tokenFile": "token"}));
    for via in ways() {
        assert_eq!(list(&access(&kubeconfig, &via)), Ok(1), "{via:?}");
    }
    std::fs::write(directory.path().join("token"), "hunter2\nX-Evil: 1\n").unwrap();
    let fault = list(&access(&kubeconfig, &Via::Api)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::CredentialPlugin);
    assert!(!fault.detail.contains("hunter2"), "{fault:?}");
}

#[test]
fn a_token_that_fits_into_no_header_is_told_as_that() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = kubeconfig(&api, directory.path(), &json!({"token": "hunter2\n"}));
    let fault = list(&access(&kubeconfig, &Via::Api)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BrokenKubeconfig, "{fault:?}");
    assert!(!fault.detail.contains("hunter2"), "{fault:?}");
}

#[test]
fn a_kubeconfig_that_is_no_text_is_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    for bytes in [
        &b"\xff\xfe\x00"[..],
        b"\xfe\xff\x00",
        b"\xff\xfe\x00\xd8",
        b"a: \xff",
        b"\x00\x01\x02",
    ] {
        std::fs::write(&path, bytes).unwrap();
        let fault = list(&access(&path, &Via::Api)).unwrap_err();
        assert_eq!(
            fault.kind,
            FaultKind::BrokenKubeconfig,
            "{bytes:?} {fault:?}"
        );
    }
}

/// A user of an OIDC provider, with these entries.
fn of_oidc(entries: &Value) -> Value {
    let mut config = json!({
        "client-id": "kubernetes",
        "idp-issuer-url": "https://127.0.0.1:1/",
        "refresh-token": "hunter2",
    });
    for (name, value) in entries.as_object().unwrap() {
        config[name] = value.clone();
    }
    json!({"auth-provider": {"name": "oidc", "config": config}})
}

/// A JSON Web Token that ends then.
fn jwt(ends: i64) -> String {
    let part = |value: &Value| data_encoding::BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    [
        part(&json!({"alg": "none"})),
        part(&json!({"sub": "me", "exp": ends})),
        "c2lnbmF0dXJl".to_owned(),
    ]
    .join(".")
}

#[test]
fn the_id_token_of_an_oidc_provider_is_used_as_it_is() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    // kubectl looks into it first, and this one is no JSON Web Token.
    let user = of_oidc(&json!({"id-token": token(&api)}));
    let path = kubeconfig(&api, directory.path(), &user);
    assert_eq!(list(&access(&path, &Via::Api)), Ok(1));
    // One that has not ended goes to the API server, which does not know it.
    let user = of_oidc(&json!({"id-token": jwt(4_000_000_000)}));
    let path = kubeconfig(&api, directory.path(), &user);
    for via in ways() {
        let fault = list(&access(&path, &via)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Unauthorized, "{via:?} {fault:?}");
    }
}

#[test]
fn an_id_token_that_has_ended_is_not_renewed_behind_its_owners_back() {
    let api = api();
    let directory = tempfile::tempdir().unwrap();
    let asked = api.requests().len();
    for (entries, words) in [
        (json!({"id-token": jwt(1_000_000_000)}), "has ended"),
        (json!({}), "no id-token"),
        (json!({"id-token": ""}), "no id-token"),
        (json!({"id-token": "a\nb"}), "no token"),
    ] {
        let path = kubeconfig(&api, directory.path(), &of_oidc(&entries));
        let fault = list(&access(&path, &Via::Api)).unwrap_err();
        assert_eq!(fault.kind, FaultKind::CredentialPlugin, "{fault:?}");
        assert!(fault.detail.contains(words), "{fault:?}");
        assert!(!fault.detail.contains("hunter2"), "{fault:?}");
    }
    let user = json!({"auth-provider": {"name": "azure", "config": {"access-token": "hunter2"}}});
    let path = kubeconfig(&api, directory.path(), &user);
    let fault = list(&access(&path, &Via::Api)).unwrap_err();
    assert_eq!(fault.kind, FaultKind::CredentialPlugin, "{fault:?}");
    assert!(fault.detail.contains("'azure'"), "{fault:?}");
    assert_eq!(api.requests().len(), asked);
    // A token that stands there itself counts more.
    let user = json!({"token": token(&api), "auth-provider": {"name": "azure", "config": {}}});
    let path = kubeconfig(&api, directory.path(), &user);
    assert_eq!(list(&access(&path, &Via::Api)), Ok(1));
}
