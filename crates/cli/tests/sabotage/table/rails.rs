//! In RDMA devices and their ports.

use super::{Fault, fault, harmless};
use crate::inside::{self, Fabric};
use crate::worker::Worker;

fn state(worker: &mut Worker, card: usize, state: &str, physical: &str) {
    worker.port(card, "state", state);
    worker.port(card, "phys_state", physical);
}

/// All ports of a worker with this first half of their GIDs.
fn subnet(worker: &mut Worker, prefix: &str) {
    for card in 0..8 {
        let gid = format!("{prefix}:b83f:d203:{}:000{card}", worker.id);
        worker.port(card, "gids/0", &gid);
    }
}

fn without_card(worker: &mut Worker, card: usize) {
    for path in [
        format!("/sys/class/infiniband/mlx5_{card}"),
        format!("/sys/class/infiniband_verbs/uverbs{card}"),
        format!("/dev/infiniband/uverbs{card}"),
        format!("/sys/bus/pci/devices/0000:{card}9:00.0"),
        format!("/proc/42/fd/{}", card + 20),
    ] {
        worker.remove(&path);
    }
}

fn ethernet(worker: &mut Worker) {
    worker.ports("link_layer", "Ethernet");
    worker.ports("lid", "0x0");
    worker.ports("sm_lid", "0x0");
    worker.ports("gids/0", "0000:0000:0000:0000:0000:ffff:0a05:0007");
    worker.ports("gid_attrs/types/0", "RoCE v2");
    worker.ports("gid_attrs/ndevs/0", "eth0");
}

fn no_handle(worker: &mut Worker) {
    worker.file("/proc/self/cgroup", "0::/\n");
    worker.file("/sys/fs/cgroup/cgroup.controllers", "cpu memory rdma\n");
    worker.file(
        "/sys/fs/cgroup/rdma.max",
        "mlx5_0 hca_handle=0 hca_object=0\n",
    );
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        fault("a port that is down", "decode-3", |w| state(w, 3, "1: DOWN", "3: Disabled"), "ib-port-disabled"),
        fault("a port without a cable", "decode-4", |w| state(w, 5, "1: DOWN", "2: Polling"), "ib-port-down-polling"),
        fault("a port without a subnet manager", "prefill-2", |w| state(w, 0, "2: INIT", "5: LinkUp"), "ib-port-init-no-sm"),
        fault("a port that is armed", "prefill-4", |w| state(w, 7, "3: ARMED", "5: LinkUp"), "ib-port-armed"),
        fault("half the rate", "decode-7", |w| w.port(2, "rate", "200 Gb/sec (4X HDR)"), "worker-rails-differ"),
        fault("one lane of four", "decode-12", |w| w.port(2, "rate", "100 Gb/sec (1X NDR)"), "ib-rate-degraded"),
        fault("half the rate on all", "decode-13", |w| w.ports("rate", "200 Gb/sec (4X HDR)"), "worker-rails-differ"),
        fault("Ethernet in place of InfiniBand", "decode-14", ethernet, "pair-link-layers-differ"),
        fault("one card less", "decode-15", |w| without_card(w, 6), "worker-rails-differ"),
        fault("one device node less", "prefill-8", |w| w.remove("/dev/infiniband/uverbs4"), "worker-rails-differ"),
        fault("no device nodes", "prefill-9", |w| w.remove("/dev/infiniband"), "rdma-granted-no-device"),
        fault("no devices at all", "prefill-10", |w| (0..8).for_each(|card| without_card(w, card)), "rdma-granted-no-device"),
        fault("another subnet", "decode-16", |w| subnet(w, "fec0:0000:0000:0007"), "pair-ib-subnets-differ"),
        fault("limited member", "decode-17", |w| w.ports("pkeys/0", "0x7fff"), "ib-pkey-limited"),
        fault("another partition of the fabric", "decode-18", |w| w.ports("pkeys/0", "0x8001"), "pair-partitions-differ"),
        fault("small packets of InfiniBand", "decode-19", |w| inside::packets(&w.tree, Fabric::InfiniBand, 2048), "worker-rails-differ"),
        fault("no handle of a device", "decode-22", no_handle, "rdma-cgroup-limit"),
        harmless("other firmware", "decode-20", |w| w.file("/sys/class/infiniband/mlx5_0/fw_ver", "28.42.1000\n")),
        harmless("another board", "decode-21", |w| w.file("/sys/class/infiniband/mlx5_0/board_id", "NVD0000000099\n")),
    ]
}
