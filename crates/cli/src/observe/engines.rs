//! What the engines of observed pods have open, and where their metrics are.

use std::collections::BTreeMap;

use checks::ProbedPod;
use model::EngineSeen;
use model::observation::Fact;
use model::observation::process::Process;
use transfer::Opened;

use crate::transfer::pair::process_of;

/// Ports that are asked for metrics at most.
const MAX_PORTS: usize = 4;

/// All that the engine's processes have open.
pub(super) fn opened(pod: &ProbedPod) -> Opened {
    let Ok(facts) = &pod.probed else {
        return Opened::default();
    };
    let seen = &facts.observation;
    let mut opened = Opened::default();
    for process in seen.process.processes.values() {
        if let Some(own) = process.connections.value() {
            opened
                .connections
                .get_or_insert_default()
                .extend(own.iter().copied());
        }
        for (device, count) in pairs(process) {
            *opened.queue_pairs.entry(device).or_default() += count;
        }
    }
    for (name, interface) in &seen.interfaces.interfaces {
        for (address, _) in interface.addresses.value().into_iter().flatten() {
            opened.addresses.insert(*address, name.clone());
        }
    }
    opened
}

fn pairs(process: &Process) -> BTreeMap<String, u32> {
    process
        .queue_pairs
        .iter()
        .filter_map(|(device, count)| Some((device.clone(), *count.value()?)))
        .collect()
}

/// Ports of the loopback interface at which the engine has metrics, as far as its settings and its kind tell; only those
/// on which it listens.
pub(super) fn metric_ports(pod: &ProbedPod) -> Vec<u16> {
    let Ok(facts) = &pod.probed else {
        return Vec::new();
    };
    let seen = &facts.observation.process;
    let mut named: Vec<u16> = Vec::new();
    for process in seen.processes.values() {
        let value = |name: &str| process.environment.get(name).and_then(Fact::value);
        let on = value("NIXL_TELEMETRY_ENABLE").is_some_and(|text| {
            let text = text.to_ascii_lowercase();
            ["y", "yes", "on", "true", "enable", "1"].contains(&text.as_str())
        });
        match value("NIXL_TELEMETRY_PROMETHEUS_PORT").map(|text| text.trim().parse()) {
            Some(Ok(port)) => named.push(port),
            _ if on => named.push(9090),
            _ => {}
        }
        match process.engine.value().map(String::as_str) {
            Some("vllm" | "trtllm") => named.push(8000),
            Some("sglang") => named.push(30000),
            _ => {}
        }
    }
    let listens = |port: u16| {
        seen.listening
            .value()
            .into_iter()
            .flatten()
            .any(|one| one.port == port && one.process.is_some())
    };
    named.retain(|port| listens(*port));
    named.sort_unstable();
    named.dedup();
    named.truncate(MAX_PORTS);
    named
}

/// What the engine that transfers held open when it was looked at.
pub(super) fn of(pod: &ProbedPod) -> Option<EngineSeen> {
    let (pid, process) = process_of(pod)?;
    Some(EngineSeen {
        pod: pod.object.name.clone(),
        process: pid,
        queue_pairs: pairs(process),
        rdma_devices: process
            .open_devices
            .value()
            .into_iter()
            .flatten()
            .filter(|path| path.starts_with("/dev/infiniband/uverbs"))
            .cloned()
            .collect(),
        ..EngineSeen::default()
    })
}
