//! The Kubernetes API, natively: kubeconfig, service account, exec credential plugins, client certificates, tokens, OIDC
//! and proxies as kube handles them; exec over WebSocket.

use std::path::Path;
use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::api::{Api, AttachParams, AttachedProcess};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use model::pod::{Fault, FaultKind};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use crate::access::Access;
use crate::api_status::{self, Asked};
use crate::door::{Cluster, Ended, Exec, Keep, Kept, Refusal, Session, Waiting};
use crate::native_errors;

/// Room for output that nobody has read yet; kube's own is 1 KiB, which costs a wake-up for each.
const PIPE: usize = 256 * 1024;

/// The largest answer that is read: some 20,000 pods.
const MAX_ANSWER: usize = 512 * 1024 * 1024;

/// The largest refusal that is read.
const MAX_REFUSAL: usize = 64 * 1024;

pub(crate) struct Native {
    client: Client,
    namespace: String,
    patience: Duration,
}

impl Native {
    pub(crate) async fn open(access: &Access) -> Result<Self, Fault> {
        let patience = access.patience();
        let mut config = configuration(access).await?;
        if let Some(user) = &access.as_user {
            config.auth_info.impersonate = Some(user.clone());
        }
        if !access.as_groups.is_empty() {
            config.auth_info.impersonate_groups = Some(access.as_groups.clone());
        }
        // Repeating is done in one place for all ways in.
        config.default_retry = false;
        config.connect_timeout = Some(patience);
        config.headers.push((
            http::header::USER_AGENT,
            http::HeaderValue::from_static(concat!(
                "check-interconnect/",
                env!("CARGO_PKG_VERSION")
            )),
        ));
        let namespace = access
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        // It may run a credential plugin, and waits for it.
        let runtime = tokio::runtime::Handle::current();
        let made = tokio::task::spawn_blocking(move || {
            let _in_runtime = runtime.enter();
            Client::try_from(config)
        });
        let client = match tokio::time::timeout(patience, made).await {
            Ok(Ok(Ok(client))) => client,
            Ok(Ok(Err(error))) => return Err(native_errors::of(&error, Asked::Read).fault),
            Ok(Err(_)) => {
                return Err(Fault::new(
                    FaultKind::BrokenKubeconfig,
                    "the configuration could not be used",
                ));
            }
            Err(_) => {
                return Err(Fault::new(
                    FaultKind::CredentialPlugin,
                    format!(
                        "the program that gives credentials gave none in {} s",
                        patience.as_secs()
                    ),
                ));
            }
        };
        Ok(Self {
            client,
            namespace,
            patience,
        })
    }

    /// Reads an answer piece by piece, and closes the connection where no more is needed.
    async fn read(&self, request: http::Request<Vec<u8>>, keep: Keep) -> Result<Vec<u8>, Refusal> {
        let answer = self
            .client
            .send(request.map(Body::from))
            .await
            .map_err(|e| native_errors::of(&e, Asked::Log))?;
        let code = answer.status();
        let mut body = answer.into_body();
        let mut kept = Kept::new(if code.is_success() {
            keep
        } else {
            Keep::First(MAX_REFUSAL)
        });
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|e| native_errors::of(&e, Asked::Log))?;
            if let Ok(data) = frame.into_data()
                && !kept.take(&data)
            {
                break;
            }
        }
        let bytes = kept.end();
        if code.is_success() {
            return Ok(bytes);
        }
        let text = String::from_utf8_lossy(&bytes);
        Err(api_status::refusal(code.as_u16(), &text, None, Asked::Log))
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<String, Refusal> {
        let answer = async {
            let answer = self
                .client
                .send(request.map(Body::from))
                .await
                .map_err(|e| native_errors::of(&e, Asked::Read))?;
            let code = answer.status();
            let retry_after = answer
                .headers()
                .get(http::header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .and_then(|text| text.trim().parse().ok())
                .map(Duration::from_secs);
            let bytes = answer
                .into_body()
                .collect_bytes()
                .await
                .map_err(|e| native_errors::of(&e, Asked::Read))?;
            if bytes.len() > MAX_ANSWER {
                return Err(Refusal::new(
                    FaultKind::Flood,
                    format!("the API server's answer has {} bytes", bytes.len()),
                ));
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if code.is_success() {
                Ok(text)
            } else {
                Err(api_status::refusal(
                    code.as_u16(),
                    &text,
                    retry_after,
                    Asked::Read,
                ))
            }
        };
        match tokio::time::timeout(self.patience, answer).await {
            Ok(done) => done,
            Err(_) => Err(late(self.patience)),
        }
    }
}

fn late(patience: Duration) -> Refusal {
    Refusal::new(
        FaultKind::TimedOut,
        format!("the API server did not answer in {} s", patience.as_secs()),
    )
}

async fn configuration(access: &Access) -> Result<Config, Fault> {
    let options = KubeConfigOptions {
        context: access.context.clone(),
        ..KubeConfigOptions::default()
    };
    let read = match &access.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let kubeconfig = match read {
        Ok(kubeconfig) => kubeconfig,
        Err(error) => {
            let fault = native_errors::of_configuration(&error);
            let only_missing = fault.kind == FaultKind::NoKubeconfig;
            // Inside a pod there is usually no file, and a service account instead.
            if only_missing && access.kubeconfig.is_none() && access.context.is_none() {
                return Config::incluster().map_err(|_| no_configuration());
            }
            return Err(fault);
        }
    };
    if kubeconfig.contexts.is_empty() && access.context.is_none() && access.kubeconfig.is_none() {
        return Config::incluster().map_err(|_| no_configuration());
    }
    let known: Vec<String> = kubeconfig.contexts.iter().map(|c| c.name.clone()).collect();
    Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| {
            let mut fault = native_errors::of_configuration(&error);
            if fault.kind == FaultKind::UnknownContext && !known.is_empty() {
                fault.detail = format!("{}; there are: {}", fault.detail, known.join(", "));
            }
            fault
        })
}

fn no_configuration() -> Fault {
    let home = std::env::var_os("HOME").map_or_else(
        || "~/.kube/config".to_owned(),
        |home| Path::new(&home).join(".kube/config").display().to_string(),
    );
    Fault::new(
        FaultKind::NoKubeconfig,
        format!("neither $KUBECONFIG, nor {home}, nor a service account of a pod is there"),
    )
}

impl Cluster for Native {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn get<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<String, Refusal>> {
        Box::pin(async move {
            let request = http::Request::get(path)
                .header(http::header::ACCEPT, "application/json")
                .body(Vec::new())
                .map_err(|_| odd_path(path))?;
            self.send(request).await
        })
    }

    fn ask<'a>(&'a self, path: &'a str, body: String) -> Waiting<'a, Result<String, Refusal>> {
        Box::pin(async move {
            let request = http::Request::post(path)
                .header(http::header::CONTENT_TYPE, "application/json")
                .header(http::header::ACCEPT, "application/json")
                .body(body.into_bytes())
                .map_err(|_| odd_path(path))?;
            self.send(request).await
        })
    }

    fn text<'a>(&'a self, path: &'a str, keep: Keep) -> Waiting<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(async move {
            let request = http::Request::get(path)
                // A log is text/plain, a refusal an object.
                .header(http::header::ACCEPT, "*/*")
                .body(Vec::new())
                .map_err(|_| odd_path(path))?;
            match tokio::time::timeout(self.patience, self.read(request, keep)).await {
                Ok(done) => done,
                Err(_) => Err(late(self.patience)),
            }
        })
    }

    fn exec<'a>(&'a self, exec: &'a Exec) -> Waiting<'a, Result<Session, Refusal>> {
        Box::pin(async move {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &exec.namespace);
            let how = AttachParams {
                container: Some(exec.container.clone()),
                stdin: true,
                stdout: true,
                stderr: true,
                tty: false,
                max_stdin_buf_size: Some(PIPE),
                max_stdout_buf_size: Some(PIPE),
                max_stderr_buf_size: Some(PIPE),
            };
            let started = pods.exec(&exec.pod, exec.command.clone(), &how);
            let process = match tokio::time::timeout(self.patience, started).await {
                Ok(Ok(process)) => process,
                Ok(Err(error)) => return Err(native_errors::of(&error, Asked::Exec)),
                Err(_) => return Err(late(self.patience)),
            };
            session(process).ok_or_else(|| {
                Refusal::new(
                    FaultKind::ServerError,
                    "the streams of the exec are not there",
                )
            })
        })
    }
}

fn odd_path(path: &str) -> Refusal {
    Refusal::new(FaultKind::NotFound, format!("{path} is no path of the API"))
}

fn session(mut process: AttachedProcess) -> Option<Session> {
    let stdin = process.stdin()?;
    let stdout = process.stdout()?;
    let stderr = process.stderr()?;
    let status = process.take_status()?;
    Some(Session {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        end: Box::pin(async move {
            match status.await {
                Some(status) => ended(&status),
                None => Ended::Fault(match process.join().await {
                    Ok(()) => Fault::new(
                        FaultKind::Cut,
                        "the connection was closed before the command's end was told",
                    ),
                    Err(error) => native_errors::of_stream(&error),
                }),
            }
        }),
    })
}

/// How a command ended (kubernetes, client-go tools/remotecommand/v4.go).
fn ended(status: &Status) -> Ended {
    if status.status.as_deref() == Some("Success") {
        return Ended::Code(0);
    }
    let code = status
        .details
        .as_ref()
        .and_then(|details| details.causes.as_ref())
        .into_iter()
        .flatten()
        .find(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .and_then(|cause| cause.message.as_deref())
        .and_then(|code| code.parse().ok());
    match code {
        Some(code) => Ended::Code(code),
        None => {
            let message = status.message.as_deref().unwrap_or_default();
            Ended::Fault(Fault::new(
                api_status::of_failed_exec(message),
                api_status::short(message),
            ))
        }
    }
}
