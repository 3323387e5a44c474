//! In RoCE devices, their GIDs and interfaces.

use super::{Fault, fault, harmless};
use crate::inside::{self, Fabric};
use crate::worker::Worker;

fn first_version(worker: &mut Worker) {
    (0..8).for_each(|n| inside::gids(&worker.tree, n, &worker.id, false));
}

fn small_packets(worker: &mut Worker) {
    inside::packets(&worker.tree, Fabric::Roce, 1024);
    (0..8).for_each(|n| worker.file(&format!("/sys/class/net/rdma{n}/mtu"), "1500\n"));
}

/// No address on any interface: only link-local GIDs are left.
fn without_address(worker: &mut Worker) {
    for n in 0..8 {
        for slot in [2, 3] {
            worker.remove(&format!(
                "/sys/class/infiniband/mlx5_{n}/ports/1/gids/{slot}"
            ));
        }
    }
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    let all = vec![
        fault("GIDs of version 1 only", "decode-1", first_version, "pair-roce-versions-differ"),
        fault("small packets", "decode-2", small_packets, "roce-mtu-mismatch"),
        fault("no address on the rails", "decode-3", without_address, "roce-only-link-local-gid"),
        fault("a RoCE port that is down", "prefill-4", |w| { w.port(1, "state", "1: DOWN"); w.port(1, "phys_state", "3: Disabled"); }, "ib-port-disabled"),
        fault("a pinned GID of version 1", "prefill-5", |w| w.process("UCX_IB_GID_INDEX", "0"), "gid-index-unusable"),
        fault("a RoCE rail of half the rate", "prefill-6", |w| w.port(3, "rate", "200 Gb/sec (4X HDR)"), "worker-rails-differ"),
        harmless("other firmware of a RoCE card", "prefill-7", |w| w.file("/sys/class/infiniband/mlx5_0/fw_ver", "28.42.1000\n")),
    ];
    all.into_iter().map(|fault| Fault { fabric: Fabric::Roce, ..fault }).collect()
}
