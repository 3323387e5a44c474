//! Kubeconfigs: how a client gets in, or does not.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use serde_json::{Value, json};

/// How a kubeconfig logs in. kubectl sends credentials over TLS only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// A bearer token of the first user.
    Token,
    /// A bearer token of this user.
    TokenOf(String),
    /// A token that nobody knows any more.
    ExpiredToken,
    /// A client certificate of the first user; with TLS only.
    ClientCertificate,
    /// An exec credential plugin that prints the token.
    Plugin,
    /// An exec credential plugin that fails, with a message on standard error.
    PluginFails,
    /// An exec credential plugin that does not come back.
    PluginHangs,
    /// An exec credential plugin that is not installed.
    PluginMissing,
    /// No credentials.
    Nobody,
    /// The current context is one that is not in the file.
    UnknownContext,
    /// A token; the file names no authority, so that the certificate is not trusted.
    UnknownAuthority,
    /// A token; the certificate is not looked at.
    Insecure,
    /// A token; through this proxy.
    Proxy(String),
    /// A token; nobody listens at the server's address.
    NobodyThere,
}

/// What all kubeconfigs of a server share.
pub(crate) struct Basis {
    pub(crate) url: String,
    pub(crate) namespace: String,
    pub(crate) authority: Option<String>,
    pub(crate) token: String,
    pub(crate) certificate: Option<(String, String)>,
}

impl Basis {
    /// Writes the file; what belongs to it goes beside it.
    pub(crate) fn write(&self, directory: &Path, stem: &str, login: &Login) -> io::Result<PathBuf> {
        let mut cluster = json!({ "server": self.url });
        let mut set = |key: &str, value: Value| {
            if let Some(map) = cluster.as_object_mut() {
                map.insert(key.to_owned(), value);
            }
        };
        match (login, &self.authority) {
            (Login::UnknownAuthority, _) | (_, None) => {}
            (Login::Insecure, _) => set("insecure-skip-tls-verify", true.into()),
            (_, Some(pem)) => {
                set(
                    "certificate-authority-data",
                    BASE64.encode(pem.as_bytes()).into(),
                );
            }
        }
        match login {
            Login::Proxy(url) => set("proxy-url", url.as_str().into()),
            // Port 1 is reserved (tcpmux), and nothing listens there on a test machine.
            Login::NobodyThere => {
                let scheme = self.url.split(':').next().unwrap_or("http");
                set("server", format!("{scheme}://127.0.0.1:1").into());
            }
            _ => {}
        }
        let token = |token: &str| json!({ "token": token });
        let user = match login {
            Login::ExpiredToken => token("expired-token"),
            Login::ClientCertificate => match &self.certificate {
                Some((certificate, key)) => json!({
                    "client-certificate-data": BASE64.encode(certificate.as_bytes()),
                    "client-key-data": BASE64.encode(key.as_bytes()),
                }),
                None => json!({}),
            },
            Login::Plugin => {
                let credential = json!({
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "kind": "ExecCredential",
                    "status": { "token": self.token },
                });
                plugin(
                    directory,
                    stem,
                    &format!("cat <<'END'\n{credential}\nEND\n"),
                )?
            }
            Login::PluginFails => plugin(
                directory,
                stem,
                "echo 'ERROR: login required: run example login' >&2\nexit 1\n",
            )?,
            Login::PluginHangs => plugin(directory, stem, "exec sleep 600\n")?,
            Login::PluginMissing => exec_entry("no-such-credential-plugin"),
            Login::Nobody => json!({}),
            _ => token(&self.token),
        };
        let context = match login {
            Login::UnknownContext => "not-here",
            _ => "stand-in",
        };
        let file = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "stand-in", "cluster": cluster }],
            "users": [{ "name": "stand-in", "user": user }],
            "contexts": [{
                "name": "stand-in",
                "context": { "cluster": "stand-in", "user": "stand-in", "namespace": self.namespace },
            }],
            "current-context": context,
        });
        let path = directory.join(format!("{stem}.kubeconfig"));
        fs::write(&path, format!("{file:#}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok(path)
    }
}

fn plugin(directory: &Path, stem: &str, script: &str) -> io::Result<Value> {
    let path = directory.join(format!("{stem}-credentials"));
    // Each call leaves a line, so that calls can be counted.
    let calls = directory.join(format!("{stem}-credentials.calls"));
    fs::write(
        &path,
        format!("#!/bin/sh\necho called >>'{}'\n{script}", calls.display()),
    )?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    Ok(exec_entry(&path.to_string_lossy()))
}

fn exec_entry(command: &str) -> Value {
    json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": command,
        "args": [],
        "interactiveMode": "Never",
        "installHint": "install the example credential plugin",
    } })
}
