//! Which network NCCL uses between nodes.
//!
//! The last `Using network` line of a process decides, not the name of a plugin; `IB` is printed for RoCE as well. NCCL
//! does not carry KV. What counts for KV is only what it shows about the container: no RDMA device, no libibverbs.

use std::collections::BTreeMap;

use model::observation::log::Event;

use crate::check::{Cause, Check, Run};
use crate::env::setting_notes::{NCCL_IFNAME, NCCL_SOCKET};
use crate::finding::{Finding, Findings};
use crate::node::ports::list;
use crate::node_view::NodeView;

const NAME: &str = "collectives/nccl-network";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "NCCL uses RDMA between nodes",
    source: include_str!("nccl_network.rs"),
    causes: &[VERBS, OFI, COMPLETION],
    notes: &[],
    run: Run::Place(run),
};

const VERBS: Cause = Cause {
    id: "nccl-libibverbs-missing",
    what: "NCCL could not load libibverbs",
    why: "the image lacks rdma-core, so a UCX that uses the system's libraries has no RDMA either",
    fix: "install libibverbs1 and ibverbs-providers in the image",
    quiet_if: "NCCL then uses another RDMA network, such as the EFA plugin",
    source: "nccl src/misc/ibvsymbols.cc; NVIDIA/nccl#229",
};

const OFI: Cause = Cause {
    id: "nccl-efa-plugin-missing",
    what: "EFA devices are here, and NCCL uses sockets without its OFI plugin",
    why: "aws-ofi-nccl is not in the image or not on the library path: collectives over several nodes run over TCP",
    fix: "use an image with aws-ofi-nccl, with its directory in LD_LIBRARY_PATH",
    quiet_if: "the log names the efa provider, no EFA device is here, or the group stays on one node",
    source: "aws/aws-ofi-nccl (Selected provider is efa); NVIDIA/nccl#229",
};

const COMPLETION: Cause = Cause {
    id: "nccl-completion-error",
    what: "an RDMA operation of NCCL ended with an error (12 or IBV_WC_RETRY_EXC_ERR: the peer did not answer)",
    why: "collectives stop; KV over the same cards is likely to fail as well",
    fix: "look at addresses (a routable RoCE v2 GID on both sides), MTU, loss in the network, and at the peer's log",
    quiet_if: "the peer was stopped at that moment",
    source: "nccl src/transport/net_ib.cc",
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let log = &view.seen.log;
    if let Some(event) = log.of("nccl-no-socket-interface").next() {
        // Without a bootstrap no engine starts.
        findings.push(
            Finding::fail(NAME, &NCCL_IFNAME, "NCCL finds no socket interface")
                .read_at(std::slice::from_ref(&event.origin), "no interface"),
        );
    }
    if let Some(event) = log.of("nccl-completion-error").next() {
        let error = event.field("error").unwrap_or_default();
        let words = error.split_whitespace().next().unwrap_or_default();
        findings.push(
            Finding::warn(
                NAME,
                &COMPLETION,
                format!(
                    "NCCL: an RDMA operation to {} ended with {words}",
                    event.field("peer").unwrap_or("a peer")
                ),
            )
            .collective()
            .read_at(std::slice::from_ref(&event.origin), "completion"),
        );
    }
    let mut last: BTreeMap<_, &Event> = BTreeMap::new();
    for event in log.of("nccl-network") {
        let process = &event.process;
        last.insert((process.host.clone(), process.pid, process.rank), event);
    }
    let network = |e: &Event| e.field("network").unwrap_or_default().to_owned();
    let sockets: Vec<&&Event> = last
        .values()
        .filter(|e| network(e).eq_ignore_ascii_case("socket"))
        .collect();
    let others: Vec<&&Event> = last
        .values()
        .filter(|e| !network(e).eq_ignore_ascii_case("socket"))
        .collect();
    if let Some(event) = log.of("nccl-libibverbs").next()
        && others.is_empty()
    {
        findings.push(
            Finding::warn(NAME, &VERBS, "NCCL could not load libibverbs here")
                .read_at(std::slice::from_ref(&event.origin), "not loaded"),
        );
    }
    if let Some(event) = sockets.first() {
        socket(view, event, findings);
    }
    if let Some(event) = others.first() {
        let mut devices: Vec<String> = log
            .of("nccl-ib")
            .filter_map(|e| e.field("devices"))
            .flat_map(names)
            .collect();
        devices.sort();
        devices.dedup();
        let on = if devices.is_empty() {
            String::new()
        } else {
            format!(" on {}", list(&devices))
        };
        let mut finding = Finding::ok(
            NAME,
            format!(
                "NCCL uses {}{on}; this says nothing about KV",
                network(event)
            ),
        );
        if let Some(direct) = log.of("nccl-gpudirect").last() {
            finding = finding.note(format!(
                "its GPUDirect RDMA: {}",
                direct.field("state").unwrap_or("not told")
            ));
        }
        findings.push(
            finding
                .collective()
                .read_at(std::slice::from_ref(&event.origin), "network"),
        );
    }
}

/// `[0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; OOB eth0:10.0.0.1<0>`
fn names(text: &str) -> Vec<String> {
    text.split(';')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|word| {
            let (index, name) = word.strip_prefix('[')?.split_once(']')?;
            index.parse::<u32>().ok()?;
            (!name.is_empty()).then(|| name.to_owned())
        })
        .take(64)
        .collect()
}

fn socket(view: &NodeView<'_>, event: &Event, findings: &mut Findings) {
    let log = &view.seen.log;
    let place = std::slice::from_ref(&event.origin);
    let efa = view
        .seen
        .rdma
        .devices
        .iter()
        .any(|(name, device)| crate::node::ports::is_efa(name, device));
    if efa && log.of("nccl-ofi-provider").next().is_none() {
        findings.push(
            Finding::fail(NAME, &OFI, "NCCL uses sockets, and EFA devices are here")
                .collective()
                .read_at(place, "network"),
        );
        return;
    }
    let no_device = log.of("nccl-no-ib-device").next();
    let opened = log.of("nccl-device-not-opened").next().is_some();
    match no_device {
        Some(found) => findings.push(
            Finding::warn(
                NAME,
                &NCCL_SOCKET,
                if opened {
                    "NCCL found no RDMA device that it could open and uses sockets (network Socket)"
                } else {
                    "NCCL found no RDMA device and uses sockets (network Socket): UCX here finds the same devices"
                },
            )
            .fix("give the container the RDMA devices and libibverbs; unset NCCL_NET and NCCL_IB_DISABLE")
            .read_at(&[found.origin.clone(), event.origin.clone()], "network"),
        ),
        None => findings.push(
            Finding::warn(NAME, &NCCL_SOCKET, "NCCL uses sockets (network Socket)")
                .collective()
                .read_at(place, "network"),
        ),
    }
}
