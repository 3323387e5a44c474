//! Workers of tests do not outlive a test that is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::lab::Lab;

const HELD: &str = "held ";

#[test]
#[ignore = "the test below runs it, and kills it"]
fn holds_workers_until_it_is_killed() {
    let Some(lab) = Lab::up(&[]) else { return };
    // On a line of its own, whatever the test's runner prints.
    let line = format!("\n{HELD}{}\n", lab.folder().display());
    let _told = std::io::stdout().write_all(line.as_bytes());
    std::thread::sleep(Duration::from_mins(2));
}

#[test]
fn workers_end_with_a_test_that_is_killed() {
    let mut test = Command::new(std::env::current_exe().expect("this test's program"))
        .args(["--exact", "killed::holds_workers_until_it_is_killed"])
        .args(["--ignored", "--nocapture"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test's program");
    let stdout = BufReader::new(test.stdout.take().expect("a pipe"));
    let folder = stdout
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix(HELD).map(PathBuf::from));
    let Some(folder) = folder else {
        // It could have no workers, and has said why.
        assert!(test.wait().expect("its end").success());
        return;
    };
    let workers = processes(&folder);
    assert_eq!(workers.len(), 4, "{workers:?}");
    assert!(workers.iter().all(runs), "{workers:?}");
    test.kill().expect("SIGKILL");
    test.wait().expect("its end");
    gone(&workers);
    std::fs::remove_dir_all(&folder).expect("the folder that it left");
}

#[test]
fn workers_end_with_a_script_that_is_killed() {
    let Some(lab) = Lab::up(&[]) else { return };
    let workers = processes(lab.folder());
    assert!(workers.iter().all(runs), "{workers:?}");
    lab.kill_script();
    gone(&workers);
}

/// The first process of each worker, and what holds it.
fn processes(folder: &Path) -> Vec<String> {
    let of = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is there");
    [
        "prefill-0.pid",
        "decode-0.pid",
        "prefill-0.holder",
        "decode-0.holder",
    ]
    .iter()
    .map(|name| of(name).trim().to_owned())
    .collect()
}

/// A process that is dead and not yet looked after runs no more.
fn runs(pid: &String) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(')')
            .next()
            .is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
    })
}

fn gone(workers: &[String]) {
    let until = Instant::now() + Duration::from_secs(10);
    while workers.iter().any(runs) {
        assert!(Instant::now() < until, "{workers:?} run on");
        std::thread::sleep(Duration::from_millis(20));
    }
}
