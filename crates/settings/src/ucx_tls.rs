//! UCX_TLS: which transports a value leaves, and what that means for KV transfer.
//!
//! The grammar is that of ucx:src/ucs/config/parser.c:1111 and ucx:src/ucp/core/ucp_context.c:764-790 (aliases),
//! 1150-1275 (matching), 1593 (empty list), 1762-1772 (nothing usable).

use std::borrow::Cow;

use crate::distance::nearest;
use crate::ucx_allow_list::{AllNotAlone, AllowList, Mode, items, split_negation};
use crate::ucx_net_devices::DeviceList;
use crate::version::UcxVersion;

const OLDEST: UcxVersion = UcxVersion::new(0, 0);
const V1_13: UcxVersion = UcxVersion::new(1, 13);
const V1_17: UcxVersion = UcxVersion::new(1, 17);
const V1_18: UcxVersion = UcxVersion::new(1, 18);
const V1_19: UcxVersion = UcxVersion::new(1, 19);
const V1_20: UcxVersion = UcxVersion::new(1, 20);
const V1_21: UcxVersion = UcxVersion::new(1, 21);

/// What a transport's device is; UCX calls these device types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Device {
    Loopback,
    Network,
    Memory,
    Accelerator,
}

/// Every transport name of UCX, its device type, and the release that brought it (ucx:src/ucp/core/ucp_context.c:764).
const TRANSPORTS: &[(&str, Device, UcxVersion)] = &[
    ("self", Device::Loopback, OLDEST),
    ("tcp", Device::Network, OLDEST),
    ("sysv", Device::Memory, OLDEST),
    ("posix", Device::Memory, OLDEST),
    ("xpmem", Device::Memory, OLDEST),
    ("knem", Device::Memory, OLDEST),
    ("cma", Device::Memory, OLDEST),
    ("rc_verbs", Device::Network, OLDEST),
    ("ud_verbs", Device::Network, OLDEST),
    ("rc_mlx5", Device::Network, OLDEST),
    ("ud_mlx5", Device::Network, OLDEST),
    ("dc_mlx5", Device::Network, OLDEST),
    ("gga_mlx5", Device::Network, V1_18),
    ("srd", Device::Network, V1_19),
    ("rc_gda", Device::Network, V1_20),
    ("cuda_copy", Device::Accelerator, OLDEST),
    // The device type of cuda_ipc is intra-node: ucx:src/uct/cuda/cuda_ipc/cuda_ipc_iface.c:616.
    ("cuda_ipc", Device::Memory, OLDEST),
    ("gdr_copy", Device::Accelerator, OLDEST),
    ("rocm_copy", Device::Accelerator, OLDEST),
    ("rocm_ipc", Device::Accelerator, OLDEST),
    ("rocm_gdr", Device::Accelerator, OLDEST),
    ("ze_copy", Device::Accelerator, OLDEST),
    ("ze_ipc", Device::Accelerator, OLDEST),
    ("ze_gdr", Device::Accelerator, OLDEST),
    ("gaudi_gdr", Device::Accelerator, V1_21),
    ("ugni_smsg", Device::Network, OLDEST),
    ("ugni_udt", Device::Network, OLDEST),
    ("ugni_rdma", Device::Network, OLDEST),
];

/// One member of an alias.
struct Member {
    alias: &'static str,
    transport: &'static str,
    /// The alias brings the transport only for bootstrap ("auxiliary").
    aux: bool,
    since: UcxVersion,
}

const fn main(alias: &'static str, transport: &'static str, since: UcxVersion) -> Member {
    Member {
        alias,
        transport,
        aux: false,
        since,
    }
}

const fn aux(alias: &'static str, transport: &'static str, since: UcxVersion) -> Member {
    Member {
        alias,
        transport,
        aux: true,
        since,
    }
}

/// The alias table of every release (ucx:src/ucp/core/ucp_context.c:764-790).
const MEMBERS: &[Member] = &[
    main("mm", "posix", OLDEST),
    main("mm", "sysv", OLDEST),
    main("mm", "xpmem", OLDEST),
    main("sm", "posix", OLDEST),
    main("sm", "sysv", OLDEST),
    main("sm", "xpmem", OLDEST),
    main("sm", "knem", OLDEST),
    main("sm", "cma", OLDEST),
    main("shm", "posix", OLDEST),
    main("shm", "sysv", OLDEST),
    main("shm", "xpmem", OLDEST),
    main("shm", "knem", OLDEST),
    main("shm", "cma", OLDEST),
    main("ib", "rc_verbs", OLDEST),
    main("ib", "ud_verbs", OLDEST),
    main("ib", "rc_mlx5", OLDEST),
    main("ib", "ud_mlx5", OLDEST),
    main("ib", "dc_mlx5", OLDEST),
    main("ib", "gga_mlx5", V1_19),
    aux("ib", "ud_mlx5", V1_19),
    aux("ib", "ud_verbs", V1_19),
    main("ib", "srd", V1_20),
    main("ib", "rc_gda", V1_21),
    main("ud_v", "ud_verbs", OLDEST),
    main("ud_x", "ud_mlx5", OLDEST),
    main("ud", "ud_mlx5", OLDEST),
    main("ud", "ud_verbs", OLDEST),
    main("rc_v", "rc_verbs", OLDEST),
    aux("rc_v", "ud_verbs", OLDEST),
    main("rc_x", "rc_mlx5", OLDEST),
    aux("rc_x", "ud_mlx5", OLDEST),
    main("rc", "rc_mlx5", OLDEST),
    aux("rc", "ud_mlx5", OLDEST),
    main("rc", "rc_verbs", OLDEST),
    aux("rc", "ud_verbs", OLDEST),
    main("dc", "dc_mlx5", OLDEST),
    aux("dc", "ud_mlx5", V1_13),
    main("dc_x", "dc_mlx5", OLDEST),
    aux("dc_x", "ud_mlx5", V1_13),
    main("ugni", "ugni_smsg", OLDEST),
    aux("ugni", "ugni_udt", OLDEST),
    main("ugni", "ugni_rdma", OLDEST),
    main("cuda", "cuda_copy", OLDEST),
    main("cuda", "cuda_ipc", OLDEST),
    main("cuda", "gdr_copy", OLDEST),
    main("rocm", "rocm_copy", OLDEST),
    main("rocm", "rocm_ipc", OLDEST),
    main("rocm", "rocm_gdr", OLDEST),
    main("ze", "ze_copy", V1_17),
    main("ze", "ze_ipc", V1_17),
    main("ze", "ze_gdr", V1_17),
    main("gga", "gga_mlx5", V1_19),
    main("gaudi", "gaudi_gdr", V1_21),
];

/// One-sided put and get over RDMA.
const ONE_SIDED: &[&str] = &["rc_verbs", "rc_mlx5", "dc_mlx5", "srd"];
/// Connected endpoint to endpoint: another transport has to carry the first message.
const NEEDS_BOOTSTRAP: &[&str] = &["rc_verbs", "rc_mlx5"];
/// Active messages between nodes.
const AM_INTER: &[&str] = &[
    "rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5", "srd", "tcp",
];
/// Shared memory with active messages.
const SHARED_MEMORY: &[&str] = &["posix", "sysv", "xpmem"];
/// Can carry the first message between nodes.
const BOOTSTRAP_INTER: &[&str] = &["ud_verbs", "ud_mlx5", "dc_mlx5", "srd", "tcp"];
const UD: &[&str] = &["ud_verbs", "ud_mlx5"];

/// What a value does with one transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Used for everything that it can do.
    Main,
    /// Used only to set up other transports (UCX: auxiliary).
    Aux,
    /// Not used.
    Off,
}

/// How items of a list name one transport.
#[derive(Clone, Copy, Default)]
struct Match {
    primary: bool,
    aux_by_name: bool,
    aux_by_alias: bool,
    both_in_alias: bool,
}

impl Match {
    fn any(self) -> bool {
        self.primary || self.aux()
    }

    fn aux(self) -> bool {
        self.aux_by_name || self.aux_by_alias
    }
}

/// Whether an item names a transport: `name`, or `\name`, which is never an alias (ucp_context.c:1150-1215).
fn names_transport(item: &str, transport: &str, as_aux: bool) -> bool {
    let item = item.strip_prefix('\\').unwrap_or(item);
    names_alias(item, transport, as_aux)
}

fn names_alias(item: &str, alias: &str, as_aux: bool) -> bool {
    if as_aux {
        item.strip_suffix(":aux") == Some(alias)
    } else {
        item == alias
    }
}

fn members(version: UcxVersion) -> impl Iterator<Item = &'static Member> {
    MEMBERS.iter().filter(move |member| member.since <= version)
}

fn search(transport: &str, names: &[&str], version: UcxVersion) -> Match {
    let mut found = Match {
        primary: names
            .iter()
            .any(|item| names_transport(item, transport, false)),
        aux_by_name: names
            .iter()
            .any(|item| names_transport(item, transport, true)),
        ..Match::default()
    };
    for member in members(version).filter(|member| member.transport == transport) {
        let plain = names
            .iter()
            .any(|item| names_alias(item, member.alias, false));
        let as_aux = names
            .iter()
            .any(|item| names_alias(item, member.alias, true));
        if member.aux {
            found.aux_by_alias |= plain;
            found.both_in_alias |= plain
                && members(version).any(|other| {
                    !other.aux && other.alias == member.alias && other.transport == transport
                });
        } else {
            found.primary |= plain;
            found.aux_by_name |= as_aux;
        }
    }
    found
}

/// A UCX_TLS value read as one UCX release reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls<'a> {
    list: AllowList<'a>,
    version: UcxVersion,
}

impl<'a> Tls<'a> {
    /// Reads a value; None is the unset variable, which is `all` (ucp_context.c:675).
    pub fn parse(value: Option<&'a str>, version: UcxVersion) -> Result<Self, AllNotAlone> {
        let list = match value {
            None => AllowList {
                mode: Mode::All,
                names: Vec::new(),
            },
            // Before 1.11: a plain list, and `all` anywhere in it is everything.
            Some(value) if version <= UcxVersion::new(1, 10) => {
                let names: Vec<&str> = items(value).collect();
                let all = names.contains(&"all");
                AllowList {
                    mode: if all { Mode::All } else { Mode::Allow },
                    names,
                }
            }
            Some(value) => AllowList::parse(value)?,
        };
        Ok(Self { list, version })
    }

    /// What the list does with one transport.
    pub fn state(&self, transport: &str) -> State {
        if self.list.mode == Mode::All {
            return State::Main;
        }
        let found = search(transport, &self.list.names, self.version);
        if self.list.mode == Mode::Allow {
            return if found.primary {
                State::Main
            } else if found.aux() {
                State::Aux
            } else {
                State::Off
            };
        }
        // Up to 1.14 a denied alias took its auxiliary members with it (ucp_context.c:1225-1275).
        if self.version <= UcxVersion::new(1, 14) {
            return if found.any() { State::Off } else { State::Main };
        }
        let can_bootstrap =
            members(self.version).any(|member| member.aux && member.transport == transport);
        if !can_bootstrap {
            return if found.primary {
                State::Off
            } else {
                State::Main
            };
        }
        let denied_both_ways =
            (found.primary && found.aux_by_name) || (self.version >= V1_19 && found.both_in_alias);
        if denied_both_ways {
            State::Off
        } else if found.primary {
            State::Aux
        } else {
            State::Main
        }
    }

    /// Whether the list is an allow list, so that UCX warns of names in it that match nothing (ucp_context.c:1498).
    fn warns(&self) -> bool {
        self.list.mode == Mode::Allow || self.version <= UcxVersion::new(1, 10)
    }
}

/// What a value does with one transport.
pub fn transport_state(
    transport: &str,
    value: Option<&str>,
    version: UcxVersion,
) -> Result<State, AllNotAlone> {
    Tls::parse(value, version).map(|tls| tls.state(transport))
}

/// A UCX on a host: its release and the transports that it really offers there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    name: Cow<'static, str>,
    version: UcxVersion,
    transports: Vec<&'static str>,
}

const FULL: &[&str] = &[
    "self",
    "tcp",
    "sysv",
    "posix",
    "cma",
    "cuda_copy",
    "cuda_ipc",
    "gdr_copy",
    "rc_verbs",
    "ud_verbs",
    "rc_mlx5",
    "ud_mlx5",
    "dc_mlx5",
    "gga_mlx5",
    "rc_gda",
];
const NIXL_WHEEL: &[&str] = &[
    "self",
    "tcp",
    "sysv",
    "posix",
    "cma",
    "cuda_copy",
    "cuda_ipc",
    "rc_verbs",
    "ud_verbs",
    "rc_mlx5",
    "ud_mlx5",
    "rc_gda",
];
const NO_HCA: &[&str] = &[
    "self",
    "tcp",
    "sysv",
    "posix",
    "cma",
    "cuda_copy",
    "cuda_ipc",
    "gdr_copy",
];
const EFA: &[&str] = &[
    "self",
    "tcp",
    "sysv",
    "posix",
    "cma",
    "cuda_copy",
    "cuda_ipc",
    "srd",
    "ud_verbs",
];

impl Build {
    /// The names that [`Build::named`] knows.
    pub const NAMES: &'static [&'static str] = &[
        "full-1.18",
        "full-1.21",
        "full-1.23",
        "efa-1.23",
        "no-hca-1.23",
        "nixl-1.5.1-wheel",
    ];

    /// A build by name: one of [`Build::NAMES`], or `full-`, `efa-` or `no-hca-` and a UCX version.
    ///
    /// `full` has an mlx5 HCA, `efa` an EFA device and no HCA, `no-hca` neither; all have GPUs. The NIXL 1.5.1 wheel is
    /// built without gdr_copy, dc and gga (nixl:contrib/Dockerfile.manylinux:395-415).
    pub fn named(name: &str) -> Option<Self> {
        let (version, transports) = if name == "nixl-1.5.1-wheel" {
            (UcxVersion::LATEST, NIXL_WHEEL)
        } else if let Some(version) = name.strip_prefix("full-") {
            (version.parse().ok()?, FULL)
        } else if let Some(version) = name.strip_prefix("efa-") {
            (version.parse().ok()?, EFA)
        } else if let Some(version) = name.strip_prefix("no-hca-") {
            (version.parse().ok()?, NO_HCA)
        } else {
            return None;
        };
        let mut build = Self::new(version, transports.iter().copied());
        build
            .transports
            .retain(|name| since(name).is_some_and(|since| since <= version));
        build.name = Cow::Owned(name.to_owned());
        Some(build)
    }

    /// A build from a list of transport names; names that UCX does not have are left out.
    pub fn new<'n>(version: UcxVersion, transports: impl IntoIterator<Item = &'n str>) -> Self {
        let wanted: Vec<&str> = transports.into_iter().collect();
        Self {
            name: Cow::Borrowed("this host"),
            version,
            transports: TRANSPORTS
                .iter()
                .map(|&(name, ..)| name)
                .filter(|name| wanted.contains(name))
                .collect(),
        }
    }

    /// Every transport that the newest UCX has: what a value allows at best, whatever the host.
    pub fn everything() -> Self {
        Self {
            name: Cow::Borrowed("everything"),
            version: UcxVersion::LATEST,
            transports: TRANSPORTS.iter().map(|&(name, ..)| name).collect(),
        }
    }

    /// The name, `this host` for a build made from a list.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The UCX release.
    pub fn version(&self) -> UcxVersion {
        self.version
    }

    /// The transports that it offers.
    pub fn transports(&self) -> &[&'static str] {
        &self.transports
    }
}

fn since(transport: &str) -> Option<UcxVersion> {
    TRANSPORTS
        .iter()
        .find(|(name, ..)| *name == transport)
        .map(|&(.., since)| since)
}

fn device(transport: &str) -> Option<Device> {
    TRANSPORTS
        .iter()
        .find(|(name, ..)| *name == transport)
        .map(|&(_, device, _)| device)
}

/// Whether UCX starts with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Init {
    /// It starts.
    Ok,
    /// The configuration is not read: `all` with other items.
    FailParse,
    /// `The TLs list is empty` (ucp_context.c:1593).
    FailEmpty,
    /// `no usable transports/devices` (ucp_context.c:1762-1772).
    FailNoUsable,
}

impl Init {
    /// The short name: `ok`, `fail:parse`, `fail:empty` or `fail:no-usable`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::FailParse => "fail:parse",
            Self::FailEmpty => "fail:empty",
            Self::FailNoUsable => "fail:no-usable",
        }
    }

    /// Whether the list itself could be read, so that the rest of a [`TlsEffect`] says something.
    pub fn was_read(self) -> bool {
        matches!(self, Self::Ok | Self::FailNoUsable)
    }
}

/// UCX_NET_DEVICES on a host with these devices.
#[derive(Clone, Copy, Debug)]
pub struct NetDevices<'a> {
    /// The value of UCX_NET_DEVICES.
    pub value: &'a str,
    /// RDMA devices with their port, such as `mlx5_0:1`.
    pub rdma: &'a [&'a str],
    /// Network interfaces, such as `eth0`.
    pub netdevs: &'a [&'a str],
}

/// What a UCX_TLS value lets a process do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsEffect {
    /// Whether UCX starts. All that follows is false or empty if the list could not be read.
    pub init: Init,
    /// GPU memory is recognized: cuda_copy is there, nothing else detects it (ucx:src/uct/cuda/cuda_copy/cuda_copy_md.c:132).
    pub detect: bool,
    /// One-sided RDMA between nodes.
    pub rdma: bool,
    /// UD without a one-sided transport: put and get are emulated in software.
    pub ud_only: bool,
    /// GPUDirect RDMA is not forbidden.
    pub gdr: bool,
    /// NVLink inside a node is not forbidden.
    pub nvlink: bool,
    /// NVLink between nodes is not forbidden.
    pub mnnvl: bool,
    /// TCP is there.
    pub tcp: bool,
    /// Shared memory is there.
    pub shm: bool,
    /// Peers on other nodes can be reached.
    pub inter: bool,
    /// RC is there, but nothing that could set up its connections.
    pub boot_missing: bool,
    /// Names of an allow list that match no transport; UCX warns of them (ucp_context.c:1508).
    pub warn: Vec<String>,
    /// The transports that are left, sorted.
    pub main: Vec<&'static str>,
    /// The transports that are left for bootstrap only, sorted.
    pub aux: Vec<&'static str>,
}

impl TlsEffect {
    fn failed(init: Init) -> Self {
        Self {
            init,
            detect: false,
            rdma: false,
            ud_only: false,
            gdr: false,
            nvlink: false,
            mnnvl: false,
            tcp: false,
            shm: false,
            inter: false,
            boot_missing: false,
            warn: Vec::new(),
            main: Vec::new(),
            aux: Vec::new(),
        }
    }

    /// Whether GPUs of AMD or Intel are served, so that a missing cuda_copy is no fault by itself.
    pub fn other_gpus(&self) -> bool {
        any_of(&self.main, &["rocm_copy", "ze_copy"])
    }

    /// The effect in one short sentence, for NVIDIA GPUs.
    pub fn one_line(&self) -> String {
        self.one_line_with("cuda_copy")
    }

    /// The effect in one short sentence, for the accelerator whose memory a transport serves: `cuda_copy`, `rocm_copy`
    /// or `ze_copy`.
    pub fn one_line_with(&self, memory: &str) -> String {
        if memory != "cuda_copy" && self.init == Init::Ok {
            let nodes = if self.rdma && self.tcp {
                "RDMA, TCP as a fallback"
            } else if self.rdma {
                "RDMA, no TCP fallback"
            } else if self.ud_only && self.inter {
                "UD between nodes, so put and get are emulated in software"
            } else if self.inter {
                "TCP only between nodes"
            } else {
                "no transport between nodes"
            };
            return if self.main.contains(&memory) {
                format!("{nodes}; GPU memory supported ({memory})")
            } else {
                format!("{nodes}; GPU memory is not supported: {memory} is missing")
            };
        }
        match self.init {
            Init::FailParse => return "UCX does not start: `all` must be the only item".to_owned(),
            Init::FailEmpty => return "UCX does not start: the list is empty".to_owned(),
            Init::FailNoUsable => {
                return "UCX does not start: no usable transport is left".to_owned();
            }
            Init::Ok => {}
        }
        let path = if self.rdma {
            let nvlink = if self.nvlink {
                "RDMA and NVLink"
            } else {
                "RDMA, no NVLink"
            };
            let tcp = if self.tcp {
                "TCP as a fallback"
            } else {
                "no TCP fallback"
            };
            format!("{nvlink}, {tcp}")
        } else {
            let nodes = if self.boot_missing && !self.inter {
                "RC cannot connect: no ud, dc or tcp to set it up"
            } else if self.ud_only && self.inter {
                "UD between nodes, so put and get are emulated in software"
            } else if self.inter {
                "TCP only between nodes"
            } else {
                "no transport between nodes"
            };
            let inside = if self.nvlink {
                "NVLink inside a node"
            } else {
                "no NVLink"
            };
            format!("{nodes}; {inside}")
        };
        let memory = if self.detect {
            "GPU memory supported"
        } else if self.other_gpus() {
            "NVIDIA GPU memory is not supported: cuda_copy is missing"
        } else {
            "GPU memory is not supported: cuda_copy is missing"
        };
        format!("{path}; {memory}")
    }
}

fn any_of(left: &[&str], set: &[&str]) -> bool {
    left.iter().any(|name| set.contains(name))
}

/// What a UCX_TLS value lets a process do with one build, optionally with UCX_NET_DEVICES as a second filter.
pub fn evaluate(
    value: Option<&str>,
    build: &Build,
    net_devices: Option<NetDevices<'_>>,
) -> TlsEffect {
    let Ok(tls) = Tls::parse(value, build.version) else {
        return TlsEffect::failed(Init::FailParse);
    };
    let devices = match net_devices.map(|net| (net, DeviceList::parse(net.value, build.version))) {
        None => None,
        Some((net, Ok(list))) => Some((net, list)),
        Some((_, Err(AllNotAlone))) => return TlsEffect::failed(Init::FailParse),
    };
    // Before 1.11 only a list of nothing but commas counts as empty; an empty value leaves no transport.
    let empty_value = value == Some("") && build.version <= UcxVersion::new(1, 10);
    if tls.list.mode != Mode::All && tls.list.names.is_empty() && !empty_value {
        return TlsEffect::failed(Init::FailEmpty);
    }
    let filtered_out = |transport: &str| {
        let Some((net, list)) = &devices else {
            return false;
        };
        let own = if transport == "tcp" {
            net.netdevs
        } else {
            net.rdma
        };
        device(transport) == Some(Device::Network) && !own.iter().any(|name| list.keeps(name))
    };
    let in_state = |state: State| {
        let mut names: Vec<&'static str> = build
            .transports
            .iter()
            .copied()
            .filter(|name| tls.state(name) == state && !filtered_out(name))
            .collect();
        names.sort_unstable();
        names
    };
    let main = in_state(State::Main);
    let aux = in_state(State::Aux);

    let mut warn = Vec::new();
    if tls.warns() {
        for &name in &tls.list.names {
            // UCX counts a name as used when any present transport matched it, also as auxiliary.
            let used = build
                .transports
                .iter()
                .any(|transport| search(transport, &[name], build.version).any());
            if name != "all" && !used {
                warn.push(name.to_owned());
            }
        }
    }

    let usable = main
        .iter()
        .any(|name| device(name) != Some(Device::Accelerator));
    let bootstrap = any_of(&main, BOOTSTRAP_INTER) || any_of(&aux, BOOTSTRAP_INTER);
    let bootstrap_local = bootstrap || any_of(&main, SHARED_MEMORY) || any_of(&aux, SHARED_MEMORY);
    let connects = |set: &[&str], bootstrapped: bool| {
        main.iter()
            .any(|name| set.contains(name) && (bootstrapped || !NEEDS_BOOTSTRAP.contains(name)))
    };
    let rdma = connects(ONE_SIDED, bootstrap);
    let inter = connects(AM_INTER, bootstrap);
    let intra = connects(AM_INTER, bootstrap_local) || any_of(&main, SHARED_MEMORY);
    let detect = main.contains(&"cuda_copy");
    let cuda_ipc = main.contains(&"cuda_ipc") && detect;
    TlsEffect {
        init: if usable { Init::Ok } else { Init::FailNoUsable },
        detect,
        rdma,
        ud_only: any_of(&main, UD) && !any_of(&main, ONE_SIDED),
        gdr: rdma && detect,
        nvlink: cuda_ipc && intra,
        mnnvl: cuda_ipc && inter && build.version >= V1_18,
        tcp: main.contains(&"tcp"),
        shm: any_of(&main, SHARED_MEMORY),
        inter,
        boot_missing: any_of(&main, NEEDS_BOOTSTRAP) && !bootstrap,
        warn,
        main,
        aux,
    }
}

/// The items of a value as written, without a leading `^`.
pub fn names(value: &str) -> Vec<&str> {
    items(split_negation(value).1).collect()
}

/// Whether a value names what is allowed, so that everything else is forbidden.
pub fn is_allow_list(value: &str) -> bool {
    matches!(AllowList::parse(value), Ok(list) if list.mode == Mode::Allow)
}

/// Whether an item is a transport or alias of any release, also as `\transport` or with `:aux`.
pub fn is_known(item: &str) -> bool {
    let (base, exact) = item
        .strip_prefix('\\')
        .map_or((item, false), |rest| (rest, true));
    let base = base.strip_suffix(":aux").unwrap_or(base);
    since(base).is_some() || (!exact && MEMBERS.iter().any(|member| member.alias == base))
}

/// Words that people write for a transport, and what UCX calls it.
const WRONG_WORDS: &[(&str, &str)] = &[
    ("rdma", "rc"),
    ("roce", "rc"),
    ("rocev2", "rc"),
    ("mlx5", "rc"),
    ("verbs", "ib"),
    ("ibverbs", "ib"),
    ("ib_verbs", "ib"),
    ("infiniband", "ib"),
    ("efa", "srd"),
    ("nvlink", "cuda_ipc"),
    ("cuda_p2p", "cuda_ipc"),
    ("p2p", "cuda_ipc"),
    ("gpu", "cuda"),
    ("nvidia", "cuda"),
    ("gdr", "gdr_copy"),
    ("gdrcopy", "gdr_copy"),
    ("shmem", "shm"),
    ("shared_memory", "shm"),
    ("socket", "tcp"),
    ("sockets", "tcp"),
];

/// What was probably meant by an item that UCX does not know.
pub fn did_you_mean(item: &str) -> Option<&'static str> {
    let clean = item
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '[' | ']' | '^'))
        .to_ascii_lowercase()
        .replace('-', "_");
    let clean = clean.strip_suffix(":aux").unwrap_or(&clean);
    let clean = clean.strip_prefix('\\').unwrap_or(clean);
    let all = || {
        TRANSPORTS
            .iter()
            .map(|&(name, ..)| name)
            .chain(MEMBERS.iter().map(|member| member.alias))
    };
    if let Some(name) = all().find(|name| *name == clean) {
        return (name != item).then_some(name);
    }
    if let Some(&(_, right)) = WRONG_WORDS.iter().find(|(wrong, _)| *wrong == clean) {
        return Some(right);
    }
    // Names of two or three letters are all close to each other.
    let limit = match clean.len() {
        0..=4 => return None,
        5..=6 => 1,
        _ => 2,
    };
    nearest(clean, all(), limit)
}

/// Why an item of a value does not do what it seems to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemFault {
    /// No UCX release has a transport or alias of this name.
    Unknown,
    /// It would be a name but for spaces or quotes, which UCX keeps.
    SpaceOrQuote,
    /// It would be a name but for upper case.
    UpperCase,
    /// It is the name of a device, which belongs into UCX_NET_DEVICES.
    Device,
    /// A `^` that does not start the whole value is part of the name.
    CaretInside,
    /// `all` with other items after it: the configuration is not read.
    AllNotAlone,
    /// `all` after other items is ignored.
    AllIgnored,
}

/// An item that does not do what it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadItem<'a> {
    /// The item as written.
    pub item: &'a str,
    /// What is wrong with it.
    pub fault: ItemFault,
    /// What was probably meant.
    pub suggestion: Option<&'static str>,
}

/// The items of a value that do not do what they seem to, whatever the host and release (from 1.11).
pub fn bad_items(value: &str) -> Vec<BadItem<'_>> {
    let names = names(value);
    let several = names.len() > 1;
    names
        .into_iter()
        .enumerate()
        .filter_map(|(index, item)| {
            let fault = if item == "all" {
                match (index, several) {
                    (0, false) => return None,
                    (0, true) => ItemFault::AllNotAlone,
                    _ => ItemFault::AllIgnored,
                }
            } else if is_known(item) {
                return None;
            } else {
                item_fault(item)
            };
            let suggestion = match fault {
                ItemFault::AllNotAlone | ItemFault::AllIgnored | ItemFault::Device => None,
                _ => did_you_mean(item),
            };
            Some(BadItem {
                item,
                fault,
                suggestion,
            })
        })
        .collect()
}

fn item_fault(item: &str) -> ItemFault {
    let bare = item.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
    if bare.starts_with('^') {
        ItemFault::CaretInside
    } else if bare != item && is_known(&bare.to_ascii_lowercase()) {
        ItemFault::SpaceOrQuote
    } else if is_known(&bare.to_ascii_lowercase()) {
        ItemFault::UpperCase
    } else if crate::ucx_net_devices::looks_like_hca(bare) {
        ItemFault::Device
    } else {
        ItemFault::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(version: &str) -> Build {
        Build::named(&format!("full-{version}")).unwrap()
    }

    fn line(value: &str) -> String {
        evaluate(Some(value), &full("1.23"), None).one_line()
    }

    #[test]
    fn every_named_build_exists() {
        for name in Build::NAMES {
            let build = Build::named(name).unwrap();
            assert_eq!(&build.name(), name);
            assert!(build.transports().contains(&"tcp"), "{name}");
        }
        assert_eq!(Build::named("full-"), None);
        assert_eq!(Build::named("other-1.23"), None);
        assert!(!full("1.18").transports().contains(&"rc_gda"));
    }

    #[test]
    fn deny_lists_by_release() {
        let state = |name: &str, value: &str, minor| {
            transport_state(name, Some(value), UcxVersion::new(1, minor)).unwrap()
        };
        // ucp_context.c:1225-1275: `^rc` took the bootstrap ud with it up to 1.14.
        assert_eq!(state("ud_mlx5", "^rc", 14), State::Off);
        assert_eq!(state("ud_mlx5", "^rc", 15), State::Main);
        assert_eq!(state("ud_mlx5", "^ud", 15), State::Aux);
        assert_eq!(state("ud_mlx5", "^ud,ud:aux", 15), State::Off);
        assert_eq!(state("ud_mlx5", "^ib", 18), State::Aux);
        assert_eq!(state("ud_mlx5", "^ib", 19), State::Off);
        // Before 1.11 a caret is part of a name, and `all` counts anywhere.
        assert_eq!(state("tcp", "^rc", 10), State::Off);
        assert_eq!(state("tcp", "rc,all", 10), State::Main);
        assert_eq!(state("tcp", "rc,all", 11), State::Off);
    }

    #[test]
    fn aliases_bring_bootstrap_and_exact_names_do_not() {
        let build = full("1.23");
        let alias = evaluate(Some("rc_x,cuda_copy"), &build, None);
        assert!(alias.rdma && alias.inter && !alias.boot_missing);
        assert_eq!(alias.aux, ["ud_mlx5"]);
        let exact = evaluate(Some("rc_mlx5,cuda_copy"), &build, None);
        assert!(!exact.rdma && !exact.inter && exact.boot_missing);
        let helped = evaluate(Some("rc_mlx5,ud:aux,cuda_copy"), &build, None);
        assert!(helped.rdma && helped.gdr);
    }

    #[test]
    fn net_devices_filter_tcp_and_rdma_alike() {
        let build = full("1.23");
        let with = |value| {
            let net = NetDevices {
                value,
                rdma: &["mlx5_0:1", "mlx5_1:1"],
                netdevs: &["eth0"],
            };
            evaluate(None, &build, Some(net))
        };
        let hca = with("mlx5_0:1");
        assert!(hca.rdma && !hca.tcp);
        let eth = with("eth0");
        assert!(!eth.rdma && eth.tcp && eth.inter);
        let wrong = with("mlx5_9:1");
        assert!(!wrong.inter && wrong.init == Init::Ok && wrong.nvlink);
        assert_eq!(with("all,eth0").init, Init::FailParse);
    }

    #[test]
    fn one_line_says_the_path_and_the_memory() {
        for (value, wanted) in [
            (
                "rc,cuda_copy,cuda_ipc",
                "RDMA and NVLink, no TCP fallback; GPU memory supported",
            ),
            (
                "all",
                "RDMA and NVLink, TCP as a fallback; GPU memory supported",
            ),
            (
                "rc,cuda_copy",
                "RDMA, no NVLink, no TCP fallback; GPU memory supported",
            ),
            (
                "tcp,cuda_copy,cuda_ipc",
                "TCP only between nodes; NVLink inside a node; GPU memory supported",
            ),
            (
                "tcp",
                "TCP only between nodes; no NVLink; GPU memory is not supported: cuda_copy is missing",
            ),
            (
                "ud,cuda_copy",
                "UD between nodes, so put and get are emulated in software; no NVLink; GPU memory supported",
            ),
            (
                "sm,cuda_copy,cuda_ipc",
                "no transport between nodes; NVLink inside a node; GPU memory supported",
            ),
            (
                "rc_mlx5,cuda_copy",
                "RC cannot connect: no ud, dc or tcp to set it up; no NVLink; GPU memory supported",
            ),
            ("", "UCX does not start: the list is empty"),
            ("all,tcp", "UCX does not start: `all` must be the only item"),
            (
                "cuda_copy",
                "UCX does not start: no usable transport is left",
            ),
        ] {
            assert_eq!(line(value), wanted, "{value}");
        }
    }

    #[test]
    fn guesses_what_was_meant() {
        for (item, wanted) in [
            ("rdma", Some("rc")),
            ("roce", Some("rc")),
            ("efa", Some("srd")),
            ("nvlink", Some("cuda_ipc")),
            ("gpu", Some("cuda")),
            ("ib_verbs", Some("ib")),
            ("RC", Some("rc")),
            (" cuda_copy", Some("cuda_copy")),
            ("\"tcp\"", Some("tcp")),
            ("cuda-ipc", Some("cuda_ipc")),
            ("cuda_cpoy", Some("cuda_copy")),
            ("cudaipc", Some("cuda_ipc")),
            ("^ud", Some("ud")),
            ("rc", None),
            ("xyz", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(item), wanted, "{item:?}");
        }
    }

    #[test]
    fn finds_items_that_do_nothing() {
        let faults = |value| {
            bad_items(value)
                .into_iter()
                .map(|bad| (bad.item, bad.fault))
                .collect::<Vec<_>>()
        };
        assert_eq!(faults("rc,\\rc_mlx5,ud:aux,cuda_copy,^x").len(), 1);
        assert_eq!(faults("^rc,^ud"), [("^ud", ItemFault::CaretInside)]);
        assert_eq!(
            faults("rc, cuda_copy"),
            [(" cuda_copy", ItemFault::SpaceOrQuote)]
        );
        assert_eq!(faults("RC"), [("RC", ItemFault::UpperCase)]);
        assert_eq!(faults("\\rc"), [("\\rc", ItemFault::Unknown)]);
        assert_eq!(faults("mlx5_0:1"), [("mlx5_0:1", ItemFault::Device)]);
        assert_eq!(faults("all,tcp"), [("all", ItemFault::AllNotAlone)]);
        assert_eq!(faults("tcp,all"), [("all", ItemFault::AllIgnored)]);
        assert_eq!(faults("all"), []);
        assert_eq!(names("^rc,ud"), ["rc", "ud"]);
        assert!(is_allow_list("rc,tcp") && !is_allow_list("^tcp") && !is_allow_list("all"));
    }
}
