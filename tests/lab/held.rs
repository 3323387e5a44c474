//! Isolated workers of this machine (the scripts beside this file), which end with whoever holds them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Whether workers can be isolated here; the reason is printed where not.
pub(crate) fn may_isolate() -> bool {
    let output = Command::new("unshare")
        .args([
            "--net", "--pid", "--ipc", "--uts", "--mount", "--fork", "ip", "link", "set", "lo",
            "up",
        ])
        .output();
    let works = output.as_ref().is_ok_and(|o| o.status.success());
    if !works {
        eprintln!("skipped: no namespaces for us here (root and unshare are needed): {output:?}");
    }
    works
}

/// Workers. They end when this is dropped, and also where the test that has it is killed: they end with a pipe.
pub(crate) struct Held {
    script: Child,
}

impl Held {
    /// Starts them with this script; what `folder` has afterwards is said there.
    pub(crate) fn up<'o>(
        name: &str,
        folder: &Path,
        options: impl IntoIterator<Item = &'o str>,
    ) -> Result<Self, String> {
        let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab");
        let mut script = Command::new(lab.join(name))
            .arg("hold")
            .arg(folder)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{name} does not start: {e}"))?;
        let mut line = String::new();
        if let Some(stdout) = script.stdout.take() {
            let _read = BufReader::new(stdout).read_line(&mut line);
        }
        if line.trim() == "ready" {
            return Ok(Self { script });
        }
        let mut why = String::new();
        if let Some(mut stderr) = script.stderr.take() {
            let _read = stderr.read_to_string(&mut why);
        }
        let _ended = script.wait();
        Err(why)
    }

    /// The script ends without a chance to do anything.
    #[allow(dead_code, reason = "some of the tests that have this file look at it")]
    pub(crate) fn kill(&mut self) {
        let _sent = self.script.kill();
        let _ended = self.script.wait();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ended = self.script.wait();
    }
}
