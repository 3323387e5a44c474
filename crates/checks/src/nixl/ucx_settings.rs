//! The UCX settings in force allow RDMA or NVLink for KV.
//!
//! Read from the environment of the engine, or from what UCX prints of it (`UCX_* env variables`). The same rules as
//! for a recipe (`env/ucx-tls`), where injection, images and scripts can no longer change the value.

use settings::ucx_net_devices::{ItemKind, classify};
use settings::ucx_tls::{self, Build, Init};

use crate::check::{Check, Run};
use crate::env::setting_notes::WARNINGS_OFF;
use crate::env::setting_values::GPUDIRECT_OFF;
use crate::env::ucx_net_devices::NETDEV_ONLY;
use crate::env::ucx_tls as rules;
use crate::finding::{Finding, Findings};
use crate::node::ucx_transports::{Family, family};
use crate::node::words::is_mnnvl;
use crate::node_view::NodeView;

const NAME: &str = "nixl/ucx-settings";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the UCX settings in force allow RDMA or NVLink",
    source: include_str!("ucx_settings.rs"),
    causes: &[],
    notes: &[],
    run: Run::Place(run),
};

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let quiet = view
        .setting("UCX_WARN_UNUSED_ENV_VARS")
        .and_then(|f| f.value())
        .is_some_and(|v| matches!(v.as_str(), "n" | "no" | "0" | "off"))
        || view
            .setting("UCX_LOG_LEVEL")
            .and_then(|f| f.value())
            .is_some_and(|v| matches!(v.to_ascii_lowercase().as_str(), "error" | "fatal"));
    for fact in view.settings("UCX_TLS") {
        let Some(value) = fact.value() else { continue };
        let mut finding = of_tls(value, view);
        if quiet {
            finding = finding.told(&WARNINGS_OFF);
        }
        findings.push(finding.seen(fact, "UCX_TLS"));
    }
    devices(view, findings);
    for fact in view.settings("UCX_IB_GPU_DIRECT_RDMA") {
        let Some(value) = fact.value() else { continue };
        let off = ["n", "no", "off", "0"];
        if off.iter().any(|word| value.eq_ignore_ascii_case(word)) {
            findings.push(
                Finding::fail(
                    NAME,
                    &GPUDIRECT_OFF,
                    format!(
                        "UCX_IB_GPU_DIRECT_RDMA={value}: GPU memory is copied through host memory"
                    ),
                )
                .seen(fact, "GPUDirect off"),
            );
        }
    }
}

/// `UCX_NET_DEVICES` names devices that the log itself shows to be network interfaces, whatever they are called.
/// Names that look like interfaces `node/selected-devices` knows without a log.
fn devices(view: &NodeView<'_>, findings: &mut Findings) {
    let Some(fact) = view.setting("UCX_NET_DEVICES") else {
        return;
    };
    let value = fact.value().map(String::as_str).unwrap_or_default();
    let items = classify(value);
    if value.starts_with('^')
        || items.is_empty()
        || items.iter().all(|i| i.kind == ItemKind::Netdev)
    {
        return;
    }
    let log = &view.seen.log;
    let lanes = || {
        let of_lines = log.lanes.iter().flat_map(|l| &l.uses).flat_map(|(_, l)| l);
        let of_tables = log
            .tables
            .iter()
            .flat_map(|t| &t.rows)
            .flat_map(|r| &r.lanes);
        of_lines.chain(of_tables)
    };
    let is_interface = |name: &str| {
        lanes().any(|l| l.device == name && family(&l.transport) == Family::Tcp)
            && !lanes().any(|l| l.device == name && family(&l.transport) == Family::Rdma)
    };
    if items.iter().all(|i| is_interface(i.text)) {
        let what = format!(
            "UCX_NET_DEVICES={value} names interfaces only, as the log shows (tcp/{}): that allows TCP and no RDMA",
            items.first().map(|i| i.text).unwrap_or_default()
        );
        findings.push(
            if view.is_kv_worker() {
                Finding::fail(NAME, &NETDEV_ONLY, what)
            } else {
                Finding::warn(NAME, &NETDEV_ONLY, what)
            }
            .seen(fact, "UCX_NET_DEVICES"),
        );
    }
}

fn of_tls(value: &str, view: &NodeView<'_>) -> Finding {
    let effect = ucx_tls::evaluate(Some(value), &Build::everything(), None);
    let kv = view.is_kv_worker();
    let text = format!("UCX_TLS={value}: {}", effect.one_line());
    match effect.init {
        Init::FailParse => return Finding::fail(NAME, &rules::ALL_NOT_ALONE, text),
        Init::FailEmpty => return Finding::fail(NAME, &rules::EMPTY, text),
        _ => {}
    }
    if effect.tcp && !effect.rdma && !effect.mnnvl {
        let what = format!("UCX_TLS={value} leaves tcp as the only transport between nodes");
        return if kv {
            Finding::fail(NAME, &rules::TCP_ONLY, what)
        } else {
            Finding::warn(NAME, &rules::TCP_ONLY, what)
                .note("right for a process that moves no KV, such as an MPI launcher; --role tells")
        };
    }
    let nvidia = !view.seen.gpu.gpus.is_empty();
    if !effect.detect && !effect.other_gpus() && (kv || nvidia) {
        return if kv && nvidia {
            Finding::fail(NAME, &rules::NO_GPU_MEMORY, text)
        } else {
            Finding::warn(NAME, &rules::NO_GPU_MEMORY, text)
        };
    }
    if effect.tcp && !effect.rdma {
        let names = || view.seen.gpu.gpus.iter().filter_map(|g| g.name.value());
        if names().next().is_some() && !names().any(|n| is_mnnvl(n)) {
            let what =
                format!("UCX_TLS={value} has no RDMA, and no GPU here has NVLink between nodes");
            return if kv {
                Finding::fail(NAME, &rules::CUDA_IPC_TCP, what)
            } else {
                Finding::warn(NAME, &rules::CUDA_IPC_TCP, what)
            };
        }
        return Finding::ok(NAME, text).note(
            "right only where NVLink joins the nodes (NVL72); elsewhere tcp is what is left",
        );
    }
    Finding::ok(NAME, text)
}
