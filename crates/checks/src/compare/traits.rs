//! What replicas of one workload have in common, as words that can be held against each other.

use std::collections::{BTreeMap, BTreeSet};

use model::Observation;
use model::observation::gpu::LinkState;
use model::observation::limits::{Capabilities, Limit};
use model::observation::modules::Presence;
use model::observation::process::Process;

use super::layers::Layer;
use super::rails::{Rails, fabric_words, partition_words, subnet_words};
use crate::pod::view::PodView;

/// One thing that replicas have in common.
pub(crate) struct Trait {
    pub(crate) layer: Layer,
    /// `active RDMA ports`.
    pub(crate) what: &'static str,
    /// Worth knowing, and no more.
    pub(crate) note: bool,
    of: Of,
}

/// What a value is read from, in words; `None` where it is not known.
#[derive(Clone, Copy)]
enum Of {
    Pod(fn(&PodView<'_>) -> Option<String>),
    /// Worked out once for a worker, and read by many.
    Rails(fn(&Rails<'_>) -> Option<String>),
}

impl Trait {
    /// The value of a worker with these rails.
    pub(crate) fn value(&self, pod: &PodView<'_>, rails: Option<&Rails<'_>>) -> Option<String> {
        match self.of {
            Of::Pod(of) => of(pod),
            Of::Rails(of) => of(rails?),
        }
    }
}

const fn warns(layer: Layer, what: &'static str, of: fn(&PodView<'_>) -> Option<String>) -> Trait {
    Trait {
        layer,
        what,
        note: false,
        of: Of::Pod(of),
    }
}

const fn notes(layer: Layer, what: &'static str, of: fn(&PodView<'_>) -> Option<String>) -> Trait {
    Trait {
        note: true,
        ..warns(layer, what, of)
    }
}

const fn rails_warn(what: &'static str, of: fn(&Rails<'_>) -> Option<String>) -> Trait {
    Trait {
        layer: Layer::Rails,
        what,
        note: false,
        of: Of::Rails(of),
    }
}

const fn rails_note(what: &'static str, of: fn(&Rails<'_>) -> Option<String>) -> Trait {
    Trait {
        note: true,
        ..rails_warn(what, of)
    }
}

/// All of them but settings, whose names are not known before.
pub(crate) const TRAITS: &[Trait] = &[
    warns(Layer::Spec, "image", image),
    warns(Layer::Spec, "resources", resources),
    warns(Layer::Spec, "claims", claims),
    warns(Layer::Spec, "added capabilities", capabilities),
    warns(Layer::Spec, "user", user),
    warns(Layer::Spec, "privileged", |pod| {
        Some(yes(pod.container?.privileged))
    }),
    warns(Layer::Spec, "host network", |pod| {
        Some(yes(pod.object.host_network))
    }),
    warns(Layer::Spec, "mounts", mounts),
    rails_warn("active RDMA ports", |rails| Some(rails.count())),
    rails_warn("rates", rates),
    rails_warn("fabric", |rails| {
        let fabrics = rails.fabrics();
        (!fabrics.is_empty()).then(|| fabric_words(&fabrics))
    }),
    rails_warn("packet size", |rails| {
        Some(words(rails.mtus()?.iter().map(u32::to_string)))
    }),
    rails_warn("RoCE version of the GIDs", |rails| {
        rails.roce_versions().map(str::to_owned)
    }),
    // Racks may have a subnet each, with a router between them; pair/fabric tells what does not reach its peers.
    rails_note("InfiniBand subnets", |rails| {
        Some(subnet_words(&rails.subnets()?))
    }),
    rails_warn("InfiniBand partitions", |rails| {
        Some(partition_words(&rails.partitions()?))
    }),
    warns(Layer::Rails, "device nodes", device_nodes),
    rails_warn("drivers", |rails| {
        rails.device_words(|device| device.driver.value())
    }),
    rails_note("cards", |rails| {
        rails.device_words(|device| device.hca_type.value())
    }),
    rails_note("firmware", |rails| {
        rails.device_words(|device| device.firmware.value())
    }),
    warns(Layer::Gpus, "GPUs", gpus),
    warns(Layer::Gpus, "GPU driver", |pod| {
        pod.seen()?.gpu.driver_version.value().cloned()
    }),
    warns(Layer::Gpus, "kernel modules of the GPU", |pod| {
        pod.seen()?
            .gpu
            .open_kernel_modules
            .value()
            .map(|open| (if *open { "open" } else { "proprietary" }).to_owned())
    }),
    warns(Layer::Gpus, "nvidia_peermem", |pod| {
        module(pod.seen()?, "nvidia_peermem")
    }),
    notes(Layer::Gpus, "GDRCopy", |pod| {
        let node = &pod.seen()?.gpudirect.gdrcopy_node.exists;
        node.value().map(|there| yes(*there))
    }),
    warns(Layer::Gpus, "NVLinks that are up", nvlinks),
    warns(Layer::Gpus, "NVLink fabric", nvlink_fabric),
    warns(Layer::Gpus, "IMEX channels", |pod| {
        let channels = pod.seen()?.gpu.imex.channels.value()?;
        Some(channels.len().to_string())
    }),
    warns(Layer::Software, "image that runs", |pod| {
        pod.container?.digest.as_deref().map(short_digest)
    }),
    warns(Layer::Software, "NIXL", nixl_version),
    warns(Layer::Software, "libraries", libraries),
    warns(Layer::Software, "verbs providers", |pod| {
        let providers = pod.seen()?.software.verbs_providers.value()?;
        Some(words(providers.iter().cloned()))
    }),
    warns(Layer::Software, "transports that UCX offers", offered),
    warns(Layer::Software, "backends of NIXL", backends),
    notes(Layer::Software, "kernel", |pod| {
        pod.seen()?.host.kernel.value().cloned()
    }),
    warns(Layer::Limits, "memory that it can lock", lockable),
    notes(Layer::Limits, "limit of locked memory", |pod| {
        engine(pod)?.limits.memlock_soft.value().map(limit)
    }),
    warns(Layer::Limits, "effective IPC_LOCK", |pod| {
        let set = engine(pod)?.limits.capabilities.value()?;
        Some(yes(set.has(Capabilities::IPC_LOCK)))
    }),
    warns(Layer::Limits, "user of the engine", |pod| {
        engine(pod)?.limits.uid.value().map(u32::to_string)
    }),
    warns(Layer::Limits, "size of /dev/shm", shared_memory),
    warns(Layer::Limits, "open files", |pod| {
        // Above that nobody runs out of them, and runtimes differ.
        const ENOUGH: u64 = 65_536;
        let limits = &engine(pod)?.limits;
        limits.open_files_soft.value().map(|files| match files {
            Limit::Value(count) if *count < ENOUGH => count.to_string(),
            _ => format!("{ENOUGH} or more"),
        })
    }),
];

fn rates(rails: &Rails<'_>) -> Option<String> {
    rails.rates()
}

fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Unlimited => "unlimited".to_owned(),
        Limit::Value(bytes) => format!("{bytes} bytes"),
    }
}

/// What may be locked: the limit does not count for who has IPC_LOCK (Linux, ib_umem_get).
fn lockable(pod: &PodView<'_>) -> Option<String> {
    let limits = &engine(pod)?.limits;
    let allowed = limits
        .capabilities
        .value()
        .map(|set| set.has(Capabilities::IPC_LOCK));
    match (limits.memlock_soft.value(), allowed) {
        (Some(Limit::Unlimited), _) | (_, Some(true)) => Some("any".to_owned()),
        (Some(bytes), Some(false)) => Some(limit(bytes)),
        _ => None,
    }
}

/// Where no size was asked for it is a part of the machine's memory, of which no two machines have the same.
fn shared_memory(pod: &PodView<'_>) -> Option<String> {
    const GIB: u64 = 1 << 30;
    let bytes = *pod.seen()?.limits.shm_bytes.value()?;
    if bytes < GIB {
        return Some(format!("{} MB", bytes >> 20));
    }
    let asked = pod
        .container
        .and_then(|container| container.mounts.get("/dev/shm"))
        .is_some_and(|what| what.ends_with(|c: char| c.is_ascii_digit() || "iGMKTP".contains(c)));
    Some(if asked {
        format!("{} GB", bytes.saturating_add(GIB / 2) / GIB)
    } else {
        "1 GB or more".to_owned()
    })
}

fn short_digest(digest: &str) -> String {
    digest.chars().take(19).collect()
}

fn yes(it_is: bool) -> String {
    (if it_is { "yes" } else { "no" }).to_owned()
}

fn words(list: impl Iterator<Item = String>) -> String {
    let list: BTreeSet<String> = list.collect();
    if list.is_empty() {
        return "none".to_owned();
    }
    list.into_iter().collect::<Vec<_>>().join(", ")
}

fn image(pod: &PodView<'_>) -> Option<String> {
    pod.container?.image.clone()
}

fn resources(pod: &PodView<'_>) -> Option<String> {
    let all = &pod.container?.resources;
    Some(words(all.iter().map(|(name, n)| format!("{name}: {n}"))))
}

fn claims(pod: &PodView<'_>) -> Option<String> {
    // Names of claims that were made for one pod are its own.
    Some(words(pod.container?.claims.iter().cloned()))
}

fn capabilities(pod: &PodView<'_>) -> Option<String> {
    Some(words(pod.container?.capabilities.iter().cloned()))
}

fn user(pod: &PodView<'_>) -> Option<String> {
    let user = pod.container?.run_as_user;
    Some(user.map_or_else(|| "of the image".to_owned(), |user| user.to_string()))
}

fn mounts(pod: &PodView<'_>) -> Option<String> {
    let all = &pod.container?.mounts;
    Some(words(
        all.iter().map(|(path, what)| format!("{path} ({what})")),
    ))
}

/// Nodes that user space opens devices by.
fn device_nodes(pod: &PodView<'_>) -> Option<String> {
    let rdma = &pod.seen()?.rdma;
    rdma.nodes_present.value()?;
    let verbs = rdma
        .nodes
        .iter()
        .filter(|(name, node)| name.starts_with("uverbs") && node.exists.value() == Some(&true));
    let mut there = 0_usize;
    let mut open = 0_usize;
    for (_, node) in verbs {
        there = there.saturating_add(1);
        open = open.saturating_add(usize::from(node.opens.value() != Some(&false)));
    }
    Some(if there == open {
        format!("{there} uverbs")
    } else {
        format!("{there} uverbs, {open} of which can be opened")
    })
}

fn gpus(pod: &PodView<'_>) -> Option<String> {
    let gpus = &pod.seen()?.gpu.gpus;
    if gpus.is_empty() {
        return None;
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let with_node = gpus
        .iter()
        .any(|gpu| gpu.node.exists.value() == Some(&true));
    for gpu in gpus
        .iter()
        .filter(|gpu| !with_node || gpu.node.exists.value() == Some(&true))
    {
        let name = gpu.name.value().map_or("GPU", String::as_str);
        let count = kinds.entry(name).or_default();
        *count = count.saturating_add(1);
    }
    Some(words(kinds.iter().map(|(name, n)| format!("{n} x {name}"))))
}

fn module(seen: &Observation, name: &str) -> Option<String> {
    match seen.modules.presence(name) {
        Presence::Loaded => Some("loaded".to_owned()),
        Presence::Absent => Some("not loaded".to_owned()),
        Presence::Unknown => None,
    }
}

fn nvlinks(pod: &PodView<'_>) -> Option<String> {
    let gpus = &pod.seen()?.gpu.gpus;
    let mut up = 0_usize;
    let mut known = false;
    for link in gpus.iter().flat_map(|gpu| gpu.links.values()) {
        known = true;
        up = up.saturating_add(usize::from(link.state.value() == Some(&LinkState::Up)));
    }
    known.then(|| up.to_string())
}

fn nvlink_fabric(pod: &PodView<'_>) -> Option<String> {
    let states: BTreeSet<String> = pod
        .seen()?
        .gpu
        .gpus
        .iter()
        .filter_map(|gpu| {
            let state = gpu.fabric.state.value()?;
            Some(match gpu.fabric.status.value() {
                Some(status) => format!("{state}, {status}"),
                None => state.clone(),
            })
        })
        .collect();
    (!states.is_empty()).then(|| words(states.into_iter()))
}

/// The engine's process, as the rules of settings take it.
fn engine<'p>(pod: &PodView<'p>) -> Option<&'p Process> {
    let pid = pod.live?.process?;
    pod.seen()?
        .process
        .processes
        .get(&pid)
        .map(|process| &**process)
}

/// The version of NIXL that an agent in the engine's place reports, else that of its package.
pub(super) fn nixl_version(pod: &PodView<'_>) -> Option<String> {
    let facts = pod.facts?;
    facts
        .trial()
        .and_then(|seen| seen.trial.version.clone())
        .or_else(|| facts.observation.software.nixl_version.value().cloned())
}

/// Files of libraries of the KV path that the engine has mapped.
fn libraries(pod: &PodView<'_>) -> Option<String> {
    const SHOWN: [&str; 6] = [
        "libnixl",
        "libucp",
        "libuct",
        "libibverbs",
        "libfabric",
        "libplugin_UCX",
    ];
    let all = engine(pod)?.libraries.value()?;
    let paths = all
        .iter()
        .filter(|library| SHOWN.contains(&library.library.as_str()))
        .map(|library| library.path.clone());
    Some(words(paths))
}

fn offered(pod: &PodView<'_>) -> Option<String> {
    let trial = pod.facts?.trial()?;
    let offered = trial.trial.offered.as_ref()?;
    Some(words(
        offered
            .iter()
            .filter(|transport| transport.enabled)
            .map(|transport| transport.name.clone()),
    ))
}

fn backends(pod: &PodView<'_>) -> Option<String> {
    let trial = pod.facts?.trial()?;
    let tried = &trial.trial.backends;
    (!tried.is_empty()).then(|| {
        words(tried.iter().map(|backend| match backend.error {
            None => backend.name.clone(),
            Some(_) => format!("{} fails", backend.name),
        }))
    })
}
