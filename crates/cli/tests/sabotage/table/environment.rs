//! In `/proc/PID/environ` of one engine, and nowhere else: the pod's spec is that of the others.

use super::{Fault, fault, harmless};
use crate::worker::Worker;

/// Only UCX tells it: names that nobody knows do not leave a container.
fn misspelt(worker: &mut Worker) {
    worker.process("UCX_NET_DEVICE", "mlx5_0:1");
    worker.logged.push("parser.c:2314 UCX  WARN  unused environment variable: UCX_NET_DEVICE (maybe: UCX_NET_DEVICES?)");
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        fault("TCP only", "decode-17", |w| w.process("UCX_TLS", "tcp,cuda_copy"), "ucx-tls-tcp-only"),
        fault("no GPU memory", "prefill-3", |w| w.process("UCX_TLS", "rc,tcp"), "ucx-tls-no-gpu-memory-transport"),
        fault("transports of NCCL's words", "decode-1", |w| w.process("UCX_TLS", "rdma,cuda_copy"), "ucx-tls-unknown-name"),
        fault("transports in capitals", "decode-2", |w| w.process("UCX_TLS", "RC,cuda_copy"), "ucx-tls-spaces-quotes-case"),
        fault("datagrams only", "decode-39", |w| w.process("UCX_TLS", "ud,cuda_copy,cuda_ipc"), "ucx-tls-ud-only"),
        fault("transports set to nothing", "prefill-23", |w| w.process("UCX_TLS", ""), "ucx-tls-empty-string"),
        fault("no transports at all", "prefill-22", |w| w.unset("UCX_TLS"), "worker-settings-differ"),
        fault("a device that is not here", "decode-5", |w| w.process("UCX_NET_DEVICES", "mlx5_11:1"), "selected-device-missing"),
        fault("an interface for a device", "decode-6", |w| w.process("UCX_NET_DEVICES", "eth0"), "ucx-netdev-eth0"),
        fault("the storage card", "prefill-7", |w| w.process("UCX_NET_DEVICES", "mlx5_8:1"), "ucx-netdev-storage-or-mgmt-nic"),
        fault("one card for eight GPUs", "decode-8", |w| w.process("UCX_NET_DEVICES", "mlx5_0:1"), "single-nic-pin-multi-gpu"),
        fault("devices set to nothing", "decode-9", |w| w.process("UCX_NET_DEVICES", ""), "ucx-netdev-empty"),
        fault("another rendezvous", "decode-10", |w| w.process("UCX_RNDV_SCHEME", "am"), "worker-settings-differ"),
        fault("no rendezvous", "decode-11", |w| w.process("UCX_RNDV_THRESH", "inf"), "worker-settings-differ"),
        fault("one rail", "prefill-12", |w| w.process("UCX_MAX_RMA_RAILS", "1"), "worker-settings-differ"),
        fault("GPUDirect off", "decode-13", |w| w.process("UCX_IB_GPU_DIRECT_RDMA", "n"), "ucx-gdr-forced-off"),
        fault("a GID that is not there", "decode-14", |w| w.process("UCX_IB_GID_INDEX", "7"), "worker-settings-differ"),
        fault("another partition", "decode-15", |w| w.process("UCX_IB_PKEY", "0x8001"), "worker-settings-differ"),
        fault("a side channel on all addresses", "decode-16", |w| w.process("VLLM_NIXL_SIDE_CHANNEL_HOST", "0.0.0.0"), "side-channel-host-any"),
        fault("a side channel for itself", "prefill-0", |w| w.process("VLLM_NIXL_SIDE_CHANNEL_HOST", "127.0.0.1"), "side-channel-host-loopback"),
        fault("somebody else's side channel", "prefill-1", |w| w.process("VLLM_NIXL_SIDE_CHANNEL_HOST", "10.77.0.9"), "side-channel-host-wrong-ip"),
        fault("another layout of KV", "decode-18", |w| w.process("VLLM_KV_CACHE_LAYOUT", "NHD"), "worker-settings-differ").pairs(&["kv-cache-layout-differs"]),
        fault("no GPU to be seen", "decode-19", |w| w.process("CUDA_VISIBLE_DEVICES", ""), "worker-settings-differ"),
        fault("plugins from elsewhere", "decode-20", |w| w.process("NIXL_PLUGIN_DIR", "/opt/other/plugins"), "worker-settings-differ"),
        fault("no NVLink in UCX", "decode-21", |w| w.process("UCX_TLS", "rc,cuda_copy"), "worker-settings-differ"),
        fault("a misspelt name", "decode-22", misspelt, "ucx-env-typo"),
        harmless("NCCL's log", "decode-23", |w| w.process("NCCL_DEBUG", "INFO")),
        harmless("NCCL without RDMA", "decode-24", |w| w.process("NCCL_IB_DISABLE", "1")),
        harmless("NCCL's interface", "decode-25", |w| w.process("NCCL_SOCKET_IFNAME", "eth0")),
        harmless("a library before others", "decode-26", |w| w.process("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")),
        harmless("threads", "decode-27", |w| w.process("OMP_NUM_THREADS", "8")),
        harmless("rails that NIXL does not use", "decode-29", |w| w.process("UCX_MAX_RNDV_RAILS", "1")),
        harmless("UCX's log", "decode-28", |w| w.process("UCX_LOG_LEVEL", "info")),
    ]
}
