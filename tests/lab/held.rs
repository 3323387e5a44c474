//! Two isolated workers of this machine (tests/lab/two-workers.sh), which end with whoever holds them.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Two workers. They end when this is dropped, and also where the test that has it is killed: they end with a pipe.
pub(crate) struct Held {
    script: Child,
}

impl Held {
    /// Starts them; what `folder` has afterwards is said in the script.
    pub(crate) fn up<'o>(
        folder: &Path,
        options: impl IntoIterator<Item = &'o str>,
    ) -> Result<Self, String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lab/two-workers.sh");
        let mut script = Command::new(script)
            .arg("hold")
            .arg(folder)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("two-workers.sh does not start: {e}"))?;
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
