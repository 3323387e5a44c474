//! What the engine's processes use now: RDMA queue pairs, open RDMA devices, TCP connections.
//!
//! A connected queue pair of the engine's own process is evidence of RDMA to a peer (`rdma resource show qp`); pairs
//! that lead to the process itself are not counted. An open `/dev/infiniband/uverbsN` says that UCX or libfabric opened
//! the device, and nothing about the peer. UCX opens every RDMA device that it can when it starts: a process with
//! NIXL's UCX backend loaded, and with no such file open, does no RDMA over verbs at all, and says so nowhere.

use model::Reason;
use model::observation::process::Process;
use model::observation::rdma::has_software_name;

use super::view::{NixlView, libraries, who};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};

const NAME: &str = "nixl/in-use";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "what the engine's processes use now: queue pairs, devices, connections",
    source: include_str!("in_use.rs"),
    causes: &[NO_DEVICE],
    notes: &[SOFTWARE_PAIRS],
    run: Run::Nixl(run),
};

const NO_DEVICE: Cause = Cause {
    id: "nixl-no-rdma-device-open",
    what: "an engine's process has NIXL's UCX backend loaded and no RDMA device open, although devices are here",
    why: "UCX opens every RDMA device that it can: this process found none that it can use or may use, so that what goes to other nodes goes over TCP",
    fix: "look at nixl/transports for what its UCX offers, at UCX_TLS and UCX_NET_DEVICES, at rights on /dev/infiniband and at the providers of its libibverbs",
    quiet_if: "the backend is another one; no RDMA device is in the container; the process's open files cannot be read; KV goes over NVLink between nodes",
    source: "/proc/PID/fd; UCX ib_md.c; checked with NIXL 1.5.1 over soft-RoCE",
};

const SOFTWARE_PAIRS: Cause = Cause {
    id: "nixl-software-queue-pairs",
    what: "the queue pairs are of software RDMA (rxe, siw)",
    why: "software RDMA is no faster than TCP",
    fix: "none on this hardware",
    quiet_if: "always a note",
    source: "Linux drivers/infiniband/sw",
};

fn run(view: &NixlView<'_>, findings: &mut Findings) {
    let mut without: Vec<(u32, &Process)> = Vec::new();
    let mut told = false;
    for (pid, process) in view.with_nixl() {
        let pairs: Vec<(&str, u32)> = process
            .queue_pairs
            .iter()
            .filter_map(|(device, count)| Some((device.as_str(), *count.value()?)))
            .collect();
        let open: Vec<&str> = process
            .open_devices
            .value()
            .into_iter()
            .flatten()
            .filter_map(|path| path.strip_prefix("/dev/infiniband/"))
            .filter(|name| name.starts_with("uverbs"))
            .collect();
        if !pairs.is_empty() {
            told = true;
            findings.push(of_pairs(pid, process, &pairs));
        } else if !open.is_empty() {
            told = true;
            let listed = view.seen.process.queue_pairs_listed.is_seen();
            let words = if listed {
                "; it has no queue pair that leads to a peer"
            } else {
                ""
            };
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    format!(
                        "{} has {} open{words}: that it uses RDMA for a peer is not shown{}",
                        who(pid, process),
                        open.join(", "),
                        connections(process)
                    ),
                )
                .seen(&process.open_devices, "open"),
            );
        } else {
            without.push((pid, process));
        }
    }
    if !told {
        none_open(view, &without, findings);
    }
}

fn of_pairs(pid: u32, process: &Process, pairs: &[(&str, u32)]) -> Finding {
    let words: Vec<String> = pairs
        .iter()
        .map(|(device, count)| format!("{count} on {device}"))
        .collect();
    let mut finding = Finding::ok(
        NAME,
        format!(
            "{} has queue pairs that lead to a peer: {}{}",
            who(pid, process),
            words.join(", "),
            connections(process)
        ),
    )
    .note("that payload goes over them is not shown");
    if pairs.iter().any(|(device, _)| has_software_name(device)) {
        finding = finding.told(&SOFTWARE_PAIRS);
    }
    let origins: Vec<_> = process
        .queue_pairs
        .values()
        .flat_map(|fact| fact.sources().iter().cloned())
        .collect();
    finding.read_at(&origins, "queue pairs")
}

fn connections(process: &Process) -> String {
    match process.tcp_connections.value() {
        Some(0) => "; no TCP connection to another machine".to_owned(),
        Some(1) => "; 1 TCP connection to another machine".to_owned(),
        Some(n) => format!("; {n} TCP connections to other machines"),
        None => String::new(),
    }
}

fn none_open(view: &NixlView<'_>, without: &[(u32, &Process)], findings: &mut Findings) {
    let Some((pid, process)) = without
        .iter()
        .find(|(_, process)| {
            libraries(process)
                .iter()
                .any(|library| library.library == "libplugin_UCX")
        })
        .or(without.first())
    else {
        return;
    };
    // Its sockets are among its open files: where they were seen, the files were.
    if !process.tcp_connections.is_seen() {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NoPermission,
                format!(
                    "the open files of {} cannot be read: whether it uses RDMA is not shown",
                    who(*pid, process)
                ),
            )
            .note("look as the user of the engine, or as root with CAP_SYS_PTRACE"),
        );
        return;
    }
    let has = |name: &str| libraries(process).iter().any(|l| l.library == name);
    let devices = view
        .seen
        .rdma
        .nodes
        .iter()
        .any(|(name, node)| name.starts_with("uverbs") && node.exists.value() == Some(&true));
    let what = format!(
        "{} has no RDMA device open{}",
        who(*pid, process),
        connections(process)
    );
    // libfabric opens its devices later than UCX, and an agent may have another backend only.
    let finding = if devices && has("libplugin_UCX") && !has("libplugin_LIBFABRIC") {
        Finding::warn(
            NAME,
            &NO_DEVICE,
            format!("{what}, although devices are here"),
        )
    } else {
        Finding::skipped(NAME, Reason::NotVisible, what)
    };
    findings.push(finding.seen(&process.tcp_connections, "open files"));
}
