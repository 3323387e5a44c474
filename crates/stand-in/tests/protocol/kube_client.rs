//! kube, as the project uses it.

use std::path::Path;

use k8s_openapi::api::core::v1::Pod as ApiPod;
use kube::api::{Api, AttachParams, ListParams, LogParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use stand_in::{Certificate, Cluster, Fault, Login, Pod, Rights};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::block_on;

async fn client(kubeconfig: &Path) -> kube::Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .unwrap();
    Client::try_from(config)
}

fn cluster() -> Cluster {
    Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("decode-0").log("a log\n"))
        .pod(Pod::worker("decode-1"))
        .pod(Pod::worker("prefill-0"))
}

async fn run(
    pods: &Api<ApiPod>,
    pod: &str,
    script: &str,
) -> kube::Result<(String, Option<String>)> {
    let params = AttachParams::default().stdin(true).stderr(false);
    let mut process = pods.exec(pod, ["sh", "-s"], &params).await?;
    let mut stdin = process.stdin().unwrap();
    stdin.write_all(script.as_bytes()).await.unwrap();
    stdin.shutdown().await.unwrap();
    drop(stdin);
    let status = process.take_status().unwrap();
    let mut out = String::new();
    process
        .stdout()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    Ok((out, status.await.and_then(|status| status.status)))
}

#[test]
fn kube_lists_runs_and_reads_logs_with_every_login() {
    let plain = cluster().start().unwrap();
    let secure = cluster().tls(Certificate::Good).start().unwrap();
    for (api, login) in [
        (&plain, Login::Token),
        (&secure, Login::Token),
        (&secure, Login::ClientCertificate),
        (&secure, Login::Plugin),
    ] {
        let config = api.kubeconfig_with(&login).unwrap();
        block_on(async {
            let client = client(&config).await.unwrap();
            let pods: Api<ApiPod> = Api::default_namespaced(client);
            let mut found = Vec::new();
            let mut params = ListParams::default()
                .labels("nvidia.com/dynamo-component-type=decode")
                .limit(1);
            loop {
                let page = pods.list(&params).await.unwrap();
                found.extend(page.items.into_iter().filter_map(|pod| pod.metadata.name));
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => params = params.continue_token(&token),
                    None => break,
                }
            }
            assert_eq!(found, ["decode-0", "decode-1"]);
            assert_eq!(
                pods.logs("decode-0", &LogParams::default()).await.unwrap(),
                "a log\n"
            );
            let (out, status) = run(&pods, "decode-0", "echo hello\n").await.unwrap();
            assert_eq!(
                (out.as_str(), status.as_deref()),
                ("hello\n", Some("Success"))
            );
        });
        assert_eq!(api.execs().last().unwrap().protocol, "v5.channel.k8s.io");
        assert_eq!(api.requests().last().unwrap().user, "stand-in-user");
        if login == Login::Plugin {
            assert!(api.plugin_calls(&config) >= 1);
        }
    }
}

#[test]
fn kube_hears_what_is_refused() {
    let api = cluster()
        .rights(Rights::all().deny("get,create", "pods/exec"))
        .tls(Certificate::Good)
        .fault(Fault::on("get", "pods").name("decode-1").status(500))
        .start()
        .unwrap();
    let code = |result: kube::Result<ApiPod>| match result {
        Err(kube::Error::Api(status)) => status.code,
        other => panic!("{other:?}"),
    };
    block_on(async {
        let pods: Api<ApiPod> = Api::default_namespaced(client(api.kubeconfig()).await.unwrap());
        assert_eq!(code(pods.get("nope").await), 404);
        assert_eq!(code(pods.get("decode-1").await), 500);
        let refused = run(&pods, "decode-0", "").await.unwrap_err().to_string();
        assert!(refused.contains("403"), "{refused}");
        for (login, want) in [(Login::Nobody, 403), (Login::ExpiredToken, 401)] {
            let config = api.kubeconfig_with(&login).unwrap();
            let pods: Api<ApiPod> = Api::default_namespaced(client(&config).await.unwrap());
            assert_eq!(code(pods.get("decode-0").await), want, "{login:?}");
        }
        api.expire_token(std::time::Duration::ZERO);
        assert_eq!(code(pods.get("decode-0").await), 401);
        let config = api.kubeconfig_with(&Login::UnknownAuthority).unwrap();
        let pods: Api<ApiPod> = Api::default_namespaced(client(&config).await.unwrap());
        assert!(pods.get("decode-0").await.is_err());
    });
    assert!(
        api.requests()
            .iter()
            .any(|request| request.user == "system:anonymous")
    );
    assert!(api.execs().is_empty());
}

#[test]
fn an_older_server_speaks_version_4_with_kube() {
    let api = cluster().only_v4().start().unwrap();
    block_on(async {
        let pods: Api<ApiPod> = Api::default_namespaced(client(api.kubeconfig()).await.unwrap());
        let params = AttachParams::default().stderr(false);
        let mut process = pods
            .exec("decode-0", ["echo", "hello"], &params)
            .await
            .unwrap();
        let mut out = String::new();
        process
            .stdout()
            .unwrap()
            .read_to_string(&mut out)
            .await
            .unwrap();
        assert_eq!(out, "hello\n");
    });
    assert_eq!(api.execs()[0].protocol, "v4.channel.k8s.io");
}

#[test]
fn from_1_35_on_an_exec_needs_the_right_to_create() {
    for (minor, allowed) in [(34, true), (35, false)] {
        let rights = Rights::none()
            .allow("get,list", "pods")
            .allow("get", "pods/exec");
        let api = cluster().rights(rights).minor(minor).start().unwrap();
        block_on(async {
            let pods: Api<ApiPod> =
                Api::default_namespaced(client(api.kubeconfig()).await.unwrap());
            assert_eq!(
                run(&pods, "decode-0", "true\n").await.is_ok(),
                allowed,
                "1.{minor}"
            );
        });
    }
}
