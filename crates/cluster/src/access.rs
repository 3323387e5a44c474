//! How somebody asks to be let in, as with kubectl.

use std::path::PathBuf;
use std::time::Duration;

/// What the options of the same names say.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// `--kubeconfig`; `$KUBECONFIG`, `~/.kube/config` or the pod's own service account without it.
    pub kubeconfig: Option<PathBuf>,
    /// `--context`.
    pub context: Option<String>,
    /// `--namespace`; that of the context without it.
    pub namespace: Option<String>,
    /// `--as`.
    pub as_user: Option<String>,
    /// `--as-group`.
    pub as_groups: Vec<String>,
    /// `--request-timeout`: how long one request may take, until its answer is here.
    pub request_timeout: Option<Duration>,
    /// Which way in.
    pub via: Via,
}

/// Ways in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Via {
    /// The Kubernetes API, natively.
    #[default]
    Api,
    /// A program that takes the arguments of kubectl, with arguments of its own before them (`tsh kubectl`).
    Program(Vec<String>),
}

impl Access {
    /// How long one request may take.
    pub(crate) fn patience(&self) -> Duration {
        self.request_timeout.unwrap_or(DEFAULT_REQUEST_TIMEOUT)
    }
}

/// Where nothing else is asked for. Kubectl has no limit, and hangs for ever where an API server does.
pub(crate) const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
