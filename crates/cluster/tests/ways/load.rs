//! Many containers at once.

use std::time::Duration;

use cluster::{Limits, Pick, Stop, Via, look_into};
use model::pod::FaultKind;
use stand_in::{Cluster, Fault, Pod};

use crate::support::{access, look, open, pick, run, ways};

/// Six lines that are a whole stream.
const STREAM: &str = "%1\tbegin\t1\t\t%\n%2\tstage\tsystem\t\t%\n%3\tfile\t/proc/sys/kernel/osrelease\t6.8.0-test\t%\n%4\tend\t3\t\t%\n";

#[test]
fn no_more_are_open_than_was_asked_for_and_each_once() {
    for via in ways() {
        let mut scenario = Cluster::new().namespace("serving");
        for number in 0..40 {
            scenario = scenario.pod(
                Pod::worker(&format!("decode-{number}"))
                    .recorded(STREAM, Duration::from_millis(60)),
            );
        }
        let api = scenario.start().unwrap();
        let access = access(api.kubeconfig(), &via);
        let looked = run(async {
            let cluster = open(&access).await.unwrap();
            let picks: Vec<Pick> = (0..40).map(|n| pick(&format!("decode-{n}"))).collect();
            let stop = Stop::default();
            look_into(&cluster, picks, 8, Limits::default(), &stop, |_| ()).await
        });
        assert_eq!(looked.len(), 40);
        for (at, one) in looked.iter().enumerate() {
            assert_eq!(one.index, at);
            assert!(
                one.answer.as_ref().is_ok_and(|a| a.gap.is_none()),
                "{one:?}"
            );
        }
        assert_eq!(api.execs().len(), 40, "{via:?}");
        // The server counts a session until its connection is closed, which comes a little later. Several go on at the same
        // time; how many get there on a machine that is busy is another matter.
        let most = api.most_execs_at_once();
        assert!((2..=10).contains(&most), "{via:?}: {most}");
    }
}

#[test]
fn where_time_is_over_while_a_busy_server_is_asked_again_it_is_the_server_that_was_busy() {
    for via in ways() {
        // kubectl asks in a second way before it gives up; and it takes its time to start. Over the API the end comes sooner than
        // a single request is given up.
        let (refusals, time) = match via {
            Via::Api => (1, 4),
            Via::Program(_) => (2, 12),
        };
        let busy = || Fault::exec().name("decode-0");
        let api = Cluster::new()
            .namespace("serving")
            .pod(Pod::worker("decode-0"))
            .fault(busy().first(refusals).status(429))
            .fault(busy().after(refusals).hang())
            .start()
            .unwrap();
        let fault = look(&api, &via, "decode-0", Duration::from_secs(time))
            .answer
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::TooManyRequests, "{via:?} {fault:?}");
    }
    // Of one that hangs from the beginning on nothing else is known.
    for via in ways() {
        let api = Cluster::new()
            .namespace("serving")
            .pod(Pod::worker("decode-0"))
            .fault(Fault::exec().hang())
            .start()
            .unwrap();
        let fault = look(&api, &via, "decode-0", Duration::from_secs(3))
            .answer
            .unwrap_err();
        assert_eq!(fault.kind, FaultKind::TimedOut, "{via:?} {fault:?}");
    }
}

#[test]
fn a_run_that_is_ended_keeps_what_it_has() {
    for via in ways() {
        let mut scenario = Cluster::new().namespace("serving");
        // Fewer of those that wait than places: whichever come first, the others are not kept from one.
        for number in 0..9 {
            let wait = if number < 4 { 10 } else { 30_000 };
            scenario = scenario.pod(
                Pod::worker(&format!("decode-{number}"))
                    .recorded(STREAM, Duration::from_millis(wait)),
            );
        }
        let api = scenario.start().unwrap();
        let access = access(api.kubeconfig(), &via);
        // How long kubectl takes to start is not what is measured.
        let mut ended = None;
        let looked = run(async {
            let cluster = open(&access).await.unwrap();
            let picks: Vec<Pick> = (0..9).map(|n| pick(&format!("decode-{n}"))).collect();
            let stop = Stop::default();
            let mut done = 0;
            look_into(&cluster, picks, 6, Limits::default(), &stop, |_| {
                done += 1;
                if done == 4 {
                    stop.stop();
                    ended = Some(std::time::Instant::now());
                }
            })
            .await
        });
        let took = ended.unwrap().elapsed();
        assert!(took < Duration::from_secs(5), "{via:?} {took:?}");
        let whole = looked.iter().filter(|one| one.answer.is_ok()).count();
        assert_eq!((looked.len(), whole), (9, 4), "{via:?}");
        let ended = FaultKind::Interrupted;
        let others = looked.iter().filter_map(|one| one.answer.as_ref().err());
        assert!(
            others.into_iter().all(|fault| fault.kind == ended),
            "{via:?}"
        );
    }
}
