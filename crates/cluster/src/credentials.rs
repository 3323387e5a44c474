//! Credentials that are fetched: by a credential plugin, or from a file of a token. They are fetched anew where they end, and once
//! where the API server does not know them any more, as kubectl does (client-go plugin/pkg/client/auth/exec, exec.go).
//!
//! A plugin runs as the first of a process group of its own, so that nothing of it stays, and nothing of what it prints is
//! told: it prints credentials. On a terminal it may ask its user.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use model::pod::{Fault, FaultKind};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::programs::Running;

/// The most that is read of a plugin, or of a file of a token.
const MAX: u64 = 1024 * 1024;
/// How long before its end a token is not used any more.
const LEEWAY: SignedDuration = SignedDuration::from_secs(10);

/// Where credentials come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A credential plugin.
    Plugin(Box<ExecConfig>),
    /// A file of a token.
    File(PathBuf),
}

/// Credentials, and until when they are good.
#[derive(Default)]
pub(crate) struct Credentials {
    token: Option<String>,
    certificate: Option<(String, String)>,
    ends: Option<Timestamp>,
}

impl Credentials {
    /// Whether it is time for others.
    pub(crate) fn are_over(&self) -> bool {
        self.ends
            .is_some_and(|ends| Timestamp::now() + LEEWAY >= ends)
    }

    /// Puts them where a client looks for them.
    pub(crate) fn put(&self, into: &mut AuthInfo) {
        if let Some(token) = &self.token {
            into.token = Some(token.clone().into());
        }
        if let Some((certificate, key)) = &self.certificate {
            let encoded = |pem: &str| data_encoding::BASE64.encode(pem.as_bytes());
            into.client_certificate = None;
            into.client_key = None;
            into.client_certificate_data = Some(encoded(certificate));
            into.client_key_data = Some(encoded(key).into());
        }
    }
}

impl Source {
    /// Takes the source out of what a kubeconfig says of a user. A token that stands there itself counts more than a
    /// plugin, and less than a file.
    pub(crate) fn of(user: &mut AuthInfo) -> Option<Self> {
        let plugin = user.exec.take();
        if let Some(file) = user.token_file.take().filter(|file| !file.is_empty()) {
            return Some(Self::File(file.into()));
        }
        let plugin = plugin.filter(|_| user.token.is_none() && user.username.is_none())?;
        Some(Self::Plugin(Box::new(plugin)))
    }

    /// Fetches them.
    pub(crate) async fn fetch(&self, patience: Duration) -> Result<Credentials, Fault> {
        let fetched = match self {
            Self::File(path) => tokio::time::timeout(patience, of_file(path.clone())).await,
            Self::Plugin(plugin) => tokio::time::timeout(patience, of_plugin(plugin)).await,
        };
        match fetched {
            Ok(fetched) => fetched,
            Err(_) => Err(failed(match self {
                Self::File(path) => format!(
                    "the token file {} could not be read in {} s",
                    path.display(),
                    patience.as_secs()
                ),
                Self::Plugin(plugin) => format!(
                    "{} gave no credentials in {} s",
                    name(plugin),
                    patience.as_secs()
                ),
            })),
        }
    }
}

/// The login of a provider that a kubeconfig names itself (`auth-provider`). Kubectl knows `oidc` and no other since 1.26
/// (client-go plugin/pkg/client/auth).
///
/// Only the ID token that is there is used. To renew it is kubectl's: most providers take a refresh token once and give
/// another one, which has to be written into the kubeconfig, or its owner is logged out.
pub(crate) fn of_provider(user: &mut AuthInfo) -> Result<(), Fault> {
    let counts_more = user.token.is_some() || user.username.is_some() || user.exec.is_some();
    let Some(provider) = user
        .auth_provider
        .take_if(|p| counts_more || p.name == "oidc")
    else {
        return match &user.auth_provider {
            Some(other) if other.name != "gcp" => Err(failed(format!(
                "the auth-provider '{}' of the kubeconfig is not known; kubectl knows none but oidc either, its successors are credential plugins (exec)",
                other.name
            ))),
            _ => Ok(()),
        };
    };
    if counts_more {
        return Ok(());
    }
    let renew = "any command of kubectl renews it where a refresh-token is there, or log in again";
    let token = provider.config.get("id-token").map(|token| token.trim());
    let Some(token) = token.filter(|token| !token.is_empty()) else {
        return Err(failed(format!(
            "the kubeconfig has no id-token of its OIDC provider; {renew}"
        )));
    };
    if ends(token).is_some_and(|ends| Timestamp::now() + LEEWAY >= ends) {
        return Err(failed(format!(
            "the id-token of the OIDC provider in the kubeconfig has ended; {renew}"
        )));
    }
    user.token = with_token(token, "the id-token of the OIDC provider")?
        .token
        .map(Into::into);
    Ok(())
}

/// When a JSON Web Token ends (RFC 7519, `exp`); of others the API server will tell.
fn ends(token: &str) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Claims {
        exp: f64,
    }
    let payload = token.split('.').nth(1)?.trim_end_matches('=');
    let payload = data_encoding::BASE64URL_NOPAD
        .decode(payload.as_bytes())
        .ok()?;
    let claims: Claims = serde_json::from_slice(&payload).ok()?;
    let since = SignedDuration::try_from_secs_f64(claims.exp).ok()?;
    Timestamp::from_duration(since).ok()
}

fn failed(what: impl Into<String>) -> Fault {
    Fault::new(
        FaultKind::CredentialPlugin,
        crate::api_status::short(&what.into()),
    )
}

fn name(plugin: &ExecConfig) -> &str {
    plugin
        .command
        .as_deref()
        .unwrap_or("the program that gives credentials")
}

async fn of_file(path: PathBuf) -> Result<Credentials, Fault> {
    let told = path.display().to_string();
    let file = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut text = String::new();
        std::fs::File::open(path)?
            .take(MAX)
            .read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    })
    .await;
    match file {
        // Editors end a file with a line break.
        Ok(Ok(text)) => with_token(text.trim(), &format!("the token file {told}")),
        Ok(Err(error)) => Err(failed(format!(
            "the token file {told} cannot be read: {error}"
        ))),
        Err(_) => Err(failed(format!("the token file {told} cannot be read"))),
    }
}

/// A token has to fit into a header.
pub(crate) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|b| (b' '..=b'~').contains(&b))
}

fn with_token(token: &str, from: &str) -> Result<Credentials, Fault> {
    if is_token(token) {
        Ok(Credentials {
            token: Some(token.to_owned()),
            ..Credentials::default()
        })
    } else {
        Err(failed(format!(
            "what {from} gave is no token: it is empty, or has characters that no header can have"
        )))
    }
}

/// `ExecCredential` (client-go pkg/apis/clientauthentication/types.go), as far as it is needed.
#[derive(Deserialize)]
struct ExecCredential {
    kind: Option<String>,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

async fn of_plugin(plugin: &ExecConfig) -> Result<Credentials, Fault> {
    let name = name(plugin);
    let mode = plugin
        .interactive_mode
        .clone()
        .unwrap_or(ExecInteractiveMode::IfAvailable);
    let asks = mode != ExecInteractiveMode::Never && std::io::stdin().is_terminal();
    if mode == ExecInteractiveMode::Always && !asks {
        return Err(failed(format!(
            "{name} wants to ask its user (interactiveMode Always), and there is no terminal"
        )));
    }
    let mut command = command(plugin, asks)?;
    let child = command.spawn().map_err(|error| {
        failed(if error.kind() == std::io::ErrorKind::NotFound {
            format!("{name} is not there; it gives the credentials of this kubeconfig")
        } else {
            format!("{name} cannot be started: {error}")
        })
    })?;
    let mut running = Running::new(child);
    let mut out = Vec::new();
    if let Some(stdout) = running.child.stdout.take() {
        let _what_came = stdout.take(MAX).read_to_end(&mut out).await;
    }
    let status = running
        .child
        .wait()
        .await
        .map_err(|error| failed(format!("{name}: {error}")))?;
    if !status.success() {
        return Err(failed(match status.code() {
            Some(code) => format!("{name} ended with exit code {code}"),
            None => format!("{name} was ended by a signal"),
        }));
    }
    let none = || failed(format!("{name} printed no ExecCredential"));
    let given: ExecCredential = serde_json::from_slice(&out).map_err(|_| none())?;
    if given.kind.is_some_and(|kind| kind != "ExecCredential") {
        return Err(none());
    }
    let status = given.status.ok_or_else(none)?;
    let mut credentials = match &status.token {
        Some(token) if !token.is_empty() => with_token(token, name)?,
        _ => Credentials::default(),
    };
    credentials.certificate = status.client_certificate_data.zip(status.client_key_data);
    credentials.ends = status
        .expiration_timestamp
        .and_then(|time| time.parse().ok());
    if credentials.token.is_none() && credentials.certificate.is_none() {
        return Err(failed(format!(
            "{name} gave neither a token nor a certificate"
        )));
    }
    Ok(credentials)
}

fn command(plugin: &ExecConfig, asks: bool) -> Result<Command, Fault> {
    let program = plugin
        .command
        .as_deref()
        .filter(|program| !program.is_empty())
        .ok_or_else(|| failed("the kubeconfig names no program for credentials"))?;
    let mut command = Command::new(program);
    command.args(plugin.args.iter().flatten());
    for variable in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let mut spec = serde_json::json!({ "interactive": asks });
    if let (Some(cluster), Some(spec)) = (&plugin.cluster, spec.as_object_mut())
        && let Ok(cluster) = serde_json::to_value(cluster)
    {
        spec.insert("cluster".to_owned(), cluster);
    }
    let about = serde_json::json!({
        "apiVersion": plugin.api_version,
        "kind": "ExecCredential",
        "spec": spec,
    });
    command
        .env("KUBERNETES_EXEC_INFO", about.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    if asks {
        // Its user sees what it asks, and answers; to read from a terminal it has to stay in the foreground.
        command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        command.stdin(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        command.process_group(0);
    }
    Ok(command)
}
