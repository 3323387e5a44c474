//! What a transfer does, said before it is carried out.

use std::fmt::Write as _;

use checks::shell_word;
use cluster::Exec;
use transfer::{Both, Memory, PROGRAM, Plan, Side};

use super::pair::Pair;
use crate::args::TransferArgs;

/// The plan for a pair.
pub(super) fn of(pair: &Pair<'_>, seconds: u64, given: &TransferArgs) -> Plan {
    let mut memories = vec![Memory::Host];
    if pair.gpus {
        memories.push(Memory::Gpu);
    }
    let mut plan = Plan::both_ways_of_engines(&memories);
    plan.bytes_per_second = given.rate;
    if let Some(largest) = given.largest {
        plan.legs.retain(|leg| leg.bytes <= largest);
    }
    super::bounded(plan, seconds)
}

/// What is run in each container.
pub(super) fn execs(pair: &Pair<'_>, plan: &Plan) -> Both<Exec> {
    let of = |side| {
        let pod = pair.ends.of(side);
        let process = *pair.processes.of(side);
        Exec {
            namespace: pod.object.namespace.clone(),
            pod: pod.object.name.clone(),
            container: pod.container.clone(),
            command: transfer::launch(pair.engines.of(side), process, plan.seconds, false),
        }
    };
    Both {
        prefill: of(Side::Prefill),
        decode: of(Side::Decode),
    }
}

/// The plan in words: what runs where, and its bounds.
pub(super) fn words(pair: &Pair<'_>, plan: &Plan, rate: Option<u64>) -> String {
    let mut out = format!("--transfer: {}\n", plan.sentence());
    for side in Side::ALL {
        let end = pair.end(side);
        let node = end.node.as_deref().unwrap_or("an unknown node");
        let whose = match end.process {
            Some(pid) => format!("with the settings of its engine (process {pid})"),
            None => "with the settings of its container: no engine process was seen".to_owned(),
        };
        let does = plan
            .legs
            .iter()
            .filter(|leg| leg.initiator == side)
            .map(|leg| leg.operation.as_str())
            .next()
            .unwrap_or("nothing");
        let engine = match pair.operation {
            Some(operation) if operation.as_str() == does => ", as its engine does",
            Some(_) => ", which its engine does not",
            None => "",
        };
        let _infallible = writeln!(
            out,
            "  {}: pod {}/{}, container {}, on {node}; its own Python and NIXL, {whose}; it begins each {does}{engine}",
            side.as_str(),
            end.namespace,
            end.pod,
            end.container
        );
    }
    if let Some(by) = pair.by {
        let _infallible = writeln!(out, "  {by}");
    }
    let rate = match rate {
        Some(rate) => format!("at most {rate} bytes a second on average"),
        None => "as fast as it goes (--rate bounds it)".to_owned(),
    };
    let gpu = if pair.gpus {
        format!(
            "of GPU memory {} MiB in each, and only where 256 MiB more stay free",
            plan.buffer() >> 20
        )
    } else {
        "no GPU memory".to_owned()
    };
    let _infallible = write!(
        out,
        "  sizes {}; {rate}; {gpu}; nothing is written to a disk, and it ends with this command",
        sizes(plan)
    );
    out
}

fn sizes(plan: &Plan) -> String {
    let mut all: Vec<u64> = plan.legs.iter().map(|leg| leg.bytes).collect();
    all.sort_unstable();
    all.dedup();
    let words: Vec<String> = all
        .into_iter()
        .map(|bytes| match bytes >> 20 {
            0 => format!("{} KiB", bytes >> 10),
            mib => format!("{mib} MiB"),
        })
        .collect();
    words.join(", ")
}

/// Exactly what would be run, as kubectl would be told.
pub(super) fn commands(execs: &Both<Exec>) -> String {
    let mut out = String::new();
    for side in Side::ALL {
        let exec = execs.of(side);
        let words: Vec<String> = exec.command.iter().map(|w| shell_word(w)).collect();
        let _infallible = writeln!(
            out,
            "{}:\n  kubectl exec -i -n {} {} -c {} -- {}",
            side.as_str(),
            shell_word(&exec.namespace),
            shell_word(&exec.pod),
            shell_word(&exec.container),
            words.join(" ").replace('\n', "\n  ")
        );
    }
    let _infallible = write!(
        out,
        "on standard input of each: the program, {} bytes of Python, and its orders",
        PROGRAM.len()
    );
    out
}
