//! Exec: what is checked before the upgrade, the upgrade, and the session after it.

mod child;
mod outlet;
mod session;

use std::sync::Arc;

use http::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE,
};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::api::{Body, respond_empty};
use crate::fault::ExecFault;
use crate::hub::Hub;
use crate::record::{Exec, lock};
use crate::states;
use crate::status::Refusal;
use crate::tap::Line;
use crate::target::Target;

/// The container that a request means, or why it means none.
///
/// Texts: `pkg/registry/core/pod/strategy.go` (`streamLocation`, `LogLocation`).
pub(crate) fn container_of(pod: &Value, asked: Option<&str>) -> Result<String, Refusal> {
    let name = pod
        .pointer("/metadata/name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let names = |field: &str| -> Vec<&str> {
        pod.pointer(&format!("/spec/{field}"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|c| c.get("name").and_then(Value::as_str))
            .collect()
    };
    let (plain, init) = (names("containers"), names("initContainers"));
    match asked.filter(|asked| !asked.is_empty()) {
        Some(asked) => {
            let known = plain.contains(&asked)
                || init.contains(&asked)
                || names("ephemeralContainers").contains(&asked);
            if known {
                Ok(asked.to_owned())
            } else {
                Err(Refusal::bad_request(&format!(
                    "container {asked} is not valid for pod {name}"
                )))
            }
        }
        None => match (plain.as_slice(), init.is_empty()) {
            ([only], _) => Ok((*only).to_owned()),
            (_, no_init) => {
                let mut text = format!(
                    "a container name must be specified for pod {name}, choose one of: [{}]",
                    plain.join(" ")
                );
                if !no_init {
                    text = format!("{text} or one of the init containers: [{}]", init.join(" "));
                }
                Err(Refusal::bad_request(&text))
            }
        },
    }
}

/// Answers a request for an exec; the session goes on after the answer.
pub(crate) fn answer(
    hub: &Arc<Hub>,
    line: &Arc<Line>,
    user: &str,
    target: &Target,
    request: &mut Request<Incoming>,
    faults: Vec<ExecFault>,
) -> Result<Response<Body>, Refusal> {
    let pod = lock(&hub.world)
        .pod(&target.namespace, &target.name)
        .cloned();
    let pod = pod.ok_or_else(|| Refusal::not_found("pods", "", &target.name))?;
    let container = container_of(&pod, target.parameter("container"))?;
    if pod.pointer("/spec/nodeName").is_none() {
        let text = format!("pod {} does not have a host assigned", target.name);
        return Err(Refusal::bad_request(&text));
    }
    let flag = |name: &str| matches!(target.parameter(name), Some("true" | "1"));
    let streams = session::Streams {
        stdin: flag("stdin"),
        stdout: flag("stdout"),
        stderr: flag("stderr") && !flag("tty"),
    };
    let argv: Vec<String> = target
        .query
        .iter()
        .filter(|(k, _)| k == "command")
        .map(|(_, v)| v.clone())
        .collect();
    if argv.is_empty() {
        return Err(Refusal::bad_request(
            "you must specify at least one command for the container",
        ));
    }
    if !streams.stdin && !streams.stdout && !streams.stderr {
        return Err(Refusal::bad_request(
            "you must specify at least 1 of stdin, stdout, stderr",
        ));
    }
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|v: &HeaderValue| v.to_str().ok())
    };
    let websocket = header(UPGRADE).is_some_and(|v| v.eq_ignore_ascii_case("websocket"));
    let key = header(SEC_WEBSOCKET_KEY).map(str::to_owned);
    let Some(key) = key.filter(|_| websocket) else {
        // SPDY comes here; the words are those of the kubelet's upgrade handler.
        return Err(Refusal::text(400, "Upgrade request required"));
    };
    let proposed: Vec<&str> = header(SEC_WEBSOCKET_PROTOCOL)
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .collect();
    let agreed = hub.protocols.iter().find(|p| proposed.contains(p));
    let Some(&protocol) = agreed else {
        return Err(Refusal::text(
            400,
            "websocket server only supports the binary channel protocols\n",
        ));
    };
    let runs = states::runs(&pod, &container);
    let v5 = protocol.starts_with("v5");
    if !runs && !v5 {
        // Version 4 goes through to the kubelet, which answers before the upgrade.
        return Err(Refusal::text(
            500,
            format!("container not found (\"{container}\")"),
        ));
    }
    let answered = faults.iter().find_map(|fault| match fault {
        ExecFault::Subprotocol(other) => Some(other.clone()),
        _ => None,
    });
    let mut response = respond_empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    let answered = answered.unwrap_or_else(|| Some(protocol.to_owned()));
    if let Some(Ok(value)) = answered.as_deref().map(HeaderValue::from_str) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
    }

    let place = (
        target.namespace.clone(),
        target.name.clone(),
        container.clone(),
    );
    let behaviour = lock(&hub.containers).get(&place).cloned();
    let number = hub.journal.exec(Exec {
        namespace: target.namespace.clone(),
        pod: target.name.clone(),
        container,
        argv: argv.clone(),
        user: user.to_owned(),
        protocol: protocol.to_owned(),
        connection: line.number,
        ..Exec::default()
    });
    let events = hub.enter(number, place.clone());
    let session = session::Session {
        hub: Arc::clone(hub),
        line: Arc::clone(line),
        number,
        place,
        v5,
        streams,
        argv,
        container: behaviour,
        runs,
        faults,
    };
    let upgrade = hyper::upgrade::on(request);
    tokio::spawn(async move {
        let hub = Arc::clone(&session.hub);
        if let Ok(upgraded) = upgrade.await {
            let stream =
                WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            session.run(stream, events).await;
        } else {
            hub.journal.amend_exec(number, |exec| exec.lost = true);
        }
        hub.leave(number);
    });
    Ok(response)
}
