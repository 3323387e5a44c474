//! Ports of RDMA devices are active.
//!
//! Not every port matters. Ports that a setting selects must be active; otherwise those near a GPU, or those of the
//! kind of card that most ports have (compute ports), are compared with their peers. A port that is down beside
//! healthy ones and that nobody selects is told, not blamed. "Some port is active" is not enough: it may be the
//! management port, while no compute port is.
//!
//! On InfiniBand a subnet manager activates ports; a port in INIT has a cable and no subnet manager. On Ethernet
//! LIDs are 0, which is normal. Old LIDs and the rate of a port that is down mean nothing.
//! `(Down)` in `ibdev2netdev` is the interface, not the port.

use model::Reason;
use model::observation::Origin;
use model::observation::rdma::{PhysState, PortState};

use super::ports::{Fabric, PortRef, is_azure_front_end, list, ports, rate, rate_of};
use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::node_view::NodeView;

const NAME: &str = "node/rdma-ports";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "RDMA ports are active",
    source: include_str!("rdma_ports.rs"),
    causes: &[POLLING, DISABLED, NO_SM, ARMED, VF_GUID, FLAPPING, PKEY],
    notes: &[],
    run: Run::Place(run),
};

const POLLING: Cause = Cause {
    id: "ib-port-down-polling",
    what: "a port is down and looks for a peer (Polling), or its physical state is not shown",
    why: "no cable, or nothing at its other end: it carries nothing, whatever LID and rate it still prints",
    fix: "check the cable and the switch port; where another port is meant, select that one",
    quiet_if: "nobody selects it, and the other ports of its kind are active or are no compute ports",
    source: "leptonai/gpud#482; Linux drivers/infiniband/core/sysfs.c (phys_state)",
};

const DISABLED: Cause = Cause {
    id: "ib-port-disabled",
    what: "a port is switched off (Disabled)",
    why: "it carries nothing; the rate that it prints is a placeholder",
    fix: "switch it on: ip link set DEV up for RoCE, ibportstate for InfiniBand; or select another port",
    quiet_if: "another port is active, nobody selects this one, and more than a quarter of its kind are off",
    source: "NVIDIA/nccl#1935; Linux drivers/infiniband/core/sysfs.c (phys_state)",
};

const NO_SM: Cause = Cause {
    id: "ib-port-init-no-sm",
    what: "an InfiniBand port has a link and stays in INIT: no subnet manager has set it up",
    why: "without a LID nothing can be sent to it",
    fix: "start a subnet manager (opensm, UFM, or the switch's own) on this fabric",
    quiet_if: "it speaks Ethernet, or it belongs to an NVSwitch, which has a subnet manager of its own",
    source: "InfiniBand Architecture Specification 1, 14.4; infiniband-diags sminfo",
};

const ARMED: Cause = Cause {
    id: "ib-port-armed",
    what: "a port is ARMED: set up by the subnet manager, not yet active",
    why: "only its peer's first packet or the subnet manager makes it active; it may stay like this",
    fix: "read it again after a minute; look at the subnet manager's log",
    quiet_if: "a later reading says Active",
    source: "InfiniBand Architecture Specification 1, 7.2.7 (link states)",
};

const VF_GUID: Cause = Cause {
    id: "ib-vf-guid-not-in-sm",
    what: "an InfiniBand port is down although its link is up, and has no LID (65535)",
    why: "the subnet manager does not know the GUID of this virtual function, so it never activates it",
    fix: "assign GUIDs (ib-kubernetes with UFM, or opensm with virt_enabled 2)",
    quiet_if: "it is an unused virtual function beside active ports",
    source: "k8snetworkplumbingwg/sriov-network-operator#635; Mellanox/network-operator#249",
};

const FLAPPING: Cause = Cause {
    id: "ib-port-flapping",
    what: "a port changed its state between readings, or recovers from link errors",
    why: "queue pairs break each time; NIXL then reports NIXL_ERR_REMOTE_DISCONNECT",
    fix: "check cable and transceiver; read link_downed and the kernel log twice, some minutes apart",
    quiet_if: "all readings agree, or they come from different machines",
    source: "ROCm/rccl#1423; Linux drivers/infiniband/core/sysfs.c (link_downed)",
};

pub(crate) const PKEY: Cause = Cause {
    id: "ib-pkey-limited",
    what: "an InfiniBand port is only a limited member of its partitions, or UCX finds no partition key that it may use",
    why: "two limited members cannot talk to each other; without a key UCX does not use the port",
    fix: "make the port a full member of the partition at the subnet manager; check UCX_IB_PKEY",
    quiet_if: "one key has full membership (its highest bit is set), or the port speaks Ethernet, where index 0 is always right",
    source: "ucx src/uct/ib/base/ib_iface.c (there is no valid pkey to use)",
};

/// What is wrong with a port.
struct Trouble {
    cause: &'static Cause,
    /// `down, polling`.
    words: &'static str,
    /// Worth a failure when it hits a port that is needed.
    grave: bool,
}

fn trouble(port: &PortRef<'_>) -> Option<Trouble> {
    let state = port.port.state.value()?;
    let phys = port.port.phys.value();
    let infiniband = matches!(port.fabric, Fabric::InfiniBand | Fabric::Unknown);
    let (cause, words, grave) = match (state, phys) {
        (PortState::Active | PortState::ActiveDefer, Some(PhysState::ErrorRecovery)) => {
            (&FLAPPING, "recovering from link errors", false)
        }
        (_, Some(PhysState::ErrorRecovery)) => {
            (&FLAPPING, "down, recovering from link errors", true)
        }
        (PortState::Active | PortState::ActiveDefer | PortState::Other(_), _) => return None,
        (PortState::Armed, _) => (&ARMED, "armed, not active", false),
        (PortState::Init, _) if infiniband => {
            (&NO_SM, "INIT: no subnet manager has set it up", true)
        }
        (_, Some(PhysState::Disabled)) if port.fabric == Fabric::Roce => (
            &DISABLED,
            "down, disabled (as RoCE is where its interface is down)",
            true,
        ),
        (_, Some(PhysState::Disabled)) => (&DISABLED, "down, disabled", true),
        (PortState::Down | PortState::Nop, Some(PhysState::LinkUp))
            if infiniband && port.port.lid.value().is_some_and(|lid| *lid == 65535) =>
        {
            (&VF_GUID, "down although its link is up, LID 65535", true)
        }
        (PortState::Init, _) => (&POLLING, "INIT, not active", true),
        (_, Some(PhysState::Polling)) => (&POLLING, "down, polling", true),
        (_, Some(PhysState::Sleep)) => (&POLLING, "down, asleep", true),
        (_, Some(PhysState::Training)) => (&POLLING, "down, still negotiating", true),
        (_, Some(PhysState::LinkUp)) => (&POLLING, "down although its link is up", true),
        _ => (&POLLING, "down", true),
    };
    Some(Trouble {
        cause,
        words,
        grave,
    })
}

/// Readings of one machine that differ, where not all of them are active.
fn flaps(port: &PortRef<'_>) -> bool {
    let state = &port.port.state;
    if state.agreed() || !port.device.node_guid.agreed() {
        return false;
    }
    let origins: Vec<&Origin> = state.readings().flat_map(|r| &r.sources).collect();
    let first = origins.first().map(|o| &o.from);
    let same_file = first.is_some_and(|f| {
        origins
            .iter()
            .all(|o| o.from.file == f.file && o.from.place == f.place)
    });
    same_file || port.device.node_guid.is_seen()
}

fn word(state: &PortState) -> &str {
    match state {
        PortState::Nop => "nop",
        PortState::Down => "down",
        PortState::Init => "init",
        PortState::Armed => "armed",
        PortState::Active => "active",
        PortState::ActiveDefer => "active-defer",
        PortState::Other(word) => word,
    }
}

fn run(view: &NodeView<'_>, findings: &mut Findings) {
    let ports = ports(view);
    let known: Vec<&PortRef<'_>> = ports.iter().filter(|p| p.port.state.is_seen()).collect();
    if known.is_empty() {
        no_state(view, &ports, findings);
        return;
    }
    let mut quiet = Vec::new();
    for port in &known {
        if flaps(port) {
            let states: Vec<&str> = port.port.state.readings().map(|r| word(&r.value)).collect();
            findings.push(
                Finding::warn(
                    NAME,
                    &FLAPPING,
                    format!(
                        "{} changed its state between readings: {}; the last one proves nothing",
                        port.label(),
                        states.join(", ")
                    ),
                )
                .device(port.label())
                .seen(&port.port.state, "last state"),
            );
        }
        if let Some(trouble) = trouble(port)
            && !judge(port, &trouble, &known, findings)
        {
            quiet.push(format!("{} ({})", port.label(), trouble.words));
        }
    }
    active(&known, &quiet, findings);
    limited(&known, findings);
    let without: Vec<String> = ports
        .iter()
        .filter(|p| p.selected && !p.port.state.is_seen())
        .map(PortRef::label)
        .collect();
    if !without.is_empty() {
        findings.push(Finding::skipped(
            NAME,
            Reason::NotVisible,
            format!("{} is selected and its state is not shown", list(&without)),
        ));
    }
}

/// Tells a port that is not active, if it matters; returns whether it did.
fn judge(
    port: &PortRef<'_>,
    trouble: &Trouble,
    known: &[&PortRef<'_>],
    findings: &mut Findings,
) -> bool {
    let others = known.iter().filter(|p| p.label() != port.label());
    // Where all devices are software, theirs are the ports that count.
    let counts = |p: &PortRef<'_>| p.is_hardware() || !known.iter().any(|k| k.is_hardware());
    let any_active = known.iter().any(|p| p.is_active() && counts(p));
    let compute_active = known.iter().any(|p| p.compute && p.is_active());
    // Peers are the ports of the same kind of card.
    let peers: Vec<_> = others.filter(|p| p.class() == port.class()).collect();
    let most_peers_active =
        peers.iter().filter(|p| p.is_active()).count() * 2 > peers.len().saturating_add(1);
    let no_sm = trouble.cause.id == NO_SM.id;
    let needed = port.selected || !any_active || (port.compute && !compute_active);
    let on_purpose = trouble.cause.id == DISABLED.id;
    let missed = !is_azure_front_end(port.name)
        && (no_sm
            || (trouble.cause.id == FLAPPING.id && port.compute)
            || (port.compute
                && (port.near
                    || if on_purpose {
                        alone_switched_off(port, &peers)
                    } else {
                        most_peers_active
                    })));
    let detail = || {
        let why = if port.selected {
            "; a setting selects it"
        } else if !any_active {
            "; no port is active here"
        } else if needed {
            "; the active ports are not of its kind"
        } else {
            "; other ports are active"
        };
        format!("{} is {}{why}", port.label(), trouble.words)
    };
    let finding = if !counts(port) {
        return false;
    } else if needed && trouble.grave {
        Finding::fail(NAME, trouble.cause, detail())
    } else if needed || missed {
        Finding::warn(NAME, trouble.cause, detail())
    } else {
        return false;
    };
    findings.push(
        finding
            .device(port.label())
            .seen(&port.port.state, "state")
            .seen(&port.port.phys, "physical state"),
    );
    true
}

/// A few ports are switched off on purpose; one among many active ones of the same card and driver was forgotten, or
/// its interface went down: at most a quarter of them may be off.
fn alone_switched_off(port: &PortRef<'_>, peers: &[&&PortRef<'_>]) -> bool {
    fn stem(name: &str) -> &str {
        name.trim_end_matches(|c: char| c.is_ascii_digit())
    }
    let alike = peers.iter().filter(|p| stem(p.name) == stem(port.name));
    let all = alike.clone().count();
    let active = alike.filter(|p| p.is_active()).count();
    active
        >= all
            .saturating_sub(active)
            .saturating_add(1)
            .saturating_mul(3)
}

/// Active ports by fabric and rate; ports that are down and do not matter go with the first line.
fn active(known: &[&PortRef<'_>], quiet: &[String], findings: &mut Findings) {
    let mut groups: Vec<(Fabric, Option<u64>, Vec<&PortRef<'_>>)> = Vec::new();
    for port in known
        .iter()
        .filter(|p| p.is_active() && !flaps(p) && trouble(p).is_none())
    {
        let key = (port.fabric, rate_of(port.port));
        match groups.iter_mut().find(|g| (g.0, g.1) == key) {
            Some(group) => group.2.push(port),
            None => groups.push((key.0, key.1, vec![port])),
        }
    }
    let mut note = (!quiet.is_empty()).then(|| {
        format!(
            "not active, and neither selected nor missed: {}",
            list(quiet)
        )
    });
    for (fabric, mbps, members) in groups {
        let rate = mbps.map(|m| format!("{} ", rate(m))).unwrap_or_default();
        let names: Vec<String> = members.iter().map(|p| p.label()).collect();
        let detail = match names.as_slice() {
            [one] => format!("{one} active, {rate}{}", fabric.word()),
            many => format!(
                "{} ports active, {rate}{}: {}",
                many.len(),
                fabric.word(),
                list(many)
            ),
        };
        let mut finding = Finding::ok(NAME, detail);
        if let Some(first) = members.first() {
            finding = finding.seen(&first.port.state, "active");
        }
        if let Some(note) = note.take() {
            finding = finding.note(note);
        }
        if mbps.is_none() && fabric != Fabric::Efa {
            finding = finding.note("the rate is not shown");
        }
        findings.push(finding);
    }
    // Only software devices are told nowhere else.
    if note.is_some() {
        findings.push(Finding::skipped(
            NAME,
            Reason::NotApplicable,
            format!("not active: {}", list(quiet)),
        ));
    }
}

/// InfiniBand ports without full membership of any partition.
fn limited(known: &[&PortRef<'_>], findings: &mut Findings) {
    const FULL: u32 = 0x8000;
    for port in known {
        let keys = &port.port.pkeys;
        let full = keys
            .values()
            .filter_map(|key| key.value())
            .any(|key| key & FULL != 0);
        if port.fabric != Fabric::InfiniBand || !port.is_active() || full {
            continue;
        }
        let Some(first) = keys.values().find(|key| key.is_seen()) else {
            continue;
        };
        findings.push(
            Finding::warn(
                NAME,
                &PKEY,
                format!(
                    "{} is only a limited member of its partitions (pkey {:#06x}): it reaches full members only",
                    port.label(),
                    first.value().copied().unwrap_or_default()
                ),
            )
            .device(port.label())
            .seen(first, "pkey"),
        );
    }
}

/// Devices are listed, and no source tells the state of a port.
fn no_state(view: &NodeView<'_>, ports: &[PortRef<'_>], findings: &mut Findings) {
    let names: Vec<String> = if ports.is_empty() {
        view.seen.rdma.devices.keys().cloned().collect()
    } else {
        ports.iter().map(PortRef::label).collect()
    };
    if names.is_empty() {
        return;
    }
    let interfaces = ports.iter().any(|p| p.port.netdev_up.is_seen());
    let detail = if interfaces {
        format!(
            "{}: only the state of the interface is shown, which is not the port's; save the output of ibstat or rdma link too",
            list(&names)
        )
    } else {
        format!(
            "{}: the state of the port is not shown; save the output of ibstat or rdma link too",
            list(&names)
        )
    };
    findings.push(Finding::skipped(NAME, Reason::NotVisible, detail).required());
}
