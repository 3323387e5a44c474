//! In libraries, and in what an agent in the engine's place answers.

use super::{Fault, fault, harmless};
use crate::inside::SITE;
use crate::worker::Worker;

fn old_package(worker: &mut Worker) {
    worker.remove(&format!("{SITE}/nixl_cu12-1.5.1.dist-info"));
    worker.file(&format!("{SITE}/nixl_cu12-0.4.1.dist-info/METADATA"), "");
    worker.trial.version = "0.4.1";
}

fn release(worker: &mut Worker) {
    worker.remove(&format!("{SITE}/nixl_cu12-1.5.1.dist-info"));
    worker.file(&format!("{SITE}/nixl_cu12-1.4.0.dist-info/METADATA"), "");
    worker.trial.version = "1.4.0";
}

fn without_provider(worker: &mut Worker) {
    worker.remove("/etc/libibverbs.d/mlx5.driver");
    worker.remove("/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so");
    worker.trial.transports.clear();
}

fn closed(worker: &mut Worker) {
    (20..28).for_each(|fd| worker.remove(&format!("/proc/42/fd/{fd}")));
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        fault("an old NIXL", "decode-33", old_package, "nixl-versions-incompatible"),
        fault("another release of NIXL", "decode-34", release, "worker-software-differs"),
        fault("another UCX", "decode-35", |w| w.library("/usr/local/ucx/lib/libucp.so.0.0.0", Some("libucp-")), "worker-software-differs"),
        fault("two copies of UCX", "decode-36", |w| w.library("/usr/local/ucx/lib/libucp.so.0.0.0", None), "ucx-two-copies-loaded"),
        fault("two copies of NIXL", "decode-37", |w| w.library("/usr/local/nixl/lib/libnixl.so", None), "nixl-two-copies-loaded"),
        fault("NIXL not loaded", "decode-38", |w| w.file("/proc/42/maps", &crate::inside::maps(&["/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06"])), "nixl-not-loaded"),
        fault("no provider", "prefill-18", without_provider, "nixl-ucx-offers-no-rdma"),
        fault("no backend", "prefill-19", |w| w.trial.error = Some("NIXL_ERR_BACKEND: cannot make it"), "nixl-backend-not-made"),
        fault("no device open", "prefill-20", closed, "nixl-no-rdma-device-open"),
        fault("a peer that does not answer", "prefill-22", |w| w.logged.push("ib_mlx5_log.c:171  UCX  ERROR Transport retry count exceeded on mlx5_3:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"), "ib-retry-exceeded"),
        harmless("a package beside it", "prefill-21", |w| w.file(&format!("{SITE}/lmcache-0.3.1.dist-info/METADATA"), "")),
    ]
}
