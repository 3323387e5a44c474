//! What becomes of a command whose client goes away.

use std::time::Duration;

use stand_in::{AfterLoss, Cluster, Pod, StandIn};

use crate::{block_on, open, send};

const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a script, takes its first output, and hangs up.
fn hang_up(api: &StandIn, pod: &str, script: &str) {
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("command", "sh"), ("command", "-c"), ("command", script)])
        .extend_pairs([("stdin", "true"), ("stdout", "true")])
        .finish();
    block_on(async {
        let (mut socket, _) = open(api, pod, "v5.channel.k8s.io", &query).await.unwrap();
        send(&mut socket, b"\x00go\n").await;
        let _ = futures_util::StreamExt::next(&mut socket).await;
        assert!(api.wait_for(PATIENCE, |api| {
            !api.execs().last().unwrap().stdout.is_empty()
        }));
    });
}

#[test]
fn the_command_gets_the_end_of_its_input_and_is_not_killed() {
    let api = Cluster::new().pod(Pod::plain("p")).start().unwrap();
    hang_up(&api, "p", "echo started; cat >/dev/null; sleep 0.3; exit 9");
    assert!(api.wait_for(PATIENCE, |api| api.execs()[0].exit.is_some()));
    let exec = &api.execs()[0];
    assert!(exec.lost);
    assert_eq!(exec.exit.unwrap().0, 9, "it ended by itself");
    assert!(exec.exit.unwrap().1 > exec.ended.unwrap());
}

#[test]
fn what_it_prints_then_is_read_or_blocks_or_breaks_the_pipe() {
    let much = "echo started; cat >/dev/null; yes | head -c 1000000; exit 5";
    for (after_loss, exit) in [
        (AfterLoss::Drain, Some(5)),
        (AfterLoss::Close, Some(5)),
        (AfterLoss::Block, None),
    ] {
        let api = Cluster::new()
            .pod(Pod::plain("p").after_loss(after_loss))
            .start()
            .unwrap();
        hang_up(&api, "p", much);
        let time = if exit.is_some() {
            PATIENCE
        } else {
            Duration::from_secs(1)
        };
        api.wait_for(time, |api| api.execs()[0].exit.is_some());
        assert_eq!(
            api.execs()[0].exit.map(|(code, _)| code),
            exit,
            "{after_loss:?}"
        );
    }
    let api = Cluster::new()
        .pod(Pod::plain("p").after_loss(AfterLoss::Close))
        .start()
        .unwrap();
    hang_up(
        &api,
        "p",
        "echo started; cat >/dev/null; sleep 0.2; exec yes",
    );
    assert!(api.wait_for(PATIENCE, |api| api.execs()[0].exit.is_some()));
    assert_eq!(api.execs()[0].exit.unwrap().0, 128 + 13, "SIGPIPE");
}

#[test]
fn nothing_is_left_when_the_server_ends() {
    let api = Cluster::new().pod(Pod::plain("p")).start().unwrap();
    hang_up(&api, "p", "echo started; sleep 300");
    let pid = api.execs()[0].pid.unwrap();
    let there = move || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
    };
    assert!(there());
    drop(api);
    for _ in 0..500 {
        if !there() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{pid} still runs");
}
