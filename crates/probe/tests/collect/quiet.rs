//! Changes nothing, and costs little.

use std::fs;
use std::process::Command;

use probe::local::{self, Options};
use probe::stream::Stream;

use crate::tree::{Tree, has, output, shells};

/// Runs the script under strace; the calls that were asked for, or `None` without strace.
fn traced(shell: &[String], calls: &str, arguments: &[String]) -> Option<Vec<String>> {
    if !has("strace") {
        eprintln!("skipped: no strace here");
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (code, _) = output(
        Command::new("strace")
            .args(["-f", "-qq", "-e", &format!("trace={calls}"), "-o"])
            .arg(&log)
            .args(shell)
            .args(["-c", probe::script::text(), "probe"])
            .args(arguments),
    )?;
    let text = fs::read_to_string(&log).unwrap_or_default();
    if code != 0 && text.is_empty() {
        eprintln!("skipped: strace may not be used here");
        return None;
    }
    Some(text.lines().map(str::to_owned).collect())
}

fn is_fork(line: &str) -> bool {
    (line.contains("clone") || line.contains("fork(")) && !line.contains("resumed")
}

#[test]
fn a_table_of_1024_gids_costs_no_fork() {
    let tree = Tree::worker();
    for shell in shells() {
        let arguments = Options {
            run_tools: false,
            ..tree.options()
        }
        .arguments();
        let Some(calls) = traced(&shell, "clone,clone3,fork,vfork", &arguments) else {
            return;
        };
        let forks = calls.iter().filter(|line| is_fork(line)).count();
        eprintln!("{}: {forks} forks without tools", shell.join(" "));
        assert!(forks <= 12, "{}: {calls:#?}", shell.join(" "));
    }
}

#[test]
fn few_forks_with_tools() {
    let tree = Tree::worker();
    for shell in shells() {
        let Some(calls) = traced(
            &shell,
            "clone,clone3,fork,vfork",
            &tree.options().arguments(),
        ) else {
            return;
        };
        let forks = calls.iter().filter(|line| is_fork(line)).count();
        eprintln!("{}: {forks} forks", shell.join(" "));
        assert!(forks <= 60, "{}: {forks}", shell.join(" "));
    }
}

#[test]
fn nothing_is_written() {
    let tree = Tree::worker();
    tree.tool("nvidia-smi", "echo 'GPU 0'");
    for shell in shells() {
        let calls = "openat,open,creat,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mknod,mknodat,chmod,fchmodat,truncate,ftruncate,mount,init_module,finit_module";
        let Some(calls) = traced(&shell, calls, &tree.options().arguments()) else {
            return;
        };
        for call in calls {
            let writes = if call.contains("open") {
                ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"]
                    .iter()
                    .any(|flag| call.contains(flag))
            } else {
                call.contains('(')
            };
            let allowed = call.contains("\"/dev/null\"")
                || call.contains("\"/dev/tty\"")
                // Nodes are opened to see whether they can be: only those that are there.
                || (call.contains("/dev/infiniband/") && !call.contains("ENOENT"));
            assert!(!writes || allowed, "{}: {call}", shell.join(" "));
        }
    }
}

#[test]
fn works_on_a_read_only_root_without_a_writable_tmp() {
    for shell in shells() {
        let script = format!(
            "mount --make-rprivate / && mount -o remount,bind,ro / && mount -t tmpfs -o ro none /tmp && ! : 2>/dev/null >/var/tmp/probe-test && exec {} -c \"$1\" probe tools=yes",
            shell.join(" ")
        );
        let Some((_, text)) = output(Command::new("unshare").args([
            "-m",
            "sh",
            "-c",
            &script,
            "sh",
            probe::script::text(),
        ])) else {
            eprintln!("skipped: no unshare here");
            return;
        };
        if !text.contains("%1\tbegin") {
            eprintln!("skipped: cannot make a read-only root here: {text}");
            return;
        }
        let stream = Stream::parse(text.as_bytes());
        assert_eq!(stream.gap(), None, "{}", shell.join(" "));
    }
}

#[test]
fn modules_stay_as_they_are() {
    let names = || -> Option<Vec<String>> {
        let text = fs::read_to_string("/proc/modules").ok()?;
        let mut names: Vec<_> = text
            .lines()
            .filter_map(|l| Some(l.split(' ').next()?.to_owned()))
            .collect();
        names.sort();
        Some(names)
    };
    let Some(before) = names() else {
        eprintln!("skipped: this kernel has no modules");
        return;
    };
    local::run(&Options::default()).unwrap();
    assert_eq!(names(), Some(before));
}

#[test]
fn the_root_comes_from_an_argument_only() {
    let tree = Tree::worker();
    let (_, text) = output(
        Command::new("sh")
            .args(["-c", probe::script::text(), "probe", "tools=no"])
            .env("R", tree.root())
            .env("root", tree.root())
            .env("CHECK_ROOT", tree.root())
            .env("LIBRARIES", "."),
    )
    .unwrap();
    assert!(text.starts_with("%1\tbegin\t1\t\t%"), "{}", &text[..60]);
    assert!(!text.contains("mlx5_0"));
}

#[test]
fn half_a_script_does_nothing() {
    let script = probe::script::text();
    let half = &script[..script.len() / 2];
    let (_, text) = output(Command::new("sh").args(["-c", half])).unwrap();
    assert!(!text.contains("%1\t"), "{text}");
    let body = script.trim_end().strip_suffix("main \"$@\"; exit").unwrap();
    let (code, text) = output(Command::new("sh").args(["-c", body])).unwrap();
    assert_eq!((code, text.as_str()), (0, ""));
}

#[test]
fn shellcheck_has_no_complaint() {
    if !has("shellcheck") {
        eprintln!("skipped: no shellcheck here");
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/probe.sh");
    let (code, text) = output(Command::new("shellcheck").args(["-s", "sh", source])).unwrap();
    assert_eq!(code, 0, "{text}");
}
