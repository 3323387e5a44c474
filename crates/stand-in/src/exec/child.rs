//! A command as a process of this machine, and what becomes of it when its client is gone.

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};

use super::outlet::Outlet;
use super::session::{PIECE, STDERR, STDOUT};
use crate::behaviour::{AfterLoss, Behaviour};
use crate::hub::Hub;
use crate::pod::Container;
use crate::record::lock;

/// What is to be run.
pub(super) struct Plan {
    command: Command,
    after_loss: AfterLoss,
    stdin: bool,
}

impl Plan {
    pub(super) fn new(
        hub: &Hub,
        container: Option<&Container>,
        argv: &[String],
        stdin: bool,
    ) -> Self {
        let mut words: Vec<String> = Vec::new();
        let mut directory = hub.scratch.as_path();
        match container.map(|c| &c.behaviour) {
            Some(Behaviour::Process(before)) => {
                words.extend(before.iter().cloned());
                words.extend(argv.iter().cloned());
            }
            Some(Behaviour::Tree(root)) => {
                directory = root;
                words.extend(with_root(argv, root));
            }
            _ => words.extend(argv.iter().cloned()),
        }
        let mut words = words.into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command
            .args(words)
            .current_dir(directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .process_group(0)
            .stdin(if stdin { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        for (name, value) in container.into_iter().flat_map(|c| &c.environment) {
            command.env(name, value);
        }
        Self {
            command,
            after_loss: container.map(|c| c.after_loss).unwrap_or_default(),
            stdin,
        }
    }
}

/// Adds `root=DIR path=DIR/bin` to a shell that is given a script.
fn with_root(argv: &[String], root: &Path) -> Vec<String> {
    let mut out = argv.to_vec();
    let shell = argv.first().and_then(|program| program.rsplit('/').next());
    let is_shell = matches!(shell, Some("sh" | "bash" | "dash" | "ash" | "busybox"));
    let script = argv.iter().position(|arg| {
        arg.strip_prefix('-').is_some_and(|flags| {
            !flags.starts_with('-') && (flags.contains('s') || flags.contains('c'))
        })
    });
    if let (true, Some(at)) = (is_shell, script) {
        let takes_text = argv.get(at).is_some_and(|flags| flags.contains('c'));
        if takes_text && argv.len() == at + 2 {
            // The argument after the text is the script's own name.
            out.push("sh".to_owned());
        }
        out.push(format!("root={}", root.display()));
        out.push(format!("path={}", root.join("bin").display()));
    }
    out
}

/// A command that runs.
pub(super) struct Running {
    pub(super) pid: u32,
    /// Its exit code, when it has ended and all output has been read.
    pub(super) over: oneshot::Receiver<i32>,
}

pub(super) fn start(
    hub: &Arc<Hub>,
    number: usize,
    mut plan: Plan,
    outlet: Outlet,
    input: mpsc::UnboundedReceiver<Bytes>,
) -> Result<Running, String> {
    let mut child = plan.command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "executable file not found in $PATH".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    })?;
    let pid = child.id().unwrap_or_default();
    lock(&hub.children).insert(pid);
    hub.journal.amend_exec(number, |exec| exec.pid = Some(pid));
    if let (true, Some(stdin)) = (plan.stdin, child.stdin.take()) {
        tokio::spawn(feed(stdin, input));
    }
    let mut pumps = Vec::new();
    let mut gone = outlet.lost.clone();
    if let Some(stdout) = child.stdout.take() {
        pumps.push(tokio::spawn(pump(
            stdout,
            STDOUT,
            outlet.clone(),
            plan.after_loss,
        )));
    }
    if let Some(stderr) = child.stderr.take() {
        pumps.push(tokio::spawn(pump(stderr, STDERR, outlet, plan.after_loss)));
    }
    let (done, over) = oneshot::channel();
    let hub = Arc::clone(hub);
    let blocks = plan.after_loss == AfterLoss::Block;
    tokio::spawn(async move {
        let code = child.wait().await.map_or(1, exit_code);
        let now = hub.journal.now();
        hub.journal
            .amend_exec(number, |exec| exec.exit = Some((code, now)));
        for mut pump in pumps {
            tokio::select! {
                _ = &mut pump => {}
                _ = gone.wait_for(|lost| *lost), if blocks => pump.abort(),
            }
        }
        lock(&hub.children).remove(&pid);
        let _ = done.send(code);
    });
    Ok(Running { pid, over })
}

fn exit_code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    }
}

async fn feed(mut stdin: ChildStdin, mut input: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(piece) = input.recv().await {
        if stdin.write_all(&piece).await.is_err() {
            return;
        }
    }
    // Dropping it is the end of input.
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    channel: u8,
    mut outlet: Outlet,
    after_loss: AfterLoss,
) {
    let mut buffer = vec![0; PIECE];
    let mut gone = outlet.lost.clone();
    let mut here = true;
    loop {
        let read = if here && after_loss != AfterLoss::Drain {
            tokio::select! {
                read = from.read(&mut buffer) => read,
                _ = gone.wait_for(|lost| *lost) => {
                    here = false;
                    Ok(0)
                }
            }
        } else {
            from.read(&mut buffer).await
        };
        if !here {
            match after_loss {
                // The pipe stays open until the server ends or the child does.
                AfterLoss::Block => std::future::pending::<()>().await,
                _ => return,
            }
        }
        let Ok(count @ 1..) = read else { return };
        let piece = Bytes::copy_from_slice(buffer.get(..count).unwrap_or_default());
        // Where the client is gone the piece is thrown away.
        let _ = outlet.emit(channel, piece).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(argv: &[&str]) -> Vec<String> {
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        with_root(&argv, Path::new("/t"))
    }

    #[test]
    fn a_shell_with_a_script_gets_the_tree_and_nothing_else_does() {
        assert_eq!(
            given(&["sh", "-s", "--", "limit=5"]),
            ["sh", "-s", "--", "limit=5", "root=/t", "path=/t/bin"]
        );
        assert_eq!(
            given(&["/bin/sh", "-c", "echo"]),
            ["/bin/sh", "-c", "echo", "sh", "root=/t", "path=/t/bin"]
        );
        assert_eq!(
            given(&["sh", "-c", "echo", "me"]),
            ["sh", "-c", "echo", "me", "root=/t", "path=/t/bin"]
        );
        assert_eq!(given(&["cat", "-s"]), ["cat", "-s"]);
        assert_eq!(given(&["sh", "file"]), ["sh", "file"]);
    }
}
