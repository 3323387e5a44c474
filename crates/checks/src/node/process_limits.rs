//! Shared memory, open files and the RDMA control group are large enough.
//!
//! `/dev/shm` and open files do not carry KV between nodes: engines and NCCL need them inside the pod, so they are told
//! as collectives. The limit of the RDMA control group is about KV: with none left no queue can be created.

use model::observation::limits::{Limit, Limits};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/process-limits";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "Limits of the process are large enough",
    source: include_str!("process_limits.rs"),
    causes: &[SHM, CGROUP],
    notes: &[NOFILE],
    run: Run::Place(run),
};

const SHM: Cause = Cause {
    id: "shm-small",
    what: "/dev/shm has 64 MB or less, the default of container runtimes",
    why: "ranks of one pod share memory through it: NCCL and the engine fail with several GPUs; KV between pods does not use it",
    fix: "mount an emptyDir with medium Memory at /dev/shm",
    quiet_if: "it is larger, or one GPU is used",
    source: "NCCL documentation, troubleshooting (shared memory); NVIDIA/nccl-tests#177",
};

const CGROUP: Cause = Cause {
    id: "rdma-cgroup-limit",
    what: "the RDMA control group allows no handle on a device",
    why: "opening the device fails, so UCX has no RDMA there",
    fix: "raise rdma.max of the pod's control group, or remove the limit",
    quiet_if: "the limit is max, or not 0",
    source: "Linux Documentation/admin-guide/cgroup-v2 (RDMA interface files)",
};

const NOFILE: Cause = Cause {
    id: "nofile-low",
    what: "1024 open files or fewer",
    why: "1024 open files or fewer: with many ranks and peers a process can run out of them",
    fix: "raise the limit of open files (ulimit -n)",
    quiet_if: "few ranks and peers",
    source: "NCCL documentation, troubleshooting",
};

/// What container runtimes give.
const SHM_DEFAULT: u64 = 64 << 20;
const FILES: u64 = 1024;

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let limits = &view.seen.limits;
    if let Some(bytes) = limits.shm_bytes.value() {
        let one_gpu = view.seen.gpu.usable() == 1;
        let mb = bytes >> 20;
        let finding = if *bytes <= SHM_DEFAULT && !one_gpu {
            Finding::warn(NAME, &SHM, format!("/dev/shm has {mb} MB only")).collective()
        } else {
            Finding::ok(NAME, format!("/dev/shm has {mb} MB"))
        };
        findings.push(finding.seen(&limits.shm_bytes, "size"));
    }
    for (device, fact) in &limits.cgroup_rdma {
        let Some(value) = fact.value() else { continue };
        let none = value
            .split_whitespace()
            .any(|w| matches!(w, "hca_handle=0" | "hca_object=0"));
        if none {
            findings.push(
                Finding::fail(
                    NAME,
                    &CGROUP,
                    format!("the RDMA control group allows nothing on {device} ({value})"),
                )
                .device(device.clone())
                .seen(fact, "limit"),
            );
        }
    }
    let engine = view
        .seen
        .process
        .processes
        .values()
        .map(|p| &p.limits)
        .find(|l| l.open_files_soft.is_seen());
    files(engine.unwrap_or(limits), findings);
}

fn files(limits: &Limits, findings: &mut Findings) {
    let Some(limit) = limits.open_files_soft.value() else {
        return;
    };
    let finding = match limit {
        Limit::Unlimited => Finding::ok(NAME, "open files: unlimited"),
        Limit::Value(n) if *n <= FILES => {
            Finding::ok(NAME, format!("open files: {n}")).told(&NOFILE)
        }
        Limit::Value(n) => Finding::ok(NAME, format!("open files: {n}")),
    };
    findings.push(finding.collective().seen(&limits.open_files_soft, "limit"));
}
