//! RDMA queue pairs by process: `rdma resource show qp`.
//!
//! `link rxe0/1 lqpn 27 rqpn 28 type RC state RTS … pid 162 comm python`. The process number is the one of the reader's
//! own PID namespace, and is left out for processes of another one (Linux, drivers/infiniband/core/nldev.c). Pairs that
//! NIXL's backend makes to itself at its start lead to their own number, or to each other within the process; they are no
//! evidence of a peer. Pairs that mlx5 makes by DevX need not be in the list, so that an empty one proves nothing.

use std::collections::BTreeMap;

use model::observation::{Fact, Observation};

use super::facts::{Facts, origin, printable};

const ID: &str = "tool:rdma-qp";
const COMMAND: &str = "rdma resource show qp";

struct Pair<'t> {
    device: &'t str,
    own: u32,
    peer: u32,
    pid: u32,
}

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    // Told only where it ended well.
    if facts.tool_gap(ID).is_some() || !facts.ended_well(ID) {
        return;
    }
    let text = facts.tool(ID).unwrap_or_default();
    let pairs: Vec<Pair<'_>> = text.lines().filter_map(pair).collect();
    let mut counts: BTreeMap<(u32, String), u32> = BTreeMap::new();
    for one in &pairs {
        let itself = pairs.iter().any(|other| {
            other.pid == one.pid
                && other.device == one.device
                && other.own == one.peer
                && other.peer == one.own
        });
        if !itself {
            let count = counts.entry((one.pid, printable(one.device))).or_default();
            *count = count.saturating_add(1);
        }
    }
    seen.process.queue_pairs_listed = Fact::seen(true, origin(COMMAND));
    for ((pid, device), count) in counts {
        if let Some(process) = seen.process.processes.get_mut(&pid) {
            process
                .queue_pairs
                .insert(device, Fact::seen(count, origin(COMMAND)));
        }
    }
}

/// A queue pair that is connected to a peer and ready to send.
fn pair(line: &str) -> Option<Pair<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key)?;
        words.get(at.checked_add(1)?).copied()
    };
    (after("state")? == "RTS").then_some(())?;
    Some(Pair {
        device: after("link")?.split('/').next()?,
        own: after("lqpn")?.parse().ok()?,
        peer: after("rqpn")?.parse().ok()?,
        pid: after("pid")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connected_pair_has_a_peer_and_a_process() {
        let found = pair("link rxe0/1 lqpn 27 rqpn 28 type RC state RTS rq-psn 1 sq-psn 7 path-mig-state MIGRATED pdn 2 pid 162 comm python").unwrap();
        assert_eq!(
            (found.device, found.own, found.peer, found.pid),
            ("rxe0", 27, 28, 162)
        );
        for other in [
            "link rxe0/1 lqpn 23 type UD state RTS sq-psn 13 pdn 1 pid 163 comm python",
            "link rxe0/1 lqpn 1 type GSI state RTS sq-psn 0 comm [ib_core]",
            "link rxe0/1 lqpn 27 rqpn 28 type RC state INIT pid 162 comm python",
            "",
        ] {
            assert!(pair(other).is_none(), "{other}");
        }
    }
}
