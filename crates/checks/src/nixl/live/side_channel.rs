//! The side channel of the engine that runs: the address that it announces, and whether somebody listens there.
//!
//! vLLM's NIXL connector announces `VLLM_NIXL_SIDE_CHANNEL_HOST` (default localhost) and port 5600 plus the data
//! parallel rank to its peers, which dial it for metadata. What is announced is read from the live process, who listens
//! from the kernel. Dynamo sets the address inside of the process, where its environment does not show it.

use std::net::IpAddr;

use model::Reason;
use model::observation::process::Listener;

use super::view::NixlView;
use crate::check::{Check, Run};
use crate::env::side_channel::{ANY_ADDRESS, LOOPBACK, WRONG_ADDRESS};
use crate::finding::{Finding, Findings};

const NAME: &str = "nixl/side-channel";
const HOST: &str = "VLLM_NIXL_SIDE_CHANNEL_HOST";
const PORT: &str = "VLLM_NIXL_SIDE_CHANNEL_PORT";
/// vLLM envs.py.
const DEFAULT_PORT: u16 = 5600;
/// Ranks that are looked for behind the first port.
const RANKS: u16 = 64;

/// The check.
pub(crate) const CHECK: Check = Check {
    name: NAME,
    title: "the running engine announces a side channel that its peers can reach",
    source: include_str!("side_channel.rs"),
    // Those of env/side-channel.
    causes: &[],
    notes: &[],
    run: Run::Nixl(run),
};

/// Who has to be reached from where.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A pod with an address of its own.
    Pod,
    /// A pod on its node's network, or a host.
    Host,
    /// A container; whether its peers are in it is not known.
    Container,
}

fn place(view: &NixlView<'_>) -> Place {
    use model::observation::host::Place as Seen;
    match view.pod {
        Some(pod) if pod.host_network => Place::Host,
        Some(_) => Place::Pod,
        None if view.seen.host.place.value() == Some(&Seen::Container) => Place::Container,
        None => Place::Host,
    }
}

/// vLLM with NIXL, by its flags or by what it has loaded.
fn applies(view: &NixlView<'_>) -> bool {
    let vllm = view
        .processes()
        .any(|(_, process)| process.engine.value().is_some_and(|e| e == "vllm"));
    let told = view.processes().any(|(_, process)| {
        process.flags.iter().any(|(flag, value)| {
            matches!(flag.as_str(), "--kv-transfer-config" | "--connector")
                && value
                    .value()
                    .is_some_and(|v| v.to_ascii_lowercase().contains("nixl"))
        })
    });
    vllm && (told || super::libraries::any_nixl(view))
}

fn run(view: &NixlView<'_>, findings: &mut Findings) {
    if !applies(view) {
        return;
    }
    let unread = view
        .processes()
        .find_map(|(_, process)| process.environment_read.get().err());
    let host = view.setting(HOST);
    if let (None, Some(missing)) = (host, unread) {
        findings.push(
            Finding::lacking(
                NAME,
                missing,
                "the address that the engine announces is not known",
            )
            .required(),
        );
        return;
    }
    let base = port(view);
    let ours = base.map_or_else(Vec::new, |base| listeners(view, base));
    match host.and_then(|fact| Some((fact, fact.value()?))) {
        Some((fact, value)) => {
            let finding = announced(view, value);
            findings.push(finding.seen(fact, HOST));
        }
        None => unset(view, &ours, findings),
    }
    if let Some(base) = base {
        listens(view, base, &ours, findings);
    }
}

fn announced(view: &NixlView<'_>, value: &str) -> Finding {
    let host = value.trim().trim_start_matches('[').trim_end_matches(']');
    let any = matches!(host, "0.0.0.0" | "::" | "*" | "");
    let loopback = host == "localhost" || host == "::1" || host.starts_with("127.");
    let what = format!("the engine announces {HOST}={value}");
    // AIBrix's gateway writes the address into each request.
    let rewritten = view
        .pod
        .is_some_and(|pod| pod.labels.contains_key("storm-service-name"));
    if any && rewritten {
        return Finding::ok(NAME, what).note("AIBrix's gateway rewrites it");
    }
    if any {
        return Finding::fail(NAME, &ANY_ADDRESS, format!("{what}: its peer dials itself"));
    }
    if loopback {
        return match place(view) {
            Place::Pod => Finding::fail(
                NAME,
                &LOOPBACK,
                format!("{what}: a peer in another pod dials itself"),
            ),
            Place::Container => Finding::warn(
                NAME,
                &LOOPBACK,
                format!("{what}: a peer in another container or on another host dials itself"),
            ),
            Place::Host => Finding::ok(NAME, what).note("peers on other hosts cannot reach it"),
        };
    }
    let wrong = match (view.pod, host.parse::<IpAddr>()) {
        (Some(pod), Ok(_)) if !pod.host_network && !pod.addresses.is_empty() => {
            !pod.addresses.iter().any(|address| address == host)
        }
        _ => false,
    };
    if wrong {
        return Finding::fail(
            NAME,
            &WRONG_ADDRESS,
            format!("{what}, which is not this pod's address"),
        );
    }
    Finding::ok(NAME, what)
}

fn unset(view: &NixlView<'_>, ours: &[&Listener], findings: &mut Findings) {
    // Dynamo and others set it inside of the process: who listens tells.
    if view.by_dynamo() || ours.iter().any(|l| !l.address.is_loopback()) {
        return;
    }
    let what = format!("{HOST} is not set in the engine: vLLM announces localhost");
    let finding = match place(view) {
        Place::Pod if ours.is_empty() => Finding::warn(NAME, &LOOPBACK, what).note(
            "a launcher may set it inside of the process, which its environment does not show",
        ),
        Place::Pod => Finding::fail(
            NAME,
            &LOOPBACK,
            format!("{what}, and listens there: a peer in another pod dials itself"),
        ),
        Place::Container => Finding::warn(NAME, &LOOPBACK, what),
        Place::Host => Finding::ok(NAME, what).note("peers on other hosts cannot reach it"),
    };
    let read = view
        .processes()
        .map(|(_, process)| &process.environment_read)
        .find(|read| read.is_seen());
    findings.push(match read {
        Some(read) => finding.seen(read, "not set"),
        None => finding,
    });
}

/// The port that the engine was given, or vLLM's; `None` where it is none.
fn port(view: &NixlView<'_>) -> Option<u16> {
    match view.setting(PORT).and_then(|fact| fact.value()) {
        None => Some(DEFAULT_PORT),
        // What vLLM makes of another text is vLLM's business.
        Some(text) => text.trim().parse().ok(),
    }
}

/// Who listens at the port, or at one behind it. There another program may have it: only the engine's own sockets count.
fn listeners<'v>(view: &NixlView<'v>, base: u16) -> Vec<&'v Listener> {
    let range = base..=base.saturating_add(RANKS);
    let all = view.seen.process.listening.value().into_iter().flatten();
    all.filter(|l| range.contains(&l.port) && (l.port == base || l.process.is_some()))
        .collect()
}

/// Who listens.
fn listens(view: &NixlView<'_>, base: u16, ours: &[&Listener], findings: &mut Findings) {
    let fact = &view.seen.process.listening;
    if let Err(missing) = fact.get() {
        findings.push(Finding::lacking(NAME, missing, "who listens is not known"));
        return;
    }
    let Some(first) = ours.first() else {
        let words = if view.by_dynamo() && view.setting(PORT).is_none() {
            "Dynamo chooses the port itself where none is set"
        } else {
            "vLLM opens it when the connector is ready"
        };
        findings.push(
            Finding::skipped(
                NAME,
                Reason::NotVisible,
                format!("nothing listens at the side channel's port {base}"),
            )
            .note(words)
            .seen(fact, "listening"),
        );
        return;
    };
    let told = findings
        .results()
        .iter()
        .any(|r| r.name == NAME && r.cause == Some(LOOPBACK.id));
    let at = format!("{}:{}", first.address, first.port);
    let unreachable = ours.iter().all(|l| l.address.is_loopback()) && place(view) == Place::Pod;
    if !unreachable {
        findings.push(
            Finding::ok(NAME, format!("the side channel listens at {at}")).seen(fact, "listening"),
        );
    } else if !told {
        findings.push(
            Finding::fail(
                NAME,
                &LOOPBACK,
                format!("the side channel listens at {at} only: no other pod reaches it"),
            )
            .seen(fact, "listening"),
        );
    }
}
