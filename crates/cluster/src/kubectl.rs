//! The Kubernetes API through kubectl, or a program that takes its arguments: for access that only that program has.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use model::pod::{Fault, FaultKind};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::access::Access;
use crate::api_status::Asked;
use crate::door::{self, Cluster, Ended, Exec, Keep, Kept, Refusal, Session, Waiting};
use crate::kubectl_errors;
use crate::programs::Running;

/// What is read of a program's complaints.
const MAX_ERRORS: usize = 64 * 1024;

pub(crate) struct Kubectl {
    program: Vec<String>,
    options: Vec<String>,
    namespace: String,
    patience: Duration,
}

impl Kubectl {
    pub(crate) async fn open(program: &[String], access: &Access) -> Result<Self, Fault> {
        let mut options = Vec::new();
        if let Some(path) = &access.kubeconfig {
            options.push(format!("--kubeconfig={}", path.display()));
        }
        if let Some(context) = &access.context {
            options.push(format!("--context={context}"));
        }
        if let Some(user) = &access.as_user {
            options.push(format!("--as={user}"));
        }
        options.extend(
            access
                .as_groups
                .iter()
                .map(|group| format!("--as-group={group}")),
        );
        let mut opened = Self {
            program: program.to_vec(),
            options,
            namespace: access.namespace.clone().unwrap_or_default(),
            patience: access.patience(),
        };
        if opened.namespace.is_empty() {
            opened.namespace = opened.configured_namespace().await?;
        }
        Ok(opened)
    }

    /// The namespace of the context. A program that has no `config view` is asked for the usual one.
    async fn configured_namespace(&self) -> Result<String, Fault> {
        // Extensions of a context may have fields of that name too.
        let words = [
            "config",
            "view",
            "--minify",
            "-o",
            "jsonpath={.contexts[0].context.namespace}",
        ];
        match self.output(&words, None).await {
            Ok(name) if !name.trim().is_empty() => Ok(name.trim().to_owned()),
            Err(refusal)
                if matches!(
                    refusal.fault.kind,
                    FaultKind::NoKubectl | FaultKind::UnknownContext
                ) =>
            {
                Err(refusal.fault)
            }
            // Without a context kubectl takes the service account of its pod, and with it that one's namespace.
            Err(_) => Ok(own_namespace().unwrap_or_else(|| "default".to_owned())),
            Ok(_) => Ok("default".to_owned()),
        }
    }

    /// What it is called, without options, whose values may be credentials.
    fn name(&self) -> String {
        let words = self
            .program
            .iter()
            .take_while(|word| !word.starts_with('-'));
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    fn command(&self, words: &[&str]) -> Result<Command, Refusal> {
        let (program, first) = self
            .program
            .split_first()
            .ok_or_else(|| Refusal::new(FaultKind::NoKubectl, "no program was named"))?;
        let mut command = Command::new(program);
        command
            .args(first)
            .args(&self.options)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Ctrl-C is for this program, which ends them in order.
        #[cfg(unix)]
        command.process_group(0);
        Ok(command)
    }

    fn spawn(&self, command: &mut Command) -> Result<Running, Refusal> {
        match command.spawn() {
            Ok(child) => Ok(Running::new(child)),
            Err(error) => {
                let name = self.name();
                let why = if error.kind() == io::ErrorKind::NotFound {
                    "there is no such program in $PATH".to_owned()
                } else {
                    error.to_string()
                };
                Err(Refusal::new(FaultKind::NoKubectl, format!("{name}: {why}")))
            }
        }
    }

    /// What the program prints, where it succeeds.
    async fn output(&self, words: &[&str], input: Option<String>) -> Result<String, Refusal> {
        let bytes = self
            .bytes(words, input, Keep::First(door::MAX_ANSWER + 1), Asked::Read)
            .await?;
        if bytes.len() > door::MAX_ANSWER {
            return Err(door::too_long());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The same, one end of it, as bytes.
    async fn bytes(
        &self,
        words: &[&str],
        input: Option<String>,
        keep: Keep,
        asked: Asked,
    ) -> Result<Vec<u8>, Refusal> {
        let mut command = self.command(words)?;
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let mut running = self.spawn(&mut command)?;
        let work = async {
            let child = &mut running.child;
            if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
                let _it_may_not_read = stdin.write_all(input.as_bytes()).await;
            }
            // What it complains of comes last; all of it is read, or it would wait for that.
            let mut complaints = Kept::new(Keep::Last(MAX_ERRORS));
            let mut kept = Kept::new(keep);
            let mut enough = false;
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let read_out = async {
                let Some(mut stdout) = stdout else { return };
                let mut buffer = vec![0; 64 * 1024];
                while let Ok(count @ 1..) = stdout.read(&mut buffer).await {
                    if !kept.take(buffer.get(..count).unwrap_or_default()) {
                        enough = true;
                        return;
                    }
                }
            };
            let read_err = async {
                let Some(mut stderr) = stderr else { return };
                let mut buffer = vec![0; 8 * 1024];
                while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                    complaints.take(buffer.get(..count).unwrap_or_default());
                }
            };
            tokio::join!(read_out, read_err);
            let status = if enough {
                None
            } else {
                Some(child.wait().await)
            };
            (status, kept.end(), complaints.end())
        };
        let Ok((status, out, err)) = tokio::time::timeout(self.patience, work).await else {
            return Err(Refusal::new(
                FaultKind::TimedOut,
                format!(
                    "{} did not answer in {} s",
                    self.name(),
                    self.patience.as_secs()
                ),
            ));
        };
        let errors = String::from_utf8_lossy(&err);
        let Some(status) = status else {
            // It is ended when it is dropped.
            return Ok(out);
        };
        match status {
            Ok(status) if status.success() => Ok(out),
            Ok(status) => {
                // The server's own answer is printed where it is an object.
                Err(kubectl_errors::refusal(
                    &errors,
                    status.code().unwrap_or(-1),
                    asked,
                ))
            }
            Err(error) => Err(Refusal::new(FaultKind::KubectlFailed, error.to_string())),
        }
    }
}

/// The object in what a program has printed: a wrapper may greet before it, or take its leave.
fn object(printed: String) -> String {
    if printed.starts_with('{') && printed.trim_end().ends_with('}') {
        return printed;
    }
    let begin = match printed.find("\n{") {
        _ if printed.starts_with('{') => 0,
        Some(at) => at.saturating_add(1),
        None => return printed,
    };
    let rest = printed.get(begin..).unwrap_or_default();
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(object)) => object.get().to_owned(),
        _ => printed,
    }
}

/// The namespace of the pod that this runs in (client-go tools/clientcmd, client_config.go `inClusterClientConfig`).
fn own_namespace() -> Option<String> {
    std::env::var_os("KUBERNETES_SERVICE_HOST")?;
    let name = std::env::var("POD_NAMESPACE")
        .ok()
        .filter(|name| !name.is_empty())
        .or_else(|| {
            std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok()
        })?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

impl Cluster for Kubectl {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn get<'a>(&'a self, path: &'a str) -> Waiting<'a, Result<String, Refusal>> {
        Box::pin(async move {
            let printed = self.output(&["get", "--raw", path], None).await?;
            Ok(object(printed))
        })
    }

    fn ask<'a>(&'a self, path: &'a str, body: String) -> Waiting<'a, Result<String, Refusal>> {
        Box::pin(async move {
            let printed = self
                .output(&["create", "--raw", path, "-f", "-"], Some(body))
                .await?;
            Ok(object(printed))
        })
    }

    fn text<'a>(&'a self, path: &'a str, keep: Keep) -> Waiting<'a, Result<Vec<u8>, Refusal>> {
        Box::pin(async move {
            self.bytes(&["get", "--raw", path], None, keep, Asked::Log)
                .await
        })
    }

    fn exec<'a>(&'a self, exec: &'a Exec) -> Waiting<'a, Result<Session, Refusal>> {
        Box::pin(async move {
            let mut words = vec![
                "exec",
                "--stdin",
                "--namespace",
                &exec.namespace,
                &exec.pod,
                "--container",
                &exec.container,
                "--",
            ];
            words.extend(exec.command.iter().map(String::as_str));
            let mut command = self.command(&words)?;
            command.stdin(Stdio::piped());
            let mut running = self.spawn(&mut command)?;
            let child = &mut running.child;
            let (Some(stdin), Some(stdout), Some(stderr)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Err(Refusal::new(
                    FaultKind::KubectlFailed,
                    "its streams are not there",
                ));
            };
            Ok(Session {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
                end: Box::pin(async move {
                    match running.child.wait().await {
                        Ok(status) if status.success() => Ended::Code(0),
                        Ok(status) => Ended::SeeErrors(status.code().unwrap_or(-1)),
                        Err(error) => {
                            Ended::Fault(Fault::new(FaultKind::KubectlFailed, error.to_string()))
                        }
                    }
                }),
            })
        })
    }
}
