//! Tools that hang, flood or leave something behind.

use std::fs;
use std::time::{Duration, Instant};

use model::observation::Unanswered;
use probe::local::{self, Options};
use probe::stream::{Gap, Kind, Stream};

use crate::tree::{Tree, has, shells};

fn exit_of<'s>(stream: &'s Stream, tool: &str) -> Option<&'s str> {
    stream
        .records
        .iter()
        .find(|r| r.kind == Kind::Exit && r.key == tool)
        .map(|r| r.text.as_str())
}

/// Processes whose command line holds a word.
fn running(word: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| String::from_utf8_lossy(line).contains(word))
        .count()
}

/// A length of sleep that nobody else uses.
fn own_sleep(base: u32) -> String {
    (base * 100_000 + std::process::id() % 100_000).to_string()
}

#[test]
fn a_tool_that_hangs_is_ended_with_its_children() {
    for (at, shell) in (10..).zip(shells()) {
        let name = shell.join(" ");
        let tree = Tree::worker();
        let sleep = own_sleep(at);
        tree.tool(
            "nvidia-smi",
            &format!("echo started\nsleep {sleep}\necho never"),
        );
        let begin = Instant::now();
        let options = Options {
            shell,
            tool_limit: 1,
            ..tree.options()
        };
        let stream = local::run(&options).unwrap();
        assert!(
            begin.elapsed() < Duration::from_secs(15),
            "{name}: {:?}",
            begin.elapsed()
        );
        assert_eq!(stream.gap(), None, "{name}");
        assert_eq!(
            exit_of(&stream, "tool:nvidia-smi-q"),
            Some("timeout"),
            "{name}"
        );
        assert_eq!(running(&sleep), 0, "{name}");
    }
}

#[test]
fn a_tool_that_ignores_signals_is_ended() {
    for (at, shell) in (20..).zip(shells()) {
        let name = shell.join(" ");
        let tree = Tree::worker();
        let sleep = own_sleep(at);
        tree.tool(
            "nvidia-smi",
            &format!("trap '' TERM PIPE HUP INT\nsleep {sleep} & sleep {sleep}; sleep {sleep}"),
        );
        let begin = Instant::now();
        let stream = local::run(&Options {
            shell,
            tool_limit: 1,
            ..tree.options()
        })
        .unwrap();
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{name}: {:?}",
            begin.elapsed()
        );
        assert!(stream.is_complete(), "{name}");
        assert_eq!(running(&sleep), 0, "{name}");
    }
}

#[test]
fn a_tool_that_floods_is_cut() {
    for shell in shells() {
        let name = shell.join(" ");
        let tree = Tree::worker();
        tree.tool(
            "nvidia-smi",
            "while :; do echo 'GPU 00000000:18:00.0 and much more text that never ends'; done",
        );
        let begin = Instant::now();
        let stream = local::run(&Options {
            shell,
            tool_limit: 2,
            ..tree.options()
        })
        .unwrap();
        assert!(
            begin.elapsed() < Duration::from_secs(20),
            "{name}: {:?}",
            begin.elapsed()
        );
        assert!(stream.is_complete(), "{name}");
        assert!(
            stream
                .records
                .iter()
                .any(|r| r.kind == Kind::Cut && r.key == "tool:nvidia-smi-q"),
            "{name}"
        );
        let bytes: usize = stream
            .records
            .iter()
            .filter(|r| r.kind == Kind::Tool)
            .map(|r| r.text.len())
            .sum();
        assert!(bytes < 4 * 262_144, "{name}: {bytes}");
    }
}

#[test]
fn a_flood_without_a_newline_or_with_zero_bytes_is_cut() {
    for command in ["cat /dev/zero", "tr '\\000' x </dev/zero"] {
        for shell in shells() {
            let name = format!("{} {command}", shell.join(" "));
            let tree = Tree::worker();
            tree.tool("nvidia-smi", command);
            let stream = local::run(&Options {
                shell,
                tool_limit: 2,
                ..tree.options()
            })
            .unwrap();
            assert!(stream.is_complete(), "{name}");
        }
    }
}

#[test]
fn without_timeout_a_watchdog_of_the_shell_does_the_same() {
    // A directory with everything that the script may use, except `timeout`.
    let tools = tempfile::tempdir().unwrap();
    for name in ["head", "tr", "grep", "ls", "sleep", "setsid", "sh", "cat"] {
        for place in ["/usr/bin", "/bin"] {
            let path = format!("{place}/{name}");
            if fs::exists(&path).unwrap() {
                let _ = std::os::unix::fs::symlink(path, tools.path().join(name));
            }
        }
    }
    let script = probe::script::text()
        // The script adds the usual places to the path itself.
        .replace(
            "PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin",
            "PATH=$PATH; : ${PATH:-/usr/bin:/bin}:/usr/local/sbin",
        );
    assert!(script.contains("PATH=$PATH; :"));
    for (at, shell) in (30..).zip(shells()) {
        let name = shell.join(" ");
        let tree = Tree::worker();
        let sleep = own_sleep(at);
        tree.tool(
            "nvidia-smi",
            &format!("[ \"$1\" = -q ] && sleep {sleep}; echo quick"),
        );
        let shell_path = if shell[0] == "busybox" {
            "/bin/busybox".to_owned()
        } else {
            format!("/bin/{}", shell[0])
        };
        let out = std::process::Command::new(&shell_path)
            .args(&shell[1..])
            .args(["-c", &script, "probe", "tool_limit=2"])
            .args([
                format!("root={}", tree.root().display()),
                format!("path={}", tree.tools().display()),
            ])
            .env("PATH", tools.path())
            .output()
            .unwrap();
        let stream = Stream::parse(&out.stdout);
        assert_eq!(stream.gap(), None, "{name}");
        // busybox runs its own applets, `timeout` among them.
        assert_eq!(
            exit_of(&stream, "tool:nvidia-smi-q"),
            Some("timeout"),
            "{name}"
        );
        assert_eq!(
            exit_of(&stream, "tool:nvidia-smi-nvlink"),
            Some("0"),
            "{name}"
        );
        assert_eq!(running(&sleep), 0, "{name}");
    }
}

#[test]
fn no_time_left_is_said() {
    let tree = Tree::worker();
    tree.tool("nvidia-smi", "echo here");
    let stream = local::run(&Options {
        limit: 0,
        ..tree.options()
    })
    .unwrap();
    assert!(stream.is_complete());
    assert!(
        stream.records.iter().any(|r| r.kind == Kind::None
            && r.key == "tool:nvidia-smi-q"
            && r.text == "no time left")
    );
    let gaps = probe::observe::tools_without_output(&stream);
    assert!(
        gaps.contains(&("nvidia-smi -q".into(), Unanswered::NoTimeLeft)),
        "{gaps:?}"
    );
}

#[test]
fn a_read_that_hangs_leaves_the_rest_and_its_name() {
    if !has("mkfifo") {
        eprintln!("skipped: no mkfifo here");
        return;
    }
    let tree = Tree::worker();
    // Stands for a device whose firmware does not answer: the open never returns.
    let state = tree
        .root()
        .join("sys/class/infiniband/mlx5_1/ports/1/state");
    fs::remove_file(&state).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&state)
            .status()
            .unwrap()
            .success()
    );
    let begin = Instant::now();
    let stream = local::run(&Options {
        limit: 1,
        tool_limit: 1,
        ..tree.options()
    })
    .unwrap();
    assert!(
        begin.elapsed() < Duration::from_secs(10),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(stream.gap(), Some(Gap::Stopped("rdma:mlx5_1".into())));
    let seen = crate::shells::observe(&stream);
    assert!(seen.rdma.devices["mlx5_0"].ports[&1].state.is_seen());
    assert!(
        seen.process.processes.contains_key(&42),
        "what cannot hang comes first"
    );
    let missing = seen.rdma.devices["mlx5_1"].ports[&1]
        .rate_mbps
        .get()
        .unwrap_err();
    assert!(missing.why.contains("mlx5_1"), "{missing:?}");
}

#[test]
fn tools_that_would_load_modules_are_not_run() {
    let tree = Tree::new();
    let mark = tree.root().join("called");
    for tool in ["rdma", "ibv_devinfo", "fi_info", "nvidia-smi"] {
        tree.tool(tool, &format!(": >{}", mark.display()));
    }
    tree.tool(
        "ucx_info",
        &format!("[ \"$1\" = -v ] || : >{}", mark.display()),
    );
    let stream = local::run(&tree.options()).unwrap();
    assert!(stream.is_complete());
    assert!(!mark.exists());
    let gaps = probe::observe::tools_without_output(&stream);
    assert!(
        gaps.contains(&(
            "ibv_devinfo".into(),
            Unanswered::LeftOut("would load ib_core".to_owned())
        )),
        "{gaps:?}"
    );
}
