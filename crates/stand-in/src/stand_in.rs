//! The server that plays a scenario.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::certs::{Authority, wrong};
use crate::fault::{Fault, PodEvent};
use crate::hub::Hub;
use crate::kubeconfig::{Basis, Login};
use crate::record::{Exec, Request, Sent, lock};
use crate::rights::Rights;

/// The first user's.
pub(crate) const TOKEN: &str = "stand-in-token";

pub(crate) fn token_of(user: &str) -> String {
    format!("token-of-{user}")
}

/// A server that runs until it is dropped.
pub struct StandIn {
    pub(crate) hub: Arc<Hub>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) directory: TempDir,
    pub(crate) basis: Basis,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) written: Mutex<u32>,
    pub(crate) proxy: String,
    pub(crate) proxied: Arc<AtomicUsize>,
}

impl StandIn {
    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.basis.url
    }

    /// A kubeconfig with the first user's token.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// A kubeconfig that logs in otherwise.
    pub fn kubeconfig_with(&self, login: &Login) -> io::Result<PathBuf> {
        let number = {
            let mut written = lock(&self.written);
            *written += 1;
            *written
        };
        let stem = format!("login-{number}");
        match login {
            Login::TokenOf(user) => {
                let basis = Basis {
                    url: self.basis.url.clone(),
                    namespace: self.basis.namespace.clone(),
                    authority: self.basis.authority.clone(),
                    token: token_of(user),
                    certificate: None,
                };
                basis.write(self.directory.path(), &stem, login)
            }
            _ => self.basis.write(self.directory.path(), &stem, login),
        }
    }

    /// How often the credential plugin of a kubeconfig has been called.
    pub fn plugin_calls(&self, kubeconfig: &Path) -> usize {
        let stem = kubeconfig.file_stem().unwrap_or_default().to_string_lossy();
        let calls = self
            .directory
            .path()
            .join(format!("{stem}-credentials.calls"));
        std::fs::read_to_string(calls).map_or(0, |text| text.lines().count())
    }

    /// Where a proxy listens that lets TLS through to this server, for [`Login::Proxy`].
    pub fn proxy(&self) -> &str {
        &self.proxy
    }

    /// How many connections have come through the proxy.
    pub fn proxied(&self) -> usize {
        self.proxied.load(Ordering::Relaxed)
    }

    /// A directory of its own, gone with the server.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// kubectl with this server, and with a home and caches of its own.
    pub fn kubectl(&self) -> std::process::Command {
        let mut command = std::process::Command::new("kubectl");
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.directory.path().join("cache"))
            .env("HOME", self.directory.path())
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy")
            .env_remove("HTTP_PROXY")
            .env_remove("http_proxy");
        command
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.hub.journal.requests).clone()
    }

    /// All execs so far that got as far as the upgrade.
    pub fn execs(&self) -> Vec<Exec> {
        lock(&self.hub.journal.execs).clone()
    }

    /// How many execs were open at once, at most.
    pub fn most_execs_at_once(&self) -> usize {
        self.hub.journal.most_at_once()
    }

    /// What went out on each connection, before encryption.
    pub fn sent(&self) -> Vec<Sent> {
        let sent: Vec<_> = lock(&self.hub.journal.sent).clone();
        sent.iter().map(|one| lock(one).clone()).collect()
    }

    /// Waits until something holds; false when it does not within that time.
    pub fn wait_for(&self, time: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let end = Instant::now() + time;
        while !holds(self) {
            if Instant::now() >= end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// Adds something that goes wrong from now on.
    pub fn fault(&self, fault: Fault) {
        lock(&self.hub.faults).push(fault);
    }

    /// Nothing goes wrong any more.
    pub fn clear_faults(&self) {
        lock(&self.hub.faults).clear();
    }

    /// Stores an object, or another version of it.
    pub fn put(&self, object: Value) {
        lock(&self.hub.world).put(object);
    }

    /// Something happens to a pod. The container counts for [`PodEvent::Restarted`] only. False when there is no such pod.
    pub fn happen(&self, namespace: &str, pod: &str, container: &str, event: PodEvent) -> bool {
        self.hub.happen(namespace, pod, container, event)
    }

    /// The pod is gone, and what ran in it.
    pub fn delete_pod(&self, namespace: &str, pod: &str) -> bool {
        self.happen(namespace, pod, "", PodEvent::Deleted)
    }

    /// The container starts anew: another ID, one more restart, and what ran in it is gone.
    pub fn restart(&self, namespace: &str, pod: &str, container: &str) -> bool {
        self.happen(namespace, pod, container, PodEvent::Restarted)
    }

    /// The first user's token is good for so long from now, then 401.
    pub fn expire_token(&self, time: Duration) {
        if let Some(token) = lock(&self.hub.tokens).get_mut(TOKEN) {
            token.expires = Some(Instant::now() + time);
        }
    }

    /// The first user's rights from now on.
    pub fn set_rights(&self, rights: Rights) {
        if let Some(user) = lock(&self.hub.users).first_mut() {
            user.rights = rights;
        }
    }

    /// An authority that the kubeconfig does not know, in PEM: for tests of trust.
    pub fn other_authority() -> io::Result<String> {
        Authority::new("another authority")
            .map(|authority| authority.pem())
            .map_err(wrong)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        self.hub.kill_all();
    }
}
