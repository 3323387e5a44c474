//! Two programs on this machine, and a stand-in for NIXL.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command as Process;

use transfer::{
    Both, Command, Engine, Leg, Measurement, Memory, Operation, Plan, Side, local, measure,
};

/// What differs from one that works.
#[derive(Clone, Copy, Default)]
pub(crate) struct With<'a> {
    pub(crate) prefill: &'a [(&'a str, &'a str)],
    pub(crate) decode: &'a [(&'a str, &'a str)],
}

pub(crate) fn plan(memories: &[Memory]) -> Plan {
    let mut legs = Vec::new();
    for memory in memories {
        for (operation, initiator) in [
            (Operation::Read, Side::Decode),
            (Operation::Write, Side::Prefill),
        ] {
            legs.push(Leg {
                operation,
                initiator,
                local: *memory,
                remote: *memory,
                bytes: 200_000,
                repeats: 2,
                warm_up: 1,
            });
        }
    }
    Plan {
        legs,
        seconds: 30,
        start_seconds: 20,
        step_seconds: 3,
        bytes_per_second: None,
        gpu: 0,
    }
}

pub(crate) fn engine(settings: &[(&str, &str)]) -> Engine {
    let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/fake");
    let mut environment = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
        ("PYTHONPATH".to_owned(), fake.display().to_string()),
    ]);
    for (name, value) in settings {
        environment.insert((*name).to_owned(), (*value).to_owned());
    }
    Engine {
        environment,
        ..Engine::default()
    }
}

/// Whether Python is here, and processes may read each other's memory.
pub(crate) fn can() -> bool {
    let script = "import ctypes, os, sys\n\
        b = ctypes.create_string_buffer(8)\n\
        class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n\
        v = V(ctypes.addressof(b), 8)\n\
        p = os.getpid()\n\
        if os.fork() == 0: os._exit(0 if ctypes.CDLL(None).process_vm_readv(p, ctypes.byref(v), 1, ctypes.byref(v), 1, 0) == 8 else 1)\n\
        sys.exit(1 if os.wait()[1] else 0)";
    match Process::new("python3").args(["-c", script]).status() {
        Ok(status) if status.success() => true,
        Ok(_) => {
            eprintln!("skipped: processes may not read each other's memory here");
            false
        }
        Err(error) => {
            eprintln!("skipped: no python3: {error}");
            false
        }
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

pub(crate) fn measured(plan: &Plan, with: With<'_>) -> Measurement {
    let engines = Both {
        prefill: engine(with.prefill),
        decode: engine(with.decode),
    };
    run(async {
        let start = |engine: &Engine| {
            local::spawn(&Command::new(engine, plan.seconds).argv).expect("it starts")
        };
        let (_one, first) = start(&engines.prefill);
        let (_two, second) = start(&engines.decode);
        measure(plan, &engines, first, second, plan.end()).await
    })
}
