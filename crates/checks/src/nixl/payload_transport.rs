//! What carries the payload to the peer, by UCX's own protocol table.
//!
//! With `UCX_PROTO_INFO=y` UCX prints one table for each operation, memory kind and peer. The transport in the Config
//! column decides, never the words: `zero-copy` over tcp is TCP, and `software emulation` means that the remote CPU
//! copies. NIXL writes by `put` and reads by `get`; a table of `put` is printed when an endpoint is made and says how a
//! write would go, a table of `get` when the first read is made. Only the side that starts the transfers has the table
//! that counts. A table of `self` is the process talking to itself, and no evidence. Memory kinds matter: a table of
//! host memory says nothing about GPU memory. A line of lanes (`cfg#1 rma(…)`) is a hint and never proof, because
//! emulation and shared memory do not show in it; lanes for control messages (`am`, `ka`) over tcp are normal.

use std::collections::BTreeSet;

use model::observation::log::{Lane, Log, ProtocolRow, ProtocolTable, Scope};
use model::observation::rdma::has_software_name;
use model::{Reason, Status};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::nixl::lane_lines::{differ, lanes};
use crate::node::gpudirect::NOTHING;
use crate::node::rdma_devices::SOFTWARE;
use crate::node::ucx_transports::{Family, family};
use crate::node_view::NodeView;

const NAME: &str = "nixl/payload-transport";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the payload goes over RDMA or NVLink",
    source: include_str!("payload_transport.rs"),
    causes: &[TABLE, EMULATION, SHARED_MEMORY, LANES, LANES_DIFFER],
    notes: &[SAME_NODE],
    run: Run::Place(run),
};

pub(crate) const TABLE: Cause = Cause {
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

pub(crate) const SHARED_MEMORY: Cause = Cause {
    id: "nixl-shm-not-representative",
    what: "the payload goes over shared memory (cma, sysv, posix, xpmem)",
    why: "both processes share a PID or IPC namespace; two pods do not, so this says nothing about them",
    fix: "test between two pods",
    quiet_if: "prefill and decode really run in one pod",
    source: "UCX_PROTO_INFO=y, checked with NIXL 1.5.1",
};

pub(crate) const LANES: Cause = Cause {
    id: "nixl-lane-line",
    what: "only a line of lanes tells about the way to the peer, and no protocol table",
    why: "lanes are a hint and no proof: they named tcp where the payload went over shared memory, and name cuda_ipc where reads are emulated",
    fix: "run with UCX_PROTO_INFO=y, transfer once, and look at the table of the peer",
    quiet_if: "a protocol table of the peer is there; endpoints of the process itself",
    source: "UCX ucp_worker.c, UCX_LOG_LEVEL=info; checked with NIXL 1.5.1 on one host; ai-dynamo/nixl#1097",
};

pub(super) const LANES_DIFFER: Cause = Cause {
    id: "nixl-endpoint-advertises-more-than-payload",
    what: "the line of lanes names another transport for one-sided transfers than the protocol table",
    why: "lanes are what an endpoint could use; the table is what it uses",
    fix: "none: believe the table",
    quiet_if: "both name the same kind of transport; lanes for control messages (am, ka) are no payload",
    source: "UCX ucp_worker.c and proto_debug.c, checked with NIXL 1.5.1 on one host",
};

const SAME_NODE: Cause = Cause {
    id: "cuda-ipc-hidden-gpus",
    what: "two processes of one node use RDMA and not NVLink",
    why: "within the node RDMA loops through the card; NVLink (cuda_ipc) needs both GPUs in sight of both processes",
    fix: "none; make the peer's GPU visible to use NVLink",
    quiet_if: "always a note",
    source: "UCX cuda_ipc",
};

/// Tables that tell about a transfer: of a peer, and of an operation that NIXL uses.
pub(crate) fn of_peers(log: &Log) -> impl Iterator<Item = &ProtocolTable> {
    log.tables.iter().filter(|table| {
        table.scope != Scope::SelfEndpoint && matches!(table.operation.as_str(), "put" | "get")
    })
}

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
    let mut told = false;
    let mut best: Vec<(&str, Status)> = Vec::new();
    for table in of_peers(log).filter(|table| counts(table, log)) {
        if let Some(finding) = of_table(table) {
            told = true;
            best.push((&table.operation, finding.status()));
            push(findings, finding, table);
        }
    }
    if told {
        let shown = |op: &str, status| best.iter().any(|(o, s)| *o == op && *s == status);
        let reads = best
            .iter()
            .any(|(op, s)| *op == "get" && *s != Status::Skipped);
        if !reads && shown("put", Status::Ok) | shown("put", Status::Warn) {
            findings.push(
                Finding::skipped(
                    NAME,
                    Reason::NotVisible,
                    "no protocol table tells what carries a READ (get), which is what most engines do; a table of a write is printed without any transfer",
                )
                .fix("transfer once, and read the log of the side that starts the transfers to its end")
                .required(),
            );
        }
        differ(log, findings);
        return;
    }
    let own = log.tables.iter().find(|t| t.scope == Scope::SelfEndpoint);
    if let Some(table) = own {
        let words = large(table).map(lanes_of_row).unwrap_or_default();
        push(
            findings,
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!(
                    "the only protocol table is of the process itself ({words}): no evidence about a peer"
                ),
            )
            .required(),
            table,
        );
    }
    lanes(&log.lanes, log.unread_table.is_some(), findings);
}

/// NIXL asks for `ucp_put*(multi)` and `ucp_get*(multi)`. UCX prints other variants of the same operation as well,
/// which no KV takes; they count where there is no other, as with NIXL 0.1.1.
pub(super) fn counts(table: &ProtocolTable, log: &Log) -> bool {
    let multi = |t: &ProtocolTable| t.description.contains("(multi)");
    multi(table)
        || !of_peers(log).any(|other| {
            multi(other)
                && !other.rows.is_empty()
                && other.operation == table.operation
                && other.context == table.context
                && other.config == table.config
                && other.from_memory == table.from_memory
                && other.to_memory == table.to_memory
                && other.process == table.process
        })
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
pub(super) fn large(table: &ProtocolTable) -> Option<&ProtocolRow> {
    table.rows.iter().rev().find(|r| !r.lanes.is_empty())
}

fn lanes_of_row(row: &ProtocolRow) -> String {
    named(row.lanes.iter())
}

pub(super) fn named<'l>(lanes: impl Iterator<Item = &'l Lane>) -> String {
    let words: BTreeSet<String> = lanes
        .map(|l| format!("{}/{}", l.transport, l.device))
        .collect();
    let words: Vec<String> = words.into_iter().collect();
    words.join(", ")
}

pub(super) fn families<'l>(lanes: impl Iterator<Item = &'l Lane>) -> Vec<Family> {
    let mut all: Vec<Family> = Vec::new();
    for lane in lanes {
        let one = family(&lane.transport);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}

pub(super) fn whose(scope: &Scope) -> &'static str {
    match scope {
        Scope::SelfEndpoint => "to itself",
        Scope::IntraNode => "to a peer on the same node",
        Scope::InterNode => "to a peer on another node",
        Scope::Unknown => "to a peer",
    }
}

/// `WRITE (put) from host to cuda/dev[0]`.
pub(crate) fn operation(table: &ProtocolTable) -> String {
    let mut out = match table.operation.as_str() {
        "put" => "WRITE (put)".to_owned(),
        "get" => "READ (get)".to_owned(),
        other => other.to_owned(),
    };
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

pub(super) fn is_software(lane: &Lane) -> bool {
    has_software_name(&lane.device)
}

/// Through a buffer of UCX in host memory, and not straight from the memory of the operation.
fn bounced(how: &str) -> bool {
    how.contains("copy-in") || how.contains("copy-out")
}

/// Smaller blocks of KV are rare, and tcp for them does no harm.
const SMALL: u64 = 64 * 1024;

/// A row before the last that sends larger blocks over tcp.
fn tcp_in_between<'t>(table: &'t ProtocolTable, last: &ProtocolRow) -> Option<&'t ProtocolRow> {
    table.rows.iter().find(|row| {
        row.from_bytes != last.from_bytes
            && row.to_bytes.is_some_and(|to| to >= SMALL)
            && families(row.lanes.iter()).contains(&Family::Tcp)
    })
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
    let emulated = how.contains("software emulation");
    // Of several rails the table tells what part each one carries.
    let carried = if row.config.contains('%') {
        &row.config
    } else {
        &lanes_of_row(row)
    };
    let what = format!(
        "{} {}: {carried} for {}..{} bytes ({how})",
        operation(table),
        whose(&table.scope),
        row.range.0,
        row.range.1
    );
    let gpu = [&table.from_memory, &table.to_memory]
        .into_iter()
        .flatten()
        .any(|m| !m.starts_with("host"));
    let direct = all
        .iter()
        .any(|f| matches!(f, Family::Rdma | Family::GpuIpc));
    Some(if emulated && all.contains(&Family::Tcp) {
        Finding::fail(
            NAME,
            &EMULATION,
            format!("{what}: both CPUs copy it, over TCP"),
        )
        .fix(TABLE.fix)
    } else if emulated {
        Finding::fail(NAME, &EMULATION, format!("{what}: both CPUs copy it"))
    } else if all.contains(&Family::Tcp) && direct {
        Finding::warn(NAME, &TABLE, format!("{what}: a part of it goes over tcp"))
    } else if all.contains(&Family::Tcp) {
        Finding::fail(NAME, &TABLE, what)
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
    } else if direct && gpu && bounced(how) && !all.contains(&Family::GpuIpc) {
        Finding::warn(
            NAME,
            &NOTHING,
            format!("{what}: large blocks of GPU memory are copied through host memory"),
        )
    } else if direct {
        if let Some(between) = tcp_in_between(table, row) {
            return Some(Finding::warn(
                NAME,
                &TABLE,
                format!(
                    "{what}, but {} for {}..{} bytes",
                    lanes_of_row(between),
                    between.range.0,
                    between.range.1
                ),
            ));
        }
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
    })
}
