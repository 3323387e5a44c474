//! `--timeout` bounds the whole command, whichever of its steps does not come to its end.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::lab::{BEYOND, Lab, Run, of};
use crate::wheels::nixl;

/// A way into the lab whose calls with one of `words` in them never come to an end.
fn hanging(lab: &Lab, name: &str, words: &str) -> String {
    let path = lab.file(name);
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in\n    {words}) exec sleep 7654321 ;;\nesac\nexec {} \"$@\"\n",
        lab.kubectl()
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn sleepers() -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.starts_with(b"sleep\x007654321"))
        .count()
}

/// Runs within its time, and leaves nothing.
fn timed(lab: &Lab, seconds: u64, words: &[&str]) -> Run {
    let timeout = format!("{seconds}s");
    let mut all = vec!["--timeout", timeout.as_str(), "-o", "json"];
    all.extend(words);
    let begin = Instant::now();
    let run = lab.nixl(&all);
    let took = begin.elapsed();
    assert!(
        took < Duration::from_secs(seconds) + BEYOND,
        "{words:?} took {took:?}: {}",
        run.err
    );
    let until = Instant::now() + Duration::from_secs(5);
    while sleepers() > 0 {
        assert!(Instant::now() < until, "{words:?} left a program behind");
        std::thread::sleep(Duration::from_millis(50));
    }
    run
}

#[test]
fn every_step_that_hangs_is_bounded_by_the_time_of_all() {
    let Some(lab) = Lab::up(&[]) else { return };
    for (name, words, code) in [
        // The API server, the look, and what comes after the look, in workers without RDMA devices.
        ("api", "*", 5),
        ("exec", "exec*", 3),
        ("after", "*check-interconnect*|*/proc/net/dev*", 1),
    ] {
        let via = hanging(&lab, name, words);
        for command in [["--transfer", "--force"], ["--observe", "1s"]] {
            let mut all = vec!["--via", via.as_str()];
            all.extend(command);
            let run = timed(&lab, 8, &all);
            assert_eq!(
                run.code, code,
                "{name} {command:?} {}\n{}",
                run.out, run.err
            );
            let report = run.json();
            assert_ne!(report["readiness"], "trusted");
            if name == "after" && command[0] == "--observe" {
                let check = of(&report, "nixl/observed-traffic")[0];
                assert_eq!(check["status"], "skipped", "{check}");
                let words = check["detail"].as_str().unwrap();
                assert!(words.contains("in time"), "{words}");
            }
        }
    }
}

#[test]
fn the_look_and_the_transfer_share_their_time() {
    let Some(path) = nixl("1.5.1") else { return };
    let Some(lab) = Lab::up(&["--engine", "--env", &path]) else {
        return;
    };
    let run = timed(&lab, 12, &["--transfer", "--rate", "10M"]);
    let report = run.json();
    let came = of(&report, "nixl/transfer");
    assert_eq!(came[0]["reason"], "timed-out", "{}", came[0]);
    assert!(
        !report["transfers"][0]["legs"]
            .as_array()
            .unwrap()
            .is_empty(),
        "it began: {report}"
    );
    // What does not fit is told before anything is done.
    let before = lab.api.execs().len();
    let run = lab.nixl(&["--observe", "30s", "--timeout", "30s"]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(
        run.err.contains("does not fit into --timeout 30s"),
        "{}",
        run.err
    );
    assert_eq!(lab.api.execs().len(), before);
    // Where the look alone takes it all, no transfer begins.
    let run = timed(&lab, 4, &["--transfer"]);
    let came = run.json();
    let came = of(&came, "nixl/transfer");
    assert_eq!(came[0]["status"], "skipped", "{}", came[0]);
}
