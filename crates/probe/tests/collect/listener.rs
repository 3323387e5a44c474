//! The script over a connection: it comes on standard input, which stays open as long as somebody listens.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use probe::stream::Stream;

use crate::tree::{Tree, shells};

/// The script as it is run in a container: a group of its own, its text on standard input.
fn started(shell: &[String], tree: &Tree, tools: &str) -> Child {
    let mut child = Command::new(&shell[0])
        .args(&shell[1..])
        .args(["-s", "--", "watch=yes", tools])
        .arg(format!("root={}", tree.root().display()))
        .arg(format!("path={}", tree.tools().display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    stdin.write_all(probe::script::text().as_bytes()).unwrap();
    stdin.flush().unwrap();
    child
}

/// Processes of a group.
fn of_group(group: u32) -> Vec<String> {
    let group = group.to_string();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            stat.rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(2))
                == Some(&group)
        })
        .collect()
}

#[test]
fn it_ends_by_itself_while_somebody_listens() {
    for shell in shells() {
        let name = shell.join(" ");
        let tree = Tree::worker();
        let mut child = started(&shell, &tree, "tools=no");
        let mut out = Vec::new();
        // Standard input is still open: only the script's own end closes this.
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        assert!(child.stdin.is_some());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{name}");
        assert!(Stream::parse(&out).is_complete(), "{name}");
        assert_eq!(of_group(child.id()), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn it_ends_with_its_tools_when_nobody_listens_any_more() {
    for shell in shells() {
        let name = shell.join(" ");
        let tree = Tree::worker();
        let mark = tree.root().join("started");
        tree.tool(
            "nvidia-smi",
            &format!("echo $$ > {}\nexec sleep 3600", mark.display()),
        );
        let mut child = started(&shell, &tree, "tools=yes");
        let begin = Instant::now();
        let tool = loop {
            match fs::read_to_string(&mark) {
                Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
                _ => assert!(begin.elapsed() < Duration::from_secs(30), "{name}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let begin = Instant::now();
        drop(child.stdin.take());
        child.wait().unwrap();
        // The tool's own limit would be ten seconds.
        assert!(begin.elapsed() < Duration::from_secs(5), "{name}");
        let gone = || {
            of_group(child.id()).is_empty()
                && fs::read_to_string(format!("/proc/{tool}/cmdline"))
                    .is_ok_and(|line| line.contains("3600"))
                    .eq(&false)
        };
        while !gone() {
            assert!(begin.elapsed() < Duration::from_secs(5), "{name}: {tool}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
