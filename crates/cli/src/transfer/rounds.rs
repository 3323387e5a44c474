//! Transfers between the workers of a deployment, in rounds in which no worker takes part twice.
//!
//! A worker that is measured with two others at once would share its link between them, and nobody could say which of them
//! was slow. A pair that fails, or goes another way than the others, is suspect: each of its ends is tried again with a
//! peer that has worked, so that the bad end can be named.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use checks::{PairTried, ProbedPod, Said, Tried};
use cluster::{Cluster, Stop};
use model::Role;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::of_pair;
use super::pair::Pair;
use crate::args::{PodArgs, TransferArgs};
use crate::deadline::Deadline;

/// Which pairs are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// Each prefill worker with each decode worker.
    All,
    /// Each worker at least once.
    Ring,
    /// So many pairs, spread over the workers.
    Some(usize),
}

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "ring" => Ok(Self::Ring),
            number => match number.parse::<usize>() {
                Ok(count) if count > 0 => Ok(Self::Some(count)),
                _ => Err(format!(
                    "'{text}' is neither all nor ring nor a number of pairs"
                )),
            },
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Ring => f.write_str("ring"),
            Self::Some(count) => write!(f, "{count}"),
        }
    }
}

/// A prefill and a decode worker, by their numbers.
type Two = (usize, usize);

/// The pairs in rounds in which no worker takes part twice: in each round the larger side moves on by one.
pub(crate) fn rounds(prefill: &[usize], decode: &[usize], pairs: Pairs) -> Vec<Vec<Two>> {
    let few = prefill.len().min(decode.len());
    let many = prefill.len().max(decode.len());
    if few == 0 {
        return Vec::new();
    }
    let at = |one: usize, other: usize| -> Option<Two> {
        if prefill.len() <= decode.len() {
            Some((*prefill.get(one)?, *decode.get(other)?))
        } else {
            Some((*prefill.get(other)?, *decode.get(one)?))
        }
    };
    let (count, most) = match pairs {
        Pairs::All => (many, usize::MAX),
        // Every worker of the larger side once.
        Pairs::Ring => (many.div_ceil(few), many),
        Pairs::Some(most) => (many, most),
    };
    let mut left = most;
    let mut rounds = Vec::new();
    for round in 0..count {
        let step = match pairs {
            // A whole set of the smaller side, so that each round has new ones of the larger.
            Pairs::Ring => round.saturating_mul(few),
            _ => round,
        };
        let mut pairs: Vec<Two> = (0..few)
            .filter_map(|one| at(one, one.checked_add(step)?.checked_rem(many)?))
            .collect();
        pairs.truncate(left);
        left = left.saturating_sub(pairs.len());
        if !pairs.is_empty() {
            rounds.push(pairs);
        }
    }
    rounds
}

/// What is to be measured, and within which bounds.
pub(crate) struct Task<'t> {
    pub(crate) args: &'t PodArgs,
    pub(crate) given: &'t TransferArgs,
    pub(crate) pairs: Pairs,
}

/// Carries out the transfers, and tries suspects again.
pub(crate) async fn carry_out(
    task: &Task<'_>,
    cluster: &Arc<dyn Cluster>,
    pods: &[ProbedPod],
    stop: &Stop,
) -> Vec<PairTried> {
    let of_role = |wanted: Role| -> Vec<usize> {
        pods.iter()
            .enumerate()
            .filter(|(_, pod)| pod.probed.is_ok())
            .filter(|(_, pod)| pod.role.or_else(|| checks::live_of(pod).1) == Some(wanted))
            .map(|(number, _)| number)
            .collect()
    };
    let (prefill, decode) = (of_role(Role::Prefill), of_role(Role::Decode));
    let rounds = rounds(&prefill, &decode, task.pairs);
    let count: usize = rounds.iter().map(Vec::len).sum();
    if count == 0 {
        crate::tell(
            "--transfer: no prefill and decode worker that could both be looked into: nothing is transferred",
        );
        return Vec::new();
    }
    let all = prefill.len().saturating_mul(decode.len());
    crate::tell(&format!(
        "--transfer: {count} of {all} pairs (--pairs {}) in {} rounds, each of at most {} s; suspects are tried again",
        task.pairs,
        rounds.len(),
        task.args.timeout.as_secs()
    ));
    let mut tried = Vec::new();
    if task.given.dry_run {
        // What runs is the same in every pair: said whole once, and the others by name.
        let all: Vec<Two> = rounds.into_iter().flatten().collect();
        let (first, others) = all.split_at(1);
        tried.extend(round(task, cluster, pods, first, false, stop).await);
        if !others.is_empty() {
            crate::tell(&format!("the same between {}", listed_pairs(pods, others)));
        }
        return tried;
    }
    for (number, pairs) in rounds.iter().enumerate() {
        if stop.is_stopped() {
            break;
        }
        crate::tell(&format!(
            "--transfer: round {} of {}",
            number.saturating_add(1),
            rounds.len()
        ));
        tried.extend(round(task, cluster, pods, pairs, false, stop).await);
    }
    if !stop.is_stopped() {
        let again = suspects(&tried, pods);
        for pairs in again {
            crate::tell(&format!("--transfer: {} suspects again", pairs.len()));
            tried.extend(round(task, cluster, pods, &pairs, true, stop).await);
        }
    }
    tried
}

/// Pairs that are said by name.
const SAID: usize = 20;

/// `prefill-0 and decode-1, …`.
fn listed_pairs(pods: &[ProbedPod], pairs: &[Two]) -> String {
    let name = |number: &usize| {
        pods.get(*number)
            .map_or("?", |pod| pod.object.name.as_str())
    };
    let mut words: Vec<String> = pairs
        .iter()
        .take(SAID)
        .map(|(prefill, decode)| format!("{} and {}", name(prefill), name(decode)))
        .collect();
    if pairs.len() > SAID {
        words.push(format!("{} more pairs", pairs.len().saturating_sub(SAID)));
    }
    words.join(", ")
}

async fn round(
    task: &Task<'_>,
    cluster: &Arc<dyn Cluster>,
    pods: &[ProbedPod],
    pairs: &[Two],
    again: bool,
    stop: &Stop,
) -> Vec<PairTried> {
    // Two programs run in each pair.
    let most = usize::from(task.args.concurrency).div_ceil(2).max(1);
    let gate = Arc::new(Semaphore::new(most));
    let mut running = JoinSet::new();
    for (at, (prefill, decode)) in pairs.iter().enumerate() {
        let (Some(prefill), Some(decode)) = (pods.get(*prefill), pods.get(*decode)) else {
            continue;
        };
        let (prefill, decode) = (prefill.clone(), decode.clone());
        let (cluster, stop, gate) = (Arc::clone(cluster), stop.clone(), Arc::clone(&gate));
        let (args, given) = (task.args.clone(), task.given.clone());
        running.spawn(async move {
            let _slot = gate.acquire_owned().await;
            let deadline = Deadline::of(&args);
            let pair = Pair::of(&prefill, &decode);
            let (tried, messages) = of_pair(&pair, &given, &cluster, &deadline, &stop).await;
            let told = PairTried {
                prefill: pair.ends.prefill.object.name.clone(),
                decode: pair.ends.decode.object.name.clone(),
                tried,
                messages: messages
                    .iter()
                    .map(|(role, result)| Said::of(*role, result))
                    .collect(),
                memory: pair.memory,
                apart: pair.apart(),
                again,
            };
            (at, told)
        });
    }
    let mut done: Vec<(usize, PairTried)> = Vec::new();
    while let Some(one) = running.join_next().await {
        // A task that panicked is a bug of ours; its pair counts as not tried.
        done.extend(one.ok());
    }
    // In the order of the plan, whichever ended first.
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, told)| told).collect()
}

/// Pairs that tell which end of a suspect pair is the bad one, in rounds.
fn suspects(tried: &[PairTried], pods: &[ProbedPod]) -> Vec<Vec<Two>> {
    let usual = checks::usual_way(tried);
    let good = |pair: &PairTried| checks::went_well(pair, usual.as_deref());
    let number = |name: &str| pods.iter().position(|pod| pod.object.name == name);
    let known: BTreeSet<(&str, &str)> = tried
        .iter()
        .map(|pair| (pair.prefill.as_str(), pair.decode.as_str()))
        .collect();
    let good_prefill: Vec<&str> = tried
        .iter()
        .filter(|p| good(p))
        .map(|p| &*p.prefill)
        .collect();
    let good_decode: Vec<&str> = tried
        .iter()
        .filter(|p| good(p))
        .map(|p| &*p.decode)
        .collect();
    let mut wanted: Vec<(&str, &str)> = Vec::new();
    let measured =
        |pair: &&PairTried| matches!(pair.tried, Tried::Measured(_) | Tried::NotBegun(_));
    for pair in tried.iter().filter(measured).filter(|p| !good(p)) {
        let with_decode = good_decode
            .iter()
            .map(|decode| (pair.prefill.as_str(), *decode))
            .find(|two| !known.contains(two));
        let with_prefill = good_prefill
            .iter()
            .map(|prefill| (*prefill, pair.decode.as_str()))
            .find(|two| !known.contains(two));
        for two in with_decode.into_iter().chain(with_prefill) {
            if !wanted.contains(&two) {
                wanted.push(two);
            }
        }
    }
    // No worker twice in a round here either.
    let mut rounds: Vec<Vec<Two>> = Vec::new();
    for (prefill, decode) in wanted.into_iter().take(MAX_AGAIN) {
        let (Some(prefill), Some(decode)) = (number(prefill), number(decode)) else {
            continue;
        };
        let free = rounds
            .iter_mut()
            .find(|round| round.iter().all(|(p, d)| *p != prefill && *d != decode));
        match free {
            Some(round) => round.push((prefill, decode)),
            None => rounds.push(vec![(prefill, decode)]),
        }
    }
    rounds
}

/// Suspects that are tried again; where more are suspect, it is not single workers.
const MAX_AGAIN: usize = 32;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Pairs, rounds};

    fn sides(prefill: usize, decode: usize) -> (Vec<usize>, Vec<usize>) {
        ((0..prefill).collect(), (100..100 + decode).collect())
    }

    #[test]
    fn no_worker_takes_part_twice_in_a_round_and_all_pairs_come_once() {
        for (p, d) in [(1, 1), (2, 3), (3, 2), (4, 4), (5, 12), (12, 5)] {
            let (prefill, decode) = sides(p, d);
            let all = rounds(&prefill, &decode, Pairs::All);
            let mut seen = BTreeSet::new();
            for round in &all {
                let one: BTreeSet<usize> = round.iter().map(|(p, _)| *p).collect();
                let other: BTreeSet<usize> = round.iter().map(|(_, d)| *d).collect();
                assert_eq!((one.len(), other.len()), (round.len(), round.len()));
                seen.extend(round.iter().copied());
            }
            assert_eq!(seen.len(), p * d);
            assert_eq!(all.iter().map(Vec::len).sum::<usize>(), p * d);
        }
    }

    #[test]
    fn a_ring_has_each_worker() {
        for (p, d) in [(1, 1), (2, 3), (3, 2), (4, 4), (5, 12), (12, 5), (500, 500)] {
            let (prefill, decode) = sides(p, d);
            let ring: Vec<(usize, usize)> = rounds(&prefill, &decode, Pairs::Ring)
                .into_iter()
                .flatten()
                .collect();
            let one: BTreeSet<usize> = ring.iter().map(|(p, _)| *p).collect();
            let other: BTreeSet<usize> = ring.iter().map(|(_, d)| *d).collect();
            assert_eq!((one.len(), other.len()), (p, d));
            assert_eq!(ring.len(), p.max(d));
        }
    }

    #[test]
    fn a_sample_has_so_many() {
        let (prefill, decode) = sides(4, 6);
        let some = rounds(&prefill, &decode, Pairs::Some(5));
        assert_eq!(some.iter().map(Vec::len).sum::<usize>(), 5);
        let none = rounds(&[], &decode, Pairs::All);
        assert!(none.is_empty());
    }

    #[test]
    fn words_of_the_option() {
        assert_eq!("all".parse(), Ok(Pairs::All));
        assert_eq!("7".parse(), Ok(Pairs::Some(7)));
        for odd in ["0", "-1", "some", ""] {
            assert!(odd.parse::<Pairs>().is_err(), "{odd}");
        }
    }
}
