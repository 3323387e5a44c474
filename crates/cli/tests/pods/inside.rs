//! From inside of a pod: the service account is the way in where there is no kubeconfig.

use std::process::{Command, Output, Stdio};

use crate::support::{serving, tree_of, ways, worker};

/// Puts the account where pods have it, in a file system of its own, and goes on with the other words.
const ACCOUNT: &str = r#"
mount -t tmpfs none /var/run || exit 99
mkdir -p /var/run/secrets/kubernetes.io/serviceaccount && cd /var/run/secrets/kubernetes.io/serviceaccount || exit 99
printf '%s' "$TOKEN" >token
printf '%s' "$AUTHORITY" >ca.crt
printf serving >namespace
exec "$@"
"#;

#[test]
fn the_service_account_of_a_pod_is_a_way_in_and_a_context_is_not_it() {
    let may = Command::new("unshare")
        .args(["-m", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: no mount namespace of one's own here");
        return;
    }
    let tree = tree_of("decode");
    let api = serving()
        .pod(worker("decode-0", &tree.root()))
        .tls(stand_in::Certificate::Good)
        .start()
        .unwrap();
    let text = std::fs::read_to_string(api.kubeconfig()).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cluster = &file["clusters"][0]["cluster"];
    let authority = cluster["certificate-authority-data"].as_str().unwrap();
    let authority = data_encoding::BASE64.decode(authority.as_bytes()).unwrap();
    let server = cluster["server"].as_str().unwrap();
    let (host, port) = server
        .strip_prefix("https://")
        .and_then(|at| at.rsplit_once(':'))
        .unwrap();
    let home = tempfile::tempdir().unwrap();
    let ask = |words: &[&str]| -> Output {
        Command::new("unshare")
            .args(["-m", "sh", "-c", ACCOUNT, "account"])
            .arg(env!("CARGO_BIN_EXE_check-interconnect"))
            .args(words)
            .env("TOKEN", file["users"][0]["user"]["token"].as_str().unwrap())
            .env("AUTHORITY", String::from_utf8(authority.clone()).unwrap())
            .env("KUBERNETES_SERVICE_HOST", host)
            .env("KUBERNETES_SERVICE_PORT", port)
            .env("HOME", home.path())
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    for way in ways() {
        let mut words = vec!["node", "--all", "-o", "json"];
        words.extend(&way);
        let inside = ask(&words);
        assert_eq!(inside.status.code(), Some(0), "{way:?} {inside:?}");
        // Its namespace is the pod's.
        let report: serde_json::Value = serde_json::from_slice(&inside.stdout).unwrap();
        assert_eq!(report["coverage"]["workers_probed"], 1, "{way:?}");
        words.extend(["--context", "prod"]);
        let other = ask(&words);
        assert_eq!(other.status.code(), Some(5), "{way:?} {other:?}");
        let told = String::from_utf8_lossy(&other.stdout);
        assert!(
            told.contains("context-unknown") && told.contains("prod"),
            "{told}"
        );
    }
}
