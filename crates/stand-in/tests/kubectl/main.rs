//! The real kubectl against the stand-in; skipped where there is none.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a broken test should stop, and a skipped one says so"
)]

mod basics;
mod exec;

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use stand_in::StandIn;

/// Says so where kubectl is missing.
fn have_kubectl() -> bool {
    let found = Command::new("kubectl")
        .args(["version", "--client"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: no kubectl here");
    }
    found
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
    raw: Vec<u8>,
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
        raw: output.stdout,
    }
}

fn kubectl(api: &StandIn, args: &[&str]) -> Ran {
    let output = api
        .kubectl()
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    ran(output)
}

fn kubectl_with(api: &StandIn, args: &[&str], input: &[u8]) -> Ran {
    let mut child = api
        .kubectl()
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = feeder.join();
    ran(output)
}
