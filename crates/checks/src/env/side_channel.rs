//! The NIXL side channel is reachable at the address that a worker announces.
//!
//! vLLM's NIXL connector announces `VLLM_NIXL_SIDE_CHANNEL_HOST` to its peers, which then dial it for metadata.
//! It has to be the pod's own address. `0.0.0.0` and `localhost` make the peer dial itself, unless a gateway
//! rewrites the address (AIBrix does). Dynamo passes the pod's address itself.

use crate::check::{Cause, Check};
use crate::finding::{Finding, Findings};
use crate::kv_path::Connector;
use crate::view::View;

const NAME: &str = "env/side-channel";
const VARIABLE: &str = "VLLM_NIXL_SIDE_CHANNEL_HOST";

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the NIXL side channel announces the pod's own address",
    source: include_str!("side_channel.rs"),
    causes: &[ANY_ADDRESS, LOOPBACK],
    notes: &[],
    run,
};

const ANY_ADDRESS: Cause = Cause {
    id: "side-channel-host-any",
    what: "VLLM_NIXL_SIDE_CHANNEL_HOST is 0.0.0.0",
    why: "the peer is told to dial 0.0.0.0 and reaches itself: the handshake fails and no KV moves",
    fix: "set it from the pod's address: valueFrom: {fieldRef: {fieldPath: status.podIP}}",
    quiet_if: "a gateway that rewrites remote_host stands in front (AIBrix): then a note; another connector than NIXL",
    source: "vLLM NixlConnector; llm-d and kthena routers pass kv_transfer_params unchanged",
};

const LOOPBACK: Cause = Cause {
    id: "side-channel-host-loopback",
    what: "VLLM_NIXL_SIDE_CHANNEL_HOST is localhost or 127.0.0.1",
    why: "a peer in another pod dials itself: the handshake fails and no KV moves",
    fix: "set it from the pod's address: valueFrom: {fieldRef: {fieldPath: status.podIP}}",
    quiet_if: "both roles are in one pod or on one host's network; another connector than NIXL",
    source: "vLLM NixlConnector",
};

fn run(view: &View<'_>, findings: &mut Findings) {
    // AIBrix's StormService runs behind its gateway, which writes the address into each request.
    let rewritten = matches!(
        view.deployment.kind.as_str(),
        "StormService" | "RayClusterFleet"
    );
    for kv in &view.kv {
        let Some(setting) = kv.worker.setting(VARIABLE) else {
            continue;
        };
        if !matches!(kv.path.connector, Connector::Nixl | Connector::Unknown(_)) {
            continue;
        }
        let role = kv.worker.role.as_str();
        let Some(value) = setting.value.literal() else {
            findings.push(
                Finding::ok(NAME, format!("{VARIABLE} comes from {}", describe(setting)))
                    .worker(kv.worker)
                    .at(&setting.place, role),
            );
            continue;
        };
        let host = value.trim().trim_start_matches('[').trim_end_matches(']');
        let any = matches!(host, "0.0.0.0" | "::" | "*" | "");
        let loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
        if any && rewritten {
            findings.push(
                Finding::ok(NAME, format!("{VARIABLE}={value}: AIBrix's gateway rewrites it"))
                    .worker(kv.worker)
                    .at(&setting.place, role)
                    .note("behind a static router, which passes it on unchanged, the peer would dial itself"),
            );
        } else if any {
            findings.push(
                Finding::fail(
                    NAME,
                    &ANY_ADDRESS,
                    format!("{role} announces {value}: its peer dials itself"),
                )
                .worker(kv.worker)
                .at(
                    &setting.place,
                    format!("{role}: not an address that a peer can dial"),
                ),
            );
        } else if loopback && !(view.is_single_host() && kv.worker.host_network) {
            findings.push(
                Finding::fail(
                    NAME,
                    &LOOPBACK,
                    format!("{role} announces {value}: its peer dials itself"),
                )
                .worker(kv.worker)
                .at(
                    &setting.place,
                    format!("{role}: reachable from this pod only"),
                ),
            );
        } else {
            findings.push(
                Finding::ok(NAME, format!("{VARIABLE}={value}"))
                    .worker(kv.worker)
                    .at(&setting.place, role),
            );
        }
    }
}

fn describe(setting: &model::Setting) -> String {
    match &setting.value {
        model::Value::Literal(text) => text.clone(),
        model::Value::Dynamic(why) => why.clone(),
    }
}
