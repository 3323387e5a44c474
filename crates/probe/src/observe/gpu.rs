//! GPUs as the kernel shows them, with and without their tools.

use model::Reason;
use model::observation::gpu::Gpu;
use model::observation::{Fact, Observation};

use super::facts::{Facts, origin, printable};
use super::rdma;
use crate::stream::Kind;
use crate::text;

const NVIDIA: &str = "/proc/driver/nvidia";
const CHANNELS: &str = "/dev/nvidia-caps-imex-channels";

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    driver(facts, seen);
    for address in facts.names(Kind::File, &format!("{NVIDIA}/gpus")) {
        seen.gpu.gpus.add(of_proc(facts, address));
    }
    let mut other = Vec::new();
    for address in facts.names(Kind::File, "/sys/bus/pci/devices") {
        match pci_gpu(facts, address) {
            Some(Found::Nvidia(gpu)) => seen.gpu.gpus.add(*gpu),
            Some(Found::Other(name)) => other.push(name),
            None => {}
        }
    }
    for (path, name) in [
        ("/dev/kfd", "amdgpu"),
        ("/dev/neuron0", "neuron"),
        ("/dev/davinci0", "ascend"),
        ("/dev/davinci_manager", "ascend"),
        ("/dev/hl0", "gaudi"),
    ] {
        if facts.node(path).is_some_and(|text| text != "absent") {
            other.push(name.to_owned());
        }
    }
    other.sort();
    other.dedup();
    if facts.reached("interfaces") {
        seen.gpu.other_accelerators = Fact::seen(other, origin("/sys/bus/pci/devices"));
    }
    switches_and_channels(facts, seen);
}

fn driver(facts: &Facts<'_>, seen: &mut Observation) {
    let path = format!("{NVIDIA}/version");
    seen.gpu.driver_version = facts.row(&path, "NVRM version", driver_version);
    seen.gpu.open_kernel_modules = facts.row(&path, "NVRM version", |text| {
        Some(text.contains("Open Kernel Module"))
    });
    let parameters = format!("{NVIDIA}/params");
    for line in facts.lines(&parameters) {
        if let Some((name, value)) = line.split_once(':') {
            seen.gpu.driver_parameters.insert(
                printable(name.trim()),
                Fact::seen(printable(value.trim()), origin(&parameters)),
            );
        }
    }
}

/// `NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build …`.
fn driver_version(text: &str) -> Option<String> {
    text.split_whitespace()
        .find(|word| {
            word.contains('.')
                && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                && word.starts_with(|c: char| c.is_ascii_digit())
        })
        .map(str::to_owned)
}

/// `/proc/driver/nvidia/gpus/ADDRESS/information`.
fn of_proc(facts: &Facts<'_>, address: &str) -> Gpu {
    let path = format!("{NVIDIA}/gpus/{address}/information");
    let mut gpu = Gpu {
        uuid: facts.row(&path, "GPU UUID", |t| {
            // Question marks until the GPU was used for the first time.
            t.starts_with("GPU-")
                .then(|| printable(t))
                .filter(|t| !t.contains('?'))
        }),
        name: facts.row(&path, "Model", |t| Some(printable(t))),
        minor: facts.row(&path, "Device Minor", |t| t.parse().ok()),
        pci: Fact::seen(printable(address), origin(&path)),
        ..Gpu::default()
    };
    if let Some(minor) = gpu.minor.value() {
        gpu.node = rdma::dev_node(facts, &format!("/dev/nvidia{minor}"));
        if facts.reached("pci") && !gpu.node.exists.is_seen() {
            gpu.node.exists = Fact::seen(false, origin(&format!("/dev/nvidia{minor}")));
        }
    }
    gpu
}

enum Found {
    Nvidia(Box<Gpu>),
    Other(String),
}

/// A GPU or accelerator on the PCI bus.
fn pci_gpu(facts: &Facts<'_>, address: &str) -> Option<Found> {
    let directory = format!("/sys/bus/pci/devices/{address}");
    let at = |file: &str| format!("{directory}/{file}");
    let class = text::small(facts.text(&at("class"))?)? >> 8;
    let vendor = text::small(facts.text(&at("vendor"))?)?;
    let name = match (vendor, class) {
        (0x10de, 0x0300 | 0x0302) => {
            let gpu = Gpu {
                pci: Fact::seen(printable(address), origin(&directory)),
                numa_node: facts.fact(&at("numa_node"), |t| t.parse().ok()),
                pcie: rdma::pcie(facts, &directory),
                ..Gpu::default()
            };
            return Some(Found::Nvidia(Box::new(gpu)));
        }
        // Display controllers of AMD and Intel may be part of the processor: a driver for computing tells.
        (0x1002, 0x0300 | 0x0302 | 0x0380 | 0x1200) if facts.node("/dev/kfd").is_some() => "amdgpu",
        (0x1002, 0x0302 | 0x0380 | 0x1200) => "amdgpu",
        (0x8086, 0x0302 | 0x0380 | 0x1200) => "xe",
        (0x19e5, 0x1200 | 0x0302) => "ascend",
        (0x1da3, 0x1200) => "gaudi",
        (0x1d0f, 0x0880) => "neuron",
        _ => return None,
    };
    Some(Found::Other(name.to_owned()))
}

fn switches_and_channels(facts: &Facts<'_>, seen: &mut Observation) {
    if !facts.reached("pci") {
        return;
    }
    let nodes = facts
        .nodes()
        .filter(|path| {
            path.strip_prefix("/dev/nvidia-nvswitch")
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
        .count();
    let on_bus = facts
        .names(Kind::File, "/sys/bus/pci/devices")
        .into_iter()
        .filter(|address| {
            let at = |file: &str| format!("/sys/bus/pci/devices/{address}/{file}");
            facts.text(&at("vendor")) == Some("0x10de")
                && facts
                    .text(&at("class"))
                    .is_some_and(|c| c.starts_with("0x0680"))
        })
        .count();
    seen.gpu.nvswitches = Fact::seen(
        u32::try_from(nodes.max(on_bus)).unwrap_or(u32::MAX),
        origin("/sys/bus/pci/devices"),
    );
    let mut channels = Vec::new();
    for path in facts.nodes() {
        let Some(number) = path
            .strip_prefix(CHANNELS)
            .and_then(|p| p.strip_prefix("/channel")?.parse().ok())
        else {
            continue;
        };
        channels.push(number);
        seen.gpu
            .imex
            .nodes
            .insert(number, rdma::dev_node(facts, path));
    }
    channels.sort_unstable();
    seen.gpu.imex.channels = Fact::seen(channels, origin(CHANNELS));
    let comms: Vec<_> = facts
        .keys(Kind::Proc)
        .filter(|key| key.ends_with("/comm"))
        .filter_map(|key| Some((key, *facts.of(Kind::Proc, key).first()?)))
        .collect();
    let runs = comms
        .iter()
        .find(|(_, comm)| comm.starts_with("nv-fabricmanage"));
    seen.gpu.fabric_manager = match (runs, facts.listed("fabricmanager").first()) {
        (Some((key, _)), _) => Fact::seen(true, origin(&format!("/proc/{key}"))),
        (None, Some(path)) if path.ends_with("nvidia-fabricmanager") => {
            Fact::seen(true, origin(path))
        }
        // In a container its process cannot be seen.
        _ if seen.host.place.value() == Some(&model::observation::host::Place::Host)
            && facts.reached("providers") =>
        {
            Fact::seen(false, origin("/proc"))
        }
        _ => Fact::missing(
            Reason::NotVisible,
            "processes of the machine cannot be seen from here",
        ),
    };
}
