//! UCX reaches its peer.
//!
//! What UCX says when an endpoint cannot be made, a queue pair gives up, or an interface does not lead to the peer.
//! These lines name the way that was tried, so they also tell that RDMA or TCP was chosen.

use model::observation::Origin;
use model::observation::log::Event;

use crate::check::{Cause, Check, Run};
use crate::env::mnnvl::NO_FABRIC_ALLOCATOR;
use crate::env::ucx_net_devices::LOOPBACK;
use crate::env::ucx_tls::NO_ACTIVE_MESSAGES;
use crate::finding::{Finding, Findings};
use crate::nixl::payload_transport::EMULATION;
use crate::node_view::NodeView;

const NAME: &str = "nixl/ucx-connections";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX reaches its peer",
    source: include_str!("ucx_connections.rs"),
    causes: &[
        UNREACHABLE,
        WRONG_INTERFACE,
        BLOCKED,
        REFUSED,
        NO_HANDLER,
        GET_OFF,
        API,
        DEVX,
    ],
    notes: &[],
    run: Run::Place(run),
};

const UNREACHABLE: Cause = Cause {
    id: "ucx-peer-unreachable",
    what: "no transport of this process reaches the peer",
    why: "the endpoint cannot be made, so nothing is transferred",
    fix: "compare UCX_TLS and UCX_NET_DEVICES of both sides; the reasons in the line tell what was tried",
    quiet_if: "never",
    source: "UCX select.c:722",
};

pub(crate) const WRONG_INTERFACE: Cause = Cause {
    id: "ucx-tcp-unreachable-interface",
    what: "UCX connects over TCP to an address that does not lead to the peer",
    why: "UCX offers every interface; a bridge that both sides have, or a rail without a connection, was picked",
    fix: "name the interface or device that joins the pods in UCX_NET_DEVICES",
    quiet_if: "never",
    source: "UCX, checked with two pods that have the same bridge address",
};

pub(crate) const BLOCKED: Cause = Cause {
    id: "networkpolicy-blocks",
    what: "a connection of UCX over TCP is not answered",
    why: "a network policy or firewall drops it, or the peer is gone; UCX listens on ports that the kernel picks",
    fix: "allow all ports between prefill and decode, or set UCX_TCP_PORT_RANGE and allow these",
    quiet_if: "the peer is not up yet",
    source: "UCX tcp_sockcm.c, checked with a dropped SYN",
};

pub(crate) const REFUSED: Cause = Cause {
    id: "ucx-peer-not-listening",
    what: "a connection of UCX over TCP is refused: nothing listens at that address and port",
    why: "the peer has ended, started again with another port, or is not up yet; a firewall that rejects looks the same",
    fix: "look whether the peer still runs and at the end of its log; if it does, look for a firewall or network policy that rejects",
    quiet_if: "the address is that of a container bridge or the loopback (then the interface is wrong); it was not answered (then something drops it)",
    source: "UCX tcp_sockcm.c, checked with a peer that ended and with a firewall that rejects",
};

const NO_HANDLER: Cause = Cause {
    id: "ucx-error-handling-am-peer-failure",
    what: "no transport of the list can handle the loss of a peer, which NIXL asks for",
    why: "NIXL cannot make its endpoint: shared memory and the process's own transport have no such handling",
    fix: "add rc (with an RDMA device) or tcp to UCX_TLS, or remove UCX_TLS",
    quiet_if: "never",
    source: "UCX select.c: no peer failure handler",
};

const GET_OFF: Cause = Cause {
    id: "ucx-cuda-ipc-get-off-no-nvlink",
    what: "UCX switched off reads over cuda_ipc, because the GPUs have no NVLink",
    why: "NIXL connectors read KV: within a node that then goes over TCP or the network card",
    fix: "UCX_CUDA_IPC_ENABLE_GET_ZCOPY=on, or a connector that pushes",
    quiet_if: "an RDMA device carries KV; prefill and decode on different nodes",
    source: "UCX cuda_ipc_iface.c",
};

const API: Cause = Cause {
    id: "ucx-api-mismatch",
    what: "NIXL or another library was built for another version of UCX",
    why: "it mostly works and is not supported",
    fix: "one version of UCX in the image",
    quiet_if: "both versions are the same",
    source: "UCX ucp_context.c",
};

const DEVX: Cause = Cause {
    id: "nixl-err-backend-devx",
    what: "a call to the network card's own interface (DevX) fails",
    why: "the device was lost, or the container may not use it",
    fix: "look at the kernel log of the node, and at the rights on /dev/infiniband",
    quiet_if: "while the process ends",
    source: "UCX ib_mlx5.c",
};

/// Different lines that are told; a log can repeat itself for ever.
const MAX_TOLD: usize = 256;

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let mut told: Vec<(String, Vec<Origin>, Finding)> = Vec::new();
    for event in &view.seen.log.events {
        let Some((detail, finding)) = of(event) else {
            continue;
        };
        if let Some((_, origins, _)) = told.iter_mut().find(|(d, ..)| *d == detail) {
            origins.push(event.origin.clone());
        } else if told.len() < MAX_TOLD {
            told.push((detail, vec![event.origin.clone()], finding));
        }
    }
    for (_, origins, finding) in told {
        findings.push(finding.read_at(&origins, "log line"));
    }
}

fn fail(cause: &'static Cause, detail: String) -> (String, Finding) {
    (detail.clone(), Finding::fail(NAME, cause, detail))
}

fn warn(cause: &'static Cause, detail: String) -> (String, Finding) {
    (detail.clone(), Finding::warn(NAME, cause, detail))
}

fn of(event: &Event) -> Option<(String, Finding)> {
    let field = |name: &str| event.field(name).unwrap_or_default().trim();
    Some(match event.pattern.as_ref() {
        "ucx-no-transport-to-peer" => unreachable(field("kind"), field("reasons")),
        "ucx-connect-failed" => {
            let (peer, error) = (field("peer"), field("error"));
            let detail = format!("connection to {peer} failed: {error}");
            if error.contains("timed out") {
                fail(&BLOCKED, detail)
            } else if error.contains("refused") && !of_bridge(peer) {
                fail(
                    &REFUSED,
                    format!("{detail}: the peer does not listen there"),
                )
            } else {
                fail(&WRONG_INTERFACE, detail)
            }
        }
        "ucx-zero-copy-missing" => fail(
            &EMULATION,
            format!(
                "no zero-copy {} into {} from {}, and software emulation is switched off",
                field("op"),
                field("to"),
                field("from")
            ),
        ),
        "ucx-cuda-ipc-get-off" => warn(
            &GET_OFF,
            "reads over cuda_ipc are off: no NVLink between the GPUs".to_owned(),
        ),
        "ucx-no-fabric-handle" => warn(
            &NO_FABRIC_ALLOCATOR,
            "GPU memory has no fabric handle: NVLink between nodes cannot carry it".to_owned(),
        ),
        "ucx-api-incompatible" => warn(
            &API,
            format!(
                "UCX {} is loaded, {} is what the program was built for",
                field("actual"),
                field("required")
            ),
        ),
        "ucx-devx-failed" => fail(&DEVX, format!("mlx5dv_devx_obj_{} failed", field("call"))),
        _ => return None,
    })
}

/// The address of a container bridge, which every host has: `172.17.0.1`.
pub(crate) fn of_bridge(peer: &str) -> bool {
    let address = peer.rsplit_once(':').map_or(peer, |(address, _)| address);
    address.parse::<std::net::Ipv4Addr>().is_ok_and(|a| {
        let [first, second, third, last] = a.octets();
        (first == 172 && (17..32).contains(&second) && third == 0 && last == 1) || a.is_loopback()
    })
}

/// One reason for each transport, separated by commas.
fn unreachable(kind: &str, reasons: &str) -> (String, Finding) {
    let parts: Vec<&str> = reasons.split(", ").filter(|r| r.contains(" - ")).collect();
    let of = |prefix: &str| {
        parts
            .iter()
            .filter(|r| r.trim_start().starts_with(prefix))
            .count()
    };
    let gpu_only = !parts.is_empty() && of("cuda_").saturating_add(of("gdr_copy")) == parts.len();
    let network = parts.iter().any(|r| {
        let name = r.trim_start().split('/').next().unwrap_or_default();
        !matches!(
            name,
            "self"
                | "sysv"
                | "posix"
                | "cma"
                | "xpmem"
                | "knem"
                | "cuda_copy"
                | "cuda_ipc"
                | "gdr_copy"
        )
    });
    let loopback = of("tcp/lo") > 0
        && parts
            .iter()
            .filter(|r| r.trim_start().starts_with("tcp/"))
            .all(|r| r.trim_start().starts_with("tcp/lo"))
        && reasons.contains("different");
    let clipped: String = reasons.chars().take(240).collect();
    let detail = format!("no {kind} transport to the peer: {clipped}");
    if gpu_only {
        fail(&NO_ACTIVE_MESSAGES, detail)
    } else if loopback {
        fail(&LOOPBACK, detail)
    } else if reasons.contains("no peer failure handler") && !network {
        fail(&NO_HANDLER, detail)
    } else {
        fail(&UNREACHABLE, detail)
    }
}
