//! Carries out a plan between two workers.

use std::time::Duration;

use tokio::time::Instant;

use crate::command::{Engine, environment};
use crate::link::{Link, Silence, Streams, after};
use crate::message::{Answer, Order, Snapshot, Start};
use crate::plan::{Leg, Plan};
use crate::record::{EndRecord, LegRecord, Measurement, Stop};
use crate::side::{Both, Side};

/// How long an end may take to answer what costs nothing.
const SOON: Duration = Duration::from_secs(15);
/// How long an end may take to end.
const GOODBYE: Duration = Duration::from_secs(8);
/// What is kept for the end, at most.
const CLOSING: Duration = Duration::from_secs(2);

/// Carries out a plan over the streams of two programs that have just been started ([`crate::Command`]).
///
/// NIXL's metadata is handed from one end to the other here: no port is opened beside those of NIXL itself.
/// Dropping the future closes the streams, and the programs end with them.
///
/// It is over at `end`, whatever an end does not answer: the last part of the time until then is kept for what the programs
/// still have to say, and they end by themselves before that.
pub async fn measure(
    plan: &Plan,
    engines: &Both<Engine>,
    prefill: Streams,
    decode: Streams,
    end: Instant,
) -> Measurement {
    let begun = Instant::now();
    let closing = (end.saturating_duration_since(begun) / 10).min(CLOSING);
    let mut run = Run {
        plan,
        links: Both {
            prefill: Link::new(prefill, end),
            decode: Link::new(decode, end),
        },
        legs: Vec::new(),
        begun,
        moved: 0,
        time: Time {
            orders: end.checked_sub(closing).unwrap_or(end),
            closing,
        },
    };
    let stop = run.all(engines).await.err();
    let Run { links, legs, .. } = run;
    let (prefill, decode) =
        tokio::join!(links.prefill.finish(GOODBYE), links.decode.finish(GOODBYE));
    Measurement {
        plan: plan.clone(),
        ends: Both { prefill, decode },
        legs,
        stop,
    }
}

struct Run<'p> {
    plan: &'p Plan,
    links: Both<Link>,
    legs: Vec<LegRecord>,
    begun: Instant,
    moved: u64,
    time: Time,
}

/// What the orders have.
#[derive(Clone, Copy)]
struct Time {
    /// No answer is waited for beyond it.
    orders: Instant,
    /// What follows it.
    closing: Duration,
}

impl Time {
    /// So much from now, as far as there is.
    fn until(self, time: Duration) -> Instant {
        after(time).min(self.orders)
    }

    /// What a program has that begins now. It ends a little sooner, for it knows best what it was doing.
    fn of_program(self) -> Duration {
        self.orders
            .saturating_duration_since(Instant::now())
            .saturating_sub(self.closing / 2)
    }
}

/// What an end offers to the other.
struct Offer {
    metadata: String,
    regions: std::collections::BTreeMap<crate::plan::Memory, (u64, u32)>,
}

impl Run<'_> {
    async fn all(&mut self, engines: &Both<Engine>) -> Result<(), Stop> {
        let (plan, time) = (self.plan, self.time);
        let Both { prefill, decode } = &mut self.links;
        // Both are waited for, also where one fails: their outputs belong together.
        let (first, second) = tokio::join!(
            start(prefill, Side::Prefill, plan, &engines.prefill, time),
            start(decode, Side::Decode, plan, &engines.decode, time)
        );
        let offers = Both {
            prefill: first?,
            decode: second?,
        };
        let Both { prefill, decode } = &mut self.links;
        let (first, second) = tokio::join!(
            connect(prefill, Side::Prefill, plan, &offers.decode, time),
            connect(decode, Side::Decode, plan, &offers.prefill, time)
        );
        first?;
        second?;
        for leg in &plan.legs {
            let here = [leg.source(), leg.source().other()];
            if here
                .iter()
                .any(|side| !offers.of(*side).regions.contains_key(&leg.memory(*side)))
            {
                // The end has said why it has no such memory; other legs go on.
                continue;
            }
            let before = self.snapshots().await?;
            self.legs.push(LegRecord {
                leg: *leg,
                transfers: 0,
                seconds: Vec::new(),
                verified: 0,
                before,
                after: None,
            });
            let most = places(plan, leg);
            let mut first = 0;
            while first < leg.transfers() {
                let count = most.min(leg.transfers().saturating_sub(first));
                self.transfers(leg, first, count).await?;
                first = first.saturating_add(count);
            }
            let after = self.snapshots().await?;
            if let Some(record) = self.legs.last_mut() {
                record.after = Some(after);
            }
        }
        Ok(())
    }

    /// Fresh content at the source in so many places, the transfer of each, and whether it arrived.
    async fn transfers(&mut self, leg: &Leg, first: u32, places: u32) -> Result<(), Stop> {
        let (source, target) = (leg.source(), leg.source().other());
        let step = Duration::from_secs(u64::from(self.plan.step_seconds));
        let time = self.time;
        let bytes = leg.bytes;
        let order = Order::Fill {
            memory: leg.memory(source),
            bytes,
            places,
        };
        let sent = match ask(self.links.of_mut(source), source, &order, time.until(step)).await? {
            Answer::Filled { hashes } => hashes,
            other => return Err(unexpected(source, &other)),
        };
        let order = Order::Transfer {
            operation: leg.operation,
            local: leg.local,
            remote: leg.remote,
            bytes,
            places,
        };
        let side = leg.initiator;
        let seconds = match ask(self.links.of_mut(side), side, &order, time.until(step)).await? {
            Answer::Moved { seconds } => seconds,
            other => return Err(unexpected(side, &other)),
        };
        let moved = u32::try_from(seconds.len()).unwrap_or(u32::MAX).min(places);
        if let Some(record) = self.legs.last_mut() {
            record.transfers = record.transfers.saturating_add(moved);
            let timed = usize::try_from(leg.warm_up.saturating_sub(first)).unwrap_or(usize::MAX);
            record.seconds.extend(seconds.iter().skip(timed));
        }
        let order = Order::Hash {
            memory: leg.memory(target),
            bytes,
            places,
        };
        let arrived = match ask(self.links.of_mut(target), target, &order, time.until(step)).await?
        {
            Answer::Hashed { hashes } => hashes,
            other => return Err(unexpected(target, &other)),
        };
        let same = sent
            .iter()
            .zip(&arrived)
            .filter(|(sent, arrived)| sent == arrived && !sent.is_empty())
            .count();
        if let Some(record) = self.legs.last_mut() {
            let same = u32::try_from(same).unwrap_or(u32::MAX).min(moved);
            record.verified = record.verified.saturating_add(same);
        }
        self.keep_to_rate(bytes.saturating_mul(u64::from(places)))
            .await;
        Ok(())
    }

    async fn snapshots(&mut self) -> Result<Both<Snapshot>, Stop> {
        let until = self.time.until(SOON);
        let Both { prefill, decode } = &mut self.links;
        let (first, second) = tokio::join!(
            snapshot(prefill, Side::Prefill, until),
            snapshot(decode, Side::Decode, until)
        );
        Ok(Both {
            prefill: first?,
            decode: second?,
        })
    }

    /// Waits until the average is below the limit.
    async fn keep_to_rate(&mut self, bytes: u64) {
        self.moved = self.moved.saturating_add(bytes);
        let Some(rate) = self.plan.bytes_per_second.filter(|rate| *rate > 0) else {
            return;
        };
        let whole = Duration::from_secs(self.moved / rate);
        let rest = Duration::from_millis((self.moved % rate).saturating_mul(1000) / rate);
        if let Some(due) = whole
            .checked_add(rest)
            .and_then(|needed| self.begun.checked_add(needed))
        {
            tokio::time::sleep_until(due.min(self.time.orders)).await;
        }
    }
}

/// So many transfers of a leg follow each other without a pause, for each has a place of its own in the buffer.
fn places(plan: &Plan, leg: &Leg) -> u32 {
    let room = plan.buffer().checked_div(leg.bytes).unwrap_or(1);
    u32::try_from(room).unwrap_or(u32::MAX).max(1)
}

async fn start(
    link: &mut Link,
    side: Side,
    plan: &Plan,
    engine: &Engine,
    time: Time,
) -> Result<Offer, Stop> {
    link.end.settings = environment(&engine.environment)
        .into_iter()
        .filter(|(name, _)| settings::catalogue::is_allowed(name))
        .collect();
    let name = format!("check-interconnect-{}", side.as_str());
    let package = engine.nixl_package();
    let start = Start {
        name: &name,
        memory: plan.memories(side),
        bytes: plan.buffer(),
        seconds: time.of_program().as_secs_f64(),
        gpu: plan.gpu,
        package: package.as_deref(),
        backend: &engine.backend,
    };
    let text = serde_json::to_string(&start).unwrap_or_default();
    link.begin(&text).await;
    let until = time.until(Duration::from_secs(u64::from(plan.start_seconds)));
    match wait(link, side, until).await? {
        Answer::Ready {
            metadata,
            regions,
            libraries,
            open,
        } => {
            link.end.libraries = libraries;
            link.end.open = open;
            Ok(Offer { metadata, regions })
        }
        other => Err(unexpected(side, &other)),
    }
}

async fn connect(
    link: &mut Link,
    side: Side,
    plan: &Plan,
    peer: &Offer,
    time: Time,
) -> Result<(), Stop> {
    if !plan.initiates(side) {
        return Ok(());
    }
    let order = Order::Connect {
        metadata: &peer.metadata,
        regions: &peer.regions,
    };
    let until = time.until(Duration::from_secs(u64::from(plan.step_seconds)));
    match ask(link, side, &order, until).await? {
        Answer::Connected => Ok(()),
        other => Err(unexpected(side, &other)),
    }
}

async fn snapshot(link: &mut Link, side: Side, until: Instant) -> Result<Snapshot, Stop> {
    match ask(link, side, &Order::Snapshot, until).await? {
        Answer::Snapshot { snapshot, open } => {
            link.end.open = open;
            Ok(*snapshot)
        }
        other => Err(unexpected(side, &other)),
    }
}

async fn ask(
    link: &mut Link,
    side: Side,
    order: &Order<'_>,
    until: Instant,
) -> Result<Answer, Stop> {
    link.tell(order).await;
    wait(link, side, until).await
}

async fn wait(link: &mut Link, side: Side, until: Instant) -> Result<Answer, Stop> {
    match link.answer(until).await {
        Ok(answer) => Ok(answer),
        Err(Silence::Over(why)) => Err(stop(side, &link.end, why)),
        Err(Silence::Late) => {
            link.look().await;
            let why = waiting(&link.end).unwrap_or_else(|| "it did not answer in time".to_owned());
            Err(stop(side, &link.end, why))
        }
    }
}

/// What a program that hangs is waiting for, by its sockets.
fn waiting(end: &EndRecord) -> Option<String> {
    let stuck = end.unanswered()?;
    Some(format!(
        "it waits for a TCP connection to {} port {}: nothing answers there",
        stuck.remote.0, stuck.remote.1
    ))
}

fn stop(side: Side, end: &EndRecord, why: String) -> Stop {
    Stop {
        side,
        step: end.step.clone(),
        why,
    }
}

fn unexpected(side: Side, answer: &Answer) -> Stop {
    let words = format!("{answer:?}");
    let word = words.split([' ', '{', '(']).next().unwrap_or_default();
    Stop {
        side,
        step: None,
        why: format!("it answered `{word}` to something else"),
    }
}
