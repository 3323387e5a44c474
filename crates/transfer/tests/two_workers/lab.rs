//! Two isolated workers on this machine, with real NIXL.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use crate::held::{Held, may_isolate};
use crate::wheels::python_path;
use transfer::{
    Both, Command, Engine, Leg, Measurement, Memory, Operation, Plan, Side, local, measure,
};

/// Two workers, ended when dropped.
pub(crate) struct Lab {
    // Before their folder.
    held: Held,
    folder: tempfile::TempDir,
}

impl Lab {
    /// None, with the reason printed, where it cannot be.
    pub(crate) fn up(options: &[&str]) -> Option<Self> {
        if !may_isolate() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let held = Held::up("two-workers.sh", folder.path(), options.iter().copied())
            .expect("two workers");
        Some(Self { held, folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn kill_script(mut self) {
        self.held.kill();
    }

    /// Runs a command in a worker, as kubectl would.
    pub(crate) fn exec(&self, side: Side, words: &[&str]) -> String {
        let output = Process::new(self.folder.path().join("kubectl"))
            .args(["exec", "-i", "-n", "lab", pod(side), "-c", "worker", "--"])
            .args(words)
            .output()
            .expect("bash");
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn argv(&self, side: Side, command: &Command) -> Vec<String> {
        let kubectl = self.folder.path().join("kubectl").display().to_string();
        [
            &kubectl,
            "exec",
            "-i",
            "-n",
            "lab",
            pod(side),
            "-c",
            "worker",
            "--",
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(command.argv.iter().cloned())
        .collect()
    }

    /// Carries out a plan.
    pub(crate) fn measure(&self, plan: &Plan, engines: &Both<Engine>) -> Measurement {
        self.measure_as(plan, engines, Command::new)
    }

    pub(crate) fn measure_as(
        &self,
        plan: &Plan,
        engines: &Both<Engine>,
        command: fn(&Engine, u32) -> Command,
    ) -> Measurement {
        run(async {
            let start = |side: Side| {
                let command = command(engines.of(side), plan.seconds);
                local::spawn(&self.argv(side, &command)).expect("bash")
            };
            let (_prefill, first) = start(Side::Prefill);
            let (_decode, second) = start(Side::Decode);
            measure(plan, engines, first, second, plan.end()).await
        })
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

fn pod(side: Side) -> &'static str {
    match side {
        Side::Prefill => "prefill-0",
        Side::Decode => "decode-0",
    }
}

/// An engine of one version of NIXL, with settings. None, with the reason printed, where the version is not here.
pub(crate) fn engine(version: &str, settings: &[(&str, &str)]) -> Option<Engine> {
    let path = python_path(version)?;
    let mut environment = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("HOME".to_owned(), "/root".to_owned()),
        ("PYTHONPATH".to_owned(), path),
    ]);
    for (name, value) in settings {
        environment.insert((*name).to_owned(), (*value).to_owned());
    }
    Some(Engine {
        environment,
        ..Engine::default()
    })
}

/// One small READ by decode and WRITE by prefill.
pub(crate) fn small() -> Plan {
    let leg = |operation, initiator| Leg {
        operation,
        initiator,
        local: Memory::Host,
        remote: Memory::Host,
        bytes: 1 << 20,
        repeats: 2,
        warm_up: 1,
    };
    Plan {
        legs: vec![
            leg(Operation::Read, Side::Decode),
            leg(Operation::Write, Side::Prefill),
        ],
        seconds: 60,
        start_seconds: 30,
        step_seconds: 15,
        bytes_per_second: None,
        gpu: 0,
    }
}
