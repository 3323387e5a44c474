//! The Kubernetes API, natively: kubeconfig, service account, client certificates, OIDC and proxies as kube handles them;
//! exec over WebSocket. Credential plugins and files of tokens are handled here.

use std::time::Duration;

use http_body_util::BodyExt as _;
use kube::api::{Api, AttachParams, AttachedProcess};
use kube::client::Body;
use kube::{Client, Config};
use model::pod::{Fault, FaultKind};

use k8s_openapi::api::core::v1::Pod;
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;

use crate::access::Access;
use crate::api_status::{self, Asked};
use crate::credentials::{self, Credentials, Source};
use crate::door::{self, Cluster, Exec, Keep, Kept, Refusal, Session, Waiting};
use crate::native_session::session;
use crate::{configuration, native_errors};

/// Room for output that nobody has read yet; kube's own is 1 KiB, which costs a wake-up for each.
const PIPE: usize = 256 * 1024;
/// The largest refusal that is read.
const MAX_REFUSAL: usize = 1024 * 1024;

pub(crate) struct Native {
    held: Mutex<Held>,
    /// Where credentials come from, where they are fetched.
    source: Option<Source>,
    /// Without fetched credentials.
    config: Config,
    /// Scheme, host and port of the API server.
    server: String,
    namespace: String,
    patience: Duration,
}

/// The client, with the credentials of the moment.
struct Held {
    client: Client,
    credentials: Credentials,
    /// How often they were fetched.
    fetched: u32,
}

impl Native {
    pub(crate) async fn open(access: &Access) -> Result<Self, Fault> {
        let patience = access.patience();
        let mut config = configuration::of(access).await?;
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
        credentials::of_provider(&mut config.auth_info)?;
        let source = Source::of(&mut config.auth_info);
        let token = config.auth_info.token.as_ref();
        if token.is_some_and(|token| !credentials::is_token(token.expose_secret())) {
            return Err(Fault::new(
                FaultKind::BrokenKubeconfig,
                "the token of the kubeconfig has characters that no header can have, such as a line break",
            ));
        }
        let namespace = access
            .namespace
            .clone()
            .unwrap_or_else(|| config.default_namespace.clone());
        let credentials = match &source {
            Some(source) => source.fetch(patience).await?,
            None => Credentials::default(),
        };
        let client = client(&config, &credentials, patience).await?;
        Ok(Self {
            held: Mutex::new(Held {
                client,
                credentials,
                fetched: 0,
            }),
            server: server(&config),
            source,
            config,
            namespace,
            patience,
        })
    }

    /// Reads an answer piece by piece, and closes the connection where no more is needed.
    async fn read(&self, request: http::Request<Vec<u8>>, keep: Keep) -> Result<Vec<u8>, Refusal> {
        let (client, _) = self.client().await?;
        let answer = client
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

    /// A client whose credentials are good as far as they say themselves, and which they are.
    async fn client(&self) -> Result<(Client, u32), Refusal> {
        let mut held = self.held.lock().await;
        if held.credentials.are_over() {
            self.fetch(&mut held).await?;
        }
        Ok((held.client.clone(), held.fetched))
    }

    async fn fetch(&self, held: &mut Held) -> Result<(), Refusal> {
        let refused = |fault| Refusal {
            fault,
            retry_after: None,
            may_pass: false,
        };
        let Some(source) = &self.source else {
            return Ok(());
        };
        let credentials = source.fetch(self.patience).await.map_err(refused)?;
        held.client = client(&self.config, &credentials, self.patience)
            .await
            .map_err(refused)?;
        held.credentials = credentials;
        held.fetched = held.fetched.saturating_add(1);
        Ok(())
    }

    /// A client with other credentials than those that were refused; `None` where there are no others.
    async fn another(&self, refused: u32) -> Option<Client> {
        self.source.as_ref()?;
        let mut held = self.held.lock().await;
        // Many requests are refused together; who comes first fetches for all.
        if held.fetched == refused && refused < MAX_FETCHES {
            self.fetch(&mut held).await.ok()?;
        }
        (held.fetched > refused).then(|| held.client.clone())
    }

    async fn send(&self, request: http::Request<Vec<u8>>) -> Result<String, Refusal> {
        let (client, which) = self.client().await?;
        let first = self.send_by(&client, request.clone()).await;
        match first {
            Err(refusal) if refusal.fault.kind == FaultKind::Unauthorized => {
                match self.another(which).await {
                    Some(client) => self.send_by(&client, request).await,
                    None => Err(refusal),
                }
            }
            answer => answer,
        }
    }

    async fn send_by(
        &self,
        client: &Client,
        request: http::Request<Vec<u8>>,
    ) -> Result<String, Refusal> {
        let answer = async {
            let answer = client
                .send(request.map(Body::from))
                .await
                .map_err(|e| self.failed(&e, Asked::Read))?;
            let code = answer.status();
            let retry_after = answer
                .headers()
                .get(http::header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok())
                .and_then(|text| text.trim().parse().ok())
                .map(Duration::from_secs);
            let most = if code.is_success() {
                door::MAX_ANSWER
            } else {
                MAX_REFUSAL
            };
            let mut bytes = Vec::new();
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|e| self.failed(&e, Asked::Read))?;
                let Ok(data) = frame.into_data() else {
                    continue;
                };
                bytes.extend_from_slice(&data);
                if bytes.len() > most {
                    if code.is_success() {
                        return Err(door::too_long());
                    }
                    break;
                }
                // What was packed comes without a pause, and nothing else had its turn.
                tokio::task::consume_budget().await;
            }
            let text = String::from_utf8(bytes)
                .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned());
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
            Err(_) => Err(self.late()),
        }
    }

    /// What went wrong, with whom.
    fn failed(&self, error: &kube::Error, asked: Asked) -> Refusal {
        let mut refusal = native_errors::of(error, asked);
        if matches!(
            refusal.fault.kind,
            FaultKind::Unreachable | FaultKind::UnknownCa | FaultKind::TimedOut
        ) {
            refusal.fault.detail = format!("{}: {}", self.server, refusal.fault.detail);
        }
        refusal
    }

    fn late(&self) -> Refusal {
        Refusal::new(
            FaultKind::TimedOut,
            format!(
                "the API server {} did not answer in {} s",
                self.server,
                self.patience.as_secs()
            ),
        )
    }

    async fn start(&self, exec: &Exec, client: Client) -> Result<AttachedProcess, Refusal> {
        let pods: Api<Pod> = Api::namespaced(client, &exec.namespace);
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
        match tokio::time::timeout(self.patience, started).await {
            Ok(Ok(process)) => Ok(process),
            Ok(Err(error)) => Err(self.failed(&error, Asked::Exec)),
            Err(_) => Err(self.late()),
        }
    }
}

/// More are not fetched: a server that refuses all of them would have a plugin run for ever.
const MAX_FETCHES: u32 = 8;

/// `https://host:6443`, without what else an address may hold, and the proxy on the way there.
fn server(config: &Config) -> String {
    let url = &config.cluster_url;
    let scheme = url.scheme_str().unwrap_or("https");
    let host = url.host().unwrap_or_default();
    let server = match url.port_u16() {
        Some(port) => format!("{scheme}://{host}:{port}"),
        None => format!("{scheme}://{host}"),
    };
    let proxy = config.proxy_url.as_ref();
    match proxy.and_then(|proxy| Some((proxy.host()?, proxy.port_u16()))) {
        Some((host, Some(port))) => format!("{server} through the proxy {host}:{port}"),
        Some((host, None)) => format!("{server} through the proxy {host}"),
        None => server,
    }
}

async fn client(
    config: &Config,
    credentials: &Credentials,
    patience: Duration,
) -> Result<Client, Fault> {
    let mut config = config.clone();
    credentials.put(&mut config.auth_info);
    // The login of a cloud that a kubeconfig can name besides plugins may run a program, and waits for it.
    let runtime = tokio::runtime::Handle::current();
    let made = tokio::task::spawn_blocking(move || {
        let _in_runtime = runtime.enter();
        Client::try_from(config)
    });
    match tokio::time::timeout(patience, made).await {
        Ok(Ok(Ok(client))) => Ok(client),
        Ok(Ok(Err(error))) => Err(native_errors::of(&error, Asked::Read).fault),
        Ok(Err(_)) => Err(Fault::new(
            FaultKind::BrokenKubeconfig,
            "the configuration could not be used",
        )),
        Err(_) => Err(Fault::new(
            FaultKind::CredentialPlugin,
            format!(
                "the program that gives credentials gave none in {} s",
                patience.as_secs()
            ),
        )),
    }
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
                Err(_) => Err(self.late()),
            }
        })
    }

    fn exec<'a>(&'a self, exec: &'a Exec) -> Waiting<'a, Result<Session, Refusal>> {
        Box::pin(async move {
            let (client, which) = self.client().await?;
            let process = match self.start(exec, client).await {
                Err(refusal) if refusal.fault.kind == FaultKind::Unauthorized => {
                    match self.another(which).await {
                        Some(client) => self.start(exec, client).await?,
                        None => return Err(refusal),
                    }
                }
                started => started?,
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
