//! The machine, the container, limits and modules.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::host::Place;
use model::observation::limits::{Capabilities, Limit, Limits};
use model::observation::modules::{Module, ModuleListing};
use model::observation::pci::PciDevice;
use model::observation::{Fact, Observation};

use super::facts::{Facts, line_of, origin, printable};
use super::rdma::pcie;
use super::values;
use crate::stream::Kind;
use crate::sysfs::is_hypervisor;
use crate::text;

const MODULES: &str = "/proc/modules";

pub(super) fn read(facts: &Facts<'_>, seen: &mut Observation) {
    seen.host.hostname = facts.string("/proc/sys/kernel/hostname");
    seen.host.kernel = facts.string("/proc/sys/kernel/osrelease");
    seen.host.architecture = facts.string("/proc/sys/kernel/arch");
    seen.host.boot_id = facts.string("/proc/sys/kernel/random/boot_id");
    seen.host.virtual_machine = virtual_machine(facts);
    seen.host.system_vendor = facts.string("/sys/class/dmi/id/sys_vendor");
    seen.host.namespaces = namespaces(facts, "self");
    if facts.reached("modules") {
        let signs = facts.listed("container");
        seen.host.place = match signs.first() {
            Some(sign) => Fact::seen(Place::Container, origin(sign)),
            // No sign at all, and the first process is a system's.
            None if matches!(facts.text("/proc/1/comm"), Some("systemd" | "init")) => {
                Fact::seen(Place::Host, origin("/proc/1/comm"))
            }
            None => Fact::missing(Reason::NotVisible, "no sign of a container or of a host"),
        };
    }
    seen.limits = limits(facts, "self");
    shared_memory(facts, &mut seen.limits);
    cgroup(facts, &mut seen.limits);
    modules(facts, seen);
    pci(facts, seen);
    direct(facts, seen);
}

/// A guest's processors have a word of their own on x86; elsewhere the firmware names the hypervisor.
fn virtual_machine(facts: &Facts<'_>) -> Fact<bool> {
    const CPUINFO: &str = "/proc/cpuinfo";
    if let Some(words) = facts.text(CPUINFO) {
        return Fact::seen(words.ends_with("hypervisor"), origin(CPUINFO));
    }
    for file in ["sys_vendor", "product_name"] {
        let path = format!("/sys/class/dmi/id/{file}");
        if facts.text(&path).is_some_and(is_hypervisor) {
            return Fact::seen(true, origin(&path));
        }
    }
    Fact::missing(
        Reason::NotVisible,
        "neither the processor nor the firmware says whether this is a virtual machine",
    )
}

/// Namespaces of a process, as numbers.
pub(super) fn namespaces(facts: &Facts<'_>, pid: &str) -> BTreeMap<String, Fact<u64>> {
    ["net", "ipc", "pid"]
        .iter()
        .filter_map(|name| {
            let path = format!("/proc/{pid}/ns/{name}");
            let target = facts.link(&path)?;
            let number = target.split_once('[')?.1.strip_suffix(']')?.parse().ok()?;
            Some(((*name).to_owned(), Fact::seen(number, origin(&path))))
        })
        .collect()
}

/// Limits and rights of a process.
pub(super) fn limits(facts: &Facts<'_>, pid: &str) -> Limits {
    let path = format!("/proc/{pid}/limits");
    let status = format!("/proc/{pid}/status");
    let word = |row: &str, at: usize| {
        facts.row(&path, row, |text| {
            text.split_whitespace().nth(at).and_then(values::limit)
        })
    };
    Limits {
        memlock_soft: word("Max locked memory", 0),
        memlock_hard: word("Max locked memory", 1),
        open_files_soft: word("Max open files", 0),
        open_files_hard: word("Max open files", 1),
        capabilities: facts.row(&status, "CapEff", |text| {
            u64::from_str_radix(text, 16).ok().map(Capabilities)
        }),
        // Real, effective, saved and file system user.
        uid: facts.row(&status, "Uid", |text| {
            text.split_whitespace().nth(1)?.parse().ok()
        }),
        cpus_allowed: facts.row(&status, "Cpus_allowed_list", |text| Some(printable(text))),
        mems_allowed: facts.row(&status, "Mems_allowed_list", |text| Some(printable(text))),
        ..Limits::default()
    }
}

/// `df -Pk /dev/shm`.
fn shared_memory(facts: &Facts<'_>, limits: &mut Limits) {
    let Some(text) = facts.tool("tool:df") else {
        return;
    };
    let row = text.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            // Where nothing is mounted there, it tells the file system around it.
            [_, total, used, _, _, place] if place.ends_with("/dev/shm") => Some((
                total.parse::<u64>().ok()?.checked_mul(1024)?,
                used.parse::<u64>().ok()?.checked_mul(1024)?,
            )),
            _ => None,
        }
    });
    match row {
        Some((total, used)) => {
            limits.shm_bytes = Fact::seen(total, origin("/dev/shm"));
            limits.shm_used_bytes = Fact::seen(used, origin("/dev/shm"));
        }
        None => {
            limits.shm_bytes = Fact::missing(Reason::NotVisible, "nothing is mounted at /dev/shm");
        }
    }
}

/// Limits of the control group, version 2 or 1.
fn cgroup(facts: &Facts<'_>, limits: &mut Limits) {
    for (_, path) in facts.children(Kind::File, "/sys/fs/cgroup") {
        let Some(text) = facts.text(path) else {
            continue;
        };
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match name {
            "memory.max" => limits.cgroup_memory = facts.fact(path, values::limit),
            "memory.limit_in_bytes" => {
                limits.cgroup_memory = facts.fact(path, |text| {
                    // The largest number that it takes stands for no limit.
                    let bytes: u64 = text.parse().ok()?;
                    Some(if bytes >= 1 << 62 {
                        Limit::Unlimited
                    } else {
                        Limit::Value(bytes)
                    })
                });
            }
            "cpu.max" => {
                limits.cgroup_cpu_milli = facts.fact(path, |text| {
                    let (quota, period) = text.split_once(' ')?;
                    thousandths(quota, period)
                });
            }
            "cpu.cfs_quota_us" => {
                let period = facts.text(&format!("{folder}/cpu.cfs_period_us"));
                limits.cgroup_cpu_milli = facts.fact(path, |_| {
                    let quota = if text == "-1" { "max" } else { text };
                    thousandths(quota, period?)
                });
            }
            "rdma.max" => {
                // `mlx5_0 hca_handle=2 hca_object=2000`, one line for each device.
                for line in facts.lines(path) {
                    if let Some((device, rest)) = line.split_once(' ') {
                        limits
                            .cgroup_rdma
                            .insert(printable(device), Fact::seen(printable(rest), origin(path)));
                    }
                }
            }
            _ => {}
        }
    }
}

fn thousandths(quota: &str, period: &str) -> Option<Limit> {
    Some(match values::limit(quota)? {
        Limit::Unlimited => Limit::Unlimited,
        Limit::Value(quota) => {
            Limit::Value(quota.checked_mul(1000)?.checked_div(period.parse().ok()?)?)
        }
    })
}

/// `/proc/modules`; the script passes on only those that matter.
fn modules(facts: &Facts<'_>, seen: &mut Observation) {
    let lines = facts.lines(MODULES);
    for (line, at) in lines.iter().zip(1_u32..) {
        let mut words = line.split_whitespace();
        let (Some(name), Some(_size), Some(count), Some(users)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let state = words.next().unwrap_or("Live");
        let from = line_of(MODULES, at);
        let sys = format!("/sys/module/{name}");
        let mut module = Module {
            loaded: Fact::seen(state == "Live", from.clone()),
            version: facts.string(&format!("{sys}/version")),
            ..Module::default()
        };
        if let Ok(count) = count.parse() {
            module.use_count = Fact::seen(count, from.clone());
        }
        let users: Vec<String> = users
            .split(',')
            .filter(|user| !matches!(*user, "" | "-"))
            .map(printable)
            .collect();
        module.used_by = Fact::seen(users, from);
        seen.modules.modules.insert(printable(name), module);
    }
    // A module that is built in, or a container that hides /proc/modules.
    for path in facts.listed("module") {
        let Some(name) = path.rsplit('/').next() else {
            continue;
        };
        let module = seen.modules.modules.entry(name.to_owned()).or_default();
        if !module.loaded.is_seen() {
            module.loaded = Fact::seen(true, origin(path));
            module.version = facts.string(&format!("{path}/version"));
        }
    }
    // A kernel without loadable modules has no such file.
    if facts.reached("modules") && !facts.reached("gpus") && lines.is_empty() {
        return;
    }
    if facts.reached("gpus")
        && !matches!(
            facts.of(Kind::None, MODULES).first(),
            Some(&"denied" | &"unreadable")
        )
    {
        seen.modules.listings.push(ModuleListing {
            origin: origin(MODULES),
            count: u32::try_from(lines.len()).unwrap_or(u32::MAX),
            whole: facts.of(Kind::None, MODULES).is_empty() && facts.nothing_lost(),
        });
        let clients = "/sys/kernel/mm/memory_peers";
        let names: Vec<String> = facts
            .names(Kind::File, clients)
            .into_iter()
            .map(printable)
            .collect();
        seen.modules.peer_memory_clients = Fact::seen(names, origin(clients));
    }
}

fn pci(facts: &Facts<'_>, seen: &mut Observation) {
    const DEVICES: &str = "/sys/bus/pci/devices";
    for address in facts.names(Kind::File, DEVICES) {
        let directory = format!("{DEVICES}/{address}");
        let at = |file: &str| format!("{directory}/{file}");
        let mut device = PciDevice {
            // The last two digits are the programming interface.
            class: facts.fact(&at("class"), |t| text::small(t).map(|c| c >> 8)),
            vendor: facts.fact(&at("vendor"), text::small),
            device: facts.fact(&at("device"), text::small),
            numa_node: facts.fact(&at("numa_node"), |t| t.parse().ok()),
            virtual_function: Fact::seen(
                facts.link(&at("physfn")).is_some(),
                origin(&at("physfn")),
            ),
            pcie: pcie(facts, &directory),
            ..PciDevice::default()
        };
        if let Some(word) = facts.link(&at("driver")).and_then(|d| d.rsplit('/').next()) {
            device.driver = Fact::seen(printable(word), origin(&at("driver")));
        }
        seen.host.pci.insert(printable(address), Box::new(device));
    }
}

/// What lets network cards reach GPU memory, apart from modules.
fn direct(facts: &Facts<'_>, seen: &mut Observation) {
    seen.gpudirect.gdrcopy_node = super::rdma::dev_node(facts, "/dev/gdrdrv");
    let devices = "/proc/devices";
    let has = |name: &str| {
        facts
            .lines(devices)
            .iter()
            .any(|line| line.split_whitespace().nth(1) == Some(name))
    };
    if facts.reached("modules") {
        seen.gpudirect.gdrcopy_registered = Fact::seen(has("gdrdrv"), origin(devices));
        seen.gpu.imex.registered = Fact::seen(has("nvidia-caps-imex-channels"), origin(devices));
        let groups = "/sys/kernel/iommu_groups";
        seen.gpudirect.iommu_groups = Fact::seen(!facts.listed("iommu").is_empty(), origin(groups));
        let options = facts.lines("/proc/cmdline");
        seen.gpudirect.iommu_options = Fact::seen(
            options
                .iter()
                .filter(|word| word.contains("iommu"))
                .map(|word| printable(word))
                .collect(),
            origin("/proc/cmdline"),
        );
    }
    seen.gpudirect.gdrcopy_version = facts.string("/sys/module/gdrdrv/version");
}
