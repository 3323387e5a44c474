//! What the engine's own UCX offers here: transports and devices.
//!
//! UCX prints a list of available transports and devices when a context is made (`UCX_LOG_LEVEL=debug`). This one is of
//! an agent in the engine's place, with the same libucp and the same settings: what it does not offer, the engine does
//! not have. `ucx_info` may be another UCX, and see devices that the wheel's cannot open: the wheel looks for providers of
//! libibverbs where its builder had them.

use std::collections::{BTreeMap, BTreeSet};

use model::observation::nixl::{OfferedTransport, Trial};
use model::observation::process::MappedLibrary;
use model::observation::rdma::has_software_name;
use model::{Reason, Role};

use super::libraries::version_of;
use super::view::{NixlView, libraries};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node::rdma_devices::SOFTWARE;
use crate::node::ucx_build::folder;
use crate::node::ucx_transports::{Family, family};

const NAME: &str = "nixl/transports";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the engine's own UCX offers RDMA and GPU memory here",
    source: include_str!("transports.rs"),
    causes: &[NO_RDMA, SWITCHED_OFF, NO_GPU],
    notes: &[],
    run: Run::Nixl(run),
};

const NO_RDMA: Cause = Cause {
    id: "nixl-ucx-offers-no-rdma",
    what: "the UCX that the engine has loaded offers no RDMA transport in the engine's place",
    why: "what goes to other nodes goes over TCP, and nothing says so at the usual log level",
    fix: "see that /dev/infiniband is in the container and can be opened (node/device-access), that a port is active (node/rdma-ports), and that the libibverbs of this UCX finds the provider of the card: lines `couldn't load driver` name those that it does not find",
    quiet_if: "no RDMA device is in sight and nothing says that KV moves here; NVLink between nodes carries KV; the backend is LIBFABRIC",
    source: "UCX ucp_context.c, UCX_LOG_LEVEL=debug; checked with NIXL 1.5.1 over soft-RoCE: provider missing, device hidden, port down",
};

const SWITCHED_OFF: Cause = Cause {
    id: "nixl-ucx-rdma-switched-off",
    what: "the UCX that the engine has loaded has RDMA transports here, and its settings switch all of them off",
    why: "what goes to other nodes goes over TCP",
    fix: "correct UCX_TLS and UCX_NET_DEVICES of the engine; unset is mostly best",
    quiet_if: "one RDMA transport with one device is left on",
    source: "UCX ucp_context.c: - is disabled",
};

const NO_GPU: Cause = Cause {
    id: "nixl-ucx-offers-no-gpu-memory",
    what: "the UCX that the engine has loaded offers no transport for GPU memory (cuda_copy), and a GPU is here",
    why: "NIXL refuses GPU memory, or takes it for host memory",
    fix: "use an image whose UCX has CUDA, with libcuda mounted; add cuda_copy where UCX_TLS is a list",
    quiet_if: "KV buffers in host memory; rocm_copy or ze_copy is there; no GPU is in the container",
    source: "UCX cuda_copy_md.c; NIXL ucx_utils.cpp",
};

fn run(view: &NixlView<'_>, findings: &mut Findings) {
    let Some(seen) = view.trial() else { return };
    let trial = &seen.trial;
    let Some(offered) = &trial.offered else {
        if trial.backends.iter().any(|b| b.name == "UCX") {
            findings.push(Finding::skipped(
                NAME,
                Reason::NotVisible,
                "UCX printed no list of transports: what it offers here is not known",
            ));
        }
        return;
    };
    if let Some((theirs, own)) = another(view, trial) {
        findings.push(Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!(
                "the agent in the engine's place loaded {theirs}, and the engine has {own}: what that one offers is not known"
            ),
        ));
        return;
    }
    let version = trial
        .libraries
        .iter()
        .find(|library| library.library == "libucp")
        .and_then(|library| version_of(view, &library.path));
    let ucx = match version {
        Some(version) => format!("the engine's UCX {version}"),
        None => "the engine's UCX".to_owned(),
    };
    let on: Vec<&OfferedTransport> = offered.iter().filter(|t| is_on(t)).collect();
    let of = |wanted: Family| -> Vec<&OfferedTransport> {
        on.iter()
            .copied()
            .filter(|t| family(&t.name) == wanted)
            .collect()
    };
    rdma(
        view,
        &ucx,
        offered,
        &of(Family::Rdma),
        &of(Family::Tcp),
        findings,
    );
    if !on.iter().any(|t| family(&t.name) == Family::GpuCopy) && !view.seen.gpu.gpus.is_empty() {
        findings.push(observed(Finding::warn(
            NAME,
            &NO_GPU,
            format!("{ucx} offers no transport for GPU memory here"),
        )));
    }
}

fn observed(finding: Finding) -> Finding {
    finding.grade(model::Grade::Observed)
}

fn is_on(transport: &OfferedTransport) -> bool {
    transport.enabled && transport.devices.iter().any(|(_, on)| *on)
}

/// The agent's UCX and the engine's, where they are not the same.
fn another<'v>(view: &NixlView<'v>, trial: &'v Trial) -> Option<(&'v str, &'v str)> {
    let ucp = |all: &'v [MappedLibrary]| {
        all.iter()
            .find(|library| library.library == "libucp")
            .map(|library| library.path.as_str())
    };
    let theirs = ucp(&trial.libraries)?;
    let own: Vec<&str> = view
        .processes()
        .filter_map(|(_, process)| ucp(libraries(process)))
        .collect();
    let first = own.first().copied()?;
    (!own.iter().any(|path| folder(path) == folder(theirs))).then_some((theirs, first))
}

/// `rc_mlx5, ud_mlx5 on mlx5_0:1`.
fn words(transports: &[&OfferedTransport]) -> String {
    let mut devices: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for transport in transports {
        for (device, on) in &transport.devices {
            if *on {
                devices.entry(device).or_default().insert(&transport.name);
            }
        }
    }
    let mut by_names: BTreeMap<Vec<&str>, Vec<&str>> = BTreeMap::new();
    for (device, names) in devices {
        by_names
            .entry(names.into_iter().collect())
            .or_default()
            .push(device);
    }
    let parts: Vec<String> = by_names
        .iter()
        .map(|(names, devices)| format!("{} on {}", names.join(", "), devices.join(", ")))
        .collect();
    parts.join("; ")
}

/// Why a module for RDMA could not be loaded, or a provider of libibverbs.
fn not_loaded(view: &NixlView<'_>) -> Option<String> {
    let printed = &view.trial()?.printed;
    let driver = printed.software.verbs_problems.first();
    if let Some(problem) = driver {
        return Some(problem.text.clone());
    }
    printed
        .log
        .of("ucx-module-not-loaded")
        .find(|event| {
            event
                .field("library")
                .is_some_and(|library| library.contains("libuct_ib.so"))
        })
        .and_then(|event| event.field("error"))
        .map(|error| format!("libuct_ib: {error}"))
}

fn rdma(
    view: &NixlView<'_>,
    ucx: &str,
    offered: &[OfferedTransport],
    on: &[&OfferedTransport],
    tcp: &[&OfferedTransport],
    findings: &mut Findings,
) {
    if !on.is_empty() {
        let software = on
            .iter()
            .flat_map(|t| &t.devices)
            .filter(|(_, on)| *on)
            .all(|(device, _)| has_software_name(device));
        let what = format!("{ucx} offers {} here", words(on));
        findings.push(observed(if software {
            Finding::warn(
                NAME,
                &SOFTWARE,
                format!("{what}: software RDMA, no faster than TCP"),
            )
        } else {
            Finding::ok(NAME, what).note("offered is not used")
        }));
        return;
    }
    let only = if tcp.is_empty() {
        "nothing for other nodes".to_owned()
    } else {
        format!("{} only for other nodes", words(tcp))
    };
    let off: Vec<&str> = offered
        .iter()
        .filter(|t| family(&t.name) == Family::Rdma)
        .map(|t| t.name.as_str())
        .collect();
    let moves = view.role.is_some_and(Role::moves_kv) || view.with_nixl().next().is_some();
    if !off.is_empty() {
        findings.push(observed(Finding::fail(
            NAME,
            &SWITCHED_OFF,
            format!(
                "{ucx} has {} here, and settings switch all of it off: {only}",
                off.join(", ")
            ),
        )));
        return;
    }
    let mut what = format!("{ucx} offers no RDMA here: {only}");
    if let Some(why) = not_loaded(view) {
        what = format!("{what} ({why})");
    }
    let rdma = &view.seen.rdma;
    let devices: Vec<&str> = rdma.devices.keys().map(String::as_str).collect();
    let libfabric = view.processes().any(|(_, p)| {
        libraries(p)
            .iter()
            .any(|l| l.library == "libplugin_LIBFABRIC")
    });
    findings.push(observed(if libfabric {
        Finding::skipped(NAME, Reason::NotApplicable, what)
            .note("the engine has the LIBFABRIC backend loaded")
    } else if !devices.is_empty() {
        let named = devices.join(", ");
        let real = devices.iter().any(|name| !has_software_name(name));
        let what = format!("{what}, although this machine shows {named}");
        if moves && real {
            Finding::fail(NAME, &NO_RDMA, what)
        } else {
            Finding::warn(NAME, &NO_RDMA, what)
        }
    } else if view.role.is_some_and(Role::moves_kv) {
        Finding::warn(
            NAME,
            &NO_RDMA,
            format!("{what}; no RDMA device is in sight"),
        )
    } else {
        Finding::skipped(NAME, Reason::NotApplicable, what)
    }));
}
