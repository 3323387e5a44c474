//! The NIXL side channel is reachable at the address that a worker announces.
//!
//! vLLM's NIXL connector announces `VLLM_NIXL_SIDE_CHANNEL_HOST` to its peers, which then dial it for metadata.
//! It has to be the pod's own address. `0.0.0.0` and `localhost` make the peer dial itself, unless a gateway
//! rewrites the address (AIBrix does). Dynamo passes the pod's address itself; plain vLLM's default is localhost.

use model::{Engine, Role, Setting, Value};

use crate::check::{Cause, Check, Run};
use crate::finding::{Finding, Findings};
use crate::kv_path::Connector;
use crate::view::{View, WorkerView};

const NAME: &str = "env/side-channel";
const VARIABLE: &str = "VLLM_NIXL_SIDE_CHANNEL_HOST";
const PORT: &str = "VLLM_NIXL_SIDE_CHANNEL_PORT";

/// vLLM's default.
const DEFAULT_PORT: u64 = 5600;

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the NIXL side channel announces the pod's own address",
    source: include_str!("side_channel.rs"),
    causes: &[ANY_ADDRESS, LOOPBACK, WRONG_ADDRESS, PORT_CLASH],
    notes: &[],
    run: Run::Recipe(run),
};

pub(crate) const ANY_ADDRESS: Cause = Cause {
    id: "side-channel-host-any",
    what: "VLLM_NIXL_SIDE_CHANNEL_HOST is 0.0.0.0",
    why: "the peer is told to dial 0.0.0.0 and reaches itself: the handshake fails and no KV moves",
    fix: "set it from the pod's address: valueFrom: {fieldRef: {fieldPath: status.podIP}}",
    quiet_if: "a gateway that rewrites remote_host stands in front (AIBrix): then a note; another connector than NIXL",
    source: "vLLM NixlConnector; llm-d and kthena routers pass kv_transfer_params unchanged",
};

pub(crate) const LOOPBACK: Cause = Cause {
    id: "side-channel-host-loopback",
    what: "VLLM_NIXL_SIDE_CHANNEL_HOST is localhost or 127.0.0.1, or not set where nothing else sets it (vLLM's default is localhost)",
    why: "a peer in another pod dials itself: the handshake fails and no KV moves",
    fix: "set it from the pod's address: valueFrom: {fieldRef: {fieldPath: status.podIP}}",
    quiet_if: "both roles are in one pod or on one host's network; Dynamo, which passes the pod's address; a gateway that rewrites it; another connector than NIXL; kinds that a base or a chart fills in",
    source: "vLLM NixlConnector",
};

pub(crate) const WRONG_ADDRESS: Cause = Cause {
    id: "side-channel-host-wrong-ip",
    what: "VLLM_NIXL_SIDE_CHANNEL_HOST is the node's address, or one fixed address, in a pod with a network of its own",
    why: "the side channel listens in the pod: nothing answers at the node's address, and a fixed address belongs to one pod at most",
    fix: "set it from the pod's address: valueFrom: {fieldRef: {fieldPath: status.podIP}}",
    quiet_if: "the host's network; a name (it may be a Service of one pod); another connector than NIXL",
    source: "vLLM NixlConnector",
};

pub(crate) const PORT_CLASH: Cause = Cause {
    id: "side-channel-port-clash",
    what: "prefill and decode use the same side-channel port in one network namespace",
    why: "the second one cannot listen, or answers for the first: port = VLLM_NIXL_SIDE_CHANNEL_PORT (5600) plus the data parallel rank",
    fix: "give the roles ports that are further apart than their data parallel sizes",
    quiet_if: "pods with addresses of their own; hosts of their own; Dynamo, which chooses ports itself where none is set",
    source: "vLLM envs.py, NixlConnector",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    // AIBrix's StormService runs behind its gateway, which writes the address into each request.
    let rewritten = matches!(&*view.deployment.kind, "StormService" | "RayClusterFleet");
    for kv in &view.kv {
        if !matches!(kv.path.connector, Connector::Nixl | Connector::Unknown(_)) {
            continue;
        }
        match kv.worker.setting(VARIABLE) {
            Some(setting) => set(view, kv, setting, rewritten, findings),
            None if !rewritten => unset(view, kv, findings),
            None => {}
        }
    }
    ports(view, findings);
}

/// The default is localhost, unless something else sets the address.
fn unset(view: &View<'_>, kv: &WorkerView<'_>, findings: &mut Findings) {
    let worker = kv.worker;
    // Dynamo passes the pod's address; what a base, a chart or a sourced file sets cannot be seen.
    if kv.is_started_by_dynamo()
        || !kv.is_as_written()
        || view.is_part()
        || worker.engine != Engine::Vllm
        || kv.path.connector != Connector::Nixl
        || !worker.has_command
        || worker.is_open()
        || view.is_one_pod()
        || (view.is_single_host() && worker.host_network)
    {
        return;
    }
    let role = worker.role.as_str();
    findings.push(
        Finding::warn(
            NAME,
            &LOOPBACK,
            format!(
                "{role} does not set {VARIABLE}: vLLM announces localhost, so its peer dials itself"
            ),
        )
        .worker(worker)
        .at(
            kv.path.place.as_ref().unwrap_or(&worker.place),
            format!("{role}: announces localhost by default"),
        ),
    );
}

fn set(
    view: &View<'_>,
    kv: &WorkerView<'_>,
    setting: &Setting,
    rewritten: bool,
    findings: &mut Findings,
) {
    let worker = kv.worker;
    let role = worker.role.as_str();
    let finish = |finding: Finding, label: String| finding.worker(worker).at(&setting.place, label);
    let value = match &setting.value {
        Value::Literal(value) => value,
        Value::Dynamic(why) if why.ends_with("status.hostIP") && !worker.host_network => {
            return findings.push(finish(
                Finding::warn(
                    NAME,
                    &WRONG_ADDRESS,
                    format!(
                        "{role} announces the node's address, and is not on the node's network"
                    ),
                ),
                format!("{role}: the node's address"),
            ));
        }
        Value::Dynamic(why) => {
            return findings.push(finish(
                Finding::ok(NAME, format!("{VARIABLE} comes from {why}")),
                role.to_owned(),
            ));
        }
    };
    let host = value.trim().trim_start_matches('[').trim_end_matches(']');
    let any = matches!(host, "0.0.0.0" | "::" | "*" | "");
    let loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
    let fixed = host.parse::<std::net::IpAddr>().is_ok();
    if any && rewritten {
        findings.push(
            finish(
                Finding::ok(
                    NAME,
                    format!("{VARIABLE}={value}: AIBrix's gateway rewrites it"),
                ),
                role.to_owned(),
            )
            .note(
                "behind a static router, which passes it on unchanged, the peer would dial itself",
            ),
        );
    } else if any {
        findings.push(finish(
            Finding::fail(
                NAME,
                &ANY_ADDRESS,
                format!("{role} announces {value}: its peer dials itself"),
            ),
            format!("{role}: not an address that a peer can dial"),
        ));
    } else if loopback && !view.is_one_pod() && !(view.is_single_host() && worker.host_network) {
        findings.push(finish(
            Finding::fail(
                NAME,
                &LOOPBACK,
                format!("{role} announces {value}: its peer dials itself"),
            ),
            format!("{role}: reachable from this pod only"),
        ));
    } else if fixed && !loopback && !worker.host_network {
        findings.push(finish(
            Finding::warn(
                NAME,
                &WRONG_ADDRESS,
                format!(
                    "{role} announces the fixed address {value}, which is not that of its pods"
                ),
            ),
            format!("{role}: one address for every pod"),
        ));
    } else {
        findings.push(finish(
            Finding::ok(NAME, format!("{VARIABLE}={value}")),
            role.to_owned(),
        ));
    }
}

/// Both roles in one network namespace, on ports that overlap.
fn ports(view: &View<'_>, findings: &mut Findings) {
    let candidates = |role: Role| {
        view.role(role).find(|w| {
            w.path.connector == Connector::Nixl
                && w.worker.engine == Engine::Vllm
                && (!w.is_started_by_dynamo() || w.worker.setting(PORT).is_some())
        })
    };
    let (Some(prefill), Some(decode)) = (candidates(Role::Prefill), candidates(Role::Decode))
    else {
        return;
    };
    let shared = view.is_one_pod()
        || (view.is_single_host() && prefill.worker.host_network && decode.worker.host_network);
    if !shared {
        return;
    }
    let range = |w: &WorkerView<'_>| {
        let base = match w.worker.setting(PORT) {
            Some(setting) => setting.value.literal()?.trim().parse::<u64>().ok()?,
            None => DEFAULT_PORT,
        };
        let ranks = ["--data-parallel-size", "--dp-size"]
            .iter()
            .find_map(|n| w.worker.literal(n))
            .map_or(Some(1), |n| n.trim().parse::<u64>().ok())?;
        Some((base, base.saturating_add(ranks.max(1))))
    };
    let (Some((p, p_end)), Some((d, d_end))) = (range(prefill), range(decode)) else {
        return;
    };
    if p >= d_end || d >= p_end {
        return;
    }
    let mut finding = Finding::fail(
        NAME,
        &PORT_CLASH,
        format!("prefill (from port {p}) and decode (from port {d}) share a network: their side channels collide"),
    )
    .workers([prefill.worker, decode.worker]);
    for kv in [prefill, decode] {
        let place = kv
            .worker
            .setting(PORT)
            .map_or(&kv.worker.place, |s| &s.place);
        finding = finding.at(place, format!("{}: same port", kv.worker.role.as_str()));
    }
    findings.push(finding);
}
