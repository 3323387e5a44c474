//! What a value of a variable does, in one line, and what is wrong with it.
//!
//! Judged by the text alone, whatever the host: what is said holds everywhere, and where that is little, little is said.

use crate::catalogue::{self, Variable};
use crate::kind::Kind;
use crate::known_names::{self, Known};
use crate::nccl_ib_hca::NameList;
use crate::nccl_int::NcclInt;
use crate::nccl_level::Level;
use crate::nccl_socket_ifname;
use crate::ucx_allow_list::{AllNotAlone, AllowList, is_dynamic, items, split_negation};
use crate::ucx_net_devices::{self, DeviceList, ItemKind};
use crate::ucx_tls::{self, Build, Init, ItemFault};
use crate::ucx_value::{self, Invalid, Owner, Quantity, Ternary};
use crate::version::{NcclVersion, UcxVersion};

/// What a value does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What it does, in one line.
    pub summary: String,
    /// What is wrong with it.
    pub problem: Option<Problem>,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub kind: ProblemKind,
    /// What is wrong, in one line.
    pub text: String,
    /// The library cannot read the value as one of its variable's kind.
    pub invalid: bool,
}

/// How bad a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// It has no effect, or not the one that it seems to have.
    Noop,
    /// It works on a slower path.
    Slow,
    /// It starts and fails later, at the first peer on another node.
    Late,
    /// The process or its transfer backend cannot start.
    Fatal,
}

impl Effect {
    fn fine(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            problem: None,
        }
    }

    fn bad(kind: ProblemKind, summary: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            problem: Some(Problem {
                kind,
                text: text.into(),
                invalid: false,
            }),
        }
    }

    /// A value that the library cannot read.
    fn invalid(kind: ProblemKind, text: impl Into<String>) -> Self {
        let mut effect = Self::problem(kind, text);
        if let Some(problem) = &mut effect.problem {
            problem.invalid = true;
        }
        effect
    }

    /// An effect whose problem is the whole of it.
    fn problem(kind: ProblemKind, text: impl Into<String>) -> Self {
        let text = text.into();
        Self::bad(kind, text.clone(), text)
    }
}

/// What this value of this variable does. The text repeats parts of the value, but never of an unknown variable.
pub fn effect(name: &str, value: &str) -> Effect {
    let variable = catalogue::lookup(name);
    let variable = variable.as_ref();
    let known = known_names::known(name);
    if variable.is_none() && known.is_none() {
        return unknown(name);
    }
    if variable.is_some_and(|variable| variable.secret) {
        return fallback(variable);
    }
    if let Some(variable) = variable.filter(|variable| !variable.is_read()) {
        return not_read(variable);
    }
    if let Some(last) = known.and_then(|known| known.last) {
        return Effect::problem(
            ProblemKind::Noop,
            format!("no longer read: last seen in {last}"),
        );
    }
    if is_dynamic(value) {
        return Effect::fine("filled in at run time");
    }
    if let Some(special) = special(name, value) {
        return special;
    }
    let kind = variable
        .map(|variable| variable.kind)
        .or(known.and_then(|known| known.kind))
        .unwrap_or(Kind::Text);
    by_kind(kind, value, variable, known)
}

/// What holds if the variable is not set.
pub fn describe_unset(name: &str) -> String {
    match name {
        "UCX_TLS" => "every transport that works is used".to_owned(),
        "UCX_NET_DEVICES" => "every RDMA port and interface that works is used".to_owned(),
        "NCCL_IB_HCA" => "every active InfiniBand and RoCE port is used".to_owned(),
        _ => match catalogue::lookup(name) {
            Some(variable) if !variable.is_read() => "nothing reads it".to_owned(),
            Some(variable) if variable.default == "unset" => "no default".to_owned(),
            Some(variable) => format!("default: {}", variable.default),
            None => "default not known here".to_owned(),
        },
    }
}

fn unknown(name: &str) -> Effect {
    let guess = known_names::did_you_mean(name)
        .map_or_else(String::new, |right| format!(": did you mean {right}?"));
    if name.starts_with("UCX_") {
        Effect::problem(
            ProblemKind::Noop,
            format!("UCX does not read this name{guess}"),
        )
    } else if name.starts_with("NCCL_") && guess.is_empty() {
        // Images and launch scripts have variables of their own with this prefix, such as NCCL_VERSION.
        Effect::fine("NCCL does not read this name")
    } else if name.starts_with("NCCL_") {
        Effect::problem(
            ProblemKind::Noop,
            format!("NCCL does not read this name{guess}"),
        )
    } else if !guess.is_empty() {
        Effect::problem(ProblemKind::Noop, format!("not a known variable{guess}"))
    } else {
        Effect::fine("not in the catalogue")
    }
}

fn not_read(variable: &Variable) -> Effect {
    let text = if variable.dangerous.is_empty() {
        "nothing reads it"
    } else {
        variable.dangerous
    };
    let kind = if text.contains("aborts the process") {
        ProblemKind::Fatal
    } else {
        ProblemKind::Noop
    };
    Effect::bad(kind, variable.meaning, text)
}

fn fallback(variable: Option<&Variable>) -> Effect {
    Effect::fine(
        variable.map_or("read by UCX or NCCL; not in the catalogue", |variable| {
            variable.meaning
        }),
    )
}

/// Values of single variables that are worth a sentence of their own.
fn special(name: &str, value: &str) -> Option<Effect> {
    let switch = |value| ucx_value::parse_ternary(value).ok();
    match name {
        "UCX_TLS" => Some(tls(value)),
        "UCX_NET_DEVICES" => Some(net_devices(value)),
        "NCCL_IB_HCA" => Some(ib_hca(value)),
        "NCCL_SOCKET_IFNAME" => Some(socket_ifname(value)),
        "UCX_IB_GPU_DIRECT_RDMA" => match switch(value)? {
            Ternary::No => Some(Effect::problem(
                ProblemKind::Slow,
                "GPUDirect RDMA is off: GPU memory is staged through host memory",
            )),
            Ternary::Yes => Some(Effect::fine(
                "GPUDirect RDMA is required: without a driver for it the RDMA device fails to open; `try` is never worse",
            )),
            Ternary::Try | Ternary::Auto => {
                Some(Effect::fine("GPUDirect RDMA is used where it works"))
            }
        },
        "UCX_CUDA_IPC_ENABLE_MNNVL" => match switch(value)? {
            Ternary::No => Some(Effect::fine("NVLink between nodes is off")),
            Ternary::Yes => Some(Effect::fine(
                "NVLink between nodes is on; where the fabric is absent UCX logs an error and goes on",
            )),
            Ternary::Try | Ternary::Auto => {
                Some(Effect::fine("NVLink between nodes is used where it works"))
            }
        },
        "UCX_RNDV_THRESH" => rndv_thresh(value),
        // ucx:src/uct/ib/base/ib_iface.c:158, 1835: only the global types still do something.
        "UCX_IB_ADDR_TYPE" if value.eq_ignore_ascii_case("eth") => Some(Effect::problem(
            ProblemKind::Noop,
            "deprecated, and `eth` does not select RoCE",
        )),
        "UCX_RNDV_SCHEME" => {
            let words = [
                "auto",
                "get_zcopy",
                "put_zcopy",
                "get_ppln",
                "put_ppln",
                "am",
                "rkey_ptr",
            ];
            let word = ucx_value::parse_enum(value, &words).ok()?;
            Some(Effect::fine(format!(
                "rendezvous by {word}; NIXL's put and get do not use rendezvous"
            )))
        }
        "NCCL_IB_DISABLE" => Some(nccl_ib_disable(value)),
        "NCCL_P2P_DISABLE" => Some(nccl_p2p_disable(value)),
        "NCCL_NET_GDR_LEVEL" if Level::parse(value) == Some(Level::Loc) => Some(Effect::problem(
            ProblemKind::Slow,
            "GPUDirect RDMA is off in NCCL",
        )),
        "NCCL_P2P_LEVEL" if Level::parse(value) == Some(Level::Loc) => Some(Effect::problem(
            ProblemKind::Slow,
            "NVLink and PCIe peer access are off in NCCL",
        )),
        "FI_EFA_IFACE" if value.is_empty() => Some(Effect::problem(
            ProblemKind::Fatal,
            "an empty value aborts the process",
        )),
        "FI_HMEM_DISABLE_P2P" if ucx_value::libfabric_bool(value) == Ok(true) => {
            Some(Effect::problem(
                ProblemKind::Slow,
                "GPUDirect is off in libfabric: GPU memory is staged through host memory",
            ))
        }
        "FI_EFA_USE_DEVICE_RDMA" => Some(if ucx_value::libfabric_bool(value).ok()? {
            Effect::fine(
                "EFA must use the device's RDMA: the process aborts on a device without it; needless since libfabric 1.18",
            )
        } else {
            Effect::problem(ProblemKind::Slow, "EFA emulates put and get in software")
        }),
        "MOONCAKE_PROTOCOL" if value.trim().eq_ignore_ascii_case("tcp") => Some(Effect::problem(
            ProblemKind::Slow,
            "the Mooncake store moves data over TCP; transfer between prefill and decode does not read it",
        )),
        // kvcache-ai/Mooncake:mooncake-transfer-engine/src/config.cpp: `atoi`, and 0 is in their range.
        "MC_GID_INDEX" | "MC_IB_PORT" => match NcclInt::parse(value) {
            NcclInt::Word | NcclInt::Default => Some(Effect::invalid(
                ProblemKind::Late,
                format!("`{value}` is not a number: Mooncake takes it for 0"),
            )),
            NcclInt::Number(0..=255) => None,
            NcclInt::Number(_) => Some(Effect::invalid(
                ProblemKind::Noop,
                format!("`{value}` is not in 0 to 255: Mooncake ignores it"),
            )),
        },
        "MC_FORCE_TCP" => Some(Effect::problem(
            ProblemKind::Slow,
            "Mooncake uses TCP: the variable forces it whatever its value, even 0",
        )),
        _ => None,
    }
}

fn quoted(items: &[&str]) -> String {
    let items: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
    items.join(", ")
}

fn tls(value: &str) -> Effect {
    let effect = ucx_tls::evaluate(Some(value), &Build::everything(), None);
    let summary = effect.one_line();
    let memory = effect.detect || effect.other_gpus();
    let bad: Vec<String> = ucx_tls::bad_items(value).iter().map(tls_item).collect();
    let kind = match effect.init {
        Init::Ok if !memory => ProblemKind::Fatal,
        Init::Ok if !effect.inter => ProblemKind::Late,
        Init::Ok if !effect.rdma => ProblemKind::Slow,
        Init::Ok => ProblemKind::Noop,
        _ => ProblemKind::Fatal,
    };
    if !bad.is_empty() {
        return Effect::bad(kind, summary, bad.join("; "));
    }
    let text = match (effect.init, kind) {
        (Init::Ok, ProblemKind::Noop) => return Effect::fine(summary),
        (Init::Ok, ProblemKind::Fatal) => {
            "without cuda_copy, KV in GPU memory cannot be registered".to_owned()
        }
        (Init::Ok, ProblemKind::Late) if effect.boot_missing => {
            "RC cannot connect: add ud, or write rc instead of the exact name".to_owned()
        }
        (Init::Ok, ProblemKind::Late) => "no transport reaches another node".to_owned(),
        (Init::Ok, ProblemKind::Slow) if effect.ud_only => {
            "UD has no one-sided put and get".to_owned()
        }
        (Init::Ok, ProblemKind::Slow) if effect.mnnvl => {
            "nothing but TCP reaches another node, unless NVLink spans the nodes".to_owned()
        }
        (Init::Ok, ProblemKind::Slow) => "nothing but TCP reaches another node".to_owned(),
        _ => summary.clone(),
    };
    Effect::bad(kind, summary, text)
}

fn tls_item(bad: &ucx_tls::BadItem<'_>) -> String {
    let item = bad.item;
    let meant = bad
        .suggestion
        .map_or_else(String::new, |right| format!(" (did you mean `{right}`?)"));
    match bad.fault {
        ItemFault::Unknown => format!("UCX has no transport `{item}`{meant}"),
        ItemFault::SpaceOrQuote => {
            format!("`{item}` matches nothing: UCX keeps spaces and quotes{meant}")
        }
        ItemFault::UpperCase => format!("`{item}` matches nothing: names are lower case{meant}"),
        ItemFault::Device => {
            format!("`{item}` is a device, not a transport: it belongs into UCX_NET_DEVICES")
        }
        ItemFault::CaretInside => {
            format!("`{item}` matches nothing: only a `^` in front of the whole list denies{meant}")
        }
        ItemFault::AllNotAlone => AllNotAlone.to_string(),
        ItemFault::AllIgnored => "`all` behind other items is ignored".to_owned(),
    }
}

fn net_devices(value: &str) -> Effect {
    if DeviceList::parse(value, UcxVersion::LATEST) == Err(AllNotAlone) {
        return Effect::problem(
            ProblemKind::Fatal,
            "`all` must be the only item: UCX 1.21 and later do not start",
        );
    }
    let found = ucx_net_devices::classify(value);
    let (deny, _) = split_negation(value);
    let of = |wanted: fn(&ItemKind) -> bool| -> Vec<&str> {
        found
            .iter()
            .filter(|item| wanted(&item.kind))
            .map(|item| item.text)
            .collect()
    };
    let dead = of(|kind| matches!(kind, ItemKind::Pattern | ItemKind::SpaceOrQuote));
    if deny {
        let names: Vec<&str> = found.iter().map(|item| item.text).collect();
        let summary = if names.is_empty() {
            "every device (UCX 1.21 and later)".to_owned()
        } else {
            format!("every device but {} (UCX 1.21 and later)", quoted(&names))
        };
        return if dead.is_empty() {
            Effect::fine(summary)
        } else {
            Effect::bad(ProblemKind::Noop, summary, match_nothing(&dead))
        };
    }
    if found.is_empty() {
        return Effect::problem(ProblemKind::Late, "no network device is left");
    }
    let rdma = of(|kind| matches!(kind, ItemKind::Port { .. } | ItemKind::BareHca));
    let netdevs = of(|kind| *kind == ItemKind::Netdev);
    let bare = of(|kind| *kind == ItemKind::BareHca);
    let unclear = found.len() > rdma.len() + netdevs.len() + dead.len();
    let mut summary = if unclear {
        format!("only {}", quoted(&of(|_| true)))
    } else {
        match (rdma.is_empty(), netdevs.is_empty()) {
            (false, true) => format!("RDMA on {} only, no TCP", quoted(&rdma)),
            (true, false) => format!("TCP on {} only, no RDMA", quoted(&netdevs)),
            (false, false) => format!("RDMA on {}, TCP on {}", quoted(&rdma), quoted(&netdevs)),
            (true, true) => "no device matches".to_owned(),
        }
    };
    if !bare.is_empty() {
        summary.push_str("; a device without port matches nothing up to UCX 1.20");
    }
    if !dead.is_empty() {
        let kind = if rdma.is_empty() && !unclear {
            ProblemKind::Late
        } else {
            ProblemKind::Noop
        };
        return Effect::bad(kind, summary, match_nothing(&dead));
    }
    if rdma.is_empty() && !unclear {
        let (kind, text) = if netdevs.iter().all(|name| *name == "lo") {
            (
                ProblemKind::Late,
                "the loopback interface reaches no other node",
            )
        } else {
            (
                ProblemKind::Slow,
                "a list of interfaces removes every RDMA device",
            )
        };
        return Effect::bad(kind, summary, text);
    }
    if found.iter().any(|item| item.kind == ItemKind::All) {
        return Effect::fine("every device");
    }
    Effect::fine(summary)
}

fn match_nothing(items: &[&str]) -> String {
    let verb = if items.len() == 1 { "matches" } else { "match" };
    format!(
        "{} {verb} nothing: UCX has no globs or prefixes and keeps spaces",
        quoted(items)
    )
}

fn ib_hca(value: &str) -> Effect {
    let list = NameList::parse(value, NcclVersion::LATEST);
    let names: Vec<&str> = list.names().collect();
    if names.is_empty() {
        return if list.is_deny_list() {
            Effect::problem(ProblemKind::Slow, "no RDMA device: NCCL uses sockets")
        } else {
            Effect::fine("every active InfiniBand and RoCE port")
        };
    }
    let dead: Vec<&str> = names
        .iter()
        .copied()
        .filter(|name| *name == "all" || never_in_a_name(name))
        .collect();
    let how = if list.is_exact() {
        "named"
    } else {
        "whose names begin with"
    };
    let summary = if list.is_deny_list() {
        format!("every RDMA device but those {how} {}", quoted(&names))
    } else {
        format!("RDMA devices {how} {}", quoted(&names))
    };
    if dead.is_empty() {
        return Effect::fine(summary);
    }
    let kind = if dead.len() == names.len() && !list.is_deny_list() {
        ProblemKind::Slow
    } else {
        ProblemKind::Noop
    };
    let text = format!(
        "no device is called {}: NCCL has no globs and no `all`, keeps spaces, and takes `^` and `=` only in front",
        quoted(&dead)
    );
    Effect::bad(kind, summary, text)
}

/// Characters that no device or interface name has.
fn never_in_a_name(name: &str) -> bool {
    name.contains(|c: char| {
        c.is_whitespace() || matches!(c, '*' | '?' | '[' | ']' | '^' | '=' | ';' | '"' | '\'')
    })
}

fn socket_ifname(value: &str) -> Effect {
    let Some(list) = nccl_socket_ifname::parse(value) else {
        return Effect::problem(
            ProblemKind::Noop,
            "a value of at most one character is ignored: NCCL chooses itself",
        );
    };
    let names: Vec<&str> = list.names().collect();
    if names.is_empty() {
        return if list.is_deny_list() {
            Effect::problem(
                ProblemKind::Fatal,
                "no interface is left: NCCL cannot start",
            )
        } else {
            Effect::fine("every interface")
        };
    }
    let how = if list.is_exact() {
        "named"
    } else {
        "whose names begin with"
    };
    let summary = if list.is_deny_list() {
        format!("every interface but those {how} {}", quoted(&names))
    } else {
        format!("interfaces {how} {}", quoted(&names))
    };
    if list.is_deny_list() {
        return Effect::fine(summary);
    }
    if names.iter().all(|name| never_in_a_name(name)) {
        return Effect::bad(
            ProblemKind::Fatal,
            summary,
            format!(
                "no interface is called {}: NCCL cannot start",
                quoted(&names)
            ),
        );
    }
    if names.iter().all(|name| *name == "lo") {
        return Effect::bad(
            ProblemKind::Late,
            summary,
            "the loopback interface reaches no other node",
        );
    }
    Effect::fine(summary)
}

fn rndv_thresh(value: &str) -> Option<Effect> {
    // `intra:X,inter:Y` from 1.17; each part is a size.
    let mut finite = false;
    for part in items(value) {
        let size = part.split_once(':').map_or(part, |(_, size)| size);
        match ucx_value::parse_memory(size).ok()? {
            Quantity::Number(_) => finite = true,
            Quantity::Infinite | Quantity::Auto => {}
        }
    }
    if value.is_empty() {
        return None;
    }
    Some(Effect::fine(
        if finite || value.eq_ignore_ascii_case("auto") {
            "not `inf`: under NIXL, EFA and RDMA NICs other than mlx5 lose zero copy"
        } else {
            "no rendezvous, as NIXL sets by itself"
        },
    ))
}

fn nccl_ib_disable(value: &str) -> Effect {
    match NcclInt::parse(value) {
        NcclInt::Word => Effect::bad(
            ProblemKind::Noop,
            "InfiniBand and RoCE stay on in NCCL",
            format!("`{value}` is not a number and counts as 0: 1 turns InfiniBand and RoCE off"),
        ),
        NcclInt::Default | NcclInt::Number(0) => {
            Effect::fine("InfiniBand and RoCE stay on in NCCL")
        }
        NcclInt::Number(_) => Effect::problem(
            ProblemKind::Slow,
            "NCCL uses neither InfiniBand nor RoCE; right on EFA, where it has no RDMA of its own",
        ),
    }
}

fn nccl_p2p_disable(value: &str) -> Effect {
    let stays = "NVLink and PCIe peer access stay on in NCCL";
    match NcclInt::parse(value) {
        NcclInt::Number(1) => Effect::problem(
            ProblemKind::Slow,
            "NVLink and PCIe peer access are off in NCCL",
        ),
        NcclInt::Default | NcclInt::Number(0) => Effect::fine(stays),
        NcclInt::Number(_) | NcclInt::Word => Effect::bad(
            ProblemKind::Noop,
            stays,
            format!("`{value}` does nothing: only 1 turns peer access off"),
        ),
    }
}

fn by_kind(kind: Kind, value: &str, variable: Option<&Variable>, known: Option<Known>) -> Effect {
    let says = |state: String| {
        Effect::fine(variable.map_or_else(
            || format!("read by UCX, not in the catalogue: {state}"),
            |variable| format!("{}: {state}", variable.meaning),
        ))
    };
    let refused = |invalid: Invalid| ucx_refuses(value, &invalid, known);
    let on_off = |on: bool| says(if on { "on" } else { "off" }.to_owned());
    let ternary = |state: Ternary| {
        says(
            match state {
                Ternary::No => "off",
                Ternary::Yes => "on",
                Ternary::Try => "where it works",
                Ternary::Auto => "UCX decides",
            }
            .to_owned(),
        )
    };
    let written = || says(format!("`{value}`"));
    if ucx_scalar(kind) {
        // Several variables may be empty, and then another one counts; some take `key:value` lists.
        // A switch of the catalogue with a default of its own is no such variable: empty is refused like any other word.
        let switch = matches!(
            kind,
            Kind::Bool | Kind::Ternary | Kind::TernaryAuto | Kind::OnOffAuto
        ) && variable.is_some_and(|v| !v.default.contains("empty"));
        if value.is_empty() && !switch {
            return fallback(variable);
        }
        if value.contains(':') && matches!(kind, Kind::Memory | Kind::Bandwidth) {
            return written();
        }
    }
    match kind {
        Kind::Bool => ucx_value::parse_bool(value).map_or_else(refused, on_off),
        Kind::Ternary => ucx_value::parse_ternary(value).map_or_else(refused, ternary),
        Kind::TernaryAuto => ucx_value::parse_ternary_auto(value).map_or_else(refused, ternary),
        Kind::OnOffAuto => ucx_value::parse_on_off_auto(value).map_or_else(refused, ternary),
        Kind::Time => ucx_value::parse_time(value).map_or_else(refused, |_| written()),
        Kind::TimeOrWord => {
            ucx_value::parse_time_or_word(value).map_or_else(refused, |_| written())
        }
        Kind::Memory => ucx_value::parse_memory(value).map_or_else(refused, |_| written()),
        Kind::Bandwidth => ucx_value::parse_bandwidth(value).map_or_else(refused, |_| written()),
        Kind::Uint => ucx_value::parse_uint(value).map_or_else(refused, |_| written()),
        Kind::Ulong => ucx_value::parse_ulong(value).map_or_else(refused, |_| written()),
        Kind::Int => ucx_value::parse_int(value).map_or_else(refused, |()| written()),
        Kind::Float => ucx_value::parse_float(value).map_or_else(refused, |_| written()),
        Kind::Hex => ucx_value::parse_hex(value).map_or_else(refused, |_| written()),
        Kind::Enum(words) => {
            let words: Vec<&str> = words.split('|').collect();
            ucx_value::parse_enum(value, &words)
                .map_or_else(refused, |word| says(format!("`{word}`")))
        }
        Kind::NcclInt => match NcclInt::parse(value) {
            NcclInt::Default => Effect::fine("NCCL's default"),
            NcclInt::Number(number) => says(number.to_string()),
            NcclInt::Word => Effect::bad(
                ProblemKind::Noop,
                variable.map_or("", |variable| variable.meaning),
                format!("`{value}` is not a number and counts as 0"),
            ),
        },
        Kind::NcclLevel => Level::parse(value).map_or_else(
            || {
                Effect::problem(
                    ProblemKind::Noop,
                    format!("`{value}` is no level: NCCL silently takes its default"),
                )
            },
            |level| says(level.as_str().to_owned()),
        ),
        Kind::FiBool => ucx_value::libfabric_bool(value).map_or_else(
            // What libfabric does with such a value is not known here.
            |_| fallback(variable),
            on_off,
        ),
        Kind::OfiBool => ucx_value::ofi_nccl_bool(value).map_or_else(
            |invalid| {
                Effect::invalid(
                    ProblemKind::Fatal,
                    format!("`{value}` is invalid ({invalid}): the plugin does not start"),
                )
            },
            on_off,
        ),
        Kind::Presence => says("on, whatever the value".to_owned()),
        Kind::ExactlyOne if value == "1" => says("on".to_owned()),
        Kind::ExactlyOne if matches!(value, "" | "0") => says("off".to_owned()),
        Kind::ExactlyOne => Effect::bad(
            ProblemKind::Noop,
            variable.map_or("", |variable| variable.meaning),
            format!("`{value}` does nothing: only 1 turns it on"),
        ),
        Kind::UcxList => AllowList::parse(value).map_or_else(
            |error| {
                refused(Invalid {
                    expected: format!("a list; {error}"),
                })
            },
            |_| written(),
        ),
        Kind::UcxTls
        | Kind::UcxNetDevices
        | Kind::NcclHca
        | Kind::NcclIfname
        | Kind::Removed
        | Kind::Unread
        | Kind::Text => fallback(variable),
    }
}

fn ucx_scalar(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Bool
            | Kind::Ternary
            | Kind::TernaryAuto
            | Kind::OnOffAuto
            | Kind::Time
            | Kind::TimeOrWord
            | Kind::Memory
            | Kind::Bandwidth
            | Kind::Uint
            | Kind::Ulong
            | Kind::Int
            | Kind::Float
            | Kind::Hex
            | Kind::Enum(_)
    )
}

fn ucx_refuses(value: &str, invalid: &Invalid, known: Option<Known>) -> Effect {
    let owner = known.and_then(|known| known.owner);
    let kind = match owner {
        Some(Owner::Context | Owner::Interface) => ProblemKind::Fatal,
        Some(Owner::MemoryDomain) => ProblemKind::Slow,
        Some(Owner::Global) | None => ProblemKind::Noop,
    };
    let then = owner.map_or_else(String::new, |owner| format!(": {}", owner.consequence()));
    Effect::invalid(kind, format!("`{value}` is invalid ({invalid}){then}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(name: &str, value: &str) -> String {
        effect(name, value).summary
    }

    fn problem(name: &str, value: &str) -> Option<(ProblemKind, String)> {
        effect(name, value)
            .problem
            .map(|problem| (problem.kind, problem.text))
    }

    fn assert_problem(name: &str, value: &str, kind: ProblemKind, text: &str) {
        assert_eq!(
            problem(name, value),
            Some((kind, text.to_owned())),
            "{name}={value}"
        );
    }

    #[test]
    fn ucx_tls() {
        assert_eq!(problem("UCX_TLS", "rc,cuda_copy,cuda_ipc,sm,self"), None);
        assert_eq!(problem("UCX_TLS", "^gga"), None);
        assert_problem(
            "UCX_TLS",
            "rdma,cuda_copy,cuda_ipc",
            ProblemKind::Late,
            "UCX has no transport `rdma` (did you mean `rc`?)",
        );
        assert_problem(
            "UCX_TLS",
            "rc,sm",
            ProblemKind::Fatal,
            "without cuda_copy, KV in GPU memory cannot be registered",
        );
        assert_problem(
            "UCX_TLS",
            "tcp,cuda_copy",
            ProblemKind::Slow,
            "nothing but TCP reaches another node",
        );
        assert_problem(
            "UCX_TLS",
            "rc_mlx5,cuda_copy",
            ProblemKind::Late,
            "RC cannot connect: add ud, or write rc instead of the exact name",
        );
        assert_problem(
            "UCX_TLS",
            "all,tcp",
            ProblemKind::Fatal,
            "`all` must be the only item",
        );
        assert_problem(
            "UCX_TLS",
            "rc, cuda_copy",
            ProblemKind::Fatal,
            "` cuda_copy` matches nothing: UCX keeps spaces and quotes (did you mean `cuda_copy`?)",
        );
        assert_problem(
            "UCX_TLS",
            "cuda_ipc,cuda_copy,tcp",
            ProblemKind::Slow,
            "nothing but TCP reaches another node, unless NVLink spans the nodes",
        );
        // GPUs of another vendor: no word about cuda_copy.
        assert_eq!(problem("UCX_TLS", "rc,ze_copy"), None);
        assert_eq!(summary("UCX_TLS", "${TLS}"), "filled in at run time");
    }

    #[test]
    fn ucx_net_devices() {
        assert_eq!(
            summary("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1"),
            "RDMA on `mlx5_0:1`, `mlx5_1:1` only, no TCP"
        );
        assert_eq!(problem("UCX_NET_DEVICES", "mlx5_0:1"), None);
        assert_eq!(summary("UCX_NET_DEVICES", "all"), "every device");
        assert_eq!(
            summary("UCX_NET_DEVICES", "mlx5_0"),
            "RDMA on `mlx5_0` only, no TCP; a device without port matches nothing up to UCX 1.20"
        );
        assert_problem(
            "UCX_NET_DEVICES",
            "eth0",
            ProblemKind::Slow,
            "a list of interfaces removes every RDMA device",
        );
        assert_problem(
            "UCX_NET_DEVICES",
            "mlx5_*",
            ProblemKind::Late,
            "`mlx5_*` matches nothing: UCX has no globs or prefixes and keeps spaces",
        );
        assert_problem(
            "UCX_NET_DEVICES",
            "",
            ProblemKind::Late,
            "no network device is left",
        );
        assert_eq!(problem("UCX_NET_DEVICES", "ibp59s0"), None);
        assert_eq!(
            summary("UCX_NET_DEVICES", "^eth0,lo"),
            "every device but `eth0`, `lo` (UCX 1.21 and later)"
        );
        assert_eq!(
            problem("UCX_NET_DEVICES", "all,eth0").unwrap().0,
            ProblemKind::Fatal
        );
    }

    #[test]
    fn ucx_scalars_and_their_consequences() {
        assert_problem(
            "UCX_IB_GPU_DIRECT_RDMA",
            "true",
            ProblemKind::Slow,
            "`true` is invalid (expected y, n or try): the whole transport family is dropped and the process goes on without it",
        );
        assert_problem(
            "UCX_PROTO_ENABLE",
            "true",
            ProblemKind::Fatal,
            "`true` is invalid (expected y or n): UCX does not start",
        );
        assert_problem(
            "UCX_MEMTYPE_CACHE",
            "false",
            ProblemKind::Noop,
            "`false` is invalid (expected y, n or try): UCX silently uses the default",
        );
        assert_problem(
            "UCX_RNDV_THRESH",
            "8kib",
            ProblemKind::Fatal,
            "`8kib` is invalid (expected a whole number of bytes with an optional k, m, g or t, inf or auto): UCX does not start",
        );
        assert_eq!(
            problem("UCX_IB_ADDR_TYPE", "eth").unwrap().0,
            ProblemKind::Noop
        );
        assert_eq!(
            problem("UCX_SHM_DEVICES", "all,cuda").unwrap().0,
            ProblemKind::Fatal
        );
        assert_problem(
            "UCX_IB_GID_INDEX",
            "true",
            ProblemKind::Slow,
            "`true` is invalid (expected a number, inf or auto): the whole transport family is dropped and the process goes on without it",
        );
        assert_problem(
            "UCX_RC_MLX5_RX_MAX_BUFS",
            "many",
            ProblemKind::Fatal,
            "`many` is invalid (expected a number): the transport's interface cannot be created, so UCX fails",
        );
        assert_eq!(problem("UCX_RC_MLX5_RX_MAX_BUFS", "-1"), None);
        // A variable that only the list of names has.
        assert_eq!(
            problem("UCX_RC_MLX5_TIMEOUT", "1min").unwrap().0,
            ProblemKind::Fatal
        );
        assert_eq!(problem("UCX_RC_MLX5_TIMEOUT", "1s"), None);
        assert_eq!(
            problem("UCX_LOG_LEVEL", "warning").unwrap().0,
            ProblemKind::Noop
        );
        assert_eq!(
            summary("UCX_LOG_LEVEL", "INFO"),
            "How much UCX logs: `info`"
        );
        assert_eq!(
            problem("UCX_IB_GPU_DIRECT_RDMA", "no").unwrap().0,
            ProblemKind::Slow
        );
        assert_eq!(problem("UCX_IB_GPU_DIRECT_RDMA", "try"), None);
        assert_eq!(
            summary("UCX_RNDV_THRESH", "inf"),
            "no rendezvous, as NIXL sets by itself"
        );
        assert_eq!(problem("UCX_RNDV_THRESH", "intra:8k,inter:inf"), None);
        assert_problem(
            "UCX_IB_REG_METHODS",
            "odp",
            ProblemKind::Noop,
            "no longer read: last seen in 1.15.0",
        );
    }

    #[test]
    fn nccl() {
        assert_eq!(
            summary("NCCL_IB_DISABLE", "true"),
            "InfiniBand and RoCE stay on in NCCL"
        );
        assert_problem(
            "NCCL_IB_DISABLE",
            "true",
            ProblemKind::Noop,
            "`true` is not a number and counts as 0: 1 turns InfiniBand and RoCE off",
        );
        assert_eq!(
            problem("NCCL_IB_DISABLE", "1").unwrap().0,
            ProblemKind::Slow
        );
        assert_eq!(problem("NCCL_IB_DISABLE", "0"), None);
        assert_eq!(
            problem("NCCL_P2P_DISABLE", "1").unwrap().0,
            ProblemKind::Slow
        );
        assert_eq!(
            problem("NCCL_P2P_DISABLE", "2").unwrap().0,
            ProblemKind::Noop
        );
        assert_eq!(
            summary("NCCL_IB_HCA", "mlx5_1"),
            "RDMA devices whose names begin with `mlx5_1`"
        );
        assert_eq!(
            summary("NCCL_IB_HCA", "^=mlx5_1"),
            "every RDMA device but those named `mlx5_1`"
        );
        assert_eq!(
            problem("NCCL_IB_HCA", "mlx5_*").unwrap().0,
            ProblemKind::Slow
        );
        assert_eq!(
            problem("NCCL_IB_HCA", "mlx5_0, mlx5_1").unwrap().0,
            ProblemKind::Noop
        );
        assert_eq!(problem("NCCL_IB_HCA", "^").unwrap().0, ProblemKind::Slow);
        assert_eq!(
            summary("NCCL_SOCKET_IFNAME", "eth"),
            "interfaces whose names begin with `eth`"
        );
        assert_eq!(
            problem("NCCL_SOCKET_IFNAME", "lo").unwrap().0,
            ProblemKind::Late
        );
        assert_eq!(problem("NCCL_SOCKET_IFNAME", "^lo,docker"), None);
        assert_problem(
            "NCCL_DMABUF_ENABLE",
            "true",
            ProblemKind::Noop,
            "`true` is not a number and counts as 0",
        );
        assert_problem(
            "NCCL_NET_GDR_LEVEL",
            "pix",
            ProblemKind::Noop,
            "`pix` is no level: NCCL silently takes its default",
        );
        assert_eq!(
            problem("NCCL_NET_GDR_LEVEL", "LOC").unwrap().0,
            ProblemKind::Slow
        );
    }

    #[test]
    fn other_libraries() {
        assert_eq!(
            problem("FI_HMEM_DISABLE_P2P", "yes").unwrap().0,
            ProblemKind::Slow
        );
        assert_eq!(
            problem("FI_EFA_MTU_SIZE", "9000").unwrap().0,
            ProblemKind::Fatal
        );
        assert_eq!(problem("FI_EFA_IFACE", "").unwrap().0, ProblemKind::Fatal);
        assert!(problem("UCX_IB_GPU_DIRECT_RDMA", "").is_some());
        assert!(problem("UCX_RC_TIMEOUT", "").is_none());
        assert_eq!(
            problem("OFI_NCCL_DISABLE_DMABUF", "yes").unwrap().0,
            ProblemKind::Fatal
        );
        assert_eq!(problem("MC_FORCE_TCP", "0").unwrap().0, ProblemKind::Slow);
        assert_problem(
            "MC_GID_INDEX",
            "true",
            ProblemKind::Late,
            "`true` is not a number: Mooncake takes it for 0",
        );
        assert_eq!(problem("MC_GID_INDEX", "3"), None);
        assert_eq!(problem("MC_IB_PORT", "300").unwrap().0, ProblemKind::Noop);
        assert_problem(
            "TRTLLM_USE_NIXL_KVCACHE",
            "true",
            ProblemKind::Noop,
            "`true` does nothing: only 1 turns it on",
        );
        assert_eq!(
            summary("TRTLLM_USE_NIXL_KVCACHE", "1"),
            "KV transfer over NIXL: on"
        );
        assert_eq!(
            problem("FI_EFA_ENABLE_SHM", "1").unwrap().0,
            ProblemKind::Noop
        );
    }

    #[test]
    fn unknown_names_and_secrets() {
        assert_problem(
            "UCX_NET_DEVICE",
            "mlx5_0:1",
            ProblemKind::Noop,
            "UCX does not read this name: did you mean UCX_NET_DEVICES?",
        );
        assert_eq!(summary("HF_TOKEN", "hf_abc"), "not in the catalogue");
        assert_eq!(problem("NCCL_VERSION", "2.27"), None);
        let etcd = effect("NIXL_ETCD_ENDPOINTS", "http://user:pass@host");
        assert!(!format!("{etcd:?}").contains("pass@"), "{etcd:?}");
    }

    #[test]
    fn unset() {
        assert_eq!(
            describe_unset("UCX_TLS"),
            "every transport that works is used"
        );
        assert_eq!(
            describe_unset("UCX_MAX_RMA_RAILS"),
            "default: 1 (NIXL sets 2)"
        );
        assert_eq!(describe_unset("NCCL_COMM_ID"), "no default");
        assert_eq!(describe_unset("FI_EFA_ENABLE_SHM"), "nothing reads it");
        assert_eq!(describe_unset("HF_TOKEN"), "default not known here");
    }
}
