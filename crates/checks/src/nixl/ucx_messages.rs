//! UCX took its settings as they were meant.
//!
//! UCX warns once about a name that it does not know and goes on with what is left, so one line in the log can be the
//! only sign that KV has lost RDMA. The list of alternatives that it offers is what this UCX really sees. A setting of
//! InfiniBand (`UCX_IB_*`, `UCX_RC_*`) that is called unused means that nobody read it: no InfiniBand transport was
//! opened in this process. Deny lists are never reported.

use std::collections::BTreeMap;

use model::observation::Origin;
use model::observation::log::Event;
use settings::ucx_tls;

use crate::check::{Cause, Check, Run};
use crate::env::setting_values::INVALID;
use crate::env::ucx_net_devices::{SPACE, SYNTAX};
use crate::env::ucx_tls::{ALL_NOT_ALONE, EMPTY, MID_CARET, SPELLING, UNKNOWN_NAME};
use crate::finding::{Finding, Findings};
use crate::node::ucx_transports::{Family, family};
use crate::node_view::NodeView;

const NAME: &str = "nixl/ucx-messages";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX took its settings as they were meant",
    source: include_str!("ucx_messages.rs"),
    causes: &[
        NOT_HERE,
        NO_DEVICE,
        NOTHING_LEFT,
        FAIL_FAST,
        UNUSED_IB,
        UNUSED_CUDA,
        TYPO,
        MODULE,
    ],
    notes: &[],
    run: Run::Place(run),
};

const NOT_HERE: Cause = Cause {
    id: "ucx-transport-not-here",
    what: "UCX_TLS names transports that this UCX does not have on this host",
    why: "the device is not in the container, or the UCX is built without it; what is left decides, often tcp",
    fix: "bring the device into the container, or use a UCX that has the transport; ucx_info -d lists what there is",
    quiet_if: "another transport of the same use is offered (rc_mlx5 for rc_x)",
    source: "UCX ucp_context.c:1508",
};

const NO_DEVICE: Cause = Cause {
    id: "ucx-netdev-missing-device",
    what: "UCX_NET_DEVICES names a device that UCX does not see here",
    why: "with only tcp devices offered KV goes over TCP, or nothing is left and UCX does not start",
    fix: "name the devices of this container (ibv_devices), or remove UCX_NET_DEVICES; the port must be active",
    quiet_if: "several devices are named and the others are there",
    source: "UCX ucp_context.c:1508",
};

const NOTHING_LEFT: Cause = Cause {
    id: "ucx-netdev-excludes-everything",
    what: "UCX_TLS and UCX_NET_DEVICES leave no transport on any device",
    why: "UCX does not start, so there is no NIXL backend",
    fix: "remove UCX_NET_DEVICES and UCX_TLS, or name what ucx_info -d lists",
    quiet_if: "never",
    source: "UCX ucp_context.c:1770: no usable transports/devices",
};

const FAIL_FAST: Cause = Cause {
    id: "ucx-tls-list-without-tcp",
    what: "UCX_TLS lists RDMA without tcp, and no RDMA is here: UCX does not start",
    why: "the list is right, since it fails at once where tcp would hide the loss; RDMA itself is missing",
    fix: "bring the RDMA device into the container, or use a UCX that is built with verbs; do not add tcp",
    quiet_if: "UCX starts",
    source: "UCX ucp_context.c:1770",
};

const UNUSED_IB: Cause = Cause {
    id: "ucx-unused-env-ib",
    what: "UCX calls a setting of InfiniBand unused (UCX_IB_*, UCX_RC_*, UCX_DC_*, UCX_UD_*)",
    why: "nobody read it: this process opened no InfiniBand or RoCE transport",
    fix: "look whether UCX is built with verbs (ucx_info -v) and the device is in the container",
    quiet_if: "the backend is not UCX; a name that UCX no longer has",
    source: "UCX parser.c:2578",
};

const UNUSED_CUDA: Cause = Cause {
    id: "ucx-unused-env-cuda",
    what: "UCX calls a setting of CUDA unused (UCX_CUDA_*, UCX_GDR_COPY_*)",
    why: "the CUDA module is not loaded in this process (no libcuda, or a build without it), or UCX is older than the setting",
    fix: "use a UCX with CUDA and run it where libcuda is",
    quiet_if: "a process without a GPU, such as a router",
    source: "UCX parser.c:2578",
};

const TYPO: Cause = Cause {
    id: "ucx-env-typo",
    what: "UCX does not know a variable: misspelt, or removed from this UCX",
    why: "the setting has no effect",
    fix: "use the name that UCX suggests, or remove it",
    quiet_if: "never",
    source: "UCX parser.c:2578",
};

const MODULE: Cause = Cause {
    id: "ucx-module-not-loaded",
    what: "a module of UCX cannot be loaded",
    why: "its transports are not there: libuct_ib is RDMA, libuct_cuda is GPU memory",
    fix: "install what the error names, in a version that fits",
    quiet_if: "modules of hardware that is not here",
    source: "UCX module.c: dlopen failed",
};

/// Lines that say the same, told once.
#[derive(Default)]
struct Said {
    findings: Vec<(Finding, Vec<Origin>, String)>,
}

impl Said {
    fn add(&mut self, event: &Event, detail: String, finding: Finding) {
        if let Some((_, origins, _)) = self.findings.iter_mut().find(|(_, _, d)| *d == detail) {
            origins.push(event.origin.clone());
        } else if self.findings.len() < 256 {
            self.findings
                .push((finding, vec![event.origin.clone()], detail));
        }
    }

    fn fail(&mut self, event: &Event, cause: &'static Cause, detail: String) {
        let finding = Finding::fail(NAME, cause, detail.clone());
        self.add(event, detail, finding);
    }

    fn warn(&mut self, event: &Event, cause: &'static Cause, detail: String) {
        let finding = Finding::warn(NAME, cause, detail.clone());
        self.add(event, detail, finding);
    }
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let mut said = Said::default();
    for event in &view.seen.log.events {
        match event.pattern.as_ref() {
            "ucx-transport-not-available" => transports(event, &mut said),
            "ucx-device-not-available" => devices(event, &mut said),
            "ucx-no-usable-transport" => nothing_left(event, view, &mut said),
            "ucx-tls-empty" => said.fail(
                event,
                &EMPTY,
                "UCX_TLS is empty: UCX does not start".to_owned(),
            ),
            "ucx-invalid-value" => invalid(event, &mut said),
            "ucx-unused-variable" => unused(event, view, &mut said),
            "ucx-module-not-loaded" => module(event, view, &mut said),
            _ => {}
        }
    }
    for (finding, origins, _) in said.findings {
        findings.push(finding.read_at(&origins, "log line"));
    }
}

/// `'eth0'(tcp), 'lo'(tcp)` and `cma, mm, tcp`, as names.
fn offered(event: &Event) -> &str {
    event.field("offered").unwrap_or_default()
}

fn of_rdma(transport: &str) -> bool {
    family(transport) == Family::Rdma
}

/// Whether a list of transports has one for RDMA.
fn offers_rdma(list: &str) -> bool {
    list.split([',', ' ']).any(|w| of_rdma(w.trim()))
}

/// GPU memory by its own transport or its alias.
fn offers_gpu(list: &str) -> bool {
    list.split([',', ' '])
        .any(|w| family(w.trim()) == Family::GpuCopy || w.trim() == "cuda")
}

/// A name that UCX knows once blanks, quotes and case are right.
fn spelling(name: &str) -> bool {
    let tidy = name.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    tidy != name && ucx_tls::is_known(&tidy)
}

fn transports(event: &Event, said: &mut Said) {
    let mut left: BTreeMap<&'static str, Vec<&str>> = BTreeMap::new();
    let names = event.field("names").unwrap_or_default();
    for name in names.split(',') {
        let kind = if name.trim_start().starts_with('^') {
            "caret"
        } else if spelling(name) {
            "spelling"
        } else if ucx_tls::is_known(name) {
            "here"
        } else {
            "unknown"
        };
        left.entry(kind).or_default().push(name);
    }
    let rdma = offers_rdma(offered(event));
    let tail = format!("; this UCX has {}", offered(event));
    for (kind, names) in left {
        let quoted: Vec<String> = names.iter().map(|n| format!("'{n}'")).collect();
        let quoted = quoted.join(", ");
        match kind {
            "caret" => said.warn(
                event,
                &MID_CARET,
                format!("UCX_TLS: {quoted} is no denial: ^ counts only in front of the whole list"),
            ),
            "spelling" => said.warn(
                event,
                &SPELLING,
                format!("UCX_TLS: {quoted} is not taken: blanks, quotes and capitals count"),
            ),
            "unknown" => said.warn(
                event,
                &UNKNOWN_NAME,
                format!("UCX_TLS: no UCX knows {quoted}"),
            ),
            _ => {
                let lost_rdma = !rdma && names.iter().any(|n| of_rdma(n));
                let lost_gpu = !offers_gpu(offered(event)) && names.iter().any(|n| offers_gpu(n));
                let detail = format!("UCX_TLS: {quoted} is not available here{tail}");
                if lost_rdma || lost_gpu {
                    said.fail(event, &NOT_HERE, detail);
                } else {
                    said.warn(event, &NOT_HERE, detail);
                }
            }
        }
    }
}

fn devices(event: &Event, said: &mut Said) {
    let offered = offered(event);
    // Devices with their transport in brackets; another one than tcp is RDMA.
    let only_tcp = !offered.split('(').skip(1).any(|t| !t.starts_with("tcp"));
    let mut missing: Vec<String> = Vec::new();
    for name in event.field("names").unwrap_or_default().split(',') {
        let quoted = format!("'{name}'");
        if name != name.trim() || name.contains(['"', '\'']) {
            said.warn(
                event,
                &SPACE,
                format!("UCX_NET_DEVICES: {quoted} matches no device: UCX does not trim"),
            );
        } else if name.contains(['=', '*', ';', '^']) {
            said.fail(
                event,
                &SYNTAX,
                format!("UCX_NET_DEVICES: {quoted} matches no device: UCX takes exact names"),
            );
        } else {
            missing.push(quoted);
        }
    }
    if missing.is_empty() {
        return;
    }
    let detail = format!(
        "UCX_NET_DEVICES: {} is not here; UCX sees {offered}",
        missing.join(", ")
    );
    if only_tcp {
        said.fail(event, &NO_DEVICE, format!("{detail}: no RDMA device"));
    } else {
        said.warn(event, &NO_DEVICE, detail);
    }
}

/// Whether UCX says of every transport that was asked for that it does not have it, on any device.
fn none_is_there(asked: &str, view: &NodeView<'_>) -> bool {
    asked.split(',').all(|name| {
        view.seen.log.of("ucx-transport-not-available").any(|e| {
            e.field("names")
                .is_some_and(|n| n.split(',').any(|n| n == name))
        })
    })
}

fn nothing_left(event: &Event, view: &NodeView<'_>, said: &mut Said) {
    let asked = event.field("asked").unwrap_or_default();
    let unknown: Vec<String> = asked
        .split(',')
        .filter(|n| !n.is_empty() && !n.starts_with('^') && !ucx_tls::is_known(n))
        .map(|n| format!("'{n}'"))
        .collect();
    let what = format!("UCX does not start: nothing of UCX_TLS={asked} is usable here");
    // `network:mlx5_0:1 intra-node:…`: devices were asked for as well.
    let devices = event
        .field("on")
        .and_then(|on| on.strip_prefix("network:"))
        .is_some_and(|rest| {
            rest.split_whitespace()
                .next()
                .is_some_and(|d| !d.starts_with("intra-node") && !d.is_empty())
        });
    if !unknown.is_empty() {
        said.fail(
            event,
            &UNKNOWN_NAME,
            format!("{what} (no UCX knows {})", unknown.join(", ")),
        );
    } else if devices && !none_is_there(asked, view) {
        said.fail(
            event,
            &NOTHING_LEFT,
            format!("{what} on the devices that UCX_NET_DEVICES names"),
        );
    } else if asked.split(',').all(|n| !matches!(n, "tcp" | "all")) && !asked.starts_with('^') {
        said.fail(event, &FAIL_FAST, what);
    } else {
        said.fail(event, &NOT_HERE, what);
    }
}

fn invalid(event: &Event, said: &mut Said) {
    let name = event.field("name").unwrap_or_default();
    let value = event.field("value").unwrap_or_default();
    if name == "TLS" && value.split(',').any(|i| i == "all") {
        said.fail(
            event,
            &ALL_NOT_ALONE,
            format!("UCX_TLS={value}: UCX does not start, `all` must stand alone"),
        );
    } else {
        said.fail(
            event,
            &INVALID,
            format!("UCX_{name}: UCX cannot read the value '{value}'"),
        );
    }
}

/// Settings that only a transport of InfiniBand reads.
fn is_ib(name: &str) -> bool {
    [
        "UCX_IB_", "UCX_RC_", "UCX_DC_", "UCX_UD_", "UCX_SRD_", "UCX_GGA_",
    ]
    .iter()
    .any(|p| name.starts_with(p))
}

fn is_cuda(name: &str) -> bool {
    ["UCX_CUDA_", "UCX_GDR_COPY_"]
        .iter()
        .any(|p| name.starts_with(p))
}

fn unused(event: &Event, view: &NodeView<'_>, said: &mut Said) {
    let maybe = event.field("maybe").unwrap_or_default();
    let names: Vec<&str> = event
        .field("names")
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .collect();
    let known = |name: &&str| settings::known_names::known(name).is_some();
    let (ib, rest): (Vec<&str>, Vec<&str>) = names
        .into_iter()
        .filter(|n| !n.is_empty())
        .partition(|n| is_ib(n) && known(n));
    let (cuda, rest): (Vec<&str>, Vec<&str>) =
        rest.into_iter().partition(|n| is_cuda(n) && known(n));
    if !ib.is_empty() {
        said.fail(
            event,
            &UNUSED_IB,
            format!(
                "{} is not read by anything: this process opened no InfiniBand transport",
                ib.join(", ")
            ),
        );
    }
    if !cuda.is_empty() {
        let detail = format!(
            "{} is not read by anything: no CUDA in this UCX process",
            cuda.join(", ")
        );
        if view.is_kv_worker() || !view.seen.gpu.gpus.is_empty() {
            said.fail(event, &UNUSED_CUDA, detail);
        } else {
            said.warn(event, &UNUSED_CUDA, detail);
        }
    }
    if !rest.is_empty() {
        let hint = if maybe.is_empty() {
            String::new()
        } else {
            format!(" (UCX suggests {maybe})")
        };
        said.warn(
            event,
            &TYPO,
            format!(
                "UCX does not know {}{hint}: it has no effect",
                rest.join(", ")
            ),
        );
    }
}

fn module(event: &Event, view: &NodeView<'_>, said: &mut Said) {
    let library = event.field("library").unwrap_or_default();
    let file = library.rsplit('/').next().unwrap_or(library);
    let error = event.field("error").unwrap_or_default();
    let detail = format!("the UCX module {file} cannot be loaded: {error}");
    // The GPU-driven modules (gda, gdp) and rdmacm carry no KV.
    let ib = ["libuct_ib.", "libuct_ib_mlx5.", "libuct_ib_efa."]
        .iter()
        .any(|f| file.starts_with(f));
    let gpu = view.is_kv_worker() || !view.seen.gpu.gpus.is_empty();
    if ib || (file.starts_with("libuct_cuda.") && gpu) {
        said.fail(event, &MODULE, detail);
    }
}
