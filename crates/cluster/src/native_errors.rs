//! What kube's errors mean. Their own texts are not told where they can hold output of a credential plugin or lines of
//! a kubeconfig.

use std::error::Error as _;

use kube::client::AuthError;
use kube::config::KubeconfigError;
use model::pod::{Fault, FaultKind};

use crate::api_status::{self, Asked};
use crate::door::Refusal;

pub(crate) fn of(error: &kube::Error, asked: Asked) -> Refusal {
    match error {
        // An answer with an error's status and without an error's object.
        kube::Error::Api(status) if status.code == 0 => Refusal::new(
            FaultKind::ServerError,
            "the API server refused, and did not say why",
        ),
        kube::Error::Api(status) => {
            let retry_after = status
                .details
                .as_ref()
                .map(|details| details.retry_after_seconds)
                .filter(|seconds| *seconds > 0)
                .map(|seconds| std::time::Duration::from_secs(seconds.into()));
            api_status::of(
                status.code,
                &status.reason,
                &status.message,
                retry_after,
                asked,
            )
        }
        kube::Error::Auth(error) => of_credentials(error),
        kube::Error::InferKubeconfig(error) => Refusal {
            fault: of_configuration(error),
            retry_after: None,
            may_pass: false,
        },
        kube::Error::UpgradeConnection(error) => Refusal::new(
            FaultKind::NotOurs,
            format!("the server does not let a command's streams through (WebSocket): {error}"),
        ),
        kube::Error::ProxyProtocolUnsupported { .. }
        | kube::Error::ProxyProtocolDisabled { .. } => Refusal::new(
            FaultKind::BrokenKubeconfig,
            "the proxy-url is neither http:// nor socks5://",
        ),
        kube::Error::RustlsTls(error) => Refusal::new(
            FaultKind::BrokenKubeconfig,
            api_status::short(&chain(error)),
        ),
        other => {
            // Layers between wrap each other's errors.
            let mut source = other.source();
            while let Some(inner) = source {
                if let Some(error) = inner.downcast_ref::<AuthError>() {
                    return of_credentials(error);
                }
                if let Some(error) = inner.downcast_ref::<kube::Error>()
                    && matches!(error, kube::Error::Auth(_) | kube::Error::Api(_))
                {
                    return of(error, asked);
                }
                source = inner.source();
            }
            of_connection(&chain(other))
        }
    }
}

/// A connection that was not made, or broke.
fn of_connection(text: &str) -> Refusal {
    let has = |words: &str| text.contains(words);
    // rustls names them so (rustls, src/error.rs `CertificateError`).
    let certificate = has("invalid peer certificate") || has("UnknownIssuer") || has("certificate");
    let kind = if certificate {
        FaultKind::UnknownCa
    } else if has("operation timed out") || has("deadline has elapsed") {
        FaultKind::TimedOut
    } else {
        FaultKind::Unreachable
    };
    // Names of layers say nothing to who reads.
    let mut told = text;
    while let Some(rest) = [
        "ServiceError: ",
        "client error (Connect): ",
        "client error (SendRequest): ",
    ]
    .iter()
    .find_map(|layer| told.strip_prefix(layer))
    {
        told = rest;
    }
    let mut refusal = Refusal::new(kind, api_status::short(told));
    // A server that closes a connection that it was just asked over was often restarted.
    refusal.may_pass = kind == FaultKind::Unreachable
        && (has("connection closed before message completed") || has("Connection reset"));
    refusal
}

fn of_credentials(error: &AuthError) -> Refusal {
    let detail = match error {
        AuthError::AuthExecRun { cmd, out } => {
            // Its arguments may be credentials, and so may be what it printed.
            let program = cmd.split_whitespace().next().unwrap_or_default();
            format!("{} failed ({})", program.trim_matches('"'), out.status)
        }
        AuthError::AuthExecStart(error) => {
            format!("the program that gives credentials cannot be started: {error}")
        }
        AuthError::ExecPluginFailed | AuthError::AuthExecParse(_) => {
            "the program that gives credentials printed no ExecCredential".to_owned()
        }
        AuthError::ReadTokenFile(error, path) => {
            format!("the token file {} cannot be read: {error}", path.display())
        }
        AuthError::MissingCommand => "the kubeconfig names no program for credentials".to_owned(),
        _ => "the credentials of the kubeconfig cannot be used".to_owned(),
    };
    Refusal::new(FaultKind::CredentialPlugin, api_status::short(&detail))
}

pub(crate) fn of_configuration(error: &KubeconfigError) -> Fault {
    match error {
        KubeconfigError::CurrentContextNotSet => Fault::new(
            FaultKind::UnknownContext,
            "the kubeconfig names no current context, and no --context was given",
        ),
        KubeconfigError::LoadContext(name) => Fault::new(
            FaultKind::UnknownContext,
            format!("no context is called '{name}' in the kubeconfig"),
        ),
        KubeconfigError::LoadClusterOfContext(name) => Fault::new(
            FaultKind::BrokenKubeconfig,
            format!("the context names the cluster '{name}', which the kubeconfig does not have"),
        ),
        KubeconfigError::FindPath => Fault::new(
            FaultKind::NoKubeconfig,
            "neither $KUBECONFIG nor ~/.kube/config is there",
        ),
        KubeconfigError::ReadConfig(error, path) => {
            let kind = if error.kind() == std::io::ErrorKind::NotFound {
                FaultKind::NoKubeconfig
            } else {
                FaultKind::BrokenKubeconfig
            };
            Fault::new(kind, format!("{}: {error}", path.display()))
        }
        // The parser's text would quote lines of the file.
        KubeconfigError::Parse(_) => Fault::new(
            FaultKind::BrokenKubeconfig,
            "the kubeconfig is not the YAML of one",
        ),
        KubeconfigError::MissingClusterUrl => Fault::new(
            FaultKind::BrokenKubeconfig,
            "the context's cluster has no server address",
        ),
        KubeconfigError::ParseClusterUrl(_) => Fault::new(
            FaultKind::BrokenKubeconfig,
            "the server address of the cluster is not one",
        ),
        KubeconfigError::ParseProxyUrl(_) => Fault::new(
            FaultKind::BrokenKubeconfig,
            "the proxy-url of the cluster is not one",
        ),
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            Fault::new(
                FaultKind::BrokenKubeconfig,
                "the certificate authority of the cluster cannot be read",
            )
        }
        KubeconfigError::LoadClientCertificate(_) | KubeconfigError::LoadClientKey(_) => {
            Fault::new(
                FaultKind::BrokenKubeconfig,
                "the client certificate or its key cannot be read",
            )
        }
        KubeconfigError::ParseNoProxy(_) => Fault::new(
            FaultKind::BrokenKubeconfig,
            "NO_PROXY has an entry that is neither a name nor an address",
        ),
        _ => Fault::new(
            FaultKind::BrokenKubeconfig,
            "the kubeconfig files cannot be used together",
        ),
    }
}

/// A command's streams broke.
pub(crate) fn of_stream(error: &(dyn std::error::Error + 'static)) -> Fault {
    Fault::new(FaultKind::Cut, api_status::short(&chain(error)))
}

/// An error with its causes, each once.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}
