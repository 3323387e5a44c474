//! The NVLink fabric has taken the GPUs in.
//!
//! On machines with NVSwitch, and on NVL72 racks, a GPU can use NVLink only after it has registered with the fabric:
//! state `Completed` and status `Success`. A state alone is not enough, and links can be up while the fabric is not.
//! Boards without a fabric say `Not Supported` or `N/A`. On NVL72 the fabric manager runs on the switch trays, so its
//! absence from a compute tray is normal.

use std::collections::BTreeMap;

use model::Reason;
use model::observation::gpu::{Fabric, Gpu, LinkState};

use super::words::{Board, board_of, is_mnnvl, label, listed};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/nvlink-fabric";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the NVLink fabric has taken the GPUs in",
    source: include_str!("nvlink_fabric.rs"),
    causes: &[
        STATE,
        LINKS_WITHOUT_FABRIC,
        STATUS,
        HEALTH,
        NOT_SUPPORTED,
        MANAGER,
        CHANNEL,
    ],
    notes: &[],
    run: Run::Place(run),
};

const STATE: Cause = Cause {
    id: "fabric-state-not-completed",
    what: "the fabric state of a GPU is In Progress or Not Started",
    why: "CUDA cannot start on this GPU (error 802), or peer access over NVLink does not work",
    fix: "start the fabric manager (NVL72: look at the switch trays and NVLSM), in the driver's own version",
    quiet_if: "shortly after boot; boards without a fabric",
    source: "nvidia-smi -q, Fabric",
};

const LINKS_WITHOUT_FABRIC: Cause = Cause {
    id: "nvlink-active-but-fabric-dead",
    what: "NVLinks are up, but the GPU is not registered with the fabric",
    why: "links train by themselves; without the fabric no traffic goes through the switches",
    fix: "start the fabric manager, in the driver's own version",
    quiet_if: "the fabric state is Completed; boards without a fabric",
    source: "nvidia-smi nvlink -s and nvidia-smi -q side by side",
};

const STATUS: Cause = Cause {
    id: "fabric-status-not-success",
    what: "the fabric state is Completed and its status is not Success",
    why: "registration ended with an error: no NVLink between nodes, and perhaps none within",
    fix: "have the fabric repaired; the status names the reason",
    quiet_if: "status Success or not told; zero cluster and clique 0 with Success are normal on single nodes",
    source: "nvidia-smi -q, Fabric",
};

const HEALTH: Cause = Cause {
    id: "fabric-health-unhealthy",
    what: "the fabric's health is not good: Unhealthy, a degraded bandwidth, an unhealthy route, a wrong configuration",
    why: "NVLink is slower or gone; the Kubernetes DRA driver then starts compute domains without a clique, silently",
    fix: "have the NVLink fabric repaired; nvidia-smi -q tells which part",
    quiet_if: "Not Supported and N/A, which older drivers print",
    source: "nvidia-smi -q, Fabric, Health",
};

const NOT_SUPPORTED: Cause = Cause {
    id: "fabric-not-supported-on-gb200",
    what: "a GB200 or GB300 says that a fabric is not supported",
    why: "the driver does not see the NVLink fabric: no NVLink between nodes",
    fix: "check the driver, and the fabric manager on the switch trays",
    quiet_if: "other boards: A100, L40S, a single GH200",
    source: "nvidia-smi -q, gpud",
};

const MANAGER: Cause = Cause {
    id: "fabric-manager-not-running",
    what: "the fabric manager does not run on a machine with NVSwitch",
    why: "NVSwitch is not set up after the next start, and nobody watches it",
    fix: "start nvidia-fabricmanager, in the driver's own version",
    quiet_if: "NVL72 compute trays (it runs on the switch trays), single GPUs, PCIe cards; the GPU operator runs it within its driver container",
    source: "systemctl, gpud",
};

const CHANNEL: Cause = Cause {
    id: "imex-channel-missing",
    what: "no IMEX channel can be opened here, on a system with NVLink between nodes",
    why: "GPU memory cannot be exported to other nodes: KV goes over RDMA or TCP, silently",
    fix: "claim the channel of a ComputeDomain for the pod (resourceClaims), or create it with NVreg_CreateImexChannel0=1",
    quiet_if: "systems without NVLink between nodes",
    source: "/dev/nvidia-caps-imex-channels",
};

const ZERO: &str = "00000000-0000-0000-0000-000000000000";

/// Attached to a fabric that spans nodes.
fn spans_nodes(fabric: &Fabric) -> bool {
    fabric
        .cluster_uuid
        .value()
        .is_some_and(|u| u != ZERO && !u.is_empty())
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let gpu = &view.seen.gpu;
    // GPUs that say the same are one line.
    let mut groups: BTreeMap<String, Vec<&Gpu>> = BTreeMap::new();
    for gpu in gpu.gpus.iter().filter(|g| g.fabric.state.is_seen()) {
        let links = gpu
            .links
            .values()
            .any(|l| l.state.value() == Some(&LinkState::Up));
        let name = gpu.name.value().map_or("", String::as_str);
        groups
            .entry(format!("{}|{links}|{name}", words(&gpu.fabric)))
            .or_default()
            .push(gpu);
    }
    for alike in groups.values() {
        state(alike, findings);
    }
    manager(view, findings);
    imex(view, findings);
}

/// Everything that the tool says about one attachment.
fn words(fabric: &Fabric) -> String {
    let mut parts = Vec::new();
    if let Some(state) = fabric.state.value() {
        parts.push(format!("state {state}"));
    }
    if let Some(status) = fabric.status.value() {
        parts.push(format!("status {status}"));
    }
    if let Some(clique) = fabric.clique.value() {
        parts.push(format!("clique {clique}"));
    }
    if let Some(cluster) = fabric.cluster_uuid.value().filter(|u| *u != ZERO) {
        parts.push(format!("cluster {cluster}"));
    }
    if let Some(health) = fabric
        .health_summary
        .value()
        .filter(|h| is(Some(h), &["not supported", "n/a", "healthy"]))
    {
        parts.push(format!("health {health}"));
    }
    parts.join(", ")
}

fn is(value: Option<&String>, any: &[&str]) -> bool {
    value.is_some_and(|v| any.iter().any(|a| v.trim().eq_ignore_ascii_case(a)))
}

/// What a health row says when something is wrong.
fn ills(fabric: &Fabric) -> (Vec<String>, Vec<String>) {
    let (mut grave, mut light) = (Vec::new(), Vec::new());
    let quiet = [
        "n/a",
        "not supported",
        "false",
        "no",
        "none",
        "healthy",
        "full",
        "0",
        "",
    ];
    if let Some(summary) = fabric
        .health_summary
        .value()
        .filter(|s| !is(Some(s), &quiet))
    {
        let words = format!("health summary {summary}");
        if summary.trim().eq_ignore_ascii_case("unhealthy") {
            grave.push(words);
        } else {
            light.push(words);
        }
    }
    if let Some(bandwidth) = fabric.bandwidth.value().filter(|b| !is(Some(b), &quiet)) {
        light.push(format!("bandwidth {bandwidth}"));
    }
    for (row, value) in &fabric.health {
        let Some(value) = value.value().filter(|v| !is(Some(v), &quiet)) else {
            continue;
        };
        let low = row.to_ascii_lowercase();
        let words = format!("{row} {value}");
        if low.contains("unhealthy") || low.contains("incorrect") {
            grave.push(words);
        } else {
            light.push(words);
        }
    }
    (grave, light)
}

fn state(alike: &[&Gpu], findings: &mut Findings) {
    let Some(gpu) = alike.first() else { return };
    let fabric = &gpu.fabric;
    let labels: Vec<String> = alike.iter().map(|g| label(g)).collect();
    let who = listed(&labels);
    let what = format!("{who}: fabric {}", words(fabric));
    let board = board_of(gpu);
    let multi_node = gpu.name.value().is_some_and(|n| is_mnnvl(n));
    let value = fabric.state.value().map(|s| s.trim().to_ascii_lowercase());
    let links = gpu
        .links
        .values()
        .any(|l| l.state.value() == Some(&LinkState::Up));
    let (grave, light) = ills(fabric);
    let finding = match value.as_deref() {
        Some("completed") if !is(fabric.status.value(), &["success", "n/a"]) && fabric.status.is_seen() => {
            Finding::fail(NAME, &STATUS, what)
        }
        Some("completed") if !grave.is_empty() => {
            Finding::fail(NAME, &HEALTH, format!("{who}: fabric {}; {}", words(fabric), grave.join(", ")))
        }
        Some("completed") if !light.is_empty() => {
            Finding::warn(NAME, &HEALTH, format!("{who}: fabric {}; {}", words(fabric), light.join(", ")))
        }
        Some("completed") => {
            let ok = Finding::ok(NAME, what);
            if spans_nodes(fabric) {
                ok.note("NVLink between nodes of one cluster and clique; whether KV uses it is another question")
            } else {
                ok
            }
        }
        Some("in progress" | "not started") if board == Board::Loose => {
            Finding::skipped(NAME, Reason::NotApplicable, format!("{what}: this board has no fabric"))
        }
        Some("in progress" | "not started") if links => Finding::fail(NAME, &LINKS_WITHOUT_FABRIC, format!("{what}, though its NVLinks are up")),
        Some("in progress" | "not started") => Finding::fail(NAME, &STATE, what)
            .note("shortly after boot this passes"),
        Some("not supported") if multi_node => Finding::fail(NAME, &NOT_SUPPORTED, what),
        Some("not supported") if gpu.name.is_seen() => {
            Finding::ok(NAME, format!("{what}: this GPU has no NVLink fabric to register with"))
        }
        Some("not supported") => Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("{what}: normal on GPUs without an NVLink fabric, a fault on GB200 and GB300; the model is not shown"),
        )
        .fix("nvidia-smi -L names the model"),
        _ => Finding::skipped(NAME, Reason::NotApplicable, format!("{what}: nothing to register with")),
    };
    findings.push(finding.seen(&fabric.state, "fabric"));
}

fn manager(view: &NodeView<'_>, findings: &mut Findings) {
    let gpu = &view.seen.gpu;
    let Some(runs) = gpu.fabric_manager.value() else {
        return;
    };
    let gpus = &gpu.gpus;
    let rack = gpus
        .iter()
        .any(|g| spans_nodes(&g.fabric) || g.name.value().is_some_and(|n| is_mnnvl(n)));
    let loose = !gpus.is_empty() && gpus.iter().all(|g| board_of(g) == Board::Loose);
    let states: Vec<String> = gpus
        .iter()
        .filter_map(|g| g.fabric.state.value())
        .map(|s| s.to_ascii_lowercase())
        .collect();
    let finding = if *runs {
        Finding::ok(NAME, "the fabric manager runs")
    } else if rack || loose {
        Finding::ok(
            NAME,
            "no fabric manager runs here, and none has to: it runs on the switch trays, or there is no switch",
        )
    } else if states
        .iter()
        .any(|s| s == "in progress" || s == "not started")
    {
        Finding::fail(
            NAME,
            &MANAGER,
            "the fabric manager does not run, and GPUs wait for the fabric",
        )
    } else if gpu.nvswitches.value().is_some_and(|n| *n > 0)
        || states.iter().any(|s| s == "completed")
        || gpus.iter().any(|g| board_of(g) == Board::Linked)
    {
        Finding::warn(NAME, &MANAGER, "the fabric manager does not run")
    } else {
        Finding::skipped(
            NAME,
            Reason::NotVisible,
            "the fabric manager does not run; whether this machine has NVSwitch is not shown",
        )
    };
    findings.push(finding.seen(&gpu.fabric_manager, "fabric manager"));
}

fn imex(view: &NodeView<'_>, findings: &mut Findings) {
    let gpu = &view.seen.gpu;
    let imex = &gpu.imex;
    let rack = gpu
        .gpus
        .iter()
        .any(|g| spans_nodes(&g.fabric) || g.name.value().is_some_and(|n| is_mnnvl(n)));
    let Some(channels) = imex.channels.value() else {
        return;
    };
    if !rack {
        return;
    }
    let shut: Vec<String> = imex
        .nodes
        .iter()
        .filter(|(_, node)| node.opens.value() == Some(&false))
        .map(|(n, _)| format!("channel{n}"))
        .collect();
    let finding = if channels.is_empty() {
        Finding::warn(
            NAME,
            &CHANNEL,
            "no IMEX channel is here, so GPU memory cannot be exported to other nodes",
        )
    } else if shut.len() >= channels.len() {
        Finding::warn(
            NAME,
            &CHANNEL,
            format!("no IMEX channel can be opened: {}", shut.join(", ")),
        )
    } else {
        let names: Vec<String> = channels.iter().map(|n| format!("channel{n}")).collect();
        Finding::ok(NAME, format!("IMEX: {}", listed(&names)))
    };
    findings.push(finding.seen(&imex.channels, "IMEX channels"));
}
