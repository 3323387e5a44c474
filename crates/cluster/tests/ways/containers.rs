//! Looking into one container.

use std::time::{Duration, Instant};

use cluster::{Limits, Stop, Via, look_into};
use model::pod::FaultKind;
use stand_in::{Behaviour, Cluster, Cut, Fault as Wrong, Pod, PodEvent, Recorded, State};

use crate::support::{access, look, open, pick, run, tree, ways};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn one_exec_brings_the_facts_of_a_container() {
    let tree = tree();
    for via in ways() {
        let api = Cluster::new()
            .namespace("serving")
            .pod(Pod::worker("decode-0").tree(tree.path()))
            .start()
            .unwrap();
        let looked = look(&api, &via, "decode-0", PATIENCE);
        let answer = looked.answer.unwrap();
        assert_eq!((answer.gap, answer.fault), (None, None), "{via:?}");
        assert_eq!(
            answer.observation.host.kernel.value().map(String::as_str),
            Some("6.8.0-test"),
            "{via:?}"
        );
        let execs = api.execs();
        assert_eq!(execs.len(), 1, "{via:?}");
        assert_eq!(execs[0].argv[..3], ["sh", "-s", "--"]);
        // Nothing of ours stays.
        assert!(api.wait_for(Duration::from_secs(5), |api| {
            api.execs().iter().all(|exec| exec.exit.is_some())
        }));
        assert!(group_is_empty(execs[0].pid.unwrap()));
        assert!(looked.later.is_none());
    }
}

fn group_is_empty(group: u32) -> bool {
    let group = group.to_string();
    std::fs::read_dir("/proc").unwrap().flatten().all(|entry| {
        std::fs::read_to_string(entry.path().join("stat")).map_or(true, |stat| {
            stat.rsplit(')')
                .next()
                .and_then(|rest| rest.split_whitespace().nth(2))
                != Some(&group)
        })
    })
}

struct Case {
    name: &'static str,
    pod: Pod,
    wrong: Option<Wrong>,
    expected: &'static [FaultKind],
    timeout: Duration,
}

#[test]
fn everything_that_goes_wrong_has_its_name() {
    let tree = tree();
    let worker = || Pod::worker("decode-0").tree(tree.path());
    let recorded =
        |recorded: Recorded| Pod::worker("decode-0").behaviour(Behaviour::Recorded(recorded));
    let exec = |name: &'static str, wrong: Wrong, expected: &'static [FaultKind]| Case {
        name,
        pod: worker(),
        wrong: Some(wrong),
        expected,
        timeout: PATIENCE,
    };
    let pod = |name: &'static str, pod: Pod, expected: &'static [FaultKind]| Case {
        name,
        pod,
        wrong: None,
        expected,
        timeout: PATIENCE,
    };
    let mut cases = vec![
        pod("no shell", worker().no_shell(), &[FaultKind::NoShell]),
        pod(
            "completed",
            worker().state(State::Completed),
            // The API server itself only knows that there is no such container any more.
            &[FaultKind::Completed, FaultKind::Restarted],
        ),
        exec("401", Wrong::exec().status(401), &[FaultKind::Unauthorized]),
        exec(
            "403",
            Wrong::exec().status(403),
            &[FaultKind::ForbiddenExec],
        ),
        exec("404", Wrong::exec().status(404), &[FaultKind::Deleted]),
        exec("409", Wrong::exec().status(409), &[FaultKind::Conflict]),
        exec(
            "429",
            Wrong::exec().status(429),
            &[FaultKind::TooManyRequests],
        ),
        exec("500", Wrong::exec().status(500), &[FaultKind::ServerError]),
        exec(
            "container not found",
            Wrong::exec().exec_error("container not found (\"main\")"),
            &[FaultKind::Restarted],
        ),
        exec("flood", Wrong::exec().flood(), &[FaultKind::Flood]),
        exec(
            "reset at once",
            Wrong::exec().cut_output(0, Cut::Reset),
            &[FaultKind::Cut],
        ),
        exec(
            "deleted meanwhile",
            Wrong::exec().during(Duration::ZERO, PodEvent::DeletedAndReset),
            &[FaultKind::Cut, FaultKind::Deleted],
        ),
        pod(
            "something else answers",
            recorded(Recorded {
                stdout: "Welcome to this container!\n".into(),
                ..Recorded::default()
            }),
            &[FaultKind::NotOurs],
        ),
        pod(
            "not text",
            recorded(Recorded {
                stdout: (0..=255_u8).collect::<Vec<_>>().into(),
                ..Recorded::default()
            }),
            &[FaultKind::NotOurs],
        ),
        pod(
            "an error of the shell",
            recorded(Recorded {
                stderr: "sh: out of memory\n".into(),
                exit: 2,
                ..Recorded::default()
            }),
            &[FaultKind::ScriptFailed],
        ),
        pod(
            "nothing at all",
            recorded(Recorded::default()),
            &[FaultKind::Cut],
        ),
    ];
    cases.push(Case {
        name: "hangs before the upgrade",
        pod: worker(),
        wrong: Some(Wrong::exec().hang()),
        expected: &[FaultKind::TimedOut],
        timeout: Duration::from_secs(2),
    });
    cases.push(Case {
        name: "hangs after it",
        pod: recorded(Recorded {
            delay: Duration::from_secs(60),
            ..Recorded::default()
        }),
        wrong: None,
        expected: &[FaultKind::TimedOut],
        timeout: Duration::from_secs(2),
    });
    let mut odd = Vec::new();
    for case in cases {
        let mut scenario = Cluster::new().namespace("serving").pod(case.pod);
        if let Some(wrong) = case.wrong {
            scenario = scenario.fault(wrong);
        }
        let api = scenario.start().unwrap();
        for via in ways() {
            let begin = Instant::now();
            let looked = look(&api, &via, "decode-0", case.timeout);
            let took = begin.elapsed();
            match &looked.answer {
                Err(fault) if case.expected.contains(&fault.kind) => {}
                Err(fault) => odd.push(format!("{} {via:?}: {fault:?}", case.name)),
                Ok(answer) => odd.push(format!(
                    "{} {via:?}: an answer, {:?} {:?}",
                    case.name, answer.gap, answer.fault
                )),
            }
            if took > case.timeout + Duration::from_secs(10) {
                odd.push(format!("{} {via:?} took {took:?}", case.name));
            }
        }
    }
    assert!(odd.is_empty(), "{}", odd.join("\n"));
}

#[test]
fn what_came_before_a_cut_is_kept() {
    let tree = tree();
    let cuts = [
        Wrong::exec().cut_output(1200, Cut::Reset),
        Wrong::exec().cut_output(1200, Cut::HalfClose),
    ];
    for wrong in cuts {
        let api = Cluster::new()
            .namespace("serving")
            .pod(Pod::worker("decode-0").tree(tree.path()))
            .fault(wrong.clone())
            .start()
            .unwrap();
        for via in ways() {
            let looked = look(&api, &via, "decode-0", PATIENCE);
            let answer = looked.answer.unwrap();
            let gap = answer
                .gap
                .unwrap_or_else(|| panic!("{via:?} {wrong:?}: {:?}", api.execs()[0].stdout.len()));
            assert!(gap.contains("stopped") || gap.contains("garbled"), "{gap}");
            assert!(answer.fault.is_some(), "{via:?} {wrong:?}");
            assert!(answer.observation.host.kernel.is_seen(), "{via:?}");
            assert!(looked.later.is_some());
        }
    }
}

#[test]
fn a_container_that_was_restarted_meanwhile_shows_in_the_second_look() {
    let tree = tree();
    for (event, gone) in [(PodEvent::Restarted, false), (PodEvent::Deleted, true)] {
        for via in ways() {
            let api = Cluster::new()
                .namespace("serving")
                .pod(Pod::worker("decode-0").tree(slow_tool(&tree)))
                .fault(Wrong::exec().during(Duration::from_millis(1500), event))
                .start()
                .unwrap();
            let looked = look(&api, &via, "decode-0", PATIENCE);
            let later = looked.later.unwrap();
            match (&later, gone) {
                (Err(fault), true) => assert_eq!(fault.kind, FaultKind::NoSuchPod),
                (Ok(text), false) => assert!(text.contains(r#""restartCount":1"#), "{text}"),
                other => panic!("{event:?} {via:?}: {other:?}"),
            }
            // What was read before stays.
            let answer = looked.answer.unwrap();
            assert!(answer.gap.is_some() && answer.fault.is_some());
        }
    }
}

/// A tool that takes longer than anything in a test waits.
fn slow_tool(tree: &tempfile::TempDir) -> &std::path::Path {
    use std::os::unix::fs::PermissionsExt as _;
    let tool = tree.path().join("bin/ucx_info");
    std::fs::write(&tool, "#!/bin/sh\nexec sleep 3600\n").unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    tree.path()
}

#[test]
fn nothing_of_ours_stays_when_a_run_is_ended() {
    let tree = tree();
    slow_tool(&tree);
    for via in ways() {
        let api = Cluster::new()
            .namespace("serving")
            .pod(Pod::worker("decode-0").tree(tree.path()))
            .start()
            .unwrap();
        let access = access(api.kubeconfig(), &via);
        let looked = run(async {
            let cluster = open(&access).await.unwrap();
            let stop = Stop::default();
            let ends = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(2500)).await;
                ends.stop();
            });
            let picks = vec![pick("decode-0")];
            look_into(&cluster, picks, 1, Limits::default(), &stop, |_| ())
                .await
                .remove(0)
        });
        let answer = looked.answer.unwrap();
        assert!(answer.gap.unwrap().contains("ucx_info"), "{via:?}");
        let ended = Instant::now();
        let pid = api.execs()[0].pid.unwrap();
        assert!(
            api.wait_for(Duration::from_secs(4), |_| group_is_empty(pid)),
            "{via:?}"
        );
        // The tool's own limit would be five seconds.
        assert!(ended.elapsed() < Duration::from_secs(4), "{via:?}");
    }
}

#[test]
fn an_end_that_nobody_told_does_not_matter_where_all_is_there() {
    let tree = tree();
    let api = Cluster::new()
        .namespace("serving")
        .pod(Pod::worker("decode-0").tree(tree.path()))
        .fault(Wrong::exec().no_status())
        .start()
        .unwrap();
    for via in ways() {
        let answer = look(&api, &via, "decode-0", PATIENCE).answer.unwrap();
        assert_eq!((answer.gap, answer.fault), (None, None), "{via:?}");
    }
}

#[test]
fn a_pod_of_the_older_protocol_is_no_other() {
    let tree = tree();
    let api = Cluster::new()
        .namespace("serving")
        .only_v4()
        .pod(Pod::worker("decode-0").tree(tree.path()))
        .start()
        .unwrap();
    let looked = look(&api, &Via::Api, "decode-0", PATIENCE);
    assert_eq!(looked.answer.unwrap().gap, None);
    assert_eq!(api.execs()[0].protocol, "v4.channel.k8s.io");
}
