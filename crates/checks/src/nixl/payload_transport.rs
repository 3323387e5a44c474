//! What carries the payload to the peer, by UCX's own protocol table.
//!
//! With `UCX_PROTO_INFO=y` UCX prints one table for each operation, memory kind and peer. The transport in the Config
//! column decides, never the words: `zero-copy` over tcp is TCP, and `software emulation` means that the remote CPU
//! copies. NIXL writes by `put` and reads by `get`; a table of `put` is printed when an endpoint is made and says how a
//! write would go. A table of `self` is the process talking to itself, and no evidence. Memory kinds matter: a table of
//! host memory says nothing about GPU memory. A line of lanes (`cfg#1 rma(…)`) is a hint, because emulation and shared
//! memory do not show in it; lanes for control messages (`am`, `ka`) over tcp are normal.

use std::collections::BTreeSet;

use model::Reason;
use model::observation::log::{Lane, LaneLine, ProtocolRow, ProtocolTable, Scope};
use model::observation::rdma::has_software_name;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::rdma_devices::SOFTWARE;
use crate::node::ucx_transports::{Family, family};
use crate::node_view::NodeView;

const NAME: &str = "nixl/payload-transport";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the payload goes over RDMA or NVLink",
    source: include_str!("payload_transport.rs"),
    causes: &[TABLE, EMULATION, SHARED_MEMORY, LANES],
    notes: &[SAME_NODE],
    run: Run::Place(run),
};

const TABLE: Cause = Cause {
    id: "nixl-proto-table",
    what: "the protocol table of the peer names tcp in the rows of large transfers",
    why: "KV goes through the kernel's network stack, whatever the table calls it",
    fix: "look why UCX did not take RDMA: devices (node/rdma-devices), UCX_TLS, UCX_NET_DEVICES, the build (ucx_info -d)",
    quiet_if: "the table is of the process itself (self); tcp carries control messages only; small sizes only",
    source: "UCX_PROTO_INFO=y; proto_select tables of UCX 1.18 to 1.23",
};

pub(crate) const EMULATION: Cause = Cause {
    id: "nixl-software-emulation",
    what: "the protocol table of the peer says software emulation for put or get",
    why: "there is no one-sided path for this memory: both CPUs copy every block",
    fix: "make GPUDirect RDMA work (node/gpudirect), or use the backend of the fabric (LIBFABRIC on EFA)",
    quiet_if: "small sizes, or control messages",
    source: "UCX_PROTO_INFO=y; UCX proto_reconfig.c",
};

const SHARED_MEMORY: Cause = Cause {
    id: "nixl-shm-not-representative",
    what: "the payload goes over shared memory (cma, sysv, posix, xpmem)",
    why: "both processes share a PID or IPC namespace; two pods do not, so this says nothing about them",
    fix: "test between two pods",
    quiet_if: "prefill and decode really run in one pod",
    source: "UCX_PROTO_INFO=y, checked with NIXL 1.5.1",
};

const LANES: Cause = Cause {
    id: "nixl-lane-line",
    what: "a UCX endpoint has no lane for one-sided transfers (put and get are emulated, rma_am), or has them over tcp",
    why: "reads of KV would be copied by both CPUs; a line of lanes is only a hint",
    fix: "run with UCX_PROTO_INFO=y and look at the table of the peer",
    quiet_if: "the protocol table of the peer shows RDMA or NVLink; endpoints of the process itself",
    source: "UCX ucp_worker.c, UCX_LOG_LEVEL=info",
};

const SAME_NODE: Cause = Cause {
    id: "cuda-ipc-hidden-gpus",
    what: "two processes of one node use RDMA and not NVLink",
    why: "within the node RDMA loops through the card; NVLink (cuda_ipc) needs both GPUs in sight of both processes",
    fix: "none; make the peer's GPU visible to use NVLink",
    quiet_if: "always a note",
    source: "UCX cuda_ipc",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    if let Some(at) = &log.unread_table {
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                "a protocol table of UCX is there and could not be read: the transport of the payload is unknown",
            )
            .fix("give the log as the process printed it (kubectl logs), without changes to its lines")
            .read_at(std::slice::from_ref(at), "protocol table"),
        );
    }
    let mut of_peers = false;
    let mut own = None;
    for table in &log.tables {
        if table.scope == Scope::SelfEndpoint {
            own.get_or_insert(table);
            continue;
        }
        if !matches!(table.operation.as_str(), "put" | "get") {
            continue;
        }
        if let Some(finding) = of_table(table) {
            of_peers = true;
            push(findings, finding, table);
        }
    }
    if !of_peers {
        if let Some(table) = own {
            let words = table.rows.last().map(lanes_of_row).unwrap_or_default();
            push(
                findings,
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    format!(
                        "the only protocol table is of the process itself ({words}): no evidence about a peer"
                    ),
                ),
                table,
            );
        }
        lanes(&log.lanes, log.unread_table.is_some(), findings);
    }
}

/// Tables of many endpoints say the same; one line tells it.
fn push(findings: &mut Findings, finding: Finding, table: &ProtocolTable) {
    if findings
        .results()
        .iter()
        .any(|r| r.name == NAME && r.detail == finding.detail())
    {
        return;
    }
    findings.push(finding.read_at(std::slice::from_ref(&table.origin), "protocol table"));
}

/// The row that large transfers take: the last that is there.
fn large(table: &ProtocolTable) -> Option<&ProtocolRow> {
    table.rows.iter().rev().find(|r| !r.lanes.is_empty())
}

fn lanes_of_row(row: &ProtocolRow) -> String {
    named(row.lanes.iter())
}

fn named<'l>(lanes: impl Iterator<Item = &'l Lane>) -> String {
    let words: BTreeSet<String> = lanes
        .map(|l| format!("{}/{}", l.transport, l.device))
        .collect();
    let words: Vec<String> = words.into_iter().collect();
    words.join(", ")
}

fn families<'l>(lanes: impl Iterator<Item = &'l Lane>) -> Vec<Family> {
    let mut all: Vec<Family> = Vec::new();
    for lane in lanes {
        let one = family(&lane.transport);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

fn whose(scope: &Scope) -> &'static str {
    match scope {
        Scope::SelfEndpoint => "to itself",
        Scope::IntraNode => "to a peer on the same node",
        Scope::InterNode => "to a peer on another node",
        Scope::Unknown => "to a peer",
    }
}

/// `put from host to cuda/dev[0]`.
fn operation(table: &ProtocolTable) -> String {
    let mut out = table.operation.clone();
    if let Some(from) = &table.from_memory {
        out.push_str(" from ");
        out.push_str(from);
    }
    if let Some(to) = &table.to_memory {
        out.push_str(" to ");
        out.push_str(to);
    }
    out
}

fn is_software(lane: &Lane) -> bool {
    has_software_name(&lane.device)
}

fn of_table(table: &ProtocolTable) -> Option<Finding> {
    let row = large(table)?;
    if table.cut && row.to_bytes.is_some() {
        return Some(Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "{} {}: the table ends early, at {} bytes",
                operation(table),
                whose(&table.scope),
                row.range.1
            ),
        ));
    }
    let all = families(row.lanes.iter());
    let how = row.how.trim_start_matches("(?)").trim();
    let what = format!(
        "{} {}: {} for {}..{} bytes ({how})",
        operation(table),
        whose(&table.scope),
        lanes_of_row(row),
        row.range.0,
        row.range.1
    );
    let gpu = [&table.from_memory, &table.to_memory]
        .into_iter()
        .flatten()
        .any(|m| !m.starts_with("host"));
    Some(
        if all.contains(&Family::Tcp)
            && all
                .iter()
                .any(|f| matches!(f, Family::Rdma | Family::GpuIpc))
        {
            Finding::warn(NAME, &TABLE, format!("{what}: a part of it goes over tcp"))
        } else if all.contains(&Family::Tcp) {
            Finding::fail(NAME, &TABLE, what)
        } else if how.contains("software emulation") {
            Finding::fail(NAME, &EMULATION, what)
        } else if all
            .iter()
            .all(|f| matches!(f, Family::Shared | Family::Own))
        {
            Finding::warn(NAME, &SHARED_MEMORY, what)
        } else if row.lanes.iter().any(is_software) {
            Finding::warn(
                NAME,
                &SOFTWARE,
                format!("{what}: software RDMA, no faster than TCP"),
            )
        } else if all
            .iter()
            .any(|f| matches!(f, Family::Rdma | Family::GpuIpc))
        {
            let mut finding = Finding::ok(NAME, what);
            if table.scope == Scope::IntraNode {
                finding = finding.note("no evidence between nodes");
                if all.contains(&Family::Rdma) && gpu {
                    finding = finding.told(&SAME_NODE);
                }
            }
            if !gpu {
                finding = finding.note("host memory: it says nothing about KV in GPU memory");
            }
            if table.operation == "put" {
                finding = finding.note("how a write goes; a read has its own table (get)");
            }
            finding
        } else {
            return None;
        },
    )
}

/// Hints, where no table tells.
fn lanes(lines: &[LaneLine], unread: bool, findings: &mut Findings) {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for line in lines.iter().filter(|l| l.scope != Scope::SelfEndpoint) {
        let of = |name: &str| -> Vec<&Lane> {
            line.uses
                .iter()
                .filter(|(n, _)| n == name)
                .flat_map(|(_, l)| l)
                .collect()
        };
        let (direct, emulated) = (of("rma"), of("rma_am"));
        let other: Vec<&Lane> = ["rma_bw", "tag", "am"].into_iter().flat_map(of).collect();
        let peer = whose(&line.scope);
        let at = std::slice::from_ref(&line.origin);
        let finding = if !direct.is_empty() {
            let words = named(direct.iter().copied());
            let all = families(direct.iter().copied());
            if direct.iter().copied().any(is_software) {
                Finding::warn(
                    NAME,
                    &SOFTWARE,
                    format!(
                        "lanes {peer}: one-sided transfers over {words}: software RDMA, no faster than TCP"
                    ),
                )
            } else if all.iter().all(|f| *f == Family::Tcp) {
                Finding::warn(
                    NAME,
                    &LANES,
                    format!("lanes {peer}: one-sided transfers over {words}"),
                )
            } else if all.contains(&Family::Tcp) {
                Finding::warn(
                    NAME,
                    &LANES,
                    format!(
                        "lanes {peer}: one-sided transfers over {words}: a part of it may go over tcp"
                    ),
                )
            } else if unread {
                // The table tells more than lanes, and is there.
                continue;
            } else {
                Finding::ok(
                    NAME,
                    format!("lanes {peer}: one-sided transfers over {words}"),
                )
                .note("a line of lanes is a hint; the protocol table (UCX_PROTO_INFO=y) tells")
            }
        } else if !emulated.is_empty() {
            let words = named(emulated.iter().copied());
            let beside = other
                .iter()
                .filter(|l| !matches!(family(&l.transport), Family::Tcp));
            let beside = named(beside.copied());
            let beside = if beside.is_empty() {
                String::new()
            } else {
                format!("; {beside} is there, but not for put and get")
            };
            Finding::warn(
                NAME,
                &LANES,
                format!("lanes {peer}: put and get are emulated over {words}{beside}"),
            )
        } else {
            let words = named(other.iter().copied());
            let all = families(other.iter().copied());
            if words.is_empty() {
                continue;
            }
            if all
                .iter()
                .any(|f| matches!(f, Family::Rdma | Family::GpuIpc))
            {
                if unread {
                    continue;
                }
                Finding::ok(NAME, format!("lanes {peer}: messages over {words}")).note(
                    "lanes for messages, as MPI uses them, and a hint: no proof about KV over NIXL",
                )
            } else {
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    format!("lanes {peer}: messages over {words}; none is for one-sided transfers"),
                )
            }
        };
        // Every endpoint prints its line.
        let key = format!("{:?}{:?}", line.scope, line.uses);
        if told.insert(key) {
            findings.push(finding.read_at(at, "lanes"));
        }
    }
}
