//! What NIXL at one end says of a peer that is gone is no fault of NIXL's.
//!
//! Both programs are played here, line by line: how the ends of two real ones fall together is a matter of moments.

use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream,
};
use transfer::{Both, Memory, OfEngine, Snapshot, Streams, told};

use crate::pair::{engine, plan, run};

/// How the program at the passive end goes on once the other one has begun to transfer.
#[derive(Clone, Copy, Debug)]
enum Peer {
    Finishes,
    /// Nothing comes any more, and the stream stays open.
    Stalls,
    /// Its parent process answers, its child hangs in NIXL.
    Hangs,
    Ends(&'static str, Option<i32>),
}

/// A program: its ends of the streams.
struct Played {
    orders: BufReader<DuplexStream>,
    answers: DuplexStream,
}

impl Played {
    fn new() -> (Self, Streams, DuplexStream) {
        let [(stdin, orders), (answers, stdout), (held, stderr)] =
            [1 << 20, 1 << 20, 64].map(tokio::io::duplex);
        let streams = Streams {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        };
        let orders = BufReader::new(orders);
        (Self { orders, answers }, streams, held)
    }

    /// The program itself, and its first order.
    async fn begun(&mut self) {
        let length: usize = self.line().await.trim().parse().expect("its length");
        let mut program = vec![0; length];
        self.orders
            .read_exact(&mut program)
            .await
            .expect("all of it");
        self.line().await;
        self.say(json!({
            "say": "ready", "metadata": "", "regions": {"host": [0, 0]}, "libraries": [], "open": [],
        }))
        .await;
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.orders.read_line(&mut line).await.expect("a line");
        line
    }

    /// The next order; nothing at the end.
    async fn order(&mut self) -> Option<String> {
        let line = self.line().await;
        let order: Value = serde_json::from_str(&line).ok()?;
        order.get("do")?.as_str().map(str::to_owned)
    }

    async fn say(&mut self, what: Value) {
        let line = format!("@check-interconnect@{what}\n");
        // Nobody may listen any more.
        let _gone = self.answers.write_all(line.as_bytes()).await;
    }

    async fn end(&mut self, why: &str, finished: bool, signal: Option<i32>) {
        self.say(json!({
            "say": "end", "why": why, "finished": finished, "signal": signal, "left_out": 0,
        }))
        .await;
    }

    async fn usual(&mut self, order: &str) {
        let answer = match order {
            "connect" => json!({"say": "connected"}),
            "snapshot" => json!({"say": "snapshot", "snapshot": Snapshot::default(), "open": []}),
            "fill" => json!({"say": "filled", "hashes": ["a"]}),
            "hash" => json!({"say": "hashed", "hashes": ["a"]}),
            _ => return,
        };
        self.say(answer).await;
    }

    /// The one that transfers, and is told that its peer is gone.
    async fn refuses(mut self) {
        self.begun().await;
        while let Some(order) = self.order().await {
            if order == "transfer" {
                self.say(json!({"say": "failed", "error": "nixlRemoteDisconnectError: NIXL_ERR_REMOTE_DISCONNECT"}))
                    .await;
                self.end("ended", true, None).await;
                return;
            }
            self.usual(&order).await;
        }
    }

    async fn passive(mut self, peer: Peer) {
        self.begun().await;
        while let Some(order) = self.order().await {
            match (&*order, peer) {
                ("end", Peer::Finishes) => {
                    self.say(json!({"say": "done"})).await;
                    return self.end("ended", true, None).await;
                }
                ("look", Peer::Hangs) => {
                    self.say(json!({"say": "look", "step": "connect", "connections": []}))
                        .await;
                }
                ("fill", Peer::Ends(why, signal)) => {
                    self.usual("fill").await;
                    return self.end(why, false, signal).await;
                }
                _ => self.usual(&order).await,
            }
        }
    }
}

/// What is told of the stop: whether NIXL is blamed, and why.
fn stop(peer: Peer) -> (bool, String) {
    run(async {
        let mut plan = plan(&[Memory::Host]);
        // READ by the decode worker from the prefill worker, at once.
        plan.legs.truncate(1);
        plan.seconds = 4;
        let (prefill, first, held) = Played::new();
        let (decode, second, held_too) = Played::new();
        let engines = Both {
            prefill: engine(&[]),
            decode: engine(&[]),
        };
        let measure = transfer::measure(&plan, &engines, first, second, plan.end());
        let (measured, (), ()) = tokio::join!(
            async {
                let measured = measure.await;
                drop((held, held_too));
                measured
            },
            prefill.passive(peer),
            decode.refuses()
        );
        let told = told(&measured, &[], Both::default(), OfEngine::default());
        let stop = told.stop.expect("it did not come to its end");
        assert_eq!(stop.side, "decode", "{peer:?}");
        (stop.by_nixl, stop.why)
    })
}

#[test]
fn of_a_peer_that_is_there_it_is_nixl_s_own_word() {
    for peer in [Peer::Finishes, Peer::Hangs, Peer::Ends("ended", Some(11))] {
        let (by_nixl, why) = stop(peer);
        assert!(by_nixl, "{peer:?}");
        assert!(
            why.ends_with("NIXL_ERR_REMOTE_DISCONNECT"),
            "{peer:?} {why}"
        );
    }
}

#[test]
fn of_a_peer_that_is_gone_nobody_is_blamed_and_it_is_said_how_it_went() {
    for (peer, words) in [
        (Peer::Stalls, "the connection to it broke"),
        (Peer::Ends("deadline", None), "its time was over"),
        (Peer::Ends("ended", Some(9)), "it was killed"),
    ] {
        let (by_nixl, why) = stop(peer);
        assert!(!by_nixl, "{peer:?}");
        assert!(
            why.contains("NIXL_ERR_REMOTE_DISCONNECT; the program in the prefill worker ")
                && why.ends_with(words),
            "{peer:?} {why}"
        );
    }
}
