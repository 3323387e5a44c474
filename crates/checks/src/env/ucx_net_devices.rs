//! UCX_NET_DEVICES names RDMA devices in UCX's own syntax, and enough of them.
//!
//! The variable filters every network transport, TCP included: `mlx5_0:1` removes TCP, `eth0` removes all RDMA,
//! silently. Names are exact (`device:port`); NCCL's prefixes, `=`, globs and spaces match nothing. UCX 1.21 and
//! later take a name without port and a leading `^`, 1.22 and later ranges. Unset is right on most clusters; a
//! pin is needed where some NICs belong to another fabric. One NIC for many GPUs works, on one link.
//!
//! Mooncake's pin, `--disaggregation-ib-device`, is judged the same way for its number of devices.

use model::{Reason, Setting, Value};
use settings::ucx_net_devices::{self, ItemKind};
use settings::version::UcxVersion;

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::image;
use crate::kv_path::Backend;
use crate::view::{View, WorkerView};

const NAME: &str = "env/ucx-net-devices";
const VARIABLE: &str = "UCX_NET_DEVICES";
const IB_DEVICE: &str = "--disaggregation-ib-device";

/// From how many accelerators per pod on one NIC is too few.
pub(crate) const MANY_GPUS: u64 = 4;

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "UCX_NET_DEVICES names RDMA devices, and enough of them",
    source: include_str!("ucx_net_devices.rs"),
    causes: &[
        SINGLE_NIC,
        SYNTAX,
        SPACE,
        NETDEV_ONLY,
        GKE_NETDEV,
        AZURE_FRONT_END,
        EMPTY,
        LOOPBACK,
        NO_PORT,
    ],
    notes: &[],
    run: Run::Recipe(run),
};

pub(crate) const SINGLE_NIC: Cause = Cause {
    id: "single-nic-pin-multi-gpu",
    what: "exactly one NIC is named for a worker with four or more GPUs",
    why: "all ranks share one link, and losing that port loses the transfer",
    fix: "remove the pin (UCX picks the nearest NIC for each GPU), or list all NICs of the compute fabric",
    quiet_if: "several NICs are named; fewer than four GPUs per pod; the value is computed at start",
    source: "UCX selects the nearest device per GPU when unpinned",
};

pub(crate) const SYNTAX: Cause = Cause {
    id: "ucx-netdev-nccl-syntax",
    what: "UCX_NET_DEVICES has items in NCCL's syntax (=, ^ inside, ;), a glob, or `all` beside others",
    why: "UCX takes each item as an exact name; what matches nothing is dropped with a warning, and without a match there is no network at all",
    fix: "write device:port items separated by commas only, such as mlx5_0:1,mlx5_1:1",
    quiet_if: "a range or a leading ^ with a UCX that has them",
    source: "UCX parser.c:829-935",
};

pub(crate) const SPACE: Cause = Cause {
    id: "ucx-netdev-space",
    what: "an item of UCX_NET_DEVICES has a space or a quote",
    why: "UCX does not trim: the item matches no device and is silently left out",
    fix: "write device:port items separated by commas only, such as mlx5_0:1,mlx5_1:1",
    quiet_if: "never",
    source: "UCX parser.c:829-935",
};

const GKE_NETDEV: Cause = Cause {
    id: "ucx-netdev-netdev-name-on-gke",
    what: "UCX_NET_DEVICES names GKE's RDMA interfaces (gpu0rdma0 …)",
    why: "these are names of interfaces; UCX takes RDMA only by the name of the verbs device, so TCP is what is left, unless the image renames the devices",
    fix: "name the verbs devices (ibv_devices lists them), or remove the variable",
    quiet_if: "verbs devices are named; another library carries KV",
    source: "GKE cluster toolkit; UCX ucp_context.c:659",
};

pub(crate) const AZURE_FRONT_END: Cause = Cause {
    id: "ucx-netdev-azure-an-device",
    what: "UCX_NET_DEVICES names mlx5_an0, Azure's accelerated networking",
    why: "that is a virtual function of the front-end network, not the InfiniBand fabric",
    fix: "name the InfiniBand devices (mlx5_ib0:1 …), or leave mlx5_an0 out",
    quiet_if: "it is denied by a leading ^, or not named",
    source: "Azure ND documentation",
};

pub(crate) const NETDEV_ONLY: Cause = Cause {
    id: "ucx-netdev-eth0",
    what: "UCX_NET_DEVICES names network interfaces only",
    why: "RDMA devices have names of their own; naming only interfaces removes all RDMA and leaves TCP",
    fix: "name RDMA devices (ibv_devices lists them), or remove the variable",
    quiet_if: "TCP is chosen on purpose (the transport list leaves only TCP too); not a KV worker",
    source: "UCX ucp_context.c:659",
};

pub(crate) const EMPTY: Cause = Cause {
    id: "ucx-netdev-empty",
    what: "UCX_NET_DEVICES is set to nothing",
    why: "no network device is kept, without a message; peers on other nodes are unreachable",
    fix: "remove the variable",
    quiet_if: "the variable is absent, or filled in at start",
    source: "UCX ucp_context.c, seen in runs",
};

pub(crate) const LOOPBACK: Cause = Cause {
    id: "ucx-netdev-loopback",
    what: "UCX_NET_DEVICES is the loopback interface",
    why: "nothing outside the pod can be reached",
    fix: "remove the variable, or name RDMA devices",
    quiet_if: "prefill and decode share the pod",
    source: "UCX, seen in runs: 'tcp/lo - different pid namespaces'",
};

const NO_PORT: Cause = Cause {
    id: "ucx-netdev-newer-syntax",
    what: "UCX_NET_DEVICES has a name without port, a leading ^ or a range, and the image's UCX is older than that",
    why: "UCX before 1.21 takes every item as an exact device:port name, before 1.22 there are no ranges: what matches nothing is dropped, and without a match there is no network at all",
    fix: "write device:port items, such as mlx5_0:1,mlx5_1:1",
    quiet_if: "UCX 1.21 or later (1.22 for ranges); a note where the image does not tell its UCX",
    source: "UCX parser.c:829-935, by release; ai-dynamo/dynamo container/build.sh (NIXL_UCX_REF)",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    for kv in &view.kv {
        if kv.is_mock() {
            continue;
        }
        if let Some(setting) = kv.worker.setting(VARIABLE) {
            ucx(view, kv, setting, findings);
        }
        if let Some(setting) = kv.worker.setting(IB_DEVICE) {
            mooncake(kv, setting, findings);
        }
    }
}

fn ucx(view: &View<'_>, kv: &WorkerView<'_>, setting: &Setting, findings: &mut Findings) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let finish = |finding: Finding, label: String| finding.worker(worker).at(&setting.place, label);
    let value = match &setting.value {
        Value::Literal(value) => value.as_str(),
        Value::Dynamic(why) => {
            return findings.push(finish(
                Finding::skipped(
                    NAME,
                    Reason::Dynamic,
                    format!("{VARIABLE} of {role} is decided at start: {why}"),
                ),
                role.to_owned(),
            ));
        }
    };
    if let Some(why) = kv.path.open() {
        return findings.push(finish(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("{VARIABLE}={value} cannot be judged: {why}"),
            ),
            role.to_owned(),
        ));
    }
    if !kv.path.may_use_ucx() {
        let carrier = kv.path.summary().unwrap_or_default();
        return findings.push(finish(
            Finding::ok(
                NAME,
                format!("{VARIABLE}={value} has no effect on KV: {carrier} carries it"),
            ),
            role.to_owned(),
        ));
    }
    if value.is_empty() {
        return findings.push(finish(
            Finding::fail(
                NAME,
                &EMPTY,
                format!("{role}: {VARIABLE} is set to nothing: no network device is kept"),
            ),
            format!("{role}: empty"),
        ));
    }
    let items = ucx_net_devices::classify(value);
    let negated = value.starts_with('^');
    let bad: Vec<&str> = items
        .iter()
        .filter(|i| matches!(i.kind, ItemKind::SpaceOrQuote | ItemKind::Pattern))
        .map(|i| i.text)
        .collect();
    let all_mixed = items.len() > 1 && items.iter().any(|i| i.kind == ItemKind::All);
    if !bad.is_empty() || all_mixed {
        let left = items.len() - bad.len();
        let what = if all_mixed {
            "combines all with other names".to_owned()
        } else {
            format!("has items that match no device: '{}'", bad.join("', '"))
        };
        let detail = format!("{role}: {VARIABLE}={value} {what}");
        let spaces = !all_mixed && items.iter().all(|i| i.kind != ItemKind::Pattern);
        let cause = if spaces { &SPACE } else { &SYNTAX };
        let finding = if left == 0 && !negated {
            Finding::fail(NAME, cause, detail)
        } else {
            Finding::warn(NAME, cause, detail)
        };
        return findings.push(finish(
            finding,
            format!("{role}: not a list of device:port"),
        ));
    }
    if !negated && !items.is_empty() && items.iter().all(|i| i.text == "lo") {
        return findings.push(finish(
            Finding::fail(
                NAME,
                &LOOPBACK,
                format!("{role}: {VARIABLE}=lo reaches nothing outside the pod"),
            ),
            format!("{role}: loopback"),
        ));
    }
    if !negated && items.iter().any(|i| i.text.starts_with("mlx5_an")) {
        return findings.push(finish(
            Finding::warn(
                NAME,
                &AZURE_FRONT_END,
                format!("{role}: {VARIABLE}={value} names Azure's front-end network"),
            ),
            format!("{role}: not the InfiniBand fabric"),
        ));
    }
    if !negated && !items.is_empty() && items.iter().all(|i| is_gke_interface(i.text)) {
        return findings.push(finish(
            Finding::warn(
                NAME,
                &GKE_NETDEV,
                format!("{role}: {VARIABLE}={value} names interfaces, not verbs devices"),
            ),
            format!("{role}: names of interfaces"),
        ));
    }
    if !negated && !items.is_empty() && items.iter().all(|i| i.kind == ItemKind::Netdev) {
        return netdevs(view, kv, setting, value, findings);
    }
    let newer = needs_newer(value, &items);
    let version = worker
        .image
        .as_ref()
        .and_then(|image| image::ucx(&image.value));
    let too_old = match (newer, version) {
        (Some(newer), Some(version)) => version < newer,
        _ => false,
    };
    if let (true, Some(version)) = (too_old, version) {
        let dead = items
            .iter()
            .filter(|i| newer_item(i).is_some_and(|n| version < n));
        let nothing = negated || dead.count() == items.len();
        let what = if nothing {
            "no device matches"
        } else {
            "some of its items match no device"
        };
        let detail = format!(
            "{role}: {VARIABLE}={value}: {what} in UCX {version} or older, which this image has"
        );
        let finding = if nothing {
            Finding::fail(NAME, &NO_PORT, detail)
        } else {
            Finding::warn(NAME, &NO_PORT, detail)
        };
        return findings.push(finish(finding, format!("{role}: no exact device:port")));
    }
    let count = ucx_net_devices::distinct_hcas(value);
    if let (Some(1), Some(gpus)) = (count, worker.accelerators)
        && gpus >= MANY_GPUS
    {
        return findings.push(finish(
            Finding::warn(
                NAME,
                &SINGLE_NIC,
                format!("{role}: {VARIABLE}={value} pins {gpus} GPUs per pod to one NIC"),
            ),
            format!("{role}: one NIC for {gpus} GPUs"),
        ));
    }
    let effect = settings::effect::effect(VARIABLE, value);
    let mut finding = Finding::ok(NAME, format!("{VARIABLE}={value}: {}", effect.summary));
    if let Some(newer) = newer.filter(|_| version.is_none()) {
        finding = finding.note(format!(
            "a name without port, a leading ^ and a range need a newer UCX, here {newer} or later; before, they match nothing, and the image does not tell its UCX"
        ));
    }
    findings.push(finish(finding, role.to_owned()));
}

/// The UCX that an item needs.
fn newer_item(item: &ucx_net_devices::Item<'_>) -> Option<UcxVersion> {
    match item.kind {
        ItemKind::BareHca => Some(UcxVersion::new(1, 21)),
        ItemKind::Range => Some(UcxVersion::new(1, 22)),
        _ => None,
    }
}

/// The UCX that a value needs.
fn needs_newer(value: &str, items: &[ucx_net_devices::Item<'_>]) -> Option<UcxVersion> {
    let caret = value.starts_with('^').then(|| UcxVersion::new(1, 21));
    items.iter().filter_map(newer_item).chain(caret).max()
}

/// GKE's names for RDMA interfaces: `gpu0rdma0`.
fn is_gke_interface(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    name.strip_prefix("gpu")
        .and_then(|rest| rest.split_once("rdma"))
        .is_some_and(|(gpu, nic)| digits(gpu) && digits(nic))
}

fn netdevs(
    view: &View<'_>,
    kv: &WorkerView<'_>,
    setting: &Setting,
    value: &str,
    findings: &mut Findings,
) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let tcp_declared = kv.tls.as_ref().is_some_and(|t| !t.rdma && !t.ud_only);
    let mnnvl = kv.fabric.compute_domain.is_some();
    if tcp_declared || mnnvl {
        // The list is the finding, or NVLink carries KV and this interface the control messages.
        findings.push(
            Finding::ok(NAME, format!("{VARIABLE}={value}: the interface for TCP"))
                .worker(worker)
                .at(&setting.place, role),
        );
        return;
    }
    let detail = format!(
        "{role}: {VARIABLE}={value} names network interfaces only, which removes every RDMA device"
    );
    let finding = if view.asks_for_fabric() {
        Finding::fail(NAME, &NETDEV_ONLY, detail)
    } else {
        Finding::warn(NAME, &NETDEV_ONLY, detail)
    };
    findings.push(finding.worker(worker).at(
        &setting.place,
        format!("{role}: no RDMA device in this list"),
    ));
}

fn mooncake(kv: &WorkerView<'_>, setting: &Setting, findings: &mut Findings) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let Some(value) = setting.value.literal() else {
        return;
    };
    let devices: Vec<&str> = value
        .split(',')
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .collect();
    if kv.path.backend == Some(Backend::Mooncake)
        && devices.len() == 1
        && !value.contains('{')
        && let Some(gpus) = worker.accelerators.filter(|g| *g >= MANY_GPUS)
    {
        findings.push(
            Finding::warn(
                NAME,
                &SINGLE_NIC,
                format!("{role}: {IB_DEVICE} {value} pins {gpus} GPUs per pod to one NIC"),
            )
            .fix("name all NICs of the compute fabric, separated by commas")
            .worker(worker)
            .at(&setting.place, format!("{role}: one NIC for {gpus} GPUs")),
        );
        return;
    }
    findings.push(
        Finding::ok(NAME, format!("{IB_DEVICE} {value}"))
            .worker(worker)
            .at(&setting.place, role),
    );
}
