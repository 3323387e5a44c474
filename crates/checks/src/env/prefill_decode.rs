//! Prefill and decode agree on what both have to agree on.
//!
//! A transfer needs the same connector and NIXL backend, and the same layout of the KV cache (data type, block
//! size) on both sides. NIC lists that differ between worker groups are usually a slip; different tuning,
//! parallelism or replica counts are not.

use model::{Role, Setting};

use crate::check::{Cause, Check};
use crate::finding::{Finding, Findings};
use crate::kv_path::{Backend, Connector};
use crate::view::{View, WorkerView};

const NAME: &str = "env/prefill-decode";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "prefill and decode agree on connector, backend, NIC list and KV layout",
    source: include_str!("prefill_decode.rs"),
    causes: &[
        CONNECTOR_DIFFERS,
        NIC_LISTS_DIFFER,
        KV_DTYPE_DIFFERS,
        BLOCK_SIZE_DIFFERS,
    ],
    run,
};

const CONNECTOR_DIFFERS: Cause = Cause {
    id: "connector-differs",
    what: "prefill and decode use different KV connectors or NIXL backends",
    why: "the two sides do not speak the same protocol, so no KV moves",
    fix: "use the same connector and backend on both roles",
    quiet_if: "one side cannot be seen; a mock engine",
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
    fix: "set the same --kv-cache-dtype on both roles",
    quiet_if: "equal, or set on neither",
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

fn run(view: &View<'_>, findings: &mut Findings) {
    if !view.has_both_roles() && view.kv.len() < 2 {
        return;
    }
    connectors(view, findings);
    nic_lists(view, findings);
    if let (Some(prefill), Some(decode)) = (
        view.role(Role::Prefill).next(),
        view.role(Role::Decode).next(),
    ) {
        values(
            prefill,
            decode,
            "--kv-cache-dtype",
            &KV_DTYPE_DIFFERS,
            true,
            findings,
        );
        for flag in ["--block-size", "--page-size"] {
            values(prefill, decode, flag, &BLOCK_SIZE_DIFFERS, false, findings);
        }
    }
}

fn connectors(view: &View<'_>, findings: &mut Findings) {
    let known = |w: &&WorkerView<'_>| {
        matches!(w.path.connector, Connector::Nixl | Connector::Mooncake)
            && w.path.backend.is_some()
    };
    let (Some(prefill), Some(decode)) = (
        view.role(Role::Prefill).find(known),
        view.role(Role::Decode).find(known),
    ) else {
        return;
    };
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
    let mut finding = Finding::fail(
        NAME,
        &CONNECTOR_DIFFERS,
        format!("prefill uses {p}, decode uses {d}: no KV can move between them"),
    );
    for (kv, summary) in [(prefill, p), (decode, d)] {
        // Where the connectors differ already, their backends are not the point.
        let place = backend_place(kv)
            .filter(|_| same_connector)
            .or(kv.path.place.as_ref())
            .unwrap_or(&kv.worker.place);
        finding = finding.at(place, format!("{}: {summary}", kv.worker.role.as_str()));
    }
    findings.push(finding.workers([prefill.worker, decode.worker]));
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

fn values(
    prefill: &WorkerView<'_>,
    decode: &WorkerView<'_>,
    flag: &str,
    cause: &'static Cause,
    fail: bool,
    findings: &mut Findings,
) {
    let (Some(p), Some(d)) = (prefill.worker.setting(flag), decode.worker.setting(flag)) else {
        return;
    };
    let (Some(pv), Some(dv)) = (p.value.literal(), d.value.literal()) else {
        return;
    };
    if pv == dv || pv == "auto" || dv == "auto" {
        return;
    }
    let detail = format!("{flag} is {pv} on prefill and {dv} on decode");
    let finding = if fail {
        Finding::fail(NAME, cause, detail)
    } else {
        Finding::warn(NAME, cause, detail)
    };
    findings.push(
        finding
            .workers([prefill.worker, decode.worker])
            .at(&p.place, format!("prefill: {pv}"))
            .at(&d.place, format!("decode: {dv}")),
    );
}
