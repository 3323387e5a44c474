//! Prefill and decode agree on what both have to agree on.
//!
//! A transfer needs the same connector and NIXL backend, and the same layout of the KV cache (data type, block
//! size) on both sides, and the same model: KV cache is nothing without the weights that made it. NIC lists that differ between worker groups are usually a slip; different tuning,
//! parallelism or replica counts are not.

use model::{Engine, Role, Setting};
use settings::version::UcxVersion;

use crate::check::{Cause, Check, Run};
use crate::env::engine_values;
use crate::env::fabric_kinds;
use crate::env::models;
use crate::finding::{Finding, Findings};
use crate::image;
use crate::kv_path::{Backend, Connector};
use crate::view::{View, WorkerView};

pub(super) const NAME: &str = "env/prefill-decode";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode agree on model, connector, backend, NIC list and KV layout",
    source: include_str!("prefill_decode.rs"),
    causes: &[
        CONNECTOR_DIFFERS,
        models::MODEL_DIFFERS,
        fabric_kinds::FABRICS_DIFFER,
        NIC_LISTS_DIFFER,
        KV_DTYPE_DIFFERS,
        BLOCK_SIZE_DIFFERS,
        LAYOUT_DIFFERS,
        TP_NOT_DIVISIBLE,
        VERSION_SKEW,
    ],
    notes: &[TP_DIFFERS, GID_DIFFERS],
    run: Run::Recipe(run),
};

const CONNECTOR_DIFFERS: Cause = Cause {
    id: "connector-differs",
    what: "prefill and decode use different KV connectors or NIXL backends",
    why: "the two sides do not speak the same protocol, so no KV moves",
    fix: "use the same connector and backend on both roles",
    quiet_if: "one side cannot be seen; a mock engine; a warning only where one of them is TensorRT-LLM's DEFAULT, whose meaning changed",
    source: "ai-dynamo/dynamo docs, vllm-configuration: both halves must agree",
};

const NIC_LISTS_DIFFER: Cause = Cause {
    id: "nic-list-differs-between-roles",
    what: "the NIC lists of the worker groups differ",
    why: "a NIC that one side uses and the other does not may be on another fabric or absent there",
    fix: "use the same list on all worker groups of the same machine type, or remove the pin",
    quiet_if: "the lists are equal; the groups ask for different numbers of accelerators; a value is computed at start",
    source: "derived from real recipes",
};

const KV_DTYPE_DIFFERS: Cause = Cause {
    id: "kv-cache-dtype-differs",
    what: "prefill and decode store the KV cache in different data types",
    why: "the bytes that arrive are read as another type: the handshake refuses, or the output is wrong",
    fix: "set the same --kv-cache-dtype on both roles (TensorRT-LLM: kv_cache_config.dtype)",
    quiet_if: "equal, or set on neither; a warning only where one role says fp8 and the other leaves it to the model, which can bring fp8 itself",
    source: "vLLM NixlConnector compatibility hash",
};

const BLOCK_SIZE_DIFFERS: Cause = Cause {
    id: "block-size-differs",
    what: "prefill and decode use different KV block sizes",
    why: "many versions refuse the handshake or transfer wrong blocks",
    fix: "set the same block or page size on both roles",
    quiet_if: "equal, or set on one role only",
    source: "vLLM NixlConnector; newer versions support different sizes",
};

const LAYOUT_DIFFERS: Cause = Cause {
    id: "kv-cache-layout-differs",
    what: "VLLM_KV_CACHE_LAYOUT differs between prefill and decode",
    why: "blocks of one layout are read as the other: the handshake refuses, or the output is wrong",
    fix: "set the same VLLM_KV_CACHE_LAYOUT on both roles",
    quiet_if: "equal, or set on one role only",
    source: "vLLM NixlConnector compatibility hash",
};

const TP_NOT_DIVISIBLE: Cause = Cause {
    id: "vllm-tp-not-divisible",
    what: "the tensor parallel sizes of prefill and decode do not divide each other",
    why: "vLLM's NIXL connector maps ranks to ranks only where one size is a multiple of the other",
    fix: "use sizes of which one is a multiple of the other",
    quiet_if: "equal, or one is a multiple of the other (a note); another engine; a value is computed at start",
    source: "vLLM NixlConnector (tp_ratio)",
};

const TP_DIFFERS: Cause = Cause {
    id: "vllm-tp-mismatch",
    what: "prefill and decode have different tensor parallel sizes",
    why: "different tensor parallel sizes work where one is a multiple of the other, in current vLLM and with the HND layout (an image whose tag tells no version counts as current)",
    fix: "none",
    quiet_if: "equal; another engine",
    source: "vLLM NixlConnector",
};

const GID_DIFFERS: Cause = Cause {
    id: "roce-v1-v2-mismatch",
    what: "UCX_IB_GID_INDEX differs between prefill and decode",
    why: "the GID indices differ: where one is RoCE v1 and the other v2 the roles do not reach each other, which shows only in the pods",
    fix: "remove UCX_IB_GID_INDEX on both roles",
    quiet_if: "equal, or not set",
    source: "UCX ib_device.c (GID selection)",
};

pub(crate) const VERSION_SKEW: Cause = Cause {
    id: "ucx-pd-version-skew",
    what: "prefill and decode run different versions of the same image",
    why: "their UCX and NIXL can differ too: wire-up of different UCX releases and NIXL's metadata are not always compatible",
    fix: "run the same image on both roles",
    quiet_if: "the same tag; different images; a tag that tells no version; a patch",
    source: "UCX wire-up address versions; ai-dynamo/nixl metadata version",
};

/// Versions of one image that differ between the roles.
fn versions(view: &View<'_>, findings: &mut Findings) {
    fn of<'v>(w: &'v WorkerView<'_>) -> Option<(&'v model::Located<String>, image::Version)> {
        let image = w.worker.image.as_ref()?;
        Some((image, image::version(&image.value)?))
    }
    let pair = misfits(view, |p, d| match (of(p), of(d)) {
        (Some((p, pv)), Some((d, dv))) => {
            image::split(&p.value).0 == image::split(&d.value).0 && pv != dv
        }
        _ => false,
    });
    let Some((prefill, decode)) = pair.filter(|_| !view.is_part()) else {
        return;
    };
    let (Some((p, pv)), Some((d, dv))) = (of(prefill), of(decode)) else {
        return;
    };
    let (one, other) = (who(view, prefill), who(view, decode));
    findings.push(
        Finding::warn(
            NAME,
            &VERSION_SKEW,
            format!("{one} runs version {pv} and {other} {dv} of the same image"),
        )
        .workers([prefill.worker, decode.worker])
        .at(&p.place, format!("{one}: {pv}"))
        .at(&d.place, format!("{other}: {dv}")),
    );
}

/// Tensor parallel size, under any of its names.
fn tensor_parallel<'f>(kv: &WorkerView<'f>) -> Option<(u64, &'f Setting)> {
    ["--tensor-parallel-size", "-tp", "--tp-size", "--tp"]
        .iter()
        .find_map(|n| kv.worker.setting(n))
        .and_then(|s| Some((s.value.literal()?.trim().parse().ok()?, s)))
        .filter(|(n, _)| *n > 0)
}

fn parallelism(view: &View<'_>, findings: &mut Findings) {
    fn of<'f>(w: &WorkerView<'f>) -> Option<(u64, &'f Setting)> {
        tensor_parallel(w)
            .filter(|_| w.worker.engine == Engine::Vllm && w.path.connector == Connector::Nixl)
    }
    let pair = |fits: fn(u64, u64) -> bool| {
        misfits(
            view,
            move |p, d| matches!((of(p), of(d)), (Some((p, _)), Some((d, _))) if !fits(p, d)),
        )
    };
    let broken = pair(|p, d| p.max(d).is_multiple_of(p.min(d)));
    let Some((prefill, decode)) = broken.or_else(|| pair(|p, d| p == d)) else {
        return;
    };
    let (Some((p, p_at)), Some((d, d_at))) = (of(prefill), of(decode)) else {
        return;
    };
    let (one, other) = (who(view, prefill), who(view, decode));
    let detail = format!("tensor parallel size is {p} on {one} and {d} on {other}");
    let finding = if broken.is_some() {
        Finding::warn(NAME, &TP_NOT_DIVISIBLE, detail)
    } else {
        Finding::ok(NAME, detail).told(&TP_DIFFERS)
    };
    findings.push(
        finding
            .workers([prefill.worker, decode.worker])
            .at(&p_at.place, format!("{one}: {p}"))
            .at(&d_at.place, format!("{other}: {d}")),
    );
}

fn gid_indices(view: &View<'_>, findings: &mut Findings) {
    fn of<'v>(w: &'v WorkerView<'_>) -> Option<&'v str> {
        w.worker
            .literal("UCX_IB_GID_INDEX")
            .filter(|_| w.path.may_use_ucx())
    }
    let pair = misfits(
        view,
        |p, d| matches!((of(p), of(d)), (Some(p), Some(d)) if p != d),
    );
    if let Some((prefill, decode)) = pair
        && let (Some(p), Some(d)) = (of(prefill), of(decode))
    {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "UCX_IB_GID_INDEX is {p} on {} and {d} on {}",
                    who(view, prefill),
                    who(view, decode)
                ),
            )
            .workers([prefill.worker, decode.worker])
            .told(&GID_DIFFERS),
        );
    }
}

/// What names the type of the KV cache: a flag of vLLM and SGLang, a key of TensorRT-LLM's configuration.
const KV_DTYPE: [&str; 2] = ["--kv-cache-dtype", "kv_cache_config.dtype"];

/// What names the size of a block of KV cache: flags of vLLM and SGLang, a key of TensorRT-LLM's configuration.
const BLOCK_SIZES: [&str; 3] = [
    "--block-size",
    "--page-size",
    "kv_cache_config.tokens_per_block",
];

fn run(view: &View<'_>, findings: &mut Findings) {
    if !view.has_both_roles() && view.kv.len() < 2 {
        return;
    }
    connectors(view, findings);
    nic_lists(view, findings);
    if view.has_both_roles() {
        models::compare(view, findings);
        fabric_kinds::compare(view, findings);
        for name in KV_DTYPE {
            values(view, name, &KV_DTYPE_DIFFERS, true, findings);
            one_sided_fp8(view, name, findings);
        }
        values(
            view,
            "VLLM_KV_CACHE_LAYOUT",
            &LAYOUT_DIFFERS,
            true,
            findings,
        );
        for flag in BLOCK_SIZES {
            values(view, flag, &BLOCK_SIZE_DIFFERS, false, findings);
        }
        parallelism(view, findings);
        gid_indices(view, findings);
        versions(view, findings);
    }
}

/// A prefill and a decode worker that do not fit, of which one fits nobody: with several pools a worker may have its partner
/// anywhere on the other side. Members of a group are ranks of their leader's engine.
pub(super) fn misfits<'v, 'f>(
    view: &'v View<'f>,
    differ: impl Fn(&WorkerView<'f>, &WorkerView<'f>) -> bool,
) -> Option<(&'v WorkerView<'f>, &'v WorkerView<'f>)> {
    let of = |role| -> Vec<&'v WorkerView<'f>> { models::leaders(view, role).collect() };
    let (prefill, decode) = (of(Role::Prefill), of(Role::Decode));
    // Every worker is compared with every other one: real deployments have few kinds.
    if prefill.len().saturating_mul(decode.len()) > models::MAX_PAIRS {
        return None;
    }
    let alone_p = prefill.iter().find(|p| decode.iter().all(|d| differ(p, d)));
    let alone_d = decode.iter().find(|d| prefill.iter().all(|p| differ(p, d)));
    match (alone_p, alone_d) {
        (Some(p), Some(d)) => Some((p, d)),
        (Some(p), None) => Some((p, decode.first()?)),
        (None, Some(d)) => Some((prefill.first()?, d)),
        (None, None) => None,
    }
}

/// `decode`, and with the worker's name where there are several of its role.
pub(super) fn who(view: &View<'_>, kv: &WorkerView<'_>) -> String {
    let role = kv.worker.role;
    if models::leaders(view, role).count() > 1 {
        format!("{} ({})", role.as_str(), kv.worker.name)
    } else {
        role.as_str().to_owned()
    }
}

fn connectors(view: &View<'_>, findings: &mut Findings) {
    let known = |w: &&WorkerView<'_>| match &w.path.connector {
        Connector::Nixl | Connector::Mooncake => w.path.backend.is_some(),
        // What TensorRT-LLM and SGLang are told by name is a protocol of its own.
        Connector::Other(name) => match w.worker.engine {
            // One that does not exist is told of by itself.
            Engine::Trtllm => name
                .split_once('/')
                .is_none_or(|(_, backend)| engine_values::is_transceiver(backend)),
            Engine::Sglang => name != "fake",
            _ => w.path.backend.is_some(),
        },
        Connector::Nothing | Connector::Unknown(_) => false,
    };
    let (Some(first_prefill), Some(first_decode)) = (
        view.role(Role::Prefill).find(known),
        view.role(Role::Decode).find(known),
    ) else {
        return;
    };
    let (prefill, decode) = misfits(view, |p, d| {
        known(&p)
            && known(&d)
            && (p.path.connector != d.path.connector || p.path.backend != d.path.backend)
    })
    .unwrap_or((first_prefill, first_decode));
    let same_connector = prefill.path.connector == decode.path.connector;
    let same_backend = prefill.path.backend == decode.path.backend;
    let (p, d) = (
        prefill.path.summary().unwrap_or_default(),
        decode.path.summary().unwrap_or_default(),
    );
    if same_connector && same_backend {
        findings.push(
            Finding::ok(
                NAME,
                format!(
                    "both roles use {}",
                    if prefill.path.backend_is_named { p } else { d }
                ),
            )
            .workers([prefill.worker, decode.worker]),
        );
        return;
    }
    let detail = format!(
        "{} uses {p}, {} uses {d}: no KV can move between them",
        who(view, prefill),
        who(view, decode)
    );
    let mut finding = if is_release_dependent(prefill) || is_release_dependent(decode) {
        Finding::warn(
            NAME,
            &CONNECTOR_DIFFERS,
            format!("{detail}, unless DEFAULT means the same in this release"),
        )
    } else {
        Finding::fail(NAME, &CONNECTOR_DIFFERS, detail)
    };
    for (kv, summary) in [(prefill, p), (decode, d)] {
        // Where the connectors differ already, their backends are not the point.
        let place = backend_place(kv)
            .filter(|_| same_connector)
            .or(kv.path.place.as_ref())
            .unwrap_or(&kv.worker.place);
        finding = finding.at(place, format!("{}: {summary}", who(view, kv)));
    }
    findings.push(finding.workers([prefill.worker, decode.worker]));
}

/// TensorRT-LLM's DEFAULT, which has meant UCX and means NIXL.
fn is_release_dependent(kv: &WorkerView<'_>) -> bool {
    kv.worker
        .literal("cache_transceiver_config.backend")
        .is_some_and(|b| b.eq_ignore_ascii_case("default"))
        && !["NIXL", "UCX", "MOONCAKE", "MPI"]
            .iter()
            .any(|n| kv.worker.literal(&format!("TRTLLM_USE_{n}_KVCACHE")) == Some("1"))
}

fn backend_place<'f>(kv: &WorkerView<'f>) -> Option<&'f model::Place> {
    if kv.path.backend == Some(Backend::Ucx) && !kv.path.backend_is_named {
        return None;
    }
    [
        "kv_connector_extra_config.backends",
        "SGLANG_DISAGGREGATION_NIXL_BACKEND",
        "TRTLLM_NIXL_KVCACHE_BACKEND",
    ]
    .iter()
    .find_map(|n| kv.worker.setting(n))
    .map(|s| &s.place)
}

fn nic_lists(view: &View<'_>, findings: &mut Findings) {
    for name in ["UCX_NET_DEVICES", "--disaggregation-ib-device"] {
        if name == "UCX_NET_DEVICES" && !view.kv.iter().any(|w| w.path.may_use_ucx()) {
            continue;
        }
        let lists: Vec<(&WorkerView<'_>, &Setting, Vec<&str>)> = view
            .kv
            .iter()
            .filter_map(|w| {
                let setting = w.worker.setting(name)?;
                let mut items: Vec<&str> = setting
                    .value
                    .literal()?
                    .split(',')
                    .map(str::trim)
                    .filter(|i| !i.is_empty())
                    .collect();
                items.sort_unstable();
                Some((w, setting, items))
            })
            .collect();
        let Some((first, first_setting, first_items)) = lists.first() else {
            continue;
        };
        let Some((other, other_setting, other_items)) = lists.iter().find(|(w, _, items)| {
            items != first_items && w.worker.accelerators == first.worker.accelerators
        }) else {
            continue;
        };
        if name == "UCX_NET_DEVICES" && same_but_for_ports(first_items, other_items) {
            ports(first, first_setting, other, other_setting, findings);
            continue;
        }
        let only = |a: &[&str], b: &[&str]| {
            a.iter()
                .filter(|i| !b.contains(i))
                .copied()
                .collect::<Vec<_>>()
                .join(",")
        };
        let describe = |extra: String| {
            if extra.is_empty() {
                "a shorter list".to_owned()
            } else {
                format!("also {extra}")
            }
        };
        findings.push(
            Finding::warn(
                NAME,
                &NIC_LISTS_DIFFER,
                format!("{name} differs between worker groups of the same size"),
            )
            .workers([first.worker, other.worker])
            .at(
                &first_setting.place,
                format!(
                    "{} ({}): {}",
                    first.worker.role.as_str(),
                    first.worker.name,
                    describe(only(first_items, other_items))
                ),
            )
            .at(
                &other_setting.place,
                format!(
                    "{} ({}): {}",
                    other.worker.role.as_str(),
                    other.worker.name,
                    describe(only(other_items, first_items))
                ),
            ),
        );
    }
}

/// Whether two lists name the same devices, one with ports and the other without.
fn same_but_for_ports(a: &[&str], b: &[&str]) -> bool {
    let devices = |list: &[&str]| {
        let mut names: Vec<String> = list
            .iter()
            .map(|i| i.split(':').next().unwrap_or_default().to_owned())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let ports = |list: &[&str]| list.iter().filter_map(|i| i.split_once(':')).count();
    devices(a) == devices(b) && (ports(a) < a.len() || ports(b) < b.len())
}

/// One list with ports, one without: the same devices to some releases of UCX.
fn ports(
    first: &WorkerView<'_>,
    first_setting: &Setting,
    other: &WorkerView<'_>,
    other_setting: &Setting,
    findings: &mut Findings,
) {
    let bare = |w: &WorkerView<'_>| {
        let value = w.worker.literal("UCX_NET_DEVICES").unwrap_or_default();
        value.split(',').any(|i| !i.contains(':'))
    };
    let new = [first, other].iter().filter(|w| bare(w)).all(|w| {
        let image = w.worker.image.as_ref();
        image
            .and_then(|i| image::ucx(&i.value))
            .is_some_and(|v| v >= UcxVersion::new(1, 21))
    });
    let label = |w: &WorkerView<'_>| {
        let how = if bare(w) { "without port" } else { "with port" };
        format!("{} ({}): {how}", w.worker.role.as_str(), w.worker.name)
    };
    let detail =
        "UCX_NET_DEVICES names the same devices, with a port on one role and without on the other";
    let finding = if new {
        Finding::ok(NAME, detail)
    } else {
        Finding::warn(
            NAME,
            &NIC_LISTS_DIFFER,
            format!("{detail}; before UCX 1.21 a name without port matches nothing"),
        )
        .fix("write device:port on both roles, such as mlx5_0:1")
    };
    findings.push(
        finding
            .workers([first.worker, other.worker])
            .at(&first_setting.place, label(first))
            .at(&other_setting.place, label(other)),
    );
}

/// fp8 on one role, and on the other what the model brings.
fn one_sided_fp8(view: &View<'_>, flag: &str, findings: &mut Findings) {
    let fp8 = |w: &WorkerView<'_>| {
        w.worker
            .literal(flag)
            .is_some_and(|v| v.to_ascii_lowercase().starts_with("fp8"))
    };
    let automatic = |one: &WorkerView<'_>, other: &WorkerView<'_>| match other.worker.setting(flag)
    {
        Some(setting) => setting.value.literal() == Some("auto"),
        None => !other.worker.is_open() && one.worker.engine == other.worker.engine,
    };
    let pair = misfits(view, |p, d| {
        (fp8(p) && automatic(p, d)) || (fp8(d) && automatic(d, p))
    });
    let Some((prefill, decode)) = pair else {
        return;
    };
    let (one, other) = if fp8(prefill) {
        (prefill, decode)
    } else {
        (decode, prefill)
    };
    let Some(setting) = one.worker.setting(flag) else {
        return;
    };
    let value = setting.value.literal().unwrap_or_default();
    let theirs = other.worker.setting(flag);
    let (role, their_role) = (who(view, one), who(view, other));
    let how = if theirs.is_some() { "auto" } else { "not set" };
    let place = theirs.map_or(&other.worker.place, |s| &s.place);
    findings.push(
        Finding::warn(
            NAME,
            &KV_DTYPE_DIFFERS,
            format!("{flag} is {value} on {role} and {how} on {their_role}, which then takes the model's type"),
        )
        .workers([prefill.worker, decode.worker])
        .at(&setting.place, format!("{role}: {value}"))
        .context(place, format!("{their_role}: {how}")),
    );
}

fn values(view: &View<'_>, flag: &str, cause: &'static Cause, fail: bool, findings: &mut Findings) {
    let of = |w: &WorkerView<'_>| w.worker.literal(flag).map(str::to_owned);
    let pair = misfits(
        view,
        |p, d| matches!((of(p), of(d)), (Some(p), Some(d)) if p != d && p != "auto" && d != "auto"),
    );
    let Some((prefill, decode)) = pair else {
        return;
    };
    let (Some(p), Some(d)) = (prefill.worker.setting(flag), decode.worker.setting(flag)) else {
        return;
    };
    let (Some(pv), Some(dv)) = (p.value.literal(), d.value.literal()) else {
        return;
    };
    let (one, other) = (who(view, prefill), who(view, decode));
    let detail = format!("{flag} is {pv} on {one} and {dv} on {other}");
    let finding = if fail {
        Finding::fail(NAME, cause, detail)
    } else {
        Finding::warn(NAME, cause, detail)
    };
    findings.push(
        finding
            .workers([prefill.worker, decode.worker])
            .at(&p.place, format!("{one}: {pv}"))
            .at(&d.place, format!("{other}: {dv}")),
    );
}
