//! In limits and rights of one engine.

use super::{Fault, fault, harmless};
use crate::inside;
use crate::worker::Worker;

const LIMITS: &str = "/proc/42/limits";

fn locked(worker: &mut Worker, bytes: &str) {
    worker.file(LIMITS, &inside::limits(bytes, "1048576"));
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        // It has IPC_LOCK, for which the limit does not count.
        harmless("little locked memory", "decode-29", |w| locked(w, "65536")),
        fault("little locked memory and no right", "decode-30", |w| { locked(w, "65536"); inside::status(&w.tree, 0, "0000000000000000"); }, "ipc-lock-asked-not-effective"),
        fault("no IPC_LOCK", "decode-31", |w| inside::status(&w.tree, 0, "0000000000000000"), "worker-limits-differ"),
        fault("another user", "decode-32", |w| inside::status(&w.tree, 1000, "0000000000004000"), "worker-limits-differ"),
        fault("small shared memory", "prefill-15", |w| inside::shared_memory(&w.tree, 64 << 10), "worker-limits-differ"),
        fault("less shared memory", "prefill-16", |w| inside::shared_memory(&w.tree, 32 << 20), "worker-limits-differ"),
        fault("few files", "prefill-17", |w| w.file(LIMITS, &inside::limits("unlimited", "1024")), "worker-limits-differ"),
        harmless("more of this shell's files", "prefill-18", |w| w.file("/proc/self/limits", &inside::limits("unlimited", "2097152"))),
    ]
}
