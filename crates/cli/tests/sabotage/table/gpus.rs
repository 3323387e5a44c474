//! In GPUs, their driver and the modules that let cards reach their memory.

use super::{Fault, fault, harmless};
use crate::inside::{self, Driver, tool};
use crate::worker::Worker;

fn driver(worker: &mut Worker, told: &Driver) {
    inside::driver(&worker.tree, &worker.id, told);
}

fn proprietary(worker: &mut Worker) {
    worker.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Wed Jan  1 00:00:00 UTC 2025\n",
    );
    worker.without_module("nvidia_peermem");
}

fn older(worker: &mut Worker) {
    let version = "570.86.10";
    worker.file(
        "/proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.10  Release Build  (root@builder)\n",
    );
    worker.file("/sys/module/nvidia/version", "570.86.10\n");
    worker.file("/sys/module/nvidia_peermem/version", "570.86.10\n");
    driver(
        worker,
        &Driver {
            version,
            ..Driver::default()
        },
    );
}

fn fewer(worker: &mut Worker) {
    worker.remove("/dev/nvidia7");
    driver(
        worker,
        &Driver {
            gpus: 7,
            ..Driver::default()
        },
    );
}

#[rustfmt::skip]
pub(super) fn all() -> Vec<Fault> {
    vec![
        fault("closed modules without peer memory", "decode-22", proprietary, "gdr-peermem-missing"),
        fault("peer memory not loaded", "decode-23", |w| w.without_module("nvidia_peermem"), "worker-gpus-differ"),
        fault("an older driver", "decode-24", older, "worker-gpus-differ"),
        fault("one GPU less", "prefill-11", fewer, "gpu-fewer-than-granted"),
        fault("an NVLink that is down", "decode-25", |w| driver(w, &Driver { link: "<inactive>", ..Driver::default() }), "nvlink-inactive"),
        fault("a fabric in progress", "decode-26", |w| driver(w, &Driver { fabric: ("In Progress", "N/A", "N/A"), ..Driver::default() }), "nvlink-active-but-fabric-dead"),
        fault("an unhealthy fabric", "decode-27", |w| driver(w, &Driver { fabric: ("Completed", "Success", "Unhealthy"), ..Driver::default() }), "fabric-health-unhealthy"),
        fault("a driver that does not answer", "decode-28", |w| tool(&w.tree, "nvidia-smi", "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18"), "gpu-driver-not-answering"),
        harmless("no GDRCopy", "prefill-12", |w| w.remove("/dev/gdrdrv")),
        fault("a narrow PCIe link", "prefill-13", |w| w.file("/sys/devices/pci0000:25/0000:25:01.0/0000:26:00.0/0000:27:01.0/0000:29:00.0/current_link_width", "8\n"), "pcie-link-degraded"),
        harmless("other kernel", "prefill-14", |w| w.file("/proc/sys/kernel/osrelease", "6.8.0-other\n")),
    ]
}
